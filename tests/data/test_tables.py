"""Tables: over all neighbours of small data, what a unit moves is paid for by the noise, in exact fractions."""

import itertools
import sys
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from noises import Noted, moved

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.mechanism import PublicRecords
from pgmpy_dp.data.mechanisms.tables import CountedTables, deviations
from pgmpy_dp.privacy.accounting import epsilon_from_renyi, zcdp_curve

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["p", "q", "r"], "c": ["u", "v"]})
CELLS = list(itertools.product(*SCHEMA.states.values()))
CLIQUES = [("a",), ("c", "b"), ("b", "a", "c")]
FIXED = [("x", "p", "u", 0), ("x", "p", "u", 0), ("y", "r", "v", 1)]  # with the person
DELTA = 1e-6


def measured(rows, relation, unit, epsilon, how):
    """What one person's rows lead to that are added to those of others: what was asked for, and the promise."""
    noise = Noted()
    frame = pd.DataFrame([*FIXED, *((*row, 9) for row in rows)], columns=[*SCHEMA.variables, "person"])
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(epsilon, DELTA), relation, noise, **unit)
    noisy = data.measure(CLIQUES, epsilon, weights=[3, 1, 0.3], **how)
    return noise.seen, noisy.guarantee, data.budget.history[0]


UNITS = {
    "records": ({}, [[cell] for cell in CELLS]),
    "two rows": (
        {"unit": "person", "max_rows": 2},
        [[CELLS[0]], [CELLS[0]] * 5, [CELLS[11]] * 2, [CELLS[0], CELLS[11]], [CELLS[3], CELLS[8]]],
    ),
    "weight one": ({"unit": "person"}, [[CELLS[0]], [CELLS[0]] * 5, [CELLS[11]] * 3, [CELLS[0], CELLS[11], CELLS[5]]]),
}


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", UNITS)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 40.0])
def test_no_unit_costs_more_than_is_charged(relation, name, epsilon):
    unit, rows = UNITS[name]
    for how, power in (({}, 1), ({"delta": DELTA, "mechanism": "gaussian"}, 2)):
        found = [measured(own, relation, unit, epsilon, how) for own in rows]
        before = [measured([], relation, unit, epsilon, how)] if relation == "add_remove" else found
        worst = max(moved(one[0], other[0], power) for one in found for other in before)
        _, guarantee, charge = found[0]
        paid, stated = (charge.epsilon, guarantee.epsilon) if power == 1 else (2 * Fraction(charge.rho), guarantee.rho)
        assert paid * (1 - Fraction(1, 10**5)) < worst <= paid
        assert Fraction(str(stated)) * power >= worst


def test_tables_priced_in_rho_are_charged_rho_and_the_epsilon_that_it_implies():
    data = dp.PrivateDataset(pd.DataFrame(FIXED, columns=[*"abc", "person"]), SCHEMA, dp.PrivacyBudget(5.0, 1e-5))
    noisy = data.release(CountedTables([("a",)], rho=0.1, delta=DELTA))
    (charge,) = data.budget.history
    implied = epsilon_from_renyi(zcdp_curve(0.1), DELTA)
    assert charge.loss.rho == noisy.guarantee.rho == 0.1
    assert float(charge.epsilon) == noisy.guarantee.epsilon == pytest.approx(implied)
    assert noisy.scales["a",] ** 2 == pytest.approx(1 / (2 * 0.1))


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"epsilon": 1e-17}, "64-bit"),
        ({"sampling_rate": 0.5, "mechanism": "gaussian", "delta": 1e-7}, "priced for the Laplace"),
        ({"sampling_rate": 0.5, "delta": 1e-7}, "priced for the Laplace"),
        ({"mechanism": "gaussian", "delta": 1e-5}, "more than the budget's"),
        ({"mechanism": "gaussian_block", "delta": 0.0}, "greater than 0"),
    ],
)
def test_what_is_not_priced_is_refused_unpaid(change, match):
    data = dp.PrivateDataset(np.zeros((2, 3), int), dp.Schema({v: [0, 1] for v in "abc"}), dp.PrivacyBudget(1.0, 1e-6))
    with pytest.raises(ValueError, match=match):
        data.measure(**{"cliques": [("a",)], "epsilon": 0.5} | change)
    assert data.budget.history == ()


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian", "gaussian_block"])
def test_tables_of_more_weight_have_less_noise(mechanism):
    """Variances are as the weights are, those of a block up to the steps that its scales are rounded to."""
    frame = pd.DataFrame(FIXED, columns=[*SCHEMA.variables, "person"])
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0, DELTA))
    noise = {"mechanism": mechanism, "delta": 0.0 if mechanism == "laplace" else DELTA}
    scales = data.measure(CLIQUES, 0.5, weights=[8, 4, 1], **noise).scales
    losses = np.array([scales[clique] for clique in CLIQUES]) ** (-1.0 if mechanism == "laplace" else -2.0)
    np.testing.assert_allclose(losses / losses[2], [8, 4, 1], rtol=0.2 if mechanism == "gaussian_block" else 1e-6)


SEVERAL = [
    ({}, "gaussian_block"),
    ({"unit": "person", "max_rows": 1}, "gaussian_block"),
    ({"unit": "person", "max_rows": 2}, "gaussian"),
    ({"unit": "person"}, "gaussian"),
]


def unnamed(cost):
    """A cost as it was before it was paid."""
    return replace(cost, id="", holder=None, ledger_total=None)


@pytest.mark.parametrize(("unit", "best"), SEVERAL)
def test_auto_is_the_best_noise_that_the_delta_pays_for(unit, best):
    frame = pd.DataFrame(FIXED, columns=[*SCHEMA.variables, "person"])
    for delta, mechanism in ((0.0, "laplace"), (DELTA, best)):
        found = []
        for name in ("auto", mechanism):
            noise, budget = Noted(), dp.PrivacyBudget(1.0, DELTA)
            data = dp.PrivateDataset(frame, SCHEMA, budget, noise=noise, **unit)
            noisy = data.measure(CLIQUES, 0.5, delta=delta, mechanism=name, weights=[3, 1, 0.3])
            assert {law for law, *_ in noise.seen} == {noisy.guarantee.mechanism}
            found.append((noise.seen, noisy, budget.history))
        (seen, noisy, (charge,)), (others, other, (its,)) = found
        assert seen == others
        assert replace(noisy, guarantee=other.guarantee) == other
        assert unnamed(charge) == unnamed(its)


@pytest.mark.parametrize("unit", [unit for unit, _ in SEVERAL])
@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("delta", [0.0, DELTA])
def test_a_price_that_is_asked_before_records_are_read_says_the_noise_they_get(unit, relation, delta):
    asked = CountedTables(CLIQUES, 0.5, delta, weights=[3, 1, 0.3])
    frame = pd.DataFrame(FIXED, columns=[*SCHEMA.variables, "person"])
    noisy = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0, DELTA), relation, **unit).release(asked)
    quote = asked.quote(PublicRecords.of(SCHEMA, DELTA, relation, **unit))
    (paid,) = noisy.guarantee.every
    assert quote.cost == unnamed(paid)
    assert deviations(quote) == pytest.approx({clique: noisy.noise(clique)[1] for clique in CLIQUES}, rel=1e-12)


def test_such_a_price_is_refused_where_the_delta_would_be():
    with pytest.raises(ValueError, match="more than the budget's"):
        CountedTables(CLIQUES, 0.5, 2 * DELTA).quote(PublicRecords.of(SCHEMA, DELTA))


@pytest.mark.parametrize(
    ("unit", "total"),
    [
        ({}, 3),
        ({"unit": "person", "max_rows": 1}, 2),
        ({"unit": "person"}, 2),
        ({"unit": "person", "max_rows": 2}, None),
        ({"unit": "person", "max_rows": 3}, None),
    ],
)
def test_a_total_is_public_where_units_are_replaced_and_each_counts_once(unit, total):
    frame = pd.DataFrame(FIXED, columns=[*SCHEMA.variables, "person"])
    for relation, public in (("replace_one", total), ("add_remove", None)):
        data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0), relation, **unit)
        assert data.measure(CLIQUES, 1.0).public_total == public
        assert data.max_rows == (unit.get("max_rows") if unit else 1)


def test_private_noise_is_asked_for_once_a_scale_and_each_table_gets_its_part():
    noise = Noted(private=True)  # as OpenDP's is asked for
    frame = pd.DataFrame(FIXED, columns=[*SCHEMA.variables, "person"])
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0), noise=noise)
    cliques = [("a",), ("c", "b"), ("a", "c"), ("b", "a", "c")]
    noisy = data.measure(cliques, 1.0, weights=[3, 1, 3, 1])
    asked = sorted((len(counts), scale) for _, counts, scale in noise.seen)
    assert asked == [(6, pytest.approx(8 / 3)), (18, 8.0)]
    exact = dp.exact_marginals(frame, SCHEMA, cliques).tables
    assert all((noisy.tables[clique] == exact[clique]).all() for clique in cliques)


@pytest.mark.full
@pytest.mark.parametrize("delta", [0.0, 1e-9])
def test_a_table_costs_a_few_operations_however_many_there_are(delta):
    schema = dp.Schema({f"v{number}": ["x", "y"] for number in range(633)})
    pairs = list(itertools.combinations(schema.variables, 2))
    weights = [1.0 + place % 40 for place in range(len(pairs))]
    public = PublicRecords.of(schema, delta)

    def operations(tables):
        asked = CountedTables(pairs[:tables], 1.0, delta, weights=weights[:tables])
        asked.quote(public)  # imports, and prices that are kept
        calls = itertools.count()
        sys.setprofile(lambda *_: next(calls))
        quote = asked.quote(public)
        sys.setprofile(None)
        assert len(quote.terms) == tables
        return next(calls) / tables

    assert len(pairs) == 200_028
    assert operations(200_000) < 1.1 * operations(20_000) < 100
