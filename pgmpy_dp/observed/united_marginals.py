"""A union: releases of different records, side by side, as one release with one more, public variable."""

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
from pgmpy_dp.observed.reading import MeanCoefficients, Measured, first_containing, law_of, observe, observed_parts
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.privacy.guarantee import Guarantee, counted
from pgmpy_dp.release.archive import Measurements, Numbers, checked_guarantee, entry
from pgmpy_dp.release.coefficients import pooled_means
from pgmpy_dp.release.kinds import MIN_VARIANCE, Release, interpreted, joint_guarantee, measured_kind, refuse_repeated
from pgmpy_dp.release.marginals import UNIT_VARIANCE, IndependentTables, NoisyMarginals, Variance
from pgmpy_dp.schema import Clique, Schema, State

# Excess kurtosis above which a sum of Laplace noise is treated as Laplace noise, which has 3, rather than Gaussian
# noise, which has 0.
_LAPLACE_FROM = 1.5


def union(releases: Mapping[State, Measured], variable: str = "site", overlap: int = 1) -> UnitedMarginals:
    """Unite releases of different records, which their holders may not pool, into one.

    Models are fitted to it as to any release. A network with the new variable among its nodes, as made by
    `UnitedMarginals.apart`, and a mixture distinguish the holders. A network without it, and a mixture with
    ``pooled=True``, describe the records of all holders together.

    Parameters
    ----------
    releases : mapping of state to NoisyMarginals, NoisyResiduals or NoisyCoefficients
        The release of each holder by its name, which becomes a state of the new variable. Names that are at least
        three ascending numbers or dates, such as ``"2024-01"``, make it an ordered variable of periods. Noise, tables,
        privacy losses and variables may differ, but not the states of a variable, the unit of privacy or neighbours.
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
    """Releases of noisy tables of different records as one release, with a public variable that distinguishes them.

    Parameters
    ----------
    parts, variable, overlap
        See `union`.

    Attributes
    ----------
    schema : Schema
        The new variable, then those of the parts.
    guarantee : Guarantee
        By parallel composition, see `pgmpy_dp.privacy.guarantee`.

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
    the others, up to sampling error; with the new variable it informs only about its own parts. A sum of Laplace noise
    is treated as Laplace or Gaussian noise of its variance, whichever is closer in kurtosis: the sum of equal noise of
    three parts is treated as Gaussian. A sum of both kinds is treated as Gaussian noise.
    """

    parts: Mapping[State, Measured]
    variable: str
    overlap: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.parts, Mapping) or len(self.parts) < 2:
            raise ValueError(
                'A union needs two releases or more, each with a name: write union({"north": north, "south": south}).'
            )
        for name, part in self.parts.items():
            if not isinstance(part, Measured):
                kind = part.kind.replace("_", " ") if isinstance(part, Release) else type(part).__name__
                raise TypeError(f"{name}: releases of tables, residuals or coefficients can be united, got {kind}.")
        parts = MappingProxyType(dict(self.parts))
        overlap = whole_number("overlap", self.overlap)
        if overlap > len(parts):
            raise ValueError(f"overlap is {overlap}, but there are {len(parts)} releases: it is at most that.")
        refuse_repeated(list(parts.values()))
        guarantee = _united_guarantee(list(parts.values()), overlap)
        self._settle(parts=parts, overlap=overlap, schema=_common_schema(parts, self.variable), guarantee=guarantee)

    @property
    def independent(self) -> bool:
        return self._of_tables

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
    def _measured(self) -> dict[Clique, list[tuple[Measured, Clique] | None]]:
        """The name of each measured set of variables in every part that has its table, by the set's first name."""
        names: dict[frozenset[str], Clique] = {}
        results: dict[Clique, list[tuple[Measured, Clique] | None]] = {}
        for number, part in enumerate(self.parts.values()):
            for clique in part.cliques:
                name = names.setdefault(frozenset(clique), clique)
                results.setdefault(name, [None] * len(self.parts))[number] = (part, clique)
        for number, part in enumerate(self.parts.values()):
            for name, measured in results.items() if not part.independent else ():
                if measured[number] is None and first_containing([part], name):  # their tables agree
                    measured[number] = (part, name)
        return results

    def _whole(self, clique: Clique) -> bool:
        return None not in self._measured[clique]

    @cached_property
    def tables(self) -> Mapping[Clique, NDArray[np.float64]]:
        """The tables that all parts measured, with the new variable as first axis."""
        return MappingProxyType(
            {
                (self.variable, *clique): np.stack(
                    [Table(own, _table(part, own)).margin(clique).values.astype(np.float64) for part, own in measured]
                )
                for clique, measured in self._complete.items()
            }
        )

    @property
    def _complete(self) -> dict[Clique, list[tuple[Measured, Clique]]]:
        return {c: [each for each in m if each] for c, m in self._measured.items() if self._whole(c)}

    @cached_property
    def variances(self) -> Mapping[Clique, float]:
        """The mean variance of the noise in a cell of each table in `tables`; fits use that of each part."""
        return MappingProxyType(
            {
                (self.variable, *clique): float(np.mean([_variance(part, own) for part, own in measured]))
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
        each = np.array([_variance(part, own) for part, own in self._complete[measured[1:]]])
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
        """Compute the variance of counts scaled from `seen` records to all, by noise and by sampling the rest."""
        factor = self.total / seen
        return factor**2 * variance + (factor - 1.0) * self.total / cells

    def observations(self, variables: Sequence[str]) -> LinearObservations:
        """Return noisy observations of the marginals of these variables, with the noise of each part.

        With the new variable, the parts' numbers of records are observed too: tables with many cells of little more
        than noise would inflate that of a small part.

        Raises ValueError if no part measured a variable.
        """
        observed_parts(self.cliques, variables)
        others = [variable for variable in variables if variable != self.variable]
        if self.variable not in variables and not self._of_tables:
            return observe(self._together, others)
        names: dict[frozenset[str], Clique] = {}
        seen: list[LinearObservations | None] = []
        for part in self.parts.values():
            own = [variable for variable in others if variable in part.variables]
            one = observe(part, own).of_tables if own else None
            named = tuple(names.setdefault(frozenset(clique), clique) for clique in one.cliques) if one else ()
            seen.append(one and one.ordered(named, self.schema.cardinalities()))
        if self.variable in variables:
            return self._beside(tuple(names.values()), seen)
        pooled = []
        for name in names.values():
            known = {number: one for number, one in enumerate(seen) if one and name in one.cliques}
            rows = {number: one.noise.take(one.owners == one.cliques.index(name)) for number, one in known.items()}
            pooled.append(self._summed_noise(rows))
        owners = np.repeat(np.arange(len(pooled)), [noise.observed.size for noise in pooled])
        return LinearObservations(tuple(names.values()), end_to_end(pooled), owners, None)

    def _beside(self, names: tuple[Clique, ...], seen: Sequence[LinearObservations | None]) -> LinearObservations:
        """Join observations of the parts, each of its own slice of the tables, and of their numbers of records."""
        from scipy import sparse

        sizes = [math.prod(map(self.schema.cardinality, name)) for name in (*names, ())]
        starts = np.cumsum([0, *(len(seen) * size for size in sizes)])
        noises, owners, blocks = [], [], []
        for number, one in enumerate(seen):
            if one is None:
                continue
            places = [names.index(name) for name in one.cliques]
            cells = np.concatenate(
                [starts[place] + number * sizes[place] + np.arange(sizes[place]) for place in places]
            )
            own = one.sums.tocoo()
            noises.append(one.noise)
            owners.append(np.array(places)[one.owners])
            blocks.append(sparse.csr_array((own.data, (own.row, cells[own.col])), (own.shape[0], starts[-1])))
        noises.append(law_of(self)(self.totals, self._total_variances))
        owners.append(np.full(len(seen), len(names)))
        blocks.append(sparse.csr_array(sparse.eye_array(len(seen), starts[-1], k=starts[-2])))
        joint, matrix = end_to_end(noises), sparse.csr_array(sparse.vstack(blocks, format="csr"))
        rows = np.argsort(matrix.indices) if self._of_tables else np.arange(matrix.shape[0])  # these are single cells
        complete = self._of_tables and matrix.shape[0] == matrix.shape[1]
        cliques = tuple((self.variable, *name) for name in (*names, ()))
        return LinearObservations(
            cliques, joint.take(rows), np.concatenate(owners)[rows], None if complete else matrix[rows]
        )

    @property
    def _of_tables(self) -> bool:
        return all(part.independent for part in self.parts.values())

    @cached_property
    def _each(self) -> list[MeanCoefficients]:
        """The coefficients of each part."""
        results = []
        for part in self.parts.values():
            values, deviations = pooled_means(self.schema, [part.means()])
            number = {(): np.array(part.total)}, {(): part.total_variance**0.5}
            own = dict(values) | number[0], dict(deviations) | number[1]
            results.append(MeanCoefficients(self.schema, part.cliques, *own, part.guarantee))
        return results

    @cached_property
    def _together(self) -> MeanCoefficients:
        """The coefficients of all records, with the assumptions of `marginal` about what some parts lack."""
        values: dict[Clique, Vector] = {}
        deviations: dict[Clique, float] = {}
        for subset in dict.fromkeys(subset for own in self._each for subset in own.values):
            known = [own for own in self._each if subset in own.values]
            seen = sum(own.total for own in known)
            values[subset] = np.sum([own.values[subset] for own in known], axis=0) * (self.total / seen)
            variance = sum(own.deviations[subset] ** 2 for own in known)
            deviations[subset] = self._scaled(variance, seen, self.schema.cells(subset)) ** 0.5
        return MeanCoefficients(self.schema, tuple(self._measured), values, deviations, self.guarantee)

    def squares(self, clique: Clique, apart: Vector) -> tuple[float, int]:
        if self.independent:
            return super().squares(clique, apart)
        measured, squares, count = self._complete[clique[1:]], 0.0, 0
        for (part, own), one in zip(measured, apart, strict=True):
            more, dimensions = part.squares(own, Table(clique[1:], one).margin(own).values)
            squares, count = squares + more, count + dimensions
        return squares, count

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
        if not self.independent:
            return self._residuals_of(variables)
        if self.variable in variables:
            return super().tables_of(variables)
        seen = observe(self, variables)
        results = []
        for position, clique in enumerate(seen.cliques):
            noise = seen.noise.take(np.flatnonzero(seen.owners == position))
            table = noise.observed.reshape(self.schema.shape(clique))
            results.append((clique, table, float(np.mean(noise.variance)) ** 0.5))
        return results

    def _residuals_of(self, variables: Sequence[str]) -> list[tuple[Clique, Vector, float]]:
        """List tables for residuals, as `MeasuredCoefficients.tables_of` does; with the new variable, by parts too.

        The noise of residuals of the new variable with others is assumed to be the same in all parts.
        """
        others = [variable for variable in variables if variable != self.variable]
        if self.variable not in variables:
            return self._together.tables_of(others)
        shared = [set(own.values) for own in self._each]
        results = []
        for subset, table, deviation in self._together.tables_of(others):
            if all(subset in own for own in shared) or self.schema.cells(subset) == 1:
                results.append((subset, table, deviation))
            if all(subset in own for own in shared):
                each = [own.table(subset) for own in self._each]
                spread = [max(own.deviations[subset] ** 2, MIN_VARIANCE) for own in self._each]
                results.append(((self.variable, *subset), np.stack(each), float(np.mean(spread)) ** 0.5))
        if not self.total_variance:
            results.append(((self.variable,), self.totals, MIN_VARIANCE**0.5))
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
        >>> schema, counts = Schema({"smoke": ["yes", "no"]}), {"north": [31, 68], "south": [8, 43]}
        >>> parts = {
        ...     site: NoisyMarginals(schema, {("smoke",): np.array(own)}, {("smoke",): 1.0}, Guarantee.of(1.0))
        ...     for site, own in counts.items()
        ... }
        >>> list(union(parts).apart(dp.PrivateBayesianNetwork([("smoke", "lung")])).edges())
        [('site', 'smoke'), ('site', 'lung'), ('smoke', 'lung')]
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
        parts = [{"state": state, **part.contents()} for state, part in self.parts.items()]
        return super().contents() | {"variable": self.variable, "overlap": self.overlap, "parts": parts}

    def measurements(self) -> Measurements:
        """Return the arrays of numbers in the file: those of the parts, one after the other."""
        return [array for part in self.parts.values() for array in part.measurements()]

    @classmethod
    def interpret(cls, schema: Schema, contents: Mapping[str, Any], numbers: Numbers) -> Self:
        """Invert `contents`; the file's statements about the union must follow from its parts."""
        variable, overlap = entry(contents, "variable", str), entry(contents, "overlap", int)
        parts: dict[Any, Any] = {}
        for each in entry(contents, "parts", list):
            state = entry(each, "state", str, int, float, bool)
            measured_kind(entry(each, "kind", str))
            if state in parts or "format_version" in each:
                raise ValueError("each part must have a state of its own, and no version of its own.")
            stated = {name: value for name, value in each.items() if name != "state"}
            parts[state] = interpreted(stated | {"format_version": contents["format_version"]}, numbers)
        result = cls(parts, variable, overlap)
        if not result.guarantee.states(checked_guarantee(contents, ())) or result.schema != schema:
            raise ValueError(
                f"the union states another schema or guarantee than its parts give together, {result.guarantee}."
            )
        return result

    def __repr__(self) -> str:
        lines = [f"UnitedMarginals: {counted(len(self.parts), 'release')} by {self.variable}", str(self.guarantee)]
        lines += [f"{state}: {part.guarantee}" for state, part in list(self.parts.items())[:5]]
        return "\n  ".join([*lines, *([f"and {len(self.parts) - 5} more"] if len(self.parts) > 5 else [])])


def _united_guarantee(parts: Sequence[Measured], overlap: int) -> Guarantee:
    if any(part.guarantee.sampling_rate < 1 for part in parts):
        raise ValueError("Only releases of all records of one holder can be united, not samples.")
    paid = [part.guarantee.costs for part in parts]
    if len(frozenset().union(*paid)) < sum(map(len, paid)):
        raise ValueError("Two releases were paid for by one cost: they count the same records, and are joined.")
    sites = frozenset(frozenset(cost.holder or cost.id for cost in own) for own in paid)
    whole = joint_guarantee(parts)
    return replace(whole, overlap=overlap, sites=whole.sites | sites)


def _common_schema(parts: Mapping[State, Measured], variable: str) -> Schema:
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


def _table(part: Measured, clique: Clique) -> NDArray[Any]:
    return part.tables[clique] if isinstance(part, NoisyMarginals) else part.table(clique)


def _variance(part: Measured, clique: Clique) -> float:
    return part.variances[clique] if isinstance(part, NoisyMarginals) else part.variance(clique)


@observe.register
def _(release: UnitedMarginals, variables: Sequence[str]) -> LinearObservations:
    return release.observations(variables)
