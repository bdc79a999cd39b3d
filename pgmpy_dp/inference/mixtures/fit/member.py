"""Fit of one mixture of products to tables of shares: penalised weighted least squares, by Adam."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from pgmpy_dp.inference.mixtures.boxes import Boxes
from pgmpy_dp.inference.mixtures.fit.base import Matrix, Shape, Targets, Whole
from pgmpy_dp.inference.tables.table import centred

Parameters = tuple[Matrix, Matrix, Matrix, Matrix]
Gradient = tuple[Matrix, Matrix, Matrix]

# Adam: step length, decays of mean and square, and distance of the start from the base.
_STEP, _DECAYS, _SPREAD = 0.4, (0.9, 0.99), 0.5
_BASE_STEP = 0.2  # step length of the base, as a share of the others
# Number of triples with a variable, per state of it and per (states in all / 100)^2, above which they are fitted by
# slices, whose work grows with the squared number of states.
_SLICED = 2
# Maximum number of states with which a step compares all others; if there are more, steps take turns. So neither the
# work of a step nor the memory for its products grows with the square of all states.
_COMPARED = 400
_FORBIDDEN = -1e4  # log-potential of cells outside of a component's box: its exponential is zero


@dataclass(frozen=True)
class _Part:
    """The part of a table in one block: one of its variables, or several.

    Attributes
    ----------
    block : int
    variables : tuple of int
        In the block's order.
    places : ndarray of shape (places,)
        Positions, in the full table of these variables, of the cells that the block contains.
    rows : ndarray of shape (cells of the block,)
        Index into `places` of every cell of the block.
    """

    block: int
    variables: tuple[int, ...]
    places: Whole
    rows: Whole

    @classmethod
    def of(cls, shape: Shape, block: int, variables: Iterable[int], whole: bool = False) -> _Part:
        """Find the positions that the block's cells have; if `whole`, keep all positions of the table."""
        own = tuple(sorted(variables, key=lambda variable: shape.places[variable][1]))
        if len(own) == 1:  # also one that follows from a variable of the block
            return cls(block, own, np.arange(shape.cardinalities[own[0]]), np.empty(0, np.intp))
        codes = shape.codes(block, own)
        if whole:
            return cls(block, own, np.arange(math.prod(shape.cardinalities[variable] for variable in own)), codes)
        return cls(block, own, *np.unique(codes, return_inverse=True))

    @cached_property
    def sums(self) -> Any:
        """Sparse matrix that sums the block's cells over its other variables, of shape (places, cells of the block)."""
        entries = np.ones(len(self.rows), np.float32), (self.rows, np.arange(len(self.rows)))
        return sparse.csr_array(entries, shape=(len(self.places), len(self.rows)))


class _Within(NamedTuple):
    """Tables of variables of one block, as one vector.

    Attributes
    ----------
    rows, cells : ndarrays of int
        Cells of the tables, each with a cell of a block that belongs to it.
    weight, shares : ndarrays of shape (cells of the tables,)
    sums, factors : ndarrays of shape (axes, cells of the tables)
        For residuals, the cells' places among the sums along the tables' first, second, ... axes, and by what to
        multiply a sum so that it is a mean; 0 if a table has no such axis.
    """

    rows: Whole
    cells: Whole
    weight: Matrix
    shares: Matrix
    sums: Whole
    factors: Matrix


@dataclass(frozen=True)
class _Beside:
    """Tables of some variables of a block with one other each, as one matrix.

    Attributes
    ----------
    part : _Part
    places : ndarray of shape (states,)
        Places of the others' states.
    weight, shares : ndarrays of shape (cells of the part, states)
    """

    part: _Part
    places: Whole
    weight: Matrix
    shares: Matrix


@dataclass(frozen=True)
class _Slices:
    """Tables of one variable with two others each, as one matrix of all pairs of states for each of its states.

    Attributes
    ----------
    variable : int
    weight : ndarray of shape (states, states)
        Weights of the cells of each pair, zero elsewhere.
    shares : list of ndarrays of shape (states, states)
    """

    variable: int
    weight: Matrix
    shares: list[Matrix]


class _Target(NamedTuple):
    """One table that the mixture's marginal should equal, with its precision relative to the largest."""

    variables: tuple[int, ...]
    shares: Matrix
    weight: float


class _Point(NamedTuple):
    """Values computed from a mixture's parameters; see `MemberProblem.tables`.

    Attributes
    ----------
    weights, tables, states : ndarrays
    compared : ndarray of shape (states, components)
        Probabilities of states; for residuals, differences from their mean over a variable's states, whose products are
        the residuals of pairs and triples.
    """

    weights: Matrix
    tables: Matrix
    states: Matrix
    compared: Matrix


class _Strip(NamedTuple):
    """Pairs of all variables with those of a strip.

    Attributes
    ----------
    first : int
        Position of the strip's first state among all.
    weight, shares : ndarrays of shape (all states, states of the strip)
    """

    first: int
    weight: Matrix
    shares: Matrix


class _Smoothing(NamedTuple):
    """Matrices that convert a component's coefficients of some variables to log-potentials.

    Attributes
    ----------
    rows, widths : ndarrays of int
        Position of the first state of each variable, and the number of its states.
    matrices, transposed : ndarrays
        Its square matrix and the transpose, flat, one variable's after the other's.
    """

    rows: Whole
    widths: Whole
    matrices: Matrix
    transposed: Matrix


class _Slopes(NamedTuple):
    """Derivatives of the loss by components' weights, by their probabilities of states, and by those of cells."""

    weight: Matrix
    state: Matrix
    cell: Matrix


class MemberProblem:
    """Loss of a mixture and its gradient.

    The loss is half the sum over the targets' cells of precision * (marginal - share)^2, with all precisions divided by
    the largest, plus `penalty` times the components' mean divergence from the base.

    Parameters
    ----------
    shape : Shape
    log_base : ndarray of shape (cells,)
        Logs of the tables towards which components are regularised, block by block.
    smoothing : sequence of ndarrays or None, one per variable
        Matrices that convert a component's coefficients of a variable to log-potentials.
    targets : sequence of Targets
        Pairs in different blocks are fitted together by one matrix product, many triples with one variable by a product
        for each of its states, and a block's two variables with others by one more; others one by one. Tables that join
        a variable with one that follows from another of its block are dropped: the block's own table says more.
    boxes : Boxes, optional
        Boxes to which components are confined, so that rules hold.
    residuals : bool
        Whether shares are residuals, with which only the marginals' residuals are compared. As these are projections,
        so are the derivatives.
    dtype : type
    """

    def __init__(
        self,
        shape: Shape,
        log_base: Matrix,
        smoothing: Sequence[Matrix | None],
        targets: Sequence[Targets],
        boxes: Boxes | None = None,
        residuals: bool = False,
        dtype: Any = np.float32,
    ) -> None:
        self.shape, self.dtype, self.boxes, self._residuals = shape, dtype, boxes, residuals
        self.log_base = np.asarray(log_base, dtype)
        self._smoothing = self._smoothed(smoothing)
        self.precision = max(float(alike.precisions.max()) for alike in targets)
        states = int(shape.states[-1])
        self._weight, self._shares = np.zeros((states, states), dtype), np.zeros((states, states), dtype)
        within: list[tuple[_Part, Matrix, float]] = []
        self._wide: list[tuple[list[_Part], Matrix, float]] = []
        beside: dict[tuple[int, ...], list[tuple[int, Matrix, float]]] = {}
        triples, others = self._sliced(self._fill_pairs(targets))
        for target in others:
            self._add(target, within, beside)
        self._within = self._within_of(within)
        self._beside = [self._beside_of(own, tables) for own, tables in beside.items()]
        self._slices = [self._slices_of(variable, own) for variable, own in triples.items()]
        self._singles = np.array([self._weight.diagonal(), self._shares.diagonal()])
        np.fill_diagonal(self._weight, 0)
        self._strips = self._split(self._weight, self._shares)
        del self._weight, self._shares

    def _split(self, weight: Matrix, shares: Matrix) -> list[_Strip]:
        """Divide the pairs into strips."""
        starts = self.shape.states
        count = -(-int(starts[-1]) // _COMPARED)
        ends = starts[np.unique(np.searchsorted(starts, np.linspace(0, starts[-1], count + 1)))]
        return [
            _Strip(begin, np.ascontiguousarray(weight[:, begin:end]), np.ascontiguousarray(shares[:, begin:end]))
            for begin, end in pairwise(ends.tolist())
        ]

    def adapted(self, log_base: Matrix, smoothing: Sequence[Matrix | None]) -> MemberProblem:
        """Return the same loss with another base and smoothing."""
        result = copy.copy(self)
        result.log_base = np.asarray(log_base, self.dtype)
        result._smoothing = self._smoothed(smoothing)
        return result

    def _smoothed(self, smoothing: Sequence[Matrix | None]) -> _Smoothing:
        """Flatten the matrices of the variables that have one."""
        given = [(variable, matrix) for variable, matrix in enumerate(smoothing) if matrix is not None]
        numbers, nothing = np.array([variable for variable, _ in given], np.intp), np.empty(0)
        return _Smoothing(
            self.shape.states[numbers],
            np.diff(self.shape.states)[numbers],
            np.concatenate([nothing, *(matrix.ravel() for _, matrix in given)]).astype(self.dtype),
            np.concatenate([nothing, *(matrix.T.ravel() for _, matrix in given)]).astype(self.dtype),
        )

    def _sliced(self, targets: Iterable[_Target]) -> tuple[dict[int, list[_Target]], list[_Target]]:
        """Group triples of different blocks by variables that have many per state; return all other targets too."""
        shape = self.shape
        triples: list[_Target] = []
        others: list[_Target] = []
        for target in targets:
            three = len(target.variables) == 3
            apart = three and len({shape.places[variable][0] for variable in target.variables}) == 3
            (triples if apart else others).append(target)
        counts = Counter(variable for target in triples for variable in target.variables)
        many = {variable: counts[variable] / shape.cardinalities[variable] for variable in counts}
        under: dict[int, list[_Target]] = {}
        for target in triples:
            under.setdefault(max(target.variables, key=lambda variable: (many[variable], variable)), []).append(target)
        minimum = _SLICED * (shape.states[-1] / 100) ** 2
        for variable in [v for v, own in under.items() if len(own) < minimum * shape.cardinalities[v]]:
            others += under.pop(variable)
        return under, others

    def _fill_pairs(self, targets: Sequence[Targets]) -> list[_Target]:
        """Write the pairs in different blocks, of which there may be half a million, and return all other targets."""
        blocks, others = np.array([block for block, _ in self.shape.places]), list[_Target]()
        for variables, shares, precisions in targets:
            weights = precisions / self.precision
            apart = np.zeros(len(shares), bool)
            if variables.shape[1] == 2:
                apart = blocks[variables[:, 0]] != blocks[variables[:, 1]]
                rows, columns = (
                    self.shape.states[own[apart], None] + np.arange(states)
                    for own, states in zip(variables.T, shares.shape[1:], strict=True)
                )
                position = rows[:, :, None], columns[:, None]
                self._weight[position], self._shares[position] = weights[apart, None, None], shares[apart]
            for number in np.flatnonzero(~apart):
                others.append(_Target(tuple(variables[number].tolist()), shares[number], float(weights[number])))
        self._weight += self._weight.T
        self._shares += self._shares.T
        return sorted(others, key=lambda target: target.variables)

    def _slices_of(self, variable: int, triples: Sequence[_Target]) -> _Slices:
        states, cardinality = int(self.shape.states[-1]), self.shape.cardinalities[variable]
        weight, *shares = np.zeros((1 + cardinality, states, states), self.dtype)
        for target in triples:
            a, b = (self.shape.of_variable(other) for other in target.variables if other != variable)
            weight[a, b] = weight[b, a] = target.weight
            cells = np.moveaxis(np.asarray(target.shares, self.dtype), target.variables.index(variable), 0)
            for own, table in zip(shares, cells, strict=True):
                own[a, b], own[b, a] = table, table.T
        return _Slices(variable, weight, shares)

    def _within_of(self, tables: Sequence[tuple[_Part, Matrix, float]]) -> _Within:
        starts = np.cumsum([0, *(shares.size for _, shares, _ in tables)]).tolist()
        begins, nothing = self.shape.starts, np.empty(0, np.intp)
        rows = [start + part.rows for start, (part, _, _) in zip(starts, tables, strict=False)]
        cells = [begins[part.block] + np.arange(part.rows.size) for part, _, _ in tables]
        return _Within(
            np.concatenate([nothing, *rows]),
            np.concatenate([nothing, *cells]),
            np.concatenate(
                [nothing, *(np.full(shares.size, weight) for _, shares, weight in tables)], dtype=self.dtype
            ),
            np.concatenate([nothing, *(shares for _, shares, _ in tables)], dtype=self.dtype),
            *_axes([self._dimensions([part]) for part, _, _ in tables] if self._residuals else []),
        )

    def _beside_of(self, variables: tuple[int, ...], tables: Sequence[tuple[int, Matrix, float]]) -> _Beside:
        part = _Part.of(self.shape, self.shape.places[variables[0]][0], variables)
        positions = [np.arange(*self.shape.states[variable : variable + 2]) for variable, _, _ in tables]
        weight = np.concatenate([np.full(shares.shape, weight, self.dtype) for _, shares, weight in tables], axis=1)
        return _Beside(part, np.concatenate(positions), weight, np.concatenate([own for _, own, _ in tables], axis=1))

    def _add(
        self,
        target: _Target,
        within: list[tuple[_Part, Matrix, float]],
        beside: dict[tuple[int, ...], list[tuple[int, Matrix, float]]],
    ) -> None:
        """Add a target to the product that fits it; tables of a block with one variable are collected in `beside`."""
        shape, (variables, _, weight) = self.shape, target
        blocks = sorted({shape.places[variable][0] for variable in variables})
        shares = np.asarray(target.shares, self.dtype)
        if len(variables) == 1:
            one = shape.of_variable(variables[0])
            self._weight[one, one], self._shares[one, one] = weight * np.eye(shares.size), np.diag(shares)
        elif all(v in shape.blocks[shape.places[v][0]] or self._alone(v, variables) for v in variables):
            parts = [
                _Part.of(shape, number, (v for v in variables if shape.places[v][0] == number), self._residuals)
                for number in blocks
            ]
            parts.sort(key=lambda part: -len(part.variables))
            order = [variable for part in parts for variable in part.variables]
            shares = shares.transpose([variables.index(variable) for variable in order])
            shares = shares.reshape([math.prod(shape.cardinalities[v] for v in part.variables) for part in parts])
            shares = shares[np.ix_(*(part.places for part in parts))]
            if len(parts) == 1:
                within.append((parts[0], shares, weight))
            elif len(parts) == 2 and len(parts[1].variables) == 1 and not self._residuals:
                beside.setdefault(parts[0].variables, []).append((parts[1].variables[0], shares, weight))
            else:
                self._wide.append((parts, shares.ravel(), weight))

    def _dimensions(self, parts: Iterable[_Part]) -> tuple[int, ...]:
        """Return the shape of a table with one axis for each variable."""
        return tuple(self.shape.cardinalities[variable] for part in parts for variable in part.variables)

    def _compared(self, marginal: Matrix, dimensions: tuple[int, ...]) -> Matrix:
        """Return a marginal, or its residuals, to compare it with shares."""
        return centred(marginal.reshape(dimensions)).reshape(marginal.shape) if self._residuals else marginal

    def _alone(self, variable: int, variables: tuple[int, ...]) -> bool:
        """Whether a variable is the only one of its block in a table."""
        return [self.shape.places[v][0] for v in variables].count(self.shape.places[variable][0]) == 1

    def start(self, components: int, generator: np.random.Generator) -> Parameters:
        """Return parameters near the base: coefficients, logs of weights, shift of the base's logs, and bars."""
        spread = _SPREAD if components > 1 else 0.0  # a single component is the base, until targets move it
        noise = spread * generator.standard_normal((components, int(self.shape.states[-1])))
        return (
            np.ascontiguousarray(noise.T, self.dtype),
            np.zeros(components, self.dtype),
            np.zeros(self.log_base.size, self.dtype),
            self._forbidden(components, generator),
        )

    def _forbidden(self, components: int, generator: np.random.Generator) -> Matrix:
        """Draw the cells outside of each component's box, as log-potentials; without rules there are no rows."""
        if self.boxes is None:
            return np.zeros((0, components), self.dtype)
        base = np.exp(self.log_base)
        shares = [base[self.shape.of_block(number)] for number in range(len(self.shape.blocks))]
        drawn = self.boxes.draw(shares, components, generator)
        if not len(drawn[0]):
            raise ValueError("The rules leave hardly any combination of what the release shows: some rule is wrong.")
        rows = np.arange(components) % len(drawn[0])
        free = np.concatenate([cells[rows].T for cells in drawn])
        forbidden: Matrix = np.where(free, self.dtype(0), self.dtype(_FORBIDDEN))
        return forbidden

    def tables(self, parameters: Parameters) -> tuple[Matrix, Matrix, Matrix, Matrix]:
        """Compute weights, tables (cells, components), logs of tables / base, probabilities (states, components)."""
        from pgmpy_dp.inference.mixtures.fit import member_kernel as kernel

        coefficients, log_weights, shift, forbidden = parameters
        shape = self.shape
        base = self.log_base + shift
        logs = np.empty((base.size, len(log_weights)), self.dtype)
        states = np.zeros(coefficients.shape, self.dtype)
        potentials, room = np.empty_like(coefficients), np.empty((2, len(log_weights)), self.dtype)
        cells, following = (shape.starts, shape.members), shape.following
        kernel.logs_of_cells(
            coefficients, self._smoothing, *following, base, forbidden, *cells, logs, potentials, room[0]
        )
        tables = np.exp(logs)
        kernel.normalise(base, *cells, *following, logs, tables, states, *room)
        weights = np.exp(log_weights - log_weights.max())
        return weights / weights.sum(), tables, logs, states

    # BLAS may raise the flag of invalid values for a single component, although all results are finite.
    @np.errstate(invalid="ignore")
    def gradient(self, parameters: Parameters, penalty: float, turn: int | None = None) -> tuple[float, Gradient]:
        """Compute the loss and its derivatives by all parameters except the bars.

        With a `turn`, which counts steps, pairs of one strip represent all.

        The base's derivatives exclude its direct effect on the loss, through the penalty: the base should follow the
        targets, not the components.
        """
        from pgmpy_dp.inference.mixtures.fit import member_kernel as kernel

        shape, dtype = self.shape, self.dtype
        weights, tables, logs, states = self.tables(parameters)
        compared, room = states, np.empty((2, len(weights)), dtype)
        if self._residuals:
            kernel.centre_states(compared := states.copy(), shape.states, room[0])
        at = _Point(weights, tables, states, compared)
        by = _Slopes(np.zeros_like(weights), np.zeros_like(states), np.zeros_like(tables))
        strips = self._strips if turn is None else [self._strips[turn % len(self._strips)]]
        factor, rooted = dtype(len(self._strips) / len(strips)), compared * np.sqrt(weights)
        loss = kernel.compare_singles(states, compared @ weights, self._singles, by.weight, by.state)
        for strip in strips:
            losses = np.zeros(strip.weight.shape[1], dtype)
            loss += kernel.compare_pairs(states, rooted, strip, factor, by.weight, by.state, losses)
        marginals, by_base = np.zeros((2, self._within.shares.size)), np.zeros(len(tables), dtype)
        loss += kernel.compare_within(tables @ weights, self._within, *marginals, by_base)
        by.weight[:] += by_base @ tables
        for parts, shares, weight in self._wide:
            loss += self._add_wide(parts, shares, weight, at, by)
        for beside in self._beside:
            loss += self._add_beside(beside, at, by)
        for slices in self._slices:
            loss += self._add_slices(slices, at, by)
        by_potential, by_coefficient = np.zeros_like(states), np.empty_like(states)
        divergence = kernel.gradient_of_coefficients(
            weights, tables, logs, dtype(penalty), self._smoothing, *shape.following, shape.starts, shape.members, *by,
            by_base, by_potential, by_coefficient, *room,
        )  # fmt: skip
        by_log_weight = weights * (by.weight - weights @ by.weight)
        return loss + penalty * float(divergence), (by_coefficient, by_log_weight, by_base)

    def _add_slices(self, slices: _Slices, at: _Point, by: _Slopes) -> float:
        """Compute the loss of triples with one variable, and add its derivatives."""
        from pgmpy_dp.inference.mixtures.fit import member_kernel as kernel

        loss, position, inner = 0.0, self.shape.of_variable(slices.variable), []
        for own, compared, shares in zip(at.states[position], at.compared[position], slices.shares, strict=True):
            product = (at.compared * (at.weights * compared)) @ at.compared.T
            loss += kernel.compare(slices.weight, shares, product, np.zeros(len(product), self.dtype))
            slope = product @ at.states
            inner.append((at.states * slope).sum(axis=0) / 2)
            by.state[:] += slope * own
            by.weight[:] += inner[-1] * own
        by.state[position] += inner - np.mean(inner, axis=0)  # a shift common to all states changes no probability
        return loss

    def _add_beside(self, beside: _Beside, at: _Point, by: _Slopes) -> float:
        """Compute the loss of a block's tables with others, and add its derivatives."""
        cells, others = self._factor(beside.part, at), at.states[beside.places]
        residual = (cells * at.weights) @ others.T - beside.shares
        slope = beside.weight * residual
        of_cells = slope @ others
        self._add_factor(beside.part, of_cells, by)
        by.state[beside.places] += slope.T @ cells
        by.weight[:] += np.einsum("ck,ck->k", of_cells, cells)
        return float(np.vdot(slope, residual)) / 2

    def _add_wide(self, parts: list[_Part], shares: Matrix, weight: float, at: _Point, by: _Slopes) -> float:
        """Compute the loss of a table over several blocks, and add its derivatives."""
        components = len(at.weights)
        factors = [self._factor(part, at) for part in parts]
        products = [factors[0]]
        for factor in factors[1:-1]:
            products.append((products[-1][:, None] * factor).reshape(-1, components))
        last = factors[-1]
        marginal = self._compared((products[-1] * at.weights) @ last.T, self._dimensions(parts))
        difference = marginal - shares.reshape(-1, len(last))
        loss = weight * float(np.vdot(difference, difference)) / 2
        difference *= self.dtype(weight)
        slope = difference.T @ products[-1]
        self._add_factor(parts[-1], slope, by)
        by.weight[:] += np.einsum("ck,ck->k", slope, last)
        rest = difference @ last
        for position in range(len(parts) - 2, 0, -1):
            cube = rest.reshape(len(products[position - 1]), -1, components)
            self._add_factor(parts[position], np.einsum("ack,ak->ck", cube, products[position - 1]), by)
            rest = np.einsum("ack,ck->ak", cube, factors[position])
        self._add_factor(parts[0], rest, by)
        return loss

    def _factor(self, part: _Part, at: _Point) -> Matrix:
        if len(part.variables) == 1:
            return at.states[self.shape.of_variable(part.variables[0])]
        sums: Matrix = part.sums @ at.tables[self.shape.of_block(part.block)]
        return sums

    def _add_factor(self, part: _Part, slope: Matrix, by: _Slopes) -> None:
        if len(part.variables) == 1:
            by.state[self.shape.of_variable(part.variables[0])] += slope
        else:
            by.cell[self.shape.of_block(part.block)] += part.sums.T @ slope


def _axes(shapes: Sequence[tuple[int, ...]]) -> tuple[Whole, Matrix]:
    """Number the sums along each axis of stacked tables; see `_Within`."""
    axes, cells = max(map(len, shapes), default=0), sum(map(math.prod, shapes))
    sums, factors = np.zeros((axes, cells), np.intp), np.zeros((axes, cells))
    for axis in range(axes):
        begin = many = 0
        for shape in shapes:
            own = slice(begin, begin + math.prod(shape))
            others = [1 if position == axis else states for position, states in enumerate(shape)]
            sums[axis, own] = many + np.broadcast_to(np.arange(math.prod(others)).reshape(others), shape).ravel()
            factors[axis, own] = 1 / shape[axis] if axis < len(shape) else 0.0
            begin, many = own.stop, many + math.prod(others)
    return sums, factors


def fit_member(
    problem: MemberProblem, penalty: float, components: int, steps: int, generator: np.random.Generator
) -> Parameters:
    """Find the parameters after a fixed number of Adam's steps from a random start."""
    from pgmpy_dp.inference.mixtures.fit.member_kernel import adam_step  # numba is slow to import

    parameters = problem.start(components, generator)
    points = tuple(values.ravel() for values in parameters[:3])
    means, squares = (tuple(np.zeros_like(values) for values in points) for _ in range(2))
    first, second = (problem.dtype(decay) for decay in _DECAYS)
    for step in range(1, steps + 1):
        _, gradient = problem.gradient(parameters, penalty, step)
        slopes = tuple(slope.ravel() for slope in gradient)
        length = _STEP * min(1.0, 2 * (1 - step / steps) + 0.02)
        lengths = problem.dtype(length), problem.dtype(length), problem.dtype(length * _BASE_STEP)
        biases = problem.dtype(1 - _DECAYS[0] ** step), problem.dtype(1 - _DECAYS[1] ** step)
        adam_step(points, slopes, means, squares, lengths, first, second, *biases)
    if not all(np.isfinite(values).all() for values in parameters[:3]):  # once not finite, they stay so
        raise FloatingPointError("The parameters of a mixture did not stay finite.")
    return parameters
