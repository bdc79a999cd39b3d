"""Audits of whole searches, for a graph or for what is farthest from one: all is measured and chosen at one price.

A search of three variables takes a tenth of a second, so there are few, and what is looked at is sharp: the logarithm
of the likelihood ratio of all tables, which is known for Gaussian noise, and the first pair that was chosen. The audit
refutes a correct search with probability at most FALSE_ALARM; what each planted bug shows is all but certain.
"""

from collections.abc import Generator
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from trials import Bottomless, Noise

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.steps import Choose, Measure, Step, TablesInSteps
from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.evaluation import audit
from pgmpy_dp.networks import network as networks
from pgmpy_dp.privacy.cost import Pure
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.structure import search
from pgmpy_dp.structure.search import Knowledge, Round, Steps

FALSE_ALARM = 1e-6
EPSILON, DELTA = 1.0, 0.1
TRIALS, FEW = 300, 120
FREE = 20.0  # rho of a step that is not charged
VARIABLES = ("a", "b", "c")
SCHEMA = dp.Schema({variable: ["x", "y"] for variable in VARIABLES})
SHORT = pd.DataFrame([list("xxy"), list("yyy"), list("xyx"), list("yxx")], columns=VARIABLES)
LONG = pd.concat([SHORT, pd.DataFrame([list("xxx")], columns=VARIABLES)])
STEPS = Steps(singles=0.1, forest=Round(0.1, 0.2), rounds=(Round(0.1, 0.1, 0.4),))


@pytest.fixture
def pair(monkeypatch):
    """Two neighbours, each with its records; fits and draws from them see answers alone, and are quick here."""
    monkeypatch.setattr(search, "RECORDS", 200)
    monkeypatch.setattr(search, "_ROUGH", 2)
    return tuple((dp.PrivateDataset(records, SCHEMA, Bottomless(EPSILON, DELTA)), records) for records in (SHORT, LONG))


def searched(data, records, method=TablesInSteps, tampered=lambda asked, records: asked):
    """What a search shows of the record that only one neighbour has."""
    picks = []

    def asking() -> Generator:
        found, answer = search.Search(SCHEMA, Knowledge.of(None, list(VARIABLES), 2), 2), None
        steps = found.run(STEPS)
        while True:
            try:
                asked = tampered(steps.send(answer), records)
            except StopIteration:
                return found
            answer = yield asked
            if isinstance(asked, Choose):
                picks.extend(VARIABLES.index(variable) for clique in answer for variable in clique)

    steps = [step for _, step in STEPS.listed(len(VARIABLES))]
    found, _ = data.release(method(steps, EPSILON, DELTA, asking, "search for a graph"))
    ratio = 0.0
    for release in found.releases:
        for clique, table in release.tables.items():
            expected = (SHORT[list(clique)] == "x").all(axis=1).sum()
            ratio += (table.ravel()[0] - expected - 0.5) / release.variances[clique]
    return {"ratio": float(ratio), "first pick": picks[:2]}


def refuted(pair, trials, **how):
    result = audit(lambda one: searched(*one, **how), pair, EPSILON, DELTA, trials, 1 - FALSE_ALARM)
    print(result)
    return result.refuted


class LastStepIsFree(TablesInSteps):
    """The last tables are measured at a price of their own, which nobody is charged."""

    def _answered(self, asked, step, loss, public, held, whole, noise):
        if step is not self.steps[-1]:
            return super()._answered(asked, step, loss, public, held, whole, noise)
        free = {"rho": FREE, "delta": self.delta} if self.delta else {"epsilon": FREE}
        mechanism = CountedTables(asked.cliques, weights=asked.weights, **free)
        quote = mechanism.quote(public)
        quote = quote if self.delta else replace(quote, cost=whole.cost)
        return mechanism.draw(quote, public, mechanism.read(quote, held), noise)


def reference_from_the_records(asked, records):
    """What pairs are compared with depends on whether the records hold the first one more often than usual."""
    if not isinstance(asked, Choose):
        return asked
    more = (records[["a", "b"]] == "x").all(axis=1).sum() > 1
    far = {pair: 1000.0 * ((pair == ("a", "b")) == more) for pair in asked.references}
    return replace(asked, references={pair: np.full((2, 2), far[pair]) for pair in far})


def candidates_from_the_records(asked, records):
    """The first pair is the candidate where enough records hold it."""
    if not isinstance(asked, Choose):
        return asked
    enough = len(records) > len(SHORT)
    kept = {pair: table for pair, table in asked.references.items() if (pair == ("a", "b")) == enough}
    return replace(asked, references=kept)


@pytest.mark.slow
def test_a_search_keeps_its_claim(pair):
    assert not refuted(pair, TRIALS)


@pytest.mark.slow
@pytest.mark.parametrize(
    "bug",
    [{"method": LastStepIsFree}, {"tampered": reference_from_the_records}, {"tampered": candidates_from_the_records}],
    ids=["last step is free", "reference from the records", "candidates from the records"],
)
def test_planted_bugs_in_a_search_are_caught(bug, pair):
    assert refuted(pair, FEW, **bug)


class OwnPrice(TablesInSteps):
    """The release of a step promises what its own noise costs, and not what chose its tables."""

    def draw(self, quote, public, exact, noise):
        release, whole = super().draw(quote, public, exact, noise)
        own = public.cost("measure", "laplace", Pure(quote.terms.losses[-1]))
        return replace(release, guarantee=Guarantee({own})), whole


def chosen_and_measured(data, method=TablesInSteps):
    """Nine tenths of epsilon choose one of two tables, and a tenth measures it."""

    def asking() -> Generator:
        near, far = (np.array([[1, 1], [1, 1]]), np.array([[2, 1], [1, 1]]))  # one more record: off or there
        (chosen,) = yield Choose({("a", "b"): near, ("b", "c"): far}, lambda _: [("a", "b"), ("b", "c")])
        measured = yield Measure([chosen], [1.0])
        return measured

    release, _ = data.release(method([Step(0.9, 1), Step(0.1)], 2.0, 0.0, asking, "choose and measure"))
    return release


def test_the_wall_refuses_a_release_with_its_own_price():
    with pytest.raises(TypeError, match="OwnPrice hands out an answer that states other costs than were paid"):
        chosen_and_measured(dp.PrivateDataset(SHORT, SCHEMA, Bottomless(2.0), noise=Noise()), OwnPrice)


@pytest.mark.parametrize(("own_price", "caught"), [(None, False), (0.2, True)])
def test_a_searchs_release_with_its_own_price_is_caught(own_price, caught):
    """A release by itself tells which tables were chosen: what it promises must hold for that as well.

    One table is chosen in .63 of runs with the record and in .10 without it: of 400 trials, all but 1e-5 of audits
    catch the planted price.
    """
    noise = Noise()
    data = [dp.PrivateDataset(records, SCHEMA, Bottomless(2.0), noise=noise) for records in (SHORT, LONG)]
    promised = chosen_and_measured(data[0]).guarantee.epsilon
    assert promised == 2.0
    result = audit(
        lambda one: VARIABLES.index(chosen_and_measured(one).cliques[0][0]),
        data, own_price or promised, trials=400, confidence=1 - FALSE_ALARM,
    )  # fmt: skip
    assert result.refuted == caught, result


# What is farthest from a network: which pair is chosen, and its table, at the price of both.


@pytest.fixture(scope="module")
def network():
    """Fitted to an earlier release, which is public."""
    guarantee = Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True)
    tables = {("a",): np.array([30, 2]), ("b",): np.array([9, 23]), ("c",): np.array([16, 16])}
    release = dp.NoisyMarginals(SCHEMA, tables, dict.fromkeys(tables, 3.0), guarantee)
    found = dp.PrivateBayesianNetwork()
    found.add_nodes_from(VARIABLES)
    return found.fit(release, estimator=dp.PrivateMLE())


def probed(network, data):
    """Which pair was chosen, and how likely its noise makes the longer records."""
    release = network.copy().measure_misfit(data, 0.5, pairs=1)
    ((pair, table),) = release.tables.items()
    expected = (SHORT[list(pair)] == "x").all(axis=1).sum()
    return {"pair": [VARIABLES.index(variable) for variable in pair], "first": float(table[0, 0] - expected - 0.5)}


def misfit_refuted(network):
    """By 240 trials, in which the planted bug is missed in less than one audit in a million."""
    data = [dp.PrivateDataset(records, SCHEMA, Bottomless(0.5)) for records in (SHORT, LONG)]
    return audit(lambda one: probed(network, one), data, 0.5, 0.0, 240, 1 - FALSE_ALARM).refuted


@pytest.mark.full
def test_what_is_farthest_keeps_its_claim(network):
    assert not misfit_refuted(network)


@pytest.mark.full
def test_a_table_that_nobody_pays_is_no_release(network, monkeypatch):
    monkeypatch.setattr(networks, "TablesInSteps", LastStepIsFree)
    with pytest.raises(ValueError, match=r"costs epsilon=20, more than the guarantee's 0.5"):
        probed(network, dp.PrivateDataset(SHORT, SCHEMA, Bottomless(0.5)))


@pytest.mark.full
def test_references_from_the_records_are_caught(network, monkeypatch):
    """The number of records that pairs are compared with is not that of the release: more than four make it large."""
    real = networks.measure_farthest

    def leaking(network, schema, releases, data, *others):
        large = 1e6 * (data._read_from.counts([("a",)])["a",].sum() > len(SHORT))
        monkeypatch.setattr(networks, "agreed_total", lambda _: (float(large), 0.0))
        return real(network, schema, releases, data, *others)

    monkeypatch.setattr("pgmpy_dp.networks.network.measure_farthest", leaking)
    assert misfit_refuted(network)
