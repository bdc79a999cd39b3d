"""Synthetic numbers in bins that a cautious owner declared: filled evenly, shaped free, and by a measured shape.

    python tests/benchmarks/numbers_in_bins.py FOLDER --out numbers.csv
    python tests/benchmarks/numbers_in_bins.py FOLDER --means bounds|heaps|tails --out means.csv [--seeds 3]

FOLDER holds adult_train.csv.gz; the other tables, RAND's and one of marriages, are shipped with statsmodels. Mixtures
of pairs (delta 1e-9) are fitted with and without the finer histograms that plans measure by default, at the same
epsilon in all, for three seeds of noise. "evenly" and "shaped free" draw from the one without. For each number:

mean         mean of the synthetic records, over that of the records
quantile     the largest error of the 10, 50 and 90 % quantiles, in widths of the bin that holds the quantile
r2           R2 on a fifth of the records of a linear regression on all other variables, learned from synthetic records
             of the other four fifths, and r2_records as learned from these records themselves
correlation  mean absolute error of its correlations with the other numbers
told         whether the noise of a bin's count is below a fifth of the count in all bins that hold records

With --means, rows are added to the table --out, of means with 90 % bounds and their errors:

bounds       of real_coverage.py's networks and mixtures, given 0, 1 or 2 other variables: 60 questions of 50 records or
             more for each of --seeds releases; errors and widths in standard deviations of the records
heaps        of numbers at the lower edges of their bins (all, half, none), with and without finer histograms; relative
tails        of RAND's visits (11 or more: a bin without an end); relative, and those of as many synthetic records
"""

import itertools
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import statsmodels.datasets as shipped
from common import options, private
from real_coverage import MIN, case
from sharp import fitted
from sklearn.linear_model import LinearRegression

import pgmpy_dp as dp
from pgmpy_dp.records.frames import encode

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
        data = private(frame, own, epsilon, DELTA, seed=seed)
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


def questions(frame: pd.DataFrame, schema: dp.Schema, count: int) -> Iterator[tuple[str, dict, np.ndarray]]:
    """Yield every number given nothing, then some given one or two other variables, and which records agree."""
    generator, codes, numbers = np.random.default_rng(0), encode(frame, schema, list(frame)), list(schema.bins)
    yield from ((number, {}, np.ones(len(frame), dtype=bool)) for number in numbers)
    left = count
    while left:
        asked, row = str(generator.choice(numbers)), generator.integers(len(frame))
        given = generator.choice([v for v in frame if v != asked], 1 + left % 2, replace=False)
        held = np.logical_and.reduce([np.asarray(codes[v]) == codes[v][row] for v in given])
        if held.sum() >= MIN:
            yield asked, {str(v): schema.states[v][codes[v][row]] for v in given}, held
            left -= 1


def bounds_rows(folder: Path, seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the coverage of bounds by network, recipe, epsilon, number of given variables, and number."""
    cases = itertools.product(("adult-1", "adult-2", "rand-1"), ("laplace", "gaussian", "fit"))
    for model, recipe in (*cases, ("adult-mixture", "mixture"), ("rand-mixture", "mixture")):
        frame, schema, edges = case(model, folder)
        for epsilon, seed in itertools.product((1.0, 3.0), range(seeds)):
            network = fitted(recipe, frame, schema, edges, epsilon, seed, DELTA)
            rows = []
            for number, given, held in questions(frame, schema, 60):
                truth, unit = frame[number][held].mean(), frame[number].std()
                value, low, high = network.expectation([number], given).iloc[0]
                rows.append((number, len(given), low <= truth <= high, (high - low) / unit, abs(value - truth) / unit))
            table = pd.DataFrame(rows, columns=["number", "given", "covered", "width", "error"])
            for (number, given), own in table.groupby(["number", "given"]):
                means = own[["covered", "width", "error"]].mean()
                yield {"case": model, "recipe": recipe, "epsilon": epsilon, "seed": seed, "number": number,
                       "given": given, "count": len(own), **means}  # fmt: skip
            print(model, recipe, epsilon, seed, flush=True)


def heaps_rows(folder: Path, seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the error of a mean, and whether its bounds hold it and it is said to be untold, by release."""
    draws = np.random.default_rng(7)
    spread = {"income": draws.lognormal(7.3, 0.9, 10_000), "age": draws.normal(45, 18, 10_000).clip(0, 99)}
    edges = {"income": [0, 500, 1000, 1500, 2000, 3000, 4000, 5000, 10_000, 100_000], "age": [*range(0, 101, 10)]}
    for number, share, detail in itertools.product(spread, (0.0, 0.5, 1.0), (64, 0)):
        own, ends = np.floor(spread[number]), np.array(edges[number])
        at_edge = draws.random(own.size) < share
        own = np.where(at_edge, ends[np.searchsorted(ends, own, side="right") - 1], own)
        frame = pd.DataFrame({number: own, "group": np.where(draws.random(own.size) < 0.3, "a", "b")})
        schema = dp.Schema({number: dp.Bins(edges[number], detail=detail), "group": ["a", "b"]})
        for recipe, epsilon, seed in itertools.product(("laplace", "gaussian"), (0.5, 2.0), range(seeds)):
            network = fitted(recipe, frame, schema, [("group", number)], epsilon, seed, DELTA)
            value, low, high = network.expectation([number]).iloc[0] / own.mean()
            yield {"case": f"{share:.0%} heaped" + ("" if detail else ", no detail"), "recipe": recipe,
                   "epsilon": epsilon, "seed": seed, "number": number, "count": 1, "covered": low <= 1 <= high,
                   "width": high - low, "error": abs(value - 1),
                   "untold": number in network.unidentified_means()}  # fmt: skip


def tails_rows(folder: Path, seeds: int) -> Iterator[dict[str, Any]]:
    """Yield the mean of visits, and of synthetic ones, by release."""
    frame, schema, edges = case("rand-1", folder)
    for recipe, epsilon, seed in itertools.product(("laplace", "gaussian", "fit", "mixture"), (1.0,), range(seeds)):
        network = fitted(recipe, frame, schema, edges, epsilon, seed, DELTA)
        value = network.expectation(["visits"], interval=None).loc["visits", "value"] / frame["visits"].mean()
        drawn = network.simulate(len(frame), seed=seed, numbers="drawn")["visits"].mean() / frame["visits"].mean()
        yield {"case": "rand-1", "recipe": recipe, "epsilon": epsilon, "seed": seed, "number": "visits", "count": 1,
               "error": abs(value - 1), "drawn": abs(drawn - 1)}  # fmt: skip


PARTS: dict[str, Callable[[Path, int], Iterator[dict[str, Any]]]] = {
    "bounds": bounds_rows,
    "heaps": heaps_rows,
    "tails": tails_rows,
}
COLUMNS = ["part", "case", "recipe", "epsilon", "seed", "number", "given", "count"]
COLUMNS += ["covered", "width", "error", "untold", "drawn"]


def add_means(part: str, folder: Path, seeds: int, out: Path) -> None:
    """Add the rows of a part to a table, and print a summary of all that it has."""
    for row in PARTS[part](folder, seeds):
        line = pd.DataFrame([{"part": part, **row}], columns=COLUMNS)
        line.round(4).to_csv(out, mode="a", header=not out.exists(), index=False)
    rows = pd.read_csv(out).query("part == @part")
    if part == "tails":
        far = rows.assign(far=rows["error"] > 0.2, far_drawn=rows["drawn"] > 0.2)
        print(far.groupby("recipe")[["far", "far_drawn"]].sum().join(far.groupby("recipe")[["error", "drawn"]].max()))
        return
    keys = ["case", "recipe", "given"] if part == "bounds" else ["case", "number"]
    kept = ["covered", "width", "error", *(["untold"] if part == "heaps" else [])]
    weighed = rows[kept].astype(float).mul(rows["count"], axis=0).join(rows[[*keys, "count"]])
    sums = weighed.groupby(keys).sum()
    print(sums[kept].div(sums["count"], axis=0).round(3).to_string())


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
    asked = options("folder", means=str, seeds=3, out=Path("numbers.csv"))
    warnings.simplefilter("ignore")
    if asked.means is not None:
        add_means(asked.means, asked.folder, asked.seeds, asked.out)
        return
    rows = pd.DataFrame(measured_rows(asked.folder))
    rows.round(4).to_csv(asked.out, index=False)
    summary = rows.assign(off=(rows["mean"] - 1).abs(), kept=rows["r2"] / rows["r2_records"])
    print(summary.groupby(["epsilon", "way"], sort=False)[["off", "quantile", "kept", "correlation"]].median().round(3))


if __name__ == "__main__":
    main()
