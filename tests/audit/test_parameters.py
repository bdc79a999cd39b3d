"""Estimators made with models or records in the place of parameters: nothing is charged or shown.

All public estimators are walked, so that a new one is covered.
"""

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from gate import texts_of
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork

import pgmpy_dp as dp

SECRET = "7654321"
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
