"""How much closer a fit comes to real records when tables that are published elsewhere enter it.

    python tests/benchmarks/public_margins.py FOLDER [--epsilon 1] [--delta 1e-9] [--seeds 3] [--members 12]

FOLDER holds adult_train.csv.gz and adult_test.csv.gz, as for synthesis.py. The public tables are exact ones of the
training records: age by sex, and education by occupation. Prints, for each seed of the noise, the mean total variation
over pairs of variables without and with them: for all pairs, and for those that share just one variable with a public
table, which have to gain by inference.
"""

from typing import Any

import pandas as pd
from common import options, private
from synthesis import adult

import pgmpy_dp as dp
from pgmpy_dp.evaluation import compare

PUBLIC = (("age", "sex"), ("education", "occupation"))


def errors(reference: pd.DataFrame, network: Any, schema: dp.Schema) -> str:
    """Mean total variation over pairs: all, and those of one public variable and another."""
    found = compare(reference, network, schema, sizes=(2,))["error"]
    touched = [max(len({*pair} & {*table}) for table in PUBLIC) == 1 for pair in found.index]
    return f"{found.mean():.4f} {found[touched].mean():.4f}"


def main() -> None:
    """Print one line a seed."""
    asked = options("folder", epsilon=1.0, delta=1e-9, seeds=3, members=12)
    frame, _, schema = adult(asked.folder)
    public = dict(dp.exact_marginals(frame, schema, PUBLIC).tables)
    print("mean total variation of all pairs, and of pairs of one public variable and another")
    print("seed  without        with public tables")
    for seed in range(asked.seeds):
        data = private(frame, schema, asked.epsilon, asked.delta, seed=seed)
        estimator = dp.PairwiseMixture(asked.epsilon, asked.delta, members=asked.members).fit(data)
        informed = dp.PairwiseMixture(members=asked.members).fit(estimator.release_, public=public)
        without, within = (errors(frame, each.network_, schema) for each in (estimator, informed))
        print(f"{seed:4}  {without}  {within}", flush=True)


if __name__ == "__main__":
    main()
