"""Fits of a mixture to a release, and to simulated releases like it."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import Message, callers_level
from pgmpy_dp.fitting.plans.pairs import PLAN_PAIRS, plan_pairs
from pgmpy_dp.inference.mixtures.boxes import Rules
from pgmpy_dp.inference.mixtures.fit.ensemble import MixtureFit, fit_mixture
from pgmpy_dp.inference.mixtures.refits import MixtureDraws, draw_refits
from pgmpy_dp.release.informed_marginals import ReleasedTables
from pgmpy_dp.release.observations import joined_pairs
from pgmpy_dp.schema import Clique, Schema

_SEED = 0


def fit_of_release(release: ReleasedTables, schema: Schema, *, components: int, members: int, steps: int) -> MixtureFit:
    """Fit a mixture over the variables of a schema to those tables of a release that contain no others."""
    own = set(schema.variables)
    return fit_mixture(
        schema.cardinalities(),
        [table for table in noisy_tables(release) if own.issuperset(table[0])],
        ordered=_ordered_variables(schema),
        components=components,
        members=members,
        steps=steps,
        known_total=_known_total(release),
        rules=rules_of(schema),
        generator=np.random.default_rng(_SEED),
    )


def draws_of(fit: MixtureFit, release: ReleasedTables, schema: Schema, draws: int, seed: int) -> MixtureDraws:
    """Refit the mixture to simulated releases like its own."""
    return draw_refits(
        fit,
        noisy_tables(release),
        ordered=_ordered_variables(schema),
        known_total=_known_total(release),
        draws=draws,
        generator=np.random.default_rng(seed),
    )


def warn_of_unmeasured(release: ReleasedTables, schema: Schema) -> None:
    """Warn about pairs of a schema's variables of which this release has no table."""
    held, root = joined_pairs(release.tables), {v: of for v, (of, _) in schema.structure.dependent.items()}
    pairs = [clique for clique in plan_pairs(schema)[0] if len(clique) == 2]
    missing = [pair for pair in pairs if not held & {frozenset(pair), frozenset(root.get(v, v) for v in pair)}]
    if missing:
        first, second = missing[0]
        others = f", and misses {len(missing)} pairs in all" if len(missing) > 1 else ""
        warnings.warn(
            Message(
                f"The release holds no table of {first!r} with {second!r}{others}. How they depend on each other is a "
                "guess, which bounds do not cover",
                *PLAN_PAIRS,
            ),
            stacklevel=callers_level(),
        )


def noisy_tables(release: ReleasedTables) -> list[tuple[Clique, NDArray[Any], float]]:
    """List the release's tables, each with the standard deviation of its noise."""
    return [(clique, table, release.noise(clique)[1]) for clique, table in release.tables.items()]


def rules_of(schema: Schema) -> Rules:
    """Return what the rules of a schema imply."""
    structure = schema.structure
    return Rules(dict(structure.dependent), structure.zeros, dict(structure.refined))


def _known_total(release: ReleasedTables) -> float | None:
    return None if release.public_total is None else float(release.public_total)


def _ordered_variables(schema: Schema) -> list[str]:
    """List the variables whose states have an order: bins, and ascending numbers."""
    return [variable for variable in schema.variables if _is_ordered(schema, variable)]


def _is_ordered(schema: Schema, variable: str) -> bool:
    states: Sequence[Any] = schema.states[variable]
    if variable in schema.bins or len(states) < 3:
        return variable in schema.bins
    numbers = all(isinstance(state, Real) and not isinstance(state, bool) for state in states)
    return numbers and all(low < high for low, high in pairwise(states))
