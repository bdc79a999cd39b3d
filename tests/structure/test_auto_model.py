"""Which model is chosen, what is spent on it, and what that costs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.fitting.plans.pairs import favouring
from pgmpy_dp.networks.network import simulate
from pgmpy_dp.structure.auto_model import saved
from pgmpy_dp.structure.drawn_records import positions

ASIA = bnlearn_network("asia")


def sparse(count=5000):
    return simulate(ASIA, count, seed=1), dp.Schema.from_model(ASIA)


def dense(count=5000):
    """Twelve kinds of records, in which every variable depends on all others."""
    generator = np.random.default_rng(0)
    states, kinds = list("abcde"), generator.dirichlet(np.full(5, 0.3), size=(12, 8))
    kind = generator.integers(12, size=count)
    codes = (kinds[kind].cumsum(2) < generator.random((count, 8, 1))).sum(2).clip(0, 4)
    frame = pd.DataFrame(np.array(states)[codes], columns=[f"v{number}" for number in range(8)])
    return frame, dp.Schema(dict.fromkeys(frame, states))


def fitted(records, schema, seed=0, epsilon=3.0, delta=1e-6, **options):
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(epsilon, delta), noise=dp.SimulatedNoise(seed))
    return dp.AutoModel(epsilon, delta, members=2, **options).fit(data), data


@pytest.fixture(scope="module", params=[(sparse, "network"), (dense, "mixture")], ids=["sparse", "dense"])
def found(request):
    make, suits = request.param
    records, schema = make()
    return (*fitted(records, schema), suits, schema)


def test_the_model_that_suits_the_records_is_chosen(found):
    estimator, _, suits, schema = found
    assert estimator.chosen_ == suits
    assert (estimator.excess_ > saved(schema)) == (suits == "mixture")
    drawn = positions(estimator.network_.simulate(1000, seed=0), schema)
    assert drawn.shape == (1000, len(schema.variables))


def test_one_charge_and_the_guarantee_of_the_whole_on_everything(found):
    estimator, data, _, schema = found
    (charge,) = data.budget.history
    assert (charge.epsilon, float(charge.delta)) == (3, 1e-6)
    assert (estimator.guarantee_.epsilon, estimator.guarantee_.delta) == (3.0, 1e-6)
    assert estimator.guarantee_ == estimator.release_.guarantee == estimator.network_.guarantee_
    assert all(release.guarantee == estimator.guarantee_ for release in estimator.releases_)
    first = estimator.releases_[0]
    assert first.cliques == dp.plan_pairs(schema)[0]
    spent = [sum(1 / (2 * scale**2) for scale in release.scales.values()) for release in estimator.releases_]
    assert spent[0] / estimator.guarantee_.rho == pytest.approx(0.05, rel=0.1)
    assert sum(spent) <= estimator.guarantee_.rho


def test_the_choice_sees_the_first_release_alone():
    """The same first release from other records, whose later ones differ, gives the same choice."""
    records, schema = sparse(2000)
    kept, _ = fitted(records, schema)
    again = dp.AutoModel(3.0, 1e-6, members=2)._excess(kept.releases_[0], schema)
    assert again == kept.excess_


def test_only_a_mixture_holds_rules():
    records, schema = sparse(1000)
    ruled = dp.Schema(schema.state_names, rules=[dp.Forbidden({"lung": "yes", "either": "no"})])
    estimator, _ = fitted(records, ruled)
    assert (estimator.chosen_, estimator.excess_) == ("mixture", np.inf)
    assert not ((drawn := estimator.network_.simulate(500, seed=0))["lung"].eq("yes") & drawn["either"].eq("no")).any()


def test_few_columns_get_a_mixture_where_noise_hides_which_is_closer():
    records = pd.DataFrame(np.random.default_rng(0).binomial(3, 0.3, size=(2000, 4)), columns=list("abcd"))
    estimator, _ = fitted(records, dp.Schema(dict.fromkeys(records, range(4))), epsilon=1.0)
    assert estimator.chosen_ == "mixture"
    assert abs(estimator.excess_) < 0.1


@pytest.mark.parametrize("variables", [4, 9])
def test_a_network_saves_the_share_of_the_noise_of_pairs_that_its_families_save(variables):
    schema = dp.Schema({str(number): range(3) for number in range(variables)})
    nobody = pd.DataFrame(columns=list(schema.variables))
    data = dp.PrivateDataset(nobody, schema, dp.PrivacyBudget(2.0, 1e-5), noise=dp.SimulatedNoise(0))
    pairs = list(combinations(schema.variables, 2))
    families = list(combinations(schema.variables, 3))[:variables]
    of_pair, of_family = (
        data.measure(cliques, 1.0, delta=1e-6, mechanism="gaussian").marginal(pairs[0])[1]
        for cliques in (pairs, families)
    )
    assert saved(schema) == pytest.approx(1 - of_family / of_pair, abs=0.02)


def test_wanted_pairs_get_more_of_the_same_whole():
    shares = {("a",): 0.1, ("a", "b"): 0.3, ("a", "c"): 0.3, ("b", "c"): 0.3}
    found = favouring(shares, {("a", "b"): 1.0, ("a", "c"): 3.0, ("b", "c"): 2.0})
    assert list(found) == list(shares)
    assert found["a",] == 0.1
    assert sum(found.values()) == pytest.approx(1.0)
    assert found["a", "b"] < found["b", "c"] < found["a", "c"]


def test_a_release_is_refused():
    records, schema = sparse(100)
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    with pytest.raises(TypeError, match="PairwiseMixture"):
        dp.AutoModel().fit(data.measure([("lung",)], 0.1))
