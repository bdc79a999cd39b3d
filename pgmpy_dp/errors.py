"""Errors of the library.

All of them are :class:`ValueError`, so code that guards against bad input in general keeps working. An
argument that is wrong in itself (a negative epsilon, a weight that is not a number) raises a plain
:class:`ValueError`.
"""

from __future__ import annotations

__all__ = ["BudgetExceededError", "LedgerError", "ReleaseFormatError", "SchemaError"]


class SchemaError(ValueError):
    """The schema is wrong, or records or cliques do not agree with it.

    Messages name variables, which are public. They never hold a value or a number of records.
    """


class BudgetExceededError(ValueError):
    """A charge does not fit in what remains of a privacy budget.

    Nothing was charged and nothing was drawn; the budget remains usable for smaller charges.
    """


class LedgerError(ValueError):
    """A ledger file is damaged, altered, rolled back, in use, or of another budget than asked for.

    Nothing was charged and nothing was drawn.
    """


class ReleaseFormatError(ValueError):
    """A release file is damaged, altered, or not of a format this version reads."""
