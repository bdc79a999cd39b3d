"""The share of finer histograms of binned numbers in a plan."""

from __future__ import annotations

from collections.abc import Sequence

from pgmpy_dp.privacy.guarantee import Learned, learned
from pgmpy_dp.schema import Clique, Schema

# Share of the privacy loss for all finer histograms together. On tables of real records (the benchmark
# numbers_in_bins.py) means, quantiles and regressions are nearer with it, and pairs hardly worse.
_SHARE = 0.03


def with_details(
    schema: Schema, cliques: Sequence[Clique], weights: Sequence[float]
) -> tuple[tuple[Clique, ...], list[float]]:
    """Add the finer histograms of the binned numbers in some tables, with equal shares of the privacy loss.

    The plan, and the cliques in it, hold what was learned from records for the schema and the cliques.

    Examples
    --------
    >>> from pgmpy_dp.schema import Bins
    >>> with_details(Schema({"age": Bins([0, 18, 65, 120])}), [("age",)], [0.97])
    ((('age',), ('age in detail',)), [0.97, 0.03])
    """
    measured = {variable for clique in cliques for variable in clique}
    names = [name for name, detail in schema.details.items() if detail.variable in measured]
    whole = _SHARE / (1.0 - _SHARE) * sum(weights)
    found = learned(schema, cliques)
    planned = Learned((*cliques, *((name,) for name in names)), found)
    return Learned((planned, [*weights, *[whole / len(names) for _ in names]]), found)
