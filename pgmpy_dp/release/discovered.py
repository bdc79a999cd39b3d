"""Release of states of a variable that were discovered in private records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from pgmpy_dp.privacy.checks import checked_number, whole_number
from pgmpy_dp.privacy.guarantee import Guarantee, Learned, counted
from pgmpy_dp.release.archive import Contents, Measurements
from pgmpy_dp.release.descriptor import entry
from pgmpy_dp.release.kinds import Release
from pgmpy_dp.schema import Schema, State


@dataclass(frozen=True, eq=False, repr=False)
class DiscoveredStates(Release, kind="discovered_states", properties=("variable", "scale", "threshold")):
    """Release of the values of a variable that many units have.

    Attributes
    ----------
    schema : Schema
        With the discovered states: declare it for the data set that is measured.
    variable : str
    scale : float
        Scale of the noise on the number of rows of every value.
    threshold : int
        Smallest noisy number of rows at which a value is released.
    guarantee : Guarantee

    Raises
    ------
    SchemaError
        If the schema has no such variable.
    ValueError
        If the parts contradict each other.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"place": ["Ulm"] * 300 + ["Bonn"] * 200 + ["Nowhere"]})
    >>> schema = dp.Schema({"place": []}, other={"place": "elsewhere"})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0, 1e-6))
    >>> found = data.discover_states("place", epsilon=0.5, delta=1e-7)
    >>> found.states, found.schema.states["place"]
    (('Bonn', 'Ulm'), ('Bonn', 'Ulm', 'elsewhere'))
    """

    cliques = ()
    schema: Schema
    variable: str
    scale: float
    threshold: int
    guarantee: Guarantee

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema) or not isinstance(self.guarantee, Guarantee):
            raise ValueError("DiscoveredStates needs a Schema and a Guarantee.")
        object.__setattr__(self, "guarantee", self.guarantee.after(self.schema.guarantee))
        self.schema.require([(self.variable,)])
        if self.guarantee.mechanism != "partition_selection" or self.variable not in self.schema.other:
            raise ValueError("DiscoveredStates: partition selection needs a state for other values.")
        scale = checked_number("DiscoveredStates: scale", self.scale)
        if not scale > 0:
            raise ValueError("DiscoveredStates: scale must be greater than 0.")
        object.__setattr__(self, "scale", scale)
        object.__setattr__(self, "threshold", whole_number("DiscoveredStates: threshold", self.threshold))
        noise = (("scale", scale), ("threshold", float(self.threshold)))
        if not self.guarantee.costs:
            raise ValueError("DiscoveredStates: the guarantee does not state what discovering them cost.")
        for cost in self.guarantee.costs:
            replace(cost, noise=noise)  # raises if they cost more than is stated

    @property
    def states(self) -> tuple[State, ...]:
        """The discovered states, without those for missing and other values; a schema of them knows their cost."""
        stand_ins = {role[self.variable] for role in (self.schema.other, self.schema.missing) if self.variable in role}
        own = [state for state in self.schema.states[self.variable] if state not in stand_ins]
        return Learned(own, self.guarantee)

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return super().contents() | {"variable": self.variable, "scale": self.scale, "threshold": self.threshold}

    def measurements(self) -> Measurements:
        """Return nothing: the states are in the schema."""
        return []

    @classmethod
    def interpret(cls, schema: Schema, guarantee: Guarantee, contents: Mapping[str, Any]) -> Contents[Self]:
        """Invert `contents`."""
        variable, scale = entry(contents, "variable", str), entry(contents, "scale", float, int)
        threshold = entry(contents, "threshold", int)
        return Contents(cls.kind, cls.drawn, {}, lambda arrays: cls(schema, variable, scale, threshold, guarantee))

    def refusal(self) -> TypeError:
        """Return the error of whoever asks for tables."""
        return TypeError("DiscoveredStates contain states of a variable, not tables.")

    def __repr__(self) -> str:
        return f"DiscoveredStates: {counted(len(self.states), 'state')} of {self.variable}\n  {self.guarantee}"
