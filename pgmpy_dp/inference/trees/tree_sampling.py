"""Exact sampling from a calibrated junction tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.table import Scope, Table, Variable
from pgmpy_dp.inference.trees.junction_tree import Calibration, JunctionTree


def sample(
    tree: JunctionTree, calibration: Calibration, count: int, generator: np.random.Generator
) -> NDArray[np.int32]:
    """Draw independent records from the calibrated distribution, clique by clique from the root.

    Parameters
    ----------
    tree : JunctionTree
    calibration : Calibration
        Of that tree.
    count : int
        Number of records.
    generator : numpy.random.Generator
        One uniform number is drawn per record and clique.

    Returns
    -------
    ndarray of shape (count, number of variables)
        State indices; columns in the order of `tree.variables`.

    Examples
    --------
    >>> tree = JunctionTree.build({"a": 2, "b": 2}, [("a", "b")])
    >>> calibration = tree.calibrate(np.log([[0.5, 1e-300], [1e-300, 0.5]]).ravel())
    >>> codes = sample(tree, calibration, 1000, np.random.default_rng(0))
    >>> bool((codes[:, 0] == codes[:, 1]).all())
    True
    """
    from pgmpy_dp.inference.trees import kernel

    if count < 0:
        raise ValueError(f"cannot draw {count} records")
    records = np.zeros((len(tree.variables), count), dtype=np.int32).T  # the states of a variable are contiguous
    cards = [tree.layout.cardinalities[variable] for variable in tree.variables]
    cell = np.empty(count, dtype=np.int64)
    for clique in tree.cliques:
        separator = clique.message.scope if clique.message is not None else ()
        rest = clique.table.scope[: len(clique.table.scope) - len(separator)]
        rows = np.zeros(count, dtype=np.int64)
        for number in separator:
            rows = rows * cards[number] + records[:, number]
        belief = tree.table(calibration, clique.table)
        width = int(np.prod([cards[number] for number in rest], dtype=np.int64))
        cumulative = np.cumsum(belief.reshape(width, -1).T, axis=1)
        kernel.draw_residual(np.ascontiguousarray(cumulative), rows, generator.random(count), cell)
        left = cell
        for number in reversed(rest[1:]):
            left, records[:, number] = np.divmod(left, cards[number])
        if rest:
            records[:, rest[0]] = left
    return records


def sample_counts(
    tree: JunctionTree, calibration: Calibration, count: int, draws: int, generator: np.random.Generator
) -> list[NDArray[np.int64]]:
    """Draw the tree's tables of counts of `count` independent records, without drawing the records.

    Each clique's counts given its separator's are multinomial: the cost does not grow with the number of records.

    Returns
    -------
    list of ndarray of shape (draws, states of the first variable, ...)
        For each of `tree.cliques`, with variables in its order. Tables of one draw agree on common variables.

    Examples
    --------
    >>> tree = JunctionTree.build({"a": 2, "b": 2}, [("a", "b")])
    >>> calibration = tree.calibrate(np.zeros(4))
    >>> sample_counts(tree, calibration, 100, 3, np.random.default_rng(0))[0].sum(axis=(1, 2)).tolist()
    [100, 100, 100]
    """
    cards = [tree.layout.cardinalities[variable] for variable in tree.variables]
    drawn: list[NDArray[np.int64]] = []
    for clique in tree.cliques:
        scope, separator = clique.table.scope, () if clique.message is None else clique.message.scope
        shape = [cards[number] for number in scope]
        width = int(np.prod(shape[: len(scope) - len(separator)], dtype=np.int64))
        belief = tree.table(calibration, clique.table).reshape(width, -1).T
        mass = belief.sum(axis=1, keepdims=True)
        rows = np.where(mass > 0, belief / np.where(mass > 0, mass, 1.0), 1.0 / width)
        numbers = np.full((draws, 1), count)
        if clique.parent is not None:
            above = Table((-1, *tree.cliques[clique.parent].table.scope), drawn[clique.parent])
            numbers = above.margin((-1, *separator)).values.reshape(draws, -1)
        counts = generator.multinomial(numbers, rows)
        drawn.append(counts.transpose(0, 2, 1).reshape(draws, *shape))
    return drawn


def counted(
    cardinalities: Mapping[Variable, int], codes: NDArray[np.integer], scopes: Sequence[Scope], draws: int = 1
) -> NDArray[np.int64]:
    """Count records in tables.

    Parameters
    ----------
    cardinalities : mapping of variable to int
        In the order of the columns.
    codes : ndarray of shape (records, variables)
        Concatenated draws of equal numbers of records.
    scopes : sequence of tuples of variables
        Any scopes, including those that no clique contains.
    draws : int

    Returns
    -------
    ndarray of shape (draws, cells)
        The concatenated tables.

    Examples
    --------
    >>> counted({"a": 2, "b": 2}, np.array([[0, 1], [0, 1], [1, 1], [0, 0]]), [("a", "b"), ("a",)], draws=2)
    array([[0, 2, 0, 0, 2, 0],
           [1, 0, 0, 1, 1, 1]])
    """
    place = {variable: number for number, variable in enumerate(cardinalities)}
    first = np.repeat(np.arange(draws), len(codes) // draws)
    tables = []
    for scope in scopes:
        cells, size = first, 1
        for variable in scope:
            cells = cells * cardinalities[variable] + codes[:, place[variable]]
            size *= cardinalities[variable]
        tables.append(np.bincount(cells, minlength=draws * size).reshape(draws, size))
    return np.hstack(tables)
