"""PrivateMarkovNetwork: fit, query, MAP, simulate, likelihood, save and load."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from pgmpy.inference import VariableElimination

import pgmpy_dp as dp
from pgmpy_dp.evaluation import kl_divergence, random_markov_network
from pgmpy_dp.fitting.readings import undirected

EDGES = [("a", "b"), ("b", "c"), ("c", "a")]
STATES = {"a": ["x", "y"], "b": [0, 1, 2], "c": ["p, q", "é"], "alone": [False, True]}


@pytest.fixture(scope="module")
def schema():
    return dp.Schema(STATES)


@pytest.fixture(scope="module")
def records():
    generator = np.random.default_rng(0)
    a = generator.integers(0, 2, 3000)
    b = (a + generator.integers(0, 2, 3000)) % 3
    c = (generator.random(3000) < 0.2 + 0.25 * b).astype(int)
    columns = {"a": a, "b": b, "c": c, "alone": generator.integers(0, 2, 3000)}
    return pd.DataFrame({v: np.array(STATES[v], dtype=object)[columns[v]] for v in STATES}).astype(
        {"b": int, "alone": bool}
    )


@pytest.fixture(scope="module")
def fitted(schema, records):
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(2.0), noise=dp.SimulatedNoise(0))
    network = dp.PrivateMarkovNetwork(EDGES)
    network.add_node("alone")
    return network.fit(data.measure([*EDGES, ("alone",)], epsilon=2.0))


def joint(network):
    """The joint table by brute force, from the factors alone; axes in node order."""
    nodes = list(network.nodes())
    table = np.ones([len(network.schema_.states[v]) for v in nodes])
    for index in itertools.product(*map(range, table.shape)):
        for factor in network.get_factors():
            assignment = {v: network.schema_.states[v][index[nodes.index(v)]] for v in factor.variables}
            table[index] *= factor.get_value(**assignment)
    return nodes, table


@pytest.mark.parametrize("evidence", [{}, {"b": 2}, {"alone": True, "c": "é"}])
def test_factors_have_partition_function_one_and_queries_equal_brute_force(fitted, evidence):
    assert fitted.check_model()
    nodes, table = joint(fitted)
    assert table.sum() == pytest.approx(1.0)
    assert VariableElimination(fitted).query(["b"], show_progress=False).values.sum() == pytest.approx(1.0)
    index = tuple(fitted.schema_.states[v].index(evidence[v]) if v in evidence else slice(None) for v in nodes)
    rest = [v for v in nodes if v not in evidence]
    conditional = table[index] / table[index].sum()
    expected = conditional.sum(axis=tuple(i for i, v in enumerate(rest) if v != "a"))
    answer = fitted.query(["a"], evidence=evidence)
    np.testing.assert_allclose([answer.get_value(a=state) for state in fitted.schema_.states["a"]], expected)
    best = np.unravel_index(conditional.argmax(), conditional.shape)
    assert fitted.map_query(evidence=evidence) == {
        v: fitted.schema_.states[v][i] for v, i in zip(rest, best, strict=True)
    }


def _forbidding(content, variable, states):
    """The content of a file, with some states of a variable made impossible in its first factor that holds it."""
    factor = next(factor for factor in content["factors"] if variable in factor["variables"])
    table = np.array(factor["log_potentials"], dtype=object).reshape([len(STATES[v]) for v in factor["variables"]])
    np.moveaxis(table, factor["variables"].index(variable), 0)[states] = None
    factor["log_potentials"] = table.ravel().tolist()
    return content


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "no json",
        lambda text: "[]",
        lambda text: text.replace("pgmpy_dp Markov network", "other"),
        lambda text: text.replace('"version": 1', '"version": 2'),
        lambda text: json.dumps({**json.loads(text), "factors": []}),
        lambda text: text.replace('"guarantee"', '"promise"'),
        lambda text: json.dumps({**json.loads(text), "edges": []}),
        lambda text: json.dumps({**json.loads(text), "factors": 2 * json.loads(text)["factors"]}),
        lambda text: json.dumps(_forbidding(json.loads(text), "alone", slice(None))),
    ],
)
def test_damaged_files_are_refused(fitted, tmp_path, damage):
    path = tmp_path / "network.json"
    fitted.save(path)
    path.write_text(damage(path.read_text()))
    with pytest.raises(dp.ReleaseFormatError):
        dp.PrivateMarkovNetwork.load(path)
    with pytest.raises(dp.ReleaseFormatError, match="not a file"):
        dp.PrivateMarkovNetwork.load(tmp_path)


def test_fit_accepts_what_it_should_and_refuses_the_rest(records, schema):
    triangle = dp.PrivateMarkovNetwork(EDGES)
    triangle.fit(records, estimator=dp.CollectiveEM(epsilon=5.0, state_names=schema))
    assert triangle.guarantee_.epsilon == 5.0
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(9.0))
    for cliques in ([("a", "b", "c")], [("a", "b"), ("b", "c"), ("c",)]):
        for estimator in (dp.CollectiveEM(), dp.papers.NaiveMLE()):
            network = dp.PrivateMarkovNetwork(EDGES)
            if isinstance(estimator, dp.papers.NaiveMLE) and len(cliques) > 1:
                with pytest.raises(ValueError, match="no table that holds"):
                    network.fit(data.measure(cliques, epsilon=1.0), estimator=estimator)
            else:
                network.fit(data.measure(cliques, epsilon=1.0), estimator=estimator)
                assert joint(network)[1].sum() == pytest.approx(1.0)
    with pytest.raises(ValueError, match="says nothing of 'c'"):
        dp.PrivateMarkovNetwork(EDGES).fit(data.measure([("a", "b")], epsilon=1.0))
    with pytest.raises(ValueError, match="costs privacy"):
        dp.PrivateMarkovNetwork(EDGES).fit(data)
    with pytest.raises(ValueError, match="no nodes"):
        dp.PrivateMarkovNetwork().fit(data, estimator=dp.CollectiveEM(epsilon=1.0))


def test_single_node(records, schema):
    network = dp.PrivateMarkovNetwork()
    network.add_node("b")
    network.fit(records, estimator=dp.CollectiveEM(epsilon=5.0, state_names=schema))
    assert network.query(["b"]).values == pytest.approx(
        records["b"].value_counts(normalize=True).sort_index(), abs=0.05
    )


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_recovers_the_noiseless_fit_as_epsilon_grows(records, schema, mechanism):
    delta = 1e-6 if mechanism == "gaussian" else 0.0
    exact = dp.PrivateMarkovNetwork(EDGES).fit(records, estimator=dp.NotPrivateMLE(state_names=schema))
    assert not exact.guarantee_.private
    for estimator in (
        dp.CollectiveEM(epsilon=1e3, delta=delta, mechanism=mechanism, state_names=schema),
        dp.papers.NaiveMLE(1e3, regularization=1e-7, delta=delta, mechanism=mechanism, state_names=schema),
    ):
        network = dp.PrivateMarkovNetwork(EDGES).fit(records, estimator=estimator)
        assert kl_divergence(exact, network) < 2e-3


@pytest.mark.full
def test_collective_fit_beats_the_naive_one_and_the_uniform_distribution():
    """Mean KL over 60 chains of five 5-state variables: 0.027, 0.029 and 1.5.

    The first two differ by 0.0013 with a standard error of 0.0004: other seeds would turn them round once in 2,000
    times. With four times the noise neither is closer than the other.
    """
    edges = [(f"x{i}", f"x{i + 1}") for i in range(4)]
    divergences = []
    for seed in range(60):
        truth = random_markov_network(edges, 5, seed)
        budget, noise = dp.PrivacyBudget(1.0), dp.SimulatedNoise(1000 + seed)  # not that of the records
        data = dp.PrivateDataset(truth.simulate(5000, seed=seed), truth.schema_, budget, noise=noise)
        noisy = data.measure(edges, epsilon=0.4)
        estimators = (dp.CollectiveEM(), dp.papers.NaiveMLE(), *[dp.papers.NaiveMLE(regularization=1e6)] * (seed < 8))
        fits = [dp.PrivateMarkovNetwork(edges).fit(noisy, estimator=estimator) for estimator in estimators]
        divergences.append([kl_divergence(truth, fit) for fit in fits])
    collective, naive = np.mean([found[:2] for found in divergences], axis=0)
    assert collective < naive < 0.1 * np.mean([found[2] for found in divergences[:8]])


def test_loopy_inference_on_request(records, schema):
    chain = [("a", "b"), ("b", "c")]
    for estimator in (dp.CollectiveEM, dp.papers.NaiveMLE):
        fits = [
            dp.PrivateMarkovNetwork(chain).fit(
                dp.PrivateDataset(records, schema, dp.PrivacyBudget(5.0), noise=dp.SimulatedNoise(1)),
                estimator=estimator(epsilon=5.0, inference=inference),
            )
            for inference in ("junction_tree", "loopy")
        ]
        assert kl_divergence(*fits) < 0.01


def test_a_variable_that_cannot_vary_changes_no_loopy_fit():
    """Its potential never moves, while those of the others still do."""
    tables = {
        ("a", "b"): np.array([[300, 120, 80], [60, 240, 200]]),
        ("b", "c"): np.array([[99, 266], [208, 164], [151, 112]]),
    }
    guarantee = dp.Guarantee.of(1.0, 0.0, None, "replace_one", "laplace", True)
    fits = []
    for held in (tables, tables | {("d",): np.array([1000])}):
        schema = dp.Schema({"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]} | ({"d": ["one"]} if ("d",) in held else {}))
        noisy = dp.NoisyMarginals(schema, held, dict.fromkeys(held, 40.0), guarantee, public_total=1000)
        network = dp.PrivateMarkovNetwork([("a", "b"), ("b", "c")])
        network.add_nodes_from(schema.variables)
        network.fit(noisy, estimator=dp.CollectiveEM(inference="loopy"))
        fits.append(network.query(["a", "b"]).values)
    np.testing.assert_allclose(fits[1], fits[0], atol=1e-12)


@pytest.mark.parametrize("inference", ["junction_tree", "loopy"])
def test_measured_cliques_that_are_no_cliques_of_the_graph(records, schema, inference):
    """They inform the fit and carry no factor: pgmpy refuses a factor whose variables are not all neighbours."""
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(9.0))
    network = dp.PrivateMarkovNetwork([("a", "b"), ("b", "c")])
    network.fit(data.measure([("c", "a", "b")], epsilon=1.0), estimator=dp.CollectiveEM(inference=inference))
    assert network.check_model()
    assert {frozenset(factor.variables) for factor in network.get_factors()} == {frozenset("ab"), frozenset("bc")}
    assert network.query(["a"]).values.sum() == pytest.approx(1.0)


CHAIN = [("a", "b"), ("b", "c")]


@pytest.mark.parametrize("epsilon", [1.0, 10.0, 100.0])
@pytest.mark.parametrize("cliques", [[("a", "b", "c")], [("c", "b", "a"), ("b", "c")], CHAIN])
def test_tables_larger_than_the_networks_own_give_the_records_fit(records, schema, cliques, epsilon):
    """Records deviate from the network as a sample does; the fit is their own network's, and bounds hold both.

    Allowed are five standard errors of the mean of 200 draws, 0.0008 each, less than half a standard deviation of
    sampling; and noise. In 60 runs at epsilon 1 the largest error of 14 was 0.0024, with a deviation of 0.0009. With
    little noise the last round of `CollectiveEM` needs more iterations than the default, which end 0.005 away.
    """
    exact = dp.PrivateMarkovNetwork(CHAIN)
    exact.fit(records, estimator=dp.NotPrivateMLE(state_names=schema.select(["a", "b", "c"])))
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(epsilon), noise=dp.SimulatedNoise(0))
    release = data.measure(cliques, epsilon=epsilon)
    for estimator in (dp.CollectiveEM(max_iter=3000), dp.PosteriorMean()):
        network = dp.PrivateMarkovNetwork(CHAIN).fit(release, estimator=estimator)
        for variables in (["a"], ["b"], ["c"], ["a", "b"], ["b", "c"]):
            truth = exact.query(variables)
            value = network.query(variables)
            value = value.values.transpose([value.variables.index(v) for v in truth.variables])
            assert value == pytest.approx(truth.values, abs=4e-3 + 4e-3 / epsilon)
    narrow, wide = (network.query(["b"], interval=0.99, target=t) for t in ("records", "population"))
    truth = records["b"].value_counts(normalize=True).sort_index().to_numpy()
    sampling = np.sqrt(truth * (1 - truth) / len(records))
    assert (np.abs(narrow[["lower", "upper"]].to_numpy() - truth[:, None]) < 1e-3 + 0.01 / epsilon).all()
    assert (wide["lower"] < truth).all()
    assert (wide["upper"] > truth).all()
    assert (wide["upper"] - wide["lower"]).to_numpy() == pytest.approx(2 * 2.576 * sampling, rel=0.4)


def test_cells_of_a_larger_table_count_by_how_far_a_sample_deviates():
    """Without noise the fit to one table of all variables is the records' own: its pairs are theirs.

    The errors are 0.0012 and 0.0015; with the same weight for each cell they would be 0.0029, as sampling's are 0.01.
    """
    draw = np.random.default_rng(1)
    a, b, c = draw.dirichlet(np.full(3, 0.7)), *draw.dirichlet(np.full(3, 0.7), (2, 3))
    counts = draw.multinomial(3000, (a[:, None, None] * b[:, :, None] * c[None]).ravel())
    cells = np.array(list(itertools.product("xyz", repeat=3))).repeat(counts, axis=0)
    frame, schema = pd.DataFrame(cells, columns=list("abc")), dp.Schema({v: list("xyz") for v in "abc"})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1000.0), noise=dp.SimulatedNoise(0))
    network = dp.PrivateMarkovNetwork(CHAIN).fit(
        data.measure([tuple("abc")], epsilon=1000.0), estimator=dp.CollectiveEM()
    )
    truth = counts.reshape(3, 3, 3) / 3000
    for pair, axis in ((["a", "b"], 2), (["b", "c"], 0)):
        assert np.abs(network.query(pair).values - truth.sum(axis=axis)).sum() / 2 < 0.002


def test_the_prior_is_learned_between_rounds_and_the_last_keeps_it(monkeypatch, records, schema):
    """The scale that a fit tells is that of the prior under which its potentials were found."""
    minimised, learned, minimise, learn = [], [], undirected.minimise, undirected._Prior.learn

    def watched(bound, *arguments, **options):
        if hasattr(bound, "precision"):  # another likelihood is maximised for a start
            minimised.append(bound.precision.copy())
        return minimise(bound, *arguments, **options)

    def noted(prior, *arguments):
        learned.append(learn(prior, *arguments))
        return learned[-1]

    monkeypatch.setattr(undirected, "minimise", watched)
    monkeypatch.setattr(undirected._Prior, "learn", noted)
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    dp.PrivateMarkovNetwork(CHAIN).fit(data.measure(CHAIN, epsilon=1.0), estimator=dp.CollectiveEM())
    assert len(learned) == len(minimised) - 1 > 0
    for before, after in zip(learned, minimised[1:], strict=True):
        np.testing.assert_array_equal(before, after)


@pytest.mark.parametrize("estimator", [dp.CollectiveEM(), dp.PosteriorMean(), dp.papers.NaiveMLE()])
@pytest.mark.parametrize("kind", ["markov", "bayesian"])
def test_a_network_of_some_of_the_released_variables(records, schema, estimator, kind):
    """The others are summed out: release once, fit often."""
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(60.0), noise=dp.SimulatedNoise(0))
    releases = [
        data.measure([("c", "alone", "a"), ("b", "alone")], epsilon=20.0),
        data.measure([("a", "b", "c")], epsilon=20.0),
        data.measure_coefficients([("a", "b", "c"), ("alone",)], epsilon=20.0),
    ]
    for release, pair in zip(releases, [("a", "c"), ("b", "c"), ("c", "b")], strict=True):
        if isinstance(estimator, dp.papers.NaiveMLE) and kind == "bayesian":
            pytest.skip("NaiveMLE fits Markov networks")
        made = dp.PrivateMarkovNetwork([pair]) if kind == "markov" else dp.PrivateBayesianNetwork([pair])
        network = made.fit(release, estimator=estimator)
        truth = pd.crosstab(records[pair[0]], records[pair[1]], normalize=True)
        value = network.query(list(pair))
        value = value.values if list(value.variables) == list(pair) else value.values.T
        order = np.ix_(
            *([STATES[v].index(s) for s in axis] for v, axis in zip(pair, (truth.index, truth.columns), strict=True))
        )
        assert value[order] == pytest.approx(truth.to_numpy(), abs=3e-3)
