"""Coverage and width of the bounds on answers of `PrivateBayesianNetwork`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from numpy.typing import NDArray
from pgmpy.models import DiscreteBayesianNetwork
from tqdm import tqdm

from experiments.populations import bnlearn_network
from experiments.runner import Experiment
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.estimators.from_tables import PrivateMLE
from pgmpy_dp.estimators.not_private_mle import NotPrivateMLE
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks, draw_networks
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.conditioning import Conditioning
from pgmpy_dp.models.fitted import bounds, rounded_to_records
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.observed.factors import conditional, families, log_linear, tabular_cpd
from pgmpy_dp.papers.private_bayesian import network_of
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Schema

NETWORKS, EPSILONS, RECORDS, INTERVAL = ("asia", "sachs", "child", "alarm"), (0.3, 1.0, 3.0), 10_000, 0.9
TOLERATED = 0.02  # largest tolerated difference of coverage from its nominal value
COLUMNS = ("coverage", "below", "above", "width", "rmse", "rmse_mean")
RESULTS = ("target", "answers", *COLUMNS)
MARKERS = {"node": "o", "family": "s", "query": "^"}
COLOURS = {"population": "#0072B2", "records": "#D55E00"}


def trials(quick: bool) -> list[dict[str, Any]]:
    """List one study of several data sets per trial; widths are compared with errors over the data sets."""
    networks, epsilons = (NETWORKS[:2], EPSILONS[1:2]) if quick else (NETWORKS, EPSILONS)
    sets, chunks = (3, 1) if quick else (10, 3)
    return [
        {"network": n, "epsilon": e, "first": sets * chunk, "sets": sets}
        for n in networks
        for e in epsilons
        for chunk in range(chunks)
    ]


def run(network: str, epsilon: float, first: int, sets: int) -> list[dict[str, Any]]:
    """Compute one row per target and kind of answer."""
    frame = coverage_study(bnlearn_network(network), epsilon, RECORDS, sets, INTERVAL, first=first)
    rows = frame.reset_index()[list(RESULTS)].to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


def _means(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.groupby(["network", "epsilon", "target", "answers"], sort=False)[list(COLUMNS)].mean().reset_index()


def figure(rows: pd.DataFrame) -> Figure:
    """Plot coverage and relative width at one position per network and epsilon."""
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
    """Write the caption: claim, outcome and reasons."""
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


KINDS = ("node", "family", "query")
TARGETS = ("population", "records")

Engine = Callable[[DiscreteBayesianNetwork, Release, int], PosteriorNetworks]


def posterior_engine(network: DiscreteBayesianNetwork, release: Release, seed: int) -> PosteriorNetworks:
    """Draw 200 networks from the posterior, as `PrivateBayesianNetwork` does."""
    return draw_networks(network, [release], 200, seed)


@dataclass(frozen=True)
class Query:
    """Query for the distribution of a variable given the states of others."""

    variable: str
    evidence: Mapping[str, Any]


def random_queries(truth: DiscreteBayesianNetwork, count: int = 50, seed: int = 0) -> list[Query]:
    """Draw queries for random variables given one to three others, with states from a record drawn from the truth."""
    generator = np.random.default_rng(seed)
    records = simulate(truth, count, seed)
    found = []
    for number in range(count):
        chosen = generator.choice(records.columns, min(1 + int(generator.integers(1, 4)), records.shape[1]), False)
        found.append(Query(str(chosen[0]), {str(v): records[v].iloc[number] for v in chosen[1:]}))
    return found


class Questions:
    """Node marginals, family marginals and queries, answered for networks of the same structure."""

    def __init__(self, truth: DiscreteBayesianNetwork, queries: Sequence[Query]) -> None:
        self.nodes = [(node,) for node in truth.nodes()]
        self.families, states = families(truth), Schema.from_model(truth).states
        self.queries = [(q.variable, {v: states[v].index(state) for v, state in q.evidence.items()}) for q in queries]

    def answers(self, conditioning: Conditioning, logs: Sequence[Vector] | Vector) -> dict[str, Vector]:
        """Return an array for each kind of answer, with one row per network."""
        answers = [conditioning.distributions(logs, [asked], given)[0] for asked, given in self.queries]
        return {
            "node": conditioning.marginals(logs, self.nodes),
            "family": conditioning.marginals(logs, self.families),
            "query": np.concatenate(answers, axis=1),
        }

    def records(self, conditioning: Conditioning, logs: Vector, total: float) -> dict[str, Any]:
        """Count, for each kind of answer, the records that have the evidence."""
        counts = []
        for asked, given in self.queries:
            answer, probability = conditioning.distributions([logs], [asked], given)
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
        Number of records of a data set, and number of data sets.
    interval : float
    queries : int
        Number of random queries with evidence (`random_queries`).
    engine : callable
        Maps a network, a release and a seed to draws.
    first : int
        Seed of the first data set.
    **options
        Options of `PrivateMLE`, which measures: mechanism, delta, allocation.

    Returns
    -------
    DataFrame
        One row per target ("population", "records") and kind of answer (node marginals, family cells, queries):
        `coverage`, the share of true answers between the bounds; `error`, its standard error over data sets; `below`
        and `above`, the shares of true answers on either side; `width`, the ratio of mean widths to those of the
        oracle, which are 3.29 (for 90 %) standard deviations of the errors of `PrivateMLE`; `width_mean`, the same with
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
    """Whether bounds held, their widths and the estimates' errors, for answers of one kind in one data set."""

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
    fit = PrivateMLE(epsilon, check=0, **options).fit(network, data)
    posterior = engine(network, fit.release_, number)
    own = NotPrivateMLE(state_names=schema).fit(network, frame)
    conditioning = Conditioning(posterior.layout)
    tables = {}
    for label, cpds in (("fit", fit.parameters_), ("records", own.parameters_), ("population", truth.get_cpds())):
        tables[label] = _answers(questions, cpds, posterior.schema)
    mean = np.log(np.exp(posterior.population).mean(axis=0))
    about = questions.records(conditioning, mean, float(posterior.totals.mean()))
    for target in TARGETS:
        draws = questions.answers(conditioning, posterior.draws(target))
        for kind in KINDS:
            wanted, slack = tables[target][kind], 1e-9
            lower, upper = rounded_to_records(*bounds(draws[kind], interval), about[kind])
            held = (lower - slack <= wanted) & (wanted <= upper + slack)
            error, mean_error = tables["fit"][kind] - wanted, draws[kind].mean(axis=0) - wanted
            yield (target, kind), _Outcome(held, wanted < lower - slack, upper - lower, error, mean_error)
    divergences.append((_divergence(truth, fit.parameters_), _divergence(truth, _mean_cpds(posterior, conditioning))))


def _answers(questions: Questions, cpds: Sequence[Any], schema: Schema) -> dict[str, Vector]:
    network = network_of(cpds)
    layout, logs, _ = log_linear(network, schema.states)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = questions.answers(Conditioning(layout), [np.maximum(logs, -690.0)])
    return {kind: values[0] for kind, values in found.items()}


def _mean_cpds(posterior: PosteriorNetworks, conditioning: Conditioning) -> list[Any]:
    layout = posterior.layout
    tables = layout.tables(conditioning.marginals(posterior.population, layout.scopes).mean(axis=0))
    return [tabular_cpd(scope, conditional(tables[scope]), posterior.schema.states) for scope in layout.scopes]


def _divergence(truth: DiscreteBayesianNetwork, cpds: Sequence[Any]) -> float:
    return kl_divergence(truth, network_of(cpds))
