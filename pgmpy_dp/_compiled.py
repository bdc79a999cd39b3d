"""Compilation of numerical loops, and the progress bar that says so."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event
from tqdm.auto import tqdm

from pgmpy_dp._progress import progress

Compiled = Callable[..., Any]


def compiled(function: Compiled, **options: Any) -> Any:
    """Compile a function once per machine, or once per process if no cache can be written.

    Sums keep their order and products are rounded: a compiler that may choose otherwise chooses for each processor,
    and, between two copies of a loop, by where arrays happen to lie in memory.

    What takes long is the number of statements, not of calls. Slices, sums and new arrays are functions of numba's that
    are compiled too, a constant argument makes another version, and callers compile what they call once more with it.
    """
    options |= {"nogil": True, "error_model": "numpy"}
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:
        return numba.njit(**options)(function)


def called(function: Compiled) -> Any:
    """Compile a part of compiled functions; a call from Python would crash."""
    return compiled(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


class _Progress(event.Listener):
    """Show a bar while loops are compiled, from a second after the first; loops from the cache are not counted."""

    bar: tqdm[Any] | None = None
    depth, collects = 0, False

    def on_start(self, event: event.Event) -> None:
        if self.depth == 0:
            self.collects = gc.isenabled()
            gc.disable()  # it would look through all objects of all libraries, again and again
        self.depth += 1
        if self.bar is None:
            self.bar = progress("Compiling, once on this machine", "loop")

    def on_end(self, event: event.Event) -> None:
        self.depth -= 1
        if self.depth == 0 and self.collects:
            gc.enable()
        if self.bar is not None:
            self.bar.update()
            self.bar.clear()  # other steps have bars of their own


event.register("numba:compile", _Progress())
