"""What the trust tests go through: every mechanism of the wall and every estimator, once for each relation.

A test with an argument `mechanism` or `fit` runs for each of them. A new one is one entry of MECHANISMS or FITS.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pytest
from dp_accounting import get_sigma_gaussian
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from trials import Bottomless, Noise

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.integer_sums import Moments
from pgmpy_dp.data.mechanisms.selection import FarthestTables
from pgmpy_dp.data.mechanisms.steps import Choose, Measure, StagedTables, Step, TablesInSteps
from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget
from pgmpy_dp.privacy.accounting import rho_for
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.release.contrasts import residual_sensitivity
from pgmpy_dp.structure.search import Round, Steps

BOTH = ("add_remove", "replace_one")
SCHEMA = dp.Schema({"v": ["x", "y"], "w": ["x", "y"], "n": dp.Bins([0, 1, 2, 3])})
DETAILED = SCHEMA.replace(variables={**SCHEMA.declared, "n": dp.Bins([0, 2, 3], decimals=1, detail=6)})
OPEN = dp.Schema({"v": [], "w": ["x", "y"]}, other={"v": "z"})
GROUPED = dp.Schema(  # g is found from v, and no column of the records
    {"v": ["x", "y"], "g": ["one", "two"], "w": ["x", "y"]}, rules=[dp.Hierarchy("v", "g", {"x": "one", "y": "two"})]
)
HOUSEHOLDS = dp.HouseholdSchema(SCHEMA.select(["v"]), SCHEMA.select(["w", "n"]), key="person", max_persons=3)
NUMBERS = dp.Schema(bounds={"n": (0, 3), "person": (0, 60)})
DELTA = 0.1  # a large delta: what an audit sees of a small one is nothing


def _records(rows):
    return pd.DataFrame(rows, columns=["v", "w", "n", "person"]).astype(
        {"v": "str", "w": "str", "n": float, "person": int}
    )


# Scores of the two edges of n are equal without X, and as unlike as a record can make them with it.
_COMMON = [(s, t, 0.5 + i, 4 * i + 2 * (s == "x") + (t == "x")) for i, k in enumerate((4, 2, 3)) for s, t in
           [("x", "y"), ("y", "y"), ("y", "x"), ("x", "x")][:k]]  # fmt: skip
_X, _Y = [("x", "x", 0.5, 50)] * 3, [("y", "y", 2.5, 51)] * 3
_BASE = [*_COMMON, _Y[0]]
NEIGHBOURS = {
    pairs: {
        "add_remove": (_records(without), _records(added)),
        "replace_one": (_records(one), _records(other)),
    }
    for pairs, without, added, one, other in (
        ("records", _BASE, [*_BASE, _X[0]], _BASE, [*_COMMON, _X[0]]),
        ("only record", [], _X[:1], _Y[:1], _X[:1]),
        ("one of two", [], _X[:1], _Y[:2], [_Y[0], _X[0]]),
        ("at the threshold", _X[:1] * 7 + _Y, _X[:1] * 8 + _Y, _X[:1] * 7 + _Y[:1] * 8, _X[:1] * 8 + _Y[:1] * 7),
        ("persons", _COMMON, [*_COMMON, *_X], [*_COMMON, *_Y], [*_COMMON, *_X]),
    )
}


def households(records, budget, relation, noise):
    """A household for each person, whose rows are its persons."""
    homes = records.groupby("person", as_index=False)["v"].first()
    return dp.PrivateHouseholds(homes, records[["person", "w", "n"]], HOUSEHOLDS, budget, relation, noise)


class OfRelation:
    """What is audited for one relation: data sets of records, and two neighbouring ones."""

    def data(self, records, noise=OPENDP_NOISE, budget=None):
        """A data set of these records."""
        return self.opened(records, PrivacyBudget(1.0, self.delta) if budget is None else budget, noise)

    @property
    def neighbours(self):
        """Two neighbouring tables of records."""
        return NEIGHBOURS[self.pairs][self.relation]

    def pair(self, times=1.0):
        """Two data sets for any number of trials, whose noise is at some times its scale."""
        noise = Noise(times)
        return tuple(self.data(records, noise, Bottomless(1.0, self.delta)) for records in self.neighbours)


@dataclass(frozen=True)
class Mechanism(OfRelation):
    """A method of the wall, for one relation."""

    name: str
    relation: str
    call: Callable[[dp.PrivateDataset, float], Any]  # from data and an epsilon to what is released
    delta: float = 0.0
    times: float = 0.7  # noise of this many times its scale is what the slow audit must catch
    trials: int = 8000  # of the slow audit
    quick: int = 120  # of the quick one, which must catch noise at an eightieth; fewer than 80 refute nothing
    draws: bool = False  # adds no noise but draws: the planted bug is a larger epsilon; see data/test_posterior.py
    unit: Mapping[str, Any] = field(default_factory=dict)
    pairs: str = "records"
    schema: dp.Schema = SCHEMA
    source: Callable[..., Any] | None = None

    def opened(self, records, budget, noise):
        if self.source is not None:
            return self.source(records, budget, self.relation, noise)
        return dp.PrivateDataset(records, self.schema, budget, self.relation, noise, **self.unit)


ONE, TWO = [("v", "w")], [("v",), ("w",)]
FAMILIES = [("v",), ("w", "v")]
PRIOR = {("v",): np.full(2, 0.01), ("w", "v"): np.full((2, 2), 0.01)}  # puts half of the draws on either end


def indicators(codes):
    """A record's cells, one hot."""
    return np.eye(4)[2 * codes[:, 0].astype(int) + codes[:, 1]]


def sampled(data):
    return {"sampling_rate": 0.5} if data.neighbours == "add_remove" else {"batch_size": 1}


def planned(data, epsilon):
    """Two steps of sums over samples, one by vectors and one by counting."""
    plan = data.plan(2, epsilon=epsilon, delta=DELTA, variables=["v", "w"], **sampled(data))
    sums = plan.noisy_sum(indicators, clip_norm=1.0, non_negative=True)
    return plan.guarantee, sums, plan.noisy_tables([(0, 1)], [2, 2], 1.0)


def signed(codes):
    """A record's cell, with a sign that tells its first variable."""
    cells = indicators(codes)
    return Moments(cells, None, 1.0 - 2.0 * codes[:, :1], np.ones((len(codes), 1)))


def moments(data, epsilon):
    """One step of first and second moments over a sample."""
    plan = data.plan(1, epsilon=epsilon, delta=DELTA, variables=["v", "w"], width=(4, 1, 1), **sampled(data))
    noisy = plan.noisy_moments(signed, 1.0)
    return plan.guarantee, noisy.first.ravel(), noisy.second.ravel()


def measured(cliques, **how):
    return lambda data, epsilon: data.measure(cliques, epsilon, **how)


def regressions(data, epsilon):
    """A mean, with little spread about it, so that it could cost much."""
    return data.sample_regressions([("n",)], {"n": 0.2}, {"n": 1.0}, epsilon)


def more_in_the_first_table(first):
    return first.tables["v",].ravel()[0] > first.tables["w",].ravel()[0]


def twice(data, epsilon, wanted=more_in_the_first_table):
    """Two tables measured twice; the first answer decides which has more of the second stage's loss."""

    def second(units, first):
        return Measure(TWO, (4.0, 1.0) if first is None or wanted(first) else (1.0, 4.0))

    return data.release(StagedTables([(0.4, lambda *_: Measure(TWO, (1.0, 1.0))), (0.6, second)], epsilon, DELTA))


def in_groups(data, epsilon):
    """A table, and then that of groups, whose order the first answer decides."""

    def second(units, first):
        groups = ["one", "two"] if first is None or first.tables["v",][0] > 2 else ["two", "one"]
        rule = dp.Hierarchy("w", "w in groups", dict(zip("xy", groups, strict=True)), column=False)
        schema = data.schema if first is None else first.schema
        schema = schema.replace(variables={**schema.declared, "w in groups": ["one", "two"]}, rules=[rule])
        return Measure([("v", "w in groups")], [1.0], schema)

    return data.release(StagedTables([(0.4, lambda *_: Measure([("v",)], [1.0])), (0.6, second)], epsilon, DELTA))


# Without X the second table is a little farther from its reference than the first; with it, it is nearer.
REFERENCES = {("v",): np.zeros(2), ("w",): np.array([12.0, 0.0])}


def chosen(data, epsilon):
    """One of two tables, at the rho that implies epsilon."""
    return data.release(FarthestTables(REFERENCES, 1, lambda chosen: REFERENCES.keys(), rho=rho_for(epsilon, DELTA)))


def purely_chosen(data, epsilon):
    return data.release(FarthestTables(REFERENCES, 1, lambda chosen: REFERENCES.keys(), epsilon))


def residuals(data, epsilon):
    """Of a table, with one scale for all of its subsets: by what it costs at 1, that at which it costs epsilon."""
    return data.measure_residuals(residual_scales(exact_positive("epsilon", epsilon), data.neighbours), delta=DELTA)


@cache
def residual_scales(epsilon, relation):
    subsets = [(), ("v",)][relation == "replace_one" :]
    moved = residual_sensitivity(dict.fromkeys(subsets, 1.0), {"v": 2}, relation)
    return dict.fromkeys(subsets, get_sigma_gaussian(float(epsilon), DELTA) * moved**0.5 * (1 + 1e-5))


def discovered(data, epsilon, threshold=8):
    """The states of v. At the delta that gives this threshold, one record decides whether x reaches it."""
    if not isinstance(epsilon, float):
        return data.discover_states("v", epsilon, delta=DELTA)
    q = np.exp(-epsilon / (1 if data.neighbours == "add_remove" else 2))
    return data.discover_states("v", epsilon, delta=q ** (threshold - 1) / (1 + q) * (1 + 1e-6))


def stepwise(data, epsilon):
    """A table is measured, one of two is chosen, and that is measured."""

    def asking():
        first = yield Measure(ONE, [1])
        (clique,) = yield Choose(REFERENCES, lambda chosen: REFERENCES.keys())
        return first, clique, (yield Measure([clique], [1]))

    steps = [Step(0.4), Step(0.2, 1), Step(0.4)]
    return data.release(TablesInSteps(steps, epsilon, DELTA, asking, "three steps"))[0]


GAUSSIAN = {"delta": DELTA, "mechanism": "gaussian"}
LARGE = {"delta": DELTA, "trials": 40_000}
DRAWS = {"pairs": "only record", "draws": True, "times": 0.05, "quick": 400}
# Of two candidates a pick shows less than noise on a table, whose tails tell.
PICK = {"times": 0.2, "trials": 2000}
KINDS = {  # what is called, and what differs from the defaults of Mechanism
    "laplace": (measured(ONE), {}),
    "coarser variable": (measured([("g", "w")]), {"schema": GROUPED}),
    "finer histogram": (measured([("n in detail",), ("n",)]), {"schema": DETAILED, "trials": 20_000}),
    "laplace weighted": (measured(TWO, weights=[3, 1]), {"trials": 20_000}),
    "gaussian": (measured(ONE, **GAUSSIAN), LARGE),
    "gaussian weighted": (measured(TWO, weights=[3, 1], **GAUSSIAN), LARGE),
    "gaussian block": (measured(TWO, weights=[3, 1], delta=DELTA, mechanism="gaussian_block"), LARGE),
    "stages": (twice, LARGE),
    "stages of groups": (in_groups, {**LARGE, "times": 0.5}),
    "persons of two rows": (measured(ONE), {"unit": {"unit": "person", "max_rows": 2}, "pairs": "persons"}),
    "persons of weight one": (measured(ONE), {"unit": {"unit": "person"}, "pairs": "persons"}),
    "survey weights": (measured(ONE), {"unit": {"weights": "person", "largest_weight": 50.0}}),
    "survey weights, gaussian": (measured(ONE, **GAUSSIAN), {**LARGE, "unit": {"weights": "n", "largest_weight": 0.5}}),
    "persons with survey weights": (
        measured(ONE),
        {"unit": {"unit": "person", "max_rows": 2, "weights": "n", "largest_weight": 0.5}, "pairs": "persons"},
    ),
    "households": (
        measured([("v", "w"), ("v", "size"), ("w", "another w")]),
        {"source": households, "unit": {"unit": "person"}, "pairs": "persons", "trials": 20_000, "times": 0.5},
    ),
    "coefficients": (lambda data, epsilon: data.measure_coefficients(ONE, epsilon), {"trials": 20_000}),
    "residuals": (residuals, {"delta": DELTA, "trials": 4000, "times": 0.5}),
    "posterior": (lambda data, epsilon: data.sample_posterior(FAMILIES, PRIOR, epsilon), DRAWS),
    "exponential": (lambda data, epsilon: data.sample_map(FAMILIES, PRIOR, epsilon), DRAWS),
    "regressions": (regressions, {**DRAWS, "schema": NUMBERS}),
    "quantiles": (lambda data, epsilon: data.quantile_bins("n", 2, epsilon), {"quick": 300}),
    "quantiles of persons": (
        lambda data, epsilon: data.quantile_bins("n", 2, epsilon),
        {"quick": 300, "unit": {"unit": "person", "max_rows": 2}, "pairs": "persons"},
    ),
    "selection": (chosen, {"delta": DELTA, **PICK}),
    "pure selection": (purely_chosen, PICK),
    "partition selection": (discovered, {"delta": DELTA, "schema": OPEN, "pairs": "at the threshold", "times": 0.5}),
    "steps": (stepwise, {**LARGE, "times": 0.5}),  # no part alone shows it, and what is chosen hides the rest
    "sums of moments": (moments, {"delta": DELTA, "pairs": "one of two", "times": 0.25, "quick": 600}),
    "sums over samples": (planned, {"delta": DELTA, "pairs": "one of two", "times": 0.25, "quick": 600}),
}
MECHANISMS = [
    *(Mechanism(name, relation, call, **options) for name, (call, options) in KINDS.items() for relation in BOTH),
    Mechanism("sample", "add_remove", measured(ONE, sampling_rate=0.5), pairs="only record", quick=300),
]


def discrete(records, *others):
    return dp.PrivateDataset(records, SCHEMA, *others)


def binary(records, *others):
    return dp.PrivateDataset(records, SCHEMA.select(["v", "w"]), *others)


def numbers(records, *others):
    return dp.PrivateDataset(records, NUMBERS, *others)


def features(records, budget, relation, noise):
    X = records[["n"]].assign(w=(records["w"] == "x").astype(float))
    kept = {"budget": budget, "neighbours": relation, "noise": noise}
    return dp.PrivateFeatures(X, records["v"], bounds=(0, 3), classes=["x", "y"], **kept)


def targets(records, budget, relation, noise):
    X, kept = records[["n"]], {"budget": budget, "neighbours": relation, "noise": noise}
    return dp.PrivateFeatures(X, (records["v"] == "x").astype(float), bounds=(0, 3), target_bounds=(0, 1), **kept)


def documents(records, budget, relation, noise):
    words = [records["v"] == "x", records["v"] == "y", records["w"] == "x", records["n"] < 1]
    return dp.PrivateDocuments(np.stack(words, axis=1).astype(int), list("abcd"), budget, 10, relation, noise)


@dataclass(frozen=True)
class Fit(OfRelation):
    """An estimator and a network, for data sets of one relation."""

    name: str
    relation: str
    estimator: Callable[[float], Any]
    network: Callable[[Any], Any] | None = DiscreteBayesianNetwork  # from edges; None if there is none
    delta: float = 0.0
    source: Callable[..., Any] = discrete
    edges: tuple[tuple[str, str], ...] = (("v", "w"),)
    pairs: str = "records"
    draws: bool = False  # adds no noise but draws

    def opened(self, records, budget, noise):
        return self.source(records, budget, self.relation, noise)

    def __call__(self, data, epsilon, edges=None):
        """The fitted estimator and network."""
        estimator = self.estimator(epsilon)
        if self.network is None:
            return estimator.fit(data), None
        network = self.network(list(edges or self.edges))
        network.fit(data, estimator=estimator)
        return estimator, network


class FewSteps(dp.PairwiseMixture):
    """Its optimiser sees the release alone, and audits fit very often."""

    _steps = 2


FewStepsOfHouseholds = type("FewStepsOfHouseholds", (dp.HouseholdMixture,), {"_steps": 2})


class ForestSearch(dp.PrivateStructureSearch):
    """One step that chooses and two that measure; audits fit very often."""

    _steps = Steps(singles=0.3, forest=Round(0.3, 0.4), rounds=())


def two_stages(relation):
    return dp.papers.DataDependentAllocation(sampling_rate=0.5 if relation == "add_remove" else 1.0)


def _fits(relation):
    sgd = {"delta": DELTA, "steps": 2, "sampling_rate": 0.5}
    total = 10.0 if relation == "add_remove" else None
    papers, markov = dp.papers, {"network": dp.PrivateMarkovNetwork}
    yield "PrivateMLE", dp.PrivateMLE, {}
    yield "PrivateMLE in stages", lambda e: dp.PrivateMLE(e, allocation=two_stages(relation)), {}
    yield "AutoMLE", dp.AutoMLE, {}
    yield "CollectiveEM", lambda e: dp.CollectiveEM(epsilon=e, max_iter=20), {}
    yield "CollectiveEM undirected", lambda e: dp.CollectiveEM(epsilon=e, max_iter=20), markov
    yield "NaiveMLE", lambda e: papers.NaiveMLE(epsilon=e, max_iter=20), markov
    bayesian = papers.PrivateBayesianEstimator
    yield "PrivateBayesianEstimator", lambda e: bayesian(epsilon=e), {}
    yield "PrivateBayesianEstimator fourier", lambda e: bayesian(epsilon=e, mechanism="fourier"), {}
    # Draws show one record only where nothing else is known, and so do sums over samples.
    weak = {"prior_type": "BDeu", "equivalent_sample_size": 0.05}
    only, few = {"pairs": "only record", "draws": True}, {"pairs": "one of two", "delta": DELTA}
    yield "PosteriorSampler", lambda e: papers.PosteriorSampler(e, **weak), only
    yield "ExponentialMAP", lambda e: papers.ExponentialMAP(e, **weak), only
    yield "PrivateVB", lambda e: dp.PrivateVB(e, **sgd), few
    yield "PrivateSGD", lambda e: papers.PrivateSGD(e, total=total, **sgd), markov | few
    yield "PrivateSGD features", lambda e: papers.PrivateSGD(e, statistic="features", **sgd), markov | few
    alone = {"network": None, **few}
    yield "PrivateLDA", lambda e: dp.PrivateLDA(2, e, **sgd), {**alone, "source": documents}
    yield "PrivateLogisticRegression", lambda e: dp.PrivateLogisticRegression(e, **sgd), {**alone, "source": features}
    yield "PrivateLinearRegression", lambda e: papers.PrivateLinearRegression(e, **sgd), {**alone, "source": targets}
    sigmoid = papers.PrivateSigmoidBeliefNetwork
    yield "PrivateSigmoidBeliefNetwork", lambda e: sigmoid(1, e, **sgd), {**alone, "source": binary}
    small = {"delta": DELTA, "components": 2, "members": 1}
    mixture = {"network": None, "delta": DELTA}
    yield "PairwiseMixture", lambda e: FewSteps(e, **small), mixture
    yield "PairwiseMixture in stages", lambda e: FewSteps(e, stages=2, **small), mixture
    yield "HouseholdMixture", lambda e: FewStepsOfHouseholds(e, **small), {**mixture, "source": households}
    yield "PrivateStructureSearch", lambda e: ForestSearch(e, DELTA), mixture
    linear = {"coefficient_bound": 1.0, "std": {"person": 4.0, "n": 0.2}}
    gaussian = {"network": LinearGaussianBayesianNetwork, "source": numbers, "edges": (("person", "n"),)}
    yield "LinearPosteriorSampler", lambda e: papers.LinearPosteriorSampler(e, **linear), gaussian | only


FITS = [Fit(name, relation, estimator, **options) for relation in BOTH for name, estimator, options in _fits(relation)]


_shared_duckdb = cache(duckdb.connect)


@pytest.fixture(scope="module", autouse=True)
def one_duckdb():
    """Sources are cursors of one DuckDB: to start another takes longer than to read the few records of an example."""
    shared = _shared_duckdb()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(duckdb, "connect", shared.cursor)
        yield


@pytest.fixture
def neighbours_of():
    """Function: the kind of pair and the relation; two neighbouring tables of records."""
    return lambda pairs, relation: NEIGHBOURS[pairs][relation]


@pytest.fixture
def mechanisms():
    """All of them, for a test that needs some."""
    return MECHANISMS


@pytest.fixture
def fits():
    """All of them, for a test that needs some."""
    return FITS


def pytest_generate_tests(metafunc):
    own = {mark.args[0] for mark in metafunc.definition.iter_markers("parametrize") if isinstance(mark.args[0], str)}
    for argument, cases in (("mechanism", MECHANISMS), ("fit", FITS)):
        if argument in metafunc.fixturenames and argument not in own:
            metafunc.parametrize(argument, cases, ids=[f"{case.name}, {case.relation}" for case in cases])
