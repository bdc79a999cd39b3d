"""Encoding and counting."""

import decimal
import itertools
import warnings

import numpy as np
import pandas as pd
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records import memory
from pgmpy_dp.records.frames import encode
from pgmpy_dp.records.memory import MAX_CELLS, EncodedRecords, count, distinct
from pgmpy_dp.schema import Bins, Schema


def polars_frame(columns):
    return polars.DataFrame(columns, strict=False)


FRAMES = pytest.mark.parametrize("frame", [pd.DataFrame, polars_frame, pyarrow.table])


def codes_of(values, states, frame=pd.DataFrame, missing=None):
    if isinstance(values, (polars.Series, pyarrow.Array)):
        frame = polars_frame if isinstance(values, polars.Series) else pyarrow.table
    schema = Schema({"v": states}, missing=None if missing is None else {"v": missing})
    return encode(frame({"v": values, "other": list(range(len(values)))}), schema, ["v"])["v"].tolist()


@FRAMES
@pytest.mark.parametrize(
    ("values", "states", "missing", "expected"),
    [
        (["b", "a", "b"], ["a", "b"], None, [1, 0, 1]),
        (["b", None, "a"], ["a", "b"], "none", [1, 2, 0]),
        (["b", None, "a"], ["a", "b"], "a", [1, 0, 0]),
        ([3, 1, 2], [1, 2, 3], None, [2, 0, 1]),
        ([3, None, 2], [1, 2, 3], "none", [2, 3, 1]),
        ([3, None, 2], [1, 2, 3], -1, [2, 3, 1]),
        ([2.0, 1.0], [1, 2], None, [1, 0]),
        ([1, 2], [1.0, 2.0], None, [0, 1]),
        ([0.5, -0.25, None], [0.5, -0.25], "none", [0, 1, 2]),
        ([True, False], [False, True], None, [1, 0]),
        ([True, None], [False, True], "none", [1, 2]),
        ([17, 18, 65, 120, 0], Bins([0, 18, 65, 120]), None, [0, 1, 2, 2, 0]),
        ([17.9, None, 120.0], Bins([0, 18, 65, 120]), "none", [0, 3, 2]),
        ([-1e300, 1e300], Bins([-np.inf, 0, np.inf]), None, [0, 1]),
    ],
)
def test_values_become_positions(frame, values, states, missing, expected):
    assert codes_of(values, states, frame, missing) == expected


@FRAMES
@pytest.mark.parametrize("values", [["a", None], [None, None]])
def test_missing_values_without_a_state_are_refused(frame, values):
    with pytest.raises(SchemaError, match=r"'v' has missing values.*fill or drop them, or.*missing=\{'v': 'unknown'\}"):
        codes_of(values, ["a", "b"], frame)


@pytest.mark.parametrize("nothing", [None, float("nan"), pd.NA, pd.NaT, np.nan])
def test_every_pandas_kind_of_missing_counts(nothing):
    assert codes_of(pd.Series(["a", nothing], dtype=object), ["a"], missing="none") == [0, 1]
    assert codes_of(pd.Series([1, nothing], dtype=object), [1], missing="none") == [0, 1]


def objects(*values):
    return pd.Series(list(values), dtype=object)


NAN = float("nan")
LARGE = 2**53 + 1  # no float
OPEN = Bins([0, 1, np.inf])
ARROW = pd.ArrowDtype(pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
HALVES = pd.arrays.ArrowExtensionArray(pyarrow.array(np.array([1.0, 0.5, np.nan], np.float16)))
WITH_NAN = pyarrow.array([1.0, NAN]).dictionary_encode()
WITH_NULL = pyarrow.DictionaryArray.from_arrays([0, 1, None], ["a", None])
TYPED = [  # a column, states, and positions, of which the last is that of missing values
    (pd.Series([2, None], dtype="Int64"), [1, 2], [1, 2]),
    (pd.Series([2, 1], dtype="Int8"), [1, 2], [1, 0]),
    (pd.Series([2.0, None], dtype="Float64"), [1, 2], [1, 2]),
    (pd.Series([True, None], dtype="boolean"), [False, True], [1, 2]),
    (pd.Series(["b", None], dtype="string"), ["a", "b"], [1, 2]),
    (pd.Series(["b", None], dtype=ARROW), ["a", "b"], [1, 2]),
    (pd.Series([2**63 - 1, 1], dtype="uint64"), [-1, 1, 2**63 - 1], [2, 1]),
    (pd.Series([1, 0], dtype="uint8"), [256, 0, 1], [2, 1]),
    (pd.Series([5, None], dtype="Int64"), Bins([0, 3, 9]), [1, 2]),
    (pd.Series([LARGE, None], dtype="Int64"), [2**53, LARGE], [1, 2]),
    (pd.Series([0.1], dtype="float32"), [0.5, float(np.float32(0.1))], [1]),
    (pd.Series(HALVES), [0.5, 1.0], [1, 0, 2]),
    (pd.Series(pd.Categorical(["b", "a", None], categories=["unused", "b", "a"])), ["a", "b"], [1, 0, 2]),
    (pd.Series(pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True)), ["a", "b"], [1, 0]),
    (pd.Series(pd.Categorical([3, 1, None])), [1, 3], [1, 0, 2]),
    (objects(1, 2.5), Bins([0, 2, 3]), [0, 1]),
    (objects("1", 1, "x", np.int64(1), np.str_("1")), ["1", 1, "x"], [0, 1, 2, 1, 0]),
    (objects(10**400, 0), OPEN, [1, 0]),
    (polars.Series(["b", None], dtype=polars.Categorical), ["a", "b"], [1, 2]),
    (polars.Series(["b", None], dtype=polars.Enum(["b", "a"])), ["a", "b"], [1, 2]),
    (polars.Series([1.0, NAN, None]), [1], [0, 1, 1]),
    (polars.Series([2, None, 1], dtype=polars.Int128), [1, 2], [1, 2, 0]),
    (polars.Series([2, None, 1], dtype=polars.Int128), Bins([0, 2, 3]), [1, 2, 0]),
    (pyarrow.array([3, 1]).dictionary_encode(), [1, 3], [1, 0]),
    (WITH_NAN, OPEN, [1, 2]),
    (WITH_NULL, ["a", "b"], [0, 2, 2]),
]
OF_OTHER_KINDS = [
    ([decimal.Decimal(1)], [1]),
    ([["a"]], ["a"]),
    *((objects(1, odd), [1, 2]) for odd in (True, 1.5, np.True_)),
    *((objects(time, 1), [1, 2]) for time in (np.timedelta64(1, "ns"), np.datetime64(1, "ns"))),
    *((objects(time, 1), Bins([0, 1, 2])) for time in (np.timedelta64(1, "ns"), np.datetime64(1, "ns"))),
    (objects(-(10**400), 10**400), Bins([0, 1])),
    (pd.Series(pd.Categorical([True, False])), [1, 0]),
    (pd.Series(pd.Categorical([1, 2])), ["1", "2"]),
    (pyarrow.array([3, 1]).dictionary_encode(), ["1", "3"]),
    (polars.Series([2**100], dtype=polars.Int128), [1, 2]),
]


@pytest.mark.parametrize(("column", "states", "expected"), TYPED, ids=lambda part: getattr(part, "dtype", ""))
def test_columns_of_all_types_become_positions(column, states, expected):
    assert codes_of(column, states, missing="none") == expected


@pytest.mark.parametrize(("column", "states"), OF_OTHER_KINDS)
def test_values_keep_their_kinds(column, states):
    with pytest.raises(SchemaError, match="not among") as caught:
        codes_of(column, states)
    assert caught.value.__context__ is None


@pytest.mark.parametrize(
    ("column", "states"),
    [(WITH_NAN, OPEN), (WITH_NULL, ["a", "b"]), (polars.Series([1.0, NAN], dtype=polars.Object), OPEN)],
)
def test_what_is_missing_within_a_dictionary_or_an_object_has_no_position(column, states):
    with pytest.raises(SchemaError, match="missing values"):
        codes_of(column, states)


def test_states_that_a_column_cannot_hold_give_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert codes_of(pd.Series([1.0], dtype="float32"), [1.0, 1e300]) == [0]


def test_columns():
    schema = Schema({"v": [1, 2]})
    with pytest.raises(SchemaError, match="'v' has no column"):
        encode(pd.DataFrame({"w": [1]}), schema, ["v"])
    with pytest.raises(SchemaError, match="'v' is the name of more than one"):
        encode(pd.DataFrame([[1, 2]], columns=["v", "v"]), schema, ["v"])
    twice_elsewhere = pd.DataFrame([[1, 2, 3]], columns=["v", "w", "w"])
    assert encode(twice_elsewhere, schema, ["v"])["v"].tolist() == [0]
    for other in ({"v": [1]}, [[1]], None, np.zeros((2, 2))):
        with pytest.raises(TypeError, match="pandas"):
            encode(other, schema, ["v"])


def test_codes_are_small():
    rows = pd.DataFrame({"a": [0, 1], "b": [0, 299], "c": [0, 0]})
    codes = encode(rows, Schema({"a": [0, 1], "b": list(range(300)), "c": [0]}), ["a", "b", "c"])
    assert [codes[v].dtype for v in "abc"] == [np.uint8, np.uint16, np.uint8]
    assert encode(rows, Schema({"a": list(range(256))}), ["a"])["a"].dtype == np.uint8


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_counts_agree_with_counting_one_by_one(data):
    sizes = data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    names = [f"v{i}" for i in range(len(sizes))]
    rows = data.draw(st.lists(st.tuples(*(st.integers(0, size - 1) for size in sizes)), max_size=20))
    schema = Schema({name: list(range(size)) for name, size in zip(names, sizes, strict=True)})
    frame = pd.DataFrame(rows, columns=names, dtype="int64")
    clique = tuple(data.draw(st.permutations(names))[: data.draw(st.integers(1, len(names)))])
    expected = np.zeros(schema.shape(clique), dtype=np.int64)
    for row in rows:
        expected[tuple(row[names.index(v)] for v in clique)] += 1
    table = count(encode(frame, schema, names), schema, clique)
    assert table.dtype == np.int64
    assert (table == expected).all()


def test_counts_over_several_blocks():
    rng = np.random.default_rng(0)
    sizes = {"a": 7, "b": 300, "c": 40}
    codes = {v: rng.integers(0, k, 200_001).astype(np.min_scalar_type(k - 1)) for v, k in sizes.items()}
    schema = Schema({v: list(range(k)) for v, k in sizes.items()})
    for clique in [("a",), ("a", "b"), ("b", "a", "c")]:
        expected = np.zeros(schema.shape(clique), dtype=np.int64)
        np.add.at(expected, tuple(codes[v].astype(int) for v in clique), 1)
        assert (count(codes, schema, clique) == expected).all()


def test_tables_too_large_are_refused_before_any_memory_is_taken():
    schema = Schema({v: list(range(1000)) for v in "abc"})
    codes = {v: np.zeros(1, dtype=np.uint16) for v in "abc"}
    with pytest.raises(SchemaError, match=r"\('a', 'b', 'c'\) has 1000000000 cells"):
        count(codes, schema, ("a", "b", "c"))
    assert MAX_CELLS == 2**26


def test_more_records_than_sums_hold_are_refused():
    rows, schema = np.broadcast_to(np.zeros(1, dtype=np.uint8), 2**31), Schema({"a": ["x", "y"]})  # takes no memory
    assert EncodedRecords.bounded({"a": rows[1:]}, schema, None, None).size == 2**31 - 1
    with pytest.raises(SchemaError, match=r"fewer than 2\*\*31 records"):
        EncodedRecords.bounded({"a": rows}, schema, None, None)


@pytest.mark.parametrize("states", [(2, 3, 1, 4), (200,) * 12])  # as one number, and too many for one
def test_distinct_records_are_those_of_the_sorted_table(states):
    generator = np.random.default_rng(0)
    table = np.stack([generator.integers(0, number, 50) for number in states], axis=1).astype(np.uint8)
    table = table[generator.integers(0, 50, 300)]
    codes = {str(place): column for place, column in enumerate(table.T)}
    rows, groups = distinct(codes, codes)
    expected, places = np.unique(table, axis=0, return_inverse=True)
    assert (rows == expected).all()
    assert (groups == places.ravel()).all()
    assert (rows[groups] == table).all()


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(0, 40), st.integers(1, 30), st.randoms())
def test_products_count_what_tables_do(states, rows, block, random):
    names = [f"v{place}" for place in range(len(states))]
    schema = Schema({name: list(range(r)) for name, r in zip(names, states, strict=True)})
    codes = {
        name: np.array([random.randrange(r) for _ in range(rows)], dtype=np.uint8)
        for name, r in zip(names, states, strict=True)
    }
    cliques = [(name,) for name in names] + list(itertools.permutations(names, 2))
    cliques = random.sample(cliques, random.randint(1, len(cliques)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_PRODUCT", block)
        counted = memory.count_pairs(codes, schema, cliques)
    assert set(counted) == set(cliques)
    for clique in cliques:
        expected = memory.count(codes, schema, clique)
        assert counted[clique].dtype == np.int64
        assert counted[clique].shape == expected.shape
        assert (counted[clique] == expected).all()


def test_tables_come_in_the_order_asked_for_whichever_way_they_are_counted():
    schema = Schema({name: [0, 1] for name in "abcd"})
    codes = {name: np.array([0, 1, 1, 0], dtype=np.uint8) for name in "abcd"}
    cliques = [("a", "b", "c"), ("b", "a"), ("d",), ("a", "b", "c", "d"), ("c", "d")]
    assert list(memory.count_all(codes, schema, cliques)) == cliques


def test_positions_of_states_have_no_values_to_discover():
    schema = Schema({"a": [0, 1], "b": []}, other={"b": "other"})
    data = dp.PrivateDataset(np.zeros((10, 2), dtype=int), schema, dp.PrivacyBudget(1.0, 1e-6))
    with pytest.raises(SchemaError, match="'b' cannot be discovered in positions of public states"):
        data.discover_states("b", 0.5, delta=1e-7)
    assert data.budget.spent.epsilon == 0
