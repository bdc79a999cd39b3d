"""Do 90 % bounds hold the records' own answers, where the records are real and the network is somebody's guess?

    python tests/benchmarks/real_coverage.py FOLDER [--epsilons .3,1,10] [--seeds 10] [--questions 200] [--check .15]
        [--networks adult-1,adult-2,adult-tree,rand-1,rand-2] [--delta 1e-9]

FOLDER holds the census records (see synthesis.py), of which 13 columns are used; RAND's are those of the demo. Two
networks of each were written down by hand; the third of the census is the tree of greatest mutual information of its
records, which a private owner would not have. Families are measured, and with a share of the budget pairs that the
network does not join (--check 0: none). Questions are about one variable given one to three others, in the states that
some record has, if 50 records have them.

Prints, for each network and epsilon: whether the test of fit fails, the share of states whose share among the records
lies within the bounds, the mean width of the bounds, and the mean error of the value; in brackets the same of the draws
of the posterior alone, which take the structure for right.
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from sklearn.metrics import mutual_info_score
from synthesis import adult

import pgmpy_dp as dp
from pgmpy_dp.demo import EDGES, SCHEMA, load_records
from pgmpy_dp.networks.credible_intervals import bounds
from pgmpy_dp.records.frames import encode

LEAST = 50
GUESSES = {
    "adult-1": "age marital_status, marital_status relationship, sex relationship, age education, "
    "education occupation, sex occupation, occupation workclass, workclass hours_per_week, native_country race, "
    "education income, relationship income, income capital_gain, income capital_loss",
    "adult-2": "income age, income education, income marital_status, income occupation, income hours_per_week, "
    "income capital_gain, income capital_loss, marital_status relationship, marital_status sex, race native_country, "
    "occupation workclass, sex race",
    "rand-2": "health diseases, health limitation, diseases visits, coinsurance visits, coinsurance deductible",
}


def tree(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """The tree of greatest mutual information, away from the first column."""
    graph = nx.Graph()
    for a, b in itertools.combinations(frame, 2):
        graph.add_edge(a, b, weight=mutual_info_score(frame[a].astype(str), frame[b].astype(str)))
    return list(nx.bfs_edges(nx.maximum_spanning_tree(graph), next(iter(frame))))


def case(name: str, folder: Path) -> tuple[pd.DataFrame, dp.Schema, list[tuple[str, str]]]:
    """Records, their schema and a network."""
    if name.startswith("rand"):
        frame, schema = load_records(), SCHEMA
    else:
        frame, _, schema = adult(folder)
        frame = frame.drop(columns=["fnlwgt", "education_num"])
        schema = schema.select(list(frame))
    if name == "rand-1":
        return frame, schema, list(EDGES)
    if name == "adult-tree":
        binned = pd.DataFrame(encode(frame, schema, list(frame)))
        return frame, schema, tree(binned)
    return frame, schema, [tuple(edge.split()) for edge in GUESSES[name].split(", ")]


def questions(frame: pd.DataFrame, schema: dp.Schema, count: int) -> list[tuple[str, dict, np.ndarray]]:
    """A variable, the states of others, and the shares of the variable's states among the records that have them."""
    generator, codes, found = np.random.default_rng(0), encode(frame, schema, list(frame)), []
    while len(found) < count:
        asked, *given = generator.choice(list(frame), 2 + len(found) % 3, replace=False)
        row = generator.integers(len(frame))
        held = np.logical_and.reduce([np.asarray(codes[v]) == codes[v][row] for v in given])
        if held.sum() >= LEAST:
            shares = np.bincount(np.asarray(codes[asked])[held], minlength=schema.cardinality(asked)) / held.sum()
            found.append((str(asked), {str(v): schema.states[v][codes[v][row]] for v in given}, shares))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--epsilons", default=".3,1,10")
    parser.add_argument("--networks", default="adult-1,adult-2,adult-tree,rand-1,rand-2")
    for option, value in (("seeds", 10), ("questions", 200), ("check", 0.15), ("delta", 1e-9)):
        parser.add_argument(f"--{option}", type=type(value), default=value)
    asked = parser.parse_args()
    print("network     epsilon  fails  covered        width            error            covered given 1, 2, 3")
    for name in asked.networks.split(","):
        frame, schema, edges = case(name, asked.folder)
        wanted = questions(frame, schema, asked.questions)
        for epsilon in map(float, asked.epsilons.split(",")):
            rows, fails = [], []
            for seed in range(asked.seeds):
                network = dp.PrivateBayesianNetwork(edges)
                network.add_nodes_from(schema.variables)
                budget = dp.PrivacyBudget(epsilon, asked.delta)
                data = dp.PrivateDataset(frame, schema, budget, noise=dp.SimulatedNoise(seed))
                cliques, weights = dp.plan_measurements(network, schema, check=asked.check)
                noisy = data.measure(cliques, epsilon, delta=asked.delta, mechanism="gaussian_block", weights=weights)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    network.fit(noisy, estimator=dp.PrivateMLE())
                    fails.append(network.check_fit().fails)
                    rows += [row for question in wanted for row in answer(network, *question)]
            table = pd.DataFrame(rows, columns=["kind", "given", "covered", "width", "error"])
            print(f"{name:<11} {epsilon:<8g} {np.mean(fails):.2f}   " + summary(table), flush=True)


def answer(network: dp.PrivateBayesianNetwork, variable: str, evidence: dict, truth: np.ndarray) -> list[tuple]:
    """Coverage, width and error of the answer, and of the posterior alone."""
    found = network.query([variable], evidence, interval=0.9, target="records")
    posterior = network.posterior_
    draws, shares = network._conditioning.distributions(posterior.records, [variable], evidence)
    plain = (draws.mean(axis=0), *bounds(draws, 0.9, float(np.mean(posterior.totals * shares))))
    rows = []
    for kind, (value, low, high) in (("answer", found.to_numpy().T), ("posterior", plain)):
        held = (truth >= low - 1e-9) & (truth <= high + 1e-9)
        rows.append((kind, len(evidence), held.mean(), np.mean(high - low), np.abs(value - truth).mean()))
    return rows


def summary(table: pd.DataFrame) -> str:
    """One line."""
    means = table.groupby("kind")[["covered", "width", "error"]].mean()
    cells = [f"{means.loc['answer', c]:.4f} ({means.loc['posterior', c]:.4f})" for c in means]
    given = table[table["kind"] == "answer"].groupby("given")["covered"].mean()
    return "  ".join(cells) + "  " + " ".join(f"{share:.2f}" for share in given)


if __name__ == "__main__":
    main()
