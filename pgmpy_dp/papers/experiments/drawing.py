"""Common elements of figures: colours, markers, medians with quartiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes

# Okabe and Ito's colours, which colour-blind readers can distinguish.
COLOURS = ("#D55E00", "#0072B2", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#8C564B", "#000000", "#999933")
NEUTRAL = {
    "non-private": ("#000000", "--"),
    "little noise, not private": ("#000000", "--"),
    "random": ("#999999", ":"),
    "uniform": ("#999999", "--"),
    "all documents alike": ("#999999", ":"),
    "slots independent, non-private": ("#000000", ":"),
}


def plot_quartiles(
    axes: Axes, rows: pd.DataFrame, x: str, methods: Mapping[str, str] | Sequence[str], band: bool = True
) -> None:
    """Plot the median over trials against x, with the quartiles as a band and one line per column of results.

    Parameters
    ----------
    axes : Axes
    rows : DataFrame
        One row per trial.
    x : str
        Column.
    methods : mapping of column to label, or sequence of columns
        Columns in the order of their colours. Reference methods are drawn thin and grey or black.
    band : bool
        Whether to draw the bands; False if those of many lines would overlap.
    """
    labels = methods if isinstance(methods, Mapping) else {method: method for method in methods}
    coloured = [column for column in labels if labels[column] not in NEUTRAL]
    for column, label in labels.items():
        held = rows[[x, column]].dropna()
        if held.empty:
            continue
        groups = held.groupby(x)[column]
        middle, low, high = groups.median(), groups.quantile(0.25), groups.quantile(0.75)
        neutral = NEUTRAL.get(label)
        colour, style = neutral or (COLOURS[coloured.index(column) % len(COLOURS)], "o-")
        axes.plot(middle.index, middle, style, color=colour, label=label, markersize=4, linewidth=1.4)
        if band:
            axes.fill_between(middle.index, low, high, color=colour, alpha=0.15, linewidth=0)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.2)
