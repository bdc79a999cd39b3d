"""Differentially private graphical models for pgmpy."""

from importlib.metadata import PackageNotFoundError, version

import lazy_loader

from pgmpy_dp import _names
from pgmpy_dp._names import closest, instead

# The names are listed in __init__.pyi. Each is imported when it is first used: pgmpy alone takes two seconds.
_find, __dir__, _public = lazy_loader.attach_stub(__name__, __file__)
_ROOMS = ("evaluation", "exports", "networks", "papers", "plotting", "report")
__all__ = [name for name in _public if name not in _ROOMS]

try:
    __version__ = version("pgmpy-dp")
except PackageNotFoundError:
    __version__ = "unknown"


def __getattr__(name: str) -> object:
    try:
        return _find(name)
    except AttributeError as error:
        if former := instead(__name__, name):
            raise AttributeError(f"{error}{former}") from None
        close = closest(name, [*_public, *_find("papers").__all__])
        meant = close if close in _public else f"papers.{close}"
        raise AttributeError(f"{error}{f': did you mean {meant!r}?' if close else ''}") from None


_names.public = __getattr__
