"""Held-out accuracy of PrivateLogisticRegression against epsilon, beside scikit-learn's, which is not private.

Simulated records (12,500, ten features), the survey of extramarital affairs that comes with statsmodels (Fair 1978:
6,366 records, eight features) and scikit-learn's handwritten digits (1,797 records, 64 features, ten classes). A fifth
of each is held out. Prints a table, means of ten fits, and writes a figure.

    python tests/benchmarks/logistic_regression.py [figure.png]
"""

import sys

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from statsmodels.datasets import fair

import pgmpy_dp as dp

EPSILONS = (0.1, 0.3, 1.0, 3.0, 10.0)
DELTA, FITS = 1e-6, 10


def simulated():
    rng = np.random.default_rng(1)
    X, weights = rng.uniform(-1, 1, (12_500, 10)), rng.normal(size=10) * 1.5
    return X, (rng.random(len(X)) < expit(X @ weights + 0.5)).astype(int), (-1, 1), None


def affairs():
    frame = fair.load_pandas().data
    # As the questionnaire has them: rating 1 to 5, ages in classes up to 42, years up to 23, and so on.
    bounds = {
        "rate_marriage": (1, 5),
        "age": (17.5, 42),
        "yrs_married": (0.5, 23),
        "children": (0, 5.5),
        "religious": (1, 4),
        "educ": (9, 20),
        "occupation": (1, 6),
        "occupation_husb": (1, 6),
    }
    low, high = np.array(list(bounds.values())).T
    return frame[list(bounds)].to_numpy(), (frame["affairs"] > 0).astype(int).to_numpy(), (low, high), None


def digits():
    # Pixels are dark on average: shorter vectors than the corners of the cube, and less noise by a bound on them.
    found = load_digits()
    return found.data, found.target, (0, 16), 6.0


def accuracies(X, y, bounds, clip, epsilon):
    for seed in range(FITS):
        train, test, labels, truth = train_test_split(X, y, test_size=0.2, random_state=seed)
        budget = dp.PrivacyBudget(epsilon, DELTA)
        options = {"bounds": bounds, "classes": range(int(y.max()) + 1), "noise": dp.SimulatedNoise(seed)}
        data = dp.PrivateFeatures(train, labels, budget=budget, **options)
        yield dp.PrivateLogisticRegression(epsilon, DELTA, clip_norm=clip).fit(data).score(test, truth)


def without_privacy(X, y):
    for seed in range(FITS):
        train, test, labels, truth = train_test_split(X, y, test_size=0.2, random_state=seed)
        scale = np.abs(X).max(axis=0) + (X == 0).all(axis=0)
        yield LogisticRegression(max_iter=2000).fit(train / scale, labels).score(test / scale, truth)


def main(path):
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="constrained")
    for axis, (name, source) in zip(
        axes, {"simulated": simulated, "affairs": affairs, "digits": digits}.items(), strict=True
    ):
        X, y, bounds, clip = source()
        means, spread = [], []
        for epsilon in EPSILONS:
            scores = list(accuracies(X, y, bounds, clip, epsilon))
            means.append(np.mean(scores))
            spread.append(np.std(scores))
            print(f"{name:10s} epsilon {epsilon:5g}   {means[-1]:.3f} +- {spread[-1]:.3f}", flush=True)
        reference, majority = np.mean(list(without_privacy(X, y))), np.bincount(y).max() / len(y)
        print(f"{name:10s} not private     {reference:.3f}\n{name:10s} largest class   {majority:.3f}")
        axis.errorbar(EPSILONS, means, spread, marker="o", capsize=3, label="PrivateLogisticRegression")
        axis.axhline(reference, color="black", label="scikit-learn, not private")
        axis.axhline(majority, color="gray", linestyle=":", label="largest class")
        axis.set(xscale="log", xlabel="epsilon", title=f"{name}, {len(y)} records")
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("held-out accuracy")
    axes[0].legend(fontsize=8, loc="lower right")
    figure.savefig(path, dpi=150)
    print(f"figure: {path}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "logistic_regression.png")
