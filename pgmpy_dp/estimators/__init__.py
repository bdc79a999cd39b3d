"""Estimators: one file a method; they take releases, data sets or records and fit pgmpy networks."""

import lazy_loader

from pgmpy_dp._names import current

# The names are listed in __init__.pyi: a mixture needs no pgmpy, which takes half a second and 40 MB.
_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    return _find(current(name))
