"""Rules say what always holds in a record: combinations of states that cannot be, states that follow from others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._names import suggestion
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema.states import State, checked_name, checked_state, checked_states, is_listable, listed, typed

# A rule over a few variables is held as a table of their combinations.
_MOST_CELLS = 20_000_000

States = Mapping[str, tuple[State, ...]]


@dataclass(frozen=True, init=False)
class Forbidden:
    """No record has all of these states at once.

    Parameters
    ----------
    combination : mapping of variable to state or list of states
        Every record differs from the listed states in one of the variables at least.

    Examples
    --------
    >>> Forbidden({"age": ["0_to_15"], "marital": ["married", "divorced"]}).variables
    ('age', 'marital')
    """

    combination: tuple[tuple[str, tuple[State, ...]], ...]

    def __init__(self, combination: Mapping[str, Any]) -> None:
        if not isinstance(combination, Mapping) or not combination:
            raise SchemaError("Forbidden needs a dict of variable -> states, such as {'age': ['0_to_15']}.")
        found = []
        for name, states in combination.items():
            owner = f"Forbidden: variable {name!r}"
            several = states if is_listable(states) else [states]
            found.append((checked_name(name), checked_states(owner, several, "states")))
        object.__setattr__(self, "combination", tuple(found))

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.combination)

    def checked(self, states: States, stand_ins: tuple[Mapping[str, State], ...]) -> Forbidden:
        """Refuse variables and states that a schema does not have."""
        for name, forbidden in self.combination:
            _known("Forbidden", name, forbidden, states)
        return self

    def allowed(self, states: States) -> NDArray[np.bool_]:
        """Say of every combination of the variables' states whether it may occur, an axis a variable."""
        forbidden = np.ones(_cells(self.variables, states), dtype=bool)
        for axis, (name, listed_states) in enumerate(self.combination):
            among = {typed(state) for state in listed_states}
            own = np.array([typed(state) in among for state in states[name]])
            forbidden &= own.reshape([-1 if place == axis else 1 for place in range(forbidden.ndim)])
        return ~forbidden

    def to_dict(self) -> dict[str, Any]:
        """Describe the rule as schema files hold it."""
        return {"forbidden": [{"name": name, "states": list(states)} for name, states in self.combination]}


@dataclass(frozen=True, init=False)
class Allowed:
    """Every record has one of the listed combinations in some variables.

    Parameters
    ----------
    variables : iterable of str
    combinations : iterable of tuples of states
        States in the order of the variables.

    Examples
    --------
    >>> Allowed(("sex", "pregnant"), [("f", "yes"), ("f", "no"), ("m", "no")]).variables
    ('sex', 'pregnant')
    """

    variables: tuple[str, ...]
    combinations: tuple[tuple[State, ...], ...]

    def __init__(self, variables: Iterable[str], combinations: Iterable[Iterable[State]]) -> None:
        names = tuple(checked_name(name) for name in listed(variables, "Allowed: variables"))
        if not names or len(set(names)) < len(names):
            raise SchemaError("Allowed: name at least one variable, and each once.")
        found = []
        for combination in listed(combinations, "Allowed: combinations"):
            states = tuple(listed(combination, "Allowed: a combination", "a tuple of states"))
            if len(states) != len(names):
                raise SchemaError(f"Allowed: a combination of {', '.join(map(repr, names))} has {len(names)} states.")
            found.append(
                tuple(checked_state(f"Allowed: variable {v!r}", s) for v, s in zip(names, states, strict=True))
            )
        object.__setattr__(self, "variables", names)
        object.__setattr__(self, "combinations", tuple(found))

    def checked(self, states: States, stand_ins: tuple[Mapping[str, State], ...]) -> Allowed:
        """Refuse variables and states that a schema does not have."""
        for name, column in zip(self.variables, zip(*self.combinations, strict=True), strict=False):
            _known("Allowed", name, column, states)
        if not self.combinations:
            raise SchemaError(f"Allowed: no combination of {', '.join(map(repr, self.variables))} is listed.")
        return self

    def allowed(self, states: States) -> NDArray[np.bool_]:
        """Say of every combination of the variables' states whether it may occur, an axis a variable."""
        found = np.zeros(_cells(self.variables, states), dtype=bool)
        places = [{typed(state): place for place, state in enumerate(states[name])} for name in self.variables]
        for combination in self.combinations:
            found[tuple(place[typed(state)] for place, state in zip(places, combination, strict=True))] = True
        return found

    def to_dict(self) -> dict[str, Any]:
        """Describe the rule as schema files hold it."""
        return {"allowed": {"names": list(self.variables), "combinations": [list(c) for c in self.combinations]}}


@dataclass(frozen=True, init=False)
class Dependency:
    """The state of one variable says that of another: a place its region, a degree its number.

    Parameters
    ----------
    finer, coarser : str
    states : mapping of state to state
        For every state of the finer variable that of the coarser one. States that stand for missing or other values
        need not be listed where both variables have such a state: each then goes to its like.

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
        found = tuple((checked_state(owner, fine), checked_state(owner, coarse)) for fine, coarse in states.items())
        for name, value in zip(("finer", "coarser", "states"), (*names, found), strict=True):
            object.__setattr__(self, name, value)

    @property
    def variables(self) -> tuple[str, ...]:
        return self.finer, self.coarser

    def checked(self, states: States, stand_ins: tuple[Mapping[str, State], ...]) -> Dependency:
        """Refuse variables and states that a schema does not have; lead stand-ins to their like."""
        owner = f"{type(self).__name__} of {self.coarser!r} on {self.finer!r}"
        for place, name in enumerate(self.variables):
            _known(owner, name, [pair[place] for pair in self.states], states)
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
        """Return the place of the coarser variable's state for every state of the finer one."""
        place = {typed(state): number for number, state in enumerate(states[self.coarser])}
        return np.array([place[typed(coarse)] for _, coarse in self.states], dtype=np.intp)

    def allowed(self, states: States) -> NDArray[np.bool_]:
        """Say of every pair of the two variables' states whether it may occur."""
        return self.beside(states, {})

    def beside(self, states: States, given: Mapping[str, int]) -> NDArray[np.bool_]:
        """Say the same beside given states, by their places: their axes have length 1, and no larger table is made."""
        fine, coarse = self.codes(states), np.arange(len(states[self.coarser]))
        fine, coarse = (
            places if name not in given else places[[given[name]]]
            for name, places in zip(self.variables, (fine, coarse), strict=True)
        )
        if fine.size * coarse.size > _MOST_CELLS:
            raise SchemaError(
                f"{self.coarser!r} follows from {self.finer!r}, which as a table has more than {_MOST_CELLS:,} cells. "
                "Networks need that table where both are neighbours: fit PairwiseMixture, which needs none."
            )
        found: NDArray[np.bool_] = fine[:, None] == coarse
        return found

    def to_dict(self) -> dict[str, Any]:
        """Describe the rule as schema files hold it."""
        pairs = [list(pair) for pair in self.states]
        return {"dependency": {"finer": self.finer, "coarser": self.coarser, "states": pairs}}


@dataclass(frozen=True, init=False)
class Hierarchy(Dependency):
    """The states of one variable are grouped by those of a coarser one, at which all else is measured.

    The coarser variable is never read from the records: it is found from the finer one. Pairs with other variables have
    the coarser variable alone, and the finer one is measured once. Within a state of the coarser variable the finer one
    is taken to be independent of all else, by shares from its own noisy table: answers and synthetic records have both.

    Parameters
    ----------
    finer, coarser : str
    states : mapping of state to state
        For every state of the finer variable that of the coarser one, as of a :class:`Dependency`.
    column : bool
        Whether files of records hold the coarser variable as a column of their own, so that synthetic ones do too.

    Examples
    --------
    >>> Hierarchy("diagnosis", "chapter", {"J10": "lungs", "J45": "lungs", "I21": "heart"}).variables
    ('diagnosis', 'chapter')
    """

    column: bool

    def __init__(self, finer: str, coarser: str, states: Mapping[State, State], column: bool = True) -> None:
        super().__init__(finer, coarser, states)
        if not isinstance(column, bool):
            raise SchemaError(f"Hierarchy of {coarser!r} on {finer!r}: column is True or False, got {column!r}.")
        object.__setattr__(self, "column", column)

    def to_dict(self) -> dict[str, Any]:
        """Describe the rule as schema files hold it."""
        groups: dict[tuple[type, State], list[State]] = {}
        for fine, coarse in self.states:
            groups.setdefault(typed(coarse), []).append(fine)
        listed_groups = [{"state": coarse, "states": fine} for (_, coarse), fine in groups.items()]
        told = {"finer": self.finer, "coarser": self.coarser, "groups": listed_groups}
        return {"hierarchy": told if self.column else told | {"column": False}}


Rule = Forbidden | Allowed | Dependency


@dataclass(frozen=True, eq=False)
class Structure:
    """A structure is what a schema's rules come to: which variables follow from others, and what else cannot be.

    Attributes
    ----------
    dependent : mapping of variable to (variable, ndarray)
        For each variable that follows from another one its root, which follows from none, and the place of its state
        for every state of the root.
    zeros : tuple of (variables, ndarray)
        For each other rule, which combinations of the variables' states may occur.
    refined : mapping of variable to (variable, ndarray)
        For the finer variable of each hierarchy the coarser one, and the place of its state for every finer state.
    """

    dependent: Mapping[str, tuple[str, NDArray[np.intp]]]
    zeros: tuple[tuple[tuple[str, ...], NDArray[np.bool_]], ...]
    refined: Mapping[str, tuple[str, NDArray[np.intp]]]

    @property
    def derived(self) -> dict[str, tuple[str, NDArray[np.intp]]]:
        """Return for the coarser variable of each hierarchy the finer one, from which it is found."""
        return {coarser: (finer, codes) for finer, (coarser, codes) in self.refined.items()}


def structure_of(rules: Iterable[Rule], states: States) -> Structure:
    """Lead dependent variables to their roots, and make tables of all other rules."""
    parents: dict[str, Dependency] = {}
    zeros: list[tuple[tuple[str, ...], NDArray[np.bool_]]] = []
    left: list[Dependency] = []
    refined = {}
    for rule in rules:
        if isinstance(rule, Hierarchy):
            refined[rule.finer] = rule.coarser, rule.codes(states)
            present = np.isin(np.arange(len(states[rule.coarser])), refined[rule.finer][1])
            if not present.all():  # a state of no finer one cannot be
                zeros.append(((rule.coarser,), present))
        elif not isinstance(rule, Dependency):
            zeros.append((rule.variables, rule.allowed(states)))
        elif rule.coarser in parents or rule.coarser in _ancestors(rule.finer, parents):
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
    for rule in left:  # what a second dependency adds to the first, or one that closes a circle
        routes = [dependent.get(v, (v, np.arange(len(states[v])))) for v in rule.variables]
        (fine_root, fine), (coarse_root, coarse) = routes
        if fine_root == coarse_root:
            zeros.append(((fine_root,), rule.codes(states)[fine] == coarse))
        else:
            zeros.append((rule.variables, rule.allowed(states)))
    return Structure(MappingProxyType(dependent), tuple(zeros), MappingProxyType(refined))


def possible_states(
    rules: Iterable[Rule], states: States, asked: Iterable[str], given: Mapping[str, State]
) -> NDArray[np.bool_]:
    """Say of every joint state of some variables whether it may occur beside given states of others.

    Rules count that are about these variables alone.

    Returns
    -------
    ndarray of bool, an axis for each variable asked for
    """
    names, places = tuple(asked), {name: states[name].index(state) for name, state in given.items()}
    found = np.ones([len(states[name]) for name in names], dtype=bool)
    for rule in rules:
        if set(rule.variables) <= {*names, *given}:
            own = [name for name in rule.variables if name not in given]
            if isinstance(rule, Dependency):
                allowed = rule.beside(states, places).reshape([len(states[name]) for name in own])
            else:
                allowed = rule.allowed(states)[tuple(places.get(v, slice(None)) for v in rule.variables)]
            order = sorted(range(len(own)), key=lambda axis: names.index(own[axis]))
            found &= np.transpose(allowed, order).reshape([len(states[v]) if v in own else 1 for v in names])
    return found


def checked_rules(rules: Any, states: States, stand_ins: tuple[Mapping[str, State], ...]) -> tuple[Rule, ...]:
    """Check rules against the variables and states of a schema; each is kept once."""
    found: dict[Rule, None] = {}
    for rule in listed(rules, "rules", "a list of Forbidden, Allowed, Dependency or Hierarchy"):
        if not isinstance(rule, Rule):
            raise SchemaError(f"A rule is a Forbidden, Allowed, Dependency or Hierarchy, got {type(rule).__name__}.")
        found[rule.checked(states, stand_ins)] = None
    _require_hierarchies_apart(tuple(found))
    return tuple(found)


def _require_hierarchies_apart(rules: tuple[Rule, ...]) -> None:
    """Refuse what a hierarchy cannot hold: other rules about its finer variable, and two ways to its coarser one."""
    hierarchies = [rule for rule in rules if isinstance(rule, Hierarchy)]
    for hierarchy in hierarchies:
        others = [rule for rule in rules if rule != hierarchy]
        if any(hierarchy.finer in rule.variables for rule in others):
            raise SchemaError(
                f"Variable {hierarchy.finer!r} is taken to be independent of all else within {hierarchy.coarser!r}, "
                f"and no other rule about it can hold: state it about {hierarchy.coarser!r}."
            )
        if any(hierarchy.coarser == rule.coarser for rule in others if isinstance(rule, Hierarchy)):
            raise SchemaError(
                f"Variable {hierarchy.coarser!r} is the coarser one of two hierarchies: name two variables."
            )


def rule_from_dict(stored: Any) -> Rule:
    """Read what `to_dict` of a rule wrote."""
    try:
        ((kind, content),) = stored.items()
        if kind == "forbidden":
            return Forbidden({part["name"]: part["states"] for part in content})
        if kind == "allowed":
            return Allowed(content["names"], content["combinations"])
        if kind == "dependency":
            pairs = [(fine, coarse) for fine, coarse in content["states"]]
            return Dependency(content["finer"], content["coarser"], dict(pairs))
        if kind == "hierarchy":
            grouped = {fine: group["state"] for group in content["groups"] for fine in group["states"]}
            return Hierarchy(content["finer"], content["coarser"], grouped, content.get("column", True))
    except SchemaError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError):
        pass
    raise SchemaError(
        "Table Schema: a rule is one of 'forbidden', 'allowed', 'dependency' and 'hierarchy', as Schema.save writes it."
    )


def _ancestors(variable: str, parents: Mapping[str, Dependency]) -> set[str]:
    found = {variable}
    while variable in parents:
        variable = parents[variable].finer
        found.add(variable)
    return found


def _known(owner: str, name: str, listed_states: Iterable[State], states: States) -> None:
    if name not in states:
        raise SchemaError(f"{owner}: the schema declares no states of a variable {name!r}.{suggestion(name, states)}")
    known = set(map(typed, states[name]))
    for state in listed_states:
        if typed(state) not in known:
            raise SchemaError(f"{owner}: {state!r} is no state of variable {name!r}.{suggestion(state, states[name])}")


def _cells(variables: Iterable[str], states: States) -> tuple[int, ...]:
    shape = tuple(len(states[variable]) for variable in variables)
    if math.prod(shape) > _MOST_CELLS:
        raise SchemaError(
            f"A rule over {', '.join(map(repr, variables))} has more than {_MOST_CELLS:,} combinations: state it for "
            "coarser variables, or as a Dependency."
        )
    return shape
