"""Records of the experiments, simulated with public seeds from networks that pgmpy ships and from artificial ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp import evaluation

bnlearn_network = cache(evaluation.bnlearn_network)  # reading a network takes a second


def random_variables(network: DiscreteBayesianNetwork, sizes: list[int], seed: int) -> list[list[str]]:
    """Choose random sets of distinct variables of the given sizes."""
    generator = np.random.default_rng(seed)
    nodes = list(network.nodes())
    return [[nodes[i] for i in generator.choice(len(nodes), size, replace=False)] for size in sizes]


def random_naive_bayes(features: int, seed: int) -> DiscreteBayesianNetwork:
    """Create a naive Bayes network of a binary class and binary features, whose probabilities are drawn uniformly."""
    generator = np.random.default_rng(seed)
    network = DiscreteBayesianNetwork([("class", f"x{i}") for i in range(features)])
    network.add_cpds(TabularCPD("class", 2, [[0.5], [0.5]]))
    for i in range(features):
        yes = generator.random(2)
        network.add_cpds(TabularCPD(f"x{i}", 2, [1 - yes, yes], ["class"], [2]))
    return network


def random_days(people: int, places: int, slots: int, seed: int) -> np.ndarray:
    """Simulate each person's place in each slot of a day, 0 for nowhere; each person makes one to four short visits.

    Returns
    -------
    ndarray of int, shape (people, slots)
    """
    truth = np.random.default_rng(0)  # all populations share the same building
    popular = truth.dirichlet(np.full(places, 0.5))
    moves = 0.6 * np.eye(places) + 0.4 * truth.dirichlet(0.3 * places * popular + 0.02, places)
    generator = np.random.default_rng([1, seed])
    cumulative = moves.cumsum(axis=1)
    days = np.zeros((people, slots), dtype=np.int16)
    for visit in range(4):
        comes = generator.random(people) < 0.4**visit  # everybody visits at least once
        start = generator.integers(0, slots, people)
        end = np.minimum(start + generator.geometric(1 / 5, people), slots)
        place = generator.choice(places, people, p=popular)
        for slot in range(slots):
            here = comes & (start <= slot) & (slot < end)
            days[here, slot] = place[here] + 1
            place = np.minimum((generator.random((people, 1)) > cumulative[place]).sum(axis=1), places - 1)
    return days


def random_regression(features: int, count: int, std: float, seed: int) -> pd.DataFrame:
    """Draw features uniformly in [-1, 1], and a linear response with noise, clipped to [-1, 1]."""
    generator = np.random.default_rng(seed)
    columns = {f"x{i}": generator.uniform(-1, 1, count) for i in range(features)}
    weights = np.linspace(0.4, -0.2, features)
    mean = 0.1 + sum(weight * column for weight, column in zip(weights, columns.values(), strict=True))
    return pd.DataFrame({**columns, "y": np.clip(mean + generator.normal(0, std, count), -1, 1)})


def random_topics(topics: int, words: int, seed: int) -> np.ndarray:
    """Draw Dirichlet distributions over words with a Zipf distribution as mean; shape (topics, words)."""
    generator = np.random.default_rng(seed)
    zipf = 1.0 / np.arange(1, words + 1)
    return generator.dirichlet(np.maximum(50.0 * zipf / zipf.sum(), 1e-3), topics)


def random_documents(topics: np.ndarray, count: int, length: int, seed: int) -> Any:
    """Draw word counts with one sparse row per document, each of a few topics."""
    from scipy import sparse

    generator = np.random.default_rng([2, seed])
    parts = []
    for start in range(0, count, 500):
        shares = generator.dirichlet(np.full(len(topics), 0.1), min(500, count - start)) @ topics
        parts.append(sparse.csr_array(generator.multinomial(length, shares / shares.sum(axis=1, keepdims=True))))
    return sparse.csr_array(sparse.vstack(parts, format="csr"))
