"""The protocol of mechanisms: public parameters with a price, an exact answer, and a draw after payment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.checks import checked_delta
from pgmpy_dp.privacy.cost import Cost, Loss, Protects
from pgmpy_dp.privacy.guarantee import DECLARED, Guarantee, learned
from pgmpy_dp.privacy.noise import OPENDP_NOISE, UNIT_WEIGHT, NoiseSource
from pgmpy_dp.records import EncodedRecords, Records
from pgmpy_dp.records.columns import Codes
from pgmpy_dp.records.frames import Integers
from pgmpy_dp.records.memory import Counts, distinct, require_numbers
from pgmpy_dp.records.units import Unit, checked_unit
from pgmpy_dp.records.weights import Weights
from pgmpy_dp.schema import Clique, Schema


@dataclass(frozen=True)
class Public:
    """What is public about a private source."""

    neighbours: str
    unit: Unit | None
    total: int | None  # of records, or of units that each count once, where it is public
    delta: float  # of the budget that pays
    private: bool
    weights: Weights | None = field(default=None, kw_only=True)

    @property
    def protects(self) -> Protects:
        """The difference between neighbours: the relation, the unit and its limits."""
        unit: dict[str, Any] = {} if self.unit is None else {"unit": self.unit.column, "max_rows": self.unit.max_rows}
        return Protects(self.neighbours, **unit, largest_weight=None if self.weights is None else self.weights.largest)

    @property
    def rows(self) -> int:
        """The largest sum that one unit adds to a table; 1 for a record, and for a unit whose rows share a weight."""
        return 1 if self.unit is None else self.unit.max_rows or 1

    @property
    def parts(self) -> int:
        """Number of parts that make 1 in tables: 1 where whole rows are counted, that of a weight otherwise."""
        whole = self.weights is None and (self.unit is None or self.unit.max_rows is not None)
        return 1 if whole else UNIT_WEIGHT

    @property
    def contribution(self) -> int:
        """The largest sum that one unit adds to a table, in parts."""
        return self.rows * self.parts

    def cost(self, label: str, mechanism: str, loss: Loss, **parts: Any) -> Cost:
        """State a cost for these records; `parts` are further fields of `Cost`."""
        versions = tuple(library_versions(self.private).items())
        return Cost(label, mechanism, loss, self.protects, self.private, versions=versions, **parts)

    @property
    def single_records(self) -> bool:
        """Whether records are units of their own and count alike."""
        return self.unit is None and self.weights is None

    def require_single_records(self) -> None:
        """Raise if there are units or weights, for mechanisms whose sensitivity is that of one record."""
        if self.unit is not None:
            raise ValueError(
                f"This mechanism protects single records, not all rows of one {self.unit.column}: "
                "use measure(), which does, or leave unit out."
            )
        if self.weights is not None:
            raise ValueError(
                f"This mechanism counts every record alike, and these have weights in {self.weights.column!r}: "
                "use measure(), which weighs them, or leave weights out."
            )


@dataclass(frozen=True)
class PublicRecords(Public):
    """What is public about private records with declared variables."""

    schema: Schema

    @classmethod
    def of(
        cls,
        schema: Schema,
        delta: float = 0.0,
        neighbours: str = "add_remove",
        unit: str | None = None,
        max_rows: int | None = None,
        weights: Weights | None = None,
    ) -> PublicRecords:
        """State what is public about records, to price an answer before they are read."""
        units = checked_unit(unit, max_rows, OPENDP_NOISE)
        return cls(neighbours, units, None, checked_delta(delta, zero_allowed=True), True, schema, weights=weights)


@dataclass(frozen=True)
class PrivateRecords:
    """Private records with declared variables, as read by a mechanism's `read`."""

    source: Records
    numbers: Mapping[str, Integers]

    def under(self, schema: Schema | None) -> PrivateRecords:
        """Return the same records with the groups of their states that a schema declares; without one, unchanged."""
        return self if schema is None else replace(self, source=self.source.under(schema))

    def counts(self, cliques: Iterable[Clique]) -> Mapping[Clique, Counts]:
        """Count the records in every cell of the cliques."""
        return self.source.counts(tuple(cliques))

    def codes_for(self, cliques: Iterable[Clique]) -> Mapping[str, Codes]:
        """Return the codes of records in memory, one by one, from which the tables of these cliques can be counted."""
        require_numbers(self._encoded.codes, self._encoded.schema, cliques)
        return self._encoded.codes

    def rows(self, variables: Sequence[str] | None) -> Rows:
        """Return the distinct records in some variables (default: all), and the index of each record among them."""
        codes, details = self._encoded.codes, self._encoded.schema.details
        return Rows(*distinct(codes, variables or [name for name in codes if name not in details]))

    @property
    def _encoded(self) -> EncodedRecords:
        if not isinstance(self.source, EncodedRecords):
            raise ValueError(
                "This mechanism processes records one by one and needs them in memory: collect the lazy frame "
                "first. Ready-made counts contain no records."
            )
        return self.source


@dataclass(frozen=True)
class Rows:
    """Rows of numbers in memory, as read by a mechanism's `read`."""

    values: Any
    groups: NDArray[np.int64] | None = None  # the row of each record; None where each has one of its own

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.values.shape[0] if self.groups is None else self.groups.shape[0])

    def rows(self, variables: Sequence[str] | None) -> Rows:
        """Return the rows unchanged: their columns are not named variables."""
        return self


Terms = TypeVar("Terms")
Exact = TypeVar("Exact")
Answer_co = TypeVar("Answer_co", covariant=True)


@dataclass(frozen=True)
class Quote(Generic[Terms]):
    """The cost of an answer, the public terms of its draw, and what was learned from records before."""

    cost: Cost
    terms: Terms
    earlier: Guarantee = DECLARED

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the answer."""
        return Guarantee(frozenset({self.cost})).after(self.earlier)


class Mechanism(Protocol[Terms, Exact, Answer_co]):
    """A frozen value of public parameters. Foreseeable failures happen before the charge.

    `public` and `records` match the kind of source that the mechanism is for: a :class:`PublicRecords` and a
    :class:`PrivateRecords` if it needs declared variables.
    """

    def quote(self, public: Any) -> Quote[Terms]:
        """State the cost, without reading records."""

    def read(self, quote: Quote[Terms], records: Any) -> Exact:
        """Compute the exact answer, which is passed only to :meth:`draw`; raises if the source cannot provide it."""

    def draw(self, quote: Quote[Terms], public: Any, exact: Exact, noise: NoiseSource) -> Answer_co:
        """Draw the release, after the charge."""


def quoted(mechanism: Mechanism[Terms, Any, Any], public: Public, earlier: Guarantee = DECLARED) -> Quote[Terms]:
    """Ask a mechanism for its price, and add what was learned before: by its fields, the schema and `earlier`.

    Raises ValueError if the costs of all of these have no common guarantee.
    """
    quote = replace(mechanism.quote(public), earlier=learned(mechanism, public, earlier))
    quote.guarantee  # noqa: B018  # refuses before anything is charged
    return quote


@cache
def library_versions(private: bool) -> Mapping[str, str]:
    """Return the versions of this package, of the accountant, and of the library that draws the noise."""
    libraries = ("pgmpy_dp", "dp-accounting", "opendp" if private else "numpy")
    results = {}
    for library in libraries:
        try:
            results[library] = metadata.version(library)
        except metadata.PackageNotFoundError:  # run from a source tree
            results[library] = "unknown"
    return results
