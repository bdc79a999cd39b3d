"""A mixture for households and their persons, fitted to noisy tables of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from pgmpy_dp.data import PrivateHouseholds
from pgmpy_dp.data.mechanisms.mechanism import PublicRecords
from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.base import NOISE, Plan, TableEstimator, require_same, together
from pgmpy_dp.fitting.plans.pairs import plan_households
from pgmpy_dp.fitting.readings.mixture_fits import fit_of_release
from pgmpy_dp.models.mixtures.household_network import PrivateHouseholdNetwork
from pgmpy_dp.observed.informed_marginals import require_tables
from pgmpy_dp.privacy.checks import Constraint, whole
from pgmpy_dp.release import Release
from pgmpy_dp.schema import HouseholdSchema


@dataclass(eq=False, repr=False)
class HouseholdMixture(TableEstimator, BaseEstimator):  # type: ignore[misc]
    """A joint mixture for households and their persons, fitted to noisy tables of pairs.

    The unit of privacy is a household with all of its persons.

    Parameters
    ----------
    epsilon, neighbours, delta
        See :class:`~pgmpy_dp.AutoMLE`.
    schema : HouseholdSchema, optional
        Required for tables and for a release; `PrivateHouseholds` have their own.
    components, members : int
        See :class:`~pgmpy_dp.PairwiseMixture`.
    mechanism : {"auto", "laplace", "gaussian"}
        Kind of noise. "auto" is Gaussian if and only if delta > 0, charged by zCDP; Laplace noise, for pure epsilon, is
        much larger for this number of tables.

    Attributes
    ----------
    network_ : PrivateHouseholdNetwork
    penalty_ : float
        See :class:`~pgmpy_dp.PairwiseMixture`.
    guarantee_ : Guarantee
        The guarantee for the records behind the fit.
    release_ : NoisyMarginals
        The release that was measured or given.

    Notes
    -----
    The release contains the tables of :func:`~pgmpy_dp.plan_households`: every variable; all pairs of variables of
    households, their size and persons, within a level and across; and all pairs of a variable of one person and a
    variable of another person of the household. A household has a total weight of 1 in each table, whatever its number
    of persons. The alternative, counting persons, up to `max_persons` per household, requires noise that is larger by a
    factor of `max_persons`, and is more accurate only if nearly all households have that many. The weights hide that
    large households have more persons; the size, a variable that is paired with every other, restores this.

    One mixture is fitted to the pairs of households, sizes and persons, as by :class:`~pgmpy_dp.PairwiseMixture`. Its
    marginal is the mixture of households, and its conditional given a household that of persons, so that both levels
    agree. Pairs of two persons are not part of it: persons are drawn independently given the household, and then
    exchanged between households until these pairs match the release, as far as the noise allows (see
    `PrivateHouseholdNetwork.simulate` for what is preserved).

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

    _steps: ClassVar[int] = 400  # number of steps of the optimiser
    state_names: ClassVar[None] = None  # type: ignore[misc]  # the schema has them

    schema: HouseholdSchema | None = None
    components: int = 100
    members: int = 12

    def fit(self, data: Any, persons: Any = None) -> Self:
        """Measure the tables, unless a release is given, and fit the mixture.

        Parameters
        ----------
        data : table of households, PrivateHouseholds, NoisyMarginals or list of NoisyMarginals
            A release of the tables of `plan_households` costs nothing. `PrivateHouseholds` are charged.
        persons : table of persons, optional
            Required with a table of households; see :class:`~pgmpy_dp.PrivateHouseholds` for supported types.

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
        return self._run(own, data if persons is None else (data, persons))

    def plan(self, schema: HouseholdSchema | None = None, records: float | None = None) -> Plan:
        """Return what `fit` would measure, and its noise; this needs no records and charges nothing.

        Parameters
        ----------
        schema : HouseholdSchema, optional
            By default the estimator's own.
        records : float, optional
            A public guess of the number of households, for `Plan.outlook`.

        Returns
        -------
        Plan
        """
        own = self._structure(self.schema if schema is None else schema)
        self._require_same_schema(own)
        relation = self.neighbours or "add_remove"
        return self._planned(own, PublicRecords.of(own.measured, self.delta, relation, own.key), records)

    def _require_same_schema(self, schema: HouseholdSchema) -> None:
        if self.schema not in (None, schema):
            raise SchemaError("The estimator's schema differs from that of the households: leave it out.")

    def _structure(self, model: Any) -> HouseholdSchema:
        if not isinstance(model, HouseholdSchema):
            raise SchemaError("Which variables are whose must be declared: give a HouseholdSchema as schema.")
        return model

    def _source(self, structure: HouseholdSchema, data: Any, public: Any) -> Any:
        if isinstance(data, tuple) and isinstance(data[0], (Release, PrivateHouseholds)):
            raise ValueError("Persons go with a table of households only: leave them out.")
        counted = together(data)
        if isinstance(counted, Release):
            self._check_release(counted, structure.joined.variables)
            require_read(counted, structure)
            return counted
        self._price()
        if isinstance(data, PrivateHouseholds):
            require_same("neighbours", self.neighbours, data.neighbours)
            self._require_same_schema(structure)
            return data
        if not isinstance(data, tuple):
            raise ValueError("Two tables are fitted: give households and persons, or a PrivateHouseholds.")
        homes, persons = data
        return PrivateHouseholds(homes, persons, structure, self._budget(), self.neighbours or "add_remove")

    def _plan(self, structure: HouseholdSchema, public: Any) -> CountedTables:
        return self._noisy_tables(*plan_households(structure))

    def _read(self, structure: HouseholdSchema, release: Any) -> None:
        options = {"components": self.components, "members": self.members, "steps": self._steps}
        fit = fit_of_release(release, structure.joined, **options)
        self.penalty_ = fit.penalty
        pairs = {
            clique: (table[:, :-1], deviation)
            for clique, table, deviation in release.tables_of(release.variables)
            if clique in structure.together
        }
        self.network_ = PrivateHouseholdNetwork(structure, fit.mixture, fit.total, release.guarantee, pairs)


def require_read(release: Release, schema: HouseholdSchema) -> None:
    """Refuse a release that is not of the tables of a household schema."""
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
