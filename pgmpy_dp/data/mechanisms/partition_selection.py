"""States are discovered that enough units have: private partition selection.

Every value that a row has gets its number of rows, discrete Laplace noise, and is released if the sum reaches a public
threshold. What no row has is never released, so that what could be chosen need not be known.

Sensitivity. A unit has at most k rows, so that it adds whole numbers a(v) to the counts of some values v, at most k in
sum. With noise Z of scale b, P(Z >= m) is t(m) = q**m / (1 + q), where q = exp(-1/b), for every whole m >= 0. Let T be
the threshold, T >= k.

1. Call a value new if the unit alone has it. With the unit it is released with probability t(T - a(v)), and never
   without it. So some new value is released with probability d = 1 - prod (1 - t(T - a(v))). Since -log(1 - t(T - a))
   is convex in a, of all ways to deal k rows to values the worst are to deal all to one, or each to another:
   d <= max(t(T - k), k t(T - 1)) = delta.
2. Of the other values, noisy counts with and without the unit have odds of at most exp(c / b), where c is the sum of
   a(v) over them: k at most where a unit is added or removed. Where it is replaced, what it adds and what the other one
   added differ by 2 k at most. So epsilon = table_sensitivity / b.
3. Let P be the law of what is released with the unit and Q that without, e = exp(epsilon). Both are independent in the
   two parts. An event has P(A) <= P(A and nothing new) + d <= e Q(A) + d. The other way, Q(A) - e P(A) is at most
   Q(A0) - e (1 - d) P0(A0), where A0 is what A holds without new values and P0 the law of the other values. The largest
   Q(A0) - x P0(A0) is a convex function of x that is 1 at 0 and 0 at e, so at most 1 - x / e, here d.
4. Where a unit is replaced both data sets have new values, of probabilities d and d'. The same steps give
   P(A) - e Q(A) <= d + (1 - d) max(0, 1 - (1 - d') / (1 - d)) = max(d, d') <= delta.

A column of more than :data:`~pgmpy_dp.records.values.MAX_VALUES` different values is refused before the charge, and one
unit can decide that: of two neighbours one may be refused and the other not, and no epsilon covers a pair of which this
is so. The argument above is for pairs of which neither is refused. The refusal is an error for the owner, like that of
a cell that is no state: it has no value, no count and no release. If the owner tells others that this column was
refused, they learn, without a price, that it has more than that many values, and nothing else. What is released from
any other column is not changed by the limit, which is a public number.

What is released is the set of values alone, in an order of their own. Other measurements count them anew.
OpenDP 0.16 has a mechanism of this kind, make_laplace_threshold. Its price is that of counts above the threshold, but
it releases those at the threshold as well: its delta is too small by a factor of exp(1/b) for whole numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.data.mechanisms.tables import delta_within, promise
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.ledger import Charge
from pgmpy_dp.privacy.mechanisms import laplace_scale, table_sensitivity
from pgmpy_dp.privacy.noise import NoiseSource, payment_name
from pgmpy_dp.records.values import ValueCounts
from pgmpy_dp.release import DiscoveredStates
from pgmpy_dp.schema import State

# Delta is less than what is charged by so many parts of itself, which is far more than floats round.
_ROUNDING = 1e-9


@dataclass(frozen=True)
class PartitionSelection:
    """The values of a variable that enough units have; see :meth:`pgmpy_dp.PrivateDataset.discover_states`."""

    variable: str
    epsilon: float | Fraction
    delta: float

    def quote(self, public: PublicTable) -> Quote:
        """Price the choice; the terms are the scale of the noise and the threshold."""
        schema, variable = public.schema, self.variable
        schema.require([(variable,)])
        if variable not in schema.undiscovered:
            raise SchemaError(
                f"Variable {variable!r} has public states. To discover others declare none, and what stands for the "
                f"rest: Schema({{{variable!r}: []}}, other={{{variable!r}: 'other'}})."
            )
        if any(variable in rule.variables for rule in schema.rules):
            raise SchemaError(
                f"Rules name states, and those of {variable!r} are not public yet: state the rules about it in the "
                "schema with the states that were discovered."
            )
        if public.unit is not None and public.unit.max_rows is None:
            raise ValueError(
                "States are discovered among rows: say how many of a unit count, PrivateDataset(..., max_rows=...)."
            )
        epsilon, delta = exact_positive("epsilon", self.epsilon), delta_within(public, self.delta)
        scale = laplace_scale(epsilon, table_sensitivity(public.neighbours, "l1", public.contribution))
        threshold = least_threshold(scale, delta, public.contribution)
        charge = Charge(f"states of {variable}", "partition selection", epsilon=epsilon, delta=Fraction(str(delta)))
        return Quote(charge, (scale, threshold), promise(public, epsilon, "partition_selection", delta=delta))

    def read(self, quote: Quote, held: Held) -> ValueCounts:
        """Count the rows of every value."""
        return held.records.value_counts(self.variable)

    def draw(self, quote: Quote, public: PublicTable, exact: ValueCounts, noise: NoiseSource) -> DiscoveredStates:
        """Add independent noise to every count, and keep the values that reach the threshold."""
        scale, threshold = quote.terms
        values = sorted(exact, key=_order)
        noisy = noise.discrete_laplace(np.array([exact[value] for value in values], dtype=np.int64), scale)
        found = [value for value, rows in zip(values, noisy.tolist(), strict=True) if rows >= threshold]
        guarantee = quote.guarantee.shared_as(payment_name(noise))
        own = {self.variable: guarantee.shared[-1:]}
        schema = public.schema.with_states(self.variable, found)
        schema = schema.replace(found_by={**schema.found_by, **own})
        return DiscoveredStates(schema, self.variable, scale, threshold, guarantee)


def least_threshold(scale: float, delta: float, rows: int) -> int:
    """Find the least threshold at which new values of a unit of so many rows are released with probability delta.

    Examples
    --------
    >>> least_threshold(scale=1.0, delta=1e-6, rows=1)
    15
    """

    def tail(values: int) -> int:
        """Find the least m with t(m) at most delta for so many values together."""
        logarithm = math.log(values) - math.log(delta) - math.log1p(math.exp(-1.0 / scale)) + _ROUNDING
        return max(math.ceil(scale * logarithm), 0)

    return max(1 + tail(rows), rows + tail(1))


def _order(value: State) -> tuple[str, State]:
    return type(value).__name__, value
