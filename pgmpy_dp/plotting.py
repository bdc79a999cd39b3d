"""Plots of releases, answers and networks; every function returns a matplotlib Figure, and shows or saves nothing.

If `matplotlib.pyplot` is imported, the figure also becomes its current one, for `plt.savefig` and `plt.show`; close it
by `plt.close`. Otherwise pyplot is not imported.
"""

from __future__ import annotations

import math
import sys
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path
from numpy.typing import ArrayLike

from pgmpy_dp._names import instead, printable
from pgmpy_dp.report.network_drawing import HEIGHT, WIDTH, draw
from pgmpy_dp.schema import Schema

# Okabe and Ito's colours, which colour-blind readers can distinguish.
_COLOURS = ("#000000", "#0072B2", "#D55E00", "#009E73", "#CC79A7")
_PANEL, _WIDEST = 2.6, 16.0  # height of a panel and largest width of a figure, in inches
_LETTER = 0.085  # width of a letter of ten points, in inches
_MANY_STATES = 12  # above this number of states a panel takes the full width
_VERDICTS: dict[str, Any] = {
    "stable": {"color": _COLOURS[1], "linestyle": "-"},
    "doubtful": {"color": _COLOURS[2], "linestyle": "--"},
}


def plot_marginals(marginals: Mapping[str, Mapping[str, ArrayLike]], schema: Schema, title: str = "") -> Figure:
    """Draw one panel per variable: the probability of each state, side by side for several sources.

    Parameters
    ----------
    marginals : mapping of label to mapping of variable to ndarray
        Each array has one probability per state, in schema order. The first label is drawn in black.
    schema : Schema
    title : str

    Examples
    --------
    >>> schema = Schema({"smoke": ["yes", "no"]})
    >>> figure = plot_marginals({"true": {"smoke": [0.3, 0.7]}, "private": {"smoke": [0.31, 0.69]}}, schema)
    >>> len(figure.axes)
    1
    """
    if not isinstance(schema, Schema):
        raise TypeError(f"schema must be a Schema, got {type(schema).__name__}: a release has one, release.schema.")
    if not (isinstance(marginals, Mapping) and marginals and all(isinstance(m, Mapping) for m in marginals.values())):
        raise TypeError(
            'marginals must be a dict of dicts, {"private": {"smoke": [0.31, 0.69]}}; network.marginal(["smoke"]) is '
            "such a list."
        )
    variables = list(next(iter(marginals.values())))
    schema.require([variables])
    for label, own in marginals.items():
        for variable in variables:
            if variable not in own or np.shape(own[variable]) != (len(schema.states[variable]),):
                raise ValueError(f"{label!r} must have a probability for each state of {variable!r}.")
    columns = min(3, len(variables))
    states = {variable: list(map(_plain, schema.states[variable])) for variable in variables}
    wide = max(4.2 * columns, min(0.25 * max(map(len, states.values())) + 1.2, _WIDEST))
    panels, heights = [], [_PANEL]
    row = column = 0
    for variable in variables:
        span = columns if len(states[variable]) > _MANY_STATES else 1
        if column + span > columns:
            row, column = row + 1, 0
            heights.append(_PANEL)
        room = (wide / columns * span - 1.0) / len(states[variable])  # inches for the name of a state
        longest = max(map(len, states[variable]))
        turned = 0 if longest * _LETTER < room else 30 if room > 0.35 else 90
        heights[row] = max(heights[row], _PANEL + longest * _LETTER * math.sin(math.radians(turned)))
        panels.append((variable, row, slice(column, column + span), turned))
        column += span
    beside = max(1, int(wide / (max(map(len, marginals)) * _LETTER + 0.6)))  # labels in a line of the legend
    high = sum(heights) + 0.4 + 0.25 * math.ceil(len(marginals) / beside)
    figure = _figure((wide, high))
    grid = figure.add_gridspec(len(heights), columns, height_ratios=heights)
    width = 0.8 / len(marginals)
    for variable, row, across, turned in panels:
        axes = figure.add_subplot(grid[row, across])
        middles = np.arange(len(states[variable]))
        for index, (label, values) in enumerate(marginals.items()):
            shift = (index - (len(marginals) - 1) / 2) * width
            colour = _COLOURS[index % len(_COLOURS)]
            axes.bar(middles + shift, np.asarray(values[variable]), width, color=colour, label=_plain(label))
        end = {0: "center", 30: "right", 90: "center"}[turned]
        axes.set_xticks(middles, states[variable], rotation=turned, ha=end)
        axes.set_xlim(-0.6, len(middles) - 0.4)
        axes.set_title(_plain(variable), loc="left", fontweight="bold")
        axes.set_ylim(bottom=0)
        axes.set_ylabel("probability" if across.start == 0 else "")
        axes.spines[["top", "right"]].set_visible(False)
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=min(beside, len(labels)), frameon=False)
    _head(figure, title)
    return figure


def plot_bounds(
    bounds: pd.DataFrame | Mapping[str, pd.DataFrame],
    title: str = "",
    label: str = "probability",
    truth: ArrayLike | None = None,
) -> Figure:
    """Draw answers as bars, each with its lower and upper bound.

    Parameters
    ----------
    bounds : pandas.DataFrame, or mapping of label to DataFrame
        Columns `value`, `lower`, `upper`, as from `query(..., interval=0.9)`, `cpd_interval` or `expectation`. Several
        answers to one question are drawn side by side, such as those of different groups. If a network's test of fit
        fails, a line below states it.
    title : str
    label : str
        Label of the axis.
    truth : array_like of shape (states,), optional
        Known answers, such as those of public records, drawn as black marks.

    Examples
    --------
    >>> index = pd.Index(["yes", "no"], name="smoke")
    >>> bounds = pd.DataFrame({"value": [0.3, 0.7], "lower": [0.25, 0.66], "upper": [0.34, 0.75]}, index=index)
    >>> [text.get_text() for text in plot_bounds(bounds).axes[0].get_yticklabels()]
    ['yes', 'no']
    """
    frames = bounds if isinstance(bounds, Mapping) else {"": bounds}
    for frame in frames.values():
        _require_columns("bounds", frame, ("value", "lower", "upper"), "that query(..., interval=0.9) returns")
    first, *others = frames.values()
    if any(not frame.index.equals(first.index) for frame in others):
        raise ValueError("Answers to one question are drawn side by side: the frames have different states.")
    states = [", ".join(map(_plain, key if isinstance(key, tuple) else (key,))) for key in first.index]
    wide, number = max(6.4, 4.4 + _LETTER * max(map(len, states))), len(frames)
    figure = _figure((wide, (0.14 + 0.2 * number) * len(first) + 1.2 + 0.25 * (number > 1)))
    axes = figure.add_subplot()
    rows, height = np.arange(len(first)), 0.7 / number
    for index, (name, frame) in enumerate(frames.items()):
        at = rows + (index - (number - 1) / 2) * height
        colour = _COLOURS[1 + index % (len(_COLOURS) - 1)]
        axes.barh(at, frame["value"], height, color=colour, alpha=0.45, label=_plain(name))
        middle, half = (frame["upper"] + frame["lower"]) / 2, (frame["upper"] - frame["lower"]) / 2
        axes.errorbar(middle, at, xerr=half, fmt="none", ecolor=_COLOURS[0], elinewidth=1.6, capsize=4 / number**0.5)
    if truth is not None:
        marks = np.asarray(truth, dtype=np.float64)
        axes.vlines(marks, rows - 0.4, rows + 0.4, color="black", linewidth=2)
    axes.set_yticks(rows, states)
    axes.set_ylim(len(first) - 0.4, -0.6)
    axes.set_ylabel(", ".join(map(_plain, first.index.names)) if first.index.names[0] else "")
    axes.set_xlabel(label)
    axes.set_xlim(left=min(0.0, *(float(frame["lower"].min()) for frame in frames.values())))
    axes.spines[["top", "right"]].set_visible(False)
    if number > 1:
        axes.legend(frameon=False)
    _head(figure, title)
    misfits = [
        ": ".join(filter(None, (_plain(name), f"{frame.attrs['misfit']}.")))
        for name, frame in frames.items()
        if "misfit" in frame.attrs
    ]
    if misfits:
        lines = "\n".join(textwrap.fill(line, int(15 * wide)) for line in misfits)
        figure.supxlabel(lines, fontsize=8, color=_COLOURS[2])
    return figure


def plot_edges(edges: pd.DataFrame, variables: Sequence[str] = (), title: str = "") -> Figure:
    """Draw the graph of a structure search: stable edges solid, doubtful ones dashed.

    Parameters
    ----------
    edges : pandas.DataFrame
        `PrivateStructureSearch.edges_`; before `bootstrap`, edges have no verdict and all are solid.
    variables : sequence of str
        Variables to draw even without an edge.
    title : str

    Examples
    --------
    >>> import pandas as pd
    >>> edges = pd.DataFrame({"parent": ["smoke"], "child": ["lung"], "verdict": ["stable"]})
    >>> [text.get_text() for text in plot_edges(edges).axes[0].texts]
    ['smoke', 'lung']
    """
    _require_columns("edges", edges, ("parent", "child", "verdict"), "in PrivateStructureSearch's edges_")
    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(variables)
    graph.add_edges_from(zip(edges["parent"], edges["child"], strict=True))
    if not graph:
        raise ValueError("There is no edge or variable to draw: give variables.")
    result = zip(edges["parent"], edges["child"], strict=True)
    drawing = draw(graph, edges=dict(zip(result, edges["verdict"], strict=True)))
    figure = _figure((max(4.0, drawing.width / 110), max(2.5, drawing.height / 110)))
    axes = figure.add_subplot()
    axes.set_xlim(0.0, drawing.width)
    axes.set_ylim(drawing.height, 0.0)
    axes.set_axis_off()
    for line in drawing.lines:
        path = Path(line.points, [Path.MOVETO, *[Path.CURVE4] * (len(line.points) - 1)])
        look = {"linewidth": 1.0, **_VERDICTS.get(str(line.level), {"color": "0.4"})}
        axes.add_patch(FancyArrowPatch(path=path, arrowstyle="-|>", mutation_scale=8, **look))
    for box in drawing.boxes:
        around, middle = "round,pad=0,rounding_size=6", (box.x + WIDTH / 2, box.y + HEIGHT / 2)
        axes.add_patch(FancyBboxPatch((box.x, box.y), WIDTH, HEIGHT, around, facecolor="white", edgecolor="0.3"))
        axes.text(*middle, _plain(box.short), ha="center", va="center", fontsize=7, color="black")
    seen = [verdict for verdict in _VERDICTS if (edges["verdict"] == verdict).any()]
    if seen:
        lines = [Line2D([], [], label=verdict, **_VERDICTS[verdict]) for verdict in seen]
        figure.legend(handles=lines, loc="outside lower right", ncols=len(lines), frameon=False, fontsize=8)
    _head(figure, title)
    return figure


def plot_pairs(comparison: pd.DataFrame, column: str | None = None, title: str = "") -> Figure:
    """Draw a comparison's variables and pairs as a heat map, with variables on the diagonal.

    For a comparison with a release it shows the excess over the noise, since errors are mostly noise.

    Parameters
    ----------
    comparison : pandas.DataFrame
        From :func:`pgmpy_dp.evaluation.compare`; tables of three and more variables are left out.
    column : {"error", "noise", "excess"}, optional
        By default `excess` if the reference is noisy, else `error`. The colour scale reaches at least 0.05, or 10 for
        `excess`, so that small values do not look large.
    title : str

    Examples
    --------
    >>> index = pd.Index([("smoke",), ("lung",), ("smoke", "lung")], tupleize_cols=False)
    >>> figure = plot_pairs(pd.DataFrame({"error": [0.01, 0.02, 0.05]}, index=index))
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['smoke', 'lung']
    """
    source = "that evaluation.compare(...) returns"
    _require_columns("comparison", comparison, (), source)
    noisy = "noise" in comparison and bool((comparison["noise"] > 0).any())
    column = column or ("excess" if noisy else "error")
    _require_columns("comparison", comparison, (column,), source)
    small = [clique for clique in comparison.index if isinstance(clique, tuple) and len(clique) <= 2]
    if not small:
        raise ValueError(f"comparison has no table of one or two variables to draw: hand over the frame {source}.")
    variables = list(dict.fromkeys(v for clique in sorted(small, key=len) for v in clique))
    position = {variable: number for number, variable in enumerate(variables)}
    cells = np.full((len(variables), len(variables)), np.nan)
    for clique, value in comparison[column].items():
        if isinstance(clique, tuple) and len(clique) <= 2:
            first, last = position[clique[0]], position[clique[-1]]
            cells[first, last] = cells[last, first] = value
    shown = list(map(_plain, variables))
    side, names = max(1.8, 0.3 * len(variables)), 0.07 * max(map(len, shown))
    labels = {
        "error": "total variation" + (" with noise" if noisy else ""),
        "noise": "total variation by noise",
        "excess": "excess over the noise, in standard deviations",
    }
    label = textwrap.wrap(labels.get(column, _plain(column)), int(side / _LETTER))
    figure = _figure((side + names + 1.3 + 0.2 * len(label), side + names + 0.7))
    axes = figure.add_subplot()
    lowest_top = 10.0 if column == "excess" else 0.05
    low, high = min(0.0, float(np.nanmin(cells))), max(lowest_top, float(np.nanmax(cells)))
    image = axes.imshow(cells, cmap="viridis_r", norm=Normalize(low, high))
    axes.set_xticks(range(len(variables)), shown, rotation=90, fontsize=8)
    axes.set_yticks(range(len(variables)), shown, fontsize=8)
    bar = figure.colorbar(image, ax=axes, shrink=0.7)
    bar.set_label("\n".join(label))
    _head(figure, title)
    return figure


class _PyplotFigure(Figure):
    """A figure that belongs to pyplot."""

    def _ipython_display_(self) -> None:
        """Show the figure once in a notebook, whose pyplot shows open figures at the end of a cell."""
        pyplot = sys.modules["matplotlib.pyplot"]
        if "inline" in pyplot.get_backend():
            pyplot.close(self)
        raise NotImplementedError  # IPython then shows it like other figures


def _figure(size: tuple[float, float]) -> Figure:
    """Make a figure of a size in inches; if pyplot is imported, its current one."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return Figure(figsize=size, layout="constrained")
    made: Figure = pyplot.figure(figsize=size, layout="constrained", FigureClass=_PyplotFigure)
    return made


def _require_columns(name: str, frame: Any, columns: Sequence[str], source: str) -> None:
    """Refuse anything except a frame with these columns, and name its source."""
    if not isinstance(frame, pd.DataFrame):
        raise TypeError(f"{name} has to be the frame {source}, got {type(frame).__name__}.")
    missing = [column for column in columns if column not in frame]
    if missing:
        raise ValueError(f"{name} has no column {missing[0]!r}: hand over the frame {source}.")


def _plain(name: Any) -> str:
    """Write a name or state so that matplotlib shows it as it is: dollars begin formulas."""
    return printable(str(name)).replace("$", r"\$")


def _head(figure: Figure, title: str) -> None:
    """Write a title above a figure, wrapped to its width."""
    if title:
        figure.suptitle(textwrap.fill(title, int(figure.get_figwidth() / 0.1)), x=0.01, ha="left", fontsize=12)


def __getattr__(name: str) -> object:
    raise AttributeError(f"No {__name__} attribute {name}{instead(__name__, name)}")
