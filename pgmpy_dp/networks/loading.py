"""Loading of models of any kind, which is detected from the file."""

from __future__ import annotations

import os

from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.models.formats.file_kinds import HOUSEHOLDS, MIXTURE, format_of
from pgmpy_dp.models.formats.formats import read_network
from pgmpy_dp.models.household_network import PrivateHouseholdNetwork
from pgmpy_dp.models.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.models.model import Model
from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork
from pgmpy_dp.networks.markov_network import PrivateMarkovNetwork


def load(path: str | os.PathLike[str]) -> Model:
    """Read a model of any kind that `save` wrote: a network in any format, a mixture, or households.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFormatError
        If the file does not hold a model, or is damaged.
    ValueError
        If the suffix is not that of a known format.

    Examples
    --------
    >>> import tempfile, numpy as np, pgmpy_dp as dp
    >>> from pgmpy.factors.discrete import DiscreteFactor
    >>> network = dp.PrivateMarkovNetwork([("smoke", "lung")])
    >>> network.set_factors([DiscreteFactor(["smoke", "lung"], [2, 2], [0.3, 0.1, 0.1, 0.5])])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     network.save(f"{folder}/network.json")
    ...     dp.load(f"{folder}/network.json").marginal(["lung"]).round(2).tolist()
    [0.4, 0.6]
    """
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"load reads the file of a model, by its name; got {type(path).__name__}.")
    if os.path.isfile(path):
        form = format_of(path)
        if form == MIXTURE:
            return PrivateMixtureNetwork.load(path)
        if form == HOUSEHOLDS:
            return PrivateHouseholdNetwork.load(path)
    return load_network(path)


def load_network(path: str | os.PathLike[str]) -> PrivateBayesianNetwork | PrivateMarkovNetwork:
    """Read a network that `save_network`, a network's own `save` or another program wrote."""
    with read_network(path) as (network, releases):
        markov = isinstance(network, DiscreteMarkovNetwork)
        result = PrivateMarkovNetwork.of(network) if markov else PrivateBayesianNetwork.of(network)
        return result._carrying(releases)
