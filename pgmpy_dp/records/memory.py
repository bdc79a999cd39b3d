"""Records in memory, counted by clique: encoded ones in blocks that stay in the cache, ready-made tables by sums."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, combinations
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._progress import progress
from pgmpy_dp._threads import one_thread
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.tables.table import Table, grouped
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records.cells import UNDECLARED, Reader
from pgmpy_dp.records.columns import Codes, Positions, ValueCounts, Values, settled, with_derived
from pgmpy_dp.records.csv_decoding import CsvFile
from pgmpy_dp.records.refusals import require_declared
from pgmpy_dp.records.units import Unit, row_weights, sampled_rows
from pgmpy_dp.schema import Clique, Schema
from pgmpy_dp.schema.variable import IN_DETAIL

MAX_CELLS = 2**26
"""Largest table counted, in cells: half a gigabyte of 64-bit counts."""

Counts = NDArray[np.int64]

_BLOCK = 2**16
# Largest joint table, in cells, of cliques that are counted together, so that it stays in the cache.
_SHARED_CELLS = 2**13
_LATEST = 32
# Numbers in a block of states' indicators, and the most states of which products are taken.
_PRODUCT, _WIDEST = 2**23, 2**12
# Cells of a product of indicators that take less time than one table, with a margin: two for binary variables.
_TABLES_BY_PRODUCT = 64
# Largest total of ready-made counts: times 2**22 (a contrast, or a quantile's parts) it still fits 64 bits.
_MAX_COUNTED = 2**40


def count_all(
    codes: Mapping[str, Codes], schema: Schema, cliques: Sequence[Clique], weights: NDArray[np.int64] | None = None
) -> dict[Clique, Counts]:
    """Count the records in each cell of several cliques; see :func:`count`.

    Many pairs of variables with few states are counted by one product of matrices, others table by table.
    """
    pairs = [clique for clique in cliques if len(clique) < 3] if weights is None else []
    width = 1 + sum(schema.cardinality(variable) - 1 for variable in {v for clique in pairs for v in clique})
    by_product = width <= _WIDEST and width**2 <= _TABLES_BY_PRODUCT * len(pairs)  # faster, as measured for many sizes
    tables = count_pairs(codes, schema, pairs) if by_product else {}
    scopes = shared_scopes(schema, [clique for clique in cliques if clique not in tables])
    for scope, members in progress("Counting", "table", of=scopes):
        table = Table(scope, count(codes, schema, scope, weights))
        tables |= {clique: np.ascontiguousarray(table.margin(clique).values) for clique in members}
    return {clique: tables[clique] for clique in cliques}


def count(
    codes: Mapping[str, Codes], schema: Schema, clique: Clique, weights: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Count the records in each cell of a clique, or add their weights."""
    require_countable(schema, clique)
    shape = tuple(map(schema.cardinality, clique))
    cells = math.prod(shape)
    columns = [codes[variable] for variable in clique]
    rows = columns[0].shape[0]
    # Blocks keep cell numbers in the cache; with blocks shorter than the table, bincount would mostly write zeros.
    block = max(_BLOCK, cells)
    kind = np.min_scalar_type(cells)  # shorter integers are faster
    table = np.zeros(cells, dtype=np.int64)
    for start in range(0, rows, block):
        cell = columns[0][start : start + block].astype(kind)
        for column, states in zip(columns[1:], shape[1:], strict=True):
            cell *= states
            cell += column[start : start + block]
        if weights is None:
            table += np.bincount(cell.astype(np.intp), minlength=cells)
        else:  # bincount adds floats, which are exact here: weights of at most 2**20 add up to less than 2**53
            table += np.bincount(cell, weights[start : start + block], minlength=cells).astype(np.int64)
    return table.reshape(shape)


def count_pairs(codes: Mapping[str, Codes], schema: Schema, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
    """Count single variables and pairs at once: by the products of their states' indicators, summed over records.

    The first state of each variable is left out, since its counts follow from the sums. Sums of zeros and ones are
    exact in short floats, of which a block of records needs no more than 24 bits.
    """
    states = {variable: schema.cardinality(variable) for clique in cliques for variable in clique}
    firsts = dict(zip(states, accumulate((r - 1 for r in states.values()), initial=1), strict=False))
    width = 1 + sum(r - 1 for r in states.values())
    rows = next(iter(codes.values())).shape[0]
    products = np.zeros((width, width))
    block = max(_PRODUCT // width, 1)
    for start in progress("Counting", "block", of=range(0, rows, block)):
        indicators = np.ones((width, min(block, rows - start)), dtype=np.float32)
        for variable, first in firsts.items():
            column = codes[variable][start : start + block]
            for state in range(1, states[variable]):
                np.equal(column, state, out=indicators[first + state - 1])
        with one_thread():
            products += indicators @ indicators.T
    exact = products.astype(np.int64)
    tables: dict[Clique, Counts] = {}
    alike: dict[tuple[int, ...], list[Clique]] = {}
    for clique in cliques:
        alike.setdefault(tuple(states[variable] for variable in clique), []).append(clique)
    for shape, members in alike.items():
        # Index 0 of an axis stands for all records until the counts of the other states are subtracted.
        position = [
            np.insert(np.array([firsts[clique[axis]] for clique in members])[:, None] + np.arange(r - 1), 0, 0, axis=1)
            for axis, r in enumerate(shape)
        ]
        one, *other = position
        counts = exact[one[:, :, None], other[0][:, None, :]] if other else exact[one, 0]
        for axis in range(1, counts.ndim):
            before: tuple[Any, ...] = (slice(None),) * axis
            counts[(*before, 0)] -= counts[(*before, slice(1, None))].sum(axis=axis)
        tables |= zip(members, counts, strict=True)
    return tables


def distinct(codes: Mapping[str, Codes], variables: Iterable[str]) -> tuple[Codes, NDArray[np.int64]]:
    """Find the distinct records over some variables, and the index of each record among them."""
    # Encode each record as one number, which sorts about ten times faster than a row.
    columns = [codes[variable] for variable in variables]
    groups, numbers = np.zeros(columns[0].size, dtype=np.int64), 1
    for column in columns:
        states = int(column.max(initial=0)) + 1
        if numbers * states > 2**62:
            result, groups = np.unique(groups, return_inverse=True)
            numbers = result.size
        groups = groups * states + column
        numbers *= states
    _, first, groups = np.unique(groups, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns], axis=1), groups.astype(np.int64)


def shared_scopes(schema: Schema, cliques: Sequence[Clique]) -> list[tuple[Clique, list[Clique]]]:
    """Group cliques whose joint table is small, so that they are counted at once.

    Larger cliques come first, and each joins the first of the latest scopes into which it fits: trying all of them
    would take longer than counting thousands of cliques.
    """
    scopes: list[tuple[Clique, list[Clique]]] = []
    sizes = {variable: schema.cardinality(variable) for clique in cliques for variable in clique}
    for clique in sorted(cliques, key=schema.cells, reverse=True):
        for i, (scope, members) in enumerate(scopes[-_LATEST:], max(len(scopes) - _LATEST, 0)):
            joint = (*scope, *(variable for variable in clique if variable not in scope))
            if len(joint) == len(scope) or math.prod(map(sizes.__getitem__, joint)) <= _SHARED_CELLS:
                scopes[i] = (joint, [*members, clique])
                break
        else:
            scopes.append((clique, [clique]))
    return scopes


def require_countable(schema: Schema, clique: Clique) -> None:
    """Raise if a clique's table has more than `MAX_CELLS` cells."""
    cells = math.prod(map(schema.cardinality, clique))
    if cells > MAX_CELLS:
        raise SchemaError(
            f"The table of clique {clique} has {cells} cells, more than the {MAX_CELLS} that are counted: "
            "measure smaller cliques, declare fewer states, or measure the coarser variable of a Hierarchy."
        )


@dataclass(frozen=True)
class EncodedRecords:
    """Records in memory as positions of their states, with the weights of rows, in parts, if they have any.

    For variables without public states, the numbers of their values are held too.
    """

    codes: Mapping[str, Codes]
    schema: Schema
    size: int
    weights: NDArray[np.int64] | None = None
    values: Mapping[str, Values] = field(default_factory=dict)

    @classmethod
    def bounded(
        cls,
        codes: Mapping[str, Codes],
        schema: Schema,
        labels: NDArray[np.int64] | None,
        unit: Unit | None,
        values: Mapping[str, Values] = MappingProxyType({}),
        parts: NDArray[np.int64] | None = None,
    ) -> EncodedRecords:
        """Sample the rows of units once, here, or weigh them; without a unit, keep all.

        Where rows have weights, `parts` are those of :class:`~pgmpy_dp.records.weights.Weights`.
        """
        if unit is None or labels is None:
            size = next((int(column.shape[0]) for column in codes.values()), 0)
            require_summable(size)
            return cls(codes, schema, size, parts, values)
        size = int(labels.max(initial=-1)) + 1
        if unit.max_rows is None:
            shares = row_weights(labels)
            return cls(codes, schema, size, shares if parts is None else parts * shares // UNIT_WEIGHT)
        chosen = sampled_rows(labels, unit)
        kept = {variable: replace(numbers, of_rows=numbers.of_rows[chosen]) for variable, numbers in values.items()}
        codes = {variable: column[chosen] for variable, column in codes.items()}
        return cls(codes, schema, size, None if parts is None else parts[chosen], kept)

    def counts(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        """Count the records in each cell of each clique; axes in clique order, states in schema order.

        Raises SchemaError if positions of bins are to be counted in detail.
        """
        require_numbers(self.codes, self.schema, cliques)
        return count_all(self.codes, self.schema, cliques, self.weights)

    def under(self, schema: Schema) -> EncodedRecords:
        """Return the same records under a schema with groups of their states, found record by record."""
        known = [variable for variable, (finer, _) in schema.structure.derived.items() if finer in self.codes]
        return replace(self, codes={**self.codes, **with_derived(self.codes, schema, known)}, schema=schema)

    def value_counts(self, variable: str) -> ValueCounts:
        """Count the rows of each value of a variable without public states; SchemaError if values were not read."""
        if variable not in self.values:
            raise no_values(variable)
        return self.values[variable].counts()


def declared_codes(
    positions: Mapping[str, Positions], readers: Mapping[str, Reader], schema: Schema, file: CsvFile | None = None
) -> dict[str, Codes]:
    """Insert the states that stand for missing and undeclared cells of columns; refuse those that have none."""
    found = {variable: settled(column, readers[variable]) for variable, column in positions.items()}
    require_declared(schema, {variable: cells for variable, (_, cells) in found.items()}, file)
    return {variable: codes for variable, (codes, _) in found.items()}


def require_numbers(known: Collection[str], schema: Schema, cliques: Iterable[Clique]) -> None:
    """Refuse finer histograms of numbers whose bins alone are known."""
    for variable in (variable for clique in cliques for variable in clique):
        if variable not in known and variable in schema.details:
            number = schema.details[variable].variable
            raise SchemaError(
                f"The records contain positions of the bins of {number!r} instead of numbers: do not measure "
                f"{variable!r}, or declare the bins with detail=0."
            )


def no_values(variable: str) -> SchemaError:
    return SchemaError(
        f"The states of {variable!r} cannot be discovered in positions of public states, ready-made counts or tables "
        "of households: pass one table of records, as a frame or a file."
    )


def require_summable(records: int) -> None:
    """Refuse more records than sums hold, when the owner provides them: a plan's refusal would reveal their number."""
    if records >= 2**31:
        raise SchemaError("Memory holds fewer than 2**31 records. Only a PrivateDataset takes more, as Parquet files.")


@dataclass(frozen=True)
class CountedRecords:
    """Ready-made tables, counted by the caller."""

    tables: Mapping[Clique, Counts]
    size: int

    def counts(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        """See :class:`EncodedRecords`; the cliques must be contained in counted ones."""
        results: dict[Clique, Counts] = {}
        for clique in cliques:
            containing = [scope for scope in self.tables if set(clique) <= set(scope)]
            if not containing:
                counted = ", ".join(map(str, self.tables))
                advice = " Bins(..., detail=0) plans no finer histogram." if clique[0].endswith(IN_DETAIL) else ""
                raise SchemaError(
                    f"No ready-made table contains clique {clique}: measure cliques within one of {counted}.{advice}"
                )
            scope = min(containing, key=lambda scope: self.tables[scope].size)
            results[clique] = np.ascontiguousarray(Table(scope, self.tables[scope]).margin(clique).values)
        return results

    def under(self, schema: Schema) -> CountedRecords:
        """Add the tables of groups of states to the tables of states."""
        counted = {variable for clique in self.tables for variable in clique}
        tables = dict(self.tables)
        for clique, table in self.tables.items():
            names, summed = list(clique), table
            for coarser, (finer, groups) in schema.structure.derived.items():
                if finer in names and coarser not in counted:
                    axis = names.index(finer)
                    names[axis], summed = coarser, grouped(summed, axis, groups, schema.cardinality(coarser))
            tables[tuple(names)] = summed
        return replace(self, tables=tables)

    def value_counts(self, variable: str) -> ValueCounts:
        """Raise, since tables have no values."""
        raise no_values(variable)


def array_codes(array: NDArray[Any], schema: Schema, variables: list[str]) -> dict[str, Codes]:
    """Return the codes in an array of positions of states, with one column per variable of the schema."""
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("Records in a masked array: replace masked entries by positions, array.filled(...).")
    columns = len(schema.variables)
    if array.ndim != 2 or array.shape[1] != columns or array.dtype.kind not in "iu":
        raise TypeError(
            f"Records in an array are positions of states: integers, one column for each of the {columns} variables "
            f"of the schema, in its order. Got dtype {array.dtype} and {array.ndim} dimensions"
            f"{f' with {array.shape[1]} columns' if array.ndim == 2 else ''}."
        )
    positions: dict[str, Positions] = {}
    for variable in variables:
        column, states = array[:, schema.variables.index(variable)], schema.cardinality(variable)
        outside = (column < 0) | (column >= states)
        positions[variable] = np.where(outside, UNDECLARED, np.where(outside, 0, column).astype(np.int64))
    return declared_codes(positions, {variable: Reader.of(schema, variable) for variable in variables}, schema)


def counted_records(records: Mapping[Any, Any], schema: Schema) -> CountedRecords:
    """Check that ready-made tables count the same records, and return them as records."""
    if any(isinstance(clique, str) for clique in records):
        raise TypeError(
            "Ready-made counts map cliques, which are tuples of variables, to tables. For columns by name, make a "
            "pandas or polars DataFrame."
        )
    cliques = schema.require(list(records))
    tables = {}
    for clique, given in zip(cliques, records.values(), strict=True):
        table = np.asarray(given)
        if table.dtype.kind not in "iu" or table.shape != schema.shape(clique):
            raise SchemaError(
                f"The ready-made table of {clique} must hold whole numbers and have shape {schema.shape(clique)}, "
                f"got dtype {table.dtype} and shape {table.shape}."
            )
        if (table < 0).any() or table.sum(dtype=np.float64) > _MAX_COUNTED:
            raise SchemaError(
                f"The ready-made table of {clique} has counts that are negative, or more than 2**40 in all."
            )
        tables[clique] = np.array(table, dtype=np.int64, order="C")
    totals = {int(table.sum()) for table in tables.values()}
    if len(totals) > 1:
        raise SchemaError("The ready-made tables have different totals: they must count the same records.")
    for (one, counts), (other, others) in combinations(tables.items(), 2):
        shared = [variable for variable in one if variable in other]
        if shared and (Table(one, counts).margin(shared).values != Table(other, others).margin(shared).values).any():
            raise SchemaError(
                f"The ready-made tables of {one} and {other} disagree about {tuple(shared)}: they must count the same "
                "records."
            )
    return CountedRecords(tables, totals.pop())
