"""Plans of noisy sums: sensitivity by brute force, distribution, ledger, refusals."""

import itertools
import math
from contextlib import nullcontext
from fractions import Fraction
from functools import cache

import numpy as np
import pandas as pd
import pytest
from noises import Noted, largest_move
from scipy import sparse, stats

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms import integer_sums, sums
from pgmpy_dp.errors import BudgetExceededError, SchemaError
from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget, SimulatedNoise, calibrate, price
from pgmpy_dp.records import EncodedRecords
from pgmpy_dp.schema import Schema

SCHEMA = Schema({"a": [0, 1], "b": [0, 1, 2]})
RECORDS = list(itertools.product([0, 1], [0, 1, 2]))
CLIQUES, SHAPE = [(0, 1), (1,)], (2, 3)


def dataset(records, neighbours="add_remove", noise=None, epsilon=100.0, delta=1e-3):
    frame = pd.DataFrame(list(records), columns=["a", "b"], dtype=np.int64)
    return PrivateDataset(frame, SCHEMA, PrivacyBudget(epsilon, delta), neighbours, noise or Noted())


ODD = [
    [3.0, -4.0, 0.1],
    [0.3, 0.2, -0.1],
    [1e200, 1.0, 0.0],
    [math.inf, 0.0, 1.0],
    [math.nan, 2.0, 0.0],
    [0.1, 0.7, 0.7],
]


def vectors(codes):
    """One vector a record: long, short, with negative entries, huge, infinite, NaN, and too long by rounding alone."""
    return np.array(ODD)[codes[:, 0].astype(int) * 3 + codes[:, 1]]


def explicit(codes, centre):
    phi = np.zeros((codes.shape[0], 9))
    phi[np.arange(codes.shape[0]), codes[:, 0].astype(int) * 3 + codes[:, 1]] = 1
    phi[np.arange(codes.shape[0]), 6 + codes[:, 1]] = 1
    return phi - centre


CENTRE = np.concatenate([np.full(6, 1 / 6), np.full(3, 1 / 3)])
STATISTICS = {
    "dense": lambda plan: plan.noisy_sum(vectors, 0.9),
    "sparse": lambda plan: plan.noisy_sum(lambda codes: sparse.csr_array(vectors(codes)), 0.9),
    "repeated": lambda plan: plan.noisy_sum(repeated, 0.9),
    "non_negative": lambda plan: plan.noisy_sum(vectors, 0.9, non_negative=True),
    "tables": lambda plan: plan.noisy_tables(CLIQUES, SHAPE, 0.5),
    "centred": lambda plan: plan.noisy_tables(CLIQUES, SHAPE, 0.5, CENTRE),
    "unclipped": lambda plan: plan.noisy_tables(CLIQUES, SHAPE, 100.0, CENTRE),
}


def repeated(codes):
    """Sparse rows that name a cell twice."""
    rows = np.repeat(np.arange(codes.shape[0]), 2)
    return sparse.coo_array((np.ones(rows.size), (rows, np.repeat(codes[:, 1].astype(int), 2))), (codes.shape[0], 3))


def new_integer_sum(records, neighbours, statistic):
    data = dataset(records, neighbours)
    size = {"batch_size": len(records)} if neighbours == "replace_one" else {"sampling_rate": 1.0}
    STATISTICS[statistic](data.plan(1, noise_multiplier=3.0, delta=1e-3, **size))
    _, total, scale = data._noise.seen[-1]
    return total, scale / 3.0  # the sensitivity that the noise allows for


def worst_ratio(neighbours, statistic):
    """Largest move of a sum between neighbours, over what the noise allows for."""
    return largest_move(RECORDS, neighbours, cache(lambda records: new_integer_sum(records, neighbours, statistic)))


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_no_neighbour_moves_a_sum_beyond_its_sensitivity(neighbours, statistic):
    assert 0.4 < worst_ratio(neighbours, statistic) <= 1.0


@pytest.mark.parametrize("bound", [12, 16, 1000])
def test_tables_on_a_coarse_grid_leave_room_for_what_the_centre_is_cut_by(bound):
    """Exact squared norms of what a record moves, over all small samples and several centres."""
    moved = 0
    for seed in range(4):
        tables = integer_sums.CentredTables(CLIQUES, SHAPE, np.random.default_rng(seed).uniform(-1, 1, 9))
        room = tables.room(bound)

        def total(records, tables=tables, room=room):
            codes = np.array(records, dtype=np.int64).reshape(-1, 2)
            return tables.sum(codes, np.ones(len(records), dtype=np.int64), 0.01, room).tolist()

        for others in [rest for size in range(3) for rest in itertools.combinations_with_replacement(RECORDS, size)]:
            without = total(others)
            for record in RECORDS:
                pairs = zip(total((*others, record)), without, strict=True)
                moved = max(moved, sum((with_it - own) ** 2 for with_it, own in pairs))
    assert (bound / 2) ** 2 < moved <= bound**2


def test_tables_of_more_cells_than_the_grid_has_room_for_are_refused(monkeypatch):
    tables = integer_sums.CentredTables([(0,)], (100,), None)
    assert tables.room(22) == 11.0
    with pytest.raises(ValueError, match="too many cells"):
        tables.room(21)
    plan = dataset(RECORDS).plan(1, noise_multiplier=3.0, delta=1e-3, sampling_rate=1.0)
    monkeypatch.setattr(plan, "_grid", lambda cells, replacing: (7, 1.0))
    with pytest.raises(ValueError, match="too many cells"):
        plan.noisy_tables(CLIQUES, SHAPE, 1.0)
    assert plan.steps_left == 1


@pytest.mark.parametrize("bound", [5, 2**15, 2**31])
@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_vectors_that_are_too_long_by_rounding_alone_are_shortened(bound, form):
    """(1, bound) has the norm `bound` as floats compute it, and its squares sum to one more."""
    for width in (2, 3, 40):
        rows = form(np.array([[1.0] * (width - 1) + [float(bound)], [float(bound)] + [0.0] * (width - 1)]))
        found = integer_sums.integer_rows(rows, float(bound), bound)
        for row in (found.toarray() if sparse.issparse(found) else found).tolist():
            assert (bound - 2) ** 2 <= sum(entry**2 for entry in row) <= bound**2


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_a_vector_is_among_many_what_it_is_alone(form):
    """Its first entry lies above a whole step by less than what a margin by the number of rows would take off."""
    row = np.array([[(2.0**30 + 2.0**-11) / 2**31, 0.0]])
    alone, among = (integer_sums.integer_rows(form(np.tile(row, (many, 1))), 1.0, 2**31) for many in (1, 4096))
    assert alone[0, 0] == 2**30
    assert (among.sum(axis=0) == 4096 * alone.sum(axis=0)).all()


@pytest.mark.parametrize("cliques", range(1, 8))
def test_indicators_are_weighed_down_by_their_exact_norm(cliques):
    """A weight times the root of the number of cliques, at rooms where floats round the quotient up."""
    tables = integer_sums.CentredTables([(0,)] * cliques, (1,), None)
    for weight in range(1, 300):
        room = weight * math.sqrt(cliques)
        (*_, found) = tables.sum(np.zeros((1, 1)), np.ones(1, dtype=np.int64), 0.01, room).tolist()
        assert found in (weight - 1, weight)
        assert found**2 * cliques <= Fraction(room) ** 2


@pytest.mark.parametrize("multiplier", [1e-3, 0.3, 1.0, 7.7, 1234.5, 2.0**20])
def test_the_noise_of_a_sum_is_at_least_the_multiplier_times_its_sensitivity(multiplier):
    for sensitivity, squared in ((1.0, 1), (math.sqrt(2.0), 2), (2.0, 4)):
        bound, scale = sums._grid(multiplier, sensitivity)
        assert 2**9 <= bound <= 2**31
        assert scale <= 1.01 * 2**30
        assert Fraction(scale) ** 2 >= squared * (Fraction(multiplier) * bound) ** 2
        assert scale <= multiplier * sensitivity * bound * (1 + 1e-12)


def test_planted_bugs_are_found(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(integer_sums, "_margin", lambda width: 1.0 + 1e-6)
        assert worst_ratio("add_remove", "dense") > 1.0
        assert worst_ratio("add_remove", "tables") > 1.0
    with monkeypatch.context() as patch:  # one record's norm taken for the sensitivity of a replacement
        grid = sums.NoisySums._grid
        patch.setattr(sums.NoisySums, "_grid", lambda self, cells, one: grid(self, cells, 1.0))
        assert worst_ratio("replace_one", "non_negative") > 1.2


@pytest.mark.parametrize("centre", [None, CENTRE])
@pytest.mark.parametrize("clip", [0.5, 50.0])
def test_tables_are_sums_of_indicators(centre, clip):
    plan = dataset(RECORDS * 3).plan(2, noise_multiplier=3.0, delta=1e-3, sampling_rate=1.0)
    tables = plan.noisy_tables(CLIQUES, SHAPE, clip, centre)
    rounded = np.zeros(9) if centre is None else np.rint(centre * 2**20) / 2**20
    assert tables == pytest.approx(plan.noisy_sum(lambda codes: explicit(codes, rounded), clip), abs=1e-5)


def test_sums_are_right_where_nothing_is_clipped():
    plan = dataset(RECORDS * 5).plan(2, noise_multiplier=3.0, delta=1e-3, sampling_rate=1.0)
    assert plan.noisy_sum(lambda codes: codes, 10.0) == pytest.approx([15.0, 30.0], abs=1e-6)
    assert plan.noisy_sum(lambda codes: sparse.csr_array(codes), 10.0) == pytest.approx([15.0, 30.0], abs=1e-6)


@pytest.mark.parametrize("noise", [OPENDP_NOISE, SimulatedNoise(5)], ids=["opendp", "simulated"])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_distribution_of_a_sampled_sum(neighbours, noise):
    """Kolmogorov-Smirnov against the exact mixture, 5,000 sums of ten records; false alarm below 1e-8."""
    data = dataset([(1, 0)] * 10 + [(0, 0)] * 10, neighbours, noise, epsilon=1e4, delta=0.9)
    size = {"sampling_rate": 0.3} if neighbours == "add_remove" else {"batch_size": 6}
    plans = [data.plan(20, noise_multiplier=1.0, delta=0.01, **size) for _ in range(25)]
    # Ten copies in a row: their noise is independent, their sample the same.
    drawn = [
        plan.noisy_sum(lambda codes: np.repeat(codes[:, :1], 10, axis=1), math.sqrt(10))
        for plan in plans
        for _ in range(20)
    ]
    counts = np.arange(11)
    pmf = stats.binom.pmf(counts, 10, 0.3) if neighbours == "add_remove" else stats.hypergeom.pmf(counts, 20, 10, 6)
    sigma = math.sqrt(10) * (1.0 if neighbours == "add_remove" else 2.0)
    one = np.array(drawn)

    def p_value(sigma, shift=0.0):
        # The first copy alone: 500 independent draws. The spread within a row tells the noise: 4,500 degrees.
        ks = stats.kstest(one[:, 0], lambda x: (pmf * stats.norm.cdf(x[:, None], counts + shift, sigma)).sum(axis=1))
        spread = ((one - one.mean(axis=1, keepdims=True)) ** 2).sum() / sigma**2
        return min(ks.pvalue, 2 * min(stats.chi2.cdf(spread, 4500), stats.chi2.sf(spread, 4500)))

    assert p_value(sigma) > 1e-8
    assert p_value(sigma * 1.15) < 1e-8
    assert p_value(sigma, shift=3.0) < 1e-8


def test_a_plan_is_charged_whole_and_ends():
    data = dataset(RECORDS, epsilon=2.0, delta=1e-5)
    plan = data.plan(3, epsilon=1.5, delta=4e-6, sampling_rate=0.5)
    (charge,) = data.budget.history
    assert (charge.epsilon, charge.delta, charge.rho) == (Fraction(3, 2), Fraction("4e-6"), None)
    assert data.budget.remaining.epsilon == 0.5
    assert data.budget.remaining.delta == pytest.approx(6e-6)
    assert plan.noise_multiplier == calibrate(1.5, 4e-6, steps=3, sampling_rate=0.5)
    assert (plan.guarantee.epsilon, plan.guarantee.delta, plan.guarantee.private) == (1.5, 4e-6, False)
    assert "NOT PRIVATE" in str(plan.guarantee)
    for left in (2, 1, 0):
        plan.noisy_sum(lambda codes: codes, 1.0)
        assert plan.steps_left == left
    for use in (lambda: plan.noisy_sum(lambda codes: codes, 1.0), lambda: plan.noisy_tables(CLIQUES, SHAPE, 1.0)):
        with pytest.raises(ValueError, match="All 3 steps"):
            use()
    assert len(data.budget.history) == 1


def test_a_given_noise_multiplier_is_charged_its_price():
    data = dataset(RECORDS, "replace_one", epsilon=20.0, delta=1e-4)
    data.plan(4, noise_multiplier=2.0, delta=1e-5, batch_size=3)
    cost = price(2.0, 1e-5, steps=4, sampling_rate=0.5, sampling="without_replacement")
    assert cost <= data.budget.spent.epsilon == pytest.approx(cost, rel=1e-12)
    data.noisy_sum(lambda codes: codes, 1.0, 2.0, "without_replacement", delta=1e-5, sampling_rate=0.5)
    assert len(data.budget.history) == 2


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_noise_is_that_of_the_price(kind):
    data = dataset(RECORDS, epsilon=50.0, delta=1e-4)
    plan = data.plan(4, noise_multiplier=kind(1.3), delta=1e-5, sampling_rate=0.5)
    assert price(plan.noise_multiplier, 1e-5, steps=4, sampling_rate=0.5) <= data.budget.spent.epsilon


def test_a_dear_plan_is_refused_with_the_noise_that_fits():
    data = dataset(RECORDS, epsilon=0.5, delta=1e-5)
    with pytest.raises(BudgetExceededError, match=r"for epsilon=\d.*A noise multiplier of ([\d.]+) fits") as caught:
        data.plan(10, noise_multiplier=0.8, delta=1e-5, sampling_rate=0.5)
    assert data.budget.history == ()
    enough = float(str(caught.value).split("A noise multiplier of ")[1].split(" ")[0])
    data.plan(10, noise_multiplier=enough * (1 + 1e-5), delta=1e-5, sampling_rate=0.5)
    assert 0.49 < data.budget.spent.epsilon <= 0.5


REPLACED = {"neighbours": "replace_one"}


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"delta": 0.0}, "delta"),
        ({"steps": 0}, "steps"),
        ({"epsilon": math.nan}, "epsilon"),
        ({"epsilon": None}, "needs an epsilon"),
        ({"epsilon": 0.1, "noise_multiplier": 0.5}, "leave out one of the two"),
        ({"noise_multiplier": 0.0}, "noise_multiplier"),
        ({"epsilon": None, "noise_multiplier": 1e5, "delta": 0.1}, "no finite epsilon above 0"),
        ({"sampling_rate": None}, "sampling_rate"),
        ({"sampling_rate": None, "batch_size": 3}, "private"),
        ({"sampling_rate": 0.5, "batch_size": 3}, "sampling_rate"),
        ({"sampling_rate": 1.5}, "sampling_rate"),
        ({"sampling": "without_replacement"}, "does not match"),
        ({"variables": ["c"]}, "Unknown variable"),
        ({"variables": []}, None),
        *(({"sampling_rate": None, "batch_size": size} | REPLACED, "all 6 records") for size in (7, 0, 2.0)),
        ({"sampling_rate": 0.01} | REPLACED, "all 6 records"),
    ],
)
def test_bad_plans_charge_nothing(change, match):
    plan = {"steps": 3, "epsilon": 1.0, "delta": 1e-5, "sampling_rate": 0.5, **change}
    data = dataset(RECORDS, plan.pop("neighbours", "add_remove"))
    with pytest.raises(ValueError, match=match):
        data.plan(**plan)
    assert data.budget.history == ()


def test_more_records_than_sums_hold_are_refused_where_they_are_handed_in():
    """And not by a plan, whose refusal would tell their number."""
    for records in (2**31 - 1, 2**31):
        codes = {"a": np.broadcast_to(np.uint8(0), records)}  # one byte
        with nullcontext() if records < 2**31 else pytest.raises(SchemaError, match="Parquet"):
            assert EncodedRecords.bounded(codes, SCHEMA, None, None).size == records


@pytest.mark.parametrize(
    ("statistic", "match"),
    [
        (lambda codes: [[1.0]], "array of numbers"),
        (lambda codes: codes.astype(str), "array of numbers"),
        (lambda codes: codes * 1j, "array of numbers"),
        (lambda codes: codes[0], "one vector per record"),
        (lambda codes: np.ones((2, 3)), "one vector per record"),
        (lambda codes: codes[:, :0], "one vector per record"),
    ],
)
def test_a_bad_statistic_takes_no_step(statistic, match):
    data = dataset(RECORDS)
    for clip in (1.0, math.nan):
        with pytest.raises(ValueError, match="clip_norm" if math.isnan(clip) else match):
            data.noisy_sum(statistic, clip, 2.0, delta=1e-5, sampling_rate=0.5)
    assert data.budget.history == ()
    plan = data.plan(1, noise_multiplier=2.0, delta=1e-5, sampling_rate=0.5)
    with pytest.raises(ValueError, match=match):
        plan.noisy_sum(statistic, 1.0)
    for clip in (0.0, math.nan, -1.0, math.inf, 1e-9):
        with pytest.raises(ValueError, match="clip_norm"):
            plan.noisy_sum(lambda codes: codes, clip)
    for centre in (np.zeros(8), np.full(9, math.nan), np.full(9, 1.5), np.full(9, -1.5)):
        with pytest.raises(ValueError, match="centre"):
            plan.noisy_tables(CLIQUES, SHAPE, 1.0, centre)
    assert plan.steps_left == 1


def test_a_plan_too_wide_for_its_delta_is_refused():
    plan = dataset(RECORDS, epsilon=30.0).plan(1000, epsilon=20.0, delta=1e-12, sampling_rate=0.5)
    with pytest.raises(ValueError, match="larger delta"):
        plan.noisy_sum(lambda codes: np.zeros((codes.shape[0], 100)), 1.0)
    data = dataset(RECORDS, epsilon=30.0)
    with pytest.raises(ValueError, match="larger delta"):
        data.plan(1000, epsilon=20.0, delta=1e-12, sampling_rate=0.5, width=100)
    assert data.budget.history == ()


@pytest.mark.parametrize("rate", [0.1, Fraction(2, 3), 0.7])
def test_coins_have_the_rate_that_was_priced(rate):
    """As the decimal it prints as, or as the fraction it is: not the float, which may be above it."""
    noise, seen = Noted(), []
    noise.coins = lambda rate, size: seen.append(rate) or np.ones(size, dtype=bool)
    plan = dataset(RECORDS, noise=noise).plan(1, epsilon=1.0, delta=1e-5, sampling_rate=rate)
    plan.noisy_sum(lambda codes: codes, 1.0)
    assert seen == [Fraction(str(rate))]


def test_an_empty_sample_is_noise():
    plan = dataset([]).plan(2, epsilon=1.0, delta=1e-5, sampling_rate=0.5)
    assert plan.noisy_sum(lambda codes: codes, 1.0).tolist() == [0.0, 0.0]
    assert (plan.noisy_tables(CLIQUES, SHAPE, 1.0, CENTRE) == 0.0).all()


def test_variables_are_handed_in_order():
    seen = []
    plan = dataset(RECORDS).plan(1, epsilon=1.0, delta=1e-5, sampling_rate=1.0, variables=["b"])
    plan.noisy_sum(lambda codes: seen.append(codes.tolist()) or codes, 1.0)
    assert seen == [[[0]], [[0], [1], [2]]]  # a row of zeros is tried first; equal records come once
