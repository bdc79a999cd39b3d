"""Checks of the parts of releases against their guarantees."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.blocks import gaussian_delta
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.privacy.guarantee import Guarantee

_SLACK, _DELTA_SLACK = 1e-9, 1e-6  # relative, for the rounding of epsilon and of delta


def check_gaussian(name: str, guarantee: Guarantee, rho: float) -> None:
    """Raise if epsilon and delta are below the exact price of Gaussian noise with this rho.

    The price used is that of continuous noise, slightly below that of discrete noise of its scale. Whatever else its
    own costs count, such as the choices of a search, adds to it.
    """
    epsilon, delta = guarantee.own.epsilon, guarantee.own.delta
    if not epsilon > 0 or gaussian_delta(2.0 * rho, epsilon * (1.0 + _SLACK)) > delta * (1.0 + _DELTA_SLACK):
        raise ValueError(
            f"{name}: Gaussian noise of these scales costs rho={rho:.6g}, which does not guarantee "
            f"epsilon={epsilon:.6g} at delta={delta:.6g}."
        )


def checked_total(total: Any, guarantee: Guarantee) -> int | None:
    several = (guarantee.max_rows or 1) > 1 or guarantee.largest_weight is not None
    if total is None:
        if guarantee.neighbours == "replace_one" and guarantee.mechanism != "none" and not several:
            raise ValueError("NoisyMarginals: under 'replace_one' the number of records is public: give public_total.")
        return None
    if guarantee.neighbours == "add_remove" and guarantee.mechanism != "none":
        raise ValueError("NoisyMarginals: under 'add_remove' the number of records is private: leave public_total out.")
    if several:
        raise ValueError(
            "NoisyMarginals: units' numbers of rows are private, and so are weights: leave public_total out."
        )
    return whole_number("NoisyMarginals: public_total", total, 0)


def frozen_array(array: Any, dtype: Any) -> NDArray[Any]:
    """Return a read-only copy."""
    copy = np.array(array, dtype=dtype, order="C")
    copy.setflags(write=False)
    return copy
