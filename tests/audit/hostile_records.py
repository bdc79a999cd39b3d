"""Records as an attacker would fill them in: what hypothesis draws for the tests of the gate.

A table is drawn as columns of plain values of one kind each; :mod:`tests.audit.writers` makes frames and files of them.
"""

import math
import random
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd

import pgmpy_dp as dp

LARGEST = 2.5  # weight
ZONE = "America/New_York"
SECRET = "7654321"  # a part of some values, and of nothing else

# Texts: those that libraries read as something else, and what files are made of, in all orders.
TEXTS = ["", " ", "X", "x ", " x", "x\x00", "\x00", "\ufeff", "\ufeffx", "\ud800", "\u2028", "\x0b", "\x1c", "\x85"]
TEXTS += ["\t", "\\", "\\N", "\\n", "#x", "=1", "'", ";", "é", "e\u0301", "ß", "ж", "x,y", "x\r", "\rx,1\r", 'say "x"']
TEXTS += [
    "ınf", "inf", "-inf", "nan", "NaN", "NA", "null", "None", "True", "true", "1_0", "0x1", "٣", "01", "1.0", "+1",
]  # fmt: skip
TEXTS += ["2024-02-29", "2023-02-29", "1970-01-01 23:59", "2024-03-01T00:00:00Z", "٢024-01-01", "0000-01-01"]
TEXTS += ["1e400", "-1e-400", "1" * 400, "9" * 5000, "x" * 300, SECRET, f"x{SECRET}"]
_PIECES, _RANDOM = ["\r", "\r", "\n", "\r\n", '"', ",", ";", "x", "y", "1", " ", "|"], random.Random(0)
TEXTS += ["".join(_RANDOM.choices(_PIECES, k=_RANDOM.randint(1, 6))) for _ in range(100)]

INTEGERS = [0, 1, 2, 3, -1, 17, 18, 2**31, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), int(SECRET)]
LONG_INTEGERS = [*INTEGERS, 2**63, 2**64 - 1, 2**64 + 1, 2**127 - 1, -(2**63) - 1]
FLOATS = [0.0, -0.0, 1.0, 1.5, 2.0, 0.5, 17.5, 18.0, 2.0**53, 2.0**63, 1e308, 5e-324, -1.0, float(SECRET)]
FLOATS += [math.nan, math.nan, math.nan, math.inf, -math.inf]
DECIMALS = ["1", "1.0", "1.50", "0.5", "-0", "17.99", "18", "9007199254740993", "NaN", "sNaN", "Infinity", "1E+400"]
MICROSECONDS = [0, 1, 10**6, 1577836800 * 10**6, 253402300800 * 10**6, 2**62, -(2**62), -(2**63) + 1]
ODD = [pd.NaT, pd.NA, np.float32("nan"), np.int8(1), np.bool_(True), np.str_("x"), np.datetime64("NaT"), (1,), {}, 1j]
ODD += [date(2024, 2, 29), datetime(1970, 1, 1, 23), pd.Timestamp("2024-03-01", tz="Asia/Tokyo"), np.datetime64("2024")]
ODD += [
    np.datetime64("2020-01-01"),
    np.datetime64(2**62, "s"),
    pd.Timestamp(np.datetime64(2**38, "s")),
    pd.Period("2020"),
]
ODD += [1 + 0j, np.longdouble("1e4000"), float(SECRET), f"-{SECRET}", [1], b"x", *map(Decimal, DECIMALS)]

VALUES: dict[str, list[Any]] = {
    "text": TEXTS,
    "integer": INTEGERS,
    "long": LONG_INTEGERS,
    "float": FLOATS,
    "number": [*INTEGERS[:11], *FLOATS],
    "boolean": [True, False],
    "decimal": [Decimal(text) for text in DECIMALS],
    "date": [0, 1, 18262, -719162, -719163, 2932896, 2932897, 2**31 - 1, -(2**31)],  # days, beyond the year 9999 too
    "time": MICROSECONDS,
    "zoned": [*MICROSECONDS, 1577840400 * 10**6, 1577836799 * 10**6],  # in ZONE; there both are in 2019
    "duration": MICROSECONDS,
    "bytes": [b"", b"x", b"\xff"],
    "list": [[], [1], [1, None]],
    "mixed": [*ODD, *TEXTS[:60], *LONG_INTEGERS, *FLOATS, True, False],
}
KINDS = [["text"], ["number"], ["integer", "float"], *[[*["text", "integer", "float", "number"], *VALUES]] * 3]

STATES: dict[str, list[Any]] = {  # of variables, by the kinds of values that they are
    "text": [["x", "y"], ["", "NA", "x"], ["1", "01", "nan"], ["x\x00", "x", "\r", "é"], ["\ufeffx", "x ", "\n", '"']],
    "integer": [[0, 1, 2], *[[2**53 - 1, 2**53, 2**53 + 1]] * 2, [2**63 - 1, -(2**63), 1]],
    "float": [[0.5, 1.0, 1.5], [0, 2.0**53, 1e308], [2.0**63, 2.0, 5e-324]],
    "boolean": [[True, False]],
    "mixed": [["x", 1, 0.5], [True, 2, "1"], ["True", True, 0]],
    "binned": [dp.Bins([0, 1, 18, 65]), dp.Bins([-math.inf, 0, math.inf]), dp.Bins([0, 2**53, 1e18])],
    "dates": [dp.DateBins(["1970-01-01", "year", "2021-06-01"]), dp.DateBins(["-inf", "2024-02-29", "2024-03-01"])],
    "times": [
        dp.TimeBins(["1970-01-01 00:00:01", "year", "2021-06-01 12:00"]),
        dp.TimeBins(["-inf", "2024-02-29 12:00"]),
    ],
    "days": [["1970-01-01", "2020-01-01", "x"]],
}
FITTING = {"text": ["text", "text", "integer", "binned", "boolean"], "boolean": ["boolean"], "decimal": ["binned"]}
FITTING |= {"integer": ["integer", "binned"], "long": ["integer", "binned"]}
FITTING |= {kind: ["dates", "times", "dates", "days"] for kind in ("date", "time", "zoned")}
FITTING |= {"float": ["float", "integer", "binned"], "number": ["float", "integer", "binned"]}

NAMES = ["V", " ", "a b", "\ufeffv", "\u200b", "v\rw", "v\nw", "w\r", "v,w", "v;w", 'a"b', "a`b", "a'b", "e\u0301", "é"]
NAMES += ["v", "w", "index", "level_0", "__index_level_0__", "None", "1", "count(*)", "[v]", "{v}", "%v", "$", "a.b"]
INTERNAL = ["v", "V", "c0", "c1", "weight", "rows", "u", "k", "n", "^z$", "*", "key0", "kind0"]
INTERNAL += ["__pgmpy_dp_weight__", "__pgmpy_dp_key__"]

IDS = {  # of persons whom some library might take for one
    "text": [["p", "P", " p", "p "], ["1", "01", "1.0", "é", "e\u0301"], ["NA", "nan", "\r", '"', "p,q", "p\x00", "p"]],
    "integer": [[0, 1, -1], [2**53, 2**53 + 1, 2**63 - 1]],
    "mixed": [[*[0, 1] * 4, "p"], [*[1, 2] * 4, 10**20]],
}


@dataclass(frozen=True)
class Column:
    """A column as it is drawn: None where a value is missing."""

    name: str
    kind: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Case:
    """Records, the schema they are read by, and whose they are."""

    columns: tuple[Column, ...]  # of the schema's variables, of the unit, and others
    schema: dp.Schema
    unit: str | None
    max_rows: int | None
    weights: str | None  # a column, of which a record's weight is at most LARGEST
    tolerant: bool  # every variable has states for missing and other values

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


def drawn_case(chance: random.Random, maximum: int, kinds: list[str] | None = None) -> Case:
    """At most so many records of a few columns with hostile values and names, and a schema for some of the columns.

    Half of the values are states of their variable, so that not all that is counted is "other"; nearly all are where
    there is no state for others.
    """
    size = chance.randint(min(2, maximum), maximum)
    *names, unit = chance.sample(chance.choice([INTERNAL, NAMES]), chance.choice([2, 2, 3, 4, 5]))
    ids = [None, "text", "mixed", "mixed"] if kinds else [None, None, "text", "text", "integer"]
    kinds, variables = kinds or chance.choice(KINDS), names[: chance.randint(1, 3)]
    roles = chance.choice([["missing", "other"]] * 6 + [["missing"], []])
    declared: dict[str, Any] = {}
    columns = []
    for name in names:
        kind = chance.choice(kinds)
        values, absent = VALUES[kind], chance.choice([0.0, 0.2]) if roles else 0.0
        held: list[Any] = []
        if name in variables:
            family = chance.choice(FITTING.get(kind, ["mixed"]) * 4 + ["text", "integer", "mixed", "binned", "dates"])
            declared[name] = chance.choice(STATES[family])
            held = [value for value in values if _held(value, declared[name])]
        ordinary = (0.5 if len(roles) == 2 else 0.95) if held else 0.0
        cells = [chance.choice(held if chance.random() < ordinary else values) for _ in range(size)]
        columns.append(Column(name, kind, tuple(None if chance.random() < absent else cell for cell in cells)))
    if whose := chance.choice(ids):
        columns.append(Column(unit, whose, tuple(chance.choices(chance.choice(IDS[whose]), k=size))))
        if chance.random() < 0.25:
            declared[unit] = ["p", 1, "1", 0.5]
    chance.shuffle(columns)
    max_rows = chance.choice([None, None, 1, 100])
    said = {c.name: _said(chance, c, declared[c.name]) for c in columns if c.name in declared}
    schema = dp.Schema(declared, **{role: dict.fromkeys(declared, role) for role in roles}, missing_values=said)
    weights = chance.choice([None, None, chance.choice(columns).name])
    return Case(tuple(columns), schema, *((unit, max_rows) if whose else (None, None)), weights, len(roles) == 2)


def _said(chance: random.Random, column: Column, declared: Any) -> list[str]:
    """Some texts of a column, seldom, that are to say that a value is missing."""
    states = [] if isinstance(declared, dp.Bins) else list(map(str, declared))
    texts = sorted({value for value in column.values if type(value) is str} - {*states, "missing", "other"})
    labels = declared.labels if isinstance(declared, dp.Bins) else ()
    written = [text for text in texts if text not in labels and text.encode("utf-8", "ignore").decode() == text]
    return [text for text in written if chance.random() < 0.2]


def _held(value: Any, declared: Any) -> bool:
    """Whether a value is a state, or a number in the bins."""
    if isinstance(declared, dp.DateBins):
        return type(value) is int or (type(value) is str and value.startswith(("2024", "1970")))
    if isinstance(declared, dp.Bins):
        return type(value) in (int, float) and declared.edges[0] <= value <= declared.edges[-1]
    return any(_kind(value) is _kind(state) and value == state for state in declared)


def _kind(value: Any) -> type:
    return float if type(value) is int else type(value)
