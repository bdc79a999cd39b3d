"""Fitted networks as files for other programs: BIF, XMLBIF, UAI and JSON."""

from pgmpy_dp.exports.files import SUFFIXES, load_network, save_network

__all__ = ["SUFFIXES", "load_network", "save_network"]
