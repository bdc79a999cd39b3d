"""How often a mixture's 90 % bounds hold the records' own answer, and how wide they are, on real records.

    python tests/benchmarks/mixture_coverage.py FOLDER [--sets adult,rand] [--epsilons 0.3,1,10] [--delta 1e-9]
        [--seeds 3] [--questions 100] [--measure auto]

FOLDER holds adult_train.csv.gz, adult_test.csv.gz: the census records of the UCI repository, columns as published; RAND
is the data of the demo. Names of networks of the bnlearn repository, such as child, stand for 20,000 records drawn from
them. Questions take random variables, and evidence that a random record has, as 50 records or more do. For each number
of variables given: coverage over all states of all questions, coverage and mean width over states of which the records
or the model have 2 % or more, and in brackets mean width over mean error (4.1 for a normal error of known spread).
"""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from common import options, private
from synthesis import adult

import pgmpy_dp as dp
from pgmpy_dp.demo import SCHEMA, load_records
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.records.frames import encode

MIN, SHOWN, MAX_GIVEN = 50, 0.02, 3


def records_of(name: str, folder: Path) -> tuple[pd.DataFrame, dp.Schema]:
    """Real records, or such as a network gives."""
    if name == "adult":
        frame, _, schema = adult(folder)
        return frame, schema
    if name == "rand":
        return load_records(), SCHEMA
    network = bnlearn_network(name)
    return simulate(network, 20_000, 1), dp.Schema.from_model(network)


def questions(
    codes: dict[str, np.ndarray], given: int, count: int, draw: np.random.Generator
) -> Iterator[tuple[str, dict[str, int], np.ndarray]]:
    """A variable, evidence, and which records have it."""
    names, found, size = list(codes), 0, len(next(iter(codes.values())))
    for number in range(20 * count):
        if found == count or (given == 0 and number == len(names)):
            return
        asked, *others = draw.choice(names, given + 1, replace=False) if given else [names[number]]
        record = draw.integers(size)
        evidence = {str(other): int(codes[other][record]) for other in others}
        kept = np.ones(size, dtype=bool)
        for other, state in evidence.items():
            kept &= codes[other] == state
        if kept.sum() >= MIN:
            found += 1
            yield str(asked), evidence, kept


def main() -> None:
    """Print a line for each set of records and epsilon."""
    wanted = options(
        "folder", sets=("adult", "rand"), epsilons=(0.3, 1.0, 10.0), measure="auto", seeds=3, questions=100, delta=1e-9
    )
    warnings.simplefilter("ignore")
    print("set       epsilon  CPU s  " + "".join(f"{f'{given} given':<25}" for given in range(MAX_GIVEN + 1)))
    for name in wanted.sets:
        frame, schema = records_of(name, wanted.folder)
        codes = dict(encode(frame, schema, schema.variables))
        for epsilon in wanted.epsilons:
            held: list[list[tuple[float, ...]]] = [[] for _ in range(MAX_GIVEN + 1)]
            seconds = 0.0
            for seed in range(wanted.seeds):
                data = private(frame, schema, epsilon, wanted.delta, seed=100 + seed)
                network = dp.PairwiseMixture(epsilon, wanted.delta, measure=wanted.measure).fit(data).network_
                begin = time.process_time()
                network.sample_draws(seed=seed)
                seconds += time.process_time() - begin
                for given, rows in enumerate(held):
                    draw = np.random.default_rng([seed, given])
                    for asked, evidence, kept in questions(codes, given, wanted.questions, draw):
                        states = {other: schema.states[other][state] for other, state in evidence.items()}
                        found = network.query([asked], states, interval=0.9)
                        shares = np.bincount(codes[asked][kept], minlength=len(found)) / kept.sum()
                        assert ((found["lower"] <= found["value"]) & (found["value"] <= found["upper"])).all()
                        inside = (found["lower"] <= shares) & (shares <= found["upper"])
                        width, error = found["upper"] - found["lower"], np.abs(found["value"] - shares)
                        shown = np.maximum(found["value"], shares) >= SHOWN
                        rows += zip(inside, shown, width, error, strict=True)
            line = f"{name:9} {epsilon:7g} {seconds / wanted.seeds:6.1f}  "
            for rows in held:
                inside, shown, width, error = np.array(rows, dtype=float).T
                big = shown > 0
                line += f"{100 * inside.mean():3.0f} {100 * inside[big].mean():3.0f} {width[big].mean():.4f}"
                line += f" ({width[big].mean() / error[big].mean():.1f})".ljust(11)
            print(line, flush=True)


if __name__ == "__main__":
    main()
