"""Mixtures of products of small tables, with exact answers."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from pgmpy_dp._threads import one_thread
from pgmpy_dp.inference.mixtures.refinement import Refinement, Whole, summed_by
from pgmpy_dp.inference.tables.layout import Scope, Variable, Vector

# Most cells of an answered table, and of intermediate products of a few components' tables.
_MAX_CELLS, _HELD = 20_000_000, 4_000_000
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
        Each variable that follows from no other must be in exactly one block.
    weights : ndarray of shape (components,)
        Probabilities of the components.
    tables : tuple of ndarrays, one per block
        Joint probabilities of the block's variables; axes: component, then variables. They sum to one in each
        component.
    dependent : mapping of variable to (variable, ndarray of int)
        Variables that follow from another one, which is in a block, with the state for each of its states.
    refined : mapping of variable to Refinement
        Variables that are independent of all else given a coarser one.

    Examples
    --------
    >>> weights, sick = np.array([0.9, 0.1]), np.array([[1.0, 0.0], [0.5, 0.5]])
    >>> mixture = Mixture.of({"lung": 2, "bronc": 2}, [("lung",), ("bronc",)], weights, [sick, sick])
    >>> mixture.marginal(("lung", "bronc"))
    array([[0.925, 0.025],
           [0.025, 0.025]])
    >>> mixture.condition({"lung": 1}).marginal(("bronc",))
    array([0.5, 0.5])
    """

    cardinalities: Mapping[Variable, int]
    blocks: tuple[Scope, ...]
    weights: Vector
    tables: tuple[Vector, ...]
    dependent: Mapping[Variable, tuple[Variable, Whole]] = field(default_factory=dict)
    refined: Mapping[Variable, Refinement] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        cardinalities: Mapping[Variable, int],
        blocks: Iterable[Sequence[Variable]],
        weights: ArrayLike,
        tables: Iterable[ArrayLike],
        dependent: Mapping[Variable, tuple[Variable, Whole]] | None = None,
    ) -> Mixture:
        """Check the arguments, normalise probabilities, and freeze."""
        sizes = {variable: int(states) for variable, states in cardinalities.items()}
        scopes = tuple(tuple(block) for block in blocks)
        following = dict(dependent or {})
        blocked = [variable for scope in scopes for variable in scope]
        if sorted(map(repr, sizes)) != sorted(map(repr, [*blocked, *following])):
            raise ValueError("each variable of a mixture belongs to one block")
        for variable, (root, states) in following.items():
            if (
                root not in blocked
                or np.shape(states) != (sizes[root],)
                or not 0 <= min(states) <= max(states) < sizes[variable]
            ):
                raise ValueError(f"variable {variable!r} follows from {root!r}, but not soundly")
        shares = _probabilities(weights, "the weights", axes=1)
        arrays = []
        for scope, table in zip(scopes, tables, strict=True):
            shape = (shares.size, *(sizes[variable] for variable in scope))
            if np.shape(table) != shape:
                raise ValueError(f"the tables of block {scope!r} have shape {np.shape(table)}, not {shape}")
            flat = np.asarray(table, dtype=np.float64).reshape(shares.size, -1)
            arrays.append(_probabilities(flat, f"the tables of block {scope!r}", axes=2).reshape(shape))
        return cls(sizes, scopes, shares, tuple(arrays), following)

    @property
    def variables(self) -> tuple[Variable, ...]:
        return tuple(self.cardinalities)

    def refine(self, cardinalities: Mapping[Variable, int], refined: Mapping[Variable, Refinement]) -> Mixture:
        """Return the mixture with finer variables; `cardinalities` has all variables in order."""
        for variable, finer in refined.items():
            sums = np.bincount(finer.groups, finer.shares, self.cardinalities[finer.coarser])
            present = np.bincount(finer.groups, minlength=sums.size) > 0
            if not (
                finer.shares.shape == finer.groups.shape == (cardinalities[variable],)
                and sums.size == self.cardinalities[finer.coarser]
                and np.isfinite(finer.shares).all()
                and (finer.shares >= 0).all()
                and np.allclose(sums[present], 1.0, atol=1e-4)
            ):
                raise ValueError(f"variable {variable!r} refines {finer.coarser!r}, but not soundly")
        return replace(self, cardinalities=dict(cardinalities), refined=dict(refined))

    @cached_property
    def coarse(self) -> Mixture:
        """The mixture of the variables that refine no other."""
        if not self.refined:
            return self
        sizes = {variable: states for variable, states in self.cardinalities.items() if variable not in self.refined}
        return replace(self, cardinalities=sizes, refined={})

    @cached_property
    def roots(self) -> Mixture:
        """The mixture of the variables that follow from no other."""
        if not self.dependent:
            return self
        sizes = {variable: states for variable, states in self.cardinalities.items() if variable not in self.dependent}
        return Mixture(sizes, self.blocks, self.weights, self.tables)

    def only(self, variables: Collection[Variable]) -> Mixture:
        """Return the mixture of some variables, with all components; roots of dependent variables must be included.

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
                tables.append(table.sum(axis=others))
        dependent = {variable: root for variable, root in self.dependent.items() if variable in kept}
        return Mixture(kept, tuple(blocks), self.weights, tuple(tables), dependent)

    def completed(self, codes: NDArray[Any]) -> NDArray[Any]:
        """Add the states of variables that follow from others to records of `roots`."""
        if not self.dependent:
            return codes
        column = {variable: place for place, variable in enumerate(self.roots.variables)}
        columns = []
        for variable in self.variables:
            root, states = self.dependent.get(variable, (variable, None))
            own = codes[:, column[root]]
            columns.append(own if states is None else states[own])
        largest = np.min_scalar_type(max(self.cardinalities.values()) - 1)
        return np.stack(columns, axis=1).astype(np.promote_types(codes.dtype, largest))

    def marginal(self, variables: Sequence[Variable]) -> Vector:
        """Compute the joint probabilities of some variables, with one axis each in the given order.

        Raises
        ------
        AnswerTooLargeError
            If the table would have more than 20 million cells.
        """
        asked = tuple(variables)
        self._known(asked)
        if len(set(asked)) != len(asked):
            raise ValueError(f"{asked!r} repeats a variable")
        shape = [self.cardinalities[variable] for variable in asked]
        cells = math.prod(shape)
        if cells > _MAX_CELLS:
            raise AnswerTooLargeError(
                f"a table of {cells:,} cells was asked for, more than {_MAX_CELLS:,}; ask for fewer variables at once"
            )
        if any(variable in self.refined for variable in asked):
            return self._of_refined(asked)
        if any(variable in self.dependent for variable in asked):
            return self._of_dependent(asked)
        order: list[Variable] = []
        factors: list[Vector] = []
        for block, table in zip(self.blocks, self.tables, strict=True):
            axes = [place for place, variable in enumerate(block) if variable in asked]
            if axes:
                others = tuple(place + 1 for place in range(len(block)) if place not in axes)
                factors.append(table.sum(axis=others).reshape(self.weights.size, -1))
                order += [block[place] for place in axes]
        with one_thread():
            table = _sum_of_products(self.weights, factors).reshape([self.cardinalities[v] for v in order])
        return table.transpose([order.index(variable) for variable in asked])

    def _of_refined(self, asked: Scope) -> Vector:
        """Compute `marginal` if variables refine others."""
        finer = [variable for variable in asked if variable in self.refined]
        coarser = [self.refined[variable].coarser for variable in finer]
        names = list(dict.fromkeys([*(v for v in asked if v not in self.refined), *coarser]))
        table = self.coarse.marginal(names)
        for place, (variable, root) in enumerate(zip(finer, coarser, strict=True)):
            axis = names.index(root)
            if root in asked or root in coarser[place + 1 :]:
                table = self.refined[variable].attach(table, axis)
                names.append(variable)
            else:
                table = self.refined[variable].spread(table, axis)
                names[axis] = variable
        return table.transpose([names.index(variable) for variable in asked])

    def _of_dependent(self, asked: Scope) -> Vector:
        """Compute `marginal` if variables follow from others.

        A root keeps all its states until the end if more is asked than one variable that follows from it; otherwise it
        is summed to the states of that variable first.
        """
        wanted: dict[Variable, list[Variable]] = {}
        for variable in asked:
            wanted.setdefault(self.dependent.get(variable, (variable, None))[0], []).append(variable)
        grouped = {root: own[0] for root, own in wanted.items() if len(own) == 1 and own[0] != root}
        blocks, tables = [], []
        for block, table in zip(self.blocks, self.tables, strict=True):
            others = tuple(axis + 1 for axis, variable in enumerate(block) if variable not in wanted)
            kept = [variable for variable in block if variable in wanted]
            if kept:
                summed = table.sum(axis=others)
                for axis, root in enumerate(kept, 1):
                    if root in grouped:
                        variable = grouped[root]
                        summed = summed_by(summed, axis, self.dependent[variable][1], self.cardinalities[variable])
                blocks.append(tuple(grouped.get(root, root) for root in kept))
                tables.append(summed)
        sizes = {variable: self.cardinalities[variable] for block in blocks for variable in block}
        held = [grouped.get(root, root) for root in wanted]
        table = Mixture(sizes, tuple(blocks), self.weights, tuple(tables)).marginal(held)
        at: dict[Variable, Any] = dict(zip(held, np.indices(table.shape, sparse=True), strict=True))
        found = np.zeros([self.cardinalities[variable] for variable in asked])
        for root, own in wanted.items():
            at |= {variable: self.dependent[variable][1][at[root]] for variable in own if variable not in at}
        np.add.at(found, tuple(at[variable] for variable in asked), table)
        return found

    def condition(self, evidence: Mapping[Variable, int | ArrayLike]) -> Mixture:
        """Return the mixture given evidence, over the same variables.

        Parameters
        ----------
        evidence : mapping of variable to int or array
            A variable's state, or the likelihood of each of its states: ones and zeros for a set of states, other
            numbers for uncertain evidence.

        Raises
        ------
        ValueError
            If the evidence is impossible.
        """
        coarse, refined = self._of_coarse(evidence)
        logs, tables = self.coarse._weigh(coarse)
        if logs.max() == -np.inf:
            raise ValueError(f"evidence on {', '.join(map(repr, evidence))} has probability zero")
        weights = np.exp(logs - logsumexp(logs))
        return Mixture(self.cardinalities, self.blocks, weights / weights.sum(), tables, self.dependent, refined)

    def log_evidence(self, evidence: Mapping[Variable, int | ArrayLike]) -> float:
        """Compute the log-probability of the evidence in nats; for likelihoods, the log of their mean."""
        return float(logsumexp(self.coarse._weigh(self._of_coarse(evidence)[0])[0]))

    def most_probable(self, variables: Sequence[Variable]) -> tuple[int, ...]:
        """Return the jointly most probable states of some variables; the first among equals.

        Raises
        ------
        AnswerTooLargeError
            If their joint table would have more than 20 million cells.
        """
        table = self.marginal(variables)
        return tuple(int(state) for state in np.unravel_index(int(table.argmax()), table.shape))

    def log_likelihood(self, codes: NDArray[np.integer]) -> Vector:
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
        if self.refined:
            return self._of_finer(codes)
        if self.dependent:
            return self._of_complete(codes)
        column = {variable: place for place, variable in enumerate(self.variables)}
        # The last entry of each axis is the sum over it, which index -1 selects.
        padded = [
            reduce(lambda whole, axis: np.concatenate([whole, whole.sum(axis=axis, keepdims=True)], axis=axis),
                   range(1, table.ndim), table)
            for table in self.tables
        ]  # fmt: skip
        with np.errstate(divide="ignore"):
            logs = [np.ascontiguousarray(np.moveaxis(np.log(table), 0, -1)) for table in padded]
            start = np.log(self.weights)
        out = np.empty(len(codes))
        for begin in range(0, len(codes), _RECORDS):
            part = codes[begin : begin + _RECORDS]
            terms = np.tile(start, (len(part), 1))
            for block, log in zip(self.blocks, logs, strict=True):
                terms += log[tuple(part[:, column[variable]] for variable in block)]
            out[begin : begin + len(part)] = logsumexp(terms, axis=1)
        return out

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
        finer = self.refined.get(variable)
        if finer is not None:
            coarse: Vector = self.coarse.given_component(finer.coarser, components, codes)
            return coarse[:, finer.groups] * finer.shares
        root, states = self.dependent.get(variable, (variable, None))
        block, table = next(own for own in zip(self.blocks, self.tables, strict=True) if root in own[0])
        own = np.moveaxis(table, block.index(root) + 1, -1)
        found: Vector = own[(components, *(codes[other] for other in block if other != root))]
        return found if states is None else summed_by(found, 1, states, self.cardinalities[variable])

    def _of_finer(self, codes: NDArray[np.integer]) -> Vector:
        """Compute `log_likelihood` if variables refine others: from the coarser ones and shares within them."""
        column = {variable: place for place, variable in enumerate(self.variables)}
        found, codes = np.zeros(len(codes)), codes.astype(np.intp)
        with np.errstate(divide="ignore"):
            for variable, finer in self.refined.items():
                own, group = codes[:, column[variable]], codes[:, column[finer.coarser]]
                known = own >= 0
                implied = np.where(known, finer.groups[own], group)
                found += np.where(known, np.log(finer.shares[own]), 0.0)
                found[(group >= 0) & (group != implied)] = -np.inf
                codes[:, column[finer.coarser]] = implied
        return found + self.coarse.log_likelihood(codes[:, [column[variable] for variable in self.coarse.variables]])

    def _of_coarse(
        self, evidence: Mapping[Variable, int | ArrayLike]
    ) -> tuple[Mapping[Variable, int | ArrayLike], dict[Variable, Refinement]]:
        """Convert evidence on finer variables to evidence on their coarser ones, and shares given it."""
        self._known(evidence)
        refined = dict(self.refined)
        if not refined.keys() & evidence.keys():
            return evidence, refined
        found: dict[Variable, Any] = {}
        for variable, given in evidence.items():
            own, root = self._likelihood(variable, given), variable
            if variable in refined:
                root = refined[variable].coarser
                own, refined[variable] = refined[variable].given(own, self.cardinalities[root])
            found[root] = found.get(root, 1.0) * own
        return found, refined

    def _of_complete(self, codes: NDArray[np.integer]) -> Vector:
        """Compute `log_likelihood` if variables follow from others: from roots alone, if the others match."""
        column = {variable: place for place, variable in enumerate(self.variables)}
        agrees = np.ones(len(codes), dtype=bool)
        for variable, (root, states) in self.dependent.items():
            known, own = codes[:, column[root]], codes[:, column[variable]]
            if ((known < 0) & (own >= 0)).any():
                raise ValueError(f"records know {variable!r}, but not {root!r}, from which it follows")
            agrees &= (own < 0) | (states[known] == own)
        found = self.roots.log_likelihood(codes[:, [column[variable] for variable in self.roots.variables]])
        return np.where(agrees, found, -np.inf)

    def _weigh(self, evidence: Mapping[Variable, int | ArrayLike]) -> tuple[Vector, tuple[Vector, ...]]:
        """Weight components by the evidence: return logs of the products, and tables given the evidence."""
        self._known(evidence)
        likelihoods: dict[Variable, Vector] = {}
        for variable, given in evidence.items():
            root, states = self.dependent.get(variable, (variable, None))
            own = self._likelihood(variable, given)
            likelihoods[root] = likelihoods.get(root, 1.0) * (own if states is None else own[states])
        tables = list(self.tables)
        with np.errstate(divide="ignore"):
            logs = np.log(self.weights)
            for number, block in enumerate(self.blocks):
                for axis, variable in enumerate(block):
                    if variable in likelihoods:
                        shape = [-1 if place == axis else 1 for place in range(len(block))]
                        tables[number] = tables[number] * likelihoods[variable].reshape(shape)
                if any(variable in likelihoods for variable in block):
                    sums = tables[number].reshape(logs.size, -1).sum(axis=1)
                    logs += np.log(sums)
                    # If the evidence is impossible the weight is zero, and the table is irrelevant.
                    sums = np.where(sums > 0, sums, np.inf).reshape(-1, *[1] * len(block))
                    tables[number] = np.where(sums < np.inf, tables[number] / sums, self.tables[number])
        return logs, tuple(tables)

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

    def _known(self, variables: Iterable[Variable]) -> None:
        unknown = [variable for variable in variables if variable not in self.cardinalities]
        if unknown:
            raise ValueError(f"the mixture has no variable {unknown[0]!r}")


def _sum_of_products(weights: Vector, factors: Sequence[Vector]) -> Vector:
    """Sum over components the weight times the outer product of the factors' rows, flat.

    The product of the first few factors and that of the others are combined in one matrix product, a few components at
    a time.
    """
    if not factors:
        return np.ones(1)
    sizes = [factor.shape[1] for factor in factors]
    cut = min(range(len(sizes)), key=lambda place: math.prod(sizes[:place]) + math.prod(sizes[place:]))
    left, right = math.prod(sizes[:cut]), math.prod(sizes[cut:])
    total = np.zeros((left, right))
    rows = max(1, _HELD // (left + right))
    for begin in range(0, weights.size, rows):
        part = [factor[begin : begin + rows] for factor in factors]
        some = weights[begin : begin + rows, None]
        total += reduce(_row_products, part[:cut], some).T @ reduce(_row_products, part[cut:], np.ones_like(some))
    return total.ravel()


def _row_products(first: Vector, second: Vector) -> Vector:
    """Compute the outer products of the rows of two matrices."""
    return (first[:, :, None] * second[:, None, :]).reshape(len(first), -1)


def _probabilities(values: ArrayLike, name: str, axes: int) -> Vector:
    found = np.asarray(values, dtype=np.float64)
    if found.ndim != axes or found.size == 0 or not (np.isfinite(found).all() and (found >= 0).all()):
        raise ValueError(f"{name} must be finite, at least 0, with {axes} axes")
    sums = found.sum(axis=-1, keepdims=True)
    if not np.allclose(sums, 1.0, atol=1e-4):
        raise ValueError(f"{name} must sum to one in each component")
    # What sums to one up to rounding stays, so that a mixture that was written and read is the same.
    scaled: Vector = found / np.where(np.abs(sums - 1.0) < 1e-12, 1.0, sums)
    return scaled
