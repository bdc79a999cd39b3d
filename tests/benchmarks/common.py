"""What several benchmarks need: their command lines, and the memory of a process."""

import argparse
import inspect
from pathlib import Path
from typing import Any


def options(*positional: str, **defaults: Any) -> argparse.Namespace:
    """Read paths by position and options by name, each with its default, or a type where there is none."""
    calling = inspect.currentframe().f_back.f_globals["__doc__"]
    parser = argparse.ArgumentParser(description=calling, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in positional:
        parser.add_argument(name, type=Path)
    for name, value in defaults.items():
        option = f"--{name.replace('_', '-')}"
        if value is False:
            parser.add_argument(option, action="store_true")
        elif isinstance(value, type):
            parser.add_argument(option, type=value)
        else:
            parser.add_argument(option, type=type(value), default=value)
    return parser.parse_args()


def peak_megabytes() -> float:
    """Largest resident memory of this process so far; getrusage would tell its parent's."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024
