"""Fig. 3 b of Bernstein et al. (2017): a homogeneous chain of places, fitted to people's (here simulated) days."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from experiments.drawing import plot_quartiles
from experiments.populations import random_days
from experiments.protocol import SETTING_COLUMNS, Settings, search_in_turn, settings_in_words, wins
from experiments.runner import Experiment
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.estimators.from_tables import CollectiveEM
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.papers.bernstein_2017 import CGMEM, NaiveMLE
from pgmpy_dp.papers.private_sgd import PrivateSGD
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Schema

PLACES, HOURS, STEPS = 30, 24, 6
NODES = [f"x{step}" for step in range(1, STEPS + 1)]
EDGES: list[tuple[str, ...]] = list(pairwise(NODES))
STATES = range(PLACES + 1)  # state 0 means nowhere
EPSILONS = (0.01, 0.03, 0.1, 0.3, 1.0)
EM_ITERATIONS = (1, 4, 16)  # numbers of CGM-EM iterations, from the naive fit
ESTIMATORS: dict[str, Callable[[], Any]] = {
    "naive": NaiveMLE,
    "collective": CollectiveEM,
    **{f"em_{number}": partial(CGMEM, iterations=number, max_inner=100) for number in EM_ITERATIONS},
}
# How pairs of "nowhere" and noise are treated. "dropped": the paper's rule read as leaving out pairs of "nowhere", so
# that a person's weight is spread over the other pairs. "paper": such pairs are kept. "tight": kept, with tight noise.
KINDS = {"dropped": "pairs of nulls dropped", "paper": "pairs of nulls kept", "tight": "kept, tight noise"}
DELTA = 1e-6  # delta of private SGD
FIRST = Settings(steps=100, learning_rate=0.1, sampling_rate=0.1, clip_norm=math.sqrt(STEPS))  # first settings of SGD
METHODS = {
    "noiseless": "non-private",
    "uniform": "uniform",
    "slots": "slots independent, non-private",
    "sgd": f"private SGD, tuned in hindsight, delta = {DELTA:g}",
}
FITTED = {
    "naive": "naive MLE",
    "collective": "CollectiveEM",
    **{f"em_{number}": f"CGM-EM, iteration {number}" for number in EM_ITERATIONS},
}
RESULTS = (
    *METHODS,
    *(f"{name}_{kind}" for kind in KINDS for name in FITTED),
    *SETTING_COLUMNS,
    "epsilon_paper",
    "epsilon_tight",
    "null_share",
)


def trials(quick: bool) -> list[dict[str, Any]]:
    """List populations, with several releases of each; SGD runs on the first release."""
    sizes, populations, releases = ((4_000,), 1, 1) if quick else ((4_000, 40_000), 3, 3)
    return [
        {"people": people, "population": population, "epsilon": epsilon, "release": release}
        for people in sizes
        for population in range(populations)
        for epsilon in EPSILONS
        for release in range(releases)
    ]


def run(people: int, population: int, epsilon: float, release: int) -> list[dict[str, Any]]:
    """Compute the held-out log-likelihood of fits from one release of each kind."""
    moves, starts, held_out = _people(people, population)
    seed = [people, population, round(1000 * epsilon), release]
    nowhere = (moves["now"] == 0) & (moves["next"] == 0)
    weights = 1.0 / moves.groupby("person")["now"].transform("size")
    # "paper": the paper's noise scale for the steps is |edges| / epsilon, and the starts use the same, so each costs
    # epsilon / |edges|. "tight": a person's weights sum to 1 in each table, and each table gets half of epsilon.
    spent = {"paper": 2 * epsilon / len(EDGES), "tight": epsilon}
    row: dict[str, Any] = {
        "noiseless": _noiseless(people, population),
        "uniform": -STEPS * math.log(len(STATES)),
        "slots": _slots(people, population),
        "null_share": float(weights[nowhere].sum() / weights.sum()),
        **dict.fromkeys(("sgd", *SETTING_COLUMNS)),
    }
    if release == 0:
        row |= _stochastic(people, population, epsilon, [*seed, 3])
    for number, (kind, total) in enumerate([*spent.items(), ("dropped", spent["paper"])]):
        kept = moves[~nowhere] if kind == "dropped" else moves
        noisy = _measure(kept, starts, total / 2, SimulatedNoise([*seed, number]))
        if kind in spent:
            row[f"epsilon_{kind}"] = noisy.guarantee.epsilon
        for label, estimator in ESTIMATORS.items():
            row[f"{label}_{kind}"] = float(_chain().fit(noisy, estimator()).log_likelihood(held_out))
    return [row]


def _stochastic(people: int, population: int, epsilon: float, seed: list[int]) -> dict[str, float]:
    """Fit private SGD to one hour per person, drawn uniformly, so that each person is one record."""
    hours, held_out = _hours(people, population)
    one = hours.sample(frac=1.0, random_state=population).drop_duplicates("person").drop(columns="person")
    schema = Schema(dict.fromkeys(NODES, STATES))

    def loss(settings: Settings) -> float:
        data = PrivateDataset(one, schema, PrivacyBudget(epsilon, DELTA), noise=SimulatedNoise(seed))
        sgd = PrivateSGD(epsilon, DELTA, total=len(one), **vars(settings))
        return -float(_chain().fit(data, sgd).log_likelihood(held_out))

    found, least = search_in_turn(loss, FIRST)
    return {"sgd": -least, **found.columns()}


@lru_cache(maxsize=2)
def _slots(people: int, population: int) -> float:
    """Compute the log-likelihood if slots are independent, with the shares of places in the training slots."""
    hours, held_out = _hours(people, population)
    counts = np.bincount(hours[NODES].to_numpy().ravel(), minlength=len(STATES)) + 0.5
    return float(np.log(counts / counts.sum())[held_out.to_numpy()].sum(axis=1).mean())


def _chain() -> PrivateMarkovNetwork:
    ties: dict[tuple[str, ...], list[tuple[str, ...]]] = {("now", "next"): EDGES, ("first",): [("x1",)]}
    return PrivateMarkovNetwork(pairwise(NODES), tied=ties)


def _measure(moves: pd.DataFrame, starts: pd.DataFrame, epsilon: float, noise: SimulatedNoise) -> NoisyMarginals:
    """Measure steps and starts with epsilon each; the rows of a person have a total weight of 1 in each table."""
    budget = PrivacyBudget(2 * epsilon)
    parts = []
    for frame, clique in ((moves, ("now", "next")), (starts, ("first",))):
        schema = Schema(dict.fromkeys(clique, STATES))
        parts.append(PrivateDataset(frame, schema, budget, noise=noise, unit="person").measure([clique], epsilon))
    return parts[0].join(parts[1])


@lru_cache(maxsize=2)
def _hours(people: int, population: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the training and the held-out hours with a place, one per row.

    Training hours are those of three quarters of the people, and have a column `person`.
    """
    days = random_days(people, PLACES, HOURS * STEPS, population).reshape(people * HOURS, STEPS)
    person = np.repeat(np.arange(people), HOURS)
    seen = days.any(axis=1)
    train = seen & (person < 0.75 * people)
    held_out = pd.DataFrame(days[seen & ~train], columns=NODES)
    return pd.DataFrame(days[train], columns=NODES).assign(person=person[train]), held_out


@lru_cache(maxsize=2)
def _people(people: int, population: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return the steps and starts of the training hours, and the held-out hours."""
    train, held_out = _hours(people, population)
    hours, who = train[NODES].to_numpy(), train["person"].to_numpy()
    pairs = [pd.DataFrame({"person": who, "now": hours[:, t], "next": hours[:, t + 1]}) for t in range(STEPS - 1)]
    starts = pd.DataFrame({"person": who, "first": hours[:, 0]})
    return pd.concat(pairs, ignore_index=True), starts, held_out


@lru_cache(maxsize=2)
def _noiseless(people: int, population: int) -> float:
    """Compute the same estimate almost without noise: the effect of weighting by person without privacy."""
    moves, starts, held_out = _people(people, population)
    noisy = _measure(moves, starts, 1e5, SimulatedNoise(0))
    return _chain().fit(noisy, NaiveMLE(regularization=1e-6)).log_likelihood(held_out)


def figure(rows: pd.DataFrame) -> Figure:
    """Draw one row of panels per number of people, with one panel per treatment of pairs of nulls."""
    sizes = sorted(rows["people"].unique())
    drawn = Figure(figsize=(12.6, 3.6 * len(sizes) + 0.8), layout="constrained")
    panels = drawn.subplots(len(sizes), len(KINDS), sharex=True, sharey=True, squeeze=False)
    for line, people in zip(panels, sizes, strict=True):
        for axes, (kind, treatment) in zip(line, KINDS.items(), strict=True):
            fitted = {f"{name}_{kind}": label for name, label in FITTED.items()}
            plot_quartiles(axes, rows[rows["people"] == people], "epsilon", METHODS | fitted)
            axes.set(xscale="log", title=f"{people:,} people, {treatment}")
            axes.title.set_fontsize(9)
        line[0].set_ylabel("log-likelihood of a held-out hour, nats")
    for axes in panels[-1]:
        axes.set_xlabel("epsilon as the paper counts it")
    drawn.legend(
        *panels[0][0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False, fontsize=8
    )
    return drawn


def caption(rows: pd.DataFrame) -> str:
    """Write the caption: claim, outcome and reasons. Every number is computed from the rows."""
    medians = rows.groupby(["people", "epsilon"])[list(RESULTS)].median()
    cells, few, many, found = len(medians), rows["people"].min(), rows["people"].max(), rows.dropna(subset="sgd")
    middle = medians.loc[(few, 0.1)]
    spent = {kind: float((rows[f"epsilon_{kind}"] / rows["epsilon"]).mean()) for kind in ("paper", "tight")}
    behind = max(float((medians[f"naive_{kind}"] - medians[f"collective_{kind}"]).max()) for kind in KINDS)

    def above(one: str, other: str) -> int:
        return wins(rows, ["people", "epsilon"], other, one)

    def orders(kind: str) -> str:
        """Count the cells of a treatment in which the paper's order holds: CGM above naive MLE, both above SGD."""
        best = medians[[f"em_{number}_{kind}" for number in EM_ITERATIONS]].max(axis=1)
        naive, sgd = medians[f"naive_{kind}"], medians["sgd"]
        em = ", ".join(f"{above(f'em_{number}_{kind}', f'naive_{kind}')} after {number}" for number in EM_ITERATIONS)
        return f"""CGM-EM is above naive MLE in {em} iterations, and CollectiveEM in
            {above(f"collective_{kind}", f"naive_{kind}")}; naive MLE is above SGD in {above(f"naive_{kind}", "sgd")},
            CollectiveEM in {above(f"collective_{kind}", "sgd")}; the paper's order of all three holds for CGM-EM at its
            best iteration in {int(((best > naive) & (naive > sgd)).sum())}, and for CollectiveEM in
            {int(((medians[f"collective_{kind}"] > naive) & (naive > sgd)).sum())}"""

    def gain(kind: str) -> str:
        at_best = medians[[f"em_{number}_{kind}" for number in EM_ITERATIONS]].max(axis=1) - medians[f"naive_{kind}"]
        return f"{at_best.loc[few].max():.2g} nats at {few:,} people and {at_best.loc[many].max():.2g} at {many:,}"

    flat = {name: int((medians[f"{name}_dropped"] > medians["uniform"]).sum()) for name in ("naive", "collective")}
    shown = ("naive_paper", "em_16_paper", "collective_paper", "naive_tight", "em_16_tight", "collective_tight")
    listed = " / ".join(f"{middle[name]:.3f}" for name in shown)
    return f"""
        Held-out log-likelihood of hours of six ten-minute slots under a homogeneous chain of {PLACES} places
        and "nowhere", fitted from three quarters of the people; medians and quartiles of
        {rows["population"].nunique()} populations x {rows["release"].nunique()} releases. One method is above another
        in a cell of people and epsilon if it is in the median of the releases that both ran on. The visits are
        simulated: the paper's wifi records are not public.

        The paper (Bernstein et al. 2017, Fig. 3 b): CGM improves on naive MLE for all epsilons, both beat
        private SGD, and both improve with N and epsilon.

        A person weighs 1/K in each table, K being the number of pairs that are "not both null". Pairs of nulls, which
        hold {100 * rows["null_share"].mean():.0f} % of the weight, may then be dropped or kept; the paper does not say.
        Dropped, in {cells} cells: {orders("dropped")}. Naive MLE is above the uniform distribution in
        {flat["naive"]} and CollectiveEM in {flat["collective"]}. Kept: {orders("paper")}. Kept, with tight noise:
        {orders("tight")}. Kept, CollectiveEM is above the same with pairs dropped in
        {above("collective_paper", "collective_dropped")}. CGM-EM at its best iteration gains on naive MLE at most
        {gain("dropped")} with pairs dropped, {gain("paper")} with pairs kept.

        At {few:,} people and epsilon 0.1: non-private {middle["noiseless"]:.3f}; pairs kept, naive MLE, CGM-EM after 16
        iterations, CollectiveEM, and the same with tight noise: {listed}; uniform {middle["uniform"]:.3f},
        independent slots {middle["slots"]:.3f}, private SGD {middle["sgd"]:.3f}. CollectiveEM is behind naive MLE by
        {behind:.2g} nats at most. Slots that are independent, non-private, are beaten by naive MLE with the tight
        noise in {above("naive_tight", "slots")} cells, by CollectiveEM in {above("collective_tight", "slots")}, by SGD
        in {above("sgd", "slots")}.

        SGD has a delta of {DELTA:g}, and its settings are searched in turn with the held-out hours for each of
        {len(found)} releases: {settings_in_words(found)}; the first sampling rate, {FIRST.sampling_rate:g}, was kept in
        {int((found["sgd_sampling_rate"] == FIRST.sampling_rate).sum())}.

        A person's steps weigh 1 together in the one tied table, not the number of edges, {len(EDGES)}, which the paper
        takes; the table of first places it leaves out. With both tables its noise costs {spent["paper"]:.2g} of the
        epsilon that it states here, and the tight noise {spent["tight"]:.2g}, half on each table. Hours without a
        visit are left out of training and test.
    """


MOBILITY = Experiment(trials, run, RESULTS, figure, caption, version=4)
