"""CGM-EM and NLBP against independent dense code on joint tables."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, rel_entr, softmax
from sklearn.exceptions import ConvergenceWarning

import pgmpy_dp as dp
from pgmpy_dp import papers
from pgmpy_dp.inference import NLBP, FactorGraph, GaussianNoise, JunctionTree, LaplaceNoise

TOTAL, SCALE, ITERATIONS = 2000.0, 15.0, 3
GRAPHS = {
    "chain": [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")],
    "tree": [("a", "b"), ("a", "c"), ("c", "d"), ("c", "e"), ("c", "f")],
    "grid": [("a", "b"), ("b", "c"), ("d", "e"), ("e", "f"), ("a", "d"), ("b", "e"), ("c", "f")],  # two times three
    "families": [("a",), ("b", "a"), ("c",), ("d", "b", "c"), ("e", "d")],
}
NOISES = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}


class Dense:
    """Two-state variables on their joint table, with a table for each group of scopes.

    Row i of `sums` adds up the indicators of cell i in the scopes of its group; `means` has their mean. Where each
    scope has its own table both are `cells`, the indicators themselves.
    """

    def __init__(self, scopes, groups=None):
        self.scopes, names = scopes, sorted(set(itertools.chain(*scopes)))
        joint = np.indices((2,) * len(names)).reshape(len(names), -1)

        def indicators(scope):
            codes = np.ravel_multi_index(joint[[names.index(v) for v in scope]], (2,) * len(scope))
            return np.eye(2 ** len(scope))[codes].T

        groups = groups or [[scope] for scope in scopes]
        self.sums = np.concatenate([sum(map(indicators, group)) for group in groups])
        self.means = np.concatenate([np.mean([*map(indicators, group)], axis=0) for group in groups])
        self.cells, self.cards = self.means, dict.fromkeys(names, 2)

    def distribution(self, theta):
        return softmax(theta @ self.sums)

    def e_step(self, theta, kind, observed, scale=SCALE, total=TOTAL):
        """Maximise problem 6 over joint tables by its dual, and check that primal and dual have one value.

        With S the sums and M the means, it is total (S' theta . q + entropy of q) less the noise's loss of total M q.
        """
        base = theta @ self.sums

        def dual(multipliers):
            logs = base + multipliers @ self.means
            square = (scale * multipliers) ** 2 if kind == "gaussian" else 0 * multipliers
            value = total * logsumexp(logs) - multipliers @ observed + square.sum() / 2
            pull = scale**2 * multipliers if kind == "gaussian" else 0.0
            return value, total * self.means @ softmax(logs) - observed + pull

        largest = 1 / np.broadcast_to(scale, observed.shape)
        bounds = list(zip(-largest, largest, strict=True)) if kind == "laplace" else None
        options = {"ftol": 1e-16, "gtol": 1e-9, "maxiter": 20_000, "maxfun": 100_000}
        found = minimize(dual, 0 * observed, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        joint = softmax(base + found.x @ self.means)
        residual = (observed - total * self.means @ joint) / scale
        loss = np.abs(residual).sum() if kind == "laplace" else (residual**2).sum() / 2
        value = total * (base @ joint - joint @ np.log(joint)) - loss
        assert value == pytest.approx(found.fun, abs=1e-4)
        return joint, value - total * logsumexp(base)

    def m_step(self, theta, joint):
        """Fit log-potentials to the marginals of a joint table."""

        def loss(theta):
            logs = theta @ self.sums
            return logsumexp(logs) - theta @ self.sums @ joint, self.sums @ (softmax(logs) - joint)

        return minimize(loss, theta, jac=True, method="BFGS", options={"gtol": 1e-9}).x

    def conditionals(self, joint):
        """Take CPDs from a joint table: the first variable of a scope given the others."""
        found, tables = [], np.split(self.cells @ joint, np.cumsum([2 ** len(s) for s in self.scopes])[:-1])
        for table in tables:
            table = table.reshape(2, -1)
            found.append(np.log(table / table.sum(axis=0)).ravel())
        return np.concatenate(found)


class Problem:
    """Noisy counts of a dense model, the same model's tree, and where a fit of it begins."""

    def __init__(self, model, kind, observed, directed):
        self.model, self.kind, self.observed, self.directed = model, kind, observed, directed
        self.noise = NOISES[kind].of_scale(observed, np.full(observed.size, SCALE))
        self.tree = JunctionTree.build(model.cards, model.scopes)
        cells = model.cells.shape[1]
        self.start = model.conditionals(np.full(cells, 1.0 / cells)) * directed
        self.m_step = self.conditionals if directed else None

    def conditionals(self, counts):
        """Take CPDs from counts: the M-step of directed models."""
        tables = self.tree.layout.split(counts)
        return self.tree.layout.flatten(np.log(table / table.sum(axis=0)) for table in tables)


@pytest.fixture(scope="module", params=itertools.product(GRAPHS, NOISES), ids="-".join)
def problem(request):
    name, kind = request.param
    model, generator = Dense(GRAPHS[name]), np.random.default_rng(5)
    true = TOTAL * model.cells @ model.distribution(generator.normal(size=len(model.cells)))
    draw = generator.laplace if kind == "laplace" else generator.normal
    return Problem(model, kind, true + draw(scale=SCALE, size=true.size), name == "families")


def test_cgm_em_is_that_of_a_dense_implementation(problem):
    model, tree, theta, likelihoods = problem.model, problem.tree, problem.start, []
    path = papers.cgm_em(tree, theta, problem.noise, TOTAL, ITERATIONS, m_step=problem.m_step)
    for own in path.potentials:
        np.testing.assert_allclose(tree.calibrate(own).marginals, model.cells @ model.distribution(theta), atol=1e-6)
        joint, likelihood = model.e_step(theta, problem.kind, problem.observed)
        likelihoods.append(likelihood)
        theta = model.conditionals(joint) if problem.directed else model.m_step(theta, joint)
    np.testing.assert_allclose(path.likelihoods, likelihoods, atol=1e-3)
    assert (np.diff(path.likelihoods) > 0).all()


def test_nlbp_has_the_dual_s_fixed_point_whatever_it_averages(problem):
    """With Laplace noise counts meet their observations, where the printed gradient alternates."""
    model, gaussian = problem.model, problem.kind == "gaussian"
    expected = TOTAL * model.cells @ model.e_step(problem.start, problem.kind, problem.observed)[0]
    steps = {"step": lambda k: 0.05} if gaussian else {}
    for averages in ("counts", "multipliers"):
        belief = NLBP(problem.tree, averages, max_iter=3000, tolerance=1e-12, **steps)
        found = belief.run(problem.start, problem.noise, TOTAL)
        np.testing.assert_allclose(found.counts, expected, atol=1e-3 if gaussian else 1.0)


def test_what_an_e_step_leaves_bounds_the_error_of_all_probabilities(problem):
    best = problem.model.e_step(problem.start, problem.kind, problem.observed)[0]
    for iterations in (1, 4, 16):
        found = NLBP(problem.tree, max_iter=iterations, tolerance=0.0).run(problem.start, problem.noise, TOTAL)
        assert TOTAL * rel_entr(problem.model.distribution(found.potentials), best).sum() <= found.gap


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_nlbp_warns_only_of_what_could_change_an_answer(problem):
    """NLBP's gap decreases with the inverse of the iterations: by default it is small beside sampling, not zero."""
    engine, noise, start = problem.tree, problem.noise, np.zeros(problem.observed.size)
    by_dual = papers.cgm_em(engine, start, noise, TOTAL, 4).potentials[-1]
    by_nlbp = papers.cgm_em(engine, start, noise, TOTAL, 4, "nlbp").potentials[-1]
    assert np.abs(engine.calibrate(by_dual).marginals - engine.calibrate(by_nlbp).marginals).max() < SCALE / TOTAL / 5
    if problem.kind == "laplace":
        with pytest.raises(ConvergenceWarning, match=r"of 5 E-steps .* are off by at most 0.0\d+, "):
            papers.cgm_em(engine, start, noise, TOTAL, 4, "nlbp", 3)


def test_loopy_cgm_em_by_the_dual_and_by_nlbp_end_at_one_point(problem):
    graph = FactorGraph.build(problem.model.cards, problem.model.scopes, tolerance=1e-10)
    dual = papers.cgm_em(graph, problem.start, problem.noise, TOTAL, 2, m_step=problem.m_step)
    nlbp = papers.cgm_em(graph, problem.start, problem.noise, TOTAL, 2, "nlbp", 200, problem.m_step)
    apart = graph.calibrate(dual.potentials[-1]).marginals - graph.calibrate(nlbp.potentials[-1]).marginals
    assert np.abs(apart).max() < 1e-3


def test_the_loss_falls_and_each_iteration_is_kept(problem):
    """Run on, CGM-EM approaches the noisy tables."""
    path = papers.cgm_em(problem.tree, problem.start, problem.noise, TOTAL, 12, m_step=problem.m_step)
    losses = [problem.noise.loss(TOTAL * problem.tree.calibrate(logs).marginals) for logs in path.potentials]
    assert len(path.potentials) == len(path.likelihoods) == 13
    assert (np.diff(losses) < 1e-3 * losses[0]).all()
    assert losses[-1] < 0.6 * losses[0]


EDGES = [("a", "b"), ("a", "c"), ("b", "c")]
MODELS = {
    "markov": (dp.PrivateMarkovNetwork, EDGES),
    "bayesian": (dp.PrivateBayesianNetwork, [("a",), ("a", "b"), ("c", "b", "a")]),  # a family in another order
}


def measured(cliques, mechanism):
    records = pd.DataFrame(np.random.default_rng(1).integers(0, 3, (2000, 3)), columns=list("abc"))
    records["b"] = (records["a"] + (records["b"] == 0)) % 3
    schema, delta = dp.Schema({v: [0, 1, 2] for v in "abc"}), 1e-6 if mechanism == "gaussian" else 0.0
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0, delta), noise=dp.SimulatedNoise(0))
    return data.measure(cliques, 1.0, delta=delta, mechanism=mechanism)


@pytest.mark.parametrize("mechanism", NOISES)
@pytest.mark.parametrize("kind", MODELS)
def test_the_estimator_fits_both_kinds_of_network_by_either_e_step_and_engine(kind, mechanism):
    model, cliques = MODELS[kind]
    release = measured(cliques, mechanism)

    def fitted(**options):
        estimator = papers.CGMEM(iterations=4, max_inner=600, **options)
        return estimator, model(EDGES).fit(release, estimator=estimator).query(["a", "b"]).values

    first, own = fitted()
    assert len(first.path_) == len(first.history_) == 5
    assert (np.diff(first.history_) > 0).all()
    for options, apart in (
        ({"e_step": "nlbp"}, 2e-3),
        ({"inference": "loopy"}, 2e-2),
        ({"total": release.total}, 1e-9),
    ):
        assert np.abs(fitted(**options)[1] - own).max() < apart, options
    assert np.abs(fitted(total=1500.0)[1] - own).max() > 1e-4
    missing = [("a", "b", "c")] if kind == "bayesian" else [("a", "b"), ("c",)]
    with pytest.raises(ValueError, match="CollectiveEM, which"):
        model(EDGES).fit(measured(missing, mechanism), estimator=first)


CHAIN = ["x1", "x2", "x3", "x4"]
STEPS = [("x1", "x2"), ("x2", "x3"), ("x3", "x4")]
# Ties, and the groups of cliques that share a table. Their names are measured, or in the second the edges.
TIES = {
    "named": ({("now", "next"): STEPS, ("first",): [("x1",)]}, [STEPS, [("x1",)]]),
    "edges": ([STEPS], [STEPS]),
    "unequal": (
        {("now", "next"): [STEPS[0], STEPS[2]], ("of", "to"): [STEPS[1]], ("any",): [(v,) for v in CHAIN[:3]]},
        [[STEPS[0], STEPS[2]], [STEPS[1]], [(v,) for v in CHAIN[:3]]],
    ),
}


def test_families_without_an_exact_junction_tree_are_refused_unpaid(monkeypatch):
    monkeypatch.setattr("pgmpy_dp.fitting.readings.directed.MAX_TABLE_CELLS", 4)
    schema = dp.Schema({variable: [0, 1] for variable in "abcde"})
    data = dp.PrivateDataset(np.zeros((9, 5), dtype=int), schema, dp.PrivacyBudget(1.0))
    network = dp.PrivateBayesianNetwork([("b", "d"), ("c", "d")])
    with pytest.raises(ValueError, match="junction tree"):
        network.fit(data, estimator=papers.CGMEM(1.0, inference="junction_tree"))
    assert data.budget.history == ()


@pytest.mark.parametrize("e_step", ["dual", "nlbp"])
@pytest.mark.parametrize("name", TIES)
def test_tied_parameters_are_those_of_a_dense_implementation(name, e_step):
    ties, groups = TIES[name]
    generator = np.random.default_rng(3)
    columns = CHAIN if name == "edges" else [v for clique in ties for v in clique]
    records = pd.DataFrame(generator.random((300, len(columns))) < np.linspace(0.2, 0.7, len(columns)), columns=columns)
    records[columns[1]] |= records[columns[0]]
    schema = dp.Schema({v: [False, True] for v in columns})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(1))
    noisy = data.measure(STEPS if name == "edges" else list(ties), 1.0)
    estimator = papers.CGMEM(iterations=6, regularization=0.05, e_step=e_step, max_inner=1000)
    network = dp.PrivateMarkovNetwork(STEPS, tied=ties)
    fitted = network.fit(noisy, estimator)
    cliques = [STEPS] if name == "edges" else [[name] for name in ties]
    tables = [np.mean([noisy.tables[clique] for clique in group], axis=0).ravel() for group in cliques]
    deviations = [math.sqrt(sum(noisy.variances[clique] for clique in group) / 2) / len(group) for group in cliques]
    scale = np.repeat(deviations, [table.size for table in tables])
    model, theta = Dense(STEPS, groups), estimator.path_[0]
    first = model.distribution(theta)
    for _ in range(6):
        theta = model.m_step(theta, model.e_step(theta, "laplace", np.concatenate(tables), scale, noisy.total)[0])
    own = fitted.query(CHAIN)
    own = np.transpose(own.values, [list(own.variables).index(v) for v in CHAIN]).ravel()
    np.testing.assert_allclose(own, model.distribution(theta), atol=1e-4 if e_step == "dual" else 2e-3)
    assert np.abs(model.distribution(theta) - first).max() > 0.02
