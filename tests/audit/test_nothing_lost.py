"""Nothing is charged and then lost: whatever fails by public facts fails before the charge, or says that it stays."""

import math
import random

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp

RECORDS = pd.DataFrame({"a": list("uvuv") * 10, "b": list("uuvv") * 10, "n": [1, 5, 7, 9] * 10})
RECORDS = RECORDS.assign(person=np.arange(40) // 2, weight=1.0, x=0.5)
STATES = {"a": ["u", "v"], "b": ["u", "v"], "n": dp.Bins([0, 5, 10])}
SCHEMA = dp.Schema(STATES)
HOMES = pd.DataFrame({"person": range(20), "home": ["big", "small"] * 10})
HOUSEHOLDS = dp.HouseholdSchema(dp.Schema({"home": ["big", "small"]}), SCHEMA, key="person", max_persons=3)


def table(schema=SCHEMA, records=RECORDS, **options):
    return dp.PrivateDataset(records, schema, dp.PrivacyBudget(10.0, 1e-3), **options)


SOURCES = {
    "frame": table,
    "replaced": lambda: table(neighbours="replace_one"),
    "codes": lambda: table(records=np.zeros((40, 3), dtype=int)),
    "counts": lambda: table(records={("a", "b"): [[10, 10], [10, 10]], ("n",): [20, 20]}),
    "persons": lambda: table(unit="person", max_rows=2),
    "shared weight": lambda: table(unit="person"),
    "weights": lambda: table(weights="weight", largest_weight=2.0),
    "undiscovered": lambda: table(dp.Schema({**STATES, "a": []}, other={"a": "?"})),
    "numbers": lambda: table(dp.Schema(STATES, bounds={"x": (0, 1)})),
    "lazy": lambda: table(records=_lazy()),
    "households": lambda: dp.PrivateHouseholds(HOMES, RECORDS, HOUSEHOLDS, dp.PrivacyBudget(10.0, 1e-3)),
}


def _lazy():
    polars = pytest.importorskip("polars")
    return polars.from_pandas(RECORDS).lazy()


NUMBERS = [0.1, 1, 1e-300, 1e9, 0, -1, math.nan, math.inf, True, None, "1", [1.0]]
CLIQUES = [
    [("a", "b")], [("a",), ("n",)], [("n in detail",)], [("n in detail", "a")], [("age in detail",)],
    [("another n in detail",)], [("home", "a"), ("a", "another a")], [("a", "a")], [("a", "b"), ("b", "a")],
    [("missing",)], [("x",)], [()], [], "ab", ["ab"], None, 7, [(3,)],
]  # fmt: skip
DELTAS = [0.0, 1e-6, 1e-300, 0.5, 1.0, -1e-9, math.nan, "1e-6", None]
PRIORS = [{("a", "b"): np.ones((2, 2))}, {}, None]
SCALES = [{("a",): 2.0, (): 1.0}, {("n in detail",): 1.0, (): 1.0}, {(): -1.0}, {}, None, {("a",): "x"}]
CALLS = {
    "measure": (CLIQUES, NUMBERS),
    "measure_coefficients": (CLIQUES, NUMBERS),
    "measure_residuals": (SCALES,),
    "sample_posterior": (CLIQUES, [*PRIORS, {("n in detail",): np.ones(9)}], NUMBERS),
    "sample_map": (CLIQUES, PRIORS, NUMBERS),
    "sample_regressions": (
        [[("x",)], [("a",)], [], None],
        [{"x": 1.0}, {}, None],
        [{"x": 1.0}, {"x": -1}, None],
        NUMBERS,
    ),
    "quantile_bins": (["n", "a", "n in detail", "missing", 3, None], [2, 1, 0, 99, True, None, 2.0], NUMBERS),
    "discover_states": (["a", "n", "missing", 3, None], NUMBERS),
    "plan": ([1, 0, 2.5, None, True],),
}
OPTIONS = {
    "measure": {
        "delta": DELTAS,
        "mechanism": ["auto", "laplace", "gaussian", "gaussian_block", "none", None, 3],
        "weights": [None, [1.0], [1.0, 2.0], [0.0], [math.nan, 1.0], "1", 3],
        "sampling_rate": [1.0, 0.5, 0.0, 2.0, math.nan, None, "half"],
    },
    "measure_residuals": {"delta": DELTAS},
    "sample_posterior": {"draws": [1, 2, 0, 1.5, None]},
    "sample_map": {"floor": [0.01, 0.5, 0.9, 0.0, math.nan, None]},
    "discover_states": {"delta": DELTAS},
    "plan": {
        "delta": DELTAS,
        "epsilon": NUMBERS,
        "noise_multiplier": NUMBERS,
        "sampling_rate": [None, 0.5, 1.0, 0, 2, math.nan, "half"],
        "batch_size": [None, 5, 0, 1000, 2.5],
        "variables": [None, ["a"], ["n in detail"], ["x"], [], "a", 3],
        "width": [None, 3, 0, (1, 1, 1), "3"],
    },
}
REQUIRED = {"measure_residuals": ["delta"], "discover_states": ["delta"], "plan": ["delta"]}
TRIES = 60


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_odd_public_arguments_charge_nothing_or_give_an_answer(source, call):
    draw, data, given = random.Random(f"{source} {call}"), SOURCES[source](), OPTIONS.get(call, {})
    for _ in range(TRIES):
        arguments = [draw.choice(values[:2] if draw.random() < 0.4 else values) for values in CALLS[call]]
        chosen = [name for name in given if name in REQUIRED.get(call, ()) or draw.random() < 0.4]
        options = {n: draw.choice(given[n][:2] if draw.random() < 0.5 else given[n]) for n in chosen}
        before, refused = len(data.budget.history), None
        try:
            getattr(data, call)(*arguments, **options)
        except (ValueError, TypeError) as error:  # and nothing else, such as a KeyError
            refused = str(error)
        charged = len(data.budget.history) - before
        assert charged == (refused is None) or "stays" in refused, (arguments, options, refused)


def test_the_misfit_of_a_network_of_a_union_is_added_or_refused_unpaid():
    north, south = (table(dp.Schema({"a": ["u", "v"], "b": ["u", "v"]})) for _ in range(2))
    union = dp.union({"north": north.measure([("a",), ("b",)], 1.0), "south": south.measure([("a",), ("b",)], 0.5)})
    network = dp.PrivateBayesianNetwork()
    network.add_nodes_from(["a", "b"])
    network.fit(union)
    before = north.budget.history
    measured = network.measure_misfit(north, 0.25)
    assert len(north.budget.history) == len(before) + 1
    assert network.guarantee_.epsilon == 1.25  # the most at one holder: the declaration still holds
    assert measured.guarantee.every == network.guarantee_.every
