"""Compilation of numerical loops."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba

Compiled = Callable[..., Any]


def compiled(function: Compiled) -> Any:
    """Compile once a machine; once a process where no cache can be written.

    Sums keep their order and products are rounded: a compiler that may choose otherwise chooses for each processor,
    and, between two copies of a loop, by where arrays happen to lie in memory.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)
