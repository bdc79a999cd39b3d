"""Held-out log-likelihood of a latent-class model: PrivateVB against pgmpy's DiscreteEM, which is not private.

Three classes, eight observed binary variables, 50,000 simulated records. Prints one line a method: mean log-likelihood
of 50,000 held-out records in nats, its share over that of DiscreteEM, seconds.

    python tests/benchmarks/latent_class.py
"""

from __future__ import annotations

import time

import numpy as np
import pandas as pd
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteEM

import pgmpy_dp as dp
from pgmpy_dp.estimators.private_vb import Completion
from pgmpy_dp.observed.factors import families

NAMES = [f"x{number}" for number in range(8)]
STATES = {**{name: [0, 1] for name in NAMES}, "class": [0, 1, 2]}
RECORDS = 50_000


def network():
    return DiscreteBayesianNetwork([("class", name) for name in NAMES], latents={"class"})


def records(count, rng, yes):
    classes = rng.choice(3, count, p=[0.5, 0.3, 0.2])
    return pd.DataFrame((rng.random((count, 8)) < yes[classes]).astype(int), columns=NAMES)


def held_out(cpds, test):
    scopes = families(network())
    completion = Completion({v: len(STATES[v]) for v in network().nodes()}, scopes, NAMES)
    by_node = {cpd.variable: cpd for cpd in cpds}
    logs = np.concatenate([np.log(np.maximum(by_node[scope[0]].values, 1e-300)).ravel() for scope in scopes])
    rows, counts = np.unique(test.to_numpy(), axis=0, return_counts=True)
    return float(counts @ completion.log_likelihood(rows, logs) / counts.sum())


def main():
    rng = np.random.default_rng(1)
    yes = rng.beta(0.7, 0.7, size=(3, 8))
    train, test = records(RECORDS, rng, yes), records(RECORDS, rng, yes)
    start = time.perf_counter()
    reference = DiscreteEM(latent_card={"class": 3}, max_iter=40, atol=1e-4, seed=3, show_progress=False)
    reference.fit(network(), train)
    best = held_out(reference.parameters_, test)
    print(f"DiscreteEM            {best:.5f}           {time.perf_counter() - start:6.1f} s")
    for epsilon in (0.1, 1.0):
        for seed in range(3):
            start = time.perf_counter()
            estimator = dp.PrivateVB(epsilon=epsilon, delta=1e-6, state_names=STATES, random_state=seed)
            network().fit(train, estimator=estimator)
            found = held_out(estimator.parameters_, test)
            seconds = time.perf_counter() - start
            print(f"PrivateVB eps {epsilon:4g}    {found:.5f}  {found / best - 1:+.3%}  {seconds:6.1f} s, start {seed}")


if __name__ == "__main__":
    main()
