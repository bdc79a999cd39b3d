"""States of a network's tables go by their names: pgmpy's inference takes what is no state for a position.

`DiscreteFactor.reduce` of pgmpy reads a 2 as the third state where no state is called 2, so that the number of a bin's
variable, such as an age, silently means another bin. Tables of our networks let pgmpy's own refusal through.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pgmpy.factors.discrete import DiscreteFactor, TabularCPD

Table = TypeVar("Table", DiscreteFactor, TabularCPD)


class NamedFactor(DiscreteFactor):
    """A factor whose states go by their names."""

    def reduce(self, values: Any, inplace: bool = True, show_warnings: bool = True) -> Any:
        """Reduce to some variables' states.

        Raises
        ------
        KeyError
            If a variable has no such state.
        """
        values = values if isinstance(values, str) else [self._named(pair) for pair in values]
        return super().reduce(values, inplace=inplace, show_warnings=show_warnings)

    def _named(self, pair: Any) -> Any:
        if not isinstance(pair, tuple) or pair[0] not in self.variables:
            return pair  # pgmpy refuses it
        variable, state = pair
        if hasattr(pair, "state"):  # a `State` of pgmpy's Gibbs sampler, which numbers them
            return variable, self.get_state_names(variable, state)
        self.get_state_no(variable, state)
        return pair


class NamedCPD(NamedFactor, TabularCPD):
    """A CPD whose states go by their names, as do those of its copies and factors."""

    def copy(self) -> TabularCPD:
        """Make an independent table."""
        return named(super().copy())

    def to_factor(self) -> DiscreteFactor:
        """Make a factor of the same table."""
        return named(super().to_factor())


def named(table: Table) -> Table:
    """View a table of pgmpy as one whose states go by their names: a change of either is one of both.

    Examples
    --------
    >>> factor = named(DiscreteFactor(["smoke"], [2], [0.3, 0.7], {"smoke": ["yes", "no"]}))
    >>> factor.reduce([("smoke", 1)])
    Traceback (most recent call last):
    KeyError: "state: 1 is an unknown for variable: smoke. It must be one of ['yes', 'no']"
    """
    kind = NamedCPD if isinstance(table, TabularCPD) else NamedFactor
    own = kind.__new__(kind)
    own.__dict__ = vars(table)
    return own
