"""Estimators behave as users of scikit-learn and pgmpy expect, or say why they do not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import pgmpy_dp as dp

PLAN = {"delta": 1e-3, "steps": 4}
NUMBERS = np.array([[0, 1, 1], [1, 0, 0]] * 50)


class Declaring(dp.PrivateLogisticRegression):
    """The checks hand in records of many kinds, and declare nothing: here each fit declares what they hold."""

    def fit(self, X, y=None):
        before = self.classes
        self.classes = np.unique(np.asarray(y)).tolist()
        try:
            return super().fit(X, y)
        finally:
            self.classes = before


class Counting(dp.PrivateLDA):
    """The checks hand in any numbers: here they become counts of words."""

    def fit(self, counts, y=None):
        return super().fit(whole(counts))

    def transform(self, counts):
        return super().transform(whole(counts))

    def score(self, counts, y=None):
        return super().score(whole(counts))


class Binary(dp.papers.PrivateSigmoidBeliefNetwork):
    """Here they become zeros and ones."""

    def fit(self, X, y=None):
        return super().fit(positive(X))

    def transform(self, X):
        return super().transform(positive(X))

    def score(self, X, y=None):
        return super().score(positive(X))


def whole(X):
    return sparse.csr_array(X).rint().astype(int) if sparse.issparse(X) else np.round(X).astype(int)


def positive(X):
    return (np.asarray(X) > 0).astype(float)


# Why checks of scikit-learn fail that must.
KEPT_BACK = "messages tell neither the number of records nor what they hold, which is private"
NOISE = "there is no seed for private noise: two fits differ"
OWN = "the same records would be private and public: fit_transform refuses"
DECLARED = "what the records may hold is declared, not found out"
SHARED = {
    "check_complex_data": KEPT_BACK,
    "check_dtype_object": KEPT_BACK,
    "check_estimators_empty_data_messages": KEPT_BACK,
    "check_fit1d": KEPT_BACK,
    "check_fit_idempotent": NOISE,
}
TRANSFORMER = SHARED | {
    "check_transformer_data_not_an_array": OWN,
    "check_fit_score_takes_y": OWN,
    "check_pipeline_consistency": OWN,
    "check_transformer_general": OWN,
    "check_transformer_preserve_dtypes": OWN,
    "check_estimators_nan_inf": "the subclass of this test makes numbers of everything",
}
EXPECTED = {
    "classifier": SHARED
    | {
        "check_classifier_data_not_an_array": KEPT_BACK,
        "check_classifiers_regression_target": DECLARED,
        "check_classifiers_train": "a private fit of so few records is not accurate",
        "check_estimator_sparse_array": KEPT_BACK,
        "check_estimator_sparse_matrix": KEPT_BACK,
        "check_estimator_sparse_tag": KEPT_BACK,
        "check_fit2d_1sample": KEPT_BACK,
        "check_requires_y_none": DECLARED,
        "check_supervised_y_2d": KEPT_BACK,
    },
    "regressor": SHARED
    | {
        "check_estimator_sparse_array": KEPT_BACK,
        "check_estimator_sparse_matrix": KEPT_BACK,
        "check_estimator_sparse_tag": KEPT_BACK,
        "check_regressor_data_not_an_array": KEPT_BACK,
        "check_regressors_int": NOISE,
        "check_regressors_train": "a private fit of so few records is not accurate",
        "check_requires_y_none": DECLARED,
        "check_supervised_y_2d": KEPT_BACK,
    },
    "topics": TRANSFORMER | {"check_positive_only_tag_during_fit": KEPT_BACK},
    "hidden causes": TRANSFORMER
    | {
        "check_estimator_sparse_array": KEPT_BACK,
        "check_estimator_sparse_matrix": KEPT_BACK,
        "check_estimator_sparse_tag": KEPT_BACK,
    },
}
CHECKED = {
    "classifier": lambda: Declaring(5.0, bounds=(-100.0, 100.0), **PLAN),
    "regressor": lambda: dp.papers.PrivateLinearRegression(5.0, bounds=(-9, 9), target_bounds=(-99, 99), **PLAN),
    "topics": lambda: Counting(2, 5.0, sampling_rate=1.0, document_length=10, **PLAN),
    "hidden causes": lambda: Binary(2, 5.0, **PLAN),
}


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(name):
    """Run all of scikit-learn's checks: what fails, fails for the reason that is written above."""
    found = check_estimator(CHECKED[name](), on_skip=None, on_fail=None)
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert set(failed) ^ set(EXPECTED[name]) == set(), failed
    assert len(found) > 40


BY_PAPERS = [dp.papers.PrivateLinearRegression, dp.papers.PrivateSigmoidBeliefNetwork]
FITTED = {
    "classifier": lambda records=NUMBERS: dp.PrivateLogisticRegression(5.0, **PLAN, bounds=(0, 1), classes=[0, 1]).fit(
        records, NUMBERS[:, 0]
    ),
    "topics": lambda records=NUMBERS: dp.PrivateLDA(2, 5.0, **PLAN).fit(records),
    "hidden causes": lambda records=NUMBERS: dp.papers.PrivateSigmoidBeliefNetwork(2, 5.0, **PLAN).fit(records),
}


@pytest.mark.parametrize("kind", [dp.PrivateLogisticRegression, dp.PrivateLDA, *BY_PAPERS])
def test_what_is_not_fitted_says_so(kind):
    for method in {"predict", "predict_proba", "decision_function", "transform", "score"} & set(dir(kind)):
        with pytest.raises(NotFittedError):
            getattr(kind(), method)(
                *[NUMBERS, NUMBERS[:, 0]][: 2 if method == "score" and "predict" in dir(kind) else 1]
            )


@pytest.mark.parametrize("name", ["topics", "hidden causes"])
def test_transformers_name_their_columns(name):
    fitted = FITTED[name]().set_output(transform="pandas")
    frame = fitted.transform(NUMBERS[:4])
    assert list(frame) == list(fitted.get_feature_names_out())
    assert frame.shape == (4, 2)
    assert isinstance(fitted.score(NUMBERS[:4]), float)


@pytest.mark.parametrize("name", ["classifier", "hidden causes"])
def test_names_of_columns(name):
    named = FITTED[name](pd.DataFrame(NUMBERS, columns=["a", "b", "c"]))
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(FITTED[name](pd.DataFrame(NUMBERS)), "feature_names_in_")  # columns that are numbers
    with pytest.raises(dp.SchemaError, match="Two features have the same name"):
        FITTED[name](pd.DataFrame(NUMBERS, columns=["a", "b", "a"]))


def test_zeros_and_ones_may_be_floats_and_truth_values():
    for records in (
        NUMBERS.astype(float),
        NUMBERS.astype(bool),
        pd.DataFrame(NUMBERS, columns=list("abc"), dtype=float),
    ):
        assert FITTED["hidden causes"](records).n_features_in_ == 3
    with pytest.raises(dp.SchemaError, match="not among its declared states"):
        FITTED["hidden causes"](NUMBERS + 0.5)


def test_decisions_agree_with_probabilities():
    fitted = FITTED["classifier"]()
    shares = fitted.predict_proba(NUMBERS[:2])
    np.testing.assert_allclose(fitted.decision_function(NUMBERS[:2]), np.log(shares[:, 1] / shares[:, 0]))


def test_a_search_says_what_it_costs_and_keeps_one_ledger():
    budget = dp.PrivacyBudget(3.5, 0.5)
    options = {**PLAN, "bounds": (0, 1), "classes": [0, 1], "steps": 1}
    model = dp.PrivateLogisticRegression(1.0, **options, budget=budget)
    with pytest.warns(UserWarning, match=r"each costs epsilon = 1.0\. They share a ledger\. Scores of held-out"):
        GridSearchCV(model, {"prior_rate": [1.0]}, cv=2).fit(NUMBERS, NUMBERS[:, 0])
    assert len(budget.history) == 3
    assert clone(model).budget is budget
    with pytest.raises(dp.BudgetExceededError):
        model.fit(NUMBERS, NUMBERS[:, 0])
    with pytest.warns(UserWarning, match="ties all to one ledger"):
        clone(dp.PrivateLogisticRegression(1.0, **options)).fit(NUMBERS, NUMBERS[:, 0])
    held = dp.PrivateFeatures(NUMBERS, NUMBERS[:, 0], bounds=(0, 1), classes=[0, 1], budget=budget)
    with pytest.raises(ValueError, match="has its own budget"):
        dp.PrivateLogisticRegression(1.0, **PLAN, budget=budget).fit(held)


def test_pgmpys_own_estimators_are_told_apart():
    schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    frame = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0))
    noisy = data.measure([("smoke", "lung")], 1.0)
    network = DiscreteBayesianNetwork([("smoke", "lung")])
    for handed in (noisy, data):
        with pytest.raises(AttributeError, match=r"estimator=dp\.AutoMLE"):
            network.fit(handed)
    markov = dp.PrivateMarkovNetwork([("smoke", "lung")]).fit(noisy)
    found = markov.predict(pd.DataFrame({"smoke": ["no", "no", "yes"]}, index=[4, 5, 6]))
    assert found["lung"][[4, 5]].tolist() == ["no", "no"]
    assert found.index.tolist() == [4, 5, 6]
    with pytest.raises(TypeError, match="public records"):
        markov.predict(data)
    with pytest.raises(ValueError, match="nothing to predict"):
        markov.predict(frame)
