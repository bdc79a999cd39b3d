"""What a plot is handed in a frame's place is named, with where such a frame is found."""

import io
import sys
import warnings

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from matplotlib.image import imread
from matplotlib.text import Text

from pgmpy_dp.plotting import plot_bounds, plot_edges, plot_marginals, plot_pairs
from pgmpy_dp.schema import Schema

GRAPH = nx.DiGraph([("smoke", "lung")])


@pytest.mark.parametrize(("plot", "source"), [(plot_bounds, "query"), (plot_edges, "edges_"), (plot_pairs, "compare")])
@pytest.mark.parametrize(("handed", "error"), [(GRAPH, TypeError), (pd.DataFrame({"odds": [0.5]}), ValueError)])
def test_what_is_no_such_frame_is_refused(plot, source, handed, error):
    with pytest.raises(error, match=source):
        plot(handed)


SCHEMA = Schema({"smoke": ["yes", "no"]})
RIGHT = {"true": {"smoke": [0.3, 0.7]}}


@pytest.mark.parametrize(
    ("marginals", "schema", "said"),
    [
        (GRAPH, SCHEMA, "dict of dicts"),
        ({}, SCHEMA, "dict of dicts"),
        (RIGHT["true"], SCHEMA, "dict of dicts"),
        ({"true": {"smok": [0.3, 0.7]}}, SCHEMA, "did you mean 'smoke'"),
        ({"true": {"smoke": [0.3]}}, SCHEMA, "'true' must have a probability for each state of 'smoke'"),
        ({**RIGHT, "private": {}}, SCHEMA, "'private' must have"),
        (RIGHT, {"smoke": ["yes", "no"]}, "schema must be a Schema"),
    ],
)
def test_marginals_of_another_form_are_refused(marginals, schema, said):
    with pytest.raises((TypeError, ValueError), match=said):
        plot_marginals(marginals, schema)


def test_a_graph_of_nothing_is_not_drawn():
    with pytest.raises(ValueError, match="no edge or variable to draw"):
        plot_edges(pd.DataFrame({"parent": [], "child": [], "verdict": []}))


def comparison():
    """Two variables and their pair, whose error is large, but no larger than what the noise makes."""
    index = pd.Index([("smoke",), ("lung",), ("smoke", "lung")], tupleize_cols=False)
    return pd.DataFrame({"error": [0.2, 0.3, 4.0], "noise": [0.2, 0.3, 4.1], "excess": [0.1, 12.0, -0.4]}, index=index)


@pytest.mark.parametrize(
    ("changed", "column", "shown", "label"),
    [
        ({}, None, [[0.1, -0.4], [-0.4, 12.0]], "excess over the noise, in standard deviations"),
        ({}, "error", [[0.2, 4.0], [4.0, 0.3]], "total variation with noise"),
        ({"noise": 0.0, "excess": np.nan}, None, [[0.2, 4.0], [4.0, 0.3]], "total variation"),
    ],
)
def test_beside_a_release_pairs_show_what_the_noise_does_not_explain(changed, column, shown, label):
    map_of_pairs, bar = plot_pairs(comparison().assign(**changed), column).axes
    np.testing.assert_array_equal(map_of_pairs.images[0].get_array(), shown)
    assert bar.get_ylabel().split() == label.split()


@pytest.mark.parametrize("pairs", [comparison()[:0], comparison().set_axis(["a", "b", "c"])])
def test_a_comparison_without_pairs_is_not_drawn(pairs):
    with pytest.raises(ValueError, match="no table of one or two variables"):
        plot_pairs(pairs)


@pytest.mark.parametrize("names", [["a"], ["smoke", "lung"], ["a_name_of_a_variable_that_goes_on", "b"], ["年" * 12]])
def test_nothing_of_a_map_of_pairs_is_cut_off(names):
    index = pd.Index([(name,) for name in names], tupleize_cols=False)
    figure = plot_pairs(pd.DataFrame({"noise": 1.0, "excess": 2.0}, index=index), title="All pairs")
    file = io.BytesIO()
    with warnings.catch_warnings(action="ignore"):  # the font lacks a letter
        figure.savefig(file, dpi=100)
    file.seek(0)
    dark = imread(file)[..., :3].min(axis=-1) < 0.98
    assert not any(side.any() for side in (dark[0], dark[-1], dark[:, 0], dark[:, -1]))


def test_names_are_shown_as_they_are():
    """Neither as formulas of TeX, nor with what moves the cursor of a terminal."""
    odd, index = "$x_^{2}$\x1b", pd.Index([("$x_^{2}$\x1b",)], tupleize_cols=False)
    bounds = pd.DataFrame({"value": [0.3], "lower": [0.2], "upper": [0.4]}, index=pd.Index([odd], name=odd))
    doubted = bounds.copy()
    doubted.attrs["misfit"] = "The release contradicts the network"
    share = pd.DataFrame({"share": [1.0], "error": 0.1}, index=[odd])
    for figure in (
        plot_marginals({odd: {odd: [0.3, 0.7]}}, Schema({odd: [odd, "no"]})),
        plot_bounds(bounds),
        plot_bounds({odd: doubted, 2020: doubted}),
        plot_edges(pd.DataFrame({"parent": [], "child": [], "verdict": []}), [odd]),
        plot_pairs(share.set_axis(index)),
    ):
        figure.draw_without_rendering()  # the formula would not parse
        written = [text.get_text() for text in figure.findobj(Text)]
        assert any(r"\$x_^{2}\$\x1b" in text for text in written)
        assert not any("\x1b" in text for text in written)


def test_figures_are_the_current_ones_of_pyplot_where_it_is_imported(tmp_path, monkeypatch):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    figure = plot_pairs(comparison())
    try:
        assert plt.gcf() is figure
        plt.savefig(tmp_path / "pairs.png")
        assert plt.imread(tmp_path / "pairs.png").std() > 0.1  # blank paper has one colour
        monkeypatch.setattr(plt, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
        with pytest.raises(NotImplementedError):  # which tells IPython to show it as it shows any figure
            figure._ipython_display_()
        assert plt.get_fignums() == before  # or a notebook would show it again
    finally:
        plt.close(figure)
    assert plt.get_fignums() == before


def test_pyplot_is_not_imported_by_drawing(monkeypatch):
    """Figures that nobody closes would pile up there."""
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    assert type(plot_pairs(comparison())) is Figure
    assert "matplotlib.pyplot" not in sys.modules
