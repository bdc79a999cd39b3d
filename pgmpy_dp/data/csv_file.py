"""Records in a CSV file: texts, read as the kinds of value that the schema declares."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.data.counting import Codes, column_codes, require_columns
from pgmpy_dp.data.units import Unit, labels_of
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema import Schema

_BLOCK_ROWS = 2**18
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?|[+-]?inf(inity)?|nan", re.IGNORECASE)


def encode_csv(
    path: Path, schema: Schema, variables: Sequence[str], unit: Unit | None = None
) -> tuple[dict[str, Codes], NDArray[np.int64] | None]:
    """Encode a comma-separated file with a header line (UTF-8), block by block.

    A file has no types: a text is read as a text, number or boolean if the variable's states are such. An
    empty field is a missing value, unless the empty text is a state; so is every field of a blank line, which is a
    record like any other.

    Parameters
    ----------
    path : Path
        Compressed files are read by their ending, as pandas does.
    schema : Schema
    variables : sequence of str
    unit : Unit, optional

    Returns
    -------
    codes : dict of str to ndarray
        As :func:`~pgmpy_dp.data.counting.encode`, and with its errors.
    labels : ndarray of int64, shape (n_records,), or None
        The unit of each row; the texts of its column tell units apart.

    Raises
    ------
    SchemaError
        If it is no such file, as well, or a row has more fields than the header. Where it is damaged is not told: other
        libraries quote values and rows.
    """
    try:
        return _encoded(path, schema, variables, unit)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeError) as error:
        problem = type(error).__name__
    # Here and not above, so that the other error does not hang on this one.
    raise SchemaError(f"{path}: not a sound CSV file with a header line, in UTF-8 ({problem}): save it anew.")


def _encoded(
    path: Path, schema: Schema, variables: Sequence[str], unit: Unit | None
) -> tuple[dict[str, Codes], NDArray[np.int64] | None]:
    # The header is read as a row, so that pandas refuses rows with more fields. With columns chosen it would cut them
    # off; after a header it would shift the columns of all rows if the first of them is longer.
    # A blank line is a record with nothing in it: in a file of one column an empty field is written so.
    read: dict[str, Any] = {
        "header": None,
        "keep_default_na": False,
        "na_filter": False,
        "encoding": "utf-8-sig",
        "skip_blank_lines": False,
    }
    names = pd.read_csv(path, nrows=1, dtype=str, **read).iloc[0].tolist()
    asked = list(dict.fromkeys([*variables, *([unit.column] if unit else [])]))
    require_columns(names, asked)
    parts: dict[str, list[Codes]] = {variable: [] for variable in variables}
    ids = []
    kinds: dict[Any, Any] = {place: str if name in asked else "S1" for place, name in enumerate(names)}
    with pd.read_csv(path, dtype=kinds, chunksize=_BLOCK_ROWS, **read) as blocks:
        for number, block in enumerate(blocks):
            columns = {name: block[names.index(name)].iloc[1 if number == 0 else 0 :] for name in asked}
            for variable in variables:
                parts[variable].append(_text_codes(columns[variable], schema, variable))
            if unit is not None:
                ids.append(columns[unit.column].mask(columns[unit.column] == ""))
    codes = {variable: np.concatenate(blocks) for variable, blocks in parts.items()}
    return codes, None if unit is None else labels_of(pd.concat(ids), unit)


def _text_codes(texts: Any, schema: Schema, variable: str) -> Codes:
    places, distinct = pd.factorize(texts.fillna(""))  # a row that is too short
    values = [_value(text, schema, variable) for text in distinct.tolist()]
    column = nw.from_native(pd.Series(values, dtype=object), series_only=True)
    return column_codes(column, schema, variable)[places]


def _value(text: str, schema: Schema, variable: str) -> Any:
    """The state that a text writes, or what else it may mean."""
    states = schema.states[variable]
    binned = variable in schema.bins
    if not binned and text in states:
        return text
    if text == "":
        return None
    if not binned and text.lower() in ("true", "false") and any(isinstance(state, bool) for state in states):
        return text.lower() == "true"
    if not _NUMBER.fullmatch(text):
        return text
    # Python reads no integer of thousands of digits; as a float it is infinite.
    number = int(text) if text.lstrip("+-").isdigit() and len(text) < 400 else float(text)
    # Numbers agree by value: 1.0 is the state 1.
    same = (state for state in states if not isinstance(state, (bool, str)) and state == number)
    return number if binned else next(same, number)
