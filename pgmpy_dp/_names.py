"""Names: suggestions for unknown names, and how names are shown."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

_LONGEST, _MAX = 100, 2000  # comparing names takes time of the square of their length


def closest(name: Any, known: Iterable[Any]) -> str | None:
    """Find the known name that is close to another, if there is one.

    Examples
    --------
    >>> closest("smok", ["smoke", "lung"]), closest("male", ["Female", "Male"]), closest(7, ["smoke"])
    ('smoke', 'Male', None)
    """
    if not isinstance(name, str) or len(name) > _LONGEST:
        return None
    names = [own for own in known if isinstance(own, str) and len(own) <= _LONGEST][:_MAX]
    same = (own for own in names if own.casefold() == name.casefold())  # in another case
    return next(same, None) or next(iter(get_close_matches(name, names, n=1)), None)


def suggestion(name: Any, known: Iterable[Any]) -> str:
    """Return the question whether a known name was meant, if one is close, as the end of a message.

    Examples
    --------
    >>> suggestion("smok", ["smoke", "lung"]), suggestion("x", ["smoke"])
    (" Did you mean 'smoke'?", '')
    """
    close = closest(name, known)
    return f" Did you mean {close!r}?" if close else ""


def printable(text: str) -> str:
    r"""Escape characters that move a cursor, hide or reverse a text: names come from files of others.

    Examples
    --------
    >>> print(printable("age\n\u202e"))
    age\n\u202e
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
