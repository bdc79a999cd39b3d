"""A name that is not known is answered with the known one that was meant."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# Names of an earlier version, which go with the next one.
_FORMER = {"MaximumLikelihood": "NotPrivateMLE"}

_LONGEST, _MOST = 100, 2000  # comparing names takes time of the square of their length


def closest(name: Any, known: Iterable[Any]) -> str | None:
    """Find the known name that is close to another, if there is one.

    Examples
    --------
    >>> closest("smok", ["smoke", "lung"]), closest(7, ["smoke"])
    ('smoke', None)
    """
    if not isinstance(name, str) or len(name) > _LONGEST:
        return None
    names = [own for own in known if isinstance(own, str) and len(own) <= _LONGEST]
    return next(iter(get_close_matches(name, names[:_MOST], n=1)), None)


def suggestion(name: Any, known: Iterable[Any]) -> str:
    """Ask behind a sentence whether a known name was meant, if one is close.

    Examples
    --------
    >>> suggestion("smok", ["smoke", "lung"]), suggestion("x", ["smoke"])
    (" Did you mean 'smoke'?", '')
    """
    close = closest(name, known)
    return f" Did you mean {close!r}?" if close else ""


def current(name: str) -> str:
    """Give the name that a public object has today, and warn if it had another one before.

    Warns
    -----
    DeprecationWarning

    Examples
    --------
    >>> current("NaiveMLE")
    'NaiveMLE'
    """
    now = _FORMER.get(name, name)
    if now != name:
        said = f"{name} is called {now} now, and the old name goes with the next version."
        warnings.warn(said, DeprecationWarning, stacklevel=3)
    return now
