"""Integer contrasts of states, Fourier coefficients of marginals, and their sensitivity.

On the r states of a variable there are r orthogonal functions with integer values: the constant 1, and r - 1 contrasts
v_k that sum to 0. u_k = v_k / sqrt(mean of v_k**2) has mean square 1; for two states u_1 = (1, -1). A Fourier
coefficient of a set J of variables, with one contrast k_i chosen for each, is

    c_(J, k) = sum over records of prod_(i in J) u_(k_i)(x_i) = w_(J, k) d_(J, k),

where d is the same sum over the integer contrasts and w a public weight (Barak et al. 2007; for two states Zhang,
Rubinstein and Dimitrakakis 2016, Algorithm 2). The integers d are counted and receive discrete Laplace noise, so noise
is never drawn for a floating-point statistic.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from itertools import combinations, product
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema import Clique, Schema
from pgmpy_dp.schema.schema import places

Floats = NDArray[np.float64]
Subset = tuple[str, ...]
# Integer coefficients of sets of variables, in records, and the standard deviation of the noise in a set's coefficients
# with contrasts of length 1: 0 if they are public.
Means = tuple[Mapping[Subset, Floats], Mapping[Subset, float]]

MAX_COEFFICIENTS = 2**22

MAX_STATES = 4096
"""Largest number of states of a variable in a Fourier release: contrasts are kept as a square table."""

# Largest table, in cells, used to compute the sensitivity exactly; if a larger one is needed, a bound is used.
_MAX_WORK = 2**22

_ROUNDING = 1e-9  # relative; far above the rounding of sums of at most 2**22 positive terms


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Orthogonal integer functions of the states of one variable."""

    values: NDArray[np.int64]  # one function per row and one state per column; the first row is 1
    squares: NDArray[np.int64]  # the sum of squares of each row

    @property
    def weights(self) -> Floats:
        """Weights for which weight * v has mean square 1, of shape (states,)."""
        weights: Floats = np.sqrt(len(self.squares) / self.squares)
        return weights

    @property
    def scaled(self) -> Floats:
        """The functions u, one per row."""
        return self.values * self.weights[:, None]

    @property
    def inverse(self) -> Floats:
        """Matrix that turns integer coefficients back into a table: values.T / squares."""
        return self.values.T / self.squares

    @cached_property
    def largest(self) -> int:
        """The largest size of a value."""
        return int(abs(self.values).max())

    @property
    def spread(self) -> float:
        """A = max over states of sum over k >= 1 of |u_k|: what a record adds to a variable's coefficients."""
        return float(np.abs(self.scaled[1:]).sum(axis=0).max(initial=0.0))


@lru_cache(maxsize=256)
def contrasts(states: int) -> Contrasts:
    """Find the contrasts of least spread among those that split the states recursively into two parts.

    A split of m states into parts of l and m - l gives one contrast, constant on each part and zero elsewhere.
    Splitting off one state at a time gives Helmert's basis; halving gives Haar's, which for four states is the real
    Fourier transform. Parts are runs of adjacent states, and the best split follows from the parts' smallest spreads.
    """
    best, split = np.zeros(states + 1), np.zeros(states + 1, dtype=np.int64)
    for size in range(2, states + 1):
        one = np.arange(1, size // 2 + 1)
        other = size - one
        spreads = np.maximum(np.sqrt(other / (one * size)) + best[one], np.sqrt(one / (other * size)) + best[other])
        # Among splits equal up to rounding take the most even one, so that every machine makes the same choice.
        split[size] = one[np.flatnonzero(spreads <= spreads.min() * (1 + 1e-12))[-1]]
        best[size] = spreads[split[size] - 1]
    rows, parts = [np.ones(states, dtype=np.int64)], [(0, states)]
    while parts:
        start, size = parts.pop(0)
        if size < 2:
            continue
        first = int(split[size])
        common = math.gcd(first, size - first)
        row = np.zeros(states, dtype=np.int64)
        row[start : start + first] = (size - first) // common
        row[start + first : start + size] = -first // common
        rows.append(row)
        parts += [(start, first), (start + first, size - first)]
    values = np.array(rows)
    return Contrasts(values, (values**2).sum(axis=1))


def coefficient_weights(schema: Schema, subset: Clique) -> Floats:
    """Compute the weights w of the coefficients of a set of variables, of shape (r_1 - 1, ...); 1 for the empty set."""
    return _weights(tuple(map(schema.cardinality, subset)))


@lru_cache(maxsize=64)
def _weights(cardinalities: tuple[int, ...]) -> Floats:
    # Multiply exact integers, then divide and take the root once: the same floats on every machine.
    above, below = np.ones((), dtype=object), np.ones((), dtype=object)
    for states in cardinalities:
        above = above * states
        below = np.multiply.outer(below, contrasts(states).squares[1:].astype(object))
    weights: Floats = np.sqrt(np.asarray(above / below, dtype=np.float64))
    weights.setflags(write=False)
    return weights


def fourier_sensitivity(schema: Schema, subsets: Sequence[Subset], neighbours: str) -> float:
    """Compute the L1 sensitivity of the coefficients c of all subsets; under "replace_one", all but the empty one.

    The subsets are downward closed, and the empty one is among them.

    A record x adds prod u_(k_i)(x_i) to each coefficient. The absolute values of these, summed over the contrasts of a
    set J, are prod_(i in J) sum_k |u_k(x_i)|. Under "add_remove", the sensitivity is the maximum of their sum over J.
    The variables attain their maxima A_i independently, so it is exactly

        sum over J of prod_(i in J) A_i        (for two states everywhere: the number of subsets).

    Under "replace_one" the coefficient of the empty set is the public number of records, and the others change by
    |prod u(x) - prod u(y)|. The sum of these is maximised over pairs of records: exactly, by eliminating variables one
    by one, where the tables of pairs fit; otherwise the bound 2 (sum above - 1) is used. The result is rounded up.
    """
    cardinalities = {v: schema.cardinality(v) for subset in subsets for v in subset}
    return _fourier_sensitivity(tuple(subsets), tuple(sorted(cardinalities.items())), neighbours)


@lru_cache(maxsize=64)
def _fourier_sensitivity(subsets: tuple[Subset, ...], states: tuple[tuple[str, int], ...], neighbours: str) -> float:
    cardinalities = dict(states)
    spreads = {number: contrasts(number).spread for number in cardinalities.values()}
    added = math.fsum(math.prod(spreads[cardinalities[v]] for v in subset) for subset in subsets)
    if neighbours == "add_remove":
        return added * (1 + _ROUNDING)
    if neighbours != "replace_one":
        raise ValueError(f'neighbours must be "add_remove" or "replace_one", got {neighbours!r}.')
    bound = 2 * (added - 1)
    exact = _largest_replacement([subset for subset in subsets if subset], cardinalities)
    return min(bound, math.inf if exact is None else exact) * (1 + _ROUNDING)


def residual_sensitivity(scales: Mapping[Subset, float], cardinalities: Mapping[str, int], neighbours: str) -> float:
    """Compute the largest sum of squared changes of coefficients by one record, each divided by its squared noise.

    The residuals of a set J are its coefficients with contrasts of length 1, v_k / |v_k|, and their noise has one
    standard deviation: the scale of J. With the constant 1 / sqrt(n), the n - 1 contrasts of a variable with n states
    are an orthonormal basis, so that for two records x and y, summed over the contrasts of J,

        sum over k of prod_(i in J) a_(k_i)(x_i) a_(k_i)(y_i) = prod_(i in J) ([x_i = y_i] - 1 / n_i).

    Adding a record changes the residuals of J by p_J = prod_(i in J) (n_i - 1) / n_i in squared L2 norm, whatever its
    values: under "add_remove" the result, the sum of p_J over squared scales, is exact. Replacing a record x by y
    changes them by twice p_J minus twice the sum above, which is

        2 p_J (1 - prod over the i in J with x_i != y_i of -1 / (n_i - 1)),    0 if there is no such i.

    Under "replace_one" the sum of these, over squared scales, is maximised over which variables differ: exactly, by
    eliminating variables one by one, where that takes little work. Otherwise it is bounded in two ways. Set by set, the
    maximum is reached where only one variable differs, the one with the fewest states, since further factors are at
    most 1 in size. For all pairs of variables at once, with u_i = 1 or -1 / (n_i - 1), pairs add a quadratic form in u,
    which is at least minus half of the sum of l_i u_i**2 if adding l to its diagonal makes it positive semidefinite.
    The result is rounded up. Variables have at least two states; the empty set is measured under "add_remove" alone.
    """
    kept = {v: 1.0 - 1.0 / states for v, states in cardinalities.items()}
    shares = {subset: math.prod(kept[v] for v in subset) / scale**2 for subset, scale in scales.items()}
    if neighbours == "add_remove":
        return math.fsum(shares.values()) * (1 + _ROUNDING)
    if neighbours != "replace_one":
        raise ValueError(f'neighbours must be "add_remove" or "replace_one", got {neighbours!r}.')
    if sum(2 ** len(subset) for subset in scales) <= _MAX_WORK:
        tables = []
        for subset in scales:
            products = np.ones(())
            for v in subset:
                products = np.multiply.outer(products, [1.0, -1.0 / (cardinalities[v] - 1.0)])
            tables.append((subset, 2.0 * shares[subset] * (1.0 - products)))
        exact = _largest_sum(tables, dict.fromkeys((v for subset in scales for v in subset), 2))
        if exact is not None:
            return exact * (1 + _ROUNDING)
    return _replacement_bound({subset: 2.0 * share for subset, share in shares.items()}, cardinalities)


def _replacement_bound(weights: Mapping[Subset, float], cardinalities: Mapping[str, int]) -> float:
    """Bound the sum over subsets of weight * (1 - prod u_i) over all u_i in {1, -1 / (n_i - 1)}."""
    position = {v: number for number, v in enumerate(dict.fromkeys(v for subset in weights for v in subset))}
    values = np.array([[1.0, -1.0 / (cardinalities[v] - 1.0)] for v in position])
    single, pairs, others = np.zeros(len(position)), np.zeros((len(position), len(position))), 0.0
    by_sets = 0.0
    for subset, weight in weights.items():
        minimum = weight * min(values[position[v], 1] for v in subset)
        by_sets += weight - minimum
        at = [position[v] for v in subset]
        if len(at) == 1:
            single[at] += weight
        elif len(at) == 2:
            pairs[at, at[::-1]] += weight
        else:
            others += minimum
    lengths = np.where(pairs.any(axis=1), pairs.sum(axis=1), 1.0)  # divided by these, the form is nearly of rank one
    eigenvalues = np.linalg.eigvalsh(pairs / np.multiply.outer(lengths, lengths))
    diagonal = (1e-12 * np.abs(eigenvalues).max() - eigenvalues[0]) * lengths**2
    at_once = single[:, None] * values - 0.5 * diagonal[:, None] * values**2
    together = math.fsum(weights.values()) - others - float(at_once.min(axis=1).sum())
    return min(by_sets, together) * (1 + _ROUNDING)


def _largest_replacement(subsets: Sequence[Subset], cardinalities: Mapping[str, int]) -> float | None:
    """Maximise the sum over subsets of |prod u(x) - prod u(y)| over pairs of records; None if tables grow too large.

    For a variable with two states only whether x and y differ matters: u(x) is 1 or -1 and drops out.
    """
    pairs = {
        states: np.array([(0, 0), (0, 1)] if states == 2 else list(product(range(states), repeat=2)))
        for states in {cardinalities[v] for subset in subsets for v in subset}
        if states**3 <= _MAX_WORK
    }
    if any(cardinalities[v] not in pairs for subset in subsets for v in subset):
        return None
    work = [math.prod(len(pairs[cardinalities[v]]) * (cardinalities[v] - 1) for v in subset) for subset in subsets]
    if max(work, default=0) > _MAX_WORK or sum(work) > 16 * _MAX_WORK:
        return None
    tables: list[tuple[Subset, Floats]] = []
    for subset in subsets:
        cards = [cardinalities[v] for v in subset]
        one, other = np.ones(1), np.ones(1)
        for states in cards:
            functions = contrasts(states).scaled[1:]
            one = np.multiply.outer(one, functions[:, pairs[states][:, 0]].T)
            other = np.multiply.outer(other, functions[:, pairs[states][:, 1]].T)
        change = np.abs(one - other).sum(axis=tuple(range(2, 2 * len(cards) + 1, 2)))[0]
        tables.append((subset, change))
    return _largest_sum(tables, {v: len(pairs[cardinalities[v]]) for subset in subsets for v in subset})


def _largest_sum(tables: list[tuple[Subset, Floats]], sizes: Mapping[str, int]) -> float | None:
    """Maximise a sum of tables over configurations, by eliminating variables; None where tables grow too large."""
    around: dict[str, set[str]] = {v: {v} for v in sizes}
    containing: dict[str, list[tuple[Subset, Floats]]] = {v: [] for v in sizes}
    for scope, table in tables:
        for v in scope:
            around[v].update(scope)
            containing[v].append((scope, table))
    cells = {v: math.prod(sizes[w] for w in others) for v, others in around.items()}
    constant = 0.0
    while around:
        variable = min(around, key=lambda v: (cells[v], v))
        if cells[variable] > _MAX_WORK:
            return None
        rest = sorted(around.pop(variable) - {variable})
        axes = [variable, *rest]
        total = np.zeros([sizes[v] for v in axes])
        for scope, table in containing.pop(variable):
            moved = table.transpose([scope.index(v) for v in sorted(scope, key=axes.index)])
            total += moved.reshape([sizes[v] if v in scope else 1 for v in axes])
        largest = (tuple(rest), total.max(axis=0))
        for v in rest:
            containing[v] = [(scope, table) for scope, table in containing[v] if variable not in scope] + [largest]
            around[v] = (around[v] | set(rest)) - {variable}
            cells[v] = math.prod(sizes[w] for w in around[v])
        constant += 0.0 if rest else float(largest[1])
    return constant


def downward_closure(schema: Schema, cliques: Iterable[Iterable[str]]) -> tuple[Clique, ...]:
    """List all subsets of the cliques, the empty one first: their coefficients determine the cliques' marginals.

    Variables of a subset are in schema order. A variable with one state has no contrasts, and is in no subset.

    Raises SchemaError if a clique does not match the schema, or there are more than `MAX_COEFFICIENTS` coefficients.
    """
    return _closure(schema, tuple(schema.require(cliques)))


@lru_cache(maxsize=2)  # a release of many pairs asks for it at every step
def _closure(schema: Schema, cliques: tuple[Clique, ...]) -> tuple[Clique, ...]:
    position = places(schema)
    results: set[Clique] = set()
    visited = 0
    for clique in cliques:
        for variable in clique:
            if schema.cardinality(variable) > MAX_STATES:
                raise SchemaError(
                    f"Variable {variable!r} has {schema.cardinality(variable)} states; a Fourier release takes at most "
                    f"{MAX_STATES}: declare fewer states, or measure tables."
                )
        if schema.cells(clique) > MAX_COEFFICIENTS:
            _refuse_size(schema.cells(clique), f"clique {clique} alone has")
        subsets = list(subsets_of(schema, clique))
        visited += len(subsets)
        if visited > 4 * MAX_COEFFICIENTS:
            _refuse_size(visited, "the cliques have up to")
        results.update(subsets)
    size = sum(math.prod(schema.cardinality(v) - 1 for v in subset) for subset in results)
    if size > MAX_COEFFICIENTS:
        _refuse_size(size, f"the {len(results)} subsets of the cliques have")
    return tuple(sorted(results, key=lambda subset: (len(subset), [position[v] for v in subset])))


def varied_variables(schema: Schema, clique: Iterable[str]) -> Clique:
    """Return the variables of a clique that have at least two states, and so contrasts, in schema order."""
    return tuple(_in_order(schema, (v for v in clique if schema.cardinality(v) > 1)))


def subsets_of(schema: Schema, clique: Iterable[str]) -> Iterator[Clique]:
    """List the subsets of a clique that have coefficients, the empty one first."""
    varied = varied_variables(schema, clique)
    return (subset for size in range(len(varied) + 1) for subset in combinations(varied, size))


def margin(clique: Clique, table: NDArray[Any], wanted: Collection[str]) -> NDArray[Any]:
    """Sum a table over the variables that are not wanted; its axes are then in the wanted order."""
    kept = [variable for variable in clique if variable in wanted]
    summed = table.sum(axis=tuple(axis for axis, variable in enumerate(clique) if variable not in wanted))
    return np.asarray(summed.transpose([kept.index(variable) for variable in wanted]))


def coefficients_of(schema: Schema, clique: Clique, table: NDArray[Any]) -> dict[Clique, NDArray[Any]]:
    """Compute the coefficients of all subsets of a clique from its table."""
    return coefficients_of_many(schema, {clique: table}, {clique: subsets_of(schema, clique)})


def coefficients_of_many(
    schema: Schema, tables: Mapping[Clique, NDArray[Any]], subsets: Mapping[Clique, Iterable[Clique]]
) -> dict[Clique, NDArray[Any]]:
    """Compute the coefficients of some subsets of cliques from their tables, in the order of the subsets."""
    found: dict[Clique, NDArray[Any]] = {}
    for alike in _alike(schema, subsets):
        stacked = np.stack([margin(clique, tables[clique], ordered) for clique, ordered in alike.items()])
        found |= zip(alike, _transformed(stacked, inverse=False), strict=True)
    return {
        subset: found[clique][_index(_in_order(schema, clique), subset)]
        for clique, own in subsets.items()
        for subset in own
    }


def _in_order(schema: Schema, clique: Iterable[str]) -> list[str]:
    """Sort the variables of a clique in schema order."""
    return sorted(clique, key=places(schema).__getitem__)


def _alike(schema: Schema, cliques: Iterable[Clique]) -> Iterable[dict[Clique, list[str]]]:
    """Group the cliques whose variables, in schema order, have the same numbers of states; give them in that order."""
    groups: dict[tuple[int, ...], dict[Clique, list[str]]] = {}
    for clique in cliques:
        ordered = _in_order(schema, clique)
        groups.setdefault(tuple(map(schema.cardinality, ordered)), {})[clique] = ordered
    return groups.values()


def _transformed(stacked: NDArray[Any], *, inverse: bool) -> NDArray[Any]:
    """Convert stacked tables to coefficients, or back; axes after the first are variables in schema order."""
    for axis, states in enumerate(stacked.shape[1:], 1):
        factors = contrasts(states).inverse if inverse else contrasts(states).values
        stacked = np.moveaxis(np.tensordot(factors, stacked, axes=(1, axis)), 0, axis)
    return stacked


def _refuse_size(size: int, what: str) -> None:
    raise SchemaError(
        f"The Fourier closure is too large: {what} {size} coefficients, more than {MAX_COEFFICIENTS}. Measure smaller "
        "cliques, declare fewer states, or measure tables."
    )


def _index(clique: Sequence[str], subset: Iterable[str]) -> tuple[Any, ...]:
    """Return the index of a subset's coefficients among those of a clique: 0 on an axis is the constant function."""
    inside = set(subset)
    return tuple(slice(1, None) if variable in inside else 0 for variable in clique)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Fourier coefficients of all subsets of some cliques; the cliques' marginals agree for any values of these.

    Attributes
    ----------
    schema : Schema
    cliques : tuple of tuples of str
    values : mapping of subset to ndarray of float64
        Sum over records of the product of integer contrasts (`contrasts`), with one axis per
        variable in schema order and one entry less than states; the empty subset has the number of records.

    Examples
    --------
    >>> schema = Schema({"a": ["x", "y"], "b": ["x", "y"]})
    >>> values = {(): np.array(8.0), ("a",): np.array([2.0]), ("b",): np.array([0.0]), ("a", "b"): np.array([[6.0]])}
    >>> Coefficients(schema, (("a", "b"),), values).tables["a", "b"].tolist()
    [[4.0, 1.0], [0.0, 3.0]]
    """

    schema: Schema
    cliques: tuple[Clique, ...]
    values: Mapping[Clique, Floats]

    def table(self, clique: Clique) -> Floats:
        """Compute the marginal of any subset of a measured clique, axes in its order; cells may be negative."""
        return marginals_of(self, [clique])[0]

    @cached_property
    def tables(self) -> Mapping[Clique, Floats]:
        """Marginals of the cliques."""
        return MappingProxyType(dict(zip(self.cliques, marginals_of(self, self.cliques), strict=True)))

    def non_negative(self, at_least: float = 0.0) -> Coefficients:
        """Add the least number of records that makes every cell of every clique non-negative.

        The increment s is spread evenly, s / cells for each cell of a table, so that the marginals still agree. It is
        the largest of cells * (minus the least cell) over the cliques, computed from released coefficients without
        privacy cost. (Zhang et al. 2016 fix the increment in advance, since the least one for the true table would
        depend on the data.)

        Parameters
        ----------
        at_least : float
            A larger increment to use, such as :func:`pgmpy_dp.papers.printed_increment`.
        """
        needed = max(max(-float(table.min()) * table.size, 0.0) for table in self.tables.values())
        # Slightly more than needed, so that rounding leaves the smallest cell at 0 or above.
        increment = max(at_least, needed * (1 + 1e-12))
        raised = replace(self, values=MappingProxyType({**self.values, (): self.values[()] + increment}))
        tables = {clique: np.maximum(table, 0.0) for clique, table in raised.tables.items()}
        raised.__dict__["tables"] = MappingProxyType(tables)
        return raised


def marginals_of(coefficients: Coefficients, cliques: Sequence[Clique]) -> list[Floats]:
    """Compute the marginals of several cliques as `Coefficients.table` does, those of as many states at once."""
    schema, values = coefficients.schema, coefficients.values
    found: dict[Clique, Floats] = {}
    for alike in _alike(schema, cliques):
        full = np.empty([len(alike), *map(schema.cardinality, next(iter(alike.values())))])
        for number, (clique, ordered) in enumerate(alike.items()):
            for subset in subsets_of(schema, clique):
                if subset not in values:
                    raise SchemaError(
                        f"The coefficients of {subset} are missing: no measured clique contains {tuple(clique)}. "
                        f"Measured were {', '.join(map(str, coefficients.cliques[:8]))}."
                    )
                full[number, *_index(ordered, subset)] = values[subset]
        for table, (clique, ordered) in zip(_transformed(full, inverse=True), alike.items(), strict=True):
            found[clique] = np.array(table.transpose([ordered.index(variable) for variable in clique]), order="C")
    return [found[clique] for clique in cliques]


def noise_scales(schema: Schema, subset: Clique, scale: float) -> Floats:
    """Return the scale of the discrete Laplace noise on each integer coefficient of a subset: b / w."""
    return np.asarray(scale / coefficient_weights(schema, subset))
