"""Check public tables against a release and each other, and warn of contradictions far beyond the noise."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from pgmpy_dp.errors import MIXTURE, callers_level
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, Law
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.observed.informed_marginals import InformedMarginals
from pgmpy_dp.observed.reading import law_of
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import LEAST_VARIANCE
from pgmpy_dp.schema import Clique

# Probability of a false warning from errors alone, over all cells together.
_LEVEL = 1e-6


def warn_of_contradictions(releases: Sequence[Release]) -> None:
    """Warn about public tables that contradict the release or each other.

    The test allows for sampling error: a public table may describe the population from which the records were drawn.

    Warns
    -----
    UserWarning
        If a public table differs from a noisy one, or two public tables from each other, far beyond their errors.
    """
    found = [
        text for release in releases if isinstance(release, InformedMarginals) for text in _contradictions(release)
    ]
    if found:
        more = " and others" if len(found) > 3 else ""
        warnings.warn(
            f"Public tables are contradicted far beyond noise, standard errors and sampling: {'; '.join(found[:3])}"
            f"{more}. They are fitted nevertheless: leave out those not about these records, or give errors.",
            stacklevel=callers_level(),
        )


def warn_of_tables_left_out(releases: Sequence[Any], seen: Sequence[Clique], kept: Sequence[Clique]) -> None:
    """Warn about public tables that a fit leaves out to keep the junction tree small.

    The network does not join their variables, and a junction tree that contains them would be too large.

    Parameters
    ----------
    releases : sequence of Release
    seen, kept : sequence of tuples of str
        Tables over the network's variables, and the subset that is fitted.

    Warns
    -----
    UserWarning
        If there is such a table.
    """
    public = [clique for release in releases if isinstance(release, InformedMarginals) for clique in release.public]
    lost = set(map(frozenset, seen)) - set(map(frozenset, kept))
    nodes = {variable for clique in seen for variable in clique}
    found = [clique for clique in public if frozenset(clique) & nodes in lost]
    if found:
        warnings.warn(
            f"The fit leaves out the public {', '.join(map(str, found))}: the network does not join its variables, and "
            f"a tree that does is too large: add edges there, or {MIXTURE}.",
            stacklevel=callers_level(),
        )


def _contradictions(release: InformedMarginals) -> Iterator[str]:
    tests = list(_tests(release))
    cells = sum(apart.size for _, apart, _, _ in tests)
    for text, apart, deviations, law in tests:
        level = _LEVEL / cells
        if (apart > law.most(level / 2) * deviations).any():
            yield f"{text} (up to {apart.max() / release.total:.2g} of the records)"


def _tests(release: InformedMarginals) -> Iterator[tuple[str, Vector, Vector, Law]]:
    """Yield a description, the absolute differences between two tables, their standard deviations, and their law."""
    total, noisy = release.total, release.noisy
    public = {clique: table.scaled(total) for clique, table in release.public.items()}
    for clique, (counts, errors) in public.items():
        shared = {frozenset(clique) & frozenset(measured) for measured in noisy.cliques} - {frozenset()}
        for part in (p for p in shared if not any(p < other for other in shared)):
            names = tuple(variable for variable in clique if variable in part)
            measured, variance = noisy.marginal(names)
            own, spread = _summed(clique, names, counts, errors)
            spread = spread + variance + _chance(own, total, release.total_variance)
            text = f"the public table of {clique} by the noisy one of {', '.join(names)}"
            yield text, np.abs(own - measured), np.sqrt(spread), law_of(release)
    for first, second in combinations(public, 2):
        names = tuple(variable for variable in first if variable in second)
        if names:
            own, spread = _summed(first, names, *public[first])
            other, further = _summed(second, names, *public[second])
            spread = spread + further + _chance(own, total, 0.0)
            yield (
                f"the public table of {first} by that of {second}",
                np.abs(own - other),
                np.sqrt(spread),
                GaussianNoise,
            )


def _summed(clique: Clique, names: Clique, counts: Vector, errors: Vector) -> tuple[Vector, Vector]:
    return Table(clique, counts).margin(names).values, Table(clique, errors**2).margin(names).values


def _chance(counts: Vector, total: float, total_variance: float) -> Vector:
    """Compute the variance of counts from the sampling of the records and from their estimated number."""
    share = counts / total
    chance: Vector = np.maximum(counts * (1 - share), LEAST_VARIANCE) + share**2 * total_variance
    return chance
