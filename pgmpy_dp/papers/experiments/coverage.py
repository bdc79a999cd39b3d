"""The study behind `PrivateBayesianNetwork` measures how often bounds of answers hold, and how wide they are."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from pgmpy_dp.papers.experiments.coverage_study import coverage_study
from pgmpy_dp.papers.experiments.populations import bnlearn_network
from pgmpy_dp.papers.experiments.runner import Experiment

NETWORKS, EPSILONS, RECORDS, INTERVAL = ("asia", "sachs", "child", "alarm"), (0.3, 1.0, 3.0), 10_000, 0.9
TOLERATED = 0.02  # what coverage may be off by and still count as held
COLUMNS = ("coverage", "below", "above", "width", "rmse", "rmse_mean")
RESULTS = ("target", "answers", *COLUMNS)
MARKERS = {"node": "o", "family": "s", "query": "^"}
COLOURS = {"population": "#0072B2", "records": "#D55E00"}


def trials(quick: bool) -> list[dict[str, Any]]:
    """List studies of several data sets, one a trial: widths are compared with errors over them."""
    networks, epsilons = (NETWORKS[:2], EPSILONS[1:2]) if quick else (NETWORKS, EPSILONS)
    sets, chunks = (3, 1) if quick else (10, 3)
    return [
        {"network": n, "epsilon": e, "first": sets * chunk, "sets": sets}
        for n in networks
        for e in epsilons
        for chunk in range(chunks)
    ]


def run(network: str, epsilon: float, first: int, sets: int) -> list[dict[str, Any]]:
    """Make a row for each target and kind of answer."""
    frame = coverage_study(bnlearn_network(network), epsilon, RECORDS, sets, INTERVAL, first=first)
    rows = frame.reset_index()[list(RESULTS)].to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _means(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.groupby(["network", "epsilon", "target", "answers"], sort=False)[list(COLUMNS)].mean().reset_index()


def figure(rows: pd.DataFrame) -> Figure:
    """Plot coverage and relative width, a place for each network and epsilon."""
    means = _means(rows)
    cells = list(means[["network", "epsilon"]].drop_duplicates().itertuples(index=False, name=None))
    drawn = Figure(figsize=(max(8.0, 0.9 * len(cells) + 3), 6.2), layout="constrained")
    panels = drawn.subplots(2, 1, sharex=True)
    for axes, column in zip(panels, ("coverage", "width"), strict=True):
        for index, (target, colour) in enumerate(COLOURS.items()):
            for kind, marker in MARKERS.items():
                held = means[(means["target"] == target) & (means["answers"] == kind)]
                places = [cells.index(cell) for cell in zip(held["network"], held["epsilon"], strict=True)]
                shifted = [place + 0.3 * (index - 0.5) for place in places]
                axes.plot(shifted, held[column], marker, color=colour, label=f"{kind}, {target}")
        axes.axhline(INTERVAL if column == "coverage" else 1.0, color="0.6", linestyle=":")
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("share of true answers inside")
    panels[1].set_ylabel("width, over that of an oracle")
    panels[1].set_xticks(range(len(cells)), [f"{network}\nepsilon {epsilon:g}" for network, epsilon in cells])
    drawn.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    return drawn


def caption(rows: pd.DataFrame) -> str:
    """Write claim, outcome and reasons."""
    means = _means(rows)

    def listed(target: str) -> str:
        return "; ".join(
            f"{kind} {held['coverage'].min():.3f} to {held['coverage'].max():.3f}, width {held['width'].min():.2f} to "
            f"{held['width'].max():.2f}"
            for kind in MARKERS
            for held in [means[(means["answers"] == kind) & (means["target"] == target)]]
        )

    apart = (means["coverage"] - INTERVAL).abs()
    worst = means.sort_values("coverage").iloc[0]
    lowest = int((means["coverage"] < INTERVAL - TOLERATED).sum())
    epsilons = means.groupby("epsilon")[["coverage", "width"]].mean()
    by_epsilon = "; ".join(
        f"{epsilon:g}: {one['coverage']:.3f}, width {one['width']:.2f}" for epsilon, one in epsilons.iterrows()
    )
    closer = int((means["rmse_mean"] < means["rmse"]).sum())
    sides = (means["below"] - means["above"]).abs()
    sets = rows.drop_duplicates(["network", "epsilon", "first"]).groupby(["network", "epsilon"])["sets"].sum()
    return f"""
        Bounds of {100 * INTERVAL:g} % on node marginals, cells of family marginals and answers to random
        queries, from one release of {RECORDS:,} records; {sets.max()} data sets a place. Blue: bounds on the truth
        that the records are drawn from; orange: on the records' own answers. Width is over that of an oracle who knows
        the distribution of the errors.

        Claim (no paper; our own): bounds hold as often as they say, and are about as wide as the oracle's.

        Here, for the population: {listed("population")}. For the records: {listed("records")}.

        Of {len(means)} places of network, epsilon, target and kind of answer, coverage is within {TOLERATED:g} of what
        is said in {int((apart <= TOLERATED).sum())} and lower in {lowest}; it is lowest, {worst["coverage"]:.3f}, for
        {worst["answers"]} answers of {worst["network"]} at epsilon {worst["epsilon"]:g}, for the {worst["target"]}.
        Mean coverage by epsilon: {by_epsilon}. Misses on the two sides differ by {sides.max():.3f} at most. The mean of
        the networks drawn is closer than the fit itself in {closer} places.
    """


COVERAGE = Experiment(trials, run, RESULTS, figure, caption)
