"""Differentially private graphical models for pgmpy."""

from importlib.metadata import PackageNotFoundError, version

import lazy_loader

# The names are listed in __init__.pyi. Each is imported when it is first used: pgmpy alone takes two seconds.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

try:
    __version__ = version("pgmpy-dp")
except PackageNotFoundError:
    __version__ = "unknown"
