"""Guarantees: what a release promises about the records behind it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np

from pgmpy_dp._notebooks import table
from pgmpy_dp.privacy.checks import decimal_above

NEIGHBOURS = ("add_remove", "replace_one")
MECHANISMS = (
    "laplace",
    "gaussian",
    "sampled_gaussian",
    "posterior_sampling",
    "exponential",
    "partition_selection",
    "several",
    "none",
)

_CHANGE = {"add_remove": "added or removed{}", "replace_one": "replaced by another{}, their number being public"}
_NOISE = {
    "laplace": "discrete Laplace noise",
    "gaussian": "discrete Gaussian noise",
    "sampled_gaussian": "Gaussian noise on sums over random samples",
    "posterior_sampling": "draws from a truncated posterior",
    "exponential": "exponential mechanism",
    "partition_selection": "private partition selection",
    "several": "noise of several releases",
}


@dataclass(frozen=True)
class Guarantee:
    """What a release promises about the records behind it.

    Names of variables, states and tables are presumed public. If the schema was found in records, epsilon and delta
    include the cost of finding it. If tables or edges are chosen by an earlier release, such as those of a graph that
    was searched for, the two are released together, and their joint guarantee is given by `compose`.

    Parameters
    ----------
    epsilon : float
        Epsilon of the (epsilon, delta) guarantee; ``inf`` for exact counts.
    delta : float
        Delta, 0 <= delta < 1.
    rho : float or None
        Zero-concentrated guarantee of Gaussian noise, from which epsilon and delta follow; None otherwise.
    neighbours : {"add_remove", "replace_one"}
        How two data sets that the release cannot tell apart may differ.
    mechanism : str
        "laplace" or "gaussian": discrete noise added to every cell of tables; "sampled_gaussian": Gaussian noise added
        to sums over random samples, in the steps of an iterative fit; "posterior_sampling" or "exponential": draws from
        a truncated or tempered posterior; "partition_selection" of states; "several": releases by different mechanisms;
        "none": exact counts.
    private : bool
        False for simulated noise and exact counts: nothing is promised then, whatever epsilon says.
    unit : str
        Unit of privacy: "record", or the column that identifies a person, such as "person_id"; neighbours then differ
        in all rows of one person.
    versions : mapping of str to str
        Versions of the libraries that made the release.
    sampling_rate : float
        Below 1, the tables count a Poisson sample that includes each record with this probability. Epsilon is then the
        amplified guarantee for all records; the noise on the sample by itself costs more.
    max_rows : int or None
        The most rows counted for one unit; 1 if the unit is a record. None: all rows count, with a total weight of 1
        per unit.
    accepted : bool
        Whether the release was accepted among tries (`PrivateDataset.retry`): epsilon and delta are then the cost of
        all tries together, and rho, where given, that of the noise alone.
    payment : str
        Name of a payment that several guarantees count; empty otherwise.
    shared : tuple of Guarantee
        Parts that other guarantees may count as well, each with its `payment`: what found the states or bins of the
        schema, or the search that a release is a step of. Epsilon, delta and rho include them, and `compose` counts
        each once.
    overlap : int
        For a union of releases of different records, the largest number of them that may count rows of one unit; 0 if
        all records are in one data set.
    largest_weight : float or None
        The largest weight of a record: tables are then in multiples of it. None if all records count alike.

    Raises
    ------
    ValueError
        If the parts contradict each other or are out of range.

    Examples
    --------
    >>> print(Guarantee(0.5, 0.0, None, "add_remove", "laplace", True))
    differentially private with epsilon = 0.5, for one record added or removed (discrete Laplace noise)
    >>> print(Guarantee(float("inf"), 0.0, None, "add_remove", "none", False))
    NOT PRIVATE: exact counts
    """

    epsilon: float
    delta: float
    rho: float | None
    neighbours: str
    mechanism: str
    private: bool
    unit: str = "record"
    versions: Mapping[str, str] = field(default_factory=dict, hash=False)
    sampling_rate: float = 1.0
    max_rows: int | None = 1
    accepted: bool = False
    payment: str = ""
    shared: tuple[Guarantee, ...] = ()
    overlap: int = 0
    largest_weight: float | None = None

    def __post_init__(self) -> None:
        epsilon, delta = checked_number("epsilon", self.epsilon), checked_number("delta", self.delta)
        rho = None if self.rho is None else checked_number("rho", self.rho)
        for name in ("private", "accepted"):
            if not isinstance(getattr(self, name), (bool, np.bool_)):
                raise ValueError(f"Guarantee: {name} must be True or False, got {getattr(self, name)!r}.")
        if self.neighbours not in NEIGHBOURS:
            raise ValueError(f"Guarantee: neighbours must be one of {NEIGHBOURS}, got {self.neighbours!r}.")
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"Guarantee: mechanism must be one of {MECHANISMS}, got {self.mechanism!r}.")
        if not epsilon > 0 or not 0 <= delta < 1:
            raise ValueError(f"Guarantee: epsilon > 0 and 0 <= delta < 1 are needed, got {epsilon!r} and {delta!r}.")
        if math.isinf(epsilon) != (self.mechanism == "none") or (self.mechanism == "none" and self.private):
            raise ValueError(
                "Guarantee: exact counts (mechanism 'none') have epsilon inf and private False; "
                "noisy counts have a finite epsilon."
            )
        if (rho is not None) != (self.mechanism == "gaussian") or not (rho is None or 0 < rho < math.inf):
            raise ValueError(f"Guarantee: rho is positive for Gaussian noise and None otherwise, got {rho!r}.")
        if self.mechanism in ("gaussian", "sampled_gaussian", "partition_selection") and not delta:
            raise ValueError(f"Guarantee: {_NOISE[self.mechanism]} requires a delta greater than 0.")
        if not isinstance(self.unit, str) or not self.unit:
            raise ValueError(f"Guarantee: unit must name what one neighbour differs in, got {self.unit!r}.")
        rate = checked_number("sampling_rate", self.sampling_rate)
        if not 0 < rate <= 1:
            raise ValueError(f"Guarantee: sampling_rate must be greater than 0 and at most 1, got {rate!r}.")
        if rate < 1 and (self.neighbours, self.mechanism) != ("add_remove", "laplace"):
            raise ValueError(
                "Guarantee: a sampling_rate below 1 goes with neighbours 'add_remove' and Laplace noise, "
                f"got {self.neighbours!r} and {self.mechanism!r}."
            )
        if self.max_rows is not None and (type(self.max_rows) is not int or not 1 <= self.max_rows < 2**31):
            raise ValueError(f"Guarantee: max_rows must be a whole number, at least 1, or None, got {self.max_rows!r}.")
        if self.max_rows != 1 and (self.unit == "record" or rate < 1):
            raise ValueError("Guarantee: max_rows must be 1 where the unit is a record, as it is for a Poisson sample.")
        if type(self.overlap) is not int or self.overlap < 0:
            raise ValueError(f"Guarantee: overlap must be a whole number of releases, got {self.overlap!r}.")
        largest = None if self.largest_weight is None else checked_number("largest_weight", self.largest_weight)
        if largest is not None and (not 0 < largest < math.inf or rate < 1):
            raise ValueError(
                "Guarantee: largest_weight must be positive and finite, and without a Poisson sample, or None, "
                f"got {largest!r}."
            )
        versions = dict(self.versions)
        if not all(isinstance(text, str) for pair in versions.items() for text in pair):
            raise ValueError("Guarantee: versions must map names of libraries to version strings.")
        self._check_shared(epsilon, delta)
        values: dict[str, Any] = {
            "epsilon": epsilon,
            "delta": delta,
            "rho": rho,
            "private": bool(self.private),
            "accepted": bool(self.accepted),
            "sampling_rate": rate,
            "largest_weight": largest,
        }
        values["versions"] = MappingProxyType(dict(sorted(versions.items())))
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _check_shared(self, epsilon: float, delta: float) -> None:
        if not isinstance(self.payment, str) or not isinstance(self.shared, tuple):
            raise ValueError("Guarantee: payment must be a text, and shared a tuple of guarantees.")
        for part in self.shared:
            if not isinstance(part, Guarantee) or not part.payment or part.shared or part.mechanism == "none":
                raise ValueError(
                    "Guarantee: each shared part must be a guarantee of noise with a payment and no shared parts."
                )
            if (part.neighbours, part.unit) != (self.neighbours, self.unit) or part.private < self.private:
                raise ValueError("Guarantee: a shared part has another unit or relation of neighbours than the whole.")
        if exact_sum(self.shared, "epsilon") > exact(epsilon) or exact_sum(self.shared, "delta") > exact(delta):
            raise ValueError("Guarantee: epsilon and delta must be at least the sums of the shared parts.")

    def own(self, name: str) -> Fraction:
        """Compute epsilon, delta or rho without the shared parts."""
        return max(exact(getattr(self, name)) - exact_sum(self.shared, name), Fraction(0))

    def of_noise(self) -> tuple[Fraction, Fraction]:
        """Compute the epsilon and delta that shared parts of other mechanisms leave for this mechanism's noise."""
        others = [part for part in self.shared if part.mechanism != self.mechanism]
        epsilon, delta = (exact(getattr(self, name)) - exact_sum(others, name) for name in ("epsilon", "delta"))
        return epsilon, delta

    def parts(self, payment: str) -> tuple[Guarantee, ...]:
        """List the shared parts, and the rest as a part with the given payment."""
        if self.mechanism == "none":
            return (replace(self, payment=payment),)
        epsilon, rho = self.own("epsilon"), self.own("rho")
        if not epsilon:
            return self.shared
        rest = replace(
            self,
            epsilon=decimal_above(epsilon),
            delta=decimal_above(self.own("delta")),
            rho=decimal_above(rho) if rho else None,
            payment=payment,
            shared=(),
        )
        return (*self.shared, rest)

    def shared_as(self, payment: str) -> Guarantee:
        """Make all of this guarantee one shared payment, so that others that count it are not added to it."""
        parts = self.parts(payment)
        epsilon, delta = (max(getattr(self, n), decimal_above(exact_sum(parts, n))) for n in ("epsilon", "delta"))
        return replace(self, epsilon=epsilon, delta=delta, shared=parts)

    def covers(self, other: Guarantee) -> bool:
        """Whether this guarantee implies `other`: the same neighbours and unit, and at least the same loss.

        Examples
        --------
        >>> less, more = (Guarantee(epsilon, 0.0, None, "add_remove", "laplace", True) for epsilon in (0.5, 1.0))
        >>> more.covers(less), less.covers(more)
        (True, False)
        """
        kinds = (
            "neighbours",
            "unit",
            "max_rows",
            "mechanism",
            "sampling_rate",
            "accepted",
            "overlap",
            "largest_weight",
        )
        same = all(getattr(self, name) == getattr(other, name) for name in kinds)
        amounts = ("epsilon", "delta", "rho")
        return (
            same
            and self.private <= other.private
            and all(exact(getattr(self, n)) >= exact(getattr(other, n)) for n in amounts)
        )

    @property
    def counted(self) -> str:
        """What the tables count: "records", "records of the sample", "rows" of units, or "units"."""
        if self.unit == "record":
            named = "records" if self.sampling_rate == 1 else "records of the sample"
        else:
            named = "units" if self.max_rows is None else "rows"
        return named if self.largest_weight is None else f"{named} of weight {self.largest_weight:g}"

    @property
    def weighted(self) -> bool:
        """Whether tables count fractions of units or of records."""
        return self.max_rows is None or self.largest_weight is not None

    def __str__(self) -> str:
        if self.mechanism == "none":
            return "NOT PRIVATE: exact counts"
        noise = _NOISE[self.mechanism]
        if self.sampling_rate < 1:
            noise += f" on a Poisson sample of rate {self.sampling_rate!r}"
        if self.accepted:
            noise += ", accepted among tries"
        before = dict.fromkeys(_NOISE[part.mechanism] for part in self.shared if part.mechanism != self.mechanism)
        noise += f", and {' and '.join(before)} before" if before else ""
        if not self.private:
            return f"NOT PRIVATE: simulated {noise}, as for epsilon = {self.epsilon!r}"
        delta = f" and delta = {self.delta!r}" if self.delta else ""
        several = "one" if self.overlap == 1 else f"up to {self.overlap}"
        where = f" in {several} of the united releases" if self.overlap else ""
        change = f"one {self.unit}{self._bound()} {_CHANGE[self.neighbours].format(where)}"
        return f"differentially private with epsilon = {self.epsilon!r}{delta}, for {change} ({noise})"

    def sentence(self) -> str:
        """State the guarantee as a sentence.

        Examples
        --------
        >>> Guarantee(1.0, 0.0, None, "add_remove", "laplace", True).sentence()
        'Differentially private with epsilon = 1.0, for one record added or removed (discrete Laplace noise).'
        """
        promise = str(self)
        return f"{promise[0].upper()}{promise[1:]}."

    def _repr_html_(self) -> str:
        made = [(name, version) for name, version in self.versions.items()]
        return table(self.sentence(), ["made with", "version"], made)

    def _bound(self) -> str:
        bounds = [] if self.unit == "record" or self.max_rows is None else [f"at most {counted(self.max_rows, 'row')}"]
        if self.max_rows is None:
            bounds.append("all rows, of weight 1 together")
        if self.largest_weight is not None:
            bounds.append(f"of survey weight at most {self.largest_weight:g}")
        return f" ({', '.join(bounds)})" if bounds else ""

    def to_dict(self) -> dict[str, Any]:
        """Return the parts by name as JSON can hold them; an infinite epsilon is the text "inf"."""
        parts = {name: getattr(self, name) for name in ("epsilon", "delta", "rho", "neighbours", "mechanism")}
        parts["epsilon"] = self.epsilon if math.isfinite(self.epsilon) else "inf"
        parts |= {"private": self.private, "unit": self.unit, "versions": dict(self.versions)}
        if self.sampling_rate != 1:
            parts["sampling_rate"] = self.sampling_rate
        if self.accepted:
            parts["accepted"] = True
        if self.payment:
            parts["payment"] = self.payment
        if self.shared:
            parts["shared"] = [part.to_dict() for part in self.shared]
        if self.overlap:
            parts["overlap"] = self.overlap
        if self.largest_weight is not None:
            parts["largest_weight"] = self.largest_weight
        return parts if self.max_rows == 1 else {**parts, "max_rows": self.max_rows}

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Guarantee:
        """Invert `to_dict`; KeyError or TypeError for missing or unknown parts."""
        epsilon = math.inf if parts["epsilon"] == "inf" else parts["epsilon"]
        shared = tuple(cls.from_dict(part) for part in parts.get("shared", ()))
        return cls(**{**parts, "epsilon": epsilon, "shared": shared})

    def __reduce__(self) -> tuple[Any, ...]:  # read-only mappings cannot be pickled
        parts = (self.epsilon, self.delta, self.rho, self.neighbours, self.mechanism, self.private, self.unit)
        rest = (self.sampling_rate, self.max_rows, self.accepted, self.payment, self.shared)
        return Guarantee, (*parts, dict(self.versions), *rest, self.overlap, self.largest_weight)


def exact(value: float | None) -> Fraction:
    """Return a number as the exact fraction of its printed decimal; 0 for None and infinity."""
    return Fraction(str(value)) if value is not None and math.isfinite(value) else Fraction(0)


def exact_sum(guarantees: Iterable[Guarantee], name: str) -> Fraction:
    """Add up epsilon, delta or rho of several guarantees exactly."""
    return sum((exact(getattr(one, name)) for one in guarantees), Fraction(0))


def checked_number(name: str, value: Any) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise ValueError(f"{name} must be a number, got {value!r}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.nan
    if math.isnan(number):
        raise ValueError(f"{name} must be a number, got NaN or one too large.")
    return number


def counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
