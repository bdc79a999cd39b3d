"""Graphs and random baseline of Bernstein et al. (2017), and a search for settings, shared by the experiments."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np
import pandas as pd

from pgmpy_dp.evaluation.example_networks import set_potentials
from pgmpy_dp.fitting.readings.undirected import maximise_likelihood
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.observed.factors import markov_scopes
from pgmpy_dp.schema import Schema

Edges = list[tuple[str, str]]


# Factors by which the search multiplies each setting.
SEARCHED = {"learning_rate": (0.3, 3.0, 10.0), "steps": (0.25, 4.0), "sampling_rate": (0.25, 4.0), "clip_norm": (0.5,)}


@dataclass(frozen=True)
class Settings:
    """Settings of private gradients that the privacy accounting does not determine."""

    steps: int
    learning_rate: float
    sampling_rate: float
    clip_norm: float

    def times(self, name: str, factor: float) -> Settings:
        """Multiply one setting by a factor; sampling rates are capped at 1, and steps are rounded."""
        value = factor * getattr(self, name)
        changed = {"steps": round(value), "sampling_rate": min(value, 1.0)}.get(name, value)
        return replace(self, **{name: changed})

    def columns(self) -> dict[str, float]:
        """Return the settings as columns of a result table."""
        return {f"sgd_{name}": value for name, value in vars(self).items()}


SETTING_COLUMNS = tuple(Settings(1, 1.0, 1.0, 1.0).columns())


def settings_in_words(rows: pd.DataFrame) -> str:
    """Describe the ranges of the settings found, for a caption."""
    labels = ("steps", "learning rates", "sampling rates", "clip norms")
    return ", ".join(
        f"{label} of {rows[column].min():.3g} to {rows[column].max():.3g}"
        for label, column in zip(labels, SETTING_COLUMNS, strict=True)
    )


def wins(rows: pd.DataFrame, cell: list[str], one: str, other: str) -> int:
    """Count the cells in which one column is below another in the median of their differences, where both are known.

    Examples
    --------
    >>> wins(pd.DataFrame({"n": [1, 1, 2], "a": [1.0, 2.0, 5.0], "b": [3.0, np.nan, 4.0]}), ["n"], "a", "b")
    1
    """
    return int(((rows[one] - rows[other]).groupby([rows[key] for key in cell]).median() < 0).sum())


def search_in_turn(loss: Callable[[Settings], float], start: Settings) -> tuple[Settings, float]:
    """Minimise the loss over one setting after the other, with the others at their best: in hindsight, not private.

    Examples
    --------
    >>> search_in_turn(lambda one: abs(one.learning_rate - 3.0) + one.clip_norm, Settings(200, 1.0, 0.5, 1.0))
    (Settings(steps=200, learning_rate=3.0, sampling_rate=0.5, clip_norm=0.5), 0.5)
    """
    best, least = start, loss(start)
    for name, factors in SEARCHED.items():
        tried = {one: loss(one) for one in dict.fromkeys(best.times(name, factor) for factor in factors)}
        nearest = min(tried, key=tried.__getitem__)
        if tried[nearest] < least:
            best, least = nearest, tried[nearest]
    return best, least


def third_order_chain(nodes: int = 10) -> Edges:
    """Return the edges of a chain whose nodes are joined if at most three steps apart.

    Examples
    --------
    >>> len(third_order_chain(10))
    24
    """
    return [(f"x{i}", f"x{j}") for i in range(nodes) for j in range(i + 1, min(nodes, i + 4))]


def erdos_renyi(nodes: int = 10, probability: float = 0.3, seed: int = 0) -> Edges:
    """Draw Erdos-Renyi graphs until one is connected, and return its edges.

    The paper does not state the edge probability.

    Raises
    ------
    ValueError
        If the edge probability is not above 0 and at most 1.
    """
    if not 0 < probability <= 1:
        raise ValueError(f"probability is {probability!r}; it must be above 0 and at most 1.")
    generator = np.random.default_rng(seed)
    while True:
        graph = nx.gnp_random_graph(nodes, probability, seed=int(generator.integers(2**31)))
        if nx.is_connected(graph):
            return [(f"x{i}", f"x{j}") for i, j in sorted(graph.edges())]


def random_marginals_fit(edges: Edges, schema: Schema, seed: int) -> PrivateMarkovNetwork:
    """Fit the random baseline: marginals drawn from a flat Dirichlet distribution, by maximum likelihood.

    The paper does not state its distribution. The weak regularisation (1e-4 per record), which ensures that a maximum
    exists, dominates the result.
    """
    generator = np.random.default_rng(seed)
    network = PrivateMarkovNetwork(edges)
    tree = JunctionTree.build(schema.cardinalities(), markov_scopes(network))
    tables = [generator.dirichlet(np.ones(math.prod(shape))).reshape(shape) for shape in tree.layout.shapes]
    potentials, _ = maximise_likelihood(tree, tree.layout.flatten(tables), 1e-4, 1000, 1e-6)
    set_potentials(network, tree, potentials, schema)
    return network
