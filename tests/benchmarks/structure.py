"""Graphs from private records: how near to the truth, beside other ways, and in what time.

    python tests/benchmarks/structure.py [--networks asia,sachs,child,insurance,alarm] [--epsilon 1] [--delta 1e-6]
        [--records 10000] [--runs 5] [--first-seed 0] [--ways search,tree,truth,records] [--out structure.csv]
    python tests/benchmarks/structure.py --real FOLDER [--epsilon 1] [--runs 3]

Ways: "search" is PrivateStructureSearch; "tree" a private Chow-Liu tree (half on all pairs, half on the families of the
tree of greatest mutual information, AutoMLE); "mixture" is PairwiseMixture; "truth" has the true graph and measures its
families with all of the price (CollectiveEM);
"records" is hill climbing by BIC on the records themselves, not private. Records and noise have seeds of their own in
each run. Prints, as means over runs: F1 of the undirected edges and of the class of graphs (edges with their direction
where it is determined), the divergence from the network that drew the records on 10,000 held-out ones in nats, and
seconds of the processor.

With --real, records are those of the census (FOLDER; see synthesis.py) and of RAND, and the table has the mean error of
60 questions with evidence a state, and whether the test of fit fails, beside the mixture and a network by hand.
"""

import argparse
import itertools
import time
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from common import options, private
from pgmpy.base import DAG
from pgmpy.causal_discovery import HillClimbSearch

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.steps import Measure, Step, TablesInSteps
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.networks.network import simulate

HELD_OUT = 10_000
COLUMNS = ["network", "way", "epsilon", "records", "seed", "f1", "f1_class", "divergence", "seconds"]


def log_likelihood(model, frame: pd.DataFrame) -> float:
    """Mean over records, in nats; what a network thinks impossible counts as 1e-9."""
    if not hasattr(model, "get_cpds"):
        return float(np.mean(model.log_likelihood(frame)))
    total = 0.0
    for cpd in model.get_cpds():
        places = [pd.Categorical(frame[v], categories=cpd.state_names[v]).codes for v in cpd.variables]
        total += np.log(np.maximum(cpd.values[tuple(places)], 1e-9)).mean()
    return float(total)


def f1(found: set, true: set) -> float:
    """Of two sets of edges."""
    return 2 * len(found & true) / max(len(found) + len(true), 1)


def marks(graph: nx.DiGraph) -> set:
    """Edges of the class of a graph: ordered where the direction is determined, else not."""
    plain = DAG()
    plain.add_nodes_from(graph.nodes())
    plain.add_edges_from(graph.edges())
    pattern = plain.to_pdag()
    return {tuple(edge) for edge in pattern.directed_edges} | {frozenset(edge) for edge in pattern.undirected_edges}


def network_of(variables, edges) -> dp.PrivateBayesianNetwork:
    network = dp.PrivateBayesianNetwork()
    network.add_nodes_from(variables)
    network.add_edges_from(edges)
    return network


def search(data, schema, epsilon, delta, truth):
    return dp.PrivateStructureSearch(epsilon, delta).fit(data).network_


def tree(data, schema, epsilon, delta, truth):
    """Half on all pairs, half on the tree."""

    def asking():
        pairs = yield Measure(*dp.plan_pairs(schema))
        graph = nx.Graph()
        graph.add_nodes_from(schema.variables)
        for pair in itertools.combinations(schema.variables, 2):
            table = np.maximum(pairs.marginal(pair)[0], 0.0) + 1e-3
            table /= table.sum()
            independent = np.outer(table.sum(1), table.sum(0))
            graph.add_edge(*pair, weight=float((table * np.log(table / independent)).sum()))
        found = nx.maximum_spanning_tree(graph)
        network = network_of(schema.variables, nx.bfs_edges(found, max(found, key=found.degree)))
        families = yield Measure(*dp.plan_measurements(network, schema, check=0))
        return network, [pairs, families]

    steps = [Step(0.5), Step(0.5)]
    (network, releases), _ = data.release(TablesInSteps(steps, epsilon, delta, asking, "a tree"))
    return network.fit(releases)


def mixture(data, schema, epsilon, delta, truth):
    return dp.PairwiseMixture(epsilon, delta).fit(data).network_


def truth(data, schema, epsilon, delta, true):
    network = network_of(true.nodes(), true.edges())
    return network.fit(data, estimator=dp.CollectiveEM(epsilon, delta, mechanism="gaussian"))


def records(frame, schema, epsilon, delta, true):
    """Not private: for reference."""
    graph = HillClimbSearch(scoring_method="bic-d", return_type="dag", max_indegree=3, show_progress=False).fit(frame)
    network = network_of(true.nodes(), graph.causal_graph_.edges())
    return network.fit(frame, estimator=dp.NotPrivateMLE(state_names=schema))


WAYS = {"search": search, "tree": tree, "mixture": mixture, "truth": truth, "records": records}


def drawn(asked: argparse.Namespace) -> pd.DataFrame:
    """Records of known networks."""
    rows = []
    for name in asked.networks:
        true = bnlearn_network(name)
        schema = dp.Schema.from_model(true)
        held = simulate(true, HELD_OUT, seed=777)
        best, skeleton, pattern = log_likelihood(true, held), {frozenset(e) for e in true.edges()}, marks(true)
        for seed, way in itertools.product(range(asked.first_seed, asked.first_seed + asked.runs), asked.ways):
            frame = simulate(true, asked.records, seed=10_000 + seed)
            own = private(frame, schema, asked.epsilon, asked.delta, seed=[seed, 1])
            data = frame if way == "records" else own
            start = time.process_time()
            network = WAYS[way](data, schema, asked.epsilon, asked.delta, true)
            seconds = time.process_time() - start
            apart, scores = best - log_likelihood(network, held), (np.nan, np.nan)
            if hasattr(network, "edges"):
                joined = {frozenset(edge) for edge in network.edges()}
                scores = f1(joined, skeleton), f1(marks(network), pattern)
            rows.append((name, way, asked.epsilon, asked.records, seed, *scores, apart, seconds))
        print(summary(pd.DataFrame(rows, columns=COLUMNS)).loc[[name]].to_string(), flush=True)
    return pd.DataFrame(rows, columns=COLUMNS)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """Means over runs."""
    return table.groupby(["network", "way"], sort=False)[COLUMNS[5:]].mean().round(3)


def real(asked: argparse.Namespace) -> pd.DataFrame:
    """Answers about real records."""
    from real_coverage import case, questions

    rows = []
    for name in ("adult-1", "rand-1"):
        frame, schema, edges = case(name, asked.real)
        wanted = questions(frame, schema, 60)
        for seed in range(asked.first_seed, asked.first_seed + asked.runs):
            for way in ("search", "tree", "mixture", "by hand"):
                data = private(frame, schema, asked.epsilon, asked.delta, seed=[seed, 1])
                start = time.process_time()
                if way == "by hand":
                    network = network_of(schema.variables, edges)
                    network.fit(data, estimator=dp.AutoMLE(asked.epsilon, asked.delta, mechanism="gaussian"))
                else:
                    network = WAYS[way](data, schema, asked.epsilon, asked.delta, None)
                seconds = time.process_time() - start
                errors = []
                for variable, evidence, shares in wanted:
                    answer = network.query([variable], evidence)
                    values = [answer.get_value(**{variable: state}) for state in schema.states[variable]]
                    errors.append(np.abs(np.array(values) - shares).mean())
                fails = network.check_fit().fails if hasattr(network, "check_fit") else np.nan
                rows.append((name.split("-")[0], way, np.mean(errors), float(fails), seconds))
    table = pd.DataFrame(rows, columns=["records", "way", "error", "fails", "seconds"])
    return table.groupby(["records", "way"], sort=False).mean().round(4)


def figure(source: Path, target: Path) -> None:
    """Divergence and F1 against epsilon and against the number of records."""
    from matplotlib.figure import Figure

    table = pd.read_csv(source)
    page = Figure(figsize=(10, 6), layout="constrained")
    axes = page.subplots(2, 2, sharey="row")
    for column, (axis, other, value, label) in enumerate(
        [("epsilon", "records", 10_000, "epsilon, 10,000 records"), ("records", "epsilon", 1.0, "records, epsilon 1")]
    ):
        kept = table[(table[other] == value) & (table["way"] == "search")]
        for row, (name, scale) in enumerate([("divergence", "log"), ("f1", "linear")]):
            for network, part in kept.groupby("network", sort=False):
                means = part.groupby(axis)[name].mean()
                axes[row, column].plot(means.index, means, marker="o", label=network)
            axes[row, column].set_xscale("log")
            axes[row, column].set_yscale(scale)
            axes[row, column].set_xlabel(label)
    axes[0, 0].set_ylabel("held-out divergence, nats")
    axes[1, 0].set_ylabel("F1 of undirected edges")
    axes[1, 1].legend(frameon=False)
    page.savefig(target, dpi=150)


def main() -> None:
    asked = options(
        networks=("asia", "sachs", "child", "insurance", "alarm"), ways=("search", "tree", "truth", "records"),
        records=10_000, runs=5, first_seed=0, epsilon=1.0, delta=1e-6, real=Path, out=Path,
    )  # fmt: skip
    warnings.simplefilter("ignore")
    if asked.real:
        print(real(asked).to_string())
        return
    table = drawn(asked)
    if asked.out:
        table.to_csv(asked.out, mode="a", header=not asked.out.exists(), index=False)


if __name__ == "__main__":
    main()
