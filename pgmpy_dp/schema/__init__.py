"""The schema declares what is public of the records: variables, states, bins, rules. Nothing is read off records."""

from pgmpy_dp._files import parse_json
from pgmpy_dp.schema.bins import Bins
from pgmpy_dp.schema.household_schema import HouseholdSchema
from pgmpy_dp.schema.rules import Allowed, Dependency, Forbidden, Rule
from pgmpy_dp.schema.schema import Clique, Schema
from pgmpy_dp.schema.states import State, plain

__all__ = [
    "Allowed",
    "Bins",
    "Clique",
    "Dependency",
    "Forbidden",
    "HouseholdSchema",
    "Rule",
    "Schema",
    "State",
    "parse_json",
    "plain",
]
