"""Counts of simulated records are drawn without the records, with the same law."""

import numpy as np
from scipy.stats import chi2, kstest

from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.inference.trees.junction_tree import sample_counts

CARDS = {"a": 2, "b": 3, "c": 2, "d": 2}


def test_drawn_tables_agree_and_are_multinomial():
    """Pearson's statistic of a table of cells is about chi-squared; the test fails by chance once in a million."""
    generator = np.random.default_rng(0)
    tree = JunctionTree.build(CARDS, [("a", "b"), ("b", "c"), ("d",)])
    calibration = tree.calibrate(generator.normal(size=tree.layout.size))
    count, draws = 5000, 2000
    drawn = sample_counts(tree, calibration, count, draws, generator)
    tables = [Table((-1, *clique.table.scope), table) for clique, table in zip(tree.cliques, drawn, strict=True)]
    for clique, table in zip(tree.cliques, tables, strict=True):
        assert (table.values.reshape(draws, -1).sum(axis=1) == count).all()
        expected = count * tree.table(calibration, clique.table)
        pearson = ((table.values - expected) ** 2 / expected).reshape(draws, -1).sum(axis=1)
        assert kstest(pearson, chi2(expected.size - 1).cdf).pvalue > 1e-6
    shared = tree.variables.index("b")
    margins = [table.margin((-1, shared)).values for table in tables if shared in table.variables]
    assert len(margins) == 2
    np.testing.assert_array_equal(*margins)
