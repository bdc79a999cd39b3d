"""Public tables enter fits as observations, at no cost: closer answers, and a warning where they contradict."""

import warnings

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.estimators.base import informed
from pgmpy_dp.inference.tables.table import Table

STATES = {"a": ["x", "y"], "b": ["x", "y", "z"], "c": ["x", "y"], "d": ["x", "y"]}
SCHEMA = dp.Schema(STATES)
EDGES = [("a", "b"), ("b", "c"), ("c", "d")]
JOINED, APART = ("a", "b"), ("a", "c")


def _records():
    generator = np.random.default_rng(0)
    a = generator.random(5000) < 0.3
    b = np.where(generator.random(5000) < 0.7, a.astype(int), 2)
    c = generator.random(5000) < 0.2 + 0.3 * b
    d = generator.random(5000) < np.where(c, 0.8, 0.3)
    return pd.DataFrame(
        {v: np.array(STATES[v])[codes.astype(int)] for v, codes in zip("abcd", (a, b, c, d), strict=True)}
    )


RECORDS = _records()
EXACT = dict(dp.exact_marginals(RECORDS, SCHEMA, [JOINED, APART, ("b", "c"), ("c", "d")]).tables)
ESTIMATORS = {
    "AutoMLE": (dp.PrivateBayesianNetwork, dp.AutoMLE),
    "CollectiveEM": (dp.PrivateBayesianNetwork, dp.CollectiveEM),
    "PosteriorMean": (dp.PrivateBayesianNetwork, lambda **given: dp.PosteriorMean(draws=60, **given)),
    "PrivateMLE": (dp.PrivateBayesianNetwork, dp.PrivateMLE),
    "undirected": (dp.PrivateMarkovNetwork, dp.CollectiveEM),
}


def dataset(epsilon=0.03, seed=1):
    return dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(epsilon), noise=dp.SimulatedNoise(seed))


def error(network, clique):
    answer = network.query(list(clique))
    own = Table(tuple(answer.variables), answer.values).margin(clique).values
    return 0.5 * np.abs(own - EXACT[clique] / EXACT[clique].sum()).sum()


@pytest.mark.filterwarnings("ignore:The release contradicts", "ignore:The chain")
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_exact_table_is_met_and_costs_nothing(name):
    network, estimator = ESTIMATORS[name]
    plain = network(EDGES).fit(dataset(), estimator=estimator(epsilon=0.03))
    release = plain.release_
    informed = network(EDGES).fit(release, estimator=estimator(), public={JOINED: EXACT[JOINED] * 7})
    assert informed.guarantee_ == plain.guarantee_
    assert error(informed, JOINED) < 0.02 < error(plain, JOINED)
    assert error(informed, ("b", "c")) < 1.1 * error(plain, ("b", "c"))
    assert isinstance(informed.release_, dp.InformedMarginals)


@pytest.mark.filterwarnings("ignore:The release contradicts")
@pytest.mark.parametrize("name", ["CollectiveEM", "undirected"])
def test_tables_that_the_network_does_not_join_tell_by_inference(name):
    network, estimator = ESTIMATORS[name]
    data = dataset()
    informed = network(EDGES).fit(data, estimator=estimator(epsilon=0.03), public={APART: EXACT[APART]})
    plain = network(EDGES).fit(informed.release_.noisy, estimator=estimator())
    assert float(data.budget.spent.epsilon) == 0.03 == informed.guarantee_.epsilon
    assert error(informed, APART) < 0.5 * error(plain, APART)


@pytest.mark.filterwarnings("ignore:The release contradicts")
def test_pgmpys_own_networks_and_several_releases_take_them():
    data = dataset(1.0)
    releases = [data.measure(EDGES, 0.2), data.measure(EDGES, 0.2)]
    network = DiscreteBayesianNetwork(EDGES).fit(
        dp.InformedMarginals(releases[0], {JOINED: EXACT[JOINED]}), estimator=dp.CollectiveEM()
    )
    assert network.check_model()
    joined = dp.PrivateBayesianNetwork(EDGES).fit(releases, public={JOINED: EXACT[JOINED]})
    assert joined.guarantee_.epsilon == 0.4
    several = dp.PosteriorMean(draws=20).fit(network, releases, public={JOINED: EXACT[JOINED]})
    assert [type(release) for release in several.release_] == [dp.InformedMarginals, dp.NoisyMarginals]


def test_the_mixture_meets_them_and_its_file_finds_its_release_again(tmp_path):
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(0.1, 1e-6), noise=dp.SimulatedNoise(0))
    plain = dp.PairwiseMixture(0.1, 1e-6, members=2).fit(data)
    informed = dp.PairwiseMixture(members=2).fit(plain.release_, public={JOINED: EXACT[JOINED]})
    assert informed.guarantee_ == plain.guarantee_
    assert error(informed.network_, JOINED) < 0.01 < error(plain.network_, JOINED)
    informed.release_.save(tmp_path / "release.zip")
    informed.network_.save(tmp_path / "mixture.json")
    loaded = dp.PrivateMixtureNetwork.load(tmp_path / "mixture.json")
    loaded.attach_release(dp.InformedMarginals.load(tmp_path / "release.zip"))
    bounds = loaded.query(["a"], interval=0.9)
    assert ((bounds["lower"] <= bounds["value"]) & (bounds["value"] <= bounds["upper"])).all()


@pytest.mark.filterwarnings("ignore:The chain")
def test_bounds_are_narrower_with_them_and_the_test_of_fit_takes_them():
    release = dataset(0.2, seed=2).measure(EDGES, 0.2)
    plain = dp.PrivateBayesianNetwork(EDGES).fit(release)
    informed = dp.PrivateBayesianNetwork(EDGES).fit(release, public={JOINED: EXACT[JOINED]})
    bounds = [network.query(["a"], interval=0.9, target="records") for network in (plain, informed)]
    widths = [(frame["upper"] - frame["lower"]).max() for frame in bounds]
    assert widths[1] < 0.5 * widths[0]
    assert (bounds[1]["lower"] <= EXACT[JOINED].sum(axis=1) / 5000).all()
    assert (bounds[1]["upper"] >= EXACT[JOINED].sum(axis=1) / 5000).all()
    assert not informed.check_fit().fails


def test_what_contradicts_the_release_far_beyond_noise_is_said_and_sampling_is_not():
    release = dataset(1.0).measure(EDGES, 1.0)
    sample = dp.exact_marginals(RECORDS.sample(5000, replace=True, random_state=0), SCHEMA, [JOINED]).tables[JOINED]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for table in (sample, dp.PublicTable(EXACT[JOINED][::-1], 2000.0)):  # which has standard errors as large
            dp.CollectiveEM().fit(DiscreteBayesianNetwork(EDGES), release, public={JOINED: table})
    for public in ({JOINED: EXACT[JOINED][::-1]}, {"d": [0.5, 0.5], ("d", "a"): [[0.6, 0.3], [0.05, 0.05]]}):
        with pytest.warns(UserWarning, match="Public tables are contradicted"):
            dp.CollectiveEM().fit(DiscreteBayesianNetwork(EDGES), release, public=public)


@pytest.mark.filterwarnings("ignore:The fit of CollectiveEM did not converge")
@pytest.mark.parametrize("network", [dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork])
def test_tables_whose_tree_is_too_large_are_left_out_and_named(network):
    schema = dp.Schema({variable: range(60) for variable in "abc"})
    tables = {pair: np.full((60, 60), 3) for pair in (("a", "b"), ("b", "c"))}
    guarantee = dp.Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True)
    release = dp.NoisyMarginals(schema, tables, dict.fromkeys(tables, 4.0), guarantee)
    with pytest.warns(UserWarning, match=r"leaves out the public \('a', 'c'\): the network does not join"):
        network([("a", "b"), ("b", "c")]).fit(
            release, estimator=dp.CollectiveEM(max_iter=2), public={("a", "c"): np.ones((60, 60)), "b": np.ones(60)}
        )


@pytest.mark.parametrize(
    ("network", "estimator", "public", "named"),
    [
        (dp.PrivateBayesianNetwork, dp.PrivateVB(0.5, 0.1), {JOINED: EXACT[JOINED]}, "PrivateVB cannot use"),
        (dp.PrivateMarkovNetwork, dp.papers.NaiveMLE(epsilon=0.5), {JOINED: EXACT[JOINED]}, "NaiveMLE cannot use"),
        (dp.PrivateBayesianNetwork, dp.CollectiveEM(0.5), {"a": [1, 2, 3]}, "shape"),
        (
            dp.PrivateBayesianNetwork,
            dp.PrivateMLE(0.5, consistency_weights="epsilon"),
            {"a": [1, 2]},
            "have no epsilon",
        ),
    ],
)
def test_what_cannot_use_them_is_refused_unpaid(network, estimator, public, named):
    data = dataset(1.0)
    with pytest.raises(ValueError, match=named):
        network(EDGES).fit(data, estimator=estimator, public=public)
    with pytest.raises(ValueError, match="shape"):
        dp.PairwiseMixture(0.5, mechanism="laplace").fit(data, public={"a": [1, 2, 3]})
    assert float(data.budget.spent.epsilon) == 0


def test_coefficients_take_them_and_releases_without_tables_do_not():
    data = dataset(1.0)
    release, public = data.measure_coefficients(EDGES, 1.0), {"a": [1, 2]}
    fitted = dp.PrivateBayesianNetwork(EDGES).fit(release, estimator=dp.CollectiveEM(), public=public)
    assert fitted.query(["a"]).values[0] == pytest.approx(1 / 3, abs=0.01)
    with pytest.raises(TypeError, match="Public tables are joined to tables, residuals or coefficients, got int"):
        dp.InformedMarginals(1, public)


def test_more_public_tables_join_those_of_a_release():
    data = dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    release = data.measure([JOINED], 1.0)
    one = informed(release, {("c",): [0.5, 0.5]})
    both = informed(one, {("d",): [0.4, 0.6]})
    assert set(both.public) == {("c",), ("d",)}
    assert both.noisy is release
    assert informed(both, None) is both
