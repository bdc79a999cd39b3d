"""Bayesian linear regression from noisy sums, the simplest private conjugate-exponential model."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from pgmpy_dp.data.features import PrivateFeatures
from pgmpy_dp.data.mechanisms.sums import NoisySums
from pgmpy_dp.estimators.iterated import Learner, conjugate_steps, learning_rate
from pgmpy_dp.estimators.logistic_regression import Design, Gaussian, SupervisedEstimator, positive_part
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.privacy.checks import Constraint, exact_positive, number, optional


@dataclass(eq=False, repr=False)
class PrivateLinearRegression(SupervisedEstimator, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Private Bayesian linear regression with unknown residual variance.

    A scikit-learn regressor: the private counterpart of `BayesianRidge`.

    Parameters
    ----------
    epsilon, neighbours, delta, sampling_rate, batch_size, noise_multiplier
        See :class:`~pgmpy_dp.PrivateVB`.
    budget : PrivacyBudget, optional
        See :class:`~pgmpy_dp.PrivateLogisticRegression`.
    bounds
        See :class:`~pgmpy_dp.PrivateLogisticRegression`.
    target_bounds : pair of float
        Public lower and upper bounds of the target, for raw records.
    steps : int
        Number of noisy sums. One is best: the sums do not depend on what was learned before.
    clip_norm : float, optional
        See :class:`~pgmpy_dp.PrivateLogisticRegression`. The noise is proportional to its square plus 2.
    prior_precision : float
        Precision of the coefficients' zero-mean prior over that of the residuals, for features and target scaled to
        [-1, 1].
    prior_shape, prior_rate : float
        Shape, above 1, and rate of the Gamma prior on the residuals' precision, for the scaled target.

    Attributes
    ----------
    coef_ : ndarray of shape (d,)
        Posterior means.
    intercept_ : float
    covariance_ : ndarray of shape (d + 1, d + 1)
        Posterior covariance of `coef_` followed by the intercept, including the uncertainty due to noise.
    residual_std_ : float
        Root of the residuals' expected variance.
    guarantee_, noise_multiplier_, n_steps_, n_features_in_, feature_names_in_
        See :class:`~pgmpy_dp.PrivateLogisticRegression`.

    Notes
    -----
    A conjugate-exponential model (Foulds, Park, Chaudhuri and Welling 2020) without latent variables, so that its
    expected statistics are the records' own. With scaled features x and target y, and z = (x, 1, y), the sum S of z z'
    over the records holds everything: the prior on coefficients and residual precision is normal-Gamma, and its natural
    parameters plus S are those of the posterior. Without noise, the result is exact.

    Sensitivity. A record's statistic is the upper triangle of z z', with entries off the diagonal times sqrt(2), so
    that its norm is the Frobenius norm |z z'| = |z|^2 <= clip_norm^2 + 2. Adding or removing a record changes a sum by
    at most that. Replacing one changes it by at most twice that, for which the noise is scaled.

    Noise makes S indefinite; its negative eigenvalues are set to zero, after which every posterior is proper. Noise E
    in S moves the coefficients by P^-1 (E v), to first order, with P the posterior precision and v = (-theta, 1). With
    variance s2 of E on the diagonal and s2 / 2 elsewhere, Cov(E v) = s2 / 2 (|v|^2 I + v v'), which `covariance_`
    includes (as in Bernstein and Sheldon 2019). The residuals' sum of squares has noise v' E v, of standard deviation
    s |v|^2, which `residual_std_` does not include: use it only if that is small compared to the sum.

    Examples
    --------
    >>> import numpy as np, pgmpy_dp as dp
    >>> X = np.linspace(0, 10, 5000)[:, None]
    >>> y = 3.0 + 2.0 * X[:, 0]
    >>> model = dp.papers.PrivateLinearRegression(1.0, 1e-6, bounds=(0, 10), target_bounds=(0, 30)).fit(X, y)
    >>> mean, std = model.predict([[5.0]], return_std=True)
    >>> bool(abs(mean[0] - 13.0) < 1.0)
    True
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "clip_norm": optional(exact_positive),
        "prior_precision": exact_positive,
        "prior_shape": number(above=1.0),
        "prior_rate": exact_positive,
    }
    _declared: ClassVar[str] = "target_bounds"
    _example: ClassVar[str] = "(lowest, highest)"

    target_bounds: tuple[Any, Any] | None = None
    _: KW_ONLY
    steps: int = 1
    clip_norm: float | None = None
    prior_precision: float = 1.0
    prior_shape: float = 2.0
    prior_rate: float = 0.01

    def _learner(self, structure: None, public: PrivateFeatures) -> Learner:
        design, target = Design.of(public.bounds, self.clip_norm), public.target_bounds
        assert target is not None  # the source has been checked
        middle, half = (target[0] + target[1]) / 2.0, (target[1] - target[0]) / 2.0
        precision, shape = float(self.prior_precision), float(self.prior_shape)
        model = _NormalGamma(design, middle, half, precision, float(self.prior_rate))
        mean = learning_rate(1.0, 1.0)  # of the sums, which do not depend on what was learned
        learned = conjugate_steps(
            model.start, lambda _: model.products, model.bound, model.posterior, mean, non_negative=False
        )
        names, sensitivity = public.names, 1.0 if public.neighbours == "add_remove" else 2.0

        def steps(sums: NoisySums) -> Iterator[tuple[Vector, float, float]]:
            deviation = sensitivity * model.bound * sums.noise_multiplier / sums.sampling_rate
            for taken, natural in enumerate(learned(sums), 1):
                yield natural, deviation**2 / taken, (1.0 - sums.sampling_rate) / sums.sampling_rate / taken

        def finish(found: tuple[Vector, float, float]) -> None:
            natural, noise, sampling = found
            both = model.matrix(natural)
            inverse, square = np.linalg.inv(both[:-1, :-1]), both[-1, -1]
            mean = inverse @ both[:-1, -1]
            count = both[-2, -2] - precision
            variance = (square - mean @ both[:-1, -1]) / (2.0 * (shape - 1.0) + count)
            perturbation = noise / 2.0 * ((1.0 + mean @ mean) * np.eye(mean.size) + np.outer(mean, mean))
            covariance = (1.0 + sampling) * variance * inverse + inverse @ perturbation @ inverse
            original = design.original(Gaussian(half * mean[None], half**2 * covariance[None]))
            self.coef_, self.intercept_ = original.mean[0, :-1], float(original.mean[0, -1]) + middle
            self.covariance_, self.residual_std_ = original.covariance[0], half * math.sqrt(variance)
            self._name_features(design.half.size, names)

        return Learner(model.start.size, steps, finish)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Predict the targets of public records.

        Parameters
        ----------
        X : array or frame of shape (n, d)
        return_std : bool
            Return the standard deviations of the targets as well.

        Returns
        -------
        ndarray of shape (n,), or a pair of them
        """
        values = self._public_array(X)
        mean = values @ self.coef_ + self.intercept_
        if not return_std:
            return mean
        design = np.column_stack([values, np.ones(values.shape[0])])
        spread = np.einsum("nd,de,ne->n", design, self.covariance_, design)
        return mean, np.sqrt(self.residual_std_**2 + spread)


@dataclass(frozen=True)
class _NormalGamma:
    """The regression as a conjugate-exponential model; natural parameters are an upper triangle.

    It is that of [[P, P m], [(P m)', 2 b + m' P m]], with P and m the coefficients' precision and mean, and b the rate
    of the residuals' precision. The first is prior_precision I plus sum x x', whose last entry counts the records.
    """

    design: Design
    middle: float
    half: float
    precision: float
    rate: float

    @property
    def bound(self) -> float:
        return self.design.bound**2 + 1.0

    @property
    def start(self) -> Vector:
        return self._packed(self._prior)

    @property
    def _prior(self) -> Vector:
        size = self.design.half.size + 1
        return np.diag(np.append(np.full(size, self.precision), 2.0 * self.rate))

    def products(self, rows: Vector) -> Vector:
        z = np.column_stack([self.design.vectors(rows[:, :-1]), (rows[:, -1] - self.middle) / self.half])
        one, other = np.triu_indices(z.shape[1])
        return z[:, one] * z[:, other] * np.where(one == other, 1.0, math.sqrt(2.0))

    def posterior(self, statistics: Vector) -> Vector:
        return self._packed(self._prior + positive_part(self.matrix(statistics)[None])[0])

    def matrix(self, packed: Vector) -> Vector:
        """Return the symmetric matrix of a triangle."""
        size = self.design.half.size + 2
        one, other = np.triu_indices(size)
        full = np.zeros((size, size))
        full[one, other] = full[other, one] = packed / np.where(one == other, 1.0, math.sqrt(2.0))
        return full

    @staticmethod
    def _packed(full: Vector) -> Vector:
        one, other = np.triu_indices(full.shape[0])
        return full[one, other] * np.where(one == other, 1.0, math.sqrt(2.0))
