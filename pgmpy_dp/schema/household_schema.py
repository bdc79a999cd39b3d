"""Two tables and the key that joins them are declared together: households, and the persons in them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema.schema import Clique, Schema
from pgmpy_dp.schema.states import checked_name

_MOST_PERSONS = 100  # pairs of them then weigh enough parts of their household for rounding to be below 1 %
_NOBODY = "nobody"


@dataclass(frozen=True)
class HouseholdSchema:
    """A household schema declares a table of households, a table of persons, and the key that both have.

    Parameters
    ----------
    households, persons : Schema
        The variables of each table. No name is in both.
    key : str
        The column of both tables that tells which household a row is about. Its values never leave.
    max_persons : int
        The most persons of a household that are counted, at most 100. Of a household with more, so many are drawn.
    size : str
        What the number of persons counted in a household is called as a variable. No column has this name.

    Attributes
    ----------
    joined : Schema
        A household, its size, and a person of it: the variables of both tables, `size` between them.
    measured : Schema
        Beside those, ``"another x"`` for each variable x of persons: that of another person of the household, and
        "nobody" where there is no other.

    Raises
    ------
    SchemaError
        If names or the bound are not sound.

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
                raise SchemaError(f"{name} needs a Schema, got {type(schema).__name__}: write Schema({{...}}).")
            if schema.structure.refined:
                raise SchemaError(
                    f"Variable {next(iter(schema.structure.refined))!r} is the finer one of a Hierarchy, which tables "
                    "of households do not have: declare its coarser states."
                )
            if schema.bounds:
                raise SchemaError(
                    f"Variable {next(iter(schema.bounds))!r} is a number with bounds, which tables of households do "
                    "not count: declare Bins for it."
                )
        most = self.max_persons
        if isinstance(most, bool) or not isinstance(most, int) or not 1 <= most <= _MOST_PERSONS:
            raise SchemaError(f"max_persons must be a whole number from 1 to {_MOST_PERSONS}, got {most!r}.")
        names = [*map(checked_name, (self.key, self.size)), *self.households.variables, *self.persons.variables]
        names += self.another
        twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
        if twice:
            raise SchemaError(
                f"The name {twice[0]!r} is taken twice among the key, the size and the variables of households and "
                "persons: rename one of them, or choose another size=."
            )

    @cached_property
    def another(self) -> Mapping[str, str]:
        """Return what each variable of persons is called where it is another person's: name to variable."""
        return {f"another {variable}": variable for variable in self.persons.variables}

    @cached_property
    def level(self) -> Schema:
        """Return the variables of a household, its size among them."""
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
        """Name the state of "another" where there is none; it is the last one."""
        state = _NOBODY
        while state in self.persons.states[variable]:
            state += "_"
        return state

    @property
    def together(self) -> tuple[Clique, ...]:
        """Return the pairs of a person's variable and another person's, each once: they mirror each other."""
        dependent = self.persons.structure.dependent
        roots = [variable for variable in self.persons.variables if variable not in dependent]
        pairs = itertools.combinations_with_replacement(roots, 2)
        return tuple((one, f"another {other}") for one, other in pairs)

    def to_dict(self) -> dict[str, Any]:
        """Describe it for a file, the tables as Frictionless Table Schemas."""
        return {
            "households": self.households.to_dict(),
            "persons": self.persons.to_dict(),
            "key": self.key,
            "max_persons": self.max_persons,
            "size": self.size,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> HouseholdSchema:
        """Read what `to_dict` wrote."""
        households, persons = (Schema.from_dict(content[table]) for table in ("households", "persons"))
        return cls(households, persons, content["key"], content["max_persons"], content["size"])
