"""Records of households, from two tables and their key: each household with its persons, and pairs of them.

Three views of a household with K persons (K at most `max_persons`, to which larger households are sampled uniformly)
are counted:

- its own columns and K, once;
- these with the columns of one of its persons, K times with a weight of 1 / K;
- these with the columns of two of its persons, K (K - 1) times, in both orders, with a weight of 1 / (K (K - 1)). A
  person alone is paired with nobody, once.

Sensitivity. All rows of a household are found by its key in both tables. What it adds to a table of counts depends only
on them and, where persons are sampled, on random draws of its own. In every view this sums to at most UNIT_WEIGHT
parts: floor(UNIT_WEIGHT / R) per row, R times. So the tables of neighbours, which differ in one household with all of
its persons, differ as :func:`~pgmpy_dp.privacy.noise.table_sensitivity` states for a unit with a weight of 1,
however many persons it has. (Counts of persons would differ by `max_persons`, and need that much more noise.)

All three are margins of one distribution per household, of weight 1 up to rounding: draw one of its persons, then
another. Models may rely on that; the sensitivity does not. Tables are priced one by one, each by the argument above,
and their costs add up.

The weights bias neither statistics of households nor those of persons given the size of the household: size is a
variable, by which counts of persons follow from these tables.

The whole source is refused, before anything is charged and without naming a row, if it contains a row without a key,
two rows of households with one key, a person of no household, or a household without persons. So every household has a
key of its own, and no other household's rows decide whether and how it is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.noise import UNIT_WEIGHT
from pgmpy_dp.records.columns import Codes, ValueCounts, read_columns, with_derived
from pgmpy_dp.records.memory import Counts, count_all, no_values, require_numbers, require_summable
from pgmpy_dp.records.refusals import sealed
from pgmpy_dp.records.units import Unit, number_ids, require_ids, row_weights, sampled_rows
from pgmpy_dp.schema import Clique, HouseholdSchema, Schema

Places = NDArray[np.int64]


@dataclass(frozen=True)
class HouseholdRecords:
    """Households and their persons in memory, as positions of states."""

    schema: HouseholdSchema
    households: Mapping[str, Codes]
    persons: Mapping[str, Codes]
    owners: Places  # the household of each person, ascending
    size: int
    measured: Schema  # the variables of both tables and of another person, and groups of their states

    def counts(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        """Count households in each cell of each clique, in integer parts of their weight, in its smallest view."""
        require_numbers((), self.measured, cliques)
        views: list[list[Clique]] = [[], [], []]
        for clique in cliques:
            own = read_columns(self.measured, clique)
            paired, alone = (any(v in names for v in own) for names in (self.schema.another, self.persons))
            views[2 if paired else int(alone)].append(clique)
        once, by_person, by_pair = views
        used = dict.fromkeys(variable for clique in once for variable in clique)
        counted = count_all(with_derived(self.households, self.measured, used), self.measured, once) if once else {}
        tables = {clique: table * UNIT_WEIGHT for clique, table in counted.items()}
        if by_person:
            each = np.arange(self.owners.size)
            tables |= self._weighed(by_person, each, each, row_weights(self.owners))
        tables |= self._by_pair(by_pair) if by_pair else {}
        return {clique: tables[clique] for clique in cliques}

    def under(self, schema: Schema) -> HouseholdRecords:
        """Return the same households under a schema with groups of their states."""
        return replace(self, measured=schema)

    def value_counts(self, variable: str) -> ValueCounts:
        """Raise, since a household's persons share its weight and are not counted by rows."""
        raise no_values(variable)

    def _by_pair(self, cliques: Sequence[Clique]) -> dict[Clique, Counts]:
        others = np.maximum(self._sizes - 1, 1)
        first = np.repeat(np.arange(self.owners.size), others)
        turn = np.arange(first.size) - np.repeat(np.cumsum(others) - others, others)
        starts = np.searchsorted(self.owners, self.owners)
        second = starts[first] + (first - starts[first] + 1 + turn) % self._sizes[first]
        return self._weighed(cliques, first, second, UNIT_WEIGHT // (self._sizes * others)[first])

    @cached_property
    def _sizes(self) -> Places:
        """Return the number of persons in the household of each person."""
        return np.bincount(self.owners)[self.owners]

    def _weighed(
        self, cliques: Sequence[Clique], first: Places, second: Places, weights: Places
    ) -> dict[Clique, Counts]:
        codes: dict[str, Codes] = {}
        used = dict.fromkeys(variable for clique in cliques for variable in clique)
        for variable in read_columns(self.measured, used):
            if variable in self.households:
                codes[variable] = self.households[variable][self.owners[first]]
            elif variable in self.persons:
                codes[variable] = self.persons[variable][first]
            else:
                nobody = self.measured.cardinality(variable) - 1
                own = self.persons[self.schema.another[variable]].astype(np.min_scalar_type(nobody))
                codes[variable] = np.where(first == second, own.dtype.type(nobody), own[second])
        return count_all(with_derived(codes, self.measured, used), self.measured, cliques, weights)


@dataclass(frozen=True)
class HouseholdTables:
    """Two tables of records to be joined, of households and of their persons, in memory or in files."""

    households: Any
    persons: Any
    schema: HouseholdSchema


def joined(
    schema: HouseholdSchema, households: tuple[dict[str, Codes], Any], persons: tuple[dict[str, Codes], Any], unit: Unit
) -> HouseholdRecords:
    """Join two tables of codes and keys; of larger households, sample the persons that are counted."""
    (homes, home_ids), (people, ids) = households, persons
    owners = _rows_of_households(home_ids, ids, schema.key)
    drawn = sampled_rows(owners, Unit(schema.key, schema.max_persons, unit.keys))
    rows = np.flatnonzero(drawn)
    rows = rows[np.argsort(owners[rows], kind="stable")]
    sizes = np.bincount(owners[rows])
    homes[schema.size] = (sizes - 1).astype(np.min_scalar_type(schema.max_persons))
    kept = {variable: column[rows] for variable, column in people.items()}
    return HouseholdRecords(schema, homes, kept, owners[rows], sizes.size, schema.measured)


def _rows_of_households(home_ids: Any, ids: Any, key: str) -> Places:
    """Return the row of each person's household; refuse keys that do not match."""
    labels, count = sealed(lambda: number_ids(key, home_ids, ids), f"the column {key!r} of keys"), len(home_ids)
    require_ids(bool((labels < 0).any()), key)
    require_summable(labels.size)
    homes, owners = labels[:count], labels[count:]
    if (homes != np.arange(count)).any():
        raise SchemaError(
            f"Households have the same key {key!r}: each needs one row and a key of its own. Households come first and "
            "persons second: are the tables swapped?"
        )
    if (owners >= count).any():
        raise SchemaError(
            f"Persons have keys {key!r} that no household has: leave them out, or add their households. Keys must "
            "have the same type too ('1' is not 1); those in a .csv file are texts."
        )
    if np.unique(owners).size < count:
        raise SchemaError(
            f"Households have no person with their key {key!r}: leave them out, and measure empty ones as a data set "
            "of their own."
        )
    return owners
