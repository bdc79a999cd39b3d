"""What a mixture was fitted to says how far its answers may be off."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.readings.mixture_fits import Tables
from pgmpy_dp.inference.mixtures.refits import MixtureDraws, Prediction
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.models.bounds import BoundedAnswer, rounded_to_records, state_index
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Schema

# Evidence of fewer than one record, with a chance of one in twenty, is hidden by the noise.
_LOW = 1.645


def bounded_answer(
    draws: MixtureDraws,
    schema: Schema,
    asked: Sequence[str],
    given: Mapping[str, Any],
    interval: float,
    target: str,
) -> pd.DataFrame:
    """Put the probabilities of states beside their bounds."""
    found = _predicted(draws, schema, asked, given, target)
    lower, upper = found.bounds(interval)
    upper = np.where(schema.possible(asked, given).ravel(), upper, 0.0)
    lower, upper = rounded_to_records(lower.clip(0.0), upper.clip(None, 1.0), found.records)
    return BoundedAnswer({"value": found.values, "lower": lower, "upper": upper}, index=state_index(schema, asked))


def bounded_means(
    draws: MixtureDraws,
    schema: Schema,
    numbers: Mapping[str, Vector],
    given: Mapping[str, Any],
    interval: float,
    target: str,
) -> pd.DataFrame:
    """Put the expected values of numbers beside their bounds, which are no smaller or larger than the numbers."""
    rows = {}
    for variable, weights in numbers.items():
        found = _predicted(draws, schema, [variable], given, target, weights)
        (lower,), (upper,) = (np.clip(bound, weights.min(), weights.max()) for bound in found.bounds(interval))
        value = float(found.values[0])
        rows[variable] = {"value": value, "lower": min(lower, value), "upper": max(upper, value)}
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("variable")


def check_release(release: Any, schema: Schema, guarantee: Guarantee) -> None:
    """Refuse what a mixture over the schema with this guarantee was not fitted to."""
    if not isinstance(release, Tables):
        raise TypeError(f"A NoisyMarginals is needed, got {type(release).__name__}.")
    if release.schema.select(release.variables).states != schema.states:
        raise SchemaError("The release has other variables or states than the network.")
    if release.guarantee != guarantee:
        raise ValueError("The release makes another promise than the network, which was not fitted to it.")


def states_of(schema: Schema, evidence: Mapping[str, Any]) -> dict[str, int]:
    """Number the states that are given."""
    return {variable: schema.states[variable].index(state) for variable, state in evidence.items()}


def _predicted(
    draws: MixtureDraws,
    schema: Schema,
    asked: Sequence[str],
    given: Mapping[str, Any],
    target: str,
    numbers: Vector | None = None,
) -> Prediction:
    if target not in ("records", "population"):
        raise ValueError(f"target is {target!r}; choose 'records' or 'population'.")
    found = draws.predict(asked, states_of(schema, given), of_records=target == "records", numbers=numbers)
    if given and found.records - _LOW * found.uncertainty < 1:
        warnings.warn(
            f"The release does not tell whether any record has the evidence {dict(given)}: the noise decides the "
            "answer.",
            stacklevel=4,
        )
    return found
