"""Counts of undeclared values by value, for a private choice among them.

A cell is read by :meth:`~pgmpy_dp.records.cells.Reader.candidate`, a total function of the cell and the schema. Counts
do not depend on the order of the records: neighbours' counts differ only in the values of the neighbour's own rows.
The number of different values held has a public bound; columns with more are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.records.cells import UNDECLARED, Reader
from pgmpy_dp.records.columns import Positions, undeclared
from pgmpy_dp.schema import State

MAX_VALUES = 2**22
"""Most different values of a column that are counted, about a gigabyte of texts."""

ValueCounts = Mapping[State, int]


@dataclass
class ValueNumbers:
    """The undeclared values of a variable, numbered in order of appearance."""

    variable: str
    numbers: dict[State, int] = field(default_factory=dict)
    of_rows: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, dtype=np.int32))

    def number(self, value: State | None) -> int:
        """Return the number of a value, or -1 if it could not become a state."""
        if value is None:
            return -1
        number = self.numbers.setdefault(value, len(self.numbers))
        require_few(self.variable, self.numbers)
        return number

    def number_column(self, column: Any, reader: Reader) -> NDArray[np.int32]:
        """Number the cells of a column in memory."""
        rows, values = undeclared(column, reader)
        known: dict[Any, int] = {}
        result = np.full(len(column), -1, dtype=np.int32)
        result[rows] = np.fromiter((self._number(value, reader, known) for value in values), np.int32, rows.size)
        return result

    def _number(self, value: Any, reader: Reader, known: dict[Any, int]) -> int:
        if type(value) is not str and type(value) is not int:
            return self.number(reader.candidate(value))
        number = known.get(value)
        if number is None:
            number = self.number(reader.candidate(value))
            if number >= 0:  # there is no bound on the others
                known[value] = number
        return number

    def text_reading(self, reader: Reader) -> Callable[[str], int]:
        """Return a function from texts to positions; those beyond the states are values that could become states."""

        def read(text: str) -> int:
            number = self.number(reader.text_candidate(text))
            return reader.text_position(text) if number < 0 else len(reader.states) + number

        return read

    def settle(self, places: Positions, reader: Reader) -> Positions:
        """Store the numbers of a whole column's values, and return the positions without them."""
        beyond = places >= len(reader.states)
        self.of_rows = np.where(beyond, places - len(reader.states), -1).astype(np.int32)
        return np.where(beyond, UNDECLARED, places)

    def kept(self, rows: NDArray[np.bool_]) -> ValueNumbers:
        """Keep some of the rows."""
        return ValueNumbers(self.variable, self.numbers, self.of_rows[rows])

    def counts(self) -> ValueCounts:
        """Count the rows of each value that has one."""
        counts = np.bincount(self.of_rows[self.of_rows >= 0], minlength=len(self.numbers)).tolist()
        return {value: counts[number] for value, number in self.numbers.items() if counts[number]}


def require_few(variable: str, values: Sized) -> None:
    """Refuse a column with more different values than are counted, without revealing their number."""
    if len(values) > MAX_VALUES:
        raise SchemaError(
            f"Variable {variable!r} has more than {MAX_VALUES:,} different values in the records, too many to choose "
            "states from: leave it out of the schema, or make its values coarser first."
        )
