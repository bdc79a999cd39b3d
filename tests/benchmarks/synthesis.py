"""How close a mixture and its synthetic records come to real ones, without a network.

    python tests/benchmarks/synthesis.py FOLDER [--epsilon 1] [--delta 1e-9] [--seeds 3] [--stages 2] [--target income]

FOLDER holds adult_train.csv.gz, adult_test.csv.gz: the census records of the UCI repository, columns as published.
Prints, for each seed of the noise, the mean total variation over all pairs and triples of variables of the model and of
as many synthetic records; the mean share of these on pairs and triples of states that no record has; how many of the
married women among them are husbands; seconds of the processor, and the peak memory of the process. With a target, also
how well it is predicted on the test records by what was learned from synthetic records, and by what was learned from
the training records.
"""

import gzip
import itertools
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import options, peak_megabytes, private

import pgmpy_dp as dp
from pgmpy_dp.evaluation import compare, compare_prediction
from pgmpy_dp.records.frames import labelled

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


def errors(frame: pd.DataFrame, other: Any, schema: dp.Schema) -> str:
    """Mean total variation over pairs and over triples."""
    found = compare(frame, other, schema, sizes=(2, 3))["error"]
    pairs, triples = found.groupby(found.index.map(len)).mean()
    return f"{pairs:.4f} {triples:.4f}"


def unseen(frame: pd.DataFrame, other: pd.DataFrame, schema: dp.Schema) -> str:
    """Mean share of other records on cells of pairs and of triples on which no record is."""
    found = []
    for size in (2, 3):
        scopes = list(itertools.combinations(schema.variables, size))
        one, two = (dp.exact_marginals(own, labelled(own, schema), scopes).tables for own in (frame, other))
        found.append(np.mean([two[scope][one[scope] == 0].sum() for scope in scopes]) / len(other))
    return "{:.4f} {:.4f}".format(*found)


def husbands(frame: pd.DataFrame) -> str:
    """Share of husbands among married women."""
    wives = frame[(frame["sex"] == "Female") & (frame["marital_status"] == "Married-civ-spouse")]
    return f"{100 * (wives['relationship'] == 'Husband').mean():.1f} %"


def main() -> None:
    """Print one line a seed."""
    asked = options("folder", epsilon=1.0, delta=1e-9, seeds=3, stages=2, target=str)
    frame, test, schema = adult(asked.folder)
    again = frame.sample(len(frame), replace=True, random_state=0)
    print(f"2-way and 3-way errors of the records themselves, drawn with replacement: {errors(frame, again, schema)}")
    print(f"test records on cells without a record: {unseen(frame, test, schema)}; husbands {husbands(frame)}")
    print("seed  of the model   of its records  without a record  husbands  CPU s  peak MB")
    for seed in range(asked.seeds):
        begin = time.process_time()
        data = private(frame, schema, asked.epsilon, asked.delta, seed=seed)
        estimator = dp.PairwiseMixture(asked.epsilon, asked.delta, stages=asked.stages, target=asked.target).fit(data)
        network = estimator.network_
        made = network.simulate(len(frame), seed=seed, predicting=asked.target)
        seconds = time.process_time() - begin
        peak = peak_megabytes()
        model, records = errors(frame, network, schema), errors(frame, made, schema)
        impossible = f"{unseen(frame, made, schema)}  {husbands(made):>8}"
        print(f"{seed:4}  {model}  {records}  {impossible}   {seconds:5.1f}  {peak:7.0f}", flush=True)
        if asked.target:
            print(compare_prediction(frame, made, test, asked.target, schema).round(4), flush=True)


if __name__ == "__main__":
    main()
