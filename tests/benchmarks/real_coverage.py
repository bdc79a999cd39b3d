"""Do 90 % bounds hold the records' own answers, where the records are real and the network is somebody's guess?

    python tests/benchmarks/real_coverage.py FOLDER [--epsilons .3,1,10] [--seeds 10] [--questions 200] [--check .15]
        [--models adult-1,adult-2,adult-tree,adult-mixture,rand-1,rand-2,rand-mixture] [--target population]
        [--mechanism gaussian_block] [--delta 1e-9] [--out real_coverage.csv]

FOLDER holds the census records (see synthesis.py), of which 13 columns are used; RAND's are those of the demo. Two
networks of each were written down by hand; the third of the census is the tree of greatest mutual information of its
records, which a private owner would not have. Families are measured, and with a share of the budget pairs that the
network does not join (--check 0: none), with the noise of --mechanism; the mixtures measure all pairs. Questions are
about one variable given one to three others, in the states that some record has, if 50 records have them.

With --target population, records are drawn from the file with replacement, another set for each seed: the population
is then the file, and its answers are known.

Each release adds a row to the table --out, and those that it has are not made again. Prints, for each model and
epsilon, means over releases: how often the test of fit fails, the share of states whose share among the records lies
within the bounds, with the least and the greatest of any release, the mean width of the bounds, and the mean error of
the value; in brackets the same of the draws of the posterior alone, which take the structure for right.
"""

import argparse
import itertools
import warnings
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
from common import Rows, bare, options, private
from sklearn.metrics import mutual_info_score
from synthesis import adult

import pgmpy_dp as dp
from pgmpy_dp.demo import SCHEMA, load_records
from pgmpy_dp.models.fitted import bounds, rounded_to_records
from pgmpy_dp.records.frames import encode

MIN, MAX_GIVEN = 50, 3
GUESSES = {
    "adult-1": "age marital_status, marital_status relationship, sex relationship, age education, "
    "education occupation, sex occupation, occupation workclass, workclass hours_per_week, native_country race, "
    "education income, relationship income, income capital_gain, income capital_loss",
    "adult-2": "income age, income education, income marital_status, income occupation, income hours_per_week, "
    "income capital_gain, income capital_loss, marital_status relationship, marital_status sex, race native_country, "
    "occupation workclass, sex race",
    "rand-1": "diseases limitation, diseases health, limitation health, health visits, diseases visits, "
    "coinsurance visits, coinsurance deductible",
    "rand-2": "health diseases, health limitation, diseases visits, coinsurance visits, coinsurance deductible",
}
MODELS = ("adult-1", "adult-2", "adult-tree", "adult-mixture", "rand-1", "rand-2", "rand-mixture")
KEY = ["model", "epsilon", "target", "seed", "questions", "check", "mechanism"]
MEANS = [f"{kind}_{mean}" for kind in ("answer", "posterior") for mean in ("covered", "width", "error")]
FOUND = ["fails", *MEANS, *(f"given_{count}" for count in range(1, MAX_GIVEN + 1))]


def tree(frame: pd.DataFrame) -> list[tuple[str, str]]:
    """The tree of greatest mutual information, away from the first column."""
    graph = nx.Graph()
    for a, b in itertools.combinations(frame, 2):
        graph.add_edge(a, b, weight=mutual_info_score(frame[a].astype(str), frame[b].astype(str)))
    return list(nx.bfs_edges(nx.maximum_spanning_tree(graph), next(iter(frame))))


def case(name: str, folder: Path) -> tuple[pd.DataFrame, dp.Schema, list[tuple[str, str]]]:
    """Records, their schema and a network; a mixture has no edges."""
    if name.startswith("rand"):
        frame, schema = load_records(), SCHEMA
    else:
        frame, _, schema = adult(folder)
        frame = frame.drop(columns=["fnlwgt", "education_num"])
        schema = schema.select(list(frame))
    if name.endswith("mixture"):
        return frame, schema, []
    if name == "adult-tree":
        binned = pd.DataFrame(encode(frame, schema, list(frame)))
        return frame, schema, tree(binned)
    return frame, schema, [tuple(edge.split()) for edge in GUESSES[name].split(", ")]


def questions(frame: pd.DataFrame, schema: dp.Schema, count: int) -> list[tuple[str, dict, np.ndarray]]:
    """A variable, the states of others, and the shares of the variable's states among the records that have them."""
    generator, codes, found = np.random.default_rng(0), encode(frame, schema, list(frame)), []
    while len(found) < count:
        asked, *given = generator.choice(list(frame), 2 + len(found) % MAX_GIVEN, replace=False)
        row = generator.integers(len(frame))
        held = np.logical_and.reduce([np.asarray(codes[v]) == codes[v][row] for v in given])
        if held.sum() >= MIN:
            shares = np.bincount(np.asarray(codes[asked])[held], minlength=schema.cardinality(asked)) / held.sum()
            found.append((str(asked), {str(v): schema.states[v][codes[v][row]] for v in given}, shares))
    return found


def main() -> None:
    asked = options(
        "folder", epsilons=(0.3, 1.0, 10.0), models=MODELS, target="records", mechanism="gaussian_block", seeds=10,
        questions=200, check=0.15, delta=1e-9, out=Path("real_coverage.csv"),
    )  # fmt: skip
    warnings.simplefilter("ignore")
    cases = {name: case(name, asked.folder) for name in asked.models}
    wanted = {name: questions(frame, schema, asked.questions) for name, (frame, schema, _) in cases.items()}
    kept = Rows(asked.out, KEY, FOUND)
    for seed, name, epsilon in itertools.product(range(asked.seeds), asked.models, asked.epsilons):
        key = (name, epsilon, asked.target, seed, asked.questions, asked.check, asked.mechanism)
        if key not in kept:
            kept.add(key, judged(cases[name], wanted[name], asked, epsilon, seed))
    table = kept.read().query(
        "model in @asked.models and epsilon in @asked.epsilons and target == @asked.target "
        "and questions == @asked.questions and check == @asked.check and mechanism == @asked.mechanism"
    )
    print(
        "model         epsilon  sets  fails  covered (from, to)        width            error     covered given 1, 2, 3"
    )
    for (name, epsilon), rows in table.groupby(["model", "epsilon"], sort=False):
        print(f"{name:<13} {epsilon:<8g} {len(rows):<6} " + summary(rows))


def judged(
    case: tuple[pd.DataFrame, dp.Schema, list], wanted: list, asked: argparse.Namespace, epsilon: float, seed: int
) -> dict[str, float]:
    """Means over the questions to a model of one release."""
    frame, schema, edges = case
    if asked.target == "population":
        frame = frame.sample(len(frame), replace=True, random_state=seed, ignore_index=True)
    data = private(frame, schema, epsilon, asked.delta, seed=seed)
    if edges:
        network = bare(edges, schema.variables)
        cliques, weights = dp.plan_measurements(network, schema, asked.check, asked.mechanism)
        delta = 0.0 if asked.mechanism == "laplace" else asked.delta
        noisy = data.measure(cliques, epsilon, delta=delta, mechanism=asked.mechanism, weights=weights)
        network.fit(noisy, estimator=dp.PrivateMLE())
        fails = network.check_fit().fails
        remember(network)
    else:
        network, fails = dp.PairwiseMixture(epsilon, asked.delta).fit(data).network_, np.nan
    rows = [row for question in wanted for row in answer(network, *question, asked.target)]
    table = pd.DataFrame(rows, columns=["kind", "given", "covered", "width", "error"])
    columns = ["covered", "width", "error"]
    found = {"fails": float(fails)}
    for kind, part in table.groupby("kind"):
        found |= {f"{kind}_{column}": part[column].mean() for column in columns}
    given = table[table["kind"] == "answer"].groupby("given")["covered"].mean()
    return found | {f"given_{count}": share for count, share in given.items()}


def remember(network: dp.PrivateBayesianNetwork) -> None:
    """Let answers of the posterior's draws be computed once, for the bounds and for those beside them."""
    conditioning = network._fitted.uncertainty.conditioning
    distributions, held = conditioning.distributions, {}

    def remembering(logs: np.ndarray, variables: list[str], evidence: dict) -> tuple[np.ndarray, np.ndarray]:
        key = (len(logs), *variables, *evidence.items())
        if key not in held:
            held[key] = distributions(logs, variables, evidence)
        return held[key]

    conditioning.distributions = remembering


def answer(network: object, variable: str, evidence: dict, truth: np.ndarray, target: str) -> list[tuple]:
    """Coverage, width and error of the answer, and of a network's posterior alone."""
    found = network.query([variable], evidence, interval=0.9, target=target)
    answers = {"answer": found[["value", "lower", "upper"]].to_numpy().T}
    if isinstance(network, dp.PrivateBayesianNetwork):
        posterior = network.draws_
        places = {v: posterior.schema.states[v].index(state) for v, state in evidence.items()}
        draws, shares = network._fitted.uncertainty.conditioning.distributions(
            posterior.draws(target), [variable], places
        )
        known = rounded_to_records(*bounds(draws, 0.9), float(np.mean(posterior.totals * shares)))
        answers["posterior"] = (draws.mean(axis=0), *known)
    rows = []
    for kind, (value, low, high) in answers.items():
        held = (truth >= low - 1e-9) & (truth <= high + 1e-9)
        rows.append((kind, len(evidence), held.mean(), np.mean(high - low), np.abs(value - truth).mean()))
    return rows


def summary(rows: pd.DataFrame) -> str:
    """One line."""
    means = rows.mean(numeric_only=True)
    cells = [f"{means[f'answer_{c}']:.4f} ({means.get(f'posterior_{c}', np.nan):.4f})" for c in ("width", "error")]
    covered = f"{means['answer_covered']:.3f} ({rows['answer_covered'].min():.3f}, {rows['answer_covered'].max():.3f})"
    covered += f" ({means.get('posterior_covered', np.nan):.3f})"
    given = " ".join(f"{means[f'given_{count}']:.2f}" for count in range(1, MAX_GIVEN + 1))
    return f"{means['fails']:<5.2f}  {covered}  {'  '.join(cells)}  {given}"


if __name__ == "__main__":
    main()
