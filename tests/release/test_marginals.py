import copy
import math
import pickle

import numpy as np
import pytest

from pgmpy_dp.observed.reading import observe
from pgmpy_dp.privacy import SimulatedNoise
from pgmpy_dp.privacy.noise import gaussian_variance, laplace_variance
from pgmpy_dp.release import Guarantee, NoisyMarginals
from pgmpy_dp.schema import Schema

SCHEMA = Schema({"a": ["x", "y", "z"], "b": [0, 1]})
LAPLACE = Guarantee.of(0.75, 0.0, None, "add_remove", "laplace", True)
REPLACE = Guarantee.of(1.5, 0.0, None, "replace_one", "laplace", True)
GAUSSIAN = Guarantee.of(3.0, 1e-6, 0.2, "add_remove", "gaussian", True)
EXACT = Guarantee.of(math.inf, 0.0, None, "add_remove", "none", False)
PERSONS = Guarantee.of(0.75, 0.0, None, "add_remove", "laplace", True, "person", max_rows=3)
WEIGHED = Guarantee.of(0.75, 0.0, None, "add_remove", "laplace", True, "person", max_rows=None)
REPLACED_PERSONS = Guarantee.of(0.75, neighbours="replace_one", unit="person", max_rows=3)
NO_COUNTS = [[1.0, 2.0], [1.0, np.nan], [True, False]]
TABLES = {("b", "a"): np.array([[5, 6, -7], [8, 9, 10]]), ("b",): np.array([20, 13])}
SCALES = {("b", "a"): 4.0, ("b",): 2.0}


def release(**changes) -> NoisyMarginals:
    parts = {"schema": SCHEMA, "tables": TABLES, "scales": SCALES, "guarantee": LAPLACE} | changes
    return NoisyMarginals(**parts)


def test_tables_are_copied_and_read_only():
    table = np.array([20, 13], dtype=np.int32)
    scales = {("b",): 2}
    noisy = release(tables={("b",): table}, scales=scales)
    table[0], scales["b",] = 0, 1
    assert noisy.scales == {("b",): 2}
    assert noisy.tables[("b",)].tolist() == [20, 13]
    assert noisy.tables[("b",)].dtype == np.int64
    with pytest.raises(ValueError, match="read-only"):
        noisy.tables[("b",)][0] = 1
    with pytest.raises(TypeError):
        noisy.tables[("b",)] = table
    with pytest.raises(TypeError):
        noisy.scales[("b",)] = 1
    unsigned = release(tables=TABLES | {("b",): np.array([1, 2**63 - 1], dtype=np.uint64)}).tables["b",]
    assert (unsigned.dtype, unsigned.tolist()) == (np.int64, [1, 2**63 - 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": {"a": ["x"]}}, "Schema"),
        ({"guarantee": None}, "Guarantee"),
        ({"tables": [1]}, "map cliques"),
        ({"tables": {}}, "No cliques"),
        ({"tables": {("c",): np.zeros(2, int)}}, "Unknown variable"),
        ({"scales": {("b",): 2.0}}, "same cliques"),
        *(({"tables": TABLES | {("b",): np.array(table)}}, "integers") for table in NO_COUNTS),
        ({"tables": TABLES | {("b",): np.array([1, 2, 3])}}, "shape"),
        ({"tables": TABLES | {("b",): np.array([1, 2**63], dtype=np.uint64)}}, "64-bit"),
        *(({"scales": SCALES | {("b",): scale}}, "scale") for scale in (0.0, -1.0, math.inf, 2.0**51, True, "2")),
        ({"scales": SCALES | {("b",): math.nan}}, "NaN"),
        ({"guarantee": EXACT}, "0 for exact"),
        ({"public_total": 33}, "private"),
        ({"guarantee": REPLACE}, "public_total"),
        *(({"guarantee": REPLACE, "public_total": total}, "whole number") for total in (-1, 33.0, True)),
        ({"scales": SCALES | {("b",): 1.9}}, r"costs epsilon=0\.776"),
        ({"scales": SCALES | {("b",): 5e-324}}, "costs epsilon=inf"),
        ({"guarantee": REPLACE, "public_total": 33, "scales": SCALES | {("b",): 1.9}}, r"costs epsilon=1\.55"),
        ({"guarantee": PERSONS}, r"costs epsilon=2\.25"),
        ({"guarantee": REPLACED_PERSONS, "public_total": 33}, "numbers of rows are private"),
        ({"guarantee": WEIGHED}, "must hold floats"),
        ({"guarantee": WEIGHED, "tables": {c: t + 0.1 for c, t in TABLES.items()}}, r"multiples of 2\*\*-20"),
        ({"guarantee": WEIGHED, "tables": {c: t * math.nan for c, t in TABLES.items()}}, r"multiples of 2\*\*-20"),
        ({"guarantee": WEIGHED, "tables": {c: t * 2.0**43 for c, t in TABLES.items()}}, r"less than 2\*\*43"),
        ({"guarantee": WEIGHED, "tables": {c: -abs(t) * 2.0**43 for c, t in TABLES.items()}}, r"less than 2\*\*43"),
        ({"guarantee": GAUSSIAN, "scales": SCALES | {("b",): 1.5}}, r"costs rho=0\.253"),
        ({"guarantee": GAUSSIAN, "scales": SCALES | {("b",): 1e-300}}, "costs rho=inf"),
    ],
)
def test_inconsistent_releases_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        release(**changes)


@pytest.mark.parametrize(
    "changes",
    [
        *({"epsilon": epsilon} for epsilon in (0.0, -1.0, math.nan, math.inf, True, "1")),
        *({"delta": delta} for delta in (1.0, -0.1, math.nan)),
        *({"mechanism": mechanism} for mechanism in ("gaussian", "gumbel", "none")),
        *({"mechanism": "gaussian", "delta": 1e-6, "rho": rho} for rho in (0.0, math.inf)),
        *({"mechanism": "gaussian", "rho": 0.1}, {"mechanism": "none", "epsilon": math.inf}),
        *({"unit": "person", "max_rows": rows} for rows in (0, True, 2.0)),
        *({"max_rows": rows} for rows in (2, None)),
        *({"rho": 0.1}, {"neighbours": "swap"}, {"private": 1}, {"unit": ""}, {"versions": {"opendp": 1}}),
        {"unit": "person", "max_rows": None, "sampling_rate": 0.5},
    ],
)
def test_contradictory_guarantees_are_refused(changes):
    parts = {"epsilon": 0.5, "delta": 0.0, "rho": None, "neighbours": "add_remove"}
    parts |= {"mechanism": "laplace", "private": True}
    with pytest.raises(ValueError, match=r"Guarantee|number|rho must be|private must be"):
        Guarantee.of(**(parts | changes))


def test_variances_are_those_of_the_discrete_noise():
    assert release().variances == {("b", "a"): laplace_variance(4.0), ("b",): laplace_variance(2.0)}
    assert release(guarantee=GAUSSIAN).variances[("b",)] == gaussian_variance(2.0)
    assert release(guarantee=EXACT, scales=dict.fromkeys(TABLES, 0)).variances[("b",)] == 0.0


def test_tables_of_the_same_variables_are_observed_as_their_mean_by_precision():
    seen = observe(release(), ["b"])
    precisions = np.array([1 / (3 * laplace_variance(4.0)), 1 / laplace_variance(2.0)])
    assert (seen.cliques, seen.owners.tolist()) == ((("b",),), [0, 0])
    assert seen.noise.observed == pytest.approx(np.average([[4, 27], [20, 13]], axis=0, weights=precisions))
    assert seen.noise.variance == pytest.approx(1 / precisions.sum())


def test_exact_tables_of_the_same_variables_are_observed_as_they_are():
    tables = {("b", "a"): np.array([[1, 2, 3], [4, 5, 6]]), ("b",): np.array([6, 15])}
    seen = observe(release(guarantee=EXACT, tables=tables, scales=dict.fromkeys(TABLES, 0.0)), ["b"])
    assert seen.noise.observed.tolist() == [6.0, 15.0]
    assert ((seen.noise.variance > 0) & (seen.noise.variance <= 0.25)).all()


def test_observations_know_the_table_they_are_of():
    seen = release(tables={("b",): np.array([20, 13]), ("a",): np.array([5, 6, 7])}, scales={("b",): 4.0, ("a",): 4.0})
    assert observe(seen, ["a", "b"]).owners.tolist() == [0, 0, 1, 1, 1]


@pytest.mark.parametrize("wrong", [2.0**43, -(2.0**43), 2.0**-21, np.inf])
def test_weighted_tables_hold_multiples_of_a_part_below_a_limit_and_the_wrong_one_is_named(wrong):
    """The wrong value comes first in a later table: the one before it ends there."""

    def tables(value):
        return {("b", "a"): np.full((2, 3), 2.0**-20), ("b",): np.array([value, 2.0**43 - 1.0])}

    noisy = release(tables=tables(0.5), guarantee=WEIGHED)
    assert noisy.tables["b",].tolist() == [0.5, 2.0**43 - 1.0]
    with pytest.raises(
        ValueError, match=r"the table of \('b',\) must hold integer multiples of 2\*\*-20, less than 2\*\*43"
    ):
        release(tables=tables(wrong), guarantee=WEIGHED)


def test_private_total_weights_each_sum_by_its_variance():
    noisy = release()
    v = np.array([6 * laplace_variance(4.0), 2 * laplace_variance(2.0)])
    assert noisy.total == pytest.approx((31 / v[0] + 33 / v[1]) / (1 / v).sum())
    assert noisy.total_variance == pytest.approx(1 / (1 / v).sum())


def test_private_total_is_unbiased_with_the_stated_variance():
    noise, counts = SimulatedNoise(0), {("b", "a"): np.full((2, 3), 50), ("b",): np.array([100, 200])}
    guarantee = Guarantee.of(0.75, 0.0, None, "add_remove", "laplace", False)
    drawn = []
    for _ in range(2000):
        tables = {c: noise.discrete_laplace(t.ravel(), SCALES[c]).reshape(t.shape) for c, t in counts.items()}
        drawn.append(release(tables=tables, guarantee=guarantee))
    totals, variance = np.array([noisy.total for noisy in drawn]), drawn[0].total_variance
    assert abs(totals.mean() - 300) < 4 * math.sqrt(variance / 2000)
    assert totals.var() == pytest.approx(variance, rel=0.15)


def test_totals_at_the_edges():
    below = release(tables={("b",): np.array([-5, 1])}, scales={("b",): 2.0})
    assert below.total == 1.0
    public = release(guarantee=REPLACE, public_total=np.int64(40))
    assert (public.total, public.total_variance, type(public.public_total)) == (40.0, 0.0, int)
    assert release(guarantee=REPLACE, public_total=0).total == 1.0
    exact = release(
        guarantee=EXACT,
        tables={("b", "a"): np.array([[1, 2, 3], [4, 5, 6]]), ("b",): np.array([6, 15])},
        scales=dict.fromkeys(TABLES, 0.0),
    )
    assert (exact.total, exact.total_variance) == (21.0, 0.0)
    huge = release(tables={("b",): np.full(2, 2**63 - 1)}, scales={("b",): 2.0})
    assert huge.total == pytest.approx(2.0**64)
    nearly_exact = Guarantee.of(2e9, 0.0, None, "add_remove", "laplace", True)
    assert math.isfinite(release(scales=dict.fromkeys(TABLES, 1e-9), guarantee=nearly_exact).total)


def test_equality_hash_pickle_and_copy():
    noisy = release()
    assert noisy == release()
    assert hash(noisy) == hash(release())
    assert pickle.loads(pickle.dumps(noisy)) == copy.deepcopy(noisy) == noisy
    assert noisy != release(tables=TABLES | {("b",): np.array([20, 14])})
    assert noisy != release(scales=SCALES | {("b",): 3.0})
    assert noisy != release(guarantee=Guarantee.of(0.8, 0.0, None, "add_remove", "laplace", True))
    assert noisy != 3
    for guarantee in (PERSONS, WEIGHED):
        assert pickle.loads(pickle.dumps(guarantee)) == Guarantee.from_dict(guarantee.to_dict()) == guarantee


def test_repr_states_the_guarantee_in_words():
    assert "epsilon = 0.75, for one record added or removed" in repr(release())
    assert "delta = 1e-06" in repr(release(guarantee=GAUSSIAN))
    assert "NOT PRIVATE" in repr(release(guarantee=Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", False)))
    assert "NOT PRIVATE: exact" in str(EXACT)
    assert "public number of records: 7" in repr(release(guarantee=REPLACE, public_total=7))
    wide = Schema({f"v{i}": [0, 1] for i in range(500)})
    tables = {(v,): np.zeros(2, int) for v in wide.variables}
    assert "one person (at most 3 rows) added or removed" in str(PERSONS)
    assert "one person (all rows, of weight 1 together) added" in str(WEIGHED)
    assert len(repr(NoisyMarginals(wide, tables, dict.fromkeys(tables, 1000.0), LAPLACE))) < 600
