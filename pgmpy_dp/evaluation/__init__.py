"""Evaluation: audits of privacy claims, divergences, predictions, and the papers' error measures."""

import lazy_loader

from pgmpy_dp._names import instead

# The names are listed in __init__.pyi: each is imported when it is first used, with the libraries it needs.
_find, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    try:
        return _find(name)
    except AttributeError as error:
        raise AttributeError(f"{error}{instead(__name__, name)}") from None
