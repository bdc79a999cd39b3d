"""Groups of states, for variables that have too many for noisy tables with others.

How many groups follows from the numbers of states, the noise and the number of records; which states are together, from
the noisy tables of single variables, which are measured first: it is post-processing of these, and the groups state
their cost. In larger tables a group stands for its states, as the coarser variable of a Hierarchy does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.plans.pairs import AVERAGED, UNGROUPED
from pgmpy_dp.inference.mixtures.fit.noisy_tables import shrunk
from pgmpy_dp.inference.tables.table import Vector, project_to_simplex
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.privacy.guarantee import DECLARED
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique, Hierarchy, Schema, State
from pgmpy_dp.schema.variable import Variable

IN_GROUPS = " in groups"
"""How the name of a variable's groups ends."""

# Variables of more states than `UNGROUPED` are measured as they are if noise would leave at least half as many groups;
# those of more than this number are always grouped, since fits to their tables take minutes.
_SLOW = 500
# Noise in a cell of a table, relative to the mean number of records in one, at which pairs over groups were closest to
# the records (docs/benchmarks.md); it may be larger with more variables, by which a fit averages noise.
_LEVEL = 0.08
# The same for tables of families, which a network's fit averages less than a mixture does those of all pairs. Tables
# may be noisier there, since the fit reads them together: of .1, .2, .4 and .8, each is best for some network.
_LEVEL_OF_FAMILIES = 0.4
# Minimum and maximum number of groups: fewer contain little information, and more leave a fit fewer members and steps.
_MIN_GROUPS, _MAX_GROUPS = 8, 100


def numbers_of_groups(schema: Schema, noise: Callable[[float], float], units: float | None) -> dict[str, int]:
    """Choose in how many groups to measure variables of many states in pairs, by the noise of a share and the records.

    Variables that rules are about are not grouped.
    """
    states = {v: count for v, count in schema.cardinalities().items() if v not in schema.structure.refined}
    others = len(states) - 1

    def affordable(large: Collection[str], units: float) -> dict[str, float]:
        deviation = noise(1.0 / (math.comb(len(states), 2) + len(large)))
        wanted = math.log(_LEVEL * len(states) ** -AVERAGED * units / deviation)
        beside = math.fsum(math.log(count) for variable, count in states.items() if variable not in large) / others
        return dict.fromkeys(large, math.exp((wanted - beside) / (1.0 + (len(large) - 1) / others)))

    return _numbers(states, many_states(schema, states), units, affordable) if others else {}


def numbers_in_families(
    schema: Schema, families: Collection[Clique], noise: Callable[[float], float], units: float | None
) -> dict[str, int]:
    """Choose in how many groups to measure variables of many states in tables of families, as `numbers_of_groups`.

    In tables too large to be counted they are grouped whatever the noise.
    """
    states, tables = schema.cardinalities(), [clique for clique in families if len(clique) > 1]
    large = many_states(schema, [variable for clique in tables for variable in clique])
    too_large = {variable for clique in tables if schema.cells(clique) > MAX_TABLE_CELLS for variable in clique}

    def affordable(large: Collection[str], units: float) -> dict[str, float]:
        numbers: dict[str, float] = {}
        wanted = math.log(_LEVEL_OF_FAMILIES * units / noise(1.0 / (len(tables) + len(large))))
        for clique in tables:
            alike = set(large).intersection(clique)
            beside = math.fsum(math.log(states[variable]) for variable in clique if variable not in large)
            for variable in alike:
                numbers[variable] = min(numbers.get(variable, math.inf), math.exp((wanted - beside) / len(alike)))
        return numbers

    return _numbers(states, large, units, affordable, too_large)


def many_states(schema: Schema, variables: Iterable[str]) -> set[str]:
    """Return those of some variables that may be measured in groups: of many states, and without rules."""
    states = schema.cardinalities()
    ruled = {variable for rule in schema.rules for variable in rule.variables}
    large = {variable for variable in variables if states[variable] > UNGROUPED and variable not in ruled}
    for name in large:
        if name + IN_GROUPS in schema.states or name + IN_GROUPS in schema.bounds:
            raise SchemaError(f"The name {name + IN_GROUPS!r} is that of groups of {name!r}: rename the variable.")
    return large


def _numbers(
    states: Mapping[str, int],
    large: set[str],
    units: float | None,
    affordable: Callable[[Collection[str], float], Mapping[str, float]],
    always: Collection[str] = (),
) -> dict[str, int]:
    """Choose numbers of groups that noise affords; variables of which it leaves enough stay as they are."""
    while large:
        numbers = dict.fromkeys(large, math.inf) if units is None else affordable(large, units)
        kept = {v for v in large if v in always or states[v] > min(2.0 * numbers[v], _SLOW)}
        if kept == large:
            return {v: round(min(max(numbers[v], _MIN_GROUPS), _MAX_GROUPS)) for v in states if v in large}
        large = kept
    return {}


def with_groups(schema: Schema, numbers: Mapping[str, int], release: NoisyMarginals | None) -> Schema:
    """Declare at most these numbers of groups: states that noisy tables show to be frequent are alone."""
    fields, rules, ordered = list(schema.fields), list(schema.rules), set(schema.ordered)
    known = {variable.name: variable for variable in fields}
    for name, number in numbers.items():
        variable, cost = known[name], DECLARED
        shares: Vector = np.full(len(variable.states), 1.0 / len(variable.states))
        if release is not None:
            cost, (counts, variance) = release.guarantee, release.marginal((name,))
            shares, _ = shrunk(project_to_simplex(counts / release.total), variance**0.5 / release.total)
        wanted, groups = number, _groups(variable, shares, number, name in ordered)
        while groups.max() >= number and wanted > 1:  # rounding and the order of states have made more
            wanted -= 1
            groups = _groups(variable, shares, wanted, name in ordered)
        states = _names(variable, groups)
        merged = {state: states[group] for state, group in zip(variable.states, groups.tolist(), strict=True)}
        fields.append(Variable.of(name + IN_GROUPS, states, found=cost))
        rules.append(Hierarchy(name, name + IN_GROUPS, merged, column=False, found=cost))
    return Schema.of(fields, rules, schema.csv) if numbers else schema


def _groups(variable: Variable, shares: Vector, number: int, ordered: bool) -> NDArray[np.intp]:
    """Number the group of each state, in the order of their first states."""
    alone = np.isin(np.arange(shares.size), [variable.states.index(state) for state in variable.roles.values()])
    while True:  # once frequent states are set apart, others are frequent
        size = float(shares[~alone].sum()) / max(number - int(alone.sum()), 1)
        frequent = ~alone & (shares >= size)
        if not frequent.any():
            break
        alone |= frequent
    firsts, group, filled = np.arange(shares.size), -1, math.inf
    for place in np.flatnonzero(~alone).tolist():
        if filled + shares[place] / 2 > size or (ordered and alone[place - 1]):
            group, filled = place, 0.0
        firsts[place] = group
        filled += float(shares[place])
    return np.unique(firsts, return_inverse=True)[1]


def _names(variable: Variable, groups: NDArray[np.intp]) -> list[State]:
    """Name groups by their state, or by the first and the last of several, so that no two names are equal."""
    members = np.split(np.argsort(groups, kind="stable"), np.cumsum(np.bincount(groups))[:-1])
    taken: set[State] = {variable.states[own[0]] for own in members if own.size == 1}
    names = []
    for own in members:
        name = variable.states[own[0]]
        if own.size > 1:
            name = f"{name} to {variable.states[own[-1]]}"
            while name in taken:  # a state has this name, or states of two types read alike
                name = f"{name} (other)"
            taken.add(name)
        names.append(name)
    return names
