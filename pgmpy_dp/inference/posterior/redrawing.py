"""What noise hides is drawn anew from the prior: trajectories are slow to find their way there."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtri_exp

from pgmpy_dp.inference.posterior.log_posterior import LogPosterior, bend
from pgmpy_dp.inference.posterior.priors import log_gamma
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.rows import row_maxima

# A cell is in its tail where it counts for less than this share of what the noise hides.
TAIL = 0.1
# A row is hidden whose records stand out of the noise by less than so many variances.
_HIDDEN = 8.0
# It is drawn with at most this chance: of one near 1, small changes by its ancestors' draws would count for much.
_LARGEST = 0.5
# Rows are drawn together as long as this share of draws is accepted; how many are, is learned at this rate.
_ACCEPTANCE, _RATE = 0.3, 0.1
_TIMES = 2  # after every trajectory


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
        self._precision, self._share = precision, 1.0

    def told(self, density: LogPosterior, point: Vector) -> Vector:
        """Compute by how many variances of the noise the records of each row stand out of it, about."""
        told: Vector = self._precision * density.row_counts(point) ** 2
        return told

    def _chances(self, told: Vector) -> Vector:
        chances = np.minimum(self._share / np.sqrt(np.maximum(told, 1e-12)), _LARGEST)
        return np.where(told < _HIDDEN, chances, 0.0)

    def redraw(self, density: LogPosterior, state: State, generator: np.random.Generator, *, learning: bool) -> State:
        """Draw some hidden rows from their prior, twice; all or none are taken, as the likelihood says.

        A row that has records at times only is hidden at the others: which rows are drawn hangs on the state. What is
        drawn changes the records of descendants, and with them the chance of this choice: the ratio of both chances
        belongs to what is accepted (Green 1995). The sums of rows stay as they are, which nothing depends on.
        """
        terms, told = density.terms, self.told(density, state.point)
        for _ in range(_TIMES):
            chances = self._chances(told)
            chosen = generator.random(told.size) < chances
            cells = np.flatnonzero(chosen[terms.rows])
            if not cells.size:
                continue
            values, slopes = density.values(state.point)
            _, own = np.unique(terms.rows[cells], return_inverse=True)
            prior = terms.prior[cells]
            drawn = log_gamma(prior, generator)
            moved = state.point.copy()
            moved[cells] = bend(drawn + _log_sums(values[cells], own) - _log_sums(drawn, own), terms.bends[cells])
            reached, gradient = density(moved)
            accepted, told_then = 0.0, told
            if math.isfinite(reached):
                again, risen = density.values(moved)
                proposed = float(prior @ (again - values)[cells] + np.log(risen[cells] / slopes[cells]).sum())
                told_then = self.told(density, moved)
                back = _log_chance(chosen, self._chances(told_then)) - _log_chance(chosen, chances)
                accepted = math.exp(min(reached - state.value - proposed + back, 0.0))
            if learning:
                self._share *= math.exp(_RATE * (accepted - _ACCEPTANCE))
            if generator.random() < accepted:
                state, told = State(moved, reached, gradient), told_then
        return state


def _log_chance(chosen: NDArray[np.bool_], chances: Vector) -> float:
    """Return the logarithm of the chance that just these are chosen."""
    return float(np.log(np.maximum(np.where(chosen, chances, 1 - chances), 1e-300)).sum())


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
