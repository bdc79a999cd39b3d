"""Two tables are measured once, and a mixture for both levels is fitted to what is released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator

from pgmpy_dp.data import PrivateHouseholds
from pgmpy_dp.data.mechanisms.tables import NoisyTables
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.parameters import Parameters, check_parameters
from pgmpy_dp.estimators.steps import paid_release, require_same, together
from pgmpy_dp.fitting.plans.pairs import plan_households
from pgmpy_dp.fitting.readings.mixture_fits import Tables, fit_of_release, noisy_tables
from pgmpy_dp.models.mixtures.household_network import PrivateHouseholdNetwork
from pgmpy_dp.observed.broken_rules import warn_of_broken_rules
from pgmpy_dp.observed.contradictions import warn_of_contradictions
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.checks import Constraint, choice, whole
from pgmpy_dp.release import Release
from pgmpy_dp.release.informed_marginals import require_tables
from pgmpy_dp.schema import HouseholdSchema


@dataclass(eq=False, repr=False)
class HouseholdMixture(Parameters, BaseEstimator):  # type: ignore[misc]
    """A mixture for households and one for their persons, joined, fitted to noisy tables of pairs.

    The unit of privacy is a household with all of its persons.

    Parameters
    ----------
    epsilon : float, optional
        Privacy loss of all that is measured, for tables or `PrivateHouseholds`; None for a release.
    delta : float
        In (0, 1) for Gaussian noise, 0 for Laplace noise.
    schema : HouseholdSchema, optional
        Needed for tables and for a release; `PrivateHouseholds` have theirs.
    components, members : int
        As of :class:`~pgmpy_dp.PairwiseMixture`.
    mechanism : {"gaussian", "laplace"}
        Discrete Gaussian noise, charged by zCDP, or discrete Laplace noise for pure epsilon: over many tables that is
        far more.
    neighbours : {"add_remove", "replace_one"}, optional
        For tables; "add_remove" by default. `PrivateHouseholds` have their own.

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
        "mechanism": choice("gaussian", "laplace"),
    }

    _steps: ClassVar[int] = 400  # of the optimiser
    state_names: ClassVar[None] = None  # the schema has them

    epsilon: float | None = None
    delta: float = 0.0
    schema: HouseholdSchema | None = None
    components: int = 100
    members: int = 12
    mechanism: str = "gaussian"
    neighbours: str | None = None

    def fit(self, data: Any, persons: Any = None) -> HouseholdMixture:
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
        check_parameters(self)
        data = together(data)
        if isinstance(data, (Release, PrivateHouseholds)) and persons is not None:
            raise ValueError("Persons are handed in beside a table of households alone: leave them out.")
        if isinstance(data, Release):
            release, schema = self._paid(data), self._declared()
        else:
            source = self._source(data, persons)
            schema = source.household_schema
            assert self.epsilon is not None
            release = source.release(tables_of_households(schema, self.epsilon, self.delta, self.mechanism))
        self.release_, self.guarantee_ = release, release.guarantee  # paid for, should the fit fail
        warn_of_contradictions([release])
        warn_of_broken_rules([release])
        joined = schema.joined
        fit = fit_of_release(release, joined, components=self.components, members=self.members, steps=self._steps)
        self.penalty_ = fit.penalty
        pairs = {
            clique: (table[:, :-1].astype(np.float64), deviation)
            for clique, table, deviation in noisy_tables(release)
            if clique in schema.together
        }
        self.network_ = PrivateHouseholdNetwork(schema, fit.mixture, fit.total, release.guarantee, pairs)
        return self

    def _declared(self) -> HouseholdSchema:
        if not isinstance(self.schema, HouseholdSchema):
            raise SchemaError("Which variables are whose must be declared: give a HouseholdSchema as schema.")
        return self.schema

    def _source(self, data: Any, persons: Any) -> PrivateHouseholds:
        if self.epsilon is None:
            raise ValueError("Fitting records costs privacy: give the estimator an epsilon, such as epsilon=1.0.")
        if not isinstance(data, PrivateHouseholds):
            if persons is None:
                raise ValueError("Two tables are fitted: give households and persons, or a PrivateHouseholds.")
            budget = PrivacyBudget(self.epsilon, self.delta)
            return PrivateHouseholds(data, persons, self._declared(), budget, self.neighbours or "add_remove")
        require_same("neighbours", self.neighbours, data.neighbours)
        if self.schema not in (None, data.household_schema):
            raise SchemaError("The estimator's schema differs from that of the households: leave it out.")
        return data

    def _paid(self, data: Release) -> Tables:
        schema = self._declared()
        joined = schema.joined
        release = require_tables(
            data, "HouseholdMixture is fitted to noisy tables: measure those that plan_households lists."
        )
        paid_release(self, release, joined.variables)
        for variable, states in schema.measured.states.items():
            if release.schema.states.get(variable, states) != states:
                raise SchemaError(f"Variable {variable!r} has other states in the release than in the schema.")
        unmeasured = set(joined.variables).difference(*release.tables)
        if unmeasured:
            raise SchemaError(
                f"The release has no table with {', '.join(map(repr, sorted(unmeasured)))}: measure those that "
                "plan_households lists."
            )
        return release


def tables_of_households(schema: HouseholdSchema, epsilon: float, delta: float, mechanism: str) -> NoisyTables:
    """Plan what is measured."""
    cliques, weights = plan_households(schema)
    return NoisyTables(cliques, epsilon, delta, mechanism, weights)
