"""The public description of the records: variables, states, bins, and what stands for missing and other values.

A schema is declared, never read off the records. Everything in it is public.
"""

from __future__ import annotations

import difflib
import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pgmpy_dp._files import parse_json
from pgmpy_dp._states import (
    FIELD_TYPES,
    Bins,
    State,
    checked_name,
    checked_state,
    checked_states,
    distinct,
    listed,
    typed,
)
from pgmpy_dp.errors import SchemaError

__all__ = ["Bins", "Clique", "Schema", "State", "parse_json"]

Clique = tuple[str, ...]

PROFILE = "https://datapackage.org/profiles/2.0/tableschema.json"
BINS_PROPERTY = "pgmpy_dp:bins"
MISSING_PROPERTY = "pgmpy_dp:missing"
OTHER_PROPERTY = "pgmpy_dp:other"
STATES_PROPERTY = "pgmpy_dp:states"


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Schema:
    """Variables and their states, as published before any record is looked at.

    Parameters
    ----------
    variables : mapping of str to (iterable of states) or Bins
        The states of each variable in the order of the table axes. A state is a str, int, finite float or
        bool; numpy scalars are converted. States that compare equal across types (``0`` and ``False``) are
        refused.
    missing : mapping of str to state, optional
        For each variable whose records may lack a value, the state that stands for it. It is appended to the
        variable's states if it is not among them.
    other : mapping of str to state, optional
        For each variable whose records may hold values that are not declared (or outside the bins), the state that
        stands for all of them, silently; appended in the same way, after that for missing values. Without it such
        records are refused.

    Attributes
    ----------
    states : mapping of str to tuple
        All states of each variable, those for missing and other values included; for binned variables, the bin
        labels.
    bins : mapping of str to Bins
        The binned variables.
    missing, other : mapping of str to state
        As given.

    Raises
    ------
    SchemaError
        If the declaration is empty or ambiguous; the message names the variable.

    Examples
    --------
    >>> schema = Schema({"smoke": ["yes", "no"], "age": Bins([0, 18, 65, 120])}, missing={"age": "unknown"})
    >>> schema.states["age"]
    ('0_to_18', '18_to_65', '65_to_120', 'unknown')
    >>> schema.shape(("age", "smoke")), schema.cells(("age", "smoke"))
    ((4, 2), 8)
    >>> Schema({"smoke": [0, False]})
    Traceback (most recent call last):
        ...
    pgmpy_dp.errors.SchemaError: Variable 'smoke': states 0 and False are equal; give each once, in one type.
    """

    states: Mapping[str, tuple[State, ...]]
    bins: Mapping[str, Bins]
    missing: Mapping[str, State]
    other: Mapping[str, State]

    def __init__(
        self,
        variables: Mapping[str, Iterable[State] | Bins],
        missing: Mapping[str, State] | None = None,
        other: Mapping[str, State] | None = None,
    ) -> None:
        if not isinstance(variables, Mapping):
            raise SchemaError(
                f"Schema needs a dict of variable -> states, got {type(variables).__name__}. States are "
                "declared, not read off records: write Schema({'smoke': ['yes', 'no']}) or Schema.from_model."
            )
        if not variables:
            raise SchemaError("Schema declares no variable: write Schema({'smoke': ['yes', 'no']}).")
        names = {name: checked_name(name) for name in variables}
        states: dict[str, tuple[State, ...]] = {}
        bins: dict[str, Bins] = {}
        for name, declared in variables.items():
            variable = names[name]
            if isinstance(declared, Bins):
                bins[variable] = declared
                states[variable] = declared.labels
            else:
                states[variable] = checked_states(f"Variable {variable!r}", declared, "states")
        stand_ins: dict[str, Mapping[str, State]] = {}
        for role, given in (("missing", missing), ("other", other)):
            if given is not None and not isinstance(given, Mapping):
                raise SchemaError(f"{role} needs a dict of variable -> state, got {type(given).__name__}.")
            found: dict[str, State] = {}
            for name, state in (given or {}).items():
                _known(name, states, role)
                stand_in = checked_state(f"Variable {name!r}", state)
                if typed(stand_in) not in map(typed, states[name]):
                    states[name] = distinct(f"Variable {name!r}", (*states[name], stand_in))
                found[str(name)] = stand_in
            stand_ins[role] = MappingProxyType({v: found[v] for v in states if v in found})
        object.__setattr__(self, "states", MappingProxyType(states))
        object.__setattr__(self, "bins", MappingProxyType(bins))
        object.__setattr__(self, "missing", stand_ins["missing"])
        object.__setattr__(self, "other", stand_ins["other"])

    @property
    def variables(self) -> tuple[str, ...]:
        """Variable names in the order of declaration."""
        return tuple(self.states)

    @property
    def state_names(self) -> dict[str, list[State]]:
        """States as pgmpy takes them: a fresh dict of variable to list.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"]}).state_names
        {'smoke': ['yes', 'no']}
        """
        return {variable: list(states) for variable, states in self.states.items()}

    def cardinality(self, variable: str) -> int:
        """Number of states of a variable.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"]}).cardinality("smoke")
        2
        """
        _known(variable, self.states)
        return len(self.states[variable])

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """Shape of the clique's table, one axis a variable in clique order.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"], "lung": ["yes", "no", "unclear"]}).shape(("lung", "smoke"))
        (3, 2)
        """
        (checked,) = self.require([clique])
        return tuple(len(self.states[variable]) for variable in checked)

    def cells(self, clique: Iterable[str]) -> int:
        """Number of cells in the clique's table."""
        return math.prod(self.shape(clique))

    def require(self, cliques: Iterable[Iterable[str]]) -> tuple[Clique, ...]:
        """Check cliques against the schema.

        Parameters
        ----------
        cliques : iterable of iterables of str
            Each clique lists variables in the order of its table's axes.

        Returns
        -------
        tuple of tuples of str

        Raises
        ------
        SchemaError
            If there is no clique, or one is empty, names an unknown variable, or repeats a variable or, in
            whatever order, another clique.

        Examples
        --------
        >>> schema = Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
        >>> schema.require([["smoke", "lung"], ["lung"]])
        (('smoke', 'lung'), ('lung',))
        >>> schema.require([("smok",)])
        Traceback (most recent call last):
            ...
        pgmpy_dp.errors.SchemaError: Unknown variable 'smok': did you mean 'smoke'?
        """
        given = listed(cliques, "cliques", "a list of cliques, such as [('smoke', 'lung')]")
        if not given:
            raise SchemaError("No cliques given: name at least one, such as [('smoke', 'lung')].")
        checked: dict[frozenset[str], Clique] = {}
        for clique in given:
            if isinstance(clique, str):
                raise SchemaError(f"A clique is a tuple of variables, got the string {clique!r}: write ({clique!r},).")
            members = listed(clique, "A clique", "a tuple of variables, such as ('smoke', 'lung')")
            if not members:
                raise SchemaError("An empty clique has no table: name at least one variable.")
            for variable in members:
                _known(variable, self.states)
            key = frozenset(members)
            if len(key) < len(members):
                twice = next(v for v in members if members.count(v) > 1)
                raise SchemaError(f"Clique {tuple(members)} names variable {twice!r} more than once: name it once.")
            if key in checked:
                raise SchemaError(f"Clique {tuple(members)} repeats clique {checked[key]}: give one of them.")
            checked[key] = tuple(str(variable) for variable in members)
        return tuple(checked.values())

    def select(self, variables: Iterable[str]) -> Schema:
        """The schema of some of the variables, in the order given.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]}).select(["lung"]).variables
        ('lung',)
        """
        (chosen,) = self.require([variables])
        declared = {variable: self.bins.get(variable, self.states[variable]) for variable in chosen}
        missing, other = ({v: role[v] for v in chosen if v in role} for role in (self.missing, self.other))
        return Schema(declared, missing, other)

    @classmethod
    def from_model(cls, model: Any) -> Schema:
        """Take variables and states from a pgmpy model that already declares them.

        Parameters
        ----------
        model : pgmpy DiscreteBayesianNetwork or DiscreteMarkovNetwork
            With a CPD for every node, or factors that together cover the nodes.

        Raises
        ------
        SchemaError
            If a node has no declared states, or two factors disagree about them.

        Examples
        --------
        >>> from pgmpy.factors.discrete import TabularCPD
        >>> from pgmpy.models import DiscreteBayesianNetwork
        >>> model = DiscreteBayesianNetwork()
        >>> model.add_node("smoke")
        >>> model.add_cpds(TabularCPD("smoke", 2, [[0.5], [0.5]], state_names={"smoke": ["yes", "no"]}))
        >>> Schema.from_model(model).states["smoke"]
        ('yes', 'no')
        """
        read = getattr(model, "get_cpds", None) or getattr(model, "get_factors", None)
        if read is None or not hasattr(model, "nodes"):
            raise SchemaError(
                "from_model needs a pgmpy DiscreteBayesianNetwork or DiscreteMarkovNetwork, "
                f"got {type(model).__name__}."
            )
        declared: dict[str, list[State]] = {}
        for factor in read():
            for variable, states in (getattr(factor, "state_names", None) or {}).items():
                if declared.setdefault(variable, states) != states:
                    raise SchemaError(
                        f"Variable {variable!r} has different states in different factors of the model: "
                        "give them all the same state_names, in the same order."
                    )
        without = [node for node in model.nodes() if node not in declared]
        if without:
            raise SchemaError(
                f"Variable {without[0]!r} has no CPD or factor with state names in the model: "
                "add one, or declare the states with Schema({...})."
            )
        return cls({node: declared[node] for node in model.nodes()})

    def to_dict(self) -> dict[str, Any]:
        """The schema as a Frictionless Table Schema (version 2) that describes the table of records.

        States are ``constraints.enum``. Custom properties of a field are ours: ``pgmpy_dp:bins`` holds ``edges``
        (infinite ones as ``"-inf"`` and ``"inf"``) and ``labels``; ``pgmpy_dp:missing`` and ``pgmpy_dp:other`` are
        the states that stand for missing and for undeclared values. Where there may be the latter, the states are
        in ``pgmpy_dp:states``, and nothing constrains the values.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"]}).to_dict()["fields"]
        [{'name': 'smoke', 'type': 'string', 'constraints': {'required': True, 'enum': ['yes', 'no']}}]
        """
        return {"$schema": PROFILE, "fields": [self._field(variable) for variable in self.variables]}

    def _field(self, variable: str) -> dict[str, Any]:
        states = self.states[variable]
        field: dict[str, Any] = {"name": variable}
        constraints: dict[str, Any] = {} if variable in self.missing else {"required": True}
        if variable in self.bins:
            bins = self.bins[variable]
            low, high = bins.edges[0], bins.edges[-1]
            if variable not in self.other:
                constraints |= {"minimum": low} if math.isfinite(low) else {}
                constraints |= {"maximum": high} if math.isfinite(high) else {}
            field |= {"type": "number", "constraints": constraints}
            edges = [edge if math.isfinite(edge) else str(edge) for edge in bins.edges]
            field[BINS_PROPERTY] = {"edges": edges, "labels": list(bins.labels)}
        else:
            states = _own_states(states, [role[variable] for role in (self.missing, self.other) if variable in role])
            types = set(map(type, states))
            kind = FIELD_TYPES[types.pop()] if len(types) == 1 else "any"
            if variable in self.other:
                field |= {"type": kind, "constraints": constraints, STATES_PROPERTY: list(states)}
            else:
                field |= {"type": kind, "constraints": constraints | {"enum": list(states)}}
            if "" in states:  # by default Table Schema reads the empty text as missing
                field["missingValues"] = []
        for name, role in ((MISSING_PROPERTY, self.missing), (OTHER_PROPERTY, self.other)):
            if variable in role:
                field[name] = role[variable]
        return field

    @classmethod
    def from_dict(cls, descriptor: Mapping[str, Any]) -> Schema:
        """Read a Frictionless Table Schema.

        States come from ``pgmpy_dp:bins`` or ``pgmpy_dp:states``, else ``constraints.enum``, else
        ``categories``; a boolean field without any of them has the states False and True.

        Raises
        ------
        SchemaError
            If the descriptor is no Table Schema, or a field declares no states.
        """
        fields = descriptor.get("fields") if isinstance(descriptor, Mapping) else None
        if not isinstance(fields, list) or not all(isinstance(field, Mapping) for field in fields):
            raise SchemaError("Not a Table Schema: it needs a list of 'fields'.")
        variables: dict[str, Iterable[State] | Bins] = {}
        stand_ins: dict[str, dict[str, State]] = {MISSING_PROPERTY: {}, OTHER_PROPERTY: {}}
        for field in fields:
            name = checked_name(field.get("name"))
            if name in variables:
                raise SchemaError(f"Table Schema: field {name!r} appears twice.")
            variables[name] = _field_states(name, field, descriptor.get("missingValues", [""]))
            for role, states in stand_ins.items():
                if field.get(role) is not None:
                    states[name] = field[role]
        return cls(variables, stand_ins[MISSING_PROPERTY], stand_ins[OTHER_PROPERTY])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the schema as a Frictionless Table Schema file (JSON, UTF-8)."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        Path(path).write_text(text + "\n", encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a Frictionless Table Schema file, ours or another's.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        SchemaError
            If it is not a Table Schema, or a field declares no states.
        """
        try:
            return cls.from_dict(parse_json(Path(path).read_bytes()))
        except ValueError as error:
            raise SchemaError(f"{os.fspath(path)}: {error}") from error

    def _content(self) -> tuple[Any, ...]:
        states = tuple((variable, tuple(map(typed, values))) for variable, values in self.states.items())
        roles = (tuple((v, typed(state)) for v, state in role.items()) for role in (self.missing, self.other))
        return states, tuple(self.bins.items()), *roles

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        first = ", ".join(f"{variable} ({len(states)})" for variable, states in list(self.states.items())[:6])
        more = f", and {len(self.states) - 6} more" if len(self.states) > 6 else ""
        return f"Schema({len(self.states)} variables with their numbers of states: {first}{more})"

    def __reduce__(self) -> tuple[Any, ...]:  # read-only mappings do not pickle
        return Schema, (
            {v: self.bins.get(v, states) for v, states in self.states.items()},
            dict(self.missing),
            dict(self.other),
        )


def _own_states(states: tuple[State, ...], stand_ins: list[State]) -> tuple[State, ...]:
    """The states without appended stand-ins of another type ("unknown" among integers): no values of the column."""
    if len(set(map(type, states))) == 1:
        return states
    for end in range(len(states) - 1, max(len(states) - len(stand_ins), 1) - 1, -1):
        own = read = states[:end]
        for stand_in in stand_ins:
            read = read if typed(stand_in) in map(typed, read) else (*read, stand_in)
        if len(set(map(type, own))) == 1 and list(map(typed, read)) == list(map(typed, states)):
            return own
    return states


def _field_states(name: str, field: Mapping[str, Any], missing_values: Any) -> Iterable[State] | Bins:
    if BINS_PROPERTY in field:
        bins = field[BINS_PROPERTY]
        if not isinstance(bins, Mapping) or not isinstance(bins.get("edges"), list):
            raise SchemaError(f"Field {name!r}: {BINS_PROPERTY} needs a list of 'edges'.")
        edges = [math.inf if e == "inf" else -math.inf if e == "-inf" else e for e in bins["edges"]]
        return Bins(edges, bins.get("labels"))
    constraints = field.get("constraints", {})
    values = field.get(STATES_PROPERTY)
    if values is None and isinstance(constraints, Mapping):
        values = constraints.get("enum")
    if values is None:
        values = field.get("categories")
        if isinstance(values, list):
            values = [value.get("value") if isinstance(value, Mapping) else value for value in values]
    if values is None and field.get("type") == "boolean":
        values = [False, True]
    if not isinstance(values, list):
        raise SchemaError(
            f"Field {name!r} declares no states: list them in 'constraints': {{'enum': [...]}}, "
            f"in 'categories', or give {BINS_PROPERTY!r} for a numeric field."
        )
    states = [_field_value(name, value, field.get("type", "any")) for value in values]
    blanks = field.get("missingValues", missing_values)
    if not isinstance(blanks, list):
        raise SchemaError(f"Field {name!r}: 'missingValues' must be a list.")
    texts = {str(blank.get("value") if isinstance(blank, Mapping) else blank) for blank in blanks}
    for state in states:
        if str(state) in texts:
            raise SchemaError(
                f"Field {name!r}: {state!r} is a state and among missingValues; a value cannot be both. "
                f"Remove it from one of them, and name a stand-in for missing values in {MISSING_PROPERTY!r}."
            )
    return states


def _field_value(name: str, value: Any, kind: Any) -> Any:
    if kind == "number" and type(value) is int and abs(value) < 2**63:
        return float(value)
    if kind == "integer" and type(value) is float and value.is_integer():
        return int(value)
    expected = next((python for python, known in FIELD_TYPES.items() if known == kind), None)
    if expected is not None and type(value) is not expected:
        raise SchemaError(f"Field {name!r} has type {kind!r} but lists the value {value!r}.")
    return value


def _known(variable: Any, states: Mapping[str, Any], where: str = "") -> None:
    if isinstance(variable, str) and variable in states:
        return
    prefix = f"{where}: " if where else ""
    close: list[str] = []
    if isinstance(variable, str) and len(variable) <= 100:  # comparing long names takes quadratic time
        close = difflib.get_close_matches(variable, [name for name in states if len(name) <= 100][:2000], n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"the schema has {_some(states)}."
    raise SchemaError(f"{prefix}Unknown variable {variable!r}: {hint}")


def _some(names: Iterable[str]) -> str:
    names = list(names)
    return ", ".join(map(repr, names[:8])) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
