"""A private computation is tried until its own result says that it is good enough.

Price. A try is (e, d)-differentially private, whatever it does: it is handed the records behind a ledger of its own,
which lets no more through, and closes when the try is over. It ends in a result, or in failure. After a failure a coin
is thrown, and with probability g all ends with no result; else there is another try, on fresh noise. How many there
were is not told (Liu and Talwar 2019, Algorithm 1, without an end to the tries). An exception is a result too.

Of data sets D and D' let E and E' be expectations over one try. For a set S of outcomes let f be 1 for results in S, g
for failure if S has "no result", and 0 otherwise; let h be 1 for any result and g for failure. Since each failure goes
on with probability 1 - g, what comes out is in S with probability A(S) = E f / E h. Both functions are between 0 and 1,
so that E f <= exp(e) E' f + d and E' h <= exp(e) E h + d, and h is at least g. Therefore

    A(S) <= (exp(e) E' f + d) / E h <= exp(e) (exp(e) + d / E h) A'(S) + d / E h <= exp(2 e) A'(S) + d (exp(e) + 1) / g.

So all tries together cost (2 e, d (exp(e) + 1) / g), and 2 e where d is 0, whatever g is: half of epsilon is what a try
may spend. OpenDP's `make_select_private_candidate` states the same for d = 0, and has no d.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.data.mechanisms.tables import delta_within
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.checks import exact_positive, number, rounded_down
from pgmpy_dp.privacy.ledger import Charge
from pgmpy_dp.privacy.noise import NoiseSource


@dataclass(frozen=True)
class Retries:
    """Tries until one gives a result; see :meth:`pgmpy_dp.PrivateDataset.retry`.

    Attributes
    ----------
    attempt : callable
        From the budget of a try, and the epsilon and delta of all, to its result, or None where it fails.
    epsilon, delta : float
        Of all tries together.
    stop : float
        The probability with which all ends after a failure.
    """

    attempt: Callable[[PrivacyBudget, tuple[Fraction, float]], Any]
    epsilon: float | Fraction
    delta: float = 0.0
    stop: float = 0.05

    def quote(self, public: PublicTable) -> Quote:
        """Price all tries; the terms are what one may spend, and the probability to stop."""
        epsilon = exact_positive("epsilon", self.epsilon)
        number(above=0.0, most=1.0)("stop", self.stop)
        delta = delta_within(public, self.delta) if self.delta else 0.0
        one, stop = epsilon / 2, Fraction(str(self.stop))
        charge = Charge("retry until accepted", "selection", epsilon=epsilon, delta=Fraction(str(delta)) or None)
        return Quote(charge, (one, _delta_of_one(one, delta, stop), stop, (epsilon, delta)))

    def read(self, quote: Quote, held: Held) -> None:
        """Read nothing yet: every try reads for itself."""

    def draw(self, quote: Quote, public: PublicTable, exact: None, noise: NoiseSource) -> Any:
        """Try, each time on a ledger of its own; warnings of failures would tell how many there were."""
        epsilon, delta, stop, of_tries = quote.terms
        while True:
            budget = PrivacyBudget(epsilon, delta)
            with warnings.catch_warnings(record=True) as said:
                try:
                    result = self.attempt(budget, of_tries)
                finally:
                    budget.close()
            if result is not None:
                for each in said:
                    warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)
                return result
            if noise.coins(stop, 1)[0]:
                return None


def _delta_of_one(epsilon: Fraction, delta: float, stop: Fraction) -> float:
    """Find the delta of one try, whose epsilon is given, that costs all tries together no more than delta."""
    if not delta:
        return 0.0
    if epsilon > 700:
        raise ValueError("With a delta, epsilon may be at most 1400.")
    above = Fraction(math.exp(float(epsilon))) * (1 + Fraction(1, 2**40)) + 1
    return rounded_down(Fraction(str(delta)) * stop / above)
