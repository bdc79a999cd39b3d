"""Sums of moments: sensitivity by brute force, values, noise, refusals."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from mpmath import mp, mpf
from noises import Noted, moved
from scipy import stats

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms import integer_sums
from pgmpy_dp.data.mechanisms.integer_sums import MomentGrid, Moments
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise
from pgmpy_dp.schema import Schema

BOUND = 1.5
# Records in the directions that move sums most (|x.y| = 1/4 of the bounds), with variances, short, too long, with
# weights out of range, too long by rounding, infinite and NaN.
MEANS = [[1.5, 0, 0], [0.375, 1.5 * math.sqrt(15 / 16), 0], [0.1, 0.7, -0.7], [0.5, 0.5, 0.5], [3e200, 4, 0]]
MEANS += [[0.3, -0.2, 0.1], [math.inf, 0, 1], [0.5, math.nan, 0], [1.5, 0, 0]]
VARIANCES = [[0, 0, 0], [0, 0, 0], [0, 0.1, 0.2], [0.5, 0, 1], [0, 1, 9], [0, 0, -3], [0, 0, 0], [0, 0, 0], [0, 0, 0]]
FIRST = [[1, 1], [-1, -1], [0.3, -0.2], [-7, 0], [1, 1], [0, 1], [1, 1], [1, 1], [1, -math.inf]]
SECOND = [[1], [1], [0.4], [-1], [5], [0.1], [1], [1], [1]]
SIZE = len(MEANS)
SCHEMA = Schema({"a": list(range(SIZE))})


def by_record(codes, variances=True):
    at = codes[:, 0].astype(int)
    means, spread, first, second = (np.array(part, dtype=float)[at] for part in (MEANS, VARIANCES, FIRST, SECOND))
    return Moments(means, spread if variances else None, first, second)


def plan(records, neighbours="add_remove", noise=None, multiplier=2.0, steps=1):
    frame = pd.DataFrame({"a": np.array(records, dtype=np.int64)})
    data = PrivateDataset(frame, SCHEMA, PrivacyBudget(1000.0, 0.1), neighbours, noise or Noted())
    size = {"batch_size": len(records)} if neighbours == "replace_one" else {"sampling_rate": 1.0}
    return data.plan(steps, noise_multiplier=multiplier, delta=1e-3, **size)


def sums(records, neighbours, variances):
    opened = plan(records, neighbours)
    opened.noisy_moments(lambda codes: by_record(codes, variances), BOUND)
    return opened._noise.seen[-3:]


def worst_ratio(neighbours, variances=True):
    """Largest move of a step's sums between neighbours in units of their noise, over what the multiplier allows."""
    worst = 0.0
    for first, second in itertools.combinations(range(SIZE), 2):
        base = [5, 2]
        pair = ([*base, first], base) if neighbours == "add_remove" else ([*base, first], [*base, second])
        left, right = (sums(records, neighbours, variances) for records in pair)
        worst = max(worst, math.sqrt(moved(left, right, 2)) * 2.0)
    return worst


@pytest.mark.parametrize("variances", [False, True])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_no_neighbour_moves_the_sums_beyond_their_sensitivity(neighbours, variances):
    assert 0.998 < worst_ratio(neighbours, variances) <= 1.0


@pytest.mark.parametrize("part", ["means", "variances", "first", "second"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_record_that_is_not_finite_adds_nothing_and_changes_no_other(part, value):
    def statistic(codes):
        made = by_record(np.where(codes == 4, 0, codes))
        getattr(made, part)[codes[:, 0] == 4, 0] = value
        return made

    found = []
    for records in ([5, 2, 1], [5, 2, 1, 4]):
        opened = plan(records)
        opened.noisy_moments(statistic, BOUND)
        found.append(opened._noise.seen[-3:])
    assert found[0] == found[1]


def test_planted_bugs_are_found(monkeypatch):
    of = MomentGrid.of
    with monkeypatch.context() as patch:  # one record's norm taken for the sensitivity of a replacement
        patch.setattr(MomentGrid, "of", lambda shape, noise, neighbours: of(shape, noise, "add_remove"))
        assert worst_ratio("replace_one") > 1.3
    with monkeypatch.context() as patch:  # a record adds to every one of the first sums
        patch.setattr(MomentGrid, "of", lambda shape, *rest: replace(of((shape[0], 1, 1), *rest), shape=shape))
        assert worst_ratio("add_remove") > 1.1
    with monkeypatch.context() as patch:  # vectors that are not scaled down far enough are caught as integers
        patch.setattr(integer_sums, "_room", lambda d: 2.0**integer_sums._VECTOR * 1.01)
        assert worst_ratio("add_remove") <= 1.0


@pytest.mark.parametrize(("neighbours", "squared"), [("add_remove", 3.0), ("replace_one", 6.25)])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 2, 1), (40, 1, 3)])
@pytest.mark.parametrize("multiplier", [0.7, 90.3, 2.0**20])
def test_noise_pays_for_the_digits_that_are_cut_off(neighbours, squared, shape, multiplier):
    """A record's own sums, over their noise, and less than one step more in each cell: in 50 digits, no tolerance."""
    _, k, lots = shape
    grid = MomentGrid.of(shape, multiplier, neighbours)
    first, second = 2 ** (35 - grid.shifts[0]), 2 ** (45 - grid.shifts[1])  # a vector's and a matrix's bound, in steps
    with mp.workdps(50):
        noise = [mpf(scale) for scale in grid.scales]
        mu = mp.sqrt(mpf(2 * k) / lots)
        unit = max(first / noise[0], second / noise[1] / mu, second / noise[2] / mp.sqrt(2) / mu)
        cut = sum(cells / scale**2 for cells, scale in zip(grid.cells, noise, strict=True))
        moved = (mp.sqrt(mpf(squared) * k) * unit + mp.sqrt(cut)) * mpf(multiplier)
        assert 0.995 < moved <= 1
    # Neither noise nor two thousand million records leave 64 bits, and no digit is cut that could stay.
    assert max(first, second) <= 2**31
    assert max(grid.scales) < 1.5 * 2**34
    for shift, bound, scale in zip(grid.shifts, (first, second), grid.scales, strict=False):
        assert shift == 0 or bound == 2**31 or scale > 2**33


@pytest.mark.parametrize("d", [1, 2, 50, 1000])
@pytest.mark.parametrize("spread", [False, True])
def test_records_that_are_scaled_down_are_kept(d, spread):
    """Rounded to whole steps they are no longer than the bound, and counted nearly in full."""
    rng = np.random.default_rng(d)
    means, ones = rng.normal(size=(200, d)), np.ones((200, 1))
    means *= 100.0 / np.linalg.norm(means, axis=1, keepdims=True)
    variances = means[:, ::-1] ** 2 if spread else None
    x, rounded, first, second = integer_sums._integers(Moments(means, variances, ones, ones), BOUND)
    norms = (x**2).sum(axis=1) + (rounded.sum(axis=1) if spread else 0.0)
    assert (norms <= 4.0**15).all()
    assert (norms >= 4.0**15 * (0.99 if d < 1000 else 0.95)).all()
    assert (first == 2.0**20).all()
    assert (second == 2.0**15).all()


def test_a_plan_of_moments_too_wide_for_its_delta_is_refused_unpaid():
    frame = pd.DataFrame({"a": [0, 1]})
    for width, match in (((60, 40, 40), "larger delta"), ((2**16, 1, 1), "too many cells")):
        data = PrivateDataset(frame, SCHEMA, PrivacyBudget(30.0, 1e-3), noise=Noted())
        with pytest.raises(ValueError, match=match):
            data.plan(1000, epsilon=20.0, delta=1e-12, sampling_rate=0.5, width=width)
        assert data.budget.history == ()
    assert data.plan(1, epsilon=20.0, delta=1e-4, sampling_rate=0.5, width=(3, 2, 1)).steps_left == 1


def test_the_sensitivity_of_the_paper():
    """VIPS B.6: released with y - 1/2 and E[w] <= 1/4 in place of weights of 1, both moments together have 5/4."""
    grid = MomentGrid.of((3, 1, 1), 1.0, "replace_one")
    first = grid.scales[0] / 2.0 ** (35 - grid.shifts[0])
    second = grid.scales[1] / 2.0 ** (45 - grid.shifts[1])
    assert first / 2 == pytest.approx(1.25, rel=1e-6)
    assert second / 4 == pytest.approx(1.25 * math.sqrt(2) / 4, rel=1e-6)


@pytest.mark.parametrize("counts", [[1, 1, 1, 0, 0], [700, 3, 0, 1, 5]])
def test_sums_are_right_where_nothing_is_cut(counts):
    rng = np.random.default_rng(1)
    records = [position for position, count in enumerate(counts) for _ in range(count)]
    means, variances = rng.normal(size=(SIZE, 4)), rng.random((SIZE, 4))
    first, second = rng.uniform(-1, 1, (SIZE, 2)), rng.random((SIZE, 3))

    def statistic(codes):
        at = codes[:, 0].astype(int)
        return Moments(means[at], variances[at], first[at], second[at])

    found = plan(records).noisy_moments(statistic, 8.0)
    weight = np.bincount(records, minlength=SIZE)
    squares = means[:, :, None] * means[:, None, :] + variances[:, :, None] * np.eye(4)
    assert found.first == pytest.approx(np.einsum("n,nk,nd->kd", weight, first, means), rel=1e-3, abs=0.05)
    assert found.second == pytest.approx(np.einsum("n,nk,nde->kde", weight, second, squares), rel=1e-3, abs=0.1)


def test_noise_has_the_deviations_stated():
    """Chi-squared of all cells, two-sided, false alarm below 1e-8; off the diagonal noise is sqrt(1/2) of it."""
    d, k = 40, 3
    opened = plan([], noise=SimulatedNoise(3), steps=2)
    found = opened.noisy_moments(lambda codes: Moments(*(np.zeros((len(codes), n)) for n in (d, d, k, k))), 2.0)
    below = found.second[:, *np.tril_indices(d, -1)]
    assert (found.second == found.second.transpose(0, 2, 1)).all()

    def p_value(cells, deviation):
        total = float((cells**2).sum()) / deviation**2
        return 2 * min(stats.chi2.cdf(total, cells.size), stats.chi2.sf(total, cells.size))

    for cells, deviation in (
        (found.first, found.first_deviation),
        (found.second[:, range(d), range(d)], found.second_deviation),
        (below, found.second_deviation / math.sqrt(2)),
    ):
        assert p_value(cells, deviation) > 1e-8
        assert p_value(cells, 1.6 * deviation) < 1e-8
    assert found.first_deviation == pytest.approx(2.0 * math.sqrt(3 * k) * 2.0, rel=1e-2)
    assert found.second_deviation == pytest.approx(2.0 * math.sqrt(3 * k) * 4.0 / math.sqrt(2), rel=1e-2)


def test_huge_sums_stay_exact():
    """As many records as there may be, all with the longest vector: by the digits that are cut off."""
    total = integer_sums._Total((1, 1), 14)
    for _ in range(1000):
        total.add(np.array([[2.0**53 - 1]]))
    assert int(total.high[0, 0]) == 1000 * (2**53 - 1) >> 14


@pytest.mark.parametrize(
    ("statistic", "bound", "match"),
    [
        (by_record, 0.0, "bound"),
        (by_record, math.nan, "bound"),
        (lambda codes: Moments([[1.0]], None, np.ones((1, 1)), np.ones((1, 1))), 1.0, "array of numbers"),
        (lambda codes: Moments(*[np.ones((2, 1))] * 4), 1.0, "one row per record"),
        (lambda codes: Moments(np.ones((1, 2)), np.ones((1, 3)), *[np.ones((1, 1))] * 2), 1.0, "number of columns"),
        (lambda codes: Moments(*[np.full((1, 1), "a")] * 4), 1.0, "array of numbers"),
        (lambda codes: Moments(np.ones((1, 2**16)), None, *[np.ones((1, 1))] * 2), 1.0, "too many cells"),
    ],
)
def test_bad_moments_take_no_step(statistic, bound, match):
    opened = plan([0, 1])
    with pytest.raises(ValueError, match=match):
        opened.noisy_moments(statistic, bound)
    assert opened.steps_left == 1
