"""A plugin of pytest for pgmpy's own tests: their modules get our classes under pgmpy's names.

A fit without an estimator is pgmpy's there: ours costs privacy, and asks for an epsilon. Draws without a seed have one:
pgmpy's bounds on their errors are two standard deviations. Example networks come from
pgmpy's wheel, in place of a download.
"""

import os
from pathlib import Path

import pgmpy
from pgmpy.parameter_estimator import DiscreteMLE

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network


class Bayesian(dp.PrivateBayesianNetwork):
    def fit(self, data, estimator=None, sample_weight=None):
        return super().fit(data, DiscreteMLE() if estimator is None else estimator, sample_weight)

    def simulate(self, n_samples=10, *, seed=None, **options):
        return super().simulate(n_samples, seed=0 if seed is None else seed, **options)


def load_model(name):
    return Bayesian.of(bnlearn_network(name.partition("/")[2]))


def pytest_configure():
    pgmpy.__path__.append(str(Path.cwd() / "pgmpy"))  # where `pgmpy.tests` is


def pytest_collection_modifyitems(items):
    ours = {
        "DiscreteBayesianNetwork": Bayesian,
        "DiscreteMarkovNetwork": dp.PrivateMarkovNetwork,
        "load_model": load_model,
    }
    if os.environ["OUR_ELIMINATION"] == "yes":
        ours["VariableElimination"] = dp.VariableElimination
    for module in {item.module for item in items}:
        for name in ours.keys() & vars(module).keys():
            setattr(module, name, ours[name])
