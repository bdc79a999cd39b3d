"""The most probable states against the full joint table."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.inference import Layout, Maximisation, TreeTooLargeError
from pgmpy_dp.inference.trees.conditioning import ImpossibleEvidenceError, TreeDistribution


@st.composite
def questions(draw):
    """Tables of few different values, zeros among them, so that joint states tie; what is asked, what is given."""
    count = draw(st.integers(1, 6))
    cards = {f"v{i}": draw(st.integers(1, 3)) for i in range(count)}
    names = sorted(cards)
    scope = st.lists(st.sampled_from(names), min_size=1, max_size=min(3, count), unique=True)
    layout = Layout.of(cards, draw(st.lists(scope, max_size=7)))
    values = st.sampled_from([0.0, 0.25, 0.5, 0.5, 1.0] if draw(st.booleans()) else [0.1, 0.2, 0.3, 0.7])
    table = np.array(draw(st.lists(values, min_size=layout.size, max_size=layout.size)))
    order = draw(st.permutations(names))
    known = draw(st.integers(0, count))
    fixed = {v: draw(st.integers(0, cards[v] - 1)) for v in order[:known]}
    return layout, table, order[known : draw(st.integers(known, count))], fixed


def brute_force(layout, table, asked, fixed):
    names = list(layout.cardinalities)
    joint = np.ones(list(layout.cardinalities.values()))
    for scope, values in zip(layout.scopes, layout.split(table), strict=True):
        joint = joint * spread(scope, values, names)
    index = tuple(fixed.get(v, slice(None)) for v in names)
    rest = [v for v in names if v not in fixed]
    known = joint[index]
    summed = known.sum(axis=tuple(i for i, v in enumerate(rest) if v not in asked))
    kept = [v for v in rest if v in asked]
    return summed.transpose([kept.index(v) for v in asked])


def spread(scope, values, names):
    axes = [names.index(v) for v in scope]
    return np.expand_dims(values.transpose(np.argsort(axes)), [i for i in range(len(names)) if i not in axes])


@given(questions())
@settings(max_examples=400, deadline=None)
def test_most_probable_states_equal_brute_force(question):
    layout, table, asked, fixed = question
    expected = brute_force(layout, table, asked, fixed)
    with np.errstate(divide="ignore"):
        logs = np.log(table)
    maximisation = Maximisation.plan(layout, asked, fixed)
    if expected.max() == 0:
        with pytest.raises(ValueError, match="forbid every configuration"):
            maximisation.most_probable(logs)
        return
    # The first of those that are equal but for rounding.
    first = np.flatnonzero(expected.ravel() >= expected.max() * (1 - 1e-10))[0]
    assert maximisation.most_probable(logs) == np.unravel_index(first, expected.shape)


@given(questions().filter(lambda question: question[2] and question[3]))
@settings(max_examples=200, deadline=None)
def test_marginals_given_states_equal_brute_force_and_what_is_impossible_anywhere_is_refused(question):
    layout, table, asked, fixed = question
    expected = brute_force(layout, table, asked, fixed)
    with np.errstate(divide="ignore"):
        given_states = TreeDistribution(layout, np.log(table)).given(fixed)
    if expected.max() == 0:
        with pytest.raises(ImpossibleEvidenceError):
            given_states.marginal(asked)
    else:
        np.testing.assert_allclose(given_states.marginal(asked), expected / expected.sum(), atol=1e-12)


def test_ties_far_apart_in_the_order_of_elimination():
    """Four equal states of a chain: elimination meets its variables in another order than that asked for."""
    layout = Layout.of(dict.fromkeys("abcd", 2), [("a", "b"), ("b", "c"), ("c", "d")])
    with np.errstate(divide="ignore"):
        logs = np.log(layout.flatten([[[0, 1], [1, 0]], [[1, 1], [1, 1]], [[0, 1], [1, 0]]]))
    assert Maximisation.plan(layout, "abcd", {}).most_probable(logs) == (0, 1, 0, 1)
    assert Maximisation.plan(layout, "dcba", {}).most_probable(logs) == (0, 1, 0, 1)
    assert Maximisation.plan(layout, "da", {}).most_probable(logs) == (0, 0)
    assert Maximisation.plan(layout, "da", {"c": 0}).most_probable(logs) == (1, 0)


def test_sums_that_join_too_many_variables_are_refused():
    leaves = [f"v{i}" for i in range(40)]
    layout = Layout.of(dict.fromkeys(["root", *leaves], 2), [("root", leaf) for leaf in leaves])
    with pytest.raises(TreeTooLargeError, match="these 40 variables"):
        Maximisation.plan(layout, leaves, {})
    assert Maximisation.plan(layout, [*leaves, "root"], {}).most_probable(np.zeros(layout.size)) == (0,) * 41
