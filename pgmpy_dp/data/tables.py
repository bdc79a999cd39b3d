"""Noisy counting tables: their price, the sample of records that they may count, their noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.accounting import rho_for
from pgmpy_dp.privacy.charges import Charge
from pgmpy_dp.privacy.checks import checked_delta, exact_positive
from pgmpy_dp.privacy.mechanisms import UNIT_WEIGHT, gaussian_scale, laplace_scale, table_sensitivity
from pgmpy_dp.privacy.noise import NoiseSource
from pgmpy_dp.privacy.sampling import epsilon_on_sample, sampling_fraction
from pgmpy_dp.records.columns import Codes
from pgmpy_dp.records.counting import Counts, count
from pgmpy_dp.schema import Clique, Schema


@dataclass(frozen=True)
class TablePrice:
    """What noisy tables cost: the charge, the noise scale of each that keeps their sum within it, and their delta."""

    charge: Charge
    scales: Mapping[Clique, float]
    delta: float


def price_tables(
    cliques: Sequence[Clique],
    weights: Iterable[float] | None,
    epsilon: Fraction,
    delta: float,
    mechanism: str,
    rate: Fraction,
    neighbours: str,
    contribution: int,
    most_delta: float,
) -> TablePrice:
    """Share a charge among tables, in proportion to their weights; see `PrivateDataset.measure`.

    Parameters
    ----------
    cliques, weights, epsilon, delta, mechanism
        As `PrivateDataset.measure`, the cliques and epsilon checked.
    rate : Fraction
        From :func:`checked_rate`.
    neighbours : str
    contribution : int
        The most that one unit adds to a table in sum.
    most_delta : float
        The budget's delta.

    Raises
    ------
    ValueError
        If weights, delta or mechanism are out of range, or the noise is.
    """
    shares = dict(zip(cliques, _shares(weights, len(cliques)), strict=True))
    label = f"measure {len(cliques)} table{'s' if len(cliques) > 1 else ''}{' on a sample' if rate < 1 else ''}"
    if mechanism == "laplace":
        if checked_delta(delta, zero_allowed=True):
            raise ValueError(
                f'The Laplace mechanism has no delta, got delta={delta!r}: leave it out, or use mechanism="gaussian".'
            )
        one = table_sensitivity(neighbours, "l1", contribution)
        inside = epsilon_on_sample(epsilon, rate)
        scales = {clique: laplace_scale(inside * share, one) for clique, share in shares.items()}
        return TablePrice(Charge(label, mechanism, epsilon=epsilon), scales, 0.0)
    if mechanism == "gaussian":
        delta = checked_delta(delta, zero_allowed=False)
        if delta > most_delta > 0:
            raise ValueError(f"delta={delta!r} is more than the budget's delta={most_delta!r}: ask for at most that.")
        rho = rho_for(epsilon, delta)
        one = table_sensitivity(neighbours, "squared_l2", contribution)
        scales = {clique: gaussian_scale(Fraction(rho) * share, one) for clique, share in shares.items()}
        return TablePrice(Charge(label, mechanism, rho=rho), scales, delta)
    raise ValueError(f'mechanism must be "laplace" or "gaussian", got {mechanism!r}.')


def _shares(weights: Iterable[float] | None, tables: int) -> list[Fraction]:
    if weights is None:
        return [Fraction(1, tables)] * tables
    if isinstance(weights, (str, bytes, dict)) or not isinstance(weights, Iterable):
        raise ValueError(f"weights must list one positive number for each clique, got {type(weights).__name__}.")
    exact = [exact_positive(f"weights[{i}]", weight) for i, weight in enumerate(weights)]
    if len(exact) != tables:
        raise ValueError(f"weights must have one number for each clique: {tables} cliques, {len(exact)} weights.")
    return [weight / sum(exact) for weight in exact]


def checked_rate(sampling_rate: float, mechanism: str, neighbours: str) -> Fraction:
    """A sampling rate, as the guarantee will state it, for which samples are priced.

    Raises
    ------
    ValueError
        If it is out of range, or samples are not priced for the mechanism or the relation.
    """
    rate = Fraction(str(float(sampling_fraction(sampling_rate))))
    if rate < 1 and neighbours != "add_remove":
        raise ValueError(
            f"sampling_rate={sampling_rate!r}: sampling is priced for records added or removed, and this data set "
            f"has neighbours={neighbours!r}: leave sampling_rate at 1."
        )
    if rate < 1 and mechanism != "laplace":
        raise ValueError(
            f"sampling_rate={sampling_rate!r}: sampling is priced for the Laplace mechanism, not for "
            f"{mechanism!r}: leave sampling_rate at 1."
        )
    return rate


def sampled_counts(
    codes: Mapping[str, Codes], schema: Schema, cliques: Iterable[Clique], rate: Fraction, noise: NoiseSource
) -> dict[Clique, Counts]:
    """Tables of one Poisson sample of the records."""
    chosen = noise.coins(rate, next(iter(codes.values())).shape[0])
    sample = {variable: column[chosen] for variable, column in codes.items()}
    return {clique: count(sample, schema, clique) for clique in cliques}


def perturb_tables(
    counts: Mapping[Clique, Counts],
    scales: Mapping[Clique, float],
    mechanism: str,
    noise: NoiseSource,
    weighted: bool,
) -> tuple[dict[Clique, NDArray[Any]], Mapping[Clique, float]]:
    """Independent noise on every cell; tables and scales in units where units share a weight."""
    draw = noise.discrete_laplace if mechanism == "laplace" else noise.discrete_gaussian
    tables: dict[Clique, NDArray[Any]] = {
        clique: draw(np.ravel(table), scales[clique]).reshape(table.shape) for clique, table in counts.items()
    }
    if not weighted:
        return tables, scales
    # From parts of a unit's weight to units: exact, UNIT_WEIGHT is a power of 2.
    return (
        {clique: table / UNIT_WEIGHT for clique, table in tables.items()},
        {clique: scale / UNIT_WEIGHT for clique, scale in scales.items()},
    )
