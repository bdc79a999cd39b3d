"""States of synthetic records become values of the kinds that the records had."""

from __future__ import annotations

import math
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema import Bins, Schema

Numbers = Literal["states", "uniform", "midpoint"]
_MOST_WHOLE = 2.0**53  # up to which floats hold every whole number


def require_closed(variable: str, bins: Bins) -> None:
    """Refuse bins in which no numbers can be drawn.

    Raises
    ------
    SchemaError
        If a bin is open.
    """
    if not np.isfinite(bins.edges).all():
        raise SchemaError(
            f"Variable {variable!r} has an open bin, of which there is no middle: declare finite edges, or take "
            'numbers="states".'
        )


def decoded(
    schema: Schema, variable: str, codes: NDArray[Any], numbers: Numbers, generator: np.random.Generator
) -> Any:
    """Give a column of positions its states, or the numbers of its bins.

    Parameters
    ----------
    schema : Schema
    variable : str
    codes : ndarray of shape (records,)
    numbers : {"states", "uniform", "midpoint"}
        What bins become. Where all finite edges are whole numbers, so is what is drawn: bins of width 1 give their
        lower edge, and a spike that was declared as a bin of its own stays exact.
    generator : numpy.random.Generator

    Returns
    -------
    Categorical, ndarray or Series
        States, or numbers. Missing or other values of a binned variable have states of their own; among numbers they
        are missing.

    Raises
    ------
    ValueError
        If `numbers` is none of the three.
    SchemaError
        If a bin is open and numbers are asked for.
    """
    if numbers not in ("states", "uniform", "midpoint"):
        raise ValueError(f'numbers must be "states", "uniform" or "midpoint", got {numbers!r}.')
    bins = schema.bins.get(variable)
    if bins is None or numbers == "states":
        return pd.Categorical.from_codes(codes, pd.Index(schema.state_names[variable]))
    require_closed(variable, bins)
    edges = np.array(bins.edges)
    known = codes < len(bins.labels)  # states for missing and other values come after the bins
    place = np.where(known, codes, 0)
    low, high = edges[place], edges[place + 1]
    whole = all(math.floor(edge) == edge and abs(edge) <= _MOST_WHOLE for edge in bins.edges)
    if numbers == "midpoint":
        values = np.floor((low + high - 1) / 2) if whole else (low + high) / 2
    else:
        share = generator.random(codes.size)
        values = np.floor(low + share * (high - low)) if whole else low + share * (high - low)
    if known.all():
        return values.astype(np.int64) if whole else values
    return pd.Series(np.where(known, values, np.nan)).astype("Int64" if whole else "float64")
