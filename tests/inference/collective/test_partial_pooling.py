"""Partial pooling: the posterior given one deviation, its coverage when deviations are learned, and periods."""

import numpy as np
import pytest

from pgmpy_dp.inference.collective import partial_pooling
from pgmpy_dp.inference.collective.partial_pooling import Effect, partially_pooled, path, star

PARTS, RECORDS = 5, np.array([4000.0, 2000.0, 1300.0, 1000.0, 800.0])


def effect(values, noise, links, chance=None):
    """A main effect of two states: shares above one half of the first."""
    parts = len(values)
    return Effect(np.stack([values, -values], axis=1), 1, noise, RECORDS[:parts], links(parts), chance=chance)


@pytest.mark.parametrize("links", [star, path])
@pytest.mark.parametrize("unmeasured", [[], [2], [0, 3]])
@pytest.mark.parametrize("chance", [None, np.array([0.1, 0.2, 0.3, 0.4, 0.5])])
def test_given_the_deviation_the_posterior_is_that_of_the_normal_model(links, unmeasured, chance):
    """The deviation along a link is in units of the geometric mean of its parts' variances of a record."""
    generator = np.random.default_rng(0)
    values, noise = generator.normal(0.1, 0.05, PARTS), generator.uniform(1e-4, 1e-3, PARTS)
    noise[unmeasured] = np.inf
    own = effect(values, noise, links, chance)
    law = np.zeros(own.squares.shape)
    law[:, 25] = 1.0
    for _ in range(3):
        own.step(law)
    found = own.borrowed(law)
    error = noise + own.chance / RECORDS
    held = np.diag(np.pad(1.0 / error, (0, own.differences.shape[1] - PARTS)))
    ends = [*own.chance, np.average(own.chance, weights=RECORDS)]  # the last is what all have in common
    along = [partial_pooling._GRID[25] ** 2 * np.prod(np.compress(link, ends[: len(link)])) for link in own.differences]
    precision = own.differences.T @ np.diag(1.0 / np.array(along)) @ own.differences
    covariance = np.linalg.inv(precision + held)[:PARTS, :PARTS]
    assert found.values[:, 0] == pytest.approx(covariance @ np.where(noise < np.inf, values / error, 0.0), rel=1e-4)
    assert found.variance == pytest.approx(np.diag(covariance), rel=1e-4)
    drawn = (covariance / error) ** 2 @ (own.chance / RECORDS)
    assert found.drawn == pytest.approx(drawn, rel=1e-4)
    assert (found.drawn < found.variance).all()


def within(links, deviation, seeds=8, effects=30):
    """How often an effect is within 1.645 posterior standard deviations, and its error relative to that alone."""
    inside, error = [], []
    for seed in range(seeds):
        generator = np.random.default_rng(seed)
        steps = deviation * generator.normal(size=(effects, PARTS))
        truth = generator.uniform(-0.1, 0.1, (effects, 1)) + (steps if links is star else steps.cumsum(axis=1))
        noise = np.full(PARTS, 1e-4)
        seen = truth + np.sqrt((noise + (0.5 - 2 * truth**2) / RECORDS) / 2) * generator.normal(size=truth.shape)
        found = partially_pooled([effect(values, noise, links) for values in seen])
        for own, true, alone in zip(found, truth, seen, strict=True):
            apart = own.values[:, 0] - true
            inside.append(apart**2 * 2 < 1.645**2 * own.variance)  # in the unit vector's direction
            error.append(np.square([apart, alone - true]))
    return np.mean(inside), np.divide(*np.mean(error, axis=(0, 2)))


@pytest.mark.parametrize("links", [star, path])
@pytest.mark.parametrize(("deviation", "maximum"), [(0.0, 0.25), (0.01, 0.5), (0.05, 0.95)])
def test_bounds_hold_whether_parts_are_alike_or_not(links, deviation, maximum):
    """1200 effects in all, of which parts share errors: 0.9 is within 0.05 with a probability above 0.99."""
    covered, error = within(links, deviation)
    assert covered > 0.85
    assert error < maximum


def test_they_would_not_if_parts_were_taken_for_alike(monkeypatch):
    monkeypatch.setattr(partial_pooling, "_posterior", lambda likelihoods, laws: np.eye(41)[[0] * PARTS])
    assert within(star, 0.01)[0] < 0.75
