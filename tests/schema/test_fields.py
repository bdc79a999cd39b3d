"""A schema is written as a Table Schema, and read from those of others."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp._files import parse_json
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema import Bins, Schema

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


def test_a_stand_in_of_another_type_stays_out_of_the_column():
    (field,) = Schema({"n": [0, 1]}, missing={"n": "unknown"}).to_dict()["fields"]
    assert field == {"name": "n", "type": "integer", "constraints": {"enum": [0, 1]}, "pgmpy_dp:missing": "unknown"}


def test_where_other_values_are_mapped_nothing_constrains_the_column():
    schema = Schema({"n": [0, 1], "x": Bins([0, 9])}, missing={"n": -1}, other={"n": "other", "x": "other"})
    assert schema.states == {"n": (0, 1, -1, "other"), "x": ("0_to_9", "other")}
    assert schema.select(["x"]) == Schema({"x": Bins([0, 9])}, other={"x": "other"})
    n, x = schema.to_dict()["fields"]
    own = {"pgmpy_dp:states": [0, 1, -1], "pgmpy_dp:missing": -1, "pgmpy_dp:other": "other"}
    assert n == {"name": "n", "type": "integer", "constraints": {}, **own}
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


NO_TEXT = r"not a schema, which is JSON .* Of a model that was loaded it is schema_"
NO_SCHEMAS = [b"", b"[]", b'{"fields": 1}', b'{"fields": []}', b"[" * 100_000, b'{"a": NaN}', b'{"a": 1, "a": 2}']


@pytest.mark.parametrize(
    ("content", "message"),
    [*((content, "") for content in NO_SCHEMAS), *((content, NO_TEXT) for content in (b"\xff", b"PK\x03\x04\xff\xfe"))],
)
def test_files_that_are_no_table_schema_are_refused(tmp_path, content, message):
    path = tmp_path / "schema.json"
    path.write_bytes(content)
    with pytest.raises(SchemaError, match=rf"schema\.json.*{message}"):
        Schema.load(path)


def test_repeated_field_and_missing_file(tmp_path):
    field = {"name": "a", "constraints": {"enum": ["x"]}}
    with pytest.raises(SchemaError, match="'a' appears twice"):
        Schema.from_dict({"fields": [field, field]})
    with pytest.raises(FileNotFoundError):
        Schema.load(tmp_path / "none.json")
