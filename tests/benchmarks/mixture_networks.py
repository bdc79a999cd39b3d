"""A mixture, which is given no graph, beside CollectiveEM with the true graph of a bnlearn network.

    python tests/benchmarks/mixture_networks.py [--networks child,insurance,alarm] [--records 10000] [--seeds 3]
        [--epsilon 1] [--delta 1e-6] [--stages 2] [--measure auto]

Both get the same records and the same price. For each it prints the mean and the worst total variation over all pairs
of variables between the model and the network that drew the records, the mean log-likelihood of 10,000 more records in
nats (the network's own first), and seconds of the processor; medians over the seeds. "records" are the training
records themselves: their distance is what sampling alone makes.
"""

import itertools
import time

import numpy as np
import pandas as pd
from common import options, private
from pgmpy.models import DiscreteBayesianNetwork
from structure import log_likelihood

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.inference.trees.conditioning import Conditioning
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.observed.factors import log_linear

HELD_OUT = 10_000


def pair_tables(model: DiscreteBayesianNetwork, schema: dp.Schema) -> dict[tuple[str, str], np.ndarray]:
    """Every pair's exact table."""
    layout, potentials, _ = log_linear(model)
    conditioning = Conditioning(layout)
    pairs = itertools.combinations(schema.variables, 2)
    return {pair: conditioning.distributions([potentials], list(pair), {})[0][0] for pair in pairs}


def errors(truth, answer) -> tuple[float, float]:
    """Mean and largest total variation over the pairs."""
    apart = [np.abs(table - answer(pair)).sum() / 2 for pair, table in truth.items()]
    return float(np.mean(apart)), float(np.max(apart))


def main() -> None:
    asked = options(
        networks=("child", "insurance", "alarm"), measure="auto", records=10_000, seeds=3, stages=2, epsilon=1.0,
        delta=1e-6,
    )  # fmt: skip
    print(f"{'network':<10} {'model':<14} mean pair  worst pair  log-likelihood  CPU s")
    for name in asked.networks:
        truth = bnlearn_network(name)
        schema = dp.Schema.from_model(truth)
        tables = pair_tables(truth, schema)
        held_out = simulate(truth, HELD_OUT, 1_000)
        rows: dict[str, list[tuple[float, ...]]] = {"records": [], "PairwiseMixture": [], "CollectiveEM": []}
        for seed in range(asked.seeds):
            frame = simulate(truth, asked.records, seed)
            counted = dp.exact_marginals(frame, schema, list(tables)).tables
            rows["records"].append((*errors(tables, lambda p, c=counted: c[p] / asked.records), np.nan, np.nan))
            for label in ("PairwiseMixture", "CollectiveEM"):
                data = private(frame, schema, asked.epsilon, asked.delta, seed=seed)
                start = time.process_time()
                if label == "PairwiseMixture":
                    network = (
                        dp.PairwiseMixture(asked.epsilon, asked.delta, stages=asked.stages, measure=asked.measure)
                        .fit(data)
                        .network_
                    )
                    seconds, likelihood = time.process_time() - start, network.log_likelihood(held_out)
                    found = errors(tables, network.marginal)
                else:
                    fitted = DiscreteBayesianNetwork(truth.edges())
                    fitted.add_nodes_from(truth.nodes())
                    fitted.fit(data, estimator=dp.CollectiveEM(asked.epsilon, asked.delta, mechanism="gaussian"))
                    seconds, likelihood = time.process_time() - start, log_likelihood(fitted, held_out)
                    found = errors(tables, pair_tables(fitted, schema).__getitem__)
                rows[label].append((*found, likelihood, seconds))
        print(f"{name:<10} {'the truth':<14} {0:9.4f}  {0:10.4f}  {log_likelihood(truth, held_out):14.3f}")
        for label, found in rows.items():
            mean, worst, likelihood, seconds = pd.DataFrame(found).median()
            print(f"{'':<10} {label:<14} {mean:9.4f}  {worst:10.4f}  {likelihood:14.3f}  {seconds:5.1f}", flush=True)


if __name__ == "__main__":
    main()
