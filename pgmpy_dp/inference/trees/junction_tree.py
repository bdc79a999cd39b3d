"""Exact inference by a junction tree that is compiled to one flat buffer."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.table import Layout, Scope, Table, Variable, Vector
from pgmpy_dp.inference.trees import triangulation

# As in kernel.py, which is imported at the first calibration only, since numba takes 0.2 s and 70 MB.
_ASSIGN, _MULTIPLY, _SUM_UP, _SUM_DOWN, _SUM_OUT, _FILL, _NORMALISE, _NORMALISE_ROOT, _DIVIDE = range(9)


class TreeTooLargeError(ValueError):
    """The junction tree has more table cells than allowed."""


@dataclass(frozen=True)
class Segment:
    """A table in the buffer: start and number of its cells, and its variables, of which the last varies fastest."""

    start: int
    scope: tuple[int, ...]
    cells: int


@dataclass(frozen=True)
class Node:
    """A clique of the rooted tree, with a separator towards its parent unless it is a root."""

    table: Segment
    parent: int | None
    message: Segment | None
    belief: Segment | None


@dataclass(frozen=True)
class Calibration:
    """Result of inference for one vector of log-potentials."""

    log_partition: float
    marginals: Vector
    beliefs: Vector
    converged: bool = True


@dataclass(frozen=True)
class JunctionTree:
    """Junction tree, compiled by `build` once for a structure, which serves any number of calibrations."""

    layout: Layout  # order of the log-potentials and of the marginals
    variables: tuple[Variable, ...]
    cliques: tuple[Node, ...]
    program: NDArray[np.int64]  # instructions for the kernel
    maps: NDArray[np.int32]
    buffer_size: int
    repeats: ClassVar[float] = 1.0  # number of cliques that share each table of log-potentials

    @classmethod
    def build(
        cls,
        cardinalities: Mapping[Variable, int],
        scopes: Iterable[Sequence[Variable]],
        cover: Iterable[Sequence[Variable]] = (),
        max_cells: float = math.inf,
        fits: int = 1,
    ) -> JunctionTree:
        """Triangulate, root and compile; more elimination orders are tried for a tree that serves more evaluations.

        Examples
        --------
        >>> tree = JunctionTree.build({"a": 2, "b": 2}, [("a", "b")])
        >>> tree.calibrate(np.log([0.1, 0.2, 0.3, 0.4])).marginals
        array([0.1, 0.2, 0.3, 0.4])
        """
        layout = Layout.of(cardinalities, scopes)
        covered = Layout.of(cardinalities, cover).scopes
        variables = tuple(layout.cardinalities)
        index = {variable: number for number, variable in enumerate(variables)}
        cards = [layout.cardinalities[variable] for variable in variables]
        numbered = [tuple(index[variable] for variable in scope) for scope in layout.scopes]
        needed = [*numbered, *(tuple(index[variable] for variable in scope) for scope in covered)]
        tree = triangulation.junction_tree(cards, needed, fits)
        cells = triangulation.total_cells(tree, cards)
        if cells > max_cells:
            raise TreeTooLargeError(f"the junction tree has {cells:,} table cells, more than {max_cells:,.0f}")
        return _Compiler(layout, variables, cards, numbered, tree).compile()

    @staticmethod
    def cliques_of(cardinalities: Mapping[Variable, int], scopes: Iterable[Sequence[Variable]]) -> list[Scope]:
        """List the cliques of `build` without making their tables."""
        variables = list(cardinalities)
        index = {variable: number for number, variable in enumerate(variables)}
        numbered = [[index[variable] for variable in scope] for scope in scopes]
        tree = triangulation.junction_tree([cardinalities[variable] for variable in variables], numbered)
        return [tuple(variables[number] for number in sorted(clique)) for clique in tree]

    @property
    def table_cells(self) -> int:
        """The number of cells of all cliques of the tree."""
        return sum(clique.table.cells for clique in self.cliques)

    def calibrate(self, potentials: Vector) -> Calibration:
        """Compute the log-partition function and all clique marginals."""
        from pgmpy_dp.inference.trees import kernel

        size = self.layout.size
        if potentials.shape != (size,):
            raise ValueError(f"log-potentials have shape {potentials.shape}, not ({size},)")
        # The buffer has one type: strided, read-only or single-precision potentials would be compiled for anew.
        buffer = np.empty(self.buffer_size)
        buffer[:size] = potentials
        shift, lost = kernel.exponentiate(buffer[:size], self.layout.offsets, buffer)
        log_partition = kernel.calibrate(self.program, self.maps, buffer, lost)[0] + shift
        if not math.isfinite(log_partition):
            if np.isnan(potentials).any() or np.isposinf(potentials).any():
                raise ValueError("log-potentials must not be NaN or plus infinity")
            buffer[:size] = potentials
            log_partition = kernel.calibrate_log(self.program, self.maps, buffer)
            if not math.isfinite(log_partition):
                raise ValueError("the log-potentials forbid every configuration: the partition function is zero")
        return Calibration(log_partition, buffer[size : 2 * size].copy(), buffer)

    def covariance_product(self, calibration: Calibration, direction: Vector) -> Vector:
        """Compute the derivative of the marginals along a direction g of log-potentials: Cov(phi) g, exactly.

        `calibration` must be of this tree; `direction` and the result have shape (layout.size,).
        """
        from pgmpy_dp.inference.trees import kernel

        size = self.layout.size
        buffer = np.empty(self.buffer_size)
        buffer[:size] = direction
        kernel.covariance_product(self.program, self.maps, calibration.beliefs, buffer)
        return buffer[size : 2 * size].copy()

    def marginal(self, calibration: Calibration, scope: Sequence[Variable]) -> Vector:
        """Compute the marginal of any set of variables within one clique of the tree."""
        numbers = [self.variables.index(variable) for variable in scope]
        holders = [clique.table for clique in self.cliques if set(numbers) <= set(clique.table.scope)]
        if not holders:
            raise KeyError(f"no clique of the junction tree holds {tuple(scope)!r}")
        table = min(holders, key=lambda table: table.cells)
        return np.ascontiguousarray(Table(table.scope, self.table(calibration, table)).margin(numbers).values)

    def table(self, calibration: Calibration, table: Segment) -> Vector:
        """View the belief of one table in its shape."""
        shape = tuple(self.layout.cardinalities[self.variables[number]] for number in table.scope)
        return calibration.beliefs[table.start : table.start + table.cells].reshape(shape)


class _Compiler:
    """Lays out the tables of a junction tree in a buffer and writes the program."""

    def __init__(
        self,
        layout: Layout,
        variables: tuple[Variable, ...],
        cards: Sequence[int],
        scopes: Sequence[tuple[int, ...]],
        tree: nx.Graph,
    ) -> None:
        self.layout, self.variables, self.cards, self.scopes = layout, variables, cards, scopes
        self.end = 2 * layout.size  # the buffer starts with the potentials, then the marginals
        self.program: list[list[int]] = []
        self.maps: list[NDArray[np.int32]] = []
        self.map_starts: dict[Any, tuple[int, int, int]] = {}
        self.map_end = 0
        self.cliques = self._root(tree)
        self.factors_at = self._assign_factors()

    def compile(self) -> JunctionTree:
        children: dict[int, list[int]] = {number: [] for number in range(len(self.cliques))}
        for number, clique in enumerate(self.cliques):
            if clique.parent is not None:
                children[clique.parent].append(number)
        for number in reversed(range(len(self.cliques))):
            self._collect(number, children[number])
        for number in range(len(self.cliques)):
            self._distribute(number)
        return JunctionTree(
            layout=self.layout,
            variables=self.variables,
            cliques=tuple(self.cliques),
            program=np.array(self.program, dtype=np.int64).reshape(len(self.program), 9),
            maps=np.concatenate(self.maps) if self.maps else np.zeros(1, dtype=np.int32),
            buffer_size=self.end,
        )

    def _cells(self, scope: Iterable[int]) -> int:
        return math.prod(self.cards[number] for number in scope)

    def _allocate(self, scope: tuple[int, ...]) -> Segment:
        table = Segment(self.end, scope, self._cells(scope))
        self.end += table.cells
        return table

    def _root(self, tree: nx.Graph) -> list[Node]:
        """Order the cliques with parents first; each component is rooted at its largest clique."""
        ordered: list[Node] = []
        for component in nx.connected_components(tree):
            root = max(component, key=lambda clique: (self._cells(clique), sorted(clique)))
            number_of = {root: len(ordered)}
            ordered.append(Node(self._allocate(self._axes((), root)), None, None, None))
            for above, below in nx.bfs_edges(tree, root, sort_neighbors=lambda cliques: sorted(cliques, key=sorted)):
                parent = number_of[above]
                # The separator keeps the parent's order, and the clique the separator's: this makes blocks long.
                separator = tuple(v for v in ordered[parent].table.scope if v in below)
                number_of[below] = len(ordered)
                ordered.append(
                    Node(
                        table=self._allocate(self._axes(separator, below)),
                        parent=parent,
                        message=self._allocate(separator),
                        belief=self._allocate(separator),
                    )
                )
        return ordered

    def _axes(self, separator: tuple[int, ...], clique: frozenset[int]) -> tuple[int, ...]:
        rest = sorted(clique - set(separator), key=lambda number: (self.cards[number], number))
        return (*rest, *separator)

    def _assign_factors(self) -> dict[int, list[int]]:
        """Assign every factor to the smallest table that contains it; keys are starts of clique or belief tables."""
        tables = [clique.table for clique in self.cliques]
        tables += [clique.belief for clique in self.cliques if clique.belief is not None]
        tables.sort(key=lambda table: (table.cells, table.start))
        containing: dict[int, list[Segment]] = {number: [] for number in range(len(self.cards))}
        for table in tables:
            for number in table.scope:
                containing[number].append(table)
        at: dict[int, list[int]] = {}
        for factor, scope in enumerate(self.scopes):
            rarest = min(scope, key=lambda number: (len(containing[number]), number))
            table = next(table for table in containing[rarest] if set(scope) <= set(table.scope))
            at.setdefault(table.start, []).append(factor)
        return at

    def _factor_table(self, factor: int, marginal: bool = False) -> Segment:
        start = int(self.layout.offsets[factor]) + (self.layout.size if marginal else 0)
        return Segment(start, self.scopes[factor], self._cells(self.scopes[factor]))

    def _emit(self, operation: int, big: Segment, small: Segment, belief: int = -1) -> None:
        block, stride, start = self._index(big.scope, small.scope)
        self.program.append([operation, big.start, big.cells, small.start, block, stride, start, small.cells, belief])

    def _index(self, big: tuple[int, ...], small: tuple[int, ...]) -> tuple[int, int, int]:
        """Return block length, stride within a block, and start of the block map (shared by equal patterns)."""
        cards = [self.cards[number] for number in big]
        step = {number: self._cells(small[axis:]) for axis, number in enumerate(small, 1)}
        strides = [step.get(number, 0) for number in big]
        key = (tuple(cards), tuple(strides))
        if key not in self.map_starts:
            block, stride, split = 1, 0, len(big)
            while split > 0 and (split == len(big) or strides[split - 1] == stride * block or cards[split - 1] == 1):
                split -= 1
                stride = strides[split] if block == 1 else stride
                block *= cards[split]
            if block < 4:
                block, stride, split = 1, 0, len(big)
            starts = np.zeros(1, dtype=np.int32)
            for states, step_ in zip(cards[:split], strides[:split], strict=True):
                starts = (starts[:, None] + (np.arange(states, dtype=np.int32) * np.int32(step_))).ravel()
            self.map_starts[key] = (block, stride, self.map_end)
            self.maps.append(starts)
            self.map_end += starts.size
        return self.map_starts[key]

    def _collect(self, number: int, children: Sequence[int]) -> None:
        clique = self.cliques[number]
        parts = [self._factor_table(factor) for factor in self.factors_at.get(clique.table.start, [])]
        parts += [belief for child in children if (belief := self.cliques[child].belief) is not None]
        if not parts:
            self._emit(_FILL, clique.table, clique.table)
        for position, part in enumerate(sorted(parts, key=lambda part: -part.cells)):
            self._emit(_ASSIGN if position == 0 else _MULTIPLY, clique.table, part)
        if clique.message is None or clique.belief is None:
            self._emit(_NORMALISE_ROOT, clique.table, clique.table)
            return
        # The place of the belief holds the upward message until the belief is computed.
        self._emit(_SUM_UP, clique.table, clique.message, belief=clique.belief.start)
        self._emit(_ASSIGN, clique.belief, clique.message)
        for factor in self.factors_at.get(clique.belief.start, []):
            self._emit(_MULTIPLY, clique.belief, self._factor_table(factor))
        self._emit(_NORMALISE, clique.belief, clique.belief)

    def _distribute(self, number: int) -> None:
        clique = self.cliques[number]
        if clique.parent is not None and clique.message is not None and clique.belief is not None:
            parent = self.cliques[clique.parent].table
            self._emit(_SUM_DOWN, parent, clique.belief, belief=clique.belief.start)
            self._emit(_DIVIDE, clique.belief, clique.message)
            self._emit(_MULTIPLY, clique.table, clique.message)
            for factor in self.factors_at.get(clique.belief.start, []):
                self._emit(_SUM_OUT, clique.belief, self._factor_table(factor, marginal=True))
        for factor in self.factors_at.get(clique.table.start, []):
            self._emit(_SUM_OUT, clique.table, self._factor_table(factor, marginal=True))


def sample(
    tree: JunctionTree, calibration: Calibration, count: int, generator: np.random.Generator
) -> NDArray[np.int32]:
    """Draw independent records from the calibrated distribution, clique by clique from the root."""
    from pgmpy_dp.inference.trees import kernel

    if count < 0:
        raise ValueError(f"cannot draw {count} records")
    records = np.zeros((len(tree.variables), count), dtype=np.int32).T  # the states of a variable are contiguous
    cards = [tree.layout.cardinalities[variable] for variable in tree.variables]
    cell = np.empty(count, dtype=np.int64)
    for clique in tree.cliques:
        separator = clique.message.scope if clique.message is not None else ()
        rest = clique.table.scope[: len(clique.table.scope) - len(separator)]
        rows = np.zeros(count, dtype=np.int64)
        for number in separator:
            rows = rows * cards[number] + records[:, number]
        belief = tree.table(calibration, clique.table)
        width = int(np.prod([cards[number] for number in rest], dtype=np.int64))
        cumulative = np.cumsum(belief.reshape(width, -1).T, axis=1)
        kernel.draw_residual(np.ascontiguousarray(cumulative), rows, generator.random(count), cell)
        left = cell
        for number in reversed(rest[1:]):
            left, records[:, number] = np.divmod(left, cards[number])
        if rest:
            records[:, rest[0]] = left
    return records


def sample_counts(
    tree: JunctionTree, calibration: Calibration, count: int, draws: int, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Draw the tree's tables of counts of `count` independent records, without drawing the records.

    Each clique's counts given its separator's are multinomial: the cost does not grow with the number of records.
    """
    cards = [tree.layout.cardinalities[variable] for variable in tree.variables]
    drawn: list[NDArray[np.int64]] = []
    for clique in tree.cliques:
        scope, separator = clique.table.scope, () if clique.message is None else clique.message.scope
        shape = [cards[number] for number in scope]
        width = int(np.prod(shape[: len(scope) - len(separator)], dtype=np.int64))
        belief = tree.table(calibration, clique.table).reshape(width, -1).T
        mass = belief.sum(axis=1, keepdims=True)
        rows = np.where(mass > 0, belief / np.where(mass > 0, mass, 1.0), 1.0 / width)
        numbers = np.full((draws, 1), count)
        if clique.parent is not None:
            above = Table((-1, *tree.cliques[clique.parent].table.scope), drawn[clique.parent])
            numbers = above.margin((-1, *separator)).values.reshape(draws, -1)
        counts = generator.multinomial(numbers, rows)
        drawn.append(counts.transpose(0, 2, 1).reshape(draws, *shape))
    return drawn


def counted(
    cardinalities: Mapping[Variable, int], codes: NDArray[np.integer], scopes: Sequence[Scope], draws: int = 1
) -> NDArray[np.int64]:
    """Count records in tables."""
    position = {variable: number for number, variable in enumerate(cardinalities)}
    first = np.repeat(np.arange(draws), len(codes) // draws)
    tables = []
    for scope in scopes:
        cells, size = first, 1
        for variable in scope:
            cells = cells * cardinalities[variable] + codes[:, position[variable]]
            size *= cardinalities[variable]
        tables.append(np.bincount(cells, minlength=draws * size).reshape(draws, size))
    return np.hstack(tables)


@dataclass(frozen=True)
class TiedTree:
    """A junction tree viewed through groups of cliques, with one table per group.

    Its marginals are the means of the marginals of a group's cliques, which is what pooled records show. The derivative
    of log Z by the log-potentials of a group of k cliques is k times that.
    """

    tree: JunctionTree  # its scopes are the cliques of all groups
    layout: Layout  # one table per group
    source: NDArray[np.int64]  # for each cell of the tree's layout the cell of its group
    repeats: Vector  # k, the number of cliques in the group

    @classmethod
    def build(
        cls,
        cardinalities: Mapping[Variable, int],
        groups: Mapping[Scope, Sequence[Scope]],
        names: Mapping[Variable, int],
        max_cells: float,
    ) -> TiedTree:
        """Compile the tree."""
        layout = Layout.of(names, groups)
        tree = JunctionTree.build(
            cardinalities, [clique for group in groups.values() for clique in group], (), max_cells
        )
        ends = zip(layout.offsets[:-1], layout.offsets[1:], groups.values(), strict=True)
        source = [np.arange(start, stop) for start, stop, group in ends for _ in group]
        return cls(tree, layout, np.concatenate(source), layout.per_cell([len(group) for group in groups.values()]))

    def expand(self, potentials: Vector) -> Vector:
        """Return the log-potentials of the tree's cliques for those of the groups."""
        return potentials[self.source]

    def sum(self, values: Vector) -> Vector:
        """Sum over each group's cliques, from values in the tree's layout."""
        return np.bincount(self.source, values, self.layout.size).astype(np.float64)

    def calibrate(self, potentials: Vector) -> Calibration:
        """Calibrate like `JunctionTree.calibrate`, with potentials and marginals of the groups."""
        result = self.tree.calibrate(self.expand(potentials))
        return Calibration(result.log_partition, self.sum(result.marginals) / self.repeats, result.beliefs)

    def covariance_product(self, calibration: Calibration, direction: Vector) -> Vector:
        """Differentiate the product of the mean marginals with a direction g by the log-potentials.

        For a `JunctionTree` this is also the derivative of the marginals along g; here only if all groups have one
        size.
        """
        return self.sum(self.tree.covariance_product(calibration, self.expand(direction / self.repeats)))
