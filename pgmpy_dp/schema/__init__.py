"""Public declarations about the records: variables, states, bins and rules. Nothing here is read from records."""

from pgmpy_dp.schema.agreement import agree
from pgmpy_dp.schema.bins import Bins
from pgmpy_dp.schema.csv_format import CsvFormat
from pgmpy_dp.schema.date_bins import DateBins, TimeBins
from pgmpy_dp.schema.date_format import DateFormat
from pgmpy_dp.schema.household_schema import HouseholdSchema
from pgmpy_dp.schema.rules import Allowed, Dependency, Forbidden, Hierarchy, Rule
from pgmpy_dp.schema.schema import Clique, Schema
from pgmpy_dp.schema.states import State, is_text, plain

__all__ = [
    "Allowed",
    "Bins",
    "Clique",
    "CsvFormat",
    "DateBins",
    "DateFormat",
    "Dependency",
    "Forbidden",
    "Hierarchy",
    "HouseholdSchema",
    "Rule",
    "Schema",
    "State",
    "TimeBins",
    "agree",
    "is_text",
    "plain",
]
