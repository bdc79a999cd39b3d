"""What a mixture was fitted to says how far its answers may be off."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.mixture_draws import MixtureDraws, draw_refits
from pgmpy_dp.inference.mixture_fit import MixtureFit
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique, Schema


def noisy_tables(release: NoisyMarginals) -> list[tuple[Clique, NDArray[Any], float]]:
    """List the release's tables, each with the standard deviation of its noise."""
    return [(clique, table, release.noise(clique)[1]) for clique, table in release.tables.items()]


def known_total(release: NoisyMarginals) -> float | None:
    return None if release.public_total is None else float(release.public_total)


def ordered_variables(schema: Schema) -> list[str]:
    """List the variables whose states have an order: bins, and ascending numbers."""
    return [variable for variable in schema.variables if _is_ordered(schema, variable)]


def draws_of(fit: MixtureFit, release: NoisyMarginals, schema: Schema, draws: int, seed: int) -> MixtureDraws:
    """Refit the mixture to simulated releases like its own."""
    return draw_refits(
        fit,
        noisy_tables(release),
        ordered=ordered_variables(schema),
        known_total=known_total(release),
        draws=draws,
        generator=np.random.default_rng(seed),
    )


def _is_ordered(schema: Schema, variable: str) -> bool:
    states: Sequence[Any] = schema.states[variable]
    if variable in schema.bins or len(states) < 3:
        return variable in schema.bins
    numbers = all(isinstance(state, Real) and not isinstance(state, bool) for state in states)
    return numbers and all(low < high for low, high in pairwise(states))
