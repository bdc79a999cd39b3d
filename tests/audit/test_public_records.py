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


FITTED_AS = {  # fits of conftest.py by the class of what they give, where it has another name
    "PrivateBayesianNetwork": "PrivateStructureSearch",
    "PrivateHouseholdNetwork": "HouseholdMixture",
    "PrivateMarkovNetwork": "CollectiveEM undirected",
    "PrivateMixtureNetwork": "PairwiseMixture",
}


@pytest.mark.parametrize(("name", "methods"), OF_PUBLIC_RECORDS.items(), ids=OF_PUBLIC_RECORDS)
def test_nothing_is_said_of_single_private_records(name, methods, fits):
    fit = next(fit for fit in fits if fit.name == FITTED_AS.get(name, name))
    estimator, network = fit(fit.pair()[1], 1.0)
    results = (estimator, network, getattr(estimator, "network_", None))
    fitted = next(result for result in results if isinstance(result, PUBLIC[name]))
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
