"""Seconds and ratios in one run: calibration, fits, import, noise.

python tests/benchmarks/speed.py
"""

import os
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np
from common import median, private
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network, kl_divergence, random_markov_network
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.observed.factors import families, log_linear
from pgmpy_dp.privacy import OPENDP_NOISE

sys.path.append(str(Path(__file__).parents[2]))
from experiments.protocol import erdos_renyi, third_order_chain

IMPORT = """
import resource, time, warnings
warnings.filterwarnings("ignore")
from pgmpy.models import DiscreteBayesianNetwork
memory, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.perf_counter()
import pgmpy_dp
print(time.perf_counter() - start, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024)
"""


def calibration() -> None:
    print("one calibration with all clique marginals (and one covariance product), microseconds")
    networks = {"third-order chain, 10 states": random_markov_network(third_order_chain(), 10, 0)}
    for name in ("asia", "sachs", "child", "alarm", "insurance", "hepar2", "hailfinder", "win95pts"):
        networks[name] = bnlearn_network(name)
    for name, network in networks.items():
        layout, potentials, _ = log_linear(network)
        tree = JunctionTree.build(layout.cardinalities, layout.scopes)
        result = tree.calibrate(potentials)
        once = median(lambda: tree.calibrate(potentials), 300)
        product = median(lambda: tree.covariance_product(result, result.marginals), 300)
        print(f"    {name:<30}{tree.table_cells:>8} cells {1e6 * once:>9.1f} {1e6 * product:>9.1f}")


def two_cores() -> None:
    print("one calibration (and one covariance product) of large trees, milliseconds on one core and on all; ratios")
    for name in ("munin", "munin2", "munin3", "munin4", "diabetes", "link"):
        layout, potentials, _ = log_linear(bnlearn_network(name))
        tree = JunctionTree.build(layout.cardinalities, layout.scopes)
        result = tree.calibrate(potentials)
        seconds = []
        for cores in ("1", ""):
            os.environ["OMP_NUM_THREADS"] = cores
            once = median(lambda: tree.calibrate(potentials), 9)
            seconds.append((once, median(lambda: tree.covariance_product(result, result.marginals), 9)))
        (one, product), (both, faster) = 1e3 * np.array(seconds)
        ratios = f"{one / both:.2f} {product / faster:.2f}"
        print(f"    {name:<10}{one:6.0f} {product:6.0f} {both:6.0f} {faster:6.0f}   {ratios}")


def fits() -> None:
    print("a whole fit from a release, ten 8-state variables: seconds of NaiveMLE, of CollectiveEM, and their ratio")
    for name, edges in (("third-order chain", third_order_chain()), ("Erdos-Renyi", erdos_renyi(seed=0))):
        truth = random_markov_network(edges, 8, 0)
        for size, epsilon in ((10_000, 0.1), (10_000, 0.5), (100_000, 0.5), (1_000_000, 1.0)):
            noisy = private(truth.simulate(size, seed=1), truth.schema_, epsilon, seed=1).measure(edges, epsilon)
            network = dp.PrivateMarkovNetwork(edges)
            naive = median(lambda: network.fit(noisy, estimator=dp.papers.NaiveMLE()), 9)
            collective = median(lambda: network.fit(noisy), 9)
            ratio = collective / naive
            print(f"    {name:<18} N = {size:<9}epsilon = {epsilon:<6}{naive:.3f} {collective:.3f} {ratio:.1f}")


def simulation() -> None:
    print("100,000 records of ALARM: seconds of ours, of pgmpy's, their ratio; largest total variation of a family")
    truth = bnlearn_network("alarm")
    ours = median(lambda: simulate(truth, 100_000, 0), 5)
    theirs = median(lambda: truth.simulate(100_000, seed=0, show_progress=False), 3)
    drawn = [simulate(truth, 100_000, 0), *(truth.simulate(100_000, seed=s, show_progress=False) for s in (1, 2))]

    def apart(first, second) -> float:
        shares = [
            [records.astype(str).groupby(list(family)).size() / len(records) for records in (first, second)]
            for family in families(truth)
        ]
        return max(one.sub(other, fill_value=0.0).abs().sum() / 2 for one, other in shares)

    distances = f"{apart(drawn[0], drawn[1]):.4f}, of two of pgmpy's {apart(drawn[1], drawn[2]):.4f}"
    print(f"    {ours:.3f} {theirs:.3f} {theirs / ours:.1f}; {distances}")


def coefficients() -> None:
    print("Fourier coefficients of ALARM's families and back, 10,000 records: seconds")
    truth = bnlearn_network("alarm")
    schema, cliques = dp.Schema.from_model(truth), families(truth)
    records = truth.simulate(10_000, seed=1, show_progress=False)
    for neighbours in ("add_remove", "replace_one"):
        data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1000.0), neighbours=neighbours)
        measured = median(lambda data=data: data.measure_coefficients(cliques, 1.0), 10)
        noisy = data.measure_coefficients(cliques, 1.0)
        back = median(lambda noisy=noisy: noisy.to_coefficients().non_negative(), 10)
        tables = data.measure(cliques, 1.0)
        reconciled = median(lambda tables=tables: tables.to_coefficients().tables, 10)
        print(
            f"    {neighbours:<12} measured {measured:.3f}, back {back:.3f}; of noisy tables and back {reconciled:.3f}"
        )


def samplers() -> None:
    print(
        "draws from the truncated posterior of ALARM, 10,000 records: seconds for the first, and for each of four more"
    )
    truth = bnlearn_network("alarm")
    records = truth.simulate(10_000, seed=1, show_progress=False)
    for epsilon in (1.0, 100.0):
        data = dp.PrivateDataset(records, dp.Schema.from_model(truth), dp.PrivacyBudget(1e5))
        one = median(lambda data=data, e=epsilon: dp.papers.PosteriorSampler(e).fit(truth, data), 5)
        five = median(lambda data=data, e=epsilon: dp.papers.PosteriorSampler(e, draws=5).fit(truth, data), 3)
        print(f"    epsilon = {epsilon:<6} {one:.3f} {(five - one) / 4:.3f}")


def iterations() -> None:
    """What it is worth that fits of CollectiveEM run to their end; means of two releases."""
    print("CollectiveEM cut off after 60 iterations, and to its end: KL divergence, seconds")
    steps = range(4)
    right = [(f"v{i}{j}", f"v{i}{j + 1}") for i in steps for j in steps[:-1]]
    down = [(f"v{i}{j}", f"v{i + 1}{j}") for i in steps[:-1] for j in steps]
    edges = {"4 x 4 grid, 4 states": (right + down, 4)}
    edges["third-order chain, 6 states"] = (third_order_chain(), 6)
    for name, (joined, states) in edges.items():
        truth = random_markov_network(joined, states, 1)
        records = truth.simulate(10_000, seed=2)
        for epsilon in (0.1, 1.0, 10.0):
            line = []
            for limit in (60, 1000):
                found = []
                for seed in range(2):
                    noisy = private(records, truth.schema_, epsilon, seed=seed).measure(joined, epsilon)
                    start = time.perf_counter()
                    fitted = dp.PrivateMarkovNetwork(joined).fit(noisy, estimator=dp.CollectiveEM(max_iter=limit))
                    found.append((kl_divergence(truth, fitted), time.perf_counter() - start))
                line.append("{:.4f} {:.2f}".format(*np.mean(found, axis=0)))
            print(f"    {name:<28} epsilon = {epsilon:<5}" + "   ".join(line))


def predictions() -> None:
    """pgmpy's way, interleaved with ours, whose fast answers are those of its slow ones."""
    lacking = ["HISTORY", "CATECHOL", "VENTLUNG"]
    print(f"alarm's {', '.join(lacking)} predicted from 34 variables: seconds by pgmpy's way, ours, and their ratio")
    network = dp.PrivateBayesianNetwork.of(bnlearn_network("alarm"))
    rows = network.simulate(1000, seed=0).astype(object).drop(columns=lacking)
    for count, repeats in ((1, 5), (100, 3), (1000, 1)):
        part = rows[:count]
        ours = median(lambda part=part: network.predict(part), 5)
        start = time.perf_counter()
        for _ in range(repeats):
            theirs = DiscreteBayesianNetwork.predict(network, part)
        slow = (time.perf_counter() - start) / repeats
        assert network.predict(part)[theirs.columns].astype(str).equals(theirs.astype(str))
        print(f"    {count:>5} rows {slow:8.3f} {ours:8.3f} {slow / ours:6.1f}")
    for name, ask in (
        ("probabilities", network.predict_probability),
        ("draws", partial(network.predict, stochastic=True)),
    ):
        print(f"    {name} of 1,000 rows {median(lambda ask=ask: ask(rows), 3):.3f}")


def noise() -> None:
    print("100,000 cells of private noise, seconds")
    zeros = np.zeros(100_000, dtype=np.int64)
    for scale in (1.0, 20.0, 200.0):
        laplace = median(lambda: OPENDP_NOISE.discrete_laplace(zeros, scale), 3)
        gaussian = median(lambda: OPENDP_NOISE.discrete_gaussian(zeros, scale), 3)
        print(f"    scale {scale:<6} Laplace {laplace:.2f}  Gaussian {gaussian:.2f}")


def imports() -> None:
    runs = [
        subprocess.run([sys.executable, "-c", IMPORT], capture_output=True, text=True, check=True) for _ in range(3)
    ]
    seconds, megabytes = np.median([[float(x) for x in run.stdout.split()] for run in runs], axis=0)
    print(f"import pgmpy_dp after pgmpy: {seconds:.2f} s, {megabytes:.0f} MB")


if __name__ == "__main__":
    imports()
    calibration()
    two_cores()
    simulation()
    fits()
    coefficients()
    samplers()
    iterations()
    predictions()
    noise()
