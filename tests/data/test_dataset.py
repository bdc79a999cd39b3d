"""The wall."""

import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from noises import Noted

from pgmpy_dp.data import PrivateDataset, exact_marginals
from pgmpy_dp.errors import BudgetExceededError, SchemaError
from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget, SimulatedNoise
from pgmpy_dp.privacy.accounting import rho_for
from pgmpy_dp.schema import Schema

SCHEMA = Schema({"a": ["x", "y"], "b": [0, 1, 2], "c": [True, False]})
RECORDS = pd.DataFrame(
    {"a": ["x", "y", "y", "x"] * 25, "b": [0, 1, 1, 2] * 25, "c": [True, False, True, True] * 25, "id": range(100)}
)
CLIQUES = [("a", "b"), ("c",)]


def dataset(epsilon=1.0, delta=0.0, neighbours="add_remove", noise=OPENDP_NOISE):
    return PrivateDataset(RECORDS, SCHEMA, PrivacyBudget(epsilon, delta), neighbours, noise)


def test_laplace_release():
    data = dataset()
    noisy = data.measure(CLIQUES, 0.5)
    assert noisy.cliques == tuple(CLIQUES)
    assert noisy.tables["a", "b"].shape == (2, 3)
    assert noisy.scales == {("a", "b"): 4.0, ("c",): 4.0}
    assert noisy.public_total is None
    guarantee = noisy.guarantee
    assert (guarantee.epsilon, guarantee.delta, guarantee.rho, guarantee.private) == (0.5, 0.0, None, True)
    assert (guarantee.mechanism, guarantee.neighbours) == ("laplace", "add_remove")
    assert {"opendp", "dp-accounting"} <= set(guarantee.versions)
    (charge,) = data.budget.history
    assert charge.epsilon == Fraction(1, 2)
    assert charge.mechanism == "laplace"
    assert data.budget.remaining.epsilon == 0.5


def test_gaussian_release():
    data = dataset(1.0, 1e-6)
    noisy = data.measure(CLIQUES, 0.5, delta=1e-6, mechanism="gaussian")
    rho = rho_for(0.5, 1e-6)
    assert data.budget.history[0].rho == noisy.guarantee.rho == rho
    assert (noisy.guarantee.epsilon, noisy.guarantee.delta) == (0.5, 1e-6)
    assert noisy.scales["c",] == pytest.approx(rho**-0.5)
    assert sum(1 / (2 * Fraction(s) ** 2) for s in noisy.scales.values()) <= Fraction(rho)
    whole = dataset(0.3, 1e-7)
    whole.measure(CLIQUES, 0.3, delta=1e-7, mechanism="gaussian")
    assert whole.budget.spent.epsilon == pytest.approx(0.3)


@pytest.mark.parametrize("weights", [[3, 1], (0.3, 0.1), np.array([3.0, 1.0]), np.array([3, 1])])
def test_weights_share_epsilon_or_rho(weights):
    """That the shares are no more than the whole, in exact fractions, is in test_tables.py."""
    data = dataset(2.0, 1e-6)
    assert data.measure(CLIQUES, 0.5, weights=weights).scales["c",] == pytest.approx(1 / 0.125)
    scales = data.measure(CLIQUES, 0.5, delta=1e-6, mechanism="gaussian", weights=weights).scales
    assert scales["c",] / scales["a", "b"] == pytest.approx(3**0.5)


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2, 7), Fraction(1, 10), 1])
def test_the_stated_epsilon_is_never_below_the_charge(epsilon):
    data = dataset(1.0)
    noisy = data.measure([("a",)], epsilon)
    assert Fraction(str(noisy.guarantee.epsilon)) >= data.budget.history[0].epsilon == epsilon


def test_simulated_noise_charges_and_says_that_it_is_not_private():
    one, other = (dataset(noise=SimulatedNoise(5)).measure(CLIQUES, 0.5) for _ in range(2))
    assert replace(one, guarantee=other.guarantee) == other
    assert str(one.guarantee) == str(other.guarantee)
    assert not one.guarantee.private
    data = dataset(noise=SimulatedNoise(5))
    data.measure(CLIQUES, 1.0)
    with pytest.raises(BudgetExceededError):
        data.measure(CLIQUES, 0.1)


def test_noise_is_centred_on_the_counts():
    exact = exact_marginals(RECORDS, SCHEMA, CLIQUES)
    noisy = dataset(1e5).measure(CLIQUES, 1e5)  # noise is zero but for a chance of exp(-50000)
    for clique in CLIQUES:
        assert (noisy.tables[clique] == exact.tables[clique]).all()
    assert exact.tables["a", "b"].tolist() == [[25, 0, 25], [0, 50, 0]]
    assert exact.guarantee.mechanism == "none"
    assert not exact.guarantee.private
    assert set(exact.scales.values()) == {0.0}


BAD = [
    *({"epsilon": e} for e in (0, -1.0, float("nan"), float("inf"), True, np.True_, "1", None, [1.0])),
    *({"delta": d} for d in (0.1, -1e-9, 1, float("nan"), True, "0", None)),
    *({"mechanism": "gaussian", "delta": d} for d in (0.0, 1.0, -0.1, float("nan"), True, "1e-6", None)),
    *({"mechanism": m} for m in ("Laplace", "none", None, 3)),
    *({"weights": w} for w in ([1], [1, 2, 3], [1, 0], [1, -1], [1, float("nan")], [1, float("inf")], [1, True])),
    *({"weights": w} for w in (["1", "2"], "12", 3, {("c",): 1, ("a", "b"): 2}, [1, None], [1, 1e-300])),
    *({"cliques": c} for c in ([], [("z",)], [("a", "a")], [()], ["a"], "a", None, [("a",), ("a",)])),
]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_bad_arguments_are_refused_before_the_charge(bad):
    noise = Noted()
    data = dataset(10.0, 1e-3, noise=noise)
    with pytest.raises(ValueError) as caught:
        data.measure(**({"cliques": CLIQUES, "epsilon": 1.0} | bad))
    assert not isinstance(caught.value, BudgetExceededError)
    assert noise.seen == []
    assert data.budget.history == ()


def test_without_opendp_nothing_is_charged(monkeypatch):
    data = dataset()
    monkeypatch.setitem(sys.modules, "opendp.measurements", None)
    with pytest.raises(ImportError, match="pip install opendp"):
        data.measure(CLIQUES, 0.123)
    assert data.budget.history == ()


@pytest.mark.parametrize(
    ("change", "error", "named"),
    [
        ({"records": RECORDS.drop(columns="a")}, SchemaError, "'a' has no column"),
        ({"records": RECORDS.assign(b=987654)}, SchemaError, "'b' has values"),
        ({"records": {"a": ["x"]}}, TypeError, "pandas"),
        ({"neighbours": "user"}, ValueError, "neighbours"),
        ({"budget": 1.0}, TypeError, "budget"),
        ({"schema": {"a": ["x", "y"]}}, TypeError, "schema"),
        ({"noise": np.random.default_rng(0)}, TypeError, "noise"),
        ({"noise": SimulatedNoise}, TypeError, "SimulatedNoise"),  # the class
    ],
)
def test_constructor_checks_everything(change, error, named):
    with pytest.raises(error, match=named) as caught:
        PrivateDataset(**{"records": RECORDS, "schema": SCHEMA, "budget": PrivacyBudget(1.0)} | change)
    assert "987654" not in str(caught.value)
    assert "100" not in str(caught.value)


def test_nothing_of_the_records_shows():
    data = dataset()
    budget = "PrivacyBudget(epsilon=1.0, delta=0.0, spent epsilon=0)"
    assert repr(data) == f"PrivateDataset(3 variables, neighbours='add_remove', budget={budget})"
    with pytest.raises(TypeError):
        len(data)
    with pytest.raises(TypeError):
        iter(data)
    assert (data.schema, data.neighbours) == (SCHEMA, "add_remove")


def test_later_changes_of_the_frame_do_not_reach_the_data():
    frame = RECORDS.copy()
    data = PrivateDataset(frame, SCHEMA, PrivacyBudget(1e5))
    frame.loc[:, "a"] = "x"
    frame.loc[:, "b"] = 0
    assert data.measure([("a",)], 1e5).tables["a",].tolist() == [50, 50]


def test_no_records_are_fine():
    data = PrivateDataset(RECORDS.iloc[:0], SCHEMA, PrivacyBudget(2e5), "replace_one")
    noisy = data.measure(CLIQUES, 1e5)
    assert noisy.public_total == 0
    assert (noisy.tables["a", "b"] == 0).all()
