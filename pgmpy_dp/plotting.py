"""Figures. Every function returns a matplotlib Figure; nothing is shown or saved here."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from pgmpy_dp.schema import Schema

# Okabe and Ito: told apart by colour-blind readers too.
_COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7")


def plot_marginals(marginals: Mapping[str, Mapping[str, ArrayLike]], schema: Schema, title: str = "") -> Figure:
    """One panel a variable: the probability of each state, side by side for several sources.

    Parameters
    ----------
    marginals : mapping of label to mapping of variable to ndarray
        Each array has one probability a state, in schema order. The first label is drawn in black.
    schema : Schema
    title : str

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> schema = Schema({"smoke": ["yes", "no"]})
    >>> figure = plot_marginals({"true": {"smoke": [0.3, 0.7]}, "private": {"smoke": [0.31, 0.69]}}, schema)
    >>> len(figure.axes)
    1
    """
    variables = list(next(iter(marginals.values())))
    columns = min(3, len(variables))
    rows = math.ceil(len(variables) / columns)
    figure = Figure(figsize=(4.2 * columns, 2.9 * rows + 0.7), layout="constrained")
    width = 0.8 / len(marginals)
    for number, variable in enumerate(variables):
        axes = figure.add_subplot(rows, columns, number + 1)
        places = np.arange(schema.cardinality(variable))
        for index, (label, values) in enumerate(marginals.items()):
            shift = (index - (len(marginals) - 1) / 2) * width
            colour = _COLOURS[index % len(_COLOURS)]
            axes.bar(places + shift, np.asarray(values[variable]), width, color=colour, label=label)
        names = [str(state) for state in schema.states[variable]]
        long = sum(map(len, names)) > 32
        axes.set_xticks(places, names, rotation=30 if long else 0, ha="right" if long else "center")
        axes.set_title(variable, loc="left", fontweight="bold")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("probability" if number % columns == 0 else "")
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper right", ncols=len(labels), frameon=False)
    if title:
        figure.suptitle(title, x=0.01, ha="left")
    return figure


def plot_divergence(
    epsilons: Sequence[float],
    divergences: Mapping[str, ArrayLike],
    title: str = "",
    chosen: float | None = None,
) -> Figure:
    """KL divergence against epsilon on logarithmic axes: medians, with every trial as a dot.

    Parameters
    ----------
    epsilons : sequence of float
    divergences : mapping of label to ndarray of shape (len(epsilons), trials)
        In nats.
    title : str
    chosen : float, optional
        An epsilon to mark.

    Returns
    -------
    matplotlib.figure.Figure

    Examples
    --------
    >>> figure = plot_divergence([0.1, 1.0], {"CollectiveEM": [[0.2, 0.3], [0.01, 0.02]]})
    >>> figure.axes[0].get_xlabel()
    'epsilon (smaller is more private)'
    """
    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    axes = figure.add_subplot()
    for index, (label, values) in enumerate(divergences.items()):
        trials = np.asarray(values, dtype=np.float64)
        colour = _COLOURS[(index + 1) % len(_COLOURS)]
        axes.plot(epsilons, np.median(trials, axis=1), "o-", color=colour, label=label)
        axes.plot(epsilons, trials, ".", color=colour, alpha=0.35)
    if chosen is not None:
        axes.axvline(chosen, color="0.6", linestyle=":")
        axes.annotate(
            f" epsilon = {chosen:g}",
            (chosen, 0.98),
            xycoords=("data", "axes fraction"),
            va="top",
            color="0.4",
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("epsilon (smaller is more private)")
    axes.set_ylabel("KL divergence (nats)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    if title:
        axes.set_title(title, loc="left")
    return figure
