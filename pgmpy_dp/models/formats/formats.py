"""Networks are written and read in the format given by the file's suffix.

JSON is this package's own: it stores networks of both kinds with the types of their states and their ties, and the
costs behind them as properties. UAI has these in the file of its names, and the other formats as a remark of one line,
which other programs skip: a sentence, and the costs as JSON.
"""

from __future__ import annotations

import html
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp._files import parse_json, path_of, replacing, require_known
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.models.formats.assembling import assembled_bayesian, assembled_markov
from pgmpy_dp.models.formats.file_kinds import BAYESIAN, MARKOV, require_format
from pgmpy_dp.models.formats.other_formats import (
    from_bif,
    from_net,
    from_uai,
    from_xdsl,
    from_xmlbif,
    to_bif,
    to_net,
    to_uai,
    to_xdsl,
    to_xmlbif,
)
from pgmpy_dp.observed.factors import Network, log_linear, ordered_table
from pgmpy_dp.privacy.guarantee import GRAPH_KEY, learned_graph
from pgmpy_dp.release import Guarantee, Release
from pgmpy_dp.release.carrying import SUFFIX, read_carrying, write_carrying
from pgmpy_dp.schema import Schema

_VERSION = 1
SIDECAR_PROPERTY = "pgmpy_dp:network"
_MARK = "pgmpy_dp guarantee: "
_REMARK = re.compile(_MARK.encode() + rb"(.*)")


def stated(network: Network, guarantee: Guarantee | None) -> dict[str, Any]:
    """Return a network's guarantee as written in files, and the names of the costs of its graph and states."""
    if guarantee is None:
        return {}
    results = {node: _names(data[GRAPH_KEY]) for node, data in network.nodes(data=True) if GRAPH_KEY in data}
    graph = _names(learned_graph(network))
    own = {"graph": graph} if graph else {}
    return {"guarantee": guarantee.to_dict(), **own, **({"states": results} if results else {})}


def restore(network: Network, content: Mapping[str, Any]) -> None:
    """Restore the guarantees that `stated` wrote in a network that was read."""
    if content.get("guarantee") is None:
        return
    network.guarantee_ = Guarantee.from_dict(content["guarantee"])
    costs = {cost.id: cost for cost in network.guarantee_.every}
    if graph := content.get("graph"):
        network.graph[GRAPH_KEY] = Guarantee(earlier=frozenset(costs[name] for name in graph))
    for node, names in content.get("states", {}).items():
        network.nodes[node][GRAPH_KEY] = Guarantee(earlier=frozenset(costs[name] for name in names))


def remark(network: Network, guarantee: Guarantee | None) -> str:
    """Write what `stated` says as one line; empty if there is no guarantee."""
    content = stated(network, guarantee)
    return f"{guarantee}. {_MARK}{json.dumps(content, separators=(',', ':'))}" if content else ""


def _names(guarantee: Guarantee) -> list[str]:
    return sorted(cost.id for cost in guarantee.every)


def to_json(network: Network, schema: Schema, guarantee: Guarantee | None) -> bytes:
    """Write the network as JSON."""
    content: dict[str, Any] = {"format": BAYESIAN, "version": _VERSION, "schema": schema.to_dict(), "guarantee": None}
    content |= stated(network, guarantee)
    if guarantee is not None and not guarantee.private:
        content["promise"] = str(guarantee)
    if tied := getattr(network, "tied", ()):
        content["tied"] = [*tied.items()] if isinstance(tied, Mapping) else [[None, group] for group in tied]
    if isinstance(network, DiscreteMarkovNetwork):
        layout, potentials, _ = log_linear(network, schema.states)
        if len(set(map(frozenset, layout.scopes))) < len(layout.scopes):
            raise ValueError("Two factors have the same variables: multiply them first.")
        logs = [log if log > -math.inf else None for log in potentials.tolist()]  # JSON has no infinity
        tables = [logs[start:stop] for start, stop in pairwise(layout.offsets)]
        factors = [{"variables": s, "log_potentials": table} for s, table in zip(layout.scopes, tables, strict=True)]
        content["format"] = MARKOV
        content |= {"edges": sorted(sorted(edge) for edge in network.edges()), "factors": factors}
    else:
        cpds = [network.get_cpds(variable) for variable in schema.variables]
        rows = [ordered_table(cpd, schema.states).ravel().tolist() for cpd in cpds]
        content["cpds"] = [{"variables": cpd.variables, "values": own} for cpd, own in zip(cpds, rows, strict=True)]
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"


def from_json(content: bytes) -> Network:
    """Read what `to_json` wrote: a network of pgmpy's own class, with the file's `guarantee_` and `tied`."""
    stored = parse_json(content)
    if stored["format"] not in (BAYESIAN, MARKOV):
        raise ValueError("it is not a network")
    require_known(stored["version"], _VERSION)
    schema = Schema.from_dict(stored["schema"])
    if stored["format"] == MARKOV:
        cliques = [tuple(factor["variables"]) for factor in stored["factors"]]
        logs = [np.array(factor["log_potentials"], dtype=np.float64) for factor in stored["factors"]]
        with np.errstate(over="ignore"):  # refused when the network is assembled
            tables = [np.exp(np.where(np.isnan(table), -math.inf, table)) for table in logs]
        edges = [(first, second) for first, second in stored["edges"]]
        network: Network = assembled_markov(schema, edges, cliques, tables)
    else:
        cliques = [tuple(cpd["variables"]) for cpd in stored["cpds"]]
        tables = [np.array(cpd["values"], dtype=np.float64) for cpd in stored["cpds"]]
        network = assembled_bayesian(schema, cliques, tables)
    restore(network, stored)
    ties = stored.get("tied", [])  # pairs of a name (or null) and cliques, since keys in JSON cannot be tuples
    named = bool(ties) and ties[0][0] is not None
    network.tied = {tuple(name): group for name, group in ties} if named else [group for _, group in ties]
    return network


SUFFIXES = (".bif", ".xmlbif", ".xdsl", ".net", ".uai", ".json", SUFFIX)
_WRITERS = {".bif": to_bif, ".xmlbif": to_xmlbif, ".xdsl": to_xdsl, ".net": to_net}
_READERS = {".bif": from_bif, ".xmlbif": from_xmlbif, ".xdsl": from_xdsl, ".net": from_net}
_READERS |= {".json": from_json, SUFFIX: from_json}


def save_network(
    network: Network, path: str | os.PathLike[str], guarantee: Guarantee | None = None, filetype: str | None = None
) -> None:
    """Write a fitted network; an existing file is replaced only when complete.

    Parameters
    ----------
    network : DiscreteBayesianNetwork or DiscreteMarkovNetwork
    path : path
        The suffix selects the format: ``.bif``, ``.xmlbif``, ``.xdsl`` (GeNIe) and ``.net`` (Hugin) for Bayesian
        networks, ``.uai`` and ``.json`` for both, and ``.zip`` for networks that have a release, which the file then
        carries. Probabilities are written to full precision. Names that a format cannot hold are escaped, and
        `load_network` restores them. UAI has no names: they are written to ``<path>.schema.json``. Values are in the
        order of the format; pgmpy's own reader mixes up the parents of Bayesian networks in any UAI file.
    guarantee : Guarantee, optional
        By default the network's own. It is stored in every format, with what found the graph and the states.
    filetype : {"bif", "xmlbif", "xdsl", "net", "uai", "json", "zip"}, optional
        The format, if the suffix does not give it. Without a suffix it is BIF, as in pgmpy, if there is no release,
        which a file without a suffix would lack.

    Raises
    ------
    SchemaError
        If the network lacks states, or two names become equal in the format; the message names them.
    ValueError
        If the network is invalid, or the format is unknown or does not support networks of this kind.

    Examples
    --------
    >>> import tempfile
    >>> from pgmpy.factors.discrete import TabularCPD
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> from pgmpy_dp.networks import load_network
    >>> network = DiscreteBayesianNetwork()
    >>> network.add_node("age")
    >>> network.add_cpds(TabularCPD("age", 2, [[0.3], [0.7]], state_names={"age": ["<18, child", "18+"]}))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_network(network, f"{folder}/network.bif")
    ...     load_network(f"{folder}/network.bif").get_cpds("age").state_names["age"]
    ['<18, child', '18+']
    """
    path = path_of(path)
    if not path.suffix and filetype is None and getattr(network, "release_", None) is not None:
        raise ValueError(
            f"{path}: end the name in {SUFFIX}, which keeps the release, or in {', '.join(SUFFIXES[:-1])}."
        )
    suffix, schema = _suffix(path, filetype), Schema.from_model(network)
    network.check_model()
    if isinstance(network, DiscreteMarkovNetwork) and suffix not in (".uai", ".json", SUFFIX):
        raise ValueError(f"{path}: {suffix} holds Bayesian networks; save this Markov network as .json or .uai.")
    promise = getattr(network, "guarantee_", None) if guarantee is None else guarantee
    if suffix in (".json", SUFFIX):
        content = to_json(network, schema, promise)
    elif suffix == ".uai":
        content = to_uai(network, schema)
        names = schema.to_dict() | {SIDECAR_PROPERTY: stated(network, promise)}
        text = json.dumps(names, indent=2, ensure_ascii=False, allow_nan=False)
        _names_of(path).write_text(text + "\n", encoding="utf-8", newline="\n")
    else:
        content = _WRITERS[suffix](network, schema, remark(network, promise))
    if suffix == SUFFIX:
        write_carrying(path, content, getattr(network, "release_", None))
        return
    with replacing(path) as handle:
        handle.write(content)


@contextmanager
def read_network(
    path: str | os.PathLike[str], filetype: str | None = None
) -> Iterator[tuple[Network, tuple[Release, ...]]]:
    """Read a network of pgmpy's own class and the releases in its file; a ReleaseFormatError names the file."""
    path = path_of(path)
    if path.is_dir():
        raise ReleaseFormatError(f"{path}: not a file; give the path of a network file.")
    suffix = _suffix(path, filetype)
    if suffix in (".json", SUFFIX):
        require_format(path, BAYESIAN, MARKOV)
    content, releases = read_carrying(path) if suffix == SUFFIX else (path.read_bytes(), ())
    try:
        if suffix == ".uai":
            names = parse_json(_names_of(path).read_bytes()) if _names_of(path).exists() else None
            network = from_uai(content, None if names is None else Schema.from_dict(names))
            restore(network, {} if names is None else names.get(SIDECAR_PROPERTY, {}))
        else:
            network = _READERS[suffix](content)
            if suffix not in (".json", SUFFIX) and (remark := _REMARK.search(content)):
                restore(network, json.JSONDecoder().raw_decode(html.unescape(remark[1].decode()))[0])
        if not network.nodes():
            raise ValueError("it declares no variable")
        network.check_model()
        yield network, releases
    except ReleaseFormatError as error:
        raise ReleaseFormatError(f"{path}: {error}") from None
    except Exception as error:  # pgmpy's readers raise errors of many kinds
        reason = str(error).rstrip(".")
        raise ReleaseFormatError(
            f"{path}: not a sound {suffix} file ({reason}). Save the network anew, or end the name in its format."
        ) from error


def _suffix(path: Path, filetype: str | None) -> str:
    end = path.suffix.lower()
    text = {".xml": ".xmlbif", "": ".bif"}.get(end, end)
    suffix = text if filetype is None else f".{filetype}"
    if suffix not in SUFFIXES:
        raise ValueError(f"{path}: unknown format; end the name in one of {', '.join(SUFFIXES)}.")
    if end and text in SUFFIXES and text != suffix:
        raise ValueError(f"{path}: its name says {text}, and filetype says {suffix}: make them agree.")
    return suffix


def _names_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.schema.json")
