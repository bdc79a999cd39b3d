"""Synthetic columns have one type: of states, or, where numbers are drawn, of the records."""

import numpy as np
import pandas as pd
import pytest
from pgmpy.causal_discovery import HillClimbSearch
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.cli.shared.written import to_csv

SCHEMA = dp.Schema(
    {"visits": [3.0, 1.5, 2.0], "smoke": [True, False], "rooms": [2, 1], "cars": [0, 1], "job": ["b", "a"]},
    missing={"visits": "unknown", "cars": -9, "smoke": "unstated"},
)
ROW = np.arange(1200)
RECORDS = pd.DataFrame({
    "visits": np.choose(ROW % 4, [3.0, 1.5, 2.0, np.nan]),
    "smoke": np.choose(ROW % 3, [True, False, None]),
    "rooms": ROW % 2 + 1,
    "cars": np.where(ROW % 5, ROW % 2, np.nan),
    "job": np.where(ROW % 2, "a", "b"),
})  # fmt: skip


@pytest.fixture(scope="module", params=["network", "mixture"])
def model(request):
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(50.0, 1e-6), noise=dp.SimulatedNoise(0))
    if request.param == "mixture":
        return dp.PairwiseMixture(epsilon=50.0, delta=1e-6, members=1).fit(data).network_
    network = dp.PrivateBayesianNetwork([("visits", "smoke"), ("rooms", "job")])
    network.add_node("cars")
    return network.fit(data, estimator=dp.PrivateMLE(epsilon=50.0))


def test_states_are_categories_of_one_type_in_their_declared_order(model):
    frame = model.simulate(1000, seed=0)
    assert {v: list(column.cat.categories) for v, column in frame.items()} == {
        "visits": ["3.0", "1.5", "2.0", "unknown"],
        "smoke": ["True", "False", "unstated"],
        "rooms": [2, 1],
        "cars": [0, 1, -9],
        "job": ["b", "a"],
    }
    assert dp.evaluation.compare(RECORDS, frame, SCHEMA)["error"].max() < 0.6
    assert model.log_likelihood(frame) > -5
    pgmpys = DiscreteBayesianNetwork([("visits", "smoke")])
    pgmpys.add_nodes_from(["rooms", "cars", "job"])
    pgmpys.fit(frame)
    assert pgmpys.get_cpds("visits").state_names["visits"] == ["1.5", "2.0", "3.0", "unknown"]
    score = dp.NoisyScore(model)
    search = HillClimbSearch(scoring_method=score, return_type="dag", show_progress=False).fit(score.data)
    edges = {frozenset(edge) for edge in search.causal_graph_.edges()}
    assert frozenset(["rooms", "job"]) in edges  # one follows from the other


def test_numbers_and_booleans_come_back_as_the_records_have_them(model, tmp_path):
    frame = model.simulate(1000, seed=0, numbers="drawn")
    kinds = {"visits": "float64", "smoke": "boolean", "rooms": "int64", "cars": "Int64", "job": "category"}
    assert frame.dtypes.astype(str).to_dict() == kinds
    wanted = RECORDS.astype({"smoke": "boolean"})
    for variable in ("visits", "smoke", "rooms", "cars"):
        assert frame[variable].isna().mean() == pytest.approx(wanted[variable].isna().mean(), abs=0.05)
        assert frame[variable].mean() == pytest.approx(wanted[variable].mean(), abs=0.1)
    to_csv(frame, tmp_path / "drawn.csv", SCHEMA, spreadsheet=False)
    texts = pd.read_csv(tmp_path / "drawn.csv", dtype=str, keep_default_na=False)
    assert set(texts["visits"]) == {"3.0", "1.5", "2.0", ""}
    assert set(texts["smoke"]) == {"True", "False", "unstated"}
    assert set(texts["cars"]) == {"0", "1", "-9"}
    assert dp.exact_marginals(tmp_path / "drawn.csv", SCHEMA, [("smoke", "cars")]).tables["smoke", "cars"].sum() == 1000
