"""The ledger."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.errors import BudgetExceededError
from pgmpy_dp.privacy.accounting import epsilon_from_renyi, renyi_curve, rho_for, zcdp_curve, zcdp_limit
from pgmpy_dp.privacy.budget import PrivacyBudget, PrivacyLoss
from pgmpy_dp.privacy.cost import Approx, Cost, Pure, Zcdp


def pure(epsilon):
    return Cost("table", "laplace", Pure(epsilon))


def zcdp(rho):
    return Cost("table", "gaussian", Zcdp(rho))


def block(epsilon, delta):
    return Cost("sums", "sampled_gaussian", Approx(epsilon, delta))


def charged(budget, *costs):
    """The budget, with these costs paid."""
    for cost in costs:
        budget.charge(cost)
    return budget


def require_refused(budget, *costs, message=None):
    """Each cost is too much, and leaves the history as it was."""
    before = budget.history
    for cost in costs:
        with pytest.raises(BudgetExceededError, match=message):
            budget.charge(cost)
    assert budget.history == before


GAUSSIAN = (1.0, 1e-6)
LEFT = Fraction(1, 10**9)  # no order proves so small an epsilon at a delta of 1e-200
LESS = r"epsilon=0\.5.*spent epsilon=0\.7.*at most epsilon=0\.3"
WHOLE = zcdp(zcdp_limit(*GAUSSIAN)[0])


@pytest.mark.parametrize(
    ("total", "paid", "refused", "message", "rest"),
    [
        ((1,), [pure(0.7)], [pure(0.5)], LESS, [pure(0.3)]),
        ((1.0, 1e-9), [pure(1.0)], [zcdp(1e-12)], None, []),
        (GAUSSIAN, [], [block(1.1, 1e-7), block(0.1, 1.1e-6)], r"delta=.*at most epsilon=1\.0, delta=1e-06", None),
        (GAUSSIAN, [zcdp(rho_for(0.2, 1e-6))], [block(0.01, 1e-12)], "blocks first", None),
        (GAUSSIAN, [WHOLE], [zcdp(1e-300), pure(1e-300)], "Nothing is left", []),
        ((1.0, 1e-200), [pure(1 - LEFT)], [zcdp(1e-300)], None, [pure(LEFT)]),
    ],
    ids=["pure", "purely", "blocks", "blocks after", "all", "too little"],
)
def test_what_does_not_fit_is_refused_and_the_rest_may_be_spent(total, paid, refused, message, rest):
    budget = charged(PrivacyBudget(*total), *paid)
    require_refused(budget, *refused, message=message)
    assert [cost.loss for cost in budget.history] == [cost.loss for cost in paid]
    if rest is not None:
        assert charged(budget, *rest).remaining.epsilon == 0.0


def test_a_block_counts_by_its_rho_after_gaussian_measurements():
    rho = rho_for(0.3, 1e-6)
    block_of_noise = Cost("steps", "gaussian", Approx(0.3, 1e-9, rho))
    budgets = [charged(PrivacyBudget(*GAUSSIAN), zcdp(rho), cost) for cost in (block_of_noise, zcdp(rho))]
    assert budgets[0].spent == budgets[1].spent
    assert budgets[0].remaining == budgets[1].remaining
    assert charged(PrivacyBudget(*GAUSSIAN), block_of_noise).spent == PrivacyLoss(0.3, 1e-9)  # before, by its own price
    require_refused(budgets[0], *[Cost("steps", "gaussian", Approx(0.9, 1e-9, rho_for(0.9, 1e-6)))], message="at most")


@given(st.lists(st.decimals(min_value="0.001", max_value="3", places=3), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_pure_sums_are_exact_decimals(parts):
    budget = charged(PrivacyBudget(float(sum(parts))), *(pure(float(part)) for part in parts))
    assert budget.remaining.epsilon == 0.0
    require_refused(budget, pure(1e-12))


@pytest.mark.parametrize("cost", [zcdp(0.001), block(0.1, 1e-9)])
def test_a_pure_budget_takes_pure_charges_alone(cost):
    budget = PrivacyBudget(1.0)
    with pytest.raises(ValueError, match="needs a delta") as caught:
        budget.charge(cost)
    assert not isinstance(caught.value, BudgetExceededError)
    assert budget.history == ()


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.01, 1e-9), (8.0, 1e-5)])
def test_a_gaussian_of_the_whole_budget_fits_whole_and_in_parts(epsilon, delta):
    rho = rho_for(epsilon, delta)
    for parts in (1, 3, 10):
        budget = charged(PrivacyBudget(epsilon, delta), *[zcdp(rho / parts)] * parts)
        assert budget.spent.epsilon == pytest.approx(epsilon)
        assert budget.spent.epsilon <= epsilon
        assert budget.spent.delta == delta
        require_refused(budget, zcdp(rho * 1e-9))


def test_zcdp_composes_better_than_epsilons_add():
    assert charged(PrivacyBudget(*GAUSSIAN), *[zcdp(rho_for(0.5, 1e-6))] * 3).spent.epsilon < 1.0


def test_pure_charges_before_a_gaussian_leave_it_the_difference():
    budget = charged(PrivacyBudget(*GAUSSIAN), *[pure(0.1)] * 4)
    assert budget.spent == PrivacyLoss(0.4, 0.0)
    assert budget.remaining.epsilon == 0.6
    charged(budget, zcdp(rho_for(0.6, 1e-6)))
    assert 0.999 < budget.spent.epsilon <= 1.0
    require_refused(budget, pure(0.001))


def test_what_remains_after_a_gaussian_can_be_asked_for():
    budget, twin = (charged(PrivacyBudget(*GAUSSIAN), zcdp(rho_for(0.3, 1e-6))) for _ in range(2))
    with pytest.raises(BudgetExceededError, match=r"by a pure one") as caught:
        budget.charge(pure(1.0))
    hint = float(str(caught.value).split("or for epsilon=")[1].split(" ")[0])
    charged(twin, pure(hint))
    charged(budget, zcdp(rho_for(budget.remaining.epsilon, 1e-6)))
    assert budget.spent.epsilon <= 1.0
    assert budget.remaining.epsilon < 0.05


@given(st.lists(st.tuples(st.booleans(), st.floats(0.01, 0.6)), min_size=1, max_size=12), st.sampled_from([1e-9, 1e-5]))
@settings(max_examples=40, deadline=None)
def test_every_accepted_history_has_a_certificate(plan, delta):
    """The rule, from the history alone: a pure sum, then one order fixed by what the pure charges left."""
    budget = PrivacyBudget(1.0, delta)
    for is_pure, epsilon in plan:
        try:
            budget.charge(pure(epsilon) if is_pure else zcdp(rho_for(epsilon, delta)))
        except BudgetExceededError:
            continue
        assert budget.spent.epsilon <= 1.0
    history = budget.history
    first = next((i for i, charge in enumerate(history) if charge.rho is not None), len(history))
    before = sum((charge.epsilon for charge in history[:first]), Fraction(0))
    assert before <= 1
    if history[first:]:
        left = float(1 - before)
        after = np.sum([renyi_curve(charge.loss) for charge in history[first:]], axis=0)
        assert epsilon_from_renyi(after, delta) <= left * (1 + 1e-12)
        # At the single order that was fixed, not only at the best one:
        largest = zcdp_curve(rho_for(left, delta))
        limits = [i for i in range(len(after)) if after[i] <= largest[i] * (1 + 2e-12)]
        only = np.full_like(after, np.inf)
        only[limits] = after[limits]
        assert epsilon_from_renyi(only, delta) <= left * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [0, 0.0, -1, float("nan"), float("inf"), True, np.True_, "1", None, 1j, 10**400])
def test_bad_epsilons_are_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        PrivacyBudget(epsilon)
    if epsilon is not None:
        with pytest.raises(ValueError, match="epsilon"):
            pure(epsilon)
        with pytest.raises(ValueError, match="rho"):
            zcdp(epsilon)


@pytest.mark.parametrize("delta", [1, 1 - Fraction(1, 10**30), -1e-9, float("nan"), float("inf"), False, "0", None])
def test_bad_deltas_are_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        PrivacyBudget(1.0, delta)


def test_numpy_numbers_are_numbers():
    assert charged(PrivacyBudget(np.float64(1.0), np.float64(0.0)), pure(np.float32(0.1))).spent.epsilon == 0.1
    assert PrivacyBudget(np.int64(2)).epsilon == 2.0
    assert PrivacyBudget(Fraction(1, 3)).epsilon == math.nextafter(1 / 3, 1)  # not below a third


@pytest.mark.parametrize("parts", range(3, 60))
def test_what_remains_of_any_fraction_can_be_asked_for(parts):
    budget = charged(PrivacyBudget(1), pure(Fraction(1, parts)))
    assert Fraction(str(budget.spent.epsilon)) >= Fraction(1, parts)
    assert charged(budget, pure(budget.remaining.epsilon)).remaining.epsilon < 1e-15


def test_what_is_no_cost_or_was_paid_before_is_not_charged():
    for wrong in (0.5, Cost("exact", "none", None, private=False), PrivacyBudget(1.0).charge(pure(0.5))):
        with pytest.raises(ValueError, match="takes a Cost with a loss that was not paid before"):
            PrivacyBudget(1.0).charge(wrong)


def test_repr_is_short():
    assert repr(PrivacyBudget(1.0, 1e-6)) == "PrivacyBudget(epsilon=1.0, delta=1e-06, spent epsilon=0)"


def test_blocks_add_exactly_in_epsilon_and_delta():
    budget = charged(PrivacyBudget(*GAUSSIAN), *[block(0.05, 1e-7)] * 10)
    assert budget.spent == PrivacyLoss(0.5, 1e-6)
    assert budget.remaining == PrivacyLoss(0.5, 0.0)
    require_refused(budget, block(0.1, 1e-12), zcdp(1e-9))
    assert charged(budget, pure(0.5)).remaining == PrivacyLoss(0.0, 0.0)


def test_a_gaussian_after_blocks_has_what_they_leave():
    budget, fits = charged(PrivacyBudget(*GAUSSIAN), block(0.4, 3e-7)), rho_for(0.6, 7e-7)
    require_refused(budget, zcdp(fits * (1 + 1e-9)))
    assert charged(budget, zcdp(fits)).spent.epsilon == pytest.approx(1.0)
    assert budget.spent.delta == 1e-6


@pytest.mark.parametrize("delta", [1.0, -1e-9, math.nan, math.inf, True, "1e-6"])
def test_bad_deltas_of_blocks_are_refused(delta):
    with pytest.raises(ValueError, match="delta"):
        block(0.1, delta)


def test_added_blocks_are_what_the_sum_says():
    """Two (e, d) mechanisms of the worst kind, the second chosen by the first's answer: delta at the summed epsilon."""
    e, d = [0.3, 0.5, 0.2], [0.01, 0.02, 0.03]

    def worst(epsilon, delta):
        """The pair that dominates all (epsilon, delta) mechanisms (Kairouz, Oh and Viswanath 2015)."""
        keep = (1 - delta) / (1 + math.exp(epsilon))
        p = np.array([delta, keep * math.exp(epsilon), keep, 0.0])
        return p, p[::-1]

    first = worst(e[0], d[0])
    left = right = np.zeros(0)
    for answer in range(4):
        second = worst(e[1], d[1]) if answer % 2 else worst(e[1] / 2, d[1] / 2)
        left = np.concatenate([left, first[0][answer] * second[0]])
        right = np.concatenate([right, first[1][answer] * second[1]])
    assert np.maximum(left - math.exp(e[0] + e[1]) * right, 0).sum() <= d[0] + d[1]


def test_a_gaussian_that_takes_all_leaves_nothing():
    assert charged(PrivacyBudget(*GAUSSIAN), WHOLE).remaining == PrivacyLoss(0.0, 1e-6)


@pytest.mark.parametrize("parts", range(3, 40))
def test_what_blocks_leave_of_delta_is_not_rounded_up(parts):
    taken = Fraction(1, parts * 10**6)
    budget = charged(PrivacyBudget(*GAUSSIAN), block(0.1, taken))
    assert Fraction(str(budget.remaining.delta)) <= Fraction(1, 10**6) - taken
    charged(budget, block(0.1, budget.remaining.delta))  # and may be asked for


def test_a_part_takes_charges_of_its_own_kind_alone():
    budget = PrivacyBudget(1.0, 1e-6)
    part = budget.set_aside(0.5, 1e-6)
    for other in (pure(0.01), block(0.01, 1e-9)):
        with pytest.raises(ValueError, match="set aside for zCDP charges only"):
            part.charge(other)
    for other in (zcdp(1e-9), block(0.01, 1e-9)):
        with pytest.raises(ValueError, match="needs a delta"):
            budget.set_aside(0.1).charge(other)
    assert budget.history == ()
