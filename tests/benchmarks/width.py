"""Many columns and many rows: each line is a process of its own, with its seconds, those of the processor, and memory.

    python tests/benchmarks/width.py [LINE ...]

Columns follow five hidden bits, as records of surveys follow a few traits; epsilon is 1, delta 1e-9, noise simulated.
Errors are mean total variation distances of 500 pairs of columns, of synthetic records as many as there were, beside
those of as many records of independent columns, drawn with exact shares. `predict` fills in one and three of fifteen
columns of 20,000 rows. `many states` are four columns, of which two have 5,000 and 800 states: distances of these
alone, and of all pairs over 20 runs of states of equal shares; `many states, network` has edges from the first column
to the next two, and from the second to the last. `prices` plan, price and charge all pairs of 1,000
columns, 500,500 tables, without counting a record, and then measure them. `first use` runs README's five minutes with
an empty cache of compiled loops, and again: seconds of the processor of each process.
"""

import os
import re
import time
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from common import a_process_each, private, process

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.mechanism import PublicRecords, quoted
from pgmpy_dp.data.mechanisms.tables import CountedTables

# Records, columns, and states of each.
TABLES = {
    "100 x 2": (20_000, 100, 2),
    "100 x 10": (20_000, 100, 10),
    "300 x 2": (20_000, 300, 2),
    "300 x 10": (20_000, 300, 10),
    "1000 x 2": (100_000, 1000, 2),
}
MANY = {"many states": (20_000, (5000, 800, 4, 6))}
JOINED = "many states, network"
PRICED = {"prices, pure": 0.0, "prices, block": 1e-9}
FIRST = "first use"
PREDICTED = {"predict one": ["c0"], "predict three": ["c0", "c1", "c2"]}


def made_up(records: int, columns: int, states: int) -> tuple[pd.DataFrame, dp.Schema]:
    """Draw columns that depend on one of five hidden bits each."""
    generator = np.random.default_rng(0)
    hidden = generator.random((records, 5)) < 0.5
    codes = {}
    for column in range(columns):
        laws = np.array([[0.75, 0.25], [0.3, 0.7]]) if states == 2 else generator.dirichlet(np.full(states, 0.7), 2)
        sums = np.cumsum(laws, axis=1)[hidden[:, column % 5].astype(int)]
        codes[f"c{column}"] = (generator.random((records, 1)) > sums).sum(axis=1).clip(0, states - 1)
    return pd.DataFrame(codes), dp.Schema({name: list(range(states)) for name in codes})


def many_states(records: int, states: tuple[int, ...]) -> tuple[pd.DataFrame, dp.Schema]:
    """Draw columns that depend on a hidden one of six states, by runs of states that are frequent and rare."""
    generator = np.random.default_rng(0)
    hidden, codes = generator.integers(6, size=records), {}
    for column, count in enumerate(states):
        runs = np.arange(count) * min(25, count) // count
        laws = generator.dirichlet(np.full(runs[-1] + 1, 0.7), 6)[:, runs] / (generator.permutation(count) + 10.0)
        sums = np.cumsum(laws, axis=1) / laws.sum(axis=1, keepdims=True)
        spots = generator.random(records)
        codes[f"c{column}"] = np.array([np.searchsorted(sums[h], s) for h, s in zip(hidden, spots, strict=True)])
    return pd.DataFrame(codes), dp.Schema({f"c{column}": list(range(count)) for column, count in enumerate(states)})


def of_groups(
    frame: pd.DataFrame, network: dp.PrivateMixtureNetwork | dp.PrivateBayesianNetwork
) -> tuple[list[float], float, float]:
    """Compare columns of more than 100 states, and pairs over runs of states, also of independent columns."""
    shares = {v: np.bincount(frame[v], minlength=len(network.schema_.states[v])) / len(frame) for v in frame}
    runs = {v: np.minimum((np.cumsum(own) - own / 2) * 20, 19).astype(int) for v, own in shares.items()}
    runs |= {v: np.arange(own.size) for v, own in shares.items() if own.size <= 20}
    singles = [abs(network.marginal([v]) - own).sum() / 2 for v, own in shares.items() if own.size > 100]
    errors = []
    for one, other in combinations(frame.columns, 2):
        truth = pd.crosstab(runs[one][frame[one]], runs[other][frame[other]], normalize=True)
        joint = pd.DataFrame(network.marginal([one, other])).groupby(runs[one]).sum().T.groupby(runs[other]).sum().T
        alone = np.outer(truth.sum(axis=1), truth.sum(axis=0))
        joint = joint.reindex(index=truth.index, columns=truth.columns).to_numpy()
        errors.append([abs(table - truth.to_numpy()).sum() / 2 for table in (joint, alone)])
    error, independent = np.mean(errors, axis=0)
    return singles, float(error), float(independent)


def fitted(frame: pd.DataFrame, schema: dp.Schema) -> dp.PrivateMixtureNetwork:
    """Fit a mixture by its defaults."""
    return dp.PairwiseMixture(1.0, 1e-9).fit(private(frame, schema, 1.0, 1e-9)).network_


def distances(frame: pd.DataFrame, synthetic: pd.DataFrame, states: int) -> tuple[float, float]:
    """Compare pairs of columns: of the synthetic records, and of records of independent columns."""
    generator, drawing, errors = np.random.default_rng(1), np.random.default_rng(2), []
    alone = frame.apply(lambda column: column.to_numpy()[drawing.integers(len(frame), size=len(frame))])
    for _ in range(500):
        one, other = generator.choice(frame.columns, 2, replace=False)
        truth, *drawn = (
            np.bincount(data[one].astype(int) * states + data[other].astype(int), minlength=states**2) / len(data)
            for data in (frame, synthetic, alone)
        )
        errors.append([abs(table - truth).sum() / 2 for table in drawn])
    error, independent = np.mean(errors, axis=0)
    return float(error), float(independent)


def five_minutes(cache: Path) -> float:
    """Return the processor's seconds of a process that runs README's five minutes in Python."""
    text = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split("## Five minutes")[1]
    code = "".join(re.findall(r"```python\n(.*?)```", text.split("## Find your way")[0], re.DOTALL))
    there = {**os.environ, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(Path(dp.__file__).parents[1])}
    with TemporaryDirectory() as folder:
        return process("-c", code, cwd=folder, env=there).seconds


def run(line: str) -> Iterator[str]:
    """Run a line, and yield what it prints."""
    if line in TABLES:
        records, columns, states = TABLES[line]
        frame, schema = made_up(records, columns, states)
        start = time.perf_counter()
        network = fitted(frame, schema)
        yield f"fit {time.perf_counter() - start:6.1f} s"
        start = time.perf_counter()
        synthetic = network.simulate(records, seed=0)
        yield f"records {time.perf_counter() - start:5.1f} s"
        error, independent = distances(frame, synthetic, states)
        yield f"pairs {error:.4f}, independent {independent:.4f}"
    elif line in MANY or line == JOINED:
        frame, schema = many_states(*MANY["many states"])
        start = time.perf_counter()
        network: dp.PrivateMixtureNetwork | dp.PrivateBayesianNetwork
        if line == JOINED:
            edges = [("c0", "c1"), ("c0", "c2"), ("c1", "c3")]
            data = private(frame, schema, 1.0, 1e-9)
            network = dp.PrivateBayesianNetwork(edges).fit(data, dp.AutoMLE(1.0, delta=1e-9))
        else:
            network = fitted(frame, schema)
        yield f"fit {time.perf_counter() - start:6.1f} s, groups {network.groups_}"
        singles, error, independent = of_groups(frame, network)
        yield f"alone {', '.join(f'{own:.3f}' for own in singles)}, pairs {error:.4f}, independent {independent:.4f}"
    elif line == FIRST:
        with TemporaryDirectory() as cache:
            first, second = (five_minutes(Path(cache)) for _ in range(2))
        yield f"first {first:5.1f} CPU s, second {second:5.1f}"
    elif line in PRICED:
        frame, schema = made_up(20_000, 1000, 2)
        start = time.perf_counter()
        (cliques, weights), delta = dp.plan_pairs(schema), PRICED[line]
        asked = CountedTables(cliques, 1.0, delta, weights=weights)
        quote = quoted(asked, PublicRecords.of(schema, delta))
        dp.PrivacyBudget(1.0, delta).charge(quote.cost)
        yield f"{len(quote.terms)} tables in {time.perf_counter() - start:5.1f} s: {quote.guarantee}"
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0, delta))
        start = time.perf_counter()
        data.measure(cliques, 1.0, delta=delta, weights=weights)
        yield f"measured in {time.perf_counter() - start:5.1f} s"
    else:
        frame, schema = made_up(20_000, 15, 8)
        network = fitted(frame, schema)
        start = time.perf_counter()
        network.predict(frame.drop(columns=PREDICTED[line]))
        yield f"predict {time.perf_counter() - start:5.1f} s"


if __name__ == "__main__":
    a_process_each([*TABLES, *MANY, JOINED, *PRICED, *PREDICTED, FIRST], run)
