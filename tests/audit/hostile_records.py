"""Records as an attacker would fill them in: what hypothesis draws for the tests of the gate.

A table is drawn as columns of plain values of one kind each; :mod:`tests.audit.writers` makes frames and files of them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import pgmpy_dp as dp

SECRET = "7654321"  # a part of some values, and of nothing else

TEXTS = [
    *["", " ", "x", "y", "x ", " x", "X", "\r", "\n", "\r\n", "\n\r", "x\ny", "x\ry,1\r", '"', '""', 'say "x"', 'x"'],
    *[",", "x,y", ";", "\t", "x\x00", "\x00", "\ufeff", "\ufeffx", "\ud800", "ınf", "inf", "nan", "NaN", "NA", "null"],
    *["1e400", "-1e-400", "1", "1.0", "+1", "01", "٣", "1_0", "0x1", "1" * 400, "9" * 5000, "True", "true", "\u2028"],
    *[
        "\x0b",
        "\x1c",
        "\x85",
        "\\",
        "\\N",
        "\\n",
        "#x",
        "=1",
        "'",
        "é",
        "e\u0301",
        "ß",
        "x" * 300,
        SECRET,
        f"x{SECRET}",
    ],
]
INTEGERS = [0, 1, 2, 3, -1, 17, 18, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), int(SECRET)]
LONG_INTEGERS = [*INTEGERS, 2**63, 2**64 - 1, 2**64 + 1, 2**127 - 1, -(2**63) - 1]
FLOATS = [0.0, -0.0, 1.0, 1.5, 2.0, 0.5, 17.5, 18.0, 2.0**53, 2.0**63, 1e308, 5e-324, -1.0, float(SECRET)]
FLOATS += [math.nan, math.inf, -math.inf]
DECIMALS = ["1", "1.0", "1.50", "0.5", "-0", "17.99", "18", "9007199254740993", "NaN", "sNaN", "Infinity", "1E+400"]
DAYS = [0, 1, 18262, -719162, -719163, 2932896, 2932897, 2**31 - 1, -(2**31)]  # to the year 9999 and beyond
MICROSECONDS = [0, 1, 10**6, 1577836800 * 10**6, 253402300800 * 10**6, 2**62, -(2**62), -(2**63) + 1]

STRUCTURE = ["\r", "\r", "\n", "\r\n", '"', ",", "x", "y", "1"]  # what files are made of

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "text": st.one_of(
        st.sampled_from(TEXTS),
        st.lists(st.sampled_from(STRUCTURE), min_size=1, max_size=6).map("".join),
        st.text(max_size=5),
    ),
    "integer": st.sampled_from(INTEGERS),
    "long": st.sampled_from(LONG_INTEGERS),
    "float": st.sampled_from(FLOATS) | st.floats(),
    "number": st.sampled_from([*INTEGERS[:9], *FLOATS[:8]]),
    "boolean": st.booleans(),
    "decimal": st.sampled_from(DECIMALS).map(Decimal),
    "date": st.sampled_from(DAYS),
    "time": st.sampled_from(MICROSECONDS),
    "duration": st.sampled_from(MICROSECONDS),
    "bytes": st.sampled_from([b"", b"x", b"\xff"]),
    "list": st.sampled_from([[], [1], [1, None]]),
}
ODD = [
    pd.NaT,
    pd.NA,
    np.float32("nan"),
    np.int8(1),
    np.bool_(True),
    np.str_("x"),
    np.datetime64("NaT"),
    b"x",
    (1,),
    [1],
]
ODD += [{}, 1j, 1 + 0j, np.longdouble("1e4000"), float(SECRET), f"-{SECRET}"]
VALUES["mixed"] = st.one_of(*(VALUES[kind] for kind in ("text", "long", "float", "boolean", "decimal"))) | (
    st.sampled_from(ODD)
)
KINDS = [*["text", "integer", "number"] * 2, *VALUES]

STATES = {  # of variables, and the kinds of column that may hold some of them
    "text": [["x", "y"], ["", "NA", "x"], ["1", "01", "nan"], ["x\x00", "x", "\r", "é"], ["\ufeffx", "x ", "\n", '"']],
    "integer": [[0, 1, 2], [2**53 - 1, 2**53, 2**53 + 1], [2**63 - 1, -(2**63), 1]],
    "float": [[0.5, 1.0, 1.5], [0, 2.0**53, 1e308], [2.0**63, 2.0, 5e-324]],
    "boolean": [[True, False]],
    "mixed": [["x", 1, 0.5], [True, 2, "1"], ["True", True, 0]],
    "number": [dp.Bins([0, 1, 18, 65]), dp.Bins([-math.inf, 0, math.inf]), dp.Bins([0, 2**53, 1e18])],
}
FITTING = {
    "number": ["number", "integer", "float"],
    "integer": ["integer", "number"],
    "long": ["integer", "number"],
    "float": ["float", "integer", "number"],
}
FITTING |= {"decimal": ["number"], "boolean": ["boolean"], "text": ["text", "text", "integer", "number", "boolean"]}

NAMES = [
    "v",
    "V",
    "w",
    "person",
    "^z$",
    "*",
    "a.b",
    "__pgmpy_dp_weight__",
    "__pgmpy_dp_key__",
    "c0",
    "c1",
    "c2",
    "weight",
]
NAMES += [
    "rows",
    "key0",
    "kind0",
    "index",
    "level_0",
    'a"b',
    "a`b",
    "a'b",
    " ",
    "a b",
    "\ufeffv",
    "\u200b",
    "1",
    "None",
]
NAMES += [
    "v,w",
    "v\rw",
    "v\nw",
    "w\r",
    "éx",
    "e\u0301x",
    "__index_level_0__",
    "count(*)",
    "[v]",
    "{v}",
    "%v",
    "v;w",
    "$",
]
INTERNAL = ["v", "V", "__pgmpy_dp_weight__", "__pgmpy_dp_key__", "c0", "c1", "weight", "rows", "^z$", "*"]

IDS = {"text": ["p", "P", "q", "1", "01", "1.0", "NA", "nan", " p", "p\x00", "é", "e\u0301", "\r", '"', "p,q"]}
IDS["integer"] = [0, 1, -1, 2**53, 2**53 + 1, 2**63 - 1]


@dataclass(frozen=True)
class Column:
    """A column as it is drawn: None where a value is missing."""

    name: str
    kind: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """Records, the schema they are read by, and whose they are.

    Attributes
    ----------
    columns : tuple of Column
        Those of the schema's variables, of the unit, and others.
    schema : Schema
    unit : str or None
    max_rows : int or None
    tolerant : bool
        Whether every variable has states for missing and other values.
    """

    columns: tuple[Column, ...]
    schema: dp.Schema
    unit: str | None
    max_rows: int | None
    tolerant: bool

    @property
    def size(self) -> int:
        """Number of records."""
        return len(self.columns[0].values)

    @property
    def persons(self) -> list[list[int]]:
        """The rows of each person; of each record, where records are units of their own."""
        if self.unit is None:
            return [[row] for row in range(self.size)]
        (ids,) = (column.values for column in self.columns if column.name == self.unit)
        return [[row for row in range(self.size) if ids[row] == one] for one in dict.fromkeys(ids)]


@st.composite
def cases(draw: Any, most: int = 5) -> Case:
    """At most so many records of a few columns with hostile values and names, and a schema for some of the columns.

    Most columns hold some states of their variable, so that not all that is counted is "other".
    """
    size = draw(st.integers(1, most))
    called, kinds = draw(st.sampled_from([INTERNAL, NAMES])), draw(st.sampled_from([KINDS, ["text"]]))
    names = draw(st.lists(st.sampled_from(called), min_size=2, max_size=4, unique=True))
    variables, absent = names[: draw(st.integers(1, 3))], draw(st.booleans())
    stand_ins = draw(st.sampled_from(["both", "both", "both", "missing", "neither"]))
    declared, columns = {}, []
    for name in names:
        kind = draw(st.sampled_from(kinds))
        values = VALUES[kind]
        if name in variables:
            family = draw(st.sampled_from(FITTING.get(kind, ["mixed"]) * 3 + list(STATES)))
            declared[name] = draw(st.sampled_from(STATES[family]))
            held = [] if isinstance(declared[name], dp.Bins) else [s for s in declared[name] if _holds(kind, s)]
            values = values | st.sampled_from(held) if held else values
        values = st.none() | values if absent or kind == "mixed" else values
        columns.append(Column(name, kind, tuple(draw(st.lists(values, min_size=size, max_size=size)))))
    unit = draw(st.sampled_from([None, None, "unit"]))
    if unit is not None:
        unit = draw(st.sampled_from([name for name in called if name not in names]))
        kind = draw(st.sampled_from(list(IDS)))
        few = draw(st.lists(st.sampled_from(IDS[kind]), min_size=1, max_size=3))
        columns.append(Column(unit, kind, tuple(draw(st.lists(st.sampled_from(few), min_size=size, max_size=size)))))
        if draw(st.integers(0, 3)) == 0:
            declared[unit] = ["p", 1, "1", 0.5]
    return Case(
        tuple(draw(st.permutations(columns))),
        dp.Schema(
            declared,
            missing=dict.fromkeys(declared, "missing") if stand_ins != "neither" else None,
            other=dict.fromkeys(declared, "other") if stand_ins == "both" else None,
        ),
        unit,
        draw(st.sampled_from([None, 1, 100])) if unit is not None else None,
        stand_ins == "both",
    )


def _holds(kind: str, state: Any) -> bool:
    """Whether a column of this kind can hold the state as a value."""
    kinds = {bool: ["boolean", "mixed"], str: ["text", "mixed"], int: ["integer", "long", "number", "mixed"]}
    return kind in kinds.get(type(state), ["float", "number", "mixed"])
