"""Common elements of figures: one colour per method in all of them, medians with quartiles, captions."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

# A method's colour is that of the first of these words in its label; variants of it differ in line and marker. Blue are
# most of the library's estimators. The colours are those of Okabe and Ito, then of Tol.
COLOURS = {
    "AutoMLE": "#CC6677",
    "PrivateMLE": "#117733",
    **dict.fromkeys(("CollectiveEM", "tight accountant", "Private"), "#0072B2"),
    **dict.fromkeys(("naive MLE", "Laplace"), "#D55E00"),
    "CGM-EM": "#009E73",
    "SGD": "#CC79A7",
    "output perturbation": "#8C564B",
    "moments accountant": "#E69F00",
    "strong composition": "#56B4E9",
    "plain composition": "#882255",
    "Fourier": "#999933",
    "posterior sampler": "#332288",
    "exponential mechanism": "#44AA99",
    "D-Ind": "#DDAA33",
    "data-dependent": "#AA4499",
}
VARIANTS = ("o-", "s--", "^:", "v-.")
NEUTRAL = {
    **dict.fromkeys(("non-private", "little noise, not private"), ("#000000", "--")),
    **dict.fromkeys(("slots independent, non-private", "posterior mean, not private"), ("#000000", ":")),
    "each variable's more frequent value, non-private": ("#999999", "-."),
    **dict.fromkeys(("random", "all documents alike"), ("#999999", ":")),
    "uniform": ("#999999", "--"),
}


def styles(labels: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Return the colour and the line of each label.

    Examples
    --------
    >>> styles(["non-private", "naive MLE, default", "naive MLE, best in hindsight"])
    {'non-private': ('#000000', '--'), 'naive MLE, default': ('#D55E00', 'o-'),
     'naive MLE, best in hindsight': ('#D55E00', 's--')}
    """
    found, seen = {}, Counter[str]()
    for label in labels:
        if label in NEUTRAL:
            found[label] = NEUTRAL[label]
            continue
        colour = next(colour for word, colour in COLOURS.items() if word in label)
        found[label] = colour, VARIANTS[seen[colour]]
        seen[colour] += 1
    return found


def plot_quartiles(
    axes: Axes,
    rows: pd.DataFrame,
    x: str,
    methods: Mapping[str, str],
    band: bool = True,
    shown: Collection[str] | None = None,
) -> None:
    """Plot the median over trials against x, with the quartiles as a band and one line per column of results.

    Parameters
    ----------
    axes : Axes
    rows : DataFrame
        One row per trial.
    x : str
        Column.
    methods : mapping of column to label
        A label names its method by a word of `COLOURS`, or is one of `NEUTRAL`.
    band : bool
        Whether to draw the bands; False if those of many lines would overlap.
    shown : collection of str, optional
        Columns to draw if not all, so that panels which show different methods agree on their lines.
    """
    style = styles(list(methods.values()))
    for column, label in methods.items():
        held = rows[[x, column]].dropna() if shown is None or column in shown else rows[:0]
        if held.empty:
            continue
        groups = held.groupby(x)[column]
        middle, low, high = groups.median(), groups.quantile(0.25), groups.quantile(0.75)
        colour, line = style[label]
        if len(middle) == 1 and label in NEUTRAL:  # a line of one point would not be seen
            axes.axhline(middle.iloc[0], color=colour, linestyle=line, label=label, linewidth=1.4)
        else:
            axes.plot(middle.index, middle, line, color=colour, label=label, markersize=4, linewidth=1.4)
        if band:
            axes.fill_between(middle.index, low, high, color=colour, alpha=0.12, linewidth=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)


def add_caption(figure: Figure, paragraphs: Sequence[str]) -> None:
    """Add the caption below the axes, over the width of the figure, and enlarge the figure by the text's height."""
    width, height = figure.get_size_inches()
    lines = [line for paragraph in paragraphs for line in textwrap.wrap(paragraph, int(width * 16.5))]
    room = 0.155 * len(lines) + 0.15
    figure.set_size_inches(width, height + room)
    figure.get_layout_engine().set(rect=(0, room / (height + room), 1, height / (height + room)))  # type: ignore[union-attr, call-arg]
    figure.text(0.01, (room - 0.1) / (height + room), "\n".join(lines), va="top", fontsize=8, linespacing=1.25)
