"""Coverage of 95 % intervals from synthetic data sets, and errors of a test of independence where it holds.

python tests/benchmarks/synthetic_inference.py [--repeats 200] [--epsilon 1] [--records 5000] [--sets 20] [--factor 5]

Records are drawn from a network in which `y` depends on `x1` and `x2` by a logistic regression, and not on `z`, which
the fitted network allows it to. Each repeat draws records and (simulated) noise, fits, draws the synthetic data sets,
regresses `y` in each on the others, and combines the coefficients. The naive interval takes one data set, of as many
records as there were, for real.
"""

from __future__ import annotations

import argparse
import itertools
import time

import numpy as np
import pandas as pd
import statsmodels.api as sm
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.models.simulation import simulate

EDGES = [("x1", "x2"), ("x1", "y"), ("x2", "y"), ("z", "y")]
NAMES = ["x1", "x2", "z"]
COEFFICIENTS = pd.Series({"const": -0.5, "x1": 1.0, "x2": -0.7, "z": 0.0})
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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--records", type=int, default=5000)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--factor", type=float, default=5.0, help="synthetic records of each data set, to the private")
    options = parser.parse_args()
    network, started, found, naive = truth(), time.perf_counter(), [], []
    synthetic = round(options.factor * options.records)
    for repeat in range(options.repeats):
        frame = simulate(network, options.records, seed=repeat)
        budget, noise = dp.PrivacyBudget(options.epsilon), dp.SimulatedNoise(repeat)
        release = dp.PrivateDataset(frame, SCHEMA, budget, noise=noise).measure(
            [("y", "x1", "x2", "z")], epsilon=options.epsilon
        )
        fitted = dp.PrivateBayesianNetwork(EDGES).fit(release)
        fitted.sample_draws(200, seed=repeat)
        sets = fitted.simulate(synthetic, data_sets=options.sets, seed=repeat)
        estimates, variances = zip(*map(regressed, sets), strict=True)
        found.append(dp.combine(estimates, variances, n=release.total, n_synthetic=synthetic))
        one, variance = regressed(fitted.simulate(options.records, seed=repeat))
        naive.append(((one - COEFFICIENTS).abs() < 1.96 * np.sqrt(variance)).rename(repeat))
        if (repeat + 1) % 10 == 0:
            report(found, naive, time.perf_counter() - started)


def report(found, naive, seconds):
    covers = pd.DataFrame([(f["lower"] < COEFFICIENTS) & (f["upper"] > COEFFICIENTS) for f in found]).mean()
    widths = pd.DataFrame([f["upper"] - f["lower"] for f in found]).mean()
    freedom = pd.DataFrame([f["degrees_of_freedom"] for f in found]).median()
    rejected = np.mean([f.loc["z", "p_value"] < 0.05 for f in found])
    table = pd.DataFrame({"covers": covers, "width": widths, "freedom": freedom, "naive": pd.DataFrame(naive).mean()})
    print(f"{len(found)} repeats, {seconds:.0f} s; independence rejected: {rejected:.3f}; covered: {covers.mean():.3f}")
    print(table.round(3).to_string(), flush=True)


if __name__ == "__main__":
    main()
