"""A mechanism is public parameters with a price, an exact answer, and a draw once the price is paid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.versions import library_versions
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.checks import decimal_above
from pgmpy_dp.privacy.ledger import Charge, protected
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.records import EncodedRecords, Records
from pgmpy_dp.records.columns import Codes
from pgmpy_dp.records.frames import Integers
from pgmpy_dp.records.memory import distinct
from pgmpy_dp.records.units import Unit, require_single_records
from pgmpy_dp.release import Guarantee
from pgmpy_dp.release.composition import sharing
from pgmpy_dp.schema import Schema


@dataclass(frozen=True)
class Public:
    """What may be known of a private source without paying.

    Attributes
    ----------
    neighbours : {"add_remove", "replace_one"}
    unit : Unit or None
        Whose rows are whose; None where records are units of their own.
    total : int or None
        How many records there are, or units of which each counts once, where that is public.
    budget : PrivacyBudget
        The ledger that pays. Only :meth:`pgmpy_dp.data.wall.Wall.release` charges it.
    private : bool
        Whether the noise is such that protects anyone.
    """

    neighbours: str
    unit: Unit | None
    total: int | None
    budget: PrivacyBudget
    private: bool

    @property
    def protects(self) -> str:
        """What neighbours differ in, as a charge states it."""
        return protected(self.neighbours, "record" if self.unit is None else self.unit.column)

    @property
    def contribution(self) -> int:
        """The most that one unit adds to a table in sum."""
        return 1 if self.unit is None else self.unit.contribution

    @property
    def parts(self) -> int:
        """How many of what tables count make one."""
        return 1 if self.unit is None else self.unit.parts

    def guarantee(self, epsilon: Fraction, mechanism: str, *, delta: float = 0.0, **parts: Any) -> Guarantee:
        """State what a release promises that costs epsilon; `parts` are the rest of :class:`~pgmpy_dp.Guarantee`.

        On the ledger of a try it promises what holds for all tries together. Where records were asked for the states of
        the schema, it counts that too: the schema goes out with the release.
        """
        if (of_tries := self.budget.of_tries) is not None:
            epsilon, delta = max(epsilon, of_tries[0]), max(delta, of_tries[1])
            parts = {**parts, "accepted": True}
        own = Guarantee(
            epsilon=decimal_above(epsilon),
            delta=delta,
            neighbours=self.neighbours,
            mechanism=mechanism,
            private=self.private,
            versions=library_versions(self.private),
            **{"rho": None} | parts,
        )
        return sharing(own, self.payments)

    @property
    def payments(self) -> tuple[Guarantee, ...]:
        """What was promised where records were asked for the states that are declared."""
        return ()

    def require_single_records(self) -> None:
        """Refuse units, for mechanisms whose sensitivity is that of one record."""
        require_single_records(self.unit)


@dataclass(frozen=True)
class PublicTable(Public):
    """What may be known of private records with declared variables."""

    schema: Schema

    @property
    def payments(self) -> tuple[Guarantee, ...]:
        """As the schema says."""
        return self.schema.payments


@dataclass(frozen=True)
class Held:
    """What the step of a mechanism that reads private records is handed."""

    records: Records
    numbers: Mapping[str, Integers]
    unit: Unit | None

    @property
    def codes(self) -> Mapping[str, Codes]:
        """The codes of records that are in memory, for mechanisms that go through them one by one."""
        require_single_records(self.unit)
        if not isinstance(self.records, EncodedRecords):
            raise ValueError(
                "This mechanism goes through the records one by one and needs them in memory: collect the lazy frame "
                "first. Ready-made counts have no records."
            )
        return self.records.codes

    def rows(self, variables: Sequence[str] | None) -> Rows:
        """Find the distinct records in some variables, all by default, and which of them each record is."""
        codes = self.codes
        return Rows(*distinct(codes, codes if variables is None else variables))


@dataclass(frozen=True)
class Rows:
    """What it is handed of rows of numbers in memory.

    Attributes
    ----------
    values : ndarray or csr_array, shape (rows, columns)
    groups : ndarray of int64, or None
        Which of the rows each record is; None where each record has a row of its own.
    """

    values: Any
    groups: NDArray[np.int64] | None = None

    @property
    def size(self) -> int:
        """Number of records."""
        return int(self.values.shape[0] if self.groups is None else self.groups.shape[0])

    def rows(self, variables: Sequence[str] | None) -> Rows:
        """Return the rows themselves: they have no variables by name."""
        return self


@dataclass(frozen=True)
class Quote:
    """What is paid, the public numbers that the draw goes by, and the guarantee of what is drawn, if it has one."""

    charge: Charge
    terms: Any
    guarantee: Any = None


Exact = TypeVar("Exact")
Answer_co = TypeVar("Answer_co", covariant=True)


class Mechanism(Protocol[Exact, Answer_co]):
    """A frozen value of public parameters. Failures that can be foreseen happen before the charge.

    `public` and `held` are of the kind of source that the mechanism is for: a :class:`PublicTable` and a :class:`Held`
    where it needs declared variables.
    """

    def quote(self, public: Any) -> Quote:
        """State the charge and the guarantee. No record is seen."""

    def read(self, quote: Quote, held: Any) -> Exact:
        """Compute the exact answer, which goes nowhere but to :meth:`draw`; a source that cannot give it fails here."""

    def draw(self, quote: Quote, public: Any, exact: Exact, noise: NoiseSource) -> Answer_co:
        """Draw the release, after the charge."""
