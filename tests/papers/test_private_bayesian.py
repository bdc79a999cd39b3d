"""PrivateBayesianEstimator, and releases of coefficients in the other estimators."""

import numpy as np
import pytest
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork, NaiveBayes
from pgmpy.parameter_estimator import DiscreteBayesianEstimator
from scipy.stats import kstest

import pgmpy_dp as dp
from pgmpy_dp import papers
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.fitting.readings import undirected
from pgmpy_dp.fitting.readings.directed import Problem
from pgmpy_dp.inference import JunctionTree, Layout
from pgmpy_dp.observed.factors import families
from pgmpy_dp.observed.observed import Observed
from pgmpy_dp.observed.reading import observe

RELEASES = ["laplace", "fourier"]
EDGES = [("smoke", "lung"), ("site", "lung")]


PRIORS = [
    {"prior_type": "BDeu", "equivalent_sample_size": 12},
    {"prior_type": "BDeu", "equivalent_sample_size": {"smoke": 2, "lung": 3.5, "site": 1}},
    {"prior_type": "K2"},
    {"prior_type": "dirichlet", "pseudo_counts": 2.5},
    {
        "prior_type": "dirichlet",
        "pseudo_counts": {"smoke": [[3], [1]], "lung": np.arange(1, 13).reshape(2, 6), "site": [[1], [2], [3]]},
    },
]


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("release", RELEASES)
def test_without_noise_it_is_pgmpys_estimator(release, prior, smokers):
    schema, records = smokers
    exact = DiscreteBayesianNetwork(EDGES).fit(
        records, estimator=DiscreteBayesianEstimator(state_names=schema.state_names, **prior)
    )
    estimator = dp.papers.PrivateBayesianEstimator(1e6, mechanism=release, state_names=schema, **prior)
    private = DiscreteBayesianNetwork(EDGES).fit(records, estimator=estimator)
    for node in exact.nodes():
        np.testing.assert_allclose(private.get_cpds(node).get_values(), exact.get_cpds(node).get_values(), atol=1e-4)
    counts = estimator.posterior_counts_["lung"]
    assert counts.columns.names == ["site", "smoke"]
    assert counts.index.tolist() == ["yes", "no"]
    own = records[(records["site"] == 1) & (records["smoke"] == "no")]["lung"].eq("yes").sum()
    assert own < counts.loc["yes", (1, "no")] < own + 12


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_algorithm_1_measures_every_family_alike(neighbours, smokers):
    schema, records = smokers
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), neighbours=neighbours)
    estimator = dp.papers.PrivateBayesianEstimator(0.5)
    DiscreteBayesianNetwork(EDGES).fit(data, estimator=estimator)
    sensitivity = 3 if neighbours == "add_remove" else 6
    assert list(estimator.release_.scales.values()) == pytest.approx([sensitivity / 0.5] * 3)
    assert data.budget.remaining.epsilon == 0.5
    assert estimator.guarantee_.neighbours == neighbours


def test_posterior_counts_are_prior_plus_clamped_counts(smokers):
    schema, records = smokers
    data = dp.PrivateDataset(records.head(20), schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(1))
    noisy = data.measure(families(DiscreteBayesianNetwork(EDGES)), 0.2)
    estimator = dp.papers.PrivateBayesianEstimator(prior_type="K2").fit(DiscreteBayesianNetwork(EDGES), noisy)
    family = ("lung", "site", "smoke")
    table = noisy.tables[family].reshape(2, 6)
    assert (table < 0).any()
    np.testing.assert_allclose(estimator.posterior_counts_["lung"], 1 + np.clip(table, 0, noisy.total))


@pytest.mark.parametrize("increment", ["least", "paper", None])
def test_fourier_counts_agree_as_promised(increment, smokers):
    schema, records = smokers
    data = dp.PrivateDataset(records.head(50), schema, dp.PrivacyBudget(1.0))
    noisy = data.measure_coefficients(families(DiscreteBayesianNetwork(EDGES)), 0.5)
    kind = papers.PrintedBayesianEstimator if increment == "paper" else dp.papers.PrivateBayesianEstimator
    prior = {"prior_type": "dirichlet", "pseudo_counts": 1e-9}
    estimator = kind(**prior) if increment == "paper" else kind(**prior, increment=increment)
    estimator.fit(DiscreteBayesianNetwork(EDGES), noisy)
    counts = estimator.posterior_counts_
    assert all((frame.to_numpy() > 0).all() for frame in counts.values())
    by_smoke = counts["lung"].T.groupby(level="smoke", sort=False).sum().T.sum()
    if increment is not None:
        np.testing.assert_allclose(by_smoke[["yes", "no"]], counts["smoke"]["smoke"][["yes", "no"]], atol=1e-6)


def test_draws_follow_the_dirichlet_posterior(smokers):
    """Kolmogorov-Smirnov at 1e-6 a test; a prior counted twice is the planted bug."""
    schema, records = smokers
    estimator = dp.papers.PrivateBayesianEstimator(1e5, prior_type="dirichlet", pseudo_counts=0.3, state_names=schema)
    estimator.fit(DiscreteBayesianNetwork(EDGES), records.head(60))
    drawn = estimator.sample_cpds(1500, seed=3)
    values = np.array([network.get_cpds("site").get_values()[0, 0] for network in drawn])
    first, *rest = estimator.posterior_counts_["site"]["site"]
    assert kstest(values, "beta", args=(first, sum(rest))).pvalue > 1e-6
    assert kstest(values, "beta", args=(2 * first, 2 * sum(rest))).pvalue < 1e-6
    assert drawn[0].check_model()
    again = estimator.sample_cpds(1, seed=3)[0]
    np.testing.assert_array_equal(again.get_cpds("lung").values, drawn[0].get_cpds("lung").values)


@pytest.mark.parametrize("release", RELEASES)
def test_naive_bayes(release, smokers):
    schema, records = smokers
    model = NaiveBayes(["smoke", "site"], "lung")
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(2.0))
    estimator = dp.papers.PrivateBayesianEstimator(2.0, mechanism=release).fit(model, data)
    model.add_cpds(*estimator.parameters_)
    assert model.check_model()
    other = NaiveBayes()
    other.fit(records, "lung", estimator=dp.papers.PrivateBayesianEstimator(2.0, mechanism=release, state_names=schema))
    plain = DiscreteBayesianNetwork(other.edges())  # pgmpy's own elimination does not take a NaiveBayes
    plain.add_cpds(*other.get_cpds())
    answer = VariableElimination(plain).query(["lung"], evidence={"smoke": "yes"}, show_progress=False)
    assert answer.get_value(lung="yes") == pytest.approx(0.4, abs=0.1)


def test_bad_input_charges_nothing(smokers):
    schema, records = smokers
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    network = DiscreteBayesianNetwork(EDGES)
    wrong = {"smoke": [[1], [1]], "lung": np.ones((2, 3)), "site": [[1], [1], [1]]}
    for options, message in [
        ({"mechanism": "tables"}, "mechanism"),
        ({"mechanism": "fourier", "delta": 0.1}, "no delta"),
        ({"increment": "most"}, "increment"),
        ({"prior_type": "Jeffreys"}, "prior_type"),
        ({"prior_type": "dirichlet"}, "pseudo_counts"),
        ({"pseudo_counts": 1}, "pseudo_counts"),
        ({"prior_type": "dirichlet", "pseudo_counts": wrong}, r"'lung' must be of shape \(2, 6\)"),
        ({"prior_type": "dirichlet", "pseudo_counts": {"smoke": 1}}, "no entry for"),
        ({"prior_type": "dirichlet", "pseudo_counts": 0}, "positive"),
        ({"prior_type": "dirichlet", "pseudo_counts": "one"}, "numbers"),
        ({"equivalent_sample_size": float("nan")}, "positive"),
        ({"equivalent_sample_size": 0}, "positive"),
        ({"equivalent_sample_size": "ten"}, "must be a number"),
    ]:
        with pytest.raises(ValueError, match=message):
            network.fit(data, estimator=dp.papers.PrivateBayesianEstimator(1.0, **options))
    assert data.budget.history == ()


def test_a_release_of_another_networks_families_names_the_missing_one(smokers):
    schema, records = smokers
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(2.0))
    other = families(DiscreteBayesianNetwork([("smoke", "lung"), ("lung", "site")]))
    for noisy in (data.measure(other, 0.5), data.measure_coefficients(other, 0.5)):
        with pytest.raises(ValueError, match=r"(holds|contains) \('lung', 'site', 'smoke'\)"):
            dp.papers.PrivateBayesianEstimator().fit(DiscreteBayesianNetwork(EDGES), noisy)
    with pytest.raises(ValueError, match="CollectiveEM or PrivateBayesianEstimator"):
        DiscreteBayesianNetwork(EDGES).fit(data.measure_coefficients(other, 0.5), estimator=dp.PrivateMLE())


def test_observations_of_coefficients_are_linear_in_the_counts(smokers):
    """A n of the exact counts are the exact coefficients, and noise far above them has the stated variance."""
    schema, records = smokers
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1e9), noise=dp.SimulatedNoise(0))
    noisy = data.measure_coefficients([("lung", "site", "smoke"), ("site",)], 1e6)
    own, seen = noisy.schema.select(["site", "lung", "smoke"]), observe(noisy, ["site", "lung", "smoke"])
    assert own.variables == ("site", "lung", "smoke")
    counts = dp.exact_marginals(records, schema, seen.cliques)
    flat = np.concatenate([counts.tables[clique].ravel() for clique in seen.cliques]).astype(float)
    np.testing.assert_allclose(seen.expected(flat), seen.noise.observed, atol=1e-3)
    assert seen.owners.tolist() == [0] * 11 + [-1]  # at last the number of records
    np.testing.assert_allclose(seen.expected_squares(flat), 4000 * np.ones(12), rtol=0.75)
    rough = observe(data.measure_coefficients([("lung", "site", "smoke")], 1e-3), ["site", "lung", "smoke"])
    # Of three states the spread is 1.932 = sqrt(3 / 2) + sqrt(1 / 2): the sensitivity is 2 * 2 * (1 + 1.932).
    np.testing.assert_allclose(rough.noise.variance, 2 * (4 * (1 + np.sqrt(1.5) + np.sqrt(0.5)) / 1e-3) ** 2, rtol=1e-3)
    part = observe(noisy, ["lung", "smoke"])  # the marginal of a clique that holds more
    assert part.cliques == (("lung", "smoke"),)
    assert part.owners.size == 4


def test_gradients_with_coefficients_are_those_of_the_objectives(smokers):
    schema, records = smokers
    noisy = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0)).measure_coefficients(
        [("lung", "site"), ("lung", "smoke")], 0.3
    )
    seen = Observed.of([noisy], list(schema.variables)).of_tables
    scopes = [("smoke",), ("site",), ("lung", "site", "smoke")]
    cards = {v: schema.cardinality(v) for v in schema.variables}
    generator = np.random.default_rng(2)

    def require_gradient(objective, point):
        _, slope = objective(point)
        for direction in np.eye(point.size):
            step = 1e-6 * direction
            numeric = (objective(point + step)[0] - objective(point - step)[0]) / 2e-6
            assert float(slope @ direction) == pytest.approx(numeric, abs=2e-4 * (1 + abs(numeric)))

    tree = JunctionTree.build(cards, [*scopes, *seen.cliques])
    problem = Problem(tree, Layout.of(cards, scopes), seen)
    point = generator.normal(size=problem.free.size)
    problem.observe(problem.calibrate(problem.rows.normalise(point)).marginals)
    require_gradient(problem, point)
    tree = JunctionTree.build(cards, seen.cliques)
    bound = undirected._Bound(tree, seen.cliques, seen)
    size = bound.free.size
    require_gradient(bound, np.concatenate([generator.normal(size=size), generator.normal(-3, 1, size=size)]))


def test_collective_fits_of_coefficients(smokers):
    """Both kinds of networks from one release of coefficients, closer to the truth than the agreeing counts.

    Over 200 releases divergences were 0.040, 0.110 and 0.035 on average, with deviations of 0.026, 0.080 and 0.019: the
    limits for means of 20 are four standard errors off and more.
    """
    schema, records = smokers
    exact = DiscreteBayesianNetwork(EDGES).fit(records, estimator=dp.NotPrivateMLE(state_names=schema))
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(100.0), noise=dp.SimulatedNoise(5))
    collective, plain, markov = [], [], []
    for _ in range(20):
        noisy = data.measure_coefficients(families(exact), 0.05)
        collective.append(kl_divergence(exact, DiscreteBayesianNetwork(EDGES).fit(noisy, estimator=dp.CollectiveEM())))
        agreeing = DiscreteBayesianNetwork(EDGES).fit(noisy, estimator=dp.papers.PrivateBayesianEstimator())
        plain.append(kl_divergence(exact, agreeing))
        triangle = dp.PrivateMarkovNetwork([*EDGES, ("site", "smoke")])
        markov.append(kl_divergence(exact, triangle.fit(noisy)))
    assert np.mean(collective) < 0.07
    assert np.mean(markov) < 0.06
    assert 1.25 * np.mean(collective) < np.mean(plain)
    loopy = dp.PrivateMarkovNetwork([*EDGES, ("site", "smoke")])
    loopy.fit(noisy, estimator=dp.CollectiveEM(inference="loopy"))
    assert kl_divergence(exact, loopy) < 0.3
    naive = dp.PrivateMarkovNetwork([*EDGES, ("site", "smoke")]).fit(noisy, estimator=dp.papers.NaiveMLE())
    assert kl_divergence(exact, naive) < 1.0
