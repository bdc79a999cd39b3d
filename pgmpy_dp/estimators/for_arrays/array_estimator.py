"""Estimators of arrays have scikit-learn's manners: `fit(X)`, searches that copy them, public records afterwards."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from pgmpy_dp.estimators.iterated import Iterated
from pgmpy_dp.privacy import PrivacyBudget


@dataclass(eq=False, repr=False)
class ArrayEstimator(Iterated):
    """What iterated estimators of arrays share.

    Parameters
    ----------
    budget : PrivacyBudget, optional
        For raw records, a ledger that every fit is charged to, that of copies too, such as those that `GridSearchCV`
        makes. Without it each fit has a budget of its own.
    """

    _: KW_ONLY
    budget: PrivacyBudget | None = None

    def _budget(self) -> PrivacyBudget:
        """Take the ledger that fits to raw records share, or make one for this fit alone.

        Warns
        -----
        UserWarning
            If the estimator is a copy that scikit-learn made: searches fit many.
        """
        if self._is_copy:
            tied = "They share a ledger." if self.budget else "budget=dp.PrivacyBudget(...) ties all to one ledger."
            warnings.warn(
                f"This {type(self).__name__} is a copy, as GridSearchCV makes one for each fit: each costs epsilon "
                f"= {self.epsilon}. {tied} Scores of held-out private records are exact: no budget covers them, nor a "
                "choice that is made by them. Score on public records.",
                stacklevel=7,
            )
        return super()._budget() if self.budget is None else self.budget


@dataclass(eq=False, repr=False)
class Components:
    """The number of components comes first, as in scikit-learn."""

    n_components: int = 10


class ArrayTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """What transformers share: they are fitted to private records, and transform public ones."""

    components_: Any

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> NoReturn:
        """Refuse: the same records would be private and public. Call `fit`, then `transform` on public records.

        Raises
        ------
        TypeError
        """
        raise TypeError(
            f"{type(self).__name__} does not transform the records it is fitted to: values of single records are not "
            "what the guarantee covers. Call fit with private records, then transform with public ones."
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])
