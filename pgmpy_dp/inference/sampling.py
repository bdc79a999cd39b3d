"""A calibrated junction tree is sampled exactly."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.junction_tree import Calibration, JunctionTree


def sample(
    tree: JunctionTree, calibration: Calibration, count: int, generator: np.random.Generator
) -> NDArray[np.int32]:
    """Draw independent records from the calibrated distribution, clique after clique from the root.

    Parameters
    ----------
    tree : JunctionTree
    calibration : Calibration
        From that tree.
    count : int
        Number of records.
    generator : numpy.random.Generator
        One uniform number is drawn for every record and clique.

    Returns
    -------
    ndarray of shape (count, number of variables)
        State numbers; columns in the order of `tree.variables`.

    Examples
    --------
    >>> tree = JunctionTree.build({"a": 2, "b": 2}, [("a", "b")])
    >>> calibration = tree.calibrate(np.log([[0.5, 1e-300], [1e-300, 0.5]]).ravel())
    >>> codes = sample(tree, calibration, 1000, np.random.default_rng(0))
    >>> bool((codes[:, 0] == codes[:, 1]).all())
    True
    """
    from pgmpy_dp.inference import kernel

    if count < 0:
        raise ValueError(f"cannot draw {count} records")
    records = np.zeros((len(tree.variables), count), dtype=np.int32).T  # a variable's states lie together
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
