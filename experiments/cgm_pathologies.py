"""Fig. 1 of Bernstein et al. (2017): failures of naive maximum likelihood from noisy marginals."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.drawing import plot_quartiles
from experiments.protocol import erdos_renyi, third_order_chain
from experiments.runner import Experiment
from pgmpy_dp.data import PrivateDataset, exact_marginals
from pgmpy_dp.estimators.not_private_mle import NotPrivateMLE
from pgmpy_dp.evaluation import kl_divergence, random_markov_network
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.observed.factors import log_linear
from pgmpy_dp.papers.bernstein_2017 import NaiveMLE
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise

# Epsilon and number of states of each part, from the paper if stated; it does not state epsilon in (a).
EPSILON = {"slopes": 0.1, "projection": 0.5, "regularization": 0.1}
STATES = {"slopes": 10, "projection": 20, "regularization": 10}
REGULARIZED_SIZE = 100_000
LITTLE = 1e-6  # regularisation weight that does not depend on the noise
PROJECTIONS = ("projected", "not projected", "projected, little regularised", "not projected, little regularised")
LABELS = {"noisy": "naive MLE, noisy statistics", "exact": "non-private"}
RESULTS = ("series", "value")


def trials(quick: bool) -> list[dict[str, Any]]:
    """List the trials of three parts; each trial is a separate release."""
    releases = range(2 if quick else 5)
    sizes = [10**4, 10**5, 10**6] if quick else [10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6]
    weights = [10.0**-power for power in (range(0, 7, 2) if quick else range(8))]
    return [
        *({"part": "slopes", "size": n, "weight": 0.0, "release": r} for n in sizes for r in releases),
        *({"part": "projection", "size": n, "weight": 0.0, "release": r} for n in sizes for r in releases),
        *(
            {"part": "regularization", "size": REGULARIZED_SIZE, "weight": w, "release": r}
            for w in weights
            for r in releases
        ),
    ]


def run(part: str, size: int, weight: float, release: int) -> list[dict[str, Any]]:
    """Run one release; each row is a value of one curve."""
    truth = _truth(part)
    records = _records(part, size, release)
    layout, theta, _ = log_linear(truth)
    noise = SimulatedNoise([size, release, len(part)])
    data = PrivateDataset(records, truth.schema_, PrivacyBudget(EPSILON[part]), noise=noise)
    noisy = data.measure(layout.scopes, EPSILON[part])
    if part == "slopes":
        marginals = JunctionTree.build(layout.cardinalities, layout.scopes).calibrate(theta).marginals
        exact = exact_marginals(records, truth.schema_, layout.scopes)
        variance = layout.per_cell([noisy.variances[scope] for scope in layout.scopes]) / size**2
        series = {
            "noisy": _square_error(layout.flatten(noisy.tables[s] for s in layout.scopes) / size, marginals),
            "exact": _square_error(layout.flatten(exact.tables[s] for s in layout.scopes) / size, marginals),
            "sampling, 1/N": float((marginals * (1 - marginals)).mean() / size),
            "privacy, 1/N^2": float(variance.mean()),
        }
    elif part == "projection":
        series = {
            f"{label}{little}": _divergence(truth, NaiveMLE(regularization=weight, projection=projected), noisy)
            for label, projected in (("projected", True), ("not projected", False))
            for little, weight in (("", None), (", little regularised", LITTLE))
        }
    else:
        exact_fit = NotPrivateMLE(state_names=truth.schema_, regularization=weight, max_iter=500)
        series = {
            "noisy": _divergence(truth, NaiveMLE(regularization=weight), noisy),
            "exact": _divergence(truth, exact_fit, records),
        }
    return [{"series": label, "value": value} for label, value in series.items()]


@cache
def _truth(part: str) -> PrivateMarkovNetwork:
    edges = erdos_renyi(seed=0) if part == "projection" else third_order_chain()
    return random_markov_network(edges, STATES[part], seed=0)


@lru_cache(maxsize=2)
def _records(part: str, size: int, population: int) -> pd.DataFrame:
    records: pd.DataFrame = _truth(part).simulate(size, seed=population)
    return records


def _square_error(estimate: np.ndarray, marginals: np.ndarray) -> float:
    return float(((estimate - marginals) ** 2).mean())


def _divergence(truth: PrivateMarkovNetwork, estimator: Any, data: Any) -> float:
    return kl_divergence(truth, PrivateMarkovNetwork(truth.edges()).fit(data, estimator))


def figure(rows: pd.DataFrame) -> Figure:
    """Draw three panels."""
    drawn = Figure(figsize=(12.6, 3.9), layout="constrained")
    slopes, projection, regularization = drawn.subplots(1, 3)
    wide = _wide(rows, "slopes", "size")
    plot_quartiles(slopes, wide, "size", LABELS)
    for column, style in (("sampling, 1/N", "--"), ("privacy, 1/N^2", ":")):
        curve = wide.groupby("size")[column].mean()
        slopes.plot(curve.index, curve, style, color="0.3", label=f"predicted: {column}")
    slopes.set(
        title="(a) two slopes, chain, epsilon = 0.1", ylabel="mean squared error of marginals", xlabel="records N"
    )
    projected = {series: f"naive MLE, {series}" for series in PROJECTIONS}
    plot_quartiles(projection, _wide(rows, "projection", "size"), "size", projected)
    projection.set(title="(b) projection, Erdos-Renyi, epsilon = 0.5", ylabel="KL(true || fitted)", xlabel="records N")
    plot_quartiles(regularization, _wide(rows, "regularization", "weight"), "weight", LABELS)
    regularization.set(title="(c) regularisation, chain, epsilon = 0.1", ylabel="KL(true || fitted)", xlabel="lambda")
    for axes in (slopes, projection, regularization):
        axes.set(xscale="log", yscale="log")
        axes.title.set_fontsize(10)
        axes.legend(frameon=False, fontsize=8)
    return drawn


def _wide(rows: pd.DataFrame, part: str, x: str) -> pd.DataFrame:
    held = rows[rows["part"] == part]
    return held.pivot(index=[x, "release"], columns="series", values="value").reset_index()


def caption(rows: pd.DataFrame) -> str:
    """Write the caption: claim, outcome and reasons."""
    slopes = _wide(rows, "slopes", "size")
    predicted = slopes["sampling, 1/N"] + slopes["privacy, 1/N^2"]
    agreement = float((slopes["noisy"] / predicted).mean())
    crossing = float((slopes["privacy, 1/N^2"] / slopes["sampling, 1/N"] * slopes["size"]).mean())
    sizes = slopes.groupby("size")["noisy"].median()
    slope = np.diff(np.log(sizes)) / np.diff(np.log(sizes.index))
    projection = _wide(rows, "projection", "size").groupby("size")[list(PROJECTIONS)].median()
    gains = projection["not projected"] / projection["projected"]
    little = projection["not projected, little regularised"] / projection["projected, little regularised"]
    weights = _wide(rows, "regularization", "weight").groupby("weight")[["noisy", "exact"]].median()
    best = float(weights.index.to_numpy()[weights["noisy"].argmin()])
    smallest, within = weights.loc[weights.index.min()], 1.1 * weights.min()
    return f"""
        Naive maximum likelihood from noisy marginals: (a) squared error of the noisy marginals with both
        predicted terms; (b) effect of projecting them on the simplex, {STATES["projection"]} states; (c) effect
        of the regularisation, N = {REGULARIZED_SIZE:,}. Ten variables; medians and quartiles of
        {rows["release"].nunique()} populations with a release each.

        The paper (Bernstein et al. 2017, Fig. 1): error falls with 1/N^2 until N is very large; projection
        helps; with exact statistics any small lambda does, with noisy ones it must be just right. It gives neither
        epsilon in (a), nor lambda in (b), nor N in (c).

        Here: (a) the error is {agreement:.3f} times the sum of the two terms of Proposition 4, which are equal at N =
        {crossing / 1e6:.2g} million; its slope on logarithmic scales is {slope[0]:.2f} between the smallest sizes and
        {slope[-1]:.2f} between the largest.

        (b) With the library's default regularisation, which follows the noise, projected is better in
        {int((gains > 1).sum())} of {len(projection)} sizes, by factors of {gains.min():.3g} to {gains.max():.3g}; with
        lambda = {LITTLE:g} in {int((little > 1).sum())}, by {little.min():.3g} to {little.max():.3g}.

        (c) With noise the KL is least, {weights["noisy"].min():.3g}, at lambda = {best:g}, and within a tenth of that
        at {int((weights["noisy"] <= within["noisy"]).sum())} of {len(weights)} lambdas; without noise it is
        least, {weights["exact"].min():.3g}, at lambda = {weights["exact"].idxmin():g}. The smallest lambda gives
        {smallest["noisy"]:.3g} with noise and {smallest["exact"]:.3g} without.
    """


PATHOLOGIES = Experiment(trials, run, RESULTS, figure, caption, version=2)
