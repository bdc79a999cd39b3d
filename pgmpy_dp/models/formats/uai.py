"""UAI, the format of the inference competitions, has no names: these are in a Table Schema file beside it.

Variables are in schema order. As the format requires, the child is last in the scope of a Bayesian network's table, and
the last variable varies fastest. pgmpy 1.1.2 writes Bayesian tables with the child first and reads them with the
parents in no fixed order, so its reader returns wrong CPDs. It reads Markov networks correctly, but without isolated
variables and without exponents in numbers, which are therefore not used here.

Source: https://uaicompetition.github.io/uci-2022/file-formats/model-format/
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.models.formats.assembling import assembled_bayesian, assembled_markov
from pgmpy_dp.observed.factors import Network, ordered_table
from pgmpy_dp.schema import Clique, Schema

_LIMIT = 10**8
_MOST_UNUSED = 2**16  # states of variables without a table


def to_uai(network: Network, schema: Schema) -> bytes:
    """Write the network as UAI."""
    bayesian = isinstance(network, DiscreteBayesianNetwork)
    place = {variable: number for number, variable in enumerate(schema.variables)}
    factors = [network.get_cpds(v) for v in schema.variables] if bayesian else network.get_factors()
    scopes, tables = [], []
    for factor in factors:
        scope, values = list(factor.variables), ordered_table(factor, schema.states)
        if bayesian:  # the child goes last
            scope, values = [*scope[1:], scope[0]], np.moveaxis(values, 0, -1)
        scopes.append(scope)
        tables.append(values)
    lines = [
        "BAYES" if bayesian else "MARKOV",
        str(len(place)),
        " ".join(map(str, schema.cardinalities().values())),
        str(len(scopes)),
        *(" ".join(map(str, [len(scope), *(place[v] for v in scope)])) for scope in scopes),
    ]
    for table in tables:
        numbers = (np.format_float_positional(value, trim="0") for value in table.ravel())
        lines += ["", str(table.size), " ".join(numbers)]
    return ("\n".join(lines) + "\n").encode()


def from_uai(content: bytes, schema: Schema | None) -> Network:
    """Read a UAI file; without a schema the variables are var_0, var_1, ... and their states 0, 1, ..."""
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
    if kind == "BAYES":
        families = [(clique[-1], *clique[:-1]) for clique in cliques]
        return assembled_bayesian(schema, families, [np.moveaxis(table, -1, 0) for table in tables])
    products = _products(cliques, tables)
    edges = [pair for clique in products for pair in combinations(clique, 2)]
    return assembled_markov(schema, edges, list(products), list(products.values()))


def _products(cliques: Sequence[Clique], tables: Sequence[Vector]) -> dict[Clique, Vector]:
    """Multiply tables over the same variables, which the format allows but `PrivateMarkovNetwork` does not."""
    first: dict[frozenset[str], Clique] = {}
    products: dict[Clique, Vector] = {}
    for clique, table in zip(cliques, tables, strict=True):
        own = first.setdefault(frozenset(clique), clique)
        with np.errstate(over="ignore", invalid="ignore"):  # refused when the network is assembled
            products[own] = products.get(own, 1.0) * Table(clique, table).margin(own).values
    return products


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
    return np.array([float(next(words, "the file ends early")) for _ in range(math.prod(shape))]).reshape(shape)
