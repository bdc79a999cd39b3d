"""Names: those of an earlier version, the one that an unknown name is close to, and how names are shown."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

# Names of an earlier version at the top level, which go with the next one, and where each is today.
_PAPERS = (
    "Coefficients DataDependentAllocation ExponentialMAP LinearPosteriorSampler NaiveMLE NoisyCoefficients "
    "PlannedAllocation PosteriorDraws PosteriorSampler PrivateBayesianEstimator PrivateSGD PrivateSigmoidBeliefNetwork "
    "RegressionDraws SizeAllocation UniformAllocation laskey_sensitivities mutual_consistency"
)
FORMER = {
    "MaximumLikelihood": "NotPrivateMLE",
    **{name: f"papers.{name}" for name in _PAPERS.split()},
}

_LONGEST, _MOST = 100, 2000  # comparing names takes time of the square of their length


def closest(name: Any, known: Iterable[Any]) -> str | None:
    """Find the known name that is close to another, if there is one.

    Examples
    --------
    >>> closest("smok", ["smoke", "lung"]), closest("male", ["Female", "Male"]), closest(7, ["smoke"])
    ('smoke', 'Male', None)
    """
    if not isinstance(name, str) or len(name) > _LONGEST:
        return None
    names = [own for own in known if isinstance(own, str) and len(own) <= _LONGEST][:_MOST]
    same = (own for own in names if own.casefold() == name.casefold())  # in another case
    return next(same, None) or next(iter(get_close_matches(name, names, n=1)), None)


def suggestion(name: Any, known: Iterable[Any]) -> str:
    """Ask behind a sentence whether a known name was meant, if one is close.

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


def current(name: str) -> str:
    """Return today's name of a public object, and warn if the given one is of an earlier version.

    Warns
    -----
    DeprecationWarning

    Examples
    --------
    >>> current("PrivateMLE")
    'PrivateMLE'
    """
    now = FORMER.get(name, name)
    if now != name:
        said = f"pgmpy_dp.{name} is pgmpy_dp.{now} now; the old name goes with the next version."
        warnings.warn(said, DeprecationWarning, stacklevel=3)
    return now
