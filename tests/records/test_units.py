"""Units of privacy with several rows."""

import datetime
import random
import warnings
from decimal import Decimal
from itertools import product
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars
import pyarrow as pa
import pytest
from writers import ALL

import pgmpy_dp as dp
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget, SimulatedNoise
from pgmpy_dp.privacy.accounting import rho_for
from pgmpy_dp.privacy.coins import random_keys
from pgmpy_dp.privacy.noise import UNIT_WEIGHT, table_sensitivity
from pgmpy_dp.records import open_records
from pgmpy_dp.records.units import Unit, labels_of, number_ids, warn_of_unit
from pgmpy_dp.schema import Schema

SCHEMA = Schema({"a": ["x", "y"], "b": [0, 1, 2]})
CLIQUES = [("a", "b"), ("b",)]


def visits(persons=60):
    """Person k has 1 + k % 5 rows."""
    rows = [(f"p{k}", "xy"[(k + j) % 2], (k * j) % 3) for k in range(persons) for j in range(1 + k % 5)]
    return pd.DataFrame(rows, columns=["person", "a", "b"]).sample(frac=1, random_state=0, ignore_index=True)


@pytest.mark.parametrize("form", ["pandas", "lazy", "Parquet", "Dask"])
def test_rows_of_a_unit_are_drawn_uniformly_without_replacement(form, tmp_path):
    # 300 units of rows 0, 1, 2 and 3, of which 2 are drawn: each row of a unit with probability 1/2, whatever its
    # place. Each count is binomial (300, 1/2): six standard deviations are 52. Never a row twice.
    schema = Schema({"row": [0, 1, 2, 3], "whose": list(range(300))})
    frame = pd.DataFrame(list(product(range(300), range(4))), columns=["whose", "row"])
    unit = Unit("whose", 2, random_keys)
    table = open_records(ALL[form](frame, tmp_path), schema, schema.variables, unit).counts([("whose", "row")])
    drawn = table["whose", "row"]
    assert set(np.unique(drawn)) == {0, 1}
    assert (drawn.sum(axis=1) == 2).all()
    assert (abs(drawn.sum(axis=0) - 150) < 52).all()


def test_an_array_tells_units_by_a_variable_and_counts_cannot():
    schema = Schema({"a": ["x", "y"], "who": ["p", "q"]})
    codes = np.array([[0, 0], [1, 0], [1, 0], [1, 1]])
    unit = Unit("who", 1, random_keys)
    assert open_records(codes, schema, ["a", "who"], unit).counts([("who",)])["who",].tolist() == [1, 1]
    with pytest.raises(SchemaError, match="'person' is not one"):
        open_records(codes, schema, ["a"], Unit("person", 1, random_keys))
    with pytest.raises(ValueError, match="do not tell whose"):
        open_records({("a",): [1, 2]}, schema, ["a"], unit)


def test_units_are_told_apart_exactly():
    ids = pd.Series([2**53, 2**53 + 1, 2**53], dtype="int64")
    assert labels_of(ids, Unit("person", 1, random_keys)).tolist() == [0, 1, 0]
    frame = polars.DataFrame({"a": ["x", "y"], "b": [0, 0], "person": [2**53, 2**53 + 1]})
    assert open_records(frame, SCHEMA, ["a"], Unit("person", 1, random_keys)).size == 2
    frame = frame.with_columns(person=polars.Series([1, 2]).cast(polars.Time))  # nanoseconds, which Python cuts off
    for times in (frame, frame.lazy(), frame.to_arrow()):
        assert open_records(times, SCHEMA, ["a"], Unit("person", 1, random_keys)).size == 2


def test_ids_of_odd_types_are_read_by_their_values():
    def people(ids):
        frame = pd.DataFrame({"a": ["x"] * len(ids), "b": 0, "person": ids})
        return open_records(frame, SCHEMA, ["a"], Unit("person", 1, random_keys)).size

    def dictionary(values, places):
        array = pa.DictionaryArray.from_arrays(pa.array(places, "int32"), pa.array(values))
        return pd.Series(pd.arrays.ArrowExtensionArray(array))

    assert people(dictionary(["a", "a", "b"], [0, 1, 2])) == 2
    assert people(pd.Series(np.array([2**53, 2**53 + 1], dtype=np.longdouble))) == 2
    for nobody in (
        dictionary(["a", None], [0, 1]),
        pd.Series([1.0, float("nan")], dtype=pd.ArrowDtype(pa.float64())),
    ):
        with pytest.raises(SchemaError, match="person"):
            people(nobody)


def test_nobody_is_a_number_of_people_too(tmp_path):
    """Under "add_remove" an error for no rows would show that there are none."""
    nobody = visits(0)
    opened = [open_records(nobody, SCHEMA, ["a"], Unit("person", 1, random_keys))]
    nobody.to_csv(tmp_path / "nobody.csv", index=False)
    opened.append(open_records(tmp_path / "nobody.csv", SCHEMA, ["a"], Unit("person", 1, random_keys)))
    relation = duckdb.sql("select 'x' as a, 0 as b, 'p' as person where false")
    opened.append(open_records(relation, SCHEMA, ["a"], Unit("person", 1, random_keys)))
    assert [records.size for records in opened] == [0] * 3
    assert all(records.counts([("a",)])["a",].sum() == 0 for records in opened)


class Chosen:
    """Keys that draw the rows with the given ranks first."""

    def __init__(self, keys):
        self.drawn = keys

    def __call__(self, size):
        return np.array(self.drawn[:size], dtype=np.uint64)


@pytest.mark.parametrize("max_rows", [1, 2, None])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_sensitivity_by_brute_force(neighbours, max_rows):
    # Unit 0 has rows 0 and 1 in cells of three; unit 1 has up to three rows, among them none. All data sets that differ
    # in unit 1 alone, and all orders in which its rows may be drawn.
    schema = Schema({"v": [0, 1, 2]})

    def tables(rows):
        frame = pd.DataFrame({"v": [0, 1, *rows], "u": [0, 0, *[1] * len(rows)]})
        orders = [(1, 2, 3), (2, 3, 1), (3, 1, 2)] if max_rows else [(1, 2, 3)]
        for order in orders:
            unit = Unit("u", max_rows, Chosen([1, 2, *order]))
            yield open_records(frame, schema, ["v"], unit).counts([("v",)])["v",]

    units = [rows for length in (1, 2, 3) for rows in product(range(3), repeat=length)]
    others = [()] if neighbours == "add_remove" else units
    reached = {tuple(table) for rows in units for table in tables(rows)}
    before = {tuple(table) for rows in others for table in tables(rows)}
    changes = np.array([np.subtract(one, other) for one, other in product(reached, before)])
    rows = max_rows or UNIT_WEIGHT
    assert abs(changes).sum(axis=1).max() == table_sensitivity(neighbours, "l1", rows)
    assert (changes**2).sum(axis=1).max() == table_sensitivity(neighbours, "squared_l2", rows)


def dataset(neighbours, max_rows, noise=OPENDP_NOISE):
    return PrivateDataset(
        visits(), SCHEMA, PrivacyBudget(1e7, 1e-6), neighbours, noise, unit="person", max_rows=max_rows
    )


@pytest.mark.parametrize(("neighbours", "times"), [("add_remove", 1), ("replace_one", 2)])
@pytest.mark.parametrize(("max_rows", "rows"), [(1, 1), (3, 3), (None, 1)])
def test_releases_name_the_unit_and_pay_for_its_rows(neighbours, times, max_rows, rows):
    data = dataset(neighbours, max_rows)
    laplace = data.measure(CLIQUES, 1.0)
    gaussian = data.measure(CLIQUES, 1.0, delta=1e-6, mechanism="gaussian")
    assert laplace.scales["b",] == pytest.approx(2 * times * rows)
    assert gaussian.scales["b",] == pytest.approx(rows * (times / rho_for(1.0, 1e-6)) ** 0.5)
    for noisy in (laplace, gaussian):
        assert (noisy.guarantee.unit, noisy.guarantee.max_rows) == ("person", max_rows)
        # The number of rows never shows; the number of persons only where it is public and each counts once.
        assert noisy.public_total == (60 if neighbours == "replace_one" and rows == 1 else None)
        assert noisy.tables["b",].dtype == (np.float64 if max_rows is None else np.int64)
    bound = {1: "(at most 1 row)", 3: "(at most 3 rows)", None: "(all rows, of weight 1 together)"}[max_rows]
    assert f"for one person {bound}" in str(laplace.guarantee)


def test_weighted_noise_is_of_whole_parts_and_has_the_stated_variance():
    data = dataset("add_remove", None, SimulatedNoise(0))
    exact = dataset("add_remove", None).measure([("b",)], 1e7).tables["b",]
    assert exact.sum() == pytest.approx(60, abs=1e-3)
    drawn = np.array([data.measure([("b",)], 8.0).tables["b",] for _ in range(1000)])
    assert (drawn * UNIT_WEIGHT == np.rint(drawn * UNIT_WEIGHT)).all()
    noisy = data.measure([("b",)], 8.0)
    assert noisy.variances["b",] == pytest.approx(2 * 0.125**2, rel=1e-6)  # as of continuous noise
    # The relative deviation of a sample variance of Laplace noise is sqrt(5 / 3000) = 0.04: five of them.
    assert (drawn - exact).var() == pytest.approx(noisy.variances["b",], rel=0.2)


def test_simulated_samples_are_repeatable():
    def once():
        return dataset("add_remove", 1, SimulatedNoise(3)).measure([("a", "b")], 1.0)

    assert np.array_equal(once().tables["a", "b"], once().tables["a", "b"])  # costs have names of their own


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_rows": 2}, "name the column"),
        # Sums of 2**31 rows are not kept in 64 bits.
        *(({"unit": "person", "max_rows": rows}, "whole number") for rows in (0, True, 1.5, 2**31)),
        *(({"unit": unit}, "unit must name") for unit in ("", "record", 3)),
        ({"unit": "who"}, "unit must name a column, and 'who' has no column in the records"),
    ],
)
def test_bad_units_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        PrivateDataset(visits(), SCHEMA, PrivacyBudget(1.0), **arguments)


def test_a_unit_of_few_declared_states_is_cautioned_against_by_the_schema_alone():
    schema = Schema({"a": ["x", "y"], "b": [0, 1, 2], "person": range(200), "row": []}, other={"row": "other"})
    for records in (visits(), visits(0)):
        with pytest.warns(UserWarning, match='unit="b" is a variable of 3 states, which hardly identifies persons'):
            PrivateDataset(records, schema.select(["a", "b"]), PrivacyBudget(1.0), unit="b")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        PrivateDataset(visits(), schema.select(["a"]), PrivacyBudget(1.0), unit="b")
        warn_of_unit(schema, "person")
        warn_of_unit(schema, "row")  # its states are not public
        warn_of_unit(schema, None)


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
