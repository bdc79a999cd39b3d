"""Simulation of records from any network."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.models.answering import named_evidence
from pgmpy_dp.models.model import places
from pgmpy_dp.models.numbers import labelled
from pgmpy_dp.models.questions import checked_evidence
from pgmpy_dp.models.trees.conditioning import Conditioning
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.schema import Schema


def simulate(
    network: Network,
    n_samples: int = 10,
    seed: int | None = None,
    evidence: Mapping[str, Any] | None = None,
    include_latents: bool = False,
) -> pd.DataFrame:
    """Draw independent records exactly by a junction tree, without using numpy's global generator.

    Parameters
    ----------
    network : DiscreteBayesianNetwork or DiscreteMarkovNetwork
    n_samples : int
    seed : int, optional
        The same seed gives the same records. Privacy does not depend on it, since the distribution is already released.
    evidence : mapping of variable to state, optional
        Records are drawn from the distribution given these states.
    include_latents : bool
        Whether to include columns of latent variables.

    Returns
    -------
    pandas.DataFrame
        A categorical column with all states for each variable, in the order of the nodes.

    Raises
    ------
    SchemaError
        If a variable or state of the evidence is unknown.
    ValueError
        If the evidence has probability zero.
    TreeTooLargeError
        If the junction tree does not fit in memory.

    Examples
    --------
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> network = DiscreteBayesianNetwork()
    >>> network.add_node("smoke")
    >>> network.add_cpds(TabularCPD("smoke", 2, [[0.3], [0.7]], state_names={"smoke": ["yes", "no"]}))
    >>> simulate(network, 3, seed=0)["smoke"].tolist()
    ['no', 'yes', 'yes']
    """
    whole_number("n_samples", n_samples, 0)
    schema = Schema.from_model(network)
    given = checked_evidence(schema, evidence)
    layout, potentials, _ = log_linear(network, schema.states)
    with named_evidence(given):
        codes = Conditioning(layout).sample(potentials, places(schema, given), n_samples, np.random.default_rng(seed))
    hidden = () if include_latents else network.latents
    shown = [variable for variable in network.nodes() if variable not in hidden]
    return labelled(codes, schema, shown)
