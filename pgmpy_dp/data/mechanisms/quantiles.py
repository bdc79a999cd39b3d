"""Bins with edges at private quantiles.

Sensitivity. Every inner edge is drawn by permute-and-flip among the fine public edges; :func:`score_sensitivity` bounds
how much one unit changes its scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, PublicRecords, Quote
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.cost import Pure
from pgmpy_dp.privacy.noise import NoiseSource, selection_scale
from pgmpy_dp.records.memory import Counts
from pgmpy_dp.schema import Bins

# The fine edges, and the scale at which each inner edge costs an equal share.
_Terms = tuple[Sequence[float], list[float]]


@dataclass(frozen=True)
class QuantileBins:
    """Choose some of a variable's edges, at about equal numbers of values; see `PrivateDataset.quantile_bins`."""

    variable: str
    parts: int
    epsilon: float | Fraction

    def quote(self, public: PublicRecords) -> Quote[_Terms]:
        """Price the edges; the terms are the fine edges, and the scale at which an inner edge costs an equal share."""
        schema, variable = public.schema, self.variable
        schema.require([(variable,)])
        if variable not in schema.bins:
            raise SchemaError(f"Variable {variable!r} has no bins: declare fine public ones, Bins(range(0, 121)).")
        edges = schema.bins[variable].edges
        if type(self.parts) is not int or not 2 <= self.parts < len(edges):
            raise ValueError(
                f"parts must be a whole number from 2 to {len(edges) - 1}, the number of fine bins, got {self.parts!r}."
            )
        epsilon = exact_positive("epsilon", self.epsilon)
        scales = [
            selection_scale(
                epsilon / (self.parts - 1),
                score_sensitivity(quantile, self.parts, public.neighbours, public.contribution),
            )
            for quantile in range(1, self.parts)
        ]
        label, chooses = f"{self.parts} bins of {variable}", f"bins of {variable}"
        return Quote(public.cost(label, "permute_and_flip", Pure(epsilon), chooses=chooses), (edges, scales))

    def read(self, quote: Quote[_Terms], records: PrivateRecords) -> Counts:
        """Count the values in each fine bin."""
        edges, _ = quote.terms
        return records.counts([(self.variable,)])[self.variable,][: len(edges) - 1]

    def draw(self, quote: Quote[_Terms], public: PublicRecords, exact: Counts, noise: NoiseSource) -> Bins:
        """Return bins with the first and the last edge, and those drawn between them."""
        edges, scales = quote.terms
        scores = edge_scores(exact, self.parts)
        chosen = {edges[1 + noise.permute_and_flip(each, scale)] for each, scale in zip(scores, scales, strict=True)}
        fine = public.schema.bins[self.variable]
        return type(fine)([edges[0], *sorted(chosen), edges[-1]], decimals=fine.decimals, found=quote.guarantee)


def edge_scores(counts: Counts, parts: int) -> Iterator[NDArray[np.int64]]:
    """Compute each inner edge's distance from each quantile, in ranks times `parts`: the lower, the better.

    If B of n values are below an edge, its score for quantile j of k is |k B - j n|.
    """
    below = counts.cumsum()
    for quantile in range(1, parts):
        yield np.abs(parts * below[:-1] - quantile * below[-1])


def score_sensitivity(quantile: int, parts: int, neighbours: str, rows: int) -> int:
    """Bound how much one unit of at most `rows` rows changes a score of :func:`edge_scores`.

    A row adds k - j to k B - j n if its value is below the edge, -j if it is above, and 0 if it is in no bin. Adding or
    removing a unit thus changes it by at most max(j, k - j) `rows`. Replacing a unit moves each of at most `rows` rows
    from one of these cases to another, which changes it by at most k per row, so by at most k `rows`. The absolute
    value changes by no more.
    """
    return rows * (max(quantile, parts - quantile) if neighbours == "add_remove" else parts)
