"""A charge is one entry of a ledger: what a mechanism costs, and what it protects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any

from pgmpy_dp.privacy.checks import checked_delta, exact_from_text, exact_positive, exact_text


@dataclass(frozen=True)
class Charge:
    """A charge states what a mechanism costs, as epsilon and delta or as rho of zCDP.

    Parameters
    ----------
    label : str
        What was asked, for the history. Public: it must not depend on records.
    mechanism : str
        Name of the mechanism, such as "laplace" or "gaussian".
    epsilon : Fraction or None
        Exact epsilon. Other numbers become ``Fraction(str(epsilon))``.
    rho : float or None
        zCDP parameter. Exactly one of epsilon and rho is given.
    delta : Fraction or None
        Exact delta that comes with epsilon, in (0, 1), for a block: a plan of many steps that was priced as a whole
        before its first step. None (or 0) for a pure charge. Other numbers become ``Fraction(str(delta))``.
    protects : str or None
        What neighbours differ in, such as "one record added or removed": charges add up only where they agree in it.
        None: not stated, for charges that are entered by hand.

    Raises
    ------
    ValueError
        If both or neither of epsilon and rho are given, a number is out of range, or rho comes with a delta.

    Examples
    --------
    >>> Charge("two tables", "laplace", epsilon=Fraction("0.1")).epsilon
    Fraction(1, 10)
    """

    label: str
    mechanism: str
    epsilon: Fraction | None = None
    rho: float | None = None
    delta: Fraction | None = None
    protects: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not isinstance(self.mechanism, str):
            raise ValueError("A charge's label and mechanism must be text.")
        if self.protects is not None and not isinstance(self.protects, str):
            raise ValueError("What a charge protects must be text.")
        if (self.epsilon is None) == (self.rho is None):
            raise ValueError("A charge has either an epsilon or a rho: give exactly one of them.")
        if self.epsilon is not None:
            object.__setattr__(self, "epsilon", exact_positive("epsilon", self.epsilon))
        else:
            exact_positive("rho", self.rho)
            object.__setattr__(self, "rho", float(self.rho))  # type: ignore[arg-type]
        if self.delta is not None:
            checked_delta(self.delta, zero_allowed=True)
            object.__setattr__(self, "delta", exact_positive("delta", self.delta) if self.delta else None)
        if self.rho is not None and self.delta:
            raise ValueError("A charge with a rho has no delta of its own: the budget's delta serves it.")

    def to_dict(self) -> dict[str, str | float]:
        """Give the parts as JSON can hold them without loss: fractions as text such as "1/10".

        Examples
        --------
        >>> Charge("two tables", "laplace", epsilon=0.1).to_dict()
        {'label': 'two tables', 'mechanism': 'laplace', 'epsilon': '1/10'}
        """
        given = {part.name: getattr(self, part.name) for part in fields(self)}
        exact = {n: exact_text(n, value) if isinstance(value, Fraction) else value for n, value in given.items()}
        return {name: value for name, value in exact.items() if value is not None}

    @classmethod
    def from_dict(cls, parts: Mapping[str, Any]) -> Charge:
        """Invert `to_dict`; ValueError or TypeError says that the parts are no charge."""
        values: dict[str, Any] = dict(parts)
        for name in values.keys() - {"label", "mechanism", "protects"}:
            if isinstance(values[name], str):
                values[name] = exact_from_text(name, values[name])
        return cls(**values)


def protected(neighbours: str, unit: str = "record") -> str:
    """State what neighbours differ in, as a charge does.

    Examples
    --------
    >>> protected("add_remove", "person_id")
    'one person_id added or removed'
    """
    return f"one {unit} {'added or removed' if neighbours == 'add_remove' else 'replaced by another'}"
