"""Private partition selection: discover the states that many units have.

The number of rows of every value that occurs gets discrete Laplace noise, and the value is released if the sum reaches
a public threshold. A value that does not occur is never released, so the set of possible values need not be known.

Sensitivity. A unit has at most k rows, so it adds integers a(v), with a sum of at most k, to the counts of some values
v. For noise Z of scale b and every integer m >= 0, P(Z >= m) is t(m) = q**m / (1 + q), where q = exp(-1/b). Let T be
the threshold, T >= k.

1. Call a value new if only this unit has it. With the unit it is released with probability t(T - a(v)), without the
   unit never. So some new value is released with probability d = 1 - prod (1 - t(T - a(v))). Since -log(1 - t(T - a))
   is convex in a, the worst ways to distribute k rows are all to one value, or each to another value:
   d <= max(t(T - k), k t(T - 1)) = delta.
2. For the other values, the probabilities of noisy counts with and without the unit have a ratio of at most exp(c / b),
   where c is the sum of a(v) over these values: at most k where a unit is added or removed. Where it is replaced, what
   it adds and what the other unit added differ by at most 2 k. So epsilon = table_sensitivity / b.
3. Let P be the distribution of the release with the unit and Q that without it, and e = exp(epsilon). In both, new and
   other values are independent. An event has P(A) <= P(A and nothing new) + d <= e Q(A) + d. Conversely, Q(A) - e P(A)
   is at most Q(A0) - e (1 - d) P0(A0), where A0 is the part of A without new values and P0 the distribution of the
   other values. The largest Q(A0) - x P0(A0) is a convex function of x that is 1 at x = 0 and 0 at x = e, so it is at
   most 1 - x / e, which is d at x = e (1 - d).
4. Where a unit is replaced, both data sets have new values, of probabilities d and d'. The same steps give
   P(A) - e Q(A) <= d + (1 - d) max(0, 1 - (1 - d') / (1 - d)) = max(d, d') <= delta.

A column of more than :data:`~pgmpy_dp.records.columns.MAX_VALUES` different values is refused before the charge, and
one unit can decide this: of two neighbours one may be refused and the other not, and no epsilon covers such a pair. The
argument above is for pairs of which neither is refused. The refusal is an error for the owner, like that of an
undeclared cell: it shows no value and no count, and nothing is released. If the owner tells others that this column was
refused, they learn for free that it has more than that number of values, and nothing else. The limit is a public number
and does not change what is released from any other column.

Only the set of values is released, in sorted order. Other measurements count them anew.
OpenDP 0.16 has a similar mechanism, make_laplace_threshold. Its price is that of releasing counts above the threshold,
but it also releases those at the threshold: its delta is too small by a factor of exp(1/b) for integers.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, PublicRecords, Quote
from pgmpy_dp.data.mechanisms.tables import delta_within
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.cost import Approx
from pgmpy_dp.privacy.noise import NoiseSource, laplace_scale, smallest_threshold, table_sensitivity
from pgmpy_dp.records.columns import ValueCounts
from pgmpy_dp.release import DiscoveredStates


@dataclass(frozen=True)
class PartitionSelection:
    """Discover the values of a variable that many units have; see :meth:`pgmpy_dp.PrivateDataset.discover_states`."""

    variable: str
    epsilon: float | Fraction
    delta: float

    def quote(self, public: PublicRecords) -> Quote[tuple[float, int]]:
        """Price the selection; the terms are the noise scale and the threshold."""
        schema, variable = public.schema, self.variable
        schema.require([(variable,)])
        if variable not in schema.undiscovered:
            raise SchemaError(
                f"Variable {variable!r} has public states: "
                "to discover states, declare none and a state for all others, "
                f"Schema({{{variable!r}: []}}, other={{{variable!r}: 'other'}})."
            )
        if any(variable in rule.variables for rule in schema.rules):
            raise SchemaError(
                f"Rules refer to states, and those of {variable!r} are not public yet: state the rules about it in the "
                "schema with the discovered states."
            )
        if public.unit is not None and public.unit.max_rows is None:
            raise ValueError(
                "States are discovered among rows: limit the rows per unit, PrivateDataset(..., max_rows=...)."
            )
        epsilon, delta = exact_positive("epsilon", self.epsilon), delta_within(public, self.delta)
        # Rows count alike, whatever they weigh.
        scale = laplace_scale(epsilon, table_sensitivity(public.neighbours, "l1", public.rows))
        threshold = smallest_threshold(scale, delta, public.rows)
        label, loss = f"states of {variable}", Approx(epsilon, Fraction(str(delta)))
        noise = (("scale", scale), ("threshold", threshold))
        return Quote(public.cost(label, "partition_selection", loss, noise=noise, chooses=label), (scale, threshold))

    def read(self, quote: Quote[tuple[float, int]], records: PrivateRecords) -> ValueCounts:
        """Count the rows of every value."""
        return records.source.value_counts(self.variable)

    def draw(
        self, quote: Quote[tuple[float, int]], public: PublicRecords, exact: ValueCounts, noise: NoiseSource
    ) -> DiscoveredStates:
        """Add independent noise to every count, and keep values that reach the threshold."""
        scale, threshold = quote.terms
        values = sorted(exact, key=lambda value: (type(value).__name__, value))
        noisy = noise.discrete_laplace(np.array([exact[value] for value in values], dtype=np.int64), scale)
        results = [value for value, rows in zip(values, noisy.tolist(), strict=True) if rows >= threshold]
        schema = public.schema.with_states(self.variable, results)
        schema = schema.replace(found={**schema.found, self.variable: quote.guarantee})
        return DiscoveredStates(schema, self.variable, scale, threshold, quote.guarantee)
