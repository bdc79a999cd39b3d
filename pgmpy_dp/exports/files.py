"""Which format a file has, by the end of its name."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp._files import parse_json, replacing
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.estimators.networks import Network, tabular_cpd
from pgmpy_dp.exports.bif import from_bif, to_bif
from pgmpy_dp.exports.names import ordered
from pgmpy_dp.exports.uai import from_uai, to_uai
from pgmpy_dp.exports.xmlbif import from_xmlbif, to_xmlbif
from pgmpy_dp.models import PrivateMarkovNetwork
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Schema

SUFFIXES = (".bif", ".xmlbif", ".uai", ".json")
_FORMAT = "pgmpy_dp Bayesian network"
_VERSION = 1


def save_network(network: Network, path: str | os.PathLike[str], guarantee: Guarantee | None = None) -> None:
    """Write a fitted network; an existing file is replaced only when complete.

    Parameters
    ----------
    network : DiscreteBayesianNetwork or PrivateMarkovNetwork
    path : path
        Its end says the format: ``.bif`` and ``.xmlbif`` for Bayesian networks, ``.uai`` and ``.json`` for both.
        Probabilities survive to the last digit. Names that a format cannot hold are escaped, and `load_network` brings
        them back. UAI holds no names: they go into ``<path>.schema.json``.
    guarantee : Guarantee, optional
        Noted in the JSON file of a Bayesian network; a Markov network has its own.

    Raises
    ------
    SchemaError
        If the network lacks states, or two names would be one in the format; the message names them.
    ValueError
        If the format is unknown or does not hold networks of this kind.

    Examples
    --------
    >>> import tempfile
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> network = DiscreteBayesianNetwork()
    >>> network.add_node("age")
    >>> network.add_cpds(TabularCPD("age", 2, [[0.3], [0.7]], state_names={"age": ["<18, child", "18+"]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_network(network, f"{folder}/network.bif")
    ...     load_network(f"{folder}/network.bif").get_cpds("age").state_names["age"]
    ['<18, child', '18+']
    """
    path, schema = Path(path), Schema.from_model(network)
    suffix = _suffix(path)
    markov = isinstance(network, DiscreteMarkovNetwork)
    if suffix == ".json" and isinstance(network, PrivateMarkovNetwork):
        network.save(path)
        return
    if markov and suffix != ".uai":
        raise ValueError(f"{path}: {suffix} holds Bayesian networks; save this Markov network as .json or .uai.")
    write = {".bif": to_bif, ".xmlbif": to_xmlbif, ".uai": to_uai}
    content = _to_json(network, schema, guarantee) if suffix == ".json" else write[suffix](network, schema)
    if suffix == ".uai":
        schema.save(_names_of(path))
    with replacing(path) as handle:
        handle.write(content)


def load_network(path: str | os.PathLike[str]) -> Network:
    """Read a network that `save_network` or another program wrote.

    Returns
    -------
    DiscreteBayesianNetwork, PrivateMarkovNetwork (JSON) or DiscreteMarkovNetwork (UAI)

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFormatError
        If the file is not of the format its name says.
    ValueError
        If the end of its name says no known format.
    """
    path = Path(path)
    suffix, content = _suffix(path), path.read_bytes()
    try:
        if suffix == ".json":
            stored = parse_json(content)
            if isinstance(stored, dict) and stored.get("format") != _FORMAT:
                return PrivateMarkovNetwork.load(path)
            network = _from_json(stored)
        elif suffix == ".uai":
            names = _names_of(path)
            network = from_uai(content, Schema.load(names) if names.exists() else None)
        else:
            network = (from_bif if suffix == ".bif" else from_xmlbif)(content)
        if not network.nodes():
            raise ValueError("it declares no variable.")
        network.check_model()
    except ReleaseFormatError:
        raise
    except Exception as error:  # pgmpy's readers raise whatever their parsers meet
        raise ReleaseFormatError(f"{path}: not a sound {suffix} file ({error})") from error
    return network


def _suffix(path: Path) -> str:
    suffix = {".xml": ".xmlbif"}.get(path.suffix.lower(), path.suffix.lower())
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: unknown format; end the name in one of {', '.join(SUFFIXES)}.")
    return suffix


def _names_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.schema.json")


def _to_json(network: DiscreteBayesianNetwork, schema: Schema, guarantee: Guarantee | None) -> bytes:
    cpds = [ordered(network.get_cpds(variable), schema.states) for variable in schema.variables]
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "schema": schema.to_dict(),
        "guarantee": None if guarantee is None else guarantee.to_dict(),
        "cpds": [{"variables": list(cpd.variables), "values": cpd.values.ravel().tolist()} for cpd in cpds],
    }
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"


def _from_json(stored: Mapping[str, Any]) -> DiscreteBayesianNetwork:
    if stored["version"] != _VERSION:
        raise ValueError("it has another version: upgrade pgmpy_dp.")
    schema = Schema.from_dict(stored["schema"])
    network = DiscreteBayesianNetwork()
    network.add_nodes_from(schema.variables)
    for cpd in stored["cpds"]:
        node, *parents = cpd["variables"]
        network.add_edges_from([(parent, node) for parent in parents])
        clique = (node, *parents)
        table = np.array(cpd["values"], dtype=np.float64).reshape(schema.shape(clique))
        network.add_cpds(tabular_cpd(clique, table, schema.states))
    return network
