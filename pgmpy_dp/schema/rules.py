"""Rules that hold in every record: combinations of states that cannot occur, and variables that follow from others."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cached_property
from itertools import pairwise
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._names import suggestion
from pgmpy_dp.errors import MIXTURE, SchemaError
from pgmpy_dp.privacy.checks import settle
from pgmpy_dp.privacy.guarantee import DECLARED, Guarantee
from pgmpy_dp.schema.states import State, checked_name, checked_state, checked_states, is_listable, listed, typed

if TYPE_CHECKING:
    from pgmpy_dp.schema.bins import Bins
    from pgmpy_dp.schema.schema import Schema

# Largest number of cells of a rule, which is stored as a table over its variables.
_MAX_CELLS = 20_000_000

States = Mapping[str, tuple[State, ...]]

# Smallest number; largest number or upper end; and whether the latter is included. Decimals add up exactly.
Range = tuple[Decimal, Decimal, bool]


def _at_most(first: Range, second: Range) -> bool:
    """Whether some number of the first range is at most one of the second."""
    return first[0] < second[1] or (second[2] and first[0] == second[1])


_POSSIBLE: Mapping[str, Callable[[Range, Range], bool]] = {
    "<=": _at_most,
    ">=": lambda first, second: _at_most(second, first),
    "<": lambda first, second: first[0] < second[1],
    ">": lambda first, second: second[0] < first[1],
    "=": lambda first, second: _at_most(first, second) and _at_most(second, first),
}
_SIGNS = re.compile(r"<=|>=|<|>|=")
_ADDED = re.compile(r"(.+?)\s*([+-])\s*(\d+(?:\.\d+)?)", re.ASCII)


@dataclass(frozen=True)
class Comparison:
    """A comparison of two numbers, with a constant that is added to the second."""

    first: str
    sign: str
    second: str
    added: Decimal = Decimal(0)

    @classmethod
    def read(cls, text: str, names: Collection[str]) -> Self:
        """Read two names, the sign between them, and the constant added to the second."""
        for sign in _SIGNS.finditer(text):  # a name may hold a sign
            first, second = text[: sign.start()].strip(), text[sign.end() :].strip()
            added = _ADDED.fullmatch(second)
            for name, more in ((second, Decimal(0)), *([(added[1], Decimal(added[2] + added[3]))] if added else [])):
                if {first, name} <= {*names} and first != name:
                    return cls(first, sign[0], name, more)
        raise SchemaError(
            f"{text!r} is not a comparison of two variables: write one such as vehicle_year <= accident_year + 1, "
            "with names that the schema declares."
        )

    def __str__(self) -> str:
        more = f" {'-' if self.added < 0 else '+'} {abs(self.added):f}" if self.added else ""
        return f"{self.first} {self.sign} {self.second}{more}"

    def combinations(self, schema: Schema) -> list[tuple[State, State]]:
        """List the pairs of states that contain numbers for which the comparison is true."""
        more, possible = self.added, _POSSIBLE[self.sign]
        own, others = (_ranges(schema, name) for name in (self.first, self.second))
        moved = {state: (lower + more, upper + more, closed) for state, (lower, upper, closed) in others.items()}
        return [(a, b) for a, left in own.items() for b, right in moved.items() if possible(left, right)]


def _ranges(schema: Schema, variable: str) -> dict[State, Range]:
    """Return the range of each state's numbers."""
    states, everything = schema.states[variable], (Decimal("-inf"), Decimal("inf"), True)
    bins = schema.bins.get(variable)
    if bins is not None:
        return dict.fromkeys(states, everything) | dict(zip(bins.labels, _of_bins(bins), strict=True))
    stand_ins = [typed(role[variable]) for role in (schema.missing, schema.other) if variable in role]
    numbers = {state: (*2 * (Decimal(str(state)),), True) for state in states if type(state) in (int, float)}
    if any(state not in numbers and typed(state) not in stand_ins for state in states) or not numbers:
        raise SchemaError(f"Variable {variable!r} has states that are not numbers: a comparison needs bins or numbers.")
    return {state: everything if typed(state) in stand_ins else numbers[state] for state in states}


def _of_bins(bins: Bins) -> list[Range]:
    edges = [Decimal(str(edge)) for edge in bins.edges]
    whole = all(edge.is_integer() for edge in bins.edges if math.isfinite(edge))
    decimals = 0 if bins.decimals is None and whole else bins.decimals
    if decimals is None:
        ranges = [(lower, upper, False) for lower, upper in pairwise(edges)]
        return [*ranges[:-1], (*ranges[-1][:2], True)]
    unit = Decimal(1).scaleb(-decimals)

    def rounded(edge: Decimal, rounding: str) -> Decimal:
        return (edge / unit).to_integral_value(rounding) * unit if edge.is_finite() else edge

    lower = [rounded(edge, ROUND_CEILING) for edge in edges]
    upper = [*(after - unit for after in lower[1:-1]), rounded(edges[-1], ROUND_FLOOR)]
    return [(low, high, True) for low, high in zip(lower, upper, strict=False)]


@dataclass(frozen=True, init=False)
class Forbidden:
    """Forbid a combination of states.

    Parameters
    ----------
    combination : mapping of variable to state or list of states
        No record has one of its listed states in every variable.

    Examples
    --------
    >>> Forbidden({"age": ["0_to_15"], "marital": ["married", "divorced"]}).variables
    ('age', 'marital')
    """

    combination: tuple[tuple[str, tuple[State, ...]], ...]

    def __init__(self, combination: Mapping[str, Any]) -> None:
        if not isinstance(combination, Mapping) or not combination:
            raise SchemaError("Forbidden needs a dict of variable -> states, such as {'age': ['0_to_15']}.")
        results = []
        for name, states in combination.items():
            owner = f"Forbidden: variable {name!r}"
            several = states if is_listable(states) else [states]
            results.append((checked_name(name), checked_states(owner, several, "states")))
        settle(self, combination=tuple(results))

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.combination)

    def checked(self, states: States, stand_ins: tuple[Mapping[str, State], ...]) -> Forbidden:
        """Raise unless the schema declares the variables and states."""
        for name, forbidden in self.combination:
            _known("Forbidden", name, forbidden, states)
        return self

    def allowed(self, states: States) -> NDArray[np.bool_]:
        """Return which combinations of the variables' states may occur, with one axis per variable."""
        forbidden = np.ones(_cells(self.variables, states), dtype=bool)
        for axis, (name, listed_states) in enumerate(self.combination):
            among = {typed(state) for state in listed_states}
            own = np.array([typed(state) in among for state in states[name]])
            forbidden &= own.reshape([-1 if position == axis else 1 for position in range(forbidden.ndim)])
        return ~forbidden

    def to_dict(self) -> dict[str, Any]:
        """Describe the rule as in schema files."""
        return {"forbidden": [{"name": name, "states": list(states)} for name, states in self.combination]}


@dataclass(frozen=True, init=False)
class Allowed:
    """Allow only the listed combinations of some variables.

    Parameters
    ----------
    variables : iterable of str
    combinations : iterable of tuples of states
        Tuples of states in the order of `variables`.
    comparison : str, optional
        A comparison that numbers drawn within the states satisfy; see `comparing`.

    Examples
    --------
    >>> Allowed(("sex", "pregnant"), [("f", "yes"), ("f", "no"), ("m", "no")]).variables
    ('sex', 'pregnant')
    """

    variables: tuple[str, ...]
    combinations: tuple[tuple[State, ...], ...]
    comparison: Comparison | None

    def __init__(
        self, variables: Iterable[str], combinations: Iterable[Iterable[State]], comparison: str | None = None
    ) -> None:
        names = tuple(checked_name(name) for name in listed(variables, "Allowed: variables"))
        if not names or len(set(names)) < len(names):
            raise SchemaError("Allowed: name at least one variable, and each once.")
        results = []
        for combination in listed(combinations, "Allowed: combinations"):
            states = tuple(listed(combination, "Allowed: a combination", "a tuple of states"))
            if len(states) != len(names):
                raise SchemaError(f"Allowed: a combination of {', '.join(map(repr, names))} has {len(names)} states.")
            results.append(
                tuple(checked_state(f"Allowed: variable {v!r}", s) for v, s in zip(names, states, strict=True))
            )
        compared = None if comparison is None else Comparison.read(comparison, names)
        settle(self, variables=names, combinations=tuple(results), comparison=compared)

    @classmethod
    def comparing(cls, schema: Any, comparison: str) -> Allowed:
        """Allow the states of two numbers for which a comparison can hold.

        Parameters
        ----------
        schema : Schema
            Declares bins or numbers as the states of both variables. Their states for missing and other values go with
            every state.
        comparison : str
            Two names with ``<=``, ``<``, ``>=``, ``>`` or ``=`` between them, and a number added to the second or
            subtracted from it, such as ``"vehicle_year <= accident_year + 1"``.

        Returns
        -------
        Allowed
            Two bins are allowed if they hold numbers for which the comparison is true; numbers are then drawn within
            them so that it is. Bins hold numbers with their `decimals` alone, and whole ones if none are declared and
            all edges are whole. To dates, days are added.

        Raises
        ------
        SchemaError
            If the text is not a comparison of two numbers of the schema.

        Examples
        --------
        >>> from pgmpy_dp.schema import Bins, Schema
        >>> schema = Schema({"built": Bins([1990, 2000, 2010]), "crash": Bins([1990, 2000, 2010])})
        >>> Allowed.comparing(schema, "built <= crash").combinations[2:]
        (('2000_to_2010', '2000_to_2010'),)
        """
        read = Comparison.read(comparison, schema.states)
        return cls((read.first, read.second), read.combinations(schema), str(read))

    def checked(self, states: States, stand_ins: tuple[Mapping[str, State], ...]) -> Allowed:
        """Raise unless the schema declares the variables and states."""
        for name, column in zip(self.variables, zip(*self.combinations, strict=True), strict=False):
            _known("Allowed", name, column, states)
        if not self.combinations:
            raise SchemaError(f"Allowed: no combination of {', '.join(map(repr, self.variables))} is listed.")
        return self

    def allowed(self, states: States) -> NDArray[np.bool_]:
        """Return which combinations of the variables' states may occur, with one axis per variable."""
        result = np.zeros(_cells(self.variables, states), dtype=bool)
        positions = [{typed(state): position for position, state in enumerate(states[name])} for name in self.variables]
        for combination in self.combinations:
            result[tuple(position[typed(state)] for position, state in zip(positions, combination, strict=True))] = True
        return result

    def to_dict(self) -> dict[str, Any]:
        """Describe the rule as in schema files."""
        allowed = {"names": list(self.variables), "combinations": [list(c) for c in self.combinations]}
        return {"allowed": allowed | ({"comparison": str(self.comparison)} if self.comparison else {})}


@dataclass(frozen=True, init=False)
class Dependency:
    """Declare that the state of one variable determines that of another, as a place determines its region.

    Parameters
    ----------
    finer, coarser : str
    states : mapping of state to state
        The state of the coarser variable for every state of the finer one. States that stand for missing or other
        values need not be listed if both variables have such a state: they are mapped to each other.

    Examples
    --------
    >>> Dependency("place", "region", {"Ulm": "south", "Kiel": "north", "Bonn": "west"}).variables
    ('place', 'region')
    """

    finer: str
    coarser: str
    states: tuple[tuple[State, State], ...]

    def __init__(self, finer: str, coarser: str, states: Mapping[State, State]) -> None:
        names = checked_name(finer), checked_name(coarser)
        owner = f"{type(self).__name__} of {coarser!r} on {finer!r}"
        if names[0] == names[1]:
            raise SchemaError(f"{owner}: name two variables.")
        if not isinstance(states, Mapping):
            raise SchemaError(f"{owner}: states needs a dict of state -> state, got {type(states).__name__}.")
        results = tuple((checked_state(owner, fine), checked_state(owner, coarse)) for fine, coarse in states.items())
        settle(self, finer=names[0], coarser=names[1], states=results)

    @property
    def variables(self) -> tuple[str, ...]:
        return self.finer, self.coarser

    def checked(self, states: States, stand_ins: tuple[Mapping[str, State], ...]) -> Dependency:
        """Raise unless the schema declares the variables and states; map states for missing and other values."""
        owner = f"{type(self).__name__} of {self.coarser!r} on {self.finer!r}"
        for position, name in enumerate(self.variables):
            _known(owner, name, [pair[position] for pair in self.states], states)
        known = {typed(fine): coarse for fine, coarse in self.states}
        for role in stand_ins:
            if self.finer in role and self.coarser in role:
                known.setdefault(typed(role[self.finer]), role[self.coarser])
        lacking = [state for state in states[self.finer] if typed(state) not in known]
        if lacking:
            more = f" and {len(lacking) - 3} more" if len(lacking) > 3 else ""
            raise SchemaError(
                f"{owner}: no state of {self.coarser!r} is given for {', '.join(map(repr, lacking[:3]))}{more}."
            )
        mapping: Any = {state: known[typed(state)] for state in states[self.finer]}  # as the constructor takes it
        return replace(self, states=mapping)

    def codes(self, states: States) -> NDArray[np.intp]:
        """Return the index of the coarser variable's state for every state of the finer one."""
        position = {typed(state): number for number, state in enumerate(states[self.coarser])}
        return np.array([position[typed(coarse)] for _, coarse in self.states], dtype=np.intp)

    def allowed(self, states: States, given: Mapping[str, int] = MappingProxyType({})) -> NDArray[np.bool_]:
        """Return which pairs of the two variables' states may occur; axes of given states have length 1."""
        fine, coarse = self.codes(states), np.arange(len(states[self.coarser]))
        fine, coarse = (
            positions if name not in given else positions[[given[name]]]
            for name, positions in zip(self.variables, (fine, coarse), strict=True)
        )
        if fine.size * coarse.size > _MAX_CELLS:
            raise SchemaError(
                f"{self.coarser!r} follows from {self.finer!r}, and their joint table has more than {_MAX_CELLS:,} "
                f"cells. Networks need that table if an edge joins the two: {MIXTURE}."
            )
        result: NDArray[np.bool_] = fine[:, None] == coarse
        return result

    def to_dict(self) -> dict[str, Any]:
        """Describe the rule as in schema files."""
        pairs = [list(pair) for pair in self.states]
        return {"dependency": {"finer": self.finer, "coarser": self.coarser, "states": pairs}}


@dataclass(frozen=True, init=False)
class Hierarchy(Dependency):
    """Group the states of a variable by those of a coarser one, which is measured in its place.

    The coarser variable is not read from the records but computed from the finer one. Pairs with other variables are
    measured for the coarser variable only; the finer one is measured once, alone. Given the coarser variable, the finer
    one is assumed independent of all other variables, with shares from its own noisy table. Answers and synthetic
    records contain both.

    Parameters
    ----------
    finer, coarser : str
    states : mapping of state to state
        The state of the coarser variable for every state of the finer one, as for :class:`Dependency`.
    column : bool
        Whether files of records, and so synthetic ones, have a column for the coarser variable. Mixtures draw and
        predict it only then; they answer questions about it either way.
    found : Guarantee, optional
        What finding the groups in records cost, as by `merge_rare_states`. By default they are declared.

    Examples
    --------
    >>> Hierarchy("diagnosis", "chapter", {"J10": "lungs", "J45": "lungs", "I21": "heart"}).variables
    ('diagnosis', 'chapter')
    """

    column: bool
    found: Guarantee = field(default=DECLARED, repr=False, compare=False)

    def __init__(
        self,
        finer: str,
        coarser: str,
        states: Mapping[State, State],
        column: bool = True,
        found: Guarantee = DECLARED,
    ) -> None:
        super().__init__(finer, coarser, states)
        if not isinstance(column, bool):
            raise SchemaError(f"Hierarchy of {coarser!r} on {finer!r}: column is True or False, got {column!r}.")
        settle(self, column=column, found=DECLARED.after(found))

    def to_dict(self) -> dict[str, Any]:
        """Describe the rule as in schema files."""
        groups: dict[tuple[type, State], list[State]] = {}
        for fine, coarse in self.states:
            groups.setdefault(typed(coarse), []).append(fine)
        listed_groups = [{"state": coarse, "states": fine} for (_, coarse), fine in groups.items()]
        entry = {"finer": self.finer, "coarser": self.coarser, "groups": listed_groups}
        more = ({} if self.column else {"column": False}) | (
            {"found": self.found.to_dict()} if self.found.every else {}
        )
        return {"hierarchy": entry | more}


Rule = Forbidden | Allowed | Dependency


@dataclass(frozen=True, eq=False)
class Structure:
    """What the rules of a schema imply: which variables follow from others, and which combinations cannot occur."""

    # For each variable that follows from another: its root, and the index of its state for every state of the root.
    dependent: Mapping[str, tuple[str, NDArray[np.intp]]]
    zeros: tuple[tuple[tuple[str, ...], NDArray[np.bool_]], ...]
    refined: Mapping[str, tuple[str, NDArray[np.intp]]]
    hidden: frozenset[str]

    @cached_property
    def derived(self) -> dict[str, tuple[str, NDArray[np.intp]]]:
        """Map each hierarchy's coarser variable to (finer variable, coarser state's index per finer state)."""
        return {coarser: (finer, codes) for finer, (coarser, codes) in self.refined.items()}


def structure_of(rules: Iterable[Rule], states: States) -> Structure:
    """Trace dependent variables to their roots, and make tables of all other rules."""
    parents: dict[str, Dependency] = {}
    zeros: list[tuple[tuple[str, ...], NDArray[np.bool_]]] = []
    left: list[Dependency] = []
    refined = {}
    for rule in rules:
        if isinstance(rule, Hierarchy):
            refined[rule.finer] = rule.coarser, rule.codes(states)
            present = np.isin(np.arange(len(states[rule.coarser])), refined[rule.finer][1])
            if not present.all():  # a coarser state without finer ones cannot occur
                zeros.append(((rule.coarser,), present))
        elif not isinstance(rule, Dependency):
            zeros.append((rule.variables, rule.allowed(states)))
        else:
            root = rule.finer
            while root in parents and root != rule.coarser:
                root = parents[root].finer
            if rule.coarser in (root, *parents):  # a second dependency, or one that closes a cycle
                left.append(rule)
            else:
                parents[rule.coarser] = rule
    dependent = {}
    for variable in states:
        codes, path = np.arange(len(states[variable])), variable
        while path in parents:
            codes = codes[parents[path].codes(states)]
            path = parents[path].finer
        if path != variable:
            dependent[variable] = path, codes
    for rule in left:
        routes = [dependent.get(v, (v, np.arange(len(states[v])))) for v in rule.variables]
        (fine_root, fine), (coarse_root, coarse) = routes
        if fine_root == coarse_root:
            zeros.append(((fine_root,), rule.codes(states)[fine] == coarse))
        else:
            zeros.append((rule.variables, rule.allowed(states)))
    hidden = frozenset(rule.coarser for rule in rules if isinstance(rule, Hierarchy) and not rule.column)
    return Structure(MappingProxyType(dependent), tuple(zeros), MappingProxyType(refined), hidden)


def possible_states(
    rules: Iterable[Rule], states: States, asked: Iterable[str], given: Mapping[str, State]
) -> NDArray[np.bool_]:
    """Return which joint states of some variables may occur, given states of others, as an array with one axis each.

    Only rules that are about these variables alone are considered.
    """
    names, positions = tuple(asked), {name: states[name].index(state) for name, state in given.items()}
    result = np.ones([len(states[name]) for name in names], dtype=bool)
    for rule in rules:
        if set(rule.variables) <= {*names, *given}:
            own = [name for name in rule.variables if name not in given]
            if isinstance(rule, Dependency):
                allowed = rule.allowed(states, positions).reshape([len(states[name]) for name in own])
            else:
                allowed = rule.allowed(states)[tuple(positions.get(v, slice(None)) for v in rule.variables)]
            order = sorted(range(len(own)), key=lambda axis: names.index(own[axis]))
            result &= np.transpose(allowed, order).reshape([len(states[v]) if v in own else 1 for v in names])
    return result


def checked_rules(rules: Any, states: States, stand_ins: tuple[Mapping[str, State], ...]) -> tuple[Rule, ...]:
    """Check rules against the variables and states of a schema, and drop repeated ones."""
    results: dict[Rule, None] = {}
    for rule in listed(rules, "rules", "a list of Forbidden, Allowed, Dependency or Hierarchy"):
        if not isinstance(rule, Rule):
            raise SchemaError(f"A rule is a Forbidden, Allowed, Dependency or Hierarchy, got {type(rule).__name__}.")
        results[rule.checked(states, stand_ins)] = None
    for hierarchy in (rule for rule in results if isinstance(rule, Hierarchy)):
        others = [rule for rule in results if rule != hierarchy]
        if any(hierarchy.finer in rule.variables for rule in others):
            raise SchemaError(
                f"Variable {hierarchy.finer!r} is assumed independent of all else given {hierarchy.coarser!r}, "
                f"so no other rule about it can hold: state the rule about {hierarchy.coarser!r}."
            )
        if any(hierarchy.coarser == rule.coarser for rule in others if isinstance(rule, Hierarchy)):
            raise SchemaError(
                f"Variable {hierarchy.coarser!r} is the coarser variable of two hierarchies: declare another for one."
            )
    return tuple(results)


def rule_from_dict(stored: Any) -> Rule:
    """Invert `to_dict` of any rule."""
    try:
        ((kind, content),) = stored.items()
        if kind == "forbidden":
            return Forbidden({part["name"]: part["states"] for part in content})
        if kind == "allowed":
            return Allowed(content["names"], content["combinations"], content.get("comparison"))
        if kind == "dependency":
            pairs = [(fine, coarse) for fine, coarse in content["states"]]
            return Dependency(content["finer"], content["coarser"], dict(pairs))
        if kind == "hierarchy":
            grouped = {fine: group["state"] for group in content["groups"] for fine in group["states"]}
            result = Guarantee.from_dict(content["found"]) if "found" in content else DECLARED
            return Hierarchy(content["finer"], content["coarser"], grouped, content.get("column", True), result)
    except SchemaError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError):
        pass
    raise SchemaError(
        "Table Schema: a rule is one of 'forbidden', 'allowed', 'dependency' and 'hierarchy', as in Schema.save."
    )


def _known(owner: str, name: str, listed_states: Iterable[State], states: States) -> None:
    if name not in states:
        raise SchemaError(f"{owner}: the schema declares no states of variable {name!r}.{suggestion(name, states)}")
    known = set(map(typed, states[name]))
    for state in listed_states:
        if typed(state) not in known:
            raise SchemaError(f"{owner}: variable {name!r} has no state {state!r}.{suggestion(state, states[name])}")


def _cells(variables: Iterable[str], states: States) -> tuple[int, ...]:
    shape = tuple(len(states[variable]) for variable in variables)
    if math.prod(shape) > _MAX_CELLS:
        raise SchemaError(
            f"A rule over {', '.join(map(repr, variables))} has more than {_MAX_CELLS:,} combinations: state it for "
            "coarser variables, or as a Dependency."
        )
    return shape
