"""States have integer contrasts; what a record can change in the Fourier coefficients of marginals is bounded here.

Over the states of a variable stand r orthogonal functions: the constant 1 and r - 1 contrasts v_k that sum to 0, all
with integer values. u_k = v_k / sqrt(mean of v_k**2) has mean square 1; for two states u_1 = (1, -1). A Fourier
coefficient of a set J of variables, one contrast k_i chosen for each, is

    c_(J, k) = sum over records of prod_(i in J) u_(k_i)(x_i) = w_(J, k) d_(J, k),

d being the same sum over the integer contrasts and w a public weight (Barak et al. 2007; Zhang, Rubinstein and
Dimitrakakis 2016, Algorithm 2, for two states). Integers are counted and given discrete Laplace noise, so no noise is
ever drawn on a floating-point statistic.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Subset = tuple[str, ...]

MAX_STATES = 4096
"""Most states of a variable in a Fourier release: contrasts are kept as a square table."""

# This is the largest table met while the exact sensitivity is maximised, in cells; beyond it the bound is used.
_MAX_WORK = 2**22

_ROUNDING = 1e-9  # relative; far above the rounding of sums of at most 2**22 positive terms


@dataclass(frozen=True, eq=False)
class Contrasts:
    """Contrasts are orthogonal integer functions of the states of one variable.

    Attributes
    ----------
    values : ndarray of int64, shape (states, states)
        One function a row, one state a column; the first row is 1.
    squares : ndarray of int64, shape (states,)
        Sum of squares of each row.
    """

    values: NDArray[np.int64]
    squares: NDArray[np.int64]

    @property
    def weights(self) -> Floats:
        """Return the weights for which U = weight * v has mean square 1; shape (states,)."""
        weights: Floats = np.sqrt(len(self.squares) / self.squares)
        return weights

    @property
    def scaled(self) -> Floats:
        """Return the functions u, one a row."""
        return self.values * self.weights[:, None]

    @property
    def inverse(self) -> Floats:
        """Return columns that turn integer coefficients back into a table: values.T / squares."""
        return self.values.T / self.squares

    @property
    def spread(self) -> float:
        """Return A = max over states of sum over k >= 1 of |u_k|, what a record adds to a variable's coefficients."""
        return float(np.abs(self.scaled[1:]).sum(axis=0).max(initial=0.0))


@lru_cache(maxsize=256)
def contrasts(states: int) -> Contrasts:
    """Find the contrasts of least spread among those that split the states in two, and each part again.

    A split of m states into parts of l and m - l gives one contrast, constant on each part and zero elsewhere. One
    state against all before it is Helmert's basis; halves are Haar's, which for four states is the real Fourier
    transform. Which split is best follows from the parts' own best spreads; the parts are runs of neighbouring states.

    Parameters
    ----------
    states : int
        At least 1.

    Examples
    --------
    >>> contrasts(2).values.tolist()
    [[1, 1], [1, -1]]
    >>> contrasts(3).values.tolist()
    [[1, 1, 1], [2, -1, -1], [0, 1, -1]]
    >>> round(contrasts(4).spread, 3), round(contrasts(8).spread, 3)
    (2.414, 4.414)
    """
    best, split = np.zeros(states + 1), np.zeros(states + 1, dtype=np.int64)
    for size in range(2, states + 1):
        one = np.arange(1, size // 2 + 1)
        other = size - one
        spreads = np.maximum(np.sqrt(other / (one * size)) + best[one], np.sqrt(one / (other * size)) + best[other])
        # Take the most even split among equals up to rounding, so that the choice is the same on every machine.
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


def coefficient_weights(cardinalities: Sequence[int]) -> Floats:
    """Compute the weights w of the coefficients of a set of variables, shape (r_1 - 1, ...); 1 for the empty set."""
    # Multiply fractions as exact integers, then divide and take a root once: the same floats on every machine.
    above, below = np.ones((), dtype=object), np.ones((), dtype=object)
    for states in cardinalities:
        above = above * states
        below = np.multiply.outer(below, contrasts(states).squares[1:].astype(object))
    return np.sqrt(np.asarray(above / below, dtype=np.float64))


def fourier_sensitivity(
    subsets: Sequence[Subset],
    cardinalities: Mapping[str, int],
    neighbours: str,
    basis: Mapping[int, Contrasts] | None = None,
) -> float:
    """Compute the L1 sensitivity of the coefficients c of all subsets but, under "replace_one", the empty one.

    A record x adds prod u_(k_i)(x_i) to each coefficient. In absolute value these sum, over the contrasts of a set J,
    to prod_(i in J) sum_k |u_k(x_i)|. Under "add_remove" that is all; the variables attain their maxima A_i
    independently, so the sensitivity is exactly

        sum over J of prod_(i in J) A_i        (for two states everywhere: the number of subsets).

    Under "replace_one" the coefficient of the empty set is the public number of records, and the rest moves by
    |prod u(x) - prod u(y)|, maximised over pairs of records: exactly, by eliminating variables one by one where the
    tables of pairs fit, else by the bound 2 (sum above - 1). The result is rounded up.

    Parameters
    ----------
    subsets : sequence of tuples of str
        Downward closed, the empty set among them.
    cardinalities : mapping of str to int
    neighbours : {"add_remove", "replace_one"}
    basis : mapping of number of states to Contrasts, optional
        Other contrasts than :func:`contrasts`.

    Examples
    --------
    A naive Bayes network of three features, all binary:

    >>> subsets = [(), ("y",), ("a",), ("b",), ("c",), ("y", "a"), ("y", "b"), ("y", "c")]
    >>> cards = dict.fromkeys("yabc", 2)
    >>> round(fourier_sensitivity(subsets, cards, "add_remove"), 6)
    8.0
    >>> round(fourier_sensitivity(subsets, cards, "replace_one"), 6)
    12.0
    """
    if basis is None:
        return _sensitivity(tuple(subsets), tuple(sorted(cardinalities.items())), neighbours)
    return _computed_sensitivity(subsets, cardinalities, neighbours, basis)


@lru_cache(maxsize=64)
def _sensitivity(subsets: tuple[Subset, ...], cardinalities: tuple[tuple[str, int], ...], neighbours: str) -> float:
    return _computed_sensitivity(subsets, dict(cardinalities), neighbours, {})


def _computed_sensitivity(
    subsets: Sequence[Subset], cardinalities: Mapping[str, int], neighbours: str, basis: Mapping[int, Contrasts]
) -> float:
    used = {cardinalities[v] for subset in subsets for v in subset}
    chosen = {states: basis.get(states) or contrasts(states) for states in used}
    spreads = {states: functions.spread for states, functions in chosen.items()}
    added = math.fsum(math.prod(spreads[cardinalities[v]] for v in subset) for subset in subsets)
    if neighbours == "add_remove":
        return added * (1 + _ROUNDING)
    if neighbours != "replace_one":
        raise ValueError(f'neighbours must be "add_remove" or "replace_one", got {neighbours!r}.')
    bound = 2 * (added - 1)
    exact = _largest_replacement([subset for subset in subsets if subset], cardinalities, chosen)
    return min(bound, math.inf if exact is None else exact) * (1 + _ROUNDING)


def residual_sensitivity(scales: Mapping[Subset, float], cardinalities: Mapping[str, int], neighbours: str) -> float:
    """Compute the largest sum of squares of what a record changes in coefficients, each over its noise.

    The residuals of a set J are its coefficients with contrasts of length 1, v_k / |v_k|, and their noise has one
    standard deviation: the scale of J. With the constant 1 / sqrt(n), the n - 1 contrasts of a variable with n states
    are an orthonormal basis, so that for two records x and y, summed over the contrasts of J,

        sum over k of prod_(i in J) a_(k_i)(x_i) a_(k_i)(y_i) = prod_(i in J) ([x_i = y_i] - 1 / n_i).

    A record that is added changes the residuals of J by p_J = prod_(i in J) (n_i - 1) / n_i in squared L2 norm,
    whatever it says: under "add_remove" the sum of p_J over squared scales is exact. A record x that is replaced by y
    changes them by twice p_J less the sum above, which is

        2 p_J (1 - prod over the i in J with x_i != y_i of -1 / (n_i - 1)),    0 if there is none.

    Under "replace_one" the sum of this is maximised over which variables differ: exactly, by eliminating variables one
    by one, where that is little work. Else it is bounded: set by set, where the most is reached if one variable alone
    differs, that of fewest states, since further factors are at most 1 in size; and pair by pair at once. With u_i = 1
    or -1 / (n_i - 1), pairs add a quadratic form in u, which is at least minus half of the sum of l_i u_i**2 if l on
    its diagonal makes it positive semidefinite. The result is rounded up.

    Parameters
    ----------
    scales : mapping of subset to float
        Positive; the empty set only under "add_remove". Every variable has at least two states.
    cardinalities : mapping of str to int
    neighbours : {"add_remove", "replace_one"}

    Examples
    --------
    >>> scales = {(): 4.0, ("a",): 2.0, ("b",): 2.0, ("a", "b"): 1.0}
    >>> round(residual_sensitivity(scales, {"a": 2, "b": 2}, "add_remove"), 6)
    0.5625
    >>> del scales[()]
    >>> round(residual_sensitivity(scales, {"a": 2, "b": 2}, "replace_one"), 6)
    1.5
    """
    states = {subset: np.array([cardinalities[v] for v in subset], dtype=np.float64) for subset in scales}
    shares = {subset: float(np.prod(1.0 - 1.0 / n)) / scales[subset] ** 2 for subset, n in states.items()}
    if neighbours == "add_remove":
        return math.fsum(shares.values()) * (1 + _ROUNDING)
    if neighbours != "replace_one":
        raise ValueError(f'neighbours must be "add_remove" or "replace_one", got {neighbours!r}.')
    if sum(2 ** len(subset) for subset in scales) <= _MAX_WORK:
        tables = []
        for subset, n in states.items():
            products = np.ones(())
            for one in n:
                products = np.multiply.outer(products, [1.0, -1.0 / (one - 1.0)])
            tables.append((subset, 2.0 * shares[subset] * (1.0 - products)))
        exact = _largest_sum(tables, dict.fromkeys((v for subset in scales for v in subset), 2))
        if exact is not None:
            return exact * (1 + _ROUNDING)
    return _replacement_bound({subset: 2.0 * share for subset, share in shares.items()}, cardinalities)


def _replacement_bound(weights: Mapping[Subset, float], cardinalities: Mapping[str, int]) -> float:
    """Bound the sum over subsets of weight * (1 - prod u_i) over all u_i in {1, -1 / (n_i - 1)}."""
    place = {v: number for number, v in enumerate(dict.fromkeys(v for subset in weights for v in subset))}
    values = np.array([[1.0, -1.0 / (cardinalities[v] - 1.0)] for v in place])
    single, pairs, others = np.zeros(len(place)), np.zeros((len(place), len(place))), 0.0
    by_sets = 0.0
    for subset, weight in weights.items():
        least = weight * min(values[place[v], 1] for v in subset)
        by_sets += weight - least
        at = [place[v] for v in subset]
        if len(at) == 1:
            single[at] += weight
        elif len(at) == 2:
            pairs[at, at[::-1]] += weight
        else:
            others += least
    lengths = np.where(pairs.any(axis=1), pairs.sum(axis=1), 1.0)  # near these the form is of rank one
    eigenvalues = np.linalg.eigvalsh(pairs / np.multiply.outer(lengths, lengths))
    diagonal = (1e-12 * np.abs(eigenvalues).max() - eigenvalues[0]) * lengths**2
    at_once = single[:, None] * values - 0.5 * diagonal[:, None] * values**2
    together = math.fsum(weights.values()) - others - float(at_once.min(axis=1).sum())
    return min(by_sets, together) * (1 + _ROUNDING)


def _largest_replacement(
    subsets: Sequence[Subset], cardinalities: Mapping[str, int], chosen: Mapping[int, Contrasts]
) -> float | None:
    """Maximise the sum over subsets of |prod u(x) - prod u(y)| over pairs of records; None where that is too large.

    For a variable with two states it only matters whether x and y differ: u(x) is 1 or -1 and leaves absolute values.
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
            functions = chosen[states].scaled[1:]
            one = np.multiply.outer(one, functions[:, pairs[states][:, 0]].T)
            other = np.multiply.outer(other, functions[:, pairs[states][:, 1]].T)
        change = np.abs(one - other).sum(axis=tuple(range(2, 2 * len(cards) + 1, 2)))[0]
        tables.append((subset, change))
    return _largest_sum(tables, {v: len(pairs[cardinalities[v]]) for subset in subsets for v in subset})


def _largest_sum(tables: list[tuple[Subset, Floats]], sizes: Mapping[str, int]) -> float | None:
    """Maximise a sum of tables over configurations, by eliminating variables; None where tables grow too large."""
    around: dict[str, set[str]] = {v: {v} for v in sizes}
    holding: dict[str, list[tuple[Subset, Floats]]] = {v: [] for v in sizes}
    for scope, table in tables:
        for v in scope:
            around[v].update(scope)
            holding[v].append((scope, table))
    cells = {v: math.prod(sizes[w] for w in others) for v, others in around.items()}
    constant = 0.0
    while around:
        variable = min(around, key=lambda v: (cells[v], v))
        if cells[variable] > _MAX_WORK:
            return None
        rest = sorted(around.pop(variable) - {variable})
        axes = [variable, *rest]
        total = np.zeros([sizes[v] for v in axes])
        for scope, table in holding.pop(variable):
            moved = table.transpose([scope.index(v) for v in sorted(scope, key=axes.index)])
            total += moved.reshape([sizes[v] if v in scope else 1 for v in axes])
        largest = (tuple(rest), total.max(axis=0))
        for v in rest:
            holding[v] = [(scope, table) for scope, table in holding[v] if variable not in scope] + [largest]
            around[v] = (around[v] | set(rest)) - {variable}
            cells[v] = math.prod(sizes[w] for w in around[v])
        constant += 0.0 if rest else float(largest[1])
    return constant
