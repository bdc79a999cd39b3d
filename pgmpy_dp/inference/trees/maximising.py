"""Most probable states by elimination: other variables are summed out first, then maxima are taken.

Sources: Dechter (1999), "Bucket elimination: a unifying framework for reasoning", for maxima; Park and Darwiche (2004),
"Complexity results and approximation strategies for MAP explanations", for summing before maximising, which the answer
requires, and which makes tables larger than those of a junction tree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.inference.tables.layout import Layout, Variable, Vector
from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.inference.trees.engine import MAX_TABLE_CELLS
from pgmpy_dp.inference.trees.junction_tree import TreeTooLargeError
from pgmpy_dp.inference.trees.triangulation import constrained_order, moral_graph

# Log-probabilities that differ by less than this are considered equal.
_TIED = 1e-9


@dataclass(frozen=True)
class Maximisation:
    """An order of elimination, which serves all log-potentials of one layout.

    Attributes
    ----------
    layout : Layout
    asked : tuple of variables
        The variables whose joint state is maximised.
    given : mapping of variable to int
        Indices of known states; all other variables are summed out.
    sums, maxima : tuples of variables
        In order of elimination.
    """

    layout: Layout
    asked: tuple[Variable, ...]
    given: Mapping[Variable, int]
    sums: tuple[Variable, ...]
    maxima: tuple[Variable, ...]

    @classmethod
    def plan(cls, layout: Layout, asked: Sequence[Variable], given: Mapping[Variable, int]) -> Maximisation:
        """Find an order of elimination.

        Raises
        ------
        TreeTooLargeError
            If its tables do not fit in memory.

        Examples
        --------
        >>> layout = Layout.of({"a": 2, "b": 2}, [("a", "b")])
        >>> joint = np.log([0.3, 0.3, 0.4, 1e-9])
        >>> Maximisation.plan(layout, ["a"], {}).most_probable(joint)  # .6 against .4
        (0,)
        >>> Maximisation.plan(layout, ["a", "b"], {}).most_probable(joint)
        (1, 0)
        """
        names = [variable for variable in layout.cardinalities if variable not in given]
        number = {variable: place for place, variable in enumerate(names)}
        cards = [layout.cardinalities[variable] for variable in names]
        scopes = [[number[variable] for variable in scope if variable in number] for scope in layout.scopes]
        summed = [number[variable] for variable in names if variable not in asked]
        steps = constrained_order(moral_graph(len(names), scopes), cards, summed)
        if sum(math.prod(cards[node] for node in clique) for _, clique in steps) > MAX_TABLE_CELLS:
            raise TreeTooLargeError(
                f"The most probable state of these {len(asked)} variables needs tables of more than "
                f"{MAX_TABLE_CELLS:,} cells: ask for fewer variables, or for all that are not given."
            )
        order = [names[node] for node, _ in steps]
        return cls(layout, tuple(asked), dict(given), tuple(order[: len(summed)]), tuple(order[len(summed) :]))

    def most_probable(self, potentials: Vector) -> tuple[int, ...]:
        """Return the indices of the jointly most probable states; among equals the first, in the order of `asked`.

        Raises
        ------
        ValueError
            If the given states have probability zero.
        """
        tables = [_given(table, self.given) for table in map(Table, self.layout.scopes, self.layout.split(potentials))]
        left = (*self.sums, *self.maxima)  # some may be in no table
        tables += [Table((variable,), np.zeros(self.layout.cardinalities[variable])) for variable in left]
        for variable in self.sums:
            product, tables = _gathered(tables, variable)
            tables.append(Table(product.variables[1:], _log_sum(product.values)))
        highest, states, unique = self._maximum(tables)
        if not highest > -math.inf:
            raise ValueError("the log-potentials forbid every configuration: the partition function is zero")
        for variable in self.asked if not unique else ():
            for state in range(states[variable]):
                fixed = [_given(table, {variable: state}, keep=True) for table in tables]
                value, others, _ = self._maximum(fixed)
                if value >= highest - _TIED:
                    states = others
                    break
            tables = [_given(table, {variable: states[variable]}, keep=True) for table in tables]
        return tuple(states[variable] for variable in self.asked)

    def _maximum(self, tables: Sequence[Table[np.float64]]) -> tuple[float, dict[Variable, int], bool]:
        """Return the maximum, states that attain it, and whether they are the only ones."""
        left, products = list(tables), []
        for variable in self.maxima:
            product, left = _gathered(left, variable)
            left.append(Table(product.variables[1:], product.values.max(axis=0)))
            products.append(product)
        states: dict[Variable, int] = {}
        unique = True
        for product in reversed(products):
            known: tuple[slice | int, ...] = tuple(states[variable] for variable in product.variables[1:])
            row = product.values[(slice(None), *known)]
            highest = np.flatnonzero(row >= row.max() - _TIED)
            states[product.variables[0]], unique = int(highest[0]), unique and highest.size == 1
        return float(sum(float(table.values) for table in left)), states, unique


def _given(table: Table[np.float64], given: Mapping[Variable, int], keep: bool = False) -> Table[np.float64]:
    """Restrict a table to the given states; with `keep`, axes stay and other states are forbidden."""
    values = table.values
    if keep:
        for axis in (place for place, variable in enumerate(table.variables) if variable in given):
            other = np.arange(values.shape[axis]) != given[table.variables[axis]]
            values = np.where(np.expand_dims(other, [n for n in range(values.ndim) if n != axis]), -math.inf, values)
        return Table(table.variables, values)
    index = tuple(given.get(variable, slice(None)) for variable in table.variables)
    return Table(tuple(variable for variable in table.variables if variable not in given), values[index])


def _gathered(
    tables: Sequence[Table[np.float64]], variable: Variable
) -> tuple[Table[np.float64], list[Table[np.float64]]]:
    """Add up the tables of a variable, which becomes the first axis of the result; return the other tables too."""
    own = [table for table in tables if variable in table.variables]
    scope = (variable, *dict.fromkeys(v for table in own for v in table.variables if v != variable))
    total = sum(table.expand(scope) for table in own)
    return Table(scope, np.asarray(total)), [table for table in tables if variable not in table.variables]


def _log_sum(values: Vector) -> Vector:
    """Sum over the first axis of a table of logarithms."""
    top = values.max(axis=0)
    top = np.where(top > -math.inf, top, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(values - top).sum(axis=0)) + top)
