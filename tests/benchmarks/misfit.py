"""Size and power of the test of fit: data sets drawn from networks of the bnlearn repository, simulated noise.

Without --missing the networks are right, and each line says how often the test fails them at 5 % and at 1 %; the law is
simulated anew for each data set, since one law of 500 draws has a size of 5 % only to about 1 %. With it an
edge is taken away that costs more than so many nats, another one each time, and lines say how often that is found.

Plans: families by size or as planned; "checked" adds tables of other variables for the share --check; "farthest" spends
that share after the fit, on the pairs that are farthest from it (measure_misfit). All of a release costs epsilon.

python tests/benchmarks/misfit.py [--networks asia,sachs] [--epsilons 0.1,1,10] [--mechanisms laplace,gaussian]
    [--plans size,planned,checked,farthest] [--check 0.2] [--estimator PrivateMLE] [--records 10000] [--sets 200]
    [--missing 0.05]
"""

import time

import numpy as np
from common import options, private
from pgmpy.models import DiscreteBayesianNetwork
from structure import network_of

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network, kl_divergence
from pgmpy_dp.fitting.checks.fit_checks import check_network
from pgmpy_dp.fitting.plans.planning import shares
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.observed.factors import conditional, families, family, log_linear, tabular_cpd
from pgmpy_dp.observed.reading import maximal


def without(truth: DiscreteBayesianNetwork, edge: tuple[str, str]) -> DiscreteBayesianNetwork:
    """Take an edge away, and give its child the CPD that is closest to the truth."""
    poorer = truth.copy()
    poorer.remove_edge(*edge)
    scope = family(poorer, edge[1])
    layout, logs, states = log_linear(truth)
    tree = JunctionTree.build(layout.cardinalities, layout.scopes)
    table = tree.marginal(tree.calibrate(logs), scope)
    poorer.add_cpds(tabular_cpd(scope, conditional(table), states))
    return poorer


def plan(name: str, network: DiscreteBayesianNetwork, schema: dp.Schema, check: float):
    if name == "size":
        cliques = maximal(families(network))
        return cliques, shares(schema, cliques)
    # As many pairs, whatever the noise.
    return dp.plan_measurements(network, schema, check if name == "checked" else 0, "gaussian")


def main() -> None:
    arguments = options(
        networks=("asia", "sachs", "child"), epsilons=(0.1, 1.0, 10.0), mechanisms=("laplace", "gaussian"),
        plans=("size", "planned", "checked", "farthest"), check=0.2, estimator="PrivateMLE", records=10_000, sets=200,
        missing=float,
    )  # fmt: skip
    for name in arguments.networks:
        truth = bnlearn_network(name)
        schema = dp.Schema.from_model(truth)
        assumed = [truth]
        if arguments.missing is not None:
            poorer = [without(truth, edge) for edge in truth.edges()]
            assumed = [each for each in poorer if kl_divergence(truth, each) > arguments.missing]
        frames = [simulate(truth, arguments.records, 10_000 + number) for number in range(arguments.sets)]
        for epsilon in arguments.epsilons:
            for mechanism in arguments.mechanisms:
                delta = 1e-6 if mechanism == "gaussian" else 0.0
                for kind in arguments.plans:
                    plans = [plan(kind, each, schema, arguments.check) for each in assumed]
                    found, seconds = [], 0.0
                    for number, frame in enumerate(frames):
                        which = number % len(assumed)
                        cliques, weights = plans[which]
                        data = private(frame, schema, epsilon, delta, seed=number)
                        after = arguments.check if kind == "farthest" else 0.0
                        release = data.measure(
                            cliques,
                            epsilon=round(epsilon * (1.0 - after), 12),
                            weights=weights,
                            mechanism="gaussian_block" if delta else "laplace",
                            delta=delta / 2.0 if after else delta,
                        )
                        network = network_of(assumed[which].nodes(), assumed[which].edges())
                        network.fit(release, estimator=getattr(dp, arguments.estimator)())
                        start = time.process_time()
                        if after:
                            network.measure_misfit(data, round(epsilon * after, 12), delta=delta / 2.0)
                        releases = network.release_ if isinstance(network.release_, tuple) else [network.release_]
                        check = check_network(network, releases, seed=number)
                        seconds += time.process_time() - start
                        found.append((check.p_value < 0.05, check.p_value < 0.01, check.z2))
                    often, seldom, z2 = np.mean(found, axis=0)
                    print(
                        f"{name:8} epsilon {epsilon:<5g} {mechanism:8} {kind:8} fails at 5 %: {often:6.1%}, at 1 %: "
                        f"{seldom:6.1%}; mean z2 {z2:.2f}; {seconds / len(frames):.2f} s",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
