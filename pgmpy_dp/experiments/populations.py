"""Where the experiments' records come from: networks that pgmpy ships, and made-up ones, with public seeds."""

from __future__ import annotations

import gzip
import importlib.resources
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.readwrite import BIFReader

from pgmpy_dp.estimators.networks import log_linear
from pgmpy_dp.inference import JunctionTree, sample


@cache
def bnlearn_network(name: str) -> DiscreteBayesianNetwork:
    """A network of the bnlearn repository, from pgmpy's own files."""
    packed = importlib.resources.files("pgmpy").joinpath(f"utils/example_models/{name}.bif.gz")
    return BIFReader(string=gzip.decompress(packed.read_bytes()).decode()).get_model()


def sampled_records(network: DiscreteBayesianNetwork, count: int, seed: int) -> pd.DataFrame:
    """Records drawn from a network."""
    layout, potentials, states = log_linear(network)
    tree = JunctionTree.build(layout.cardinalities, layout.scopes)
    codes = sample(tree, tree.calibrate(potentials), count, np.random.default_rng(seed))
    return pd.DataFrame({v: np.array(states[v])[codes[:, i]] for i, v in enumerate(tree.variables)})


def random_variables(network: DiscreteBayesianNetwork, sizes: list[int], seed: int) -> list[list[str]]:
    """Random sets of distinct variables, of these sizes."""
    generator = np.random.default_rng(seed)
    nodes = list(network.nodes())
    return [[nodes[i] for i in generator.choice(len(nodes), size, replace=False)] for size in sizes]


def random_naive_bayes(features: int, seed: int) -> DiscreteBayesianNetwork:
    """A binary class and binary features, the features' probabilities uniform."""
    generator = np.random.default_rng(seed)
    network = DiscreteBayesianNetwork([("class", f"x{i}") for i in range(features)])
    network.add_cpds(TabularCPD("class", 2, [[0.5], [0.5]]))
    for i in range(features):
        yes = generator.random(2)
        network.add_cpds(TabularCPD(f"x{i}", 2, [1 - yes, yes], ["class"], [2]))
    return network


def marginals(network: Any, variable_sets: list[list[str]]) -> list[np.ndarray]:
    """Joint distributions of sets of variables, by variable elimination; axes in the order of each set."""
    from pgmpy.inference import VariableElimination

    elimination = VariableElimination(network)
    answers = []
    for variables in variable_sets:
        factor = elimination.query(variables, show_progress=False)
        values = np.asarray(factor.values)
        answers.append(values.transpose([factor.variables.index(v) for v in variables]))
    return answers
