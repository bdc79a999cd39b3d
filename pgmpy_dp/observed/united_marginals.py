"""A union: releases of different records, side by side, as one release with a public variable more."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LinearObservations, Noise, end_to_end
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.observed.reading import law_of, observe, observed_parts
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.privacy.guarantee import Guarantee, counted
from pgmpy_dp.release.archive import Contents, Measurements, checked_guarantee, checked_schema, entry
from pgmpy_dp.release.kinds import MIN_VARIANCE, Release, joint_guarantee, refuse_repeated
from pgmpy_dp.release.marginals import UNIT_VARIANCE, IndependentTables, NoisyMarginals, Variance
from pgmpy_dp.schema import Clique, Schema, State

# Excess kurtosis of a sum of Laplace noise from which it is nearer to that of Laplace noise, 3, than of Gaussian, 0.
_LAPLACE_FROM = 1.5


def union(releases: Mapping[State, NoisyMarginals], variable: str = "site", overlap: int = 1) -> UnitedMarginals:
    """Unite releases of different records, which their holders may not pool, into one.

    Models are fitted to it as to any release. A network with the new variable among its nodes, as made by
    `UnitedMarginals.apart`, and a mixture tell the holders apart. A network without it, and a mixture with
    ``pooled=True``, describe the records of all holders together.

    Parameters
    ----------
    releases : mapping of state to NoisyMarginals
        The release of each holder by its name, which becomes a state of the new variable. Names that are at least
        three ascending numbers or dates, such as ``"2024-01"``, make it an ordered variable of periods.
    variable : str
        Name of the new variable.
    overlap : int
        The largest number of releases that may count rows of one unit, such as a patient of several hospitals. The
        guarantee adds up that number of the largest epsilons, deltas and rhos: with 1 it is the largest.

    Returns
    -------
    UnitedMarginals

    Raises
    ------
    SchemaError
        If the holders declare different states of a variable; `agree` finds a schema for all.
    TypeError, ValueError
        If there are fewer than two releases, or they cannot be united; see `UnitedMarginals`.

    Examples
    --------
    >>> schema = Schema({"smoke": ["yes", "no"]})
    >>> north = NoisyMarginals(schema, {("smoke",): np.array([31, 68])}, {("smoke",): 1.0}, Guarantee.of(1.0))
    >>> south = NoisyMarginals(schema, {("smoke",): np.array([8, 43])}, {("smoke",): 1.0}, Guarantee.of(1.0))
    >>> both = union({"north": north, "south": south})
    >>> both.tables["site", "smoke"].tolist(), both.marginal(("smoke",))[0].tolist(), both.guarantee.epsilon
    ([[31.0, 68.0], [8.0, 43.0]], [39.0, 111.0], 1.0)
    """
    return UnitedMarginals(releases, variable, overlap)


@dataclass(frozen=True, eq=False, repr=False)
class UnitedMarginals(IndependentTables, Release, kind="united_tables", properties=("variable", "overlap", "parts")):
    """Releases of noisy tables of different records as one release, with a public variable that tells them apart.

    Parameters
    ----------
    parts : mapping of state to NoisyMarginals
        At least two. Their noise, tables, privacy losses and variables may differ, but not the states of a variable,
        the unit of privacy or the neighbours.
    variable : str
        Name of the variable whose states are the names of the parts.
    overlap : int
        The largest number of parts that may count rows of one unit.

    Attributes
    ----------
    schema : Schema
        The new variable, then those of the parts.
    guarantee : Guarantee
        By parallel composition, see `pgmpy_dp.privacy.guarantee`.
    cliques : tuple of tuples of str
        The new variable with the variables of each table that a part measured.
    tables : mapping of clique to ndarray
        The tables that all parts measured, side by side: the first axis is the new variable.
    variances : mapping of clique to float
        The mean variance of their cells; observations and fits use that of each part.

    Raises
    ------
    SchemaError
        If the parts declare different states of a variable, or the new variable.
    TypeError
        If a part is another kind of release.
    ValueError
        If a release is given twice, the guarantees differ in unit, rows per unit or neighbours, or one is for a sample
        or for exact counts.

    Notes
    -----
    Without the new variable, the tables of all parts are summed, and so is their noise: these are the counts of all
    records together, whether or not the parts are alike. A table that only some parts measured is assumed to hold for
    the others, up to sampling error; with the new variable it informs only about its own parts.
    A sum of Laplace noise is treated as Laplace or Gaussian noise of its variance, whichever is nearer in kurtosis, so
    that of equal noise of three parts as Gaussian. A sum of both kinds is treated as Gaussian noise.
    """

    parts: Mapping[State, NoisyMarginals]
    variable: str
    overlap: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.parts, Mapping) or len(self.parts) < 2:
            raise ValueError(
                'A union needs two releases or more, each with a name: write union({"north": north, "south": south}).'
            )
        for name, part in self.parts.items():
            if not isinstance(part, NoisyMarginals):
                kind = part.kind.replace("_", " ") if isinstance(part, Release) else type(part).__name__
                raise TypeError(f"{name}: releases of noisy tables can be united, got {kind}.")
        parts = MappingProxyType(dict(self.parts))
        overlap = whole_number("overlap", self.overlap)
        if overlap > len(parts):
            raise ValueError(f"overlap is {overlap}, but there are {len(parts)} releases: it is at most that.")
        refuse_repeated(list(parts.values()))
        guarantee = _united_guarantee(list(parts.values()), overlap)
        self._settle(parts=parts, overlap=overlap, schema=_common_schema(parts, self.variable), guarantee=guarantee)

    @property
    def public_total(self) -> int | None:
        """The number of records of all parts, if it is public."""
        totals = [part.public_total for part in self.parts.values()]
        known = [total for total in totals if total is not None]
        return sum(known) if len(known) == len(totals) else None

    @property
    def totals(self) -> Vector:
        """The number of records of each part."""
        return np.array([part.total for part in self.parts.values()])

    @property
    def total(self) -> float:
        """The number of records of all parts, estimated if it is private."""
        return float(sum(self.totals))

    @property
    def total_variance(self) -> float:
        """The variance of `total`; 0 if the number is public."""
        return sum(part.total_variance for part in self.parts.values())

    @property
    def law(self) -> str:
        """Distribution of the noise in sums over the parts, and in all tables if the parts have the same."""
        return "laplace" if {part.law for part in self.parts.values()} == {"laplace"} else "gaussian"

    @property
    def cliques(self) -> tuple[Clique, ...]:
        """The new variable with the variables of each measured table; those that all parts measured come first."""
        return tuple((self.variable, *clique) for clique in sorted(self._measured, key=lambda c: not self._whole(c)))

    @cached_property
    def _measured(self) -> dict[Clique, list[tuple[NoisyMarginals, Clique] | None]]:
        """For each measured set of variables, by its first name, each part that has its table, by its own name."""
        names: dict[frozenset[str], Clique] = {}
        results: dict[Clique, list[tuple[NoisyMarginals, Clique] | None]] = {}
        for number, part in enumerate(self.parts.values()):
            for clique in part.cliques:
                name = names.setdefault(frozenset(clique), clique)
                results.setdefault(name, [None] * len(self.parts))[number] = (part, clique)
        return results

    def _whole(self, clique: Clique) -> bool:
        return None not in self._measured[clique]

    @cached_property
    def tables(self) -> Mapping[Clique, NDArray[np.float64]]:
        """The tables that all parts measured, with the new variable as first axis."""
        return MappingProxyType(
            {
                (self.variable, *clique): np.stack(
                    [Table(own, part.tables[own]).margin(clique).values.astype(np.float64) for part, own in measured]
                )
                for clique, measured in self._complete.items()
            }
        )

    @property
    def _complete(self) -> dict[Clique, list[tuple[NoisyMarginals, Clique]]]:
        return {c: [each for each in m if each] for c, m in self._measured.items() if self._whole(c)}

    @cached_property
    def variances(self) -> Mapping[Clique, float]:
        """The mean variance of the noise in a cell of each table in `tables`."""
        return MappingProxyType(
            {
                (self.variable, *clique): float(np.mean([part.variances[own] for part, own in measured]))
                for clique, measured in self._complete.items()
            }
        )

    @cached_property
    def details(self) -> Mapping[Clique, Any]:
        """The finer histograms of numbers that all parts measured, summed."""
        first, *others = self.parts.values()
        shared = [clique for clique in first.details if all(clique in part.details for part in others)]
        return {clique: sum(part.details[clique] for part in self.parts.values()) for clique in shared}

    @property
    def scales(self) -> Mapping[Clique, float]:
        """The scale of noise of `law` with the mean variance of a table."""
        return {clique: (variance / UNIT_VARIANCE[self.law]) ** 0.5 for clique, variance in self.variances.items()}

    def cell_variance(self, measured: Clique, clique: Clique) -> Variance:
        """Return the noise variance of the cells of a table's margin, one by one."""
        each = np.array([part.variances[own] for part, own in self._complete[measured[1:]]])
        full = np.broadcast_to(each.reshape(-1, *[1] * (len(measured) - 1)), self.schema.shape(measured))
        return Table(measured, full).margin(clique).values

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the scale and standard deviation of the noise in a cell; the mean over the parts that measured it."""
        if clique in self.details:
            deviation = sum(part.variances[clique] for part in self.parts.values()) ** 0.5
            return deviation / UNIT_VARIANCE[self.law] ** 0.5, deviation
        measured = [part.noise(own) for part, own in filter(None, self._measured[clique[1:]])]
        scale, deviation = np.sqrt(np.mean(np.square(measured), axis=0)).tolist()
        return scale, deviation

    def marginal(self, clique: Clique, tables: Mapping[Clique, NDArray[Any]] | None = None) -> tuple[Vector, float]:
        """Return the least noisy table of a clique, and the (mean) noise variance of its cells.

        Without the new variable it is the sum over the parts. A part without such a table is assumed to be like the
        others; with the new variable, the noise of its cells is as large as its number of records.

        Raises ValueError if no part has a table that contains the clique.
        """
        if tables is not None:
            return super().marginal(clique, tables)
        others = tuple(v for v in clique if v != self.variable)
        slices = [
            part.marginal(others) if any(set(others) <= set(own) for own in part.cliques) else None
            for part in self.parts.values()
        ]
        known = [each for each in slices if each is not None]
        if not known:
            self.clique_containing(clique)  # raises, with advice
        totals = self.totals
        seen = totals[[each is not None for each in slices]].sum()
        shares = sum(table for table, _ in known) / seen
        if self.variable not in clique:
            variance = self._scaled(sum(variance for _, variance in known), seen, shares.size)
            return self.total * shares, variance
        filled = [(own * shares, own**2) if each is None else each for own, each in zip(totals, slices, strict=True)]
        stacked = np.stack([table for table, _ in filled])
        return Table((self.variable, *others), stacked).margin(clique).values, float(np.mean([v for _, v in filled]))

    def _scaled(self, variance: Any, seen: float, cells: int) -> Any:
        """Compute the variance of counts scaled from `seen` records to all: that of noise, and of sampling the rest."""
        factor = self.total / seen
        return factor**2 * variance + (factor - 1.0) * self.total / cells

    def observations(self, variables: Sequence[str]) -> LinearObservations:
        """Return noisy observations of the marginals of these variables, with the noise of each part.

        With the new variable, the parts' numbers of records are observed too: tables with many cells of little more
        than noise would inflate that of a small part.

        Raises ValueError if no part measured a variable.
        """
        observed_parts(self.cliques, variables)
        others, apart = [v for v in variables if v != self.variable], self.variable in variables
        parts = list(self.parts.values())
        names: dict[frozenset[str], Clique] = {}
        results: dict[Clique, dict[int, Noise]] = {}
        for number, part in enumerate(parts):
            own = [variable for variable in others if variable in part.variables]
            if not own:
                continue
            seen = observe(part, own)
            for position, clique in enumerate(seen.cliques):
                name = names.setdefault(frozenset(clique), clique)
                noise = seen.noise.take(np.flatnonzero(seen.owners == position))
                cells = np.arange(noise.observed.size).reshape(self.schema.shape(clique))
                results.setdefault(name, {})[number] = noise.take(Table(clique, cells).margin(name).values.ravel())
        if not apart:
            pooled = [self._summed_noise(by_part) for by_part in results.values()]
            sizes = [noise.observed.size for noise in pooled]
            owners = np.repeat(np.arange(len(pooled)), sizes)
            return LinearObservations(tuple(results), end_to_end(pooled), owners, None)
        totals: Noise = law_of(self)(self.totals, self._total_variances)
        results[()] = {number: totals.take(np.array([number])) for number in range(len(parts))}
        cliques = tuple((self.variable, *name) for name in results)
        slices = [np.isin(np.arange(len(parts)), list(by_part)) for by_part in results.values()]
        sizes = [math.prod(self.schema.shape(name)) if name else 1 for name in results]
        seen_cells = np.concatenate([np.repeat(own, size) for own, size in zip(slices, sizes, strict=True)])
        owners = np.repeat(np.arange(len(results)), [len(parts) * size for size in sizes])[seen_cells]
        noise = end_to_end([by_part[number] for by_part in results.values() for number in sorted(by_part)])
        return LinearObservations(cliques, noise, owners, None if seen_cells.all() else _rows(seen_cells))

    @property
    def apart_releases(self) -> Sequence[Any]:
        """The tables that models of each part by itself are fitted to."""
        return list(self.parts.values())

    def strata(self, clique: Clique) -> tuple[int, Sequence[float]] | None:
        """Return the axis of the new variable and the parts' numbers of records, if the clique has the variable."""
        if self.variable not in clique:
            return None
        return clique.index(self.variable), self.totals.tolist()

    def tables_of(self, variables: Sequence[str]) -> list[tuple[Clique, Vector, float]]:
        """List the tables of these variables; without the new variable among them, sums over the parts."""
        if self.variable in variables:
            return super().tables_of(variables)
        seen = observe(self, variables)
        results = []
        for position, clique in enumerate(seen.cliques):
            noise = seen.noise.take(np.flatnonzero(seen.owners == position))
            table = noise.observed.reshape(self.schema.shape(clique))
            results.append((clique, table, float(np.mean(noise.variance)) ** 0.5))
        return results

    def apart(self, network: Any) -> Any:
        """Return a network without parameters in which each part has its own: the new variable is a parent of all.

        Parameters
        ----------
        network : DiscreteBayesianNetwork or DiscreteMarkovNetwork
            Of the other variables; in a Markov network the new one gets an edge to each of them.

        Returns
        -------
        network
            Of the same class. A network that has the new variable already is copied as it is.

        Examples
        --------
        >>> import pgmpy_dp as dp
        >>> schema, scales = Schema({"smoke": ["yes", "no"]}), {("smoke",): 1.0}
        >>> costs = [Guarantee.of(1.0), Guarantee.of(1.0)]
        >>> north = NoisyMarginals(schema, {("smoke",): np.array([31, 68])}, scales, costs[0])
        >>> south = NoisyMarginals(schema, {("smoke",): np.array([8, 43])}, scales, costs[1])
        >>> all_ = union({"north": north, "south": south})
        >>> network = dp.PrivateBayesianNetwork()
        >>> network.add_node("smoke")
        >>> list(all_.apart(network).edges())
        [('site', 'smoke')]
        """
        result = type(network)()
        result.add_nodes_from([self.variable, *(node for node in network.nodes() if node != self.variable)])
        result.add_edges_from(network.edges())
        if self.variable not in network.nodes():
            result.add_edges_from([(self.variable, node) for node in network.nodes()])
        return result

    @property
    def _total_variances(self) -> Vector:
        return np.maximum([part.total_variance for part in self.parts.values()], MIN_VARIANCE)

    def _summed_noise(self, by_part: Mapping[int, Noise]) -> Noise:
        """Add up observations of the same table by several parts; if some lack it, scaled to all records."""
        seen = self.totals[list(by_part)].sum()
        observed = np.sum([noise.observed for noise in by_part.values()], axis=0) * (self.total / seen)
        each = np.array([noise.variance for noise in by_part.values()])
        variance = each.sum(axis=0)
        kurtosis = 3.0 * np.square(each).sum() / np.square(variance).sum()
        law = GaussianNoise if kurtosis < _LAPLACE_FROM else law_of(self)
        return law(observed, self._scaled(variance, seen, observed.size))

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        parts = [{"state": state, **part.contents()} for state, part in self.parts.items()]
        return super().contents() | {"variable": self.variable, "overlap": self.overlap, "parts": parts}

    def measurements(self) -> Measurements:
        """Return the arrays of numbers in the file: those of the parts, one after the other."""
        return [array for part in self.parts.values() for array in part.measurements()]

    @classmethod
    def interpret(cls, schema: Schema, guarantee: Guarantee, contents: Mapping[str, Any]) -> Contents[Self]:
        """Invert `contents`; what the file states of all parts must follow from them."""
        variable, overlap = entry(contents, "variable", str), entry(contents, "overlap", int)
        read: dict[Any, Contents[NoisyMarginals]] = {}
        expected = {"state", "kind", "schema", "guarantee"} | NoisyMarginals.properties
        for each in entry(contents, "parts", list):
            state = entry(each, "state", str, int, float, bool)
            if set(each) != expected or each["kind"] != NoisyMarginals.kind or state in read:
                raise ValueError(f"each part must have a state of its own, and the properties {sorted(expected)}.")
            read[state] = NoisyMarginals.interpret(checked_schema(each), checked_guarantee(each), each)
        shapes = {
            (str(number), *clique): shape
            for number, part in enumerate(read.values())
            for clique, shape in part.shapes.items()
        }

        def release(counts: dict[Clique, NDArray[Any]]) -> Any:
            parts = {
                state: part.release({clique: counts[str(number), *clique] for clique in part.shapes})
                for number, (state, part) in enumerate(read.items())
            }
            result = cls(parts, variable, overlap)
            if not result.guarantee.states(guarantee) or result.schema != schema:
                raise ValueError(
                    f"the union states another schema or guarantee than its parts give together, {result.guarantee}."
                )
            return result

        return Contents(shapes, release)

    def __repr__(self) -> str:
        lines = [f"UnitedMarginals: {counted(len(self.parts), 'release')} by {self.variable}", str(self.guarantee)]
        lines += [f"{state}: {part.guarantee}" for state, part in list(self.parts.items())[:5]]
        return "\n  ".join([*lines, *([f"and {len(self.parts) - 5} more"] if len(self.parts) > 5 else [])])


def _united_guarantee(parts: Sequence[NoisyMarginals], overlap: int) -> Guarantee:
    if any(part.guarantee.sampling_rate < 1 for part in parts):
        raise ValueError("Only releases of all records of one holder can be united, not samples.")
    paid = [part.guarantee.costs for part in parts]
    if len(frozenset().union(*paid)) < sum(map(len, paid)):
        raise ValueError("Two releases were paid for by one cost: they count the same records, and are joined.")
    sites = frozenset(frozenset(cost.holder or cost.id for cost in own) for own in paid)
    whole = joint_guarantee(parts)
    return replace(whole, overlap=overlap, sites=whole.sites | sites)


def _common_schema(parts: Mapping[State, NoisyMarginals], variable: str) -> Schema:
    """Return the schema of all parts, with the new variable first."""
    first, *others = parts.items()
    schema = first[1].schema
    for name, part in others:
        try:
            schema = schema.join(part.schema)
        except SchemaError as error:
            raise SchemaError(
                f"{first[0]} and {name}: {str(error).removesuffix('.')}: "
                "measure all by one schema, as dp.agree finds it."
            ) from error
    if variable in schema.states or variable in schema.bounds:
        raise SchemaError(
            f"The releases have a variable {variable!r} already: give the new one another name by variable=..."
        )
    return Schema({variable: list(parts)}).join(schema)


def _rows(seen: NDArray[np.bool_]) -> Any:
    """Return the matrix that picks these cells."""
    from scipy import sparse

    return sparse.csr_array(sparse.eye_array(seen.size, format="csr")[np.flatnonzero(seen)])


@observe.register
def _(release: UnitedMarginals, variables: Sequence[str]) -> LinearObservations:
    return release.observations(variables)
