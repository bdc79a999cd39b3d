"""Answers of a mixture against its whole joint table."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.inference.mixtures.balanced_records import draw_records
from pgmpy_dp.inference.mixtures.children import Child
from pgmpy_dp.inference.mixtures.mixture import AnswerTooLargeError, Mixture
from pgmpy_dp.inference.mixtures.record_kernel import swap_within_components

CARDS = {"a": 2, "b": 3, "c": 2, "d": 4}


def random_mixture(seed: int, components: int = 3, blocks=(("c", "a"), ("b",), ("d",))) -> Mixture:
    """Probabilities uneven, some of them zero."""
    generator = np.random.default_rng(seed)
    tables = []
    for block in blocks:
        shape = [CARDS[variable] for variable in block]
        table = generator.dirichlet(np.full(np.prod(shape), 0.5), components)
        table[0, 0], table[0, 1] = 0.0, table[0, 0] + table[0, 1]
        tables.append(table.reshape(components, *shape))
    return Mixture.of(CARDS, blocks, generator.dirichlet(np.ones(components)), tables)


def joint(mixture: Mixture) -> np.ndarray:
    """Axes in the order of `CARDS`."""
    letters = {"a": "w", "b": "x", "c": "y", "d": "z"}
    terms = ["k" + "".join(letters[variable] for variable in block) for block in mixture.blocks]
    return np.einsum(f"k,{','.join(terms)}->wxyz", mixture.weights, *mixture.tables)


def plain(seed: int) -> tuple[Mixture, np.ndarray]:
    mixture = random_mixture(seed)
    return mixture, joint(mixture)


def refined(seed: int) -> tuple[Mixture, np.ndarray]:
    """Two finer variables, of a variable in a block and of one that follows from another, in a mixture of two."""
    draw = np.random.default_rng(seed)
    pair, own, first = draw.dirichlet(np.ones(6), 2).reshape(2, 2, 3), draw.dirichlet(np.ones(2), 2), draw.random(3)
    follows = {"d": Child.function("b", np.array([1, 0, 1]), 2)}
    coarse = Mixture.of({"a": 2, "b": 3, "c": 2, "d": 2}, [("a", "b"), ("c",)], [0.3, 0.7], [pair, own], follows)
    f = Child.within("b", np.array([0, 2, 2, 1]), np.array([1.0, first[0], 1 - first[0], 1.0]), 3)
    g = Child.within("d", np.array([1, 0, 1]), np.array([first[1], 1.0, 1 - first[1]]), 2)
    table = np.zeros((4, 2, 3, 3, 2, 2))
    for place in np.ndindex(table.shape):
        fine, a, b, other, c, d = place
        known = sum(w * pair[k, a, b] * own[k, c] for k, w in enumerate((0.3, 0.7))) * (d == (1, 0, 1)[b])
        table[place] = known * f.shares[b, fine] * g.shares[d, other]
    return coarse.extended({"f": 4, "a": 2, "b": 3, "g": 3, "c": 2, "d": 2}, {"f": f, "g": g}), table


def summed(whole: np.ndarray, names, asked) -> np.ndarray:
    """The table of some variables, in their order."""
    kept = [name for name in names if name in asked]
    table = whole.sum(axis=tuple(axis for axis, name in enumerate(names) if name not in asked))
    return table.transpose([kept.index(name) for name in asked])


MAKE = st.sampled_from([plain, refined])


@settings(deadline=None, max_examples=60)
@given(MAKE, st.integers(0, 10**6), st.data())
def test_marginals_are_sums_of_the_joint_table(make, seed, data):
    mixture, whole = make(seed)
    asked = data.draw(st.permutations(mixture.variables))[: data.draw(st.integers(0, whole.ndim))]
    table = summed(whole, mixture.variables, asked)
    np.testing.assert_allclose(np.reshape(mixture.marginal(asked), table.shape), table, atol=1e-12)
    if asked:
        assert table[tuple(mixture.most_probable(asked))] == pytest.approx(table.max())


@settings(deadline=None, max_examples=60)
@given(MAKE, st.integers(0, 10**6), st.data())
def test_evidence_multiplies_the_joint_table(make, seed, data):
    """States or likelihoods of them, on variables of blocks and on finer ones."""
    mixture, expected = make(seed)
    names, generator, evidence = mixture.variables, np.random.default_rng(seed + 1), {}
    for variable in data.draw(st.sets(st.sampled_from(names), min_size=1)):
        axis = names.index(variable)
        states = expected.shape[axis]
        if generator.random() < 0.5:
            evidence[variable] = int(generator.integers(states))
            factor = np.eye(states)[evidence[variable]]
        else:
            evidence[variable] = factor = generator.random(states)
        expected = expected * factor.reshape([-1 if other == axis else 1 for other in range(expected.ndim)])
    if expected.sum() < 1e-12:
        with pytest.raises(ValueError, match="probability zero"):
            mixture.given(evidence)
        return
    given = mixture.given(evidence)
    asked = data.draw(st.permutations(names))
    for part in (asked, asked[:3], asked[:2], asked[:1]):
        found = np.reshape(given.marginal(part), summed(expected, names, part).shape)
        np.testing.assert_allclose(found, summed(expected, names, part) / expected.sum(), atol=1e-12)
    assert mixture.log_evidence(evidence) == pytest.approx(np.log(expected.sum()))


@pytest.mark.parametrize("make", [plain, refined])
def test_log_likelihoods_of_all_records_complete_or_not(make):
    mixture, whole = make(5)
    codes = np.array(list(itertools.product(*(range(-1, states) for states in whole.shape))))
    expected = [whole[tuple(slice(None) if code < 0 else code for code in row)].sum() for row in codes]
    np.testing.assert_allclose(np.exp(mixture.log_probability(codes)), expected, atol=1e-12)


def test_evidence_of_many_variables_does_not_underflow():
    names = list(range(400))
    half = Mixture.of(
        dict.fromkeys(names, 2), [(name,) for name in names], [0.5, 0.5], [[[1e-4, 0.9999], [2e-4, 0.9998]]] * 400
    )
    given = half.given(dict.fromkeys(names[1:], 0))
    assert half.log_evidence(dict.fromkeys(names, 0)) == pytest.approx(np.log(2e-4) * 400 - np.log(2), rel=1e-3)
    assert given.marginal((0,))[0] == pytest.approx(2e-4, rel=1e-3)


def test_probabilities_that_nearly_sum_to_one_are_made_to():
    mixture = Mixture.of({"a": 2}, [("a",)], [0.49996, 0.5], [[[0.5, 0.49996], [0.5, 0.50004]]])
    assert mixture.weights.sum() == pytest.approx(1.0, abs=1e-14)
    assert mixture.tables[0].sum(axis=1) == pytest.approx([1.0, 1.0], abs=1e-14)


BELOW_ZERO = {"f": Child.within("a", np.array([0, 0]), np.array([1.5, -0.5]), 2)}


@pytest.mark.parametrize(
    ("call", "problem"),
    [(lambda m: m.marginal(("a", "a")), "repeats"), (lambda m: m.marginal(("q",)), "no variable"),
     (lambda m: m.given({"a": 2}), "states"), (lambda m: m.given({"a": [1.0, -1.0]}), "likelihood"),
     (lambda m: m.log_probability(np.zeros((1, 3), int)), "need shape"),
     (lambda m: m.log_probability(np.zeros((1, 4))), "whole numbers"),
     (lambda m: m.log_probability(np.full((1, 4), 7)), "states"),
     (lambda m: draw_records(m, -1, np.random.default_rng(0)), "draw"),
     (lambda m: Mixture.of(CARDS, [("a",)], [1.0], [[[1.0, 0.0]]]), "one block"),
     (lambda m: Mixture.of({"a": 2}, [("a",)], [1.0], [[[0.5, 0.4]]]), "sum to one"),
     (lambda m: Mixture.of({"a": 2, "f": 2}, [("a",)], [1.0], [[[0.5, 0.5]]], BELOW_ZERO), "no sound probabilities")],
)  # fmt: skip
def test_wrong_arguments_are_refused(call, problem):
    with pytest.raises(ValueError, match=problem):
        call(random_mixture(0))


def test_answers_beyond_memory_are_refused():
    names = list(range(30))
    mixture = Mixture.of(dict.fromkeys(names, 2), [(name,) for name in names], [1.0], [[[0.5, 0.5]]] * 30)
    with pytest.raises(AnswerTooLargeError, match="1,073,741,824 cells"):
        mixture.marginal(names)
    assert mixture.most_probable(names[:10]) == (0,) * 10


@settings(deadline=None, max_examples=15)
@given(st.integers(0, 10**6), st.integers(0, 3000))
def test_records_of_single_blocks_are_as_close_as_whole_numbers_can_be(seed, count):
    mixture = random_mixture(seed, components=6)
    codes = draw_records(mixture, count, np.random.default_rng(seed))
    assert codes.shape == (count, 4)
    for block in mixture.blocks:
        columns = [list(CARDS).index(variable) for variable in block]
        shape = [CARDS[variable] for variable in block]
        found = np.bincount(np.ravel_multi_index(codes[:, columns].T, shape), minlength=np.prod(shape))
        assert np.abs(found - count * mixture.marginal(block).ravel()).max() < 4
    assert np.isfinite(mixture.log_probability(codes)).all()


def test_blocks_of_three_variables_stay_together_in_records():
    """The third is the parity of the two before; components, and so blocks, depend on each other."""
    parity = np.zeros((2, 2, 2, 2))
    for a, b in itertools.product(range(2), repeat=2):
        parity[:, a, b, a ^ b] = [[0.4, 0.1], [0.1, 0.4]][a]
    other = np.array([[0.9, 0.1], [0.2, 0.8]])
    mixture = Mixture.of(dict.fromkeys("abcde", 2), [tuple("abc"), ("d",), ("e",)], [0.5, 0.5], [parity, other, other])
    for kept in (mixture, Mixture.of(dict.fromkeys("abc", 2), [tuple("abc")], [0.5, 0.5], [parity])):
        records = draw_records(kept, 400, np.random.default_rng(0))
        assert (records[:, 0] ^ records[:, 1] == records[:, 2]).all()


def test_every_component_has_its_share_of_records_and_of_each_cell():
    """Components that share no state: records tell which one they are from."""
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.ones(5))
    tables = np.zeros((5, 20))
    for k in range(5):
        tables[k, 4 * k : 4 * k + 4] = generator.dirichlet(np.ones(4))
    mixture = Mixture.of({"a": 20, "b": 20}, [("a",), ("b",)], weights, [tables, tables[:, ::-1]])
    codes = draw_records(mixture, 1000, np.random.default_rng(1))
    totals = np.bincount(codes[:, 0] // 4, minlength=5)
    assert np.abs(totals - 1000 * weights).max() < 1
    for column, table in enumerate([tables, tables[:, ::-1]]):
        found = np.bincount(codes[:, column], minlength=20)
        assert np.abs(found - totals @ table).max() < 1


TWO_BLOCKS = (("c", "a"), ("b", "d"))


def distance(mixture, codes, size, within=()):
    """Of the records' tables of so many variables, some of which are always among them."""
    names, total = list(CARDS), 0.0
    for scope in itertools.combinations(names, size):
        if set(within) <= set(scope):
            expected = len(codes) * mixture.marginal(scope)
            found = np.zeros_like(expected)
            np.add.at(found, tuple(codes[:, names.index(variable)] for variable in scope), 1)
            total += np.abs(found - expected).sum()
    return total


@pytest.mark.parametrize("blocks", [(("c", "a"), ("b",), ("d",)), TWO_BLOCKS])
@pytest.mark.parametrize("target", CARDS)
def test_triples_with_a_target_are_closer_than_those_of_records_without(blocks, target):
    mixture = random_mixture(1, components=4, blocks=blocks)
    plain, even = (draw_records(mixture, 4000, np.random.default_rng(2), given) for given in (None, target))
    assert distance(mixture, even, 3, [target]) < 0.8 * distance(mixture, plain, 3, [target])
    assert distance(mixture, even, 2) < 1.5 * distance(mixture, plain, 2) + 10
    assert distance(mixture, even, 1) == pytest.approx(distance(mixture, plain, 1), abs=8)


@settings(deadline=None, max_examples=15)
@given(
    st.integers(0, 10**6),
    st.sampled_from([(("c", "a"), ("b",), ("d",)), TWO_BLOCKS, (("d", "a", "b"), ("c",))]),
    st.sampled_from([1.0, 0.3]),
)
def test_exchanges_count_what_they_change(seed, blocks, share):
    """Counted again, pairs in each stratum are where exchanges left them, and cost less than before."""
    generator = np.random.default_rng(seed)
    ends = np.cumsum([0, *CARDS.values()])
    states = [generator.integers(size, size=200) for size in CARDS.values()]
    records = np.stack(states, axis=1).astype(np.int32) + ends[:-1].astype(np.int32)
    strata, names = generator.integers(2, size=200), list(CARDS)
    moved = np.array([[*map(names.index, block), -1, -1][: len(blocks[0])] for block in blocks], dtype=np.int64)
    owners = np.array([next(k for k, block in enumerate(blocks) if v in block) for v in names])
    expected = generator.random((2, ends[-1], ends[-1])) * 20
    expected += expected.transpose(0, 2, 1)
    price = 1 / (expected + 1)

    def excess():
        coded = np.zeros((200, ends[-1]))
        np.put_along_axis(coded, records.astype(np.int64), 1.0, axis=1)
        return np.stack([coded[strata == k].T @ coded[strata == k] for k in range(2)]) - expected

    def cost(left):  # a pair of states once, whichever comes first
        return (price * left**2)[:, *np.triu_indices(ends[-1])].sum()

    left, before = excess(), cost(excess())
    made = swap_within_components(
        records, strata, np.array([0, 120, 200]), moved, owners, left, price, 3, share, generator
    )
    np.testing.assert_allclose(left, excess(), atol=1e-9)
    assert made > 0
    assert cost(left) < before


def test_pairs_of_records_are_far_closer_than_those_of_independent_records():
    mixture, count = random_mixture(1, components=4), 4000
    generator = np.random.default_rng(2)
    even = draw_records(mixture, count, generator)
    cells = generator.choice(joint(mixture).size, count, p=joint(mixture).ravel())
    independent = np.stack(np.unravel_index(cells, tuple(CARDS.values())), axis=1)

    assert distance(mixture, even, 2) < distance(mixture, independent, 2) / 5


@settings(deadline=None, max_examples=40)
@given(MAKE, st.integers(0, 10**6), st.data(), st.integers(0, 3), st.sampled_from([2, 2_000]))
def test_records_in_bulk_are_answered_as_one_by_one(make, seed, data, count, together):
    """Whether they know nothing, something or all, all the same or not; what is impossible has no probability."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pgmpy_dp.inference.mixtures.mixture._RECORDS", together)
        patch.setattr("pgmpy_dp.inference.mixtures.mixture._MAX_PRODUCTS", 10 * together)
        (mixture, whole), generator = make(seed), np.random.default_rng(seed)
        order, sizes = (
            data.draw(st.permutations(mixture.variables)),
            dict(zip(mixture.variables, whole.shape, strict=True)),
        )
        known = {variable: generator.integers(-1, sizes[variable], 7) for variable in order[:count]}
        scopes = [tuple(order[count:]), *((variable,) for variable in order[count:])]
        found = mixture.in_records(scopes, known)
        for record in range(7 if known else 1):
            evidence = {variable: int(own[record]) for variable, own in known.items() if own[record] >= 0}
            for scope, tables in zip(scopes, found, strict=True):
                if np.isfinite(mixture.log_evidence(evidence)):
                    np.testing.assert_allclose(
                        tables[record], mixture.given(evidence).marginal(scope).ravel(), atol=1e-12
                    )
                else:
                    assert not tables[record].any()


def test_a_share_of_the_exchanges_is_tried_where_there_would_be_too_many(monkeypatch):
    mixture, found = random_mixture(1, components=4), []
    for maximum in (10**9, 10_000, 1):
        monkeypatch.setattr("pgmpy_dp.inference.mixtures.balanced_records._WORK", 1)
        monkeypatch.setattr("pgmpy_dp.inference.mixtures.balanced_records._MAX_WORK", maximum)
        found.append(distance(mixture, draw_records(mixture, 4000, np.random.default_rng(2)), 2))
    assert found[0] < found[1] < found[2]


@pytest.mark.parametrize("draw", [draw_records, Mixture.sample])
def test_drawn_records_of_finer_variables_have_the_shares(draw):
    (mixture, whole), count = refined(0), 40_000
    codes = draw(mixture, count, np.random.default_rng(0)).astype(int)
    for pair in ((0, 1), (0, 2), (3, 5), (0, 3)):
        found = np.zeros([whole.shape[axis] for axis in pair])
        np.add.at(found, tuple(codes[:, axis] for axis in pair), 1 / count)
        expected = whole.sum(axis=tuple(axis for axis in range(6) if axis not in pair))
        assert abs(found - expected).max() < 0.01
        assert (found[expected == 0] == 0).all()
    if draw is draw_records:  # every finer state has its expected number within its group, rounded
        f, b = np.bincount(codes[:, 0], minlength=4), np.bincount(codes[:, 2], minlength=3)
        assert abs(f - b[[0, 2, 2, 1]] * mixture.children["f"].shares.sum(axis=0)).max() <= 1
