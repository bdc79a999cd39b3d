"""JSON stores networks of both kinds with the types of their states, their ties and their guarantee."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp._files import parse_json, require_known
from pgmpy_dp.models.formats.assembling import assembled_bayesian, assembled_markov
from pgmpy_dp.models.formats.learned import restore, stated
from pgmpy_dp.models.formats.saved import BAYESIAN, MARKOV
from pgmpy_dp.observed.factors import Network, log_linear, ordered_table
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Schema

_VERSION = 1


def to_json(network: Network, schema: Schema, guarantee: Guarantee | None) -> bytes:
    """Write the network as JSON."""
    markov, tied = isinstance(network, DiscreteMarkovNetwork), getattr(network, "tied", ())
    content = {
        "format": MARKOV if markov else BAYESIAN,
        "version": _VERSION,
        "schema": schema.to_dict(),
        "guarantee": None,
        **stated(network, guarantee),
        **({} if guarantee is None or guarantee.private else {"promise": str(guarantee)}),
        **({"tied": _ties_out(tied)} if tied else {}),
        **(_markov_out if markov else _bayesian_out)(network, schema),
    }
    return json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False).encode() + b"\n"


def from_json(content: bytes) -> Network:
    """Read what `to_json` wrote: a network of pgmpy's own class, with the file's `guarantee_` and `tied`."""
    stored = parse_json(content)
    if stored["format"] not in (BAYESIAN, MARKOV):
        raise ValueError("it is not a network")
    require_known(stored["version"], _VERSION)
    network = (_markov_in if stored["format"] == MARKOV else _bayesian_in)(stored, Schema.from_dict(stored["schema"]))
    restore(network, stored)
    network.tied = _ties_in(stored.get("tied", []))
    return network


def _bayesian_out(network: DiscreteBayesianNetwork, schema: Schema) -> dict[str, Any]:
    cpds = [network.get_cpds(variable) for variable in schema.variables]
    tables = [ordered_table(cpd, schema.states).ravel().tolist() for cpd in cpds]
    return {"cpds": [{"variables": c.variables, "values": table} for c, table in zip(cpds, tables, strict=True)]}


def _bayesian_in(stored: Mapping[str, Any], schema: Schema) -> DiscreteBayesianNetwork:
    cliques = [tuple(cpd["variables"]) for cpd in stored["cpds"]]
    return assembled_bayesian(schema, cliques, [np.array(cpd["values"], dtype=np.float64) for cpd in stored["cpds"]])


def _markov_out(network: DiscreteMarkovNetwork, schema: Schema) -> dict[str, Any]:
    layout, potentials, _ = log_linear(network, schema.states)
    if len(set(map(frozenset, layout.scopes))) < len(layout.scopes):
        raise ValueError("Two factors have the same variables: multiply them first.")
    logs = [log if log > -math.inf else None for log in potentials.tolist()]  # JSON has no infinity
    tables = [logs[start:stop] for start, stop in pairwise(layout.offsets)]
    factors = [{"variables": s, "log_potentials": table} for s, table in zip(layout.scopes, tables, strict=True)]
    return {"edges": sorted(sorted(edge) for edge in network.edges()), "factors": factors}


def _markov_in(stored: Mapping[str, Any], schema: Schema) -> DiscreteMarkovNetwork:
    cliques = [tuple(factor["variables"]) for factor in stored["factors"]]
    logs = [np.array(factor["log_potentials"], dtype=np.float64) for factor in stored["factors"]]
    with np.errstate(over="ignore"):  # refused when the network is assembled
        tables = [np.exp(np.where(np.isnan(table), -math.inf, table)) for table in logs]
    return assembled_markov(schema, [(first, second) for first, second in stored["edges"]], cliques, tables)


def _ties_out(tied: Any) -> list[Any]:
    """List pairs of a name (or null) and cliques, since keys in JSON cannot be tuples."""
    return [*tied.items()] if isinstance(tied, Mapping) else [[None, group] for group in tied]


def _ties_in(pairs: list[Any]) -> Any:
    if pairs and pairs[0][0] is not None:
        return {tuple(name): cliques for name, cliques in pairs}
    return [cliques for _, cliques in pairs]
