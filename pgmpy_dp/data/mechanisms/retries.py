"""A private computation is tried until its own result says that it is good enough.

Algorithm. One try ends in a result or in failure. After a failure a coin is thrown: with probability g all ends with no
result, else there is another try, on fresh noise. How many tries there were is not told (Liu and Talwar 2019,
Algorithm 1, without an end to the tries).

What one try costs. Let the attempt be a function that the owner gives, and let all that it uses beside its data set be
fixed before the records are looked at: public values, and what earlier releases told, for which the ledger composes.

1. The attempt reaches records through its data set alone. Each release there is charged to the ledger of the try before
   it is drawn, and that ledger is new, so a refusal depends on the releases of this try and on nothing else.
2. The ledger is a filter for (e, d), also where each charge is chosen by the releases before it
   (:class:`~pgmpy_dp.privacy.PrivacyBudget`). It takes charges for one change of the records alone, that which the
   charge of all tries protects, from whichever data set they come: losses for other neighbours would not add up.
3. Whatever the attempt makes of its releases is post-processing: a result, None, or an exception. The last is a result
   as well: it ends the tries and comes out. So one try is an (e, d) mechanism, whose outcomes are results and failure.

What all tries cost. Tries are independent and distributed alike: noise and ledger are fresh, and the attempt keeps
nothing of a failure. Of data sets D and D' let E and E' be expectations over one try. For a set S of outcomes let f be
1 for results in S, g for failure if S has "no result", and 0 otherwise; let h be 1 for any result and g for failure.
Since each failure goes on with probability 1 - g, what comes out is in S with probability A(S) = E f / E h. Both
functions are between 0 and 1, so that E f <= exp(e) E' f + d and E' h <= exp(e) E h + d, and h is at least g. Therefore

    A(S) <= (exp(e) E' f + d) / E h <= exp(e) (exp(e) + d / E h) A'(S) + d / E h <= exp(2 e) A'(S) + d (exp(e) + 1) / g.

So all tries together cost (2 e, d (exp(e) + 1) / g), and 2 e where d is 0, whatever g is: half of epsilon is what a try
may spend. OpenDP's `make_select_private_candidate` states the same for d = 0, and has no d.

What this needs of the code: that objects of this package carry nothing from one try to the next, nor out of a failed
one. Each of these would be a trace whose length is the number of tries, which no charge pays for:

- Charges beside the try's ledger. While tries are made, the ledger that paid for them takes none in this process, nor
  does any that shares its entries: the whole that it is a part of, that whole's other parts, budgets that have the same
  file open. This holds in every thread and in forked children, which inherit the refusal. Tries within a try are
  charges too: they are paid for by the ledger of that try, or refused. A refusal is an exception in the attempt, and
  by 3 a result if the attempt lets it pass. It tells no number of tries, since it depends on public values alone: it is
  the same in the first try as in any later one, and precedes the question of whether the charge would fit.
- Plans of sums. A step is refused as a charge would be: steps of a plan that was paid for outside cannot count tries,
  and those that one try left over are lost with its ledger.
- What a try releases. Its ledger closes when it ends, with all parts of it, so that a data set which is kept answers no
  more. Its warnings are kept back unless it is the last. `measure_misfit`, which adds its tables to those that a
  network holds, is refused.
- Processes. A fork within an attempt returns twice, and so gives two results for one charge. The process that began the
  tries is the only one in which they end; in others they raise.

Beyond this reach are traces of the owner's own making, of which :meth:`~pgmpy_dp.PrivateDataset.retry` tells: lists,
files, ledgers of other budgets, other programs that charge the same file, and time.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.data.mechanisms.tables import delta_within
from pgmpy_dp.errors import BudgetExceededError
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.checks import exact_positive, number, rounded_down
from pgmpy_dp.privacy.ledger import Charge
from pgmpy_dp.privacy.noise import NoiseSource

_FORKED = (
    "This is a forked copy of a process that makes tries of `retry`: a result from each copy would be two results for "
    "one charge. End the child within the attempt, as processes of `multiprocessing` do."
)


@dataclass(frozen=True)
class Retries:
    """Tries until one gives a result; see :meth:`pgmpy_dp.PrivateDataset.retry`.

    Attributes
    ----------
    attempt : callable
        From the ledger of a try to its result, or None where it fails.
    epsilon, delta : float
        Of all tries together.
    stop : float
        The probability with which all ends after a failure.
    """

    attempt: Callable[[PrivacyBudget], Any]
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
        process = os.getpid()
        with public.budget.held_for_tries():
            while True:
                with (
                    warnings.catch_warnings(record=True) as said,
                    public.budget.one_try(epsilon, delta, of_tries, public.protects) as ledger,
                ):
                    try:
                        result = self.attempt(ledger)
                    finally:
                        if os.getpid() != process:
                            raise BudgetExceededError(_FORKED)
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
