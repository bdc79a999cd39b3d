"""Distributions over states by those over groups: as by the joint table of all states."""

import itertools

import numpy as np
import pytest

from pgmpy_dp.inference import Layout
from pgmpy_dp.inference.grouped import GroupedDistribution, Within
from pgmpy_dp.inference.trees.conditioning import TreeDistribution

# a and c have groups of states, whose runs are interleaved; families are (a), (b, a), (c, b, a).
CARDS = {"a": 5, "b": 2, "c": 6}
GROUPS = {"a": ("ga", np.array([0, 1, 0, 2, 1])), "c": ("gc", np.array([1, 1, 0, 0, 1, 0]))}
SCOPES = [("ga",), ("b", "ga"), ("gc", "b", "ga")]
GENERATOR = np.random.default_rng(3)


@pytest.fixture(scope="module", params=[True, False], ids=["families", "factors"])
def whole(request):
    """A grouped distribution, and its joint table over a, b and c."""
    sizes = {"ga": 3, "b": 2, "gc": 2}
    layout = Layout.of(sizes, SCOPES)
    tables = [GENERATOR.dirichlet(np.ones(shape[0]), shape[1:]) for shape in layout.shapes]
    tables = [np.moveaxis(table, -1, 0) for table in tables]
    within = {}
    for variable, (name, groups) in GROUPS.items():
        shares = GENERATOR.random(groups.size)
        within[variable] = Within(name, groups, shares / np.bincount(groups, shares)[groups])
    coarse = np.einsum("a,ba,cba->abc", *tables)
    joint = within["c"].spread(within["a"].spread(coarse, 0), 2)
    tree = TreeDistribution(layout, np.log(layout.flatten(tables)), families=request.param)
    return GroupedDistribution(tree, within), joint


QUESTIONS = [
    (scope, dict.fromkeys(given, position))
    for size in (1, 2)
    for scope in itertools.permutations(CARDS, size)
    for count in (0, 1)
    for given in itertools.combinations([v for v in CARDS if v not in scope], count)
    for position in (0, 1)
]


def answered(joint, scope, given):
    names = list(CARDS)
    table = joint[tuple(given.get(v, slice(None)) for v in names)]
    left = [v for v in names if v not in given]
    table = table.sum(axis=tuple(axis for axis, v in enumerate(left) if v not in scope))
    kept = [v for v in left if v in scope]
    table = table.transpose([kept.index(v) for v in scope])
    return table / table.sum()


@pytest.mark.parametrize(("scope", "given"), QUESTIONS)
def test_answers_are_those_of_the_joint_table(whole, scope, given):
    distribution, joint = whole
    truth = answered(joint, scope, given)
    own = distribution.given(given)
    np.testing.assert_allclose(own.marginal(scope), truth, atol=1e-12)
    assert own.most_probable(scope) == np.unravel_index(truth.argmax(), truth.shape)
    assert [*distribution.most_probable_of(scope, [given])] == [own.most_probable(scope)]
    for singles in (own.singles(scope), *distribution.singles_of(scope, [given])):
        for variable, single in zip(scope, singles, strict=True):
            np.testing.assert_allclose(single, answered(joint, (variable,), given), atol=1e-12)


@pytest.mark.parametrize("known", [tuple(CARDS), ("a", "c"), ("c",)])
def test_log_probabilities_are_those_of_the_joint_table(whole, known):
    distribution, joint = whole
    states = np.array(list(itertools.product(*(range(CARDS[v]) for v in known)))).T
    codes = dict(zip(known, states, strict=True))
    np.testing.assert_allclose(
        distribution.log_probability(codes), np.log(answered(joint, known, {})).ravel(), atol=1e-12
    )


@pytest.mark.parametrize("given", [{}, {"c": 3}])
def test_records_have_the_distribution_and_what_is_given(whole, given):
    """Of 60,000 records, a cell's share is off by five standard deviations in 1 of 10^5 runs."""
    distribution, joint = whole
    count = 60_000
    codes, others = distribution.given(given).sample(count, np.random.default_rng(0))
    assert set(codes) == set(CARDS)
    scope = tuple(v for v in CARDS if v not in given)
    assert all((codes[v] == position).all() for v, position in given.items())
    truth = answered(joint, scope, given)
    drawn = np.zeros(truth.shape)
    np.add.at(drawn, tuple(codes[v] for v in scope), 1 / count)
    assert (abs(drawn - truth) <= 5 * np.sqrt(truth / count)).all()
    rows = np.arange(50)
    for variable in CARDS:
        law = others(variable, rows)
        axis = list(CARDS).index(variable)
        for row in rows:
            cells = joint[tuple(slice(None) if v == variable else codes[v][row] for v in CARDS)]
            np.testing.assert_allclose(law[row] / law[row].sum(), cells / cells.sum(), atol=1e-12)
        assert law.shape == (50, joint.shape[axis])
