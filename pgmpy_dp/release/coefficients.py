"""Marginals by their Fourier coefficients, and releases of noisy coefficients."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.fourier import (
    MAX_STATES,
    Floats,
    coefficient_weights,
    contrasts,
    fourier_sensitivity,
)
from pgmpy_dp.privacy.mechanisms import laplace_variance
from pgmpy_dp.release.guarantee import Guarantee, checked_number, counted
from pgmpy_dp.release.marginals import NoisyMarginals, checked_total
from pgmpy_dp.schema import Clique, Schema

MAX_COEFFICIENTS = 2**22


def downward_closure(schema: Schema, cliques: Iterable[Iterable[str]]) -> tuple[Clique, ...]:
    """All subsets of the cliques, the empty one first: the sets whose coefficients make up the cliques' marginals.

    Variables of a subset stand in schema order. A variable with one state has no contrasts, and is in none.

    Parameters
    ----------
    schema : Schema
    cliques : iterable of iterables of str

    Raises
    ------
    SchemaError
        If a clique does not fit the schema, or there are more than `MAX_COEFFICIENTS` coefficients: the message says
        how many.

    Examples
    --------
    >>> schema = Schema(dict.fromkeys("abc", ["x", "y"]))
    >>> downward_closure(schema, [("b", "a"), ("c",)])
    ((), ('a',), ('b',), ('c',), ('a', 'b'))
    """
    place = {variable: number for number, variable in enumerate(schema.variables)}
    found: set[Clique] = set()
    visited = 0
    for clique in schema.require(cliques):
        for variable in clique:
            if schema.cardinality(variable) > MAX_STATES:
                raise SchemaError(
                    f"Variable {variable!r} has {schema.cardinality(variable)} states; a Fourier release takes at most "
                    f"{MAX_STATES}: declare fewer states, or measure tables."
                )
        if schema.cells(clique) > MAX_COEFFICIENTS:
            _refuse_size(schema.cells(clique), f"clique {clique} alone has")
        varied = sorted((v for v in clique if schema.cardinality(v) > 1), key=place.__getitem__)
        visited += 2 ** len(varied)
        if visited > 4 * MAX_COEFFICIENTS:
            _refuse_size(visited, "the cliques have up to")
        found.update(subset for size in range(len(varied) + 1) for subset in combinations(varied, size))
    size = sum(math.prod(schema.cardinality(v) - 1 for v in subset) for subset in found)
    if size > MAX_COEFFICIENTS:
        _refuse_size(size, f"the {len(found)} subsets of the cliques have")
    return tuple(sorted(found, key=lambda subset: (len(subset), [place[v] for v in subset])))


def _refuse_size(size: int, what: str) -> None:
    raise SchemaError(
        f"The Fourier closure is too large: {what} {size} coefficients, more than {MAX_COEFFICIENTS}. Measure smaller "
        "cliques, declare fewer states, or measure tables."
    )


def transform(table: NDArray[Any], cardinalities: Sequence[int]) -> NDArray[Any]:
    """Coefficients of a table (integers of counts), same shape; index 0 of an axis is the constant function."""
    for axis, states in enumerate(cardinalities):
        table = np.moveaxis(np.tensordot(contrasts(states).values, table, axes=(1, axis)), 0, axis)
    return table


def subset_index(clique: Sequence[str], subset: Iterable[str]) -> tuple[Any, ...]:
    """Where in the transform of a clique's table the coefficients of a subset stand."""
    inside = set(subset)
    return tuple(slice(1, None) if variable in inside else 0 for variable in clique)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Marginals of some cliques by the Fourier coefficients of all their subsets: whatever these are, they agree.

    Attributes
    ----------
    schema : Schema
    cliques : tuple of tuples of str
    values : mapping of subset to ndarray of float64
        Sum over records of the product of integer contrasts (`pgmpy_dp.privacy.fourier.contrasts`), one axis a
        variable in schema order, with one entry less than states; the empty subset holds the number of records.

    Examples
    --------
    >>> schema = Schema({"a": ["x", "y"], "b": ["x", "y"]})
    >>> values = {(): np.array(8.0), ("a",): np.array([2.0]), ("b",): np.array([0.0]), ("a", "b"): np.array([[6.0]])}
    >>> Coefficients(schema, (("a", "b"),), values).tables["a", "b"].tolist()
    [[4.0, 1.0], [0.0, 3.0]]
    """

    schema: Schema
    cliques: tuple[Clique, ...]
    values: Mapping[Clique, Floats]

    def table(self, clique: Clique) -> Floats:
        """Marginal of any clique within a measured one, axes in clique order; may hold negative cells."""
        place = {variable: number for number, variable in enumerate(self.schema.variables)}
        ordered = sorted(clique, key=place.__getitem__)
        varied = [v for v in ordered if self.schema.cardinality(v) > 1]
        full = np.empty(self.schema.shape(ordered))
        for size in range(len(varied) + 1):
            for subset in combinations(varied, size):
                if subset not in self.values:
                    raise SchemaError(
                        f"The coefficients of {subset} are missing: no measured clique holds {tuple(clique)}. "
                        f"Measured were {', '.join(map(str, self.cliques[:8]))}."
                    )
                full[subset_index(ordered, subset)] = self.values[subset]
        for axis, variable in enumerate(ordered):
            inverse = contrasts(self.schema.cardinality(variable)).inverse
            full = np.moveaxis(np.tensordot(inverse, full, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(full.transpose([ordered.index(variable) for variable in clique]))

    @cached_property
    def tables(self) -> Mapping[Clique, Floats]:
        """The marginals of the cliques."""
        return MappingProxyType({clique: self.table(clique) for clique in self.cliques})

    def non_negative(self, at_least: float = 0.0) -> Coefficients:
        """The same with the least number of records more that makes every cell of every clique non-negative.

        The increment s is spread evenly, s / cells for each cell of a table, so that the marginals still agree; it is
        the largest of cells * (minus the least cell) over the cliques. It is computed from coefficients that are
        released already, and costs no privacy. (Zhang et al. 2016 take an increment fixed in advance, since the least
        one for the true table would depend on the data.)

        Parameters
        ----------
        at_least : float
            A larger increment to use, such as :meth:`NoisyCoefficients.paper_increment`.
        """
        needed = max(max(-float(table.min()) * table.size, 0.0) for table in self.tables.values())
        # A little more than needed, for rounding: the smallest cell is to be 0 or above.
        increment = max(at_least, needed * (1 + 1e-12))
        raised = replace(self, values=MappingProxyType({**self.values, (): self.values[()] + increment}))
        tables = {clique: np.maximum(table, 0.0) for clique, table in raised.tables.items()}
        raised.__dict__["tables"] = MappingProxyType(tables)
        return raised


@dataclass(frozen=True, eq=False, repr=False)
class NoisyCoefficients:
    """Noisy Fourier coefficients of the marginals of chosen cliques: a release whose tables agree with each other.

    All that is computed from it is post-processing and costs no privacy.

    Parameters
    ----------
    schema : Schema
        The public schema.
    cliques : tuple of tuples of str
        What was measured, in the order of the tables' axes.
    values : mapping of subset to ndarray of int64
        Noisy integer coefficients of every subset of the cliques, one axis a variable in schema order; under
        ``replace_one`` without the empty subset, whose coefficient is the public number of records.
    scale : float
        Noise scale b of the coefficients with contrasts of mean square 1, in records; an integer coefficient of weight
        w has discrete Laplace noise of scale b / w (`pgmpy_dp.privacy.fourier.coefficient_weights`).
    guarantee : Guarantee
    public_total : int or None
        The number of records where it is public (``replace_one``), else None.

    Raises
    ------
    SchemaError
        If a clique does not fit the schema, or the closure is too large.
    ValueError
        If coefficients are missing or of the wrong kind, or the scale contradicts the guarantee.

    Notes
    -----
    A cell of a table with c cells has noise of variance about 2 b**2 / c.
    """

    schema: Schema
    cliques: tuple[Clique, ...]
    values: Mapping[Clique, NDArray[np.int64]]
    scale: float
    guarantee: Guarantee
    public_total: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.schema, Schema) or not isinstance(self.guarantee, Guarantee):
            raise ValueError("NoisyCoefficients needs a Schema and a Guarantee.")
        if self.guarantee.mechanism != "laplace":
            raise ValueError(f"NoisyCoefficients have Laplace noise, got mechanism {self.guarantee.mechanism!r}.")
        if self.guarantee.max_rows != 1:
            raise ValueError("NoisyCoefficients are priced for single records: max_rows is 1.")
        cliques = self.schema.require(self.cliques)
        closure = downward_closure(self.schema, cliques)
        total = checked_total(self.public_total, self.guarantee)
        noisy = closure if total is None else closure[1:]
        if not isinstance(self.values, Mapping) or set(self.values) != set(noisy):
            raise ValueError("NoisyCoefficients: values must have every subset of the cliques, and no other.")
        values = {subset: self._checked(subset) for subset in noisy}
        scale = checked_number("scale", self.scale)
        if not 0 < scale <= 2.0**50:
            raise ValueError(f"NoisyCoefficients: the noise scale must be positive, at most 2**50, got {scale!r}.")
        cards = {v: self.schema.cardinality(v) for clique in cliques for v in clique}
        loss = fourier_sensitivity(closure, cards, self.guarantee.neighbours) / scale
        if loss > self.guarantee.epsilon * (1 + 1e-9):
            raise ValueError(
                f"NoisyCoefficients: noise of this scale costs epsilon={loss:.6g}, more than the guarantee's "
                f"{self.guarantee.epsilon:.6g}."
            )
        parts = {"cliques": cliques, "values": MappingProxyType(values), "scale": scale, "public_total": total}
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    def _checked(self, subset: Clique) -> NDArray[np.int64]:
        array = np.asarray(self.values[subset])
        shape = tuple(self.schema.cardinality(v) - 1 for v in subset)
        if array.dtype != np.int64 or array.shape != shape:
            raise ValueError(
                f"NoisyCoefficients: the coefficients of {subset} must be int64 of shape {shape}, got {array.dtype} of "
                f"shape {array.shape}."
            )
        copy = np.array(array, order="C")
        copy.setflags(write=False)
        return copy

    @cached_property
    def noise_variances(self) -> Mapping[Clique, Floats]:
        """Variance of the noise in every integer coefficient, by subset."""
        found = {}
        for subset in self.values:
            scales = noise_scales(self.schema, subset, self.scale)
            distinct, places = np.unique(scales, return_inverse=True)
            found[subset] = np.array([laplace_variance(s) for s in distinct])[places].reshape(scales.shape)
        return MappingProxyType(found)

    @cached_property
    def _coefficients(self) -> Coefficients:
        values = {subset: array.astype(np.float64) for subset, array in self.values.items()}
        if self.public_total is not None:
            values = {(): np.array(float(self.public_total))} | values
        return Coefficients(self.schema, self.cliques, MappingProxyType(values))

    def to_coefficients(self) -> Coefficients:
        """The coefficients as plain numbers, from which marginals, and non-negative ones, are made."""
        return self._coefficients

    def table(self, clique: Clique) -> Floats:
        """Unbiased marginal of any clique within a measured one; may hold negative cells."""
        return self._coefficients.table(clique)

    @property
    def tables(self) -> Mapping[Clique, Floats]:
        """Unbiased marginals of the measured cliques. They agree on common variables and may hold negative cells."""
        return self._coefficients.tables

    def variance(self, clique: Clique) -> float:
        """Noise variance of a cell of the clique's marginal, the mean over its cells; noise in cells is correlated."""
        inside = set(clique)
        cells = self.schema.cells(clique)
        total = 0.0
        for subset, variances in self.noise_variances.items():
            if inside.issuperset(subset):
                weights = coefficient_weights([self.schema.cardinality(v) for v in subset])
                total += float((variances * weights**2).sum())
        return total / cells**2

    @property
    def total(self) -> float:
        """Number of records, public or as measured by the coefficient of the empty set; at least 1."""
        return max(float(self._coefficients.values[()]), 1.0)

    @property
    def total_variance(self) -> float:
        """Variance of `total` before its floor of 1; 0 where the number is public."""
        return 0.0 if self.public_total is not None else laplace_variance(self.scale)

    def paper_increment(self, failure_probability: float = 0.1) -> float:
        """The paper's increment, fixed in advance: enough for a non-negative full table but with this probability.

        No coefficient's noise exceeds b log(m / p) with probability 1 - p, m being their number, and a cell of the full
        table holds the sum of them weighted by products of contrasts of at most A_i. With two states everywhere and the
        paper's scale it is 4 t |N_I|**2 / epsilon for t = log(|N_I| / p) / 2 (Zhang et al. 2016, Corollary 3).

        Returns
        -------
        float
            In records, for :meth:`Coefficients.non_negative`.
        """
        if not 0 < failure_probability < 1:
            raise ValueError(f"failure_probability must be between 0 and 1, got {failure_probability!r}.")
        closure = downward_closure(self.schema, self.cliques)
        cards = {v: self.schema.cardinality(v) for clique in self.cliques for v in clique}
        size = sum(math.prod(cards[v] - 1 for v in subset) for subset in closure)
        largest = self.scale * math.log(size / failure_probability)
        return fourier_sensitivity(closure, cards, "add_remove") * largest

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the release to a zip file, as :meth:`NoisyMarginals.save`."""
        from pgmpy_dp.release.archive import save_release

        save_release(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> NoisyCoefficients:
        """Read a release file of coefficients and check all of it, as :meth:`NoisyMarginals.load`."""
        from pgmpy_dp.release.archive import load_release

        return load_release(path, cls)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NoisyCoefficients):
            return NotImplemented
        return self._parts() == other._parts() and all(
            np.array_equal(array, other.values[subset]) for subset, array in self.values.items()
        )

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[Any, ...]:
        return self.schema, self.cliques, self.scale, self.guarantee, self.public_total

    def __repr__(self) -> str:
        size = sum(array.size for array in self.values.values())
        lines = [
            f"NoisyCoefficients: {counted(size, 'coefficient')} of {counted(len(self.cliques), 'clique')}, "
            f"noise scale {self.scale:.6g}",
            str(self.guarantee),
        ]
        if self.public_total is not None:
            lines.append(f"public number of {self.guarantee.counted}: {self.public_total}")
        return "\n  ".join(lines)

    def __reduce__(self) -> tuple[Any, ...]:  # read-only mappings do not pickle
        return NoisyCoefficients, (
            self.schema,
            self.cliques,
            dict(self.values),
            self.scale,
            self.guarantee,
            self.public_total,
        )


def noise_scales(schema: Schema, subset: Clique, scale: float) -> Floats:
    """Scale of the discrete Laplace noise on each integer coefficient of a subset: b / w."""
    return np.asarray(scale / coefficient_weights([schema.cardinality(v) for v in subset]))


def consistent_coefficients(release: NoisyMarginals) -> Coefficients:
    """See :meth:`NoisyMarginals.to_coefficients`."""
    schema = release.schema
    place = {variable: number for number, variable in enumerate(schema.variables)}
    sums: dict[Clique, Floats] = {}
    weights: dict[Clique, float] = {}
    for clique, table in release.tables.items():
        weight = 1.0 / (max(release.variances[clique], 1e-200) * table.size)
        ordered = sorted(clique, key=place.__getitem__)
        full = transform(table.transpose([clique.index(v) for v in ordered]), schema.shape(ordered))
        for subset in downward_closure(schema, [clique]):
            part = weight * full[subset_index(ordered, subset)]
            sums[subset] = sums.get(subset, 0.0) + part
            weights[subset] = weights.get(subset, 0.0) + weight
    values = {subset: np.asarray(total / weights[subset]) for subset, total in sums.items()}
    if release.public_total is not None:
        values[()] = np.array(float(release.public_total))
    return Coefficients(schema, release.cliques, MappingProxyType(values))
