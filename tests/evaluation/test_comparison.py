"""Synthetic records beside a release and beside records."""

import itertools

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import compare, compare_prediction

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y", "z"], "c": dp.Bins([0, 1, 2, 5])})


def made(count, seed, shift=0.0):
    draw = np.random.default_rng(seed)
    a = draw.random(count) < 0.3
    b = np.where(draw.random(count) < 0.6 + shift, a.astype(int), draw.integers(3, size=count))
    return pd.DataFrame({"a": np.where(a, "y", "x"), "b": np.array(["x", "y", "z"])[b], "c": 5 * draw.random(count)})


def test_records_beside_records_by_hand():
    one, other = made(500, 0), made(400, 1)
    found = compare(one, other, SCHEMA)
    assert found.attrs["guarantee"].startswith("NOT PRIVATE")
    assert len(found) == 6
    table = pd.crosstab(one["a"], one["b"]) / 500 - pd.crosstab(other["a"], other["b"]) / 400
    assert found.loc[[("a", "b")], "error"].item() == pytest.approx(table.abs().to_numpy().sum() / 2)
    assert found["error"].is_monotonic_decreasing
    assert (found["noise"] == 0).all()
    with pytest.raises(dp.SchemaError, match="schema"):
        compare(one, other)
    for pair in ((one, other[:0]), (one[:0], other)):
        with pytest.raises(ValueError, match="no records to compare"):
            compare(*pair, SCHEMA)


def test_a_model_of_some_variables_is_compared_in_these_and_says_what_it_lacks():
    data = dp.PrivateDataset(made(2000, 0), SCHEMA, dp.PrivacyBudget(1.0))
    noisy = data.measure([("a", "b"), ("b", "c")], epsilon=1.0)
    network = dp.PrivateBayesianNetwork([("a", "b")]).fit(noisy)
    with pytest.warns(UserWarning, match="The network lacks 'c': only tables of its own variables are compared"):
        found = compare(noisy, network)
    assert list(found.index) == [("a", "b")]
    whole = dp.PrivateBayesianNetwork([("a", "b"), ("b", "c")]).fit(noisy)
    assert set(compare(noisy, whole).index) == {("a", "b"), ("b", "c")}


def test_noise_is_told_from_misfit():
    """Beside a release, the records themselves have no excess (6 tables, 3.5 deviations each); others have."""
    records = made(20_000, 2)
    cliques = [c for size in (1, 2) for c in itertools.combinations("abc", size)]
    data = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(3))
    release = data.measure(cliques, 1.0)
    true = compare(release, records)
    assert (true["excess"].abs() < 3.5 * 2).all()  # squares of Laplace noise vary more than those of Gaussian noise
    assert true["error"].to_numpy() == pytest.approx(true["noise"].to_numpy(), rel=1.5)
    wrong = compare(release, made(20_000, 4, shift=0.2))
    assert wrong.index[0] == ("a", "b")
    assert wrong["excess"].iloc[0] > 50


def test_a_model_is_compared_by_its_marginals():
    records = made(5000, 5)
    data = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(5.0, 1e-6), noise=dp.SimulatedNoise(0))
    estimator = dp.PairwiseMixture(5.0, 1e-6, components=8, members=2).fit(data)
    found = compare(estimator.release_, estimator.network_)
    assert (found["excess"] < 5).all()
    assert compare(records, estimator.network_, SCHEMA)["error"].max() < 0.02


def test_a_model_with_other_states_is_no_model_of_the_release():
    """The same records in another order of states: a comparison by places would find them far apart."""
    records = made(500, 6)[["a"]]
    one, other = (dp.Schema({"a": states}) for states in (["x", "y"], ["y", "x"]))
    network = dp.PairwiseMixture(5.0, 1e-6, other, components=2, members=1).fit(records).network_
    with pytest.raises(dp.SchemaError, match="'a' has other states"):
        compare(records, network, one)


def test_triples_show_what_pairs_hide():
    """An exclusive or of two fair coins is independent of each, and certain given both."""
    draw = np.random.default_rng(7)
    coins = draw.integers(2, size=(4000, 3))
    names, schema = list("abc"), dp.Schema(dict.fromkeys("abc", (0, 1)))
    exclusive = pd.DataFrame(np.column_stack([coins[:, :2], coins[:, 0] ^ coins[:, 1]]), columns=names)
    found = compare(exclusive, pd.DataFrame(coins, columns=names), schema, sizes=(1, 2, 3))
    assert found.index[0] == ("a", "b", "c")
    assert found["error"].iloc[0] == pytest.approx(0.5, abs=0.03)
    assert found["error"].iloc[1:].max() < 0.03
    assert len(compare(exclusive, pd.DataFrame(coins, columns=names), schema, sizes=[3])) == 1


def test_bins_are_read_as_numbers_and_as_labels():
    """The same records, as numbers and as labels of bins; missing and other values have states."""
    schema = dp.Schema({"c": dp.Bins([0, 1, 2, 5]), "d": ["x", "y"]}, missing={"c": "unknown"}, other={"c": "rest"})
    numbers = pd.DataFrame({"c": [0.5, 1.5, 4.0, np.nan, 9.0, 9.0], "d": list("xyxyxy")})
    labels = numbers.assign(
        c=pd.Categorical(["0_to_1", "1_to_2", "2_to_5", "unknown", "rest", "rest"], schema.states["c"])
    )
    for one, other in ((numbers, labels), (labels, numbers)):
        assert (compare(one, other, schema)["error"] == 0).all()


def test_predictions_learned_from_synthetic_records_are_set_beside_those_from_real_ones():
    train, test = made(3000, 8), made(3000, 9)
    turned = train.assign(a=train["a"].map({"x": "y", "y": "x"}))
    same = compare_prediction(train, train, test, "a", SCHEMA)
    assert same.attrs["guarantee"].startswith("NOT PRIVATE")
    for name in ("logistic regression", "boosting"):
        assert same.loc[(name, "records")].equals(same.loc[(name, "synthetic")])
    lost = compare_prediction(train, turned, test, "a", SCHEMA)
    rule = (test["b"] == "y") == (test["a"] == "y")  # b follows a in two thirds of the records and more
    assert lost.loc[("logistic regression", "records"), "accuracy"] == pytest.approx(rule.mean(), abs=0.02)
    assert lost.loc[("logistic regression", "records"), "area"] > 0.75
    for score in ("area", "accuracy"):
        right, wrong = (lost.loc[("logistic regression", source), score] for source in ("records", "synthetic"))
        assert wrong == pytest.approx(1 - right)
    assert lost.loc[("commonest state", "records"), "area"] == 0.5
    assert lost.loc[("commonest state", "records"), "accuracy"] == (test["a"] == "x").mean()


def test_states_that_synthetic_records_or_tests_lack_are_no_obstacle():
    train, test = made(300, 8), made(300, 9)
    several = compare_prediction(train, train[train["b"] != "z"], test, "b", SCHEMA)
    assert several["area"].between(0.3, 1).all()
    one = compare_prediction(train, train.assign(a="x"), test, "a", SCHEMA)
    assert one.loc[("boosting", "synthetic"), "accuracy"] == (test["a"] == "x").mean()
    assert compare_prediction(train, train, test.assign(a="x"), "a", SCHEMA)["area"].isna().all()
