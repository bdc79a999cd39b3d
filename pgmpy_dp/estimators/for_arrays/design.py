"""Regressions on private features: their source, and the scaling of records between public bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from pgmpy_dp.data.features import PrivateFeatures
from pgmpy_dp.estimators.for_arrays.array_estimator import ArrayEstimator
from pgmpy_dp.estimators.for_arrays.polya_gamma import Gaussian
from pgmpy_dp.estimators.sources import require_same
from pgmpy_dp.inference.tables.layout import Vector


@dataclass(eq=False, repr=False)
class SupervisedEstimator(ArrayEstimator):
    """Base class of estimators of a class or a target from features, `fit(X, y)`.

    Parameters
    ----------
    bounds : pair of float or array of shape (d,)
        Public lower and upper bounds of the features, for raw records. Values outside are set to the bound.
    """

    _declared: ClassVar[str]  # the parameter that says what y may hold, and how it is written
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

        Returns
        -------
        self

        Raises
        ------
        SchemaError
            If the records do not agree with what is declared.
        BudgetExceededError
            If the data set's ledger has too little left; nothing is charged.
        ValueError, TypeError
            If an argument is out of range or of the wrong kind; nothing is charged.
        """
        return self._fit(None, (X, y))

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
    """Conversion of records to scaled features with a constant 1, and of coefficients to the original units.

    Attributes
    ----------
    middle, half : ndarray of shape (d,)
        Features between their bounds are scaled to [-1, 1].
    clip : float
        Longer vectors of scaled features are scaled down to this norm.
    """

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
