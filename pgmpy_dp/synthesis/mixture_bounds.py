"""What a mixture was fitted to says how far its answers may be off."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.inference.mixture_draws import MixtureDraws, Prediction, draw_refits
from pgmpy_dp.inference.mixture_fit import MixtureFit
from pgmpy_dp.inference.rules import Rules
from pgmpy_dp.networks.credible_intervals import BoundedAnswer, rounded_to_records, state_index
from pgmpy_dp.release import Guarantee, InformedMarginals, NoisyMarginals
from pgmpy_dp.schema import Clique, Schema

Tables = NoisyMarginals | InformedMarginals

# Evidence of fewer than one record, with a chance of one in twenty, is hidden by the noise.
_LOW = 1.645


def noisy_tables(release: Tables) -> list[tuple[Clique, NDArray[Any], float]]:
    """List the release's tables, each with the standard deviation of its noise."""
    return [(clique, table, release.noise(clique)[1]) for clique, table in release.tables.items()]


def rules_of(schema: Schema) -> Rules:
    """Hand over what the rules of a schema come to."""
    structure = schema.structure
    return Rules(dict(structure.dependent), structure.zeros, dict(structure.refined))


def known_total(release: Tables) -> float | None:
    return None if release.public_total is None else float(release.public_total)


def ordered_variables(schema: Schema) -> list[str]:
    """List the variables whose states have an order: bins, and ascending numbers."""
    return [variable for variable in schema.variables if _is_ordered(schema, variable)]


def draws_of(fit: MixtureFit, release: Tables, schema: Schema, draws: int, seed: int) -> MixtureDraws:
    """Refit the mixture to simulated releases like its own."""
    return draw_refits(
        fit,
        noisy_tables(release),
        ordered=ordered_variables(schema),
        known_total=known_total(release),
        draws=draws,
        generator=np.random.default_rng(seed),
    )


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
        raise ValueError("The release makes another promise than the network: attach that which it was fitted to.")


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


def _is_ordered(schema: Schema, variable: str) -> bool:
    states: Sequence[Any] = schema.states[variable]
    if variable in schema.bins or len(states) < 3:
        return variable in schema.bins
    numbers = all(isinstance(state, Real) and not isinstance(state, bool) for state in states)
    return numbers and all(low < high for low, high in pairwise(states))
