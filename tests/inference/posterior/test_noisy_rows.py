"""Posterior means of rows behind noise, against integrals over the simplex, and concentrations that rows tell."""

import numpy as np
import pytest
from scipy.special import logsumexp, polygamma
from scipy.stats import dirichlet

from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LaplaceNoise
from pgmpy_dp.inference.posterior.noisy_rows import NoisyRows

VARIANCE = 50.0
LAWS = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}


def noisy(law, tables, totals, slopes=None):
    """Rows of noisy counts, a column of `tables` each."""
    observed = tables.ravel()
    rows = np.tile(np.arange(tables.shape[1]), tables.shape[0])
    scale, corner = LAWS[law](observed, np.full(observed.size, VARIANCE)).hyperbolic()
    slopes = np.zeros(observed.size) if slopes is None else slopes
    return NoisyRows(rows, observed, scale, corner, totals, slopes)


def integrated(law, observed, total, concentrations, slopes, draws=1_000_000):
    """Posterior mean of one row by draws from the prior, weighted by the likelihood."""
    shares = np.random.default_rng(1).dirichlet(concentrations, draws)
    residual = observed - total * shares
    scale, corner = LAWS[law](observed, np.full(observed.size, VARIANCE)).hyperbolic()
    logs = -(residual**2) / (2 * VARIANCE) if law == "gaussian" else -np.sqrt(residual**2 + corner) / scale
    logs = (logs + total * shares * slopes).sum(axis=1)
    return total * np.exp(logs - logsumexp(logs)) @ shares


def test_means_are_those_of_the_dirichlet_posterior_to_a_fiftieth_of_the_row():
    """Rows of 15 to 400 records, concentrations from .1 to 3, slopes of up to half the noise's own."""
    generator = np.random.default_rng(0)
    for law in LAWS:
        for states in (2, 3, 5):
            for total in (15.0, 40.0, 400.0):
                concentrations = generator.uniform(0.1, 3.0, states)
                counts = total * generator.dirichlet(concentrations)
                observed = counts + np.sqrt(VARIANCE) * generator.standard_normal(states)
                slopes = generator.uniform(-0.5, 0.5, states) / np.sqrt(VARIANCE)
                rows = noisy(law, observed[:, None], np.array([total]), slopes)
                start = np.full(states, total / states)
                means, *_ = rows.means(concentrations, start, np.full(states, VARIANCE))
                assert means.sum() == pytest.approx(total, rel=1e-5)
                right = integrated(law, observed, total, concentrations, slopes)
                np.testing.assert_allclose(means, right, atol=0.02 * total + 0.25)


def test_two_gaussian_counts_have_the_means_of_one_dimensional_quadrature():
    shares = (np.arange(200_000) + 0.5) / 200_000
    for total, observed, concentrations in ((30, (28.0, -4.0), (1.0, 0.2)), (100, (93.0, 9.0), (2.0, 0.1))):
        rows = noisy("gaussian", np.array(observed)[:, None], np.array([float(total)]))
        means, *_ = rows.means(np.array(concentrations), np.full(2, total / 2), np.full(2, VARIANCE))
        logs = dirichlet(concentrations).logpdf(np.stack([shares, 1 - shares]))
        residuals = np.subtract.outer(observed, 0 * shares) - total * np.stack([shares, 1 - shares])
        logs = logs - (residuals**2).sum(axis=0) / (2 * VARIANCE)
        right = total * np.exp(logs - logsumexp(logs)) @ shares
        assert means[0] == pytest.approx(right, abs=0.02 * total)


def test_a_row_without_records_has_the_mean_of_its_prior():
    rows = noisy("laplace", np.array([[9.0], [-3.0], [0.0]]), np.array([1e-6]))
    concentrations = np.array([0.1, 0.5, 1.4])
    means, *_ = rows.means(concentrations, np.full(3, 1e-6), np.full(3, VARIANCE))
    np.testing.assert_allclose(means / means.sum(), concentrations / 2.0, atol=0.02)


def test_the_gradient_of_the_evidence_is_that_of_its_value():
    generator = np.random.default_rng(2)
    tables = generator.normal(60, 40, (3, 20))
    concentrations, near = generator.uniform(0.1, 2, 60), np.maximum(tables, 1.0)
    totals = near.sum(axis=0)
    near = near.ravel()
    for law in LAWS:
        rows = noisy(law, tables, totals)
        _, gradient = rows.evidence(concentrations, near)
        for cell in (0, 25, 59):
            step = 1e-4 * np.eye(60)[cell]
            above, below = (rows.evidence(concentrations + sign * step, near)[0] for sign in (1, -1))
            assert gradient[cell] == pytest.approx((above - below) / 2e-4, rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("truth", [(0.5, 0.5, 0.5), (3.0, 0.3, 0.3), (1.0, 0.1, 0.1)])
def test_many_rows_tell_their_concentrations(truth):
    """1,000 rows of 40 records, with noise of 7: the likeliest of the scales 1/4, 1/2, ... 4 is the truth's."""
    generator = np.random.default_rng(3)
    counts = 40 * generator.dirichlet(truth, 1000).T
    for law in LAWS:
        noise = LAWS[law](counts.ravel(), np.full(counts.size, VARIANCE)).draw(1, generator)[0]
        rows = noisy(law, counts + noise.reshape(counts.shape), np.full(1000, 40.0))
        spread = np.repeat(truth, 1000)
        scales = 2.0 ** np.arange(-2, 3)
        values = [rows.evidence(scale * spread, counts.ravel() + 1.0)[0] for scale in scales]
        assert scales[int(np.argmax(values))] == 1.0


def test_information_is_the_curvature_of_a_known_row_less_what_noise_hides_of_it():
    """Rows of 200 records whose noise is next to nothing, 7, and so large that nothing is known of them."""
    concentrations = np.array([0.4, 1.5, 3.0])
    known = concentrations**2 * (polygamma(1, concentrations) - polygamma(1, concentrations.sum()))
    counts = np.array([20.0, 60.0, 120.0])
    for law in LAWS:
        found = []
        for unit in (1e-3, 1.0, 1e4):
            rows = noisy(law, counts[:, None] / unit, np.array([200.0 / unit]))
            found.append(rows.information(concentrations, counts / unit))
        precise, _, hidden = found
        np.testing.assert_allclose(precise, known, rtol=1e-2)
        assert (hidden == 0).all()


def test_the_noise_hides_the_variance_of_logarithms_of_counts():
    """Against draws from the prior, weighted: cells of which the noise of 7 hides a little, much, and all."""
    concentrations, counts = np.array([0.4, 1.5, 3.0]), np.array([2.0, 30.0, 168.0])
    shares = np.random.default_rng(1).dirichlet(concentrations, 400_000)
    for law in LAWS:
        rows = noisy(law, counts[:, None], np.array([200.0]))
        scale, corner = LAWS[law](counts, np.full(3, VARIANCE)).hyperbolic()
        residual = counts - 200 * shares
        logs = (-(residual**2) / (2 * VARIANCE) if law == "gaussian" else -np.sqrt(residual**2 + corner) / scale).sum(1)
        weights = np.exp(logs - logsumexp(logs))
        spread = weights @ np.log(shares) ** 2 - (weights @ np.log(shares)) ** 2
        known = polygamma(1, concentrations) - polygamma(1, concentrations.sum())
        right = concentrations**2 * np.maximum(known - spread, 0.0)
        np.testing.assert_allclose(rows.information(concentrations, counts), right, rtol=0.15, atol=0.03)
