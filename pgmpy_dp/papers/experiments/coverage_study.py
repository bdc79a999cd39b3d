"""Studies with simulated records and noise show how often bounds hold, and how wide they are."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pgmpy.models import DiscreteBayesianNetwork
from tqdm import tqdm

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.estimators import NotPrivateMLE, PrivateMLE
from pgmpy_dp.evaluation.divergence import kl_divergence
from pgmpy_dp.fitting.readings.dirichlet import network_of
from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks, draw_networks
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.models.bounds import bounds
from pgmpy_dp.models.simulation import simulate
from pgmpy_dp.models.trees.conditioning import Conditioning
from pgmpy_dp.observed.factors import conditional, families, log_linear, tabular_cpd
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Schema

KINDS = ("node", "family", "query")
TARGETS = ("population", "records")

Engine = Callable[[DiscreteBayesianNetwork, Release, int], PosteriorNetworks]


def posterior_engine(network: DiscreteBayesianNetwork, release: Release, seed: int) -> PosteriorNetworks:
    """Draw 200 networks from the posterior, as `PrivateBayesianNetwork` does."""
    return draw_networks(network, [release], 200, seed)


@dataclass(frozen=True)
class Query:
    """A query asks for the distribution of a variable given the states of others."""

    variable: str
    evidence: Mapping[str, Any]


def random_queries(truth: DiscreteBayesianNetwork, count: int = 50, seed: int = 0) -> list[Query]:
    """Ask for random variables given one to three others, whose states a record drawn from the truth has."""
    generator = np.random.default_rng(seed)
    records = simulate(truth, count, seed)
    found = []
    for number in range(count):
        chosen = generator.choice(records.columns, min(1 + int(generator.integers(1, 4)), records.shape[1]), False)
        found.append(Query(str(chosen[0]), {str(v): records[v].iloc[number] for v in chosen[1:]}))
    return found


class Questions:
    """The questions ask networks of one structure for node marginals, cells of family marginals and queries."""

    def __init__(self, truth: DiscreteBayesianNetwork, queries: Sequence[Query]) -> None:
        self.nodes = [(node,) for node in truth.nodes()]
        self.families, self.queries = families(truth), queries

    def answers(self, conditioning: Conditioning, logs: Sequence[Vector] | Vector) -> dict[str, Vector]:
        """Give an array of each kind, with a row for each network."""
        answers = [conditioning.distributions(logs, [query.variable], query.evidence)[0] for query in self.queries]
        return {
            "node": conditioning.marginals(logs, self.nodes),
            "family": conditioning.marginals(logs, self.families),
            "query": np.concatenate(answers, axis=1),
        }

    def records(self, conditioning: Conditioning, logs: Vector, total: float) -> dict[str, Any]:
        """Count, for each kind, the records with the evidence, which the answers are about."""
        counts = []
        for query in self.queries:
            answer, probability = conditioning.distributions([logs], [query.variable], query.evidence)
            counts.append(np.full(answer.size, total * probability[0]))
        return {"node": total, "family": total, "query": np.concatenate(counts)}


def coverage_study(
    truth: DiscreteBayesianNetwork,
    epsilon: float,
    records: int = 10_000,
    sets: int = 30,
    interval: float = 0.9,
    queries: int = 50,
    engine: Engine = posterior_engine,
    first: int = 0,
    **options: Any,
) -> pd.DataFrame:
    """Measure coverage and width of bounds over many data sets drawn from a known network.

    Parameters
    ----------
    truth : DiscreteBayesianNetwork
    epsilon : float
    records, sets : int
        Records of a data set; data sets.
    interval : float
    queries : int
        Random queries with evidence (`random_queries`).
    engine : callable
        Network, release and seed to draws.
    first : int
        Seed of the first data set.
    **options
        For `PrivateMLE`, which measures: mechanism, delta, allocation.

    Returns
    -------
    DataFrame
        A row for each target ("population", "records") and kind of answer (node marginals, family cells, queries):
        `coverage`, the share of true answers between the bounds; `error`, its standard error over data sets; `below`
        and `above`, the shares of true answers on either side; `width`, the ratio of mean widths to those of the
        oracle, which are 3.29 (for 90 %) standard deviations of the errors of `PrivateMLE`; `width_mean`, the same of
        the errors of the draws' mean; `rmse` and `rmse_mean`, root mean square errors of the two estimators.
        `attrs["divergence"]` has the mean KL divergences of `PrivateMLE` and of the posterior mean.
    """
    from scipy.stats import norm

    questions = Questions(truth, random_queries(truth, queries))
    oracle = 2 * float(norm.ppf((1 + interval) / 2))
    rows: dict[tuple[str, str], list[_Outcome]] = {}
    divergences: list[tuple[float, float]] = []
    numbers = range(first, first + sets)
    for number in tqdm(numbers, desc=f"epsilon {epsilon:g}", leave=False, delay=1.0):
        for key, outcome in _one_set(
            truth, epsilon, records, interval, questions, engine, number, options, divergences
        ):
            rows.setdefault(key, []).append(outcome)
    lines = []
    for (target, kind), outcomes in rows.items():
        held = np.array([np.mean(o.held) for o in outcomes])
        errors, mean_errors = (np.array([getattr(o, name) for o in outcomes]) for name in ("error", "mean_error"))
        width = np.mean([o.width for o in outcomes])
        lines.append(
            {
                "target": target,
                "answers": kind,
                "coverage": held.mean(),
                "error": held.std(ddof=1) / np.sqrt(len(held)) if len(held) > 1 else np.nan,
                "below": np.mean([o.below for o in outcomes]),
                "above": np.mean([~(o.held | o.below) for o in outcomes]),
                "width": width / (oracle * errors.std(axis=0, ddof=1).mean()) if sets > 1 else np.nan,
                "width_mean": width / (oracle * mean_errors.std(axis=0, ddof=1).mean()) if sets > 1 else np.nan,
                "rmse": np.sqrt(np.mean(errors**2)),
                "rmse_mean": np.sqrt(np.mean(mean_errors**2)),
            }
        )
    frame = pd.DataFrame(lines).set_index(["target", "answers"])
    frame.attrs["divergence"] = dict(zip(("PrivateMLE", "PosteriorMean"), np.mean(divergences, axis=0), strict=True))
    return frame


@dataclass(frozen=True)
class _Outcome:
    """An outcome says of answers of one kind in one data set whether bounds held, and how far estimates were off."""

    held: NDArray[np.bool_]
    below: NDArray[np.bool_]
    width: Vector
    error: Vector
    mean_error: Vector


def _one_set(
    truth: DiscreteBayesianNetwork,
    epsilon: float,
    count: int,
    interval: float,
    questions: Questions,
    engine: Engine,
    number: int,
    options: Mapping[str, Any],
    divergences: list[tuple[float, float]],
) -> Iterator[tuple[tuple[str, str], _Outcome]]:
    schema = Schema.from_model(truth)
    frame = simulate(truth, count, number)
    delta = float(options.get("delta", 0.0))
    data = PrivateDataset(frame, schema, PrivacyBudget(epsilon, delta), noise=SimulatedNoise(number))
    network = DiscreteBayesianNetwork(truth.edges())
    network.add_nodes_from(truth.nodes())
    fit = PrivateMLE(epsilon, **options).fit(network, data)
    posterior = engine(network, fit.release_, number)
    own = NotPrivateMLE(state_names=schema).fit(network, frame)
    conditioning = Conditioning(posterior.layout, posterior.schema)
    tables = {}
    for label, cpds in (("fit", fit.parameters_), ("records", own.parameters_), ("population", truth.get_cpds())):
        tables[label] = _answers(questions, cpds, posterior.schema)
    mean = np.log(np.exp(posterior.population).mean(axis=0))
    about = questions.records(conditioning, mean, float(posterior.totals.mean()))
    for target in TARGETS:
        draws = questions.answers(conditioning, posterior.draws(target))
        for kind in KINDS:
            wanted, slack = tables[target][kind], 1e-9
            lower, upper = bounds(draws[kind], interval, about[kind])
            held = (lower - slack <= wanted) & (wanted <= upper + slack)
            error, mean_error = tables["fit"][kind] - wanted, draws[kind].mean(axis=0) - wanted
            yield (target, kind), _Outcome(held, wanted < lower - slack, upper - lower, error, mean_error)
    divergences.append((_divergence(truth, fit.parameters_), _divergence(truth, _mean_cpds(posterior, conditioning))))


def _answers(questions: Questions, cpds: Sequence[Any], schema: Schema) -> dict[str, Vector]:
    network = network_of(cpds)
    layout, logs, _ = log_linear(network, schema.states)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = questions.answers(Conditioning(layout, schema), [np.maximum(logs, -690.0)])
    return {kind: values[0] for kind, values in found.items()}


def _mean_cpds(posterior: PosteriorNetworks, conditioning: Conditioning) -> list[Any]:
    layout = posterior.layout
    tables = layout.tables(conditioning.marginals(posterior.population, layout.scopes).mean(axis=0))
    return [tabular_cpd(scope, conditional(tables[scope]), posterior.schema.states) for scope in layout.scopes]


def _divergence(truth: DiscreteBayesianNetwork, cpds: Sequence[Any]) -> float:
    return kl_divergence(truth, network_of(cpds))
