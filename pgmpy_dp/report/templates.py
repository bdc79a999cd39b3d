"""Templates of the report, and of what other pages share with it."""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING

from pgmpy_dp._names import printable
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.schema import State

if TYPE_CHECKING:
    import jinja2

_MOST_SHARE = 10.0  # largest share shown as a number, since noise may exceed the records a thousandfold


def promise(guarantee: Guarantee) -> str:
    """Return a paragraph of HTML that says in plain words what a private guarantee promises."""
    return str(environment().get_template("promise.html.j2").module.promise(guarantee))  # type: ignore[attr-defined]


@cache
def environment() -> jinja2.Environment:
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.PackageLoader("pgmpy_dp.report", "."),
        autoescape=True,  # names of variables and states are not trusted
        undefined=jinja2.StrictUndefined,
    )
    found.filters |= {"number": rounded, "percent": _percent, "text": _text, "factor": _factor}
    return found


def rounded(value: float, digits: int = 4) -> str:
    """Round to significant digits, with separators of thousands."""
    if value and (abs(value) < 1e-3 or abs(value) >= 1e15):
        return f"{value:.{digits - 1}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value)))) if value else 0
    text = f"{value:,.{min(decimals, 6)}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _percent(value: float, deviation: float | None = None) -> str:
    """Write a share with the digits that its noise leaves; one far above 1 as a bound."""
    if abs(value) > _MOST_SHARE:
        return f"{'<' if value < 0 else '>'} {math.copysign(100 * _MOST_SHARE, value):,.0f} %"
    if deviation:
        digits = min(max(math.ceil(-math.log10(200 * deviation)), 0), 3)
        return f"{round(100 * value, digits) + 0.0:.{digits}f} %"  # no negative zero
    return f"{100 * value:.{1 if abs(value) >= 0.001 else 3}f} %"


def _text(value: State) -> str:
    """Make a state or name visible."""
    text = str(value)
    return printable(text) if text.strip() else f"(blank) {text!r}"


def _factor(epsilon: float) -> str:
    return rounded(math.exp(epsilon), 3) if epsilon < math.log(1e6) else "more than a million"
