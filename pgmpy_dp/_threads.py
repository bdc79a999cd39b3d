"""Number of threads: of compiled code, and one for linear algebra."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


def cores() -> int:
    """Cores of this process, or fewer if OMP_NUM_THREADS says so, as it should where processes share a machine."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(asked)) if asked.isdecimal() and int(asked) else available


def one_thread() -> AbstractContextManager[Any]:
    """Make a context in which BLAS runs on one thread.

    Matrices here are too small for a second BLAS thread to pay: on a busy machine its waiting costs many times the
    work, and with several threads sums could differ in the last bit.
    """
    limit: AbstractContextManager[Any] = _libraries().limit(limits=1, user_api="blas")
    return limit


@cache
def _libraries() -> ThreadpoolController:
    return ThreadpoolController()
