"""Synthetic records of a network have its distribution."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.estimators.networks import log_linear
from pgmpy_dp.evaluation.peers import example_network
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.models.sampling import simulate


def test_families_of_alarm_have_their_exact_frequencies():
    """752 cells, each within six standard deviations (and ten records, where few are expected): errs once in 1e5."""
    network, count = example_network("alarm"), 100_000
    records = simulate(network, count, seed=1)
    layout, potentials, states = log_linear(network)
    marginals = JunctionTree.build(layout.cardinalities, layout.scopes).calibrate(potentials).marginals
    codes = {v: records[v].map({state: number for number, state in enumerate(states[v])}).to_numpy() for v in records}
    for scope, shape, expected in zip(layout.scopes, layout.shapes, layout.split(marginals), strict=True):
        cells = np.ravel_multi_index([codes[v] for v in scope], shape)
        found = np.bincount(cells, minlength=expected.size) / count
        spread = 6 * np.sqrt(expected.ravel() * (1 - expected.ravel()) / count) + 10 / count
        assert (np.abs(found - expected.ravel()) < spread).all()
        assert not found[expected.ravel() == 0].any()
