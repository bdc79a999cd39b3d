"""Mixtures of products of small tables, with exact answers.

A variable is in a block, or is a child: it depends on one other variable, its parent, and on nothing else. Functions of
a variable are children, and so are finer variables within coarser ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import logsumexp

from pgmpy_dp._threads import cores, one_thread
from pgmpy_dp.inference.distribution import ImpossibleEvidenceError
from pgmpy_dp.inference.mixtures.children import Child, Whole, along, row_products
from pgmpy_dp.inference.tables.table import Scope, Variable, Vector

# Maximum number of cells of an answered table, and of intermediate products of a few components' tables.
_MAX_CELLS, _MAX_PRODUCTS = 20_000_000, 4_000_000
_RECORDS = 2_000  # records whose likelihoods are computed together


class AnswerTooLargeError(ValueError):
    """A requested table has more cells than allowed."""


@dataclass(frozen=True)
class Mixture:
    """Mixture in whose components blocks of variables are independent; within a block any dependence is possible.

    Parameters
    ----------
    cardinalities : mapping of variable to int
    blocks : tuple of tuples of variables
        Each variable that is no child must be in exactly one block.
    weights : ndarray of shape (components,)
        Probabilities of the components.
    tables : tuple of ndarrays, one per block
        Joint probabilities of the block's variables; axes: component, then variables. They sum to one in each
        component.
    children : mapping of variable to Child
        Variables that depend on another one alone, parents before their children.

    Examples
    --------
    >>> weights, sick = np.array([0.9, 0.1]), np.array([[1.0, 0.0], [0.5, 0.5]])
    >>> mixture = Mixture.of({"lung": 2, "bronc": 2}, [("lung",), ("bronc",)], weights, [sick, sick])
    >>> mixture.marginal(("lung", "bronc"))
    array([[0.925, 0.025],
           [0.025, 0.025]])
    >>> mixture.given({"lung": 1}).marginal(("bronc",))
    array([0.5, 0.5])
    """

    cardinalities: Mapping[Variable, int]
    blocks: tuple[Scope, ...]
    weights: Vector
    tables: tuple[Vector, ...]
    children: Mapping[Variable, Child] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cardinalities: Mapping[Variable, int],
        blocks: Iterable[Sequence[Variable]],
        weights: ArrayLike,
        tables: Iterable[ArrayLike],
        children: Mapping[Variable, Child] | None = None,
    ) -> Mixture:
        """Check the arguments, normalise probabilities, and freeze."""
        sizes = {variable: int(states) for variable, states in cardinalities.items()}
        scopes = tuple(tuple(block) for block in blocks)
        known = [variable for scope in scopes for variable in scope]
        if sorted(map(repr, sizes)) != sorted(map(repr, [*known, *(children or {})])):
            raise ValueError("each variable of a mixture belongs to one block")
        for variable, child in (children or {}).items():
            shares = child.shares
            if (
                child.parent not in known
                or shares.shape != (sizes[child.parent], sizes[variable])
                or not (np.isfinite(shares.data).all() and (shares.data >= 0).all())
                or not np.allclose(shares.sum(axis=1)[np.diff(shares.indptr) > 0], 1.0, atol=1e-4)
            ):
                raise ValueError(f"variable {variable!r} given {child.parent!r} has no sound probabilities")
            known.append(variable)
        chances = _probabilities(weights, "the weights", axes=1)
        arrays = []
        for scope, table in zip(scopes, tables, strict=True):
            shape = (chances.size, *(sizes[variable] for variable in scope))
            if np.shape(table) != shape:
                raise ValueError(f"the tables of block {scope!r} have shape {np.shape(table)}, not {shape}")
            flat = np.asarray(table, dtype=np.float64).reshape(chances.size, -1)
            arrays.append(_probabilities(flat, f"the tables of block {scope!r}", axes=2).reshape(shape))
        return cls(sizes, scopes, chances, tuple(arrays), dict(children or {}))

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(self.cardinalities)

    @cached_property
    def roots(self) -> Mixture:
        """The mixture of the variables in blocks."""
        return self.only([variable for block in self.blocks for variable in block]) if self.children else self

    def root(self, variable: Variable) -> Variable:
        """Return the variable in a block from which a variable descends, or itself."""
        while variable in self.children:
            variable = self.children[variable].parent
        return variable

    def only(self, variables: Collection[Variable]) -> Mixture:
        """Return the mixture of some variables, with all components; parents of children must be included.

        Examples
        --------
        >>> pair = Mixture.of({"a": 2, "b": 2}, [("a", "b")], [1.0], [[[[0.1, 0.2], [0.3, 0.4]]]])
        >>> pair.only(["b"]).marginal(("b",)).round(6)
        array([0.4, 0.6])
        """
        kept = {v: states for v, states in self.cardinalities.items() if v in variables}
        blocks, tables = [], []
        for block, table in zip(self.blocks, self.tables, strict=True):
            others = tuple(axis + 1 for axis, variable in enumerate(block) if variable not in kept)
            if len(others) < len(block):
                blocks.append(tuple(variable for variable in block if variable in kept))
                tables.append(table.sum(axis=others) if others else table)
        children = {variable: child for variable, child in self.children.items() if variable in kept}
        return Mixture(kept, tuple(blocks), self.weights, tuple(tables), children)

    def extended(self, cardinalities: Mapping[Variable, int], children: Mapping[Variable, Child]) -> Mixture:
        """Return the mixture with more children; `cardinalities` has all variables in order."""
        return Mixture.of(cardinalities, self.blocks, self.weights, self.tables, {**self.children, **children})

    def marginal(self, variables: Sequence[Variable]) -> Vector:
        """Compute the joint probabilities of some variables, with one axis each in the given order.

        Raises
        ------
        AnswerTooLargeError
            If the table would have more than 20 million cells.
        """
        asked = tuple(variables)
        self._require(asked)
        if len(set(asked)) != len(asked):
            raise ValueError(f"{asked!r} repeats a variable")
        self._require_few(asked)
        factors, sizes, late, order = self._factors(asked)
        with one_thread():
            table = _sum_of_products(self.weights, factors).reshape(sizes)
        for axis, descent in late.items():
            table = along(table, axis, descent)
        table = table.reshape([self.cardinalities[variable] for variable in order])
        return table.transpose([order.index(variable) for variable in asked])

    def _factors(self, asked: Scope) -> tuple[list[Vector], list[int], dict[int, Any], list[Variable]]:
        """Compute what blocks contribute to a joint table: a factor per block, with a row per component."""
        roots = {self.root(variable) for variable in asked}
        factors, order = list[Vector](), list[Variable]()
        sizes, late = list[int](), dict[int, Any]()
        for block, table in zip(self.blocks, self.tables, strict=True):
            kept = [variable for variable in block if variable in roots]
            if not kept:
                continue
            table = table.sum(axis=tuple(axis for axis, variable in enumerate(block, 1) if variable not in roots))
            for axis, root in enumerate(kept, 1):
                names, descent = self._descent(root, asked)
                order += names
                if descent is not None and descent.shape[1] <= descent.shape[0]:
                    table = along(table, axis, descent)
                elif descent is not None:
                    late[len(sizes)] = descent
                sizes.append(table.shape[axis])
            factors.append(table.reshape(self.weights.size, -1))
        return factors, sizes, late, order

    def _descent(self, variable: Variable, asked: Collection[Variable]) -> tuple[list[Variable], Any]:
        """Return which of a variable and its descendants are asked for, and their probabilities given its states."""
        names = [variable] if variable in asked else []
        result = None
        for name, child in self.children.items():
            if child.parent == variable:
                below, descent = self._descent(name, asked)
                if below:
                    if result is None and variable in asked:
                        result = sparse.eye_array(self.cardinalities[variable], format="csr")
                    names += below
                    own = child.shares if descent is None else child.shares @ descent
                    result = own if result is None else row_products(result, own)
        return names, None if names == [variable] else result

    def given(self, evidence: Mapping[Variable, int | ArrayLike]) -> Mixture:
        """Return the mixture given evidence, over the same variables.

        Parameters
        ----------
        evidence : mapping of variable to int or array
            A variable's state, or the likelihood of each of its states: ones and zeros for a set of states, other
            numbers for uncertain evidence.

        Raises
        ------
        ImpossibleEvidenceError
        """
        logs, tables, children = self._weigh(evidence)
        if logs.max() == -np.inf:
            raise ImpossibleEvidenceError(f"evidence on {', '.join(map(repr, evidence))} has probability zero")
        weights = np.exp(logs - logsumexp(logs))
        return replace(self, weights=weights / weights.sum(), tables=tables, children=children)

    def log_evidence(self, evidence: Mapping[Variable, int | ArrayLike]) -> float:
        """Compute the log-probability of the evidence in nats; for likelihoods, the log of their mean."""
        return float(logsumexp(self._weigh(evidence)[0]))

    def most_probable(self, variables: Sequence[Variable]) -> tuple[int, ...]:
        """Return the jointly most probable states of some variables; the first among equals.

        Raises
        ------
        AnswerTooLargeError
            If their joint table would have more than 20 million cells.
        """
        table = self.marginal(variables)
        return tuple(int(state) for state in np.unravel_index(int(table.argmax()), table.shape))

    def sample(self, count: int, generator: np.random.Generator) -> NDArray[np.unsignedinteger]:
        """Draw independent records; columns in the order of `variables`, records in the order of components."""
        ends = np.cumsum(generator.multinomial(count, self.weights))
        component = np.searchsorted(ends, np.arange(count), side="right")
        codes = dict[Variable, NDArray[Any]]()
        for block, table in zip(self.blocks, self.tables, strict=True):
            cells = cells_at(table.reshape(table.shape[0], -1), component, generator.random(count))
            codes |= dict(zip(block, np.unravel_index(cells, table.shape[1:]), strict=True))
        return self.completed(codes, generator, even=False)

    def completed(
        self, codes: Mapping[Variable, NDArray[Any]], generator: np.random.Generator, *, even: bool
    ) -> NDArray[Any]:
        """Return records with the states of children drawn given those of all other variables; see `Child.draw`."""
        results = dict(codes)
        for variable, child in self.children.items():
            results[variable] = child.draw(results[child.parent].astype(np.intp), generator, even=even)
        smallest = np.min_scalar_type(max(self.cardinalities.values()) - 1)
        records = np.empty((len(next(iter(results.values()))), len(results)), dtype=smallest)
        for position, variable in enumerate(self.variables):
            records[:, position] = results[variable]
        return records

    def log_probability(self, codes: NDArray[np.integer]) -> Vector:
        """Compute the log-probabilities of records in nats.

        Parameters
        ----------
        codes : ndarray of shape (records, variables)
            State indices, columns in the order of `variables`; -1 for unknown values, which are summed over.

        Returns
        -------
        ndarray of shape (records,)
        """
        codes = np.asarray(codes)
        sizes = np.array(list(self.cardinalities.values()))
        if codes.ndim != 2 or codes.shape[1] != sizes.size or codes.dtype.kind not in "iu":
            raise ValueError(f"records need shape (records, {sizes.size}) and whole numbers")
        if ((codes < -1) | (codes >= sizes)).any():
            raise ValueError("records hold states that their variables do not have")
        out, logs = np.empty(len(codes)), self._logs_of_components()
        for begin in range(0, len(codes), _RECORDS):
            known = dict(zip(self.variables, codes[begin : begin + _RECORDS].T, strict=True))
            out[begin : begin + _RECORDS] = logsumexp(logs(known), axis=1)
        return out

    def in_records(
        self,
        scopes: Sequence[Scope],
        known: Mapping[Variable, NDArray[Any]],
        kept: Callable[[Vector], NDArray[Any]] = lambda table: table,
    ) -> list[NDArray[Any]]:
        """Compute the joint distributions of some variables in each record, given its known values of others.

        One product with the components' tables answers all records with the same known values in the blocks asked for.

        Parameters
        ----------
        scopes : sequence of tuples of variables
            Each is answered by itself.
        known : mapping of variable to ndarray of int, shape (records,)
            States; other variables are unknown.
        kept : callable, optional
            What to keep of the tables of a few records at a time, which have shape (records, cells).

        Returns
        -------
        list of ndarray of shape (records, cells)
            A table per scope, flat; all 0 where what a record knows is impossible.

        Raises
        ------
        AnswerTooLargeError
            If a table would have more than 20 million cells.

        Examples
        --------
        >>> sick = np.array([[1.0, 0.0], [0.5, 0.5]])
        >>> mixture = Mixture.of({"lung": 2, "bronc": 2}, [("lung",), ("bronc",)], [0.9, 0.1], [sick, sick])
        >>> mixture.in_records([("bronc",)], {"lung": np.array([1, 0])})[0].round(3)
        array([[0.5  , 0.5  ],
               [0.974, 0.026]])
        """
        for scope in scopes:
            self._require(scope)
            self._require_few(scope)
        count = len(next(iter(known.values()))) if known else 1
        parts, logs = [self._part_around(scope) for scope in scopes], self._logs_of_components()
        around = [known[variable] for part in parts for variable in part.variables if variable in known]
        order = np.lexsort(around) if around else np.arange(count)  # records that share a product are adjacent
        full = {v: known[v][order] if v in known else np.full(count, -1) for v in self.variables}

        def answers(begin: int) -> list[NDArray[Any]]:
            some = {variable: codes[begin : begin + _RECORDS] for variable, codes in full.items()}
            chances = logs(some)
            peak = chances.max(axis=1, keepdims=True)
            chances = np.exp(chances - np.where(np.isfinite(peak), peak, 0.0), out=chances)
            chances /= np.maximum(chances.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
            return [kept(part._answers(scope, some, chances)) for scope, part in zip(scopes, parts, strict=True)]

        with one_thread(), ThreadPoolExecutor(cores()) as pool:
            results = list(pool.map(answers, range(0, count, _RECORDS)))
        return [np.concatenate(tables)[np.argsort(order)] for tables in zip(*results, strict=True)]

    def _part_around(self, scope: Scope) -> Mixture:
        """Return the mixture of the blocks on which some variables depend within a component, with their children."""
        roots = {self.root(variable) for variable in scope}
        blocked = {variable for block in self.blocks if roots & set(block) for variable in block}
        return self.only([variable for variable in self.variables if self.root(variable) in blocked])

    def _answers(self, scope: Scope, known: Mapping[Variable, NDArray[Any]], chances: Vector) -> Vector:
        """Compute `in_records` for a scope from the probabilities of each record's components, all else given."""
        codes = np.stack([known[variable] for variable in self.variables], axis=1)
        patterns, pattern = np.unique(codes, axis=0, return_inverse=True)
        result = np.empty((len(codes), math.prod(self.cardinalities[variable] for variable in scope)))
        for number, states in enumerate(patterns):
            evidence = {v: int(state) for v, state in zip(self.variables, states, strict=True) if state >= 0}
            _, tables, children = self._weigh(evidence)
            factors, sizes, late, order = replace(self, tables=tables, children=children)._factors(scope)
            rows = np.flatnonzero(pattern.ravel() == number)
            width = max(1, _MAX_PRODUCTS // math.prod(sizes))
            for some in np.array_split(rows, -(-len(rows) // width)):
                table = np.zeros((len(some), math.prod(sizes)))
                for begin in range(0, chances.shape[1], width):
                    each = [factor[begin : begin + width] for factor in factors]
                    table += chances[some, begin : begin + width] @ reduce(_row_products, each)
                table = table.reshape(-1, *sizes)
                for axis, descent in late.items():
                    table = along(table, axis + 1, descent)
                table = table.reshape(-1, *(self.cardinalities[variable] for variable in order))
                table = table.transpose([0, *(order.index(variable) + 1 for variable in scope)])
                result[some] = table.reshape(len(some), -1)
        return result

    def _logs_of_components(self) -> Callable[[Mapping[Variable, NDArray[Any]]], Vector]:
        """Return a function that computes logs of each component's weight times the probability of a few records."""
        parents = {child.parent for child in self.children.values()}
        with np.errstate(divide="ignore"):
            start = np.log(self.weights)
        alone = {
            block: _padded_logs(table)
            for block, table in zip(self.blocks, self.tables, strict=True)
            if parents.isdisjoint(block)
        }

        def logs(known: Mapping[Variable, NDArray[Any]]) -> Vector:
            terms = np.tile(start, (len(next(iter(known.values()))), 1))
            for block, table in zip(self.blocks, self.tables, strict=True):
                states = {variable: known[variable] for variable in block}
                if block not in alone:
                    for axis, variable in enumerate(block, 1):
                        if variable in parents:
                            likelihoods, states[variable] = self._likelihoods(variable, known)
                            table = along(table, axis, likelihoods.T)
                terms += (alone[block] if block in alone else _padded_logs(table))[tuple(states.values())]
            return terms

        return logs

    def _likelihoods(self, root: Variable, known: Mapping[Variable, NDArray[Any]]) -> tuple[Any, Whole]:
        """Return distinct likelihoods of a root's states by the known values of it and its descendants in records."""
        names = [variable for variable in (root, *self.children) if self.root(variable) == root]
        distinct, index = np.unique(np.stack([known[name] for name in names], axis=1), axis=0, return_inverse=True)
        patterns, of = np.unique(distinct >= 0, axis=0, return_inverse=True)
        parts = []
        for number in range(len(patterns)):
            own = dict(zip(names, distinct[of.ravel() == number].T, strict=True))
            message = self._message(root, own)
            parts.append(sparse.csr_array(np.ones((1, self.cardinalities[root]))) if message is None else message)
        order = np.argsort(of.ravel(), kind="stable")
        return sparse.vstack(parts, format="csr"), np.argsort(order)[index.ravel()]

    def _message(self, variable: Variable, known: Mapping[Variable, NDArray[Any]]) -> Any:
        """Return the likelihood of a variable's states in records with equal known values of it and its descendants."""
        factors = [
            message @ child.shares.T
            for name, child in self.children.items()
            if child.parent == variable and (message := self._message(name, known)) is not None
        ]
        if (states := known[variable])[0] >= 0:
            entries = np.ones(len(states)), (np.arange(len(states)), states)
            factors.append(sparse.csr_array(entries, shape=(len(states), self.cardinalities[variable])))
        return reduce(lambda one, other: one.multiply(other), factors) if factors else None

    def given_component(self, variable: Variable, components: NDArray[Any], codes: Mapping[Variable, Any]) -> Vector:
        """Compute the distribution of a variable in each record, given its component and the variables of its block.

        Parameters
        ----------
        variable : Variable
        components : ndarray of int, shape (records,)
        codes : mapping of variable to ndarray of int, shape (records,)

        Returns
        -------
        ndarray of shape (records, states)
            Not normalised.
        """
        if variable in self.children:
            child = self.children[variable]
            return np.asarray(self.given_component(child.parent, components, codes) @ child.shares)
        block, table = next(own for own in zip(self.blocks, self.tables, strict=True) if variable in own[0])
        moved = np.moveaxis(table, block.index(variable) + 1, -1)
        result: Vector = moved[(components, *(codes[other] for other in block if other != variable))]
        return result

    def _weigh(
        self, evidence: Mapping[Variable, int | ArrayLike]
    ) -> tuple[Vector, tuple[Vector, ...], dict[Variable, Child]]:
        """Weight components by the evidence: return logs of the products, and tables and children given it."""
        self._require(evidence)
        likelihoods = {variable: self._likelihood(variable, given) for variable, given in evidence.items()}
        tables, children = list(self.tables), dict(self.children)
        for variable in reversed(self.children):
            if variable in likelihoods:
                own, children[variable] = children[variable].given(likelihoods.pop(variable))
                parent = children[variable].parent
                likelihoods[parent] = likelihoods.get(parent, 1.0) * own
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
            for number, block in enumerate(self.blocks):
                for axis, variable in enumerate(block):
                    if variable in likelihoods:
                        shape = [-1 if position == axis else 1 for position in range(len(block))]
                        tables[number] = tables[number] * likelihoods[variable].reshape(shape)
                if any(variable in likelihoods for variable in block):
                    sums = tables[number].reshape(logs.size, -1).sum(axis=1)
                    logs += np.log(sums)
                    # If the evidence is impossible the weight is zero, and the table is irrelevant.
                    sums = np.where(sums > 0, sums, np.inf).reshape(-1, *[1] * len(block))
                    tables[number] = np.where(sums < np.inf, tables[number] / sums, self.tables[number])
        return logs, tuple(tables), children

    def _likelihood(self, variable: Variable, given: int | ArrayLike) -> Vector:
        states = self.cardinalities[variable]
        if np.ndim(given) == 0:
            state = np.asarray(given)
            if state.dtype.kind not in "iu" or not 0 <= state < states:
                raise ValueError(f"evidence on {variable!r} is not one of its {states} states")
            return np.asarray(np.arange(states) == state, dtype=np.float64)
        likelihood: Vector = np.asarray(given, dtype=np.float64)
        if likelihood.shape != (states,) or not (np.isfinite(likelihood).all() and (likelihood >= 0).all()):
            raise ValueError(
                f"evidence on {variable!r} needs a finite likelihood, at least 0, of each of {states} states"
            )
        return likelihood

    def _require_few(self, asked: Scope) -> None:
        cells = math.prod(self.cardinalities[variable] for variable in asked)
        if cells > _MAX_CELLS:
            raise AnswerTooLargeError(
                f"a table of {cells:,} cells was asked for, more than {_MAX_CELLS:,}; ask for fewer variables at once"
            )

    def _require(self, variables: Iterable[Variable]) -> None:
        unknown = [variable for variable in variables if variable not in self.cardinalities]
        if unknown:
            raise ValueError(f"the mixture has no variable {unknown[0]!r}")


def cells_at(chances: Vector, row: NDArray[np.int64], share: Vector) -> NDArray[np.int64]:
    """Find the cell of a row of probabilities whose cumulative probability first exceeds each share."""
    sums = np.cumsum(chances, axis=1)
    # Sums of row k lie between k and k + 1, so that one search serves all rows.
    steps = (sums / sums[:, -1:] + np.arange(len(chances))[:, None]).ravel()
    cells = np.searchsorted(steps, row + share, side="right") - row * chances.shape[1]
    result: NDArray[np.int64] = np.minimum(cells, chances.shape[1] - 1)
    return result


def _padded_logs(table: Vector) -> Vector:
    """Return logs of a block's table, components last; the last entry of each axis, which -1 selects, is its sum."""
    for axis in range(1, table.ndim):
        table = np.concatenate([table, table.sum(axis=axis, keepdims=True)], axis=axis)
    with np.errstate(divide="ignore"):
        return np.ascontiguousarray(np.moveaxis(np.log(table), 0, -1))


def _sum_of_products(weights: Vector, factors: Sequence[Vector]) -> Vector:
    """Sum over components the weight times the outer product of the factors' rows, flat."""
    if not factors:
        return np.ones(1)
    sizes = [factor.shape[1] for factor in factors]
    cut = min(range(len(sizes)), key=lambda position: math.prod(sizes[:position]) + math.prod(sizes[position:]))
    left, right = math.prod(sizes[:cut]), math.prod(sizes[cut:])
    total = np.zeros((left, right))
    rows = max(1, _MAX_PRODUCTS // (left + right))
    for begin in range(0, weights.size, rows):
        part = [factor[begin : begin + rows] for factor in factors]
        some = weights[begin : begin + rows, None]
        total += reduce(_row_products, part[:cut], some).T @ reduce(_row_products, part[cut:], np.ones_like(some))
    return total.ravel()


def _row_products(first: Vector, second: Vector) -> Vector:
    """Compute the outer products of the rows of two matrices."""
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def _probabilities(values: ArrayLike, name: str, axes: int) -> Vector:
    result = np.asarray(values, dtype=np.float64)
    if result.ndim != axes or result.size == 0 or not (np.isfinite(result).all() and (result >= 0).all()):
        raise ValueError(f"{name} must be finite, at least 0, with {axes} axes")
    sums = result.sum(axis=-1, keepdims=True)
    if not np.allclose(sums, 1.0, atol=1e-4):
        raise ValueError(f"{name} must sum to one in each component")
    # Rows that sum to one up to rounding are kept, so that a mixture is unchanged when written and read.
    scaled: Vector = result / np.where(np.abs(sums - 1.0) < 1e-12, 1.0, sums)
    return scaled
