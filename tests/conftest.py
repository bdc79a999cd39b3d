"""Networks and records that several tests share."""

from __future__ import annotations

import subprocess
import sys
from functools import cache

import pytest

from pgmpy_dp import networks
from pgmpy_dp.evaluation import bnlearn_network

_network = cache(bnlearn_network)


@cache
def _records(name, count, seed):
    return networks.simulate(_network(name), count, seed)


def _together(code, path):
    """What three processes print that are handed a path, say "ready" and go on together at a line of input."""
    command = [sys.executable, "-W", "ignore", "-c", code, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0] for process in processes]


@pytest.fixture
def started_together():
    """Function: code and a path to what three processes print that run it at the same time."""
    return _together


@pytest.fixture
def bnlearn():
    """Function: name to network of the bnlearn repository."""
    return _network


@pytest.fixture
def simulate():
    """Function: name, number of records and seed to records drawn from that network."""
    return _records
