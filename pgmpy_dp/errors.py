"""Errors of the library.

All of them are :class:`ValueError`, so code that guards against bad input in general keeps working. An
argument that is wrong in itself (a negative epsilon, a weight that is not a number) raises a plain
:class:`ValueError`.
"""

from __future__ import annotations

import sys

__all__ = ["BudgetExceededError", "LedgerError", "Message", "ReleaseFormatError", "SchemaError"]


# Advice where no network can help, in Python and for the command line.
MIXTURE = ("fit PairwiseMixture, which needs no network", "use pgmpy-dp synthesize, which needs no network")


class Message(str):
    """The text of an error or a warning: a fact, and advice in Python or, as `shell`, for the command line.

    Parameters
    ----------
    fact : str
    python : str
        What to do about it in Python. The fact and the advice are joined by a colon.
    shell : str
        What to do about it at the command line. It is left out where no command can help.
    parameter : str
        Name at the start of the fact that is an option of commands.

    Attributes
    ----------
    shell : str
        The fact with the advice for the command line.

    Examples
    --------
    >>> message = Message("delta needs other noise", 'use mechanism="gaussian"', "add --mechanism gaussian", "delta")
    >>> print(message)
    delta needs other noise: use mechanism="gaussian".
    >>> print(message.shell)
    --delta needs other noise: add --mechanism gaussian.
    """

    shell: str

    def __new__(cls, fact: str, python: str = "", shell: str = "", parameter: str = "") -> Message:
        """Join the fact with each advice."""
        message = super().__new__(cls, _sentence(fact, python))
        option = "--" + parameter.replace("_", "-") if parameter.isidentifier() else parameter
        message.shell = _sentence(option + fact.removeprefix(parameter), shell)
        return message


def _sentence(fact: str, advice: str) -> str:
    return f"{fact}: {advice}." if advice else fact if fact.endswith(".") else f"{fact}."


def in_shell_words(error: BaseException) -> str:
    """Return the message of an error or a warning with the advice for the command line."""
    message = error.args[0] if len(error.args) == 1 else None
    return message.shell if isinstance(message, Message) else str(error)


def callers_level() -> int:
    """Return the `stacklevel` with which the caller's warning points at code outside the package and pgmpy."""
    frame, level = sys._getframe(1), 1
    # Code that `exec` runs may have no name.
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).startswith(("pgmpy_dp.", "pgmpy.")):
        frame, level = frame.f_back, level + 1
    return level


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
