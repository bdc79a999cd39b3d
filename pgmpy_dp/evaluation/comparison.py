"""Comparison of synthetic records or a model with a release or records, and estimates from several synthetic sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.data import exact_marginals
from pgmpy_dp.errors import SchemaError, warn
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.models.fitted import check_interval
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.privacy.checks import number
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
        warn(f"The network lacks {', '.join(map(repr, lacking))}: only tables of its own variables are compared.")
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


def combine(
    estimates: Any, variances: Any, *, n: float, n_synthetic: float, interval: float = 0.95, null: float = 0.0
) -> pd.DataFrame:
    """Combine estimates from synthetic data sets, each drawn from a different draw of the posterior.

    The variance of an estimate from one synthetic data set ignores the privacy noise and the sampling from a model. The
    spread of estimates between data sets, drawn by ``network.simulate(n_synthetic, data_sets=20)``, shows both.

    Parameters
    ----------
    estimates : sequence of float, of arrays or of Series, one per data set
        Estimates of the same quantities, such as the coefficients of a regression.
    variances : as `estimates`
        Squared standard errors from each data set.
    n : float
        Number of records; if it is private, its estimate ``release.total``.
    n_synthetic : float
        Number of records of each synthetic data set.
    interval : float in (0, 1)
        Confidence level of the intervals.
    null : float
        Value under the null hypothesis of `p_value`.

    Returns
    -------
    DataFrame
        One row per quantity, with the columns `estimate`, `standard_error`, `degrees_of_freedom`, `lower`, `upper`
        and `p_value` (two-sided, by Student's t).

    Notes
    -----
    With the mean q and the variance b of m estimates, and the mean u of their variances, the variance of q is
    T = (1 + 1/m) b - u, with (m - 1) (1 - u / ((1 + 1/m) b))^2 degrees of freedom. Where T is not positive it is
    replaced by u n_synthetic / n, the variance that n records would give without noise, with m - 1 degrees of freedom.
    With many more synthetic than private records, u is small, T is stable and intervals are short.

    The intervals assume that the network's structure and the analyst's model are correct.

    Source: Raghunathan, Reiter and Rubin (2003), "Multiple imputation for statistical disclosure limitation"; Räisä,
    Jälkö, Kaski and Honkela (2023), "Noise-aware statistical inference with differentially private synthetic data".

    Examples
    --------
    >>> found = combine([0.52, 0.47, 0.55, 0.49], [1e-4] * 4, n=1000, n_synthetic=5000)
    >>> found.round(3).loc[0, ["estimate", "standard_error", "lower", "upper"]].tolist()
    [0.508, 0.038, 0.377, 0.638]
    """
    from scipy.stats import t as student

    values, squares = _table("estimates", estimates), _table("variances", variances)
    if values.shape != squares.shape or len(values) < 2:
        raise ValueError("Give an estimate and a variance for each of at least two data sets.")
    if (squares < 0).to_numpy().any():
        raise ValueError("variances must not be negative: they are squared standard errors.")
    for name, value in (("n", n), ("n_synthetic", n_synthetic)):
        number(above=0.0)(name, value)
    check_interval(interval)
    count, within = len(values), squares.mean().to_numpy()
    between = (1.0 + 1.0 / count) * values.var(ddof=1).to_numpy()
    total = between - within
    valid = total > 0
    total = np.where(valid, total, within * n_synthetic / n)
    freedom = (count - 1) * np.where(valid, 1.0 - within / np.where(valid, between, 1.0), 1.0) ** 2
    estimate, error = values.mean().to_numpy(), np.sqrt(total)
    half = student.ppf(0.5 + interval / 2, freedom) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.abs(estimate - null) / error
    columns = {
        "estimate": estimate,
        "standard_error": error,
        "degrees_of_freedom": freedom,
        "lower": estimate - half,
        "upper": estimate + half,
        "p_value": 2.0 * student.sf(beyond, freedom),
    }
    return pd.DataFrame(columns, index=values.columns)


def _table(name: str, values: Any) -> pd.DataFrame:
    """Tabulate finite numbers, one row per data set and one column per quantity."""
    parts = [values.loc[label] for label in values.index] if isinstance(values, pd.DataFrame) else list(values)
    rows = [part if isinstance(part, pd.Series) else np.atleast_1d(np.asarray(part, dtype=float)) for part in parts]
    if len({np.shape(row) for row in rows}) > 1 or any(np.ndim(row) != 1 for row in rows):
        raise ValueError(f"{name} must hold the same quantities for each data set.")
    table = pd.DataFrame(rows).reset_index(drop=True).astype(float)
    if not np.isfinite(table.to_numpy()).all():
        raise ValueError(f"{name} must be finite numbers, one a quantity and data set.")
    return table
