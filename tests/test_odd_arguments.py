"""Public functions and commands name what is wrong with an odd argument: no message comes from inside."""

import re

import pandas as pd
import pytest
from click.testing import CliRunner
from pgmpy.estimators import MaximumLikelihoodEstimator
from pgmpy.inference import VariableElimination

import pgmpy_dp as dp
from pgmpy_dp.cli import main

SCHEMA = dp.Schema({"age": dp.Bins([0, 18, 65]), "vote": ["a", "b"], "ill": ["yes", "no"]})
RECORDS = pd.DataFrame({"age": [5, 40, 60, 12] * 50, "vote": ["a", "b"] * 100, "ill": ["yes", "no"] * 100})
LEVELS = RECORDS.set_axis(pd.MultiIndex.from_product([["x"], RECORDS.columns]), axis=1)


def private(records):
    return dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(0))


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    noisy = private(RECORDS).measure([("age", "vote")], 1.0)
    network = dp.PrivateBayesianNetwork([("age", "vote")]).fit(noisy, estimator=dp.PrivateMLE())
    network.save(folder / "network.zip")
    changed = dp.load(folder / "network.zip")
    changed.remove_edge("age", "vote")
    return network, dp.PairwiseMixture(members=1).fit(noisy).network_, changed, folder


def unfitted():
    return dp.PrivateBayesianNetwork([("age", "vote")])


CALLS = [
    (lambda n, m, c, f: private(LEVELS).measure([("age",)], 0.1), "names of 2 levels: flatten them"),
    (lambda n, m, c, f: n.predict(LEVELS), "names of 2 levels: flatten them"),
    (lambda n, m, c, f: dp.VariableElimination(unfitted()), "not fitted yet: call fit first"),
    (lambda n, m, c, f: n.query([]), "No variable is named"),
    (lambda n, m, c, f: n.query(3), "Name the variables in a list, .* got 3"),
    (lambda n, m, c, f: n.query("vote"), "Name the variables in a list"),
    (lambda n, m, c, f: n.expectation(3), "Name the variables in a list, .* got 3"),
    (lambda n, m, c, f: n.expectation(["vote"]), r"'vote' is not binned: give a number"),
    (lambda n, m, c, f: n.quantiles("age"), r"levels is 'age'; it must be a list .* variables="),
    (lambda n, m, c, f: n.quantiles(0.5), "levels is 0.5; it must be a list"),
    (lambda n, m, c, f: n.simulate(5, seed="a"), "seed must be a whole number, at least 0, got 'a'"),
    (lambda n, m, c, f: m.simulate(5, seed=-1), "seed must be a whole number, at least 0, got -1"),
    (lambda n, m, c, f: n.simulate(partial_samples=[1]), "DataFrame are needed, got list"),
    (lambda n, m, c, f: dp.NoisyMarginals.load(f / "network.zip"), "not a release file: .* pgmpy_dp.load"),
    (lambda n, m, c, f: dp.Schema.load(f / "network.zip"), "not a schema, .* schema_"),
    (lambda n, m, c, f: dp.load(RECORDS), "load reads the file of a model, by its name; got DataFrame"),
    (lambda n, m, c, f: dp.plan_pairs(RECORDS), "planned for a Schema, got DataFrame"),
    (lambda n, m, c, f: unfitted().fit(epsilon=1.0), "fit takes no epsilon: give it to an estimator"),
    (lambda n, m, c, f: unfitted().fit("records.csv"), "give the estimator an epsilon and states"),
    (lambda n, m, c, f: unfitted().fit(RECORDS, estimator=MaximumLikelihoodEstimator), "must be an instance with fit"),
    (lambda n, m, c, f: dp.AutoMLE(epsilon=1.0).release_, "AutoMLE is not fitted yet, and fit sets release_"),
    (lambda n, m, c, f: VariableElimination(m), r"A mixture has no graph and no CPDs: to_bayesian_network\(\)"),
    (lambda n, m, c, f: m.nodes, r"A mixture has no graph .* to_bayesian_network\(\)"),
    (lambda n, m, c, f: m.get_cpds(), r"A mixture has no graph .* to_bayesian_network\(\)"),
    (lambda n, m, c, f: c.query(["vote"]), "changed since it was fitted, .* a CPD of 'vote' given"),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_odd_arguments_are_named(models, number):
    call, message = CALLS[number]
    with pytest.raises((TypeError, ValueError, AttributeError), match=message):
        call(*models)


def test_commands_name_them_too(models, monkeypatch):
    monkeypatch.chdir(models[-1])
    RECORDS.to_csv("records.csv", index=False)
    SCHEMA.save("schema.json")
    (models[-1] / "words.csv").write_text('variable,states\nvote,"F,M"\nill,yes|no\n')

    def run(line):
        result = CliRunner().invoke(main, line.split())
        return result.output + result.stderr

    synthesize = "synthesize records.csv --schema schema.json --epsilon 1 --no-ledger --out new.csv"
    assert "Missing option '--delta': the probability" in run(synthesize)
    assert "Caution: the only state of vote is 'F,M': separate states by |" in run("schema words.csv")
    assert "'vote' is not binned: ask for its states by --target" in run("query network.zip --mean vote")
    assert re.match(r"\d+ synthetic records written", run("sample network.zip --out drawn.csv"))
    for line in ("check network.zip", "sample network.zip --out more.csv", "query network.zip --target vote"):
        assert "Note: Caution:" not in run(line)
