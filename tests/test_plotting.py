"""What a plot is handed in a frame's place is named, with where such a frame is found."""

from __future__ import annotations

import networkx as nx
import pandas as pd
import pytest

from pgmpy_dp.plotting import plot_allocation, plot_bounds, plot_edges, plot_marginals, plot_pairs
from pgmpy_dp.schema import Schema

GRAPH = nx.DiGraph([("smoke", "lung")])


@pytest.mark.parametrize(
    ("plot", "source"),
    [
        (plot_bounds, "query"),
        (lambda frame: plot_allocation(GRAPH, frame), "allocation_"),
        (plot_edges, "edges_"),
        (plot_pairs, "compare"),
    ],
)
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
    with pytest.raises(ValueError, match="name them by variables"):
        plot_edges(pd.DataFrame({"parent": [], "child": [], "verdict": []}))
