"""Two tables and their key: read alike from every source, joined by the key, refused without a word of records."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from noises import Noted
from writers import COMMON, to_csv

import pgmpy_dp as dp
from pgmpy_dp.privacy import OPENDP_NOISE

SCHEMA = dp.HouseholdSchema(
    dp.Schema({"tenure": ["owned", "rented"]}),
    dp.Schema({"age": dp.Bins([0, 18, 65, 120]), "sex": ["f", "m"]}, missing={"age": "unknown"}),
    key="id",
    max_persons=3,
)
HOMES = pd.DataFrame({"id": [7, 3, 9], "tenure": ["owned", "rented", "owned"]})
PEOPLE = pd.DataFrame({"id": [3, 7, 9, 7, 3, 7], "age": [30, 40, 70, 10, 5, 41], "sex": list("fmfmff")})
CLIQUES = [("tenure", "size"), ("tenure", "age"), ("sex", "another sex"), ("size", "age", "another age")]
UNIT = 2**20


def opened(homes, people, schema=SCHEMA, budget=None):
    return dp.PrivateHouseholds(homes, people, schema, budget or dp.PrivacyBudget(1.0))


def counts(homes, people, schema=SCHEMA):
    return opened(homes, people, schema)._records.counts(schema.measured.require(CLIQUES))


def test_each_household_is_divided_among_its_persons_and_pairs():
    found = {clique: table / UNIT for clique, table in counts(HOMES, PEOPLE).items()}
    assert found["tenure", "size"].tolist() == [[1, 0, 1], [0, 1, 0]]
    assert np.allclose(found["tenure", "age"], [[1 / 3, 2 / 3, 1, 0], [1 / 2, 1 / 2, 0, 0]], atol=1e-5)
    # m m f: six ordered pairs; f f: two; f alone.
    assert np.allclose(found["sex", "another sex"], [[1, 1 / 3, 1], [1 / 3, 1 / 3, 0]], atol=1e-5)


FORMS = {name: COMMON[name] for name in ("Polars", "Arrow", "CSV", "Parquet")} | {
    "shuffled": lambda frame, folder: frame.sample(frac=1.0, random_state=1).rename(index=str),
    "pandas texts": lambda frame, folder: frame.astype({"id": "string[pyarrow]"}),
    "declared CSV": lambda frame, folder: dp.CsvFile(to_csv(frame, folder, sep=";"), delimiter=";"),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_sources_are_counted_alike(form, tmp_path):
    sources = []
    for name, frame in (("homes", HOMES), ("people", PEOPLE)):
        (tmp_path / name).mkdir()
        sources.append(FORMS[form](frame, tmp_path / name))
    expected, found = counts(HOMES, PEOPLE), counts(*sources)
    assert all((found[clique] == expected[clique]).all() for clique in expected)


def test_keys_of_two_sources_of_one_kind_agree():
    expected = counts(HOMES, PEOPLE)
    found = counts(HOMES.astype({"id": "int32"}), pl.from_pandas(PEOPLE))
    assert all((found[clique] == expected[clique]).all() for clique in expected)
    large = {7: 2**53, 3: 2**53 + 1, 9: 2**53 + 2}  # floats do not tell these apart
    found = counts(HOMES.assign(id=HOMES["id"].map(large)), PEOPLE.assign(id=PEOPLE["id"].map(large).astype("uint64")))
    assert all((found[clique] == expected[clique]).all() for clique in expected)


@pytest.mark.parametrize(
    ("homes", "people", "said"),
    [
        (pd.concat([HOMES, HOMES.iloc[:1]]), PEOPLE, "same key 'id'.* are the tables swapped"),
        (PEOPLE, HOMES, "'tenure' has no column in the table of households: .*swapped, or their schemas"),
        (HOMES, PEOPLE.drop(columns="sex"), "'sex' has no column in the table of persons: .*swapped, or their schemas"),
        (HOMES.iloc[:2], PEOPLE, "no household has"),
        (HOMES, PEOPLE[PEOPLE["id"] != 9], "no person"),
        (HOMES, PEOPLE.astype({"id": "str"}), "have the same type"),
        (HOMES.assign(id=[7, None, 9]), PEOPLE, "missing values"),
        (HOMES, PEOPLE.drop(columns="id"), "key must name .* 'id' has no column in the table of persons: rename"),
        (HOMES, PEOPLE.assign(sex="z"), "'sex' has values"),
        (HOMES.assign(tenure=None), PEOPLE, "'tenure' has missing values"),
    ],
)
def test_tables_that_do_not_agree_are_refused_without_a_word_of_records(homes, people, said):
    with pytest.raises(dp.SchemaError, match=said) as refusal:
        opened(homes, people)
    assert not set("79") & set(str(refusal.value))
    assert refusal.value.__cause__ is refusal.value.__context__ is None


@pytest.mark.parametrize("source", [pl.from_pandas(HOMES).lazy(), HOMES.to_numpy(), {("tenure",): [2, 1]}, None])
def test_other_sources_are_refused(source):
    with pytest.raises(TypeError, match="table of households must be"):
        opened(source, PEOPLE)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"one \.csv or \.parquet file"):
        opened(HOMES, tmp_path)


class Reversed(Noted):
    """Draws the last persons of a household."""

    def keys(self, size):
        return super().keys(size)[::-1].copy()


def test_so_many_persons_of_a_household_are_counted_as_are_declared():
    schema = dp.HouseholdSchema(SCHEMA.households, SCHEMA.persons, "id", max_persons=2)
    data = dp.PrivateHouseholds(HOMES, PEOPLE, schema, dp.PrivacyBudget(1.0), noise=Reversed())
    noisy = data.measure([("size",), ("tenure", "age")], 1.0)
    assert noisy.tables["size",].tolist() == [1.0, 2.0]
    assert noisy.tables["tenure", "age"].tolist() == [[0.5, 0.5, 1.0, 0.0], [0.5, 0.5, 0.0, 0.0]]


def test_draws_of_persons_are_even():
    people = pd.DataFrame({"id": 0, "age": 30, "sex": ["f"] * 3 + ["m"] * 6})
    people = pd.concat([people.assign(id=number) for number in range(2000)])
    homes = pd.DataFrame({"id": range(2000), "tenure": "owned"})
    found = opened(homes, people)._records.counts([("sex",)])[("sex",)] / UNIT
    assert abs(found[0] - 2000 / 3) < 6 * (2000 * 2 / 27) ** 0.5


def test_the_number_of_households_is_public_only_where_they_are_replaced():
    for relation, total in (("add_remove", None), ("replace_one", 3)):
        data = dp.PrivateHouseholds(HOMES, PEOPLE, SCHEMA, dp.PrivacyBudget(1.0), relation, OPENDP_NOISE)
        noisy = data.measure([("age",)], 0.5)
        assert noisy.public_total == total
        assert noisy.guarantee.unit == "id"
        assert noisy.guarantee.max_rows is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"persons": dp.Schema({"tenure": ["owned"]})}, "'tenure' is used twice"),
        ({"persons": dp.Schema({"size": [1, 2]})}, "'size' is used twice"),
        ({"households": dp.Schema({"another age": [1, 2]})}, "'another age' is used twice"),
        ({"key": "age"}, "'age' is used twice"),
        ({"max_persons": 0}, "from 1 to 100"),
        ({"max_persons": 101}, "from 1 to 100"),
        ({"persons": dp.Schema(bounds={"wage": (0, 1)})}, "'wage' is a number with bounds"),
        ({"persons": {"age": [1, 2]}}, "persons must be a Schema"),
    ],
)
def test_declarations_that_are_not_sound_are_refused(change, said):
    given = {"households": SCHEMA.households, "persons": SCHEMA.persons, "key": "id", "max_persons": 3}
    with pytest.raises(dp.SchemaError, match=said):
        dp.HouseholdSchema(**given | change)


def test_states_are_not_discovered_in_households_and_nothing_is_charged():
    """A value would count by its rows, of which a household has any number."""
    persons = dp.Schema({"sex": []}, other={"sex": "other"})
    schema = dp.HouseholdSchema(SCHEMA.households, persons, key="id", max_persons=3)
    budget = dp.PrivacyBudget(1.0, delta=1e-6)
    data = opened(HOMES, PEOPLE, schema, budget)
    with pytest.raises(ValueError, match="States are discovered among rows"):
        data.discover_states("sex", 0.5, delta=1e-7)
    assert budget.history == ()
    with pytest.raises(dp.SchemaError, match=r"'sex' cannot be discovered in .* tables of households"):
        data._records.value_counts("sex")
