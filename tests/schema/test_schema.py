from __future__ import annotations

import copy
import gzip
import json
import math
import pickle
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pgmpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork
from pgmpy.readwrite import BIFReader, BIFWriter

from pgmpy_dp._files import parse_json
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema import Bins, Schema

NETWORKS = Path(pgmpy.__file__).parent / "utils" / "example_models"


@pytest.fixture
def schema() -> Schema:
    return Schema({"smoke": ["yes", "no"], "age": Bins([0, 18, 65, 120]), "n": [0, 1, 2]}, missing={"age": "unknown"})


def test_what_is_declared_is_what_is_read(schema):
    assert schema.variables == ("smoke", "age", "n")
    assert schema.states["age"] == ("0_to_18", "18_to_65", "65_to_120", "unknown")
    assert schema.cardinality("age") == 4
    assert schema.shape(("n", "smoke")) == (3, 2)
    assert schema.cells(("n", "smoke", "age")) == 24
    for wrong in (("n", "n"), "n", ()):  # a table has an axis for each variable once
        with pytest.raises(SchemaError):
            schema.shape(wrong)
    assert schema.state_names["smoke"] == ["yes", "no"]
    assert dict(schema.missing) == {"age": "unknown"}
    assert schema.bins["age"].edges == (0.0, 18.0, 65.0, 120.0)


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ("yes", "one string"),
        ([], "no states"),
        (["yes", "yes"], "'yes' and 'yes' are equal"),
        ([0, False], "0 and False are equal"),
        ([1, True], "1 and True are equal"),
        ([1, 1.0], "1 and 1.0 are equal"),
        ([0.0, -0.0], "equal"),
        ([np.int64(1), 1], "equal"),
        ([math.nan, 1.0], "missing"),
        ([np.float32("nan")], "missing"),
        ([math.inf], "bins"),
        ([None, "yes"], "missing"),
        ([pd.NA, "yes"], "missing"),
        ([pd.Timestamp("2020-01-01")], "str, int, float or bool"),
        ([np.timedelta64(1, "ns")], "str, int, float or bool"),
        ([np.datetime64(1, "ns")], "str, int, float or bool"),
        ([("a", "b")], "str, int, float or bool"),
        ({"yes", "no"}, "fixed order"),
        ({"yes": 1}, "fixed order"),
        (7, "fixed order"),
        (np.array(7), "fixed order"),
        (["\ud800"], "UTF-8"),
        ([2**63], "64 bits"),
        ([10**5000], "64 bits"),
    ],
)
def test_ambiguous_states_are_refused_by_name(states, message):
    with pytest.raises(SchemaError, match=message) as refusal:
        Schema({"smoke": states})
    assert "'smoke'" in str(refusal.value)


@pytest.mark.parametrize("variables", [{}, [("a", ["x"])], pd.DataFrame({"a": [1]}), {1: ["x"]}, {"": ["x"]}, None])
def test_wrong_declarations_are_refused(variables):
    with pytest.raises(SchemaError):
        Schema(variables)


def test_numpy_scalars_become_python_ones():
    schema = Schema({np.str_("a"): np.array([1, 2]), "b": np.array(["x", "y"]), "c": [np.bool_(False), np.True_]})
    assert [type(state) for states in schema.states.values() for state in states] == [
        int,
        int,
        str,
        str,
        bool,
        bool,
    ]
    assert type(schema.variables[0]) is str


def test_any_ordered_container_declares_states():
    expected = Schema({"a": [0, 1, 2]})
    for states in (range(3), (0, 1, 2), np.arange(3), pd.Index([0, 1, 2]), pd.Series([0, 1, 2])):
        assert Schema({"a": states}) == expected


def test_missing_state():
    assert Schema({"a": [1, 2]}, missing={"a": "none"}).states["a"] == (1, 2, "none")
    assert Schema({"a": [1, 2]}, missing={"a": 1}).states["a"] == (1, 2)
    with pytest.raises(SchemaError, match="equal"):
        Schema({"a": [1, 2]}, missing={"a": True})
    with pytest.raises(SchemaError, match="did you mean 'smoke'"):
        Schema({"smoke": [1, 2]}, missing={"smok": 1})
    with pytest.raises(SchemaError, match="'a'"):
        Schema({"a": [1, 2]}, missing={"a": math.nan})


def test_equality_and_hash_follow_content_and_type(schema):
    same = Schema({v: schema.bins.get(v, s) for v, s in schema.states.items()}, missing=schema.missing)
    assert same == schema
    assert hash(same) == hash(schema)
    others = [
        {"a": [0, 1]},
        {"a": [1, 0]},
        {"a": [False, True]},
        {"a": [0.0, 1.0]},
        {"a": ["0", "1"]},
        {"b": [0, 1]},
    ]
    assert len({Schema(other) for other in others}) == len(others)
    assert Schema({"a": [0, 1]}) != Schema({"a": [0, 1]}, missing={"a": 0})
    assert Schema({"a": [0], "b": [0]}) != Schema({"b": [0], "a": [0]})
    assert schema != "schema"


def test_immutable_and_picklable(schema):
    with pytest.raises(AttributeError):
        schema.states = {}
    with pytest.raises(TypeError):
        schema.states["smoke"] = ("x",)
    schema.state_names["smoke"].append("maybe")
    assert schema.states["smoke"] == ("yes", "no")
    assert pickle.loads(pickle.dumps(schema)) == copy.deepcopy(schema) == schema


@pytest.mark.parametrize(
    ("cliques", "message"),
    [
        ([("smok",)], "did you mean 'smoke'"),
        ([("zzz",)], "the schema has 'smoke'"),
        ([(7,)], "Unknown variable 7"),
        ([("smoke", "smoke")], "'smoke' more than once"),
        ([()], "empty clique"),
        ([], "No cliques"),
        ([("smoke", "n"), ("n", "smoke")], "repeats"),
        (["smoke"], r"write \('smoke',\)"),
        ("smoke", "cliques must be a list"),
        (("smoke", "n"), "A clique is a tuple"),
        ([{"smoke", "n"}], "A clique must be a tuple"),
        (None, "cliques must be a list"),
        ([None], "A clique must be a tuple"),
        ([(["smoke"],)], "Unknown variable"),
    ],
)
def test_wrong_cliques_are_refused(schema, cliques, message):
    with pytest.raises(SchemaError, match=message):
        schema.require(cliques)


def test_cliques_become_tuples(schema):
    assert schema.require(iter([["n", "smoke"], ("n",)])) == (("n", "smoke"), ("n",))
    assert schema.require(nx.DiGraph([("n", "smoke")]).edges()) == (("n", "smoke"),)


@pytest.mark.parametrize(
    ("edges", "labels"),
    [
        ([1], None),
        ([1, 1], None),
        ([2, 1], None),
        ([0, math.nan], None),
        ([0, math.inf, math.inf], None),
        ([False, True], None),
        (["0", "1"], None),
        ("01", None),
        (3, None),
        ([0, 10**400], None),
        ([0, 1, 2], ["a"]),
        ([0, 1, 2], ["a", "a"]),
        ([0, 1, 2], [0, 1]),
        ([0, 1, 2], "ab"),
    ],
)
def test_wrong_bins_are_refused(edges, labels):
    with pytest.raises(SchemaError):
        Bins(edges, labels)


@pytest.mark.parametrize("decimals", [-1, 1.0, True, "1", 16])
def test_decimals_are_a_small_whole_number(decimals):
    with pytest.raises(SchemaError, match=r"from 0 to 15, got"):
        Bins([0, 1], decimals=decimals)


@pytest.mark.parametrize(("edges", "message"), [([0, 0.01, 0.05, 1], "from 0.01 to 0.05"), ([0, 1e15], "as large as")])
def test_every_bin_holds_a_number_with_its_decimals(edges, message):
    assert Bins(edges, decimals=None).decimals is None
    with pytest.raises(SchemaError, match=message):
        Bins(edges, decimals=1)


def test_bin_labels_survive_a_bif_file():
    for edges in ([-math.inf, -2.5, 0, 1e-5, 1e22, math.inf], [0, 1]):
        labels = list(Bins(edges).labels)
        model = DiscreteBayesianNetwork([("age", "sick")])
        n = len(labels)
        model.add_cpds(
            TabularCPD("age", n, np.full((n, 1), 1 / n), state_names={"age": labels}),
            TabularCPD("sick", 2, np.full((2, n), 0.5), ["age"], [n], {"age": labels, "sick": ["yes", "no"]}),
        )
        back = BIFReader(string=str(BIFWriter(model))).get_model()
        assert back.get_cpds("age").state_names["age"] == labels
        assert back.get_cpds("sick").state_names["age"] == labels


@pytest.mark.parametrize("name", ["asia", "cancer", "sachs", "survey", "alarm"])
def test_from_a_bnlearn_network(name):
    text = gzip.decompress((NETWORKS / f"{name}.bif.gz").read_bytes()).decode()
    model = BIFReader(string=text).get_model()
    schema = Schema.from_model(model)
    assert schema.variables == tuple(model.nodes())
    assert schema.state_names == {v: model.get_cpds(v).state_names[v] for v in model.nodes()}
    assert Schema.from_dict(schema.to_dict()) == schema


def test_from_a_markov_network():
    model = DiscreteMarkovNetwork([("a", "b")])
    model.add_factors(DiscreteFactor(["a", "b"], [2, 2], np.ones(4), {"a": ["x", "y"], "b": [0, 1]}))
    assert Schema.from_model(model) == Schema({"a": ["x", "y"], "b": [0, 1]})


def test_models_without_clear_states_are_refused():
    model = DiscreteBayesianNetwork([("a", "b")])
    with pytest.raises(SchemaError, match="'a' has no CPD"):
        Schema.from_model(model)
    model.add_cpds(
        TabularCPD("a", 2, [[0.5], [0.5]], state_names={"a": ["x", "y"]}),
        TabularCPD("b", 2, np.full((2, 2), 0.5), ["a"], [2], {"a": ["y", "x"], "b": ["u", "v"]}),
    )
    with pytest.raises(SchemaError, match="'a' has different states"):
        Schema.from_model(model)
    with pytest.raises(SchemaError, match="int"):
        Schema.from_model(3)


NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
STATES = st.one_of(
    NAMES | st.just(""),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
)
BINS = st.lists(st.floats(allow_nan=False), min_size=2, max_size=5, unique=True).map(sorted).map(Bins)


@st.composite
def schemas(draw) -> Schema:
    lists = st.lists(STATES, min_size=1, max_size=5, unique=True)
    variables = draw(st.dictionaries(NAMES, lists | BINS, min_size=1, max_size=4))
    missing, other = {}, {}
    for name, declared in variables.items():
        states = list(declared.labels if isinstance(declared, Bins) else declared)
        for role in (missing, other):
            choice = draw(st.none() | st.sampled_from(states) | STATES)
            if choice is not None and (choice not in states or type(choice) is type(states[states.index(choice)])):
                role[name] = choice
                states.append(choice)
    return Schema(variables, missing=missing, other=other)


@settings(max_examples=100, deadline=None)
@given(schemas())
def test_table_schema_round_trip(schema):
    content = json.dumps(schema.to_dict(), ensure_ascii=False, allow_nan=False).encode()
    assert Schema.from_dict(parse_json(content)) == schema


def test_file_round_trip(tmp_path):
    schema = Schema(
        {
            "größe, cm": Bins([-math.inf, 150, 180, math.inf]),
            "b": [False, True],
            "c": ["", "a,b", "ж"],
            "d": [0.5, 1.0],
        },
        missing={"c": ""},
        other={"größe, cm": 'außerhalb, "x"', "d": "sonst"},
    )
    schema.save(tmp_path / "schema.json")
    assert Schema.load(tmp_path / "schema.json") == schema
    fields = json.loads((tmp_path / "schema.json").read_text(encoding="utf-8"))["fields"]
    assert [field["type"] for field in fields] == ["number", "boolean", "string", "number"]


def test_a_stand_in_of_another_type_stays_out_of_the_column():
    (field,) = Schema({"n": [0, 1]}, missing={"n": "unknown"}).to_dict()["fields"]
    assert field == {
        "name": "n",
        "type": "integer",
        "constraints": {"enum": [0, 1]},
        "pgmpy_dp:missing": "unknown",
    }


def test_where_other_values_are_mapped_nothing_constrains_the_column():
    schema = Schema({"n": [0, 1], "x": Bins([0, 9])}, missing={"n": -1}, other={"n": "other", "x": "other"})
    assert schema.states == {"n": (0, 1, -1, "other"), "x": ("0_to_9", "other")}
    assert schema.select(["x"]) == Schema({"x": Bins([0, 9])}, other={"x": "other"})
    n, x = schema.to_dict()["fields"]
    assert n == {
        "name": "n",
        "type": "integer",
        "constraints": {},
        "pgmpy_dp:states": [0, 1, -1],
        "pgmpy_dp:missing": -1,
        "pgmpy_dp:other": "other",
    }
    assert x["constraints"] == {"required": True}
    both = Schema({"n": [0, 1]}, missing={"n": "unclear"}, other={"n": "unclear"})
    assert both.states["n"] == (0, 1, "unclear")
    swapped = Schema({"n": [1, "x"]}, missing={"n": 2}, other={"n": "x"})
    assert Schema.from_dict(swapped.to_dict()) == swapped
    assert Schema({"n": [0, 1]}, other={"n": 1}) != Schema({"n": [0, 1]})
    with pytest.raises(SchemaError, match="other: Unknown variable 'm'"):
        Schema({"n": [0, 1]}, other={"m": 1})
    with pytest.raises(SchemaError, match="other needs a dict"):
        Schema({"n": [0, 1]}, other="rest")


@pytest.mark.parametrize(
    ("declared", "roles", "field"),
    [
        (
            Bins([0, 18, 65, 120]),
            {},
            {"type": "number", "constraints": {"required": True, "minimum": 0, "maximum": 120}},
        ),
        (Bins([-math.inf, 18, 65]), {"missing": "unknown"}, {"type": "number", "constraints": {"maximum": 65}}),
        (Bins([0, 18, math.inf]), {}, {"type": "number", "constraints": {"required": True, "minimum": 0}}),
        (Bins([0, 18, 65]), {"other": "odd"}, {"type": "number", "constraints": {"required": True}}),
        (["x", ""], {}, {"type": "string", "constraints": {"required": True, "enum": ["x", ""]}, "missingValues": []}),
        ([1, 2], {"missing": "none"}, {"type": "integer", "constraints": {"enum": [1, 2]}}),
        ([1, "x"], {"missing": "none"}, {"type": "any", "constraints": {"enum": [1, "x", "none"]}}),
        ([True, False], {"other": "odd"}, {"type": "boolean", "constraints": {"required": True}}),
    ],
)
def test_a_table_schema_says_of_a_column_what_its_records_may_hold(declared, roles, field):
    """Other programs validate the records by it."""
    schema = Schema({"v": declared}, **{role: {"v": state} for role, state in roles.items()})
    (written,) = schema.to_dict()["fields"]
    assert {key: value for key, value in written.items() if ":" not in key and key != "name"} == field


def test_foreign_table_schema():
    descriptor = {
        "missingValues": ["", "NA"],
        "fields": [
            {"name": "a", "type": "string", "categories": [{"value": "x", "label": "first"}, {"value": "y"}]},
            {"name": "b", "type": "integer", "categories": [1, 2]},
            {"name": "c", "type": "boolean"},
            {"name": "d", "type": "number", "constraints": {"enum": [1, 2.5]}},
            {"name": "e", "constraints": {"enum": ["u", 1]}},
        ],
    }
    expected = {"a": ["x", "y"], "b": [1, 2], "c": [False, True], "d": [1.0, 2.5], "e": ["u", 1]}
    assert Schema.from_dict(descriptor) == Schema(expected, missing_values=["", "NA"])


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"name": "a", "type": "string"}, "'a' declares no states"),
        ({"type": "string"}, "names are non-empty"),
        ({"name": "a", "type": "integer", "constraints": {"enum": ["1"]}}, "type 'integer'"),
        ({"name": "a", "type": "number", "constraints": {"enum": [-(10**400)]}}, "type .number."),
        ({"name": "a", "constraints": {"enum": ["NA", "x"]}, "missingValues": ["NA"]}, "missingValues"),
        ({"name": "a", "constraints": {"enum": ["x"]}, "missingValues": 3}, "missingValues"),
        ({"name": "a", "constraints": {"enum": ["x"]}, "missingValues": [{"label": "none"}]}, "no .value."),
        ({"name": "a", "constraints": {"enum": [None]}}, "'a'"),
        ({"name": "a", "constraints": {"enum": [["x"]]}}, "'a'"),
        ({"name": "a", "categories": "x"}, "'a' declares no states"),
        ({"name": "a", "pgmpy_dp:bins": [0, 1]}, "'a'"),
        ({"name": "a", "pgmpy_dp:bins": {"edges": [0, "x"]}}, "Bins"),
        ({"name": "a", "constraints": {"enum": ["x"]}, "pgmpy_dp:missing": []}, "'a'"),
    ],
)
def test_wrong_table_schemas_are_refused(field, message):
    with pytest.raises(SchemaError, match=message):
        Schema.from_dict({"fields": [field]})


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"fields": 1}',
        b'{"fields": []}',
        b"[" * 100_000,
        b'{"a": NaN}',
        b'{"a": 1, "a": 2}',
    ],
)
def test_files_that_are_no_table_schema_are_refused(tmp_path, content):
    path = tmp_path / "schema.json"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=r"schema\.json"):
        Schema.load(path)


def test_repeated_field_and_missing_file(tmp_path):
    field = {"name": "a", "constraints": {"enum": ["x"]}}
    with pytest.raises(SchemaError, match="'a' appears twice"):
        Schema.from_dict({"fields": [field, field]})
    with pytest.raises(FileNotFoundError):
        Schema.load(tmp_path / "none.json")


def test_repr_is_short():
    assert len(repr(Schema({f"v{i}": [0, 1] for i in range(1000)}))) < 200
    assert r"age\x1b[31m" in repr(Schema({"age\x1b[31m": [0, 1]}))
