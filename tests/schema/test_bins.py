"""Bins cut numbers at public edges, and hold a number each."""

import math

import numpy as np
import pytest
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.readwrite import BIFReader, BIFWriter

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.schema import Bins
from pgmpy_dp.schema.bins import _parts

NO_EDGES = [[1], [1, 1], [2, 1], [0, math.nan], [0, math.inf, math.inf], [False, True], ["0", "1"], "01", 3]


@pytest.mark.parametrize(
    ("edges", "options", "message"),
    [
        *((edges, {}, None) for edges in [*NO_EDGES, [0, 10**400]]),
        *(([0, 1, 2], {"labels": labels}, None) for labels in (["a"], ["a", "a"], [0, 1], "ab")),
        *(([0, 1], {"decimals": decimals}, "from 0 to 15, got") for decimals in (-1, 1.0, True, "1", 16)),
        ([0, 0.01, 0.05, 1], {"decimals": 1}, "from 0.01 to 0.05"),
        ([0, 1e15], {"decimals": 1}, "as large as"),
        ([0, 0.5, 0.7], {"decimals": 0}, r"from 0\.5 to 0\.7"),
    ],
)
def test_wrong_bins_are_refused(edges, options, message):
    with pytest.raises(SchemaError, match=message):
        Bins(edges, **options)


@pytest.mark.parametrize("edges", [[0, 0.01, 0.05, 1], [0, 1e15]])
def test_numbers_without_a_number_of_decimals_have_any(edges):
    assert Bins(edges, decimals=None).decimals is None


def test_the_last_bin_may_hold_its_upper_edge_alone():
    assert Bins([0, 0.5, 1], decimals=0).steps() == [0, 1, 2]
    assert Bins([0, 20, 50.5, 100], decimals=0).steps() == [0, 20, 51, 100]


def test_whole_numbers_are_written_in_full():
    assert [Bins([0, 1]).written(number) for number in (3.0, 12345.0, 3.14159)] == ["3", "12345", "3.142"]


def test_bin_labels_survive_a_bif_file():
    for edges in ([-math.inf, -2.5, 0, 1e-5, 1e22, math.inf], [0, 1]):
        labels = list(Bins(edges).labels)
        model = DiscreteBayesianNetwork([("age", "sick")])
        n = len(labels)
        model.add_cpds(
            TabularCPD("age", n, np.full((n, 1), 1 / n), state_names={"age": labels}),
            TabularCPD("sick", 2, np.full((2, n), 0.5), ["age"], [n], {"age": labels, "sick": ["yes", "no"]}),
        )
        back = BIFReader(string=str(BIFWriter(model))).get_model()
        assert back.get_cpds("age").state_names["age"] == labels
        assert back.get_cpds("sick").state_names["age"] == labels


@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.parametrize(("cells", "narrower"), [(1, 0.01), (4, 0.1), (9, 1e-6), (4, 3.9), (5, 20.0)])
def test_cells_grow_from_the_width_of_those_of_the_narrower_neighbour(cells, narrower, falling):
    """Widths have one ratio and fill the bin; they are even if the neighbour's cells are hardly narrower."""
    inner = _parts(cells, narrower, falling)
    assert inner.size == cells - 1
    widths = np.diff(np.concatenate([[0.0], inner, [1.0]]))
    widths = widths[::-1] if falling else widths
    if cells > 1:
        ratios = widths[1:] / widths[:-1]
        np.testing.assert_allclose(ratios, ratios[0], rtol=1e-6)
        assert widths[0] == pytest.approx(1 / cells if narrower > 1 else narrower / cells)
