"""Bounds of answers, as quantiles of posterior draws."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp._notebooks import bar, table
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.privacy.checks import choice
from pgmpy_dp.schema import Schema

# Advice for a model without a release, in Python and on the command line.
ATTACH_RELEASE = "attach the release it was fitted to by network.attach_release(dp.NoisyMarginals.load('release.zip'))"
NAME_RELEASE = "name the release it was fitted to by --release"

# Records. A bound closer than this to 0 or 1 is set to 0 or 1, since counts are integers.
_HALF = 0.5


def bounds(draws: Vector, interval: float, records: Any = None) -> tuple[Vector, Vector]:
    """Compute lower and upper bounds of each column of draws.

    Parameters
    ----------
    draws : ndarray of shape (draws, answers)
    interval : float
        The probability that a further draw lies between the bounds; it is equally likely to lie below and above. This
        requires Weibull's plotting positions: the usual ones are too narrow for a small number of draws.
    records : float or ndarray of shape (answers,), optional
        The number of records that probabilities are shares of: bounds within half a record of 0 or 1 are set to 0 or 1.
    """
    lower, upper = np.quantile(draws, [(1 - interval) / 2, (1 + interval) / 2], axis=0, method="weibull")
    return (lower, upper) if records is None else rounded_to_records(lower, upper, records)


def rounded_to_records(lower: Vector, upper: Vector, records: Any) -> tuple[Vector, Vector]:
    """Set bounds of probabilities to 0 or 1 if they are less than half a record away."""
    return np.where(lower * records < _HALF, 0.0, lower), np.where((1 - upper) * records < _HALF, 1.0, upper)


def bounds_frame(values: Vector, draws: Vector, interval: float, index: Any, records: Any) -> pd.DataFrame:
    """Make a frame of values and bounds, widened where necessary to contain the value."""
    lower, upper = bounds(draws, interval, records)
    lower, upper = np.minimum(lower, values), np.maximum(upper, values)
    return BoundedAnswer({"value": values, "lower": lower, "upper": upper}, index=index)


class BoundedAnswer(pd.DataFrame):
    """Values and bounds, which a notebook shows with bars; operations on it return plain data frames."""

    def _repr_html_(self) -> str:
        scale = max(1.0, float(np.nanmax(self["upper"], initial=0.0)))
        rows = [
            (
                ", ".join(map(str, label if isinstance(label, tuple) else (label,))),
                *map("{:.4f}".format, (value, low, high)),
                bar(low, value, high, scale),
            )
            for label, (value, low, high) in zip(self.index, self[["value", "lower", "upper"]].to_numpy(), strict=True)
        ]
        names = ", ".join(str(name) for name in self.index.names if name is not None)
        notes = f" {self.attrs['note']}" if "note" in self.attrs else ""
        return table(f"P({names}), with bounds.{notes}", [names, "value", "lower", "upper", ""], rows, most=60)


def state_index(schema: Schema, variables: Sequence[str]) -> pd.Index:
    """Label rows by the states of one variable, or by the joint states of several."""
    states, names = [list(schema.states[variable]) for variable in variables], list(variables)
    return pd.MultiIndex.from_product(states, names=names) if len(names) > 1 else pd.Index(*states, name=names[0])


def check_interval(interval: Any, name: str = "interval") -> None:
    """Raise unless the interval, or another number of this name, is between 0 and 1."""
    if isinstance(interval, bool) or not isinstance(interval, int | float | np.number) or not 0 < interval < 1:
        raise ValueError(f"{name} is {interval!r}; it must be between 0 and 1, such as 0.9.")


def check_target(target: Any) -> None:
    """Raise unless the target is "population" or "records"."""
    choice("population", "records")("target", target)
