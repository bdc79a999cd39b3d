"""Tables whose states are accessed only by name; pgmpy takes a value that is not a state for a position.

`DiscreteFactor.reduce` of pgmpy reads 2 as the third state if no state is named 2, so that a number for a binned
variable, such as an age, silently selects a wrong bin. The tables of this package raise instead.
"""

from __future__ import annotations

from typing import Any, TypeVar

from pgmpy.factors.discrete import DiscreteFactor, TabularCPD

Table = TypeVar("Table", DiscreteFactor, TabularCPD)


class NamedFactor(DiscreteFactor):
    """A factor whose states are accessed only by name."""

    def reduce(self, values: Any, inplace: bool = True, show_warnings: bool = True) -> Any:
        """Reduce to given states of some variables.

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
        if hasattr(pair, "state"):  # a `State` of pgmpy's Gibbs sampler holds a position
            return variable, self.get_state_names(variable, state)
        self.get_state_no(variable, state)
        return pair


class NamedCPD(NamedFactor, TabularCPD):
    """A CPD whose states are accessed only by name, also in its copies and factors."""

    def copy(self) -> TabularCPD:
        """Return an independent copy."""
        return named(super().copy())

    def to_factor(self) -> DiscreteFactor:
        """Return a factor with the same table."""
        return named(super().to_factor())


def named(table: Table) -> Table:
    """View a table of pgmpy with access by name only; a change of either table changes both.

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
