"""Priors of rows and of log-potentials, whose own parameters are drawn as well."""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.rows import Rows

# Range of Dirichlet concentrations; prior mean of the centre of their logarithms (with standard deviation 1), prior
# value of variances and its weight; widths of the proposed moves.
_RANGE = 0.02, 10.0
_CONCENTRATION, _VARIANCE, _VARIANCE_WEIGHT = 0.5, 0.1, 2.0
_WIDTHS = (0.1, 0.4)
# Degrees of freedom of the Student t prior of log-potentials, prior value of its squared scale, and its weight.
_FREEDOM, _FIRST_SCALE, _FIRST_WEIGHT = 3.0, 0.3, 10.0


class Concentrations:
    """Dirichlet priors of all rows, whose concentrations are drawn as well.

    Rows of one CPD learn from each other which states are rare, and rows of all CPDs how even rows are. The logarithm
    of a cell's concentration is a base for the node's state, plus an effect of each parent's state where a node has
    several parents: rows in which a parent has the same state then learn more from each other than from other rows.
    Bases are normal, with a centre and a variance that are drawn too; effects are normal about 0, with a variance for
    each parent's state, so that a rare state may differ from all others.

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
        nodes, owners = [], [np.zeros(0, np.int64)]
        parents: list[tuple[int, ...]] = []
        cells = numbers = bases = effects = scales = 0
        for count, *others in rows.shapes:
            width = stride = math.prod(others)
            held = others if len(others) > 1 else []
            nodes.append((cells, numbers, count, width, bases, len(parents), len(held)))
            cells, numbers, bases = cells + count * width, numbers + width, bases + count
            for states in held:
                stride //= states
                parents.append((stride, states, effects, scales))
                owners.append(np.repeat(scales + np.arange(states), count))
                effects, scales = effects + states * count, scales + states
        self._nodes = np.array(nodes, dtype=np.int64)
        self._parents = np.array(parents, dtype=np.int64).reshape(-1, 4)
        self._owners = np.concatenate(owners)  # the variance of each effect
        self._centre, self._variance = math.log(_CONCENTRATION), 1.0
        self._bases, self._effects = np.full(bases, self._centre), np.zeros(effects)
        self._variances = np.full(scales, _VARIANCE)
        self.first = np.full(cells, _CONCENTRATION)
        self._concentrations = self.first.copy()

    def renew(self, values: Vector, generator: np.random.Generator) -> Vector:
        """Draw the concentrations of all cells given the rows, which are exp(values) normalised."""
        from pgmpy_dp.inference.posterior.concentration_kernel import sweep  # imports numba, only needed for draws

        logs, believed = self._rows.normalise(values), math.log(_CONCENTRATION)
        moves = self._bases.size + len(self._nodes) + self._effects.size + 1
        totals = self._rows.totals(self._concentrations)
        for width in _WIDTHS:
            shifts, uniforms = width * generator.standard_normal(moves), generator.random(moves)
            self._centre = sweep(
                self._concentrations, totals, logs, self._bases, self._effects, self._nodes, self._parents,
                self._centre, self._variance, self._variances, believed, *_RANGE, shifts, uniforms,
            )  # fmt: skip
        square = float(((self._bases - self._centre) ** 2).sum()) + _VARIANCE_WEIGHT * _VARIANCE
        self._variance = square / 2 / generator.gamma((self._bases.size + _VARIANCE_WEIGHT) / 2)
        if self._effects.size:
            squares = np.bincount(self._owners, self._effects**2) + _VARIANCE_WEIGHT * _VARIANCE
            shapes = (np.bincount(self._owners) + _VARIANCE_WEIGHT) / 2
            self._variances = squares / 2 / generator.gamma(shapes)
        precision = self._bases.size / self._variance + 1.0
        mean = (float(self._bases.sum()) / self._variance + believed) / precision
        self._centre = mean + generator.standard_normal() / math.sqrt(precision)
        return self._concentrations.copy()


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
