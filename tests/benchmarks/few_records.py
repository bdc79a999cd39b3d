"""How far mixtures of few records are off, beside independent columns and the uniform distribution.

    python tests/benchmarks/few_records.py FOLDER [--tables adult,rand,fair,anes96] [--sizes 500,2000,5000]
        [--epsilons 0.01,0.1,1] [--seeds 1] [--out docs/pictures/few_records.csv]

FOLDER holds the census records (see synthesis.py); the other tables come with statsmodels (see outlook.py). A row for
each table, number of its records, epsilon and seed: mean total variation of single variables and of pairs from the
records, of the mixture as it comes, of one told the number of records, of independent columns measured for the whole
price and projected on the simplex, and of the uniform distribution. Delta is 1e-9, the noise is simulated.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import warnings
from functools import reduce
from pathlib import Path

import numpy as np
from outlook import tables

import pgmpy_dp as dp
from pgmpy_dp.inference.tables.table import project_to_simplex
from pgmpy_dp.records.frames import encode

DELTA = 1e-9


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    for name, value in (
        ("tables", "adult,rand,fair,anes96"),
        ("sizes", "500,2000,5000"),
        ("epsilons", "0.01,0.1,1"),
        ("out", "docs/pictures/few_records.csv"),
    ):
        parser.add_argument(f"--{name}", default=value)
    parser.add_argument("--seeds", type=int, default=1)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    known = tables(asked.folder)
    with Path(asked.out).open("w", newline="") as file:
        writer = csv.writer(file)
        kinds = [f"{kind}_{size}" for kind in ("mixture", "told", "independent", "uniform") for size in (1, 2)]
        writer.writerow(["table", "records", "epsilon", "seed", *kinds])
        for name in asked.tables.split(","):
            whole, schema = known[name]()
            sizes = [int(size) for size in asked.sizes.split(",")]
            cases = itertools.product(
                [s for s in sizes if s < 1.2 * len(whole)], map(float, asked.epsilons.split(",")), range(asked.seeds)
            )
            for size, epsilon, seed in cases:
                frame = whole.sample(min(size, len(whole)), random_state=seed).reset_index(drop=True)
                writer.writerow([name, len(frame), epsilon, seed, *row(frame, schema, epsilon, seed)])
                file.flush()


def row(frame, schema, epsilon, seed):
    """Errors of single variables and pairs of each of the four."""
    names, cards = list(schema.variables), schema.cardinalities()
    codes = {name: np.asarray(column, np.int64) for name, column in encode(frame, schema, names).items()}
    scopes = [list(itertools.combinations(names, size)) for size in (1, 2)]
    truth = {}
    for scope in itertools.chain(*scopes):
        shape = [cards[v] for v in scope]
        places = np.ravel_multi_index(tuple(codes[v] for v in scope), shape)
        truth[scope] = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape) / len(frame)

    def dataset():
        return dp.PrivateDataset(frame, schema, dp.PrivacyBudget(epsilon, DELTA), noise=dp.SimulatedNoise(seed))

    found = [
        dp.PairwiseMixture(epsilon, DELTA, records=records).fit(dataset()).network_.marginal
        for records in (None, len(frame))
    ]
    release = dataset().measure([(v,) for v in names], epsilon, delta=DELTA)
    alone = {v: project_to_simplex(np.asarray(release.tables[v,]) / release.total) for v in names}
    flat = {v: np.full(cards[v], 1 / cards[v]) for v in names}
    found += [lambda scope, own=own: reduce(np.multiply.outer, [own[v] for v in scope]) for own in (alone, flat)]
    return [
        round(float(np.mean([np.abs(model(scope) - truth[scope]).sum() / 2 for scope in some])), 4)
        for model in found
        for some in scopes
    ]


if __name__ == "__main__":
    main()
