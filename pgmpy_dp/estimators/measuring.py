"""From what a user hands to `fit` to a release.

An estimator takes a release (nothing is charged), a private data set (its ledger is charged) or raw records with a
declared schema (a private data set is made for this one release).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Clique, Schema


@dataclass(frozen=True)
class Measurement:
    """What an estimator measures when it is not handed a release.

    Attributes
    ----------
    epsilon : float or None
        None: only releases are accepted.
    delta : float
    mechanism : str
    neighbours : str or None
        For raw records.
    state_names : mapping or Schema or None
        Declared states, for raw records.
    """

    epsilon: float | Fraction | None
    delta: float
    mechanism: str
    neighbours: str | None
    state_names: Mapping[str, Any] | Schema | None

    def take(
        self,
        data: Any,
        variables: Sequence[str],
        plan: Callable[[Schema], tuple[Sequence[Clique], Sequence[float]]],
    ) -> Release:
        """The release to fit.

        Parameters
        ----------
        data : NoisyMarginals, NoisyCoefficients, PrivateDataset or data frame
        variables : sequence of str
            The model's variables.
        plan : callable
            Schema to cliques and their shares of the budget.

        Raises
        ------
        SchemaError
            If a variable of the model is not declared.
        ValueError
            If epsilon is given with a release, or missing without one; for exact counts.
        """

        def measure(dataset: PrivateDataset) -> Release:
            assert self.epsilon is not None
            cliques, weights = plan(dataset.schema)
            return dataset.measure(cliques, self.epsilon, delta=self.delta, mechanism=self.mechanism, weights=weights)

        return self.take_by(data, variables, measure)

    def take_by(self, data: Any, variables: Sequence[str], measure: Callable[[PrivateDataset], Release]) -> Release:
        """As `take`, measuring by a function of the data set."""
        if isinstance(data, Release):
            self._check_release(data)
            _require_variables(data.schema, variables, "release")
            self._require_agreement(data.schema, data.guarantee.neighbours, variables)
            return data
        return measure(self.dataset(data, variables))

    def take_several(self, releases: Sequence[Any], variables: Sequence[str]) -> list[Release]:
        """Several releases of the same records, which hold the variables between them; errors as `take`."""
        if not releases:
            raise ValueError("Give at least one release.")
        for release in releases:
            if not isinstance(release, Release):
                raise TypeError(f"A list may hold releases only, got {type(release).__name__}.")
            self._check_release(release)
            held = [variable for variable in variables if variable in release.schema.states]
            self._require_agreement(release.schema, release.guarantee.neighbours, held)
        return list(releases)

    def _check_release(self, data: Release) -> None:
        if not data.cliques:
            raise TypeError(f"{type(data).__name__} hold draws of a network, and no tables to fit: read its mean().")
        if self.epsilon is not None:
            raise ValueError(
                "A release is already paid for: leave epsilon out of the estimator, or hand it the data set."
            )
        if data.guarantee.mechanism == "none":
            raise ValueError("These are exact counts, not a release: fit the records with MaximumLikelihood.")

    def dataset(self, data: Any, variables: Sequence[str]) -> PrivateDataset:
        """The data set that was handed in, or one for this fit alone made of raw records; errors as `take`."""
        if isinstance(data, (list, tuple)) and any(isinstance(d, Release) for d in data):
            raise TypeError("Several releases are fitted together by PosteriorMean: give estimator=PosteriorMean().")
        if self.epsilon is None:
            raise ValueError("Fitting records costs privacy: give the estimator an epsilon, such as epsilon=1.0.")
        if isinstance(data, PrivateDataset):
            _require_variables(data.schema, variables, "data set's schema")
            self._require_agreement(data.schema, data.neighbours, variables)
            return data
        schema = declared(self.state_names, variables)
        budget = PrivacyBudget(self.epsilon, self.delta)
        return PrivateDataset(data, schema, budget, neighbours=self.neighbours or "add_remove")

    def _require_agreement(self, schema: Schema, neighbours: str, variables: Sequence[str]) -> None:
        """An option that says otherwise than the data is a mistake, not something to pass over."""
        require_same("neighbours", self.neighbours, neighbours)
        if self.state_names is not None:
            named = declared(self.state_names, variables)
            for variable in variables:
                if named.states[variable] != schema.states[variable]:
                    raise SchemaError(
                        f"Variable {variable!r}: state_names differ from the states in the data's own schema: leave "
                        "state_names out."
                    )


def require_same(name: str, asked: Any, held: Any, holder: str = "data has") -> None:
    """Refuse an option that says otherwise than the data; None says nothing."""
    if asked not in (None, held):
        raise ValueError(f"The estimator asks for {name}={asked!r}, but the {holder} {held!r}: leave it out.")


def declared(state_names: Mapping[str, Any] | Schema | None, variables: Sequence[str]) -> Schema:
    """The schema of the model's variables, from a dict of states or a schema.

    Raises
    ------
    SchemaError
        If a variable has no declared states.
    """
    if state_names is None:
        raise SchemaError(
            "States must be declared, not read off private records: give state_names={variable: states} or a Schema."
        )
    schema = state_names if isinstance(state_names, Schema) else Schema(state_names)
    _require_variables(schema, variables, "state_names")
    return schema.select(variables)


def _require_variables(schema: Schema, variables: Sequence[str], where: str) -> None:
    missing = [variable for variable in variables if variable not in schema.states]
    if missing:
        names = ", ".join(repr(variable) for variable in missing)
        raise SchemaError(
            f"The model has variables that are not in the {where}: {names}. Declare their states, or leave them out "
            "of the model."
        )
