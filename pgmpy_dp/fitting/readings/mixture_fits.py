"""Fits of a mixture to a release, and to simulated releases like it."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.errors import warn
from pgmpy_dp.fitting.plans.pairs import PLAN_PAIRS, paired
from pgmpy_dp.inference.mixtures.boxes import Rules
from pgmpy_dp.inference.mixtures.fit.base import chance_of_independence
from pgmpy_dp.inference.mixtures.fit.ensemble import MixtureFit, fit_mixture
from pgmpy_dp.inference.mixtures.fit.noisy_tables import NoisyTables
from pgmpy_dp.inference.mixtures.refits import MixtureDraws, draw_refits
from pgmpy_dp.observed.informed_marginals import ReleasedTables
from pgmpy_dp.observed.reading import joined_pairs
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.release import NoisyCoefficients, NoisyMarginals, NoisyResiduals, Release
from pgmpy_dp.schema import Schema

_SEED = 0
_CHANCE = 0.01  # of calling independent pairs dependent
_KNOWN = 6.0  # a sum of squares is known if its root exceeds this number of standard deviations of noise

MixtureRelease = ReleasedTables | NoisyResiduals | NoisyCoefficients


def require_mixture_release(release: Release) -> MixtureRelease:
    """Return a release to which a mixture can be fitted; refuse residuals under dependencies or hierarchies."""
    if not isinstance(release, MixtureRelease):
        raise ValueError(f"A mixture is fitted to noisy tables: {PLAN_PAIRS}.")
    structure = release.schema.structure
    if not release.independent and (structure.dependent or structure.refined):
        raise ValueError(f"A mixture is not fitted to residuals under dependencies or hierarchies: {PLAN_PAIRS}.")
    return release


def fit_of_release(release: MixtureRelease, schema: Schema, *, components: int, members: int, steps: int) -> MixtureFit:
    """Fit a mixture over the variables of a schema to those tables of a release that contain no others."""
    return fit_mixture(
        schema.cardinalities(),
        release.tables_of(schema.variables),
        ordered=schema.ordered,
        components=components,
        members=members,
        steps=steps,
        known_total=_known_total(release),
        residuals=not release.independent,
        rules=rules_of(schema),
        generator=np.random.default_rng(_SEED),
    )


def draws_of(fit: MixtureFit, release: MixtureRelease, schema: Schema, draws: int, seed: int) -> MixtureDraws:
    """Refit the mixture to simulated releases like its own."""
    return draw_refits(
        fit,
        release.tables_of(schema.variables),
        ordered=schema.ordered,
        known_total=_known_total(release),
        residuals=not release.independent,
        draws=draws,
        generator=np.random.default_rng(seed),
    )


def pairs_depend(release: MixtureRelease) -> bool:
    """Whether some pair of a release is farther from independence than noise alone is likely to explain."""
    tables = NoisyTables.of(release.schema.cardinalities(), release.tables_of(release.variables), _known_total(release))
    return chance_of_independence(tables) < _CHANCE


def chances_of_the_same(release: NoisyMarginals | NoisyResiduals) -> dict[str, float]:
    """Estimate the probability that two records have the same state, for variables whose noise is small enough."""
    if isinstance(release, NoisyMarginals):
        known = {c[0]: (table, release.variances[c]) for c, table in release.tables.items() if len(c) == 1}
    else:
        known = {variable: release.marginal((variable,)) for variable in release.variables}
    chances = {}
    for variable, (table, variance) in known.items():
        squares = max(float((np.asarray(table, float) ** 2).sum()) - table.size * variance, 0.0)
        if squares > _KNOWN**2 * variance:  # noise is a small share of its root
            chances[variable] = min(max(squares / release.total**2, 1.0 / table.size), 1.0)
    return chances


def warn_of_unmeasured(release: MixtureRelease, schema: Schema) -> None:
    """Warn about pairs of a schema's variables of which this release has no table."""
    measured, root = joined_pairs(release.cliques), {v: of for v, (of, _) in schema.structure.dependent.items()}
    missing = [
        pair for pair in paired(schema) if not measured & {frozenset(pair), frozenset(root.get(v, v) for v in pair)}
    ]
    if missing:
        first, second = missing[0]
        others = f", and misses {len(missing)} pairs in all" if len(missing) > 1 else ""
        warn(
            f"The release holds no table of {first!r} with {second!r}{others}. How they depend on each other is a "
            f"guess, which bounds do not cover: {PLAN_PAIRS}."
        )


def fitted_variables(release: MixtureRelease, pooled: bool) -> list[str]:
    """List the variables of a mixture that is fitted to a release; a union's own variable unless it is pooled."""
    if not isinstance(release, UnitedMarginals):
        if pooled:
            raise ValueError("pooled is about unions of releases: leave it out for one release.")
        return list(release.variables)
    if pooled:
        return [variable for variable in release.variables if variable != release.variable]
    measured = {variable for clique in release.tables for variable in clique}
    lacking = [variable for variable in release.variables if variable not in measured]
    if lacking:
        raise ValueError(
            f"A mixture distinguishes the releases of a union by variables that all measured, and some lack "
            f"{', '.join(map(repr, lacking))}: "
            "give pooled=True, or fit a network by CollectiveEM."
        )
    left = [clique[1:] for clique in release.cliques if clique not in release.tables]
    if left:
        warn(
            "A mixture that distinguishes the releases of a union leaves out tables that only some of them measured: "
            f"{', '.join(map(str, left[:3]))}{' and others' if len(left) > 3 else ''}."
        )
    return list(release.variables)


def rules_of(schema: Schema) -> Rules:
    """Return what the rules of a schema imply."""
    structure = schema.structure
    return Rules(dict(structure.dependent), structure.zeros, dict(structure.refined))


def _known_total(release: MixtureRelease) -> float | None:
    return None if release.public_total is None else float(release.public_total)
