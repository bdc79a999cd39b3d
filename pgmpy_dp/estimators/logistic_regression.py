"""Bayesian regressions with logistic responses, from noisy moments: one Gaussian posterior for each response.

A logistic likelihood is Gaussian given Polya-Gamma variables w (Polson, Scott and Windle 2013): with kappa = y - 1/2,
the response kappa / w is normal with mean x' theta and variance 1 / w. Therefore J = sum w x x' and h = sum kappa x are
sufficient for theta; given theta, h has mean J theta and variance J. Variational Bayes replaces w by its expectation
under the previous posterior (Foulds, Park, Chaudhuri and Welling 2020).

The mean-field covariance J^-1 is too small: the derivative of h - J theta, and its variance too, is the Fisher
information F = sum p (1 - p) x x'. The final posterior uses F in place of J (linear response, Giordano, Broderick and
Jordan 2015); F is measured in separate steps.

Noise is part of the model (as in Bernstein and Sheldon 2019, for linear regression): the observed h differs from
J theta by the sampling variance of h, by the noise on h, and by the noise on J times theta. A symmetric noise matrix E
with variance s2 on the diagonal and s2 / 2 off the diagonal has Cov(E theta) = s2 / 2 (|theta|^2 I + theta theta').
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from pgmpy_dp.data.features import PrivateFeatures
from pgmpy_dp.data.mechanisms.integer_sums import Moments, NoisyMoments, checked_norm, row_products
from pgmpy_dp.data.mechanisms.sums import NoisySums
from pgmpy_dp.estimators.base import require_same
from pgmpy_dp.estimators.iterated import DELAY, FORGETTING, ArrayEstimator, Learner, learning_rate
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.privacy.checks import Constraint, exact_positive, optional


@dataclass(eq=False, repr=False)
class SupervisedEstimator(ArrayEstimator):
    """Base class of estimators of a class or a target from features, `fit(X, y)`."""

    _declared: ClassVar[str]  # the parameter that declares the values of y, and an example of it
    _example: ClassVar[str]

    bounds: tuple[Any, Any] | None = None

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the posterior.

        Parameters
        ----------
        X : PrivateFeatures, or array or frame of shape (n, d)
            A data set with its classes or target (charged), or features (with declared bounds).
        y : array of shape (n,)
            Classes or targets; None with a `PrivateFeatures`.
        """
        return self._run(None, (X, y))

    def _source(self, structure: None, data: tuple[Any, Any], public: Any) -> PrivateFeatures:
        """Return the given data set, or create one for this fit alone."""
        X, y = data
        name, declared = self._declared, getattr(self, self._declared)
        if isinstance(X, PrivateFeatures):
            given = {"y": y, "bounds": self.bounds, name: declared, "budget": self.budget}
            twice = [key for key, value in given.items() if value is not None]
            if twice:
                raise ValueError(f"The data set has its own {twice[0]}: leave it out.")
            if getattr(X, name) is None:
                raise TypeError(f"{type(self).__name__} needs PrivateFeatures with {name}.")
            require_same("neighbours", self.neighbours, X.neighbours)
            return X
        if declared is None:
            what = name.replace("_", " ").capitalize()
            raise ValueError(f"{what} must be declared, not read off private records: give {name}={self._example}.")
        neighbours = self.neighbours or "add_remove"
        kept: dict[str, Any] = {name: declared, "budget": self._budget(), "neighbours": neighbours}
        return PrivateFeatures(X, y, bounds=self.bounds, **kept)

    def _name_features(self, count: int, names: tuple[str, ...] | None) -> None:
        self.n_features_in_ = count
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = np.array(names, dtype=object)


@dataclass(frozen=True)
class Design:
    """Scaling of records to features in [-1, 1], of norm at most `clip` with a constant 1; and of coefficients back."""

    middle: Vector
    half: Vector
    clip: float

    @classmethod
    def of(cls, bounds: tuple[Vector, Vector], clip_norm: float | None) -> Self:
        low, high = bounds
        longest = math.sqrt(low.size)
        clip = longest if clip_norm is None else min(float(clip_norm), longest)
        return cls((low + high) / 2.0, (high - low) / 2.0, clip)

    @property
    def bound(self) -> float:
        """Largest norm of a vector."""
        return math.sqrt(self.clip**2 + 1.0)

    def vectors(self, features: Vector) -> Vector:
        """Scale features, shape (m, d + 1)."""
        scaled = (features - self.middle) / self.half
        norms = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
        return np.column_stack([scaled * (self.clip / np.maximum(norms, self.clip)), np.ones(scaled.shape[0])])

    def original(self, posterior: Gaussian) -> Gaussian:
        """Convert the posterior to the original units of the features."""
        back = np.diag(np.append(1.0 / self.half, 1.0))
        back[-1, :-1] = -self.middle / self.half
        return Gaussian(posterior.mean @ back.T, back @ posterior.covariance @ back.T)


def expected_weight(squares: Vector) -> Vector:
    """Compute E[w] of Polya-Gamma(1, xi) variables, tanh(xi / 2) / (2 xi), from xi squared; 1/4 at 0."""
    half = np.sqrt(np.maximum(squares, 0.0)) / 2.0
    return np.where(half > 1e-6, np.tanh(half) / np.maximum(4.0 * half, 1e-300), 0.25)


@dataclass(frozen=True)
class Gaussian:
    """Independent normal posteriors of k regressions on d features."""

    mean: Vector
    covariance: Vector

    @property
    def second(self) -> Vector:
        """E[theta theta'], shape (k, d, d)."""
        return self.covariance + self.mean[:, :, None] * self.mean[:, None, :]


class Average:
    """A running average of noisy sums, the variance of its noise, and the sum of the squared weights."""

    def __init__(self) -> None:
        self.mean: Vector = np.zeros(())
        self.variance = self.shares = 0.0

    def add(self, sums: Vector, deviation: float, share: float) -> None:
        """Update the average with the weight `share`, in (0, 1]."""
        self.mean = (1.0 - share) * self.mean + share * sums
        self.variance = (1.0 - share) ** 2 * self.variance + (share * deviation) ** 2
        self.shares = (1.0 - share) ** 2 * self.shares + share**2


class Averages:
    """Averages of a plan's noisy moments, divided by the sampling rate: h, J, and F if it is measured."""

    def __init__(self, sampling_rate: float) -> None:
        self._rate = sampling_rate
        self.first, self.weighted, self.fisher = Average(), Average(), Average()

    def add(self, noisy: NoisyMoments, first: float, second: float, *, fisher: bool = False) -> None:
        """Add a step's sums of y - 1/2 = (weight of x) / 2, and of w or p (1 - p) = (weight of x x') / 4."""
        half, quarter = 0.5 / self._rate, 0.25 / self._rate
        self.first.add(half * noisy.first, half * noisy.first_deviation, first)
        into = self.fisher if fisher else self.weighted
        into.add(quarter * noisy.second, quarter * noisy.second_deviation, second)

    def posterior(self, previous: Gaussian, precision: Vector) -> Gaussian:
        """Compute the posterior, given that h is normal with mean J theta and variance J plus that of the noise."""
        information = positive_part(self.weighted.mean)
        gain, covariance = self._gain(information, previous, precision)
        first = self.first.mean[: gain.shape[0], :, None]
        return Gaussian((covariance @ gain @ first)[..., 0], covariance)

    def calibrated(self, posterior: Gaussian, precision: Vector) -> Gaussian:
        """Return the posterior with the covariance derived from the Fisher information."""
        information = positive_part(self.fisher.mean)
        return Gaussian(posterior.mean, self._gain(information, posterior, precision)[1])

    def _gain(self, information: Vector, at: Gaussian, precision: Vector) -> tuple[Vector, Vector]:
        """Compute J (J + V)^-1 and the inverse of P."""
        identity = np.eye(information.shape[-1])
        second = at.second
        lengths = np.trace(second, axis1=1, axis2=2)[:, None, None]
        noise = self.first.variance * identity + self.weighted.variance / 2.0 * (lengths * identity + second)
        sampled = 1.0 + self.first.shares * (1.0 - self._rate) / self._rate
        gain = np.linalg.solve(sampled * information + noise, information).transpose(0, 2, 1)
        inverse = _symmetric(gain @ information) + precision[:, :, None] * identity
        return gain, _symmetric(np.linalg.inv(inverse).astype(np.float64))


def positive_part(matrices: Vector) -> Vector:
    """Set the negative eigenvalues of symmetric matrices to zero."""
    values, vectors = np.linalg.eigh(matrices)
    return (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)


def _symmetric(matrices: Vector) -> Vector:
    return (matrices + matrices.transpose(0, 2, 1)) / 2.0


@dataclass(eq=False, repr=False)
class PrivateLogisticRegression(SupervisedEstimator, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Private Bayesian logistic regression for two or more classes.

    A scikit-learn classifier. A step takes a random sample of the records, weights each by the current posterior, and
    updates the posterior by noisy sums over them.

    Parameters
    ----------
    epsilon, neighbours, delta, sampling_rate, batch_size, noise_multiplier
        See :class:`~pgmpy_dp.PrivateVB`.
    budget : PrivacyBudget, optional
        For raw records, the ledger that every fit is charged to, including fits of copies, such as those made by
        `GridSearchCV`. Without it, each fit has its own budget.
    bounds : pair of float or array of shape (d,)
        Public lower and upper bounds of the features, for raw records. Values outside are set to the bound.
    classes : sequence
        Public classes, for raw records; which of them occur in the records is private.
    steps : int
        Every fourth step measures the Fisher information, for the covariance. With fewer than four steps none does, and
        covariances are too small, as usual in variational Bayes.
    clip_norm : float, optional
        Bound of the Euclidean norm of a record's features, scaled to [-1, 1] by their bounds; longer vectors are scaled
        down. By default sqrt(d), which no record exceeds. If most norms are much smaller, a smaller bound reduces the
        noise, which is proportional to its square.
    delay, forgetting
        See :class:`~pgmpy_dp.PrivateVB`.
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
    guarantee_, noise_multiplier_, n_steps_
        See :class:`~pgmpy_dp.PrivateVB`.
    n_features_in_ : int
    feature_names_in_ : ndarray of str
        Defined if the features have names.

    Notes
    -----
    More than two classes are modelled by a sequence of independent binary regressions: whether the record is of the
    last class; if not, of the one before; and so on (stick breaking, Linderman, Johnson and Adams 2015). This is a
    proper likelihood, which depends on the order of the classes. A record does not inform the regressions after that of
    its class.

    See :class:`~pgmpy_dp.data.mechanisms.integer_sums.MomentGrid` for the noisy sums and their sensitivity, and
    `pgmpy_dp.estimators.logistic_regression` for the posterior, over which probabilities are averages (MacKay 1992).

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
        "clip_norm": optional(checked_norm),
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
        values = self._public_array(X)
        design = np.column_stack([values, np.ones(values.shape[0])])
        centre = values @ self.coef_.T + self.intercept_
        spread = np.einsum("nd,kde,ne->nk", design, self.covariance_, design)
        conditional = expit(centre / np.sqrt(1.0 + np.pi / 8.0 * spread))
        none_after = np.cumprod((1.0 - conditional)[:, ::-1], axis=1)[:, ::-1]
        first = none_after[:, :1]
        after = np.column_stack([none_after[:, 1:], np.ones(values.shape[0])])
        return np.column_stack([first, conditional * after])

    def predict_log_proba(self, X: Any) -> Vector:
        """Predict the logarithms of the probabilities."""
        return np.log(self.predict_proba(X))

    def decision_function(self, X: Any) -> Vector:
        """Return the log-odds of the second of two classes, shape (n,), or the log-probabilities of several classes."""
        logs = self.predict_log_proba(X)
        return logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the most probable class of each row."""
        check_is_fitted(self)
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


def _moments(rows: Vector, design: Design, posterior: Gaussian, fisher: bool) -> Moments:
    """Compute moments of records, weighted by E[w] or by p (1 - p)."""
    x = design.vectors(rows[:, :-1])
    label, sticks = rows[:, -1:], np.arange(1, posterior.mean.shape[0] + 1)
    reached = label <= sticks
    signs = np.where(label == sticks, 1.0, -1.0) * reached
    if fisher:
        log_odds = row_products(x, posterior.mean.T)
        weights = expit(log_odds) * expit(-log_odds)
    else:
        squares = [(row_products(x, one) * x).sum(axis=1) for one in posterior.second]
        weights = expected_weight(np.stack(squares, axis=1))
    return Moments(x, None, signs, 4.0 * weights * reached)
