"""Tables that are published elsewhere, read by a schema."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._names import suggestion
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.release.kinds import frozen_array
from pgmpy_dp.schema import Clique, Schema


@dataclass(frozen=True, eq=False, repr=False)
class PublicTable:
    """A table that is published elsewhere, with the standard errors that were published with it.

    Parameters
    ----------
    table : ndarray, pandas Series or DataFrame
        Counts of any population, or shares: it is divided by its sum. An array has the axes of the clique that it is
        given for, with states in schema order. A series or frame (a cross table) has an index and columns named after
        the variables, in any order; for one variable the names may be omitted.
    standard_errors : float, ndarray, pandas Series or DataFrame
        Standard errors of its numbers, in their unit: one for all, or one each. 0 means that the table is exact.

    Examples
    --------
    >>> schema = Schema({"sex": ["f", "m"], "age": ["young", "old"]})
    >>> import pandas as pd
    >>> ages, sexes = pd.Index(["old", "young"], name="age"), pd.Index(["f", "m"], name="sex")
    >>> census = pd.DataFrame([[20, 31], [30, 19]], ages, sexes)
    >>> PublicTable(census, 0.5).read(("sex", "age"), schema).table.tolist()
    [[30.0, 20.0], [19.0, 31.0]]
    """

    table: Any
    standard_errors: Any = 0.0

    def read(self, clique: Clique, schema: Schema) -> PublicTable:
        """Convert the table and its standard errors to arrays with the axes of a clique.

        Raises
        ------
        SchemaError
            If names or states do not match those of the clique; the message names the variable.
        ValueError
            If a number is negative or not finite, or all are zero.
        """
        counts = _numbers(self.table, clique, schema, "table")
        total = float(counts.sum())
        if not 0 < total < math.inf:
            raise ValueError(f"The public table of {clique} has no positive sum.")
        errors = self.standard_errors
        if np.ndim(errors) == 0:
            errors = np.full(counts.shape, errors)
        return PublicTable(counts, _numbers(errors, clique, schema, "standard errors"))

    def scaled(self, total: float) -> tuple[Vector, Vector]:
        """Return a table that was read as counts of `total` records, and their standard errors."""
        factor = total / self.table.sum()
        return factor * self.table, factor * self.standard_errors


def read_public_tables(public: Any, schema: Schema) -> dict[Clique, PublicTable]:
    """Read public tables, each given for a clique or a single variable, with the errors of `PublicTable.read`."""
    if not isinstance(public, Mapping) or not public:
        raise TypeError(
            "Public tables are a dict of variables to tables, as in public={('sex', 'age'): table}, "
            f"got {type(public).__name__}."
        )
    given = {(key,) if isinstance(key, str) else key: table for key, table in public.items()}
    cliques = schema.require(list(given))
    tables = (table if isinstance(table, PublicTable) else PublicTable(table) for table in given.values())
    return {clique: table.read(clique, schema) for clique, table in zip(cliques, tables, strict=True)}


def _numbers(given: Any, clique: Clique, schema: Schema, what: str) -> NDArray[np.float64]:
    """Read non-negative numbers in a clique's axes."""
    where = f"The public {what} of {clique}"
    values = _labelled(given, clique, schema, where) if hasattr(given, "iloc") else given  # of pandas
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: numbers are needed.") from None
    if array.shape != schema.shape(clique):
        raise SchemaError(f"{where}: shape {schema.shape(clique)} is needed by the schema, got {array.shape}.")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{where}: a number is negative, or not finite.")
    return frozen_array(array, np.float64)


def _labelled(given: Any, clique: Clique, schema: Schema, where: str) -> Any:
    """Bring a series or cross table into a clique's axes."""
    axes = [given.index, given.columns] if hasattr(given, "columns") else [given.index]
    names: tuple[Any, ...] = tuple(name for axis in axes for name in axis.names)
    if names == (None,) and len(clique) == 1:
        names = clique
    if set(names) != set(clique) or len(names) != len(clique):
        named = ", ".join(map(repr, names))
        raise SchemaError(f"{where}: its axes must be named after these variables, got {named}: use rename_axis.")
    if not all(axis.is_unique for axis in axes):
        raise SchemaError(f"{where}: a combination of states occurs twice.")
    labels = [[_states(label) for label in axis] for axis in axes]
    joined = [sum(parts, ()) for parts in product(*labels)]
    for place, variable in enumerate(names):
        _check_states(variable, [label[place] for label in joined], schema, where)
    values = dict(zip(joined, np.asarray(given).ravel().tolist(), strict=True))
    cells = list(product(*(schema.states[variable] for variable in names)))
    if len(values) < len(cells):
        raise SchemaError(f"{where}: combinations of states are missing; reindex with 0 where the count is zero.")
    ordered = np.array([values[cell] for cell in cells], dtype=object).reshape(schema.shape(names))
    return Table(names, ordered).margin(clique).values


def _check_states(variable: str, labels: Iterable[Any], schema: Schema, where: str) -> None:
    states, found = schema.states[variable], set(labels)
    unknown, missing = [label for label in found if label not in states], [s for s in states if s not in found]
    if unknown:
        raise SchemaError(
            f"{where}: variable {variable!r} has no state {unknown[0]!r}.{suggestion(unknown[0], states)}"
        )
    if missing:
        raise SchemaError(f"{where}: it has no number for state {missing[0]!r} of variable {variable!r}.")


def _states(label: Any) -> tuple[Any, ...]:
    """Split one label of an axis into plain values."""
    parts = label if isinstance(label, tuple) else (label,)
    return tuple(part.item() if isinstance(part, np.generic) else part for part in parts)
