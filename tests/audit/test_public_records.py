"""What is said of single records is said of public ones: no method gives it away of those that a fit was handed.

All public classes with a `fit` or with a method that takes records are walked, so that a new one is covered.
"""

import inspect

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline

import pgmpy_dp as dp

FRAME = pd.DataFrame({"a": ["x", "y"], "b": ["x", "y"]})
SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]})
PUBLIC = {
    name: kind
    for room in (dp, dp.papers)
    for name, kind in ((name, getattr(room, name)) for name in room.__all__)
    if inspect.isclass(kind)
}

# Arguments through which methods other than `fit` take records.
RECORDS = {"X", "y", "H", "data", "counts", "frame", "records", "documents"}
# What is asked of public records, one by one or all together; `fit` gives none of it of private ones.
OF_MODELS = {"log_likelihood", "predict", "predict_probability"}
OF_PUBLIC_RECORDS = {
    "PrivateBayesianNetwork": OF_MODELS,
    "PrivateHouseholdNetwork": OF_MODELS,
    "PrivateLDA": {"transform", "perplexity", "score"},
    "PrivateLinearRegression": {"predict", "score"},
    "PrivateLogisticRegression": {"predict", "predict_proba", "predict_log_proba", "decision_function", "score"},
    "PrivateMarkovNetwork": OF_MODELS,
    "PrivateMixtureNetwork": OF_MODELS,
    "PrivateSigmoidBeliefNetwork": {"transform", "inverse_transform", "score"},
    "PrivateStructureSearch": {"score"},
}
PAID = {name: {"measure_misfit"} for name in ("PrivateBayesianNetwork", "PrivateMarkovNetwork")}  # a data set's ledger
PAID |= {name: {"read"} for name, kind in PUBLIC.items() if hasattr(kind, "draw")}  # mechanisms, read by the wall
REFUSED = {"fit_transform", "fit_update", "edge_strength"}


def data_set():
    return dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(1.0, 1e-6))


def handed_records(kind):
    """Methods that take records, but for `fit`."""
    found = set()
    for name in (name for name in dir(kind) if not name.startswith(("_", "set_")) and name != "fit"):
        method = getattr(kind, name)
        if inspect.isfunction(method) or inspect.ismethod(method):
            handed = inspect.signature(method).parameters
            taking = {key for key in RECORDS & handed.keys() if "float" not in str(handed[key].annotation)}  # a guess
            if name in REFUSED or taking:
                found.add(name)
    return found


FITTED = {
    name: kind
    for name, kind in PUBLIC.items()
    if hasattr(kind, "fit") or (kind is not dp.SimulatedNoise and handed_records(kind))  # which adds noise to counts
}


@pytest.mark.parametrize(("name", "kind"), FITTED.items(), ids=FITTED)
def test_methods_that_take_records(name, kind):
    """Every one is known, and what it says of single records it says of public ones only."""
    taking = handed_records(kind)
    assert taking - REFUSED == OF_PUBLIC_RECORDS.get(name, set()) | PAID.get(name, set())
    for method in taking & REFUSED:
        with pytest.raises(TypeError, match=r"[Ff]it|DAG"):
            getattr(kind(), method)(FRAME)


FITS = {
    "PrivateLDA": lambda: dp.PrivateLDA(2, 1.0, 1e-6, steps=1).fit(np.ones((3, 4), dtype=int)),
    "PrivateLogisticRegression": lambda: dp.PrivateLogisticRegression(
        1.0, 1e-6, bounds=(0, 1), classes=[0, 1], steps=1
    ).fit(np.ones((3, 2)), [0, 1, 1]),
    "PrivateLinearRegression": lambda: dp.papers.PrivateLinearRegression(
        1.0, 1e-6, bounds=(0, 1), target_bounds=(0, 1), steps=1
    ).fit(np.ones((3, 2)), [0, 1, 1]),
    "PrivateSigmoidBeliefNetwork": lambda: dp.papers.PrivateSigmoidBeliefNetwork(2, 1.0, 1e-6, steps=1).fit(
        np.ones((3, 2), dtype=int)
    ),
    "PrivateMarkovNetwork": lambda: dp.PrivateMarkovNetwork([("a", "b")]).fit(release()),
    "PrivateMixtureNetwork": lambda: dp.PairwiseMixture(components=2, members=1).fit(release()).network_,
    "PrivateBayesianNetwork": lambda: dp.PrivateBayesianNetwork([("a", "b")]).fit(release()),
    "PrivateHouseholdNetwork": lambda: households(),
    "PrivateStructureSearch": lambda: dp.PrivateStructureSearch(1.0, 1e-6, state_names=SCHEMA).fit(data_set()),
}


def households():
    homes = pd.DataFrame({"id": [1, 2, 3, 4], "a": ["x", "y"] * 2})
    people = pd.DataFrame({"id": [1, 2, 3, 4, 4], "b": ["x", "y", "x", "y", "x"]})
    schema = dp.HouseholdSchema(SCHEMA.select(["a"]), SCHEMA.select(["b"]), "id", 2)
    data = dp.PrivateHouseholds(homes, people, schema, dp.PrivacyBudget(9.0, 0.1), noise=dp.SimulatedNoise(0))
    return dp.HouseholdMixture(9.0, 0.1, components=2, members=1).fit(data).network_


def release():
    return data_set().measure([("a", "b")], epsilon=0.5)


@pytest.mark.parametrize(("name", "methods"), OF_PUBLIC_RECORDS.items(), ids=OF_PUBLIC_RECORDS)
def test_nothing_is_said_of_single_private_records(name, methods):
    fitted = FITS[name]()
    documents = dp.PrivateDocuments(np.ones((3, 4), dtype=int), list("abcd"), dp.PrivacyBudget(1.0), length=5)
    for method in methods:
        for private in (data_set(), documents):
            with pytest.raises((TypeError, ValueError, AttributeError)):
                getattr(fitted, method)(*[private] * (2 if "y" in handed(fitted, method) else 1))


def handed(fitted, method):
    return inspect.signature(getattr(fitted, method)).parameters


@pytest.mark.parametrize("kind", [dp.papers.PrivateSigmoidBeliefNetwork, dp.PrivateLDA])
def test_pipelines_do_not_transform_what_they_are_fitted_to(kind):
    with pytest.raises(TypeError, match="Call fit with private records, then transform with public ones"):
        make_pipeline(kind(2, 1.0, 1e-6), kind(2, 1.0, 1e-6)).fit(np.ones((10, 4), dtype=int))
