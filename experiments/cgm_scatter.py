"""Fig. 3 a of Bernstein et al. (2017): true and learned edge marginals of one network."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.drawing import styles
from experiments.protocol import erdos_renyi
from experiments.runner import Experiment
from pgmpy_dp import papers
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.estimators.from_tables import CollectiveEM
from pgmpy_dp.estimators.not_private_mle import NotPrivateMLE
from pgmpy_dp.evaluation import random_markov_network
from pgmpy_dp.inference import FactorGraph, JunctionTree
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.observed.factors import log_linear
from pgmpy_dp.papers.bernstein_2017 import NaiveMLE
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise

STATES, SIZE, EPSILON = 20, 100_000, 0.1
LITTLE, DEFAULT = "naive MLE, little regularised", "naive MLE, default"
TREE, LOOPY = "CGM-EM", "CGM-EM, loopy propagation"
METHODS = ("non-private", LITTLE, DEFAULT, TREE, LOOPY, "CollectiveEM")
EM_ITERATIONS = 30  # number of CGM-EM iterations, from the naive fit with default regularisation
LOOPY_LIMITS: dict[str, Any] = {"tolerance": 1e-6, "max_iter": 200}
THINNED = 10  # one cell in so many is kept to be drawn
RESULTS = ("cell", "true", "learned", "error", "lost")


def trials(quick: bool) -> list[dict[str, Any]]:
    """List one fit per method; a quick run is the same."""
    return [{"method": method} for method in METHODS]


def run(method: str) -> list[dict[str, Any]]:
    """Return true and learned values of some cells, and of all cells the mean L1 error of an edge and the cells lost.

    A cell is lost if its learned value is below a hundredth of the true one.
    """
    truth = random_markov_network(erdos_renyi(seed=0), STATES, seed=0)
    records = truth.simulate(SIZE, seed=0)
    layout, theta, _ = log_linear(truth)
    data = PrivateDataset(records, truth.schema_, PrivacyBudget(EPSILON), noise=SimulatedNoise(0))
    source: Any = data.measure(layout.scopes, EPSILON)
    estimator: Any = {LITTLE: NaiveMLE(regularization=1e-6), "CollectiveEM": CollectiveEM()}.get(method, NaiveMLE())
    if method == "non-private":
        source, estimator = records, NotPrivateMLE(state_names=truth.schema_)
    true = JunctionTree.build(layout.cardinalities, layout.scopes).calibrate(theta).marginals
    own, fitted, _ = log_linear(PrivateMarkovNetwork(truth.edges()).fit(source, estimator), truth.schema_.states)
    tree = JunctionTree.build(own.cardinalities, own.scopes)
    if method in (TREE, LOOPY):
        engine = tree if method == TREE else FactorGraph.build(own.cardinalities, own.scopes, **LOOPY_LIMITS)
        noise = papers.tables_noise(own, source)
        fitted = papers.cgm_em(engine, fitted, noise, source.total, EM_ITERATIONS, "dual").potentials[-1]
    calibration = tree.calibrate(fitted)
    flat = layout.flatten(tree.marginal(calibration, scope) for scope in layout.scopes)  # axis orders may differ
    error, lost = float(np.abs(true - flat).sum() / len(layout.scopes)), int((flat < true / 100).sum())
    return [
        {"cell": cell, "true": round(float(true[cell]), 8), "learned": round(float(flat[cell]), 8)}
        | {"error": error, "lost": lost}
        for cell in range(0, true.size, THINNED)
    ]


def figure(rows: pd.DataFrame) -> Figure:
    """Draw one panel per method, with linear axes and with logarithmic ones."""
    drawn = Figure(figsize=(2.9 * len(METHODS), 6.0), layout="constrained")
    panels = drawn.subplots(2, len(METHODS), sharey="row")
    floor, ends = rows["true"].min() / 30, [rows["true"].min(), rows["true"].max()]
    style = styles(METHODS)
    for (above, below), method in zip(panels.T, METHODS, strict=True):
        held = rows[rows["method"] == method]
        for axes in (above, below):
            axes.plot(ends, ends, color="0.6", linewidth=1)
            learned = np.maximum(held["learned"], floor if axes is below else 0.0)
            axes.plot(held["true"], learned, ".", color=style[method][0], markersize=3, alpha=0.5)
            axes.set_xlabel("true edge marginal")
            axes.spines[["top", "right"]].set_visible(False)
        above.set(title=f"{method}\nmean L1 error {held['error'].iloc[0]:.3f}", ylim=(0.0, 2 * ends[1]))
        below.set(xscale="log", yscale="log", ylim=(floor / 1.3, 2 * ends[1]))
        above.title.set_fontsize(9)
    for axes in panels[:, 0]:
        axes.set_ylabel("learned")
    return drawn


def caption(rows: pd.DataFrame) -> str:
    """Write the caption: claim, outcome and reasons."""
    first = rows.groupby("method").first()
    apart = first["error"][list(METHODS)]
    ahead = "; ".join(sorted(METHODS, key=lambda method: float(apart[method])))
    errors = "; ".join(f"{method} {apart[method]:.3f}" for method in METHODS)
    lost = "; ".join(f"{method} {int(first['lost'][method])}" for method in METHODS)
    return f"""
        Edge marginals of a connected Erdos-Renyi graph of 10 variables with {STATES} states, from {SIZE:,} records at
        epsilon = {EPSILON}; one cell in {THINNED} is drawn. On the line they are right; above with linear axes, below
        with logarithmic ones, where cells below the axis are drawn at its foot.

        The paper (Bernstein et al. 2017, Fig. 3 a): CGM's marginals are much closer to the true ones, and to
        those of the non-private fit, than those of naive MLE.

        Here: mean L1 error of an edge's table: {errors}. Cells less than a hundredth of the truth: {lost}.

        From least to most error: {ahead}. CollectiveEM has {apart["CollectiveEM"] / apart[DEFAULT]:.3g}
        times the error of the naive fit with the library's default, which follows the noise, and
        {apart["CollectiveEM"] / apart[LITTLE]:.3g} times that of the naive fit with little
        regularisation; CGM-EM ({EM_ITERATIONS} iterations from the naive fit with the default, each E-step solved to
        its tolerance) has {apart[TREE] / apart[DEFAULT]:.3g} times the error of its start, and
        {apart[LOOPY] / apart[DEFAULT]:.3g} times with loopy propagation in place of a
        junction tree: exact marginals of what each learned. The paper gives neither N
        nor epsilon nor the regularisation of naive MLE nor the iterations of EM for this figure.
    """


SCATTER = Experiment(trials, run, RESULTS, figure, caption, version=4)
