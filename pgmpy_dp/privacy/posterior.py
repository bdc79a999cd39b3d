"""Privacy cost of a draw from a truncated posterior, and the truncation or tempering that meets an epsilon.

The rows theta of the CPDs of |I| nodes with prior xi are drawn with density proportional to xi(theta) times
p(records | theta) to the power lam, restricted to rows whose probabilities are all at least w. On these rows one
record's log-likelihood varies, in theta or between records, by at most

    R = sum over nodes i of R_i,    R_i = log((1 - (r_i - 1) w_i) / w_i),

since a record contributes to one row of each node, and of r probabilities of at least w the largest is at most
1 - (r - 1) w. Replacing a record changes lam log p by at most lam R at every theta, and the log of the normalising
constant by as much: one draw costs 2 lam R. Adding a record multiplies the density by p(x | theta)**lam over its
posterior mean, and the logarithms of these lie within lam R of each other: one draw costs lam R. (Zhang, Rubinstein
and Dimitrakakis 2016, Theorem 4(1) and Algorithm 3; Dimitrakakis et al. 2014.)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from pgmpy_dp.privacy.checks import exact_positive, whole_number

# Share of epsilon reserved for floating point: the log-probability of an outcome is off by some units in the last place
# of the range of its log-weights, at most 1e-14 * records * R in total. This covers a hundred million records.
RESERVE = 1e-6

# Smallest epsilon per side of a replacement and node of two states. Log-weights are sums of numbers that need not be
# small, which adds errors of up to 2e-14 per such node to a draw. More states have smaller volumes, whose logarithms
# lose digits: draws at the ends of the grid were off by 8e-14 at 16 states, by 6e-13 at 64 and by 3e-12 at 256. The
# smallest epsilon grows faster than that, with the power _GROWTH of half the number of states.
_MIN, _GROWTH = 1e-8, 1.5

# Widest range R_i: its smallest probability is 1e-13, so truncating there is negligible.
WIDEST = 30.0


def draw_cost(ranges: Sequence[float], power: float, neighbours: str) -> float:
    """Compute the epsilon of one draw, rounded up: 2 lam sum R_i, or lam sum R_i under "add_remove"."""
    return _sides(neighbours) * power * math.fsum(ranges) * (1 + RESERVE)


def total_epsilon(epsilon: Any, draws: Any, split: bool) -> tuple[Fraction, Fraction]:
    """Return the epsilon of one draw and of all draws together."""
    exact = exact_positive("epsilon", epsilon)
    number = whole_number("draws", draws)
    return (exact / number, exact) if split else (exact, exact * number)


def require_different_nodes(families: Sequence[Sequence[str]]) -> None:
    """Refuse families of which two start with the same node, to whose rows a record would contribute twice."""
    if len({family[0] for family in families}) < len(families):
        raise ValueError("families must start with different nodes: each node is counted in one family only.")


def floor_of(span: float, states: int) -> float:
    """Return the smallest probability w in a row of range R: 1 / (exp(R) + r - 1)."""
    return 1.0 / (math.exp(span) + states - 1)


def range_of(floor: float, states: int) -> float:
    """Return the range R of the log-probabilities in a row whose probabilities are all at least w."""
    return math.log1p((1.0 - states * floor) / floor) if states > 1 else 0.0


def truncation(states: Sequence[int], epsilon: Fraction, neighbours: str) -> list[float]:
    """Find the ranges R_i of the nodes' rows for which one posterior draw costs at most epsilon.

    Epsilon is divided equally among the nodes with more than one state.

    Raises ValueError if epsilon is too small for floating-point numbers; the message states the smallest epsilon.
    """
    changes = _sides(neighbours) * sum(r > 1 for r in states)
    _require_room(float(epsilon), states, neighbours)
    share = float(epsilon) / max(changes, 1) * (1 - 2 * RESERVE)
    return [min(share, WIDEST) if r > 1 else 0.0 for r in states]


def tempering(states: Sequence[int], floor: float, epsilon: Fraction, neighbours: str) -> tuple[list[float], float]:
    """Find the ranges R_i and the power of the likelihood for which one draw of the exponential mechanism costs
    epsilon.

    The score is the log-likelihood and the base measure the truncated prior. The power is epsilon / (2 R), or
    epsilon / R under "add_remove".

    Raises ValueError if the floor leaves no probabilities for a node, or epsilon is too small for floating-point
    numbers; the message states the limit.
    """
    maximum = max(states)
    if not floor * maximum < 1:
        raise ValueError(
            f"floor={floor!r} leaves no room for {maximum} states: it must be below 1 / {maximum}, {1 / maximum:.6g}."
        )
    ranges = [range_of(floor, r) for r in states]
    _require_room(float(epsilon), states, neighbours)
    cost = _sides(neighbours) * math.fsum(ranges)
    return ranges, float(epsilon) / cost * (1 - 2 * RESERVE) if cost else 1.0


def _sides(neighbours: str) -> int:
    """Count the rows of a node that one record can change."""
    return 1 if neighbours == "add_remove" else 2


def _require_room(epsilon: float, states: Sequence[int], neighbours: str) -> None:
    """Raise if epsilon is below the floating-point error of the rows that one record can change."""
    minimum = _MIN * _sides(neighbours) * math.fsum((r // 2) ** _GROWTH for r in states if r > 1)
    if epsilon < minimum:
        raise ValueError(f"epsilon={epsilon!r} is too small for a draw from this network: use at least {minimum!r}.")
