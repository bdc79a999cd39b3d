"""The schema: everything that is public about the records before they are read."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._files import parse_json, path_of
from pgmpy_dp._names import printable
from pgmpy_dp._notebooks import table
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import settle
from pgmpy_dp.privacy.guarantee import Guarantee, Learned, learned
from pgmpy_dp.schema.bins import Bins, checked_bounds
from pgmpy_dp.schema.csv_format import CsvFormat
from pgmpy_dp.schema.dictionary import read_dictionary
from pgmpy_dp.schema.fields import CSV_PROPERTY, PROFILE, RULES_PROPERTY, declarations, table_field
from pgmpy_dp.schema.rules import Rule, Structure, checked_rules, possible_states, structure_of
from pgmpy_dp.schema.states import State, checked_name, listed, require_known, some
from pgmpy_dp.schema.variable import IN_DETAIL, Detail, Variable, variables_of

Clique = tuple[str, ...]
_PLAIN = CsvFormat()
_ARGUMENTS = ("missing", "other", "bounds", "rules", "missing_values", "csv", "found")
Declared = TypeVar("Declared")


def _by_name(declared: Callable[[Variable], Declared | None]) -> cached_property[Mapping[str, Declared]]:
    """Make a property of schemas that maps variables to a declaration of theirs, if they have it."""
    return cached_property(
        lambda schema: MappingProxyType(
            {variable.name: own for variable in schema.fields if (own := declared(variable)) is not None}
        )
    )


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Schema:
    """Public variables and their states, declared before any record is read, or found privately.

    Parameters
    ----------
    variables : mapping of str to (iterable of states) or Bins
        The states of each variable in the order of table axes. A state is a str, int, finite float or bool; numpy
        scalars are converted. States that compare equal across types (``0`` and ``False``) are refused. An empty list
        means that no state is public yet: all values are mapped to the state in `other` until
        :meth:`~pgmpy_dp.PrivateDataset.discover_states` finds some.
    missing : mapping of str to state, optional
        For each variable whose records may lack a value, the state that stands for a missing value. It is appended to
        the variable's states if it is not among them.
    other : mapping of str to state, optional
        For each variable whose records may hold undeclared values (or values outside the bins), the state that stands
        for all of them, without a warning; appended after that for missing values. Without it such records are refused.
    bounds : mapping of str to (low, high) or float, optional
        Variables that stay numbers, for numeric methods such as linear regression: they have no states, and are not in
        `variables`. Values beyond the bounds are clipped. One positive number R stands for (-R, R).
    missing_values : iterable of str, or mapping of str to iterable of str, optional
        Texts that mark a missing value, such as ``["?", "NA"]``: for every variable with states, or for those named.
        Empty cells always do. In synthetic files the first text stands for a missing value (``""`` for an empty cell);
        without any, the state in `missing` does.
    rules : iterable of Forbidden, Allowed, Dependency or Hierarchy, optional
        What is known to hold in every record without looking at one. See the notes.
    csv : CsvFormat, optional
        Format of the CSV files of records. Synthetic ones are written in it as well.
    found : mapping of str to Guarantee, optional
        For each variable whose states were found in records, what that cost. Releases under the schema include it.
        `discover_states`, `quantile_bins` and `merge_rare_states` set it.

    Attributes
    ----------
    states : mapping of str to tuple
        All states of each variable, including those for missing and other values; for binned variables, the bin labels.
    bins : mapping of str to Bins
        The binned variables.
    missing, other : mapping of str to state
        As given.
    bounds : mapping of str to (float, float)
    missing_values : mapping of str to tuple of str
    rules : tuple of rules
        As given; dependencies list the states of the finer variable in schema order.
    csv : CsvFormat
    found : mapping of str to Guarantee
        As given, including those stored in bins.
    guarantee : Guarantee
        What all that was found in records cost, rules included; empty if everything was declared.

    Raises
    ------
    SchemaError
        If the declaration is empty or ambiguous; the message names the variable.

    Notes
    -----
    Rules constrain what is fitted, answered and drawn, not the records. A record that breaks a rule is counted like any
    other, in the cells of its own states. It is neither refused nor dropped nor reported, since each of these would
    reveal more about it than was paid for. Fitted models give such records probability 0; if a release shows, far
    beyond its noise, that there are many of them, the fit warns. A network can hold a rule only if the rule's variables
    are neighbours, and is refused otherwise; methods that iterate over records ignore rules.

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

    fields: tuple[Variable, ...]
    rules: tuple[Rule, ...]
    csv: CsvFormat

    def __init__(
        self,
        variables: Mapping[str, Iterable[State] | Bins] = MappingProxyType({}),
        missing: Mapping[str, State] | None = None,
        other: Mapping[str, State] | None = None,
        bounds: Mapping[str, Any] | None = None,
        rules: Iterable[Rule] = (),
        missing_values: Mapping[str, Iterable[str]] | Iterable[str] = (),
        csv: CsvFormat = _PLAIN,
        found: Mapping[str, Guarantee] = MappingProxyType({}),
    ) -> None:
        if not isinstance(variables, Mapping):
            raise SchemaError(
                f"Schema needs a dict of variable -> states, got {type(variables).__name__}. States are "
                "declared, not read from records: write {'smoke': ['yes', 'no']}, or use Schema.from_model."
            )
        if bounds is not None and not isinstance(bounds, Mapping):
            raise SchemaError(f"bounds needs a dict of variable -> (low, high), got {type(bounds).__name__}.")
        if not isinstance(missing_values, Mapping):
            missing_values = dict.fromkeys(variables, listed(missing_values, "missing_values"))
        given: dict[str, dict[str, Any]] = {checked_name(name): {} for name in variables}
        for role, named, what in (
            ("missing", missing or {}, "state"),
            ("other", other or {}, "state"),
            ("missing_values", missing_values, "texts"),
            ("found", found, "guarantee"),
        ):
            if not isinstance(named, Mapping):
                raise SchemaError(f"{role} needs a dict of variable -> {what}, got {type(named).__name__}.")
            for name, value in named.items():
                require_known(name, given, role)
                given[name][role] = value
        fields = [Variable.of(name, declared, **given[name]) for name, declared in variables.items()]
        for name, ends in (bounds or {}).items():
            if name in given:
                raise SchemaError(f"Variable {name!r} has both states and bounds: declare only one of them.")
            fields.append(Variable(checked_name(name), bounds=checked_bounds(name, ends)))
        self._declare(fields, rules, csv)

    def _declare(self, fields: Iterable[Variable], rules: Iterable[Rule], csv: CsvFormat) -> None:
        if not isinstance(csv, CsvFormat):
            raise SchemaError(f"csv must be a CsvFormat, got {type(csv).__name__}.")
        settle(self, fields=tuple(variable.with_dates(csv.dates) for variable in fields), csv=csv)
        if not self.fields:
            raise SchemaError("The schema declares no variable: write Schema({'smoke': ['yes', 'no']}).")
        settle(self, rules=checked_rules(rules, self.states, (self.missing, self.other)))
        for variable in self.fields if csv != _PLAIN else ():  # UTF-8 holds every declared text
            variable.require_writable(csv)

    @classmethod
    def of(cls, fields: Iterable[Variable], rules: Iterable[Rule] = (), csv: CsvFormat = _PLAIN) -> Schema:
        """Make a schema of variables that are checked already."""
        made = object.__new__(cls)
        made._declare(fields, rules, csv)
        return made

    states = _by_name(lambda variable: variable.states if variable.bounds is None else None)
    bins = _by_name(lambda variable: variable.bins)
    missing: ClassVar[cached_property[Mapping[str, State]]] = _by_name(lambda variable: variable.missing)
    other: ClassVar[cached_property[Mapping[str, State]]] = _by_name(lambda variable: variable.other)
    bounds = _by_name(lambda variable: variable.bounds)
    missing_values = _by_name(lambda variable: variable.missing_values or None)
    found = _by_name(lambda variable: variable.found if variable.found.every else None)

    @cached_property
    def structure(self) -> Structure:
        """What the rules imply: variables that follow from others, and combinations that may occur.

        Examples
        --------
        >>> from pgmpy_dp.schema import Dependency
        >>> rule = Dependency("place", "region", {"Ulm": "south", "Kiel": "north"})
        >>> schema = Schema({"place": ["Ulm", "Kiel"], "region": ["north", "south"]}, rules=[rule])
        >>> root, states = schema.structure.dependent["region"]
        >>> root, states.tolist()
        ('place', [1, 0])
        """
        return structure_of(self.rules, self.states)

    def possible(self, asked: Iterable[str], given: Mapping[str, State] = MappingProxyType({})) -> NDArray[np.bool_]:
        """Return which joint states of some variables the rules about them allow, given states of others.

        Examples
        --------
        >>> from pgmpy_dp.schema import Forbidden
        >>> states = {"age": ["young", "old"], "married": ["no", "yes"]}
        >>> schema = Schema(states, rules=[Forbidden({"age": "young", "married": "yes"})])
        >>> schema.possible(["married"], {"age": "young"})
        array([ True, False])
        """
        return possible_states(self.rules, self.states, asked, given)

    @cached_property
    def details(self) -> Mapping[str, Detail]:
        """Finer histograms of binned numbers, by the names under which they are measured.

        Examples
        --------
        >>> schema = Schema({"age": Bins([0, 18, 65, 120], detail=6)})
        >>> schema.details["age in detail"].bins.edges
        (0.0, 9.0, 18.0, 42.0, 65.0, 92.0, 120.0)
        >>> schema.shape(("age in detail",))
        (6,)
        """
        details: dict[str, Detail] = {}
        for variable in self.fields:
            if variable.detail is None:
                continue
            if (name := variable.name + IN_DETAIL) in {*self.states, *self.bounds}:
                raise SchemaError(
                    f"The name {name!r} is that of the finer histogram of {variable.name!r}: rename the variable, or "
                    f"declare Bins(..., detail=0) for {variable.name!r}."
                )
            details[name] = variable.detail
        return MappingProxyType(details)

    @property
    def undiscovered(self) -> tuple[str, ...]:
        """Names of the variables that have no public states of values yet.

        Examples
        --------
        >>> Schema({"place": [], "sex": ["f", "m"]}, other={"place": "elsewhere"}).undiscovered
        ('place',)
        """
        return tuple(v.name for v in self.fields if v.other is not None and not v.values)

    def with_states(self, variable: str, states: Iterable[State]) -> Schema:
        """Return a schema with other states of a variable; those for missing and other values are kept.

        Examples
        --------
        >>> schema = Schema({"place": []}, other={"place": "elsewhere"})
        >>> schema.with_states("place", ["Bonn", "Ulm"]).states["place"]
        ('Bonn', 'Ulm', 'elsewhere')
        """
        require_known(variable, self.states)
        return self.replace(variables=self.declared | {variable: states})

    def replace(self, **declared: Any) -> Schema:
        """Return a schema with some constructor arguments replaced.

        Examples
        --------
        >>> schema = Schema({"smoke": ["yes", "no"]}, missing_values=["?"])
        >>> schema.replace(csv=CsvFormat(delimiter=";")).missing_values["smoke"]
        ('?',)
        """
        arguments = {name: getattr(self, name) for name in _ARGUMENTS} | {"variables": self.declared} | declared
        if "found" not in declared:  # keep guarantees of the variables that remain; bins state theirs
            variables = arguments["variables"]
            kept = {v: own for v, own in self.found.items() if v in variables and not isinstance(variables[v], Bins)}
            arguments["found"] = kept
        return Schema(**arguments)

    @cached_property
    def guarantee(self) -> Guarantee:
        """Guarantee of finding states and bins in records; empty if all of them were declared."""
        return learned(self.found, self.rules)

    @property
    def variables(self) -> tuple[str, ...]:
        """Names of the variables that have states, in the order of declaration."""
        return tuple(self.states)

    @property
    def declared(self) -> dict[str, Bins | tuple[State, ...]]:
        """Bins or states of each variable, as the constructor takes them.

        Examples
        --------
        >>> Schema({"age": Bins([0, 18, 65]), "smoke": ["yes", "no"]}).declared["smoke"]
        ('yes', 'no')
        """
        return {v.name: v.declared for v in self.fields if v.bounds is None}

    @property
    def state_names(self) -> dict[str, list[State]]:
        """States in pgmpy's form: a new dict of variable to list.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"]}).state_names
        {'smoke': ['yes', 'no']}
        """
        return {variable: list(states) for variable, states in self.states.items()}

    @property
    def ordered(self) -> list[str]:
        """The variables whose states have an order: bins, and at least three ascending numbers or dates.

        Dates are months, days, weeks or quarters, such as ``"2024-01"``, ``"2024-01-31"``, ``"2024-W05"`` and
        ``"2024-Q1"``, all written alike. Coarser variables of hierarchies that group such states in order have one too.

        Examples
        --------
        >>> Schema({"month": ["2024-01", "2024-02", "2024-03"], "visit": [1, 2, 3], "smoke": ["yes", "no"]}).ordered
        ['month', 'visit']
        """
        own = {variable.name: variable for variable in self.fields if variable.ordered}
        for coarser, (finer, codes) in self.structure.derived.items():
            if finer in own and (np.diff(codes[: len(own[finer].values)]) >= 0).all():
                own.setdefault(coarser, own[finer])
        return [variable for variable in self.states if variable in own]

    def cardinality(self, variable: str) -> int:
        """Return the number of states of a variable.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"]}).cardinality("smoke")
        2
        """
        sizes = self._sizes
        if not isinstance(variable, str) or variable not in sizes:
            require_known(variable, self.states)
        return sizes[variable]

    @cached_property
    def _sizes(self) -> Mapping[str, int]:
        return self.cardinalities() | {name: detail.places.size for name, detail in self.details.items()}

    @cached_property
    def _places(self) -> Mapping[str, int]:
        return MappingProxyType({name: number for number, name in enumerate((*self.variables, *self.details))})

    def cardinalities(self) -> dict[str, int]:
        """Return the number of states of every variable that has states.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"], "lung": ["yes", "no", "unclear"]}).cardinalities()
        {'smoke': 2, 'lung': 3}
        """
        return {variable: len(states) for variable, states in self.states.items()}

    def shape(self, clique: Iterable[str]) -> tuple[int, ...]:
        """Return the shape of a clique's table: one axis per variable, in clique order.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"], "lung": ["yes", "no", "unclear"]}).shape(("lung", "smoke"))
        (3, 2)
        """
        (checked,) = self.require([clique])
        return tuple(map(self.cardinality, checked))

    def cells(self, clique: Iterable[str]) -> int:
        """Return the number of cells of a clique's table."""
        return math.prod(map(self.cardinality, clique))

    def require(self, cliques: Iterable[Iterable[str]]) -> tuple[Clique, ...]:
        """Check cliques against the schema, and return them as tuples.

        Parameters
        ----------
        cliques : iterable of iterables of str
            Each clique lists variables in the order of its table's axes, or is one of `details`.

        Raises
        ------
        SchemaError
            If no clique is given, or a clique is empty, names an unknown variable, or repeats a variable or (in any
            order) another clique.

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
        states = self.states
        known = frozenset(states)
        for clique in given:
            if type(clique) is tuple and set(map(type, clique)) == {str}:  # there may be a million
                key = frozenset(clique)
                if len(key) == len(clique) and key <= known and key not in checked:
                    checked[key] = clique
                    continue
            if isinstance(clique, str):
                raise SchemaError(f"A clique is a tuple of variables, got the string {clique!r}: write ({clique!r},).")
            members = listed(clique, "What is asked for", "a tuple of variables, such as ('smoke', 'lung')")
            if not members:
                raise SchemaError("No variable is named: name at least one, such as ('smoke', 'lung').")
            for variable in members:
                if isinstance(variable, str) and variable in states:
                    continue
                if isinstance(variable, str) and variable in self.bounds:
                    raise SchemaError(
                        f"Variable {variable!r} is a number with bounds and has no states to count: declare Bins for "
                        "it, or use a numeric method such as LinearPosteriorSampler."
                    )
                if isinstance(variable, str) and variable in self.details:
                    if len(members) > 1:
                        raise SchemaError(
                            f"The finer histogram {variable!r} is measured alone: leave it out of larger cliques."
                        )
                    continue
                require_known(variable, states)
            key = frozenset(members)
            if len(key) < len(members):
                twice = next(v for v in members if members.count(v) > 1)
                raise SchemaError(f"Clique {tuple(members)} names variable {twice!r} more than once: name it once.")
            if key in checked:
                raise SchemaError(f"Clique {tuple(members)} repeats clique {checked[key]}: give only one of them.")
            checked[key] = tuple(str(variable) for variable in members)
        results = tuple(checked.values())
        return Learned(results, cliques.guarantee) if isinstance(cliques, Learned) else results

    def select(self, variables: Iterable[str]) -> Schema:
        """Return a schema of some variables, in the given order, with the rules that are about them alone.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]}).select(["lung"]).variables
        ('lung',)
        """
        (chosen,) = self.require([variables])
        known = {variable.name: variable for variable in self.fields}
        rules = [rule for rule in self.rules if set(rule.variables) <= set(chosen)]
        return Schema.of([known[name] for name in chosen], rules, self.csv)

    def join(self, other: Schema) -> Schema:
        """Return a schema with the variables of both, those of this one first.

        Raises
        ------
        SchemaError
            If a variable has other states, bins, bounds or missing values in the other schema, or if only one of them
            has a rule about variables of both.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"]}).join(Schema({"lung": ["yes", "no"]})).variables
        ('smoke', 'lung')
        """
        fields = {variable.name: variable for variable in self.fields}
        shared = {variable.name for variable in other.fields} & fields.keys()
        for variable in other.fields:
            mine = fields.get(variable.name)
            fields[variable.name] = variable if mine is None else mine.join(variable)
        rules = [[r for r in schema.rules if set(r.variables) <= shared] for schema in (self, other)]
        for rule in (rule for own in rules for rule in own if not all(rule in each for each in rules)):
            named = ", ".join(map(repr, rule.variables))
            raise SchemaError(f"A rule about {named} is in one release but not in the other.")
        counted = sorted(fields.values(), key=lambda variable: variable.bounds is not None)
        return Schema.of(counted, (*self.rules, *other.rules), self.csv if self.csv != _PLAIN else other.csv)

    @classmethod
    def from_model(cls, model: Any) -> Schema:
        """Return the variables and states that a pgmpy model declares, with the guarantee of finding them in records.

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
        return cls.of(variables_of(model))

    def to_dict(self) -> dict[str, Any]:
        """Describe the table of records as a Frictionless Table Schema (version 2).

        States are in ``constraints.enum``. Other properties of a field are our own: ``pgmpy_dp:bins`` with ``edges``
        (infinite ones as ``"-inf"`` and ``"inf"``) and ``labels``; ``pgmpy_dp:missing`` and ``pgmpy_dp:other``, the
        states for missing and undeclared values. A variable with the latter has its states in ``pgmpy_dp:states``, and
        no constraint on its values. ``pgmpy_dp:bounds`` holds the bounds of a number, and ``pgmpy_dp:found`` what
        finding states in records cost. Beside the fields, ``pgmpy_dp:rules`` lists the rules, and
        ``pgmpy_dp:csv`` holds the format of files. Dates in another form than ISO have a ``format``.

        Examples
        --------
        >>> Schema({"smoke": ["yes", "no"]}).to_dict()["fields"]
        [{'name': 'smoke', 'type': 'string', 'constraints': {'required': True, 'enum': ['yes', 'no']}}]
        """
        rules = {RULES_PROPERTY: [rule.to_dict() for rule in self.rules]} if self.rules else {}
        csv = {name: value for name, value in asdict(self.csv).items() if value is not None}
        csv = {CSV_PROPERTY: csv} if self.csv != _PLAIN else {}
        return {"$schema": PROFILE, "fields": list(map(table_field, self.fields))} | rules | csv

    @classmethod
    def from_dict(cls, descriptor: Mapping[str, Any]) -> Schema:
        """Read a Frictionless Table Schema.

        States are taken from ``pgmpy_dp:bins`` or ``pgmpy_dp:states``, else ``constraints.enum``, else ``categories``;
        a boolean field without any of them has the states False and True.

        Raises
        ------
        SchemaError
            If the descriptor is not a Table Schema, or a field declares no states.
        """
        return cls.of(*declarations(descriptor))

    @classmethod
    def from_dictionary(cls, path: str | os.PathLike[str]) -> Schema:
        r"""Read a data dictionary, which people write: a row for each variable, in CSV.

        Its columns are ``variable``; ``states``, separated by ``|``, or ``edges`` of bins; and, as needed, ``labels``,
        ``decimals``, ``detail``, ``type`` (string, integer, number, boolean or date), ``format`` of dates, ``missing``,
        ``other`` and ``missing_values``. A dictionary in JSON is a Table Schema, or maps each variable to a list of
        states or to an object of these columns.

        Raises
        ------
        SchemaError
            If the file is no data dictionary, such as the records themselves; the message names the row or variable.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "dictionary.csv"
        ...     _ = path.write_text("variable,states,edges\nsmoke,yes|no,\nage,,0|18|65|120\n")
        ...     Schema.from_dictionary(path)
        Schema(2 variables with their numbers of states: smoke (2), age (3))
        """
        return cls.of(*read_dictionary(path_of(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the schema as a Frictionless Table Schema file (JSON, UTF-8)."""
        text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False)
        path_of(path).write_text(text + "\n", encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Schema:
        """Read a file with a Frictionless Table Schema, written by `save` or by other tools.

        Raises
        ------
        FileNotFoundError
            If the file does not exist.
        SchemaError
            If it is not a Table Schema, or a field declares no states.
        """
        try:
            return cls.from_dict(parse_json(path_of(path).read_bytes()))
        except UnicodeDecodeError:
            raise SchemaError(
                f"{path}: not a schema, which is JSON in UTF-8. Of a model that was loaded it is schema_, "
                "of a release schema."
            ) from None
        except ValueError as error:
            raise SchemaError(f"{path}: {error}") from error

    def _content(self) -> tuple[Any, ...]:
        return tuple(variable.content for variable in self.fields), frozenset(self.rules), self.csv

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return NotImplemented
        return self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        first = ", ".join(f"{printable(v)} ({len(states)})" for v, states in list(self.states.items())[:6])
        more = f", and {len(self.states) - 6} more" if len(self.states) > 6 else ""
        numbers = f"; numbers with bounds: {some(self.bounds)}" if self.bounds else ""
        rules = f"; {len(self.rules)} rules" if self.rules else ""
        return f"Schema({len(self.states)} variables with their numbers of states: {first}{more}{numbers}{rules})"

    def _repr_html_(self) -> str:
        rows = [(variable, some(states)) for variable, states in self.states.items()]
        rows += [(variable, f"a number from {low:g} to {high:g}") for variable, (low, high) in self.bounds.items()]
        return table(f"Schema of {len(rows)} variables", ["variable", "states"], rows, maximum=60)

    def __reduce__(self) -> tuple[Any, ...]:  # read-only mappings cannot be pickled
        return Schema.of, (self.fields, self.rules, self.csv)


def places(schema: Schema) -> Mapping[str, int]:
    """Number the variables in schema order, and then the finer histograms."""
    return schema._places
