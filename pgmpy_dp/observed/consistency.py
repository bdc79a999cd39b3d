"""Mutual consistency: tables that agree where they overlap (Chowdhury et al., equations 16 to 18; PriView)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.observed.informed_marginals import InformedMarginals, ReleasedTables
from pgmpy_dp.privacy.checks import choice
from pgmpy_dp.schema import Clique

WEIGHTS = ("epsilon", "inverse_variance")
MAX_INTERSECTIONS = 20_000

Tables = Mapping[Clique, NDArray[np.float64]]


def mutual_consistency(release: ReleasedTables, weights: str = "inverse_variance") -> dict[Clique, NDArray[np.float64]]:
    """Change the tables of a release as little as possible so that they agree on all shared marginals.

    This is post-processing and costs no privacy. Cells may be negative, before and after.

    Parameters
    ----------
    release : NoisyMarginals or InformedMarginals
    weights : {"epsilon", "inverse_variance"}
        Weights of the tables in a common marginal: their privacy loss, as published, or the inverse variance of the
        marginal in each, which is more accurate.

    Returns
    -------
    dict of clique to ndarray
        Counts. If the number of records is public, the tables sum to it.

    Raises
    ------
    ValueError
        For other weights, or tables that overlap in too many ways.

    Examples
    --------
    >>> from pgmpy_dp.release import Guarantee, NoisyMarginals
    >>> from pgmpy_dp.schema import Schema
    >>> guarantee = Guarantee.of(2.0)
    >>> schema = Schema({"a": ["x", "y"], "b": ["x", "y"]})
    >>> tables = {("a",): np.array([6, 10]), ("a", "b"): np.array([[3, 1], [5, 3]])}
    >>> noisy = NoisyMarginals(schema, tables, {("a",): 1.0, ("a", "b"): 1.0}, guarantee)
    >>> agreed = mutual_consistency(noisy, "epsilon")
    >>> agreed["a",], agreed["a", "b"].sum(axis=1)
    (array([5., 9.]), array([5., 9.]))
    """
    tables = {clique: table.astype(np.float64) for clique, table in release.tables.items()}
    return make_consistent(tables, consistency_weights(release, weights), release.public_total)


def consistency_weights(release: ReleasedTables, weights: str) -> dict[Clique, float]:
    """Return each table's weight in common marginals, to which only its cells times their variance matter."""
    choice(*WEIGHTS)("weights", weights)
    if weights == "epsilon" and isinstance(release, InformedMarginals):
        raise ValueError('Public tables have no epsilon to weight them by: leave weights="inverse_variance".')
    if release.guarantee.mechanism == "none":
        return dict.fromkeys(release.cliques, 1.0)
    if weights == "epsilon":
        return {clique: 1.0 / scale for clique, scale in release.scales.items()}
    return {clique: 1.0 / (release.variances[clique] * table.size) for clique, table in release.tables.items()}


def make_consistent(
    tables: Tables, weights: Mapping[Clique, float], total: float | None = None
) -> dict[Clique, NDArray[np.float64]]:
    """Make any tables of counts agree, as `mutual_consistency` does.

    For each set A of variables that tables have in common, smallest first, the marginals over A are averaged (17) and
    each table's deviation from the average is spread evenly over its cells (18). A later, larger A does not change the
    marginals over smaller ones, since its average agrees with them.
    """
    agreed = {clique: np.array(table, dtype=np.float64) for clique, table in tables.items()}
    for common in intersections(tables):
        containing = [clique for clique in agreed if common <= set(clique)]
        order = [variable for variable in containing[0] if variable in common]
        marginals = [Table(clique, agreed[clique]).margin(order).values for clique in containing]
        scale = sum(weights[clique] for clique in containing)
        if total is None or common:
            average = sum(weights[clique] / scale * table for clique, table in zip(containing, marginals, strict=True))
        else:
            average = np.array(total)
        for clique, marginal in zip(containing, marginals, strict=True):
            share = (average - marginal) * (marginal.size / agreed[clique].size)
            agreed[clique] += Table(tuple(order), share).expand(clique)
    return agreed


def intersections(cliques: Iterable[Clique]) -> list[frozenset[str]]:
    """Find all intersections of two or more cliques, smallest first, with the empty set; ValueError if too many."""
    sets = [frozenset(clique) for clique in cliques]
    common: set[frozenset[str]] = {frozenset()}
    for number, clique in enumerate(sets):
        common |= {clique & other for other in sets[:number]} | {clique & other for other in common}
        if len(common) > MAX_INTERSECTIONS:
            raise ValueError(
                f"The tables overlap in more than {MAX_INTERSECTIONS:,} ways, too many for mutual consistency: "
                "use PrivateMLE with consistency=None or 'inference', or CollectiveEM."
            )
    return sorted(common, key=lambda variables: (len(variables), sorted(variables)))
