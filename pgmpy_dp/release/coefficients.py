"""Fourier coefficients, which determine marginals that agree with each other."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.release.contrasts import MAX_STATES, Floats, coefficient_weights, contrasts
from pgmpy_dp.release.tables import margin
from pgmpy_dp.schema import Clique, Schema

MAX_COEFFICIENTS = 2**22


def downward_closure(schema: Schema, cliques: Iterable[Iterable[str]]) -> tuple[Clique, ...]:
    """List all subsets of the cliques, the empty one first: their coefficients determine the cliques' marginals.

    Variables of a subset are in schema order. A variable with one state has no contrasts, and is in no subset.

    Raises SchemaError if a clique does not match the schema, or there are more than `MAX_COEFFICIENTS` coefficients.

    Examples
    --------
    >>> schema = Schema(dict.fromkeys("abc", ["x", "y"]))
    >>> downward_closure(schema, [("b", "a"), ("c",)])
    ((), ('a',), ('b',), ('c',), ('a', 'b'))
    """
    place = places(schema)
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


def places(schema: Schema) -> dict[str, int]:
    """Number the variables in schema order, and then the finer histograms."""
    return {name: number for number, name in enumerate((*schema.variables, *schema.details))}


def _refuse_size(size: int, what: str) -> None:
    raise SchemaError(
        f"The Fourier closure is too large: {what} {size} coefficients, more than {MAX_COEFFICIENTS}. Measure smaller "
        "cliques, declare fewer states, or measure tables."
    )


def transform(table: NDArray[Any], cardinalities: Sequence[int]) -> NDArray[Any]:
    """Compute a table's coefficients, of the same shape; index 0 of an axis is the constant function."""
    for axis, states in enumerate(cardinalities):
        table = np.moveaxis(np.tensordot(contrasts(states).values, table, axes=(1, axis)), 0, axis)
    return table


def subset_index(clique: Sequence[str], subset: Iterable[str]) -> tuple[Any, ...]:
    """Return the index of a subset's coefficients in the transform of a clique's table."""
    inside = set(subset)
    return tuple(slice(1, None) if variable in inside else 0 for variable in clique)


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Fourier coefficients of all subsets of some cliques; the cliques' marginals agree for any values of these.

    Attributes
    ----------
    schema : Schema
    cliques : tuple of tuples of str
    values : mapping of subset to ndarray of float64
        Sum over records of the product of integer contrasts (`pgmpy_dp.release.contrasts.contrasts`), with one axis per
        variable in schema order and one entry less than states; the empty subset has the number of records.

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
        """Compute the marginal of any subset of a measured clique, axes in its order; cells may be negative."""
        ordered = sorted(clique, key=places(self.schema).__getitem__)
        varied = [v for v in ordered if self.schema.cardinality(v) > 1]
        full = np.empty(self.schema.shape(ordered))
        for size in range(len(varied) + 1):
            for subset in combinations(varied, size):
                if subset not in self.values:
                    raise SchemaError(
                        f"The coefficients of {subset} are missing: no measured clique contains {tuple(clique)}. "
                        f"Measured were {', '.join(map(str, self.cliques[:8]))}."
                    )
                full[subset_index(ordered, subset)] = self.values[subset]
        for axis, variable in enumerate(ordered):
            inverse = contrasts(self.schema.cardinality(variable)).inverse
            full = np.moveaxis(np.tensordot(inverse, full, axes=(1, axis)), 0, axis)
        return np.ascontiguousarray(margin(tuple(ordered), full, clique))

    @cached_property
    def tables(self) -> Mapping[Clique, Floats]:
        """Marginals of the cliques."""
        return MappingProxyType({clique: self.table(clique) for clique in self.cliques})

    def non_negative(self, at_least: float = 0.0) -> Coefficients:
        """Add the least number of records that makes every cell of every clique non-negative.

        The increment s is spread evenly, s / cells for each cell of a table, so that the marginals still agree. It is
        the largest of cells * (minus the least cell) over the cliques, computed from released coefficients without
        privacy cost. (Zhang et al. 2016 fix the increment in advance, since the least one for the true table would
        depend on the data.)

        Parameters
        ----------
        at_least : float
            A larger increment to use, such as :func:`pgmpy_dp.papers.printed_increment`.
        """
        needed = max(max(-float(table.min()) * table.size, 0.0) for table in self.tables.values())
        # Slightly more than needed, so that rounding leaves the smallest cell at 0 or above.
        increment = max(at_least, needed * (1 + 1e-12))
        raised = replace(self, values=MappingProxyType({**self.values, (): self.values[()] + increment}))
        tables = {clique: np.maximum(table, 0.0) for clique, table in raised.tables.items()}
        raised.__dict__["tables"] = MappingProxyType(tables)
        return raised


def noise_scales(schema: Schema, subset: Clique, scale: float) -> Floats:
    """Return the scale of the discrete Laplace noise on each integer coefficient of a subset: b / w."""
    return np.asarray(scale / coefficient_weights([schema.cardinality(v) for v in subset]))
