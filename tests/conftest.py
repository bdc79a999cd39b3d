"""Networks and records that several tests share."""

from __future__ import annotations

import gzip
import importlib.resources
import subprocess
import sys
from functools import cache

import numpy as np
import pandas as pd
import pytest
from pgmpy.readwrite import BIFReader

from pgmpy_dp.estimators.networks import log_linear
from pgmpy_dp.inference import JunctionTree, sample


@cache
def bnlearn_network(name):
    """A network of the bnlearn repository, from pgmpy's wheel."""
    packed = importlib.resources.files("pgmpy").joinpath(f"utils/example_models/{name}.bif.gz")
    return BIFReader(string=gzip.decompress(packed.read_bytes()).decode()).get_model()


@cache
def simulated_records(name, count, seed):
    """Records drawn from that network."""
    layout, potentials, states = log_linear(bnlearn_network(name))
    tree = JunctionTree.build(layout.cardinalities, layout.scopes)
    codes = sample(tree, tree.calibrate(potentials), count, np.random.default_rng(seed))
    return pd.DataFrame({v: np.array(states[v])[codes[:, i]] for i, v in enumerate(tree.variables)})


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
    """Function: name to network."""
    return bnlearn_network


@pytest.fixture
def simulate():
    """Function: name, number of records and seed to records."""
    return simulated_records
