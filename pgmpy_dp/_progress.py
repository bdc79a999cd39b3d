"""Progress bars of work that may take more than a second."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tqdm.auto import tqdm


def progress(
    what: str, unit: str, total: int | None = None, of: Iterable[Any] | None = None, *, scaled: bool = False
) -> tqdm[Any]:
    """Make a bar that appears after a second, on a terminal or in a notebook, and goes with the work's end.

    Large numbers are abbreviated if `scaled`.
    """
    return tqdm(of, what, total, unit=unit, unit_scale=scaled, delay=1.0, leave=False, disable=None)
