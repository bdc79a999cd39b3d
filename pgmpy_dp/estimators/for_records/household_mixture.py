"""Two tables are measured once, and a mixture for both levels is fitted to what is released."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator

from pgmpy_dp.data import PrivateHouseholds
from pgmpy_dp.data.mechanisms.mechanism import PublicTable
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.base import NOISE, Plan, TableEstimator
from pgmpy_dp.estimators.sources import require_same, together
from pgmpy_dp.fitting.plans.pairs import plan_households
from pgmpy_dp.fitting.readings.mixture_fits import fit_of_release, noisy_tables
from pgmpy_dp.models.mixtures.household_network import PrivateHouseholdNetwork
from pgmpy_dp.privacy.checks import Constraint, whole
from pgmpy_dp.release import Release
from pgmpy_dp.release.informed_marginals import require_tables
from pgmpy_dp.schema import Clique, HouseholdSchema, Schema


@dataclass(eq=False, repr=False)
class HouseholdMixture(TableEstimator, BaseEstimator):  # type: ignore[misc]
    """A mixture for households and one for their persons, joined, fitted to noisy tables of pairs.

    The unit of privacy is a household with all of its persons.

    Parameters
    ----------
    schema : HouseholdSchema, optional
        Needed for tables and for a release; `PrivateHouseholds` have theirs.
    components, members : int
        As of :class:`~pgmpy_dp.PairwiseMixture`.
    mechanism : {"auto", "laplace", "gaussian"}
        Kind of noise. "auto" is Gaussian exactly where delta > 0, charged by zCDP; Laplace noise, for pure epsilon, is
        far more over so many tables.

    Attributes
    ----------
    network_ : PrivateHouseholdNetwork
    release_ : NoisyMarginals
    guarantee_ : Guarantee
    penalty_ : float
        As of :class:`~pgmpy_dp.PairwiseMixture`.

    Notes
    -----
    Measured is what :func:`~pgmpy_dp.plan_households` lists, in one release at one price: every variable, and all pairs
    of variables of households, of their size, and of persons, within a level and across; and all pairs of a variable of
    one person and one of another person of the household. A household adds a weight of 1 to each table, however many
    persons it has. The other way, to count persons, up to `max_persons` a household, needs noise so many times larger,
    and is closer only where nearly all households have that many. What weights hide, that persons of large households
    count for more, the size brings back: it is a variable, and paired with every other.

    One mixture is fitted to the pairs of households, sizes and persons, as
    :class:`~pgmpy_dp.PairwiseMixture` does. Its margin is the mixture of households; given a household it is that of
    persons; so both levels agree. Pairs of two persons are no part of it: given the household, persons are drawn
    independently of each other, and then change places between households until these pairs are as released, as far as
    noise lets them (see `PrivateHouseholdNetwork.simulate` for what is kept).

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> homes = pd.DataFrame({"id": range(400), "tenure": ["owned", "rented"] * 200})
    >>> people = pd.DataFrame({"id": [*range(400), *range(0, 400, 2)], "age": ["adult"] * 400 + ["child"] * 200})
    >>> tenure, age = dp.Schema({"tenure": ["owned", "rented"]}), dp.Schema({"age": ["child", "adult"]})
    >>> schema = dp.HouseholdSchema(tenure, age, key="id", max_persons=2)
    >>> data = dp.PrivateHouseholds(homes, people, schema, dp.PrivacyBudget(4.0, 1e-6))
    >>> estimator = dp.HouseholdMixture(epsilon=4.0, delta=1e-6, members=2).fit(data)
    >>> print(estimator.guarantee_)  # doctest: +NORMALIZE_WHITESPACE
    differentially private with epsilon = 4.0 and delta = 1e-06, for one id (all rows, of weight 1 together) added or
    removed (discrete Gaussian noise)
    >>> homes, people = estimator.network_.simulate(400, seed=0)
    >>> owned = people.merge(homes, on="id").query("tenure == 'owned'")
    >>> bool(owned["age"].value_counts()["child"] > 180)
    True
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "components": whole(1),
        "members": whole(1),
        "mechanism": NOISE,
    }

    _steps: ClassVar[int] = 400  # of the optimiser
    state_names: ClassVar[None] = None  # type: ignore[misc]  # the schema has them

    schema: HouseholdSchema | None = None
    components: int = 100
    members: int = 12

    def fit(self, data: Any, persons: Any = None) -> Self:
        """Measure the tables, unless they are released, and fit the mixture.

        Parameters
        ----------
        data : table of households, PrivateHouseholds, NoisyMarginals or list of NoisyMarginals
            A release costs nothing, and has tables of `plan_households`. `PrivateHouseholds` are charged.
        persons : table of persons, optional
            Beside a table of households; of the kinds that :class:`~pgmpy_dp.PrivateHouseholds` reads.

        Returns
        -------
        HouseholdMixture

        Raises
        ------
        SchemaError
            If there is no schema, or the tables or the release do not agree with it.
        BudgetExceededError
            If the ledger has less than epsilon left; nothing is charged.
        ValueError
            If an argument is out of range.
        """
        own = data.household_schema if isinstance(data, PrivateHouseholds) else self.schema
        return self._fit(own, data if persons is None else (data, persons))

    def plan(self) -> Plan:
        """Say what `fit` would measure, and how noisy it would be; no record is needed, and nothing is charged."""
        schema = self._structure(self.schema)
        relation = self.neighbours or "add_remove"
        return self._planned(schema, PublicTable.of(schema.measured, self.delta, relation, schema.key))

    def _structure(self, model: Any) -> HouseholdSchema:
        if not isinstance(model, HouseholdSchema):
            raise SchemaError("Which variables are whose must be declared: give a HouseholdSchema as schema.")
        return model

    def _source(self, structure: HouseholdSchema, data: Any, public: Any) -> Any:
        if isinstance(data, tuple) and isinstance(data[0], (Release, PrivateHouseholds)):
            raise ValueError("Persons are handed in beside a table of households alone: leave them out.")
        held = together(data)
        if isinstance(held, Release):
            self._paid(held, structure.joined.variables)
            require_read(held, structure)
            return held
        if self.epsilon is None:
            raise ValueError("Fitting records costs privacy: give the estimator an epsilon, such as epsilon=1.0.")
        if isinstance(data, PrivateHouseholds):
            require_same("neighbours", self.neighbours, data.neighbours)
            if self.schema not in (None, structure):
                raise SchemaError("The estimator's schema differs from that of the households: leave it out.")
            return data
        if not isinstance(data, tuple):
            raise ValueError("Two tables are fitted: give households and persons, or a PrivateHouseholds.")
        homes, persons = data
        return PrivateHouseholds(homes, persons, structure, self._budget(), self.neighbours or "add_remove")

    def _tables(self, structure: HouseholdSchema, schema: Schema) -> tuple[Sequence[Clique], Sequence[float]]:
        return plan_households(structure)

    def _read(self, structure: HouseholdSchema, release: Any) -> PrivateHouseholdNetwork:
        options = {"components": self.components, "members": self.members, "steps": self._steps}
        fit = fit_of_release(release, structure.joined, **options)
        self.penalty_ = fit.penalty
        pairs = {
            clique: (table[:, :-1].astype(np.float64), deviation)
            for clique, table, deviation in noisy_tables(release)
            if clique in structure.together
        }
        return PrivateHouseholdNetwork(structure, fit.mixture, fit.total, release.guarantee, pairs)

    def _finish(self, structure: HouseholdSchema, release: Any, found: PrivateHouseholdNetwork) -> None:
        super()._finish(structure, release, found)
        self.network_ = found


def require_read(release: Release, schema: HouseholdSchema) -> None:
    """Refuse a release that is not of the tables of a household schema.

    Raises
    ------
    TypeError, SchemaError
    """
    tables = require_tables(
        release, "HouseholdMixture is fitted to noisy tables: measure those that plan_households lists."
    )
    for variable, states in schema.measured.states.items():
        if tables.schema.states.get(variable, states) != states:
            raise SchemaError(f"Variable {variable!r} has other states in the release than in the schema.")
    unmeasured = set(schema.joined.variables).difference(*tables.tables)
    if unmeasured:
        raise SchemaError(
            f"The release has no table with {', '.join(map(repr, sorted(unmeasured)))}: measure those that "
            "plan_households lists."
        )
