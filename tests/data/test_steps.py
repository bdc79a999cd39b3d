"""Tables in steps: each at its own price, whatever is asked for, and no step without one."""

import math
from dataclasses import replace
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pytest
from noises import Noted

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms import selection
from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords
from pgmpy_dp.data.mechanisms.steps import Choose, Measure, Step, TablesInSteps
from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.privacy.accounting import epsilon_from_renyi, zcdp_curve
from pgmpy_dp.privacy.cost import Pure
from pgmpy_dp.privacy.noise import table_sensitivity
from pgmpy_dp.privacy.sequences import sequence_epsilon

SCHEMA = dp.Schema({variable: ["x", "y"] for variable in "abc"})
FRAME = pd.DataFrame({variable: ["x", "y"] * 20 for variable in SCHEMA.variables})
PAIRS = {("a", "b"): np.full((2, 2), 10.0), ("b", "c"): np.full((2, 2), 10.0)}
STEPS = [Step(1.0), Step(1.0, 2), Step(2.0)]


def scales_of(noise):
    """The scale of each table and choice; tables of one scale are drawn in one call, and all have as many records."""
    for kind, numbers, scale in noise.seen:
        choice = kind in ("exponential", "permute_and_flip")
        yield from [("choice", scale)] if choice else [("table", scale)] * round(sum(numbers) / len(FRAME))


def anything(chosen):
    return PAIRS.keys()


def asking():
    singles = yield Measure([("a",), ("b",), ("c",)], [1.0, 2.0, 1.0])
    assert set(singles.tables) == {("a",), ("b",), ("c",)}
    chosen = yield Choose(PAIRS, anything)
    assert set(chosen) == PAIRS.keys()
    return (yield Measure([chosen[0]], [1.0]))


def released(asking=asking, epsilon=1.0, delta=1e-6, steps=STEPS, neighbours="add_remove", rows=None):
    noise = Noted()
    unit = {} if rows is None else {"unit": "person", "max_rows": rows}
    frame = FRAME.assign(person=np.arange(len(FRAME)) // 4)
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(epsilon, delta), neighbours, noise, **unit)
    result, guarantee = data.release(TablesInSteps(steps, epsilon, delta, asking, "steps"))
    return result, guarantee, list(scales_of(noise)), data.budget.history


@pytest.mark.parametrize("epsilon", [1.0, 3.0, 12.0])
@pytest.mark.parametrize("rows", [None, 4])
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_the_noise_of_all_steps_costs_the_one_charge(neighbours, rows, epsilon):
    """What the discrete noise of each table costs at most, as continuous noise of a variance that is 2 less."""
    result, guarantee, scales, (charge,) = released(neighbours=neighbours, rows=rows, epsilon=epsilon)
    assert (charge.label, charge.epsilon, float(charge.delta)) == ("steps", epsilon, 1e-6)
    assert (guarantee.epsilon, guarantee.delta, guarantee.neighbours) == (epsilon, 1e-6, neighbours)
    assert [kind for kind, _ in scales] == ["table"] * 3 + ["choice"] * 2 + ["table"]
    moves, squared = (table_sensitivity(neighbours, norm, rows or 1) for norm in ("l1", "squared_l2"))
    of = [
        squared / (2 * (scale**2 - 2.0)) if kind == "table" else (moves * selection._GRID / scale) ** 2 / 2
        for kind, scale in scales
    ]
    parts = [(sum(of[:3]), 0), (sum(of[3:5]), 2), (of[5], 0)]
    assert 0.99 * epsilon < sequence_epsilon(parts, 1e-6) <= epsilon
    assert [rho / guarantee.rho for rho, _ in parts] == pytest.approx([0.25, 0.25, 0.5], rel=0.03)
    assert sorted(rho / sum(of[:3]) for rho in of[:3]) == pytest.approx([0.25, 0.25, 0.5], rel=0.03)
    assert result.guarantee == guarantee  # which table it is was chosen before


@pytest.mark.parametrize("epsilon", [0.1, 1 / 3, 7.7])
@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_the_losses_of_steps_fit_in_the_whole(epsilon, delta):
    """Each has its share at most, as exact fractions of what is stated."""
    shares = [0.1, 0.2, 0.7, 1 / 3, 1.1]
    mechanism = TablesInSteps([Step(share) for share in shares], epsilon, delta, asking, "steps")
    data = dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(epsilon, delta))
    quote = mechanism.quote(data._public)
    whole = Fraction(quote.guarantee.rho) if delta else quote.cost.epsilon
    exact = [Fraction(str(share)) for share in shares]
    for loss, share in zip(quote.terms.losses, exact, strict=True):
        maximum = whole * share / sum(exact)
        assert maximum * (1 - Fraction(1, 10**11)) <= Fraction(loss) <= maximum


def test_a_promise_is_above_zero_where_the_delta_alone_would_do():
    data = dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(1.0, 0.5))
    assert epsilon_from_renyi(zcdp_curve(0.01), 0.5) == 0.0
    assert data.release(CountedTables([("a",)], rho=0.01, delta=0.5)).guarantee.epsilon == 0.01


def test_without_a_delta_epsilons_add_up():
    result, guarantee, scales, (charge,) = released(delta=0.0)
    assert (charge.loss, guarantee.rho) == (Pure(1), None)
    of = [1 / scale if kind == "table" else 2 * selection._GRID / scale for kind, scale in scales]
    assert sum(of) == pytest.approx(1.0)
    exact = [Fraction(1 if kind == "table" else 2 * selection._GRID) / Fraction(scale) for kind, scale in scales]
    assert sum(exact) <= 1
    assert result.guarantee == guarantee


def test_what_is_asked_for_follows_the_steps():
    def too_many():
        yield from asking()
        yield Measure([("a",)], [1.0])

    def other_kind():
        yield Choose(PAIRS, anything)

    def in_place_of_choices():
        yield Measure([("a",)], [1.0])
        yield Measure([("b",)], [1.0])

    for asked, message in (
        (too_many, "more answers than it has steps"),
        (other_kind, "Choose"),
        (in_place_of_choices, "Measure"),
    ):
        with pytest.raises(TypeError, match=message):
            released(asked)


def test_nothing_may_be_asked_for_and_costs_the_same():
    def little():
        assert (yield Measure([], [])) is None
        assert (yield Choose({}, anything)) == ()
        return (yield Measure([("a",)], [1.0]))

    result, guarantee, scales, history = released(little)
    (own,), (others,) = guarantee.costs, released()[1].costs
    assert replace(own, id="", holder=None) == replace(others, id="", holder=None)
    assert len(scales) == len(history) == 1
    assert scales[0][1] == pytest.approx(math.sqrt(1 / guarantee.rho + 2.0), rel=1e-6)
    assert set(result.tables) == {("a",)}


def test_nothing_is_asked_for_before_the_charge():
    def never():
        raise AssertionError
        yield

    data = dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(0.5, 1e-6))
    with pytest.raises(dp.BudgetExceededError):
        data.release(TablesInSteps(STEPS, 1.0, 1e-6, never, "steps"))
    for steps in ([Step(0.0)], [Step(1.0, -1)]):
        with pytest.raises(ValueError, match=r"share|picks"):
            data.release(TablesInSteps(steps, 0.5, 1e-6, never, "steps"))
    assert not data.budget.history


def test_a_source_that_cannot_be_read_fails_unpaid(monkeypatch):
    class Unreadable:
        def counts(self, cliques):
            raise OSError("unreadable")

    data = dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(1.0, 1e-6))
    monkeypatch.setattr(dp.PrivateDataset, "_read_from", property(lambda self: PrivateRecords(Unreadable(), {})))
    with pytest.raises(OSError, match="unreadable"):
        data.release(TablesInSteps(STEPS, 1.0, 1e-6, asking, "steps"))
    assert not data.budget.history


@pytest.mark.parametrize("change", ["INSERT INTO records VALUES ('x', 'x', 'x')", "DROP TABLE records"])
@pytest.mark.parametrize("charged", [False, True])
def test_a_source_that_changes_says_what_was_charged(change, charged):
    """Before the charge it is refused unpaid; between the steps, the charge stays."""
    connection = duckdb.connect()
    connection.register("frame", FRAME)
    connection.execute("CREATE TABLE records AS SELECT * FROM frame")
    data = dp.PrivateDataset(connection.table("records"), SCHEMA, dp.PrivacyBudget(1.0))

    def asking():
        yield Measure([("a",)], [1.0])
        connection.execute(change)
        yield Measure([("b",)], [1.0])

    if not charged:
        connection.execute(change)
    with pytest.raises(dp.SchemaError) as caught:
        data.release(TablesInSteps([Step(1.0), Step(1.0)], 0.5, 0.0, asking, "two steps"))
    said = "The charge 'two steps' stays." if charged else "No charge was added for this answer; earlier ones stay."
    assert str(caught.value).endswith(said)
    assert "Nothing was charged" not in str(caught.value)
    assert len(data.budget.history) == charged
    assert caught.value.__context__ is None
