"""The RAND Health Insurance Experiment, from private records to answered queries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.data import PrivateDataset, exact_marginals
from pgmpy_dp.fitting.plans.planning import plan_measurements
from pgmpy_dp.networks import PrivateBayesianNetwork, PrivateMarkovNetwork
from pgmpy_dp.plotting import plot_bounds
from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget, SimulatedNoise
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.report import write_report
from pgmpy_dp.schema import Bins, Schema

INFINITY = float("inf")

SCHEMA = Schema(
    {
        "visits": Bins([0, 1, 3, 6, 11, INFINITY], ["none", "1_to_2", "3_to_5", "6_to_10", "11_or_more"]),
        "coinsurance": Bins([0, 1, 30, 60, 101], ["free_care", "25_percent", "50_percent", "95_percent"]),
        "deductible": ["no", "yes"],
        "limitation": ["no", "yes"],
        "diseases": Bins([0, 5, 10, 15, 20, INFINITY], ["below_5", "5_to_9", "10_to_14", "15_to_19", "20_or_more"]),
        "health": ["excellent", "good", "fair", "poor"],
    }
)

# Known in the field, and not read off these records: chronic diseases limit people and make them feel less healthy; who
# needs care, and who pays less for it, uses more. The plan, a share and a deductible together, was drawn by lot.
EDGES = [
    ("diseases", "limitation"),
    ("diseases", "health"),
    ("limitation", "health"),
    ("coinsurance", "deductible"),
    ("diseases", "visits"),
    ("limitation", "visits"),
    ("coinsurance", "visits"),
    ("deductible", "visits"),
]

TITLE = "Visits to doctors, insurance and health in the RAND experiment"

QUERIES: tuple[tuple[str, dict[str, str]], ...] = (
    ("visits", {"health": "poor"}),
    ("visits", {"coinsurance": "free_care"}),
    ("limitation", {"visits": "11_or_more"}),
)

INTERVAL = 0.9


def load_records() -> pd.DataFrame:
    """Load the person-years of the experiment, one per row, with self-rated health in one column."""
    from statsmodels.datasets import randhie

    raw = randhie.load_pandas().data
    health = np.select([raw["hlthg"] == 1, raw["hlthf"] == 1, raw["hlthp"] == 1], ["good", "fair", "poor"], "excellent")
    return pd.DataFrame(
        {
            "visits": raw["mdvis"],
            "coinsurance": np.expm1(raw["lncoins"]),
            "deductible": np.where(raw["idp"] == 1, "yes", "no"),
            "limitation": np.where(raw["physlm"] >= 0.5, "yes", "no"),
            "diseases": raw["disea"],
            "health": health,
        }
    )


def first_years(records: pd.DataFrame) -> pd.DataFrame:
    """Keep one year of each person: plans are independent of health, as they were drawn, where nobody counts twice.

    The file has no ids. Its rows are sorted by person, whose health was asked once: whoever has the answers of the row
    before is taken for the same person.
    """
    asked = records[["limitation", "diseases", "health"]]
    return records[(asked != asked.shift()).any(axis=1)].reset_index(drop=True)


def run(out: Path, epsilon: float, stage: Callable[[str], None] = print) -> str:
    """Run the demonstration, write its results to a folder, and return a text; `stage` is called before each step."""
    stage("Reading the records")
    records = first_years(load_records())

    stage("Releasing noisy marginals")
    noisy = release(records, epsilon)
    out.mkdir(parents=True, exist_ok=True)
    noisy.save(out / "release.zip")

    stage("Fitting a Bayesian and a Markov network")
    network = PrivateBayesianNetwork(EDGES).fit(noisy)
    network.save(out / "bayesian.zip")
    PrivateMarkovNetwork(network.moralize().edges()).fit(noisy).save(out / "markov.zip")
    write_report(noisy, out / "report.html", network)
    network.explore(out / "explore.html", title=TITLE)

    stage("Answering with bounds")
    lines = [_answered(variable, evidence, network, records) for variable, evidence in QUERIES]

    stage("Drawing bounds at three epsilons")
    variable, evidence = QUERIES[0]
    bounds = {f"epsilon = {epsilon:g}": network.query([variable], evidence, INTERVAL)}
    for less in (epsilon / 3, epsilon / 10):
        study = PrivateBayesianNetwork(EDGES).fit(release(records, less, noise=SimulatedNoise(0)))
        bounds[f"epsilon = {less:.2g}"] = study.query([variable], evidence, INTERVAL)
    title = f"{_question(variable, evidence)} with 90 % bounds; black: the records"
    plot_bounds(bounds, title, truth=truth(records, variable, evidence)).savefig(out / "bounds.png", dpi=130)

    return "\n".join([f"{noisy}\n", *lines, _closing(out, epsilon)])


def release(records: pd.DataFrame, epsilon: float, noise: NoiseSource = OPENDP_NOISE) -> NoisyMarginals:
    """Measure the network's families, and pairs that it does not join."""
    cliques, weights = plan_measurements(DiscreteBayesianNetwork(EDGES), SCHEMA)
    data = PrivateDataset(records, SCHEMA, PrivacyBudget(epsilon), noise=noise)
    return data.measure(cliques, epsilon, weights=weights)


def _question(variable: str, evidence: Mapping[str, str]) -> str:
    return f"P({variable} | {', '.join(f'{name} = {state}' for name, state in evidence.items())})"


def truth(records: pd.DataFrame, variable: str, evidence: Mapping[str, str]) -> NDArray[np.float64]:
    """Return the records' own answer, which is not private."""
    clique = (variable, *evidence)
    table = exact_marginals(records, SCHEMA, [clique]).tables[clique]
    position: tuple[Any, ...] = (slice(None), *(SCHEMA.states[name].index(state) for name, state in evidence.items()))
    counts = table[position]
    shares: NDArray[np.float64] = counts / counts.sum()
    return shares


def _answered(
    variable: str, evidence: Mapping[str, str], network: PrivateBayesianNetwork, records: pd.DataFrame
) -> str:
    result = network.query([variable], evidence, INTERVAL)
    heads = ("records *", "private", "lower", "upper")
    lines = [f"{_question(variable, evidence)}\n{'':14}" + "".join(f"{head:>15}" for head in heads)]
    bounds = result[["value", "lower", "upper"]].to_numpy()
    for state, own, row in zip(result.index, truth(records, variable, evidence), bounds, strict=True):
        lines.append(f"    {state:<10}" + "".join(f"{value:>15.3f}" for value in (own, *row)))
    return "\n".join(lines) + "\n"


def _closing(out: Path, epsilon: float) -> str:
    return f"""\
* NOT PRIVATE: computed from the records themselves, to compare with; so are the black marks of bounds.png, whose two
  smaller epsilons have simulated noise. Everything else follows from the release alone and may be published
  (epsilon = {epsilon:g}). A record is a person in one year: the guarantee is for that record.

Written to {out.resolve()}:
    release.zip       the noisy marginals and their guarantee: fit it again with dp.NoisyMarginals.load
    bayesian.zip      Bayesian network with its release: dp.load, pgmpy-dp query --interval 0.9
    markov.zip        Markov network, from the same release
    report.html       what was released, and how noisy it is
    explore.html      a page that answers questions, with bounds: open it in a browser
    bounds.png        {_question(*QUERIES[0])} with bounds, at three epsilons"""
