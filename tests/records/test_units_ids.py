"""Cells and ids are compared one by one: whether two are the same depends on no other, of any kind."""

import datetime
import random
from decimal import Decimal
from uuid import UUID

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import pgmpy_dp as dp
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.records import open_records
from pgmpy_dp.records.units import Unit, number_ids

LONE = "\ud800"  # half of a surrogate pair, and the eight letters that Python shows it by
TEXTS = ["p", "p\0", "p\0q", LONE, repr(LONE), repr(LONE)[1:-1], "", "1", "1.0", "nan", "é", "e\u0301"]
OTHERS = [
    1, True, 1.0, np.int64(1), np.longdouble(1), Decimal(1), 1 + 0j, (1,), (1.0, "p"), 2**53, 2.0**53, 2**53 + 1,
    np.timedelta64(1, "s"), pd.Timedelta(1, "s"), datetime.date(2020, 1, 1), datetime.datetime(2020, 1, 1),
    pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01", tz="UTC"), np.datetime64("2020-01-01"), b"p", UUID(int=1),
]  # fmt: skip


def objects(values):
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def forms(values):
    """A column of these values, in every form that keeps them as they are."""
    yield objects(values)
    yield pd.Series(objects(values), dtype=object)
    if all(isinstance(value, str) for value in values):
        yield pd.Series(values, dtype="string[python]")
        yield pd.Series(pd.Categorical.from_codes([0] * len(values), pd.Index(values[:1], dtype=object)))


def disagreements(numbering, trials=200):
    """How often two ids among others are the same, or not, where alone they are not, or the same."""
    chance, found = random.Random(0), 0
    for _ in range(trials):
        values = chance.choices(chance.choice([TEXTS, [*TEXTS, *OTHERS]]), k=30)
        for column in forms(values):
            labels, cells = numbering(column), list(column.astype(object))
            for one, other in (chance.sample(range(30), 2) for _ in range(10)):
                alone = numbering(objects([cells[one], cells[other]]))
                found += (labels[one] == labels[other]) != (alone[0] == alone[1])
    return found


def test_whether_two_ids_are_one_person_hangs_on_no_other():
    assert disagreements(lambda column: number_ids("person", column)) == 0


def test_ids_that_pandas_tells_apart_are_found():
    assert disagreements(lambda column: pd.factorize(column)[0]) > 0


def test_ids_are_numbered_as_they_come_and_two_columns_alike():
    ids = objects(["b", None, 1, "a", 1.0, float("nan"), "b"])
    assert number_ids("person", ids, ids[:3]).tolist() == [0, -1, 1, 2, 1, -1, 0, 0, -1, 1]
    whole, short = np.array([5, 7], dtype=np.int64), np.array([7, 5, 6], dtype=np.int32)
    assert number_ids("person", whole, short).tolist() == [0, 1, 1, 0, 2]


@pytest.mark.parametrize("text", ["p", "", LONE, "p\0q"])
def test_texts_of_other_classes_are_the_texts_that_they_equal(text):
    class Text(str):
        """A class of its own, as numpy's texts are."""

    assert number_ids("person", objects([text, np.str_(text), Text(text), "x"])).tolist() == [0, 0, 0, 1]
    unit = Unit("person", 1, random_keys)
    frame = pd.DataFrame({"v": "x", "person": pd.Series(objects([np.str_(text), text]), dtype=object)})
    assert open_records(frame, dp.Schema({"v": ["x"]}), ["v"], unit).size == 1


class Anything:
    """It equals all others."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


@pytest.mark.parametrize("odd", [Anything(), frozenset([1]), [1]])
def test_ids_of_other_kinds_are_refused(odd):
    with pytest.raises(SchemaError, match="'person' identifies units"):
        number_ids("person", objects(["p", odd]))


def counted(column, schema):
    return open_records(pd.DataFrame({"v": column}), schema, ["v"]).counts([("v",)])["v",].tolist()


@pytest.mark.parametrize("state", ["p", repr(LONE), "p\0q"])
@pytest.mark.parametrize("dtype", [object, "string[python]"])
def test_texts_are_read_alike_whatever_stands_before_them(state, dtype):
    schema = dp.Schema({"v": [state, "other"]}, other={"v": "other"})
    for first in TEXTS:
        for texts in ([first, state], [state, first]):
            assert counted(pd.Series(texts, dtype=dtype), schema) == ([2, 0] if first == state else [1, 1])


@pytest.mark.parametrize(
    "schema",
    [
        dp.Schema({"v": dp.Bins([0, 1, 18])}, missing={"v": "missing"}, other={"v": "other"}),
        dp.Schema({"v": [0, 1, -1, -2]}, missing={"v": -1}, other={"v": -2}),
    ],
)
def test_a_dictionary_with_a_null_is_read_alike_beside_an_empty_cell(schema):
    def column(places):
        array = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(["x", None]))
        return pd.Series(pd.arrays.ArrowExtensionArray(pa.chunked_array([array])))

    assert counted(column([1, 1, 0]), schema) == [0, 0, 2, 1]
    assert counted(column([1, 1, 0, None]), schema) == [0, 0, 3, 1]


def test_households_are_told_apart_whatever_other_keys_there_are():
    keys = [LONE, repr(LONE), "p", "p\0"]
    schema = dp.HouseholdSchema(dp.Schema({"a": ["x"]}), dp.Schema({"b": ["y"]}), key="id", max_persons=1)
    for ids in (keys, [*keys, 5]):
        column = pd.Series(objects(ids), dtype=object)
        homes, people = pd.DataFrame({"id": column, "a": "x"}), pd.DataFrame({"id": column, "b": "y"})
        assert dp.PrivateHouseholds(homes, people, schema, dp.PrivacyBudget(1.0))._records.size == len(ids)
