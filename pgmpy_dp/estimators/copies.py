"""scikit-learn copies an estimator for every fit of a search; what all these fits cost adds up on one ledger."""

from __future__ import annotations

import warnings
from typing import Any

from pgmpy_dp.privacy import PrivacyBudget


def budget_of(estimator: Any) -> PrivacyBudget:
    """Take the ledger that an estimator's fits to raw records share, or make one for this fit alone.

    Warns
    -----
    UserWarning
        If the estimator is a copy that scikit-learn made: searches fit many.
    """
    if getattr(estimator, "_is_copy", False):
        tied = "They share a ledger." if estimator.budget else "budget=dp.PrivacyBudget(...) ties all to one ledger."
        warnings.warn(
            f"This {type(estimator).__name__} is a copy, as GridSearchCV makes one for each fit: each costs epsilon "
            f"= {estimator.epsilon}. {tied} Scores of held-out private records are exact: no budget covers them, nor a "
            "choice that is made by them. Score on public records.",
            stacklevel=4,
        )
    if estimator.budget is not None:
        return estimator.budget  # type: ignore[no-any-return]
    return PrivacyBudget(estimator.epsilon, estimator.delta)
