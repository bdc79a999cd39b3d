"""Coefficients: what a record moves is paid for exactly, and what cannot be drawn is refused unpaid."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from noises import Noted, moved

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.contrasts import Residuals
from pgmpy_dp.inference import GaussianNoise
from pgmpy_dp.observed.reading import observe
from pgmpy_dp.privacy.blocks import BLUR, discrete_gaussian_epsilon
from pgmpy_dp.release.contrasts import residual_sensitivity

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["p", "q", "r"], "c": ["u", "v", "w", "z"], "d": ["only"]})
RECORDS = list(itertools.product(*SCHEMA.states.values()))


def asked(records, relation, cliques, epsilon):
    noise = Noted()
    frame = pd.DataFrame(records, columns=list(SCHEMA.variables))
    dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(epsilon), relation, noise).measure_coefficients(cliques, epsilon)
    return noise.seen


@pytest.mark.parametrize(
    ("cliques", "epsilon"),
    [
        ([("b", "a"), ("c", "b")], 0.1),
        ([("a",), ("a", "b"), ("b", "c")], 3.7),
        ([("a", "b", "c")], 1.0),
        ([("c", "a"), ("b",)], 1.0),
        ([("d", "c"), ("d",)], 1.0),
    ],
)
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_no_record_costs_more_than_epsilon(relation, cliques, epsilon):
    """Sums of exact fractions, over all neighbours and without a tolerance; the worst is near."""
    found = [asked([RECORDS[0], record], relation, cliques, epsilon) for record in RECORDS]
    others = [asked([RECORDS[0]], relation, cliques, epsilon)] if relation == "add_remove" else found
    worst = max(moved(one, other, 1) for one, other in itertools.product(found, others))
    assert Fraction(str(epsilon)) * (1 - Fraction(1, 10**7)) < worst <= Fraction(str(epsilon))


def test_variables_of_one_state_have_no_coefficients_beside_the_number_of_records():
    schema = dp.Schema({"a": ["only"], "b": ["alone"]})
    frame = pd.DataFrame({"a": ["only"] * 3, "b": ["alone"] * 3})
    for relation, expected in (("replace_one", []), ("add_remove", [[3]])):
        noise = Noted()
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0), relation, noise)
        released = data.measure_coefficients([("a", "b")], 1.0)
        assert [counts for _, counts, _ in noise.seen] == expected
        assert len(released.values) == len(expected)
        assert released.tables["a", "b"].tolist() == [[float(released.to_coefficients().values[()])]]


VARIED = dp.Schema({"a": ["x", "y"], "b": ["p", "q", "r"], "one": ["only"]})
EACH_RECORD = list(itertools.product(*VARIED.states.values()))
SCALES = {(): 30.0, ("a",): 20.0, ("b",): 25.0, ("b", "a"): 17.0}


def measured(records, relation, scales=SCALES):
    noise = Noted()
    frame = pd.DataFrame(records, columns=list(VARIED.variables))
    data = dp.PrivateDataset(frame, VARIED, dp.PrivacyBudget(50.0, 1e-6), relation, noise)
    residuals = data.measure_residuals(scales, delta=1e-6)
    return noise.seen, residuals, data.budget.history[0]


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
def test_no_record_costs_more_than_is_charged(relation):
    """Exact squared lengths of what a record moves over the noise; the price of that is the charge."""
    found = [measured([EACH_RECORD[0], record], relation) for record in EACH_RECORD]
    before = [measured([EACH_RECORD[0]], relation)] if relation == "add_remove" else found
    worst = Fraction(0)
    for (one, _, _), (other, _, _) in itertools.product(found, before):
        worst = max(worst, moved(one, other, 2))
    _, residuals, charge = found[0]
    minimum = min(scale for *_, scale in found[0][0])
    assert 0.999 * float(charge.epsilon) <= discrete_gaussian_epsilon(float(worst), minimum, 1e-6)
    assert Fraction(discrete_gaussian_epsilon(float(worst), minimum, 1e-6)) <= charge.epsilon
    assert worst / 2 <= Fraction(residuals.guarantee.rho) <= worst / 2 * (1 + Fraction(1, 10**6))


@pytest.mark.parametrize(
    ("scales", "relation", "match"),
    [
        ([30.0], "add_remove", "mapping"),
        ({}, "add_remove", "No cliques"),
        ({(): 1.0}, "add_remove", "No cliques"),
        ({(): 1.0, ("a",): 1e-3}, "add_remove", "too small"),
        ({(): 1.0, ("a",): 1e15}, "add_remove", "too large"),
        ({(): 1.0, "a": 1.0}, "add_remove", "string"),
        ({("a",): 20.0}, "add_remove", "empty set"),
        ({(): 30.0, ("b", "a"): 17.0, ("a",): 20.0}, "add_remove", r"\('b',\) is missing"),
        ({("b", "a"): 17.0, ("b",): 20.0}, "replace_one", r"\('a',\) is missing"),
        ({(): 30.0, ("a",): 20.0, ("a", "one"): 21.0}, "add_remove", "two scales"),
        ({("one",): 20.0}, "replace_one", "nothing to measure"),
        ({(): 30.0, ("a",): 0.0}, "add_remove", "scale of"),
        ({(): 30.0, ("a",): float("nan")}, "add_remove", "scale of"),
        ({(): 30.0, ("z",): 1.0}, "add_remove", "'z'"),
    ],
)
def test_scales_that_make_up_no_tables_are_refused_unpaid(scales, relation, match):
    frame = pd.DataFrame(EACH_RECORD, columns=list(VARIED.variables))
    data = dp.PrivateDataset(frame, VARIED, dp.PrivacyBudget(50.0, 1e-6), relation)
    with pytest.raises(ValueError, match=match):
        data.measure_residuals(scales, delta=1e-6)
    assert data.budget.history == ()


def test_a_variable_of_one_state_adds_nothing():
    with_it = measured(EACH_RECORD, "add_remove", {(): 30.0, ("a", "one"): 20.0, ("one",): 30.0})
    without = measured(EACH_RECORD, "add_remove", {(): 30.0, ("a",): 20.0})
    assert with_it[0] == without[0]
    assert replace(with_it[2], id="", holder=None) == replace(without[2], id="", holder=None)
    assert np.isclose(with_it[1].guarantee.epsilon, without[1].guarantee.epsilon, rtol=0, atol=0)


def test_residuals_are_observed_with_the_noise_that_they_have():
    _, residuals, _ = measured(EACH_RECORD, "replace_one")
    assert isinstance(observe(residuals, ["a", "b"]).noise, GaussianNoise)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("rho", [1e-4, 0.3, 40.0])
def test_residuals_of_a_step_cost_its_rho_by_brute_force(relation, rho):
    """The worst of all neighbours, with noise whose variance is less by that of the integers, and nearly that."""
    scales = {(): 9.0, ("a",): 4.0, ("b",): 7.0, ("c",): 5.0, ("a", "b"): 3.0, ("b", "c"): 6.0}
    scales = scales if relation == "add_remove" else {subset: scale for subset, scale in scales.items() if subset}
    changes, smallest = [], np.inf
    for record in RECORDS:
        noise = Noted()
        frame = pd.DataFrame([record], columns=list(SCHEMA.variables))
        data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1e9, 1e-3), relation, noise)
        data.release(Residuals(scales, 1e-6, rho=rho))
        smallest = min(smallest, *(scale for *_, scale in noise.seen))
        changes.append(np.concatenate([np.array(counts) / scale for _, counts, scale in noise.seen]))
    pairs = itertools.combinations(changes, 2) if relation == "replace_one" else ((one, 0.0) for one in changes)
    worst = max(float(((one - other) ** 2).sum()) for one, other in pairs) / 2.0 / (1.0 - BLUR / smallest**2)
    assert rho * (1 - 1e-7) < worst <= rho


def test_residuals_join_the_tables_of_earlier_stages_at_one_price():
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({name: generator.integers(2, size=2000) for name in "abcd"})
    data = dp.PrivateDataset(frame, dp.Schema({name: [0, 1] for name in frame}), dp.PrivacyBudget(1.0, 1e-6))
    plan = dp.PairwiseMixture(1.0, 1e-6).plan(data.schema, records=2000)
    release = data.release(plan.mechanism)
    assert isinstance(release, dp.NoisyResiduals)
    assert (float(data.budget.spent.epsilon), len(data.budget.history)) == (1.0, 1)
    cards = dict.fromkeys(frame, 2)
    assert 0.99 * release.guarantee.rho < residual_sensitivity(release.scales, cards, "add_remove") / 2
    assert residual_sensitivity(release.scales, cards, "add_remove") / 2 <= release.guarantee.rho
    foreseen = {clique: plan.noise[clique] for clique in release.cliques}
    assert foreseen == pytest.approx({clique: release.noise(clique)[1] for clique in foreseen}, rel=1e-3)
