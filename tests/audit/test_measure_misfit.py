"""Audits of measuring what is farthest from a network: which pair is chosen, and its table, at the price of both.

The audit refutes a correct measurement with probability at most FALSE_ALARM; what the planted bug shows is all but
certain.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from trials import Bottomless

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.steps import TablesInSteps
from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.evaluation import audit
from pgmpy_dp.networks import farthest_pairs

pytestmark = pytest.mark.full

FALSE_ALARM = 1e-6
EPSILON = 0.5
TRIALS = 240  # of which the planted bug is missed in less than one audit in a million
VARIABLES = ("a", "b", "c")
SCHEMA = dp.Schema({variable: ["x", "y"] for variable in VARIABLES})
SHORT = pd.DataFrame([list("xxy"), list("yyy"), list("xyx"), list("yxx")], columns=VARIABLES)
LONG = pd.concat([SHORT, pd.DataFrame([list("xxx")], columns=VARIABLES)])


@pytest.fixture(scope="module")
def network():
    """Fitted to an earlier release, which is public."""
    guarantee = dp.Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True)
    tables = {("a",): np.array([30, 2]), ("b",): np.array([9, 23]), ("c",): np.array([16, 16])}
    release = dp.NoisyMarginals(SCHEMA, tables, dict.fromkeys(tables, 3.0), guarantee)
    found = dp.PrivateBayesianNetwork()
    found.add_nodes_from(VARIABLES)
    return found.fit(release, estimator=dp.PrivateMLE())


def measured(network, data):
    """Which pair was chosen, and how likely its noise makes the longer records."""
    release = network.copy().measure_misfit(data, EPSILON, pairs=1)
    ((pair, table),) = release.tables.items()
    expected = (SHORT[list(pair)] == "x").all(axis=1).sum()
    return {"pair": [VARIABLES.index(variable) for variable in pair], "first": float(table[0, 0] - expected - 0.5)}


def refuted(network, trials):
    data = [dp.PrivateDataset(records, SCHEMA, Bottomless(EPSILON)) for records in (SHORT, LONG)]
    result = audit(lambda one: measured(network, one), data, EPSILON, 0.0, trials, 1 - FALSE_ALARM)
    print(result)
    return result.refuted


class TableIsFree(TablesInSteps):
    """The table is measured at a price of its own, which nobody is charged."""

    def _answered(self, asked, step, loss, public, held, whole, noise):
        if step.picks:
            return super()._answered(asked, step, loss, public, held, whole, noise)
        mechanism = CountedTables(asked.cliques, 20.0, weights=asked.weights)
        quote = replace(mechanism.quote(public), cost=whole.cost)
        return mechanism.draw(quote, public, mechanism.read(quote, held), noise)


def test_it_keeps_its_claim(network):
    assert not refuted(network, TRIALS)


def test_a_table_that_nobody_pays_is_no_release(network, monkeypatch):
    monkeypatch.setattr(farthest_pairs, "TablesInSteps", TableIsFree)
    with pytest.raises(ValueError, match=r"costs epsilon=20, more than the guarantee's 0.5"):
        measured(network, dp.PrivateDataset(SHORT, SCHEMA, Bottomless(EPSILON)))


def test_references_from_the_records_are_caught(network, monkeypatch):
    """The number of records that pairs are compared with is not that of the release: more than four make it large."""
    real = farthest_pairs.measure_farthest

    def leaking(network, schema, releases, data, *others):
        large = 1e6 * (data._read_from.counts([("a",)])["a",].sum() > len(SHORT))
        monkeypatch.setattr(farthest_pairs, "agreed_total", lambda _: (float(large), 0.0))
        return real(network, schema, releases, data, *others)

    monkeypatch.setattr("pgmpy_dp.networks.network.measure_farthest", leaking)
    assert refuted(network, TRIALS)
