"""Errors of the library.

All of them are :class:`ValueError`, so code that guards against bad input in general keeps working. An
argument that is wrong in itself (a negative epsilon, a weight that is not a number) raises a plain
:class:`ValueError`.
"""

from __future__ import annotations

import sys
import warnings

__all__ = ["BudgetExceededError", "LedgerError", "ReleaseFormatError", "SchemaError"]


MIXTURE = "fit PairwiseMixture, which needs no network"
"""Advice where no network can help."""


def callers_level() -> int:
    """Return the `stacklevel` with which the caller's warning points at code outside the package and pgmpy."""
    frame, level = sys._getframe(1), 1
    # Code that `exec` runs may have no name.
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(("pgmpy_dp.", "pgmpy.")):
        frame, level = frame.f_back, level + 1
    return level


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the code outside the package and pgmpy that is responsible."""
    warnings.warn(text, category, stacklevel=callers_level())


class NoiseWarning(UserWarning):
    """Noise hides much of a release, so that models fitted to it contain little information about the records."""


class SchemaError(ValueError):
    """The schema is wrong, or records or cliques do not agree with it.

    Messages name variables, which are public. They never hold a value or a number of records.

    Examples
    --------
    >>> from pgmpy_dp import Schema
    >>> Schema({"smoke": ["yes", "no"]}).cells(["smok"])
    Traceback (most recent call last):
    pgmpy_dp.errors.SchemaError: Unknown variable 'smok': did you mean 'smoke'?
    """


class BudgetExceededError(ValueError):
    """A charge does not fit in what remains of a privacy budget.

    Nothing was charged and nothing was drawn; the budget remains usable for smaller charges.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> budget = dp.PrivacyBudget(1.0)
    >>> data = dp.PrivateDataset({("smoke",): [40, 60]}, dp.Schema({"smoke": ["yes", "no"]}), budget)
    >>> try:
    ...     data.measure([("smoke",)], epsilon=2.0)
    ... except dp.BudgetExceededError:
    ...     print(budget.remaining.epsilon)
    1.0
    """


class LedgerError(ValueError):
    """A ledger file is damaged, altered, rolled back, in use, or of another budget than asked for.

    Nothing was charged and nothing was drawn.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pgmpy_dp import PrivacyBudget
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "ledger.json"
    ...     _ = PrivacyBudget.open(path, epsilon=1.0)
    ...     try:
    ...         PrivacyBudget.open(path, epsilon=2.0)
    ...     except LedgerError:
    ...         print("another budget")
    another budget
    """


class ReleaseFormatError(ValueError):
    """A release file is damaged, altered, or not of a format this version reads.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from pgmpy_dp import NoisyMarginals
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "release.zip"
    ...     _ = path.write_text("no zip file")
    ...     try:
    ...         NoisyMarginals.load(path)
    ...     except ReleaseFormatError:
    ...         print("refused")
    refused
    """
