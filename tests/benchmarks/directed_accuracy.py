"""Joint KL(true || fitted) of Bayesian networks fitted from records, over several data sets with simulated noise.

With --missing a share of the edges is taken away from the network that is fitted, others for each data set, and the
divergence is that in excess of the best network of the remaining edges.

python tests/benchmarks/directed_accuracy.py [--networks asia,alarm] [--epsilons 1] [--records 10000] [--sets 10]
    [--estimators "auto;CollectiveEM;planned;size"] [--missing 0,0.1,0.4] [--shared]
    [--out docs/pictures/estimators.csv]

Rows that --out has of other runs are kept. With --shared all estimators read the tables that AutoMLE measures. Beside
each divergence is the probability, added up over all CPDs, of states that in truth have less than .002 given the
parents.
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import options, private
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pgmpy.models import DiscreteBayesianNetwork
from tqdm import tqdm

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network, kl_divergence
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.observed.factors import conditional, families, log_linear, ordered_table, tabular_cpd

sys.path.append(str(Path(__file__).parents[2]))
from experiments.drawing import styles


def mle(**options):
    return lambda epsilon: dp.PrivateMLE(epsilon, check=0, **options)


# The allocations, all else as by default, then other choices.
ALLOCATIONS = {
    "default": mle(),
    "uniform": mle(allocation="uniform"),
    "size": mle(allocation="size"),
    "data_dependent": mle(allocation="data_dependent"),
}
OTHERS = {
    "paper, uniform": mle(allocation="uniform", tables="paper", consistency="mutual"),
    "paper, data": mle(allocation="data_dependent", tables="paper", consistency="mutual"),
    "data, q=1, no W": mle(allocation=dp.papers.DataDependentAllocation(sampling_rate=1.0, weights=())),
    "data, covary": mle(allocation=dp.papers.DataDependentAllocation(sensitivity="covary")),
    "planned": mle(allocation="planned"),
    "each alone": mle(consistency=None),
    "planned, alone": mle(allocation="planned", consistency=None),
    "inference": mle(consistency="inference"),
    "planned, inf.": mle(allocation="planned", consistency="inference"),
    "auto": dp.AutoMLE,
    "unchecked": lambda epsilon: dp.AutoMLE(epsilon, check=0),
    "CollectiveEM": dp.CollectiveEM,
    "PosteriorMean": dp.PosteriorMean,
}
ESTIMATORS = ALLOCATIONS | OTHERS
KEY = ["network", "epsilon", "missing", "estimator"]


def main() -> None:
    arguments = options(
        networks=("asia", "sachs", "child", "insurance", "alarm"), epsilons=(0.3, 1.0, 3.0), missing=(0.0,),
        records=10_000, sets=10, estimators=";".join(ALLOCATIONS), shared=False, out=Path,
    )  # fmt: skip
    chosen = {label: ESTIMATORS[label] for label in arguments.estimators.split(";")}
    print("mean KL, its standard error, mass on rare states, milliseconds; ratio: the first's mean to the best other's")
    print(f"{'network':<10}{'epsilon':<8}{'missing':<8}" + "".join(f"{name:<28}" for name in chosen) + "ratio")
    for name in arguments.networks:
        truth = bnlearn_network(name)
        for missing in arguments.missing:
            for epsilon in arguments.epsilons:
                rows = run(name, truth, epsilon, missing, arguments.records, arguments.sets, chosen, arguments.shared)
                if arguments.out:
                    keep(rows, arguments.out)


def keep(rows: pd.DataFrame, out: Path) -> None:
    """Write rows over those of the same network, epsilon, missing share and estimator, and beside all others."""
    if out.exists():
        rows = pd.concat([pd.read_csv(out), rows]).drop_duplicates(KEY, keep="last")
    rows.to_csv(out, index=False, float_format="%.4g")


def draw_estimators(rows: pd.DataFrame, target: Path) -> None:
    """Draw divergences relative to that of the better of two estimators, a panel per share of missing edges."""
    missing, pairs = sorted(rows["missing"].unique()), ["CollectiveEM", "planned"]
    labels = {"auto": "AutoMLE", "CollectiveEM": "CollectiveEM", "planned": "PrivateMLE, the same tables"}
    page = Figure(figsize=(10, 5.2), layout="constrained")
    for axes, share in zip(page.subplots(1, len(missing), sharey=True, sharex=True), missing, strict=True):
        means = _means(rows[rows["missing"] == share])
        _ratios(axes, means.div(means[pairs].min(axis=1), axis=0), labels)
        axes.set_title("all edges" if share == 0 else f"{100 * share:g} % of edges missing")
    page.supxlabel("divergence / that of the better of CollectiveEM and PrivateMLE")
    _finish(page, target)


def draw_allocations(rows: pd.DataFrame, target: Path) -> None:
    """Draw divergences of allocations of the budget relative to that of the default."""
    labels = {
        "planned": "PrivateMLE, planned tables",
        "uniform": "equal shares (D-Ind)",
        "data_dependent": "data-dependent shares",
        "paper, uniform": "two tables per family, D-Ind",
        "paper, data": "two tables per family, data-dependent",
    }
    page = Figure(figsize=(8.5, 5.2), layout="constrained")
    means = _means(rows[rows["missing"] == 0])
    _ratios(page.subplots(), means.div(means["size"], axis=0), labels)
    page.supxlabel("divergence / that of the default allocation")
    _finish(page, target)


def _means(rows: pd.DataFrame) -> pd.DataFrame:
    """Return mean divergences, one row per network and epsilon, one column per estimator."""
    return rows.pivot_table("excess", ["network", "epsilon"], "estimator", sort=False)


def _ratios(axes: Axes, ratios: pd.DataFrame, labels: dict[str, str]) -> None:
    places, shifts, style = np.arange(len(ratios)), np.linspace(-0.2, 0.2, len(labels)), styles(list(labels.values()))
    for shift, (name, label) in zip(shifts, labels.items(), strict=True):
        colour, line = style[label]
        axes.plot(ratios[name], places + shift, line[0], color=colour, markersize=4.5, label=label)
    axes.axvline(1.0, color="0.6", linewidth=0.8)
    axes.set(xscale="log", yticks=places, ylim=(len(ratios) - 0.4, -0.6))
    axes.set_yticklabels([f"{network}, ε = {epsilon:g}" for network, epsilon in ratios.index])
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(axis="y", alpha=0.4)


def _finish(page: Figure, target: Path) -> None:
    page.legend(*page.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, frameon=False)
    page.savefig(target, metadata={"Date": None})


def poorer(truth, missing, seed):
    """Take a share of the edges away, and give the rest the CPDs that are closest to the truth."""
    edges = list(truth.edges())
    kept = np.sort(np.random.default_rng(seed).permutation(len(edges))[round(missing * len(edges)) :])
    network = DiscreteBayesianNetwork([edges[number] for number in kept])
    network.add_nodes_from(truth.nodes())
    layout, logs, states = log_linear(truth)
    scopes = families(network)
    tree = JunctionTree.build(layout.cardinalities, layout.scopes, scopes)
    potentials = np.zeros(tree.layout.size)
    potentials[tree.layout.places(layout.scopes)] = logs
    calibration = tree.calibrate(potentials)
    for scope in scopes:
        network.add_cpds(tabular_cpd(scope, conditional(tree.marginal(calibration, scope)), states))
    return network


def run(name, truth, epsilon, missing, records, sets, chosen, shared) -> pd.DataFrame:
    """Fit every data set by every estimator, print one line, and return a row per estimator."""
    schema = dp.Schema.from_model(truth)
    results = {label: [] for label in chosen}
    for number in tqdm(range(sets), desc=f"{name} {epsilon}", leave=False):
        frame = simulate(truth, records, number)
        best = poorer(truth, missing, number)
        least = kl_divergence(truth, best)
        planned = dp.AutoMLE(epsilon).fit(best, private(frame, schema, epsilon, seed=number)) if shared else None
        for label, make in chosen.items():
            data = planned.release_ if shared else private(frame, schema, epsilon, seed=number)
            network = DiscreteBayesianNetwork(best.edges())
            network.add_nodes_from(best.nodes())
            start = time.perf_counter()
            network.fit(data, estimator=make(None if shared else epsilon))
            seconds = time.perf_counter() - start
            if label.startswith("paper"):
                floor(network)
            divergence = kl_divergence(truth, network) - least
            results[label].append((divergence, seconds, on_rare_states(truth, network)))
    cells, means, rows = [], {}, []
    for label, values in results.items():
        divergence, seconds, mass = np.array(values).T
        means[label] = divergence.mean()
        spread = divergence.std(ddof=1) / np.sqrt(sets)
        rows.append((name, epsilon, missing, label, means[label], spread, np.median(seconds)))
        cells.append(f"{means[label]:.4g} {spread:.2g} {mass.mean():.3f} {1000 * np.median(seconds):.0f}")
    first, *others = chosen
    ratio = means[first] / min(means[label] for label in others) if others else np.nan
    print(f"{name:<10}{epsilon:<8}{missing:<8}" + "".join(f"{cell:<28}" for cell in cells) + f"{ratio:.3f}", flush=True)
    return pd.DataFrame(rows, columns=[*KEY, "excess", "standard_error", "seconds"])


def on_rare_states(truth, fitted, rare=0.002) -> float:
    """Add up the fitted probabilities of states that are rare given the parents, over families that both have."""
    layout, logs, states = log_linear(truth)
    tree, mass = JunctionTree.build(layout.cardinalities, layout.scopes), 0.0
    calibration = tree.calibrate(logs)
    for scope in layout.scopes:
        cpd = fitted.get_cpds(scope[0])
        if set(cpd.variables) == set(scope):
            joint = tree.marginal(calibration, scope)
            own = ordered_table(cpd, states).transpose([cpd.variables.index(variable) for variable in scope])
            mass += float((joint.sum(axis=0) * own)[conditional(joint) < rare].sum())
    return mass


def floor(network, least=1e-6) -> None:
    """Raise probabilities to one in a million: read as in the paper, many are zero and the divergence infinite."""
    for cpd in network.get_cpds():
        cpd.values = np.maximum(cpd.values, least)
        cpd.normalize()


if __name__ == "__main__":
    main()
