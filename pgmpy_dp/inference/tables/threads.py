"""Linear algebra runs on one thread.

Matrices here are too small for a second BLAS thread to pay: on a busy machine its waiting costs many times the work,
and with several threads sums could differ in the last bit.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[Any]:
    """Make a context in which BLAS runs on one thread."""
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
