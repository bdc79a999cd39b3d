"""Private choice and measurement of the pairs of variables that a fitted network describes worst.

Most pairs give no evidence of a missing edge, and the others give strong evidence: mutual information of 0.05 nat
between two variables moves a tenth of the records. Therefore the pairs are chosen privately from the records, and few
tables share the rest of the budget. Tests of fit account for this selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.steps import Asking, Choose, Measure, Step, TablesInSteps
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.plans.planning import shares
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.conditioning import Conditioning
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.observed.observed import agreed_total
from pgmpy_dp.observed.reading import joined_pairs
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.schema import Clique, Schema

# Shares of the privacy loss.
_CHOOSING, _MEASURING = 0.5, 0.5


def measure_farthest(
    network: Network,
    schema: Schema,
    releases: Sequence[Release],
    data: PrivateDataset,
    epsilon: float | Fraction,
    delta: float,
    pairs: int,
) -> NoisyMarginals:
    """Choose pairs that a network does not join, by references that follow from public numbers, and measure them."""
    if not isinstance(data, PrivateDataset):
        raise TypeError(
            f"data must be a PrivateDataset, whose ledger is charged, got {type(data).__name__}: write "
            "PrivateDataset(records, schema, PrivacyBudget(epsilon))."
        )
    change = data.neighbours, data.unit, data.max_rows, data.largest_weight
    for guarantee in (release.guarantee for release in releases):
        of_release = guarantee.neighbours, guarantee.unit, guarantee.max_rows, guarantee.largest_weight
        if of_release != change:  # no guarantee would hold for both
            raise ValueError(
                "The data set protects another change of the records than the network's release, which is for "
                "neighbours={!r}, unit={!r}, max_rows={!r} and largest_weight={!r}.".format(*of_release)
            )
    for variable, states in schema.states.items():
        if set(data.schema.states.get(variable, ())) != set(states):
            raise SchemaError(f"Variable {variable!r} has other states in the data set than in the network, or none.")
    schema = data.schema.select(schema.variables)
    layout, logs, _ = log_linear(network, schema.states)
    joined = joined_pairs([*layout.scopes, *(rule.variables for rule in schema.rules)])
    open_pairs = [pair for pair in combinations(schema.variables, 2) if frozenset(pair) not in joined]
    if not open_pairs:
        raise ValueError("The network joins all pairs of its variables: there is no other pair to measure.")
    tables = Conditioning(layout).pairs(logs, open_pairs)
    total, _ = agreed_total(releases)
    references: dict[Clique, Vector] = {pair: total * table for pair, table in tables.items()}
    steps = [Step(_CHOOSING, min(pairs, len(references))), Step(_MEASURING)]

    def asking() -> Asking[NoisyMarginals]:
        chosen: Sequence[Clique] = yield Choose(references, lambda _: references.keys())
        return (yield Measure(chosen, shares(schema, chosen)))

    label = f"choose and measure {steps[0].picks} of {len(references)} pairs"
    measured, _ = data.after(network, *releases).release(TablesInSteps(steps, epsilon, delta, asking, label))
    return replace(measured, chosen_among=dict.fromkeys(measured.cliques, len(references)))
