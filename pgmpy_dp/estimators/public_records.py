"""Fitted estimators say something of single records only where these are public."""

from __future__ import annotations

from typing import Any, NoReturn

from pgmpy_dp.data.wall import Wall


def require_public(records: Any, kind: str = "records") -> None:
    """Refuse private records where each one's own answer is asked for.

    Raises
    ------
    TypeError
    """
    if isinstance(records, Wall):
        raise TypeError(f"This is for public {kind}: what is said of private ones is not what the guarantee covers.")


def refuse_fit_transform(estimator: Any) -> NoReturn:
    """Fit and transform in one call are of the same records, which cannot be private and public.

    Raises
    ------
    TypeError
    """
    raise TypeError(
        f"{type(estimator).__name__} does not transform the records it is fitted to: values of single records are not "
        "what the guarantee covers. Call fit with private records, then transform with public ones."
    )
