"""Synthetic records are drawn from any network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks
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
    """Draw independent records exactly, through a junction tree; numpy's global generator is left alone.

    Parameters
    ----------
    network : DiscreteBayesianNetwork or DiscreteMarkovNetwork
    n_samples : int
    seed : int, optional
        The same seed gives the same records. No privacy hangs on it: the distribution is released already.
    evidence : mapping of variable to state, optional
        Records are drawn from the distribution given these states.
    include_latents : bool
        Latent variables have columns too.

    Returns
    -------
    pandas.DataFrame
        Each variable has a categorical column with all of its states, in the order of the nodes.

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
    layout, potentials, states = log_linear(network, schema.states)
    codes = Conditioning(layout, schema).sample(potentials, given, n_samples, np.random.default_rng(seed))
    hidden = () if include_latents else network.latents
    shown = [variable for variable in network.nodes() if variable not in hidden]
    return labelled(codes, states, shown)


def simulate_from_draws(
    network: Network,
    posterior: PosteriorNetworks,
    conditioning: Conditioning,
    n_samples: int,
    data_sets: int,
    seed: int | None,
    evidence: Mapping[str, Any] | None,
) -> list[pd.DataFrame]:
    """Draw each data set from another draw of the population, evenly spread over the draws.

    Raises
    ------
    SchemaError
        If a variable or state of the evidence is unknown.
    ValueError
        If there are fewer draws than data sets, or the evidence has probability zero.
    """
    whole_number("n_samples", n_samples, 0)
    whole_number("data_sets", data_sets)
    if data_sets > len(posterior.population):
        raise ValueError(
            f"There are {len(posterior.population)} draws for {data_sets} data sets: draw as many by "
            "sample_posterior first."
        )
    schema, generator = posterior.schema, np.random.default_rng(seed)
    given, nodes = checked_evidence(schema, evidence), list(network.nodes())
    numbers = np.linspace(0, len(posterior.population) - 1, data_sets).round().astype(int)
    draws = (conditioning.sample(posterior.population[i], given, n_samples, generator) for i in numbers)
    return [labelled(codes, schema.states, nodes) for codes in draws]


def labelled(
    codes: Mapping[str, NDArray[np.int32]], states: Mapping[str, Sequence[Any]], variables: Sequence[str]
) -> pd.DataFrame:
    """Make categorical columns of numbers of states."""
    return pd.DataFrame({v: pd.Categorical.from_codes(codes[v], pd.Index(states[v])) for v in variables})
