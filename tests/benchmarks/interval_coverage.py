"""Coverage and width of 90 % bounds: data sets drawn from networks of the bnlearn repository, simulated noise.

python tests/benchmarks/interval_coverage.py [--networks asia,alarm] [--epsilons 1] [--records 10000] [--sets 30]
    [--first 0] [--engine posterior,percentile,basic] [--mechanism laplace]
"""

import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
from common import options, private
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.observed.factors import log_linear

sys.path.append(str(Path(__file__).parents[2]))
from experiments.coverage import coverage_study, posterior_engine


def bootstrap(basic):
    """Parametric bootstrap of `PrivateMLE`: records and noise are drawn from the fitted network, and it is refitted.

    The basic bootstrap reflects the draws' log-probabilities at those of the fit: it takes the bias of the draws for
    that of the fit. Draws for the records lack the spread of the sampling: each has the noise alone.
    """

    def engine(network, release, seed, draws=100):
        fitted = dp.PrivateMLE().fit(network, release)
        copy = DiscreteBayesianNetwork()
        copy.add_nodes_from(network.nodes())
        copy.add_edges_from(network.edges())
        copy.add_cpds(*fitted.parameters_)
        schema = release.schema
        layout, centre, _ = log_linear(copy, schema.states)
        found = {True: [], False: []}
        for number in range(draws):
            for fresh in (True, False):
                frame = simulate(copy, round(release.total), 1000 * seed + (number if fresh else 0))
                epsilon = release.guarantee.epsilon
                data = private(frame, schema, epsilon, seed=1000 * seed + number)
                weights = [1 / release.scales[clique] for clique in release.cliques]
                again = data.measure(list(release.cliques), epsilon=epsilon, weights=weights)
                refit = dp.PrivateMLE().fit(copy, again)
                logs = np.log(layout.flatten(cpd.values for cpd in refit.parameters_))
                found[fresh].append(2 * centre - logs if basic else logs)
        total = np.full(draws, release.total)
        return PosteriorNetworks(
            layout, schema, np.array(found[False]), np.array(found[True]), total, np.zeros(layout.size)
        )

    return engine


ENGINES = {"posterior": posterior_engine, "percentile": bootstrap(False), "basic": bootstrap(True)}


def main() -> None:
    arguments = options(
        networks=("asia", "sachs", "child", "alarm"), epsilons=(0.3, 1.0, 3.0), records=10_000, sets=30, first=0,
        engine=("posterior",), mechanism="laplace",
    )  # fmt: skip
    noise = {"mechanism": arguments.mechanism}
    if arguments.mechanism == "gaussian":
        noise["delta"] = 1e-6
    for name in arguments.networks:
        truth = bnlearn_network(name)
        for epsilon in arguments.epsilons:
            for engine in arguments.engine:
                start = time.process_time()
                frame = coverage_study(
                    truth, epsilon, arguments.records, arguments.sets, engine=ENGINES[engine], first=arguments.first,
                    **noise,
                )  # fmt: skip
                seconds = (time.process_time() - start) / arguments.sets
                divergence = ", ".join(f"{key} {value:.4g}" for key, value in frame.attrs["divergence"].items())
                print(f"\n{name}, epsilon {epsilon:g}, {arguments.sets} data sets, {engine}; {seconds:.1f} s a set; "
                      f"mean KL: {divergence}")  # fmt: skip
                with pd.option_context("display.width", 200, "display.max_columns", 20, "display.precision", 3):
                    print(frame, flush=True)


if __name__ == "__main__":
    main()
