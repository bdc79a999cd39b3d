"""One guarantee for several releases: nothing that one of them says of itself gets lost."""

import itertools
from dataclasses import replace

import pytest
from pgmpy_dp.release.composition import compose

from pgmpy_dp.privacy.guarantee import Guarantee

ONE = Guarantee.of(0.1, 0.0, None, "add_remove", "laplace", True, "person", max_rows=2)
NOISY = replace(ONE, delta=1e-7, rho=0.01, mechanism="gaussian")


@pytest.mark.parametrize("marks", list(itertools.product([False, True], repeat=3)))
def test_one_that_was_accepted_among_tries_marks_all_and_one_without_privacy_too(marks):
    together = compose([replace(ONE, accepted=mark) for mark in marks])
    assert together.accepted == any(marks)
    assert "accepted among tries" in str(together) or not any(marks)
    assert compose([replace(ONE, private=not mark) for mark in marks]).private == (not any(marks))


def test_epsilons_deltas_and_rhos_add_as_decimals():
    together = compose([ONE, ONE, ONE, NOISY])
    assert (together.epsilon, together.delta, together.rho, together.mechanism) == (0.4, 1e-7, None, "several")
    assert (together.unit, together.max_rows, together.neighbours) == ("person", 2, "add_remove")
    assert (compose([NOISY] * 3).rho, compose([NOISY] * 3).mechanism) == (0.03, "gaussian")
    assert (compose([ONE] * 2).mechanism, compose([NOISY])) == ("laplace", NOISY)


@pytest.mark.parametrize("change", [{"neighbours": "replace_one"}, {"unit": "household"}, {"max_rows": 3}])
def test_no_promise_holds_for_different_changes(change):
    for pair in ([ONE, replace(ONE, **change)], [replace(ONE, **change), ONE]):
        with pytest.raises(ValueError, match=next(iter(change))):
            compose(pair)


def test_exact_counts_are_no_release():
    exact = replace(ONE, epsilon=float("inf"), mechanism="none", private=False)
    with pytest.raises(ValueError, match="Exact counts"):
        compose([ONE, exact])
