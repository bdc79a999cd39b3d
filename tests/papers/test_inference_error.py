"""The error bounds of Theorems 4.1 and 4.2."""

import functools
import operator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.papers import inference_error_bounds, mu_score

PARENTS = {"hub": [], "left": ["hub"], "right": ["hub"], "end": ["left", "right"]}


def networks(generator, states, noise):
    """A true network and a perturbed one."""
    pair = [DiscreteBayesianNetwork([(p, node) for node, parents in PARENTS.items() for p in parents]) for _ in "12"]
    for node, parents in PARENTS.items():
        rows = generator.dirichlet(np.ones(states), size=states ** len(parents)).T
        moved = np.maximum(rows + generator.uniform(-noise, noise, size=rows.shape), 1e-6)
        for network, values in zip(pair, (rows, moved / moved.sum(axis=0)), strict=True):
            network.add_cpds(TabularCPD(node, states, values, parents or None, [states] * len(parents)))
    return pair


def step_errors(true, fitted, variable):
    """L1 error of the first sum-product step of every elimination that begins with a variable."""
    results = []
    for network in (true, fitted):
        factors = [cpd.to_factor() for cpd in network.get_cpds() if variable in cpd.variables]
        product = functools.reduce(operator.mul, factors)
        results.append(product.marginalize([variable], inplace=False))
    one, other = results
    order = [other.variables.index(name) for name in one.variables]
    return float(np.abs(one.values - other.values.transpose(order)).sum())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 4), st.floats(1e-3, 0.5))
def test_no_step_errs_by_more_than_the_provable_bound(seed, states, noise):
    true, fitted = networks(np.random.default_rng(seed), states, noise)
    bounds = inference_error_bounds(true, fitted)
    assert (bounds.neighbourhood, bounds.treewidth, bounds.states) == (3, 2, states)
    for variable in ("hub", "left", "right", "end"):  # each leaves at most two variables
        assert step_errors(true, fitted, variable) <= bounds.upper
    printed = inference_error_bounds(true, fitted, paper=True)
    assert printed.upper == pytest.approx(bounds.upper * 2 / states)
    assert bounds.lower == pytest.approx(2**0.5 * bounds.smallest_error * bounds.smallest_entry)


def test_a_step_can_exceed_the_printed_bound():
    """Factors with entries in [0, 1] as the theorem has them: ones, each off by the same error, of many states."""
    states, error = 10, 1e-4
    exact = np.ones((states, states)) * 1.0
    moved = exact - error
    realised = np.abs((exact**2).sum(axis=0) - (moved**2).sum(axis=0)).sum()  # kappa = 1, two factors
    assert 2 * 2 * states * error < realised <= 2 * states**2 * error


def test_the_lower_bound_is_of_typical_errors():
    """Errors that cancel lie below it: the score is negative then."""
    assert np.dot([0.5, 0.5], [0.3, 0.3]) == pytest.approx(np.dot([0.6, 0.4], [0.2, 0.45]))
    true, fitted = networks(np.random.default_rng(0), 3, 0.1)
    bounds = inference_error_bounds(true, fitted)
    assert 0 < bounds.lower < bounds.upper
    assert mu_score(bounds.lower, bounds) == 0
    assert mu_score(bounds.upper, bounds) == 1
    assert mu_score(0.0, bounds) < 0
    for error in (-1.0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="error"):
            mu_score(error, bounds)


def test_networks_are_compared_by_names():
    true, fitted = networks(np.random.default_rng(1), 3, 0.1)
    turned = DiscreteBayesianNetwork(true.edges())
    for node, parents in PARENTS.items():
        factor = fitted.get_cpds(node).to_factor()
        order = [node, *parents[::-1]]
        values = factor.values.transpose([factor.variables.index(name) for name in order]).reshape(3, -1)
        turned.add_cpds(TabularCPD(node, 3, values, parents[::-1] or None, [3] * len(parents)))
    assert inference_error_bounds(true, turned) == inference_error_bounds(true, fitted)
    same = inference_error_bounds(true, true)
    assert (same.lower, same.upper, mu_score(0.0, same)) == (0.0, 0.0, 0.0)
    shorter = DiscreteBayesianNetwork([("hub", "left"), ("hub", "right"), ("left", "end")])
    shorter.add_cpds(*(fitted.get_cpds(node) for node in ("hub", "left", "right")))
    shorter.add_cpds(TabularCPD("end", 3, np.full((3, 3), 1 / 3), ["left"], [3]))
    with pytest.raises(dp.SchemaError, match="'end'"):
        inference_error_bounds(true, shorter)
