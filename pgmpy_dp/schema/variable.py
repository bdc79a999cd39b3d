"""One variable of a schema: its states or bins, and what stands for missing and undeclared values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.guarantee import DECLARED, GRAPH_KEY, Guarantee, learned
from pgmpy_dp.schema.bins import Bins, checked_guarantee
from pgmpy_dp.schema.csv_format import CsvFormat
from pgmpy_dp.schema.date_bins import DateBins, TimeBins
from pgmpy_dp.schema.date_format import date_format
from pgmpy_dp.schema.states import State, checked_name, checked_state, checked_states, distinct, in_order, listed, typed

IN_DETAIL = " in detail"
"""How the name of a number's finer histogram ends."""


@dataclass(frozen=True)
class Variable:
    """A public variable of the records."""

    name: str
    states: tuple[State, ...] = ()  # with those for missing and other values; none if it stays a number
    bins: Bins | None = None  # whose labels are states
    bounds: tuple[float, float] | None = None  # of a variable that stays a number
    missing: State | None = None
    other: State | None = None
    missing_values: tuple[str, ...] = ()
    found: Guarantee = DECLARED

    @classmethod
    def of(cls, name: Any, declared: Any, missing_values: Any = (), found: Any = DECLARED, **roles: Any) -> Self:
        """Check what is declared: states or Bins, and in `roles` the states for "missing" and "other" values."""
        name = checked_name(name)
        owner = f"Variable {name!r}"
        bins = declared if isinstance(declared, Bins) else None
        states = bins.labels if bins else checked_states(owner, declared, "states", minimum=0)
        if not states and "other" not in roles:
            raise SchemaError(
                f"{owner} has no states: list at least one. If no list of them is public, declare a state for all "
                "values as its 'other'; states are then discovered privately."
            )
        for role, state in roles.items():
            roles[role] = stand_in = checked_state(owner, state)
            if typed(stand_in) not in map(typed, states):
                states = distinct(owner, (*states, stand_in))
        texts = _checked_texts(owner, missing_values, states, roles.get("missing"))
        learnt = bins.found if bins else getattr(declared, "guarantee", None)
        made = cls(name, states, bins, missing_values=texts, **roles)
        return made.learned_at(checked_guarantee(found), learnt)

    def learned_at(self, *costs: Guarantee | None) -> Self:
        """Return the variable with the guarantee of finding it, which its bins state too."""
        result = learned(*costs)
        bins = replace(self.bins, found=result) if self.bins and result.every else self.bins
        return replace(self, found=result, bins=bins)

    def with_dates(self, format: str | None) -> Self:
        """Return the variable with the format of its dates, if they have none of their own."""
        if format is None or not isinstance(self.bins, DateBins) or self.bins.format is not None:
            return self
        if isinstance(self.bins, TimeBins) and not date_format(format).has_time:  # a format for columns of dates
            return self
        try:
            return replace(self, bins=replace(self.bins, format=format))
        except SchemaError as error:
            raise SchemaError(f"Variable {self.name!r}: {error}") from None

    @property
    def declared(self) -> Bins | tuple[State, ...]:
        return self.bins or self.states

    @property
    def roles(self) -> dict[str, State]:
        """The states for missing and other values, as far as there are any."""
        named = {"missing": self.missing, "other": self.other}
        return {role: state for role, state in named.items() if state is not None}

    @property
    def values(self) -> list[State]:
        """The states that are values."""
        return [state for state in self.states if state not in self.roles.values()]

    @property
    def ordered(self) -> bool:
        return self.bins is not None or in_order(self.states)

    @property
    def content(self) -> tuple[Any, ...]:
        """What two equal variables have in common; 1, 1.0 and True are different states."""
        roles = tuple((role, typed(state)) for role, state in self.roles.items())
        return self.name, tuple(map(typed, self.states)), self.bins, self.bounds, roles, self.missing_values, self.found

    def join(self, other: Variable) -> Variable:
        """Unite two declarations of the variable, which must agree."""
        for names, what in ((("states", "bins", "bounds"), "states"), (_OF_CELLS, "missing or other values")):
            if any(getattr(self, name) != getattr(other, name) for name in names):
                raise SchemaError(
                    f"Variable {self.name!r} has other {what} in the other release: measure the second under the "
                    "schema of the first, PrivateDataset(records, first.schema, ...)."
                )
        return self.learned_at(self.found, other.found)

    def require_writable(self, csv: CsvFormat) -> None:
        """Raise if the name, a state or a text for missing values cannot be written in the format."""
        for text in (self.name, *self.states, *self.missing_values) if self.bounds is None else ():
            if isinstance(text, str) and (reason := csv.refusal(text)):
                what = "its name" if text is self.name else repr(text)
                raise SchemaError(
                    f"Variable {self.name!r}: {what} {reason}, as the format of the .csv file is declared."
                )

    @cached_property
    def detail(self) -> Detail | None:
        """The finer histogram of a binned number, if it has one."""
        if self.bins is None or (fine := self.bins.fine) is None:
            return None
        owners = np.searchsorted(self.bins.edges, fine.edges[:-1], side="right") - 1
        others = sorted({self.states.index(state) for state in self.roles.values()})
        return Detail(self.name, fine, np.append(owners, others).astype(np.intp))


@dataclass(frozen=True)
class Detail:
    """A finer histogram of a binned number, which is measured beside its bins."""

    variable: str
    bins: Bins
    places: NDArray[np.intp]  # of each cell's state: of the finer bins, then of missing and undeclared values


def variables_of(model: Any) -> list[Variable]:
    """List the variables that a pgmpy model declares, with the guarantee of finding their states."""
    read = getattr(model, "get_cpds", None) or getattr(model, "get_factors", None)
    if read is None or not hasattr(model, "nodes"):
        raise SchemaError(
            f"from_model needs a pgmpy DiscreteBayesianNetwork or DiscreteMarkovNetwork, got {type(model).__name__}."
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
            f"Variable {without[0]!r} has no CPD or factor with state names in the model: add one, or declare the "
            "states in a schema."
        )
    costs = {node: data.get(GRAPH_KEY, DECLARED) for node, data in model.nodes(data=True)}
    return [Variable.of(node, declared[node], found=costs[node]) for node in model.nodes()]


_OF_CELLS = ("missing", "other", "missing_values")


def _checked_texts(owner: str, given: Any, states: tuple[State, ...], missing: State | None) -> tuple[str, ...]:
    """Check the texts for missing values."""
    texts = tuple(dict.fromkeys(listed(given, f"{owner}: missing_values")))
    if not all(isinstance(text, str) for text in texts):
        raise SchemaError(f"{owner}: missing_values are texts, such as '?' or 'NA'.")
    for text in texts:
        checked_state(f"{owner}: missing_values", text)
        if text in map(str, states) and missing != text:
            raise SchemaError(
                f"{owner}: {text!r} is both a state and among missing_values (in files missingValues). Declare "
                "missing_values for each variable, or that state as its 'missing'."
            )
    return texts
