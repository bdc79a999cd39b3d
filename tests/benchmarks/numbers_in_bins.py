"""Synthetic numbers in bins that a cautious owner declared: filled evenly, shaped free, and by a measured shape.

    python tests/benchmarks/numbers_in_bins.py FOLDER --out numbers.csv
    python tests/benchmarks/numbers_in_bins.py --draw numbers.csv --out numbers.svg

FOLDER holds adult_train.csv.gz; the other tables, RAND's and one of marriages, are shipped with statsmodels. Mixtures
of pairs (delta 1e-9) are fitted with and without the finer histograms that plans measure by default, at the same
epsilon in all, for three seeds of noise. "evenly" and "shaped free" draw from the one without. For each number:

mean         mean of the synthetic records, over that of the records
quantile     the largest error of the 10, 50 and 90 % quantiles, in widths of the bin that holds the quantile
r2           R2 on a fifth of the records of a linear regression on all other variables, learned from synthetic records
             of the other four fifths, and r2_records as learned from these records themselves
correlation  mean absolute error of its correlations with the other numbers
told         whether the noise of a bin's count is below a fifth of the count in all bins that hold records
"""

from __future__ import annotations

import argparse
import itertools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.datasets as shipped
from sklearn.linear_model import LinearRegression

import pgmpy_dp as dp

EPSILONS, DELTA, SEEDS = (0.3, 1.0, 3.0), 1e-9, 3
ADULT = {
    "age": dp.Bins([0, 18, 30, 45, 60, 200]),
    "hours_per_week": dp.Bins([0, 20, 35, 41, 60, 168]),
    "capital_gain": dp.Bins([0, 1, 5000, 10000, 1000000]),
    "capital_loss": dp.Bins([0, 1, 1500, 2000, 1000000]),
    "fnlwgt": dp.Bins([0, 50000, 100000, 200000, 300000, 10000000]),
    "education_num": dp.Bins([1, 9, 10, 13, 17]),
}
RAND = {
    "mdvis": dp.Bins([0, 1, 2, 5, 10, 200]),
    "disea": dp.Bins([0, 5, 10, 20, 60, 200], decimals=1),
    "lpi": dp.Bins([0, 0.01, 4, 6, 8, 20], decimals=2),
    "fmde": dp.Bins([0, 0.01, 4, 6, 8, 20], decimals=2),
    "lncoins": dp.Bins([0, 0.01, 3, 4, 5, 20], decimals=2),
}
MARRIAGES = {
    "affairs": dp.Bins([0, 0.1, 1, 3, 10, 1000], decimals=1),
    "age": dp.Bins([0, 20, 25, 30, 40, 120], decimals=1),
    "yrs_married": dp.Bins([0, 2, 5, 10, 20, 100], decimals=1),
    "children": dp.Bins([0, 1, 2, 4, 30], decimals=1),
    "educ": dp.Bins([0, 12, 14, 16, 40]),
}


def tables(folder: Path) -> Iterator[tuple[str, pd.DataFrame, dp.Schema]]:
    """Yield each table with its schema; the states of other variables are public for a benchmark."""
    adult = pd.read_csv(folder / "adult_train.csv.gz", keep_default_na=False)
    rand, marriages = shipped.randhie.load_pandas().data, shipped.fair.load_pandas().data
    for name, frame, bins in (("adult", adult, ADULT), ("rand", rand, RAND), ("marriages", marriages, MARRIAGES)):
        kept = [v for v in frame if v in bins or frame[v].nunique() < 20]
        held = frame[kept].astype({v: str for v in kept if v not in bins})
        yield name, held, dp.Schema({v: bins[v] if v in bins else sorted(held[v].unique()) for v in kept})


def filled(
    frame: pd.DataFrame, schema: dp.Schema, epsilon: float, seed: int
) -> Iterator[tuple[str, pd.DataFrame, Any]]:
    """Yield synthetic records of each way, with the mixture that they are drawn from."""
    without = {v: dp.Bins(b.edges, decimals=b.decimals, detail=0) for v, b in schema.bins.items()}
    bare, count = schema.replace(variables={**schema.declared, **without}), len(frame)
    networks = []
    for own in (bare, schema):
        data = dp.PrivateDataset(frame, own, dp.PrivacyBudget(epsilon, DELTA), noise=dp.SimulatedNoise(seed))
        networks.append(dp.PairwiseMixture(epsilon, DELTA).fit(data).network_)
    even, generator = networks[0].simulate(count, seed=seed), np.random.default_rng(seed)
    for variable, bins in schema.bins.items():
        place, step = even[variable].cat.codes.to_numpy(), 10.0 ** -(bins.decimals or 0)
        low, high = np.array(bins.edges)[[place, place + 1]]
        even[variable] = np.floor((low + (high - low) * generator.random(count)) / step) * step
    yield "evenly", even, networks[0]
    for way, network in zip(("shaped free", "measured shape"), networks, strict=True):
        yield way, network.simulate(count, seed=seed, numbers="drawn"), network


def r2(train: pd.DataFrame, test: pd.DataFrame, target: str, numbers: list[str]) -> float:
    """Return R2 on the test records of a linear regression on all other variables."""
    both = pd.concat([train, test])
    names = [v for v in both if v not in numbers]
    coded = pd.get_dummies(both.astype(dict.fromkeys(names, str)), columns=names).astype(float)
    fitted, held = coded.iloc[: len(train)], coded.iloc[len(train) :]
    model = LinearRegression().fit(fitted.drop(columns=target), fitted[target])
    return float(model.score(held.drop(columns=target), held[target]))


def measured_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """Yield one row per table, epsilon, seed, way and number."""
    for table, frame, schema in tables(folder):
        train, test = (part.reset_index(drop=True) for _, part in frame.groupby(np.arange(len(frame)) % 5 == 0))
        numbers = [*schema.bins]
        own = {v: r2(train, test, v, numbers) for v in numbers}
        real = train[numbers].corr()
        for epsilon, seed in itertools.product(EPSILONS, range(SEEDS)):
            for way, drawn, network in filled(train, schema, epsilon, seed):
                made = drawn.astype(dict.fromkeys(numbers, float))
                wrong = (made[numbers].corr() - real).abs().sum() / (len(numbers) - 1)
                for v in numbers:
                    edges, ends = np.array(schema.bins[v].edges), train[v].quantile([0.1, 0.5, 0.9]).to_numpy()
                    place = np.clip(np.searchsorted(edges, ends, side="right") - 1, 0, edges.size - 2)
                    off = np.abs(made[v].quantile([0.1, 0.5, 0.9]).to_numpy() - ends) / np.diff(edges)[place]
                    counts = np.histogram(train[v], edges)[0]
                    noise = np.sqrt(network.release_.marginal((v,))[1])
                    yield {
                        "table": table, "epsilon": epsilon, "seed": seed, "way": way, "number": v,
                        "mean": made[v].mean() / train[v].mean(), "quantile": off.max(),
                        "r2": r2(made, test, v, numbers), "r2_records": own[v], "correlation": wrong[v],
                        "told": bool((noise < counts[counts > 0] / 5).all()),
                    }  # fmt: skip
                print(table, epsilon, seed, way, flush=True)


def draw(rows: pd.DataFrame, out: Path) -> None:
    """Draw the means' ratios and the shares of R2 that are kept, a column per table."""
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(rows["table"]))
    figure, axes = plt.subplots(2, len(names), figsize=(3.4 * len(names), 5.6), sharey="row", layout="constrained")
    for column, name in enumerate(names):
        for number, (way, own) in enumerate(rows[rows["table"] == name].groupby("way", sort=False)):
            at = own["epsilon"].map(EPSILONS.index) + 0.2 * (number - 1)
            axes[0, column].plot(at, own["mean"], "o", label=way, alpha=0.7)
            kept = own["r2_records"] > 0.02
            axes[1, column].plot(at[kept], (own["r2"] / own["r2_records"])[kept].clip(-1), "o", alpha=0.7)
        axes[0, column].set(title=name, yscale="log", xticks=range(len(EPSILONS)), xticklabels=EPSILONS)
        axes[1, column].set(xlabel="epsilon", xticks=range(len(EPSILONS)), xticklabels=EPSILONS)
    axes[0, 0].set_ylabel("synthetic mean /\nmean of the records")
    axes[1, 0].set_ylabel("share of R2 that is kept\n(-1: or less)")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    figure.savefig(out)


def main() -> None:
    """Measure, or draw what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--draw", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.draw is not None:
        draw(pd.read_csv(asked.draw), asked.out)
        return
    rows = pd.DataFrame(measured_rows(asked.folder))
    rows.round(4).to_csv(asked.out, index=False)
    summary = rows.assign(off=(rows["mean"] - 1).abs(), kept=rows["r2"] / rows["r2_records"])
    print(summary.groupby(["epsilon", "way"], sort=False)[["off", "quantile", "kept", "correlation"]].median().round(3))


if __name__ == "__main__":
    main()
