"""Bayesian logistic regression from noisy sums, by variational Bayes with Polya-Gamma variables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from pgmpy_dp.data.features import PrivateFeatures
from pgmpy_dp.data.mechanisms.sums import NoisySums
from pgmpy_dp.data.moments import Moments, row_products
from pgmpy_dp.data.wall import require_public
from pgmpy_dp.estimators.for_arrays.design import Design, SupervisedEstimator
from pgmpy_dp.estimators.for_arrays.polya_gamma import Averages, Gaussian, expected_weight, fisher_weight
from pgmpy_dp.estimators.iterated import DELAY, FORGETTING, Learner, learning_rate
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.privacy.checks import Constraint, exact_positive, optional


@dataclass(eq=False, repr=False)
class PrivateLogisticRegression(SupervisedEstimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Private Bayesian logistic regression for two or more classes.

    A scikit-learn classifier. A step takes a random sample of the records, weights each by the current posterior, and
    updates the posterior by noisy sums over them.

    Parameters
    ----------
    classes : sequence
        Public classes, for raw records; which of them occur in the records is private.
    steps : int
        Every fourth step measures the Fisher information, for the covariance. With fewer than four steps none does, and
        covariances are too small, as usual in variational Bayes.
    clip_norm : float, optional
        Bound of the Euclidean norm of a record's features, scaled to [-1, 1] by their bounds; longer vectors are scaled
        down. By default sqrt(d), which no record exceeds. If most norms are much smaller, a smaller bound reduces the
        noise, which is proportional to its square.
    delay, forgetting : float
        tau and kappa of the learning rate (tau + t)^(-kappa), t = 0, 1, ...
    prior_shape, prior_rate : float
        Shape and rate of the Gamma prior on the precision of the coefficients.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        As declared, not sorted.
    coef_ : ndarray of shape (n_classes - 1, d)
        Posterior means. Row k - 1 is for the log-odds of class k against all classes declared before it; for two
        classes, of the second against the first.
    intercept_ : ndarray of shape (n_classes - 1,)
    covariance_ : ndarray of shape (n_classes - 1, d + 1, d + 1)
        Posterior covariances of each row of `coef_` followed by its intercept, including the uncertainty due to noise.

    Notes
    -----
    More than two classes are modelled by a sequence of independent binary regressions: whether the record is of the
    last class; if not, of the one before; and so on (stick breaking, Linderman, Johnson and Adams 2015). This is a
    proper likelihood, which depends on the order of the classes. A record does not inform the regressions after that of
    its class.

    The noisy sums of (y - 1/2) x and of E[w] x x' (or p (1 - p) x x') are released, with one noise multiplier: see
    :class:`~pgmpy_dp.data.moments.MomentGrid` for their sensitivity, and `pgmpy_dp.estimators.for_arrays.polya_gamma`
    for the posterior. Probabilities are averages over the posterior (MacKay 1992).

    Examples
    --------
    >>> import numpy as np, pgmpy_dp as dp
    >>> X = np.linspace(-1, 1, 4000)[:, None]
    >>> y = np.where(X[:, 0] > 0.2, "high", "low")
    >>> model = dp.PrivateLogisticRegression(1.0, 1e-6, bounds=(-1, 1), classes=["low", "high"]).fit(X, y)
    >>> model.predict([[-0.5], [0.7]]).tolist()
    ['low', 'high']
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "clip_norm": optional(exact_positive),
        "delay": DELAY,
        "forgetting": FORGETTING,
        "prior_shape": exact_positive,
        "prior_rate": exact_positive,
    }

    _declared: ClassVar[str] = "classes"
    _example: ClassVar[str] = "[...]"

    classes: Sequence[Any] | None = None
    _: KW_ONLY
    steps: int = 30
    clip_norm: float | None = None
    delay: float = 1.0
    forgetting: float = 0.5
    prior_shape: float = 1.0
    prior_rate: float = 1.0

    def _learner(self, structure: None, public: PrivateFeatures) -> Learner:
        shape, prior_rate = float(self.prior_shape), float(self.prior_rate)
        design = Design.of(public.bounds, self.clip_norm)
        classes = public.classes or ()
        features, sticks = design.half.size, len(classes) - 1
        rate = learning_rate(self.delay, self.forgetting)
        names = public.names

        def steps(sums: NoisySums) -> Iterator[Gaussian]:
            averages = Averages(sums.sampling_rate)
            posterior = Gaussian(np.zeros((sticks, features + 1)), np.zeros((sticks, features + 1, features + 1)))
            precision = np.ones((sticks, features + 1))
            for number in range(sums.steps):
                rounds, turn = divmod(number, 4)
                fisher, learned = turn == 3, number - rounds  # one step in four; the others are for the mean
                moments = partial(_moments, design=design, posterior=posterior, fisher=fisher)
                noisy = sums.noisy_moments(moments, design.bound)
                # The sum of (y - 1/2) x is the same in all steps, and F in all that measure it; w x x' depends on the
                # posterior.
                share = 1.0 / (rounds + 1.0) if fisher else rate(learned)
                averages.add(noisy, 1.0 / (number + 1.0), share, fisher=fisher)
                posterior = averages.posterior(posterior, precision)
                kept = averages.calibrated(posterior, precision) if number >= 3 else posterior
                lengths = np.trace(posterior.second, axis1=1, axis2=2)
                precision[:] = ((shape + (features + 1) / 2.0) / (prior_rate + lengths / 2.0))[:, None]
                yield kept

        def finish(posterior: Gaussian) -> None:
            original = design.original(posterior)
            self.coef_, self.intercept_ = original.mean[:, :-1], original.mean[:, -1]
            self.covariance_, self.classes_ = original.covariance, np.array(classes)
            self._name_features(features, names)

        return Learner((features + 1, sticks, sticks), steps, finish)

    def predict_proba(self, X: Any) -> Vector:
        """Predict class probabilities of public records, averaged over the posterior; shape (n, classes)."""
        check_is_fitted(self)
        require_public(X)
        values = np.asarray(validate_data(self, X, reset=False, dtype=np.float64))
        design = np.column_stack([values, np.ones(values.shape[0])])
        centre = values @ self.coef_.T + self.intercept_
        spread = np.einsum("nd,kde,ne->nk", design, self.covariance_, design)
        own = expit(centre / np.sqrt(1.0 + np.pi / 8.0 * spread))
        none_after = np.cumprod((1.0 - own)[:, ::-1], axis=1)[:, ::-1]
        first = none_after[:, :1]
        after = np.column_stack([none_after[:, 1:], np.ones(values.shape[0])])
        return np.column_stack([first, own * after])

    def predict_log_proba(self, X: Any) -> Vector:
        """Predict the logarithms of the probabilities."""
        logs: Vector = np.log(self.predict_proba(X))
        return logs

    def decision_function(self, X: Any) -> Vector:
        """Return the log-odds of the second of two classes, shape (n,), or the log-probabilities of several classes."""
        logs = self.predict_log_proba(X)
        scores: Vector = logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs
        return scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each row."""
        check_is_fitted(self)
        found: NDArray[Any] = self.classes_[np.argmax(self.predict_proba(X), axis=1)]
        return found


def _moments(rows: Vector, design: Design, posterior: Gaussian, fisher: bool) -> Moments:
    """Compute moments of records, weighted by E[w] or by p (1 - p)."""
    x = design.vectors(rows[:, :-1])
    label, sticks = rows[:, -1:], np.arange(1, posterior.mean.shape[0] + 1)
    reached = label <= sticks
    signs = np.where(label == sticks, 1.0, -1.0) * reached
    if fisher:
        weights = fisher_weight(row_products(x, posterior.mean.T))
    else:
        squares = [(row_products(x, one) * x).sum(axis=1) for one in posterior.second]
        weights = expected_weight(np.stack(squares, axis=1))
    return Moments(x, None, signs, 4.0 * weights * reached)
