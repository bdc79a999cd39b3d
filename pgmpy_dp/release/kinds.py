"""Base class of all kinds of releases."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import reduce
from itertools import combinations
from operator import or_
from statistics import NormalDist
from types import MappingProxyType
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from pgmpy_dp import _late
from pgmpy_dp._notebooks import table
from pgmpy_dp.errors import ReleaseFormatError, callers_level
from pgmpy_dp.privacy.guarantee import Guarantee, learned
from pgmpy_dp.release.archive import Contents, Measurements, read_archive, write_archive
from pgmpy_dp.release.descriptor import RELEASE_PROPERTY, checked_guarantee, checked_schema, entry
from pgmpy_dp.release.tables import LEAST_VARIANCE, Floats, noise_law
from pgmpy_dp.schema import Clique, Schema

# Probability, on one side, with which noise alone lets two numbers of the same records seem to be of different ones.
_LEVEL = 1e-7
# Standard deviations that noise exceeds with that probability.
_FARTHEST = {"laplace": math.log(0.5 / _LEVEL) / math.sqrt(2), "gaussian": NormalDist().inv_cdf(1 - _LEVEL)}
# Ends of names of files that are not releases.
_OTHERS = (".json", ".csv", ".txt", ".bif", ".xmlbif", ".xdsl", ".net", ".uai", ".parquet", ".pkl", ".html")

KINDS: dict[str, type[Release]] = {}
# Kinds of files that hold releases as they are read together, by the public names of what reads them.
_READINGS = {
    "united_tables": "UnitedMarginals",
    "partially_pooled_tables": "PartiallyPooledMarginals",
    "informed_tables": "InformedMarginals",
}


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
    """

    kind: ClassVar[str]
    properties: ClassVar[frozenset[str]]  # of its descriptor, beside those of every kind
    drawn: ClassVar[bool] = False
    schema: Schema
    guarantee: Guarantee
    cliques: tuple[Clique, ...]
    public_total: int | None = None
    chosen_among: Mapping[Clique, int] = MappingProxyType({})
    details: Mapping[Clique, Any] = MappingProxyType({})

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
        if os.fspath(path).lower().endswith(_OTHERS):
            raise ValueError(f"{os.fspath(path)}: a release is a zip file: end its name in .zip.")
        write_archive(self, path)

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
        release = read_archive(path, interpreted)
        if not isinstance(release, cls):
            raise ReleaseFormatError(
                f"{path}: the file holds another kind of release: use {type(release).__name__}.load."
            )
        return release

    @property
    def law(self) -> str:
        """The distribution of the noise in the measurements: "laplace" or "gaussian"."""
        return noise_law(self.guarantee)

    @property
    def total(self) -> float:
        """The number of records, estimated if it is private; at least 1."""
        raise self.refusal()

    @property
    def total_weight(self) -> float:
        """The sum of the weights of all records: `total` times the largest weight, or `total` if they have none."""
        return self.total * (self.guarantee.largest_weight or 1.0)

    @property
    def total_variance(self) -> float:
        """The variance of `total` before its floor of 1; 0 if the number is public."""
        raise self.refusal()

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the scale and standard deviation of the noise in a cell of a measured clique's table."""
        raise self.refusal()

    def marginal(self, clique: Clique) -> tuple[Floats, float]:
        """Return the least noisy table of a clique, and the noise variance of its cells.

        Raises
        ------
        ValueError
            If no measured clique contains it.
        """
        raise self.refusal()

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

    def refusal(self) -> TypeError:
        """Return the error of whoever asks for tables where there are none."""
        return TypeError(f"{type(self).__name__} contain draws of a network, not tables.")

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return {"kind": self.kind, "schema": self.schema.to_dict(), "guarantee": self.guarantee.to_dict()}

    def measurements(self) -> Measurements:
        """Return the arrays of numbers in the file, flat, with the variances of their noise."""
        raise NotImplementedError

    @classmethod
    def interpret(cls, schema: Schema, guarantee: Guarantee, contents: Mapping[str, Any]) -> Contents[Self]:
        """Invert `contents`: state which arrays the file has, and how to make a release of them."""
        raise NotImplementedError

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


def interpreted(contents: Mapping[str, Any]) -> Contents[Release]:
    """Interpret a descriptor by the rules of its kind."""
    name = entry(contents, "kind", str)
    kind: type[Release] | None = _late.public(_READINGS[name]) if name in _READINGS else KINDS.get(name)
    if kind is None:
        raise ValueError(f"unknown kind of release {name!r}.")
    expected = {"format_version", "kind", "schema", "guarantee"} | kind.properties
    if set(contents) != expected:
        raise ValueError(f"{RELEASE_PROPERTY} must have the properties {sorted(expected)}.")
    return kind.interpret(checked_schema(contents), checked_guarantee(contents), contents)


def several(release: Any) -> tuple[Release, ...]:
    """List the releases of a fit: one, those that are fitted together, or none."""
    return release if isinstance(release, tuple) else () if release is None else (release,)


def joint_guarantee(releases: Iterable[Release]) -> Guarantee:
    """Unite the guarantees of releases of the same records."""
    return reduce(or_, (release.guarantee for release in releases))


def found_states(sources: Iterable[Any]) -> dict[str, Guarantee]:
    """Return what finding the states of each variable cost, for those that the schema of a source found in records."""
    found = [own.found for own in (getattr(source, "schema", None) for source in sources) if isinstance(own, Schema)]
    return {v: learned(*(own.get(v) for own in found)) for v in dict.fromkeys(v for own in found for v in own)}


def refuse_repeated(releases: Sequence[Release]) -> None:
    """Raise if a release occurs twice."""
    if any(one == other for one, other in combinations(releases, 2)):
        raise ValueError("A release is given twice: averaging the same noise does not reduce it.")


def warn_of_other_records(releases: Sequence[Release]) -> None:
    """Warn about releases that are read together and count different numbers of records, far beyond their noise."""
    for one, other in combinations(releases, 2):
        apart, variance = abs(one.total - other.total), max(one.total_variance + other.total_variance, LEAST_VARIANCE)
        if apart > max(_FARTHEST[one.law], _FARTHEST[other.law]) * math.sqrt(variance):
            warnings.warn(
                f"Releases read together count about {one.total:,.0f} and {other.total:,.0f} records, "
                "which noise does not explain: unite releases of different records by union.",
                stacklevel=callers_level(),
            )


def refuse_exact(release: Release) -> None:
    """Raise if a release is exact counts."""
    if release.guarantee.mechanism == "none":
        raise ValueError("These are exact counts, not a release: without noise there is nothing to bound.")
