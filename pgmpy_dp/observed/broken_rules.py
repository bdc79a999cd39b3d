"""Check releases against the rules of their schema, and warn where they contradict them far beyond the noise."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pgmpy_dp.errors import callers_level
from pgmpy_dp.inference.collective.noise_laws import Law
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.observed.reading import first_containing, law_of
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Clique, Dependency, Rule

# Probability of a false warning from noise alone, over all rules and cells together.
_LEVEL = 1e-6


def warn_of_broken_rules(releases: Sequence[Release]) -> None:
    """Warn about rules that the releases contradict. Only the releases are used, not the records.

    Warns
    -----
    UserWarning
        If the counts that a rule sets to zero, or the differences that it excludes, are far larger than the noise.
    """
    found = list(_broken(releases))
    if found:
        several = "a rule" if len(found) == 1 else f"{len(found)} rules"
        more = " and others" if len(found) > 3 else ""
        warnings.warn(
            f"The release contradicts {several} of the schema far beyond its noise: {'; '.join(found[:3])}{more}. "
            "Fitted models follow the rules nevertheless: correct them if they are wrong.",
            stacklevel=callers_level(),
        )


def _broken(releases: Sequence[Release]) -> Iterator[str]:
    rules = dict.fromkeys(rule for release in releases for rule in release.schema.rules)
    tests = [(rule, *test) for rule in rules for test in _tests(rule, releases)]
    cells = sum(counts.size for _, counts, _, _ in tests)
    for rule, counts, deviations, law in tests:
        level = _LEVEL / cells
        if (counts > law.most(level) * deviations).any():
            named = ", ".join(map(repr, rule.variables))
            yield f"{type(rule).__name__} of {named} (about {counts.max():,.0f} records)"


def _tests(rule: Rule, releases: Sequence[Release]) -> Iterator[tuple[Vector, Vector, Law]]:
    """Yield values that are zero without noise if the rule holds, their standard deviations, and the noise law."""
    for release in releases:
        structure = release.schema.structure
        routes: dict[str, Any] = {v: structure.dependent.get(v, (v, None)) for v in rule.variables}
        roots = tuple(dict.fromkeys(root for root, _ in routes.values()))
        law = law_of(release)
        if _measured(release, rule.variables):
            table, variance = release.marginal(rule.variables)
            forbidden = table[~rule.allowed(release.schema.states)]
        elif isinstance(rule, Dependency):
            if _measured(release, (rule.finer,)) and _measured(release, (rule.coarser,)):
                fine, coarse = release.marginal((rule.finer,)), release.marginal((rule.coarser,))
                codes, states = rule.codes(release.schema.states), coarse[0].size
                differences = np.abs(coarse[0] - np.bincount(codes, fine[0], states))
                yield differences, np.sqrt(coarse[1] + fine[1] * np.bincount(codes, minlength=states)), law
            continue
        elif _measured(release, roots):
            table, variance = release.marginal(roots)
            places: dict[str, Any] = dict(zip(roots, np.indices(table.shape, sparse=True), strict=True))
            cells = tuple(places[root] if codes is None else codes[places[root]] for root, codes in routes.values())
            forbidden = table[np.broadcast_to(~rule.allowed(release.schema.states)[cells], table.shape)]
        else:
            continue
        if forbidden.size:
            sizes = np.array([*np.ones(forbidden.size), forbidden.size])
            yield np.array([*forbidden, forbidden.sum()]), np.sqrt(variance * sizes), law


def _measured(release: Release, variables: Clique) -> bool:
    return first_containing([release], variables) is not None
