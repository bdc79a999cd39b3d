"""Redrawing from the prior of what noise hides, where Hamiltonian trajectories mix slowly."""

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

# A cell is in its tail if its count is below this share of what the noise hides.
TAIL = 0.1
# A row is hidden if its records stand out of the noise by fewer than this number of variances.
_HIDDEN = 8.0
# Largest probability of redrawing it: near 1, small changes by its ancestors' draws would matter much.
_LARGEST = 0.5
# Rows are redrawn together; their number is adapted, at this rate, to this share of accepted draws.
_ACCEPTANCE, _RATE = 0.3, 0.1
_TIMES = 2  # redraws after every trajectory


class State(NamedTuple):
    """A point of a chain, the log density there, and its gradient."""

    point: Vector
    value: float
    gradient: Vector


class HiddenRows:
    """Rows of CPDs with so few records that noise hides them: a posterior may then have a mode at every state.

    Parameters
    ----------
    precision : ndarray of shape (number of rows,)
        Precision of their cells' counts: `LogPosterior.precision_of_rows` at the mode.
    """

    def __init__(self, precision: Vector) -> None:
        self._precision, self._share = precision, 1.0

    def told(self, density: LogPosterior, point: Vector) -> Vector:
        """Return by how many variances of the noise, approximately, the records of each row stand out of it."""
        told: Vector = self._precision * density.row_counts(point) ** 2
        return told

    def _chances(self, told: Vector) -> Vector:
        chances = np.minimum(self._share / np.sqrt(np.maximum(told, 1e-12)), _LARGEST)
        return np.where(told < _HIDDEN, chances, 0.0)

    def redraw(self, density: LogPosterior, state: State, generator: np.random.Generator, *, learning: bool) -> State:
        """Redraw some hidden rows from their prior, twice; all or none are accepted, by the likelihood.

        A row may have records only at times, and is hidden at the others: which rows are redrawn depends on the state.
        The draw changes the records of descendants and so the probability of this choice: the acceptance includes the
        ratio of both probabilities (Green 1995). The sums of rows, on which nothing depends, are kept.
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
    """Return the log-probability of choosing exactly these rows."""
    return float(np.log(np.maximum(np.where(chosen, chances, 1 - chances), 1e-300)).sum())


def _log_sums(logs: Vector, rows: NDArray[np.int64]) -> Vector:
    """Return the logarithm of the sum of exp(logs) in each cell's row."""
    tops = row_maxima(logs, rows)
    sums: Vector = (tops + np.log(np.bincount(rows, np.exp(logs - tops[rows]))))[rows]
    return sums


def redraw_tails(density: LogPosterior, point: Vector, edges: Vector, generator: np.random.Generator) -> State:
    """Redraw all cells that are in their tails from the prior there; all or none are accepted.

    A cell that may hold no records can move far down nearly freely, and trajectories take long to return from there.
    `edges` are the beginnings of the cells' tails.
    """
    terms, size = density.terms, density.free
    if terms.rows.size:  # the largest cell of a row is in no tail
        values, _ = density.values(point)
        edges = np.minimum(edges, row_maxima(values, terms.rows)[terms.rows] + math.log(TAIL))
    prior = terms.prior
    tail = np.flatnonzero(point[:size] < edges)
    edges, prior, old = edges[tail], prior[tail], point[tail]
    logs = np.log1p(-generator.random(tail.size))
    if terms.rows.size:  # the density of a small share is nearly a power
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
