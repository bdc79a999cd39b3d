"""Plans for an accuracy: variances by brute force, cost beside lower bounds of it, and that they can be measured."""

import itertools
import json
from functools import reduce

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from scipy.optimize import minimize
from scipy.special import softmax

import pgmpy_dp as dp
from pgmpy_dp.cli import main
from pgmpy_dp.fitting.plans import accuracy
from pgmpy_dp.fitting.plans.accuracy import _errors, _gaussian_price, _lowest_cost, plan_accuracy

SCHEMA = dp.Schema({"a": [0, 1], "b": [0, 1, 2], "c": [0, 1, 2, 3]})
WANTED = {("a", "b"): 40.0, ("b", "c"): 60.0, ("a",): 15.0, ("a", "c"): 90.0}


def summing(clique):
    """The matrix that sums the whole joint table to a clique's."""
    parts = [np.eye(len(states)) if v in clique else np.ones((1, len(states))) for v, states in SCHEMA.states.items()]
    return reduce(np.kron, parts)


@pytest.fixture(scope="module")
def plan():
    return plan_accuracy(SCHEMA, WANTED, confidence=0.9, delta=1e-6)


def projection(subset):
    """The matrix that projects the whole joint table on the residuals of a set, up to the sums over other variables."""
    parts = [
        np.eye(len(states)) - 1 / len(states) if v in subset else np.full((len(states),) * 2, 1 / len(states))
        for v, states in SCHEMA.states.items()
    ]
    return reduce(np.kron, parts)


def test_half_widths_are_those_of_the_residuals(plan):
    """Noise on a set's residuals, spread evenly over the joint table."""
    cells = np.prod([len(states) for states in SCHEMA.states.values()])
    covariance = sum(
        scale**2 * np.prod([len(SCHEMA.states[v]) for v in subset]) / cells * projection(subset)
        for subset, scale in plan.residuals.items()
    )
    for clique, wanted in WANTED.items():
        deviations = np.sqrt(np.diag(summing(clique) @ covariance @ summing(clique).T))
        np.testing.assert_allclose(1.6448536 * deviations, plan.half_widths[clique], rtol=1e-6)
        assert plan.half_widths[clique] <= wanted * (1 + 1e-9)


def test_independent_tables_reach_the_half_widths_by_least_squares(plan):
    information = sum(summing(clique).T @ summing(clique) / scale**2 for clique, scale in plan.scales.items())
    covariance = np.linalg.pinv(information)
    reached = {
        clique: 1.6448536 * np.sqrt(np.diag(summing(clique) @ covariance @ summing(clique).T)).max()
        for clique in WANTED
    }
    assert all(reached[clique] <= wanted * (1 + 1e-6) for clique, wanted in WANTED.items())
    assert any(reached[clique] >= wanted * (1 - 1e-6) for clique, wanted in WANTED.items())


@pytest.mark.parametrize(
    "wanted", [{("a", "b", "c"): 50.0}, WANTED, dict.fromkeys(itertools.combinations("abc", 2), 9.0)]
)
def test_the_optimum_is_within_a_hundredth_of_what_is_possible(plan, wanted):
    sizes = SCHEMA.cardinalities()
    sets = [frozenset(part) for size in range(4) for part in itertools.combinations("abc", size)]
    sets = [one for one in sets if any(one <= set(clique) for clique in wanted)]
    shares = np.array([np.prod([(sizes[v] - 1) / sizes[v] for v in one]) for one in sets])
    limits = (np.array(list(wanted.values())) / 1.6448536) ** 2
    errors = _errors(tuple(wanted), sets, sizes)

    def bound(logs):  # by the inequality of Cauchy and Schwarz, for any weights of the limits
        return -(np.sqrt(shares * (errors.T @ (softmax(logs) / limits))).sum() ** 2)

    minimum = -minimize(bound, np.zeros(len(wanted)), method="Nelder-Mead", options={"maxiter": 4000}).fun
    found = shares @ _lowest_cost(shares, np.eye(len(sets)), errors, limits)
    assert minimum <= found * (1 + 1e-9) <= minimum * 1.01
    if len(wanted) == 1:  # then it has a closed form
        assert found == pytest.approx(np.sqrt(shares * errors.toarray()[0] / limits[0]).sum() ** 2, rel=1e-3)
    if wanted is WANTED:
        assert plan.least_epsilon == pytest.approx(_gaussian_price(found, 1e-6, "add_remove"), rel=1e-6)
        assert plan.least_epsilon <= plan.epsilon <= 1.00001 * plan.least_epsilon
        assert plan.tables_epsilon > plan.epsilon


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_a_plan_is_what_measuring_residuals_charges(neighbours):
    schema = dp.Schema({"a": [0, 1], "b": [0, 1, 2], "c": [0, 1, 2, 3], "d": ["only"]})
    wanted = {("b", "a"): 40.0, ("d", "c"): 15.0, ("c", "b"): 60.0}
    plan = plan_accuracy(schema, wanted, 0.9, 1e-6, neighbours)
    frame = pd.DataFrame({"a": [0, 1] * 50, "b": [2] * 100, "c": [3] * 100, "d": ["only"] * 100})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(10.0, 1e-5), neighbours, noise=dp.SimulatedNoise(0))
    release = data.measure_residuals(plan.residuals, delta=plan.delta)
    assert release.guarantee.epsilon == data.budget.spent.epsilon == plan.epsilon
    assert set(release.cliques) == set(wanted)
    for clique, width in wanted.items():
        assert 1.6448536 * release.noise(clique)[1] == pytest.approx(plan.half_widths[clique])
        assert plan.half_widths[clique] <= width * (1 + 1e-9)
    if neighbours == "replace_one":
        assert () not in plan.residuals
        assert plan.least_epsilon < plan.epsilon < 1.2 * plan.least_epsilon


def test_a_plan_of_tables_is_what_measure_charges(plan):
    budget = dp.PrivacyBudget(10.0, 1e-5)
    frame = pd.DataFrame({"a": [0, 1] * 50, "b": [2] * 100, "c": [3] * 100})
    data = dp.PrivateDataset(frame, SCHEMA, budget, noise=dp.SimulatedNoise(0))
    release = data.measure(
        plan.cliques, plan.tables_epsilon, delta=1e-6, mechanism="gaussian_block", weights=plan.weights
    )
    for clique, scale in plan.scales.items():
        assert release.scales[clique] == pytest.approx(scale, rel=1e-3)


def test_a_hundred_variables_are_planned():
    schema = dp.Schema({f"v{number}": range(2 + number % 9) for number in range(100)})
    wanted = dict.fromkeys(itertools.combinations(schema.variables, 2), 200.0)
    plan = plan_accuracy(schema, wanted)
    assert max(plan.half_widths.values()) <= 200.0 + 1e-6
    assert plan.least_epsilon <= plan.epsilon < 1.00001 * plan.least_epsilon
    assert plan.epsilon < plan.tables_epsilon < 1.5 * plan.epsilon


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (({("a", "x"): 1.0},), "'x'"),
        (({("a",): 0.0},), "half-width"),
        (({("a",): 1.0}, 1.5), "confidence"),
        (({},), "No cliques"),
        (({("only",): 1.0}, 0.9, 1e-6, "replace_one"), "there is nothing to measure"),
    ],
)
def test_what_cannot_be_planned_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        plan_accuracy(dp.Schema({**SCHEMA.states, "only": [0]}), *arguments)


def test_more_sets_of_variables_than_are_planned_are_refused(monkeypatch):
    schema, widths = dp.Schema({v: [0, 1] for v in "abcde"}), {("a", "b", "c"): 20.0, ("d", "e"): 20.0}
    monkeypatch.setattr(accuracy, "_MAX_SETS", 2**3 + 2**2)
    assert plan_accuracy(schema, widths, delta=1e-6).epsilon > 0
    monkeypatch.setattr(accuracy, "_MAX_SETS", 2**3 + 2**2 - 1)
    with pytest.raises(ValueError, match="more than 11 sets of variables"):
        plan_accuracy(schema, widths, delta=1e-6)


def run(command):
    return CliRunner().invoke(main, command.split())


def test_the_command_prints_the_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.json")
    command = "plan-accuracy --schema schema.json --table a,b=40 --table c=20 --delta 1e-6"
    plan = plan_accuracy(SCHEMA, {("a", "b"): 40.0, ("c",): 20.0}, delta=1e-6)
    text = run(command)
    assert text.exit_code == 0
    assert f"epsilon {plan.epsilon:.4g}" in text.output
    stored = json.loads(run(f"{command} --json").output)
    assert stored["epsilon"] == plan.epsilon
    assert {tuple(table["variables"]): table["scale"] for table in stored["tables"]} == dict(plan.scales)
    assert run(f"{command} --table c:3").exit_code == 2


def test_a_plan_is_released_from_the_command_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    SCHEMA.save("schema.json")
    pd.DataFrame({"a": [0, 1] * 500, "b": [0, 1, 2, 1] * 250, "c": [3] * 1000}).to_csv("records.csv", index=False)
    assert run("ledger create ledger.json --epsilon 1 --delta 1e-5").exit_code == 0
    planned = run("plan-accuracy --schema schema.json --table a,b=40 --table c=20 --delta 1e-6 --out plan.json --json")
    epsilon = json.loads(planned.output)["epsilon"]
    release = "release records.csv --schema schema.json --plan plan.json --ledger ledger.json --out release.zip --json"
    foreseen = json.loads(run(f"{release} --dry-run").output)
    assert foreseen["guarantee"]["epsilon"] == epsilon
    assert {tuple(t["variables"]): 1.959964 * t["noise"] for t in foreseen["tables"]} == pytest.approx(
        {("c",): 20, ("a", "b"): 40}, rel=1e-4
    )
    assert foreseen["ledger"]["enough"]
    made = json.loads(run(release).output)
    assert made["guarantee"]["epsilon"] == epsilon
    assert made["ledger"]["remaining"]["epsilon"] == pytest.approx(1 - epsilon)
    noisy = dp.NoisyResiduals.load("release.zip")
    assert 1.959964 * noisy.noise(("a", "b"))[1] == pytest.approx(40, rel=1e-4)
    for wrong, message in (
        (f"{release} --force --epsilon 1", "leave out --epsilon"),
        (f"{release} --force --model edges.txt", "does not exist"),
        (release.replace("--plan", "--cliques") + " --force --epsilon 1", "a plan for an accuracy: --plan"),
        (release.replace("--plan plan.json", "--plan schema.json") + " --force", "not a plan for an accuracy"),
    ):
        assert message in run(wrong).output
