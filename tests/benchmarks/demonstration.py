"""How often the demonstration's network passes its own test of fit, and how often its bounds hold the records' answers.

    python tests/benchmarks/demonstration.py [--runs 100] [--first-seed 0] [--epsilon 1] [--out FILE.csv]

Each run is a release of the demonstration's records with simulated noise, a fit, its test, and 90 % bounds of the three
questions, which have twelve states. A row a run: whether the test fails and its p-value, the share of states within
their bounds, and the means of the bounds' width and of the error. Seeds that are in the file are not run again; all
runs are in docs/pictures/demonstration.csv.
"""

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from common import Rows, options
from matplotlib.figure import Figure

import pgmpy_dp as dp
from pgmpy_dp import demo

FOUND = ["fails", "p_value", "covered", "width", "error"]


def one_run(records: pd.DataFrame, epsilon: float, seed: int) -> dict[str, float]:
    network = dp.PrivateBayesianNetwork(demo.EDGES)
    network.fit(demo.release(records, epsilon, noise=dp.SimulatedNoise(seed)))
    check, answers = network.check_fit(), []
    for variable, evidence in demo.QUERIES:
        truth = demo.truth(records, variable, evidence)
        answers.append(network.query([variable], evidence, demo.INTERVAL).assign(truth=truth))
    found = pd.concat(answers)
    covered = found["truth"].between(found["lower"], found["upper"]).mean()
    width, error = (found["upper"] - found["lower"]).mean(), (found["value"] - found["truth"]).abs().mean()
    return dict(zip(FOUND, (check.fails, check.p_value, covered, width, error), strict=True))


def draw(rows: pd.DataFrame, target: Path) -> None:
    """Draw how many runs have which share of answers within bounds, and which p-value."""
    page = Figure(figsize=(8.0, 2.8), layout="constrained")
    left, right = page.subplots(1, 2)
    shares = rows["covered"].value_counts().sort_index()
    left.bar(100 * shares.index, shares, 5.0, color="#0072B2")
    left.axvline(90, color="0.4", linestyle=":")
    left.set(xlabel="answers within 90 % bounds, %", ylabel="releases")
    right.hist(rows["p_value"], np.linspace(0, 1, 21), color="#0072B2")
    right.axvline(0.01, color="#D55E00")
    right.set(xlabel="p-value of the test of fit, which fails left of the line", ylabel="releases")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    page.savefig(target, metadata={"Date": None})


def main() -> None:
    asked = options(runs=100, first_seed=0, epsilon=1.0, out=Path("docs/pictures/demonstration.csv"))
    warnings.simplefilter("ignore")
    kept, records = Rows(asked.out, ["epsilon", "seed"], FOUND), demo.first_years(demo.load_records())
    for seed in range(asked.first_seed, asked.first_seed + asked.runs):
        if (asked.epsilon, seed) not in kept:
            kept.add((asked.epsilon, seed), one_run(records, asked.epsilon, seed))
    rows = kept.read().query("epsilon == @asked.epsilon")
    passed, covered = 1.0 - rows["fails"].mean(), rows["covered"]
    print(
        f"{len(rows)} runs at epsilon = {asked.epsilon:g}: the test passes in {100 * passed:.3g} %, bounds hold "
        f"{100 * covered.mean():.3g} % (standard error {100 * covered.sem():.2g}), width {rows['width'].mean():.3f}, "
        f"error {rows['error'].mean():.4f}, least p-value {rows['p_value'].min():.2g}"
    )


if __name__ == "__main__":
    main()
