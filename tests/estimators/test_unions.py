"""Fits of a union: a model with its variable tells the holders apart, one without it describes all records together."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.observed.contradictions import unlike
from pgmpy_dp.release import Guarantee, NoisyMarginals

pytestmark = pytest.mark.full

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y", "z"], "c": ["u", "v"]})
EDGES = [("a", "b"), ("b", "c")]
SIZES = {"north": 4000, "south": 1500}


def records(seed, share, count):
    generator = np.random.default_rng(seed)
    a = generator.random(count) < share
    b = (2 * generator.random(count)).astype(int) + a
    c = generator.random(count) < 0.3 + 0.4 * (b == 2)
    return pd.DataFrame(
        {v: np.array(SCHEMA.states[v])[codes.astype(int)] for v, codes in zip("abc", (a, b, c), strict=True)}
    )


def united(shares, seed=0, cliques=EDGES, epsilon=1.0, delta=0.0, **options):
    parts = {}
    for number, (site, count) in enumerate(SIZES.items()):
        noise = dp.SimulatedNoise(10_000 + seed + number)  # not of the records' seed, which they would follow
        budget = dp.PrivacyBudget(epsilon, delta)
        data = dp.PrivateDataset(records(seed + number, shares[number], count), SCHEMA, budget, noise=noise, **options)
        parts[site] = data.measure(cliques, epsilon, delta=delta if number else 0.0)  # kinds of noise may differ
    return dp.union(parts)


UNLIKE = united((0.2, 0.6), delta=1e-6)
ESTIMATORS = [dp.AutoMLE, dp.PrivateMLE, dp.CollectiveEM, dp.PosteriorMean]


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_networks_tell_holders_apart_or_describe_them_together(estimator):
    apart = UNLIKE.apart(dp.PrivateBayesianNetwork(EDGES))
    assert set(apart.edges()) == {*EDGES, *(("site", v) for v in "abc")}
    apart.fit(UNLIKE, estimator=estimator())
    for site, share in (("north", 0.2), ("south", 0.6)):
        assert apart.query(["a"], {"site": site}).get_value(a="y") == pytest.approx(share, abs=0.04)
    pooled = dp.PrivateBayesianNetwork(EDGES).fit(UNLIKE, estimator=estimator())
    assert pooled.query(["a"]).get_value(a="y") == pytest.approx((0.2 * 4000 + 0.6 * 1500) / 5500, abs=0.03)
    assert pooled.guarantee_ == apart.guarantee_ == UNLIKE.guarantee
    assert not pooled.check_fit().fails
    assert not apart.check_fit().fails
    assert pooled.check_fit().left_out == apart.check_fit().left_out == 0


def test_mixtures_and_markov_networks_do_too(tmp_path):
    pairs = united((0.2, 0.6), cliques=dp.plan_pairs(SCHEMA)[0])
    for pooled, variables in ((False, ("site", "a", "b", "c")), (True, ("a", "b", "c"))):
        network = dp.PairwiseMixture(members=2, components=4, pooled=pooled).fit(pairs).network_
        assert network.schema_.variables == variables
        network.save(tmp_path / "mixture.zip")
        assert dp.load(tmp_path / "mixture.zip").release_ == pairs
    with pytest.raises(ValueError, match="pooled is about unions"):
        dp.PairwiseMixture(pooled=True).fit(UNLIKE.parts["north"])
    markov = dp.PrivateMarkovNetwork(EDGES)
    assert set(map(frozenset, UNLIKE.apart(markov).edges())) == {
        frozenset(e) for e in [*EDGES, *(("site", v) for v in "abc")]
    }
    markov.fit(UNLIKE, estimator=dp.CollectiveEM())
    assert markov.marginal(["a"])[1] == pytest.approx(0.31, abs=0.03)


def test_a_network_and_its_union_are_kept_in_one_file_which_promises_no_less(tmp_path):
    network = UNLIKE.apart(dp.PrivateBayesianNetwork(EDGES)).fit(UNLIKE, estimator=dp.CollectiveEM())
    network.save(tmp_path / "network.zip")
    loaded = dp.load(tmp_path / "network.zip")
    assert loaded.release_ == UNLIKE
    bounds = loaded.query(["c"], {"site": "south", "a": "x"}, interval=0.9)
    assert (bounds["lower"] < bounds["value"]).all()


def test_tables_of_some_holders_inform_collective_fits_and_others_say_so():
    some = {
        "north": united((0.3, 0.3)).parts["north"],
        "south": united((0.3, 0.3), cliques=[("a", "b")]).parts["south"],
    }
    network = dp.PrivateBayesianNetwork(EDGES).fit(dp.union(some), estimator=dp.CollectiveEM())
    assert network.query(["c"], {"b": "z"}).get_value(c="v") == pytest.approx(0.7, abs=0.05)
    apart = dp.union(some).apart(dp.PrivateBayesianNetwork(EDGES))
    apart.fit(dp.union(some), estimator=dp.CollectiveEM())
    assert apart.query(["c"], {"b": "z", "site": "north"}).get_value(c="v") == pytest.approx(0.7, abs=0.05)
    with pytest.raises(ValueError, match="CollectiveEM"):
        dp.PrivateBayesianNetwork(EDGES).fit(dp.union(some), estimator=dp.PrivateMLE())
    for reading in (dp.PairwiseMixture().fit, dp.NoisyScore):
        with pytest.raises(ValueError, match=r"some lack 'c'.*pooled=True"):
            reading(dp.union(some))


def test_each_family_is_read_with_the_noise_of_its_own_holder():
    """A holder with much noise is read as alone: its neighbour's noise does not change its rows."""
    noisy, clear = UNLIKE.parts["north"], united((0.2, 0.6), epsilon=50.0).parts["south"]
    apart = dp.union({"north": noisy, "south": clear}).apart(dp.PrivateBayesianNetwork(EDGES))
    apart.fit(dp.union({"north": noisy, "south": clear}), estimator=dp.PrivateMLE(consistency=None))
    alone = dp.PrivateBayesianNetwork(EDGES).fit(noisy, estimator=dp.PrivateMLE(consistency=None))
    for cpd in alone.get_cpds():
        own = apart.get_cpds(cpd.variable)
        axis = own.variables.index("site")
        assert own.values.take(0, axis) == pytest.approx(cpd.values, abs=2e-3)


def test_the_release_tells_in_what_holders_differ():
    """Of unions of like records at most about one in a hundred is called unlike; 3 of 60 has probability 0.003."""
    pooled = dp.PrivateBayesianNetwork(EDGES).fit(UNLIKE, estimator=dp.PrivateMLE())
    assert set(pooled.check_fit().unlike) == {("a",), ("b",), ("c",)}
    assert "not alike: a, b, c" in repr(pooled.check_fit())
    assert not UNLIKE.apart(dp.PrivateBayesianNetwork(EDGES)).fit(UNLIKE).check_fit().unlike
    two = [united((0.3, 0.3), cliques=[("a",)]), united((0.2, 0.6), seed=20)]  # each is asked, not the first alone
    assert ("a",) in dp.PrivateBayesianNetwork(EDGES).fit(two, estimator=dp.CollectiveEM()).check_fit().unlike
    assert sum(unlike(united((0.3, 0.3), seed)) != () for seed in range(0, 120, 2)) < 3
    generator, one, two = np.random.default_rng(0), records(0, 0.5, 2000), records(1, 0.5, 2000)
    two["a"] = generator.permutation(two["a"].to_numpy())  # the same margins, no dependence
    data = [
        dp.PrivateDataset(f, SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(n))
        for n, f in enumerate((one, two))
    ]
    both = dp.union({site: each.measure([("a", "b")], 1.0) for site, each in zip("ns", data, strict=True)})
    assert unlike(both) == (("a", "b"),)


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        ((202401, 202402, 202412), True),
        (("2023-12", "2024-01", "2024-02"), True),
        (("2024-01-31", "2024-02-01", "2024-02-02"), True),
        (("2024-Q1", "2024-Q2", "2024-Q3"), True),
        (("2024-01", "2024-2", "2024-03"), False),
        (("2024-02", "2024-01", "2024-03"), False),
        (("2024-01", "2024-02", "2024-Q3"), False),
        (("2024-11", "2024-12", "2024-13"), False),
        (("101", "102", "103"), False),
        (("2024-01", "2024-02"), False),
    ],
)
def test_periods_called_by_ascending_numbers_or_dates_are_ordered(names, ordered):
    """Mixtures smooth between them, and partially pooled months borrow from their neighbours."""
    parts = [*UNLIKE.parts.values(), united((0.4, 0.4), 7).parts["north"]]
    union = dp.union(dict(zip(names, parts, strict=False)), "month")
    assert union.schema.ordered == ["month"] * ordered


@pytest.mark.parametrize("estimator", [dp.AutoMLE, dp.CollectiveEM, dp.PosteriorMean])
def test_partially_pooled_unions_are_fitted_with_bounds(estimator):
    partial = dp.PartiallyPooledMarginals.of(UNLIKE)
    network = UNLIKE.apart(dp.PrivateBayesianNetwork(EDGES)).fit(partial, estimator=estimator())
    assert network.guarantee_ == UNLIKE.guarantee
    bounds = network.query(["a"], {"site": "south"}, interval=0.95)
    assert bounds.loc["y", "lower"] < 0.6 < bounds.loc["y", "upper"]
    assert not network.check_fit().fails


def test_bounds_of_a_small_holder_narrow_by_what_it_borrows():
    """For the population; its own records' answers are those of the holder alone."""
    few = dp.PrivateDataset(records(8, 0.3, 200), SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(8))
    both = dp.union({**united((0.3, 0.3)).parts, "few": few.measure(EDGES, 1.0)})
    structure, asked = both.apart(dp.PrivateBayesianNetwork(EDGES)), {"b": "z", "site": "few"}
    own, borrowed = (
        structure.copy().fit(read, estimator=dp.PosteriorMean(draws=50))
        for read in (both, dp.PartiallyPooledMarginals.of(both))
    )
    assert np.array_equal(own.draws_.records, borrowed.draws_.records)
    (alone, outputs) = (each.query(["c"], asked, interval=0.9).loc["v"] for each in (own, borrowed))
    assert outputs["lower"] < 0.7 < outputs["upper"]
    assert outputs["upper"] - outputs["lower"] < 0.6 * (alone["upper"] - alone["lower"])
    assert borrowed.get_cpds("c").get_value(c="v", b="z", site="few") == pytest.approx(outputs["value"], abs=0.02)
    assert borrowed.marginal(["site"])[2] == pytest.approx(200 / 5700, abs=0.01)


def test_a_partially_pooled_fit_is_tested_against_what_was_measured():
    """What parts borrow has errors in common: taken for measurements, it contradicted most right networks."""
    both = united((0.2, 0.6), seed=4, cliques=[*EDGES, ("a", "c"), ("a",), ("c",)], epsilon=0.5)
    partial = dp.PartiallyPooledMarginals.of(both)
    own, borrowed = (both.apart(dp.PrivateBayesianNetwork(EDGES)).fit(read).check_fit() for read in (both, partial))
    assert borrowed.p_value == pytest.approx(own.p_value, abs=0.05)
    assert list(borrowed.tables.index) == list(own.tables.index)


def test_answers_of_a_wrong_network_follow_the_release_where_parts_borrow():
    """It is compared with the networks that answer: compared with those that do not borrow, they were .03 too low."""
    outputs = []
    for seed in range(4):
        generator, parts = np.random.default_rng(100 + seed), {}
        for number, (site, count) in enumerate({"north": 4000, "south": 4000, "few": 300}.items()):
            frame = records(10 * seed + number, 0.3, count)
            chance = 0.2 + 0.3 * (frame["b"] == "z") + 0.4 * (frame["a"] == "y")
            frame["c"] = np.where(generator.random(count) < chance, "v", "u")  # depends on a too, without an edge
            data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(10 * seed + number))
            parts[site] = data.measure([*EDGES, ("a", "c")], 1.0)
        partial = dp.PartiallyPooledMarginals.of(dp.union(parts))
        network = partial.apart(dp.PrivateBayesianNetwork(EDGES)).fit(partial)
        for site in ("north", "south"):
            outputs.append(network.query(["c"], {"a": "y", "site": site}, interval=0.9).loc["v", "value"])
    assert np.mean(outputs) == pytest.approx(0.75, abs=0.018)  # three standard deviations, each answer with one of .017


def test_numbers_of_partially_pooled_unions_have_the_shape_of_all_records():
    schema = dp.Schema({"age": dp.Bins([0, 40, 65, 90]), "c": ["u", "v"]})
    frame = pd.DataFrame({"age": np.arange(1000) % 90, "c": np.array(["u", "v"])[np.arange(1000) // 40 % 2]})
    network = dp.PrivateBayesianNetwork([("age", "c")])
    cliques, weights = dp.plan_measurements(network, schema)
    parts = {}
    for number, (site, rows) in enumerate((("north", frame[:600]), ("south", frame[600:]))):
        data = dp.PrivateDataset(rows, schema, dp.PrivacyBudget(5.0), noise=dp.SimulatedNoise(number))
        parts[site] = data.measure(cliques, 5.0, weights=weights)
    both = dp.union(parts)
    (detail,) = both.details
    scale, deviation = both.noise(detail)
    assert deviation**2 == pytest.approx(sum(part.variances[detail] for part in parts.values()))
    assert 2 * scale**2 == pytest.approx(deviation**2)  # Laplace noise
    assert dp.PartiallyPooledMarginals.of(both).noise(detail) == (deviation, deviation)  # taken for Gaussian
    own, borrowed = (
        both.apart(network).fit(read).expectation(["age"], {"site": "north"})
        for read in (both, dp.PartiallyPooledMarginals.of(both))
    )
    assert borrowed.loc["age", "value"] == pytest.approx(own.loc["age", "value"], abs=2)


def test_a_network_whose_variables_all_depend_on_the_holder_is_one_of_each_holder():
    together = UNLIKE.apart(dp.PrivateBayesianNetwork(EDGES)).fit(UNLIKE, estimator=dp.CollectiveEM())
    for number, part in enumerate(UNLIKE.parts.values()):
        alone = dp.PrivateBayesianNetwork(EDGES).fit(part, estimator=dp.CollectiveEM())
        for cpd in alone.get_cpds():
            own = together.get_cpds(cpd.variable)
            assert own.values.take(number, own.variables.index("site")) == pytest.approx(cpd.values)


# Structure search


def best_graph(score, roots=()):
    """The graph of the highest score among all in which nothing leads to the roots."""
    names, found = list(score.data), {}
    for edges in itertools.product(*[(None, (a, b), (b, a)) for a, b in itertools.combinations(names, 2)]):
        graph = nx.DiGraph(filter(None, edges))
        graph.add_nodes_from(names)
        if nx.is_directed_acyclic_graph(graph) and not any(graph.in_degree(root) for root in roots):
            found[graph] = sum(score.local_score(node, tuple(graph.predecessors(node))) for node in names)
    return max(found, key=found.get)


def test_searches_score_a_union_as_one_release_of_the_same_tables():
    """Pooled, of the sums with their noise; apart, the holder is a node."""
    cliques, scale = dp.plan_pairs(SCHEMA)[0], 4.0

    def release(schema, tables, scale):
        promise = Guarantee.of(20.0, 1e-6, 1.0, "add_remove", "gaussian", True)
        return NoisyMarginals(schema, tables, dict.fromkeys(tables, scale), promise)

    parts = {}
    for number, (site, share) in enumerate((("north", 0.2), ("south", 0.6))):
        exact = dp.exact_marginals(records(number, share, SIZES[site]), SCHEMA, cliques).tables
        noise = np.random.default_rng(number)
        noisy = {c: table + np.rint(noise.normal(0.0, scale, table.shape)).astype(int) for c, table in exact.items()}
        parts[site] = release(SCHEMA, noisy, scale)
    north, south = parts.values()
    sums = release(SCHEMA, {c: north.tables[c] + south.tables[c] for c in cliques}, scale * 2**0.5)
    one, both = dp.NoisyScore(sums), dp.union(parts)
    pooled, apart = dp.NoisyScore(both, pooled=True), dp.NoisyScore(both)
    families = [("b", ()), ("b", ("a",)), ("c", ("a", "b"))]
    assert [pooled.local_score(*f) for f in families] == pytest.approx([one.local_score(*f) for f in families])
    assert set(nx.moral_graph(best_graph(pooled)).edges()) == set(EDGES)
    assert set(best_graph(apart, ["site"]).out_edges("site")) == {("site", "a")}  # in which alone the holders differ


def test_a_fit_of_a_union_is_scored_as_it_is():
    apart = UNLIKE.apart(dp.PrivateBayesianNetwork(EDGES)).fit(UNLIKE)
    pooled = dp.PrivateBayesianNetwork(EDGES).fit(UNLIKE)
    assert set(dp.NoisyScore(apart).data) == {"site", "a", "b", "c"}
    assert set(dp.NoisyScore(pooled).data) == {"a", "b", "c"}
    assert dp.NoisyScore(pooled).local_score("c", ("b",)) > dp.NoisyScore(pooled).local_score("c", ("a",))
    for source, refused in ((pooled, "network is fitted"), (UNLIKE.parts["north"], "about unions")):
        with pytest.raises(ValueError, match=refused):
            dp.NoisyScore(source, pooled=True)
