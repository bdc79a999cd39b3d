"""Fig. 2 of Bernstein et al. (2017): divergence from the truth by number of records, for four epsilons."""

from __future__ import annotations

import math
import time
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.optimize import minimize_scalar

from experiments.drawing import VARIANTS, plot_quartiles, styles
from experiments.protocol import (
    SETTING_COLUMNS,
    Settings,
    erdos_renyi,
    random_marginals_fit,
    search_in_turn,
    settings_in_words,
    third_order_chain,
    wins,
)
from experiments.runner import Experiment
from pgmpy_dp import papers
from pgmpy_dp.data import PrivateDataset, exact_marginals
from pgmpy_dp.estimators.from_tables import CollectiveEM
from pgmpy_dp.estimators.not_private_mle import NotPrivateMLE
from pgmpy_dp.evaluation import kl_divergence, random_markov_network
from pgmpy_dp.fitting.readings.undirected import maximise_likelihood, noise_regularization
from pgmpy_dp.inference import Calibration, FactorGraph, JunctionTree
from pgmpy_dp.inference.tables.table import project_to_simplex
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.observed.factors import log_linear
from pgmpy_dp.papers.bernstein_2017 import NaiveMLE
from pgmpy_dp.papers.private_sgd import PrivateSGD
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise
from pgmpy_dp.release import NoisyMarginals

EPSILONS = (0.01, 0.1, 0.5, 1.0)
STATES = 10
LARGEST = 1_000_000  # number of records at which an iteration of CGM-EM takes seconds
# Largest factor from the default in the search for the naive fit's regularisation.
WIDEST = 100.0
# First settings of private SGD: steps, learning rate, and the sampling rate with the largest mean sample size.
STEPS, LEARNING_RATE, SHARE, SAMPLE = 200, 1.0, 0.2, 5_000
PENALTIES = tuple(10.0**power for power in range(-4, 5))  # regularisation weights of output perturbation
TUNING = ("none", "first", "searched")  # how a trial finds the settings of SGD; "none" omits SGD
ITERATIONS = (0, 1, 2, 4, 8, 16, 32, 64)  # numbers of CGM-EM iterations, from the naive fit
INNER = 100  # number of descent steps on an E-step's dual, which Newton's method then completes
# Loopy propagation on the sparser graph: number of EM iterations, of descent steps, and limits of each propagation.
LOOPY_ITERATIONS, LOOPY_INNER = 16, 1000
LOOPY_LIMITS: dict[str, Any] = {"tolerance": 1e-7, "max_iter": 200}

METHODS = {
    "uniform": "uniform",
    "random": "random",
    "non_private": "non-private",
    "naive": "naive MLE, default regularisation",
    "naive_best": "naive MLE, best in hindsight",
    "sgd": "private SGD (delta = 1/N), tuned in hindsight",
    "output": "output perturbation, best in hindsight",
    "published": "CGM-EM, run on",
    "published_loopy": f"CGM-EM, loopy propagation, {LOOPY_ITERATIONS} iterations",
    "collective": "CollectiveEM",
    "collective_gaussian": "CollectiveEM, Gaussian noise (delta = 1/N)",
}
DISTANT = ("uniform", "random", "non_private", "output")  # methods that are not plotted beside naive MLE
TICKS = (0.25, 0.5, 1.0, 2.0, 4.0)
_PATH = tuple(f"published_{iteration}" for iteration in ITERATIONS)
_TIMED = ("naive", "collective", "published", "published_loopy", "sgd")
RESULTS = (*METHODS, *_PATH, *SETTING_COLUMNS, *(f"seconds_{method}" for method in _TIMED))


def trials(quick: bool) -> list[dict[str, Any]]:
    """List populations of records, with several releases of each.

    CGM-EM runs on the first release of each population, with the most records only of the first one; SGD on the first
    release of three populations, or only of the smaller population if quick.
    """
    sizes, populations, releases = ((1_000, 10_000), 1, 1) if quick else ((10_000, 100_000, 1_000_000), 5, 5)
    return [
        {
            "size": size,
            "population": population,
            "epsilon": epsilon,
            "release": release,
            "tuning": TUNING[0 if release or population > 2 else int(size == sizes[0]) if quick else 2],
        }
        for size in sizes
        for population in range(populations)
        for epsilon in (EPSILONS[1::2] if quick else EPSILONS)
        for release in range(releases)
    ]


def run(graph: str, size: int, population: int, epsilon: float, release: int, tuning: str) -> list[dict[str, Any]]:
    """Run all estimators on one release."""
    truth, tree, _ = _truth(graph)
    records = _records(graph, size, population)
    seed = [size, population, round(1000 * epsilon), release]
    row: dict[str, Any] = dict(_references(graph, size, population))
    noisy = _private(truth, records, epsilon, size, [*seed, 0]).measure(tree.layout.scopes, epsilon)
    network = PrivateMarkovNetwork(truth.edges())
    for label, estimator in (("naive", NaiveMLE()), ("collective", CollectiveEM())):
        start = time.process_time()
        network.fit(noisy, estimator)
        row[f"seconds_{label}"] = time.process_time() - start
        row[label] = kl_divergence(truth, network)
    row["naive_best"] = min(row["naive"], _naive_best(graph, noisy))
    row["output"] = _output_perturbation(graph, size, population, epsilon, [*seed, 4])
    gaussian = _private(truth, records, epsilon, size, [*seed, 1])
    gaussian_release = gaussian.measure(tree.layout.scopes, epsilon, delta=1.0 / size, mechanism="gaussian")
    row["collective_gaussian"] = kl_divergence(truth, network.fit(gaussian_release, CollectiveEM()))
    row |= dict.fromkeys(("published", *_PATH, "published_loopy", "sgd", *SETTING_COLUMNS))
    row |= dict.fromkeys(("seconds_published", "seconds_published_loopy", "seconds_sgd"))
    if release == 0 and (size < LARGEST or population == 0):
        start = time.process_time()
        iterations = _published(tree, tree, noisy, ITERATIONS[-1])
        row["seconds_published"] = time.process_time() - start
        row |= {key: _divergence(graph, iterations[number]) for key, number in zip(_PATH, ITERATIONS, strict=True)}
        row["published"] = row[_PATH[-1]]
    if graph == "erdos-renyi" and row["published"] is not None:
        start = time.process_time()
        engine = FactorGraph.build(tree.layout.cardinalities, tree.layout.scopes, **LOOPY_LIMITS)
        last = _published(tree, engine, noisy, LOOPY_ITERATIONS)[-1]
        row |= {"seconds_published_loopy": time.process_time() - start, "published_loopy": _divergence(graph, last)}
    if tuning != TUNING[0]:
        setting = _tuned(graph, size, epsilon, tuning)
        start = time.process_time()
        row["sgd"] = _stochastic(graph, size, population, epsilon, 2, setting)
        row |= {**setting.columns(), "seconds_sgd": time.process_time() - start}
    return [row]


def _private(
    truth: PrivateMarkovNetwork, records: pd.DataFrame, epsilon: float, size: int, seed: list[int]
) -> PrivateDataset:
    return PrivateDataset(records, truth.schema_, PrivacyBudget(epsilon, 1.0 / size), noise=SimulatedNoise(seed))


@cache
def _truth(graph: str) -> tuple[PrivateMarkovNetwork, JunctionTree, np.ndarray]:
    edges = third_order_chain() if graph == "chain" else erdos_renyi(seed=0)
    truth = random_markov_network(edges, STATES, seed=0)
    layout, theta, _ = log_linear(truth)
    return truth, JunctionTree.build(layout.cardinalities, layout.scopes), theta


@cache
def _calibrated(graph: str) -> Calibration:
    _, tree, theta = _truth(graph)
    return tree.calibrate(theta)


@lru_cache(maxsize=2)
def _records(graph: str, size: int, population: int) -> pd.DataFrame:
    records: pd.DataFrame = _truth(graph)[0].simulate(size, seed=population)
    return records


@cache
def _references(graph: str, size: int, population: int) -> dict[str, float]:
    """Compute the divergences that do not depend on epsilon: uniform, from random marginals, and without privacy."""
    truth, _, theta = _truth(graph)
    exact = PrivateMarkovNetwork(truth.edges())
    exact.fit(_records(graph, size, population), NotPrivateMLE(state_names=truth.schema_, max_iter=500))
    random = random_marginals_fit(list(truth.edges()), truth.schema_, seed=population)
    return {
        "uniform": _divergence(graph, np.zeros_like(theta)),
        "random": kl_divergence(truth, random),
        "non_private": kl_divergence(truth, exact),
    }


def _divergence(graph: str, potentials: np.ndarray) -> float:
    """Compute KL(true || distribution with these log-potentials), in nats."""
    _, tree, theta = _truth(graph)
    true = _calibrated(graph)
    partition = tree.calibrate(potentials).log_partition - true.log_partition
    return float((theta - potentials) @ true.marginals + partition)


def _naive(tree: JunctionTree, noisy: NoisyMarginals, multiple: float) -> np.ndarray:
    """Fit the naive model with a multiple of its default regularisation."""
    layout = tree.layout
    observed = layout.flatten(project_to_simplex(noisy.tables[scope] / noisy.total) for scope in layout.scopes)
    default = noise_regularization([noisy.variances[scope] for scope in layout.scopes], noisy.total)
    return maximise_likelihood(tree, observed, multiple * default, 300, 1e-6)[0]


def _naive_best(graph: str, noisy: NoisyMarginals) -> float:
    """Find the least divergence over regularisations by a bounded scalar search on their logarithm."""
    tree = _truth(graph)[1]
    end = math.log(WIDEST)
    found = minimize_scalar(
        lambda log: _divergence(graph, _naive(tree, noisy, math.exp(log))),
        bounds=(-end, end),
        method="bounded",
        options={"xatol": 0.05, "maxiter": 9},
    )
    return float(found.fun)


@lru_cache(maxsize=len(PENALTIES))
def _penalised(graph: str, size: int, population: int, penalty: float) -> np.ndarray:
    """Fit maximum likelihood with the penalty N penalty |theta|^2, without noise."""
    truth, tree, _ = _truth(graph)
    exact = exact_marginals(_records(graph, size, population), truth.schema_, tree.layout.scopes)
    observed = tree.layout.flatten(exact.tables[scope] / size for scope in tree.layout.scopes)
    return maximise_likelihood(tree, observed, penalty, 300, 1e-6)[0]


def _output_perturbation(graph: str, size: int, population: int, epsilon: float, seed: list[int]) -> float:
    """Compute the least divergence of penalised potentials with noise, over penalties (Chaudhuri et al. 2011).

    The loss N A(theta) - theta . n + N penalty |theta|^2 is 2 N penalty strongly convex, and a record changes its
    gradient by t(x) - mu, whose norm is at most sqrt(2 |cliques|). So it moves the minimum by at most s =
    sqrt(2 |cliques|) / (2 N penalty), and noise with the density exp(-epsilon |noise| / s) gives epsilon.
    """
    tree, generator = _truth(graph)[1], np.random.default_rng(seed)
    direction = generator.normal(size=tree.layout.size)
    noise = generator.gamma(direction.size) / epsilon * direction / np.linalg.norm(direction)
    return min(
        _divergence(
            graph,
            _penalised(graph, size, population, penalty)
            + math.sqrt(2 * len(tree.layout.scopes)) / (2 * size * penalty) * noise,
        )
        for penalty in PENALTIES
    )


def _published(
    tree: JunctionTree, engine: JunctionTree | FactorGraph, noisy: NoisyMarginals, iterations: int
) -> list[np.ndarray]:
    """Run CGM-EM from the naive fit, with the dual of the E-step solved to its tolerance on a junction tree."""
    noise = papers.tables_noise(tree.layout, noisy)
    inner = INNER if engine is tree else LOOPY_INNER
    return papers.cgm_em(engine, _naive(tree, noisy, 1.0), noise, noisy.total, iterations, "dual", inner).potentials


class _WholeSGD(PrivateSGD):
    """Private SGD whose interruption ends the trial instead of keeping an unfinished fit."""

    def _read(self, structure: Any, release: Any) -> Any:
        found = super()._read(structure, release)
        if self.n_steps_ < self.steps:
            raise KeyboardInterrupt
        return found


def _stochastic(graph: str, size: int, population: int, epsilon: float, number: int, setting: Settings) -> float:
    """Compute the divergence of private SGD."""
    truth = _truth(graph)[0]
    seed = [size, population, round(1000 * epsilon), number]
    data = _private(truth, _records(graph, size, population), epsilon, size, seed)
    estimator = _WholeSGD(epsilon, 1.0 / size, total=size, **vars(setting))
    return kl_divergence(truth, PrivateMarkovNetwork(truth.edges()).fit(data, estimator))


@cache
def _tuned(graph: str, size: int, epsilon: float, tuning: str) -> Settings:
    """Find settings with a small divergence on the first population; not private, as in the paper."""
    clip = math.sqrt(len(_truth(graph)[1].layout.scopes))  # typical norm of a gradient
    first = Settings(STEPS, LEARNING_RATE, min(SHARE, SAMPLE / size), clip)
    return first if tuning == TUNING[1] else search_in_turn(partial(_stochastic, graph, size, 0, epsilon, 3), first)[0]


def figure(rows: pd.DataFrame) -> Figure:
    """Plot divergence against N as in the paper, over that of naive MLE, and CGM-EM against its iterations."""
    epsilons = sorted(rows["epsilon"].unique())
    drawn = Figure(figsize=(3.2 * len(epsilons) + 0.6, 9.6), layout="constrained")
    panels = drawn.subplots(3, len(epsilons), sharey="row", squeeze=False)
    near = {name: label for name, label in METHODS.items() if name not in DISTANT}
    for (above, middle, below), epsilon in zip(panels.T, epsilons, strict=True):
        cell = rows[rows["epsilon"] == epsilon]
        plot_quartiles(above, cell, "size", METHODS)
        above.set(xscale="log", yscale="log", xlabel="records N", title=f"epsilon = {epsilon:g}")
        plot_quartiles(middle, cell.assign(**cell[list(near)].div(cell["naive"], axis=0)), "size", near)
        middle.set(xscale="log", yscale="log", xlabel="records N", ylim=(0.25, 4.0), yticks=TICKS)
        for number, (size, held) in enumerate(cell.groupby("size")):
            path = held[list(_PATH)].div(held["published_0"], axis=0).median().to_numpy()
            colour, _ = styles(["CGM-EM"])["CGM-EM"]
            below.plot(ITERATIONS, path, VARIANTS[number], color=colour, markersize=4, label=f"CGM-EM, N = {size:,}")
        below.axhline(1.0, color="0.7", linewidth=0.8)
        below.set(xscale="symlog", xlim=(-0.2, 1.1 * ITERATIONS[-1]), yscale="log", ylim=(0.25, 4.0), yticks=TICKS)
        below.set(xlabel="iterations of EM")
        below.spines[["top", "right"]].set_visible(False)
        below.grid(alpha=0.2)
    for axes in panels[1:].ravel():
        axes.set_yticklabels([f"{tick:g}" for tick in TICKS])
        axes.minorticks_off()
    panels[0][0].set_ylabel("KL(true || fitted), nats")
    panels[1][0].set_ylabel("KL over that of naive MLE")
    panels[2][0].set_ylabel("KL over that at the start of EM")
    panels[2][0].legend(frameon=False, fontsize=8)
    handles, labels = panels[0][0].get_legend_handles_labels()
    drawn.legend(
        handles, labels, loc="outside upper center", ncols=min(3, len(epsilons) + 1), frameon=False, fontsize=8
    )
    return drawn


def caption(graph: str, rows: pd.DataFrame) -> str:
    """Write the caption: claim, outcome and reasons. Every number is computed from the rows."""
    medians = rows.groupby(["epsilon", "size"])[[*METHODS, *_PATH]].median()
    number = len(medians)

    def below(one: str, other: str) -> int:
        return wins(rows, ["epsilon", "size"], one, other)

    near = (medians["naive_best"] / medians["collective"]).agg(["min", "max"])
    path = medians[list(_PATH)]
    best = path.min(axis=1)
    rises = int((path["published_64"] > 1.01 * best).sum())
    place = int((path["published_64"] / best).to_numpy().argmax())
    worst, least, last = medians.index[place], best.iloc[place], path["published_64"].iloc[place]
    gain = float((100 * (1 - best / path["published_0"])).max())
    lost = int((medians["collective"] > 0.99 * medians["uniform"]).sum())
    random = int((medians["random"] > medians["uniform"]).sum())
    noisiest = medians.loc[(rows["epsilon"].min(), rows["size"].min())]
    timed = {name: float(rows[f"seconds_{name}"].median()) for name in _TIMED if rows[f"seconds_{name}"].any()}
    seconds = ", ".join(f"{METHODS[name]} {value:.2g}" for name, value in timed.items())
    both = rows.dropna(subset="published_loopy")
    loopy = both["published_loopy"] / both[f"published_{LOOPY_ITERATIONS}"]
    same = f"""With loopy propagation in place of a junction tree it has, after {LOOPY_ITERATIONS} iterations,
        {loopy.min():.4f} to {loopy.max():.4f} times the divergence ({len(both)} releases)."""
    found = rows.dropna(subset="sgd").drop_duplicates(["epsilon", "size"])
    most = found["tuning"].eq(TUNING[2]).sum()
    kept = int((found["sgd_sampling_rate"] == np.minimum(SHARE, SAMPLE / found["size"])).sum())
    shape = "third-order chain (24 edges)" if graph == "chain" else "connected Erdos-Renyi graph (edge probability .3)"
    most_records = rows[rows["size"] == LARGEST].dropna(subset="published")["population"].nunique()
    tuned = rows.dropna(subset="sgd")["population"].nunique()
    populations, releases = rows["population"].nunique(), rows["release"].nunique()
    return f"""
        KL divergence of fitted from true networks, {shape} of 10 variables with {STATES} states, edge tables
        from a flat Dirichlet distribution; medians and quartiles of {populations} populations x {releases}
        releases (releases of one population are not independent; CGM-EM on one release of each population, with
        {LARGEST:,} records of {most_records} of them, SGD on one of {tuned}). In a cell of epsilon and N one method is
        below another if it is in the median of the releases that both ran on.

        The paper (Bernstein et al. 2017, Fig. 2): CGM improves on naive MLE for all models, epsilons and sizes,
        and private SGD, with a delta of 1/N, does worse or cannot run at small epsilons.

        CGM-EM, from the naive fit with the default regularisation, {ITERATIONS[-1]} iterations, each E-step solved to
        its tolerance: it is below its start in {below("published", "published_0")} of {number} cells, and below the
        naive fit with the regularisation that the truth picks for each release in {below("published", "naive_best")}.
        Its best iteration is below the start in {int((best < path["published_0"]).sum())} cells, by {gain:.2g} % at
        most; run on, it is over 1 % worse than at its best in {rises}, most at epsilon {worst[0]:g}, N = {worst[1]:,}:
        {least:.3g}, then {last:.3g}. {same if len(both) else ""}

        CollectiveEM: it is below CGM-EM in {below("collective", "published")} of {number}
        cells, of naive MLE with its default regularisation in {below("collective", "naive")}, and with the one that
        the truth picks in {below("collective", "naive_best")}: the latter has {near["min"]:.3g} to {near["max"]:.3g}
        times the divergence. It is within 1 % of the uniform distribution's divergence or above it in {lost} cells.

        Private SGD, its settings searched in turn with the truth on the first population in {most} of {number} cells,
        the first guess in {len(found) - most}: {settings_in_words(found)}; the first sampling rate was kept in {kept}.
        It is below CollectiveEM with Laplace noise in {below("sgd", "collective")} cells, below CollectiveEM with
        Gaussian noise at the same epsilon and delta in {below("sgd", "collective_gaussian")}, below CGM-EM in
        {below("sgd", "published")}. Output perturbation, its regularisation picked by the truth for each release, is
        below naive MLE in {below("output", "naive")} cells, and below the uniform distribution in
        {below("output", "uniform")}.

        The random baseline is further from the truth than the uniform distribution in {random} cells. At the smallest
        epsilon and N: uniform {noisiest["uniform"]:.3g}, random {noisiest["random"]:.3g}, naive
        {noisiest["naive"]:.3g}, CollectiveEM {noisiest["collective"]:.3g}, CGM-EM {noisiest["published_0"]:.3g} at its
        start on other releases, then {noisiest["published"]:.3g}.
        Median CPU seconds of a fit: {seconds}.

        The paper does not state its regularisation of naive MLE, its number of states, its start of EM nor its number
        of iterations; N, which it takes as known, is estimated from the release here.
    """


def _experiment(graph: str) -> Experiment:
    return Experiment(trials, partial(run, graph), RESULTS, figure, partial(caption, graph), version=4)


CHAIN, RANDOM_GRAPH = _experiment("chain"), _experiment("erdos-renyi")
