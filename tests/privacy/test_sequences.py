"""The price of a sequence of noisy steps and choices against exact sums over all outcomes."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf
from scipy.stats import norm

from pgmpy_dp.privacy.accounting import rho_for
from pgmpy_dp.privacy.noise import gaussian_scale, table_sensitivity
from pgmpy_dp.privacy.sequences import (
    _before_choice,
    _before_noise,
    sequence_epsilon,
    sequence_rho,
    with_discrete_noise,
)


def gaussian_delta(epsilon, rho):
    """Of continuous noise (Balle and Wang 2018, Theorem 8)."""
    mu = math.sqrt(2 * rho)
    return norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)


def hockey_stick(epsilon, probability, loss):
    return float((probability * -np.expm1(np.minimum(epsilon - loss, 0.0))).sum())


def choice(scores, moves, scale):
    """Probabilities and losses of the exponential mechanism, whose scores a neighbour moves."""
    p, q = np.exp(scores / scale), np.exp((scores + moves) / scale)
    p, q = p / p.sum(), q / q.sum()
    return p, np.log(p / q)


def count(scale, move=1):
    """Probabilities and losses of a count with discrete Gaussian noise."""
    k = np.arange(-math.ceil(12 * scale), math.ceil(12 * scale) + 1)
    p = np.exp(-(k**2) / (2 * scale**2))
    return p / p.sum(), ((k - move) ** 2 - k**2) / (2 * scale**2)


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 3.0])
@pytest.mark.parametrize("parts", [1, 4])
@pytest.mark.parametrize("delta", [1e-2, 1e-6, 1e-11])
def test_noise_alone_costs_what_one_gaussian_does(rho, parts, delta):
    epsilon = sequence_epsilon([(rho / parts, 0)] * parts, delta)
    assert gaussian_delta(epsilon, rho) <= delta
    assert epsilon == 0.0 or gaussian_delta(epsilon * 0.98, rho) > delta


@pytest.mark.parametrize("width", [0.01, 0.3, 2.0, 8.0])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_one_choice_costs_the_closed_form(width, share):
    """Over all places of the range: (exp(e / 2) - exp(a / 2))**2 / (exp(e) - 1)."""

    def exact(epsilon):
        return (math.exp(width / 2) - math.exp(epsilon / 2)) ** 2 / math.expm1(width)

    epsilon = sequence_epsilon([(width**2 / 8, 1)], exact(share * width))
    assert share * width <= epsilon <= (share + 0.1) * width


numbers = st.lists(st.floats(-1, 1), min_size=3, max_size=3).map(np.array)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(numbers, min_size=6, max_size=6),
    st.floats(0.3, 3.0),
    st.floats(1.7, 6.0),
    st.sampled_from([0.2, 1e-2, 1e-4]),
)
def test_no_adaptive_sequence_costs_more(given_scores, scale, noise, delta):
    """A choice decides which table is counted and what is chosen from then, and the noisy count too."""
    rho = 1 / (2 * scale**2)  # scores move by at most 1
    counted = 1 / (2 * (noise**2 - 2.0)) if noise**2 > 2.1 else 5.0
    epsilon = sequence_epsilon([(rho, 1), (counted, 0), (rho, 1)], delta)
    found = 0.0
    first, first_loss = choice(5 * given_scores[0], np.sign(given_scores[1]), scale)
    for one in range(3):
        middle, middle_loss = count(noise if noise**2 > 2.1 else math.sqrt(2.1), (1, -1, 0)[one])
        for sign, half in ((0, middle_loss < 0), (1, middle_loss >= 0)):
            last, last_loss = choice(given_scores[2 + sign], given_scores[4 + sign] * (1, -1, 1)[one], scale)
            probability = first[one] * np.outer(middle[half], last)
            found += hockey_stick(epsilon, probability, first_loss[one] + np.add.outer(middle_loss[half], last_loss))
    assert found <= delta * (1 + 1e-9)


def worst(epsilon, widths):
    """The largest delta of choices in turn, each at the worst place of its range for what is left."""
    if not widths:
        return max(0.0, -math.expm1(epsilon))
    e, left = widths[0], widths[1:]
    return max(
        (math.exp(e) - math.exp(t)) / math.expm1(e) * worst(epsilon - t, left)
        + math.expm1(t) / math.expm1(e) * worst(epsilon - t + e, left)
        for t in np.linspace(0, e, 21)
    )


def test_choices_in_turn_cost_the_worst_of_all_their_ranges():
    rho, delta = 0.05, 1e-2
    widths = [math.sqrt(8 * rho / 3)] * 3
    epsilon = sequence_epsilon([(rho, 3)], delta)
    assert worst(epsilon, widths) <= delta < worst(0.94 * epsilon, widths)
    # A range half as wide would be that of scores that all move the same way.
    assert worst(sequence_epsilon([(rho / 4, 3)], delta), widths) > 2 * delta


def exact_delta(epsilon, scale, moves):
    """Of a table with discrete noise whose cells a unit moves by this much: by sums over all outcomes, to 40 digits."""
    variance, reach, squared = mpf(scale) ** 2, math.ceil(14 * scale), sum(move**2 for move in moves)
    odds = np.array([mp.exp(-(mpf(k) ** 2) / (2 * variance)) for k in range(-reach, reach + 1)])
    law = np.array([mpf(1)])
    for move in moves:  # the loss depends on the sum of each cell's noise times its move
        one = np.full(2 * reach * move + 1, mpf(0))
        one[::move] = odds / odds.sum()
        law = np.convolve(law, one)
    middle, epsilon = len(law) // 2, mpf(epsilon)
    losses = ((p, (mpf(squared) / 2 - (place - middle)) / variance) for place, p in enumerate(law))
    return sum(-p * mp.expm1(epsilon - loss) for p, loss in losses if loss > epsilon)


MOVES = [(1, [1]), (2, [1, 1]), (9, [3]), (9, [1, 2]), (18, [3, 3]), (16, [1] * 4)]  # with the squared sensitivity


@pytest.mark.parametrize("rho", [0.5, 3.0, 40.0])
@pytest.mark.parametrize(("squared", "moves"), MOVES)
def test_discrete_noise_costs_no_more_than_it_is_priced_at(rho, squared, moves):
    with mp.workdps(40):
        scale = gaussian_scale(with_discrete_noise(rho, squared), squared)
        for delta in (1e-2, 1e-6):
            assert exact_delta(sequence_epsilon([(rho, 0)], delta), scale, moves) <= delta


@pytest.mark.parametrize("rho", [1e-4, 0.3, 7.0, 1e3])
@pytest.mark.parametrize("rows", [1, 3, 2**20])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_discrete_noise_has_one_blur_more_of_variance_whatever_a_unit_moves(rho, rows, neighbours):
    squared = table_sensitivity(neighbours, "squared_l2", rows)
    variance = Fraction(gaussian_scale(with_discrete_noise(rho, squared), squared)) ** 2
    minimum = Fraction(squared) / (2 * Fraction(rho)) + 2
    assert minimum <= variance <= (minimum + 1) * (1 + Fraction(1, 10**9))
    # The factors of all cells that a unit moves are no more than those of two cells at a blur of 2.
    with mp.workdps(40):
        blur = mpf(variance.numerator) / variance.denominator - mpf(squared) / (2 * mpf(rho))
        cells = rows if neighbours == "add_remove" else 2 * rows
        assert cells * mp.exp(-2 * mp.pi**2 * blur) <= 2 * mp.exp(-4 * mp.pi**2)


@pytest.mark.parametrize(("epsilon", "delta", "more"), [(1.0, 1e-6, 0.13), (0.1, 1e-9, 0.1), (10.0, 1e-6, 0.09)])
def test_a_sequence_has_more_rho_than_by_zcdp(epsilon, delta, more):
    parts = [(0.1, 0), (0.2, 20), (0.2, 0), (0.2, 5), (0.3, 0)]
    rho = sequence_rho(parts, epsilon, delta)
    assert rho / rho_for(epsilon, delta) - 1 == pytest.approx(more, abs=0.02)
    assert 0.998 * epsilon < sequence_epsilon([(share * rho, choices) for share, choices in parts], delta) <= epsilon


def test_beyond_its_range_zcdp_prices_a_sequence():
    for epsilon, delta in ((1.0, 1e-13), (100.0, 1e-6)):
        assert sequence_rho([(1.0, 0), (1.0, 3)], epsilon, delta) == rho_for(epsilon, delta)
    with pytest.raises(ValueError, match="share"):
        sequence_rho([(0.0, 1)], 1.0, 1e-6)
    with pytest.raises(ValueError, match="delta"):
        sequence_rho([(1.0, 1)], 1.0, 0.0)


@pytest.mark.parametrize("step", [0.01, 0.2])
def test_a_step_costs_at_least_what_skipping_it_does(step):
    """Whatever follows: a step that is not asked for has no loss."""
    grid = step * np.arange(-400, 401)
    for after in (
        np.maximum(0.0, -np.expm1(grid)),
        np.maximum(0.0, -np.expm1(grid - 1.0)),
        0.3 * np.maximum(0.0, -np.expm1(grid)) + 0.7 * np.maximum(0.0, -np.expm1(grid + 1.0)),
        np.full_like(grid, 0.5),
    ):
        for rho in (1e-4, 0.02, 3.0):
            assert (_before_noise(after, rho, step) >= after).all()
        for width in (0.3 * step, 7.0 * step):
            assert (_before_choice(after, width, step) >= after).all()


@pytest.mark.parametrize("width", [0.06, 0.3, 0.54])
@pytest.mark.parametrize("shift", [0.0, 0.05, 0.15])
def test_a_choice_costs_the_worst_place_of_its_range_wherever_that_lies(width, shift):
    """Between the points of the grid too: of widths that are not whole numbers of steps."""
    step = 0.2
    grid = step * np.arange(-100, 101)

    def after(loss):
        return np.maximum(0.0, -np.expm1(loss + shift))

    bound = _before_choice(after(grid), width, step)[20:-20]
    for place in np.linspace(0.0, width, 41):
        odds = (math.exp(width) - math.exp(place)) / math.expm1(width)
        exact = odds * after(grid - place) + (1.0 - odds) * after(grid - place + width)
        assert (bound >= exact[20:-20] - 1e-15).all()


moves = st.sampled_from([-1, 0, 1])


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.lists(moves, min_size=2, max_size=2), min_size=4, max_size=4),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.floats(0.0, 1.0),
    st.sampled_from([0.2, 1e-2, 1e-4]),
    st.booleans(),
)
def test_steps_on_rows_that_are_drawn_at_random_cost_no_more(moved, skipped, odds, delta, once):
    """Two steps count rows that are drawn anew for each, or once for both, and the first answer says which the second
    counts, or that it is skipped. A unit's rows move a count by what the draw says, or not at all."""
    scale = 2.3
    rho = 1 / (2 * (scale**2 - 2.0))
    epsilon = sequence_epsilon([(rho, 0)] * 2, delta)
    numbers = np.arange(-40, 41)
    draws = np.array([odds, 1 - odds])

    def answers(centre):
        p = np.exp(-((numbers - centre) ** 2) / (2 * scale**2))
        return p / p.sum()

    def pair(of):
        """Answers of a step for each draw: without the unit's rows, and with them."""
        return np.array([answers(0) for _ in of]), np.array([answers(move) for move in of])

    found, (p, q) = 0.0, pair(moved[0])
    for place, half in enumerate((numbers < 0, numbers >= 0)):
        second = (np.ones((2, 1)), np.ones((2, 1))) if skipped[place] else pair(moved[2 + place])
        if once:
            both = [np.einsum("d,dy,dz->yz", draws, *each) for each in zip((p, q), second, strict=True)]
        else:
            both = [np.outer(draws @ one, draws @ two) for one, two in zip((p, q), second, strict=True)]
        found += np.maximum(both[0][half] - math.exp(epsilon) * both[1][half], 0.0).sum()
    assert found <= delta


def test_what_the_grid_does_not_hold_has_no_finite_price_and_a_delta_above_all_loss_none():
    assert sequence_epsilon([(0.02, 0)], 1e-25) == math.inf  # what is cut off has more mass
    for delta in (0.5, 0.9):  # within the grid, and above all of it
        assert sequence_epsilon([(1e-9, 0), (1e-9, 3)], delta) == 0.0
    assert gaussian_delta(0.0, 2e-9) <= 0.5
