"""Choosing tables: scores by brute force over neighbours, exact odds, and bugs that these must catch."""

import itertools
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from noises import Noted

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms import selection
from pgmpy_dp.data.mechanisms.selection import FarthestTables
from pgmpy_dp.evaluation import audit
from pgmpy_dp.privacy.cost import Pure, Zcdp
from pgmpy_dp.privacy.noise import UNIT_WEIGHT

SCHEMA = dp.Schema({"a": [0, 1], "b": [0, 1, 2], "c": [0, 1]})
CELLS = list(itertools.product(range(2), range(3), range(2)))
REFERENCES = {("a", "b"): np.array([[3.0, 0.0, 1.5], [0.2, 40.0, 0.0]]), ("b", "c"): np.full((3, 2), 1.0)}


def anything(chosen):
    return REFERENCES.keys()


def scored(rows, relation="add_remove", references=REFERENCES, picks=1, **price):
    """Scores and scale of the first pick from these records."""
    noise = Noted()
    data = dp.PrivateDataset(np.array(rows), SCHEMA, dp.PrivacyBudget(9.0, 1e-6), relation, noise)
    data.release(FarthestTables(references, picks, anything, **(price or {"rho": 0.5})))
    return noise.seen[0][1:]


def largest_change(relation, references=lambda rows: REFERENCES):
    """Over all neighbours of a few records."""
    others = [CELLS[0], CELLS[4], CELLS[4], CELLS[9], CELLS[11]]
    extended = [scored([*others, cell], relation, references([*others, cell]))[0] for cell in CELLS]
    before = [scored(others, relation, references(others))[0]] if relation == "add_remove" else extended
    return max(np.abs(np.subtract(one, other)).max() for one in extended for other in before)


@pytest.mark.parametrize(("relation", "records"), [("add_remove", 1), ("replace_one", 2)])
def test_no_record_moves_a_score_by_more_than_is_priced(relation, records):
    moved = largest_change(relation)
    assert 0.98 * records * selection._GRID < moved <= records * selection._GRID
    scale = scored(CELLS, relation)[1]  # at rho = 1/2 the scale is the sensitivity
    assert scale == pytest.approx(records * selection._GRID)


@pytest.mark.parametrize("relation", ["add_remove", "replace_one"])
@pytest.mark.parametrize("picks", [1, 2, 7])
def test_picks_share_what_is_charged(relation, picks):
    """In exact fractions, by what each pick costs whose scores move by the sensitivity in opposite directions."""
    moves = Fraction(selection._GRID * (1 if relation == "add_remove" else 2))
    for price in ({"epsilon": 0.3}, {"rho": 0.3}):
        _, scale = scored(CELLS, relation, picks=picks, **price)
        epsilon = 2 * moves / Fraction(scale)
        paid = picks * (epsilon if "epsilon" in price else epsilon**2 / 8)
        assert Fraction(3, 10) * (1 - Fraction(1, 10**6)) < paid <= Fraction(3, 10)


def test_a_reference_from_the_records_is_caught():
    """What the records' own margins would make of it: one record moves every cell's reference."""

    def independent(rows):
        rows = np.array(rows)

        def share(column):
            return np.bincount(rows[:, column], minlength=3 if column == 1 else 2) / len(rows)

        return {
            ("a", "b"): len(rows) * np.outer(share(0), share(1)),
            ("b", "c"): len(rows) * np.outer(share(1), share(2)),
        }

    assert largest_change("add_remove", independent) > selection._GRID * 1.2


def test_a_pick_is_drawn_from_what_is_allowed_then():
    """Odds of two picks in turn, by the definition of the mechanism; a right draw fails with probability below 1e-6."""
    references = {("a",): np.array([9.0, 3.0]), ("b",): np.array([1.0, 8.0, 3.0]), ("c",): np.array([6.0, 6.0])}
    rows, trials, rho = [*CELLS], 1500, 0.3

    def allowed(chosen):
        return [("a",), ("c",)] if chosen == (("b",),) else references

    mechanism = FarthestTables(references, 2, allowed, rho=rho)
    data = dp.PrivateDataset(np.array(rows), SCHEMA, dp.PrivacyBudget(1e6, 1e-6), noise=dp.SimulatedNoise(0))
    seen = [data.release(mechanism) for _ in range(trials)]
    noise = Noted()
    still = dp.PrivateDataset(np.array(rows), SCHEMA, dp.PrivacyBudget(9.0, 1e-6), noise=noise)
    still.release(mechanism)
    ((_, scores, scale), _) = noise.seen
    weights = dict(zip(references, np.exp(-np.array(scores) / scale), strict=True))
    for first, second in itertools.permutations(references, 2):
        later = [clique for clique in allowed((first,)) if clique != first]
        odds = weights[first] / sum(weights.values()) * weights[second] / sum(weights[c] for c in later)
        share = np.mean([pair == (first, second) for pair in seen])
        assert abs(share - odds) < 5 * np.sqrt(odds * (1 - odds) / trials)


def test_the_ledger_holds_rho_or_epsilon():
    for price, entry in (
        ({"rho": 0.01}, ("exponential", Zcdp(0.01))),
        ({"epsilon": 0.5}, ("permute_and_flip", Pure(0.5))),
    ):
        budget = dp.PrivacyBudget(9.0, 1e-6)
        data = dp.PrivateDataset(np.array(CELLS), SCHEMA, budget)
        chosen = data.release(FarthestTables(REFERENCES, 5, anything, **price))
        assert sorted(chosen) == sorted(REFERENCES)  # all there are, each once
        (charge,) = budget.history
        assert (charge.mechanism, charge.loss) == entry


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"references": {("a", "b"): np.zeros((3, 2))}}, "needs shape"),
        ({"references": {("a",): np.array([np.nan, 0.0])}}, "non-negative numbers"),
        ({"references": {("a",): np.array([-1.0, 0.0])}}, "non-negative numbers"),
        ({"references": {("a",): np.array([1e12, 0.0])}}, "non-negative numbers"),
        ({"picks": 0}, "picks"),
        ({"rho": None}, "epsilon or rho"),
        ({"epsilon": 1.0}, "epsilon or rho"),
        ({"rho": -1.0}, "rho"),
    ],
)
def test_what_cannot_be_priced_is_refused_before_the_charge(changed, message):
    budget = dp.PrivacyBudget(9.0, 1e-6)
    data = dp.PrivateDataset(np.array(CELLS), SCHEMA, budget)
    asked = {"references": REFERENCES, "picks": 1, "allowed": anything, "rho": 0.1} | changed
    with pytest.raises(ValueError, match=message):
        data.release(FarthestTables(**asked))
    assert not budget.history


def test_units_are_paid_for_by_their_contribution():
    rows = pd.DataFrame(CELLS, columns=["a", "b", "c"]).assign(person=np.arange(len(CELLS)) // 3)
    for maximum, parts in ((3, 3), (None, 2**20)):
        noise = Noted()
        data = dp.PrivateDataset(
            rows, SCHEMA, dp.PrivacyBudget(9.0, 1e-6), noise=noise, unit="person", max_rows=maximum
        )
        data.release(FarthestTables(REFERENCES, 1, anything, rho=0.5))
        assert noise.seen[0][2] == pytest.approx(parts * selection._GRID)


def test_candidates_from_the_records_are_caught():
    """A list that leaves out what the records show as independent: a neighbour's list is another, and so are picks."""
    rows = np.array([(0, 0, 0)] * 6)
    neighbours = rows, np.vstack([rows, (1, 2, 1)])
    references = {("a", "b"): np.array([[6.0, 0, 0], [0, 0, 0]]), ("b", "c"): np.zeros((3, 2))}

    def chosen(records, candidates):
        data = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(9.0, 1e-6))
        return data.release(FarthestTables(candidates, 1, lambda chosen: candidates.keys(), epsilon=1.0))

    def varying(records):
        several = [len(np.unique(records[:, column])) > 1 for column in range(3)]
        return {clique: table for clique, table in references.items() if all(several) or clique == ("a", "b")}

    kept = audit(lambda records: chosen(records, references), neighbours, 1.0, trials=300, confidence=1 - 1e-6)
    broken = audit(lambda records: chosen(records, varying(records)), neighbours, 1.0, trials=300, confidence=1 - 1e-6)
    assert not kept.refuted
    assert broken.refuted


@pytest.mark.parametrize(("max_rows", "parts"), [(1, 1), (5, 1), (None, UNIT_WEIGHT)])
def test_units_of_one_row_are_scored_as_records_are(max_rows, parts):
    """In parts of a weight where rows share one; references stay in units."""
    references = {clique: np.floor(table) for clique, table in REFERENCES.items()}
    rows = [[0, 0, 1], [1, 1, 0], [1, 2, 1], [0, 0, 0]] * 5
    frame = pd.DataFrame(rows, columns=["a", "b", "c"]).assign(who=range(len(rows)))
    noise = Noted()
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(9.0, 1e-6), noise=noise, unit="who", max_rows=max_rows)
    data.release(FarthestTables(references, 1, anything, rho=0.5))
    records, _ = scored(rows, references=references)
    assert (
        np.abs(noise.seen[0][1] - parts * np.array(records)) <= parts
    ).all()  # of distances, rounded down to whole numbers
