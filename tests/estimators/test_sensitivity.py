"""Laskey sensitivities against enumeration and finite differences."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp

CARDS = {"a": 2, "b": 3, "c": 2, "d": 2}
PARENTS = {"a": [], "b": ["a"], "c": ["a"], "d": ["b", "c"]}  # a diamond: children that are not independent


def random_rows(generator, sparse=False):
    rows = {}
    for node, parents in PARENTS.items():
        shape = (CARDS[node], *(CARDS[parent] for parent in parents))
        values = generator.random(shape) ** 3 + 1e-3
        if sparse:
            values[0] = np.where(generator.random(shape[1:]) < 0.3, 0.0, values[0])
        rows[node] = values / values.sum(axis=0)
    return rows


def network_of(rows):
    network = DiscreteBayesianNetwork([(parent, node) for node, parents in PARENTS.items() for parent in parents])
    for node, parents in PARENTS.items():
        cards = [CARDS[parent] for parent in parents]
        network.add_cpds(TabularCPD(node, CARDS[node], rows[node].reshape(CARDS[node], -1), parents or None, cards))
    return network


def marginal(rows, target):
    """P(target), by enumeration of all configurations."""
    result = np.zeros(CARDS[target])
    for values in itertools.product(*(range(card) for card in CARDS.values())):
        at = dict(zip(CARDS, values, strict=True))
        chances = [rows[node][(at[node], *(at[parent] for parent in parents))] for node, parents in PARENTS.items()]
        result[at[target]] += np.prod(chances)
    return result


def numerical(rows, kind, step=1e-5):
    """Equation (8) by central differences, a row's other entries fixed ("paper") or changed in proportion."""

    def moved(node, cell, by):
        changed = {name: table.copy() for name, table in rows.items()}
        column = (slice(None), *cell[1:])
        if kind == "covary":
            theta = rows[node][cell]
            changed[node][column] *= (1 - theta - by) / (1 - theta)
        changed[node][cell] = rows[node][cell] + by
        return changed

    result = {}
    for node in PARENTS:
        means = []
        for child in (child for child, parents in PARENTS.items() if node in parents):
            slopes = [
                (marginal(moved(node, cell, step), child) - marginal(moved(node, cell, -step), child)) / (2 * step)
                for cell in np.ndindex(rows[node].shape)
            ]
            means.append(np.abs(slopes).mean())
        result[node] = float(np.mean(means)) if means else 0.0
    return result


@pytest.mark.parametrize("kind", ["paper", "covary"])
@pytest.mark.parametrize("seed", range(3))
def test_sensitivities_are_the_mean_derivatives(kind, seed):
    rows = random_rows(np.random.default_rng(seed))
    fast = dp.papers.laskey_sensitivities(network_of(rows), kind)
    assert fast == pytest.approx(numerical(rows, kind), abs=1e-7)
    assert fast["d"] == 0.0
    assert min(fast[node] for node in "abc") > 1e-3


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_free_derivatives_average_to_a_constant_of_the_structure(seed):
    """So the printed sensitivity does not depend on the data; the covarying one does."""
    rows = random_rows(np.random.default_rng(seed), sparse=True)
    fast = dp.papers.laskey_sensitivities(network_of(rows), "paper")
    assert fast == {"a": pytest.approx((1 / 3 + 1 / 2) / 2), "b": 1 / (2 * 2), "c": 1 / (2 * 2), "d": 0.0}
    assert all(np.isfinite(value) for value in dp.papers.laskey_sensitivities(network_of(rows)).values())


def test_zeros_are_limits():
    rows = random_rows(np.random.default_rng(1), sparse=True)
    assert any((table == 0).any() for table in rows.values())
    near = {node: (table + 1e-7) / (table + 1e-7).sum(axis=0) for node, table in rows.items()}
    assert dp.papers.laskey_sensitivities(network_of(rows)) == pytest.approx(numerical(near, "covary", 5e-8), abs=1e-4)


def test_state_order_does_not_matter_and_alarm_is_whole(bnlearn):
    network = bnlearn("alarm")
    sensitivities = dp.papers.laskey_sensitivities(network)
    assert len(sensitivities) == 37
    assert {node for node, value in sensitivities.items() if value == 0} == set(network.get_leaves())
    assert dp.papers.laskey_sensitivities(network, "paper")["HR"] == pytest.approx(1 / 2 * np.mean([1 / 3] * 4))


def test_bad_input():
    rows = random_rows(np.random.default_rng(0))
    with pytest.raises(ValueError, match="kind is 'free'"):
        dp.papers.laskey_sensitivities(network_of(rows), "free")
    with pytest.raises(TypeError, match="laskey_sensitivities"):
        dp.papers.laskey_sensitivities(dp.PrivateMarkovNetwork([("a", "b")]))
