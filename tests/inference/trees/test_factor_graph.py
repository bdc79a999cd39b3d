"""Loopy belief propagation: exact on forests, close on short cycles."""

import numpy as np
import pytest

from pgmpy_dp.inference import FactorGraph, JunctionTree


@pytest.mark.parametrize("scale", [1.0, 200.0])
def test_exact_on_a_forest(scale):
    cards = {"a": 3, "b": 2, "c": 4, "d": 2, "e": 3, "alone": 5}
    scopes = [("a", "b"), ("b",), ("c", "b"), ("d", "e")]
    potentials = np.random.default_rng(3).normal(size=6 + 2 + 8 + 6) * scale
    exact = JunctionTree.build(cards, scopes).calibrate(potentials)
    loopy = FactorGraph.build(cards, scopes).calibrate(potentials)
    assert loopy.converged
    assert loopy.log_partition == pytest.approx(exact.log_partition, rel=1e-7)
    np.testing.assert_allclose(loopy.marginals, exact.marginals, atol=1e-7)


def test_close_on_a_weak_cycle_and_says_when_it_stops_early():
    cards = dict.fromkeys("abcd", 3)
    scopes = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")]
    potentials = np.random.default_rng(3).normal(size=36) * 0.5
    exact = JunctionTree.build(cards, scopes).calibrate(potentials)
    loopy = FactorGraph.build(cards, scopes).calibrate(potentials)
    assert loopy.converged
    np.testing.assert_allclose(loopy.marginals, exact.marginals, atol=0.01)
    assert not FactorGraph.build(cards, scopes, max_iter=1).calibrate(potentials).converged


def test_damping_outside_its_range_is_refused():
    with pytest.raises(ValueError, match="damping"):
        FactorGraph.build({"a": 2}, [("a",)], damping=1.0)
