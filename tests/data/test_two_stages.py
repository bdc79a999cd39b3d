"""Tables in two stages: whatever the first answer wants, the second has the scales that were priced."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.two_stages import TwoStageTables
from pgmpy_dp.privacy.blocks import block_price, block_scales

SCHEMA = dp.Schema({variable: ["x", "y"] for variable in "abcde"})
CLIQUES = [(variable,) for variable in SCHEMA.variables]
GROUPS = ["one", None, "one", "two", "one"]
FRAME = pd.DataFrame({variable: ["x", "y"] for variable in SCHEMA.variables})


class Recording(dp.SimulatedNoise):
    """Simulated noise that keeps its scales."""

    def __init__(self):
        super().__init__(0)
        self.scales = []

    def discrete_gaussian(self, counts, scale):
        self.scales.append(scale)
        return super().discrete_gaussian(counts, scale)


def drawn(wanted):
    """Scales of both stages in the order of the cliques."""
    noise = Recording()
    data = dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(1.0, 1e-6), noise=noise)
    data.release(TwoStageTables(CLIQUES, 1.0, 1e-6, [1, 2, 3, 4, 5], GROUPS, lambda _: wanted))
    return noise.scales[:5], noise.scales[5:]


FIRST, SECOND = drawn(dict.fromkeys(CLIQUES, 0.0))


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from([0.0, 1.0, -2.5, math.inf, -math.inf, math.nan]), min_size=5, max_size=5))
def test_the_second_stage_has_its_scales_in_whatever_order(values):
    first, second = drawn(dict(zip(CLIQUES, values, strict=True)))
    assert first == FIRST
    for group in ("one", "two", None):
        members = [place for place, own in enumerate(GROUPS) if own == group]
        assert sorted(second[place] for place in members) == sorted(SECOND[place] for place in members)


def test_each_stage_and_each_group_has_its_share_of_the_loss():
    """But for the steps that scales of a block are rounded to."""
    first, second = (np.array(scales) ** -2 for scales in (FIRST, SECOND))
    np.testing.assert_allclose(first / first.sum(), np.arange(1, 6) / 15, rtol=0.1)
    for group in ("one", "two", None):
        members = [place for place, own in enumerate(GROUPS) if own == group]
        assert second[members].sum() / first[members].sum() == pytest.approx(0.65 / 0.35, rel=0.1)


def test_who_wants_most_has_the_least_noise():
    _, second = drawn(dict(zip(CLIQUES, [1.0, 9.0, 3.0, 9.0, 2.0], strict=True)))
    assert second[2] < second[4] < second[0]
    assert (second[1], second[3]) == (SECOND[1], SECOND[3])  # alone


@pytest.mark.parametrize(
    "change", [{"groups": GROUPS[:4]}, {"groups": [*GROUPS, "two"]}, {"weights": [1, 2]}, {"first": 1.0}]
)
def test_what_does_not_fit_is_refused_unpaid(change):
    budget = dp.PrivacyBudget(1.0, 1e-6)
    options = {"weights": [1] * 5, "groups": GROUPS, "wanted": lambda _: dict.fromkeys(CLIQUES, 0.0)} | change
    with pytest.raises(ValueError, match=next(iter(change))):
        dp.PrivateDataset(FRAME, SCHEMA, budget).release(TwoStageTables(CLIQUES, 1.0, 1e-6, **options))
    assert not budget.history


def test_units_of_one_row_are_single_records_and_others_are_refused_unpaid():
    people, budget = FRAME.assign(person=[1, 2]), dp.PrivacyBudget(1.0, 1e-6)
    mechanism = TwoStageTables(CLIQUES, 1.0, 1e-6, [1, 2, 3, 4, 5], GROUPS, lambda _: dict.fromkeys(CLIQUES, 0.0))
    for rows in (2, None):
        with pytest.raises(ValueError, match="single records"):
            dp.PrivateDataset(people, SCHEMA, budget, unit="person", max_rows=rows).release(mechanism)
    assert not budget.history
    noise = Recording()
    release = dp.PrivateDataset(people, SCHEMA, budget, noise=noise, unit="person", max_rows=1).release(mechanism)
    assert noise.scales == FIRST + SECOND
    assert (release.guarantee.unit, release.guarantee.max_rows) == ("person", 1)


def test_weights_beyond_floats_are_refused_unpaid():
    budget = dp.PrivacyBudget(1.0, 1e-6)
    with pytest.raises(ValueError, match="share"):
        dp.PrivateDataset(FRAME, SCHEMA, budget).measure(
            CLIQUES[:2], 1.0, delta=1e-6, mechanism="gaussian_block", weights=[1e-300, 1e300]
        )
    assert not budget.history


def test_the_pooled_release_states_the_noise_it_has():
    """Standardised errors of both stages together, within six deviations of their law."""
    errors = []
    for seed in range(300):
        data = dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(seed))
        release = data.release(
            TwoStageTables(
                CLIQUES,
                1.0,
                1e-6,
                [1] * 5,
                GROUPS,
                lambda first: {clique: float(table[0]) for clique, table in first.tables.items()},
            )
        )
        errors += [(table - 1) / release.noise(clique)[1] for clique, table in release.tables.items()]
    squares = np.concatenate(errors) ** 2
    assert abs(squares.mean() - 1) < 6 * np.sqrt(2 / squares.size)


def count(scale, move):
    """Probabilities of a count with discrete Gaussian noise, and of one that a neighbour moved."""
    k = np.arange(-math.ceil(6 * scale), math.ceil(6 * scale) + 1)
    p, q = (np.exp(-((k - centre) ** 2) / (2 * scale**2)) for centre in (0, move))
    return p / p.sum(), q / q.sum()


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_no_choice_of_who_has_less_noise_costs_more(neighbours):
    """Under "replace_one" a table may stay, and what the second stage loses then depends on the first answer: exact
    sums over all answers of one moved count of each of two tables, one of which may have no other count that moves."""
    counts = 1 if neighbours == "add_remove" else 2
    delta = 0.01
    scales = block_scales([1.0, 1.5, 1.0, 2.5], 6.0, delta, neighbours)
    first, ladder = scales[:2], scales[2:]
    epsilon = block_price(scales, delta, neighbours)
    assert epsilon <= 6.0

    def table(scale, moves):
        p, q = count(scale, moves)
        for _ in range(counts - 1):  # its other count: only whose losses there are
            one = count(scale, -moves)
            p, q = np.outer(p, one[0]).ravel(), np.outer(q, one[1]).ravel()
        return merged(p, q)

    def merged(p, q):
        """Answers of one loss together, which costs the same."""
        losses, places = np.unique(np.round(np.log(p) - np.log(q), 9), return_inverse=True)
        p = np.bincount(places, p)
        return p, p * np.exp(-losses)

    for moved in ((1, 1), (1, 0)) if counts == 2 else ((1, 1),):
        p, q = (np.outer(*each).ravel() for each in zip(*map(table, first, moved), strict=True))
        p, q = merged(p, q)
        orders = []
        for rungs in (ladder, ladder[::-1]):
            second = [np.outer(*each).ravel() for each in zip(*map(table, rungs, moved), strict=True)]
            orders.append(merged(*second))
        # for each first answer the dearer order: no `wanted` does worse
        x = math.exp(epsilon)
        each = [np.maximum(np.outer(p, one) - x * np.outer(q, other), 0.0).sum(axis=1) for one, other in orders]
        found = np.maximum(*each).sum()
        assert found <= delta
        if 0 in moved:  # the two orders do differ
            assert orders[0][0].shape != orders[1][0].shape or not np.allclose(orders[0][1], orders[1][1])
