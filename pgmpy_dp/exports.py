"""Networks as files for other programs: BIF, XMLBIF, UAI and JSON."""

from pgmpy_dp.networks import SUFFIXES, load_network, save_network

__all__ = ["SUFFIXES", "load_network", "save_network"]
