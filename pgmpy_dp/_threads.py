"""How many threads compiled code may use."""

from __future__ import annotations

import os


def cores() -> int:
    """Cores of this process, or fewer if OMP_NUM_THREADS says so, as it should where processes share a machine."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    asked = os.environ.get("OMP_NUM_THREADS", "")
    return min(available, int(asked)) if asked.isdecimal() and int(asked) else available
