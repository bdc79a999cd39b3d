"""Comparison of synthetic records or a model with a release or with records, and the divergence between networks."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.data import exact_marginals
from pgmpy_dp.errors import SchemaError, callers_level
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.records.frames import labelled
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.schema import Clique, Schema


def compare(
    reference: Any, synthetic: Any, schema: Schema | None = None, sizes: Iterable[int] = (1, 2)
) -> pd.DataFrame:
    """Compare synthetic records or a model with a release, or with the records themselves.

    Parameters
    ----------
    reference : release, or records
        A comparison with a release is post-processing, so its result may be published. A comparison with records is NOT
        PRIVATE and for their owner only.
    synthetic : records, or a network with a method `marginal`
        Binned variables of a frame may be numbers, or bin labels as returned by `simulate`. Records may be a path,
        such as that of a file from ``pgmpy-dp synthesize``, in the format of the schema.
    schema : Schema, optional
        Schema of the records; not needed for a release, which has its own.
    sizes : iterable of int
        Numbers of variables in the compared tables of records; ``(1, 2, 3)`` includes all triples. Ignored for a
        release, whose own tables are compared.

    Returns
    -------
    pandas.DataFrame
        One row per table, the worst first.

        - error: total variation distance between the reference's and the synthetic shares, in [0, 1] up to noise.
        - noise: expected `error` from the release's noise alone; 0 for records.
        - excess: excess of the squared error over its expectation under noise alone, in standard deviations. A value
          above about 3 shows a lack of fit. NaN for records.

        `attrs["guarantee"]` is the guarantee of the reference.

    Raises
    ------
    SchemaError
        If records are given without a schema, or do not agree with it.
    ValueError
        If one side has no records.
    TypeError
        If the reference is a release without tables.

    Warns
    -----
    UserWarning
        If a model lacks variables of the reference, whose tables are then left out.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> found = compare(records, pd.DataFrame({"smoke": ["yes", "no"], "lung": ["yes", "no"]}), schema)
    >>> found["error"].round(3).to_dict()
    {('smoke', 'lung'): 0.25, ('lung',): 0.25, ('smoke',): 0.0}
    """
    if not isinstance(reference, Release):
        if schema is None:
            raise SchemaError("Records are compared by a schema: compare(records, synthetic, schema).")
        cliques = [c for size in sizes for c in itertools.combinations(schema.variables, size)]
        reference = _counted(reference, schema, cliques)
    else:
        if not reference.cliques:
            raise TypeError(f"{type(reference).__name__} hold no tables to compare.")
        schema = reference.schema
    own = None
    if not hasattr(synthetic, "marginal"):
        own = _counted(synthetic, schema, reference.cliques)
    modelled = getattr(synthetic, "schema_", None)
    known = reference.schema.states if modelled is None else modelled.states
    lacking = [variable for variable in reference.variables if variable not in known]
    for variable in reference.variables:
        if known.get(variable, reference.schema.states[variable]) != reference.schema.states[variable]:
            raise SchemaError(f"Variable {variable!r} has other states in the network, or in another order.")
    if lacking:
        warnings.warn(
            f"The network lacks {', '.join(map(repr, lacking))}: only tables of its own variables are compared.",
            stacklevel=callers_level(),
        )
    total, rows = reference.total, dict[Clique, dict[str, float]]()
    whole = 1.0 if own is None else own.total
    for clique, table in reference.tables.items():
        if set(clique) & set(lacking):
            continue
        shares = synthetic.marginal(list(clique)) if own is None else own.tables[clique] / whole
        apart, deviation = table - total * np.asarray(shares), reference.noise(clique)[1]
        squares, dimensions = reference.squares(clique, apart)
        rows[clique] = {
            "error": float(np.abs(apart).sum()) / (2.0 * total),
            "noise": table.size * deviation * math.sqrt(2.0 / math.pi) / (2.0 * total),
            "excess": (squares - dimensions) / math.sqrt(2.0 * dimensions),
        }
    index = pd.Index(list(rows), tupleize_cols=False, name="variables")
    frame = pd.DataFrame(list(rows.values()), index=index, columns=["error", "noise", "excess"])
    order = "error" if reference.guarantee.mechanism == "none" else "excess"
    frame = frame.sort_values(order, ascending=False, kind="stable")
    frame.attrs["guarantee"] = str(reference.guarantee)
    return frame


def _counted(records: Any, schema: Schema, cliques: Sequence[Clique]) -> NoisyMarginals:
    """Count records; refuse an empty set."""
    result = exact_marginals(records, labelled(records, schema), cliques)
    if not any(table.any() for table in result.tables.values()):
        raise ValueError("There are no records to compare: one side has none.")
    return result


def kl_divergence(true: Network, fitted: Network) -> float:
    """Compute the Kullback-Leibler divergence KL(true || fitted) of the joint distributions, in nats, exactly.

    Parameters
    ----------
    true, fitted : DiscreteBayesianNetwork or DiscreteMarkovNetwork
        Over the same variables and states; the structures may differ.

    Returns
    -------
    float
        Infinite if the fitted network gives probability 0 to a joint state with positive true probability.

    Raises
    ------
    SchemaError
        If variables or states differ.
    TreeTooLargeError
        If a junction tree would not fit in memory.

    Notes
    -----
    The divergence is E_p[log p] - E_p[log q]. Both logarithms are sums over tables, so the clique marginals of p
    suffice. They are computed in one junction tree of p that also covers the scopes of q.

    Examples
    --------
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> networks = []
    >>> for share in (0.5, 0.25):
    ...     network = DiscreteBayesianNetwork()
    ...     network.add_node("a")
    ...     network.add_cpds(TabularCPD("a", 2, [[share], [1 - share]]))
    ...     networks.append(network)
    >>> round(kl_divergence(*networks), 6)
    0.143841
    """
    p_layout, p_logs, states = log_linear(true)
    q_layout, q_logs, _ = log_linear(fitted, states)
    for variable in states:
        if variable not in q_layout.cardinalities:
            raise SchemaError(f"Variable {variable!r} is in one of the two networks only.")
    tree = JunctionTree.build(p_layout.cardinalities, p_layout.scopes, q_layout.scopes, MAX_TABLE_CELLS)
    calibration = tree.calibrate(p_logs)
    q_tree = JunctionTree.build(q_layout.cardinalities, q_layout.scopes, max_cells=MAX_TABLE_CELLS)
    q_partition = q_tree.calibrate(q_logs).log_partition
    q_marginals = q_layout.flatten(tree.marginal(calibration, scope) for scope in q_layout.scopes)
    own = _expectation(calibration.marginals, p_logs) - calibration.log_partition
    return own - (_expectation(q_marginals, q_logs) - q_partition)


def _expectation(probabilities: Vector, values: Vector) -> float:
    positive = probabilities > 0
    return float(np.sum(probabilities[positive] * values[positive]))
