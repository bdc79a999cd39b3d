"""How close a mixture and its synthetic records come to real ones, without a network.

    python tests/benchmarks/synthesis.py FOLDER [--epsilon 1] [--delta 1e-9] [--seeds 3] [--stages 2] [--target income]

FOLDER holds adult_train.csv.gz, adult_test.csv.gz: the census records of the UCI repository, columns as published.
Prints, for each seed of the noise, the mean total variation over all pairs and triples of variables of the model and of
as many synthetic records, seconds of the processor, and the peak memory of the process. With a target, also how well it
is predicted on the test records (area under the curve; logistic regression, boosting) by what was learned from
synthetic records, and by what was learned from the training records.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import resource
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler

import pgmpy_dp as dp

EDGES = {
    "age": [0, *range(20, 90, 5), 200],
    "fnlwgt": [0, *(i * 25_000 for i in range(1, 20)), 2_000_000],
    "education_num": [0, *range(2, 17), 18],
    "capital_gain": [0, 1, 1000, 2500, 5000, 7500, 10000, 15000, 25000, 99999, 100_000],
    "capital_loss": [0, 1, 1000, 1500, 1600, 1750, 1900, 2000, 2500, 3500, 10_000],
    "hours_per_week": [0, 10, 20, 30, 35, 40, 41, 46, 51, 61, 200],
}


def adult(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame, dp.Schema]:
    """Training and test records, and a schema whose states are those of both files: public for a benchmark."""
    both = []
    for part in ("train", "test"):
        with gzip.open(folder / f"adult_{part}.csv.gz", "rt", newline="") as file:
            both.append(pd.read_csv(file, keep_default_na=False))
    everyone = pd.concat(both)
    states = {c: dp.Bins(EDGES[c]) if c in EDGES else sorted(everyone[c].unique()) for c in everyone}
    return both[0], both[1], dp.Schema(states)


def errors(tables: dict[tuple[str, ...], np.ndarray], answer) -> tuple[float, float]:
    """Mean total variation over pairs and over triples."""
    found: dict[int, list[float]] = {2: [], 3: []}
    for clique, table in tables.items():
        found[len(clique)].append(float(np.abs(table / table.sum() - answer(clique)).sum() / 2))
    return float(np.mean(found[2])), float(np.mean(found[3]))


def areas(train: pd.DataFrame, test: pd.DataFrame, target: str) -> str:
    """Areas under the curves of two classifiers."""
    names = [c for c in train if c != target and c not in EDGES]
    numbers = [c for c in train if c in EDGES]
    wide = make_column_transformer((OneHotEncoder(handle_unknown="ignore"), names), (StandardScaler(), numbers))
    codes = make_column_transformer(
        (OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1), names), ("passthrough", numbers)
    )
    found = []
    for model in (
        make_pipeline(wide, LogisticRegression(max_iter=300)),
        make_pipeline(codes, HistGradientBoostingClassifier(random_state=0)),
    ):
        model.fit(train.drop(columns=target).astype(dict.fromkeys(names, str)), train[target].astype(str))
        asked = test.drop(columns=target).astype(dict.fromkeys(names, str))
        found.append(roc_auc_score(test[target], model.predict_proba(asked)[:, 1]))
    return " ".join(f"{area:.4f}" for area in found)


def main() -> None:
    """Print one line a seed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name, value in (("epsilon", 1.0), ("delta", 1e-9)):
        parser.add_argument(f"--{name}", type=float, default=value)
    for name, value in (("seeds", 3), ("stages", 2)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--target")
    asked = parser.parse_args()
    frame, test, schema = adult(asked.folder)
    cliques = [c for size in (2, 3) for c in itertools.combinations(schema.variables, size)]
    tables = dict(dp.exact_marginals(frame, schema, cliques).tables)
    again = dp.exact_marginals(frame.sample(len(frame), replace=True, random_state=0), schema, cliques).tables
    resampled = errors(tables, lambda clique: again[clique] / again[clique].sum())
    print(f"the records themselves, drawn with replacement: 2-way {resampled[0]:.4f}, 3-way {resampled[1]:.4f}")
    if asked.target:
        print(f"predicting {asked.target}, learned from the records: {areas(frame, test, asked.target)}")
    print("seed  model 2-way 3-way  records 2-way 3-way  CPU s  peak MB")
    for seed in range(asked.seeds):
        begin = time.process_time()
        data = dp.PrivateDataset(
            frame, schema, dp.PrivacyBudget(asked.epsilon, asked.delta), noise=dp.SimulatedNoise(seed)
        )
        estimator = dp.PairwiseMixture(asked.epsilon, asked.delta, stages=asked.stages, target=asked.target).fit(data)
        network = estimator.network_
        made = network.simulate(len(frame), seed=seed)
        seconds = time.process_time() - begin
        codes = {variable: made[variable].cat.codes.to_numpy() for variable in made}

        def of_records(clique: tuple[str, ...], codes=codes) -> np.ndarray:
            places = np.ravel_multi_index([codes[v] for v in clique], schema.shape(clique))
            counts = np.bincount(places, minlength=schema.cells(clique)).reshape(schema.shape(clique))
            return counts / counts.sum()

        model, records = errors(tables, network.marginal), errors(tables, of_records)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        errors_found = f"{model[0]:11.4f} {model[1]:5.4f}  {records[0]:13.4f} {records[1]:5.4f}"
        if asked.target:
            numbers = network.simulate(len(frame), seed=seed, numbers="uniform")
            print(f"      predicting {asked.target}: {areas(numbers, test, asked.target)}", flush=True)
        print(f"{seed:4}  {errors_found}  {seconds:5.1f}  {peak:7.0f}", flush=True)


if __name__ == "__main__":
    main()
