"""Very many arrays are stated by kinds in a release file, and read back as they were."""

import json
import zipfile
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from archives import require_refused

import pgmpy_dp as dp
from pgmpy_dp.release import archive, listing
from pgmpy_dp.release.contrasts import downward_closure

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["p", "q", "r"], "c": ["u", "v"], "n": dp.Bins([0, 1, 2])})
CLIQUES = [("a",), ("c",), ("a", "c"), ("c", "n"), ("b", "a"), ("n",)]


@pytest.fixture(autouse=True)
def few_are_very_many(monkeypatch):
    monkeypatch.setattr(listing, "MAX_LISTED", 2)


def tables():
    arrays = {clique: np.arange(SCHEMA.cells(clique)).reshape(SCHEMA.shape(clique)) for clique in CLIQUES}
    scales = {clique: 24.0 if len(clique) == 1 else 12.0 for clique in CLIQUES}
    return dp.NoisyMarginals(SCHEMA, arrays, scales, dp.Guarantee.of(1.0), chosen_among={("c", "n"): 3})


def measured(measure):
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["p", "r"], "c": ["v", "v"], "n": [0.5, 1.5]})
    return measure(dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(9, 1e-6), noise=dp.SimulatedNoise(0)))


def residuals():
    scales = {subset: 5.0 + len(subset) % 2 for subset in downward_closure(SCHEMA, CLIQUES)}
    return measured(lambda data: data.measure_residuals(scales, delta=1e-6))


def coefficients():
    return measured(lambda data: data.measure_coefficients(CLIQUES, epsilon=1.0))


def stated(path, of):
    with zipfile.ZipFile(path) as members:
        return json.loads(members.read(archive.DESCRIPTOR))[archive.RELEASE_PROPERTY][of]


@pytest.mark.parametrize("make", [tables, residuals, coefficients])
def test_a_release_is_read_back_as_it_was(make, tmp_path):
    release = make()
    release.save(tmp_path / "many.zip")
    again = type(release).load(tmp_path / "many.zip")
    assert again == release
    assert list(again.means()[0]) == list(release.means()[0])  # in their order
    assert [values.tolist() for values, _ in again.measurements()] == [v.tolist() for v, _ in release.measurements()]


def test_arrays_of_one_kind_are_stated_together(tmp_path):
    tables().save(tmp_path / "tables.zip")
    first, *pairs = stated(tmp_path / "tables.zip", "cliques")
    assert first == {"positions": [0, 2, 3], "numbers": [0, 1, 5], "shape": [2], "scale": 24.0}
    assert [(each["positions"], each["numbers"]) for each in pairs] == [([0, 2], [2]), ([2, 3], [3]), ([1, 0], [4])]
    residuals().save(tmp_path / "residuals.zip")
    assert len(stated(tmp_path / "residuals.zip", "cliques")) == 2


def test_numbers_are_left_out_where_kinds_follow_each_other():
    in_order: dict[tuple[str, ...], dict[str, list[int]]] = {(): {"shape": []}}
    in_order |= {clique: {"shape": [2] * len(clique)} for clique in [("a",), ("c",), ("a", "c")]}
    two = dict(list(in_order.items())[:2])  # which are not yet very many
    assert listing.state_arrays(SCHEMA, two) == [{"variables": [], "shape": []}, {"variables": ["a"], "shape": [2]}]
    assert listing.state_arrays(SCHEMA, in_order) == [
        {"positions": [], "shape": []},
        {"positions": [0, 2], "shape": [2]},
        {"positions": [0, 2], "shape": [2, 2]},
    ]


def test_all_pairs_of_a_thousand_columns_fit_twice_into_a_descriptor():
    schema = dp.Schema({f"a column with a long name, {i}": list(range(2 + i % 8)) for i in range(1000)})
    shapes = {pair: {"shape": list(map(schema.cardinality, pair))} for pair in combinations(schema.variables, 2)}
    text = json.dumps(listing.state_arrays(schema, shapes), separators=(",", ":")).encode()
    assert 2 * len(text) <= archive.MAX_DESCRIPTOR_BYTES
    assert archive.parts_of(text) == 1 + 8**2 * 4  # a list of objects, each with three lists


@pytest.mark.parametrize(
    ("change", "match"),
    [
        *(({"positions": [0, place, 3]}, "whole numbers from 0 to") for place in (9, -1, True, "c")),
        ({"positions": []}, "one for each of their axes"),
        ({"positions": [0, 2, 1], "shape": [2, 2]}, "one for each of their axes"),
        ({"positions": [0, 2], "shape": []}, "one for each of their axes"),
        ({"positions": [0, 1, 3]}, "has shape"),
        ({"positions": [0, 0, 3]}, "'a'"),
        ({"positions": {}}, "must be of type list"),
        *(({"numbers": numbers}, "all from 0 to 5") for numbers in ([0, 1, 2], [0, 1], [0, 1, 5.0], [0, 1, "5"])),
        ({"variables": ["a"]}, "and nothing else"),
        ({"scale": 1e-9}, "costs epsilon"),
    ],
)
def test_wrong_tables_among_many_are_refused(change, match, tmp_path):
    require_refused(
        tmp_path / "many.zip", tables(), match, change=lambda contents: contents["cliques"][0].update(change)
    )
