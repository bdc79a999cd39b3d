"""Counting tables with noise.

Sensitivity. A unit adds at most its contribution (1 for a record) to the sum of a table, so neighbours' tables differ
as stated in :func:`~pgmpy_dp.privacy.noise.table_sensitivity`. Where units or records have weights, the tables are
of whole numbers of parts, and so are contributions; :mod:`~pgmpy_dp.records.units` and :mod:`~pgmpy_dp.records.weights`
argue these. Noisy parts are then divided, which is post-processing. A finer histogram of a number is such a table as
well: its cells cut the public bins by a public rule, and each row is in one of them, or in that of a missing or an
undeclared value. Each table gets noise of the scale at which it costs its share of the charge, and the costs of tables
add up: epsilons under Laplace noise, rhos (zCDP) under Gaussian noise. A block of Gaussian tables has the exact price
of :mod:`pgmpy_dp.privacy.blocks` instead. A Poisson sample of the records is priced by
:func:`~pgmpy_dp.privacy.sampling.epsilon_on_sample`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.privacy.accounting import epsilon_from_renyi, rho_for, zcdp_curve
from pgmpy_dp.privacy.blocks import block_rho, block_scales
from pgmpy_dp.privacy.checks import checked_delta, exact_positive
from pgmpy_dp.privacy.cost import Approx, Loss, Pure, Zcdp
from pgmpy_dp.privacy.guarantee import counted
from pgmpy_dp.privacy.noise import (
    UNIT_WEIGHT,
    NoiseSource,
    gaussian_scale,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
    table_sensitivity,
)
from pgmpy_dp.privacy.sampling import epsilon_on_sample, sampling_fraction
from pgmpy_dp.records.columns import Codes
from pgmpy_dp.records.memory import Counts, count_all, require_countable
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Clique

Shares = Mapping[Clique, Fraction]
# What is charged, and the scale of each table's noise.
Price = tuple[Loss, dict[Clique, float]]


@dataclass(frozen=True)
class NoisyTables:
    """Count the records in every cell of cliques, with noise; see :meth:`pgmpy_dp.PrivateDataset.measure`."""

    cliques: Iterable[Iterable[str]]
    epsilon: float | Fraction
    delta: float = 0.0
    mechanism: str = "auto"
    weights: Iterable[float] | None = None
    sampling_rate: float = 1.0

    def quote(self, public: PublicTable) -> Quote:
        """Price the tables; the terms are the noise scales."""
        shares = shared(public, self.cliques, self.weights)
        epsilon = exact_positive("epsilon", self.epsilon)
        mechanism = noise_of(self.mechanism, self.delta)
        if self.mechanism == "auto" and mechanism == "gaussian" and public.contribution == 1:
            mechanism = "gaussian_block"
        rate = _checked_rate(self.sampling_rate, mechanism, public.neighbours)
        if rate < 1:
            public.require_single_records()
        price = _PRICES.get(mechanism)
        if price is None:
            known = ", ".join(map(repr, ("auto", *_PRICES)))
            raise ValueError(f"mechanism must be one of {known}, got {self.mechanism!r}.")
        loss, scales = price(public, shares, epsilon, epsilon_on_sample(epsilon, rate), self.delta)
        sampled = " on a sample" if rate < 1 else ""
        label = f"measure {counted(len(shares), 'table')}{sampled}"
        noise = "laplace" if isinstance(loss, Pure) else "gaussian"
        return Quote(public.cost(label, noise, loss, sampling_rate=float(rate)), scales)

    def read(self, quote: Quote, held: Held) -> Mapping[Clique, Counts] | Mapping[str, Codes]:
        """Count the records; return their codes instead if a sample of them is to be counted."""
        if quote.cost.sampling_rate == 1.0:
            return held.records.counts(tuple(quote.terms))
        return held.codes_for(quote.terms)

    def draw(self, quote: Quote, public: PublicTable, exact: Any, noise: NoiseSource) -> NoisyMarginals:
        """Add independent noise to every cell."""
        if quote.cost.sampling_rate < 1.0:
            rate = Fraction(str(quote.cost.sampling_rate))
            chosen = noise.coins(rate, next(iter(exact.values())).shape[0])
            sample = {variable: column[chosen] for variable, column in exact.items()}
            exact = count_all(sample, public.schema, tuple(quote.terms))
        laplace = quote.cost.mechanism == "laplace"
        return _released(quote, public, exact, noise.discrete_laplace if laplace else noise.discrete_gaussian)


def noise_of(mechanism: str, delta: float) -> str:
    """Decide what "auto" stands for: Gaussian noise exactly where there is a delta to pay for it."""
    return mechanism if mechanism != "auto" else "gaussian" if delta else "laplace"


@dataclass(frozen=True)
class GaussianTables:
    """Count with Gaussian noise for a given rho of zCDP: one step of a method that has paid for all its steps.

    Attributes
    ----------
    delta : float
        The guarantee states the epsilon that rho implies at this delta.
    """

    cliques: Iterable[Iterable[str]]
    rho: float
    delta: float
    weights: Iterable[float] | None = None

    def quote(self, public: PublicTable) -> Quote:
        """Price the tables; the terms are the noise scales."""
        shares = shared(public, self.cliques, self.weights)
        delta, rho = delta_within(public, self.delta), exact_positive("rho", self.rho)
        # At a large delta a small rho implies epsilon 0; a larger epsilon holds as well.
        epsilon = Fraction(str(max(epsilon_from_renyi(zcdp_curve(self.rho), delta), self.rho)))
        loss = Zcdp(self.rho, epsilon, Fraction(str(delta)))
        label = f"measure {counted(len(shares), 'table')}"
        return Quote(public.cost(label, "gaussian", loss), _gaussian_scales(public, shares, rho))

    def read(self, quote: Quote, held: Held) -> Mapping[Clique, Counts]:
        """Count the records."""
        return held.records.counts(tuple(quote.terms))

    def draw(self, quote: Quote, public: PublicTable, exact: Any, noise: NoiseSource) -> NoisyMarginals:
        """Add independent noise to every cell."""
        return _released(quote, public, exact, noise.discrete_gaussian)


def deviations(quote: Quote) -> dict[Clique, float]:
    """Find the standard deviation of the noise in a cell of each table, in what tables count."""
    parts = UNIT_WEIGHT if quote.guarantee.weighted else 1
    variance = laplace_variance if quote.cost.mechanism == "laplace" else gaussian_variance
    return {clique: variance(scale) ** 0.5 / parts for clique, scale in quote.terms.items()}


def _released(
    quote: Quote, public: PublicTable, exact: Mapping[Clique, Counts], add: Callable[[Counts, float], Counts]
) -> NoisyMarginals:
    tables, scales = perturbed(exact, quote.terms, add), quote.terms
    if quote.guarantee.weighted:  # convert parts to units, or to records of the largest weight; exact for a power of 2
        tables = {clique: table / UNIT_WEIGHT for clique, table in tables.items()}
        scales = {clique: scale / UNIT_WEIGHT for clique, scale in scales.items()}
    return NoisyMarginals(public.schema, tables, scales, quote.guarantee, public.total)


def _laplace(public: PublicTable, shares: Shares, paid: Fraction, epsilon: Fraction, delta: float) -> Price:
    if checked_delta(delta, zero_allowed=True):
        raise ValueError(
            f'The Laplace mechanism has no delta, got delta={delta!r}: leave delta out, or use mechanism="gaussian".'
        )
    one = table_sensitivity(public.neighbours, "l1", public.contribution)
    return Pure(paid), {clique: laplace_scale(epsilon * share, one) for clique, share in shares.items()}


def _gaussian(public: PublicTable, shares: Shares, paid: Fraction, epsilon: Fraction, delta: float) -> Price:
    rho = rho_for(epsilon, delta_within(public, delta))
    return Zcdp(rho, paid, Fraction(str(delta))), _gaussian_scales(public, shares, Fraction(rho))


def _gaussian_scales(public: PublicTable, shares: Shares, rho: Fraction) -> dict[Clique, float]:
    one = table_sensitivity(public.neighbours, "squared_l2", public.contribution)
    return {clique: gaussian_scale(rho * share, one) for clique, share in shares.items()}


def _gaussian_block(public: PublicTable, shares: Shares, paid: Fraction, epsilon: Fraction, delta: float) -> Price:
    delta = delta_within(public, delta)
    if public.contribution != 1:
        raise ValueError(
            "Blocks are priced for single records of equal weight, and these have weights, or units of several: "
            'use mechanism="gaussian".'
        )
    relative = [float(exact_positive("a table's share", share)) ** -0.5 for share in shares.values()]
    scales = dict(zip(shares, block_scales(relative, epsilon, delta, public.neighbours), strict=True))
    return Approx(paid, Fraction(str(delta)), block_rho(list(scales.values()), public.neighbours)), scales


_PRICES = {"laplace": _laplace, "gaussian": _gaussian, "gaussian_block": _gaussian_block}


def delta_within(public: PublicTable, delta: float) -> float:
    if delta == 0:
        raise ValueError(
            "delta must be greater than 0 for Gaussian noise: far below one over the number of records, such as "
            "1e-9. The budget needs a delta too."
        )
    delta = checked_delta(delta, zero_allowed=False)
    if delta > public.budget.delta > 0:
        raise ValueError(
            f"A delta of {delta!r} is more than the budget's, {public.budget.delta!r}: ask for at most that."
        )
    return delta


def shared(
    public: PublicTable, cliques: Iterable[Iterable[str]], weights: Iterable[float] | None
) -> dict[Clique, Fraction]:
    """Check cliques and their weights, and return each table's share of the privacy loss."""
    checked = public.schema.require(cliques)
    for clique in checked:
        require_countable(public.schema, clique)
    return dict(zip(checked, _shares(weights, len(checked)), strict=True))


def perturbed(
    exact: Mapping[Clique, Counts], scales: Mapping[Clique, float], add: Callable[[Counts, float], Counts]
) -> dict[Clique, Any]:
    """Add independent noise to every cell."""
    return {clique: add(np.ravel(table), scales[clique]).reshape(table.shape) for clique, table in exact.items()}


def _shares(weights: Iterable[float] | None, tables: int) -> list[Fraction]:
    if weights is None:
        return [Fraction(1, tables)] * tables
    if isinstance(weights, (str, bytes, dict)) or not isinstance(weights, Iterable):
        raise ValueError(f"weights must list one positive number for each clique, got {type(weights).__name__}.")
    exact = [exact_positive(f"weights[{i}]", weight) for i, weight in enumerate(weights)]
    if len(exact) != tables:
        raise ValueError(f"weights must have one number for each clique: {tables} cliques, {len(exact)} weights.")
    return [weight / sum(exact) for weight in exact]


def _checked_rate(sampling_rate: float, mechanism: str, neighbours: str) -> Fraction:
    """Return a sampling rate as the guarantee will state it; ValueError if samples are not priced for it."""
    rate = Fraction(str(float(sampling_fraction(sampling_rate))))
    if rate < 1 and neighbours != "add_remove":
        raise ValueError(
            "Samples are priced for neighbours that add or remove a record only: leave sampling_rate at 1."
        )
    if rate < 1 and mechanism != "laplace":
        raise ValueError(
            f"Samples are priced for the Laplace mechanism, not for {mechanism!r}: leave sampling_rate at 1."
        )
    return rate
