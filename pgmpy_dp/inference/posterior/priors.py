"""Priors of rows and of log-potentials, whose own parameters are drawn as well."""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.rows import Rows

# Range of the logarithms of Dirichlet concentrations; prior mean of their centre (with standard deviation 1), prior
# value of their variance and its weight; widths of the proposed moves.
_RANGE = math.log(0.02), math.log(10.0)
_CONCENTRATION, _VARIANCE, _VARIANCE_WEIGHT = 0.5, 0.1, 2.0
_WIDTHS = (0.1, 0.4)
# Degrees of freedom of the Student t prior of log-potentials, prior value of its squared scale, and its weight.
_FREEDOM, _FIRST_SCALE, _FIRST_WEIGHT = 3.0, 0.3, 10.0


class Concentrations:
    """Dirichlet priors of all rows, with a concentration for each state of each node that is drawn as well.

    Rows of one CPD learn from each other which states are rare, and rows of all CPDs how even rows are: the logarithms
    of the concentrations are normal, with a centre and a variance that are drawn too.

    Parameters
    ----------
    rows : Rows

    Attributes
    ----------
    first : ndarray
        Initial concentrations of all cells.
    """

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._starts = np.searchsorted(rows.nodes, np.arange(rows.nodes[-1] + 2))
        self._counts = np.bincount(rows.columns)[self._starts[:-1]]
        self._centre, self._variance = math.log(_CONCENTRATION), 1.0
        self._logs = np.full(rows.nodes.size, self._centre)
        self.first = np.full(rows.columns.size, _CONCENTRATION)

    def renew(self, values: Vector, generator: np.random.Generator) -> Vector:
        """Draw the concentrations of all cells given the rows, which are exp(values) normalised."""
        from pgmpy_dp.inference.posterior.concentration_kernel import sweep  # imports numba, only needed for draws

        logs = self._rows.normalise(values)
        sums, believed = np.bincount(self._rows.columns, logs), math.log(_CONCENTRATION)
        moves = self._logs.size + self._starts.size
        for width in _WIDTHS:
            shifts, uniforms = width * generator.standard_normal(moves), generator.random(moves)
            self._centre = sweep(
                self._logs, self._starts, self._counts, sums, self._centre, self._variance, believed, *_RANGE,
                shifts, uniforms,
            )  # fmt: skip
        square = float(((self._logs - self._centre) ** 2).sum()) + _VARIANCE_WEIGHT * _VARIANCE
        self._variance = square / 2 / generator.gamma((self._logs.size + _VARIANCE_WEIGHT) / 2)
        precision = self._logs.size / self._variance + 1.0
        mean = (float(self._logs.sum()) / self._variance + believed) / precision
        self._centre = mean + generator.standard_normal() / math.sqrt(precision)
        drawn: Vector = np.exp(self._logs)[self._rows.columns]
        return drawn


class Scale:
    """Student t prior as a scale mixture of normal ones, with a scale that is drawn as well.

    Parameters
    ----------
    cells : int

    Attributes
    ----------
    first : ndarray
        Initial precisions of the normal distributions.
    """

    def __init__(self, cells: int) -> None:
        self.first = np.full(cells, 1 / _FIRST_SCALE)
        self._square = _FIRST_SCALE

    def renew(self, values: Vector, generator: np.random.Generator) -> Vector:
        """Draw the precisions of all log-potentials given their values."""
        weight = generator.gamma((_FREEDOM + 1) / 2, 2 / (_FREEDOM + values**2 / self._square))
        shape = (values.size + _FIRST_WEIGHT) / 2
        rate = (float(weight @ values**2) + _FIRST_WEIGHT * _FIRST_SCALE) / 2
        self._square = rate / generator.gamma(shape)
        precision: Vector = weight / self._square
        return precision


def log_gamma(shape: Vector, generator: np.random.Generator) -> Vector:
    """Draw logarithms of Gamma variables, which underflow themselves if their shape is small."""
    logs: Vector = np.log(generator.gamma(shape + 1.0)) + np.log1p(-generator.random(shape.size)) / shape
    return logs
