"""Guarantees: what a release promises about the records behind it, as the set of its costs.

Why the sums hold, whatever was asked in view of earlier answers.

1. One ledger. Let answers A_1, ..., A_k be drawn from the same records, each by a mechanism of (epsilon_j, delta_j)
   that may be chosen in view of those before it. Together they are (sum epsilon_j, sum delta_j)-differentially private,
   by induction from the last to the first: if what follows each value y of A_1 is (e, d), then for neighbours P and Q
   and any event S, P(S) <= sum_y P(y) min(1, exp(e) Q(S | y)) + d <= exp(e + epsilon_1) Q(S) + d + delta_1. Epsilons of
   Gaussian noise are added as they were stated: the epsilon that the sum of rhos implies would be smaller, but at an
   order that depends on answers.
2. Whatever is computed from answers costs nothing more. So a result's guarantee is that of all answers that it was
   computed from and all that decided what to ask: a union of sets of costs. A cost has a name, so that it is counted
   once, however many paths brought it. Two costs of one name that differ are refused.
3. Several ledgers. A cost's holder is the ledger that paid it. If a unit's records may be at any holder, all costs add
   up as in 1, which is always valid. If they are declared to be at no more than `overlap` holders:

   a. Under "add_remove" two unions of records D and D' are neighbours if D' is D with all rows of one unit added or
      removed at every holder that has rows of it. At holders without rows of the unit D_j = D'_j; at each of the
      others, J, D_j and D'_j are neighbours by the holder's own relation, and these are at most `overlap`.
   b. Under "replace_one" they are neighbours if one unit's rows are replaced by another unit's, holder by holder: the
      holders J that have rows of the old unit are those that have rows of the new one. Each holder's number of units is
      public and the same in D and D'. A unit that moves from one holder to another changes two public numbers; as with
      the number of units of a single release, nothing is promised about that.
   c. Holders draw their noise independently. Given the answers of all others, those of J have the guarantee of 1 for
      the costs that J paid, whatever was asked in view of the others' answers, which is post-processing of these. An
      average over the others' answers keeps it. The sum over J is at most the sum over the `overlap` holders of the
      largest sums, of epsilon, delta and rho each by itself.
   d. A holder may have several ledgers. Those that paid for one part of a union are one site: their costs add up, and
      `overlap` counts sites.
   e. A cost whose holder is not known, as in files of earlier versions, may have been paid by any: it is added in full
      where it came before what is stated, and counts as a holder of its own where it is stated itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import chain
from typing import Any, Self

from pgmpy_dp._notebooks import table
from pgmpy_dp.privacy.checks import checked_number, decimal_above, settle
from pgmpy_dp.privacy.cost import EXACT, Approx, Cost, Loss, Protects, Pure, Zcdp

GRAPH_KEY = "pgmpy_dp:guarantee"
"""Key of the attribute of a graph, or of a node, for the guarantee of finding its edges, or its states."""

FIT_KEY = "_fit"
"""Attribute in which a model keeps its fit, whose guarantee it has."""

MECHANISMS = {
    "laplace": "discrete Laplace noise",
    "gaussian": "discrete Gaussian noise",
    "sampled_gaussian": "Gaussian noise on sums over random samples",
    "posterior_sampling": "draws from a truncated posterior",
    "exponential": "exponential mechanism",
    "permute_and_flip": "permute-and-flip",
    "partition_selection": "private partition selection",
    "several": "noise of several releases",
}
_CHANGE = {"add_remove": "added or removed{}", "replace_one": "replaced by another{}, their number being public"}


@dataclass(frozen=True)
class Guarantee:
    """What is promised about the records behind a release, a model, or anything else that was learned from them.

    Names of variables, states and tables are presumed public. An empty guarantee is that of what was declared.
    Guarantees unite by ``|``, and `after` adds what came before. Why the sums hold is argued at the top of this module.

    Parameters
    ----------
    costs : set of Cost
        What was paid for the answers themselves.
    earlier : set of Cost
        What was paid for answers that shaped these: states or bins found in records, a graph, a choice of tables.
    overlap : int or None
        The most sites that may hold records of one unit, as declared by `union`; None: all.
    sites : set of set of str
        Holders that are at one site; any other is a site of its own.

    Attributes
    ----------
    epsilon, delta : float
        The (epsilon, delta) of all costs together; epsilon is ``inf`` for exact counts and 0 if nothing was paid.
    rho : float or None
        Zero-concentrated loss of all costs together; None if one of them has none.
    neighbours, unit, max_rows, largest_weight
        What the costs protect, see :class:`~pgmpy_dp.privacy.cost.Protects`.
    mechanism : str
        That of `costs`; "several" if they differ, "none" for exact counts.
    private : bool
        False for simulated noise and exact counts.

    Raises
    ------
    ValueError
        If costs have different neighbours or units, two of one name differ, or exact counts are among several.

    Examples
    --------
    >>> states, tables = Guarantee.of(1.0, mechanism="permute_and_flip"), Guarantee.of(0.5)
    >>> (tables | tables).epsilon, tables.after(states).epsilon
    (0.5, 1.5)
    >>> print(tables)
    differentially private with epsilon = 0.5, for one record added or removed (discrete Laplace noise)
    """

    costs: frozenset[Cost] = frozenset()
    earlier: frozenset[Cost] = frozenset()
    overlap: int | None = None
    sites: frozenset[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        settle(self, sites=_merged(self.sites))
        for name in ("costs", "earlier"):
            given = frozenset(getattr(self, name))
            if not all(isinstance(cost, Cost) for cost in given):
                raise ValueError(f"Guarantee: {name} must be a set of costs.")
            settle(self, **{name: given if name == "costs" else given - self.costs})
        if self.overlap is not None and (type(self.overlap) is not int or self.overlap < 1):
            raise ValueError(f"Guarantee: overlap must be a whole number of holders, got {self.overlap!r}.")
        every = self.every
        if not all(isinstance(cost.protects, Protects) for cost in every):
            raise ValueError("Guarantee: a cost does not state what neighbours differ in.")
        named = [cost.id for cost in every if cost.id]
        if len(set(named)) < len(named):
            raise ValueError("Two different costs have one name: a file was altered, or a ledger restored.")
        if len(every) > 1 and any(cost.mechanism == EXACT for cost in (every if self.costs else self.earlier)):
            raise ValueError("Exact counts are not a release: they promise nothing, and nor do models fitted to them.")
        alike = [("neighbours", every), ("unit", every), ("max_rows", self.costs), ("largest_weight", self.costs)]
        for name, among in alike:
            if len({getattr(cost.protects, name, None) for cost in among}) > 1:
                raise ValueError(f"The releases have different {name}: no one promise holds for all of them together.")

    @classmethod
    def of(
        cls,
        epsilon: float,
        delta: float = 0.0,
        rho: float | None = None,
        neighbours: str = "add_remove",
        mechanism: str = "laplace",
        private: bool = True,
        unit: str = "record",
        versions: Mapping[str, str] | None = None,
        sampling_rate: float = 1.0,
        max_rows: int | None = 1,
        largest_weight: float | None = None,
        *,
        name: str | None = None,
    ) -> Self:
        """State a guarantee by hand, such as that of tables that were published elsewhere: one cost of its own.

        Parameters
        ----------
        epsilon, delta : float
        rho : float, optional
            Loss of zCDP, for Gaussian noise.
        neighbours, mechanism, private, unit, sampling_rate, max_rows, largest_weight
            See :class:`~pgmpy_dp.privacy.cost.Cost` and :class:`~pgmpy_dp.privacy.cost.Protects`.
        versions : mapping of str to str, optional
        name : str, optional
            Name of the cost; by default it is random, so that two statements are two costs.

        Raises
        ------
        ValueError
            If the parts contradict each other or are out of range.

        Examples
        --------
        >>> print(Guarantee.of(0.5, 1e-6, mechanism="gaussian", rho=0.005))  # doctest: +ELLIPSIS
        differentially private with epsilon = 0.5 and delta = 1e-06, for one record added or removed (discrete ...
        """
        from secrets import token_hex

        stated, slack = checked_number("epsilon", epsilon), checked_number("delta", delta)
        if mechanism not in (*MECHANISMS, EXACT):
            raise ValueError(f"Guarantee: mechanism must be one of {(*MECHANISMS, EXACT)}, got {mechanism!r}.")
        if not stated > 0 or not 0 <= slack < 1:
            raise ValueError(f"Guarantee: epsilon > 0 and 0 <= delta < 1 are needed, got {stated!r} and {slack!r}.")
        if math.isinf(stated) != (mechanism == EXACT) or (mechanism == EXACT and private):
            raise ValueError(
                "Guarantee: exact counts (mechanism 'none') have epsilon inf and private False; "
                "noisy counts have a finite epsilon."
            )
        if (rho is not None) != (mechanism == "gaussian"):
            raise ValueError(f"Guarantee: rho is positive for Gaussian noise and None otherwise, got {rho!r}.")
        if mechanism in ("gaussian", "sampled_gaussian", "partition_selection") and not slack:
            raise ValueError(f"Guarantee: {MECHANISMS[mechanism]} requires a delta greater than 0.")
        loss: Loss | None = None
        if mechanism != EXACT:
            exact = Fraction(str(stated)), Fraction(str(slack))
            loss = Zcdp(rho, *exact) if rho is not None else Approx(*exact) if slack else Pure(exact[0])
        protects = Protects(neighbours, unit, max_rows, largest_weight)
        own = {"sampling_rate": sampling_rate, "versions": tuple((versions or {}).items())}
        id_ = token_hex(16) if name is None else name
        return cls(frozenset({Cost("", mechanism, loss, protects, private, id=id_, **own)}))  # type: ignore[arg-type]

    @property
    def every(self) -> frozenset[Cost]:
        """All costs."""
        return self.costs | self.earlier

    @property
    def own(self) -> Guarantee:
        """The guarantee of the answers themselves, without what came before them."""
        return Guarantee(self.costs, overlap=self.overlap, sites=self.sites)

    def __or__(self, other: Guarantee) -> Guarantee:
        """Unite with the guarantee of other answers, about the same records unless holders are declared to differ.

        A declaration of overlap is kept if the other guarantee adds no holder to it.
        """
        if not isinstance(other, Guarantee):
            return NotImplemented
        costs, earlier = self.costs | other.costs, self.earlier | other.earlier
        return Guarantee(costs, earlier, self._overlap_with(other), self.sites | other.sites)

    def after(self, *earlier: Guarantee) -> Guarantee:
        """Add guarantees of what was learned before and shaped these answers."""
        result = self
        for one in (one for one in earlier if one.every):
            for name in ("neighbours", "unit"):
                mine, its = getattr(result, name), getattr(one, name)
                if mine != its and result.every:
                    raise ValueError(
                        f"What was learned earlier, such as states or a graph, protects {its!r}, and these records "
                        f"are protected for {mine!r}: no one promise holds for both: give the same {name}."
                    )
            sites = result.sites | one.sites
            result = Guarantee(result.costs, result.earlier | one.every, result._overlap_with(one), sites)
        return result

    def _overlap_with(self, other: Guarantee) -> int | None:
        mine, its = self._holders, other._holders
        stated = [one.overlap for one, own in ((self, mine), (other, its)) if one.overlap and own == mine | its]
        return max(stated, default=None)

    @property
    def _holders(self) -> frozenset[str]:
        return frozenset(cost.holder or cost.id for cost in self.every)

    def _total(self, amount: Callable[[Cost], Fraction]) -> Fraction:
        """Add up amounts by holder, and then the `overlap` largest sums; see step 3 at the top of this module."""
        sums: dict[str, Fraction] = {}
        everywhere, first = Fraction(0), {name: min(site) for site in self.sites for name in site}
        for cost in self.every:
            if cost.holder is None and cost not in self.costs:
                everywhere += amount(cost)
            else:
                name = first.get(cost.holder or cost.id, cost.holder or cost.id)
                sums[name] = sums.get(name, Fraction(0)) + amount(cost)
        return everywhere + sum(sorted(sums.values(), reverse=True)[: self.overlap], Fraction(0))

    @cached_property
    def epsilon(self) -> float:
        """Epsilon of all costs together."""
        if self.mechanism == EXACT:
            return math.inf
        return decimal_above(self._total(lambda cost: cost.epsilon or Fraction(0)))

    @cached_property
    def delta(self) -> float:
        """Delta of all costs together."""
        return decimal_above(self._total(lambda cost: cost.delta or Fraction(0)))

    @cached_property
    def rho(self) -> float | None:
        """Zero-concentrated loss of all costs together, if all have one."""
        if not self.costs or any(cost.rho is None for cost in self.every):
            return None
        return decimal_above(self._total(lambda cost: Fraction(str(cost.rho))))

    @property
    def protects(self) -> Protects:
        """The difference between neighbours: the relation, the unit and its limits."""
        stated = [cost.protects for cost in chain(self.costs, self.earlier) if isinstance(cost.protects, Protects)]
        return stated[0] if stated else Protects("add_remove")

    @property
    def neighbours(self) -> str:
        """The neighbour relation, "add_remove" or "replace_one"."""
        return self.protects.neighbours

    @property
    def unit(self) -> str:
        """The unit of privacy: "record", or the column that identifies a person."""
        return self.protects.unit

    @property
    def max_rows(self) -> int | None:
        """The most rows counted for one unit; None if all rows share a weight of 1."""
        return self.protects.max_rows

    @property
    def largest_weight(self) -> float | None:
        """The largest weight of a record; None if all count alike."""
        return self.protects.largest_weight

    @property
    def mechanism(self) -> str:
        """The mechanism of the answers; "several" if they differ."""
        results = {cost.mechanism for cost in self.costs or self.earlier}
        return results.pop() if len(results) == 1 else "several" if results else "declared"

    @property
    def sampling_rate(self) -> float:
        """Below 1, the tables count a Poisson sample that holds each record with this probability."""
        return min((cost.sampling_rate for cost in self.costs), default=1.0)

    @property
    def private(self) -> bool:
        """Whether all noise is private."""
        return all(cost.private for cost in self.every)

    @property
    def versions(self) -> dict[str, str]:
        """Versions of the libraries that drew the answers."""
        return dict(sorted(pair for cost in self.costs for pair in cost.versions))

    @property
    def origin(self) -> str:
        """The libraries that made the answers, and the total that their ledgers had paid by then."""
        made = ", ".join(f"{name} {version}" for name, version in self.versions.items())
        totals = {
            cost.holder: max((c.ledger_total or (0.0, 0.0)) for c in self.costs if c.holder == cost.holder)
            for cost in self.costs
        }
        paid = [f"epsilon = {e!r}" + (f" and delta = {d!r}" if d else "") for e, d in sorted(totals.values()) if e]
        ledgers = "its ledger" if len(paid) == 1 else "their ledgers"
        remarks = f" By then {ledgers} had paid {', '.join(paid)} in all." if paid else ""
        return f"Made with {made or 'unknown versions'}.{remarks}"

    @property
    def counted(self) -> str:
        """What the tables count: "records", "records of the sample", "rows" of units, or "units"."""
        if self.unit == "record":
            named = "records" if self.sampling_rate == 1 else "records of the sample"
        else:
            named = "units" if self.max_rows is None else "rows"
        return named if self.largest_weight is None else f"{named} of weight {self.largest_weight:g}"

    @property
    def weighted(self) -> bool:
        """Whether tables count fractions of units or of records."""
        return self.max_rows is None or self.largest_weight is not None

    def covers(self, other: Guarantee) -> bool:
        """Whether this guarantee implies another: it includes all its costs, or their sums if old files name no costs.

        Examples
        --------
        >>> less, more = Guarantee.of(0.5), Guarantee.of(1.0)
        >>> (less | more).covers(less), less.covers(more)
        (True, False)
        """
        same = (self.neighbours, self.unit) == (other.neighbours, other.unit) or not other.every
        at_least = all(getattr(self, name) >= getattr(other, name) for name in ("epsilon", "delta"))
        return same and at_least and self.private <= other.private and (not self._named or other.every <= self.every)

    def states(self, other: Guarantee) -> bool:
        """Whether this guarantee equals another: in all costs, or in their sums if old files name no costs."""
        return self == other if other._named else self.covers(other) and other.covers(self)

    @property
    def _named(self) -> bool:
        """Whether all costs have a holder, as in files written since costs have names."""
        return all(cost.holder is not None for cost in self.every)

    def __str__(self) -> str:
        if self.mechanism == EXACT:
            return "NOT PRIVATE: exact counts"
        if not self.every:
            return "declared, and not learned from records"
        noise = MECHANISMS.get(self.mechanism, self.mechanism)
        if self.sampling_rate < 1:
            noise += f" on a Poisson sample of rate {self.sampling_rate!r}"
        own = {cost.mechanism for cost in self.costs}
        others = sorted({cost.mechanism for cost in self.earlier} - own) if own else []
        before = [MECHANISMS.get(mechanism, mechanism) for mechanism in others]
        noise += f", and {' and '.join(before)} before" if before else ""
        if not self.private:
            return f"NOT PRIVATE: simulated {noise}, as for epsilon = {self.epsilon!r}"
        delta = f" and delta = {self.delta!r}" if self.delta else ""
        several = "one" if self.overlap == 1 else f"up to {self.overlap}"
        where = f" in {several} of the united releases" if self.overlap else ""
        bounds = [] if self.unit == "record" or self.max_rows is None else [f"at most {counted(self.max_rows, 'row')}"]
        bounds += ["all rows, of weight 1 together"] if self.max_rows is None else []
        bounds += [] if self.largest_weight is None else [f"of survey weight at most {self.largest_weight:g}"]
        unit = f"{self.unit} ({', '.join(bounds)})" if bounds else self.unit
        change = f"one {unit} {_CHANGE[self.neighbours].format(where)}"
        return f"differentially private with epsilon = {self.epsilon!r}{delta}, for {change} ({noise})"

    def sentence(self) -> str:
        """State the guarantee as a sentence.

        Examples
        --------
        >>> Guarantee.of(1.0).sentence()
        'Differentially private with epsilon = 1.0, for one record added or removed (discrete Laplace noise).'
        """
        promise = str(self)
        return f"{promise[0].upper()}{promise[1:]}."

    def _repr_html_(self) -> str:
        return table(self.sentence(), ["made with", "version"], list(self.versions.items()))

    def _summary(self) -> dict[str, Any]:
        names = ("epsilon", "delta", "rho", "neighbours", "mechanism", "private", "unit")
        results = {name: getattr(self, name) for name in names}
        return results | {"epsilon": self.epsilon if math.isfinite(self.epsilon) else "inf"}

    def to_dict(self) -> dict[str, Any]:
        """Return the costs and their sums as values of JSON; an infinite epsilon is the text "inf"."""
        parts: dict[str, Any] = self._summary() | ({} if self.overlap is None else {"overlap": self.overlap})
        parts |= {"sites": sorted(map(sorted, self.sites))} if self.sites else {}
        for name in ("costs", "earlier"):
            listed = sorted(getattr(self, name), key=lambda cost: (cost.id, cost.label))
            parts |= {name: [cost.to_dict() for cost in listed]} if listed or name == "costs" else {}
        return parts

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any], name: str = "") -> Guarantee:
        """Invert `to_dict`, and read guarantees of files of earlier versions.

        Parameters
        ----------
        parts : mapping
        name : str
            Name of the cost of a guarantee without costs, as in files of earlier versions; by default it is random.

        Raises ValueError, KeyError or TypeError if the parts are no guarantee, or state other sums than their costs.
        """
        if "costs" not in parts:
            return _of_earlier_version(parts, name)
        overlap = parts.get("overlap")
        costs, earlier = (frozenset(map(Cost.from_dict, parts.get(name, ()))) for name in _SETS[:2])
        result = cls(costs, earlier, overlap, frozenset(map(frozenset, parts.get("sites", ()))))
        known, stated = result._summary(), {n: v for n, v in parts.items() if n not in _SETS}
        if {**known, "overlap": overlap} != {"overlap": None} | stated:
            raise ValueError(f"guarantee states something else than its costs, which are {result}.")
        return result


def _merged(sites: Iterable[Iterable[str]]) -> frozenset[frozenset[str]]:
    """Unite sites that have a holder in common."""
    results: list[frozenset[str]] = []
    for site in map(frozenset, sites):
        common = [other for other in results if other & site]
        results = [other for other in results if other not in common] + [site.union(*common)]
    return frozenset(site for site in results if len(site) > 1)


DECLARED = Guarantee()
"""The guarantee of what was declared, and not learned from records."""

_SETS = ("costs", "earlier", "sites")
_IN_FILES = {"epsilon", "delta", "rho", "neighbours", "mechanism", "private", "unit", "versions"}


def learned(*values: Any) -> Guarantee:
    """Collect what was learned from records in values, as the earlier part of the guarantee of answers that depend on
    them.

    Schemas, releases, plans and chosen lists have an attribute `guarantee`. Graphs and their nodes store it among
    theirs; mappings, sequences, sets and data classes are searched.
    """
    results: dict[Guarantee, None] = {}
    for value in values:
        _search(value, results)
    return Guarantee().after(*results)


def learned_graph(graph: Any) -> Guarantee:
    """Return the guarantee of learning a graph's edges from records; empty for declared edges and other values."""
    stored = getattr(graph, "graph", None)
    return stored.get(GRAPH_KEY, Guarantee()) if isinstance(stored, Mapping) else Guarantee()


def carry_learned(source: Any, target: Any) -> None:
    """Copy the guarantee of learning edges and states from a graph to one that was made of it."""
    stored = [(source.graph, target.graph), *((source.nodes[v], target.nodes[v]) for v in source if v in target)]
    for own, its in stored:
        if GRAPH_KEY in own:
            its[GRAPH_KEY] = learned(its.get(GRAPH_KEY), own[GRAPH_KEY])


class Learned(tuple):  # type: ignore[type-arg]
    """A tuple that was chosen in view of records, such as cliques or edges, with the guarantee of the choice."""

    guarantee: Guarantee

    def __new__(cls, values: Iterable[Any], guarantee: Guarantee) -> Self:
        """Make the tuple."""
        made = super().__new__(cls, values)
        made.guarantee = guarantee
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (tuple(self), self.guarantee)


def _search(value: Any, found: dict[Guarantee, None]) -> None:
    if value is None or isinstance(value, (str, bytes, int, float, Fraction)):
        return
    if type(value) in (tuple, list):  # of cliques, there may be a million, whose names are not looked at one by one
        for each in value:
            if type(each) is not str:
                _search(each, found)
        return
    stored, attributes = getattr(value, "__dict__", {}), getattr(value, "attrs", None)
    fitted = stored.get("guarantee_") or getattr(stored.get(FIT_KEY), "guarantee", None)
    named = attributes.get(GRAPH_KEY) if isinstance(attributes, Mapping) else None
    if isinstance(fitted, Guarantee) and fitted.mechanism == EXACT:  # of a model that has no guarantee
        fitted = None
    stated = (value, getattr(value, "guarantee", None), fitted, named)
    found_here = {one: None for one in stated if isinstance(one, Guarantee)}
    found.update(found_here)
    if hasattr(value, "nodes") and isinstance(getattr(value, "graph", None), Mapping):
        data = [value.graph, *(data for _, data in value.nodes(data=True))]
        found.update({own[GRAPH_KEY]: None for own in data if GRAPH_KEY in own})
    elif found_here:
        return
    elif isinstance(value, Mapping):
        _search(list(value.keys()), found)
        _search(list(value.values()), found)
    elif isinstance(value, (list, tuple, set, frozenset)):
        for each in value:
            _search(each, found)
    elif is_dataclass(value) and not isinstance(value, type):
        for part in fields(value):
            _search(getattr(value, part.name), found)


def _of_earlier_version(parts: Mapping[str, Any], name: str) -> Guarantee:
    """Read a guarantee of format version 2 or before: totals, and `shared` parts, which other guarantees may count as
    well.

    The totals less the shared parts are the cost of the answers; if nothing is left, the last part is that cost.
    """
    if missing := _IN_FILES - parts.keys():
        raise KeyError(f"guarantee lacks {', '.join(sorted(missing))}")
    values = {**parts, "epsilon": math.inf if parts["epsilon"] == "inf" else parts["epsilon"]}
    parts_before = values.pop("shared", ())
    if not all(part["payment"] and not part.get("shared") for part in parts_before):
        raise ValueError("Guarantee: each shared part must have a payment and no shared parts.")
    before = [_of_earlier_version(part, part["payment"]) for part in parts_before]
    overlap, payment = values.pop("overlap", 0), values.pop("payment", "")
    label = "accepted among tries" if values.pop("accepted", False) else ""
    own = Guarantee.of(**values, name=payment or name or None)
    if before:
        left = {amount: _left(amount, own, before) for amount in ("epsilon", "delta", "rho")}
        if left["epsilon"]:
            left["rho"] = left["rho"] or None  # type: ignore[assignment]
            own = Guarantee.of(**{**values, **left}, name=payment or name or None)
        else:
            own = before.pop()
    costs = frozenset(replace(cost, label=label) for cost in own.costs)
    return Guarantee(costs, frozenset(chain.from_iterable(one.costs for one in before)), overlap or None)


def _left(amount: str, whole: Guarantee, before: Iterable[Guarantee]) -> float:
    """Subtract earlier costs from a total."""
    left = Fraction(str(getattr(whole, amount) or 0.0))
    left -= sum((Fraction(str(getattr(one, amount) or 0.0)) for one in before), Fraction(0))
    if left < 0:
        raise ValueError("Guarantee: epsilon and delta must be at least the sums of the shared parts.")
    return decimal_above(left)


def counted(number: int, noun: str) -> str:
    """Write a number with its noun, as in "3 rows"."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
