"""Releases read as noisy observations of tables of counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce, singledispatch
from itertools import combinations
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.collective.noise_laws import (
    GaussianNoise,
    LaplaceNoise,
    Law,
    LinearObservations,
    end_to_end,
)
from pgmpy_dp.inference.tables.table import Table, Vector, pooled
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.release import NoisyCoefficients, NoisyMarginals, NoisyResiduals, Release
from pgmpy_dp.release.coefficients import MeasuredCoefficients
from pgmpy_dp.release.contrasts import coefficient_weights, contrasts, subsets_of
from pgmpy_dp.release.kinds import MIN_VARIANCE
from pgmpy_dp.release.marginals import IndependentTables, Variance
from pgmpy_dp.schema import Clique, Schema

# What was measured once, of the same records.
Measured = NoisyMarginals | NoisyResiduals | NoisyCoefficients

LAWS: Mapping[str, Law] = {"laplace": LaplaceNoise, "gaussian": GaussianNoise}

# Largest number of entries of the matrix of all coefficients, which then takes about 0.8 GB.
MAX_ENTRIES = 2**26


@dataclass(frozen=True, eq=False)
class MeanTables(IndependentTables):
    """Tables that were computed from released ones, read like a release."""

    schema: Schema
    tables: Mapping[Clique, NDArray[Any]]
    variances: Mapping[Clique, float]
    total: float
    total_variance: float
    guarantee: Guarantee
    law: str
    chosen_among: ClassVar[Mapping[Clique, int]] = MappingProxyType({})

    @property
    def variables(self) -> tuple[str, ...]:
        """All variables, since each is in a table."""
        return self.schema.variables


@dataclass(frozen=True, eq=False, repr=False)
class MeanCoefficients(MeasuredCoefficients):
    """Coefficients that were computed from released ones or tables, read like a release with normal noise."""

    law = "gaussian"
    schema: Schema
    cliques: tuple[Clique, ...]
    values: Mapping[Clique, Vector]
    deviations: Mapping[Clique, float]
    guarantee: Guarantee

    @property
    def total_variance(self) -> float:
        """The variance of `total`; 0 if the number is public."""
        return self.deviations[()] ** 2


@singledispatch
def observe(release: Any, variables: Sequence[str]) -> LinearObservations:
    """Return noisy linear observations of the marginals of these variables."""
    return release.observations(variables)  # raises, with what it holds


@observe.register
def observe_tables(release: IndependentTables, variables: Sequence[str]) -> LinearObservations:
    """Sum tables over all but these variables; those of the same variables are averaged by precision."""
    names: dict[frozenset[str], Clique] = {}
    tables: dict[Clique, list[tuple[Vector, Variance]]] = {}
    for clique, part in observed_parts(release.cliques, variables).items():
        name = names.setdefault(frozenset(part), part)
        table = Table(clique, release.tables[clique]).margin(name).values.astype(np.float64)
        tables.setdefault(name, []).append((table, release.cell_variance(clique, name)))
    mean = [same[0] if len(same) == 1 else weighted(same) for same in tables.values()]
    observed = np.concatenate([table.ravel() for table, _ in mean])
    variance = np.concatenate([np.broadcast_to(noise, table.shape).ravel() for table, noise in mean])
    owners = np.repeat(np.arange(len(mean)), [table.size for table, _ in mean])
    return LinearObservations(tuple(tables), law_of(release)(observed, variance), owners, None)


@observe.register
def _(release: MeasuredCoefficients, variables: Sequence[str]) -> LinearObservations:
    """Observe the coefficients of all sets of these variables, with contrasts of mean square 1.

    Each is a function of the smallest measured clique that contains its set. The coefficient of the empty set, the
    number of records, is observed separately.
    """
    from scipy import sparse  # slow to import, and only fits need it

    measured = maximal(observed_parts(release.cliques, variables).values())
    schema, values = release.schema, release.to_coefficients().values
    holder: dict[Clique, Clique] = {}
    for clique in sorted(measured, key=schema.cells):
        for subset in filter(None, subsets_of(schema, clique)):
            holder.setdefault(subset, clique)
    functions = {v: sparse.csr_array(contrasts(schema.cardinality(v)).scaled) for clique in measured for v in clique}

    def rows(subset: Clique, clique: Clique) -> list[Any]:
        return [functions[v][1:] if v in subset else functions[v][:1] for v in clique]

    # Python's integers, since the number of entries may exceed 64 bits.
    entries = sum(reduce(lambda n, part: n * int(part.nnz), rows(s, c), 1) for s, c in holder.items())
    if entries > MAX_ENTRIES:
        raise ValueError(
            f"The coefficients of the release are sums of {entries:,} table cells in all, more than "
            f"{MAX_ENTRIES:,}: use PrivateBayesianEstimator, or measure smaller cliques."
        )
    blocks: dict[Clique, list[Any]] = {clique: [] for clique in measured}
    observed: dict[Clique, list[Vector]] = {clique: [] for clique in measured}
    variance: dict[Clique, list[Vector]] = {clique: [] for clique in measured}
    for subset, clique in holder.items():
        blocks[clique].append(reduce(lambda a, b: sparse.kron(a, b, format="csr"), rows(subset, clique)))
        # Rows follow the clique's order of axes, coefficients that of the schema.
        axes = [subset.index(v) for v in clique if v in subset]
        weights = coefficient_weights(schema, subset)
        observed[clique].append((weights * values[subset]).transpose(axes).ravel())
        variance[clique].append((weights**2 * release.noise_variances[subset]).transpose(axes).ravel())
    cells = [schema.cells(clique) for clique in measured]
    diagonal = [
        sparse.vstack(blocks[clique], format="csr") if blocks[clique] else sparse.csr_array((0, size))
        for clique, size in zip(measured, cells, strict=True)
    ]
    matrix = sparse.csr_array(sparse.block_diag(diagonal, format="csr"))
    owners = np.repeat(np.arange(len(measured)), [block.shape[0] for block in diagonal])
    noisy = [np.concatenate([part for clique in measured for part in parts[clique]]) for parts in (observed, variance)]
    if release.total_variance:  # the sum of any table
        sums = sparse.csr_array((np.arange(sum(cells)) < cells[0]).astype(np.float64)[None, :])
        matrix = sparse.csr_array(sparse.vstack([matrix, sums]))
        owners = np.append(owners, -1)
        totals = (release.total, release.total_variance)
        noisy = [np.append(own, value) for own, value in zip(noisy, totals, strict=True)]
    return LinearObservations(measured, law_of(release)(*noisy), owners, matrix)


def law_of(release: Any) -> Law:
    """Return the distribution of the noise in a release."""
    return LAWS[release.law]


def with_noise(release: Any, clique: Clique, tables: Mapping[Clique, NDArray[Any]] | None = None) -> Any:
    """Return the least noisy table of a clique, from the release or other tables, with the noise of each cell."""
    measured = release.clique_containing(clique)
    table = Table(measured, (tables or release.tables)[measured]).margin(clique).values.astype(np.float64)
    return law_of(release)(table, release.cell_variance(measured, clique))


def weighted(same: Sequence[tuple[Vector, Variance]]) -> tuple[Vector, Variance]:
    """Average noisy tables of the same counts, weighted by precision; return the variance of the mean too."""
    tables, variances = zip(*same, strict=True)
    mean, precision = pooled(tables, [1.0 / np.maximum(variance, MIN_VARIANCE) for variance in variances])
    return mean, 1.0 / precision


def side_by_side(observations: Sequence[LinearObservations]) -> LinearObservations:
    """Join observations of the same records, whose tables may repeat."""
    from scipy import sparse

    before = np.cumsum([0, *(len(part.cliques) for part in observations)])
    owners = [np.where(p.owners < 0, -1, p.owners + start) for p, start in zip(observations, before, strict=False)]
    tables = all(part.matrix is None for part in observations)
    return LinearObservations(
        tuple(clique for part in observations for clique in part.cliques),
        end_to_end([part.noise for part in observations]),
        np.concatenate(owners),
        None if tables else sparse.csr_array(sparse.block_diag([part.sums for part in observations], format="csr")),
    )


def first_containing(releases: Sequence[Release], clique: Clique) -> Release | None:
    """Return the first release with a measured clique that contains this one, or None."""
    return next(iter(_containing(releases, clique)), None)


def lowest_noise(releases: Sequence[Release], clique: Clique) -> tuple[Vector, float]:
    """Return the least noisy table of a clique, and its variance, from the releases that contain the clique."""
    return min((release.marginal(clique) for release in _containing(releases, clique)), key=lambda table: table[1])


def _containing(releases: Sequence[Release], clique: Clique) -> Iterable[Release]:
    wanted = set(clique)
    return (r for r in releases if any(wanted <= set(measured) for measured in r.cliques))


def detail_of(releases: Sequence[Release], variable: str) -> tuple[tuple[float, ...], float] | None:
    """Pool a number's finer histograms, without states that are not numbers: shares and their deviation, or None."""
    results = [
        (table[: len(detail.bins.labels)] / release.total, (release.total / release.noise(clique)[1]) ** 2)
        for release in releases
        for clique, table in release.details.items()
        for detail in [release.schema.details[clique[0]]]
        if detail.variable == variable
    ]
    if not results:
        return None
    shares, precision = pooled(*zip(*results, strict=True))
    return tuple(shares.tolist()), float(precision**-0.5)


def observed_parts(cliques: Sequence[Clique], variables: Sequence[str]) -> dict[Clique, Clique]:
    """Restrict every measured clique to the given variables, of which each must be in one, else ValueError."""
    known = set(variables)
    parts = {clique: tuple(variable for variable in clique if variable in known) for clique in cliques}
    seen = {variable for part in parts.values() for variable in part}
    unseen = [variable for variable in variables if variable not in seen]
    if unseen:
        raise ValueError(
            f"The release says nothing of {', '.join(map(repr, unseen))}: no measured clique contains them. It holds "
            f"{', '.join(map(str, cliques))}."
        )
    return {clique: part for clique, part in parts.items() if part}


def joined_pairs(cliques: Iterable[Clique]) -> set[frozenset[str]]:
    """Return the pairs of variables that are in a table together."""
    return {frozenset(pair) for clique in cliques for pair in combinations(clique, 2)}


def maximal(cliques: Iterable[Clique]) -> tuple[Clique, ...]:
    """Return the cliques that no other contains; of those with equal variables, the first."""
    kept: dict[frozenset[str], Clique] = {}
    for clique in cliques:
        kept.setdefault(frozenset(clique), clique)
    larger = {size: [each for each in kept if len(each) > size] for size in {len(each) for each in kept}}
    return tuple(clique for own, clique in kept.items() if not any(own < other for other in larger[len(own)]))
