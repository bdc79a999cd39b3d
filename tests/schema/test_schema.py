import copy
import gzip
import math
import pickle
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pgmpy
import pytest
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork
from pgmpy.readwrite import BIFReader

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
        *(([one, other], f"{one} and {other} are equal") for one, other in [(0, False), (1, True), (1, 1.0)]),
        *(([one, other], "equal") for one, other in [(0.0, -0.0), (np.int64(1), 1)]),
        *(([nothing, 1.0], "missing") for nothing in (math.nan, np.float32("nan"), None, pd.NA)),
        *(([odd], "str, int, float or bool") for odd in (pd.Timestamp("2020-01-01"), ("a", "b"))),
        *(([odd], "str, int, float or bool") for odd in (np.timedelta64(1, "ns"), np.datetime64(1, "ns"))),
        *((unordered, "fixed order") for unordered in ({"yes", "no"}, {"yes": 1}, 7, np.array(7))),
        *(([odd], message) for odd, message in [(math.inf, "bins"), ("\ud800", "UTF-8"), (2**63, "64 bits")]),
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


def test_any_ordered_container_declares_states_and_numpy_scalars_become_python_ones():
    for states in (range(3), (0, 1, 2), np.arange(3), pd.Index([0, 1, 2]), pd.Series([0, 1, 2])):
        assert Schema({"a": states}) == Schema({"a": [0, 1, 2]})
    schema = Schema({np.str_("a"): np.array([1, 2]), "b": np.array(["x", "y"]), "c": [np.bool_(False), np.True_]})
    assert [type(state) for states in schema.states.values() for state in states] == [int, int, str, str, bool, bool]
    assert type(schema.variables[0]) is str


def test_missing_state():
    assert Schema({"a": [1, 2]}, missing={"a": "none"}).states["a"] == (1, 2, "none")
    assert Schema({"a": [1, 2]}, missing={"a": 1}).states["a"] == (1, 2)
    for wrong, message in (({"a": True}, "equal"), ({"aa": 1}, "did you mean 'a'"), ({"a": math.nan}, "'a'")):
        with pytest.raises(SchemaError, match=message):
            Schema({"a": [1, 2]}, missing=wrong)


def test_equality_and_hash_follow_content_and_type(schema):
    same = Schema({v: schema.bins.get(v, s) for v, s in schema.states.items()}, missing=schema.missing)
    assert same == schema
    assert hash(same) == hash(schema)
    others = [{"a": [0, 1]}, {"a": [1, 0]}, {"a": [False, True]}, {"a": [0.0, 1.0]}, {"a": ["0", "1"]}, {"b": [0, 1]}]
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
        ([()], "No variable is named: name at least one"),
        ([], "No cliques"),
        ([("smoke", "n"), ("n", "smoke")], "repeats"),
        (["smoke"], r"write \('smoke',\)"),
        ("smoke", "cliques must be a list"),
        (("smoke", "n"), "A clique is a tuple"),
        ([{"smoke", "n"}], "What is asked for must be a tuple"),
        (None, "cliques must be a list"),
        ([None], "What is asked for must be a tuple"),
        ([(["smoke"],)], "Unknown variable"),
    ],
)
def test_wrong_cliques_are_refused(schema, cliques, message):
    with pytest.raises(SchemaError, match=message):
        schema.require(cliques)


def test_cliques_become_tuples(schema):
    assert schema.require(iter([["n", "smoke"], ("n",)])) == (("n", "smoke"), ("n",))
    assert schema.require(nx.DiGraph([("n", "smoke")]).edges()) == (("n", "smoke"),)


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


def test_repr_is_short():
    assert len(repr(Schema({f"v{i}": [0, 1] for i in range(1000)}))) < 200
    assert r"age\x1b[31m" in repr(Schema({"age\x1b[31m": [0, 1]}))
