"""How a mixture's error and time grow with epsilon, records, columns and states.

    python tests/benchmarks/mixture_growth.py FOLDER [--seeds 2] [--table growth.csv] [--plot growth.png]

Epsilon and records vary on the census records in FOLDER (see synthesis.py), of which the first so many are taken;
columns and states on made-up records: 100,000 of them, in five groups, whose values follow the group half the time. One
of the four varies, the others stay: epsilon 1, delta 1e-9; 32,561 census records; 20 columns of 20 states. One stage,
all other parameters as they are by default. Errors are mean total variations between the model and the records, over
all pairs of variables; beside them stand those of independent variables with the records' own one-way shares. Seconds
are the processor's, of a fit.
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from synthesis import adult

import pgmpy_dp as dp

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
RECORDS = (1_000, 3_000, 10_000, 32_561)
COLUMNS = (5, 10, 20, 40, 80)
STATES = (2, 5, 10, 20, 50)
AXES = {"epsilon": "ε", "records": "records", "columns": "columns", "states": "states of a column"}


def grouped(columns: int, states: int, records: int = 100_000) -> tuple[pd.DataFrame, dp.Schema]:
    """Records in five groups."""
    generator = np.random.default_rng(0)
    group = generator.integers(0, 5, records)
    values = {
        f"v{j}": np.where(generator.random(records) < 0.5, (group + j) % states, generator.integers(0, states, records))
        for j in range(columns)
    }
    return pd.DataFrame(values), dp.Schema({v: [str(s) for s in range(states)] for v in values})


def cases(folder: Path) -> Iterator[tuple[str, float, pd.DataFrame, dp.Schema, float]]:
    """What varies, its value, records, their schema and epsilon."""
    frame, _, schema = adult(folder)
    for epsilon in EPSILONS:
        yield "epsilon", epsilon, frame, schema, epsilon
    for records in RECORDS:
        yield "records", records, frame.head(records), schema, 1.0
    for columns in COLUMNS:
        made, states = grouped(columns, 20)
        yield "columns", columns, made.astype(str), states, 1.0
    for number in STATES:
        made, states = grouped(20, number)
        yield "states", number, made.astype(str), states, 1.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--plot", type=Path)
    asked = parser.parse_args()
    rows = []
    print("varies    value  error  independent  CPU s")
    for axis, value, frame, schema, epsilon in cases(asked.folder):
        pairs = list(itertools.combinations(schema.variables, 2))
        ones = [(variable,) for variable in schema.variables]
        exact = dp.exact_marginals(frame, schema, [*ones, *pairs]).tables
        count = len(frame)

        def error(answer, exact=exact, pairs=pairs, count=count) -> float:
            return float(np.mean([np.abs(exact[pair] / count - answer(pair)).sum() / 2 for pair in pairs]))

        independent = error(lambda pair, e=exact, n=count: np.outer(e[pair[:1]], e[pair[1:]]) / n**2)
        for seed in range(asked.seeds):
            data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(epsilon, 1e-9), noise=dp.SimulatedNoise(seed))
            start = time.process_time()
            network = dp.PairwiseMixture(epsilon, 1e-9).fit(data).network_
            seconds = time.process_time() - start
            rows.append((axis, value, error(network.marginal), independent, seconds))
            print("{:8} {:>6g}  {:.4f}  {:.4f}  {:.1f}".format(*rows[-1]), flush=True)
    table = pd.DataFrame(rows, columns=["varies", "value", "error", "independent", "seconds"])
    if asked.table:
        table.to_csv(asked.table, index=False)
    if asked.plot:
        draw(table, asked.plot)


def draw(table: pd.DataFrame, path: Path) -> None:
    """Errors above, seconds below; a column of panels for each thing that varies."""
    figure, panels = plt.subplots(2, len(AXES), figsize=(3.4 * len(AXES), 5.6), sharey="row", layout="constrained")
    for (axis, label), (above, below) in zip(AXES.items(), panels.T, strict=True):
        part = table[table["varies"] == axis]
        means = part.groupby("value").mean(numeric_only=True)
        above.plot(means.index, means["independent"], "--", color="0.6", label="independent variables")
        above.plot(means.index, means["error"], "o-", color="#0072B2", label="mixture")
        below.plot(means.index, means["seconds"], "o-", color="#0072B2")
        for panel in (above, below):
            panel.set(xscale="log", yscale="log", xlabel=label)
            panel.set_xticks(list(means.index), [f"{value:g}" for value in means.index])
            panel.minorticks_off()
            panel.grid(alpha=0.3)
    panels[0, 0].set_ylabel("mean error of pairs")
    panels[1, 0].set_ylabel("seconds of a fit, processor")
    panels[0, 0].legend()
    figure.savefig(path, dpi=110)
    plt.close(figure)


if __name__ == "__main__":
    main()
