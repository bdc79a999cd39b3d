"""Evaluation of fitted networks and synthetic records by the prediction of one variable from the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pgmpy.base import DAG
from pgmpy.models import LinearGaussianBayesianNetwork
from threadpoolctl import threadpool_limits

from pgmpy_dp.inference.trees.conditioning import TreeDistribution
from pgmpy_dp.observed.factors import log_linear
from pgmpy_dp.records.frames import encode, labelled
from pgmpy_dp.records.gate import read_table
from pgmpy_dp.schema import Schema


def mean_squared_error(network: LinearGaussianBayesianNetwork, records: Any, variable: str) -> float:
    """Compute the mean squared error of predicting a variable by the regression on its parents.

    Parameters
    ----------
    network : LinearGaussianBayesianNetwork
        With CPDs.
    records : data frame
        Public records, unless the result stays with their owner: it is computed from them exactly.
    variable : str

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.factors.continuous import LinearGaussianCPD
    >>> network = LinearGaussianBayesianNetwork([("x", "y")])
    >>> network.add_cpds(LinearGaussianCPD("x", [0.0], 1.0), LinearGaussianCPD("y", [1.0, 2.0], 1.0, ["x"]))
    >>> mean_squared_error(network, pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 4.0]}), "y")
    0.5
    """
    cpd = network.get_cpds(variable)
    if cpd is None:
        raise ValueError(f"The network has no CPD for {variable!r}: fit it first.")
    y, *x = (np.asarray(records[name], dtype=np.float64) for name in (variable, *cpd.evidence))
    predicted = sum(
        (slope * column for slope, column in zip(cpd.beta[1:], x, strict=True)), np.full(y.shape, cpd.beta[0])
    )
    return float(((y - predicted) ** 2).mean())


def prediction_accuracy(network: DAG, records: Any, variable: str) -> float:
    """Compute the share of records in which a variable has its most probable state given all other variables.

    If the CPDs are posterior means, such as those from `PrivateBayesianEstimator`, the prediction is the mode of the
    posterior predictive distribution: CPD rows are independent under the posterior, so the expected product of a
    record's rows is the product of their means.

    Parameters
    ----------
    network : DiscreteBayesianNetwork or NaiveBayes
        With CPDs.
    records : data frame
        Public records, unless the result stays with their owner: it is computed from them exactly.
    variable : str

    Examples
    --------
    >>> import pandas as pd
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> network = DiscreteBayesianNetwork([("y", "x")])
    >>> network.add_cpds(TabularCPD("y", 2, [[0.5], [0.5]]), TabularCPD("x", 2, [[0.9, 0.2], [0.1, 0.8]], ["y"], [2]))
    >>> prediction_accuracy(network, pd.DataFrame({"y": [0, 1, 1], "x": [0, 1, 0]}), "y").__round__(3)
    0.667
    """
    layout, logs, states = log_linear(network)
    schema = Schema(states)
    schema.require([(variable,)])
    codes = encode(records, schema, schema.variables)
    chances = TreeDistribution(layout, logs).given_others(codes, variable, np.arange(len(codes[variable])))
    return float((chances.argmax(axis=1) == codes[variable]).mean())


def compare_prediction(train: Any, synthetic: Any, test: Any, target: str, schema: Schema) -> pd.DataFrame:
    """Compare predictions by classifiers trained on synthetic records and on the records themselves.

    NOT PRIVATE: the results are computed from the records and are for their owner only.

    Parameters
    ----------
    train : data frame or path
        The records from which the synthetic ones were made.
    synthetic : data frame or path
        A path of a .csv or .parquet file, as ``pgmpy-dp synthesize`` writes it.
    test : data frame or path
        Records that are not in `train`, on which all classifiers are tested.
    target : str
        Variable to predict from all others in the schema.
    schema : Schema
        All records are encoded in its states, so that binning costs both sides the same information.

    Returns
    -------
    pandas.DataFrame
        One row per classifier and source of its training records.

        - accuracy: share of test records predicted correctly.
        - area: area under the ROC curve of each state against the others, averaged with the states' shares as weights.

        `attrs["guarantee"]` states that this is not private.

    Notes
    -----
    The classifiers are scikit-learn's logistic regression and gradient boosting with default settings, and the most
    common state as the baseline.

    Examples
    --------
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> found = compare_prediction(records, records.head(400), records, "lung", schema)
    >>> found.loc["logistic regression"].round(3)
                  accuracy   area
    learned from
    records           0.75  0.833
    synthetic         0.75  0.833
    """
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    schema.require([(target,)])
    others = [variable for variable in schema.variables if variable != target]

    def read(records: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        codes, _ = read_table(records, labelled(records, schema), None)
        return np.stack([codes[variable] for variable in others], axis=1), codes[target]

    asked, truth = read(test)
    rows = {}
    for source, records in {"records": train, "synthetic": synthetic}.items():
        features, states = read(records)
        for name, model in {
            "commonest state": DummyClassifier(),
            "logistic regression": make_pipeline(
                OneHotEncoder(categories=[np.arange(schema.cardinality(v)) for v in others]),
                LogisticRegression(max_iter=300),
            ),
            "boosting": HistGradientBoostingClassifier(early_stopping=False, random_state=0),
        }.items():
            with threadpool_limits(1):  # boosting's threads wait for each other longer than they work
                result = (model if np.ptp(states) else DummyClassifier()).fit(features, states)
                probabilities = np.zeros((len(truth), schema.cardinality(target)))
                probabilities[:, result.classes_] = result.predict_proba(asked)
            rows[name, source] = {
                "accuracy": float((probabilities.argmax(axis=1) == truth).mean()),
                "area": _area(truth, probabilities),
            }
    frame = pd.DataFrame.from_dict(rows, orient="index").sort_index(level=0, sort_remaining=False)
    frame.index.names = ["classifier", "learned from"]
    frame.attrs["guarantee"] = "NOT PRIVATE: computed from the records"
    return frame


def _area(truth: NDArray[Any], probabilities: NDArray[Any]) -> float:
    """Average the areas with the states' shares as weights; a state of all records or of none has no area."""
    from sklearn.metrics import roc_auc_score

    shares = np.bincount(truth, minlength=probabilities.shape[1]) / max(len(truth), 1)
    present = np.flatnonzero((shares > 0) & (shares < 1))
    areas = [roc_auc_score(truth == state, probabilities[:, state]) for state in present]
    return float(np.average(areas, weights=shares[present])) if areas else float("nan")
