"""Mixtures under rules: answers by brute force over the whole joint table, and what no component may have."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.inference.mixtures.balanced_records import draw_records
from pgmpy_dp.inference.mixtures.boxes import Boxes, Rules
from pgmpy_dp.inference.mixtures.children import Child
from pgmpy_dp.inference.mixtures.fit.base import Shape, Targets
from pgmpy_dp.inference.mixtures.fit.ensemble import fit_mixture
from pgmpy_dp.inference.mixtures.fit.member import MemberProblem
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.mixtures.refits import draw_refits

CARDS = {"place": 6, "region": 3, "side": 2, "job": 4, "age": 3}
DEPENDENT = {"region": ("place", np.array([0, 2, 1, 1, 0, 2])), "side": ("place", np.array([0, 1, 0, 0, 0, 1]))}
CHILDREN = {v: Child.function(root, states, CARDS[v]) for v, (root, states) in DEPENDENT.items()}
ROOTS = ("place", "job", "age")


def ruled_mixture(seed: int) -> tuple[Mixture, np.ndarray]:
    """A mixture with two variables that follow from a third, and its joint table; axes as `CARDS`."""
    generator = np.random.default_rng(seed)
    tables = [generator.dirichlet(np.ones(18), 3).reshape(3, 6, 3), generator.dirichlet(np.ones(4), 3)]
    mixture = Mixture.of(CARDS, [("place", "age"), ("job",)], generator.dirichlet(np.ones(3)), tables, CHILDREN)
    joint = np.zeros(tuple(CARDS.values()))
    for place in range(6):
        known = np.einsum("k,ka,kj->ja", mixture.weights, tables[0][:, place], tables[1])
        joint[place, DEPENDENT["region"][1][place], DEPENDENT["side"][1][place]] = known
    return mixture, joint


def summed(joint: np.ndarray, asked) -> np.ndarray:
    kept = [variable for variable in CARDS if variable in asked]
    table = joint.sum(axis=tuple(axis for axis, variable in enumerate(CARDS) if variable not in asked))
    return table.transpose([kept.index(variable) for variable in asked])


@settings(deadline=None, max_examples=20)
@given(st.integers(0, 10**6), st.permutations(list(CARDS)), st.integers(1, 4), st.sampled_from(list(CARDS)))
def test_answers_are_those_of_the_joint_table(seed, order, count, observed):
    mixture, joint = ruled_mixture(seed)
    asked = order[:count]
    np.testing.assert_allclose(mixture.marginal(asked), summed(joint, asked), atol=1e-12)
    given_joint = np.moveaxis(joint, list(CARDS).index(observed), 0).copy()
    given_joint[1:] = 0
    given_joint = np.moveaxis(given_joint, 0, list(CARDS).index(observed))
    found = mixture.given({observed: 0}).marginal(asked)
    np.testing.assert_allclose(found, summed(given_joint / given_joint.sum(), asked), atol=1e-12)
    codes = draw_records(mixture, 50, np.random.default_rng(seed), target=order[0])
    np.testing.assert_allclose(mixture.log_probability(codes), np.log(joint[tuple(codes.T)]))
    assert mixture.log_probability((codes + np.eye(5, dtype=int)[1]) % list(CARDS.values())).max() == -np.inf


def zeros(seed: int) -> list[tuple[tuple[str, ...], np.ndarray]]:
    """Random rules, over variables that follow from others too, which leave some records."""
    generator = np.random.default_rng(seed)
    found = []
    for scope in [("region", "job"), ("age", "job"), ("side", "age", "job"), ("place", "region")]:
        allowed = generator.random([CARDS[variable] for variable in scope]) < 0.8
        allowed[(0,) * len(scope)] = True
        found.append((scope, allowed))
    return found


def obeys(rules: Rules, place: int, job: int, age: int) -> bool:
    states = {"place": place, "job": job, "age": age} | {v: codes[place] for v, (_, codes) in DEPENDENT.items()}
    return all(allowed[tuple(states[variable] for variable in scope)] for scope, allowed in rules.zeros)


@settings(deadline=None, max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from([[("place",), ("job",), ("age",)], [("job", "place"), ("age",)]]))
def test_boxes_hold_no_forbidden_record_and_cover_every_pair_that_may_occur(seed, blocks):
    rules = Rules(DEPENDENT, zeros(seed))
    cells = [np.argwhere(np.ones([CARDS[variable] for variable in block])) for block in blocks]
    boxes = Boxes(rules, blocks, cells, CARDS)
    generator = np.random.default_rng(seed)
    possible = [codes for codes in itertools.product(range(6), range(4), range(3)) if obeys(rules, *codes)]
    assert possible
    for drawn in (boxes.draw([np.ones(len(own)) for own in cells], 20, generator), boxes.cover(generator)):
        held = set()
        for row in range(len(drawn[0])):
            inside = [own[kept[row]].tolist() for own, kept in zip(cells, drawn, strict=True)]
            for combination in itertools.product(*inside):
                state = dict(zip(itertools.chain(*blocks), itertools.chain(*combination), strict=True))
                held.add(tuple(state[variable] for variable in ROOTS))
        assert held
        assert held <= set(possible)
    if all(len(block) == 1 for block in blocks):
        for pair in itertools.combinations(range(3), 2):
            assert {(c[pair[0]], c[pair[1]]) for c in held} == {(c[pair[0]], c[pair[1]]) for c in possible}


def test_gradients_pass_through_variables_that_follow_from_others():
    generator = np.random.default_rng(0)
    dependent = {1: (0, DEPENDENT["region"][1]), 2: (0, DEPENDENT["side"][1])}
    blocks = ((0, 4), (3,))
    cells = (np.argwhere(np.ones((6, 3)))[:15], np.arange(4)[:, None])
    shape = Shape(tuple(CARDS.values()), blocks, cells, dependent)
    _, joint = ruled_mixture(1)
    names = list(CARDS)
    scopes = [(1,), (1, 3), (2, 3), (0, 3), (0, 4), (1, 4), (0, 3, 4), (3, 4)]
    targets = [
        Targets(np.array([scope]), summed(joint, [names[v] for v in scope])[None], np.array([1.0 + len(scope)]))
        for scope in scopes
    ]
    log_base = np.log(generator.dirichlet(np.ones(19)))
    problem = MemberProblem(shape, log_base, [None] * 5, targets, dtype=np.float64)
    parameters = problem.start(3, generator)
    for number in range(3):
        direction = generator.standard_normal(parameters[number].shape)
        ends = []
        for step in (1e-5, -1e-5):
            moved = list(parameters)
            moved[number] = parameters[number] + step * direction
            ends.append(problem.gradient(tuple(moved), 0.0)[0])
        slope = float((problem.gradient(parameters, 0.0)[1][number] * direction).sum())
        assert (ends[0] - ends[1]) / 2e-5 == pytest.approx(slope, rel=1e-5)


def test_a_fit_and_its_refits_give_forbidden_records_no_probability():
    _, joint = ruled_mixture(2)
    rules = Rules(DEPENDENT, zeros(3))
    for place, job, age in itertools.product(range(6), range(4), range(3)):
        if not obeys(rules, place, job, age):
            joint[place, :, :, job, age] = 0
    joint /= joint.sum()
    generator = np.random.default_rng(0)
    tables = [
        (pair, 5000 * summed(joint, pair) + 5 * generator.standard_normal([CARDS[v] for v in pair]), 5.0)
        for pair in itertools.combinations(CARDS, 2)
    ]
    fit = fit_mixture(CARDS, tables, components=20, members=2, steps=100, rules=rules, generator=generator)
    draws = draw_refits(fit, tables, draws=2, generator=generator)
    everything = np.array(list(itertools.product(*map(range, CARDS.values()))))
    follows = np.array(
        [everything[:, list(CARDS).index(v)] == own[everything[:, 0]] for v, (_, own) in DEPENDENT.items()]
    )
    forbidden = ~(follows.all(axis=0) & np.array([obeys(rules, *code[[0, 3, 4]]) for code in everything]))
    for mixture in (fit.mixture, *fit.members, *draws.refits):
        likelihood = np.exp(mixture.log_probability(everything))
        assert likelihood[forbidden].max() == 0.0
        assert likelihood.sum() == pytest.approx(1.0)
    records = draw_records(fit.mixture, 3000, generator)
    assert not forbidden[np.ravel_multi_index(tuple(records.T), tuple(CARDS.values()))].any()
    for pair in itertools.combinations(CARDS, 2):
        assert np.abs(fit.mixture.marginal(pair) - summed(joint, pair)).sum() < 0.1, pair


def test_rules_that_leave_nothing_are_refused():
    none = [(("job", "age"), np.zeros((4, 3), dtype=bool))]
    tables = [(("place", "job"), np.ones((6, 4)), 1.0), (("age",), np.ones(3), 1.0)]
    cards, generator = {variable: CARDS[variable] for variable in ROOTS}, np.random.default_rng(0)
    with pytest.raises(ValueError, match="rules leave hardly any"):
        fit_mixture(cards, tables, components=2, members=1, steps=2, rules=Rules({}, none), generator=generator)
