"""Repeated tries of a private computation, until its own result says that it is good enough.

Algorithm. One try ends with a result or with failure. After a failure, with probability g everything ends without a
result; otherwise there is another try, on fresh noise. The number of tries is not revealed (Liu and Talwar 2019,
Algorithm 1, without a limit on the number of tries).

Cost of one try. Let the attempt be a function given by the owner, and let everything that it uses beside its data set
be fixed before the records are read: public values, and earlier releases, for which the ledger composes.

1. The attempt accesses records only through its data set. Each release there is charged to the ledger of the try before
   it is drawn. That ledger is new, so a refusal depends only on the releases of this try.
2. The ledger is a filter for (e, d), also if each charge is chosen by the releases before it
   (:class:`~pgmpy_dp.privacy.PrivacyBudget`). It accepts charges for one neighbour relation and unit only, which the
   charge of all tries protects, from whichever data set they come: losses for other neighbours would not add up.
3. Whatever the attempt computes from its releases is post-processing: a result, None, or an exception. An exception
   counts as a result: it ends the tries and is raised. So one try is an (e, d) mechanism with the outcomes results and
   failure.

Cost of all tries. Tries are independent and identically distributed: noise and ledger are fresh, and the attempt keeps
nothing of a failure. For data sets D and D' let E and E' be expectations over one try. For a set S of outcomes let f be
1 for results in S, g for failure if S contains "no result", and 0 otherwise; let h be 1 for any result and g for
failure. Since another try follows each failure with probability 1 - g, the final outcome is in S with probability
A(S) = E f / E h. Both functions are between 0 and 1, so that E f <= exp(e) E' f + d and E' h <= exp(e) E h + d, and h
is at least g. Therefore

    A(S) <= (exp(e) E' f + d) / E h <= exp(e) (exp(e) + d / E h) A'(S) + d / E h <= exp(2 e) A'(S) + d (exp(e) + 1) / g.

So all tries together cost (2 e, d (exp(e) + 1) / g), and 2 e if d is 0, for any g: a try may spend half of epsilon.
OpenDP's `make_select_private_candidate` states the same for d = 0, and does not support d > 0.

Requirements on the code. Objects of this package must carry nothing from one try to the next, nor out of a failed one.
Each of the following would be a trace whose length is the number of tries, which no charge pays for:

- Charges beside the ledger of the try. While tries run, the ledger that paid for them accepts no charge in this
  process, nor does any that shares its entries: the whole that it is a part of, that whole's other parts, and budgets
  that have the same file open. This holds in every thread and in forked children, which inherit the refusal. Nested
  tries are charges too: they are paid for by the ledger of the outer try, or refused. A refusal is an exception in the
  attempt, and by 3 a result if the attempt does not catch it. It does not reveal the number of tries, since it depends
  only on public values: it is the same in the first try as in any later one, and is decided before whether the charge
  would fit.
- Plans of sums. A step is refused as a charge would be: steps of a plan that was paid for outside cannot count tries,
  and steps that one try left over are lost with its ledger.
- Releases of a try. Its ledger closes when the try ends, with all parts of it, so that a data set that was kept gives
  no more answers. Its warnings are suppressed unless it is the last try. `measure_misfit`, which adds its tables to
  those that a network holds, is refused.
- Processes. A fork within an attempt returns twice, and so would give two results for one charge. Tries can end only in
  the process that began them; other processes raise.

Not covered are traces that the owner makes, about which :meth:`~pgmpy_dp.PrivateDataset.retry` warns: lists, files,
ledgers of other budgets, other programs that charge the same file, and time.
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
    "This is a forked copy of a process that runs tries of `retry`: a result from each copy would be two results for "
    "one charge. End the child within the attempt, as processes of `multiprocessing` do."
)


@dataclass(frozen=True)
class Retries:
    """Try until one try gives a result; see :meth:`pgmpy_dp.PrivateDataset.retry`.

    Attributes
    ----------
    attempt : callable
        Function of the ledger of a try that returns its result, or None if it fails.
    epsilon, delta : float
        Cost of all tries together.
    stop : float
        Probability to end everything after a failure.
    """

    attempt: Callable[[PrivacyBudget], Any]
    epsilon: float | Fraction
    delta: float = 0.0
    stop: float = 0.05

    def quote(self, public: PublicTable) -> Quote:
        """Price all tries; the terms are what one try may spend, and the probability to stop."""
        epsilon = exact_positive("epsilon", self.epsilon)
        number(above=0.0, most=1.0)("stop", self.stop)
        delta = delta_within(public, self.delta) if self.delta else 0.0
        one, stop = epsilon / 2, Fraction(str(self.stop))
        charge = Charge("retry until accepted", "selection", epsilon=epsilon, delta=Fraction(str(delta)) or None)
        return Quote(charge, (one, _delta_of_one(one, delta, stop), stop, (epsilon, delta)))

    def read(self, quote: Quote, held: Held) -> None:
        """Read nothing: every try reads for itself."""

    def draw(self, quote: Quote, public: PublicTable, exact: None, noise: NoiseSource) -> Any:
        """Try, each time on a new ledger; warnings of failed tries would reveal their number."""
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
    """Find the delta of one try of this epsilon for which all tries together cost at most delta."""
    if not delta:
        return 0.0
    if epsilon > 700:
        raise ValueError("With a delta, epsilon may be at most 1400.")
    above = Fraction(math.exp(float(epsilon))) * (1 + Fraction(1, 2**40)) + 1
    return rounded_down(Fraction(str(delta)) * stop / above)
