"""Base classes of estimators with scikit-learn's interface: `fit(X)`, cloning, and prediction for public records."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn

from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from pgmpy_dp.errors import callers_level
from pgmpy_dp.estimators.iterated import Iterated
from pgmpy_dp.privacy import PrivacyBudget


@dataclass(eq=False, repr=False)
class ArrayEstimator(Iterated):
    """Base class of iterative estimators of arrays.

    Parameters
    ----------
    budget : PrivacyBudget, optional
        For raw records, the ledger that every fit is charged to, including fits of copies, such as those made by
        `GridSearchCV`. Without it, each fit has its own budget.

    Attributes
    ----------
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Defined if the features have names.
    """

    _: KW_ONLY
    budget: PrivacyBudget | None = None

    def _budget(self) -> PrivacyBudget:
        """Return the common ledger of fits to raw records, or create one for this fit alone.

        Warns
        -----
        UserWarning
            If the estimator is a copy made by scikit-learn, since a search fits many copies.
        """
        if self._is_copy:
            tied = "They share a ledger." if self.budget else "budget=dp.PrivacyBudget(...) ties all to one ledger."
            warnings.warn(
                f"This {type(self).__name__} is a copy, as GridSearchCV makes one for each fit: each costs epsilon "
                f"= {self.epsilon}. {tied} Scores of held-out private records are exact: no budget covers them, nor a "
                "choice that is made by them. Score on public records.",
                stacklevel=callers_level(),
            )
        return super()._budget() if self.budget is None else self.budget


@dataclass(eq=False, repr=False)
class Components:
    """The number of components comes first, as in scikit-learn."""

    n_components: int = 10


class ArrayTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Base class of transformers that are fitted to private records and transform public ones."""

    components_: Any

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> NoReturn:
        """Raise, since the same records would be private and public: call `fit`, then `transform` public records.

        Raises
        ------
        TypeError
        """
        raise TypeError(
            f"{type(self).__name__} does not transform the records it is fitted to: the guarantee does not "
            "cover values of single records. Call fit with private records, then transform with public ones."
        )

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])
