"""What noise hides is drawn anew from the prior: trajectories are slow to find their way there."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.inference.log_posterior import LogPosterior, bend
from pgmpy_dp.inference.priors import log_gamma
from pgmpy_dp.inference.rows import row_maxima

# A cell is in its tail where it counts for less than this share of what the noise hides.
TAIL = 0.1
# A row is hidden whose records stand out of the noise by less than so many variances.
_HIDDEN = 8.0
# Rows are drawn together as long as this share of draws is accepted; how many are, is learned at this rate.
_ACCEPTANCE, _RATE = 0.3, 0.1


class State(NamedTuple):
    """A point of a chain, the log density there, and its gradient."""

    point: Vector
    value: float
    gradient: Vector


class HiddenRows:
    """Rows of CPDs that have so few records that noise hides them: a posterior may then have a mode at every state.

    Parameters
    ----------
    precision : ndarray of shape (number of rows,)
        How precisely their cells are counted: `LogPosterior.precision_of_rows` at the mode.
    """

    def __init__(self, precision: Vector) -> None:
        self._precision, self._squares, self._points = precision, np.zeros(precision.size), 0
        self._share = 1.0

    def learn(self, density: LogPosterior, point: Vector) -> None:
        """See how many records rows have at a point of the warm-up."""
        self._squares += density.row_counts(point) ** 2
        self._points += 1

    @property
    def told(self) -> Vector:
        """By how many variances of the noise the records of each row stand out of it, about."""
        return self._precision * self._squares / max(self._points, 1)

    def redraw(self, density: LogPosterior, state: State, generator: np.random.Generator, *, learning: bool) -> State:
        """Draw some hidden rows from their prior; all or none are taken, as the likelihood says.

        Which rows, does not hang on the state. Their sums stay as they are, which nothing depends on.
        """
        told, terms = self.told, density.terms
        chances = np.where(told < _HIDDEN, self._share / np.sqrt(np.maximum(told, 1e-12)), 0.0)
        cells = np.flatnonzero((generator.random(told.size) < chances)[terms.rows])
        if not cells.size:
            return state
        values, slopes = density.values(state.point)
        _, own = np.unique(terms.rows[cells], return_inverse=True)
        prior = terms.prior[cells]
        drawn = log_gamma(prior, generator)
        moved = state.point.copy()
        moved[cells] = bend(drawn + _log_sums(values[cells], own) - _log_sums(drawn, own), terms.bends[cells])
        reached, gradient = density(moved)
        again, risen = density.values(moved)
        proposed = float(prior @ (again - values)[cells] + np.log(risen[cells] / slopes[cells]).sum())
        accepted = math.exp(min(reached - state.value - proposed, 0.0))
        if learning:
            self._share *= math.exp(_RATE * (accepted - _ACCEPTANCE))
        return State(moved, reached, gradient) if generator.random() < accepted else state


def _log_sums(logs: Vector, rows: NDArray[np.int64]) -> Vector:
    """Return the logarithm of the sum of exp(logs) in each cell's row."""
    tops = row_maxima(logs, rows)
    sums: Vector = (tops + np.log(np.bincount(rows, np.exp(logs - tops[rows]))))[rows]
    return sums


def redraw_tails(density: LogPosterior, point: Vector, edges: Vector, generator: np.random.Generator) -> State:
    """Draw all cells that are in their tails from the prior there; all or none are taken.

    A cell that may hold no records is nearly free to move far down, from where trajectories need long to come back.

    Parameters
    ----------
    edges : ndarray
        Where each cell's tail begins.
    """
    terms, size = density.terms, density.free
    if terms.rows.size:  # The largest of a row is in no tail.
        values, _ = density.values(point)
        edges = np.minimum(edges, row_maxima(values, terms.rows)[terms.rows] + math.log(TAIL))
    prior = terms.prior
    tail = np.flatnonzero(point[:size] < edges)
    edges, prior, old = edges[tail], prior[tail], point[tail]
    logs = np.log1p(-generator.random(tail.size))
    if terms.rows.size:  # A small share has a density that is nearly a power.
        new = edges + logs / prior
        proposed = float(prior @ (new - old))
    else:
        new = ndtri_exp(logs + log_ndtr(edges * np.sqrt(prior))) / np.sqrt(prior)
        proposed = 0.5 * float(prior @ (old**2 - new**2))
    moved = point.copy()
    moved[tail] = new
    value, gradient = density(point)
    reached, slope = density(moved)
    if math.log1p(-generator.random()) < reached - value - proposed:
        return State(moved, reached, slope)
    return State(point, value, gradient)
