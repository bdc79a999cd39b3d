"""How far mixtures of few records are off, beside independent columns and the uniform distribution.

    python tests/benchmarks/few_records.py FOLDER [--tables adult,adult7,rand,fair] [--sizes 1000,2160,8000]
        [--epsilons 0.03,0.1,0.3,1,3] [--delta 1e-9] [--seeds 4] [--told] [--out docs/pictures/few_records.csv]

FOLDER holds the census records (see synthesis.py); the other tables come with statsmodels (see outlook.py). A row for
each table, number of its records, epsilon and sample, each with noise of its own: mean total variation of single
variables and of pairs from the records, of the mixture as it comes, of one told the number of records (--told), of
independent columns measured for the whole price and projected on the simplex (mean over 20 draws of noise), and of the
uniform distribution. The noise is simulated. Prints pairs of the mixture over those of independent columns, means over
samples.
"""

import csv
import itertools
import warnings
from functools import reduce
from pathlib import Path

import numpy as np
import pandas as pd
from common import options, private
from outlook import tables

import pgmpy_dp as dp
from pgmpy_dp.inference.tables.table import project_to_simplex
from pgmpy_dp.records.frames import encode

DRAWS = 20


def main() -> None:
    """Write the rows."""
    asked = options(
        "folder", tables=("adult", "adult7", "rand", "fair"), sizes=(1000, 2160, 8000),
        epsilons=(0.03, 0.1, 0.3, 1.0, 3.0), out="docs/pictures/few_records.csv", delta=1e-9, seeds=4, told=False,
    )  # fmt: skip
    warnings.simplefilter("ignore")
    known = tables(asked.folder)
    with Path(asked.out).open("w", newline="") as file:
        writer = csv.writer(file)
        kinds = ["mixture", *["told"] * asked.told, "independent", "uniform"]
        writer.writerow(
            ["table", "records", "epsilon", "seed", *(f"{kind}_{size}" for kind in kinds for size in (1, 2))]
        )
        for name in asked.tables:
            whole, schema = known[name]()
            sizes = sorted({min(size, len(whole)) for size in asked.sizes})
            cases = itertools.product(sizes, asked.epsilons, range(asked.seeds))
            for place, (size, epsilon, seed) in enumerate(cases):
                frame = whole.sample(size, random_state=seed).reset_index(drop=True)
                found = row(frame, schema, epsilon, asked.delta, place, asked.told)
                writer.writerow([name, size, epsilon, seed, *found])
                file.flush()
    means = pd.read_csv(asked.out).groupby(["table", "records", "epsilon"]).mean()
    print((means["mixture_2"] / means["independent_2"]).unstack().round(2).to_string())


def row(frame, schema, epsilon, delta, seed, told):
    """Errors of single variables and pairs of each."""
    names, cards = list(schema.variables), schema.cardinalities()
    codes = {name: np.asarray(column, np.int64) for name, column in encode(frame, schema, names).items()}
    scopes = [list(itertools.combinations(names, size)) for size in (1, 2)]
    truth = {}
    for scope in itertools.chain(*scopes):
        shape = [cards[v] for v in scope]
        places = np.ravel_multi_index(tuple(codes[v] for v in scope), shape)
        truth[scope] = np.bincount(places, minlength=int(np.prod(shape))).reshape(shape) / len(frame)

    def errors(found):
        return [np.mean([np.abs(found(scope) - truth[scope]).sum() / 2 for scope in some]) for some in scopes]

    def product(own):
        return lambda scope: reduce(np.multiply.outer, [own[v] for v in scope])

    def alone(seed):
        release = private(frame, schema, epsilon, delta, seed=seed).measure([(v,) for v in names], epsilon, delta=delta)
        return errors(product({v: project_to_simplex(release.tables[v,] / release.total) for v in names}))

    found = []
    for records in (None, *[len(frame)] * told):
        data = private(frame, schema, epsilon, delta, seed=seed)
        found.append(errors(dp.PairwiseMixture(epsilon, delta, records=records).fit(data).network_.marginal))
    found.append(np.mean([alone([seed, draw]) for draw in range(DRAWS)], axis=0))
    found.append(errors(product({v: np.full(cards[v], 1 / cards[v]) for v in names})))
    return np.round(np.concatenate(found), 4).tolist()


if __name__ == "__main__":
    main()
