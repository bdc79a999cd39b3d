"""Synthetic records of any fitted network."""

from __future__ import annotations

import numpy as np
import pandas as pd

from pgmpy_dp.estimators.networks import Network, log_linear
from pgmpy_dp.inference import JunctionTree, build_engine, sample


def simulate(network: Network, n_samples: int, seed: int | None = None) -> pd.DataFrame:
    """Independent records drawn exactly, through a junction tree; numpy's global generator is left alone.

    Parameters
    ----------
    network : DiscreteBayesianNetwork or DiscreteMarkovNetwork
    n_samples : int
    seed : int, optional
        For repeatable samples: records are drawn from a released distribution, no privacy hangs on it.

    Returns
    -------
    pandas.DataFrame
        One column a variable, in the order of the nodes.

    Raises
    ------
    ValueError
        If the network is too large for a junction tree.
    """
    layout, potentials, states = log_linear(network)
    tree = build_engine(layout.cardinalities, layout.scopes, inference="junction_tree")
    assert isinstance(tree, JunctionTree)
    codes = sample(tree, tree.calibrate(potentials), n_samples, np.random.default_rng(seed))
    columns = {v: codes[:, number] for number, v in enumerate(tree.variables)}
    return pd.DataFrame({v: pd.Series(states[v]).take(columns[v]).array for v in network.nodes()})
