"""Private households with all of their persons, behind a ledger."""

from __future__ import annotations

from typing import Any

from pgmpy_dp.data.dataset import PrivateDataset
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.noise import OPENDP_NOISE, NoiseSource
from pgmpy_dp.records.households import HouseholdTables
from pgmpy_dp.schema import HouseholdSchema


class PrivateHouseholds(PrivateDataset):
    """Two private tables, households and their persons, with one privacy budget.

    The unit of privacy is a household with all of its persons: neighbours differ in a row of households and in all
    persons with its key. Whatever a household contains, it has a weight of 1 in each table that is measured.

    Parameters
    ----------
    households, persons : frame or path
        A pandas, Polars or PyArrow frame, a :class:`~pgmpy_dp.CsvFile`, or the path of one CSV or Parquet file. Both
        have the key column. Each household must have exactly one row and at least one person, and each person a
        household; other tables are refused. The order of rows does not matter.
    schema : HouseholdSchema
        The variables that can be measured are those of ``schema.measured``.
    budget : PrivacyBudget
    neighbours : {"add_remove", "replace_one"}
        One household added or removed (their number is private), or one changed (their number is public). The number of
        persons is private.
    noise : NoiseSource
        As for :class:`~pgmpy_dp.PrivateDataset`.

    Raises
    ------
    SchemaError
        If the tables do not match the schema, or their keys do not match. The message shows no value of a record.
    TypeError, ValueError
        If another argument is of the wrong kind.

    Notes
    -----
    Each table counts households. In a table over variables of persons, a household is divided equally among its
    persons; in one over two persons, such as ``("age", "another age")``, among its ordered pairs of persons. A table
    thus describes a random household and then one or two random persons of it, and its noise does not grow with
    `max_persons`, as it must where persons are counted. Numbers of persons follow from tables with the size.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> homes = pd.DataFrame({"id": range(400), "tenure": ["owned", "rented"] * 200})
    >>> people = pd.DataFrame({"id": [*range(400), *range(0, 400, 2)], "age": ["adult"] * 400 + ["child"] * 200})
    >>> tenure, age = dp.Schema({"tenure": ["owned", "rented"]}), dp.Schema({"age": ["child", "adult"]})
    >>> schema = dp.HouseholdSchema(tenure, age, key="id", max_persons=3)
    >>> data = dp.PrivateHouseholds(homes, people, schema, dp.PrivacyBudget(2.0))
    >>> noisy = data.measure([("tenure", "size"), ("tenure", "age"), ("age", "another age")], epsilon=2.0)
    >>> print(noisy.guarantee)  # doctest: +NORMALIZE_WHITESPACE
    differentially private with epsilon = 2.0, for one id (all rows, of weight 1 together) added or removed
    (discrete Laplace noise)
    >>> noisy.tables["tenure", "age"].round(-2).astype(int).tolist()
    [[100, 100], [0, 200]]
    """

    def __init__(
        self,
        households: Any,
        persons: Any,
        schema: HouseholdSchema,
        budget: PrivacyBudget,
        neighbours: str = "add_remove",
        noise: NoiseSource = OPENDP_NOISE,
    ) -> None:
        if not isinstance(schema, HouseholdSchema):
            raise TypeError(f"schema must be a HouseholdSchema, got {type(schema).__name__}.")
        self._households, tables = schema, HouseholdTables(households, persons, schema)
        super().__init__(tables, schema.measured, budget, neighbours, noise, unit=schema.key)

    @property
    def household_schema(self) -> HouseholdSchema:
        """The schema of both tables."""
        return self._households

    def __repr__(self) -> str:
        homes, people = (len(own.variables) for own in (self._households.households, self._households.persons))
        return (
            f"PrivateHouseholds({homes} + {people} variables, key={self._households.key!r}, "
            f"neighbours={self._neighbours!r}, budget={self._budget!r})"
        )
