"""Evidence on any variables is answered if the rules allow it, and refused if they do not: against all records."""

import numpy as np
import pytest

from pgmpy_dp.inference.mixtures.boxes import Boxes, Rules, conditioned
from pgmpy_dp.inference.mixtures.children import Child
from pgmpy_dp.inference.mixtures.mixture import Mixture

SIZES = {"a": 3, "b": 2, "c": 3, "d": 2, "e": 2, "f": 4}  # e follows from a, f is finer than c
FOLLOWS, FINER = np.array([1, 0, 1]), np.array([0, 2, 2, 1])


def ruled(seed):
    """Draw rules and a mixture of two boxes that keep to them; and say of every record whether it obeys the rules."""
    draw = np.random.default_rng(seed)
    zeros = []
    for scope in (("a", "b", "c"), ("b", "c", "d"), ("c", "e"), ("a", "d")):
        zeros.append((scope, draw.random([SIZES[variable] for variable in scope]) < 0.7))
    rules = Rules({"e": ("a", FOLLOWS)}, zeros, {"f": ("c", FINER)})
    grid = dict(zip(SIZES, np.indices(tuple(SIZES.values())), strict=True))
    possible = (grid["e"] == FOLLOWS[grid["a"]]) & (grid["c"] == FINER[grid["f"]])
    for scope, allowed in zeros:
        possible &= allowed[tuple(grid[variable] for variable in scope)]
    blocks, coarse = [(v,) for v in "abcd"], {v: SIZES[v] for v in "abcde"}
    boxes = Boxes(rules, blocks, [np.arange(SIZES[v])[:, None] for v in "abcd"], coarse)
    drawn = boxes.draw([np.ones(SIZES[v]) for v in "abcd"], 2, draw)
    tables = [box * draw.dirichlet(np.ones(box.shape[1]), 2) + 1e-9 * box for box in drawn]
    tables = [table / table.sum(axis=1, keepdims=True) for table in tables]
    finer = Child.within("c", FINER, np.array([1.0, 0.3, 0.7, 1.0]), 3)
    children = {"e": Child.function("a", FOLLOWS, 2), "f": finer}
    return rules, Mixture.of(SIZES, blocks, [0.4, 0.6], tables, children), possible


@pytest.mark.parametrize("seed", [0, 1, 5, 6])
def test_what_rules_allow_is_answered_and_all_else_is_refused(seed):
    rules, mixture, possible = ruled(seed)
    names, uncovered, draw = list(SIZES), 0, np.random.default_rng(0)
    for _ in range(40):
        scope = tuple(draw.permutation(6)[: draw.integers(1, 5)])
        states = tuple(int(draw.integers(SIZES[names[place]])) for place in scope)
        evidence = dict(zip((names[place] for place in scope), states, strict=True))
        joint = np.moveaxis(possible, scope, range(len(scope)))[states]
        if not joint.any():
            with pytest.raises(ValueError, match="probability zero"):
                conditioned(mixture, rules, evidence)
            continue
        uncovered += not np.isfinite(mixture.log_evidence(evidence))
        answer = conditioned(mixture, rules, evidence).marginal([v for v in names if v not in evidence])
        assert answer.sum() == pytest.approx(1.0)
        assert (answer[~joint] == 0.0).all()
    assert uncovered  # of which the mixture alone would say that it cannot be


def test_what_no_box_holds_is_independent_but_for_the_rules():
    even, young = np.array([[0.25, 0.75]]), np.array([[1.0, 0.0]])
    mixture = Mixture.of({"a": 2, "b": 2, "c": 2}, [("a",), ("b",), ("c",)], [1.0], [young, even, even])
    rules = Rules(zeros=[(("a", "b"), np.array([[True, True], [True, False]]))])
    answer = conditioned(mixture, rules, {"a": 1})
    assert answer.marginal(["b"]).tolist() == [1.0, 0.0]
    assert answer.marginal(["c"]) == pytest.approx([0.25, 0.75])
