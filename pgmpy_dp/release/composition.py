"""Several releases of the same records have one guarantee together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from pgmpy_dp.privacy.checks import decimal_above
from pgmpy_dp.release.guarantee import Guarantee


def compose(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Compose what holds for all releases together: epsilons and deltas add (basic composition).

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
    pure = all(guarantee.mechanism == "laplace" for guarantee in guarantees)
    return Guarantee(
        epsilon=decimal_above(sum((Fraction(str(one.epsilon)) for one in guarantees), Fraction(0))),
        delta=decimal_above(sum((Fraction(str(one.delta)) for one in guarantees), Fraction(0))),
        rho=None,
        neighbours=first.neighbours,
        mechanism="laplace" if pure else "several",
        private=all(guarantee.private for guarantee in guarantees),
        unit=first.unit,
        versions={name: text for guarantee in guarantees for name, text in guarantee.versions.items()},
        max_rows=first.max_rows,
    )
