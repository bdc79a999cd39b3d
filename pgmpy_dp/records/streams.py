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
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from pgmpy_dp._threads import cores
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records.cells import Reader
from pgmpy_dp.records.columns import (
    Found,
    column_reader,
    objects,
    positions,
    read_columns,
    settled,
    smallest_type,
    variable_codes,
)
from pgmpy_dp.records.frames import column_at
from pgmpy_dp.records.memory import Counts, count_all
from pgmpy_dp.records.refusals import require_declared, sealed
from pgmpy_dp.records.units import Unit, require_ids
from pgmpy_dp.records.values import ValueCounts, ValueNumbers, require_few
from pgmpy_dp.records.weights import Weights
from pgmpy_dp.schema import Clique, Schema, State

Numbers = NDArray[np.int64]

BATCH_ROWS = 2**17


@dataclass(frozen=True)
class Tally:
    """Counts of a batch in one array of integers, so that batches add up.

    A batch has a column for each variable, in order, without the coarser variables of hierarchies, and one for weights
    if there are any. With a unit, further columns hold the number of rows of its unit, the row's rank among them from
    1, and whether the row has no unit.
    """

    schema: Schema
    variables: tuple[str, ...]
    cliques: tuple[Clique, ...]
    has_unit: bool = False
    max_rows: int | None = None
    weights: Weights | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of a batch, without those that an engine adds for units."""
        return self.variables if self.weights is None else (*self.variables, self.weights.column)

    def __call__(self, batch: Any) -> Numbers:
        """Count rows, units, rows without a unit, each variable's missing and undeclared cells, and cliques' tables."""
        return self.count(self.read(batch), self.bounds(batch))

    def read(self, batch: Any) -> list[NDArray[Any]]:
        """Find the positions of a batch's cells, an array per variable, of a type that depends only on its states.

        The parts that rows weigh come last, if there are weights.
        """
        results = [
            positions(column_at(batch, position), reader).astype(smallest_type(reader.states), copy=False)
            for position, reader in enumerate(self._readers.values())
        ]
        weighed = [] if self.weights is None else [self.weights.parts(column_at(batch, len(self.variables)))]
        return [*results, *weighed]

    def bounds(self, batch: Any) -> list[Numbers]:
        """Return what a batch states about each row's unit."""
        start = len(self.columns)
        return [np.asarray(column_at(batch, start + i)).astype(np.int64) for i in range(3 * self.has_unit)]

    def count(self, cells: Sequence[NDArray[Any]], bounds: Sequence[Numbers]) -> Numbers:
        """Count cells that were read, using the bounds of their rows."""
        codes, results = {}, []
        weights = None if self.weights is None else cells[-1].astype(np.int64)
        for (variable, reader), read in zip(self._readers.items(), cells[: len(self.variables)], strict=True):
            codes[variable], marks = settled(read, reader)
            results += [marks.missing, marks.undeclared]
        rows = next(iter(codes.values())).size
        units, nobody = rows, 0
        if self.has_unit:
            sizes, ranks, absent = bounds
            units, nobody = int((ranks == 1).sum()), int(absent.sum())
            if self.max_rows is None:
                shares = UNIT_WEIGHT // sizes
                weights = shares if weights is None else weights * shares // UNIT_WEIGHT
            else:
                kept = self.kept(bounds)
                codes = {variable: column[kept] for variable, column in codes.items()}
                weights = None if weights is None else weights[kept]
        used = {variable for clique in self.cliques for variable in clique}
        tables = count_all(variable_codes(codes, self.schema, used), self.schema, self.cliques, weights)
        return np.concatenate([[rows, units, nobody, *results], *(table.ravel() for table in tables.values())]).astype(
            np.int64
        )

    def kept(self, bounds: Sequence[Numbers]) -> NDArray[np.bool_]:
        """Return which rows count if the rows of a unit are limited."""
        kept: NDArray[np.bool_] = bounds[1] <= (self.max_rows or 0)
        return kept

    @cached_property
    def _readers(self) -> dict[str, Reader]:
        return {variable: column_reader(self.schema, variable) for variable in self.variables}

    def empty(self) -> Numbers:
        """Return the tally of no rows."""
        cells = sum(self.schema.cells(clique) for clique in self.cliques)
        return np.zeros(3 + 2 * len(self.variables) + cells, dtype=np.int64)

    def checked(self, numbers: Numbers, unit: Unit | None) -> tuple[tuple[int, int], dict[Clique, Counts]]:
        """Return the numbers of rows and units, and the tables; refuse undeclared cells."""
        rows, units, nobody = (int(number) for number in numbers[:3])
        if unit is not None:
            require_ids(nobody > 0, unit.column)
        start = 3 + 2 * len(self.variables)
        cells = numbers[3:start].reshape(-1, 2) > 0
        require_declared(self.schema, {v: Found(*map(bool, row)) for v, row in zip(self.variables, cells, strict=True)})
        tables = {}
        for clique in self.cliques:
            shape = self.schema.shape(clique)
            stop = start + self.schema.cells(clique)
            tables[clique] = numbers[start:stop].reshape(shape)
            start = stop
        return (rows, units), tables


@dataclass
class CountedValues:
    """Counts of a value tally: those of a tally without tables, and the rows of each undeclared value."""

    variable: str
    numbers: Numbers
    counts: dict[State, int] = field(default_factory=dict)

    def __iadd__(self, other: CountedValues) -> CountedValues:
        self.numbers = self.numbers + other.numbers
        for value, rows in other.counts.items():
            self.counts[value] = self.counts.get(value, 0) + rows
        require_few(self.variable, self.counts)
        return self

    def __radd__(self, start: int) -> CountedValues:  # sum() starts with 0
        return CountedValues(self.variable, self.numbers, dict(self.counts))

    __add__ = __iadd__


@dataclass(frozen=True)
class ValueTally:
    """Counts the rows of each undeclared value of the one variable of a tally without tables."""

    tally: Tally

    @property
    def variables(self) -> tuple[str, ...]:
        """The variable, which is the first column of a batch."""
        return self.tally.variables

    @property
    def columns(self) -> tuple[str, ...]:
        """The variable alone."""
        return self.tally.columns

    def __call__(self, batch: Any) -> CountedValues:
        """Count a batch."""
        return self.count(self.read(batch), self.tally.bounds(batch))

    def read(self, batch: Any) -> list[NDArray[Any]]:
        """Find the positions of a batch's cells, and the state that each undeclared value could become, or None."""
        values = ValueNumbers(self.variables[0])
        of_rows = values.number_column(column_at(batch, 0), Reader.of(self.tally.schema, values.variable))
        return [*self.tally.read(batch), objects([*values.numbers, None])[of_rows]]  # of_rows is -1 for None

    def count(self, cells: Sequence[NDArray[Any]], bounds: Sequence[Numbers]) -> CountedValues:
        """Count cells that were read, using the bounds of their rows."""
        positions, values = cells
        counts = Counter(values[self.tally.kept(bounds)] if self.tally.has_unit else values)
        del counts[None]
        return CountedValues(self.variables[0], self.tally.count([positions], bounds), dict(counts))

    def empty(self) -> CountedValues:
        """Return the tally of no rows."""
        return CountedValues(self.variables[0], self.tally.empty())


class Source(Protocol):
    """A source that can be read repeatedly, in batches."""

    def total(self, tally: Tally | ValueTally, rows: int | None) -> Any:
        """Sum the tally over batches of all rows; their number, if known, is for a progress bar."""


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
        tally = _tally(schema, tuple(read_columns(schema, variables)), (), unit)
        (rows, size), _ = tally.checked(_total(source, tally, None), unit)
        return cls(source, schema, unit, rows, size, weights)

    def counts(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        """Count the records in each cell of each clique; axes in clique order, states in schema order."""
        used = tuple(read_columns(self.schema, (variable for clique in cliques for variable in clique)))
        tally = _tally(self.schema, used, tuple(cliques), self.unit, self.weights)
        result, tables = tally.checked(_total(self.source, tally, self.rows), self.unit)
        self._require_same(result)
        return tables

    def under(self, schema: Schema) -> StreamedRecords:
        """Return the same records under a schema with groups of their states, which each scan finds anew."""
        return replace(self, schema=schema)

    def value_counts(self, variable: str) -> ValueCounts:
        """Count the rows of each undeclared value of a variable, with the errors of `counts`."""
        tally = _tally(self.schema, (variable,), (), self.unit)
        total = _total(self.source, ValueTally(tally), self.rows)
        self._require_same(tally.checked(total.numbers, self.unit)[0])
        return dict(total.counts)

    def _require_same(self, found: tuple[int, int]) -> None:
        if found != (self.rows, self.size):
            raise SchemaError(
                "The records have changed since they were opened: a source must return the same rows each time "
                "it is read. Collect it, or write it to a file, and pass that."
            )


def _tally(
    schema: Schema,
    variables: tuple[str, ...],
    cliques: tuple[Clique, ...],
    unit: Unit | None,
    weights: Weights | None = None,
) -> Tally:
    return Tally(schema, variables, cliques, unit is not None, None if unit is None else unit.max_rows, weights)


def _total(source: Source, tally: Tally | ValueTally, rows: int | None) -> Any:
    return sealed(lambda: source.total(tally, rows), "the records")


def sum_of_batches(batches: Iterable[Any], tally: Tally | ValueTally, rows: int | None) -> Any:
    """Add up the tallies of successive batches; some are counted while others are fetched."""
    total: Any = tally.empty()
    pending = deque[Future[Any]]()
    with (
        ThreadPoolExecutor(cores()) as pool,
        tqdm(total=rows, desc="Counting", unit="row", unit_scale=True, delay=1, leave=False, disable=None) as bar,
    ):
        for batch in batches:
            pending.append(pool.submit(tally, batch))
            bar.update(batch.shape[0])
            if len(pending) > cores():
                total += pending.popleft().result()
        for counted in pending:
            total += counted.result()
    return total
