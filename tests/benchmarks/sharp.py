"""Are answers with bounds as near as those without, and are 90 % bounds no wider than they have to be?

    python tests/benchmarks/sharp.py [FOLDER] [--models asia,child,insurance,alarm,adult-1,adult-2,rand-1]
        [--epsilons .3,1,3] [--recipes frame,laplace,gaussian,search,mixture] [--releases 5] [--questions 90]
        [--first-seed 0] [--out docs/pictures/sharp.csv]
    python tests/benchmarks/sharp.py --read docs/pictures/sharp.csv [--models ...] [--epsilons ...] [--recipes ...]

Networks of the bnlearn repository are right: they draw the records (4,000 for asia, else 10,000), and tell the true
answers. Those of real_coverage.py are guesses about census records (FOLDER; see synthesis.py) and about RAND's, and
wrong: records are drawn from the file with replacement, so that it is the population. Recipes: `fit(frame)` by AutoMLE;
the plan of `plan_measurements` with Laplace noise, and with Gaussian noise; a graph found by PrivateStructureSearch;
PairwiseMixture. Questions are about one variable given none, one or two others, in the states of some record; of real
records at least 50 have them.

Each release adds three rows to the table --out, by the number of given variables, and those that it has are not made
again: whether the test of fit fails, the error of the value without and with bounds, the width of the bounds, the share
of states that they cover, the factor by which all of a row's distances from values to bounds could be scaled and still
cover 90 % (above 1: they are too narrow), and the share of states whose bounds for the records reach beyond those for
the population. Prints means over releases, and over one and two given variables.
"""

import itertools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import Rows, bare, options, private
from matplotlib.figure import Figure
from pgmpy.inference import VariableElimination
from real_coverage import MIN, case

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.records.frames import encode

MODELS = ("asia", "child", "insurance", "alarm", "adult-1", "adult-2", "rand-1")
RECIPES = ("frame", "laplace", "gaussian", "search", "mixture")
REAL = ("adult", "rand")
DELTA, MAX_GIVEN = 1e-6, 2
KEY = ["model", "epsilon", "recipe", "seed"]
FOUND = ["fails", "plain", "error", "width", "covered", "factor", "beyond"]


def drawn(name: str, folder: Path, seed: int, questions: int) -> tuple[pd.DataFrame, dp.Schema, list, list]:
    """Records, their schema, the edges of the network, and questions with the population's answers."""
    generator = np.random.default_rng([seed, 1])
    if name.startswith(REAL):
        whole, schema, edges = case(name, folder)
        frame = whole.sample(len(whole), replace=True, random_state=seed, ignore_index=True)
    else:
        true = bnlearn_network(name)
        frame = whole = simulate(true, 4_000 if name == "asia" else 10_000, seed)
        schema, edges, exact = dp.Schema.from_model(true), list(true.edges()), VariableElimination(true)
    codes, found = {v: np.asarray(c) for v, c in encode(whole, schema, list(schema.variables)).items()}, []
    while len(found) < questions:
        asked, *given = map(str, generator.choice(schema.variables, 1 + len(found) % (MAX_GIVEN + 1), replace=False))
        row = generator.integers(len(whole))
        evidence = {v: schema.states[v][codes[v][row]] for v in given}
        if name.startswith(REAL):
            held = np.logical_and.reduce([np.ones(len(whole), dtype=bool), *(codes[v] == codes[v][row] for v in given)])
            if held.sum() < MIN:
                continue
            truth = np.bincount(codes[asked][held], minlength=schema.cardinality(asked)) / held.sum()
        else:
            answer = exact.query([asked], evidence, show_progress=False)
            truth = np.array([answer.get_value(**{asked: state}) for state in schema.states[asked]])
        found.append((asked, evidence, truth))
    return frame, schema, edges, found


def fitted(
    recipe: str, frame: pd.DataFrame, schema: dp.Schema, edges: list, epsilon: float, seed: int, delta: float = DELTA
) -> Any:
    """A model of one release."""
    data = private(frame, schema, epsilon, delta, seed=seed)
    if recipe == "mixture":
        return dp.PairwiseMixture(epsilon, delta).fit(data).network_
    if recipe == "search":
        return dp.PrivateStructureSearch(epsilon, delta).fit(data).network_
    network = bare(edges, schema.variables)
    if recipe in ("frame", "fit"):  # as numbers_in_bins.py calls it
        return network.fit(data, estimator=dp.AutoMLE(epsilon=epsilon))
    mechanism, delta = ("laplace", 0.0) if recipe == "laplace" else ("gaussian_block", delta)
    cliques, weights = dp.plan_measurements(network, schema, mechanism=mechanism)
    return network.fit(data.measure(cliques, epsilon, delta=delta, mechanism=mechanism, weights=weights))


def judged(model: Any, questions: list) -> list[dict[str, float]]:
    """Means over the questions with each number of given variables."""
    fails, rows = float(model.check_fit().fails), []
    for asked, evidence, truth in questions:
        plain = model.query([asked], evidence).values
        answers = [model.query([asked], evidence, 0.9, target).to_numpy().T for target in ("population", "records")]
        (value, lower, upper), (_, low, high) = answers
        room = np.where(truth > value, upper - value, value - lower)
        needed = np.where(np.abs(truth - value) > 1e-9, np.abs(truth - value) / np.maximum(room, 1e-9), 0.0)
        covered = (truth >= lower - 1e-9) & (truth <= upper + 1e-9)
        found = {"needed": needed, "plain": np.abs(plain - truth), "error": np.abs(value - truth)}
        found |= {"width": upper - lower, "covered": covered, "beyond": (low < lower - 1e-9) | (high > upper + 1e-9)}
        rows.append({"given": len(evidence), **found})
    table, found = pd.DataFrame(rows), []
    for given, part in table.groupby("given"):
        means = {name: float(part[name].map(np.mean).mean()) for name in FOUND if name in part}
        factor = float(np.quantile(np.concatenate(part["needed"].to_list()), 0.9))
        found.append({"given": given, "fails": fails, "factor": factor, **means})
    return found


def show(table: pd.DataFrame) -> None:
    """Print a line for each model, epsilon and recipe."""
    print("model      epsilon recipe    fails | given one or two: plain, error, width, covered, factor, beyond", end="")
    print(" | width, covered, factor given 0; 1; 2")
    for key, rows in table.groupby(KEY[:3], sort=False):
        means = rows[rows["given"] > 0].groupby("seed")[FOUND].mean().mean()
        line = "{:<11}{:<8g}{:<10}{fails:.2f}  | {plain:.4f} {error:.4f} {width:.4f} {covered:.3f} "
        line += "{factor:.2f} {beyond:.2f}"
        each = rows.groupby("given")[FOUND].mean()
        parts = (f"{row.width:.3f} {row.covered:.2f} {row.factor:.2f}" for row in each.itertuples())
        print(line.format(*key, **means), "|", "; ".join(parts))


def draw(table: pd.DataFrame, target: Path) -> None:
    """Draw shares covered and widths of bounds, a column for each epsilon, a colour for each recipe."""
    rows = table[table["given"] > 0].groupby(KEY[:3])[["covered", "width"]].mean()
    epsilons = sorted(table["epsilon"].unique())
    page = Figure(figsize=(3.2 * len(epsilons), 4.8), layout="constrained")
    panels = page.subplots(2, len(epsilons), sharex=True, sharey="row", squeeze=False)
    for column, epsilon in enumerate(epsilons):
        covered, width = panels[:, column]
        covered.axhspan(86, 97, color="0.93")
        covered.set(title=f"ε = {epsilon:g}", ylabel="" if column else "within 90 % bounds, %")
        width.set(ylabel="" if column else "width of bounds")
        width.set_xticks(range(len(MODELS)), MODELS, rotation=90)
        for number, recipe in enumerate(RECIPES):
            at = [place for place, model in enumerate(MODELS) if (model, epsilon, recipe) in rows.index]
            kept = rows.loc[[(MODELS[place], epsilon, recipe) for place in at]]
            for axes, values in ((covered, 100 * kept["covered"]), (width, kept["width"])):
                axes.scatter(np.array(at) + 0.12 * (number - 2), values, 18, color=f"C{number}", label=recipe)
    panels[1, 0].set_ylim(0.0)
    page.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    page.savefig(target, metadata={"Date": None})


def main() -> None:
    asked = options(
        "folder?", models=MODELS, epsilons=(0.3, 1.0, 3.0), recipes=RECIPES, releases=5, questions=90, first_seed=0,
        read=Path, out=Path("sharp.csv"),
    )  # fmt: skip
    warnings.simplefilter("ignore")
    kept = Rows(asked.read or asked.out, KEY, ["given", *FOUND])
    seeds = () if asked.read else range(asked.first_seed, asked.first_seed + asked.releases)
    for seed, name, epsilon, recipe in itertools.product(seeds, asked.models, asked.epsilons, asked.recipes):
        if (name, epsilon, recipe, seed) not in kept:
            frame, schema, edges, questions = drawn(name, asked.folder, seed, asked.questions)
            model = fitted(recipe, frame, schema, edges, epsilon, seed)
            kept.add((name, epsilon, recipe, seed), *judged(model, questions))
    show(kept.read().query("model in @asked.models and epsilon in @asked.epsilons and recipe in @asked.recipes"))


if __name__ == "__main__":
    main()
