"""Privacy cost of a required accuracy, before anything is measured.

The residuals of a set S of variables are the part of its table that the tables of its subsets do not determine. From
residuals of variance x_S, a cell of a requested table C is known with variance

    sum over S in C of x_S prod((n_i - 1) / n_i, i in S) prod(1 / n_i^2, i in C but not in S),

where variable i has n_i states. Residuals that are measured separately, with Gaussian noise, cost sum(p_S / x_S) in
squared sensitivity over variance, p_S = prod((n_i - 1) / n_i, i in S). The optimum over these is ResidualPlanner's
(Xiao et al. 2023); no linear measurement with Gaussian noise is cheaper.

Tables with independent noise cost more. A table of A with variance 1 / w measures the residuals of each S in A with
precision w / prod(n_i, i in A but not in S), precisions of several tables add up, and all together cost sum(w).

If the number of records is public, the residuals of the empty set are known and cost nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from types import MappingProxyType

import numpy as np
from scipy import sparse, stats
from scipy.optimize import minimize
from scipy.special import logsumexp

from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.privacy.blocks import block_price
from pgmpy_dp.privacy.checks import exact_positive, number
from pgmpy_dp.privacy.noise import table_sensitivity
from pgmpy_dp.release.coefficients import residual_epsilon
from pgmpy_dp.release.contrasts import downward_closure, varied_variables
from pgmpy_dp.schema import Clique, Schema

# The largest error is replaced by a smooth maximum, sharper in each round; the last is off by 0.1 %.
_SHARPNESS, _ITERATIONS = (10.0, 100.0, 1000.0, 10_000.0), 400
# Share of the largest precision below which tables are left out; ratio of successive scales, as in `blocks`.
_MIN_SHARE, _STEP = 1e-4, 1.1
_MAX_SETS = 200_000


@dataclass(frozen=True)
class AccuracyPlan:
    """A measurement that gives tables a required accuracy, and its price.

    Attributes
    ----------
    residuals : mapping of clique to float
        For `PrivateDataset.measure_residuals`: the standard deviation of the noise in the residuals of each set of
        variables.
    epsilon, delta : float
        Their price together.
    half_widths : mapping of clique to float
        The resulting half-width of the cells of each requested table, in records.
    least_epsilon : float
        The price of ResidualPlanner's optimum: no Gaussian measurement of marginals reaches the accuracy for less.
    cliques : tuple of tuples of str
        Tables with independent noise that reach the accuracy as well, for methods that need such tables, if they are
        combined by least squares, as fits do.
    weights : list of float
        For `PrivateDataset.measure` of them, with ``mechanism="gaussian_block"`` and ``tables_epsilon``.
    scales : mapping of clique to float
        Standard deviations of their noise.
    tables_epsilon : float
        Their price together, at the same delta.
    """

    residuals: Mapping[Clique, float]
    epsilon: float
    delta: float
    half_widths: Mapping[Clique, float]
    least_epsilon: float
    cliques: tuple[Clique, ...]
    weights: list[float]
    scales: Mapping[Clique, float]
    tables_epsilon: float


def plan_accuracy(
    schema: Schema,
    half_widths: Mapping[Clique, float],
    confidence: float = 0.95,
    delta: float = 1e-9,
    neighbours: str = "add_remove",
) -> AccuracyPlan:
    """Find the Gaussian measurement that reaches an accuracy for the least epsilon, without records.

    Parameters
    ----------
    schema : Schema
    half_widths : mapping of tuple of str to float
        For each requested table, the half-width in records within which each of its cells should be.
    confidence : float
        Probability that a cell is within its half-width.
    delta : float
    neighbours : {"add_remove", "replace_one"}

    Raises
    ------
    SchemaError
        If a table names an unknown variable, or one twice, or has more than four million cells, or a variable more
        than 4,096 states.
    ValueError
        If a number is out of range, or there are more than 200,000 sets of variables in the tables.

    Notes
    -----
    The accuracy is that of counts before a model is fitted. A fitted model is more accurate if it is correct;
    otherwise its misfit adds to the error.

    `epsilon` exceeds `least_epsilon` by about a millionth, the extra cost of noise on integer fractions of a record. If
    a record is replaced, it exceeds it by 3 to 20 %: `least_epsilon` is then that of the average replacement, and some
    replacements change more, in variables with few states. `tables_epsilon` is higher, most where variables have few
    states, since measured tables say more about their subsets than is needed.

    Examples
    --------
    >>> schema = Schema({"sex": ["f", "m"], "age": list(range(9)), "job": list(range(20))})
    >>> plan = plan_accuracy(schema, {("sex", "age"): 60, ("job",): 30}, delta=1e-6)
    >>> round(plan.epsilon, 3), round(plan.least_epsilon, 3), round(plan.tables_epsilon, 3), plan.cliques
    (0.281, 0.281, 0.284, (('job',), ('sex', 'age')))
    """
    if not isinstance(schema, Schema):
        raise TypeError(f"plan_accuracy takes a Schema, got {type(schema).__name__}: no record is needed.")
    cliques = schema.require(list(half_widths))
    number(above=0.0, maximum=1 - 1e-9)("confidence", confidence)
    wanted = [float(exact_positive("a half-width", width)) for width in half_widths.values()]
    limits = (np.array(wanted) / stats.norm.ppf((1 + confidence) / 2)) ** 2
    sizes = schema.cardinalities()
    if sum(2 ** len(clique) for clique in cliques) > _MAX_SETS:
        raise ValueError(f"The tables have more than {_MAX_SETS:,} sets of variables: ask for fewer or smaller ones.")
    if neighbours == "replace_one" and any(schema.cells(clique) == 1 for clique in cliques):
        raise ValueError("A table of one cell is the number of records, which is public: there is nothing to measure.")
    closure = downward_closure(schema, cliques)  # without variables of one state, which have no residuals
    closure = closure[1:] if neighbours == "replace_one" else closure
    order = {variable: position for position, variable in enumerate(schema.variables)}
    own = {frozenset(clique): clique for clique in cliques}
    parts = sorted({part for clique in cliques for part in _subsets(clique)}, key=lambda one: (len(one), sorted(one)))
    named = {part: own.get(part, tuple(sorted(part, key=order.__getitem__))) for part in parts}
    sets = [frozenset(subset) for subset in closure]
    errors = _errors(cliques, sets, sizes)
    shares = np.array([math.prod((sizes[v] - 1) / sizes[v] for v in one) for one in sets])
    optimum = _lowest_cost(shares, sparse.eye_array(len(sets), format="csr"), errors, limits)
    deviations = dict(zip(closure, (optimum**-0.5).tolist(), strict=True))
    varied = {part: varied_variables(schema, named[part]) for part in parts}
    residuals = {named[part]: deviations[varied[part]] for part in parts if varied[part] in deviations}
    reached = np.sqrt((errors @ (1.0 / optimum)) / limits) * np.array(wanted)
    tables = [named[part] for part in parts if part]
    entries = _matrix(tables, sets, lambda table, part: 1.0 / math.prod(sizes[v] for v in table if v not in part))
    precisions = _independent(entries.T.tocsr(), errors, limits)
    chosen = tuple(table for table, precision in zip(tables, precisions, strict=True) if precision)
    weights = precisions[precisions > 0]
    scales = weights**-0.5
    return AccuracyPlan(
        MappingProxyType(residuals),
        residual_epsilon(schema, deviations, neighbours, delta),
        delta,
        MappingProxyType(dict(zip(cliques, reached.tolist(), strict=True))),
        _gaussian_price(float(shares @ optimum), delta, neighbours),
        chosen,
        (weights / weights.sum()).tolist(),
        MappingProxyType(dict(zip(chosen, scales.tolist(), strict=True))),
        block_price(scales.tolist(), delta, neighbours),
    )


def _subsets(clique: Clique) -> Iterator[frozenset[str]]:
    return (frozenset(part) for size in range(len(clique) + 1) for part in combinations(clique, size))


def _matrix(
    tables: Sequence[Clique], sets: Sequence[frozenset[str]], entry: Callable[[Clique, frozenset[str]], float]
) -> sparse.csr_array:
    """Return a matrix with an entry for each table and each set of residuals in it."""
    position = {one: number for number, one in enumerate(sets)}
    entries = [(row, part) for row, table in enumerate(tables) for part in _subsets(table) if part in position]
    rows, columns = [row for row, _ in entries], [position[part] for _, part in entries]
    values = [entry(tables[row], part) for row, part in entries]
    return sparse.csr_array((values, (rows, columns)), shape=(len(tables), len(sets)))


def _errors(cliques: Sequence[Clique], sets: Sequence[frozenset[str]], sizes: Mapping[str, int]) -> sparse.csr_array:
    """Return the matrix that maps the variances of residuals to the variance of a cell of each table."""

    def entry(clique: Clique, part: frozenset[str]) -> float:
        return math.prod((sizes[v] - 1) / sizes[v] if v in part else sizes[v] ** -2.0 for v in clique)

    return _matrix(cliques, sets, entry)


def _independent(precisions: sparse.csr_array, errors: sparse.csr_array, limits: Vector) -> Vector:
    """Find the precisions of tables, 0 if left out; the matrix `precisions` maps them to those of residuals."""
    weights = _lowest_cost(np.ones(precisions.shape[1]), precisions, errors, limits)
    kept = np.flatnonzero(weights > _MIN_SHARE * weights.max())
    steps = np.rint(np.log(weights[kept] ** -0.5) / math.log(_STEP))
    rounded: Vector = np.zeros(len(weights))
    rounded[kept] = _STEP ** (-2.0 * steps)
    rounded *= _ratios(rounded, precisions, errors, limits).max()
    return rounded


def _ratios(weights: Vector, precisions: sparse.csr_array, errors: sparse.csr_array, limits: Vector) -> Vector:
    """Return the variances of the tables' cells divided by their limits."""
    return (errors @ (1.0 / (precisions @ weights))) / limits


def _lowest_cost(costs: Vector, precisions: sparse.csr_array, errors: sparse.csr_array, limits: Vector) -> Vector:
    """Find the weights of least cost within all limits: cost times largest error is convex in their logarithms."""

    def value(logs: Vector, sharpness: float) -> tuple[float, Vector]:
        weights = np.exp(logs)
        precision = precisions @ weights
        ratios = (errors @ (1.0 / precision)) / limits
        terms = sharpness * np.log(ratios)
        whole = float(logsumexp(terms))
        paid = costs * weights
        by_ratio = np.exp(terms - whole) / ratios / limits
        by_weight = precisions.T @ ((errors.T @ by_ratio) / precision**2)
        return math.log(paid.sum()) + whole / sharpness, paid / paid.sum() - weights * by_weight

    logs = np.zeros(len(costs))
    for sharpness in _SHARPNESS:
        optimum = minimize(
            value, logs, args=(sharpness,), jac=True, method="L-BFGS-B",
            options={"maxiter": _ITERATIONS, "maxcor": 20, "ftol": 1e-9, "gtol": 1e-7, "maxfun": 2 * _ITERATIONS},
        )  # fmt: skip
        logs = optimum.x - optimum.x.max()
    weights: Vector = np.exp(logs)
    weights *= _ratios(weights, precisions, errors, limits).max()
    return weights


def _gaussian_price(cost: float, delta: float, neighbours: str) -> float:
    """Price of continuous Gaussian noise, by the sum of squared sensitivities over variances."""
    from dp_accounting import get_epsilon_gaussian  # the import takes a second

    return float(get_epsilon_gaussian((cost * table_sensitivity(neighbours, "squared_l2")) ** -0.5, delta))
