"""No value of a record is in errors, nor do they hang on one; no public estimator shows what it was made with."""

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from gate import texts_of
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork

import pgmpy_dp as dp

SCHEMA = dp.Schema({"v": [1, 2], "n": dp.Bins([0, 1, 2])})
SECRET = "7654321"


def csv(content):
    def write(folder):
        (folder / "records.csv").write_bytes(content)
        return folder / "records.csv"

    return write


def polars_cast(folder):
    polars = pytest.importorskip("polars")
    frame = polars.LazyFrame({"v": ["1", f"x{SECRET}"], "n": [0.5, 0.5]})
    return frame.with_columns(polars.col("v").cast(polars.Int64))


def duckdb_cast(folder):
    duckdb = pytest.importorskip("duckdb")
    return duckdb.sql(f"select cast(v as int) v, n from (values ('1', .5), ('x{SECRET}', .5)) t(v, n)")


SOURCES = {
    "undeclared": lambda folder: pd.DataFrame({"v": [1, int(SECRET)], "n": [0.5, 0.5]}),
    "outside the bins": lambda folder: pd.DataFrame({"v": [1, 2], "n": [0.5, float(SECRET)]}),
    "of another kind": lambda folder: pd.DataFrame({"v": [1, SECRET], "n": [0.5, 0.5]}),
    "codes": lambda folder: np.array([[0, 0], [int(SECRET), 0]]),
    "cell": csv(f"v,n\n1,0.5\n{SECRET},0.5\n".encode()),
    "no UTF-8": csv(b"v,n\n1,0.5\n" + SECRET.encode() + b"\xff,0.5\n"),
    "open quotes": csv(f'v,n\n1,0.5\n"{SECRET},0.5\n'.encode()),
    "no header": csv(b""),
    "thousands of digits": csv(b"v,n\n1,0.5\n" + SECRET.encode() * 900 + b",0.5\n"),
    "a failing cast in Polars": polars_cast,
    "a failing cast in DuckDB": duckdb_cast,
}


@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_errors_hold_no_values(source, tmp_path):
    with pytest.raises(dp.SchemaError) as caught:
        dp.PrivateDataset(source(tmp_path), SCHEMA, dp.PrivacyBudget(1.0))
    assert not any(SECRET in text or "row 2" in text or "0xff" in text for text in texts_of(caught.value))


def test_a_missing_column_is_named_with_advice_for_its_source_and_others_are_kept_back(tmp_path):
    (tmp_path / "records.csv").write_text(f"{SECRET},V\n1,0.5\n")  # without a header, a record may stand in its place
    frames = pd.DataFrame({SECRET: [1], "V ": [1]}), pd.DataFrame({"V": [1]})
    for source, advice in (
        (tmp_path / "records.csv", "strip=True"),
        *((frame, "rename the column") for frame in frames),
    ):
        with pytest.raises(dp.SchemaError, match=r"'v' has no column.* in another case or with blanks") as caught:
            dp.PrivateDataset(source, dp.Schema({"v": [1, 2]}), dp.PrivacyBudget(1.0))
        assert advice in str(caught.value)
        assert SECRET not in str(caught.value)
        assert ("CsvFile" in str(caught.value)) is not isinstance(source, pd.DataFrame)
    with pytest.raises(dp.SchemaError, match="more than one column of the records: rename or drop"):
        dp.PrivateDataset(pd.DataFrame([[1, 1]], columns=["v", "v"]), dp.Schema({"v": [1, 2]}), dp.PrivacyBudget(1.0))


@pytest.mark.parametrize("first", ["V", "v ", "N"])
def test_what_else_a_first_line_holds_does_not_show_unless_it_names_all_variables(first, tmp_path):
    """In a file without a header, the cells of a record may resemble some of the names."""
    messages = []
    for line in (f"{first},y", "x,y"):
        (tmp_path / "records.csv").write_text(f"{line}\n1,0.5\n")
        frame = pd.DataFrame([[1, 0.5]], columns=line.split(","))
        for source in (tmp_path / "records.csv", frame):
            with pytest.raises(dp.SchemaError, match="'v' has no column") as caught:
                dp.PrivateDataset(source, SCHEMA, dp.PrivacyBudget(1.0))
            messages.append(str(caught.value))
    assert messages[:2] == messages[2:]


def test_a_number_is_not_the_name_that_it_writes():
    with pytest.raises(dp.SchemaError, match="'1' has no column in the records: rename") as caught:
        dp.PrivateDataset(pd.DataFrame({1: ["a"]}), dp.Schema({"1": ["a", "b"]}), dp.PrivacyBudget(1.0))
    assert "another case" not in str(caught.value)


FRAME = pd.DataFrame({"a": [SECRET, "x"], "b": [SECRET, "x"]})
ROWS = FRAME.to_numpy().tolist()
MODEL = DiscreteBayesianNetwork([("a", "b")])
MODELS = {
    "LinearPosteriorSampler": LinearGaussianBayesianNetwork([("a", "b")]),
    "NaiveMLE": dp.PrivateMarkovNetwork([("a", "b")]),
    "PrivateSGD": dp.PrivateMarkovNetwork([("a", "b")]),
}

PUBLIC = {name: getattr(room, name) for room in (dp, dp.papers) for name in room.__all__}
ESTIMATORS = {name: kind for name, kind in PUBLIC.items() if hasattr(kind, "get_params") and hasattr(kind, "fit")}


def data_set():
    schema = dp.Schema({"a": [SECRET, "x"], "b": [SECRET, "x"]})
    return dp.PrivateDataset(FRAME, schema, dp.PrivacyBudget(1.0, 1e-6))


def fit(estimator, data):
    model = MODELS.get(type(estimator).__name__, MODEL)
    return estimator.fit(*[model] * ("model" in inspect.signature(estimator.fit).parameters), data)


def shows(estimator):
    formats = estimator._repr_mimebundle_()
    assert formats.keys() == {"text/plain"}
    return SECRET in "".join([repr(estimator), str(estimator), f"{[estimator]}", *formats.values()])


def made(kind, **options):
    """With what has no default."""
    places = inspect.signature(kind).parameters
    return kind(**{place: value for place, value in {"epsilon": 1.0, **options}.items() if place in places})


@pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=ESTIMATORS)
def test_models_and_records_are_no_parameters(kind):
    """pgmpy's old style, and records in the place of each parameter."""
    places = inspect.signature(kind).parameters
    wrong = [kind(MODEL, FRAME), kind(FRAME), kind(data_set()), *(made(kind, **{place: FRAME}) for place in places)]
    for estimator in wrong:
        assert not shows(estimator)
        data = data_set()
        with pytest.raises(TypeError, match="made with parameters alone") as caught:
            fit(estimator, data)
        assert not any(SECRET in text for text in texts_of(caught.value))
        assert data.budget.history == ()
        assert not shows(estimator)


@pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=ESTIMATORS)
def test_lists_of_records_are_not_shown(kind):
    places, wrongs = inspect.signature(kind).parameters, (ROWS, dict(enumerate(ROWS)), np.array(ROWS), tuple(ROWS))
    for place, wrong, delta in itertools.product(places, wrongs, (0.0, 1e-6)):
        estimator, data = made(kind, **{"delta": delta, place: wrong}), data_set()
        assert not shows(estimator)
        with pytest.raises((TypeError, ValueError)) as caught:
            fit(estimator, data)
        assert not any(SECRET in text for text in texts_of(caught.value))
        assert data.budget.history == ()


def test_the_representation_shows_what_is_single():
    estimator = dp.PrivateMLE(0.5, state_names={"a": ["x"]}, allocation="planned", delta=np.float64(1e-6))
    assert (
        repr(estimator) == "PrivateMLE(epsilon=0.5, delta=np.float64(1e-06), state_names=<dict>, allocation='planned')"
    )
