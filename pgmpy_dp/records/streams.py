"""Streamed records: they stay where they are and are read in batches, by the same encoder as frames in memory.

An engine only delivers batches. It never compares, converts or groups a value: its rules for that are its own, and may
depend on what other records hold. Columns are named by their places here, so that no name of a user has a meaning for
an engine or clashes with a column that is added.

If a unit of privacy has several rows, the engine states for each row how many its unit has, and its rank among them in
a random order. Both come with the batch, in the same scan as the rows that they bound: read earlier, a source that
returns other rows each time could let one person count more than once.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from operator import iadd
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._progress import progress
from pgmpy_dp._threads import cores
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records.cells import UNDECLARED, Reader
from pgmpy_dp.records.columns import (
    ValueCounts,
    Values,
    column_reader,
    objects,
    positions,
    read_columns,
    require_few,
    settled,
    smallest_type,
    variable_codes,
)
from pgmpy_dp.records.frames import column_at
from pgmpy_dp.records.memory import Counts, count_all
from pgmpy_dp.records.refusals import require_declared, sealed
from pgmpy_dp.records.units import Unit, require_ids
from pgmpy_dp.records.weights import Weights
from pgmpy_dp.schema import Clique, Schema, State

Numbers = NDArray[np.int64]

BATCH_ROWS = 2**17


@dataclass(frozen=True)
class Counted:
    """What a tally counted in some batches, as numbers and the rows of each undeclared value; batches add up."""

    numbers: Numbers
    values: Counter[State] = field(default_factory=Counter)
    variable: str = ""

    def __iadd__(self, other: Counted) -> Counted:
        self.values.update(other.values)
        require_few(other.variable, self.values)
        return Counted(self.numbers + other.numbers, self.values, other.variable)

    def __add__(self, other: Counted) -> Counted:
        total = replace(self, values=self.values.copy())
        total += other
        return total


@dataclass(frozen=True)
class Tally:
    """Counts of a batch in one array of integers, so that batches add up.

    A batch has a column for each variable, in order, without the coarser variables of hierarchies, and one for weights
    if there are any. With a unit, further columns hold the number of rows of its unit, the row's rank among them from
    1, and whether the row has no unit.
    """

    schema: Schema
    variables: tuple[str, ...]
    cliques: tuple[Clique, ...] = ()
    unit: Unit | None = None
    weights: Weights | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a batch, without those that an engine adds for units."""
        return self.variables if self.weights is None else (*self.variables, self.weights.column)

    def __call__(self, batch: Any) -> Counted:
        """Count rows, units, rows without a unit, each variable's missing and undeclared cells, and cliques' tables."""
        start = len(self.columns)
        bounds = [np.asarray(column_at(batch, start + i)).astype(np.int64) for i in range(3 * (self.unit is not None))]
        return self.count(self.read(batch), bounds)

    def read(self, batch: Any) -> list[NDArray[Any]]:
        """Find the positions of a batch's cells, an array per variable, of a type that depends only on its states.

        The rows' weights, in integer parts, come last if there are any.
        """
        results = [
            positions(column_at(batch, position), reader).astype(smallest_type(reader), copy=False)
            for position, reader in enumerate(self._readers.values())
        ]
        weighed = [] if self.weights is None else [self.weights.parts(column_at(batch, len(self.variables)))]
        return [*results, *weighed]

    def count(self, cells: Sequence[NDArray[Any]], bounds: Sequence[Numbers]) -> Counted:
        """Count cells that were read, using the bounds of their rows."""
        codes, results = {}, []
        weights = None if self.weights is None else cells[-1].astype(np.int64)
        for (variable, reader), read in zip(self._readers.items(), cells[: len(self.variables)], strict=True):
            codes[variable], lacking = settled(read, reader)
            results += lacking
        rows = next(iter(codes.values())).size
        units, nobody = rows, 0
        if self.unit is not None:
            sizes, ranks, absent = bounds
            units, nobody = int((ranks == 1).sum()), int(absent.sum())
            if self.unit.max_rows is None:
                shares = UNIT_WEIGHT // sizes
                weights = shares if weights is None else weights * shares // UNIT_WEIGHT
            else:
                kept = self.kept(bounds)
                codes = {variable: column[kept] for variable, column in codes.items()}
                weights = None if weights is None else weights[kept]
        used = {variable for clique in self.cliques for variable in clique}
        tables = count_all(variable_codes(codes, self.schema, used), self.schema, self.cliques, weights)
        numbers = np.concatenate([[rows, units, nobody, *results], *(table.ravel() for table in tables.values())])
        return Counted(numbers.astype(np.int64))

    def kept(self, bounds: Sequence[Numbers]) -> NDArray[np.bool_]:
        """Return which rows count if the rows of a unit are limited."""
        max_rows = None if self.unit is None else self.unit.max_rows
        return np.asarray(bounds[1] <= (max_rows or 0))

    @cached_property
    def _readers(self) -> dict[str, Reader]:
        return {variable: column_reader(self.schema, variable) for variable in self.variables}

    def empty(self) -> Counted:
        """Return the tally of no rows."""
        cells = sum(self.schema.cells(clique) for clique in self.cliques)
        return Counted(np.zeros(3 + 2 * len(self.variables) + cells, dtype=np.int64))

    def checked(self, counted: Counted) -> tuple[tuple[int, int], dict[Clique, Counts]]:
        """Return the numbers of rows and units, and the tables; refuse undeclared cells."""
        numbers = counted.numbers
        rows, units, nobody = (int(number) for number in numbers[:3])
        if self.unit is not None:
            require_ids(nobody > 0, self.unit.column)
        start = 3 + 2 * len(self.variables)
        cells = numbers[3:start].reshape(-1, 2) > 0
        require_declared(self.schema, dict(zip(self.variables, cells.tolist(), strict=True)))
        tables = {}
        for clique in self.cliques:
            shape = self.schema.shape(clique)
            stop = start + self.schema.cells(clique)
            tables[clique] = numbers[start:stop].reshape(shape)
            start = stop
        return (rows, units), tables


@dataclass(frozen=True)
class ValueTally(Tally):
    """A tally without tables that counts the rows of each undeclared value of its one variable, too."""

    def read(self, batch: Any) -> list[NDArray[Any]]:
        """Find the positions of a batch's cells, and the state that each undeclared value could become, or None."""
        (variable,) = self.variables
        reader = replace(self._readers[variable], numbers={})
        column = positions(column_at(batch, 0), reader)
        values = Values.of(variable, column, reader)
        beyond = values.of_rows >= 0
        return [np.where(beyond, UNDECLARED, column), objects([*values.states, None])[values.of_rows]]  # -1 is None

    def count(self, cells: Sequence[NDArray[Any]], bounds: Sequence[Numbers]) -> Counted:
        """Count cells that were read, using the bounds of their rows."""
        positions, values = cells
        counts = Counter(values[self.kept(bounds)] if self.unit is not None else values)
        del counts[None]
        return Counted(super().count([positions], bounds).numbers, counts, self.variables[0])


Source = Callable[[Tally, int | None], Counted]
"""Sums a tally over batches of all rows, whose number is for a progress bar; it can be read repeatedly."""


@dataclass(frozen=True)
class StreamedRecords:
    """Records behind an engine, read anew for each measurement, in one scan."""

    source: Source
    schema: Schema
    unit: Unit | None
    rows: int  # when they were checked
    size: int  # of records, or of units
    weights: Weights | None = None

    @classmethod
    def open(
        cls,
        source: Source,
        schema: Schema,
        variables: Iterable[str],
        unit: Unit | None,
        weights: Weights | None = None,
    ) -> StreamedRecords:
        """Check all cells, in one scan, with the errors of :func:`~pgmpy_dp.records.frames.encode`."""
        tally = Tally(schema, tuple(read_columns(schema, variables)), unit=unit)
        (rows, size), _ = tally.checked(_total(source, tally, None))
        return cls(source, schema, unit, rows, size, weights)

    def counts(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        """Count the records in each cell of each clique; axes in clique order, states in schema order."""
        used = tuple(read_columns(self.schema, (variable for clique in cliques for variable in clique)))
        tally = Tally(self.schema, used, tuple(cliques), self.unit, self.weights)
        result, tables = tally.checked(_total(self.source, tally, self.rows))
        self._require_same(result)
        return tables

    def under(self, schema: Schema) -> StreamedRecords:
        """Return the same records under a schema with groups of their states, which each scan finds anew."""
        return replace(self, schema=schema)

    def value_counts(self, variable: str) -> ValueCounts:
        """Count the rows of each undeclared value of a variable, with the errors of `counts`."""
        tally = ValueTally(self.schema, (variable,), unit=self.unit)
        total = _total(self.source, tally, self.rows)
        self._require_same(tally.checked(total)[0])
        return dict(total.values)

    def _require_same(self, found: tuple[int, int]) -> None:
        if found != (self.rows, self.size):
            raise SchemaError(
                "The records have changed since they were opened: a source must return the same rows each time "
                "it is read. Collect it, or write it to a file, and pass that."
            )


def _total(source: Source, tally: Tally, rows: int | None) -> Counted:
    return sealed(lambda: source(tally, rows), "the records")


def sum_of_batches(batches: Iterable[Any], tally: Tally, rows: int | None) -> Counted:
    """Add up the tallies of successive batches; some are counted while others are fetched."""
    total, pending = tally.empty(), deque[Future[Counted]]()
    with (
        ThreadPoolExecutor(cores()) as pool,
        progress("Counting", "row", rows, scaled=True) as bar,
    ):
        for batch in batches:
            pending.append(pool.submit(tally, batch))
            bar.update(batch.shape[0])
            if len(pending) > cores():
                total += pending.popleft().result()
        return reduce(iadd, (counted.result() for counted in pending), total)
