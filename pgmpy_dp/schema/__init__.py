"""The schema declares what is public of the records: variables, states and bins. Nothing is read off the records."""

from pgmpy_dp._files import parse_json
from pgmpy_dp.schema.bins import Bins
from pgmpy_dp.schema.schema import Clique, Schema
from pgmpy_dp.schema.states import State, plain

__all__ = ["Bins", "Clique", "Schema", "State", "parse_json", "plain"]
