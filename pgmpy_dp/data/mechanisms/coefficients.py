"""Fourier coefficients of marginals, with noise.

Sensitivity. Integer coefficients d get independent discrete Laplace noise of scales b / w, with public weights w. They
cost at most the largest change of sum |d| w / b, which is the L1 sensitivity of c = w d divided by b: see
:func:`~pgmpy_dp.release.contrasts.fourier_sensitivity`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.data.mechanisms.mechanism import Held, PublicTable, Quote
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.privacy.cost import Pure
from pgmpy_dp.privacy.noise import MAX_SCALE, NoiseSource
from pgmpy_dp.records.memory import Counts
from pgmpy_dp.release import NoisyCoefficients
from pgmpy_dp.release.contrasts import (
    downward_closure,
    fourier_sensitivity,
    noise_scales,
    places,
    subset_index,
    transform,
)
from pgmpy_dp.schema import Clique, Schema


@dataclass(frozen=True)
class _Terms:
    cliques: tuple[Clique, ...]
    held: Mapping[Clique, Sequence[Clique]]
    scale: float


@dataclass(frozen=True)
class FourierCoefficients:
    """Coefficients of cliques' marginals; see :meth:`pgmpy_dp.PrivateDataset.measure_coefficients`."""

    cliques: Iterable[Iterable[str]]
    epsilon: float | Fraction

    def quote(self, public: PublicTable) -> Quote:
        """Price the noise; the terms are the cliques to count and the noise scale."""
        public.require_single_records()
        cliques = public.schema.require(self.cliques)
        closure = downward_closure(public.schema, cliques)
        epsilon = exact_positive("epsilon", self.epsilon)
        cards = {v: public.schema.cardinality(v) for subset in closure for v in subset}
        exact = max(fourier_sensitivity(closure, cards, public.neighbours), 1.0)  # 0 if all variables have one state
        cost, scale = self._price(closure, cards, exact, epsilon)
        largest = max(float(noise_scales(public.schema, subset, scale).max(initial=0.0)) for subset in closure)
        if not 0 < scale <= largest <= MAX_SCALE:
            raise ValueError(
                f"epsilon={float(epsilon)!r} needs noise of scale {largest:.3g}, outside the range of 64-bit "
                "integers: choose a larger epsilon."
            )
        subsets = closure if public.neighbours == "add_remove" else closure[1:]
        paid = public.cost(f"measure {len(subsets)} sets of coefficients", "laplace", Pure(cost))
        held = smallest_holders(public.schema, cliques, subsets)
        return Quote(paid, _Terms(cliques, held, scale))

    def read(self, quote: Quote, held: Held) -> dict[Clique, Counts]:
        """Count the cliques that contain the coefficients."""
        return held.records.counts(tuple(quote.terms.held))

    def draw(
        self, quote: Quote, public: PublicTable, exact: dict[Clique, Counts], noise: NoiseSource
    ) -> NoisyCoefficients:
        """Add independent noise to every integer coefficient."""
        coefficients = integer_coefficients(public.schema, exact, quote.terms.held)
        scales = {subset: noise_scales(public.schema, subset, quote.terms.scale) for subset in coefficients}
        values = perturbed_coefficients(coefficients, scales, noise.discrete_laplace)
        return NoisyCoefficients(
            public.schema, quote.terms.cliques, values, quote.terms.scale, quote.guarantee, public.total
        )

    def _price(
        self, closure: Sequence[Clique], cardinalities: Mapping[str, int], sensitivity: float, epsilon: Fraction
    ) -> tuple[Fraction, float]:
        """Return the charge and the noise scale b, raised by 1e-9 to cover the rounding of scales."""
        return epsilon, sensitivity / float(epsilon) * (1 + 1e-9)


def smallest_holders(
    schema: Schema, cliques: Sequence[Clique], subsets: Sequence[Clique]
) -> dict[Clique, list[Clique]]:
    """For each subset find the smallest clique that contains it: the cliques to count, with the subsets of each."""
    held: dict[Clique, list[Clique]] = {}
    missing = dict.fromkeys(subsets)
    for clique in sorted(cliques, key=schema.cells):
        own = [subset for subset in missing if set(clique).issuperset(subset)]
        if own:
            held[clique] = own
        for subset in own:
            del missing[subset]
    return held


def integer_coefficients(
    schema: Schema, tables: Mapping[Clique, NDArray[np.int64]], held: Mapping[Clique, Sequence[Clique]]
) -> dict[Clique, NDArray[np.int64]]:
    """Compute the exact integer coefficients of the subsets from the tables of the cliques that contain them."""
    place = places(schema)
    found: dict[Clique, NDArray[np.int64]] = {}
    for clique, subsets in held.items():
        ordered = tuple(sorted(clique, key=place.__getitem__))
        full = transform(Table(clique, tables[clique]).margin(ordered).values, schema.shape(ordered))
        found |= {subset: np.asarray(full[subset_index(ordered, subset)], dtype=np.int64) for subset in subsets}
    return found


def perturbed_coefficients(
    coefficients: Mapping[Clique, NDArray[np.int64]],
    scales: Mapping[Clique, NDArray[np.float64]],
    add: Callable[[NDArray[np.int64], float], NDArray[np.int64]],
) -> dict[Clique, NDArray[np.int64]]:
    """Add independent noise to every integer coefficient, at its own scale."""
    if not coefficients:  # only variables with one state
        return {}
    exact = np.concatenate([array.ravel() for array in coefficients.values()])
    each = np.concatenate([scales[subset].ravel() for subset in coefficients])
    noisy, order = np.empty_like(exact), np.argsort(each, kind="stable")
    for same in np.split(order, np.flatnonzero(np.diff(each[order])) + 1):
        noisy[same] = add(exact[same], float(each[same[0]]))
    parts = np.split(noisy, np.cumsum([array.size for array in coefficients.values()])[:-1])
    return {s: part.reshape(array.shape) for (s, array), part in zip(coefficients.items(), parts, strict=True)}
