"""Counts of undeclared values by value, for a private choice among them.

A cell is read by :class:`~pgmpy_dp.records.cells.Reader`, a total function of the cell and the schema. Counts do not
depend on the order of the records: neighbours' counts differ only in the values of the neighbour's own rows. The number
of different values held has a public bound; columns with more are refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.cells import Reader
from pgmpy_dp.records.columns import Positions
from pgmpy_dp.schema import State

MAX_VALUES = 2**22
"""Most different values of a column that are counted, about a gigabyte of texts."""

ValueCounts = Mapping[State, int]


@dataclass(frozen=True)
class Values:
    """The undeclared values of a variable that could become states, with the index of each row's, or -1."""

    states: tuple[State, ...]
    of_rows: NDArray[np.int32]

    @classmethod
    def of(cls, variable: str, positions: Positions, reader: Reader) -> Self:
        """Take the values of a column that its reader numbered."""
        require_few(variable, reader.numbers or ())
        return cls(tuple(reader.numbers or ()), np.maximum(positions - len(reader.states), -1).astype(np.int32))

    def kept(self, rows: NDArray[np.bool_]) -> Values:
        """Keep some of the rows."""
        return Values(self.states, self.of_rows[rows])

    def counts(self) -> ValueCounts:
        """Count the rows of each value that has one."""
        counts = np.bincount(self.of_rows[self.of_rows >= 0], minlength=len(self.states)).tolist()
        return {state: rows for state, rows in zip(self.states, counts, strict=True) if rows}


def require_few(variable: str, values: Sized) -> None:
    """Refuse a column with more different values than are counted, without revealing their number."""
    if len(values) > MAX_VALUES:
        raise SchemaError(
            f"Variable {variable!r} has more than {MAX_VALUES:,} different values in the records, too many to choose "
            "states from: leave it out of the schema, or make its values coarser first."
        )
