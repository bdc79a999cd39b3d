"""The first answer with bounds: seconds of the processor, which include the test of fit, and the draws.

    python tests/benchmarks/first_bounds.py [LINE ...]

Each line is a process of its own. A model is fitted, and asked with `interval=0.9` for the first time, for other
states, and for other variables. Nodes of the networks follow one or two of the ten before them; columns of the mixture
are those of width.py. Epsilon is 1, noise simulated.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
from common import a_process_each, private
from width import fitted, made_up

import pgmpy_dp as dp

# Records, nodes, edges, minimum and maximum number of states.
NETWORKS = {"494 nodes": (10_000, 494, 608, 4, 4), "28 nodes": (30_000, 28, 40, 2, 9)}
MIXTURES = {"100 x 2": (20_000, 100, 2)}


def network(records: int, nodes: int, edges: int, minimum: int, maximum: int) -> Any:
    """Draw a network and records of it, and fit it."""
    generator = np.random.default_rng(0)
    states, parents = generator.integers(minimum, maximum + 1, nodes), [set[int]() for _ in range(nodes)]
    for node in range(1, nodes):
        parents[node].add(int(generator.integers(max(0, node - 10), node)))
    while sum(map(len, parents)) < edges:
        node = int(generator.integers(2, nodes))
        if len(parents[node]) < 2:
            parents[node].add(int(generator.integers(max(0, node - 10), node)))
    codes: list[Any] = []
    for node in range(nodes):
        row = np.zeros(records, dtype=np.int64)
        for parent in parents[node]:
            row = row * states[parent] + codes[parent]
        rows = int(np.prod([states[parent] for parent in parents[node]]))
        sums = generator.dirichlet(np.full(states[node], 0.5), rows).cumsum(axis=1)[row]
        codes.append((generator.random((records, 1)) > sums).sum(axis=1).clip(0, states[node] - 1))
    schema = dp.Schema({f"c{node}": list(range(int(count))) for node, count in enumerate(states)})
    frame = pd.DataFrame({f"c{node}": own for node, own in enumerate(codes)})
    joined = [(f"c{parent}", f"c{node}") for node in range(nodes) for parent in parents[node]]
    return dp.PrivateBayesianNetwork(joined).fit(private(frame, schema, 1.0), estimator=dp.AutoMLE(1.0))


def run(line: str) -> Iterator[str]:
    """Run a line, and yield what it prints."""
    model = network(*NETWORKS[line]) if line in NETWORKS else fitted(*made_up(*MIXTURES[line]))
    middle = len(model.schema_.variables) // 2
    questions = ("first", middle, 2, 0), ("again", middle, 2, 1), ("others", middle - 4, 3, 0)
    for name, asked, before, state in questions:
        start, used = time.perf_counter(), time.process_time()
        model.query([f"c{asked}"], {f"c{asked - before}": state}, interval=0.9)
        yield f"{name} {time.perf_counter() - start:6.2f} s {time.process_time() - used:6.2f} CPU s"


if __name__ == "__main__":
    a_process_each([*NETWORKS, *MIXTURES], run)
