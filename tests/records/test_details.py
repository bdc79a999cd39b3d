"""Finer histograms of binned numbers: what they count, how they are released and declared."""

import math
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from writers import COMMON

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.tables import exact_marginals
from pgmpy_dp.fitting.plans.pairs import plan_prediction

BINS = dp.Bins([0, 18, 65, 130], detail=12)
SCHEMA = dp.Schema(
    {"age": BINS, "job": ["x", "y"]}, missing={"age": "unknown"}, other={"age": "0_to_18"}, missing_values=["?"]
)
DETAIL = ("age in detail",)
RECORDS = pd.DataFrame(
    {"age": [3.0, 17.9, 18.0, 64.0, 65.0, 130.0, 131.0, -1.0, None, 42.5], "job": list("xyxyxyxyxy")}
)


def counted(frame):
    """By hand; undeclared ages have the state of the first bin, and in detail a cell of their own."""
    inside = frame["age"].between(0, 130)
    return [*np.histogram(frame["age"][inside], BINS.fine.edges)[0], (~inside & frame["age"].notna()).sum(),
            frame["age"].isna().sum()]  # fmt: skip


FORMS = {name: COMMON[name] for name in ("pandas", "Polars", "lazy", "CSV", "Parquet")}
FORMS["missing texts"] = lambda frame, folder: frame.astype(object).fillna("?")


@pytest.mark.parametrize("form", FORMS)
def test_cells_are_counted_record_by_record(form, tmp_path):
    cliques = [DETAIL, ("age", "job"), ("age",)]
    assert exact_marginals(RECORDS, SCHEMA, [DETAIL]).details[DETAIL].tolist() == counted(RECORDS)
    data = dp.PrivateDataset(FORMS[form](RECORDS, tmp_path), SCHEMA, dp.PrivacyBudget(1e6), noise=dp.SimulatedNoise(0))
    release = data.measure(cliques, 1e6)  # without noise, as good as
    assert release.details[DETAIL].tolist() == counted(RECORDS)
    places = SCHEMA.details[DETAIL[0]].places
    assert np.bincount(places, release.details[DETAIL]).tolist() == release.tables["age",].tolist() == [4, 3, 2, 1]


def test_releases_hold_them_beside_their_tables(tmp_path):
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(2.0), noise=dp.SimulatedNoise(0))
    one, two = data.measure([DETAIL, ("age",)], 1.0), data.measure([("job",), DETAIL], 1.0)
    assert one.cliques == (("age",),)
    assert one.scales == {("age",): 2.0, DETAIL: 2.0}
    one.save(tmp_path / "one.zip")
    for same in (dp.NoisyMarginals.load(tmp_path / "one.zip"), pickle.loads(pickle.dumps(one))):
        assert same == one
        assert same.details[DETAIL].tolist() == one.details[DETAIL].tolist()
    both = one + two
    assert both.cliques == (("age",), ("job",))
    assert np.abs(both.details[DETAIL] - (one.details[DETAIL] + two.details[DETAIL]) / 2).max() <= 0.5
    assert both.noise(DETAIL)[1] == pytest.approx(one.noise(DETAIL)[1] / 2**0.5, rel=0.02)
    united = dp.union({"north": one, "south": two}, variable="site")
    assert united.details[DETAIL].tolist() == (one.details[DETAIL] + two.details[DETAIL]).tolist()
    assert united.noise(DETAIL)[1] == pytest.approx(one.noise(DETAIL)[1] * 2**0.5)
    informed = dp.InformedMarginals(one, {"job": [0.5, 0.5]})
    assert informed.details == one.details
    assert informed.noise(DETAIL) == one.noise(DETAIL)


def test_what_cannot_be_counted_in_detail_is_refused():
    positions = np.array([[0, 0], [1, 1]])
    data = dp.PrivateDataset(positions, SCHEMA, dp.PrivacyBudget(1.0))
    with pytest.raises(dp.SchemaError, match=r"of the bins of 'age' instead of numbers.*detail=0"):
        data.measure([DETAIL], 1.0)
    counts = dp.PrivateDataset({("age",): np.array([1, 1, 0, 0])}, SCHEMA, dp.PrivacyBudget(1.0))
    with pytest.raises(dp.SchemaError, match=r"ready-made.*detail=0"):
        counts.measure([DETAIL], 1.0)
    assert data.budget.spent.epsilon == counts.budget.spent.epsilon == 0
    with pytest.raises(dp.SchemaError, match="is measured alone"):
        data.measure([("age in detail", "job")], 1.0)
    with pytest.raises(dp.SchemaError, match=r"'age in detail'.*rename"):
        _ = dp.Schema({"age": BINS, "age in detail": ["x"]}).details


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.one_of(st.floats(allow_nan=False), st.integers(-50, 50)), min_size=2, max_size=8, unique=True),
    st.sampled_from([None, 0, 3]),
    st.integers(0, 100),
)
@example([0, 2.0**53, math.inf], 0, 30)  # beyond, numbers have no decimals that floats tell apart
@example([0, 0.0078125, math.inf], 0, 3)  # a hundred ranges beyond, there is no whole number yet
def test_finer_bins_cut_bins(edges, decimals, detail):
    try:
        bins = dp.Bins(sorted(edges), decimals=decimals, detail=detail)
    except dp.SchemaError:
        return
    if bins.fine is None:
        return
    assert set(bins.edges) <= set(bins.fine.edges)
    assert len(bins.labels) < len(bins.fine.labels) <= detail
    assert (bins.fine.edges[0], bins.fine.edges[-1]) == (bins.edges[0], bins.edges[-1])


def test_cells_widen_away_from_the_narrower_neighbour():
    finer = np.array(dp.Bins([0, 10, 20, 10_000], decimals=6, detail=30).fine.edges)
    widths = np.diff(finer)
    assert widths[:21] == pytest.approx(1.0)
    assert widths[21:] / widths[20:-1] == pytest.approx(widths[21], abs=1e-4)
    assert np.array(dp.Bins([-10_000, -20, -10, 0], decimals=6, detail=30).fine.edges) == pytest.approx(-finer[::-1])
    assert dp.Bins([0, 1, 2, math.inf]).fine.edges[-2] > 100
    assert dp.Bins([0, 1, 2, 3]).fine is dp.Bins([0, 10], detail=0).fine is dp.Bins([-math.inf, math.inf]).fine is None
    assert dp.Bins([0, 5, 10]).fine.edges == tuple(range(11))  # single numbers


def test_plans_measure_them_and_declarations_say_how_fine():
    assert dp.Schema.from_dict(SCHEMA.to_dict()) == SCHEMA
    assert SCHEMA.to_dict()["fields"][0]["pgmpy_dp:bins"]["detail"] == 12
    plain = SCHEMA.replace(variables={**SCHEMA.declared, "age": dp.Bins(BINS.edges, detail=0)})
    network = dp.PrivateBayesianNetwork([("age", "job")])
    plans = [dp.plan_pairs, lambda schema: plan_prediction(schema, "job"), lambda s: dp.plan_measurements(network, s)]
    for plan in plans:
        (cliques, weights), (bare, own) = plan(SCHEMA), plan(plain)
        assert cliques == (*bare, DETAIL)
        assert weights[:-1] == own
        assert weights[-1] / sum(weights) == pytest.approx(0.03)
    estimators = [dp.PairwiseMixture(1.0, members=1), dp.AutoMLE(1.0), dp.CollectiveEM(1.0), dp.PosteriorMean(1.0)]
    for estimator in estimators:
        of_network = () if isinstance(estimator, dp.PairwiseMixture) else (network,)
        assert DETAIL in estimator.plan(*of_network, SCHEMA).noise
        assert DETAIL not in estimator.plan(*of_network, plain).noise
