"""What all kinds of releases have in common: attributes, guarantee and file; and the release of discovered states."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import reduce
from itertools import combinations
from operator import or_
from statistics import NormalDist
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp import _names
from pgmpy_dp._files import path_of, replacing
from pgmpy_dp._notebooks import table
from pgmpy_dp.errors import ReleaseFormatError, warn
from pgmpy_dp.privacy.blocks import gaussian_delta
from pgmpy_dp.privacy.checks import checked_number, settle, whole_number
from pgmpy_dp.privacy.guarantee import Guarantee, Learned, counted, learned
from pgmpy_dp.release.archive import (
    RELEASE_PROPERTY,
    Measurements,
    Numbers,
    checked_guarantee,
    checked_schema,
    entry,
    opened,
    read_release,
    write_release,
)
from pgmpy_dp.release.contrasts import Floats
from pgmpy_dp.schema import Clique, Schema, State

# Minimum variance of noise, that of half a record: less is negligible compared with sampling, and badly conditioned.
MIN_VARIANCE = 0.25
# One-sided probability with which noise alone makes two counts of the same records look like counts of different ones,
# and the number of standard deviations that noise exceeds with it.
_LEVEL = 1e-7
_FARTHEST = {"laplace": math.log(0.5 / _LEVEL) / math.sqrt(2), "gaussian": NormalDist().inv_cdf(1 - _LEVEL)}
_SLACK, _DELTA_SLACK = 1e-9, 1e-6  # relative, for the rounding of a price and of delta
# Ends of names of files that are not releases.
_OTHERS = (".json", ".csv", ".txt", ".bif", ".xmlbif", ".xdsl", ".net", ".uai", ".parquet", ".pkl", ".html")

KINDS: dict[str, type[Release]] = {}
# Kinds of files of measurements of the same records.
MEASURED = ("tables", "coefficients", "residuals")
# Kinds of files with releases that are read together, by the public names of what reads them.
_READINGS = {
    "united_tables": "UnitedMarginals",
    "partially_pooled_tables": "PartiallyPooledMarginals",
    **dict.fromkeys((f"informed_{kind}" for kind in MEASURED), "InformedMarginals"),
}


class _Refusal:
    """Placeholder that kinds of releases without tables have for attributes that are read from tables."""

    def __get__(self, release: Release | None, kind: type[Release]) -> Any:
        if release is None:
            return self
        raise TypeError(f"{kind.__name__} contain {release.what}, not tables.")


class Release:
    """Statistics that were released from private records, with their guarantee.

    Everything computed from a release is post-processing and costs no privacy. A kind of release is a frozen dataclass
    that derives from this class and states the name by which files know it.

    Attributes
    ----------
    schema : Schema
    guarantee : Guarantee
    cliques : tuple of tuples of str
        The measured cliques, in order; none if networks were drawn.
    public_total : int or None
        The number of records if it is public and released with the measurements.
    chosen_among : mapping of tuple of str to int
        For each table that was measured because it is far from a network, the number of candidates.
    details : mapping of tuple of str to ndarray
        Finer histograms of numbers.
    total : float
        The number of records, estimated if it is private; at least 1.
    total_variance : float
        The variance of `total` before its floor of 1; 0 if the number is public.
    """

    kind: ClassVar[str]
    properties: ClassVar[frozenset[str]]  # of its descriptor, besides those of every kind
    drawn: ClassVar[bool] = False
    what: ClassVar[str] = "draws of a network"  # for kinds without tables
    if TYPE_CHECKING:  # kinds have them as fields or compute them

        @property
        def schema(self) -> Schema: ...
        @property
        def guarantee(self) -> Guarantee: ...
        @property
        def cliques(self) -> tuple[Clique, ...]: ...
        @property
        def public_total(self) -> int | None: ...
        @property
        def chosen_among(self) -> Mapping[Clique, int]: ...
        @property
        def details(self) -> Mapping[Clique, Any]: ...
        @property
        def independent(self) -> bool:
            """Whether the noise of all cells of a table is independent."""

        @property
        def total(self) -> float: ...
        @property
        def total_variance(self) -> float: ...
        def noise(self, clique: Clique) -> tuple[float, float]:
            """Return the scale and standard deviation of the noise in a cell of a measured clique's table."""

        def marginal(self, clique: Clique) -> tuple[Floats, float]:
            """Return the least noisy table of a clique, and the noise variance of its cells.

            Raises
            ------
            ValueError
                If no measured clique contains it.
            """

        def squares(self, clique: Clique, apart: Floats) -> tuple[float, int]:
            """Sum squares of a table's distance from its expectation, in units of noise; count the dimensions."""

    else:
        independent, public_total, chosen_among, details = False, None, MappingProxyType({}), MappingProxyType({})
        total = total_variance = noise = marginal = squares = observations = _Refusal()

    @property
    def variables(self) -> tuple[str, ...]:
        """The measured variables, in schema order."""
        measured = {variable for clique in self.cliques for variable in clique}
        return tuple(variable for variable in self.schema.variables if variable in measured)

    @property
    def as_measured(self) -> Release:
        """The release with the errors that its mechanism states, against which models are tested."""
        return self

    def __init_subclass__(cls, kind: str = "", properties: Sequence[str] = (), **options: Any) -> None:
        super().__init_subclass__(**options)
        if kind:
            cls.kind, cls.properties = kind, frozenset(properties)
            KINDS[kind] = cls

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a zip file; an existing file is replaced only once the new one is complete.

        The same release always gives the same bytes. See :mod:`pgmpy_dp.release.archive` for the format.

        Raises
        ------
        ValueError
            If the release holds exact counts, which are never written, or is too large for the format.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> from pgmpy_dp.release import NoisyMarginals
        >>> guarantee = Guarantee.of(1.0)
        >>> schema = Schema({"smoke": ["yes", "no"]})
        >>> noisy = NoisyMarginals(schema, {("smoke",): np.array([31, 68])}, {("smoke",): 1.0}, guarantee)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     noisy.save(pathlib.Path(folder) / "release.zip")
        ...     NoisyMarginals.load(pathlib.Path(folder) / "release.zip") == noisy
        True
        """
        if str(path_of(path)).lower().endswith(_OTHERS):
            raise ValueError(f"{path}: a release is a zip file: end its name in .zip.")
        with replacing(path_of(path)) as handle:
            write_release(self, handle)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a release file and check all of it; `Release.load` reads every kind.

        The hash in the file detects accidents and careless edits. It is not a signature: whoever edits a file can write
        a new hash. Accept releases only from sources and over channels that you trust.

        Raises
        ------
        FileNotFoundError
            If the file does not exist.
        ReleaseFormatError
            If the file is damaged, altered, inconsistent, of a newer format or of another kind.
        """
        with opened(path) as handle:
            release = read_release(handle, interpreted)
        if not isinstance(release, cls):
            raise ReleaseFormatError(
                f"{path}: the file holds another kind of release: use {type(release).__name__}.load."
            )
        return release

    @property
    def law(self) -> str:
        """The distribution of the noise in the measurements: "laplace" or "gaussian"."""
        return "gaussian" if self.guarantee.mechanism == "gaussian" else "laplace"  # also of exact counts

    @property
    def total_weight(self) -> float:
        """The sum of the weights of all records: `total` times the largest weight, or `total` if they have none."""
        return self.total * (self.guarantee.largest_weight or 1.0)

    @property
    def copy(self) -> NoReturn:
        """Raise with advice: pgmpy's own estimators copy the frame that they read, and reach here with a release."""
        raise AttributeError(
            "A release is not a data frame, which pgmpy's own estimators need: name an estimator of pgmpy_dp, as in "
            "network.fit(release, estimator=dp.AutoMLE())."
        )

    def _repr_html_(self) -> str:
        rows = [
            (", ".join(clique), f"{self.schema.cells(clique):,}", f"{self.noise(clique)[1]:.4g}")
            for clique in self.cliques
        ]
        kind = self.kind.replace("_", " ")
        return table(f"A release of {kind}. {self.guarantee.sentence()}", ["table", "cells", "noise in a cell"], rows)

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return {"kind": self.kind, "schema": self.schema.to_dict(), "guarantee": self.guarantee.to_dict()}

    def measurements(self) -> Measurements:
        """Return the arrays of numbers in the file, flat, with the variances of their noise."""
        return []

    @classmethod
    def stated(cls, kind: str) -> frozenset[str]:
        """Return the properties of the descriptor of a file of this kind, beside those of every kind."""
        return cls.properties

    @classmethod
    def interpret(cls, schema: Schema, contents: Mapping[str, Any], numbers: Numbers) -> Self:
        """Make a release of what the descriptor states, and of the numbers in the file: invert `contents`."""
        raise NotImplementedError

    def _require_promise(self, *mechanisms: str, of_records: bool = False) -> Guarantee:
        """Check for a guarantee of one of these mechanisms; return it with what was learned for the schema."""
        name = type(self).__name__
        if not isinstance(self.schema, Schema) or not isinstance(self.guarantee, Guarantee):
            raise ValueError(f"{name} needs a Schema and a Guarantee.")
        if self.guarantee.mechanism not in mechanisms:
            stated = f"got mechanism {self.guarantee.mechanism!r}"
            raise ValueError(f"{name} are released by {' or '.join(mechanisms)}, {stated}.")
        if of_records and self.guarantee.max_rows != 1:
            raise ValueError(f"{name} are priced for single records: max_rows is 1.")
        return self.guarantee.after(self.schema.guarantee)

    def _settle(self, **values: Any) -> None:
        """Store checked fields of the frozen release, mappings read-only."""
        settle(self, **{n: MappingProxyType(value) if type(value) is dict else value for n, value in values.items()})

    def _require_covered(self, loss: float, what: str = "noise of these scales") -> None:
        """Raise if the guarantee promises more privacy than this price, an epsilon or rho, gives."""
        name, own = type(self).__name__, self.guarantee.own
        unit, stated = ("epsilon", own.epsilon) if self.law == "laplace" else ("rho", own.rho)
        if stated is None:
            raise ValueError(f"{name}: a cost of Gaussian noise states its rho.")
        if loss > stated * (1.0 + _SLACK):
            raise ValueError(f"{name}: {what} costs {unit}={loss:.6g}, more than the guarantee's {stated:.6g}.")
        if own.rho is not None:
            check_gaussian(name, self.guarantee, loss)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Release) or type(other) is not type(self):
            return NotImplemented
        if self.contents() != other.contents():
            return False
        arrays = zip(self.measurements(), other.measurements(), strict=True)
        return all(np.array_equal(mine, its) for (mine, _), (its, _) in arrays)

    def __hash__(self) -> int:
        return hash((type(self), self.schema, self.guarantee))

    def __reduce__(self) -> tuple[Any, ...]:  # read-only mappings cannot be pickled
        return type(self), tuple(_plain(getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]


def _plain(value: Any) -> Any:
    if isinstance(value, MappingProxyType):
        return dict(value)
    return tuple(_plain(part) for part in value) if type(value) is tuple else value


def interpreted(contents: dict[str, Any], numbers: Numbers) -> Release:
    """Read a release by the rules of its kind."""
    name = entry(contents, "kind", str)
    kind: type[Release] | None = _names.public(_READINGS[name]) if name in _READINGS else KINDS.get(name)
    if kind is None:
        raise ValueError(f"unknown kind of release {name!r}.")
    expected = {"format_version", "kind", "schema", "guarantee"} | kind.stated(name)
    if set(contents) != expected:
        raise ValueError(f"{RELEASE_PROPERTY} must have the properties {sorted(expected)}.")
    return kind.interpret(checked_schema(contents), contents, numbers)


def measured_kind(name: str) -> type[Release]:
    """Return the kind of releases of tables, or of coefficients that determine them, with this name in files."""
    if name not in MEASURED:
        raise ValueError(f"a release of {name!r} has no tables of its own.")
    return KINDS[name]


def check_gaussian(name: str, guarantee: Guarantee, rho: float) -> None:
    """Raise if epsilon and delta are below the exact price of Gaussian noise with this rho.

    The price used is that of continuous noise, slightly below that of discrete noise of its scale. Its own other costs,
    such as those of the choices of a search, are added.
    """
    epsilon, delta = guarantee.own.epsilon, guarantee.own.delta
    if not epsilon > 0 or gaussian_delta(2.0 * rho, epsilon * (1.0 + _SLACK)) > delta * (1.0 + _DELTA_SLACK):
        raise ValueError(
            f"{name}: Gaussian noise of these scales costs rho={rho:.6g}, which does not guarantee "
            f"epsilon={epsilon:.6g} at delta={delta:.6g}."
        )


def checked_total(name: str, total: Any, guarantee: Guarantee) -> int | None:
    """Return the number of records if it is public under the guarantee; raise if that contradicts what is given."""
    weighed = (guarantee.max_rows or 1) > 1 or guarantee.largest_weight is not None
    noisy = guarantee.mechanism != "none"
    if total is None:
        if guarantee.neighbours == "replace_one" and noisy and not weighed:
            raise ValueError(f"{name}: under 'replace_one' the number of records is public: give public_total.")
        return None
    if guarantee.neighbours == "add_remove" and noisy:
        raise ValueError(f"{name}: under 'add_remove' the number of records is private: leave public_total out.")
    if weighed:
        raise ValueError(f"{name}: units' numbers of rows are private, and so are weights: leave public_total out.")
    return whole_number(f"{name}: public_total", total, 0)


def frozen_array(array: Any, dtype: Any) -> NDArray[Any]:
    """Return a read-only copy."""
    copy = np.array(array, dtype=dtype, order="C")
    copy.setflags(write=False)
    return copy


def cliques_containing(measured: Iterable[Clique], clique: Clique) -> list[Clique]:
    """Return the measured cliques that contain a clique; ValueError if none does."""
    wanted, measured = set(clique), tuple(measured)
    containing = [each for each in measured if wanted <= set(each)]
    if not containing:
        raise ValueError(
            f"The release has no table that holds {clique}; it holds {', '.join(map(str, measured))}: "
            "measure one, or fit with CollectiveEM, which infers what was not measured."
        )
    return containing


def several(release: Any) -> tuple[Release, ...]:
    """List the releases of a fit: one, those that are fitted together, or none."""
    return release if isinstance(release, tuple) else () if release is None else (release,)


def joint_guarantee(releases: Iterable[Release]) -> Guarantee:
    """Unite the guarantees of releases of the same records."""
    return reduce(or_, (release.guarantee for release in releases))


def guarantee_of_joined(one: Any, other: Any) -> Guarantee:
    """Unite the guarantees of two releases that are joined; raise if they are one, or of different records."""
    if one.scales == other.scales and one == other:
        raise ValueError("A release cannot be joined with itself: averaging the same noise does not reduce it.")
    guarantee: Guarantee = one.guarantee | other.guarantee
    if one.public_total != other.public_total:
        raise ValueError("The releases have different public numbers of records: they are about different units.")
    warn_of_other_records([one, other])
    return guarantee


def found_states(sources: Iterable[Any]) -> dict[str, Guarantee]:
    """Return the guarantee of finding each variable's states, for variables whose states were found in records."""
    results = [own.found for own in (getattr(source, "schema", None) for source in sources) if isinstance(own, Schema)]
    return {v: learned(*(own.get(v) for own in results)) for v in dict.fromkeys(v for own in results for v in own)}


def refuse_repeated(releases: Sequence[Release]) -> None:
    """Raise if a release occurs twice."""
    if any(one == other for one, other in combinations(releases, 2)):
        raise ValueError("A release is given twice: averaging the same noise does not reduce it.")


def refuse_exact(release: Release) -> None:
    """Raise if a release is exact counts."""
    if release.guarantee.mechanism == "none":
        raise ValueError("These are exact counts, not a release: without noise there is nothing to bound.")


def warn_of_other_records(releases: Sequence[Release]) -> None:
    """Warn about releases that are read together and count different numbers of records, far beyond their noise."""
    for one, other in combinations(releases, 2):
        apart, variance = abs(one.total - other.total), max(one.total_variance + other.total_variance, MIN_VARIANCE)
        if apart > max(_FARTHEST[one.law], _FARTHEST[other.law]) * math.sqrt(variance):
            warn(
                f"Releases read together count about {one.total:,.0f} and {other.total:,.0f} records, "
                "which noise does not explain: unite releases of different records by union."
            )


@dataclass(frozen=True, eq=False, repr=False)
class DiscoveredStates(Release, kind="discovered_states", properties=("variable", "scale", "threshold")):
    """Release of the values of a variable that many units have.

    Attributes
    ----------
    schema : Schema
        With the discovered states: declare it for the data set that is measured.
    variable : str
    scale : float
        Scale of the noise on the number of rows of every value.
    threshold : int
        Smallest noisy number of rows at which a value is released.
    guarantee : Guarantee

    Raises
    ------
    SchemaError
        If the schema has no such variable.
    ValueError
        If the parts contradict each other.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"place": ["Ulm"] * 300 + ["Bonn"] * 200 + ["Nowhere"]})
    >>> schema = dp.Schema({"place": []}, other={"place": "elsewhere"})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0, 1e-6))
    >>> found = data.discover_states("place", epsilon=0.5, delta=1e-7)
    >>> found.states, found.schema.states["place"]
    (('Bonn', 'Ulm'), ('Bonn', 'Ulm', 'elsewhere'))
    """

    what = "states of a variable"
    cliques = ()
    schema: Schema
    variable: str
    scale: float
    threshold: int
    guarantee: Guarantee

    def __post_init__(self) -> None:
        self._settle(guarantee=self._require_promise("partition_selection"))
        self.schema.require([(self.variable,)])
        if self.variable not in self.schema.other:
            raise ValueError("DiscoveredStates: partition selection needs a state for other values.")
        scale = checked_number("DiscoveredStates: scale", self.scale)
        if not scale > 0:
            raise ValueError("DiscoveredStates: scale must be greater than 0.")
        self._settle(scale=scale, threshold=whole_number("DiscoveredStates: threshold", self.threshold))
        if not self.guarantee.costs:
            raise ValueError("DiscoveredStates: the guarantee does not state what discovering them cost.")
        for cost in self.guarantee.costs:  # raises if they cost more than is stated
            replace(cost, noise=(("scale", scale), ("threshold", float(self.threshold))))

    @property
    def states(self) -> tuple[State, ...]:
        """The discovered states, without those for missing and other values; a schema of them states their cost."""
        stand_ins = {role[self.variable] for role in (self.schema.other, self.schema.missing) if self.variable in role}
        own = [state for state in self.schema.states[self.variable] if state not in stand_ins]
        return Learned(own, self.guarantee)

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return super().contents() | {"variable": self.variable, "scale": self.scale, "threshold": self.threshold}

    @classmethod
    def interpret(cls, schema: Schema, contents: Mapping[str, Any], numbers: Numbers) -> Self:
        """Invert `contents`."""
        variable, scale = entry(contents, "variable", str), entry(contents, "scale", float, int)
        return cls(schema, variable, scale, entry(contents, "threshold", int), checked_guarantee(contents, ()))

    def __repr__(self) -> str:
        return f"DiscoveredStates: {counted(len(self.states), 'state')} of {self.variable}\n  {self.guarantee}"
