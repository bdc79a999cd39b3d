"""Quasi-Newton minimisation by scipy's L-BFGS-B, on one thread."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pgmpy_dp._threads import one_thread
from pgmpy_dp.inference.tables.table import Vector

# A minimisation has not finished while its last iterations gain on average more than this share of the value.
_STILL_GAINING, _LAST = 1e-5, 10

Objective = Callable[[Vector], tuple[float, Vector]]


@dataclass(frozen=True)
class Minimum:
    """Point where a minimisation stopped."""

    point: Vector
    value: float
    iterations: int
    slope: float  # largest component of the gradient there
    finished: bool


def minimise(
    objective: Objective,
    start: Vector,
    max_iter: int,
    *,
    slope: float = 1e-6,
    gain: float = 0.0,
    memory: int = 20,
    scale: Vector | None = None,
    bounds: Vector | None = None,
) -> Minimum:
    """Minimise a smooth function.

    It runs on one thread: vectors are too short for a second BLAS thread to pay, on a busy machine its waiting costs
    ten times the work, and with several threads sums could differ in the last bit.
    """
    unit = np.ones_like(start) if scale is None else scale
    options = {"maxiter": max_iter, "maxfun": 2 * max_iter, "gtol": slope, "ftol": gain, "maxcor": memory}

    def scaled(point: Vector) -> tuple[float, Vector]:
        value, gradient = objective(point * unit)
        return value, gradient * unit

    values = [math.inf] * (_LAST + 1)  # last iterations

    def remember(intermediate_result: Any) -> None:
        values.append(float(intermediate_result.fun))

    from scipy.optimize import minimize  # takes 0.4 s and 40 MB, which descent does without

    with one_thread():
        result = minimize(
            scaled, start / unit, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=remember
        )
    gained = not values[-1 - _LAST] - values[-1] <= _LAST * _STILL_GAINING * max(abs(values[-1]), start.size)
    slope = float(np.abs(result.jac / unit).max(initial=0.0))
    return Minimum(result.x * unit, float(result.fun), int(result.nit), slope, not (result.status == 1 and gained))
