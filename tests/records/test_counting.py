"""Encoding and counting."""

import decimal
import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records import memory
from pgmpy_dp.records.frames import encode
from pgmpy_dp.records.memory import MAX_CELLS, count, distinct
from pgmpy_dp.schema import Bins, Schema


def pandas_frame(columns):
    return pd.DataFrame(columns)


def polars_frame(columns):
    return pytest.importorskip("polars").DataFrame(columns, strict=False)


def arrow_table(columns):
    return pytest.importorskip("pyarrow").table(columns)


FRAMES = pytest.mark.parametrize("frame", [pandas_frame, polars_frame, arrow_table])


def codes_of(values, states, frame=pandas_frame, missing=None):
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


def test_pandas_dtypes():
    assert codes_of(pd.Series([2, None], dtype="Int64"), [1, 2], missing="none") == [1, 2]
    assert codes_of(pd.Series([2, 1], dtype="Int8"), [1, 2]) == [1, 0]
    assert codes_of(pd.Series([2.0, None], dtype="Float64"), [1, 2], missing="none") == [1, 2]
    assert codes_of(pd.Series([True, None], dtype="boolean"), [False, True], missing="none") == [1, 2]
    assert codes_of(pd.Series(["b", None], dtype="string"), ["a", "b"], missing="none") == [1, 2]
    assert codes_of(pd.Series([2**63 - 1, 1], dtype="uint64"), [-1, 1, 2**63 - 1]) == [2, 1]
    assert codes_of(pd.Series([1, 0], dtype="uint8"), [256, 0, 1]) == [2, 1]
    assert codes_of(pd.Series([5, None], dtype="Int64"), Bins([0, 3, 9]), missing="none") == [1, 2]
    big = pd.Series([2**53 + 1, None], dtype="Int64")
    assert codes_of(big, [2**53, 2**53 + 1], missing="none") == [1, 2]
    assert codes_of(pd.Series([1, 2.5], dtype=object), Bins([0, 2, 3])) == [0, 1]
    assert codes_of(pd.Series([0.1], dtype="float32"), [0.5, float(np.float32(0.1))]) == [1]


def test_mixed_objects_keep_their_kinds():
    for value, state in ((decimal.Decimal(1), 1), (["a"], "a")):
        with pytest.raises(SchemaError, match="not among"):
            codes_of([value], [state])
    values = pd.Series(["1", 1, "x", np.int64(1), np.str_("1")], dtype=object)
    assert codes_of(values, ["1", 1, "x"]) == [0, 1, 2, 1, 0]
    for odd in (True, 1.5, np.True_):
        with pytest.raises(SchemaError):
            codes_of(pd.Series([1, odd], dtype=object), [1, 2])


@pytest.mark.parametrize(
    ("categories", "states", "expected"),
    [
        (pd.Categorical(["b", "a", None], categories=["unused", "b", "a"]), ["a", "b"], [1, 0, 2]),
        (pd.Categorical(["b", "a"], categories=["b", "a"], ordered=True), ["a", "b"], [1, 0]),
        (pd.Categorical([3, 1, None]), [1, 3], [1, 0, 2]),
    ],
)
def test_pandas_categoricals(categories, states, expected):
    assert codes_of(pd.Series(categories), states, missing="none") == expected


def test_pandas_categories_keep_their_kinds():
    with pytest.raises(SchemaError):
        codes_of(pd.Series(pd.Categorical([True, False])), [1, 0])
    with pytest.raises(SchemaError):
        codes_of(pd.Series(pd.Categorical([1, 2])), ["1", "2"])


def test_other_dictionaries():
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    for dtype in (polars.Categorical, polars.Enum(["b", "a"])):
        assert codes_of(polars.Series(["b", None], dtype=dtype), ["a", "b"], polars_frame, "none") == [1, 2]
    assert codes_of(pyarrow.array([3, 1]).dictionary_encode(), [1, 3], arrow_table) == [1, 0]
    with pytest.raises(SchemaError):
        codes_of(pyarrow.array([3, 1]).dictionary_encode(), ["1", "3"], arrow_table)
    nan = polars.Series([1.0, float("nan"), None])
    assert codes_of(nan, [1], polars_frame, "none") == [0, 1, 1]


def test_no_number_leaves_its_table():
    # NaN that the frame does not call missing, and integers beyond all floats.
    polars = pytest.importorskip("polars")
    pyarrow = pytest.importorskip("pyarrow")
    bins = Bins([0, 1, np.inf])
    dictionary = pyarrow.array([1.0, float("nan")]).dictionary_encode()
    objects = polars.Series([1.0, float("nan")], dtype=polars.Object)
    for values, frame in ((dictionary, arrow_table), (objects, polars_frame)):
        with pytest.raises(SchemaError):
            codes_of(values, bins, frame)
    assert codes_of(dictionary, bins, arrow_table, "none") == [1, 2]
    assert codes_of(pd.Series([10**400, 0], dtype=object), bins) == [1, 0]
    with pytest.raises(SchemaError, match="not among") as caught:
        codes_of(pd.Series([-(10**400), 10**400], dtype=object), Bins([0, 1]))
    assert caught.value.__context__ is None


def test_dictionaries_with_nulls_among_their_values():
    pyarrow = pytest.importorskip("pyarrow")
    values = pyarrow.DictionaryArray.from_arrays([0, 1, None], ["a", None])
    assert codes_of(values, ["a", "b"], arrow_table, "none") == [0, 2, 2]
    with pytest.raises(SchemaError, match="missing values"):
        codes_of(values, ["a", "b"], arrow_table)
    arrow_dtype = pd.ArrowDtype(pyarrow.dictionary(pyarrow.int32(), pyarrow.string()))
    assert codes_of(pd.Series(["b", None], dtype=arrow_dtype), ["a", "b"], missing="none") == [1, 2]


def test_integers_of_128_bits():
    polars = pytest.importorskip("polars")
    values = polars.Series([2, None, 1], dtype=polars.Int128)
    assert codes_of(values, [1, 2], polars_frame, "none") == [1, 2, 0]
    assert codes_of(values, Bins([0, 2, 3]), polars_frame, "none") == [1, 2, 0]
    with pytest.raises(SchemaError):
        codes_of(polars.Series([2**100], dtype=polars.Int128), [1, 2], polars_frame)


@pytest.mark.parametrize("value", [np.timedelta64(1, "ns"), np.datetime64(1, "ns")])
@pytest.mark.parametrize("states", [[1, 2], Bins([0, 1, 2])])
def test_times_are_no_numbers(value, states):
    with pytest.raises(SchemaError):
        codes_of(pd.Series([value, 1], dtype=object), states)


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


def test_half_precision_is_not_missing():
    pyarrow = pytest.importorskip("pyarrow")
    halves = pd.Series(pd.arrays.ArrowExtensionArray(pyarrow.array(np.array([1.0, 0.5, np.nan], np.float16))))
    assert codes_of(halves, [0.5, 1.0], missing="none") == [1, 0, 2]


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
