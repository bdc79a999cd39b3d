"""Fig. 3 a of Bernstein et al. (2017): true and learned edge marginals of one network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pgmpy_dp import papers
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.estimators import CollectiveEM, NotPrivateMLE
from pgmpy_dp.evaluation import random_markov_network
from pgmpy_dp.inference import FactorGraph, JunctionTree
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.observed.factors import log_linear
from pgmpy_dp.papers.experiments.protocol import erdos_renyi
from pgmpy_dp.papers.experiments.runner import Experiment
from pgmpy_dp.papers.naive_mle import NaiveMLE
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise

STATES, SIZE, EPSILON = 20, 100_000, 0.1
PUBLISHED = ("published", "published loopy")
METHODS = ("non-private", "naive MLE, little regularised", "naive MLE, default", *PUBLISHED, "CollectiveEM")
EM_ITERATIONS = 30  # number of CGM-EM iterations, from the naive fit with default regularisation
RESULTS = ("cell", "true", "learned")


def trials(quick: bool) -> list[dict[str, Any]]:
    """List one fit per method; a quick run is the same."""
    return [{"method": method} for method in METHODS]


def run(method: str) -> list[dict[str, Any]]:
    """Return the true and learned cells of all edge tables."""
    truth = random_markov_network(erdos_renyi(seed=0), STATES, seed=0)
    records = truth.simulate(SIZE, seed=0)
    layout, theta, _ = log_linear(truth)
    data = PrivateDataset(records, truth.schema_, PrivacyBudget(EPSILON), noise=SimulatedNoise(0))
    source: Any = data.measure(layout.scopes, EPSILON)
    estimator: Any = {
        "naive MLE, little regularised": NaiveMLE(regularization=1e-6),
        "naive MLE, default": NaiveMLE(),
        **dict.fromkeys(PUBLISHED, NaiveMLE()),  # starting point
        "CollectiveEM": CollectiveEM(),
    }.get(method)
    if estimator is None:
        source, estimator = records, NotPrivateMLE(state_names=truth.schema_)
    true = JunctionTree.build(layout.cardinalities, layout.scopes).calibrate(theta).marginals
    own, fitted, _ = log_linear(PrivateMarkovNetwork(truth.edges()).fit(source, estimator), truth.schema_.states)
    tree = JunctionTree.build(own.cardinalities, own.scopes)
    if method in PUBLISHED:
        noise = papers.tables_noise(own, source)
        loopy = FactorGraph.build(own.cardinalities, own.scopes, tolerance=1e-6)
        engine = tree if method == PUBLISHED[0] else loopy
        fitted = papers.cgm_em(engine, fitted, noise, source.total, EM_ITERATIONS, "nlbp", 50).potentials[-1]
    calibration = tree.calibrate(fitted)
    flat = layout.flatten(tree.marginal(calibration, scope) for scope in layout.scopes)  # axis orders may differ
    pairs = enumerate(zip(true, flat, strict=True))
    return [{"cell": cell, "true": float(p), "learned": float(q)} for cell, (p, q) in pairs]


def figure(rows: pd.DataFrame) -> Figure:
    """Draw one panel per method."""
    drawn = Figure(figsize=(17.4, 3.4), layout="constrained")
    floor = rows["true"].min() / 30
    for number, method in enumerate(METHODS):
        held = rows[rows["method"] == method]
        axes = drawn.add_subplot(1, len(METHODS), number + 1)
        axes.loglog(held["true"], np.maximum(held["learned"], floor), ".", color="#0072B2", markersize=2, alpha=0.4)
        ends = [rows["true"].min(), rows["true"].max()]
        axes.plot(ends, ends, color="#D55E00", linewidth=1)
        axes.set(title=method, xlabel="true edge marginal", ylim=(floor / 1.3, 2 * rows["true"].max()))
        axes.set_ylabel("learned" if number == 0 else "")
        axes.spines[["top", "right"]].set_visible(False)
    return drawn


def caption(rows: pd.DataFrame) -> str:
    """Write the caption: claim, outcome and reasons."""
    apart = (rows["true"] - rows["learned"]).abs().groupby(rows["method"]).sum() / (
        len(rows) / len(METHODS) / STATES**2
    )
    order = apart[list(METHODS)].sort_values().index
    ahead = "; ".join(order)
    errors = "; ".join(f"{method} {apart[method]:.3g}" for method in METHODS)
    drowned = rows[rows["learned"] < rows["true"] / 100].groupby("method").size()
    lost = "; ".join(f"{method} {int(drowned.get(method, 0))}" for method in METHODS)
    return f"""
        All edge marginals of a connected Erdos-Renyi graph of 10 variables with {STATES} states, from {SIZE:,}
        records at epsilon = {EPSILON}. On the line they are right; cells below the axis are drawn at its foot.

        The paper (Bernstein et al. 2017, Fig. 3 a): CGM's marginals are much closer to the true ones, and to
        those of the non-private fit, than those of naive MLE.

        Here: mean L1 error of an edge's table: {errors}. Cells less than a hundredth of the truth: {lost}.

        From least to most error: {ahead}. CollectiveEM has {apart["CollectiveEM"] / apart["naive MLE, default"]:.3g}
        times the error of the naive fit with the library's default, which follows the noise, and
        {apart["CollectiveEM"] / apart["naive MLE, little regularised"]:.3g} times that of the naive fit with little
        regularisation; CGM-EM ({EM_ITERATIONS} iterations from the naive fit with the default) has
        {apart["published"] / apart["naive MLE, default"]:.3g} times the error of its start, and
        {apart["published loopy"] / apart["naive MLE, default"]:.3g} times with loopy propagation in place of a
        junction tree: exact marginals of what each learned. The paper gives neither N
        nor epsilon nor the regularisation of naive MLE nor the iterations of EM for this figure.
    """


SCATTER = Experiment(trials, run, RESULTS, figure, caption, version=3)
