"""Coverage of 95 % intervals from synthetic data sets, and errors of a test of independence where it holds.

python tests/benchmarks/synthetic_inference.py [--repeats 200] [--epsilon 1] [--records 5000] [--sets 20] [--factor 5]
    [--out docs/pictures/regressions.csv]

Records are drawn from a network in which `y` depends on `x1` and `x2` by a logistic regression, and not on `z`, which
the fitted network allows it to. Each repeat draws records and (simulated) noise, fits, draws the synthetic data sets,
regresses `y` in each on the others, and combines the coefficients. The naive interval takes one data set, of as many
records as there were, for real.
"""

import itertools
import time
from pathlib import Path

import numpy as np
import pandas as pd
import statsmodels.api as sm
from common import options, private
from matplotlib.figure import Figure
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork
from statsmodels.stats.proportion import proportion_confint

import pgmpy_dp as dp
from pgmpy_dp.networks.network import simulate

EDGES = [("x1", "x2"), ("x1", "y"), ("x2", "y"), ("z", "y")]
NAMES = ["x1", "x2", "z"]
COEFFICIENTS = pd.Series({"const": -0.5, "x1": 1.0, "x2": -0.7, "z": 0.0})
LABELS = {"combined": "20 synthetic data sets, combined", "naive": "one synthetic data set, taken for real"}
COLOURS = {"combined": "#0072B2", "naive": "#D55E00"}
SCHEMA = dp.Schema({name: [0, 1] for name in ("x1", "x2", "z", "y")})


def truth():
    network = DiscreteBayesianNetwork(EDGES)
    rows = list(itertools.product([0, 1], repeat=3))  # the last parent runs fastest
    logits = np.array([COEFFICIENTS["const"] + COEFFICIENTS[NAMES].to_numpy() @ np.array(row) for row in rows])
    ones = 1 / (1 + np.exp(-logits))
    names = {name: [0, 1] for name in SCHEMA.variables}
    network.add_cpds(
        TabularCPD("x1", 2, [[0.6], [0.4]], state_names={"x1": [0, 1]}),
        TabularCPD("x2", 2, [[0.7, 0.4], [0.3, 0.6]], ["x1"], [2], state_names={"x1": [0, 1], "x2": [0, 1]}),
        TabularCPD("z", 2, [[0.5], [0.5]], state_names={"z": [0, 1]}),
        TabularCPD("y", 2, [1 - ones, ones], NAMES, [2, 2, 2], state_names=names),
    )
    network.check_model()
    return network


def regressed(frame):
    """Coefficients and their variances, from the counts of the joint states."""
    counts = frame.astype(int).value_counts().reset_index()
    fit = sm.GLM(
        counts["y"],
        sm.add_constant(counts[NAMES], has_constant="add"),
        sm.families.Binomial(),
        freq_weights=counts["count"],
    ).fit()
    return fit.params, fit.bse**2


def main() -> None:
    asked = options(repeats=200, epsilon=1.0, records=5000, sets=20, factor=5.0, out=Path)
    network, started, found, naive = truth(), time.perf_counter(), [], []
    synthetic = round(asked.factor * asked.records)
    for repeat in range(asked.repeats):
        frame = simulate(network, asked.records, seed=repeat)
        data = private(frame, SCHEMA, asked.epsilon, seed=repeat)
        release = data.measure([("y", "x1", "x2", "z")], epsilon=asked.epsilon)
        fitted = dp.PrivateBayesianNetwork(EDGES).fit(release)
        fitted.sample_draws(200, seed=repeat)
        sets = fitted.simulate(synthetic, data_sets=asked.sets, seed=repeat)
        estimates, variances = zip(*map(regressed, sets), strict=True)
        found.append(dp.combine(estimates, variances, n=release.total, n_synthetic=synthetic))
        one, variance = regressed(fitted.simulate(asked.records, seed=repeat))
        half = 1.96 * np.sqrt(variance)
        naive.append(pd.DataFrame({"lower": one - half, "upper": one + half}))
        if (repeat + 1) % 10 == 0:
            table = report(found, naive, time.perf_counter() - started)
    if asked.out:
        table.to_csv(asked.out, index_label="coefficient", float_format="%.4g")


def report(found, naive, seconds):
    table = pd.DataFrame({"repeats": len(found)}, COEFFICIENTS.index)
    for name, intervals in {"combined": found, "naive": naive}.items():
        table[name] = sum((f["lower"] < COEFFICIENTS) & (f["upper"] > COEFFICIENTS) for f in intervals) / len(found)
        table[f"{name}_width"] = sum(f["upper"] - f["lower"] for f in intervals) / len(found)
    rejected = np.mean([f.loc["z", "p_value"] < 0.05 for f in found])
    print(f"{len(found)} repeats, {seconds:.0f} s; independence rejected: {rejected:.3f}")
    print(table.round(3).to_string(), flush=True)
    return table


def draw(table: pd.DataFrame, target: Path) -> None:
    """Draw the coverage of each coefficient's intervals, with its 95 % confidence limits, and their widths."""
    page = Figure(figsize=(8.5, 2.6), layout="constrained")
    coverage, widths = page.subplots(1, 2, sharey=True)
    places = np.arange(len(table))
    for shift, (name, label) in zip((-0.12, 0.12), LABELS.items(), strict=True):
        share = table[name]
        limits = proportion_confint(share * table["repeats"], table["repeats"], method="wilson")
        off = [share - limits[0], limits[1] - share]
        coverage.errorbar(share, places + shift, xerr=off, fmt="o", color=COLOURS[name], capsize=3, label=label)
        widths.plot(table[f"{name}_width"], places + shift, "o", color=COLOURS[name])
    coverage.axvline(0.95, color="0.5", linestyle=":")
    coverage.set(xlabel="share of intervals that hold the true value", yticks=places, ylim=(len(table) - 0.5, -0.5))
    coverage.set_yticklabels(table["coefficient"])
    widths.set(xlabel="mean width of the intervals", xlim=(0, None))
    page.legend(*coverage.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    page.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    main()
