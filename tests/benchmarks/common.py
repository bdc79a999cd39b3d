"""What several benchmarks need: command lines, data with simulated noise, kept rows, and processes with their cost.

pgmpy_dp is imported where it is used: synthesizers.py also runs where other libraries are installed and it is not.
"""

from __future__ import annotations

import argparse
import inspect
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    import pgmpy_dp as dp


def options(*positional: str, **defaults: Any) -> argparse.Namespace:
    """Read paths by position, "folder?" where it may be left out, and options by name.

    Each option has its default, a tuple for values with commas between them, or a type where there is none.
    """
    calling = inspect.currentframe().f_back.f_globals["__doc__"]
    parser = argparse.ArgumentParser(description=calling, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in positional:
        optional = {"nargs": "?", "default": Path()} if name.endswith("?") else {}
        parser.add_argument(name.rstrip("?"), type=Path, **optional)
    for name, value in defaults.items():
        option = f"--{name.replace('_', '-')}"
        if value is False:
            parser.add_argument(option, action="store_true")
        elif isinstance(value, type):
            parser.add_argument(option, type=value)
        elif isinstance(value, tuple):
            parser.add_argument(option, type=_separated(type(value[0])), default=value)
        else:
            parser.add_argument(option, type=type(value), default=value)
    return parser.parse_args()


def _separated(kind: type) -> Callable[[str], tuple[Any, ...]]:
    return lambda text: tuple(map(kind, text.split(",")))


def private(
    frame: pd.DataFrame, schema: dp.Schema, epsilon: float, delta: float = 0.0, *, seed: Any = 0, **how: Any
) -> dp.PrivateDataset:
    """Records whose measurements get simulated noise."""
    import pgmpy_dp as dp

    return dp.PrivateDataset(frame, schema, dp.PrivacyBudget(epsilon, delta), noise=dp.SimulatedNoise(seed), **how)


def bare(edges: Iterable[tuple[str, str]], nodes: Iterable[str]) -> dp.PrivateBayesianNetwork:
    """A network without parameters; nodes stand in the order of the edges."""
    import pgmpy_dp as dp

    network = dp.PrivateBayesianNetwork(edges)
    network.add_nodes_from(nodes)
    return network


class Rows:
    """Results in a CSV file: rows are added as they are found, and runs that it has are not made again."""

    def __init__(self, path: Path, key: Sequence[str], found: Sequence[str]) -> None:
        self.path, self.key, self.found = path, list(key), list(found)
        known = pd.read_csv(path)[self.key] if path.exists() else pd.DataFrame(columns=self.key)
        self._made = set(known.itertuples(index=False, name=None))

    def __contains__(self, key: tuple[Any, ...]) -> bool:
        return key in self._made

    def add(self, key: tuple[Any, ...], *found: dict[str, Any]) -> None:
        """Write what a run found, on a line or several, to five decimals."""
        rows = pd.DataFrame(found, columns=self.found).round(5)
        rows = rows.assign(**dict(zip(self.key, key, strict=True)))[[*self.key, *self.found]]
        rows.to_csv(self.path, mode="a", header=not self.path.exists(), index=False)
        self._made.add(key)

    def read(self) -> pd.DataFrame:
        """All rows, of earlier calls too."""
        return pd.read_csv(self.path)


def median(action: Callable[[], Any], repeats: int) -> float:
    """Median seconds of a call, after one to warm up."""
    action()
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds))


def peak_megabytes() -> float:
    """Largest resident memory of this process so far; getrusage would tell its parent's."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


@dataclass(frozen=True)
class Ended:
    """A process that has ended: what it printed, its status, seconds of the processor, and its peak memory."""

    printed: str
    status: int
    seconds: float
    megabytes: float


def process(*arguments: str, python: str = sys.executable, stderr: Any = subprocess.DEVNULL, **how: Any) -> Ended:
    """Run Python with these arguments to its end."""
    command = [python, "-W", "ignore", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stderr, text=True, **how) as started:
        printed = started.stdout.read()
        _, status, used = os.wait4(started.pid, 0)
        started.returncode = os.waitstatus_to_exitcode(status)
    return Ended(printed, started.returncode, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def a_process_each(lines: Iterable[str], run: Callable[[str], Iterator[str]]) -> None:
    """Run each line named on the command line, or all, in a process of its own; print its cost and what it says."""
    if sys.argv[1:2] == ["--line"]:
        print("  ".join(run(sys.argv[2])))
        return
    for line in sys.argv[1:] or lines:
        start = time.perf_counter()
        ended = process(sys.argv[0], "--line", line)
        spent = f"{time.perf_counter() - start:6.1f} s {ended.seconds:6.1f} CPU s {ended.megabytes:6.0f} MB"
        print(f"{line:14} {spent}  {ended.printed.strip() or f'ended with status {ended.status}'}", flush=True)
