"""One face for every estimator: epsilon and delta, copies, refusals, and the manners of scikit-learn and pgmpy."""

import inspect
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork, LinearGaussianBayesianNetwork
from pgmpy.parameter_estimator import DiscreteMLE
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

import pgmpy_dp as dp
from experiments.protocol import third_order_chain
from pgmpy_dp import papers
from pgmpy_dp.errors import NoiseWarning
from pgmpy_dp.estimators.base import Estimator
from pgmpy_dp.evaluation import random_markov_network
from pgmpy_dp.fitting.plans.outlook import hidden_by_noise
from pgmpy_dp.privacy.guarantee import Guarantee, learned

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y"]})
RECORDS = pd.DataFrame({"a": ["x", "y"] * 200, "b": ["x", "y", "y", "y"] * 100})
HOMES = dp.HouseholdSchema(SCHEMA.select(["a"]), SCHEMA.select(["b"]), key="id", max_persons=2)
BAYESIAN, MARKOV = DiscreteBayesianNetwork([("a", "b")]), dp.PrivateMarkovNetwork([("a", "b")])
GAUSSIAN = LinearGaussianBayesianNetwork([("u", "v")])
LINEAR = {"coefficient_bound": 1.0, "std": 1.0}
SMALL, STEPS = {"components": 2, "members": 1}, {"steps": 2, "sampling_rate": 1.0}


def discrete(budget):
    return dp.PrivateDataset(RECORDS, SCHEMA, budget)


def numbers(budget):
    frame = pd.DataFrame({"u": np.linspace(0, 1, 100), "v": np.linspace(1, 0, 100)})
    return dp.PrivateDataset(frame, dp.Schema(bounds={"u": (0, 1), "v": (0, 1)}), budget)


def features(budget):
    kept = {"bounds": (0, 1), "classes": ["x", "y"], "budget": budget}
    return dp.PrivateFeatures(np.linspace(0, 1, 400)[:, None], RECORDS["a"], **kept)


def targets(budget):
    values = np.linspace(0, 1, 400)
    return dp.PrivateFeatures(values[:, None], values, bounds=(0, 1), target_bounds=(0, 1), budget=budget)


def documents(budget):
    return dp.PrivateDocuments(np.eye(4, dtype=int)[np.arange(400) % 4], list("abcd"), budget, 10)


def households(budget):
    homes = RECORDS[["a"]].assign(id=np.arange(400))
    return dp.PrivateHouseholds(homes, RECORDS[["b"]].assign(id=np.arange(400)), HOMES, budget)


# Class, network if it has one, private source, and what keeps the test short.
CASES = [
    (dp.AutoMLE, BAYESIAN, discrete, {}),
    (dp.PrivateMLE, BAYESIAN, discrete, {}),
    (dp.CollectiveEM, BAYESIAN, discrete, {}),
    (dp.CollectiveEM, MARKOV, discrete, {"max_iter": 10}),
    (dp.PosteriorMean, BAYESIAN, discrete, {"draws": 20}),
    (dp.papers.NaiveMLE, MARKOV, discrete, {}),
    (dp.papers.PrivateBayesianEstimator, BAYESIAN, discrete, {}),
    (dp.papers.PosteriorSampler, BAYESIAN, discrete, {}),
    (dp.papers.ExponentialMAP, BAYESIAN, discrete, {}),
    (dp.papers.LinearPosteriorSampler, GAUSSIAN, numbers, LINEAR),
    (dp.papers.PrivateSGD, MARKOV, discrete, {"statistic": "features", **STEPS}),
    (dp.PrivateVB, BAYESIAN, discrete, STEPS),
    (dp.PrivateLDA, None, documents, {"n_components": 2, **STEPS}),
    (dp.PrivateLogisticRegression, None, features, STEPS),
    (dp.papers.PrivateLinearRegression, None, targets, STEPS),
    (dp.papers.PrivateSigmoidBeliefNetwork, None, discrete, {"n_components": 1, **STEPS}),
    (dp.PairwiseMixture, None, discrete, SMALL),
    (dp.HouseholdMixture, None, households, SMALL),
    (dp.PrivateStructureSearch, None, discrete, {}),
]
NAMES = [f"{number}-{kind.__name__}" for number, (kind, *_) in enumerate(CASES)]
EVERY = pytest.mark.parametrize(("kind", "network", "source", "options"), CASES, ids=NAMES)


def fit(estimator, network, data):
    return estimator.fit(*(() if network is None else (network.copy(),)), data)


def takes(kind, name):
    return name in inspect.signature(kind).parameters


@EVERY
@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.filterwarnings("ignore")
def test_noise_is_gaussian_exactly_where_there_is_a_delta(kind, network, source, options, delta):
    if delta and not takes(kind, "delta"):
        pytest.skip("draws from a posterior have no delta")
    data = source(dp.PrivacyBudget(4.0, delta))
    estimator = kind(epsilon=4.0, **({"delta": delta} if delta else {}), **options)
    if not delta and "noise_multiplier" in inspect.signature(kind).parameters:
        with pytest.raises(ValueError, match="needs a delta"):
            fit(estimator, network, data)
        assert data.budget.history == ()
        return
    assert fit(estimator, network, data) is estimator
    guarantee = estimator.guarantee_
    assert (guarantee.epsilon, guarantee.delta) == (4.0, delta) if takes(kind, "delta") else guarantee.epsilon <= 4.0
    if takes(kind, "mechanism"):
        assert guarantee.mechanism == ("gaussian" if delta else "laplace")


@EVERY
def test_copies_and_representations(kind, network, source, options):
    estimator = kind(epsilon=0.5, **options)
    copy = clone(estimator)
    assert copy is not estimator
    assert copy.get_params() == estimator.get_params()
    assert repr(copy) == repr(estimator)
    assert f"{kind.__name__}(" in repr(estimator)
    assert "epsilon=0.5" in repr(estimator)
    with pytest.raises(TypeError, match="gamma"):
        kind(epsilon=0.5, gamma=1)
    parameters = inspect.getdoc(kind).partition("Parameters\n----------")[2].partition("Attributes\n---")[0]
    documented = re.findall(r"^(\w+(?:, \w+)*)(?: : .*)?$", parameters, re.MULTILINE)
    assert sorted(name for names in documented for name in names.split(", ")) == sorted(copy.get_params())


@EVERY
def test_a_refusal_charges_nothing(kind, network, source, options):
    data = source(dp.PrivacyBudget(4.0, 1e-3))
    delta = {"delta": 1e-3} if takes(kind, "delta") else {}
    dear = 5.0 if kind is not dp.papers.LinearPosteriorSampler else 0.0  # which charges less where less is enough
    for wrong in ({"epsilon": -1.0}, {"epsilon": dear}, {"epsilon": 1.0, "neighbours": "replace_one"}):
        with pytest.raises(ValueError):  # each names its own argument, elsewhere tested
            fit(kind(**options, **{**delta, **wrong}), network, data)
        assert data.budget.history == ()


@EVERY
def test_a_release_is_paid_for(kind, network, source, options):
    budget = dp.PrivacyBudget(4.0, 1e-3)
    release = discrete(budget).measure([("a", "b"), ("a",), ("b",)], 1.0)
    before = budget.history
    with pytest.raises((ValueError, TypeError)):
        fit(kind(epsilon=1.0, **({"delta": 1e-3} if takes(kind, "delta") else {}), **options), network, release)
    assert budget.history == before


@EVERY
def test_a_plan_is_what_is_charged(kind, network, source, options):
    if not hasattr(kind, "plan") or kind is dp.PrivateStructureSearch:
        pytest.skip("has no plan without records")
    options = {**options, "epsilon": 1.0, **({"delta": 1e-3} if takes(kind, "delta") else {})}
    data = source(dp.PrivacyBudget(1.0, 1e-3))
    if kind is dp.HouseholdMixture:
        plan = kind(schema=HOMES, **options).plan()
    else:
        plan = kind(**options).plan(*(() if network is None else (network.copy(),)), data.schema)
    assert plan.guarantee.delta == options.get("delta", 0.0)
    released = data.release(plan.mechanism)
    (paid,) = data.budget.history
    assert replace(paid, id="", holder=None, ledger_total=None) == plan.quote.cost
    assert learned(released).every == {paid}
    assert str(Guarantee({paid})) == str(plan.guarantee)
    if takes(kind, "mechanism"):  # what several stages measured is pooled, and rounded
        noise = {clique: variance**0.5 for clique, variance in released.variances.items()}
        assert replace(plan, records=released.total).noise == pytest.approx(noise, rel=0.01)


@pytest.mark.parametrize("declared", [SCHEMA, SCHEMA.state_names], ids=["schema", "states"])
def test_a_plan_is_for_the_declared_states(declared):
    for kind, *network in ((dp.AutoMLE, BAYESIAN), (dp.PairwiseMixture,)):
        planned = kind(1.0, state_names=declared).plan(*network)
        assert planned.noise == kind(1.0).plan(*network, schema=SCHEMA).noise
        with pytest.raises(dp.SchemaError, match="States must be declared"):
            kind(1.0).plan(*network)
        with pytest.raises(dp.SchemaError, match="state_names differ"):
            kind(1.0, state_names=declared).plan(*network, dp.Schema({"a": ["x", "z"], "b": ["x", "y"]}))
    with pytest.raises(dp.SchemaError, match="not in the schema: 'b'"):
        dp.AutoMLE(1.0).plan(BAYESIAN, SCHEMA.select(["a"]))


def test_a_plan_of_households_takes_their_schema():
    assert dp.HouseholdMixture(1.0).plan(HOMES).quote == dp.HouseholdMixture(1.0, schema=HOMES).plan().quote
    with pytest.raises(dp.SchemaError, match="leave it out"):
        dp.HouseholdMixture(1.0, schema=HOMES).plan(dp.HouseholdSchema(HOMES.households, HOMES.persons, "id", 3))


def test_a_plan_with_latent_variables_is_for_what_records_have():
    network, states = DiscreteBayesianNetwork([("z", "a")], latents={"z"}), {"a": ["x", "y"], "z": [0, 1]}
    kept = {"delta": 1e-3, **STEPS}
    planned = dp.PrivateVB(1.0, state_names=states, **kept).plan(network)
    assert planned.quote == dp.PrivateVB(1.0, state_names={"z": [0, 1]}, **kept).plan(network, SCHEMA).quote
    with pytest.raises(dp.SchemaError, match="Latent variable 'z'"):
        dp.PrivateVB(1.0, state_names={"a": ["x", "y"]}, **kept).plan(network)


@pytest.mark.parametrize(
    ("estimator", "planned"),
    [
        (dp.papers.PrivateBayesianEstimator(1.0, mechanism="fourier"), []),
        (dp.papers.PosteriorSampler(1.0), []),
        (dp.PrivateVB(1.0, delta=1e-3, **STEPS), []),
        (dp.PairwiseMixture(1.0, delta=1e-3, stages=2), [("a",), ("b",), ("a", "b")]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_noise_of_a_plan_is_that_of_tables_that_are_known(estimator, planned):
    plan = estimator.plan(*(() if planned else (BAYESIAN,)), schema=SCHEMA)
    assert list(plan.noise) == planned
    assert repr(plan).startswith(f"Plan({plan.quote.cost.label}: differentially private")


def test_a_plan_refuses_what_a_fit_refuses():
    assert not hasattr(dp.NotPrivateMLE, "plan")
    ruled = dp.Schema(SCHEMA.state_names, rules=[dp.Forbidden({"a": "x", "b": "x"})])
    with pytest.raises(dp.SchemaError, match="cannot hold the schema's rules"):
        dp.PrivateVB(1.0, delta=1e-3, **STEPS).plan(BAYESIAN, ruled)
    with pytest.raises(ValueError, match=r"give the estimator an epsilon and states, AutoMLE with epsilon=1.0"):
        dp.AutoMLE().plan(BAYESIAN, SCHEMA)
    with pytest.raises(ValueError, match="has no plan before that"):
        dp.PrivateMLE(1.0, allocation="data_dependent").plan(BAYESIAN, SCHEMA)


PLAN = {"delta": 1e-3, "steps": 4}
NUMBERS = np.array([[0, 1, 1], [1, 0, 0]] * 50)


class Declaring(dp.PrivateLogisticRegression):
    """The checks hand in records of many kinds, and declare nothing: here each fit declares what they hold."""

    def fit(self, X, y=None):
        before = self.classes
        self.classes = np.unique(np.asarray(y)).tolist()
        try:
            return super().fit(X, y)
        finally:
            self.classes = before


class Counting(dp.PrivateLDA):
    """The checks hand in any numbers: here they become counts of words."""

    def fit(self, counts, y=None):
        return super().fit(whole(counts))

    def transform(self, counts):
        return super().transform(whole(counts))

    def score(self, counts, y=None):
        return super().score(whole(counts))


class Binary(dp.papers.PrivateSigmoidBeliefNetwork):
    """Here they become zeros and ones."""

    def fit(self, X, y=None):
        return super().fit(positive(X))

    def transform(self, X):
        return super().transform(positive(X))

    def score(self, X, y=None):
        return super().score(positive(X))


def whole(X):
    return sparse.csr_array(X).rint().astype(int) if sparse.issparse(X) else np.round(X).astype(int)


def positive(X):
    return (np.asarray(X) > 0).astype(float)


# Why checks of scikit-learn fail that must.
KEPT_BACK = "messages tell neither the number of records nor what they hold, which is private"
NOISE = "there is no seed for private noise: two fits differ"
OWN = "the same records would be private and public: fit_transform refuses"
DECLARED = "what the records may hold is declared, not found out"
CHECK = "check_{}".format
SPARSE = [CHECK(f"estimator_sparse_{kind}") for kind in ("array", "matrix", "tag")]
ALL = ("complex_data", "dtype_object", "estimators_empty_data_messages", "fit1d")
OF_TRANSFORMERS = ("transformer_data_not_an_array", "fit_score_takes_y", "pipeline_consistency", "transformer_general")
SHARED = dict.fromkeys(map(CHECK, ALL), KEPT_BACK) | {"check_fit_idempotent": NOISE}
TRANSFORMER = SHARED | dict.fromkeys(map(CHECK, (*OF_TRANSFORMERS, "transformer_preserve_dtypes")), OWN)
TRANSFORMER["check_estimators_nan_inf"] = "the subclass of this test makes numbers of everything"
SUPERVISED = SHARED | dict.fromkeys([*SPARSE, "check_supervised_y_2d"], KEPT_BACK) | {"check_requires_y_none": DECLARED}
FEW = "a private fit of so few records is not accurate"
EXPECTED = {
    "classifier": SUPERVISED
    | {"check_classifiers_regression_target": DECLARED, "check_classifiers_train": FEW}
    | dict.fromkeys(["check_classifier_data_not_an_array", "check_fit2d_1sample"], KEPT_BACK),
    "regressor": SUPERVISED
    | {"check_regressors_int": NOISE, "check_regressors_train": FEW}
    | {"check_regressor_data_not_an_array": KEPT_BACK},
    "topics": TRANSFORMER | {"check_positive_only_tag_during_fit": KEPT_BACK},
    "hidden causes": TRANSFORMER | dict.fromkeys(SPARSE, KEPT_BACK),
}
CHECKED = {
    "classifier": lambda: Declaring(5.0, bounds=(-100.0, 100.0), **PLAN),
    "regressor": lambda: dp.papers.PrivateLinearRegression(5.0, bounds=(-9, 9), target_bounds=(-99, 99), **PLAN),
    "topics": lambda: Counting(2, 5.0, sampling_rate=1.0, document_length=10, **PLAN),
    "hidden causes": lambda: Binary(2, 5.0, **PLAN),
}


@pytest.mark.parametrize("name", CHECKED)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learns_checks(name):
    """Run all of scikit-learn's checks: what fails, fails for the reason that is written above."""
    found = check_estimator(CHECKED[name](), on_skip=None, on_fail=None)
    failed = {one["check_name"]: one["exception"] for one in found if one["status"] == "failed"}
    assert set(failed) ^ set(EXPECTED[name]) == set(), failed
    assert len(found) > 40


BY_PAPERS = [dp.papers.PrivateLinearRegression, dp.papers.PrivateSigmoidBeliefNetwork]
FITTED = {
    "classifier": lambda records=NUMBERS: dp.PrivateLogisticRegression(5.0, **PLAN, bounds=(0, 1), classes=[0, 1]).fit(
        records, NUMBERS[:, 0]
    ),
    "topics": lambda records=NUMBERS: dp.PrivateLDA(2, 5.0, **PLAN).fit(records),
    "hidden causes": lambda records=NUMBERS: dp.papers.PrivateSigmoidBeliefNetwork(2, 5.0, **PLAN).fit(records),
}


@pytest.mark.parametrize("kind", [dp.PrivateLogisticRegression, dp.PrivateLDA, *BY_PAPERS])
def test_what_is_not_fitted_says_so(kind):
    for method in {"predict", "predict_proba", "decision_function", "transform", "score"} & set(dir(kind)):
        with pytest.raises(NotFittedError):
            getattr(kind(), method)(
                *[NUMBERS, NUMBERS[:, 0]][: 2 if method == "score" and "predict" in dir(kind) else 1]
            )


@pytest.mark.parametrize("name", ["topics", "hidden causes"])
def test_transformers_name_their_columns(name):
    fitted = FITTED[name]().set_output(transform="pandas")
    frame = fitted.transform(NUMBERS[:4])
    assert list(frame) == list(fitted.get_feature_names_out())
    assert frame.shape == (4, 2)
    assert isinstance(fitted.score(NUMBERS[:4]), float)


@pytest.mark.parametrize("name", ["classifier", "hidden causes"])
def test_names_of_columns(name):
    named = FITTED[name](pd.DataFrame(NUMBERS, columns=["a", "b", "c"]))
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    assert not hasattr(FITTED[name](pd.DataFrame(NUMBERS)), "feature_names_in_")  # columns that are numbers
    with pytest.raises(dp.SchemaError, match="Two features have the same name"):
        FITTED[name](pd.DataFrame(NUMBERS, columns=["a", "b", "a"]))


def test_zeros_and_ones_may_be_floats_and_truth_values():
    for records in (
        NUMBERS.astype(float),
        NUMBERS.astype(bool),
        pd.DataFrame(NUMBERS, columns=list("abc"), dtype=float),
    ):
        assert FITTED["hidden causes"](records).n_features_in_ == 3
    with pytest.raises(dp.SchemaError, match="not among its declared states"):
        FITTED["hidden causes"](NUMBERS + 0.5)


def test_decisions_agree_with_probabilities():
    fitted = FITTED["classifier"]()
    shares = fitted.predict_proba(NUMBERS[:2])
    np.testing.assert_allclose(fitted.decision_function(NUMBERS[:2]), np.log(shares[:, 1] / shares[:, 0]))


def test_a_search_says_what_it_costs_and_keeps_one_ledger():
    budget = dp.PrivacyBudget(3.5, 0.5)
    options = {**PLAN, "bounds": (0, 1), "classes": [0, 1], "steps": 1}
    model = dp.PrivateLogisticRegression(1.0, **options, budget=budget)
    with pytest.warns(UserWarning, match=r"each costs epsilon = 1.0\. They share a ledger\. Scores of held-out"):
        GridSearchCV(model, {"prior_rate": [1.0]}, cv=2).fit(NUMBERS, NUMBERS[:, 0])
    assert len(budget.history) == 3
    assert clone(model).budget is budget
    with pytest.raises(dp.BudgetExceededError):
        model.fit(NUMBERS, NUMBERS[:, 0])
    with pytest.warns(UserWarning, match="ties all to one ledger"):
        clone(dp.PrivateLogisticRegression(1.0, **options)).fit(NUMBERS, NUMBERS[:, 0])
    held = dp.PrivateFeatures(NUMBERS, NUMBERS[:, 0], bounds=(0, 1), classes=[0, 1], budget=budget)
    with pytest.raises(ValueError, match="has its own budget"):
        dp.PrivateLogisticRegression(1.0, **PLAN, budget=budget).fit(held)


def test_pgmpys_own_estimators_are_told_apart():
    schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    frame = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0))
    noisy = data.measure([("smoke", "lung")], 1.0)
    network = DiscreteBayesianNetwork([("smoke", "lung")])
    for handed in (noisy, data):
        with pytest.raises(AttributeError, match=r"estimator=dp\.AutoMLE"):
            network.fit(handed)
    markov = dp.PrivateMarkovNetwork([("smoke", "lung")]).fit(noisy)
    found = markov.predict(pd.DataFrame({"smoke": ["no", "no", "yes"]}, index=[4, 5, 6]))
    assert found["lung"][[4, 5]].tolist() == ["no", "no"]
    assert found.index.tolist() == [4, 5, 6]
    with pytest.raises(TypeError, match="public records"):
        markov.predict(data)
    with pytest.raises(ValueError, match="nothing to predict"):
        markov.predict(frame)


ESTIMATORS = [
    kind
    for room in (dp, papers)
    for kind in (getattr(room, name) for name in room.__all__)
    if inspect.isclass(kind) and issubclass(kind, Estimator)
]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_what_breaks_a_constraint_is_refused_by_name(kind):
    known = inspect.signature(kind).parameters
    for name in kind._constraints:
        assert name in known
        given = {"epsilon": 1.0, "delta": 1e-6}
        estimator = kind(**{name: value for name, value in given.items() if name in known})
        estimator._check_parameters()
        for wrong in (-1.5, float("nan"), "exact"):
            with pytest.raises(ValueError, match=name):
                estimator.set_params(**{name: wrong})._check_parameters()


def test_a_refused_parameter_charges_nothing():
    data = dp.PrivateDataset({("a", "b"): [[3, 1], [1, 3]]}, dp.Schema({"a": [0, 1], "b": [0, 1]}), dp.PrivacyBudget(1))
    with pytest.raises(ValueError, match="tolerance must be greater than 0"):
        dp.PrivateMarkovNetwork([("a", "b")]).fit(data, dp.papers.NaiveMLE(epsilon=1.0, tolerance=0.0))
    assert data.budget.history == ()


@pytest.mark.parametrize(
    "make",
    [
        lambda epsilon: dp.PairwiseMixture(epsilon, 1e-6, members=1, components=2),
        lambda epsilon: dp.PrivateStructureSearch(epsilon, 1e-6),
        lambda epsilon: dp.AutoMLE(epsilon, 1e-6),
        lambda epsilon: dp.CollectiveEM(epsilon, 1e-6),
    ],
    ids=["mixture", "search", "AutoMLE", "CollectiveEM"],
)
def test_a_fit_to_little_but_noise_says_so_once_by_the_rule_of_the_command_line(make):
    schema = dp.Schema({key: [0, 1, 2] for key in "abcdef"})
    records = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (1000, 6)), columns=list("abcdef"))
    records["b"] = records["a"]
    network = DiscreteBayesianNetwork([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")])
    for epsilon, lost in ((0.01, True), (20.0, False)):
        data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(epsilon, 1e-6), noise=dp.SimulatedNoise(0))
        estimator = make(epsilon)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            estimator.fit(*([network.copy()] if isinstance(estimator, dp.AutoMLE | dp.CollectiveEM) else []), data)
        said = [str(warning.message) for warning in caught if warning.category is NoiseWarning]
        reasons = hidden_by_noise([estimator.release_])
        assert said == [f"Noise hides much of the release: {reason}." for reason in reasons]
        assert len(reasons) == lost
        assert {warning.filename for warning in caught if warning.category is NoiseWarning} <= {__file__}


NETWORK = dp.PrivateBayesianNetwork([("a", "b")])


@pytest.mark.parametrize(
    ("mistake", "error", "words"),
    [
        (lambda: NETWORK.fit("records.csv"), ValueError, "costs privacy: give the estimator an epsilon and "),
        (lambda: NETWORK.fit(RECORDS), ValueError, "costs privacy: give the estimator an epsilon and states, AutoMLE"),
        (lambda: NETWORK.fit("release.zip"), ValueError, "read the release by NoisyMarginals.load"),
        (lambda: NETWORK.fit(epsilon=1.0), TypeError, r"fit takes no epsilon: .*dp.AutoMLE\(epsilon=1.0"),
        (lambda: MARKOV.fit(epsilon=1.0), TypeError, r"fit takes no epsilon: .*dp.AutoMLE\(epsilon=1.0"),
        (lambda: NETWORK.fit(RECORDS, dp.AutoMLE), TypeError, r"give an instance, AutoMLE\(epsilon=1.0, state"),
        (lambda: NETWORK.fit(RECORDS, DiscreteMLE), TypeError, r"is DiscreteMLE, .*AutoMLE\(\).*NotPrivateMLE"),
        (lambda: NETWORK.fit(RECORDS, 1.0), TypeError, r"estimator is float, .*AutoMLE\(\)"),
        (lambda: dp.AutoMLE(1.0).release_, NotFittedError, "This AutoMLE is not fitted yet, and fit sets release_"),
        (lambda: dp.PairwiseMixture(1.0).network_, AttributeError, "This PairwiseMixture is not fitted yet"),
        (lambda: dp.AutoMLE(1.0).estimate(), AttributeError, "AutoMLE has fit, which sets parameters_"),
        (lambda: dp.AutoMLE(1.0).wrong, AttributeError, "'AutoMLE' object has no attribute 'wrong'$"),
        (lambda: dp.PairwiseMixture(1.0).query(["a"]), AttributeError, "'query': ask the fitted network, .* network_"),
        (lambda: dp.plan_pairs(RECORDS), TypeError, "for a Schema, got DataFrame"),
        (lambda: dp.plan_households(SCHEMA), TypeError, "takes a HouseholdSchema, got Schema"),
        (lambda: dp.plan_accuracy(RECORDS, {("a",): 1.0}), TypeError, "takes a Schema, got DataFrame"),
        (lambda: dp.plan_measurements(SCHEMA, NETWORK), TypeError, "a network and a schema, in this order"),
    ],
)
def test_usual_mistakes_are_named_with_the_way_out(mistake, error, words):
    with pytest.raises(error, match=words):
        mistake()


@pytest.fixture(scope="module")
def chain():
    truth = random_markov_network(third_order_chain(6), 3, seed=0)
    records = truth.simulate(20_000, seed=0)
    data = dp.PrivateDataset(records, truth.schema_, dp.PrivacyBudget(10), noise=dp.SimulatedNoise(0))
    return truth, records, data.measure([tuple(edge) for edge in truth.edges()], 1.0)


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("kind", [dp.papers.NaiveMLE, dp.CollectiveEM, dp.NotPrivateMLE])
def test_too_few_iterations_are_told(chain, kind):
    truth, records, noisy = chain
    options, data = ({"state_names": truth.schema_}, records) if kind is dp.NotPrivateMLE else ({}, noisy)
    network = dp.PrivateMarkovNetwork(truth.edges())
    network.fit(data, kind(**options))
    with pytest.warns(ConvergenceWarning, match=f"fit of {kind.__name__} did not converge.*max_iter"):
        network.fit(data, kind(max_iter=1, **options))


def test_a_warning_points_at_the_line_that_called_fit_also_through_pgmpy():
    records, schema = pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1] * 500}), dp.Schema({"a": [0, 1], "b": [0, 1]})
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1), noise=dp.SimulatedNoise(0))
    noisy = data.measure([("a", "b")], 1.0)
    for kind in (dp.PrivateBayesianNetwork, DiscreteBayesianNetwork):
        with pytest.warns(ConvergenceWarning) as caught:
            kind([("a", "b")]).fit(noisy, estimator=dp.CollectiveEM(max_iter=1))
        assert {warning.filename for warning in caught if warning.category is ConvergenceWarning} == {__file__}


def test_loopy_propagation_that_does_not_converge_is_told(chain, monkeypatch):
    truth, _, noisy = chain
    from pgmpy_dp.inference import FactorGraph

    build = FactorGraph.build
    monkeypatch.setattr(FactorGraph, "build", lambda cards, scopes: build(cards, scopes, max_iter=2))
    with pytest.warns(ConvergenceWarning, match="Loopy belief propagation of NaiveMLE did not converge"):
        dp.PrivateMarkovNetwork(truth.edges()).fit(noisy, dp.papers.NaiveMLE(inference="loopy", max_iter=20))


@pytest.mark.filterwarnings("error::sklearn.exceptions.ConvergenceWarning")
def test_a_fit_that_is_cut_short_is_told_and_by_default_it_is_not_cut_short(chain):
    """At 60 iterations a cell is off by 0.008, which the last steps show: they still gain."""
    truth, records, _ = chain
    data = dp.PrivateDataset(records[:10_000], truth.schema_, dp.PrivacyBudget(1), noise=dp.SimulatedNoise(0))
    noisy, network = data.measure([tuple(edge) for edge in truth.edges()], 0.1), dp.PrivateMarkovNetwork(truth.edges())
    fits = [network.fit(noisy, dp.CollectiveEM(**options)).copy() for options in ({}, {"max_iter": 20_000})]
    with pytest.warns(ConvergenceWarning, match="did not converge"):
        fits.append(network.fit(noisy, dp.CollectiveEM(max_iter=60)).copy())
    default, optimum, early = (
        np.concatenate([fit.query(edge).values.ravel() for edge in truth.edges()]) for fit in fits
    )
    assert np.abs(default - optimum).max() < 2e-4
    assert np.abs(early - optimum).max() > 2e-3


def test_tables_of_many_states_that_noise_hides_name_what_measures_them_in_groups():
    schema = dp.Schema({"place": list(range(300)), "ill": [0, 1]})
    frame = pd.DataFrame({"place": np.arange(900) % 300, "ill": np.arange(900) % 2})
    release = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(0.1)).measure([("place", "ill")], epsilon=0.1)
    with pytest.warns(NoiseWarning, match=r"place has 300 states: AutoMLE and PairwiseMixture, .* in groups of states"):
        DiscreteBayesianNetwork([("place", "ill")]).fit(release, estimator=dp.AutoMLE())
