"""Prediction of missing values: once for equal rows, and by one plan for rows with the same missing variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from tqdm.auto import tqdm

from pgmpy_dp.data.wall import require_public
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.models.answering import Answering, Places, named_evidence
from pgmpy_dp.models.questions import checked_records
from pgmpy_dp.schema import Schema

Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Rows:
    """Public records as positions of states.

    Attributes
    ----------
    data : DataFrame
    schema : Schema
    variables : list of str
        The columns of the data, followed by the variables without a column.
    codes : ndarray of shape (rows, variables)
        Missing values are -1.
    """

    data: pd.DataFrame
    schema: Schema
    variables: list[str]
    codes: Codes

    @classmethod
    def of(cls, data: pd.DataFrame, schema: Schema, declared: Sequence[Schema], predicted: Sequence[str]) -> Self:
        """Read a frame, with cells as in evidence.

        Raises
        ------
        TypeError
            If it is not a DataFrame, or private.
        SchemaError
            If a column or state is unknown.
        ValueError
            If nothing is missing.
        """
        require_public(data)
        if not isinstance(data, pd.DataFrame):
            raise TypeError(f"Public records in a pandas DataFrame are needed, got {type(data).__name__}.")
        if not data.columns.is_unique:
            raise SchemaError(f"Column {data.columns[data.columns.duplicated()][0]!r} occurs twice in the records.")
        known = checked_records(schema, data, declared)
        variables = [*known, *(variable for variable in predicted if variable not in known)]
        codes = np.full((len(data), len(variables)), -1, dtype=np.intp)
        for place, own in enumerate(known.values()):
            codes[:, place] = own
        if len(variables) == len(data.columns) and (codes >= 0).all():
            raise ValueError("The records have all variables and no missing cell: there is nothing to predict.")
        return cls(data, schema, variables, codes)

    def most_probable(self, answering: Answering) -> Codes:
        """Fill in the most probable joint state of the missing values of each row."""
        distinct, inverse = _distinct(self.codes)
        for place, asked, found in self._answers(answering.most_probable, distinct):
            distinct[place, asked] = found
        return distinct[inverse]

    def drawn(self, answering: Answering, generator: np.random.Generator) -> Codes:
        """Draw the missing values of each row, one variable after the other."""
        codes = self.codes.copy()
        for number in range(len(self.variables)):
            lacking = np.flatnonzero(codes[:, number] < 0)
            distinct, inverse = _distinct(codes[lacking])
            shares = np.empty((len(distinct), self.schema.cardinality(self.variables[number])))
            for place, _, (found,) in self._answers(answering.marginals, distinct, [number]):
                shares[place] = found
            below = np.cumsum(shares, axis=1)[inverse]
            codes[lacking, number] = (generator.random(len(lacking))[:, None] * below[:, -1:] >= below).sum(axis=1)
        return codes

    def probabilities(self, answering: Answering) -> pd.DataFrame:
        """Compute the distribution of each variable that is missing in some row."""
        distinct, inverse = _distinct(self.codes)
        lacking = [
            number
            for number in range(len(self.variables))
            if number >= len(self.data.columns) or (distinct[:, number] < 0).any()
        ]
        tables = {
            number: np.equal.outer(distinct[:, number], range(self.schema.cardinality(self.variables[number]))).astype(
                np.float64
            )
            for number in lacking
        }
        for place, asked, found in self._answers(answering.marginals, distinct):
            for number, shares in zip(asked, found, strict=True):
                tables[number][place] = shares
        columns = {
            f"{self.variables[number]}_{state}": table[inverse, place]
            for number, table in tables.items()
            for place, state in enumerate(self.schema.states[self.variables[number]])
        }
        return pd.DataFrame(columns, index=self.data.index)

    def completed(self, codes: Codes) -> pd.DataFrame:
        """Return a frame with missing values replaced by states and given values unchanged."""
        columns = dict[str, Any]()
        for variable, own in zip(self.variables, codes.T, strict=True):
            states = self.schema.states[variable]
            found = [states[place] for place in own]
            held = self.data.get(variable)
            if held is not None and held.notna().all():
                columns[variable] = held.array
            elif held is not None:
                known = zip(held.tolist(), held.notna(), found, strict=True)
                columns[variable] = [value if there else state for value, there, state in known]
            else:
                columns[variable] = found
        return pd.DataFrame(columns, index=self.data.index).sort_index(kind="stable")

    def _answers(
        self,
        answer: Callable[[Sequence[str], Iterable[Places]], Iterator[Any]],
        codes: Codes,
        asked: Sequence[int] | None = None,
    ) -> Iterator[tuple[int, Sequence[int], Any]]:
        """Query the missing variables of each row, or those asked for; rows with equal patterns share a query."""
        patterns, members = np.unique(codes < 0, axis=0, return_inverse=True)
        with tqdm(total=len(codes), desc="Predicting", unit="row", delay=1.0, leave=False, disable=None) as bar:
            for number, lacking in enumerate(patterns):
                wanted = np.flatnonzero(lacking).tolist() if asked is None else asked
                if not wanted:
                    continue
                known = np.flatnonzero(~lacking).tolist()
                names = [self.variables[place] for place in known]
                rows = np.flatnonzero(members.ravel() == number).tolist()
                givens = [dict(zip(names, codes[row, known].tolist(), strict=True)) for row in rows]
                found = answer([self.variables[place] for place in wanted], givens)
                for row, given in zip(rows, givens, strict=True):
                    with named_evidence({v: self.schema.states[v][place] for v, place in given.items()}):
                        yield row, wanted, next(found)
                    bar.update()


def _distinct(codes: Codes) -> tuple[Codes, NDArray[np.intp]]:
    distinct, inverse = np.unique(codes, axis=0, return_inverse=True)
    return distinct, inverse.ravel()
