"""What estimators declare of their parameters holds before they see any records."""

from __future__ import annotations

import inspect

import pytest

import pgmpy_dp as dp
from pgmpy_dp import estimators, papers
from pgmpy_dp.estimators.base import Estimator

ESTIMATORS = [
    kind
    for room in (dp, estimators, papers)
    for kind in (getattr(room, name) for name in room.__all__)
    if inspect.isclass(kind) and issubclass(kind, Estimator)
]


@pytest.mark.parametrize("kind", ESTIMATORS)
def test_what_breaks_a_constraint_is_refused_by_name(kind):
    known = inspect.signature(kind).parameters
    for name in kind._constraints:
        assert name in known
        given = {"epsilon": 1.0, "delta": 1e-6}
        estimator = kind(**{name: value for name, value in given.items() if name in known})
        estimator._check_parameters()
        for wrong in (-1.5, float("nan"), "exact"):
            with pytest.raises(ValueError, match=name):
                estimator.set_params(**{name: wrong})._check_parameters()


def test_a_refused_parameter_charges_nothing():
    data = dp.PrivateDataset({("a", "b"): [[3, 1], [1, 3]]}, dp.Schema({"a": [0, 1], "b": [0, 1]}), dp.PrivacyBudget(1))
    with pytest.raises(ValueError, match="tolerance must be greater than 0"):
        dp.PrivateMarkovNetwork([("a", "b")]).fit(data, dp.papers.NaiveMLE(epsilon=1.0, tolerance=0.0))
    assert data.budget.history == ()
