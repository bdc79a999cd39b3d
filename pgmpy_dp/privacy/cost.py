"""Costs: what was paid for an answer about records, as a value with a name.

A cost is the entry of a ledger, a part of a guarantee, and the provenance of whatever the answer shaped. Its name is
drawn at random when it is paid, and its holder is the ledger that paid it. Everything else is computed from sets of
costs; see :class:`~pgmpy_dp.privacy.guarantee.Guarantee`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from pgmpy_dp.privacy.checks import (
    checked_delta,
    checked_number,
    exact_from_text,
    exact_positive,
    exact_text,
    settle,
)
from pgmpy_dp.privacy.noise import smallest_threshold, table_sensitivity

NEIGHBOURS = ("add_remove", "replace_one")
EXACT = "none"
"""The mechanism of exact counts, which have no privacy."""

_CHANGE = {"add_remove": "added or removed", "replace_one": "replaced by another"}


@dataclass(frozen=True)
class Pure:
    """A loss of epsilon, with delta 0.

    Examples
    --------
    >>> Pure(0.1).epsilon
    Fraction(1, 10)
    """

    epsilon: Fraction
    delta: ClassVar[Fraction] = Fraction(0)
    rho: ClassVar[None] = None

    def __post_init__(self) -> None:
        settle(self, epsilon=exact_positive("epsilon", self.epsilon))

    def __str__(self) -> str:
        return f"epsilon={float(self.epsilon):g}"


@dataclass(frozen=True)
class Approx:
    """A loss of (epsilon, delta), charged as one block; `rho` is the zCDP that it satisfies as well, if any.

    Examples
    --------
    >>> str(Approx(0.5, 1e-6))
    'epsilon=0.5, delta=1e-06'
    """

    epsilon: Fraction
    delta: Fraction
    rho: float | None = None

    def __post_init__(self) -> None:
        checked_delta(self.delta, zero_allowed=False)
        settle(self, epsilon=exact_positive("epsilon", self.epsilon), delta=exact_positive("delta", self.delta))
        if self.rho is not None:
            exact_positive("rho_of_noise", self.rho)
            settle(self, rho=float(self.rho))

    def __str__(self) -> str:
        return f"epsilon={float(self.epsilon):g}, delta={float(self.delta):g}"


@dataclass(frozen=True)
class Zcdp:
    """A loss of rho, zero-concentrated, which ledgers add up as it is.

    Parameters
    ----------
    rho : float
    epsilon, delta : Fraction, optional
        The (epsilon, delta) that rho implies and that is stated for it, also in sums; a ledger's own delta applies
        where an entry states none.

    Examples
    --------
    >>> str(Zcdp(0.02))
    'rho=0.02'
    """

    rho: float
    epsilon: Fraction | None = None
    delta: Fraction | None = None

    def __post_init__(self) -> None:
        exact_positive("rho", self.rho)
        settle(self, rho=float(self.rho))
        if (self.epsilon is None) != (self.delta is None):
            raise ValueError("Zcdp: epsilon and delta are stated together, or neither is.")
        if self.delta is not None:
            checked_delta(self.delta, zero_allowed=False)
            settle(self, epsilon=exact_positive("epsilon", self.epsilon), delta=exact_positive("delta", self.delta))

    def __str__(self) -> str:
        return f"rho={self.rho:g}"


Loss = Pure | Approx | Zcdp


@dataclass(frozen=True)
class Protects:
    """What neighbours differ in: one unit, all of whose counted rows are added, removed or replaced.

    Parameters
    ----------
    neighbours : {"add_remove", "replace_one"}
    unit : str
        "record", or the column that identifies a person, such as "person_id".
    max_rows : int or None
        The most rows counted for one unit; 1 if the unit is a record. None: all rows, with a total weight of 1.
    largest_weight : float or None
        The largest weight of a record; None if all records count alike.

    Examples
    --------
    >>> str(Protects("add_remove", "person_id", max_rows=3))
    'one person_id added or removed'
    """

    neighbours: str
    unit: str = "record"
    max_rows: int | None = 1
    largest_weight: float | None = None

    def __post_init__(self) -> None:
        if self.neighbours not in NEIGHBOURS:
            raise ValueError(f"Guarantee: neighbours must be one of {NEIGHBOURS}, got {self.neighbours!r}.")
        if not isinstance(self.unit, str) or not self.unit:
            raise ValueError(f"Guarantee: unit must name what one neighbour differs in, got {self.unit!r}.")
        if self.max_rows is not None and (type(self.max_rows) is not int or not 1 <= self.max_rows < 2**31):
            raise ValueError(f"Guarantee: max_rows must be a whole number, at least 1, or None, got {self.max_rows!r}.")
        if self.max_rows != 1 and self.unit == "record":
            raise ValueError("Guarantee: max_rows must be 1 where the unit is a record.")
        largest = None if self.largest_weight is None else checked_number("largest_weight", self.largest_weight)
        if largest is not None and not 0 < largest < math.inf:
            raise ValueError(f"Guarantee: largest_weight must be positive and finite, or None, got {largest!r}.")
        settle(self, largest_weight=largest)

    def __str__(self) -> str:
        return f"one {self.unit} {_CHANGE[self.neighbours]}"


@dataclass(frozen=True, repr=False)
class Cost:
    """One payment for answers about records.

    Parameters
    ----------
    label : str
        What was asked. It is public and must not depend on records.
    mechanism : str
        Such as "laplace", "gaussian" or "partition_selection"; "none" for exact counts.
    loss : Pure, Approx, Zcdp or None
        None for exact counts alone.
    protects : Protects, str or None
        What neighbours differ in. Entries of a ledger add up only if they agree in it. A text, or None where it is not
        stated, for entries by hand.
    private : bool
        False for simulated noise and exact counts: nothing is promised then, whatever the loss says.
    sampling_rate : float
        Below 1, a Poisson sample was counted that holds each record with this probability. The loss is that for all
        records.
    noise : mapping of str to float
        Public parameters by which the loss can be checked, where the answer does not state them.
    chooses : str
        What the answer decides about later ones, such as "states of place" or "a graph"; empty for measurements. A
        ledger that paid for it reminds of it later.
    ledger_total : (float, float), optional
        Epsilon and delta that the ledger had paid in all, this cost included.
    versions : mapping of str to str
        Versions of the libraries that drew the answer.
    id : str
        Random name, drawn when the cost is paid; empty before.
    holder : str or None
        Name of the ledger that paid; None where it is not known, as in files of earlier versions.

    Raises
    ------
    ValueError
        If a part is out of range.

    Examples
    --------
    >>> Cost("two tables", "laplace", Pure(0.1)).to_dict()
    {'label': 'two tables', 'mechanism': 'laplace', 'epsilon': '1/10'}
    """

    label: str
    mechanism: str
    loss: Loss | None
    protects: Protects | str | None = None
    private: bool = True
    sampling_rate: float = 1.0
    noise: tuple[tuple[str, float], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    chooses: str = ""
    ledger_total: tuple[float, float] | None = None
    id: str = ""
    holder: str | None = None

    def __post_init__(self) -> None:
        for name in ("label", "mechanism", "chooses", "id"):
            if not isinstance(getattr(self, name), str):
                raise ValueError(f"A cost's {name} must be text.")
        if not isinstance(self.protects, (Protects, str, type(None))) or not isinstance(self.holder, (str, type(None))):
            raise ValueError("What a cost protects, and its holder, must be text.")
        settle(self, protects=_protected(self.protects, {}))
        if not isinstance(self.private, (bool, np.bool_)):
            raise ValueError(f"A cost's private must be True or False, got {self.private!r}.")
        if (self.loss is None) != (self.mechanism == EXACT) or not isinstance(self.loss, (Loss, type(None))):
            raise ValueError(
                f"A cost has a loss: Pure, Approx or Zcdp; only exact counts have none, got {self.loss!r}."
            )
        if self.loss is None and self.private:
            raise ValueError("A cost of exact counts is not private.")
        rate = checked_number("sampling_rate", self.sampling_rate)
        if not 0 < rate <= 1:
            raise ValueError(f"Guarantee: sampling_rate must be greater than 0 and at most 1, got {rate!r}.")
        known = self.protects if isinstance(self.protects, Protects) else Protects("replace_one")
        whole = known == Protects("add_remove", known.unit)
        if rate < 1 and not (whole and self.mechanism == "laplace"):
            raise ValueError(
                "Guarantee: a sampling_rate below 1 goes with neighbours 'add_remove', Laplace noise "
                "and single records."
            )
        versions, noise = dict(self.versions), dict(self.noise)
        if not all(isinstance(text, str) for pair in versions.items() for text in pair):
            raise ValueError("Guarantee: versions must map names of libraries to version strings.")
        if not all(isinstance(name, str) for name in noise):
            raise ValueError("Guarantee: noise must map names to numbers.")
        settle(self, private=bool(self.private), sampling_rate=rate, versions=tuple(sorted(versions.items())))
        settle(self, noise=tuple((name, checked_number(name, value)) for name, value in noise.items()))
        if self.ledger_total is not None:
            epsilon, delta = (checked_number("ledger_total", amount) for amount in self.ledger_total)
            settle(self, ledger_total=(epsilon, delta))
        if self.mechanism == "partition_selection" and isinstance(self.protects, Protects):
            self._check_selection(self.protects, **noise)

    def _check_selection(self, protects: Protects, scale: float | None = None, threshold: float | None = None) -> None:
        """Raise if noise and threshold of discovered states cost more than is stated."""
        if scale is None or threshold is None:
            if self.holder is None:  # not stated in files of earlier versions, nor before it is paid
                return
            raise ValueError("The states of a variable were found in records, and the cost does not state its noise.")
        rows = protects.max_rows or 1
        enough = scale > 0 and table_sensitivity(protects.neighbours, "l1", rows) <= scale * float(
            self.epsilon or 0
        ) * (1 + 1e-9)
        if not enough or not self.delta or threshold < smallest_threshold(scale, float(self.delta), rows):
            raise ValueError(
                f"States were found with noise of scale {scale:g} and threshold {threshold:g}, which costs more than "
                f"{self.loss}."
            )

    def __repr__(self) -> str:
        stated = [self.mechanism, *map(str, filter(None, (self.loss, self.protects)))]
        return f"Cost({self.label!r}, {', '.join(stated)}{'' if self.private else ', not private'})"

    @property
    def epsilon(self) -> Fraction | None:
        """The stated epsilon; None for exact counts, and for entries of a ledger by rho alone."""
        return None if self.loss is None else self.loss.epsilon

    @property
    def delta(self) -> Fraction | None:
        """The stated delta; 0 if the loss is pure."""
        return None if self.loss is None else self.loss.delta

    @property
    def rho(self) -> float | None:
        """The loss of zCDP; None if it is not stated."""
        return None if self.loss is None else self.loss.rho

    def to_dict(self) -> dict[str, Any]:
        """Return the parts in a form that JSON holds without loss: fractions as text such as "1/10"."""
        results: dict[str, Any] = {"label": self.label, "mechanism": self.mechanism}
        if isinstance(self.loss, Zcdp):
            results["rho"] = self.loss.rho
            if self.loss.epsilon is not None and self.loss.delta is not None:
                results["implies"] = [exact_text("epsilon", self.loss.epsilon), exact_text("delta", self.loss.delta)]
        elif self.loss is not None:
            results["epsilon"] = exact_text("epsilon", self.loss.epsilon)
            if isinstance(self.loss, Approx):
                results["delta"] = exact_text("delta", self.loss.delta)
                results |= {} if self.loss.rho is None else {"rho_of_noise": self.loss.rho}
        if self.protects is not None:
            results["protects"] = str(self.protects)
        if isinstance(self.protects, Protects):
            results |= {} if self.protects.max_rows == 1 else {"max_rows": self.protects.max_rows}
            weight = self.protects.largest_weight
            results |= {} if weight is None else {"largest_weight": weight}
        results |= {} if self.private else {"private": False}
        results |= {} if self.sampling_rate == 1 else {"sampling_rate": self.sampling_rate}
        for name in ("noise", "versions"):
            results |= {name: dict(getattr(self, name))} if getattr(self, name) else {}
        results |= {} if self.ledger_total is None else {"ledger_total": list(self.ledger_total)}
        for name in ("chooses", "id", "holder"):
            results |= {name: getattr(self, name)} if getattr(self, name) else {}
        return results

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Cost:
        """Invert `to_dict`; ValueError, KeyError or TypeError if the parts are not a cost.

        Entries of ledgers of earlier versions are read as well.
        """
        values = dict(parts)
        stated = [values.pop(name, None) for name in ("epsilon", "delta", "rho", "implies", "rho_of_noise")]
        epsilon, delta, rho, implied, of_noise = stated
        loss: Loss | None = None
        if rho is not None:
            if epsilon is not None or delta is not None:
                raise ValueError("A cost has either an epsilon or a rho: give exactly one of them.")
            loss = Zcdp(rho, *map(_exact, ("epsilon", "delta"), implied or ()))
        elif epsilon is not None:
            exact = _exact("epsilon", epsilon)
            loss = Approx(exact, _exact("delta", delta), of_noise) if delta else Pure(exact)
        protects = values.pop("protects", None)
        limits: dict[str, Any] = {name: values.pop(name) for name in ("max_rows", "largest_weight") if name in values}
        for name in ("noise", "versions"):
            if name in values:
                values[name] = tuple(values[name].items())
        return cls(loss=loss, protects=_protected(protects, limits), **values)


def _protected(text: Any, limits: dict[str, Any]) -> Protects | str | None:
    """Read what a cost protects from its text, if it is one that `Protects` writes."""
    for neighbours, change in _CHANGE.items():
        if isinstance(text, str) and text.startswith("one ") and text.endswith(f" {change}"):
            return Protects(neighbours, text[4 : -len(change) - 1], **limits)
    if limits:
        raise ValueError("A cost states limits of a unit, and not which unit it protects.")
    return text  # checked by the constructor


def _exact(name: str, value: Any) -> Fraction:
    return exact_from_text(name, value) if isinstance(value, str) else exact_positive(name, value)
