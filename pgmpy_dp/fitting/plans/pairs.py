"""Plans of all pairs of variables as one measurement."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.special import ndtri

from pgmpy_dp.privacy.guarantee import Learned, learned
from pgmpy_dp.schema import Clique, HouseholdSchema, Schema

# Share of the privacy loss for all tables of single variables together, by whether noise drowns pairs; where it does
# not, the tables of pairs add to the knowledge of single variables.
SINGLES = {False: 0.1, True: 0.985}
# The same for residuals, whose pairs contain no information about single variables, beside tables of these that were
# measured before; then the share of the number of records, which these tables tell too.
RESIDUAL_SINGLES, _TOTAL = 0.25, 0.005
# Levels of noise (see `pair_noise`) below which a share for pairs brings mixtures closer to the records than the same
# share for single variables, and above which it does not; in between it depends on how closely the variables depend on
# each other. Chosen on nine tables of real records. With Laplace noise there is one bound, since single variables cost
# more, and so would a first measurement of pairs.
_CLEARLY, _HARDLY, _PURELY = 0.135, 0.35, 0.06
# Power of the number of variables by which a fit averages noise; and power of the number of states that is the guessed
# probability of two records having the same state.
AVERAGED, _SAME = -0.45, -0.75
UNGROUPED = 100
"""The largest number of states that are never measured in groups (`pgmpy_dp.fitting.plans.groups`)."""
# Largest mean cost of residuals, relative to tables, at which they bring mixtures closer to the records: they do for
# RAND (.46) and most networks of bnlearn (.25 to .53), hardly for fair (.66), and not for the census (.72).
_MAX_COST = 0.55
# Maximum number of pairs whose residuals are measured: sets are planned, priced and joined one by one, which for many
# more of them takes several times as long as for tables.
_MAX_PAIRS = 20_000
# Weight of a pair: its number of cells to this power, and the factor for pairs with the target.
_POWER, _TARGET = 0.25, 5.0
# Share of all triples together without a target, and the largest noise in a cell relative to the mean number of records
# per cell: with less noise triples bring mixtures closer in benchmarks, with more they do harm. Fewer than this share
# of all triples do harm too, since they contain too little information about the others for their price; with more than
# this number a fit is slow.
_TRIPLED, _CLEAR, _WORTH, _MAX = 0.3, 0.3, 0.2, 500
# Wanted shares on census records are log-normal about their mean: the standard deviation of the logarithm, and the
# cut-off in standard deviations.
_SPREAD, _CUT = 0.7, 1.7
# Share of the target's triples together, power of their numbers of cells, and maximum number of cells of the two other
# variables.
_TRIPLES, _POWER_OF_TRIPLES, _FEW = 0.45, 0.5, 200

# Advice where a release lacks pairs, in Python and for the command line.
# Share of the privacy loss for all finer histograms together. On tables of real records (the benchmark
# numbers_in_bins.py) means, quantiles and regressions are closer to the records with it, and pairs hardly worse.
_DETAILED = 0.03
PLAN_PAIRS = "measure the tables of plan_pairs(schema)"


def with_details(
    schema: Schema, cliques: Sequence[Clique], weights: Sequence[float]
) -> tuple[tuple[Clique, ...], list[float]]:
    """Add finer histograms of binned numbers in some tables, with what was learned for the schema and the cliques."""
    measured = {variable for clique in cliques for variable in clique}
    names = [name for name, detail in schema.details.items() if detail.variable in measured]
    whole = _DETAILED / (1.0 - _DETAILED) * sum(weights)
    guarantee = learned(schema, cliques)
    planned = Learned((*cliques, *((name,) for name in names)), guarantee)
    return Learned((planned, [*weights, *[whole / len(names) for _ in names]]), guarantee)


def plan_pairs(
    schema: Schema, target: str | None = None, singles: float = SINGLES[False]
) -> tuple[tuple[Clique, ...], list[float]]:
    """Plan to measure each variable, every pair of variables and the finer histograms of binned numbers.

    No network is needed.

    Variables that follow from another by a `Dependency` of the schema are paired neither with it nor with each other.
    The finer variable of a `Hierarchy` is in no pair, and its own table gets the weight of a pair of its size.

    Parameters
    ----------
    schema : Schema
    target : str, optional
        A variable to be predicted from the others: pairs with it get five times the share.
    singles : float
        Share of the tables of single variables together.

    Returns
    -------
    cliques : tuple of tuples of str
    weights : list of float
        Each table's share of the privacy loss. They were chosen for Gaussian noise, as shares of rho.

    Examples
    --------
    >>> cliques, weights = plan_pairs(Schema({"age": ["young", "old"], "smoke": ["yes", "no"], "lung": ["yes", "no"]}))
    >>> cliques[3:]
    (('age', 'smoke'), ('age', 'lung'), ('smoke', 'lung'))
    >>> [round(weight, 3) for weight in weights]
    [0.033, 0.033, 0.033, 0.3, 0.3, 0.3]
    """
    return with_details(schema, *_pairs(schema, target, singles))


def _pairs(
    schema: Schema, target: str | None = None, singles: float = SINGLES[False]
) -> tuple[tuple[Clique, ...], list[float]]:
    if not isinstance(schema, Schema):
        raise TypeError(f"Pairs are planned for a Schema, got {type(schema).__name__}: no record is needed.")
    if target is not None:
        schema.require([(target,)])
    refined = schema.structure.refined
    plain = [variable for variable in schema.variables if variable not in refined]
    cliques = [*((variable,) for variable in refined), *paired(schema)]
    sizes = [schema.cells(clique) ** _POWER * (_TARGET if target in clique else 1.0) for clique in cliques]
    singles = singles if cliques else 1.0
    weights = [singles / len(plain)] * len(plain) + _divided(1.0 - singles, sizes)
    return (*((variable,) for variable in plain), *cliques), weights


def drowned(noise: float | None, pure: bool = False) -> bool | None:
    """Return whether noise of this level drowns pairs; None if only measured pairs can show it, False without pairs."""
    if noise is None or noise < (_PURELY if pure else _CLEARLY):
        return False
    return True if pure or noise > _HARDLY else None


def pair_noise(
    schema: Schema, units: float, noise: Callable[[float], float], same: Mapping[str, float]
) -> float | None:
    """Return the mean ratio of noise to a record's own cell if most is spent on pairs; None if there are none."""
    chance = {v: same.get(v, states**_SAME) for v, states in schema.cardinalities().items()}
    cliques, weights = plan_pairs(schema)
    planned = [(clique, weight) for clique, weight in zip(cliques, weights, strict=True) if len(clique) == 2]
    if not planned:
        return None
    ratios = [noise(weight) / (units * chance[one] * chance[other]) for (one, other), weight in planned]
    return math.fsum(ratios) / len(ratios) * math.pow(len(chance), AVERAGED)


def favouring(shares: Mapping[Clique, float], wanted: Mapping[Any, float]) -> dict[Clique, float]:
    """Redistribute the shares of wanted tables: the most wanted gets the largest, and they are log-normal."""
    members = sorted((clique for clique in shares if clique in wanted), key=wanted.__getitem__)
    if not members:
        return dict(shares)
    quantiles = ndtri((np.arange(len(members)) + 0.5) / len(members))
    spread = np.exp(_SPREAD * np.clip(quantiles, -_CUT, _CUT))
    whole = sum(shares[clique] for clique in members)
    return dict(shares) | dict(zip(members, (whole * spread / spread.sum()).tolist(), strict=True))


def pair_shares(cells: Sequence[int]) -> list[float]:
    """Return the shares of `plan_pairs` for pairs with these numbers of cells, without finer histograms."""
    return _divided(1.0 - SINGLES[False], [count**_POWER for count in cells])


def clear_triples(schema: Schema, records: float, deviation: float) -> dict[Clique, float]:
    """Choose the smallest triples whose noise would be small compared with the counts; none if they are few of all."""
    plain = [variable for variable in schema.variables if variable not in schema.structure.refined]
    if math.comb(len(plain), 3) > _MAX / _WORTH:
        return {}
    pairs = set(paired(schema))
    triples = [
        triple for triple in itertools.combinations(plain, 3) if pairs.issuperset(itertools.combinations(triple, 2))
    ]
    triples.sort(key=schema.cells)
    cells = np.array([schema.cells(triple) for triple in triples], dtype=np.float64)
    sizes = cells**_POWER_OF_TRIPLES
    noise = deviation * np.sqrt(np.cumsum(sizes) / (_TRIPLED * sizes)) * cells  # of each, if it is the largest measured
    clear = np.flatnonzero(noise[:_MAX] <= _CLEAR * records)
    chosen = int(clear[-1]) + 1 if clear.size else 0
    if not chosen or chosen < _WORTH * len(triples):
        return {}
    return dict(zip(triples, _divided(_TRIPLED, sizes[:chosen].tolist()), strict=False))


def plan_triples(
    schema: Schema, singles: float, triples: Mapping[Clique, float]
) -> tuple[tuple[Clique, ...], list[float]]:
    """Plan to measure all pairs as by `plan_pairs`, and triples with these shares of the privacy loss beside them."""
    return with_details(schema, *_beside(*_pairs(schema, None, singles), triples))


def _beside(
    cliques: Sequence[Clique], weights: Sequence[float], triples: Mapping[Clique, float]
) -> tuple[tuple[Clique, ...], list[float]]:
    rest = 1.0 - sum(triples.values())
    return (*cliques, *triples), [*(rest * weight for weight in weights), *triples.values()]


def plan_residuals(
    schema: Schema,
    singles: float = RESIDUAL_SINGLES,
    neighbours: str = "add_remove",
    triples: Mapping[Clique, float] = MappingProxyType({}),
) -> dict[Clique, float]:
    """Plan relative noise scales of the residuals of every pair, some triples, and their variables' once more."""
    varied = [variable for variable in schema.variables if schema.cardinality(variable) > 1]
    cliques: list[Clique] = []
    shares: list[float] = []
    for whole, own in (
        (singles, [(variable,) for variable in varied]),
        (1.0 - singles, list(itertools.combinations(varied, 2))),
    ):
        cliques += own
        shares += _divided(whole, [schema.cells(clique) ** _POWER * residual_cost(schema, clique) for clique in own])
    planned = zip(*with_details(schema, *_beside(cliques, shares, triples)), strict=True)
    scales = {clique: (share / residual_cost(schema, clique)) ** -0.5 for clique, share in planned}
    # The number of records is public where a record is replaced.
    return {(): _TOTAL**-0.5} | scales if neighbours == "add_remove" else scales


def residual_cost(schema: Schema, clique: Clique) -> float:
    """Return the cost of residuals, as a share of the cost of the table with the same noise."""
    return math.prod(1.0 - 1.0 / schema.cardinality(variable) for variable in clique)


def residuals_pay(schema: Schema) -> bool:
    """Whether a mixture is closer, in little more time, if residuals are measured in place of tables."""
    varied = [variable for variable in schema.variables if schema.cardinality(variable) > 1]
    if math.comb(len(varied), 2) > _MAX_PAIRS:
        return False
    costs = [residual_cost(schema, pair) for pair in itertools.combinations(varied, 2)]
    few = all(states <= UNGROUPED for states in schema.cardinalities().values())
    return few and bool(costs) and sum(costs) <= _MAX_COST * len(costs)


def paired(schema: Schema) -> Iterator[Clique]:
    """Yield the pairs of `plan_pairs`, one by one: there may be very many."""
    dependent, refined = schema.structure.dependent, schema.structure.refined
    plain = [variable for variable in schema.variables if variable not in refined]
    root = {variable: dependent[variable][0] if variable in dependent else variable for variable in plain}
    return (pair for pair in itertools.combinations(plain, 2) if root[pair[0]] != root[pair[1]])


def plan_prediction(
    schema: Schema, target: str, singles: float = SINGLES[False]
) -> tuple[tuple[Clique, ...], list[float]]:
    """Plan to measure all pairs, and the target's triples with two other variables that have few states together."""
    cliques, weights = _pairs(schema, target, singles)
    pairs = set(map(frozenset, cliques))
    triples = [
        (*pair, target)
        for pair in cliques
        if len(pair) == 2
        and schema.cells(pair) <= _FEW
        and target not in pair
        and all(frozenset((variable, target)) in pairs for variable in pair)
    ]
    if not triples:
        return with_details(schema, cliques, weights)
    shares = _divided(_TRIPLES, [schema.cells(triple) ** _POWER_OF_TRIPLES for triple in triples])
    return with_details(schema, *_beside(cliques, weights, dict(zip(triples, shares, strict=True))))


def _divided(whole: float, sizes: list[float]) -> list[float]:
    """Divide a whole in proportion to sizes."""
    total = sum(sizes)
    return [whole * size / total for size in sizes]


def plan_households(schema: HouseholdSchema) -> tuple[tuple[Clique, ...], list[float]]:
    """Plan to measure households and persons: pairs within and across levels, and pairs of two persons.

    Parameters
    ----------
    schema : HouseholdSchema

    Returns
    -------
    cliques : tuple of tuples of str
        Over the variables of ``schema.measured``: all pairs, as by :func:`plan_pairs`, for a household, its size and a
        person, and then those of ``schema.together``.
    weights : list of float
        Each table's share.

    Examples
    --------
    >>> home, person = Schema({"tenure": ["owned", "rented"]}), Schema({"age": ["child", "adult"]})
    >>> cliques, weights = plan_households(HouseholdSchema(home, person, key="id", max_persons=3))
    >>> cliques[3:]
    (('tenure', 'size'), ('tenure', 'age'), ('size', 'age'), ('age', 'another age'))
    """
    if not isinstance(schema, HouseholdSchema):
        raise TypeError(f"plan_households takes a HouseholdSchema, got {type(schema).__name__}.")
    cliques, weights = _pairs(schema.joined)
    # There is a pair, since the size is paired; the others get the same weight for their number of cells.
    pair, weight = next(both for both in zip(cliques, weights, strict=True) if len(both[0]) == 2)
    each = weight / schema.joined.cells(pair) ** _POWER
    together = schema.together
    weights = [*weights, *(each * schema.measured.cells(pair) ** _POWER for pair in together)]
    guarantee = learned(schema)
    return Learned((Learned((*cliques, *together), guarantee), _divided(1.0, weights)), guarantee)
