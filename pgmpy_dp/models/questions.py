"""Reading of questions and public records, and prediction of the missing values of records."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import partial
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp._names import suggestion
from pgmpy_dp._progress import progress
from pgmpy_dp.data.wall import require_public
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.distribution import Distribution, ImpossibleEvidenceError, Positions
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.privacy.checks import shown
from pgmpy_dp.records.cells import EMPTY, MISSING, UNDECLARED, Reader, key
from pgmpy_dp.records.columns import decoded, positions, read_columns, with_derived
from pgmpy_dp.records.frames import column_at, column_names
from pgmpy_dp.records.memory import declared_codes
from pgmpy_dp.records.refusals import require_columns, sealed
from pgmpy_dp.schema import Schema, State
from pgmpy_dp.schema.states import is_listable

Codes = NDArray[np.intp]


@dataclass(frozen=True)
class Rows:
    """Public records as positions of states."""

    data: pd.DataFrame
    schema: Schema
    variables: list[str]  # the columns of the data, followed by the variables without a column
    codes: Codes  # missing values are -1

    @classmethod
    def of(cls, data: pd.DataFrame, schema: Schema, declared: Sequence[Schema], predicted: Sequence[str]) -> Self:
        """Read a frame, with cells as in evidence."""
        require_frame(data)
        if not data.columns.is_unique:
            raise SchemaError(f"Column {data.columns[data.columns.duplicated()][0]!r} occurs twice in the records.")
        known = checked_records(schema, data, declared)
        variables = [*known, *(variable for variable in predicted if variable not in known)]
        codes = np.full((len(data), len(variables)), -1, dtype=np.intp)
        for position, own in enumerate(known.values()):
            codes[:, position] = own
        return cls(data, schema, variables, codes)

    def most_probable(self, distribution: Distribution) -> Codes:
        """Fill in the most probable joint state of the missing values of each row."""
        distinct, inverse = _distinct(self.codes)
        for position, asked, states in self._answers(distribution.most_probable_of, distinct):
            distinct[position, asked] = states
        return distinct[inverse]

    def drawn(self, distribution: Distribution, generator: np.random.Generator) -> Codes:
        """Draw the missing values of each row, one variable after the other."""
        codes = self.codes.copy()
        for number in range(len(self.variables)):
            lacking = np.flatnonzero(codes[:, number] < 0)
            distinct, inverse = _distinct(codes[lacking])
            shares = np.empty((len(distinct), self.schema.cardinality(self.variables[number])))
            for position, _, (single,) in self._answers(distribution.singles_of, distinct, [number]):
                shares[position] = single
            below = np.cumsum(shares, axis=1)[inverse]
            codes[lacking, number] = (generator.random(len(lacking))[:, None] * below[:, -1:] >= below).sum(axis=1)
        return codes

    def probabilities(self, distribution: Distribution) -> pd.DataFrame:
        """Compute the distribution of each variable that is missing in some row."""
        distinct, inverse = _distinct(self.codes)
        without = len(self.data.columns)
        lacking = [n for n in range(len(self.variables)) if n >= without or (distinct[:, n] < 0).any()]
        sizes = {number: range(self.schema.cardinality(self.variables[number])) for number in lacking}
        tables = {n: np.equal.outer(distinct[:, n], states).astype(np.float64) for n, states in sizes.items()}
        for position, asked, singles in self._answers(distribution.singles_of, distinct):
            for number, shares in zip(asked, singles, strict=True):
                tables[number][position] = shares
        columns = {
            f"{self.variables[number]}_{state}": table[inverse, position]
            for number, table in tables.items()
            for position, state in enumerate(self.schema.states[self.variables[number]])
        }
        return pd.DataFrame(columns, index=self.data.index)

    def completed(self, codes: Codes) -> pd.DataFrame:
        """Return a frame with missing values replaced by states and given values unchanged."""
        columns = dict[str, Any]()
        for variable, own in zip(self.variables, codes.T, strict=True):
            states = self.schema.states[variable]
            results = [states[position] for position in own]
            present = self.data.get(variable)
            if present is not None and present.notna().all():
                columns[variable] = present.array
            elif present is not None:
                known = zip(present.tolist(), present.notna(), results, strict=True)
                columns[variable] = [value if there else state for value, there, state in known]
            else:
                columns[variable] = results
        return pd.DataFrame(columns, index=self.data.index).sort_index(kind="stable")

    def _answers(
        self,
        answer: Callable[[Sequence[str], Iterable[Positions]], Iterator[Any]],
        codes: Codes,
        asked: Sequence[int] | None = None,
    ) -> Iterator[tuple[int, Sequence[int], Any]]:
        """Answer for the missing variables of each row, or for `asked`, together for rows that lack the same."""
        patterns, members = np.unique(codes < 0, axis=0, return_inverse=True)
        with progress("Predicting", "row", len(codes)) as bar:
            for number, lacking in enumerate(patterns):
                wanted = np.flatnonzero(lacking).tolist() if asked is None else asked
                if not wanted:
                    continue
                known, scope = np.flatnonzero(~lacking).tolist(), [self.variables[position] for position in wanted]
                names = [self.variables[position] for position in known]
                rows = np.flatnonzero(members.ravel() == number).tolist()
                givens = [dict(zip(names, codes[row, known].tolist(), strict=True)) for row in rows]
                answers = answer(scope, givens)
                for row, positions in zip(rows, givens, strict=True):
                    given = {v: self.schema.states[v][position] for v, position in positions.items()}
                    with Question(scope, given, positions).possible():
                        yield row, wanted, next(answers)
                    bar.update()


def _distinct(codes: Codes) -> tuple[Codes, NDArray[np.intp]]:
    distinct, inverse = np.unique(codes, axis=0, return_inverse=True)
    return distinct, inverse.ravel()


@dataclass(frozen=True)
class Question:
    """Variables asked for and states given, which are positions in `places`."""

    asked: list[str]
    given: dict[str, Any]
    places: dict[str, int]

    @classmethod
    def of(
        cls,
        schema: Schema,
        variables: Sequence[str] | None,
        evidence: Mapping[str, Any] | None = None,
        declared: Sequence[Schema] = (),
    ) -> Self:
        """Check variables and evidence; by default the variables are all those without evidence."""
        if variables is not None:
            schema.require([listed_names(variables)])
        given = checked_evidence(schema, evidence, declared)
        if twice := set(given) & set(variables or ()):
            raise SchemaError(f"Variable {min(twice)!r} is both asked for and given as evidence.")
        asked = [v for v in schema.variables if v not in given] if variables is None else list(variables)
        return cls(asked, given, {v: schema.states[v].index(state) for v, state in given.items()})

    @property
    def names(self) -> list[str]:
        """The variables asked for and given."""
        return [*self.asked, *self.given]

    def states(self, positions: Sequence[int], schema: Schema) -> dict[str, State]:
        """Name an answer in states of the variables asked for."""
        return {v: schema.states[v][position] for v, position in zip(self.asked, positions, strict=True)}

    @contextmanager
    def possible(self) -> Iterator[None]:
        """Raise an error that names the evidence if its probability is zero."""
        try:
            yield
        except ImpossibleEvidenceError as error:
            raise impossible(self.given) from error


def impossible(given: Mapping[str, Any]) -> ValueError:
    """Build the error that evidence, named by its states, has probability zero."""
    return ValueError(f"The evidence {dict(given)} has probability zero in the network: remove some of it.")


def listed_names(variables: Sequence[str]) -> Sequence[str]:
    """Return variables; TypeError if they are no list, such as one text, whose letters would be taken for names."""
    if isinstance(variables, str) or not isinstance(variables, Iterable):
        raise TypeError(f"Name the variables in a list, such as ['smoke']; got {shown(variables)}.")
    return variables


def checked_evidence(
    schema: Schema, evidence: Mapping[str, Any] | None, declared: Sequence[Schema] = ()
) -> dict[str, Any]:
    """Convert evidence to states, read like cells of records; the state for other values must be named."""
    if not isinstance(evidence, Mapping | None):
        raise TypeError(f'evidence must be a dict such as {{"smoke": "yes"}}, got {shown(evidence)}.')
    given = dict(evidence or {})
    for variable, value in given.items():
        schema.require([(variable,)])
        if is_listable(value) or isinstance(value, set | frozenset | dict):
            raise SchemaError(f"Evidence has one state each, and {variable!r} several: ask once for each of them.")
        if key(value) == EMPTY or value not in schema.states[variable]:
            given[variable] = _read(reading_schema(schema, declared, variable), variable, value)
    return given


def checked_records(
    schema: Schema, records: pd.DataFrame, declared: Sequence[Schema] = ()
) -> dict[str, NDArray[np.intp]]:
    """Convert cells of public records to positions of states, as in `checked_evidence`; missing ones are -1."""
    require_frame(records)
    results = {}
    for variable, column in records.items():
        schema.require([(variable,)])  # type: ignore[list-item]
        own = reading_schema(schema, declared, str(variable))
        reader = Reader.of(own, str(variable))
        positions, known = _cells(column, reader), column.notna().to_numpy()
        for mark in (MISSING, UNDECLARED):  # texts of missing values, and what is no state, which is refused
            rows = np.flatnonzero(known & (positions == mark))
            for value in column.iloc[rows[:1]].tolist():
                positions[rows] = reader.states.index(_read(own, str(variable), value))
        results[str(variable)] = np.where(known, _order(schema, own, str(variable))[np.where(known, positions, 0)], -1)
    return results


def require_frame(records: Any) -> None:
    require_public(records)
    if not isinstance(records, pd.DataFrame):
        raise TypeError(f"Public records in a pandas DataFrame are needed, got {type(records).__name__}.")
    column_names(records)


def record_codes(
    schema: Schema, records: Any, variables: Sequence[str], declared: Sequence[Schema] = ()
) -> dict[str, NDArray[np.intp]]:
    """Convert cells of complete records to positions of states, with declared stand-ins; errors show no value."""
    results = {}
    for variable in variables:
        own = reading_schema(schema, declared, variable)
        (read,) = read_columns(own, [variable])
        (position,) = require_columns(column_names(records), [read])
        reader = Reader.of(own, read)
        found = sealed(partial(_cells_at, records, position, reader), f"variable {read!r}")
        codes = with_derived(declared_codes({read: found}, {read: reader}, own), own, [variable])
        results[variable] = _order(schema, own, variable)[codes[variable]]
    return results


def _cells_at(records: Any, place: int, reader: Reader) -> NDArray[np.intp]:
    return _cells(column_at(records, place), reader)


def _cells(column: Any, reader: Reader) -> NDArray[np.intp]:
    """Find the positions of the cells' states; MISSING for empty cells and texts that mean it, or UNDECLARED."""
    if isinstance(getattr(column, "dtype", None), pd.CategoricalDtype):
        categories = pd.Series(column.cat.categories.tolist(), dtype=object)
        return np.append(_cells(categories, reader), MISSING)[column.cat.codes.to_numpy()]
    places = positions(column, reader).astype(np.intp)
    if reader.bins is not None and (places == UNDECLARED).any():  # the names of bins
        places = np.where(places == UNDECLARED, positions(column, replace(reader, bins=None)), places)
    rows, meant = np.flatnonzero(places == UNDECLARED), dict[Any, int]()
    for row, value in zip(rows, decoded(column)[rows].to_list() if rows.size else [], strict=True):
        own = key(value)
        if own not in meant:
            meant[own] = UNDECLARED
            if own[0] is not date and own[1] in reader.states:  # 1 for True
                meant[own] = reader.states.index(own[1])
            elif own[0] is str:  # numbers in texts; the empty text is no state
                meant[own] = max(reader.text_position(own[1]), UNDECLARED)
        places[row] = meant[own]
    return places


def _order(schema: Schema, own: Schema, variable: str) -> NDArray[np.intp]:
    """Map positions of a variable's states in one schema to those in another, which has the same states."""
    return np.array([schema.states[variable].index(state) for state in own.states[variable]])


def reading_schema(schema: Schema, declared: Sequence[Schema], variable: str) -> Schema:
    """Find the schema that maps a variable's values to states: the first declared one with its states."""
    states = set(schema.states[variable])
    return next((own for own in declared if variable in own.states and set(own.states[variable]) == states), schema)


def _read(schema: Schema, variable: str, value: Any) -> State:
    """Convert a value of the records to its state."""
    reader = Reader.of(schema, variable)
    position: int | None = reader.text_position(value) if isinstance(value, str) else reader.position(value)
    if position == MISSING:
        position, _ = reader.stand_ins
        if position is None:
            raise SchemaError(
                f"Variable {variable!r} has no state for missing values, such as {value!r}: it has "
                f"{', '.join(map(repr, reader.states))}."
            )
    if position is None or position < 0:
        named = ", ".join(map(repr, reader.states))
        raise SchemaError(f"Variable {variable!r} has no state {value!r}; it has {named}.{_meant(reader, value)}")
    return reader.states[position]


def _meant(reader: Reader, value: Any) -> str:
    """Hint at the cause of an error: the format of dates or a decimal comma, if that is wrong, or a similar state."""
    if reader.bins is not None and reader.of_dates and isinstance(value, str) and any(map(str.isdigit, value)):
        first = next(edge for edge in reader.bins.edges if math.isfinite(edge))
        return f" Dates are written as {reader.bins.written(first)!r}."
    if isinstance(value, str) and "," in value and reader.text_position(value.replace(",", ".")) >= 0:
        return f" Write decimals with a point: {value.replace(',', '.')!r}."
    return suggestion(value, reader.states)


def numbers_of_states(schema: Schema, values: Mapping[str, Mapping[Any, float]]) -> dict[str, Vector]:
    """Put the numbers assigned to states in the order of the states, for every variable."""
    results = {}
    for variable, numbers in values.items():
        schema.require([(variable,)])
        states = schema.states[variable]
        if set(numbers) != set(states):
            named, other = ", ".join(map(repr, states)), [state for state in numbers if state not in states]
            wrong = f" It has no state {shown(other[0])}." if other else ""
            raise SchemaError(f"Give a number for each state of {variable!r}, every state needing one: {named}.{wrong}")
        results[variable] = np.array([float(numbers[state]) for state in states])
        if not np.isfinite(results[variable]).all():
            raise ValueError(f"The numbers of {variable!r} must be finite.")
    return results
