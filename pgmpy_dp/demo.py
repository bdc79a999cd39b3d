"""The RAND Health Insurance Experiment, from private records to answered queries."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork
from tqdm import tqdm

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.estimators import AutoMLE, CollectiveEM, NotPrivateMLE, PrivateMLE
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.fitting import plan_measurements
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.plotting import plot_divergence, plot_marginals
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Bins, Schema

INFINITY = float("inf")

SCHEMA = Schema(
    {
        "visits": Bins([0, 1, 3, 6, 11, INFINITY], ["none", "1_to_2", "3_to_5", "6_to_10", "11_or_more"]),
        "coinsurance": Bins([0, 1, 30, 60, 101], ["free_care", "25_percent", "50_percent", "95_percent"]),
        "deductible": ["no", "yes"],
        "limitation": Bins([0, 0.5, 1], ["no", "yes"]),
        "diseases": Bins([0, 5, 10, 15, 20, INFINITY], ["below_5", "5_to_9", "10_to_14", "15_to_19", "20_or_more"]),
        "health": ["excellent", "good", "fair", "poor"],
    }
)

EDGES = [
    ("diseases", "limitation"),
    ("diseases", "health"),
    ("limitation", "health"),
    ("health", "visits"),
    ("diseases", "visits"),
    ("coinsurance", "visits"),
    ("coinsurance", "deductible"),
]

QUERIES: tuple[tuple[str, dict[str, str]], ...] = (
    ("visits", {"coinsurance": "free_care"}),
    ("visits", {"health": "poor", "diseases": "15_to_19"}),
    ("limitation", {"visits": "11_or_more"}),
)

EPSILONS = (0.03, 0.1, 0.3, 1.0, 3.0)
TRIALS = 5


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
            "limitation": raw["physlm"],
            "diseases": raw["disea"],
            "health": health,
        }
    )


def run(out: Path, epsilon: float) -> None:
    """Run the demonstration and write its results to a folder."""
    logging.getLogger("pgmpy").setLevel(logging.WARNING)  # pgmpy reports every replaced CPD
    out.mkdir(parents=True, exist_ok=True)
    with tqdm(total=5, bar_format="{desc:<44}{bar:20} {n}/{total}  {elapsed}") as progress:
        progress.set_description("Reading the records")
        records = load_records()
        structure = DiscreteBayesianNetwork(EDGES)
        cliques, weights = plan_measurements(structure, SCHEMA)
        progress.update()

        progress.set_description("Releasing noisy marginals")
        data = PrivateDataset(records, SCHEMA, PrivacyBudget(epsilon))
        data.measure(cliques, epsilon, weights=weights).save(out / "release.zip")
        noisy = NoisyMarginals.load(out / "release.zip")
        progress.update()

        progress.set_description("Fitting a Bayesian network (AutoMLE)")
        bayesian = DiscreteBayesianNetwork(EDGES).fit(noisy, estimator=AutoMLE())
        bayesian.save(str(out / "bayesian.bif"), filetype="bif")
        progress.update()

        progress.set_description("Fitting a Markov network (CollectiveEM)")
        moral = PrivateMarkovNetwork(structure.moralize().edges())
        markov = moral.fit(noisy, estimator=CollectiveEM())
        markov.save(out / "markov.json")
        exact = DiscreteBayesianNetwork(EDGES).fit(records, estimator=NotPrivateMLE(state_names=SCHEMA))
        progress.update()

        progress.set_description("Answering queries, drawing marginals")
        networks = {"non-private": exact, "AutoMLE": bayesian, "CollectiveEM": markov}
        figure = plot_marginals(
            {label: _marginals(network) for label, network in networks.items()},
            SCHEMA,
            title=f"Marginals at epsilon = {epsilon:g}",
        )
        figure.savefig(out / "marginals.png", dpi=130)
        progress.update()

    click.echo(f"\n{noisy}\n")
    for variable, evidence in QUERIES:
        _print_query(variable, evidence, networks)
    divergences = _divergences(records, cliques, weights, exact)
    figure = plot_divergence(
        EPSILONS, divergences, "Divergence of private fits from the non-private one", chosen=epsilon
    )
    figure.savefig(out / "divergence.png", dpi=130)
    click.echo(_closing(out, epsilon))


def _marginals(network: Any) -> dict[str, np.ndarray]:
    inference = VariableElimination(network)
    return {v: _answer(inference, v, {}) for v in SCHEMA.variables}


def _answer(inference: VariableElimination, variable: str, evidence: Mapping[str, str]) -> np.ndarray:
    factor = inference.query([variable], evidence=dict(evidence), show_progress=False)
    values = np.array([factor.get_value(**{variable: state}) for state in SCHEMA.states[variable]])
    probabilities: np.ndarray = values / values.sum()  # evidence leaves a Markov network's answer unnormalised
    return probabilities


def _print_query(variable: str, evidence: Mapping[str, str], networks: Mapping[str, Any]) -> None:
    given = ", ".join(f"{name} = {state}" for name, state in evidence.items())
    answers = {label: _answer(VariableElimination(network), variable, evidence) for label, network in networks.items()}
    click.echo(f"P({variable} | {given})")
    click.echo(
        "    " + " " * 14 + "".join(f"{label + (' *' if i == 0 else ''):>16}" for i, label in enumerate(answers))
    )
    for number, state in enumerate(SCHEMA.states[variable]):
        click.echo(f"    {state!s:<14}" + "".join(f"{values[number]:>16.3f}" for values in answers.values()))
    click.echo()


def _divergences(
    records: pd.DataFrame,
    cliques: tuple[tuple[str, ...], ...],
    weights: list[float],
    exact: DiscreteBayesianNetwork,
) -> dict[str, np.ndarray]:
    """KL of private fits from the exact one, with simulated noise: a study of the method, not a release."""
    result = {name: np.zeros((len(EPSILONS), TRIALS)) for name in ("AutoMLE", "CollectiveEM", "PrivateMLE")}
    cells = [(i, j) for i in range(len(EPSILONS)) for j in range(TRIALS)]
    for i, j in tqdm(
        cells,
        desc="KL against epsilon (simulated noise)",
        bar_format="{desc:<44}{bar:20} {n}/{total}  {elapsed}",
    ):
        noise = SimulatedNoise(seed=1000 * i + j)
        data = PrivateDataset(records, SCHEMA, PrivacyBudget(EPSILONS[i]), noise=noise)
        noisy = data.measure(cliques, EPSILONS[i], weights=weights)
        for estimator in (AutoMLE(), CollectiveEM(), PrivateMLE()):
            fitted = DiscreteBayesianNetwork(EDGES).fit(noisy, estimator=estimator)
            result[type(estimator).__name__][i, j] = kl_divergence(exact, fitted)
    return result


def _closing(out: Path, epsilon: float) -> str:
    return f"""
* NOT PRIVATE: computed from the records themselves, to compare with. So are divergence.png and the black bars of
  marginals.png. Everything else follows from the release alone and may be published (epsilon = {epsilon:g}).
  A record here is a person-year: the guarantee is for one of them, not for all the years of a person.

Written to {out.resolve()}:
    release.zip       the noisy marginals and their guarantee: fit it again with dp.NoisyMarginals.load
    bayesian.bif      Bayesian network for pgmpy and any other program that reads BIF
    markov.json       Markov network: dp.PrivateMarkovNetwork.load
    marginals.png     true against private marginals
    divergence.png    KL divergence against epsilon, from the non-private network; it counts families one by one, as
                      PrivateMLE does, which therefore comes nearest to it where there is little noise"""
