"""UAI, the format of the inference competitions: numbers alone, so names go into a Table Schema file beside it.

Variables stand in schema order. Tables are written as the format asks: the child last in a Bayesian network's scope,
the last variable running fastest. pgmpy 1.1.2 writes Bayesian tables with the child first and reads them with the
parents in no fixed order, so its reader returns other CPDs than a file holds; Markov networks it reads rightly, but
without isolated variables and without exponents in numbers, which are therefore not used here.

Source: https://uaicompetition.github.io/uci-2022/file-formats/model-format/
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp.estimators.networks import Network, tabular_cpd
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.schema import Schema

_LIMIT = 10**8
_MOST_UNUSED = 2**16  # states of variables in no table


def to_uai(network: Network, schema: Schema) -> bytes:
    """The network as UAI."""
    bayesian = isinstance(network, DiscreteBayesianNetwork)
    place = {variable: number for number, variable in enumerate(schema.variables)}
    factors = [network.get_cpds(v) for v in schema.variables] if bayesian else network.get_factors()
    scopes, tables = [], []
    for factor in factors:
        scope = list(factor.variables)
        values = np.asarray(factor.values)
        for axis, variable in enumerate(scope):
            own = list(factor.state_names[variable])
            values = values.take([own.index(state) for state in schema.states[variable]], axis=axis)
        if bayesian:  # the child goes last
            scope, values = [*scope[1:], scope[0]], np.moveaxis(values, 0, -1)
        scopes.append(scope)
        tables.append(values)
    lines = [
        "BAYES" if bayesian else "MARKOV",
        str(len(place)),
        " ".join(str(schema.cardinality(variable)) for variable in schema.variables),
        str(len(scopes)),
        *(" ".join(map(str, [len(scope), *(place[v] for v in scope)])) for scope in scopes),
    ]
    for table in tables:
        numbers = (np.format_float_positional(value, trim="0") for value in table.ravel())
        lines += ["", str(table.size), " ".join(numbers)]
    return ("\n".join(lines) + "\n").encode()


def from_uai(content: bytes, schema: Schema | None) -> Network:
    """Inverse of `to_uai`; without a schema the variables are var_0, var_1, ... and their states 0, 1, ...

    Raises
    ------
    ValueError
        If the file is no network, or the schema is of another shape.
    """
    parts = content.decode("utf-8-sig").split()
    words = iter(parts)
    kind = next(words, "")
    if kind not in ("BAYES", "MARKOV"):
        raise ValueError("a UAI file begins with BAYES or MARKOV.")
    cards = _whole(words, _count(words))
    if sum(cards) > max(len(parts), _MOST_UNUSED):  # a table has a number for each state of its variables
        raise ValueError("it declares more states than its tables can have.")
    if schema is None:
        schema = Schema({f"var_{number}": range(card) for number, card in enumerate(cards)})
    names = schema.variables
    if cards != list(schema.shape(names)):
        raise ValueError("the numbers of states are not those of the schema beside it.")
    scopes = [tuple(_whole(words, _count(words))) for _ in range(_count(words))]
    if any(number >= len(names) for scope in scopes for number in scope):
        raise ValueError("a table names a variable that is not declared.")
    tables = [_table(words, [cards[number] for number in scope]) for scope in scopes]
    if next(words, None) is not None:
        raise ValueError("something follows the last table.")
    cliques = [tuple(names[number] for number in scope) for scope in scopes]
    return (_bayesian if kind == "BAYES" else _markov)(schema, cliques, tables)


def _bayesian(schema: Schema, cliques: Sequence[tuple[str, ...]], tables: Sequence[Vector]) -> DiscreteBayesianNetwork:
    network = DiscreteBayesianNetwork()
    network.add_nodes_from(schema.variables)
    network.add_edges_from([(parent, clique[-1]) for clique in cliques for parent in clique[:-1]])
    for clique, table in zip(cliques, tables, strict=True):
        network.add_cpds(tabular_cpd((clique[-1], *clique[:-1]), np.moveaxis(table, -1, 0), schema.states))
    return network


def _markov(schema: Schema, cliques: Sequence[tuple[str, ...]], tables: Sequence[Vector]) -> DiscreteMarkovNetwork:
    network = DiscreteMarkovNetwork()
    network.add_nodes_from(schema.variables)
    network.add_edges_from([(a, b) for clique in cliques for i, a in enumerate(clique) for b in clique[i + 1 :]])
    for clique, table in zip(cliques, tables, strict=True):
        states = {variable: list(schema.states[variable]) for variable in clique}
        network.add_factors(DiscreteFactor(list(clique), list(table.shape), table.ravel(), state_names=states))
    return network


def _count(words: Iterator[str]) -> int:
    return _whole(words, 1)[0]


def _whole(words: Iterator[str], count: int) -> list[int]:
    numbers = [int(next(words, "the file ends early")) for _ in range(count)]
    if any(not 0 <= number <= _LIMIT for number in numbers):
        raise ValueError("a count is negative or too large.")
    return numbers


def _table(words: Iterator[str], shape: Sequence[int]) -> Vector:
    if _count(words) != math.prod(shape):
        raise ValueError("a table has another number of values than its variables have states.")
    values = np.array([float(next(words, "the file ends early")) for _ in range(math.prod(shape))])
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise ValueError("a table holds numbers that are negative or not finite.")
    return values.reshape(shape)
