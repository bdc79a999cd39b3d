"""What notebooks show of schemas, ledgers, releases and answers: small tables of HTML, with all names escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]], maximum: int = 20) -> str:
    """Write a table; rows beyond the maximum are only counted.

    Examples
    --------
    >>> table("A <caption>", ["name"], [["a & b"]])
    '<p>A &lt;caption&gt;</p><table><tr><th>name</th></tr><tr><td>a &amp; b</td></tr></table>'
    """
    rows = list(rows)
    cells = "".join(
        f"<tr>{''.join(f'<td>{cell if isinstance(cell, Html) else escape(str(cell))}</td>' for cell in row)}</tr>"
        for row in rows[:maximum]
    )
    more = f"<p>and {len(rows) - maximum} more</p>" if len(rows) > maximum else ""
    head = "".join(f"<th>{escape(name)}</th>" for name in heads)
    return f"<p>{escape(caption)}</p><table><tr>{head}</tr>{cells}</table>{more}"


class Html(str):
    """A cell that is HTML already."""

    __slots__ = ()


def bar(lower: float, value: float, upper: float, scale: float = 1.0, width: int = 160) -> Html:
    """Draw an interval with its value on a line from 0 to the scale."""
    left, middle, right = (width * min(max(position / scale, 0.0), 1.0) for position in (lower, value, upper))
    return Html(
        f'<svg width="{width}" height="14" role="img" aria-label="{value:.3g}, from {lower:.3g} to {upper:.3g}">'
        f'<line x1="0" y1="7" x2="{width}" y2="7" stroke="#ccc"/>'
        f'<rect x="{left:.1f}" y="4" width="{max(right - left, 1.0):.1f}" height="6" fill="#0072B2" opacity="0.5"/>'
        f'<line x1="{middle:.1f}" y1="1" x2="{middle:.1f}" y2="13" stroke="#000" stroke-width="2"/></svg>'
    )
