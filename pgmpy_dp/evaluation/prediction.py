"""A fitted network is judged by how well it predicts one variable from others."""

from __future__ import annotations

from typing import Any

import numpy as np
from pgmpy.base import DAG
from pgmpy.models import LinearGaussianBayesianNetwork

from pgmpy_dp.fitting.factors import log_linear
from pgmpy_dp.records.frames import encode
from pgmpy_dp.schema import Schema


def mean_squared_error(network: LinearGaussianBayesianNetwork, records: Any, variable: str) -> float:
    """Compute the mean squared difference between a variable and its prediction by the regression on its parents.

    Parameters
    ----------
    network : LinearGaussianBayesianNetwork
        With CPDs.
    records : data frame
        Public, or kept by the caller: the mean is computed from them exactly.
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
    """Return the share of records whose value of a variable is the most probable one given all their other values.

    With posterior means as CPDs, those of `PrivateBayesianEstimator`, that is the decision of the posterior predictive
    distribution: rows are independent under the posterior, so the expected product over a record's rows is the product
    of their means.

    Parameters
    ----------
    network : DiscreteBayesianNetwork or NaiveBayes
        With CPDs.
    records : data frame
        Public, or kept by the caller: the share is computed from them exactly.
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
    layout, potentials, states = log_linear(network)
    schema = Schema(states)
    schema.require([(variable,)])
    codes = encode(records, schema, schema.variables)
    scores = np.zeros((len(codes[variable]), schema.cardinality(variable)))
    for scope, table in layout.tables(potentials).items():
        if variable in scope:
            columns = [slice(None) if v == variable else codes[v].astype(np.intp) for v in scope]
            rest = [v for v in scope if v != variable]
            moved = np.moveaxis(table, scope.index(variable), -1)
            scores += moved[tuple(column for column, v in zip(columns, scope, strict=True) if v in rest)]
    return float((scores.argmax(axis=1) == codes[variable]).mean())
