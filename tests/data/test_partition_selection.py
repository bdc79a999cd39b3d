"""States that are not public: which are discovered, at what price, and from which sources."""

import itertools
import math
import pickle
from datetime import date

import numpy as np
import opendp.domains as domains
import opendp.measurements as measurements
import opendp.metrics as metrics
import pandas as pd
import polars
import pytest
from archives import require_refused
from mpmath import mp, mpf
from opendp.mod import enable_features
from writers import every_form

import pgmpy_dp as dp
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise
from pgmpy_dp.privacy.noise import smallest_threshold
from pgmpy_dp.records import columns, open_records
from pgmpy_dp.release import Release

OPEN = dp.Schema({"place": []}, other={"place": "elsewhere"})


def tail(number, scale):
    """The probability of discrete Laplace noise of at least a whole number."""
    q = math.exp(-1 / scale)
    return q**number / (1 + q) if number >= 0 else 1 - q ** (1 - number) / (1 + q)


def law(counts, scale, threshold):
    """The probability of each set of three values: what no row has is never released."""
    chances = [tail(threshold - count, scale) if count else 0.0 for count in counts]
    return np.array([math.prod(p if there else 1 - p for p, there in zip(chances, which, strict=True))
                     for which in itertools.product([True, False], repeat=len(counts))])  # fmt: skip


def worst(neighbours, rows, epsilon, scale, threshold):
    """The least delta that holds for all neighbours of some small data, by summing over all that may be released."""
    units = [unit for unit in itertools.product(range(rows + 1), repeat=3) if sum(unit) <= rows]
    before = [(0, 0, 0)] if neighbours == "add_remove" else units
    laws = {}
    found = 0.0
    for others in itertools.product((0, 1, threshold - 1, threshold), repeat=3):
        if tuple(sorted(others)) != others:
            continue  # values are alike
        for unit, replaced in itertools.product(units, before):
            with_it, without = (tuple(map(sum, zip(others, own, strict=True))) for own in (unit, replaced))
            p, q = (laws.setdefault(counts, law(counts, scale, threshold)) for counts in (with_it, without))
            both = ((p, q), (q, p))
            found = max(found, *(np.maximum(one - math.exp(epsilon) * other, 0).sum() for one, other in both))
    return found


@pytest.mark.parametrize(("neighbours", "changed"), [("add_remove", 1), ("replace_one", 2)])
@pytest.mark.parametrize("rows", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.5, 0.02), (1.0, 1e-3), (3.0, 0.1), (1.0, 1e-7)])
def test_no_neighbours_cost_more_than_delta(neighbours, changed, rows, epsilon, delta):
    scale = changed * rows / epsilon
    threshold = smallest_threshold(scale, delta, rows)
    assert worst(neighbours, rows, epsilon, scale, threshold) <= delta
    # A threshold that is less by one does not do, but for what the bound over several values leaves.
    assert max(tail(threshold - 1 - rows, scale), rows * tail(threshold - 2, scale)) > delta
    if rows == 1:
        assert worst(neighbours, rows, epsilon, scale, threshold - 1) > delta


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.3, 1e5])
@pytest.mark.parametrize("rows", [1, 2, 5])
def test_thresholds_keep_to_deltas_where_rounding_decides(scale, rows):
    """Deltas next to the probabilities at which a threshold changes, in 60 digits and without a tolerance."""
    with mp.workdps(60):

        def chance(number):
            q = mp.exp(-1 / mpf(scale))
            return q**number / (1 + q)

        for number, values in itertools.product(range(1, 40), {1, rows}):
            close = float(values * chance(number))
            for delta in (close, math.nextafter(close, 0), math.nextafter(close, 1)):
                if not 0 < delta < 1:
                    continue
                threshold = smallest_threshold(scale, delta, rows)
                assert max(chance(threshold - rows), rows * chance(threshold - 1)) <= delta


def test_thresholds_keep_to_deltas_of_any_size():
    for scale, delta, rows in itertools.product((1e-3, 0.7, 33.0, 2.0**40), (0.9, 1e-5, 1e-300), (1, 5, 1000)):
        threshold = smallest_threshold(scale, delta, rows)
        assert threshold >= rows
        assert max(tail(threshold - rows, scale), rows * tail(threshold - 1, scale)) <= delta * (1 + 1e-12)


def test_opendp_releases_at_its_threshold_what_it_prices_above_it():
    """Once OpenDP prices what it releases, its own mechanism can take the place of ours."""
    enable_features("contrib")
    counts = domains.map_domain(domains.atom_domain(T="i64"), domains.atom_domain(T="i64"))
    distance = metrics.l01inf_distance(metrics.absolute_distance(T="i64"))
    mechanism = measurements.make_laplace_threshold(counts, distance, scale=0.01, threshold=8)
    assert mechanism({1: 8, 2: 7}) == {1: 8}
    priced = measurements.make_laplace_threshold(counts, distance, scale=2.0, threshold=8).map((1, 1, 1))[1]
    assert priced == pytest.approx(tail(8, 2.0))  # and not tail(7)


def people(rows):
    return pd.DataFrame({"place": rows, "who": np.arange(len(rows)) // 2})


PLACES = [*["Ulm"] * 40, *["Bonn, am Rhein"] * 30, *["true"] * 30, *["007"] * 30, "Here alone", *[None] * 3]
TEXTS = dp.Schema({"place": []}, missing={"place": "unknown"}, other={"place": "elsewhere"})


def sources(folder):
    frame = people(PLACES)
    (folder / "parts").mkdir()
    for number in range(3):
        frame[number::3].to_parquet(folder / "parts" / f"{number}.parquet", index=False)
    forms = every_form(frame, folder)
    categorical = forms["Polars"].cast({"place": polars.Categorical})
    return forms | {"Polars categorical": categorical, "folder": folder / "parts"}


@pytest.mark.parametrize("unit", [{}, {"unit": "who", "max_rows": 2}])
def test_every_source_gives_the_same_states(tmp_path, unit):
    for name, source in sources(tmp_path).items():
        data = dp.PrivateDataset(source, TEXTS, PrivacyBudget(20.0, 0.01), noise=SimulatedNoise(0), **unit)
        found = data.discover_states("place", 20.0, delta=1e-4)
        assert found.states == ("007", "Bonn, am Rhein", "Ulm", "true"), name
        again = dp.PrivateDataset(source, found.schema, PrivacyBudget(60.0), noise=SimulatedNoise(0), **unit)
        table = again.measure([("place",)], 60.0).tables["place",]
        measured = dict(zip(found.schema.states["place"], table, strict=True))
        assert measured == {"007": 30, "Bonn, am Rhein": 30, "Ulm": 40, "true": 30, "unknown": 3, "elsewhere": 1}, name


CELLS = [
    ("Ulm", "Ulm"), (7, 7), (7.0, 7), (np.int8(7), 7), (-(2**63), -(2**63)), (2**63, None), (7.5, None), (True, True),
    ("elsewhere", None), ("?", True), (None, True), (float("nan"), True), (float("inf"), None), (1, None),
    ("x" * 200, "x" * 200), ("x" * 201, None), ("", None), ("\ud800", None), ([1], None), (b"Ulm", None), (9, None),
    (complex(7, 0), 7), ("Ulm ", "Ulm "), ("x", "x"), (date(2020, 1, 1), None),
]  # fmt: skip


def test_values_are_counted_one_by_one():
    """What a cell is counted as is decided by the cell and the schema: together cells are what they are alone."""
    schema = dp.Schema({"v": []}, other={"v": "elsewhere"}, missing={"v": True}, missing_values={"v": ["?", "9"]})
    alone = []
    for value, expected in CELLS:
        counts = open_records(pd.DataFrame({"v": pd.Series([value], dtype=object)}), schema, ["v"]).value_counts("v")
        assert counts == ({} if expected in (None, True) else {expected: 1}), value
        alone.append(counts)
    together = pd.DataFrame({"v": pd.Series([value for value, _ in CELLS], dtype=object)})
    counts = open_records(together, schema, ["v"]).value_counts("v")
    assert counts == {v: sum(one.get(v, 0) for one in alone) for one in alone for v in one}
    # With any of these states the schema stands, and reads each of the values as the state that it gave.
    found = schema.with_states("v", sorted(counts, key=str))
    codes = open_records(together, found, ["v"]).codes["v"]
    assert [found.states["v"][code] for code in codes] == [
        "elsewhere" if expected is None else expected for _, expected in CELLS
    ]


@pytest.mark.parametrize("dtype", ["int64", "Int32", "float64", "float32", "UInt8"])
def test_whole_numbers_of_any_type_are_found(dtype):
    rows = pd.DataFrame({"place": [12] * 50 + [7] * 40 + [1]}).astype(dtype)
    data = dp.PrivateDataset(rows, OPEN, PrivacyBudget(20.0, 0.01), noise=SimulatedNoise(0))
    found = data.discover_states("place", 20.0, delta=1e-6)
    assert found.states == (7, 12)
    assert [type(state) for state in found.states] == [int, int]


def test_rows_of_a_unit_beyond_its_most_are_not_counted():
    rows = pd.DataFrame({"place": ["one person's"] * 100, "who": 1})
    kept = dp.PrivateDataset(rows, OPEN, PrivacyBudget(9.0, 0.5), unit="who", max_rows=3)._records.value_counts("place")
    assert kept == {"one person's": 3}
    data = dp.PrivateDataset(rows, OPEN, PrivacyBudget(9.0, 0.5), unit="who")
    with pytest.raises(ValueError, match=r"max_rows=\.\.\."):
        data.discover_states("place", 1.0, delta=0.1)
    assert data.budget.history == ()


def test_what_cannot_be_discovered_is_refused_unpaid():
    def refused(schema, source, message, delta=0.1):
        data = dp.PrivateDataset(source, schema, PrivacyBudget(1.0, 0.1))
        with pytest.raises(ValueError, match=message):
            data.discover_states("place", 1.0, delta=delta)
        assert data.budget.history == ()

    rows = people(["Ulm"] * 9)
    refused(OPEN.with_states("place", ["Ulm"]), rows, "has public states")
    refused(OPEN, np.zeros((3, 1), int), "positions of public states, ready-made counts")
    refused(OPEN, {("place",): np.array([9])}, "positions of public states, ready-made counts")
    refused(OPEN, rows, "delta must be greater than 0", 0.0)
    refused(OPEN, rows, "more than the budget's", 0.2)
    ruled = dp.Schema({"place": []}, other={"place": "elsewhere"}, rules=[dp.Forbidden({"place": "elsewhere"})])
    refused(ruled, rows, "Rules refer to states")


@pytest.mark.parametrize("source", [lambda rows, folder: rows, lambda rows, folder: rows.to_csv(folder) or folder])
def test_too_many_values_are_refused_by_a_public_number(source, tmp_path, monkeypatch):
    monkeypatch.setattr(columns, "MAX_VALUES", 50)
    rows = pd.DataFrame({"place": [f"secret {number}" for number in range(51)]})
    with pytest.raises(dp.SchemaError, match="'place' has more than 50 different values") as refusal:
        dp.PrivateDataset(source(rows, tmp_path / "a.csv"), OPEN, PrivacyBudget(1.0, 0.1))
    assert "secret" not in str(refusal.value)
    assert "51" not in str(refusal.value)
    dp.PrivateDataset(source(rows[:50], tmp_path / "b.csv"), OPEN, PrivacyBudget(1.0, 0.1))


def test_a_release_of_states_is_saved_with_its_promise(tmp_path):
    rows = pd.DataFrame({"place": ["Ulm"] * 99 + ["alone"]})
    found = dp.PrivateDataset(rows, OPEN, PrivacyBudget(1.0, 1e-6)).discover_states("place", 1.0, delta=1e-6)
    found.save(tmp_path / "states.zip")
    for again in (Release.load(tmp_path / "states.zip"), pickle.loads(pickle.dumps(found))):
        assert again == found
        assert (again.states, again.threshold, again.scale) == (("Ulm",), 15, 1.0)
        assert str(again.guarantee) == (
            "differentially private with epsilon = 1.0 and delta = 1e-06, for one record added or removed "
            "(private partition selection)"
        )
    with pytest.raises(TypeError, match="no tables to fit"):
        dp.PairwiseMixture().fit(found)
    nothing = dp.PrivateDataset(rows[99:], OPEN, PrivacyBudget(1.0, 1e-6)).discover_states("place", 1.0, delta=1e-6)
    nothing.save(tmp_path / "nothing.zip")
    assert Release.load(tmp_path / "nothing.zip").states == ()


def little(stated):
    stated["guarantee"]["epsilon"] = 0.001
    stated["guarantee"]["costs"][0]["epsilon"] = "1/1000"


def of_less_noise(stated):
    stated["scale"] = stated["guarantee"]["costs"][0]["noise"]["scale"] = 0.5


def for_another(stated):
    """As if the states had been found before, and cost nothing themselves."""
    stated["guarantee"] |= {"costs": [], "earlier": stated["guarantee"]["costs"]}
    stated["threshold"] = 2


WRONG = [{"threshold": 0}, {"threshold": 2.5}, {"scale": -1.0}, {"scale": "1"}, {"variable": "nothing"}, {"further": 1}]
CHANGES = [
    *((lambda stated, own=own: stated.update(own), "") for own in WRONG),
    *((change, "cost") for change in (little, of_less_noise, for_another)),
    (lambda stated: stated["guarantee"]["costs"][0].pop("noise"), "cost"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES)
def test_files_of_states_are_checked(change, message, tmp_path):
    data = dp.PrivateDataset(pd.DataFrame({"place": ["Ulm"] * 99}), OPEN, PrivacyBudget(1.0, 1e-6))
    found = data.discover_states("place", 1.0, delta=1e-6)
    require_refused(tmp_path / "states.zip", found, message, change=change)
