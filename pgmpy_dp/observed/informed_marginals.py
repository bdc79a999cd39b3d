"""Tables that are published elsewhere, and a release of noisy tables together with them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp._names import suggestion
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LinearObservations
from pgmpy_dp.inference.tables.table import Table, Vector
from pgmpy_dp.observed.reading import (
    MeanCoefficients,
    MeanTables,
    Measured,
    observe,
    observe_tables,
    side_by_side,
    weighted,
)
from pgmpy_dp.observed.united_marginals import UnitedMarginals
from pgmpy_dp.privacy.checks import checked_number
from pgmpy_dp.privacy.guarantee import counted
from pgmpy_dp.release.archive import Measurements, Numbers, check_shape, entry
from pgmpy_dp.release.coefficients import pooled_means
from pgmpy_dp.release.kinds import MIN_VARIANCE, Release, frozen_array, measured_kind
from pgmpy_dp.release.marginals import IndependentTables, NoisyMarginals, Variance
from pgmpy_dp.schema import Clique, Schema

# Minimum variance of a public table, as a share of the smallest variance in the release.
_MIN_SHARE = 0.01
# Attributes taken from the noisy tables: public tables cost nothing, and may count other records.
_OF_NOISY = ("schema", "guarantee", "public_total", "details", "total", "total_variance")


@dataclass(frozen=True, eq=False, repr=False)
class PublicTable:
    """A table that is published elsewhere, with the standard errors that were published with it.

    Parameters
    ----------
    table : ndarray, pandas Series or DataFrame
        Counts of any population, or shares: it is divided by its sum. An array has the axes of the clique that it is
        given for, with states in schema order. A series or frame (a cross table) has an index and columns named after
        the variables, in any order; for one variable the names may be omitted.
    standard_errors : float, ndarray, pandas Series or DataFrame
        Standard errors of its numbers, in their unit: one for all, or one each. 0 means that the table is exact.

    Examples
    --------
    >>> schema = Schema({"sex": ["f", "m"], "age": ["young", "old"]})
    >>> import pandas as pd
    >>> ages, sexes = pd.Index(["old", "young"], name="age"), pd.Index(["f", "m"], name="sex")
    >>> census = pd.DataFrame([[20, 31], [30, 19]], ages, sexes)
    >>> PublicTable(census, 0.5).read(("sex", "age"), schema).table.tolist()
    [[30.0, 20.0], [19.0, 31.0]]
    """

    table: Any
    standard_errors: Any = 0.0

    def read(self, clique: Clique, schema: Schema) -> PublicTable:
        """Convert the table and its standard errors to arrays with the axes of a clique.

        Raises
        ------
        SchemaError
            If names or states do not match those of the clique; the message names the variable.
        ValueError
            If a number is negative or not finite, or all are zero.
        """
        counts = _cells(self.table, clique, schema, "table")
        total = float(counts.sum())
        if not 0 < total < math.inf:
            raise ValueError(f"The public table of {clique} has no positive sum.")
        errors = self.standard_errors
        if np.ndim(errors) == 0:
            errors = np.full(counts.shape, errors)
        return PublicTable(counts, _cells(errors, clique, schema, "standard errors"))

    def scaled(self, total: float) -> tuple[Vector, Vector]:
        """Return a table that was read as counts of `total` records, and their standard errors."""
        factor = total / self.table.sum()
        return factor * self.table, factor * self.standard_errors


def read_public_tables(public: Any, schema: Schema) -> dict[Clique, PublicTable]:
    """Read public tables, each given for a clique or a single variable, with the errors of `PublicTable.read`."""
    if not isinstance(public, Mapping) or not public:
        raise TypeError(
            "Public tables are a dict of variables to tables, as in public={('sex', 'age'): table}, "
            f"got {type(public).__name__}."
        )
    given = {(key,) if isinstance(key, str) else key: table for key, table in public.items()}
    cliques = schema.require(list(given))
    tables = (table if isinstance(table, PublicTable) else PublicTable(table) for table in given.values())
    return {clique: table.read(clique, schema) for clique, table in zip(cliques, tables, strict=True)}


@dataclass(frozen=True, eq=False, repr=False)
class InformedMarginals(IndependentTables, Release, kind="informed_tables"):
    """Noisy tables of a release, with public tables about the same records, which cost no privacy.

    Models fitted to it treat every public table as one more observation of the records, with its own standard errors
    in place of noise. ``network.fit(noisy, public=...)`` creates it internally.

    Parameters
    ----------
    noisy : NoisyMarginals, NoisyResiduals or NoisyCoefficients
        Its guarantee is that of both.
    public : mapping of clique or variable to table
        As `PublicTable` takes it, or such with standard errors; exact without them.

    Raises
    ------
    SchemaError
        If a table does not match the schema; the message names the variable.
    ValueError
        If it has numbers that are negative or not finite, or two tables have the same variables.

    Notes
    -----
    Public tables are treated as tables of the records themselves. If they describe a population from which the records
    are a sample, give them standard errors that include sampling, sqrt(share (1 - share) / N): otherwise the fit is
    pulled to the population's tables, as by raking. Errors of a public table are treated as noise of the mechanism's
    kind, independent between cells.

    Examples
    --------
    >>> from pgmpy_dp.release import Guarantee
    >>> guarantee = Guarantee.of(1.0)
    >>> schema = Schema({"smoke": ["yes", "no"]})
    >>> noisy = NoisyMarginals(schema, {("smoke",): np.array([31, 69])}, {("smoke",): 1.0}, guarantee)
    >>> informed = InformedMarginals(noisy, {"smoke": [0.28, 0.72]})
    >>> informed.tables[("smoke",)].round().tolist(), informed.guarantee == noisy.guarantee
    ([28.0, 72.0], True)
    """

    noisy: Measured
    public: Mapping[Clique, Any]
    if TYPE_CHECKING:

        @property
        def scales(self) -> Mapping[Clique, float]: ...

    def __post_init__(self) -> None:
        if not isinstance(self.noisy, Measured):
            kind = type(self.noisy).__name__
            raise TypeError(f"Public tables are joined to tables, residuals or coefficients, got {kind}.")
        same = {name: getattr(self.noisy, name) for name in _OF_NOISY}
        self._settle(public=read_public_tables(self.public, self.noisy.schema), **same)
        self._settle(scales=getattr(self.noisy, "scales", {}))

    @property
    def independent(self) -> bool:
        return self.noisy.independent

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the scale and standard deviation of the noise (or public error) in a cell of a table."""
        deviation = (self.noisy.variances if clique in self.details else self.variances)[clique] ** 0.5
        return self.scales.get(clique, deviation), deviation

    @cached_property
    def _public(self) -> dict[Clique, tuple[Vector, Vector]]:
        """Scale public tables to the number of records; return them with the variances of their errors."""
        minimum = max(MIN_VARIANCE, _MIN_SHARE * min(self.noisy.variances[c] for c in self.noisy.cliques))
        scaled = {clique: public.scaled(self.total) for clique, public in self.public.items()}
        return {clique: (counts, np.maximum(errors**2, minimum)) for clique, (counts, errors) in scaled.items()}

    @cached_property
    def _means(self) -> MeanCoefficients:
        """Average the coefficients of all tables by precision; public ones do not tell the number of records."""
        known = [self.noisy.means()]
        for clique, (table, variance) in self._public.items():
            own = {clique: float(variance.mean())}
            alone = MeanTables(self.schema, {clique: table}, own, self.total, 0.0, self.guarantee, "gaussian")
            values, deviations = alone.means()
            known.append(({subset: array for subset, array in values.items() if subset}, deviations))
        cliques = {frozenset(clique): clique for clique in (*self.public, *self.noisy.cliques)}.values()
        return MeanCoefficients(self.schema, tuple(cliques), *pooled_means(self.schema, known), self.guarantee)

    @cached_property
    def _joined(self) -> dict[Clique, tuple[Vector, Variance]]:
        """Average tables of the same variables."""
        if not self.independent:
            return {clique: (self._means.table(clique), self._means.variance(clique)) for clique in self._means.cliques}
        own = {frozenset(clique): clique for clique in self.noisy.cliques}
        apart: dict[Clique, tuple[Vector, Variance]] = {}
        kept: dict[Clique, tuple[Vector, Variance]] = {
            clique: (table.astype(np.float64), self.noisy.variances[clique])
            for clique, table in self.noisy.tables.items()
        }
        for clique, (counts, variance) in self._public.items():
            same = own.get(frozenset(clique))
            if same is None:
                apart[clique] = (counts, variance)
                continue
            counts, variance = (Table(clique, part).margin(same).values for part in (counts, variance))
            kept[same] = weighted([kept[same], (counts, variance)])
        return {**apart, **kept}

    @cached_property
    def tables(self) -> Mapping[Clique, NDArray[Any]]:
        """Public tables, in records, followed by noisy ones; of the same variables, the mean weighted by precision.

        Of residuals and coefficients, what each set of variables adds to its subsets is averaged: all tables agree.
        """
        return MappingProxyType({clique: table for clique, (table, _) in self._joined.items()})

    @cached_property
    def variances(self) -> Mapping[Clique, float]:
        """The mean variance of the cells of each table; at least that of half a record, or of a tenth of the noise."""
        return MappingProxyType({clique: float(np.mean(variance)) for clique, (_, variance) in self._joined.items()})

    def cell_variance(self, measured: Clique, clique: Clique) -> Variance:
        variance = self._joined[measured][1]
        if np.ndim(variance) == 0:
            return self._summed_variance(measured, clique)
        return Table(measured, np.asarray(variance)).margin(clique).values

    def squares(self, clique: Clique, apart: Vector) -> tuple[float, int]:
        return super().squares(clique, apart) if self.independent else self._means.squares(clique, apart)

    def tables_of(self, variables: Sequence[str]) -> list[tuple[Clique, Vector, float]]:
        return super().tables_of(variables) if self.independent else self._means.tables_of(variables)

    def observations(self, variables: Sequence[str]) -> LinearObservations:
        """Return observations of the marginals of these variables, of public tables after those of the release."""
        if self.independent:
            return observe_tables(self, variables)
        known = set(self.noisy.variables)
        parts = [observe(self.noisy, [variable for variable in variables if variable in known])]
        for clique in self._public:
            part = tuple(variable for variable in clique if variable in variables)
            if not part:
                continue
            counts, variance = (Table(clique, one).margin(part).values.ravel() for one in self._public[clique])
            owners = np.zeros(counts.size, dtype=np.int64)
            parts.append(LinearObservations((part,), GaussianNoise(counts, variance), owners, None))
        return side_by_side(parts)

    def join(self, other: Measured | InformedMarginals) -> InformedMarginals:
        """Join another release of the same records, see `NoisyMarginals.join`; the public tables of both are kept."""
        noisy: Any = self.noisy
        if not isinstance(other, InformedMarginals):
            return InformedMarginals(noisy + other, self.public)
        return InformedMarginals(noisy + other.noisy, {**self.public, **other.public})

    def __add__(self, other: object) -> InformedMarginals:
        return self.join(other) if isinstance(other, (Measured, InformedMarginals)) else NotImplemented

    __radd__ = __add__

    def contents(self) -> dict[str, Any]:
        public = [
            {
                "variables": list(clique),
                "shape": list(table.table.shape),
                "table": table.table.ravel().tolist(),
                "standard_errors": table.standard_errors.ravel().tolist(),
            }
            for clique, table in self.public.items()
        ]
        return self.noisy.contents() | {"kind": f"informed_{self.noisy.kind}", "public": public}

    def measurements(self) -> Measurements:
        """Return the arrays of numbers in the file: those of the noisy tables."""
        return self.noisy.measurements()

    @classmethod
    def interpret(cls, schema: Schema, contents: Mapping[str, Any], numbers: Numbers) -> Self:
        """Invert `contents`."""
        entries = entry(contents, "public", list)
        if not entries:
            raise ValueError("there is no public table.")
        cliques = schema.require([entry(each, "variables", list) for each in entries])
        public = {}
        for clique, each in zip(cliques, entries, strict=True):
            shape = schema.shape(clique)
            check_shape(each, clique, shape, {"variables", "shape", "table", "standard_errors"})
            public[clique] = PublicTable(*(_stated_numbers(each, name, shape) for name in ("table", "standard_errors")))
        noisy: Any = measured_kind(contents["kind"].removeprefix("informed_")).interpret(schema, contents, numbers)
        return cls(noisy, public)

    @classmethod
    def stated(cls, kind: str) -> frozenset[str]:
        """Return the properties of a file of this kind: those of the release, and the public tables."""
        return measured_kind(kind.removeprefix("informed_")).properties | {"public"}

    def __repr__(self) -> str:
        lines = [f"InformedMarginals: {counted(len(self.public), 'public table')} beside a release"]
        return "\n  ".join([*lines, *(str(clique) for clique in self.public), *repr(self.noisy).split("\n")])


ReleasedTables = NoisyMarginals | InformedMarginals | UnitedMarginals


@observe.register
def _(release: InformedMarginals, variables: Sequence[str]) -> LinearObservations:
    return release.observations(variables)


def _stated_numbers(stated: Mapping[str, Any], name: str, shape: tuple[int, ...]) -> Vector:
    numbers = entry(stated, name, list)
    if len(numbers) != math.prod(shape):
        raise ValueError(f"{name} must have a number for each cell.")
    return np.array([checked_number(name, number) for number in numbers]).reshape(shape)


def require_tables(release: Any, refusal: str) -> ReleasedTables:
    """Return a release of tables; ValueError for other releases, since the noise of cells must be independent."""
    if not isinstance(release, ReleasedTables) or not release.independent:
        raise ValueError(refusal)
    if not release.tables:
        raise ValueError("The parts of the union have no table in common: fit it with CollectiveEM, which takes each.")
    return release


def _cells(given: Any, clique: Clique, schema: Schema, what: str) -> NDArray[np.float64]:
    """Read non-negative numbers in a clique's axes."""
    where = f"The public {what} of {clique}"
    values = _labelled(given, clique, schema, where) if hasattr(given, "iloc") else given  # of pandas
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{where}: numbers are needed.") from None
    if array.shape != schema.shape(clique):
        raise SchemaError(f"{where}: shape {schema.shape(clique)} is needed by the schema, got {array.shape}.")
    if not (np.isfinite(array).all() and (array >= 0).all()):
        raise ValueError(f"{where}: a number is negative, or not finite.")
    return frozen_array(array, np.float64)


def _labelled(given: Any, clique: Clique, schema: Schema, where: str) -> Any:
    """Bring a series or cross table into a clique's axes."""
    axes = [given.index, given.columns] if hasattr(given, "columns") else [given.index]
    names: tuple[Any, ...] = tuple(name for axis in axes for name in axis.names)
    if names == (None,) and len(clique) == 1:
        names = clique
    if set(names) != set(clique) or len(names) != len(clique):
        named = ", ".join(map(repr, names))
        raise SchemaError(f"{where}: its axes must be named after these variables, got {named}: use rename_axis.")
    if not all(axis.is_unique for axis in axes):
        raise SchemaError(f"{where}: a combination of states occurs twice.")
    labels = [[_states(label) for label in axis] for axis in axes]
    joined = [sum(parts, ()) for parts in product(*labels)]
    for position, variable in enumerate(names):
        states, seen = schema.states[variable], {label[position] for label in joined}
        if unknown := [label for label in seen if label not in states]:
            meant = suggestion(unknown[0], states)
            raise SchemaError(f"{where}: variable {variable!r} has no state {unknown[0]!r}.{meant}")
        if missing := [state for state in states if state not in seen]:
            raise SchemaError(f"{where}: it has no number for state {missing[0]!r} of variable {variable!r}.")
    values = dict(zip(joined, np.asarray(given).ravel().tolist(), strict=True))
    cells = list(product(*(schema.states[variable] for variable in names)))
    if len(values) < len(cells):
        raise SchemaError(f"{where}: combinations of states are missing; reindex with 0 where the count is zero.")
    ordered = np.array([values[cell] for cell in cells], dtype=object).reshape(schema.shape(names))
    return Table(names, ordered).margin(clique).values


def _states(label: Any) -> tuple[Any, ...]:
    """Split one label of an axis into plain values."""
    parts = label if isinstance(label, tuple) else (label,)
    return tuple(part.item() if isinstance(part, np.generic) else part for part in parts)
