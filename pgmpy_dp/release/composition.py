"""Several releases of the same records have one guarantee together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pgmpy_dp.privacy.checks import decimal_above
from pgmpy_dp.release.guarantee import Guarantee


def compose(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Compose what holds for all releases together: epsilons and deltas add (basic composition), as do rhos.

    Sums hold whatever was measured next in view of earlier answers. The epsilon that follows from a sum of rhos is
    less, but at an order that must not depend on answers.

    Parameters
    ----------
    guarantees : sequence of Guarantee
        At least one. One alone is returned as it is.

    Raises
    ------
    ValueError
        If they are for different changes of the records, or one is for exact counts.

    Examples
    --------
    >>> one = Guarantee(0.1, 0.0, None, "add_remove", "laplace", True)
    >>> print(compose([one, one, one]))
    differentially private with epsilon = 0.3, for one record added or removed (discrete Laplace noise)
    """
    first = guarantees[0]
    if len(guarantees) == 1:
        return first
    if any(guarantee.mechanism == "none" for guarantee in guarantees):
        raise ValueError("Exact counts are no release: they promise nothing, and nor does what is fitted to them.")
    for name in ("neighbours", "unit", "max_rows"):
        if len({getattr(guarantee, name) for guarantee in guarantees}) > 1:
            raise ValueError(f"The releases have different {name}: no one promise holds for all of them together.")
    mechanisms = {guarantee.mechanism for guarantee in guarantees}
    gaussian = mechanisms == {"gaussian"}
    return Guarantee(
        epsilon=_total(guarantees, "epsilon"),
        delta=_total(guarantees, "delta"),
        rho=_total(guarantees, "rho") if gaussian else None,
        neighbours=first.neighbours,
        mechanism=first.mechanism if gaussian or mechanisms == {"laplace"} else "several",
        private=all(guarantee.private for guarantee in guarantees),
        unit=first.unit,
        versions={name: text for guarantee in guarantees for name, text in guarantee.versions.items()},
        max_rows=first.max_rows,
        accepted=any(guarantee.accepted for guarantee in guarantees),
    )


def _total(guarantees: Sequence[Guarantee], name: str) -> float:
    return decimal_above(sum((Fraction(str(getattr(one, name))) for one in guarantees), Fraction(0)))
