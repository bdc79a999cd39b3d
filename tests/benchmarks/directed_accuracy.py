"""Joint KL(true || fitted) of Bayesian networks fitted from records, over several data sets with simulated noise.

python tests/benchmarks/directed_accuracy.py [--networks asia,alarm] [--epsilons 1] [--records 10000] [--sets 10]
"""

from __future__ import annotations

import argparse
import gzip
import importlib.resources
import time

import numpy as np
import pandas as pd
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.readwrite import BIFReader
from tqdm import tqdm

import pgmpy_dp as dp
from pgmpy_dp.estimators.networks import log_linear
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.inference import JunctionTree, sample

ESTIMATORS = {
    "PrivateMLE uniform": lambda epsilon: dp.PrivateMLE(epsilon, allocation="uniform"),
    "PrivateMLE size": lambda epsilon: dp.PrivateMLE(epsilon, allocation="size"),
    "CollectiveEM": lambda epsilon: dp.CollectiveEM(epsilon),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="asia,sachs,child,insurance,alarm")
    parser.add_argument("--epsilons", default="0.3,1,3")
    parser.add_argument("--records", type=int, default=10_000)
    parser.add_argument("--sets", type=int, default=10)
    arguments = parser.parse_args()
    print("mean KL, its standard error, median seconds of a fit")
    print(f"{'network':<12}{'epsilon':<9}" + "".join(f"{name:<30}" for name in ESTIMATORS))
    for name in arguments.networks.split(","):
        packed = importlib.resources.files("pgmpy").joinpath(f"utils/example_models/{name}.bif.gz")
        truth = BIFReader(string=gzip.decompress(packed.read_bytes()).decode()).get_model()
        for epsilon in map(float, arguments.epsilons.split(",")):
            run(name, truth, epsilon, arguments.records, arguments.sets)


def run(name, truth, epsilon, records, sets) -> None:
    """Fit every data set by every estimator and print one row."""
    schema = dp.Schema.from_model(truth)
    layout, potentials, states = log_linear(truth)
    tree = JunctionTree.build(layout.cardinalities, layout.scopes)
    calibration = tree.calibrate(potentials)
    results = {label: [] for label in ESTIMATORS}
    for number in tqdm(range(sets), desc=f"{name} {epsilon}", leave=False):
        codes = sample(tree, calibration, records, np.random.default_rng(number))
        frame = pd.DataFrame({v: np.array(states[v])[codes[:, i]] for i, v in enumerate(tree.variables)})
        for label, make in ESTIMATORS.items():
            data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(epsilon), noise=dp.SimulatedNoise(number))
            network = DiscreteBayesianNetwork(truth.edges())
            network.add_nodes_from(truth.nodes())
            start = time.perf_counter()
            network.fit(data, estimator=make(epsilon))
            results[label].append((kl_divergence(truth, network), time.perf_counter() - start))
    cells = []
    for values in results.values():
        divergence, seconds = np.array(values).T
        spread = divergence.std(ddof=1) / np.sqrt(sets)
        cells.append(f"{divergence.mean():.4g}  {spread:.2g}  {np.median(seconds):.3f}")
    print(f"{name:<12}{epsilon:<9}" + "".join(f"{cell:<30}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
