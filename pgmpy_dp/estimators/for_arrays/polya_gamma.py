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

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from pgmpy_dp.data.moments import NoisyMoments
from pgmpy_dp.inference.tables.layout import Vector


def expected_weight(squares: Vector) -> Vector:
    """Compute E[w] of Polya-Gamma(1, xi) variables, tanh(xi / 2) / (2 xi), from xi squared; 1/4 at 0."""
    half = np.sqrt(np.maximum(squares, 0.0)) / 2.0
    return np.where(half > 1e-6, np.tanh(half) / np.maximum(4.0 * half, 1e-300), 0.25)


def fisher_weight(psi: Vector) -> Vector:
    """Compute the variance p (1 - p) of a response with log-odds psi."""
    weight: Vector = expit(psi) * expit(-psi)
    return weight


@dataclass(frozen=True)
class Gaussian:
    """Independent normal posteriors of k regressions on d features.

    Attributes
    ----------
    mean : ndarray of shape (k, d)
    covariance : ndarray of shape (k, d, d)
    """

    mean: Vector
    covariance: Vector

    @property
    def second(self) -> Vector:
        """E[theta theta'], shape (k, d, d)."""
        second: Vector = self.covariance + self.mean[:, :, None] * self.mean[:, None, :]
        return second


class Average:
    """A running average of noisy sums, and the variance of its noise.

    Attributes
    ----------
    mean : ndarray of float
    variance : float
        Variance of the noise of an entry, from the standard deviations given to `add`.
    shares : float
        Sum of the squared weights of the added sums.
    """

    def __init__(self) -> None:
        self.mean: Vector = np.zeros(())
        self.variance = self.shares = 0.0

    def add(self, sums: Vector, deviation: float, share: float) -> None:
        """Update the average with the weight `share`, in (0, 1]."""
        self.mean = (1.0 - share) * self.mean + share * sums
        self.variance = (1.0 - share) ** 2 * self.variance + (share * deviation) ** 2
        self.shares = (1.0 - share) ** 2 * self.shares + share**2


class Averages:
    """Averages of a plan's noisy moments: h, J, and F if it is measured.

    Parameters
    ----------
    sampling_rate : float
        The sums are divided by this rate.
    """

    def __init__(self, sampling_rate: float) -> None:
        self._rate = sampling_rate
        self.first, self.weighted, self.fisher = Average(), Average(), Average()

    def add(self, noisy: NoisyMoments, first: float, second: float, *, fisher: bool = False) -> None:
        """Add a step's sums of y - 1/2 = (weight of x) / 2, and of w or p (1 - p) = (weight of x x') / 4.

        They enter their averages with the weights `first` and `second`, which are 1 in the first step.
        """
        half, quarter = 0.5 / self._rate, 0.25 / self._rate
        self.first.add(half * noisy.first, half * noisy.first_deviation, first)
        into = self.fisher if fisher else self.weighted
        into.add(quarter * noisy.second, quarter * noisy.second_deviation, second)

    def posterior(self, previous: Gaussian, precision: Vector) -> Gaussian:
        """Compute the posterior of the coefficients, given the precisions of their prior, shape (k, d).

        With V the variance of the noise in h - J theta, at the previous posterior's theta, h is normal with mean
        J theta and variance J + V: the posterior has precision P = prior + J (J + V)^-1 J and mean
        P^-1 J (J + V)^-1 h. Sampling the records adds (1 - rate) / rate of J in each step.
        """
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
    positive: Vector = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    return positive


def _symmetric(matrices: Vector) -> Vector:
    return (matrices + matrices.transpose(0, 2, 1)) / 2.0
