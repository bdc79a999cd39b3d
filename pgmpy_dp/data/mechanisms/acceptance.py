"""Noisy checks of synthetic records against the private ones, by an owner's criteria.

Sensitivity. The synthetic records are public: they follow from releases. Each criterion counts something in the private
records, and the count is larger the worse the synthetic records are.

`LargestError`: the largest, over tables, of sum_x |n(x) - r(x)|, where n are the counts of the private records and r
integers, the counts of the synthetic ones. A unit adds to the counts of a table non-negative numbers whose sum is at
most its contribution. So adding or removing it changes each sum by at most that, replacing it by at most twice that,
and the largest of several sums by no more.

`PredictionError`: the number of records whose state of a variable differs from what a public function computes from
their other states. The function is learned from synthetic records, before a private record is read, and is applied to
one record at a time, so that its answer for one does not depend on others. A record counts 0 or 1: adding, removing or
replacing it changes the number by at most 1. A learner without a seed gives a random function f. Its distribution is
the same for neighbours, since f is made from public values and from randomness that no record affects. For each f, the
release has probabilities P_f and Q_f with P_f(A) <= exp(epsilon) Q_f(A); averaging over the one distribution of f,
P(A) <= exp(epsilon) Q(A) as well. This requires one f for all records. It holds also for a classifier that draws at
random when it predicts, if each answer is drawn independently, as if a table of answers had been drawn beforehand. It
does not hold for a classifier whose answers depend on earlier questions; none of scikit-learn's do.

`UniqueMatches`: the number of cells (combinations of states) of the synthetic records that contain exactly one private
record. Adding or removing a record changes the count of one cell, and so the number by at most 1; replacing one changes
two cells, and so the number by at most 2.

The sensitivity of the coefficients of a regression on the records is unbounded, so they are not a criterion: use
`PredictionError`, or pay for private coefficients. The criteria share epsilon equally and use discrete Laplace noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.data.mechanisms.tables import promise
from pgmpy_dp.privacy.checks import exact_positive, number, whole_number
from pgmpy_dp.privacy.ledger import Charge
from pgmpy_dp.privacy.mechanisms import laplace_scale, table_sensitivity
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.records.frames import encode, labelled
from pgmpy_dp.records.memory import count_all, require_countable
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Schema

# Probability that the exact value is within the stated half-width of the noisy one.
CONFIDENCE = 0.95

Codes = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Count:
    """A count of the records, its sensitivity, and the public number by which it is divided."""

    of: Callable[[Held], int]
    sensitivity: int
    per: float


class Criterion(Protocol):
    """A criterion has a name, a limit, and a count of the records that should be low."""

    @property
    def most(self) -> float:
        """The largest value that passes."""

    def count(self, public: PublicTable, synthetic: Codes) -> Count:
        """Prepare the count from synthetic records, without reading private ones; raises if it cannot be counted."""


@dataclass(frozen=True)
class LargestError:
    """Limit the largest total variation between tables of the synthetic and the private records.

    Parameters
    ----------
    tables : sequence of tuples of str
        Cliques whose tables are compared.
    most : float
        In (0, 1].

    Examples
    --------
    >>> LargestError([("sex", "age")], most=0.05).most
    0.05
    """

    tables: Sequence[Sequence[str]]
    most: float

    def count(self, public: PublicTable, synthetic: Codes) -> Count:
        """Prepare the count; see `Criterion`."""
        number(above=0.0, most=1.0)("most", self.most)
        cliques = public.schema.require(self.tables)
        for clique in cliques:
            require_countable(public.schema, clique)
        size, total = next(iter(synthetic.values())).size, _number_of_records(public, synthetic)
        expected = {
            clique: np.rint(table * (public.parts * total / size)).astype(np.int64)
            for clique, table in count_all(synthetic, public.schema, cliques).items()
        }

        def largest(held: Held) -> int:
            counts = held.records.counts(cliques)
            return max(int(np.abs(counts[clique] - expected[clique]).sum()) for clique in cliques)

        sensitivity = table_sensitivity(public.neighbours, "l1", public.contribution)
        return Count(largest, sensitivity, 2.0 * public.parts * total)


@dataclass(frozen=True)
class PredictionError:
    """Limit the error of a classifier that is trained on synthetic records and predicts the private ones.

    Parameters
    ----------
    target : str
        The variable to predict from all others.
    learner : scikit-learn classifier
        Fitted to the indicators of the synthetic records' states, then applied to one record at a time. Its answers
        must not depend on earlier ones; it does not need a seed.
    most : float
        Largest share of the records that may be predicted wrongly, in (0, 1].

    Notes
    -----
    Records must be in memory, and each must be a unit of its own.

    Examples
    --------
    >>> from sklearn.naive_bayes import BernoulliNB
    >>> PredictionError("income", BernoulliNB(), most=0.2).target
    'income'
    """

    target: str
    learner: Any
    most: float

    def count(self, public: PublicTable, synthetic: Codes) -> Count:
        """Prepare the count; see `Criterion`."""
        number(above=0.0, most=1.0)("most", self.most)
        public.require_single_records()
        public.schema.require([(self.target,)])
        others = [variable for variable in public.schema.variables if variable != self.target]
        if not others:
            raise ValueError(f"There is no other variable from which to predict {self.target!r}.")
        from sklearn.base import clone  # the import takes a second

        learned = clone(self.learner).fit(_indicators(synthetic, others, public.schema), synthetic[self.target])

        def wrong(held: Held) -> int:
            rows, repeated = _distinct(held, [*others, self.target])
            found = 0
            for row, repeats in zip(rows, repeated, strict=True):
                codes = {variable: row[place : place + 1] for place, variable in enumerate(others)}
                answer = learned.predict(_indicators(codes, others, public.schema))[0]
                found += int(repeats) * bool(answer != row[-1])
            return found

        return Count(wrong, 1, float(_number_of_records(public, synthetic)))


@dataclass(frozen=True)
class UniqueMatches:
    """Limit the number of synthetic records that match exactly one private record.

    Whether a synthetic record occurs only once is public, and free: ``records.duplicated(keep=False).all()``.

    Parameters
    ----------
    most : int
        Largest number of combinations of states of synthetic records that exactly one private record has. Because of
        the noise, 0 passes only half of the synthetic data sets that have no such combination.
    variables : sequence of str, optional
        Variables whose states are combined; all by default.

    Notes
    -----
    Records must be in memory, and each must be a unit of its own.

    Examples
    --------
    >>> UniqueMatches(most=20).most
    20
    """

    most: int
    variables: Sequence[str] | None = None

    def count(self, public: PublicTable, synthetic: Codes) -> Count:
        """Prepare the count; see `Criterion`."""
        whole_number("most", self.most, 0)
        public.require_single_records()
        chosen = public.schema.variables if self.variables is None else self.variables
        (names,) = public.schema.require([chosen])
        made = set(zip(*(synthetic[name].tolist() for name in names), strict=True))

        def matches(held: Held) -> int:
            rows, repeated = _distinct(held, names)
            return sum(tuple(row) in made for row in rows[repeated == 1].tolist())

        return Count(matches, table_sensitivity(public.neighbours, "l1"), 1.0)


@dataclass(frozen=True)
class CheckedValue:
    """The noisy value of a criterion.

    Attributes
    ----------
    criterion : str
    value : float
        A share or a number of combinations, with noise.
    half_width : float
        The exact value is within this distance with a probability of 95 %.
    most : float
        Largest value that passes.
    """

    criterion: str
    value: float
    half_width: float
    most: float

    @property
    def passed(self) -> bool:
        """Whether the noisy value is within the limit."""
        return self.value <= self.most


@dataclass(frozen=True)
class CheckedRecords:
    """Noisy values of an owner's criteria, and whether all are met.

    Attributes
    ----------
    of_criteria : tuple of CheckedValue
    guarantee : Guarantee

    Examples
    --------
    >>> promise = Guarantee(0.5, 0.0, None, "add_remove", "laplace", True)
    >>> checked = CheckedRecords((CheckedValue("LargestError", 0.03, 0.01, 0.05),), promise)
    >>> checked.passed, checked.values["half_width"].tolist()
    (True, [0.01])
    """

    of_criteria: tuple[CheckedValue, ...]
    guarantee: Guarantee

    @property
    def values(self) -> pd.DataFrame:
        """Frame with a row for each criterion."""
        names = ["value", "half_width", "most", "passed"]
        rows = [[getattr(each, name) for name in names] for each in self.of_criteria]
        return pd.DataFrame(rows, pd.Index([each.criterion for each in self.of_criteria], name="criterion"), names)

    @property
    def passed(self) -> bool:
        """Whether every noisy value is within its limit."""
        return all(each.passed for each in self.of_criteria)


@dataclass(frozen=True)
class NoisyChecks:
    """Criteria of synthetic records; see :meth:`pgmpy_dp.PrivateDataset.check`."""

    records: Any
    criteria: Sequence[Criterion]
    epsilon: float | Fraction

    def quote(self, public: PublicTable) -> Quote:
        """Price the criteria; the terms are each criterion's count and the scale of its noise."""
        epsilon = exact_positive("epsilon", self.epsilon)
        if not self.criteria:
            raise ValueError("Name at least one criterion, such as a LargestError.")
        schema = labelled(self.records, public.schema)
        synthetic = encode(self.records, schema, schema.variables)
        if not any(codes.size for codes in synthetic.values()):
            raise ValueError("There are no synthetic records to check.")
        counts = [criterion.count(public, synthetic) for criterion in self.criteria]
        share = epsilon / len(counts)
        terms = [(count, laplace_scale(share, count.sensitivity)) for count in counts]
        charge = Charge(f"check synthetic records by {len(counts)} criteria", "laplace", epsilon=epsilon)
        return Quote(charge, terms, promise(public, epsilon, "laplace"))

    def read(self, quote: Quote, held: Held) -> list[int]:
        """Count exactly."""
        return [count.of(held) for count, _ in quote.terms]

    def draw(self, quote: Quote, public: PublicTable, exact: list[int], noise: NoiseSource) -> CheckedRecords:
        """Add independent noise to each count, and compare it to its limit."""
        found = []
        for criterion, (count, scale), value in zip(self.criteria, quote.terms, exact, strict=True):
            noisy = int(noise.discrete_laplace(np.array([value], dtype=np.int64), scale)[0]) / count.per
            width = _half_width(scale) / count.per
            found.append(CheckedValue(type(criterion).__name__, noisy, width, criterion.most))
        return CheckedRecords(tuple(found), quote.guarantee)


def _number_of_records(public: PublicTable, synthetic: Codes) -> int:
    """Return the number of private records if it is public, else that of synthetic ones; at least 1."""
    return max(next(iter(synthetic.values())).size if public.total is None else public.total, 1)


def _distinct(held: Held, names: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Return the distinct records in some variables, and the number of times each occurs."""
    rows = held.rows(names)
    groups = np.arange(len(rows.values)) if rows.groups is None else rows.groups
    return rows.values, np.bincount(groups, minlength=len(rows.values))


def _indicators(codes: Codes, variables: Sequence[str], schema: Schema) -> NDArray[np.float64]:
    """Return the indicators of all variables' states side by side, one row per record."""
    return np.hstack([np.eye(schema.cardinality(variable))[codes[variable].astype(np.int64)] for variable in variables])


def _half_width(scale: float) -> int:
    """Return the smallest h such that discrete Laplace noise exceeds h in size with a probability of at most 5 %."""
    ratio = math.exp(-1.0 / scale)
    return max(math.ceil(math.log((1 - CONFIDENCE) * (1 + ratio) / 2) / math.log(ratio) - 1.0), 0) if ratio > 0 else 0
