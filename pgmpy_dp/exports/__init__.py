"""Networks as files for other programs, BIF, XMLBIF, UAI and JSON, and releases for other libraries, mbi and OpenDP."""

from pgmpy_dp.exports.measurements import from_contingency_table, from_mbi, to_mbi
from pgmpy_dp.models.formats.formats import SUFFIXES, save_network
from pgmpy_dp.networks import load_network

__all__ = ["SUFFIXES", "from_contingency_table", "from_mbi", "load_network", "save_network", "to_mbi"]
