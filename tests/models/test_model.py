"""Every fitted model answers the same calls in the same sense, takes the same values, and refuses the same mistakes."""

import copy
import pickle
import re
import warnings
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pgmpy.factors.discrete import DiscreteFactor

import pgmpy_dp as dp
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.models.questions import Question

BINS, UNKNOWN = [0, 18, 40, 65], {"missing_values": ["?"]}
AGE, YES = dp.Bins(BINS), ["yes", "no"]
NUMBER, STATE = 20, "18_to_40"  # of `known`, whatever the model
ASIA = [
    ("age", "smoke"), ("smoke", "lung"), ("smoke", "bronc"), ("asia", "tub"), ("lung", "either"), ("tub", "either"),
    ("either", "xray"), ("either", "dysp"), ("bronc", "dysp"),
]  # fmt: skip
GRID = [("age", "smoke"), ("smoke", "lung"), ("lung", "xray"), ("age", "xray")]
RECORDS = 3000


@dataclass(frozen=True)
class Case:
    """A model, a variable to ask for, one with bins and a state for missing values, and what it has."""

    model: Any
    asked: str
    known: str
    bounded: bool = True
    draws: int = 4


def people() -> pd.DataFrame:
    """Draw records: an age, of which one in twenty is missing, and answers that follow each other."""
    draw = np.random.default_rng(0)
    age = draw.integers(0, 65, RECORDS).astype(object)
    columns: dict[str, Any] = {"age": age}
    likely = (age.astype(int) >= 18) * 0.4 + 0.2
    for name in ("smoke", "lung", "xray", "bronc", "asia", "tub", "either", "dysp"):
        columns[name] = np.where(draw.random(RECORDS) < likely, "yes", "no")
        likely = np.where(columns[name] == "yes", 0.7, 0.2)
    frame = pd.DataFrame(columns)
    frame.loc[draw.random(RECORDS) < 0.05, "age"] = "?"
    return frame


def schema(*names: str, rules: Any = ()) -> dp.Schema:
    states = {name: AGE if name.startswith("age") else YES for name in names}
    missing = {name: "unknown" for name in names if name.startswith("age")}
    return dp.Schema(states, missing=missing, rules=rules, **UNKNOWN)


def release(frame: pd.DataFrame, declared: dp.Schema, cliques: Any, delta: float = 0.0) -> dp.NoisyMarginals:
    data = dp.PrivateDataset(frame, declared, dp.PrivacyBudget(8.0, delta), noise=dp.SimulatedNoise(1))
    return data.measure(cliques, 8.0, **({"delta": delta, "mechanism": "gaussian"} if delta else {}))


@cache
def asia() -> Case:
    names = sorted({name for edge in ASIA for name in edge})
    network = dp.PrivateBayesianNetwork(ASIA)
    families = [(name, *network.get_parents(name)) for name in network.nodes()]
    return Case(network.fit(release(people(), schema(*names), families)), "lung", "age", draws=20)


def chain() -> Case:
    frame = people()[["age"]]
    frame["age2"], frame["age3"] = np.roll(frame["age"], 1), np.roll(frame["age"], 2)
    edges = [("age", "age2"), ("age2", "age3")]
    network = dp.PrivateMarkovNetwork(edges, tied=[edges])
    return Case(network.fit(release(frame, schema("age", "age2", "age3"), edges)), "age3", "age", draws=20)


@cache
def grid() -> Case:
    network = dp.PrivateMarkovNetwork(GRID)
    return Case(network.fit(release(people(), schema("age", "smoke", "lung", "xray"), GRID)), "lung", "age", draws=20)


def mixture(rules: Any = ()) -> Case:
    declared = schema("age", "smoke", "lung", "xray", rules=rules)
    frame = people()
    if rules:
        frame.loc[frame["age"].isin(range(18)), "smoke"] = "no"
    noisy = release(frame, declared, dp.plan_pairs(declared)[0], 1e-6)
    return Case(dp.PairwiseMixture(components=6, members=2).fit(noisy).network_, "lung", "age")


@cache
def ruled() -> Case:
    return mixture([dp.Forbidden({"age": ["0_to_18"], "smoke": ["yes"]})])


@cache
def households() -> Case:
    homes = pd.DataFrame({"id": range(300), "tenure": ["owned", "rented"] * 150})
    members = people()[["age", "smoke"]][:600].assign(id=np.arange(600) // 2)
    declared = dp.HouseholdSchema(dp.Schema({"tenure": ["owned", "rented"]}), schema("age", "smoke"), "id", 3)
    data = dp.PrivateHouseholds(homes, members, declared, dp.PrivacyBudget(8.0, 1e-6), noise=dp.SimulatedNoise(1))
    estimator = dp.HouseholdMixture(epsilon=8.0, delta=1e-6, components=6, members=2)
    return Case(estimator.fit(data).network_, "smoke", "age", bounded=False)


MODELS = {make.__name__: make for make in (asia, chain, grid, mixture, ruled, households)}


@pytest.fixture(scope="module", params=MODELS)
def case(request: pytest.FixtureRequest) -> Case:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = MODELS[request.param]()
        if made.bounded:
            made.model.sample_draws(draws=made.draws, seed=0)
    return made


@pytest.fixture(autouse=True)
def quiet() -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a chain of 20 draws, and a network that its records contradict
        yield


def total(case: Case) -> int:
    return round(getattr(case.model, "total_", None) or case.model.release_.total)


def test_an_answer_is_a_distribution(case):
    found = case.model.query([case.asked, case.known])
    assert found.variables == [case.asked, case.known]
    assert found.values.sum() == pytest.approx(1)
    joint = case.model.marginal([case.asked, case.known])
    np.testing.assert_allclose(joint, found.values)
    given = case.model.query([case.asked], {case.known: STATE})
    column = found.values[:, list(found.state_names[case.known]).index(STATE)]
    np.testing.assert_allclose(given.values, column / column.sum(), rtol=1e-6)


def test_a_value_is_a_state_a_number_in_a_bin_or_a_missing_text(case):
    for ask in (
        lambda known: case.model.query([case.asked], known).values,
        lambda known: list(case.model.map_query([case.asked], known).values()),
        lambda known: case.model.expectation(numbers(case), known, interval=None)["value"].to_numpy(),
    ):
        for value, state in ((NUMBER, STATE), (np.int64(NUMBER), STATE), ("?", "unknown")):
            np.testing.assert_array_equal(ask({case.known: value}), ask({case.known: state}))


def numbers(case: Case) -> dict[str, dict[Any, float]]:
    states = case.model.query([case.asked]).state_names[case.asked]
    return {case.asked: {state: float(place) for place, state in enumerate(states)}}


def test_the_most_probable_state_and_the_mean_follow_from_the_distribution(case):
    found = case.model.query([case.asked], {case.known: STATE})
    best = case.model.map_query([case.asked], {case.known: STATE})
    assert best == {case.asked: found.state_names[case.asked][int(found.values.argmax())]}
    mean = case.model.expectation(numbers(case), {case.known: STATE}, interval=None)
    assert mean.loc[case.asked, "value"] == pytest.approx(found.values @ np.arange(found.values.size))


def test_bounds_are_for_the_population_and_hold_the_narrower_ones_of_the_records(case):
    if not case.bounded:
        for ask in (
            lambda: case.model.query([case.asked], interval=0.9),
            lambda: case.model.expectation(numbers(case)),
            lambda: case.model.map_probability([case.asked]),
            lambda: case.model.draws_,
            lambda: case.model.sample_draws(),
            case.model.check_fit,
        ):
            with pytest.raises(ValueError, match="no bounds and no test of fit"):
                ask()
        return
    widths = []
    for given in ({}, {case.known: NUMBER}):
        population, records, narrow = (
            case.model.query([case.asked], given, interval=interval, target=target)
            for interval, target in ((0.9, "population"), (0.9, "records"), (0.5, "population"))
        )
        pd.testing.assert_frame_equal(case.model.query([case.asked], given, interval=0.9), population)
        means = [case.model.expectation(numbers(case), given, 0.9, target) for target in ("population", "records")]
        for outer, inner in ((population, records), (population, narrow), means):
            assert (outer["lower"] <= inner["lower"]).all()
            assert (inner["lower"] <= inner["value"]).all()
            assert (inner["value"] <= inner["upper"]).all()
            assert (inner["upper"] <= outer["upper"]).all()
            np.testing.assert_allclose(outer["value"], inner["value"])
        assert population["value"].sum() == pytest.approx(1)
        assert 0 <= population["lower"].min() <= population["upper"].max() <= 1
        widths.append([(bounds["upper"] - bounds["lower"]).sum() for bounds in (population, records)])
    assert np.greater(*np.sum(widths, axis=0))
    state, sure = case.model.map_probability([case.asked], {case.known: NUMBER})
    assert state[case.asked] == population["value"].idxmax()
    assert 0.6 < sure <= 1  # in all of these the noise leaves it likelier than not


def test_draws_repeat(case):
    if not case.bounded:
        return
    held = case.model.draws_
    assert case.model.draws_ is held
    before = case.model.query([case.asked], interval=0.9)
    for twin in (copy.deepcopy(case.model), pickle.loads(pickle.dumps(case.model))):
        pd.testing.assert_frame_equal(twin.query([case.asked], interval=0.9), before)
        twin.sample_draws(case.draws, seed=1)
        assert not twin.query([case.asked], interval=0.9).equals(before)
    case.model.sample_draws(case.draws, seed=0)
    pd.testing.assert_frame_equal(case.model.query([case.asked], interval=0.9), before)


def test_the_release_is_held_against_the_model(case):
    if not case.bounded:
        return
    check = case.model.check_fit()
    assert check is case.model.check_fit()
    assert np.isnan(check.p_value) or 0 <= check.p_value <= 1
    assert {"p_value", "excess", "detectable"} <= set(check.pairs.columns)
    assert case.model.guarantee_ == case.model.release_.guarantee


def test_tables_of_a_release_are_compared_with_the_model(case):
    if case.bounded:
        found = dp.evaluation.compare(case.model.release_, case.model)
        assert list(found.columns) == ["error", "noise", "excess"]
        assert found["error"].max() < 0.1


def drawn(case: Case, *arguments: Any, **options: Any) -> pd.DataFrame:
    """Draw records that have all variables of the model."""
    made = case.model.simulate(*arguments, **options)
    return made if isinstance(made, pd.DataFrame) else made[0].merge(made[1])


def test_records_are_as_many_as_the_release_tells_and_repeat(case):
    made = case.model.simulate(seed=1)
    first = made if isinstance(made, pd.DataFrame) else made[0]
    assert len(first) == total(case)
    pd.testing.assert_frame_equal(drawn(case, 50, seed=2), drawn(case, 50, seed=2))
    assert set(drawn(case, 50, seed=2, numbers="midpoint")[case.known].dropna()) <= {8, 9, 28, 29, 51, 52}
    if isinstance(made, pd.DataFrame):
        assert set(case.model.simulate(50, evidence={case.known: NUMBER}, seed=2)[case.known]) == {STATE}
        assert len(case.model.simulate(50, predicting=case.asked, seed=2)) == 50
        with pytest.raises(dp.SchemaError, match="smokee"):
            case.model.simulate(50, predicting="smokee")
    else:
        with pytest.raises(ValueError, match="without predicting"):
            case.model.simulate(50, predicting=case.asked)
    with pytest.raises(ValueError, match="numbers must be"):
        case.model.simulate(5, numbers="mean")
    with pytest.raises(ValueError, match="n_samples must be a whole number"):
        case.model.simulate(2.5)


def test_records_of_which_some_is_known_are_completed(case):
    model = getattr(case.model, "persons", case.model)
    rows = pd.DataFrame({case.known: [NUMBER] * 3000}, index=range(5, 3005))
    made = model.simulate(partial_samples=rows, seed=1)
    assert set(made[case.known]) == {STATE}
    assert set(model.simulate(3000, partial_samples=rows, seed=1).columns) == set(model.simulate(5, seed=1).columns)
    if isinstance(model, dp.PrivateBayesianNetwork):  # by pgmpy's method, which draws ancestors as if nothing was known
        return
    pd.testing.assert_frame_equal(made, model.simulate(partial_samples=rows, seed=1))
    assert made.index.equals(rows.index)
    shares = made[case.asked].value_counts(normalize=True).reindex(model.schema_.states[case.asked]).to_numpy()
    fitted = model._fitted
    chances = fitted.distribution.given(Question.of(fitted.schema, None, {case.known: STATE}).places).marginal(
        [case.asked]
    )
    np.testing.assert_allclose(shares, chances, atol=0.04)
    numbers = model.simulate(partial_samples=rows.astype(object).mask(rows.index.to_series() > 3000), numbers="drawn")
    assert (numbers[case.known].loc[:3000] == NUMBER).all()
    assert numbers[case.known].loc[3001:].nunique() > 1
    for options, outputs in (
        ({"n_samples": 4}, "has 3000 records for 4"),
        ({"evidence": {case.asked: "a"}}, "columns of"),
    ):
        with pytest.raises(ValueError, match=outputs):
            model.simulate(partial_samples=rows, **options)


def test_log_likelihood_reads_records_as_evidence_is_read(case):
    records = drawn(case, 60, seed=3)
    if "id" in records:
        records["size"] = records.groupby("id")["age"].transform("size")
    labels = records.astype({case.known: object})
    mean = case.model.log_likelihood(numbered(labels, case))
    assert mean < 0
    variables = [name for name in records if name != "id"]
    own = [np.log(case.model.query(variables).get_value(**row)) for row in labels[variables].to_dict("records")[:5]]
    assert case.model.log_likelihood(numbered(labels[:5], case)) == pytest.approx(np.mean(own))
    assert case.model.log_likelihood(records) == pytest.approx(mean)  # the names of bins, as they were drawn
    assert case.model.log_likelihood(labels) == pytest.approx(mean)
    with pytest.raises(dp.SchemaError):
        case.model.log_likelihood(records.drop(columns=case.known))
    with pytest.raises(ValueError, match="no records"):
        case.model.log_likelihood(numbered(labels[:0], case))


def numbered(records: pd.DataFrame, case: Case) -> pd.DataFrame:
    """Put a number for each bin, as records have them."""
    middles = {"0_to_18": 8, "18_to_40": 29, "40_to_65": 52, "unknown": None}
    names = [name for name in records if name.startswith("age")]
    return records.assign(**{name: records[name].astype(object).map(middles).astype("Int64") for name in names})


def test_predictions_follow_from_the_distribution_of_each_row(case):
    rows = pd.DataFrame({case.known: [NUMBER, "?", None]})
    found, shares = case.model.predict(rows), case.model.predict_probability(rows)
    assert found[case.known].tolist()[:2] == [NUMBER, "?"]
    rest = [variable for variable in found if variable != case.known]
    expected = case.model.map_query(rest, {case.known: NUMBER})
    assert {variable: found[variable][0] for variable in rest} == expected
    for row, given in enumerate(({case.known: NUMBER}, {case.known: "unknown"})):
        exact = case.model.query([case.asked], given)
        for state, share in zip(exact.state_names[case.asked], exact.values, strict=True):
            assert shares[f"{case.asked}_{state}"][row] == pytest.approx(share, abs=1e-9)
    drawn = case.model.predict(rows, stochastic=True, seed=0)
    pd.testing.assert_frame_equal(drawn, case.model.predict(rows, stochastic=True, seed=0))
    with pytest.raises(ValueError, match="nothing to predict"):
        case.model.predict(drawn)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda c: c.model.query(["smokee"]), dp.SchemaError, "smokee"),
        (lambda c: c.model.query([c.asked], {"smokee": 1}), dp.SchemaError, "smokee"),
        (lambda c: c.model.query([c.asked], {c.known: "18_to_4O"}), dp.SchemaError, "Did you mean '18_to_40'"),
        (lambda c: c.model.query([c.known], {c.asked: -7}), dp.SchemaError, "has no state -7"),
        (lambda c: c.model.query(c.asked), TypeError, "in a list"),
        (lambda c: c.model.query([c.asked], [c.known]), TypeError, "must be a dict"),
        (lambda c: c.model.query([c.asked], show_progress=False), TypeError, "dp.VariableElimination"),
        (lambda c: c.model.query([c.asked], {c.asked: "yes"}), dp.SchemaError, "both asked for and given|no state"),
        (lambda c: c.model.expectation({c.asked: {}}), dp.SchemaError, "Give a number for each state"),
        (lambda c: c.model.map_query(["smokee"]), dp.SchemaError, "smokee"),
        (lambda c: c.model.marginal([c.asked, "smokee"]), dp.SchemaError, "smokee"),
        (lambda c: c.model.simulate(5, evidence={"smokee": 1}), ValueError, "smokee|without evidence"),
    ],
)
def test_mistakes_are_refused_alike(case, call, error, message):
    with pytest.raises(error, match=message):
        call(case)


@pytest.mark.parametrize(
    "wrong",
    [{"target": "sample"}, *({"interval": i} for i in (0, 1, 1.0, -0.1, 90, True, "0.9", float("nan")))],
    ids=str,
)
def test_target_and_interval_are_checked_before_anything_is_drawn(case, wrong, monkeypatch):
    monkeypatch.setattr(type(case.model), "sample_draws", lambda *_: pytest.fail("drawn"))
    monkeypatch.setattr(type(case.model), "draws_", property(lambda _: pytest.fail("drawn")))
    (name, value), model = *wrong.items(), case.model
    calls = [
        lambda: model.query([case.asked], **{"interval": 0.9, **wrong}),
        lambda: model.expectation(numbers(case), **wrong),
    ]
    if name == "target":
        calls.append(lambda: model.map_probability([case.asked], **wrong))
    if isinstance(model, dp.PrivateBayesianNetwork):
        calls.append(lambda: model.cpd_interval(case.asked, **wrong))
    for call in calls:
        with pytest.raises(ValueError, match=re.escape(f"{name} is {value!r}")):
            call()


def test_of_many_joint_states_the_most_probable_one_comes_with_the_share_of_draws_that_agree(case, monkeypatch):
    """Drawing errors of every joint state took 76 GiB for ten columns of Adult."""
    if not case.bounded:
        return
    monkeypatch.setattr("pgmpy_dp.networks.fitted_network.FEW_STATES", 3)
    monkeypatch.setattr("pgmpy_dp.models.mixture_network.FEW_STATES", 3)
    asked = [case.asked, case.known]
    state, sure = case.model.map_probability(asked)
    assert state == case.model.map_query(asked)
    assert sure * case.draws == pytest.approx(round(sure * case.draws))
    monkeypatch.setattr(np.random, "default_rng", lambda *_: pytest.fail("errors of every state are drawn"))
    assert case.model.map_probability(asked) == (state, sure)


def test_impossible_evidence_is_named():
    case = ruled()
    given = {"age": 3, "smoke": "yes"}
    for ask in (
        lambda: case.model.query(["lung"], given),
        lambda: case.model.map_query(["lung"], given),
        lambda: case.model.simulate(5, evidence=given),
    ):
        with pytest.raises(ValueError, match=r"\{'age': '0_to_18', 'smoke': 'yes'\} has probability zero"):
            ask()


def test_a_file_is_read_by_one_function_and_by_its_own_class_alone(case, tmp_path):
    case.model.save(tmp_path / "model.json")
    again = dp.load(tmp_path / "model.json")
    assert type(again) is type(case.model)
    # The file has no release, by which answers of a network that the test of fit refuses are corrected.
    np.testing.assert_allclose(again.marginal([case.asked]), case.model.marginal([case.asked]), rtol=1e-4)
    assert again.guarantee_ == case.model.guarantee_
    kinds = {dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork, dp.PrivateMixtureNetwork, dp.PrivateHouseholdNetwork}
    for other in kinds - {type(case.model)}:
        with pytest.raises(dp.ReleaseFormatError, match=r"pgmpy_dp\.load"):
            other.load(tmp_path / "model.json")
    if not case.bounded:
        return
    for ask in (lambda: again.query([case.asked], interval=0.9), again.check_fit, lambda: again.draws_):
        with pytest.raises(ValueError, match="no release"):
            ask()
    again.attach_release(case.model.release_)
    again.sample_draws(case.draws, seed=0)
    found, held = (model.query([case.asked], interval=0.9) for model in (again, case.model))
    np.testing.assert_allclose(found, held)
    case.model.save(tmp_path / "model.zip")
    assert dp.load(tmp_path / "model.zip").release_ == case.model.release_


def test_what_no_format_of_a_model_holds_is_neither_written_nor_read(case, tmp_path):
    if not hasattr(case.model, "to_junction_tree"):
        for name in ("model.bif", "model.uai", "model"):
            with pytest.raises(
                ValueError, match=r"saved as \.json( or \.zip: |, since .*: persons\.)to_bayesian_network\(\)\.save"
            ):
                case.model.save(tmp_path / name)
    schema("age", "smoke").save(tmp_path / "schema.json")
    dp.PrivacyBudget.open(tmp_path / "ledger.json", 1.0)
    asia().model.release_.save(tmp_path / "release.zip")
    for name, outputs in (
        ("schema.json", r"a schema and no model: pgmpy_dp\.Schema\.load"),
        ("ledger.json", r"a ledger and no model: pgmpy_dp\.PrivacyBudget\.open"),
        ("release.zip", r"a release and no model: pgmpy_dp\.release\.Release\.load"),
    ):
        for read in (dp.load, type(case.model).load):
            with pytest.raises(dp.ReleaseFormatError, match=outputs):
                read(tmp_path / name)


def test_without_a_release_a_network_needs_the_number_of_records(tmp_path):
    for make in (grid, asia):
        make().model.save(tmp_path / "model.json")
        bare = dp.load(tmp_path / "model.json")
        with pytest.raises(ValueError, match="give n_samples"):
            bare.simulate()
        with pytest.raises(ValueError, match=r"no release.*edges of its bins.*attach_release"):
            bare.simulate(5, numbers="drawn")
        assert len(bare.simulate(5)) == 5


def test_bounds_belong_to_their_states_whatever_their_order():
    """A release lists states in another order than a network that was made elsewhere."""
    case = grid()
    network = dp.PrivateMarkovNetwork(GRID)
    factors = []
    for factor in case.model.get_factors():
        axes = [factor.variables.index(v) for v in factor.variables if v == "lung"]
        states = {v: names[::-1] if v == "lung" else names for v, names in factor.state_names.items()}
        factors.append(DiscreteFactor(factor.variables, factor.cardinality, np.flip(factor.values, axes), states))
    network.set_factors(factors)
    network.attach_release(case.model.release_)
    for model in (network, case.model):
        model.sample_draws(20)
    given = {"lung": "yes"}
    for asked, known in ((["lung"], {}), (["age"], given), (["lung", "age"], {})):
        found, held = (model.query(asked, known, interval=0.9) for model in (network, case.model))
        np.testing.assert_allclose(found.loc[held.index], held)


def test_households_answer_at_the_level_that_a_question_names():
    model = households().model
    np.testing.assert_allclose(model.marginal(["tenure", "size"]), model.households.marginal(["tenure", "size"]))
    np.testing.assert_allclose(model.marginal(["tenure", "smoke"]), model.persons.marginal(["tenure", "smoke"]))
    given = {"size": 2}
    assert model.query(["tenure"], given).values == pytest.approx(model.households.query(["tenure"], given).values)


def test_a_right_mixture_fails_its_check_as_rarely_as_is_said_and_a_wrong_one_does():
    """One right one in a hundred fails: of six, more than one with probability 1.5e-3. Their p-values are uniform."""
    sick, well = np.array([[0.2, 0.8], [0.7, 0.3]]), np.array([[0.5, 0.5], [0.9, 0.1]])
    names = {"a": 2, "b": 2, "c": 2}
    right = Mixture.of(names, [("a",), ("b",), ("c",)], [0.4, 0.6], [sick, sick, well])
    wrong = Mixture.of(names, [("a",), ("b",), ("c",)], [1.0], [right.marginal([v])[None] for v in names])
    declared = dp.Schema({name: [0, 1] for name in names})
    found: dict[str, list[float]] = {"right": [], "wrong": []}
    for seed in range(6):
        records = pd.DataFrame(right.sample(500, np.random.default_rng(seed)).astype(int), columns=[*names])
        data = dp.PrivateDataset(records, declared, dp.PrivacyBudget(3.0, 1e-6), noise=dp.SimulatedNoise(seed))
        noisy = data.measure(dp.plan_pairs(declared)[0], 3.0, delta=1e-6, mechanism="gaussian")
        for name, mixture_ in (("right", right), ("wrong", wrong)):
            model = dp.PrivateMixtureNetwork(declared, mixture_, 500, noisy.guarantee)
            model.attach_release(noisy)
            found[name].append(model.check_fit().p_value)
    assert sum(p_value < 0.01 for p_value in found["right"]) <= 1
    assert 0.2 < np.median(found["right"]) < 0.8
    assert max(found["wrong"]) < 0.01
