"""Joint guarantee of several releases of the same records."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction

from pgmpy_dp.privacy.checks import decimal_above
from pgmpy_dp.privacy.guarantee import Guarantee, exact, exact_sum


def compose(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Compose guarantees by basic composition: epsilons and deltas add, and so do rhos.

    The sums hold even if measurements were chosen in view of earlier answers. The epsilon implied by the sum of rhos
    would be smaller, but at an order that must not depend on answers. A payment that several guarantees include, such
    as a search of which they are steps or what found the states of their schema, is counted once.

    Parameters
    ----------
    guarantees : sequence of Guarantee
        At least one. A single one is returned unchanged.

    Raises
    ------
    ValueError
        If they have different neighbours or units, or one is for exact counts.

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
        raise ValueError("Exact counts are not a release: they promise nothing, and nor do models fitted to them.")
    for name in ("neighbours", "unit", "max_rows"):
        if len({getattr(guarantee, name) for guarantee in guarantees}) > 1:
            raise ValueError(f"The releases have different {name}: no one promise holds for all of them together.")
    mechanisms = {guarantee.mechanism for guarantee in guarantees}
    gaussian = mechanisms == {"gaussian"}
    shared = tuple(dict.fromkeys(part for guarantee in guarantees for part in guarantee.shared))

    def total(name: str) -> float:
        own = sum((guarantee.own(name) for guarantee in guarantees), Fraction(0))
        return decimal_above(own + exact_sum(shared, name))

    return Guarantee(
        epsilon=total("epsilon"),
        delta=total("delta"),
        rho=total("rho") if gaussian else None,
        neighbours=first.neighbours,
        mechanism=first.mechanism if gaussian or mechanisms == {"laplace"} else "several",
        private=all(guarantee.private for guarantee in guarantees),
        unit=first.unit,
        versions={name: text for guarantee in guarantees for name, text in guarantee.versions.items()},
        max_rows=first.max_rows,
        accepted=any(guarantee.accepted for guarantee in guarantees),
        shared=shared,
    )


def sharing(own: Guarantee, parts: Iterable[Guarantee]) -> Guarantee:
    """Add to a guarantee, as shared parts, the earlier payments that shape the release.

    The mechanism and number of rows remain those of its own noise.

    Raises ValueError if a part has other neighbours or another unit, or is for exact counts.
    """
    new = tuple(part for part in dict.fromkeys(parts) if part not in own.shared)
    if not new or own.mechanism == "none":
        return own
    for part in new:
        if part.mechanism == "none":
            raise ValueError(
                "The schema was found in exact counts, which are not a release: nothing is promised under it."
            )
        for name in ("neighbours", "unit"):
            if getattr(part, name) != getattr(own, name):
                raise ValueError(
                    f"What was found in records for this schema is for {name}={getattr(part, name)!r}, and these "
                    f"records are protected for {name}={getattr(own, name)!r}: no one promise holds for both."
                )
    return replace(
        own,
        epsilon=decimal_above(exact(own.epsilon) + exact_sum(new, "epsilon")),
        delta=decimal_above(exact(own.delta) + exact_sum(new, "delta")),
        rho=None if own.rho is None else decimal_above(exact(own.rho) + exact_sum(new, "rho")),
        private=own.private and all(part.private for part in new),
        accepted=own.accepted or any(part.accepted for part in new),
        shared=(*own.shared, *new),
    )
