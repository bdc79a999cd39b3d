"""Synthetic records are held against the private ones by an owner's criteria, with noise.

Sensitivity. The synthetic records are public: they follow from releases. Each criterion counts something in the private
records that grows as the synthetic ones are worse.

`LargestError`: the largest, over tables, of sum_x |n(x) - r(x)|, where n are the records' counts and r whole numbers,
the synthetic records' counts. A unit adds non-negative numbers to the counts of a table, of at most its contribution in
sum, so adding or removing it moves each sum by at most that, replacing it by at most twice that, and the largest of
several sums by no more.

`PredictionError`: the records whose state of a variable is another than a public function makes of their other states.
The function is learned from synthetic records, before a private record is seen, and is asked about one record at a
time: its answer for one depends on no other. A record adds 0 or 1, so that added, removed or replaced it moves the
number by at most 1. A learner without a seed makes a random function f. Its law is the same for neighbours, since f is
made of public values and of chance that no record has a part in. For each f, what is released has probabilities P_f and
Q_f with P_f(A) <= exp(epsilon) Q_f(A); averaged over that one law of f, P(A) <= exp(epsilon) Q(A) as well. This needs
one f for all records. A classifier that draws when it predicts has that too, if each answer is drawn by itself, as if a
table of answers had been drawn beforehand. One whose answers depend on what it was asked before has not, and is none of
scikit-learn's.

`UniqueMatches`: the synthetic records' cells (of all combinations of states) that hold exactly one private record. A
record more or less changes the count of one cell, and so the number by at most 1; a replaced one changes two cells.

Coefficients of a regression on the records have no bounded sensitivity, and are no criterion: `PredictionError` is what
can be checked of one, or private coefficients can be drawn for a price of their own. Each criterion has an equal share
of epsilon, paid by discrete Laplace noise.
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

# Values are within their stated half-width of the exact ones with this probability.
CONFIDENCE = 0.95

Codes = dict[str, NDArray[Any]]

__all__ = ["CheckedRecords", "LargestError", "PredictionError", "UniqueMatches"]


@dataclass(frozen=True)
class Count:
    """A whole number of the records, and what it says once it is divided by a public number."""

    of: Callable[[Held], int]
    sensitivity: int
    per: float


class Criterion(Protocol):
    """A criterion has a name, a limit, and a count of the records that is to be low."""

    @property
    def most(self) -> float:
        """Return what its value may be at most."""

    def count(self, public: PublicTable, synthetic: Codes) -> Count:
        """Prepare the count from synthetic records; no private record is seen. What cannot be counted is refused."""


@dataclass(frozen=True)
class LargestError:
    """The largest total variation between tables of the synthetic and of the private records is to be low.

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
    """What a classifier learns from synthetic records is to predict the private ones.

    Parameters
    ----------
    target : str
        The variable to predict from all others.
    learner : scikit-learn classifier
        Fitted to the synthetic records' indicators of states. It is then asked about one record at a time. An answer
        must not depend on what was asked before; a seed is not needed.
    most : float
        Share of the records that may be predicted wrong, in (0, 1].

    Notes
    -----
    Records must be in memory, and units of their own.

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
            raise ValueError(f"Variable {self.target!r} has no other variable to be predicted from.")
        from sklearn.base import clone  # takes a second to import

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
    """Few records that are unique are to be among the synthetic ones.

    That no synthetic record is there once alone is public, and free: ``records.duplicated(keep=False).all()``.

    Parameters
    ----------
    most : int
        Combinations of states that synthetic records may share with exactly one private record. With noise, 0 passes
        only half of what is without any.
    variables : sequence of str, optional
        Whose states are combined; all by default.

    Notes
    -----
    Records must be in memory, and units of their own.

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
        With noise: a share, or a number of combinations.
    half_width : float
        The exact one is within so much of it with a probability of 95 %.
    most : float
        What the criterion allows.
    """

    criterion: str
    value: float
    half_width: float
    most: float

    @property
    def passed(self) -> bool:
        """Say whether the noisy value is no more than what is allowed."""
        return self.value <= self.most


@dataclass(frozen=True)
class CheckedRecords:
    """Noisy values of an owner's criteria, and whether all of them are met.

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
        """Return a frame with a row for each criterion."""
        names = ["value", "half_width", "most", "passed"]
        rows = [[getattr(each, name) for name in names] for each in self.of_criteria]
        return pd.DataFrame(rows, pd.Index([each.criterion for each in self.of_criteria], name="criterion"), names)

    @property
    def passed(self) -> bool:
        """Say whether every noisy value is within its limit."""
        return all(each.passed for each in self.of_criteria)


@dataclass(frozen=True)
class NoisyChecks:
    """Criteria of synthetic records; see :meth:`pgmpy_dp.PrivateDataset.check`."""

    records: Any
    criteria: Sequence[Criterion]
    epsilon: float | Fraction

    def quote(self, public: PublicTable) -> Quote:
        """Price the criteria; the terms are a count and the scale of its noise for each."""
        epsilon = exact_positive("epsilon", self.epsilon)
        if not self.criteria:
            raise ValueError("Name at least one criterion, such as LargestError([('sex', 'age')], most=0.05).")
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
        """Add independent noise to each count, and hold it against its limit."""
        found = []
        for criterion, (count, scale), value in zip(self.criteria, quote.terms, exact, strict=True):
            noisy = int(noise.discrete_laplace(np.array([value], dtype=np.int64), scale)[0]) / count.per
            width = _half_width(scale) / count.per
            found.append(CheckedValue(type(criterion).__name__, noisy, width, criterion.most))
        return CheckedRecords(tuple(found), quote.guarantee)


def _number_of_records(public: PublicTable, synthetic: Codes) -> int:
    """Return the number of private records where it is public, else that of the synthetic ones; at least 1."""
    return max(next(iter(synthetic.values())).size if public.total is None else public.total, 1)


def _distinct(held: Held, names: Sequence[str]) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Find the distinct records in some variables, and how often each is there."""
    rows = held.rows(names)
    groups = np.arange(len(rows.values)) if rows.groups is None else rows.groups
    return rows.values, np.bincount(groups, minlength=len(rows.values))


def _indicators(codes: Codes, variables: Sequence[str], schema: Schema) -> NDArray[np.float64]:
    """Put indicators of states side by side, one row a record."""
    return np.hstack([np.eye(schema.cardinality(variable))[codes[variable].astype(np.int64)] for variable in variables])


def _half_width(scale: float) -> int:
    """Find the least width that discrete Laplace noise exceeds on either side with a probability of at most 5 %."""
    ratio = math.exp(-1.0 / scale)
    return max(math.ceil(math.log((1 - CONFIDENCE) * (1 + ratio) / 2) / math.log(ratio) - 1.0), 0) if ratio > 0 else 0
