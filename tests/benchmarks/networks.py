"""Every bnlearn network in pgmpy's wheel: cells, one calibration, a fit of CollectiveEM, and the peak of memory.

python tests/benchmarks/networks.py [--plot cells.png] [network ...]
"""

import argparse
import importlib.resources
import json
import subprocess
import sys
import time
import warnings
from pathlib import Path

import matplotlib
import networkx as nx
import numpy as np
import pandas as pd
from common import peak_megabytes, private
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.inference import JunctionTree, build_engine
from pgmpy_dp.observed.factors import log_linear

sys.path.append(str(Path(__file__).parents[2]))
from experiments.peer_comparisons import example_network

RECORDS = 10_000


def forward_samples(network, generator) -> pd.DataFrame:
    """Records drawn node after node: no junction tree is needed."""
    codes: dict[str, np.ndarray] = {}
    for node in nx.topological_sort(network):
        cpd = network.get_cpds(node)
        row = np.zeros(RECORDS, dtype=np.int64)
        for parent, states in zip(cpd.variables[1:], cpd.cardinality[1:], strict=True):
            row = row * states + codes[parent]
        cumulative = np.cumsum(cpd.values.reshape(cpd.variable_card, -1), axis=0).T[row]
        codes[node] = (generator.random((RECORDS, 1)) * cumulative[:, -1:] > cumulative).sum(axis=1)
    states = network.states
    return pd.DataFrame({node: pd.Categorical.from_codes(codes[node], list(map(str, states[node]))) for node in codes})


def measure(name: str) -> dict[str, object]:
    """CPU seconds: a busy machine does not change them much."""
    network = example_network(name)
    records = forward_samples(network, np.random.default_rng(0))
    layout, potentials, _ = log_linear(network)
    start = time.process_time()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        engine = build_engine(layout.cardinalities, layout.scopes)
    built = time.process_time() - start
    exact = isinstance(engine, JunctionTree)
    engine.calibrate(potentials)
    seconds = []
    while len(seconds) < 3 or (sum(seconds) < 0.5 and len(seconds) < 50):
        start = time.process_time()
        engine.calibrate(potentials)
        seconds.append(time.process_time() - start)
    schema = dp.Schema({node: list(map(str, network.states[node])) for node in network.nodes()})
    blank = DiscreteBayesianNetwork(network.edges())
    blank.add_nodes_from(network.nodes())
    del network, engine
    data = private(records, schema, 1.0)
    start = time.process_time()
    blank.fit(data, estimator=dp.CollectiveEM(epsilon=1.0))
    fitted = time.process_time() - start
    cells = sum(
        int(np.prod([layout.cardinalities[v] for v in clique]))
        for clique in JunctionTree.cliques_of(layout.cardinalities, layout.scopes)
    )
    return {
        "name": name, "nodes": len(schema.variables), "cells": cells, "exact": exact, "build": built,
        "calibration": float(np.median(seconds)), "fit": fitted, "megabytes": peak_megabytes(),
        "said": [str(warning.message) for warning in said],
    }  # fmt: skip


def plot(found: list[dict], path: str) -> None:
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(9, 6), layout="constrained")
    exact = sorted((row for row in found if row["exact"]), key=lambda row: (row["cells"], row["name"]))
    cells = np.array([row["cells"] for row in exact])
    for what, marker, colour in (("calibration", "o", "#0072B2"), ("fit", "s", "#D55E00")):
        axes.loglog(cells, [row[what] for row in exact], marker, color=colour, label=what, zorder=3)
    # Names at even distances along the top, in the order of the cells, cannot overlap.
    for place, row in zip(np.linspace(0.02, 0.98, len(exact)), exact, strict=True):
        axes.annotate(
            row["name"], (row["cells"], row["fit"]), (place, 1.02), textcoords="axes fraction", rotation=90,
            ha="center", va="bottom", fontsize=8, arrowprops={"arrowstyle": "-", "color": "0.8", "linewidth": 0.6},
        )  # fmt: skip
        axes.plot([row["cells"]] * 2, [row["calibration"], row["fit"]], color="0.8", linewidth=0.6)
    each = float(np.median([row["calibration"] / row["cells"] for row in exact if row["cells"] >= 1000] or [1e-8]))
    axes.loglog(cells, each * cells, color="#0072B2", linewidth=0.8, label=f"{1e9 * each:.1f} ns a cell")
    axes.set(xlabel="table cells of the junction tree", ylabel="CPU seconds")
    axes.legend(frameon=False, loc="lower right")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("networks", nargs="*")
    parser.add_argument("--plot")
    parser.add_argument("--one", action="store_true", help="print one network as JSON")
    chosen = parser.parse_args()
    if chosen.one:
        print(json.dumps(measure(chosen.networks[0])))
        sys.exit()
    folder = importlib.resources.files("pgmpy").joinpath("utils/example_models")
    names = sorted(item.name.removesuffix(".bif.gz") for item in folder.iterdir() if item.name.endswith(".bif.gz"))
    rows = []
    for name in chosen.networks or names:
        run = subprocess.run([sys.executable, __file__, "--one", name], capture_output=True, text=True, check=False)
        if run.returncode:
            print(f"{name:<12} FAILED: {run.stderr.strip().splitlines()[-1]}", flush=True)
            continue
        row = json.loads(run.stdout.splitlines()[-1])
        rows.append(row)
        print(
            f"{row['name']:<12}{row['nodes']:>6} nodes {row['cells']:>12,} cells, built in {row['build']:.2f} s, "
            f"calibration {1e3 * row['calibration']:.3f} ms, {1e9 * row['calibration'] / row['cells']:.1f} ns a cell, "
            f"fit {row['fit']:.2f} s, peak {row['megabytes']:.0f} MB",
            *row["said"],
            flush=True,
        )
        if chosen.plot and len(rows) > 1:
            plot(rows, chosen.plot)
