"""Differentially private graphical models for pgmpy."""

from importlib.metadata import PackageNotFoundError, version

import lazy_loader

from pgmpy_dp import _late
from pgmpy_dp._names import FORMER, closest, current

# The names are listed in __init__.pyi. Each is imported when it is first used: pgmpy alone takes two seconds.
_find, __dir__, _names = lazy_loader.attach_stub(__name__, __file__)
_ROOMS = ("evaluation", "exports", "networks", "papers", "plotting", "report")
__all__ = [name for name in _names if name not in _ROOMS]

try:
    __version__ = version("pgmpy-dp")
except PackageNotFoundError:
    __version__ = "unknown"


def __getattr__(name: str) -> object:
    try:
        room, _, own = current(name).rpartition(".")
        return getattr(_find(room), own) if room else _find(own)
    except AttributeError as error:
        close = closest(name, [*_names, *FORMER])
        raise AttributeError(f"{error}{f': did you mean {FORMER.get(close, close)!r}?' if close else ''}") from None


_late.public = __getattr__
