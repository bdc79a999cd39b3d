"""Encoded records are counted by clique, in blocks that stay in the cache."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.table import Table
from pgmpy_dp.records.columns import Codes
from pgmpy_dp.schema import Clique, Schema

MAX_CELLS = 2**26
"""Largest table counted, in cells: half a gigabyte of 64-bit counts."""

Counts = NDArray[np.int64]

_BLOCK = 2**16
# Cliques are counted together as long as their joint table is no larger than this, in cells: it stays in the cache.
_SHARED_CELLS = 2**13


def count_all(
    codes: Mapping[str, Codes], schema: Schema, cliques: Sequence[Clique], weights: NDArray[np.int64] | None = None
) -> dict[Clique, Counts]:
    """Count the records in each cell of several cliques; see :func:`count`."""
    tables: dict[Clique, Counts] = {}
    for scope, members in shared_scopes(schema, cliques):
        table = Table(scope, count(codes, schema, scope, weights))
        tables |= {clique: table.margin(clique).values for clique in members}
    return {clique: tables[clique] for clique in cliques}


def count(
    codes: Mapping[str, Codes], schema: Schema, clique: Clique, weights: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Count the records in each cell of a clique, or add their weights.

    Parameters
    ----------
    codes : mapping of str to ndarray, shape (n_records,)
        From :func:`~pgmpy_dp.records.frames.encode`.
    schema : Schema
    clique : tuple of str
    weights : ndarray of int64, shape (n_records,), optional
        At most 2**20 each.

    Returns
    -------
    ndarray of int64
        Axes in clique order, states in schema order.

    Raises
    ------
    SchemaError
        If the clique does not fit the schema or has more than `MAX_CELLS` cells.
    """
    require_countable(schema, clique)
    shape = schema.shape(clique)
    cells = schema.cells(clique)
    columns = [codes[variable] for variable in clique]
    rows = columns[0].shape[0]
    # Blocks keep the cell numbers in cache; a block shorter than the table would make bincount's zeros the
    # main work.
    block = max(_BLOCK, cells)
    kind = np.min_scalar_type(cells)  # short numbers are made faster
    table = np.zeros(cells, dtype=np.int64)
    for start in range(0, rows, block):
        cell = columns[0][start : start + block].astype(kind)
        for column, states in zip(columns[1:], shape[1:], strict=True):
            cell *= states
            cell += column[start : start + block]
        if weights is None:
            table += np.bincount(cell.astype(np.intp), minlength=cells)
        else:  # adds floats, here whole numbers below 2**53
            table += np.bincount(cell, weights[start : start + block], minlength=cells).astype(np.int64)
    return table.reshape(shape)


def distinct(codes: Mapping[str, Codes], variables: Iterable[str]) -> tuple[Codes, NDArray[np.int64]]:
    """Find the distinct records in some variables, and which of them each record is.

    Parameters
    ----------
    codes : mapping of str to ndarray, shape (n_records,)
        From :func:`~pgmpy_dp.records.frames.encode`.
    variables : iterable of str

    Returns
    -------
    rows : ndarray, shape (n_distinct, n_variables)
    groups : ndarray of int64, shape (n_records,)
    """
    # A record as one number, which sorts some ten times faster than a row.
    columns = [codes[variable] for variable in variables]
    groups, numbers = np.zeros(columns[0].size, dtype=np.int64), 1
    for column in columns:
        states = int(column.max(initial=0)) + 1
        if numbers * states > 2**62:
            found, groups = np.unique(groups, return_inverse=True)
            numbers = found.size
        groups = groups * states + column
        numbers *= states
    _, first, groups = np.unique(groups, return_index=True, return_inverse=True)
    return np.stack([column[first] for column in columns], axis=1), groups.astype(np.int64)


def shared_scopes(schema: Schema, cliques: Sequence[Clique]) -> list[tuple[Clique, list[Clique]]]:
    """Put cliques together whose joint table is small, so that they are counted at once.

    First fit, larger cliques first.

    Returns
    -------
    list of (clique, list of cliques)
        Each joint clique, and the cliques that are its margins.

    Examples
    --------
    >>> schema = Schema({v: [0, 1] for v in "abc"})
    >>> shared_scopes(schema, [("a", "b"), ("b", "c"), ("c",)])
    [(('a', 'b', 'c'), [('a', 'b'), ('b', 'c'), ('c',)])]
    """
    scopes: list[tuple[Clique, list[Clique]]] = []
    for clique in sorted(cliques, key=schema.cells, reverse=True):
        for i, (scope, members) in enumerate(scopes):
            joint = (*scope, *(variable for variable in clique if variable not in scope))
            if len(joint) == len(scope) or schema.cells(joint) <= _SHARED_CELLS:
                scopes[i] = (joint, [*members, clique])
                break
        else:
            scopes.append((clique, [clique]))
    return scopes


def require_countable(schema: Schema, clique: Clique) -> None:
    """Refuse a clique whose table has more than `MAX_CELLS` cells."""
    cells = schema.cells(clique)
    if cells > MAX_CELLS:
        raise SchemaError(
            f"The table of clique {clique} has {cells} cells, more than the {MAX_CELLS} that are counted: "
            "measure smaller cliques or declare fewer states."
        )
