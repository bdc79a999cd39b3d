"""The gate that the tests go through, and how it may refuse."""

import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from hostile_records import SECRET

import pgmpy_dp as dp
from pgmpy_dp.records import CsvFile, open_records
from pgmpy_dp.records.frames import encode_numbers
from pgmpy_dp.records.units import Unit
from pgmpy_dp.records.weights import Weights

__all__ = ["CsvFile", "Unit", "Weights", "encode_numbers", "open_records", "outcome", "texts_of"]


def outcome(read: Callable[[], Any]) -> Any:
    """What is read, or the message by which it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # one might tell of a record
            warnings.simplefilter("ignore", FutureWarning)
            return read()
    except (ValueError, TypeError) as error:
        return _message(error)


def texts_of(error: BaseException | None) -> Iterator[str]:
    """All that can be read off an error without its traceback, and off those that hang on it."""
    while error is not None:
        yield from (repr(error), str(error), repr(getattr(error, "__notes__", "")), repr(vars(error)))
        error = error.__cause__ or error.__context__


def _message(error: Exception) -> str:
    """The words of an error, which must be the library's own; no value and no other error may hang on it."""
    assert type(error) in (dp.SchemaError, ValueError, TypeError), repr(error)
    assert error.__context__ is None, repr(error)
    raised = traceback.extract_tb(error.__traceback__)[-1]
    assert "pgmpy_dp" in raised.filename, repr(error)
    assert raised.line.startswith("raise "), repr(error)  # and not a function in C that was called there
    assert SECRET not in f"{error!r} {error} {vars(error)}"
    return str(error)
