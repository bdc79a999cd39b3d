"""Concentrations of Dirichlet rows, drawn with the rest."""

import numpy as np
import pytest
from scipy.special import gammaln

from pgmpy_dp.inference.posterior.hamiltonian import Concentrations
from pgmpy_dp.inference.tables.table import Layout, Rows

ROWS = Rows(Layout.of({"parents": 4, "node": 2}, [("node", "parents")]))
LOGS = ROWS.normalise(np.log([0.7, 0.9, 0.99, 0.8, 0.3, 0.1, 0.01, 0.2]))


def posterior():
    """Means and standard deviations of the concentrations' logarithms, by a grid of them, their centre and variance."""
    logs, centre = np.linspace(np.log(0.02), np.log(10.0), 81), np.linspace(-4.0, 3.0, 71)
    variance = np.geomspace(0.01, 20.0, 61)
    # Inverse gamma with weight 2 and 0.1, a density of the logarithm; the centre is normal about log(0.5).
    believed = -np.log(variance) - 0.1 / variance + 0 * centre[:, None] - 0.5 * (centre[:, None] - np.log(0.5)) ** 2
    normal = np.exp(-((logs[:, None, None] - centre[:, None]) ** 2) / (2 * variance)) / np.sqrt(variance)
    together = np.einsum("acv,bcv,cv->ab", normal, normal, np.exp(believed))
    first, second = np.exp(logs)[:, None], np.exp(logs)
    sums = LOGS.reshape(2, 4).sum(axis=1)
    rows = 4 * (gammaln(first + second) - gammaln(first) - gammaln(second)) + sums[0] * first + sums[1] * second
    weights = together * np.exp(rows)
    shares = [weights.sum(axis=1 - axis) / weights.sum() for axis in range(2)]
    means = np.array([share @ logs for share in shares])
    return means, np.sqrt(np.array([share @ logs**2 for share in shares]) - means**2)


def test_concentrations_given_their_rows():
    """4000 draws, whose means lie within 6 standard errors of 100 independent ones, as their deviations.

    A failure in a million if every 40th draw is independent; a draw is worth a fourteenth of an independent one.
    """
    prior, generator = Concentrations(ROWS), np.random.default_rng(0)
    drawn = []
    for number in range(4000):
        shapes = prior.renew(LOGS + number % 3, generator)  # whatever the sums of the rows
        drawn.append(np.log(shapes[[0, 4]]))
    means, deviations = posterior()
    assert np.mean(drawn, axis=0) == pytest.approx(means, abs=6 * deviations.max() / 100**0.5)
    assert np.std(drawn, axis=0) == pytest.approx(deviations, rel=6 / 200**0.5)


GRID = Rows(Layout.of({"rare": 2, "other": 2, "node": 2}, [("node", "rare", "other")]))


def believed(generator):
    """Draw concentrations of the grid's 8 cells from their prior, by rejection of those out of range."""
    while True:
        centre = np.log(0.5) + generator.standard_normal()
        variance, *variances = 0.1 / generator.gamma(1.0, size=5)
        bases = centre + np.sqrt(variance) * generator.standard_normal(2)
        rare, other = np.sqrt(np.reshape(variances, (2, 2, 1))) * generator.standard_normal((2, 2, 2))
        logs = bases[:, None, None] + rare.T[:, :, None] + other.T[:, None, :]
        drawn = np.exp(logs).ravel()
        if ((drawn > 0.02) & (drawn < 10.0)).all():
            return drawn


def test_concentrations_with_effects_of_parents_keep_their_prior():
    """Rows drawn from their concentrations, and these given the rows, in turn: both keep the prior (Geweke 2004).

    Shares of 12,000 draws below quantiles of the prior, within 6 standard errors of 400 independent draws: a failure
    in a million if every 30th draw is independent.
    """
    generator, prior = np.random.default_rng(1), Concentrations(GRID)
    shapes, found = prior.first, []
    for _ in range(12_000):
        rows = np.empty(8)
        for row in range(4):
            rows[GRID.numbers == row] = np.log(np.maximum(generator.dirichlet(shapes[GRID.numbers == row]), 1e-300))
        shapes = prior.renew(rows, generator)
        found.append(shapes)
    exact = np.array([believed(generator) for _ in range(4000)])
    for statistic in (lambda c: np.log(c[:, 0]), lambda c: np.log(c[:, 0] * c[:, 7] / c[:, 1] / c[:, 6])):
        levels = np.quantile(statistic(exact), [0.1, 0.5, 0.9])
        shares = (statistic(np.array(found))[:, None] < levels).mean(axis=0)
        assert shares == pytest.approx([0.1, 0.5, 0.9], abs=6 * 0.5 / 400**0.5)
