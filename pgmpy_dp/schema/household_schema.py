"""Public declaration of two tables, households and their persons, and of the key that joins them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema.schema import Clique, Schema
from pgmpy_dp.schema.states import checked_name

_MAX_PERSONS = 100  # weights of pairs of persons are then rounded by less than 1 %
_NOBODY = "nobody"


@dataclass(frozen=True)
class HouseholdSchema:
    """Schema of a table of households and a table of persons, joined by a key.

    Parameters
    ----------
    households, persons : Schema
        The variables of each table. No name may be in both.
    key : str
        Column of both tables that identifies the household of a row. Its values are never released.
    max_persons : int
        Largest number of persons counted per household, at most 100. From larger households this number is sampled.
    size : str
        Name of the variable that holds the number of persons counted in a household. No column may have this name.

    Attributes
    ----------
    joined : Schema
        The variables of a household, `size`, and the variables of one of its persons, in this order.
    measured : Schema
        `joined`, and for each variable x of persons ``"another x"``: x of another person of the household, or "nobody"
        if there is none.

    Raises
    ------
    SchemaError
        If names clash or `max_persons` is out of range.

    Examples
    --------
    >>> home, person = Schema({"tenure": ["owned", "rented"]}), Schema({"age": ["child", "adult"]})
    >>> schema = HouseholdSchema(home, person, key="id", max_persons=3)
    >>> schema.joined.states["size"]
    (1, 2, 3)
    >>> schema.measured.states["another age"]
    ('child', 'adult', 'nobody')
    """

    households: Schema
    persons: Schema
    key: str
    max_persons: int
    size: str = "size"

    def __post_init__(self) -> None:
        for name, schema in (("households", self.households), ("persons", self.persons)):
            if not isinstance(schema, Schema):
                raise SchemaError(f"{name} must be a Schema, got {type(schema).__name__}.")
            if schema.structure.refined:
                raise SchemaError(
                    f"Variable {next(iter(schema.structure.refined))!r} is the finer variable of a Hierarchy, which "
                    "tables of households do not support: declare its coarser states instead."
                )
            if schema.bounds:
                raise SchemaError(
                    f"Variable {next(iter(schema.bounds))!r} is a number with bounds, which tables of households "
                    "cannot count: declare Bins for it."
                )
        maximum = self.max_persons
        if isinstance(maximum, bool) or not isinstance(maximum, int) or not 1 <= maximum <= _MAX_PERSONS:
            raise SchemaError(f"max_persons must be a whole number from 1 to {_MAX_PERSONS}, got {maximum!r}.")
        names = [*map(checked_name, (self.key, self.size)), *self.households.variables, *self.persons.variables]
        names += self.another
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise SchemaError(
                f"The name {twice[0]!r} is used twice among the key, the size and the variables of households and "
                "persons: rename one, or choose another size."
            )

    @cached_property
    def another(self) -> Mapping[str, str]:
        """Map from the name "another x" to the variable x, for each variable of persons."""
        return {f"another {variable}": variable for variable in self.persons.variables}

    @cached_property
    def level(self) -> Schema:
        """Variables of a household, including its size."""
        sizes = Schema({self.size: range(1, self.max_persons + 1)})
        return self.households.join(sizes)

    @cached_property
    def joined(self) -> Schema:
        return self.level.join(self.persons)

    @cached_property
    def measured(self) -> Schema:
        others = {name: (*self.persons.states[v], self.nobody(v)) for name, v in self.another.items()}
        return self.joined.join(Schema(others))

    def nobody(self, variable: str) -> str:
        """Return the last state of "another", which means that there is no other person."""
        state = _NOBODY
        while state in self.persons.states[variable]:
            state += "_"
        return state

    @property
    def together(self) -> tuple[Clique, ...]:
        """Pairs of a person's variable and another person's, each once, since they mirror each other."""
        dependent = self.persons.structure.dependent
        roots = [variable for variable in self.persons.variables if variable not in dependent]
        pairs = itertools.combinations_with_replacement(roots, 2)
        return tuple((one, f"another {other}") for one, other in pairs)

    def to_dict(self) -> dict[str, Any]:
        """Describe the schema for a file, with the tables as Frictionless Table Schemas."""
        return {
            "households": self.households.to_dict(),
            "persons": self.persons.to_dict(),
            "key": self.key,
            "max_persons": self.max_persons,
            "size": self.size,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> HouseholdSchema:
        """Invert `to_dict`."""
        households, persons = (Schema.from_dict(content[table]) for table in ("households", "persons"))
        return cls(households, persons, content["key"], content["max_persons"], content["size"])
