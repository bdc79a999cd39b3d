"""Compilation of numerical loops, and the progress bar that says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import event
from tqdm.auto import tqdm

Compiled = Callable[..., Any]


def compiled(function: Compiled) -> Any:
    """Compile a function once per machine, or once per process if no cache can be written.

    Sums keep their order and products are rounded: a compiler that may choose otherwise chooses for each processor,
    and, between two copies of a loop, by where arrays happen to lie in memory.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)


class _Progress(event.Listener):
    """Show a bar while loops are compiled, from a second after the first; loops from the cache are not counted."""

    bar: tqdm[Any] | None = None

    def on_start(self, event: event.Event) -> None:
        if self.bar is None:
            what = "Compiling, once on this machine"
            self.bar = tqdm(desc=what, unit="loop", delay=1.0, leave=False, disable=None)

    def on_end(self, event: event.Event) -> None:
        if self.bar is not None:
            self.bar.update()
            self.bar.clear()  # other steps have bars of their own


event.register("numba:compile", _Progress())
