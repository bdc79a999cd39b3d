"""Sigmoid belief networks with one hidden layer, learned from noisy sums by variational Bayes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr, expit, kve, log_expit
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.integer_sums import Moments, checked_norm, row_products
from pgmpy_dp.data.mechanisms.sums import NoisySums
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.iterated import (
    DELAY,
    FORGETTING,
    ArrayEstimator,
    ArrayTransformer,
    Learner,
    learning_rate,
)
from pgmpy_dp.estimators.logistic_regression import Averages, Gaussian, expected_weight
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.privacy.checks import Constraint, optional, whole
from pgmpy_dp.schema import Schema

_SWEEPS = 8


@dataclass(eq=False, repr=False)
class PrivateSigmoidBeliefNetwork(ArrayEstimator, ArrayTransformer, BaseEstimator):  # type: ignore[misc]
    """Private sigmoid belief network: binary variables with binary hidden causes.

    The hidden variables h are independent with p(h_k = 1) = sigmoid(b_k), and the observed ones are independent given h
    with p(v_j = 1 | h) = sigmoid(w_j' h + c_j). The estimator is a transformer, the directed counterpart of
    scikit-learn's `BernoulliRBM`.

    Parameters
    ----------
    epsilon, neighbours, delta, steps, sampling_rate, batch_size, noise_multiplier
        See :class:`~pgmpy_dp.PrivateVB`.
    budget : PrivacyBudget, optional
        See :class:`~pgmpy_dp.PrivateLogisticRegression`.
    n_components : int
        Number of hidden variables.
    clip_norm : float, optional
        Bound on the square root of 1 plus the expected number of hidden variables that are 1. Beyond it a record's
        hidden variables are scaled down. The default sqrt(1 + n_components) is not exceeded by any record.
    delay, forgetting, random_state
        See :class:`~pgmpy_dp.PrivateVB`.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        Weights: row k is the contribution of hidden variable k to the log-odds of the observed variables.
    intercept_ : ndarray of shape (n_features,)
    hidden_intercept_ : ndarray of shape (n_components,)
    guarantee_, noise_multiplier_, n_steps_, n_features_in_, feature_names_in_
        See :class:`~pgmpy_dp.PrivateLogisticRegression`.

    Notes
    -----
    The method is that of Foulds, Park, Chaudhuri and Welling (2020), with the horseshoe prior of Gan, Henao, Carlson
    and Carin (2015), which shrinks weights towards zero and removes hidden variables that explain nothing. In each step
    the hidden variables of the sampled records are inferred anew by mean field from released parameters alone, so that
    no private state is kept between steps.

    A step releases the sums over records of (v_j - 1/2) (h, 1), of (h, 1), and, for every j, of the expected
    Polya-Gamma weight times the second moments of (h, 1), all under one noise multiplier. See
    :class:`~pgmpy_dp.data.mechanisms.integer_sums.MomentGrid` for their sensitivity, and
    :mod:`pgmpy_dp.estimators.logistic_regression` for the posterior of the weights given the sums.

    Examples
    --------
    >>> import numpy as np, pgmpy_dp as dp
    >>> causes = np.arange(8000)[:, None] % 2
    >>> model = dp.papers.PrivateSigmoidBeliefNetwork(1, 2.0, 1e-6).fit(np.repeat(causes, 6, axis=1))
    >>> hidden = model.transform([[0] * 6, [1] * 6])
    >>> bool(abs(hidden[0, 0] - hidden[1, 0]) > 0.9)
    True
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "n_components": whole(1),
        "clip_norm": optional(checked_norm),
        "delay": DELAY,
        "forgetting": FORGETTING,
    }

    _: KW_ONLY
    clip_norm: float | None = None
    delay: float = 1.0
    forgetting: float = 0.5
    random_state: int = 0

    def fit(self, X: Any, y: None = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : PrivateDataset, or array or frame of shape (n, n_features)
            A data set of variables with two states each, of which the second counts as 1; its ledger is charged. Or
            zeros and ones.
        y : None
            Not used.

        Raises
        ------
        SchemaError, BudgetExceededError, TypeError, ValueError
            As `PrivateMLE.fit`; each variable has two states, and raw records are zeros and ones.
        """
        self._run(None, X)
        names = X.schema.variables if isinstance(X, PrivateDataset) else _names(X)
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        return self

    def _learner(self, structure: None, public: Any) -> Learner:
        hidden, variables = int(self.n_components), public.schema.variables
        maximum = math.sqrt(1.0 + hidden)
        bound = maximum if self.clip_norm is None else min(float(self.clip_norm), maximum)
        rate = learning_rate(self.delay, self.forgetting)
        rng = np.random.default_rng(self.random_state)
        start = np.column_stack([rng.normal(size=(len(variables), hidden)), np.zeros(len(variables))])

        def steps(sums: NoisySums) -> Iterator[Layer]:
            layer = Layer(Gaussian(start, np.zeros((*start.shape, hidden + 1))), np.zeros(hidden))
            prior, averages = _Horseshoe(len(variables), hidden), Averages(sums.sampling_rate)
            for number in range(sums.steps):
                share = rate(number)
                averages.add(sums.noisy_moments(layer.moments, bound), share, share)
                weights = averages.posterior(layer.weights, prior.precision)
                prior.update(weights.second[:, range(hidden), range(hidden)])
                on = 2.0 * averages.first.mean[-1]  # the sum of (h, 1)
                size = max(float(on[-1]), 1.0)
                pull = 1.0 + size * expected_weight(layer.offsets**2)
                layer = Layer(weights, (on[:-1] - size / 2.0) / pull)
                yield layer

        def finish(layer: Layer) -> None:
            self.components_ = layer.weights.mean[:, :-1].T.copy()
            self.intercept_ = layer.weights.mean[:, -1].copy()
            self.hidden_intercept_ = layer.offsets
            self.n_features_in_ = len(variables)

        return Learner((hidden + 1, len(variables) + 1, len(variables)), steps, finish, variables)

    def transform(self, X: Any) -> Vector:
        """Infer probabilities of the hidden variables given the observed ones by mean field, shape (n, n_components).

        Use it for public records: probabilities of private records are private and not covered by the guarantee.
        """
        return self._layer().infer(self._binary(X))[0]

    def inverse_transform(self, H: Any) -> Vector:
        """Compute probabilities of the observed variables given the hidden ones, shape (n, n_features)."""
        check_is_fitted(self)
        return expit(np.asarray(H, dtype=np.float64) @ self.components_ + self.intercept_)

    def score(self, X: Any, y: None = None) -> float:
        """Return a lower bound on the mean log-likelihood of public records, in nats; higher is better."""
        codes, layer = self._binary(X), self._layer()
        h, squares = layer.infer(codes)
        xi = np.sqrt(squares)
        # log sigmoid of each response, bounded by Jaakkola and Jordan (2000), where E[psi^2] = xi^2.
        observed = log_expit(xi) - xi / 2.0 + (codes - 0.5) * (h @ self.components_ + self.intercept_)
        own = h * log_expit(layer.offsets) + (1.0 - h) * log_expit(-layer.offsets) + entr(h) + entr(1.0 - h)
        return float((observed.sum(axis=1) + own.sum(axis=1)).mean())

    def sample(self, n_samples: int = 1, random_state: Any = None) -> NDArray[np.uint8]:
        """Draw synthetic records of zeros and ones, shape (n_samples, n_features)."""
        check_is_fitted(self)
        rng = np.random.default_rng(random_state)
        hidden = rng.random((n_samples, self.hidden_intercept_.size)) < expit(self.hidden_intercept_)
        chance = self.inverse_transform(hidden)
        return (rng.random(chance.shape) < chance).astype(np.uint8)

    def _source(self, structure: None, X: Any, public: Any) -> PrivateDataset:
        """Return the given data set, or create one from raw records; all variables must have two states."""
        if isinstance(X, PrivateDataset):
            if self.budget is not None:
                raise ValueError("The data set has its own budget: leave it out.")
            variables, states = X.schema.variables, None
        else:
            values = np.asarray(X)
            if values.ndim != 2 or values.shape[1] < 1:
                raise TypeError(f"X must be a two-dimensional array or a frame, got {values.ndim} dimensions.")
            names = _names(X) or tuple(str(position) for position in range(values.shape[1]))
            if len(set(names)) < len(names):
                raise SchemaError("Two features have the same name: give each one of its own.")
            states = Schema({name: [0, 1] for name in names})
            variables = states.variables
            X = values
            if values.dtype.kind in "biuf":  # any number but 0 and 1 becomes 2, which the data set refuses
                X = np.where(values == 0, 0, np.where(values == 1, 1, 2)).astype(np.uint8)
        dataset = self._dataset(X, variables, states)
        for variable in variables:
            if dataset.schema.cardinality(variable) != 2:
                raise SchemaError(f"Variable {variable!r} does not have two states, as sigmoid belief networks need.")
        return dataset

    def _layer(self) -> Layer:
        check_is_fitted(self)
        mean = np.column_stack([self.components_.T, self.intercept_])
        return Layer(Gaussian(mean, np.zeros((*mean.shape, mean.shape[1]))), self.hidden_intercept_)

    def _binary(self, X: Any) -> Vector:
        codes = self._public_array(X)
        if not np.isin(codes, (0.0, 1.0)).all():
            raise ValueError("X must hold zeros and ones.")
        return codes


def _names(X: Any) -> tuple[str, ...] | None:
    """Return the names of a frame's columns, or None unless all are strings, as in scikit-learn."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None


class Layer:
    """Hidden variables given observed ones, under a distribution of the weights."""

    def __init__(self, weights: Gaussian, offsets: Vector) -> None:
        self.weights, self.offsets = weights, offsets
        self._second = weights.second.reshape(weights.mean.shape[0], -1)

    def infer(self, codes: Vector) -> tuple[Vector, Vector]:
        """Return mean-field probabilities of the hidden variables, and E[psi^2] of each response psi."""
        count, size = codes.shape[0], self.offsets.size
        pull = row_products(codes - 0.5, self.weights.mean[:, :-1]) + self.offsets
        h = np.tile(expit(self.offsets), (count, 1))
        for _ in range(_SWEEPS):
            coupling = row_products(expected_weight(self._squares(h)), self._second).reshape(count, size + 1, size + 1)
            for k in range(size):
                others = np.einsum("nl,nl->n", coupling[:, k, :-1], h) - coupling[:, k, k] * h[:, k]
                h[:, k] = expit(pull[:, k] - coupling[:, k, k] / 2.0 - coupling[:, k, -1] - others)
        return h, self._squares(h)

    def moments(self, codes: NDArray[np.integer]) -> Moments:
        h, squares = self.infer(codes.astype(np.float64))
        one = np.ones((codes.shape[0], 1))
        means, variances = np.hstack([h, one]), np.hstack([h * (1.0 - h), 0.0 * one])
        return Moments(means, variances, np.hstack([2.0 * codes - 1.0, one]), 4.0 * expected_weight(squares))

    def _squares(self, h: Vector) -> Vector:
        full = np.hstack([h, np.ones((h.shape[0], 1))])
        second = full[:, :, None] * full[:, None, :]
        second[:, range(h.shape[1]), range(h.shape[1])] = h  # h is 0 or 1: its square is itself
        return np.maximum(row_products(second.reshape(h.shape[0], -1), self._second.T), 0.0)


class _Horseshoe:
    """Expected 1 / z if W ~ N(0, z), z ~ Gamma(1/2, x), x ~ Gamma(1/2, f_k), f_k ~ Gamma(1/2, w), w ~ Gamma(1/2, 1)."""

    def __init__(self, responses: int, hidden: int) -> None:
        self.precision = np.ones((responses, hidden + 1))  # the precision of the intercepts stays 1
        self._rate, self._column, self._overall = np.ones((responses, hidden)), np.ones(hidden), 1.0

    def update(self, squares: Vector) -> None:
        """Update the precisions given E[W^2], shape (responses, hidden)."""
        squares = np.maximum(squares, 1e-12)
        argument = np.sqrt(2.0 * self._rate * squares)
        ratio = kve(1, argument) / kve(0, argument)
        self.precision[:, :-1] = np.sqrt(2.0 * self._rate / squares) * ratio
        self._rate = 1.0 / (np.sqrt(squares / (2.0 * self._rate)) * ratio + self._column)
        self._column = (squares.shape[0] / 2.0 + 0.5) / (self._overall + self._rate.sum(axis=0))
        self._overall = (squares.shape[1] / 2.0 + 0.5) / (1.0 + float(self._column.sum()))
