"""Joint KL(true || fitted) of Bayesian networks fitted from records, over several data sets with simulated noise.

With --missing a share of the edges is taken away from the network that is fitted, others for each data set, and the
divergence is that in excess of the best network of the remaining edges.

python tests/benchmarks/directed_accuracy.py [--networks asia,alarm] [--epsilons 1] [--records 10000] [--sets 10]
    [--estimators "auto;CollectiveEM;planned;size"] [--missing 0,0.1,0.4]
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from pgmpy.models import DiscreteBayesianNetwork
from tqdm import tqdm

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network, kl_divergence
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.models.simulation import simulate
from pgmpy_dp.observed.factors import conditional, families, log_linear, tabular_cpd


def mle(**options):
    return lambda epsilon: dp.PrivateMLE(epsilon, **options)


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
    "CollectiveEM": dp.CollectiveEM,
    "PosteriorMean": dp.PosteriorMean,
}
ESTIMATORS = ALLOCATIONS | OTHERS


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="asia,sachs,child,insurance,alarm")
    parser.add_argument("--epsilons", default="0.3,1,3")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--missing", default="0")
    parser.add_argument("--estimators", default=";".join(ALLOCATIONS))
    arguments = parser.parse_args()
    chosen = {label: ESTIMATORS[label] for label in arguments.estimators.split(";")}
    print("mean KL, its standard error, milliseconds of a fit; ratio: the first's mean to the best other's")
    print(f"{'network':<10}{'epsilon':<8}{'missing':<8}" + "".join(f"{name:<21}" for name in chosen) + "ratio")
    for name in arguments.networks.split(","):
        truth = bnlearn_network(name)
        for missing in map(float, arguments.missing.split(",")):
            for epsilon in map(float, arguments.epsilons.split(",")):
                run(name, truth, epsilon, missing, arguments.records, arguments.sets, chosen)


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


def run(name, truth, epsilon, missing, records, sets, chosen) -> None:
    """Fit every data set by every estimator and print one row."""
    schema = dp.Schema.from_model(truth)
    results = {label: [] for label in chosen}
    for number in tqdm(range(sets), desc=f"{name} {epsilon}", leave=False):
        frame = simulate(truth, records, number)
        best = poorer(truth, missing, number)
        least = kl_divergence(truth, best)
        for label, make in chosen.items():
            data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(epsilon), noise=dp.SimulatedNoise(number))
            network = DiscreteBayesianNetwork(best.edges())
            network.add_nodes_from(best.nodes())
            start = time.perf_counter()
            network.fit(data, estimator=make(epsilon))
            seconds = time.perf_counter() - start
            if label.startswith("paper"):
                floor(network)
            results[label].append((kl_divergence(truth, network) - least, seconds))
    cells, means = [], {}
    for label, values in results.items():
        divergence, seconds = np.array(values).T
        means[label] = divergence.mean()
        spread = divergence.std(ddof=1) / np.sqrt(sets)
        cells.append(f"{means[label]:.4g} {spread:.2g} {1000 * np.median(seconds):.0f}")
    first, *others = chosen
    ratio = means[first] / min(means[label] for label in others) if others else np.nan
    print(f"{name:<10}{epsilon:<8}{missing:<8}" + "".join(f"{cell:<21}" for cell in cells) + f"{ratio:.3f}", flush=True)


def floor(network, least=1e-6) -> None:
    """Raise probabilities to one in a million: read as in the paper, many are zero and the divergence infinite."""
    for cpd in network.get_cpds():
        cpd.values = np.maximum(cpd.values, least)
        cpd.normalize()


if __name__ == "__main__":
    main()
