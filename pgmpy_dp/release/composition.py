"""Joint guarantee of several releases, of the same records or of different ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    if len(guarantees) == 1:
        return guarantees[0]
    _require_alike(guarantees, ("neighbours", "unit", "max_rows", "largest_weight", "overlap"))
    return _joint(guarantees, sum)


def compose_apart(guarantees: Sequence[Guarantee], overlap: int = 1) -> Guarantee:
    """Compose guarantees of releases of different records by parallel composition.

    Epsilon, delta and rho are each the sum of the `overlap` largest of the releases, and what several of them may share
    is added once.

    Parameters
    ----------
    guarantees : sequence of Guarantee
        At least two, each of a release M_j(D_j) of the records D_j of one holder j.
    overlap : int
        The most holders that may have rows of one unit.

    Raises
    ------
    ValueError
        If they have different neighbours or units, or one is for exact counts, a sample or another union.

    Notes
    -----
    Why this holds, for any set S of joint outputs (M_1(D_1), ..., M_k(D_k)):

    1. Under "add_remove" two unions D and D' are neighbours if D' is D with all rows of one unit added or removed at
       every holder that has rows of it. At holders without rows of the unit D_j = D'_j; at each of the others D_j and
       D'_j are neighbours by the holder's own relation. These others, J, are at most `overlap`.
    2. Under "replace_one" they are neighbours if one unit's rows are replaced by another unit's, holder by holder: the
       holders J that have rows of the old unit are those that have rows of the new one. Each holder's number of units
       is public and the same in D and D'. A unit that moves from one holder to another changes two public numbers; as
       with the number of units of a single release, nothing is promised about that.
    3. The holders draw their noise independently. If J is one holder j, fix the outputs of all others. Their
       distribution is the same under D and D', and for each of their values the outputs of j in S form a set S', of
       which P[M_j(D_j) in S'] <= exp(epsilon_j) P[M_j(D'_j) in S'] + delta_j. Averaged over the others' outputs,
       P[M(D) in S] <= exp(epsilon_j) P[M(D') in S] + delta_j. Which holder has the unit is unknown, so epsilon and
       delta are the largest of all. A Renyi divergence of independent outputs is the sum over holders, where all but
       that of j are 0: rho is the largest too.
    4. If J has several holders, their outputs together are a basic composition of |J| mechanisms, each run on data
       that are neighbours by its own relation: epsilons, deltas and rhos add over J, and the others are fixed as in 3.
       The sum over J is at most the sum of the `overlap` largest, of each kind by itself.
    5. A holder may choose its tables in view of another's release: in 3, M_j given the others' outputs is as private
       as its guarantee states, and the others' choices are post-processing of M_j's output.
    6. Payments in `shared` name what was found in records, such as states of the schema that all holders use, but not
       at which holder. The unit may be among those records whichever release states the payment: each is added in full.

    Examples
    --------
    >>> north, south, west = (Guarantee(e, 0.0, None, "add_remove", "laplace", True) for e in (0.5, 1.0, 2.0))
    >>> compose_apart([north, south, west]).epsilon, compose_apart([north, south, west], overlap=2).epsilon
    (2.0, 3.0)
    >>> print(compose_apart([north, south]))  # doctest: +NORMALIZE_WHITESPACE
    differentially private with epsilon = 1.0, for one record added or removed in one of the united releases
    (discrete Laplace noise)
    """
    _require_alike(guarantees, ("neighbours", "unit", "max_rows", "largest_weight"))
    if any(guarantee.overlap or guarantee.sampling_rate < 1 for guarantee in guarantees):
        raise ValueError("Only releases of all records of one holder can be united, not samples or other unions.")
    whole = _joint(guarantees, lambda amounts: sum(sorted(amounts, reverse=True)[:overlap]))
    return replace(whole, overlap=overlap)


def _require_alike(guarantees: Sequence[Guarantee], names: Sequence[str]) -> None:
    if any(guarantee.mechanism == "none" for guarantee in guarantees):
        raise ValueError("Exact counts are not a release: they promise nothing, and nor do models fitted to them.")
    for name in names:
        if len({getattr(guarantee, name) for guarantee in guarantees}) > 1:
            raise ValueError(f"The releases have different {name}: no one promise holds for all of them together.")


def _joint(guarantees: Sequence[Guarantee], combined: Callable[[list[Fraction]], Fraction | int]) -> Guarantee:
    """Combine the releases' own epsilons, deltas and rhos, and add shared parts once."""
    first = guarantees[0]
    mechanisms = {guarantee.mechanism for guarantee in guarantees}
    gaussian = mechanisms == {"gaussian"}
    shared = tuple(dict.fromkeys(part for guarantee in guarantees for part in guarantee.shared))

    def total(name: str) -> float:
        return decimal_above(combined([guarantee.own(name) for guarantee in guarantees]) + exact_sum(shared, name))

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
        largest_weight=first.largest_weight,
        accepted=any(guarantee.accepted for guarantee in guarantees),
        shared=shared,
        overlap=first.overlap,
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
