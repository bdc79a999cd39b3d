"""Records are read one by one at the other gates too: documents, features with classes, bounded numbers, quantiles.

All together are refused, or read as each is alone in the same form; see tests/audit/test_gate.py.
"""

import math
import tempfile
import warnings
from collections import Counter
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from gate import encode_numbers, outcome
from hostile_records import FLOATS, INTEGERS, SECRET, Column
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from noises import Noted
from scipy import sparse
from writers import FORMS, NOT_TAKEN, PANDAS, objects, taken

import pgmpy_dp as dp
from pgmpy_dp.data.documents import checked_counts
from pgmpy_dp.data.mechanisms.quantiles import edge_scores, score_sensitivity
from pgmpy_dp.privacy.noise import UNIT_WEIGHT

pytestmark = pytest.mark.full

SECRETS = [int(SECRET), float(SECRET), f"x{SECRET}"]


def rows_of(source, chosen):
    """Some rows of a matrix, frame or list, in its own form."""
    if sparse.issparse(source):
        return source.tocsr()[chosen].asformat(source.format)
    if isinstance(source, (list, tuple)):
        return type(source)(source[row] for row in chosen)
    if isinstance(source, (pd.Series, pd.Categorical)):
        return source.take(chosen)
    return source[chosen] if isinstance(source, np.ndarray) else taken(source, chosen)


def require_one_by_one(read, make, examples):
    """The lemma, for a reader that returns one row a record; how often records were read, or refused."""
    outcomes = Counter()
    for example in examples:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                source = make(example)
                parts = [rows_of(source, [row]) for row in range(len(example))]
        except NOT_TAKEN:
            continue
        together, alone = outcome(lambda: read(source)), [outcome(lambda part=part: read(part)) for part in parts]
        refused = [one for one in alone if isinstance(one, str)]
        if isinstance(together, str):
            assert refused, example
            if len(refused) == 1:  # with one such record, word by word what would be said of it alone
                assert together == refused[0], example
        else:
            assert not refused, example
            np.testing.assert_array_equal(together, np.concatenate(alone), err_msg=repr(example))
        outcomes["refused" if refused else "read"] += 1
    return outcomes


def among(ordinary, odd):
    """Lists in which each value stands between ordinary ones."""
    places = range(len(ordinary) + len(odd))
    return [
        [ordinary[place % len(ordinary)], value, ordinary[place // 2 % len(ordinary)]]
        for place, value in zip(places, [*ordinary, *odd], strict=True)
    ]


# Documents.


def repeated(array):
    """Entries in halves, and in no order."""
    rows, columns = np.nonzero(np.ones_like(array))
    order = np.argsort((7 * columns + 3 * rows) % 5, kind="stable")
    whole, half = array[rows, columns], array[rows, columns] // 2
    values = np.concatenate([half[order], (whole - half)[order]])
    return sparse.coo_array((values, (np.tile(rows[order], 2), np.tile(columns[order], 2))), shape=array.shape)


DOCUMENTS = {
    "lists": list,
    "arrays in a list": lambda matrix: [np.array(row) for row in matrix],
    "array": np.array,
    "small integers": lambda matrix: np.array(matrix).astype(np.uint8),
    "half floats": lambda matrix: np.array(matrix).astype(np.float16),
    "long floats": lambda matrix: np.array(matrix).astype(np.longdouble),
    "truth": lambda matrix: np.array(matrix).astype(bool),
    "pandas": pd.DataFrame,
    "Polars": lambda matrix: pl.DataFrame(matrix, orient="row", strict=False),
    "PyArrow": lambda matrix: pa.Table.from_pandas(pd.DataFrame(matrix)),
    "repeated entries": lambda matrix: repeated(np.array(matrix)),
    "CSR": lambda matrix: sparse.csr_array(np.array(matrix)),
    "CSC": lambda matrix: sparse.csc_matrix(np.array(matrix)),
    "BSR": lambda matrix: sparse.bsr_array(np.array(matrix)),
    "DOK": lambda matrix: sparse.dok_array(np.array(matrix)),
}
STRANGE = [-1, 0.5, 2.0, math.nan, math.inf, 2**24 + 1, 2**62, -(2**63), True, *SECRETS, 10**30, None, "2"]
STRANGE += [np.ma.masked]


@pytest.mark.parametrize("form", DOCUMENTS)
def test_documents_are_read_one_by_one(form):
    matrices = [[[value, 0, 2] for value in values] for values in among([0, 1, 3, 300, 2**24], STRANGE)]
    matrices += [[[0, 0, 0], *matrix] for matrix in matrices]
    assert require_one_by_one(lambda counts: checked_counts(counts).toarray(), DOCUMENTS[form], matrices)["read"] > 9


def test_documents_of_unequal_length_are_refused_without_their_number():
    message = outcome(lambda: checked_counts([[1, 2, 3]] * 4091 + [[1, 2]]))
    assert "counts of words" in message
    assert "409" not in message


def test_what_a_mask_hides_is_not_counted():
    hidden = np.ma.masked_array([[1, 2, 0], [3, 4, 0]], mask=[[0, 1, 0], [0, 0, 0]])
    for counts in (hidden, list(hidden)):
        assert "without a mask" in outcome(lambda counts=counts: checked_counts(counts))
        features = {"bounds": (0, 9), "classes": [0, 1], "budget": dp.PrivacyBudget(1.0, 1e-6)}
        assert "without a mask" in outcome(lambda X=counts: dp.PrivateFeatures(X, [0, 1], **features))
        y = hidden[0, :2] if counts is hidden else list(hidden[0, :2])
        assert "without a mask" in outcome(lambda y=y: dp.PrivateFeatures([[1], [2]], y, **features))


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix, sparse.csc_array])
def test_no_index_outside_of_an_array_reaches_another_document(kind):
    for indices, ends in (([4711, 0], [0, 1, 2]), ([0, -4711], [0, 1, 2]), ([0, 1], [0, 2, 1])):
        damaged = kind((np.array([5, 1]), np.array([0, 1]), np.array([0, 1, 2])), shape=(2, 2))
        damaged.indices, damaged.indptr = np.array(indices), np.array(ends)
        message = outcome(lambda damaged=damaged: dp.PrivateDocuments(damaged, ["a", "b"], dp.PrivacyBudget(1.0)))
        assert "damaged" in message
        assert "4711" not in message


def test_documents_of_one_word_are_resampled_one_by_one():
    """Whatever is drawn for them, and wherever others stand."""
    counts = np.zeros((4099, 3), dtype=np.int64)  # in more than one block
    rng = np.random.default_rng(0)
    counts[np.arange(4099), rng.integers(0, 3, 4099)] = rng.choice([0, 1, 7, 2**24], 4099)
    for form in (np.array, sparse.csr_array, repeated):
        data = dp.PrivateDocuments(form(counts), ["a", "b", "c"], dp.PrivacyBudget(1.0, 1e-6), length=10)
        assert (data._rows.toarray() == 10 * (counts > 0)).all()


# Features and their classes.

NUMBERS = [*FLOATS[:10], *INTEGERS]
ODD_NUMBERS = [*FLOATS, 2**64 - 1, 2**64, 10**30, True, None, Decimal("1.5"), Decimal("sNaN"), 1j, np.ma.masked, pd.NA]
ODD_NUMBERS += [*SECRETS, "1", np.longdouble("1e4000"), np.float32(0.1)]


def of_pandas(make):
    return lambda values: make([Column("a", "mixed", tuple(values)), Column("^z$", "mixed", (1,) * len(values))])


FEATURES = {
    "lists": lambda values: [[value, 1] for value in values],
    "array": lambda values: np.array([[value, 1] for value in values]),
    "floats": lambda values: np.array([[value, 1] for value in values], dtype=np.float64),
    "short floats": lambda values: np.array([[value, 1] for value in values]).astype(np.float32),
    "long floats": lambda values: np.array([[value, 1] for value in values], dtype=np.longdouble),
    "integers": lambda values: np.array([[value, 1] for value in values], dtype=np.int64),
    "Polars": lambda values: pl.DataFrame([pl.Series("^v$", values), pl.Series("*", values)]),
    "PyArrow": lambda values: pa.table({"a": pa.array(values)}),
    "decimals": lambda values: pa.table({"a": pa.array(values, pa.decimal128(38, 6))}),
    **{f"pandas, {name}": of_pandas(make) for name, make in PANDAS.items()},
}
NEVER_NUMERIC = ("pandas, objects", "pandas, categories")


@pytest.mark.parametrize("form", FEATURES)
def test_features_are_read_one_by_one(form):
    def read(X):
        public = {"bounds": (-1.0, 2.0**62), "classes": ["no", "yes"], "budget": dp.PrivacyBudget(1.0, 1e-6)}
        return dp.PrivateFeatures(X, ["no"] * len(X), **public)._rows

    outcomes = require_one_by_one(read, FEATURES[form], among(NUMBERS, ODD_NUMBERS))
    assert outcomes["read"] > 5 or form in NEVER_NUMERIC


CLASSES = ["no", "yes", 1, 2**53, 2**53 + 1, 0.5, "1"]
ODD_CLASSES = [None, math.nan, True, np.int8(1), Decimal(1), f"x{SECRET}", int(SECRET), "\ud800", b"no", (1,), [1], {}]
ODD_CLASSES += [Decimal("sNaN"), pd.NaT, np.datetime64("2020-01-01"), np.timedelta64(1, "s"), np.ma.masked, 10**400, 1j]
Y = {
    "list": list,
    "tuple": tuple,
    "array": np.array,
    "objects": lambda values: objects(values).to_numpy(),
    "Polars": lambda values: pl.Series(values, strict=False),
    "Polars categories": lambda values: pl.Series(values).cast(pl.Categorical),
    "Polars Int128": lambda values: pl.Series(values).cast(pl.Int128),
    "PyArrow": lambda values: pa.chunked_array([pa.array(values)]),
    "pandas": pd.Series,
    "pandas objects": objects,
    "pandas nullable": lambda values: pd.Series(values).convert_dtypes(),
    "pandas categories": pd.Categorical,
}


@pytest.mark.parametrize("form", Y)
def test_classes_are_read_one_by_one(form):
    def read(y):
        public = {"bounds": (-1.0, 1.0), "classes": CLASSES, "budget": dp.PrivacyBudget(1.0, 1e-6)}
        return dp.PrivateFeatures(np.zeros((len(y), 1)), y, **public)._rows

    kinds = [["no", "yes", "1"], [1, 2**53, 2**53 + 1], [1, 0.5], CLASSES]
    examples = [example for kind in kinds for example in among(kind, ODD_CLASSES)]
    assert require_one_by_one(read, Y[form], examples)["read"] > 3


# Numbers with bounds.

BOUNDED = {
    "Polars": lambda values: pl.DataFrame([pl.Series("a", values, strict=False), pl.Series("^z$", values)]),
    "PyArrow": lambda values: pa.table({"a": pa.array(values), "^z$": pa.array(values)}),
    "decimals": lambda values: pa.table({name: pa.array(values, pa.decimal128(38, 6)) for name in ("a", "^z$")}),
    "long floats": lambda values: pd.DataFrame(dict.fromkeys(["a", "^z$"], np.array(values, dtype=np.longdouble))),
    "short floats": lambda values: pd.DataFrame(dict.fromkeys(["a", "^z$"], np.array(values).astype(np.float32))),
    **{f"pandas, {name}": of_pandas(make) for name, make in PANDAS.items()},
}


@pytest.mark.parametrize("form", BOUNDED)
def test_numbers_with_bounds_are_read_one_by_one(form):
    schema = dp.Schema(bounds={"a": (-1, 1e18), "^z$": (-5e-300, 7)})

    def read(frame):
        return np.column_stack(list(encode_numbers(frame, schema).values()))

    outcomes = require_one_by_one(read, BOUNDED[form], among(NUMBERS, ODD_NUMBERS))
    assert outcomes["read"] > 5 or form in (*NEVER_NUMERIC, "long floats", "decimals")


# Quantiles.

EDGES = [0.0, 1.0, 18.0, 2.0**53, 2.0**53 + 2, 1e18]
UNITS = [{}, {"unit": "who"}, {"unit": "who", "max_rows": 4}]
AGES = {"integer": st.none() | st.sampled_from(INTEGERS), "float": st.none() | st.sampled_from(FLOATS)}


def scores(source, unit):
    """Scores of all edges, of a data set of its own."""
    schema = dp.Schema({"age": dp.Bins(EDGES)}, missing={"age": "missing"}, other={"age": "other"})
    data = dp.PrivateDataset(source, schema, dp.PrivacyBudget(10.0), noise=Noted(), **unit)
    data.quantile_bins("age", 3, 1.0)
    return np.array([scores for _, scores, _ in data._noise.seen])


def binned(ages, weight):
    """What some ages add to the fine bins, by brute force."""
    counts = np.zeros(len(EDGES) - 1, dtype=np.int64)
    for age in ages:
        if age is not None and EDGES[0] <= age <= EDGES[-1]:
            counts[sum(age >= edge for edge in EDGES[1:-1])] += weight
    return counts


@pytest.mark.parametrize(
    "name", ["csv module", "pandas", "Polars", "PyArrow", "PyArrow to parquet", "Polars lazy", "DuckDB relation"]
)
def test_quantiles_are_those_of_records_and_persons_one_by_one(name):
    """Scores are of counts that add up, and one person moves them by no more than noise is drawn for."""
    form, tried = FORMS[name], Counter()

    @settings(max_examples=9, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(UNITS), st.integers(1, 4), st.sampled_from(list(AGES)), st.data())
    def attempt(unit, size, kind, data):
        maximum = UNIT_WEIGHT if unit == {"unit": "who"} else unit.get("max_rows", 1)
        tried[str(unit)] += 1
        ages = data.draw(st.lists(AGES[kind], min_size=size, max_size=size))
        who = data.draw(st.lists(st.sampled_from("pq"), min_size=size, max_size=size))
        frame = form.typed["rows" if "rows" in form.typed else "inferred" if name == "pandas" else "plain"](
            [Column("age", kind, tuple(ages)), Column("who", "text", tuple(who))]
        )

        def scores_of(rows):
            with tempfile.TemporaryDirectory() as folder:
                return scores(form.written[0](taken(frame, rows), Path(folder)), unit)

        rows = range(size)
        persons = [[row for row in rows if who[row] == one] for one in set(who)] if unit else [[row] for row in rows]
        weights = [UNIT_WEIGHT // len(person) if maximum == UNIT_WEIGHT else 1 for person in persons]
        held = [[ages[row] for row in person] for person in persons]
        counts = [binned(own, weight) for own, weight in zip(held, weights, strict=True)]
        together = scores_of(rows)
        assert together.tolist() == [each.tolist() for each in edge_scores(sum(counts), 3)]
        without = scores_of([row for row in rows if row not in persons[0]])
        for quantile in (1, 2):
            moved = np.abs(together - without)[quantile - 1].max()
            assert moved <= score_sensitivity(quantile, 3, "add_remove", maximum)

    attempt()
    assert len(tried) == len(UNITS)
