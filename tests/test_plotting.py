"""What a plot is handed in a frame's place is named, with where such a frame is found."""

from __future__ import annotations

import networkx as nx
import pandas as pd
import pytest

from pgmpy_dp.plotting import plot_allocation, plot_bounds, plot_edges, plot_pairs

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
