"""Counting tables with noise.

Sensitivity. A unit adds at most its contribution (1 for a record) to the sum of a table, so neighbours' tables differ
as stated in :func:`~pgmpy_dp.privacy.noise.table_sensitivity`. Where units or records have weights, the tables are
of whole numbers of parts, and so are contributions; :mod:`~pgmpy_dp.records.units` and :mod:`~pgmpy_dp.records.weights`
argue these. Noisy parts are then divided, which is post-processing. A finer histogram of a number is such a table as
well: its cells cut the public bins by a public rule, and each row is in one of them, or in that of a missing or an
undeclared value. Each table gets noise of the scale at which it costs its share of the charge, and the costs of tables
add up: epsilons under Laplace noise, rhos (zCDP) under Gaussian noise. A block of Gaussian tables has the exact price
of :mod:`pgmpy_dp.privacy.blocks` instead. A Poisson sample of the records is priced by
:func:`~pgmpy_dp.privacy.subsampling.epsilon_on_sample`.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import PrivateRecords, PublicRecords, Quote
from pgmpy_dp.privacy.accounting import epsilon_from_renyi, rho_for, zcdp_curve
from pgmpy_dp.privacy.blocks import block_rho, block_scales
from pgmpy_dp.privacy.checks import checked_delta, exact_positive
from pgmpy_dp.privacy.cost import Approx, Loss, Pure, Zcdp
from pgmpy_dp.privacy.guarantee import counted
from pgmpy_dp.privacy.noise import (
    UNIT_WEIGHT,
    NoiseSource,
    added,
    gaussian_scale,
    gaussian_variance,
    laplace_scale,
    laplace_variance,
    table_sensitivity,
)
from pgmpy_dp.privacy.subsampling import epsilon_on_sample, sampling_fraction
from pgmpy_dp.records import open_records
from pgmpy_dp.records.columns import Codes
from pgmpy_dp.records.memory import Counts, count_all, require_countable
from pgmpy_dp.release import Guarantee, NoisyMarginals
from pgmpy_dp.schema import Clique, Schema

Scales = dict[Clique, float]
# A sample's codes are counted only once it is drawn.
Exact = Mapping[Clique, Counts] | Mapping[str, Codes]


@dataclass(frozen=True)
class CountedTables:
    """Count the records in every cell of cliques, with noise; see :meth:`pgmpy_dp.PrivateDataset.measure`.

    With `rho` in place of epsilon, Gaussian noise costs this much of zCDP: one step of a method that has paid for all
    its steps. The guarantee then states the epsilon that rho implies at delta.
    """

    cliques: Iterable[Iterable[str]]
    epsilon: float | Fraction | None = None
    delta: float = 0.0
    mechanism: str = "auto"
    weights: Iterable[float] | None = None
    sampling_rate: float = 1.0
    rho: float | None = None

    def quote(self, public: PublicRecords) -> Quote[Scales]:
        """Price the tables; the terms are the noise scales."""
        shares = shared(public, self.cliques, self.weights)
        label = f"measure {counted(len(shares), 'table')}"
        if self.rho is not None:
            delta, rho = delta_within(public, self.delta), exact_positive("rho", self.rho)
            paid = public.cost(label, "gaussian", Zcdp(self.rho, epsilon_of(self.rho, delta), Fraction(str(delta))))
            return Quote(paid, _gaussian_scales(public, shares, rho))
        epsilon = exact_positive("epsilon", self.epsilon)
        mechanism = noise_of(self.mechanism, self.delta)
        if self.mechanism == "auto" and mechanism == "gaussian" and public.contribution == 1:
            mechanism = "gaussian_block"
        rate = _checked_rate(self.sampling_rate, mechanism, public.neighbours)
        if rate < 1:
            public.require_single_records()
        if mechanism not in ("laplace", "gaussian", "gaussian_block"):
            known = "'auto', 'laplace', 'gaussian', 'gaussian_block'"
            raise ValueError(f"mechanism must be one of {known}, got {self.mechanism!r}.")
        loss, scales = _price(public, shares, mechanism, epsilon, epsilon_on_sample(epsilon, rate), self.delta)
        noise = "laplace" if isinstance(loss, Pure) else "gaussian"
        label += " on a sample" if rate < 1 else ""
        return Quote(public.cost(label, noise, loss, sampling_rate=float(rate)), scales)

    def read(self, quote: Quote[Scales], records: PrivateRecords) -> Exact:
        """Count the records; return their codes instead if a sample of them is to be counted."""
        if quote.cost.sampling_rate == 1.0:
            return records.counts(quote.terms)
        return records.codes_for(quote.terms)

    def draw(self, quote: Quote[Scales], public: PublicRecords, exact: Any, noise: NoiseSource) -> NoisyMarginals:
        """Add independent noise to every cell."""
        scales = quote.terms
        if quote.cost.sampling_rate < 1.0:
            chosen = noise.coins(Fraction(str(quote.cost.sampling_rate)), next(iter(exact.values())).shape[0])
            sample = {variable: column[chosen] for variable, column in exact.items()}
            exact = count_all(sample, public.schema, tuple(scales))
        add = noise.discrete_laplace if quote.cost.mechanism == "laplace" else noise.discrete_gaussian
        each = np.repeat([scales[clique] for clique in exact], [table.size for table in exact.values()])
        tables: dict[Clique, Any] = perturbed(exact, each, add)
        if quote.guarantee.weighted:  # parts become units, or records of the largest weight; exact for a power of 2
            tables = {clique: table / UNIT_WEIGHT for clique, table in tables.items()}
            scales = {clique: scale / UNIT_WEIGHT for clique, scale in scales.items()}
        return NoisyMarginals(public.schema, tables, scales, quote.guarantee, public.total)


def perturbed(
    exact: Mapping[Clique, Counts], scales: NDArray[np.float64], add: Callable[[Counts, float], Counts]
) -> dict[Clique, Counts]:
    """Add independent noise to every cell at its own scale, by one call for all cells of one scale."""
    if not exact:
        return {}
    noisy = added(np.concatenate([np.ravel(table) for table in exact.values()]), scales, add)
    ends = accumulate(table.size for table in exact.values())
    return {
        clique: noisy[end - table.size : end].reshape(table.shape)
        for (clique, table), end in zip(exact.items(), ends, strict=True)
    }


def noise_of(mechanism: str, delta: float) -> str:
    """Decide what "auto" stands for: Gaussian noise exactly where there is a delta to pay for it."""
    return mechanism if mechanism != "auto" else "gaussian" if delta else "laplace"


def deviations(quote: Quote[Scales]) -> Scales:
    """Find the standard deviation of the noise in a cell of each table, in the units that tables count."""
    parts = UNIT_WEIGHT if quote.guarantee.weighted else 1
    variance = laplace_variance if quote.cost.mechanism == "laplace" else gaussian_variance
    return {clique: variance(scale) ** 0.5 / parts for clique, scale in quote.terms.items()}


def _price(
    public: PublicRecords,
    shares: Mapping[Clique, Fraction],
    mechanism: str,
    paid: Fraction,
    epsilon: Fraction,
    delta: float,
) -> tuple[Loss, Scales]:
    """Find the scales at which tables cost epsilon for the records that are counted, for which `paid` is charged."""
    if mechanism == "laplace":
        if checked_delta(delta, zero_allowed=True):
            raise ValueError(
                f"The Laplace mechanism has no delta, got delta={delta!r}: leave delta out, or use "
                'mechanism="gaussian".'
            )
        one = table_sensitivity(public.neighbours, "l1", public.contribution)
        return Pure(paid), _each(shares, lambda share: laplace_scale(epsilon * share, one))
    delta = delta_within(public, delta)
    if mechanism == "gaussian":
        rho = rho_for(epsilon, delta)
        return Zcdp(rho, paid, Fraction(str(delta))), _gaussian_scales(public, shares, Fraction(rho))
    if public.contribution != 1:
        raise ValueError(
            "Blocks are priced for single records of equal weight, and these have weights, or units of several: "
            'use mechanism="gaussian".'
        )
    relative = _each(shares, lambda share: float(exact_positive("a table's share", share)) ** -0.5)
    scales = dict(zip(shares, block_scales(list(relative.values()), epsilon, delta, public.neighbours), strict=True))
    return Approx(paid, Fraction(str(delta)), block_rho(list(scales.values()), public.neighbours)), scales


def epsilon_of(rho: float, delta: float) -> Fraction:
    """Return the epsilon that a step of a method states: at a large delta, a small rho alone would imply 0."""
    return Fraction(str(max(epsilon_from_renyi(zcdp_curve(rho), delta), rho)))


def _gaussian_scales(public: PublicRecords, shares: Mapping[Clique, Fraction], rho: Fraction) -> Scales:
    one = table_sensitivity(public.neighbours, "squared_l2", public.contribution)
    return _each(shares, lambda share: gaussian_scale(rho * share, one))


def delta_within(public: PublicRecords, delta: float) -> float:
    if delta == 0:
        raise ValueError(
            "delta must be greater than 0 for Gaussian noise: far below one over the number of records, such as "
            "1e-9. The budget needs a delta too."
        )
    delta = checked_delta(delta, zero_allowed=False)
    if delta > public.delta > 0:
        raise ValueError(f"A delta of {delta!r} is more than the budget's, {public.delta!r}: ask for at most that.")
    return delta


def shared(
    public: PublicRecords, cliques: Iterable[Iterable[str]], weights: Iterable[float] | None
) -> dict[Clique, Fraction]:
    """Check cliques and their weights, and return each table's share of the privacy loss: equal ones are one object."""
    checked = public.schema.require(cliques)
    for clique in checked:
        require_countable(public.schema, clique)
    if weights is None:
        return dict.fromkeys(checked, Fraction(1, max(len(checked), 1)))
    if isinstance(weights, (str, bytes, dict)) or not isinstance(weights, Iterable):
        raise ValueError(f"weights must list one positive number for each clique, got {type(weights).__name__}.")
    known: dict[float, Fraction] = {}
    parts: list[Fraction] = []
    for position, weight in enumerate(weights):
        part = known.get(weight) if type(weight) is float else None
        if part is None:
            part = exact_positive(f"weights[{position}]", weight)
            if type(weight) is float:
                known[weight] = part
        parts.append(part)
    if len(parts) != len(checked):
        raise ValueError(f"weights must have one number for each clique: {len(checked)} cliques, {len(parts)} weights.")
    distinct, counts = {id(part): part for part in parts}, Counter(map(id, parts))
    whole = sum((part * counts[name] for name, part in distinct.items()), Fraction(0))
    share = {name: part / whole for name, part in distinct.items()}
    return {clique: share[id(part)] for clique, part in zip(checked, parts, strict=True)}


def _each(shares: Mapping[Clique, Fraction], scale: Callable[[Fraction], float]) -> Scales:
    """Find each table's scale, once for all tables whose share is the same object."""
    scales = {id(share): scale(share) for share in {id(share): share for share in shares.values()}.values()}
    return {clique: scales[id(share)] for clique, share in shares.items()}


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


def exact_marginals(records: Any, schema: Schema, cliques: Iterable[Iterable[str]]) -> NoisyMarginals:
    """Count the cliques without noise. NOT PRIVATE: the result states so and cannot be saved.

    Parameters
    ----------
    records : frame, array, path or mapping
        One row per record; see :class:`PrivateDataset`.
    schema : Schema
    cliques : iterable of iterables of str

    Returns
    -------
    NoisyMarginals
        With mechanism "none", infinite epsilon, private False and scales 0.

    Raises
    ------
    SchemaError
        If records or cliques do not match the schema.

    Examples
    --------
    >>> import pandas
    >>> records = pandas.DataFrame({"smoke": ["yes", "no", "no"]})
    >>> exact_marginals(records, Schema({"smoke": ["yes", "no"]}), [("smoke",)]).tables[("smoke",)].tolist()
    [1, 2]
    """
    checked = schema.require(cliques)
    for clique in checked:
        require_countable(schema, clique)
    variables = dict.fromkeys(variable for clique in checked for variable in clique)
    tables = open_records(records, schema, variables).counts(checked)
    guarantee = Guarantee.of(math.inf, mechanism="none", private=False)
    return NoisyMarginals(schema, tables, dict.fromkeys(checked, 0.0), guarantee)
