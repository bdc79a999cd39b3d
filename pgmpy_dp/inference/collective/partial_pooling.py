"""Partial pooling by empirical Bayes: measurements of the same effects in several parts borrow strength from each
other.

Parts are nodes of a tree, and differ along its links: in a star, each part differs from a centre, a node without a
measurement that stands for what all have in common; in a path, each period differs from the one before. An effect c, in
d dimensions, is measured in part s with variance w_s of noise and sampling in each. The model is

    y_s ~ Normal(c_s, w_s I),    c_i - c_j ~ Normal(0, t_l^2 I) along link l = (i, j),

and otherwise c is flat; t_l is on a grid that includes 0. Given one deviation t_l for each link, the posterior is
Gaussian. The information of the two sides of a link about c_i - c_j, without the link, is Normal(e, v), so that t_l has
a posterior, c_i - c_j has the mean E[t_l^2 / (t_l^2 + v)] e, and the link counts as one of the variance that gives this
mean (expectation propagation). That t_l is uncertain adds Var[t_l^2 / (t_l^2 + v)] e^2 to the variance of c_i - c_j.

The law of t_l is learned from all effects (empirical Bayes), and is averaged over the remaining uncertainty, which a
single best law would ignore. Links share it, except for some that are unlike the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from pgmpy_dp.inference.tables.table import Vector

# Deviations along a link, in units of the variance of one record, by the geometric mean of its two nodes: they are then
# about differences of log-odds, and parts in which a state is frequent differ by more than those in which it is rare.
_GRID = np.concatenate([[0.0], np.geomspace(0.01, 3.0, 40)])
# Candidate distributions of these deviations: 0 with one of these probabilities, else log-normal about a point of the
# grid with one of these factors as deviation, and rarely anything. A link has a different distribution from the others
# with probability _UNLIKE.
_EQUAL, _FACTORS, _ANYTHING, _UNLIKE = (0.02, 0.35, 0.7), (1.3, 2.0, 4.0), 1e-6, 0.1
_ROUNDS = 20
# Minimum variance along a link, relative to that of its two sides, since equal parts still have separate nodes.
_MIN = 1e-6


@dataclass(frozen=True)
class Borrowed:
    """An effect in each part, estimated from its own measurement and those of the others."""

    values: Vector  # posterior means
    variance: Vector  # posterior variance in a dimension
    drawn: Vector  # the part of it that is due to the sampling of all parts' records
    chance: Vector  # the variance of one record in a dimension


def record_variance(main: Vector) -> Vector:
    """Compute the variance of one record, in a dimension, from main effects: shares of states minus equal shares."""
    states = main.shape[-1]
    return np.asarray(1.0 / states - np.square(main).sum(axis=-1) / (states - 1))


def star(parts: int) -> Vector:
    """Return the differences along the links of a star, with a row per link; the last node is the centre."""
    return np.hstack([np.eye(parts), -np.ones((parts, 1))])


def path(parts: int) -> Vector:
    """Return the differences between neighbours, with a row per link."""
    return np.eye(parts)[:-1] - np.eye(parts, k=1)[:-1]


def partially_pooled(effects: Sequence[Effect]) -> list[Borrowed]:
    """Let the parts borrow strength from each other in all effects together, which have the same links."""
    if not effects:
        return []
    laws = _laws()
    prior = np.tile(laws.mean(axis=0), (len(effects[0].differences), 1))
    for _ in range(_ROUNDS):
        prior = _posterior(np.stack([effect.step(prior) for effect in effects]), laws)
    return [effect.borrowed(prior) for effect in effects]


def _posterior(likelihoods: Vector, laws: Vector) -> Vector:
    """Average the laws of each link's deviations, from likelihoods of shape (effects, links, points of the grid)."""
    logs = np.log(np.maximum(likelihoods @ laws.T, 1e-300)).sum(axis=0)  # shape (links, laws)
    alone = math.log(_UNLIKE) + logsumexp(logs, axis=1, keepdims=True) - math.log(len(laws))
    either = np.logaddexp(math.log(1.0 - _UNLIKE) + logs, alone)
    shared, unlike = softmax(either.sum(axis=0)), np.exp(alone - either)
    weights = shared * (1.0 - unlike) + (unlike @ shared)[:, None] * softmax(logs, axis=1)
    return np.asarray(weights @ laws)


def _laws() -> Vector:
    """List distributions on the grid, of shape (distributions, points)."""
    logs = np.log(_GRID[1:])
    bells = [np.exp(-(((logs - mean) / math.log(factor)) ** 2) / 2) for factor in _FACTORS for mean in logs]
    results = [np.append(equal, (1.0 - equal) * bell / bell.sum()) for bell in bells for equal in _EQUAL]
    return (1.0 - _ANYTHING) * np.array(results) + _ANYTHING / _GRID.size


class Effect:
    """Measurements of one effect in each part, and how it differs along the links."""

    def __init__(
        self,
        values: Vector,
        dimensions: int,
        noise: Vector,
        totals: Vector,
        differences: Vector,
        expected: Vector | float = 0.0,
        chance: Vector | None = None,
    ) -> None:
        self.shape, self.parts, self.dimensions = values.shape, len(values), dimensions
        self.differences, self.expected, measured = differences, expected, np.isfinite(noise)
        further = differences.shape[1] - self.parts
        flat = (values - expected).reshape(self.parts, -1)
        if chance is None:
            common = np.average(flat[measured], axis=0, weights=totals[measured])
            chance = np.full(self.parts, np.maximum(record_variance(common), 0.0))
        self.chance = chance
        self.sampling = np.pad(self.chance / totals, (0, further))
        error = np.where(measured, noise, 1.0) + self.chance / totals
        self.precision = np.pad(np.where(measured, 1.0 / error, 0.0), (0, further))
        self.sums = self.precision[:, None] * np.pad(flat, ((0, further), (0, 0)))
        sides = np.linalg.pinv(differences).T > 0.0
        self.informed = (sides @ self.precision > 0.0) & (~sides @ self.precision > 0.0)
        nodes = np.append(chance, np.full(further, np.average(chance, weights=totals)))
        self.squares = _GRID**2 * (nodes ** np.abs(differences)).prod(axis=1, keepdims=True)
        self.along = np.full(len(differences), _MIN * error.mean())  # variance along each link

    def step(self, prior: Vector) -> Vector:
        """Update the links, and return likelihoods of their deviations, of shape (links, points of the grid)."""
        _, _, apart, left = self._solve()
        total = self.squares + left[:, None]
        logs = -(self.dimensions * np.log(total) + apart[:, None] / total) / 2
        likelihoods = np.where(self.informed[:, None], np.exp(logs - logs.max(axis=1, keepdims=True)), 1.0)
        weights = prior * likelihoods
        self.weights = weights / weights.sum(axis=1, keepdims=True)
        kept = (self.weights * self.squares / total).sum(axis=1)
        even = (self.weights * self.squares).sum(axis=1)
        self.along = np.where(self.informed, left * np.maximum(kept / (1.0 - kept), _MIN), even)
        return np.asarray(likelihoods)

    def borrowed(self, prior: Vector) -> Borrowed:
        """Return the posterior in each part."""
        self.step(prior)
        covariance, means, apart, left = self._solve()
        kept = self.squares / (self.squares + left[:, None])
        spread = (self.weights * kept**2).sum(axis=1) - (self.weights * kept).sum(axis=1) ** 2
        across = covariance @ self.differences.T
        slopes = across / (self.differences * across.T).sum(axis=1)  # of each node, by the difference along a link
        variance = np.diag(covariance) + slopes**2 @ np.where(self.informed, spread * apart / self.dimensions, 0.0)
        drawn = (covariance * self.precision) ** 2 @ self.sampling
        own = slice(0, self.parts)
        return Borrowed(means[own].reshape(self.shape) + self.expected, variance[own], drawn[own], self.chance)

    def _solve(self) -> tuple[Vector, Vector, Vector, Vector]:
        """Return the posterior given the variances along links, and the information of each link's sides without it."""
        inverse = 1.0 / np.maximum(self.along, 1e-300)
        covariance = np.linalg.inv(self.differences.T * inverse @ self.differences + np.diag(self.precision))
        means = covariance @ self.sums
        variance = (self.differences @ covariance * self.differences).sum(axis=1)
        left = 1.0 / np.where(self.informed, np.maximum(1.0 / variance - inverse, 1e-300), 1.0)
        apart = ((self.differences @ means) ** 2).sum(axis=1) * (left / variance) ** 2
        return covariance, means, apart, left
