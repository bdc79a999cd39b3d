"""What the papers print, beside what it is compared with."""

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp import papers


class NoNoise(dp.SimulatedNoise):
    """Counts stay as they are, and the scales of all noise that was asked for are kept."""

    def __init__(self):
        super().__init__(0)
        self.scales = []

    def discrete_laplace(self, counts, scale):
        self.scales.append(scale)
        return counts

    def coins(self, probability, count):
        return np.ones(count, dtype=bool)


def test_the_printed_algorithm_measures_two_tables_a_family_and_reads_the_records_rows():
    network = DiscreteBayesianNetwork([("a", "c"), ("b", "c"), ("a", "d"), ("b", "d")])
    records = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (400, 4)), columns=list("abcd"))
    schema, noise = dp.Schema({node: [0, 1] for node in "abcd"}), NoNoise()
    cpds = papers.independent(network, records, schema, 2.0, noise)
    assert noise.scales == [4.0] * 6  # c and d each have a table of (a, b) of their own; a quarter of epsilon, halved
    exact = dp.NotPrivateMLE(state_names=schema).fit(network, records).parameters_
    for own, expected in zip(cpds, exact, strict=True):
        np.testing.assert_allclose(own.values, expected.values)
    noise = NoNoise()
    papers.data_dependent(network, records, schema, 2.0, noise)
    # Those of a, (c, a, b), (a, b), b, (d, a, b), (a, b):
    first, second = np.array(noise.scales[:6]), np.array(noise.scales[6:])
    assert np.log1p(0.1 * np.expm1((2 / first[[0, 1, 3, 4]]).sum())) == pytest.approx(0.2)
    assert (2 / second[[0, 1, 3, 4]]).sum() == pytest.approx(1.8)
    assert second[0] < second[1]  # a, with children, has more of the budget than c, a leaf
    errors = {}  # equation (6), without noise and of all records
    for leaf in "cd":
        counts = records.groupby(["a", "b", leaf]).size().unstack(leaf).to_numpy()
        whole = counts.sum(axis=1, keepdims=True)
        errors[leaf] = (np.sqrt(1 + (counts / whole) ** 2) / whole).mean()
    assert second[4] / second[1] == pytest.approx((errors["c"] / errors["d"]) ** 0.5)
