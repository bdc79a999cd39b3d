"""Conversion of states of synthetic records to values of the original types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import Message, SchemaError
from pgmpy_dp.schema import Bins, Schema

Numbers = Literal["states", "uniform", "midpoint"]


def require_numbers(bins: Mapping[str, Bins], numbers: str) -> None:
    """Raise if numbers cannot be drawn, before any privacy is spent.

    Raises
    ------
    ValueError
        If `numbers` is not "states", "uniform" or "midpoint".
    SchemaError
        If a bin is open and numbers are requested.
    """
    if numbers not in get_args(Numbers):
        raise ValueError(f'numbers must be "states", "uniform" or "midpoint", got {numbers!r}.')
    for variable, declared in bins.items():
        if numbers != "states" and not np.isfinite(declared.edges).all():
            raise SchemaError(
                Message(
                    f"Variable {variable!r} has an open bin, which has no middle",
                    'declare finite edges, or use numbers="states"',
                    "declare finite edges, or use --numbers states",
                )
            )


def decoded(
    schema: Schema, variable: str, codes: NDArray[Any], numbers: Numbers, generator: np.random.Generator
) -> Any:
    """Convert a column of positions to states, or to numbers within bins.

    Parameters
    ----------
    schema : Schema
    variable : str
    codes : ndarray of shape (records,)
    numbers : {"states", "uniform", "midpoint"}
        What to return for bins. Numbers have the decimals that the bins declare. Without declared decimals, numbers are
        integers if all edges are: bins of width 1 then give their lower edge, and a spike that was declared as its own
        bin stays exact.
    generator : numpy.random.Generator

    Returns
    -------
    Categorical, ndarray or Series
        States, or numbers. Missing or other values of a binned variable have their own states; among numbers they are
        missing.

    Raises
    ------
    ValueError, SchemaError
        As `require_numbers`.
    """
    bins = schema.bins.get(variable)
    require_numbers({} if bins is None else {variable: bins}, numbers)
    if bins is None or numbers == "states":
        return pd.Categorical.from_codes(codes, pd.Index(schema.state_names[variable]))
    known = (codes >= 0) & (codes < len(bins.labels))  # states for missing and other values come after the bins
    place = np.where(known, codes, 0)
    steps = bins.steps()
    if steps is None:
        low, high = np.array(bins.edges)[[place, place + 1]]
        values = low + (high - low) * (0.5 if numbers == "midpoint" else generator.random(codes.size))
    else:
        first, end = np.array(steps)[[place, place + 1]]
        size = end - first
        along = (size - 1) // 2 if numbers == "midpoint" else np.floor(size * generator.random(codes.size))
        values = (first + along) / 10 ** (bins.decimals or 0)  # the float nearest to the decimal number
    whole = steps is not None and not bins.decimals
    if known.all():
        return values.astype(np.int64) if whole else values
    return pd.Series(np.where(known, values, np.nan)).astype("Int64" if whole else "float64")


def labelled(codes: Mapping[str, NDArray[Any]], schema: Schema, variables: Sequence[str]) -> pd.DataFrame:
    """Convert positions of states to categorical columns."""
    states = {variable: pd.Index(schema.state_names[variable]) for variable in variables}
    return pd.DataFrame({v: pd.Categorical.from_codes(codes[v], states[v]) for v in variables})  # type: ignore[type-var]


def numbered(
    records: pd.DataFrame, schemas: Iterable[Schema], numbers: Numbers, generator: np.random.Generator
) -> pd.DataFrame:
    """Order the columns of records as in the schemas, and replace names of bins by numbers.

    Parameters
    ----------
    records : DataFrame
        Every column holds states.
    schemas : iterable of Schema
        The schemas with the bins of some variables; the first counts if several have a variable. Columns without a
        schema come last.
    numbers : {"states", "uniform", "midpoint"}
    generator : numpy.random.Generator
        Draws the numbers within bins.

    Raises
    ------
    ValueError, SchemaError
        As `require_numbers`.

    Examples
    --------
    >>> records = pd.DataFrame({"age": ["18_to_65", "0_to_18"], "smoke": ["yes", "no"]})
    >>> numbered(records, [Schema({"age": Bins([0, 18, 65])})], "midpoint", np.random.default_rng())
       age smoke
    0   41   yes
    1    8    no
    """
    owners, columns = dict[str, Schema](), {}
    for schema in schemas:
        for variable in schema.variables:
            if variable in records:
                owners.setdefault(variable, schema)
    for variable, schema in owners.items():
        if variable in schema.bins and numbers != "states":
            column, names = records[variable], pd.Index(schema.state_names[variable])
            if isinstance(column.dtype, pd.CategoricalDtype):
                codes = np.append(names.get_indexer(column.cat.categories), -1)[column.cat.codes]  # -1 is missing
            else:
                codes = names.get_indexer(column)  # type: ignore[arg-type]
            values = decoded(schema, variable, codes, numbers, generator)
            columns[variable] = pd.Series(getattr(values, "array", values), records.index)
    return records.assign(**columns)[[*owners, *(v for v in records if v not in owners)]]
