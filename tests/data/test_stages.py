"""Tables in stages: later ones follow from earlier answers, at a price that is fixed before the first."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.mechanism import PublicRecords, quoted
from pgmpy_dp.data.mechanisms.steps import Measure, StagedTables
from pgmpy_dp.privacy.sequences import sequence_epsilon

pytestmark = pytest.mark.full

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y", "z"]})
ONE, TWO, BOTH = ("a",), ("b",), ("a", "b")
FRAME = pd.DataFrame({"a": ["x", "y"] * 50, "b": ["x", "y", "z", "z"] * 25})


def staged(second, epsilon=1.0, delta=1e-6):
    return StagedTables([(0.25, lambda *_: Measure.of({ONE: 1.0, TWO: 3.0})), (0.75, second)], epsilon, delta)


def either(units, release, always=()):
    """All on one table or the other, by the first answer."""
    first = release is None or release.tables[ONE][0] > release.tables[TWO][0]
    return Measure.of(({ONE: 1.0} if first else {BOTH: 2.0, TWO: 1.0}) | dict.fromkeys(always, 1.0))


def data(budget, frame=FRAME, noise=None, **unit):
    return dp.PrivateDataset(frame, SCHEMA, budget, noise=noise or dp.SimulatedNoise(0), **unit)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_all_is_one_release_with_one_charge(delta):
    budget = dp.PrivacyBudget(1.0, delta)
    release = data(budget).release(staged(lambda units, release: Measure.of({BOTH: 1.0, ONE: 1.0}), delta=delta))
    (charge,) = budget.history
    assert (float(charge.epsilon), float(charge.delta)) == (1.0, delta)
    assert [cost.id for cost in release.guarantee.every] == [charge.id]
    assert release.cliques == (ONE, TWO, BOTH)


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_foreseen_noise_is_that_of_the_release(delta):
    mechanism = staged(lambda units, release: Measure.of({BOTH: 1.0, ONE: 1.0}), delta=delta)
    public = PublicRecords.of(SCHEMA, delta)
    release = data(dp.PrivacyBudget(1.0, delta)).release(mechanism)
    foreseen = mechanism.foreseen(quoted(mechanism, public), public, 100.0)[1]
    for clique, deviation in foreseen.items():
        assert release.noise(clique)[1] == pytest.approx(deviation, rel=1e-2)  # of two, the mean is rounded


def test_later_stages_know_the_units_and_all_answers_before():
    known = []

    def second(units, release):
        known.append((units, release and release.cliques))
        return Measure.of({BOTH: 1.0})

    people = pd.concat([FRAME, FRAME]).assign(person=np.arange(200) // 2)
    data(dp.PrivacyBudget(9.0, 1e-6), people, unit="person", max_rows=2).release(staged(second, 9.0))
    assert known[0] == (None, None)
    assert known[-1][0] == pytest.approx(100, rel=0.1)
    assert known[-1][1] == (ONE, TWO)


def test_what_cannot_be_measured_is_refused_unpaid():
    budget = dp.PrivacyBudget(1.0, 1e-6)
    for second in (lambda *_: Measure.of({("c",): 1.0}), lambda *_: Measure.of({ONE: -1.0})):
        with pytest.raises(ValueError):
            data(budget).release(staged(second))
    assert not budget.history


def test_the_pooled_release_has_the_noise_that_it_states():
    """Standardised errors of both stages together, within six deviations of their law."""
    errors, exact = [], dp.exact_marginals(FRAME, SCHEMA, [ONE, TWO, BOTH]).tables
    for seed in range(300):
        release = data(dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(seed)).release(
            staged(lambda units, release: either(units, release, always=[ONE]))
        )
        errors += [(t - exact[c]).ravel() / release.noise(c)[1] for c, t in release.tables.items()]
    squares = np.concatenate(errors) ** 2
    assert abs(squares.mean() - 1) < 6 * np.sqrt(2 / squares.size)


def exact_delta(mechanism, public, epsilon, moved, splits, laplace=False):
    """Sum over all answers of one moved count of each table, where for each first answer the dearest split follows."""
    losses = quoted(mechanism, public).terms.losses

    def answers(asked, loss):
        mechanism_of = asked.mechanism(loss, mechanism.delta, public)
        scales = mechanism_of.quote(public).terms
        pair = (np.ones(1), np.ones(1))
        for clique, scale in scales.items():
            for move in moved[clique]:
                k = np.arange(-math.ceil((14 if laplace else 6) * scale), math.ceil((14 if laplace else 6) * scale) + 1)
                law = [np.exp(-abs(k - c) / scale if laplace else -((k - c) ** 2) / (2 * scale**2)) for c in (0, move)]
                pair = tuple(np.outer(one, other / other.sum()).ravel() for one, other in zip(pair, law, strict=True))
            pair = merged(*pair)
        return pair

    def merged(p, q):
        """Answers of one loss together, which costs the same."""
        ratios, places = np.unique(np.round(np.log(p) - np.log(q), 6), return_inverse=True)
        return np.bincount(places, p), np.bincount(places, p) * np.exp(-ratios)

    def beyond(one, other):
        """For each first answer, sum over what may follow of the positive parts of p * one - x * q * other."""
        order = np.argsort(other / one)
        dearer = np.searchsorted((other / one)[order], p / (x * q))
        (one, other) = (np.append(0.0, np.cumsum(each[order]))[dearer] for each in (one, other))
        return p * one - x * q * other

    (p, q), x = answers(mechanism.stages[0][1](None, None), losses[0]), math.exp(epsilon)
    return np.max([beyond(*answers(shares, losses[1])) for shares in splits], axis=0).sum()


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.05), (1.5, 0.02)])
def test_no_split_of_a_stage_costs_more_whatever_came_before(neighbours, epsilon, delta):
    """Under "replace_one" a record may stay in its cell of a table, and the loss of a stage then depends on the split.
    The planted bug, stages of twice the epsilon, costs too much."""
    splits = [Measure.of(one) for one in ({ONE: 1.0}, {TWO: 1.0}, {ONE: 1.0, TWO: 1.0}, {ONE: 9.0, TWO: 1.0})]
    moves = (1,) if neighbours == "add_remove" else (1, -1)
    public = PublicRecords.of(SCHEMA, delta, neighbours)
    mechanism = staged(lambda *_: splits[0], epsilon, delta)
    worst = 0.0
    for moved in ({ONE: moves, TWO: moves}, {ONE: moves, TWO: ()}):
        if neighbours == "replace_one" or all(moved.values()):
            worst = max(worst, exact_delta(mechanism, public, epsilon, moved, splits))
    assert worst <= delta
    dearer = replace(mechanism, epsilon=2.0 * epsilon)
    assert exact_delta(dearer, public, epsilon, dict.fromkeys((ONE, TWO), moves), splits) > delta


def test_without_a_delta_no_split_costs_more():
    splits = [Measure.of(one) for one in ({ONE: 1.0}, {TWO: 1.0}, {ONE: 1.0, TWO: 2.0})]
    mechanism, public = staged(lambda *_: splits[0], 1.0, 0.0), PublicRecords.of(SCHEMA)
    moved = dict.fromkeys((ONE, TWO), (1,))
    assert exact_delta(mechanism, public, 1.0, moved, splits, laplace=True) < 1e-5  # of the tails that are cut off
    assert exact_delta(mechanism, public, 0.97, moved, splits, laplace=True) > 1e-3


def test_stages_are_priced_as_a_sequence():
    quote = quoted(staged(either), PublicRecords.of(SCHEMA, 1e-6))
    assert 0.99 < sequence_epsilon([(loss, 0) for loss in quote.terms.losses], 1e-6) <= 1.0
    assert quote.terms.losses[1] / quote.terms.losses[0] == pytest.approx(3.0)
