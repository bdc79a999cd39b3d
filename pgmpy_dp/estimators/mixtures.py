"""Mixtures fitted to noisy tables of all pairs of variables, of records or of households and their persons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from pgmpy_dp.data import PrivateHouseholds
from pgmpy_dp.data.mechanisms.mechanism import PublicRecords
from pgmpy_dp.data.mechanisms.steps import Asked, Measure, MeasureResiduals
from pgmpy_dp.data.mechanisms.tables import CountedTables
from pgmpy_dp.errors import SchemaError, warn
from pgmpy_dp.estimators.base import NOISE, Plan, TableEstimator, require_same, together
from pgmpy_dp.fitting.plans.groups import numbers_of_groups, with_groups
from pgmpy_dp.fitting.plans.pairs import (
    SINGLES,
    clear_triples,
    drowned,
    favouring,
    pair_noise,
    plan_households,
    plan_prediction,
    plan_residuals,
    plan_triples,
    residuals_pay,
)
from pgmpy_dp.fitting.readings.mixture_fits import (
    MixtureRelease,
    chances_of_the_same,
    fit_of_release,
    fitted_variables,
    pairs_depend,
    require_mixture_release,
    warn_of_unmeasured,
)
from pgmpy_dp.inference.mixtures.fit.ensemble import MixtureFit, disagreement
from pgmpy_dp.models.household_network import PrivateHouseholdNetwork
from pgmpy_dp.models.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.observed.informed_marginals import require_tables
from pgmpy_dp.privacy.blocks import table_deviation
from pgmpy_dp.privacy.checks import Constraint, choice, number, optional, whole
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.schema import Clique, HouseholdSchema, Schema

# Shares of the privacy loss of the first stage, for single variables, and of the second, for pairs unless noise drowns
# them. Measuring a table again loses nothing with Gaussian noise, whose precisions add up as shares do, but does with
# Laplace noise. With two stages of pairs, the share of the first, and the number of members whose disagreement decides
# on the second.
_SHARES, _SCOUTED, _SCOUTS = {"gaussian": (0.1, 0.15), "laplace": (0.02, 0.0)}, 0.3, 6


@dataclass(eq=False, repr=False)
class PairwiseMixture(TableEstimator, BaseEstimator):  # type: ignore[misc]
    """A mixture fitted to noisy tables of all pairs of variables; no network is needed.

    Parameters
    ----------
    epsilon, neighbours, delta, state_names
        See :class:`~pgmpy_dp.AutoMLE`.
    components : int
        Number of components of each member; reduced to a quarter if that predicts the thinned release better.
    members : int
        Number of fits from different starts, whose mean is the model. This averages out the variance between starts.
    stages : {1, 2}
        With 2, pairs are measured again with less noise where the members disagree. Requires Gaussian noise.
    target : str, optional
        A variable to be predicted from the others: pairs with it get less noise, and tables of it with two others are
        measured too if they have few states.
    records : float, optional
        A public guess of the number of records, to plan by in place of the estimate; see the notes. With Gaussian
        noise, one stage and no target, triples are measured too if noise is below three tenths of the records in a mean
        cell; the fit then takes several times as long.
    pooled : bool
        For a union of releases: whether one mixture describes all records together. Otherwise the union's variable is a
        variable of the mixture.
    measure : {"tables", "residuals", "auto"}
        Deprecated: leave it out, and measure ``plan_pairs(schema)`` where tables are needed. See the notes on "auto".
    mechanism : {"auto", "laplace", "gaussian"}
        Kind of noise. "auto" is Gaussian if and only if delta > 0; Laplace noise, for pure epsilon, is much larger for
        this number of tables. Either is charged once.

    Attributes
    ----------
    network_ : PrivateMixtureNetwork
    penalty_ : float
        Penalty on dependence within a component, chosen by thinning the release.
    guarantee_, release_
        See :class:`~pgmpy_dp.AutoMLE`; the release is one of tables, or of residuals.

    Notes
    -----
    Single variables are measured first, then pairs unless noise would drown them, or, of up to 200 variables of few
    states, what pairs say beyond their variables. All has one price, which is charged before the first answer. The
    analyst's guide says what is measured when, of variables of many states too, and how the release chooses the fit's
    settings. Rules of the schema always hold; evidence on three or more variables may be refused as impossible although
    they allow it.

    A mixture fitted to pairs captures little of the dependence among three variables beyond their pairs, and no
    functional dependence among many, unless it is a rule. With few records, or at small epsilon, rare states are
    blurred; if noise hides all dependence, variables are independent, shrunk towards the uniform distribution.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> estimator = dp.PairwiseMixture(epsilon=1.0, delta=1e-6, state_names=schema, members=2).fit(records)
    >>> bool(0.4 < estimator.network_.query(["lung"], {"smoke": "yes"}).get_value(lung="yes") < 0.6)
    True
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "components": whole(1),
        "members": whole(1),
        "stages": whole(1, 2),
        "measure": choice("tables", "residuals", "auto"),
        "records": optional(number(above=0.0)),
        "mechanism": NOISE,
    }

    _steps: ClassVar[int] = 300  # number of steps of the optimiser

    _informable: ClassVar[bool] = True

    components: int = 100
    members: int = 12
    stages: int = 1
    target: str | None = None
    pooled: bool = False
    records: float | None = None
    measure: str = "auto"

    def fit(self, data: Any, y: None = None, public: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        data : NoisyMarginals, list of them, PrivateDataset or data frame
            A release with every variable, or several of the same records, which are joined (free), a data set (charged
            epsilon and delta), or records.
        y : None
            Ignored; for compatibility with scikit-learn.
        public : mapping of clique to table, optional
            See `PrivateBayesianNetwork.fit`.

        Warns
        -----
        UserWarning
            If a release lacks a table of some pair of variables.
        """
        return self._run(None, data, public)

    def plan(self, schema: Schema | PublicRecords | None = None, records: float | None = None) -> Plan:
        """Return what `fit` would measure, and its noise, as `PrivateMLE.plan` does.

        Parameters
        ----------
        schema, records
            See `PrivateMLE.plan`; by default the estimator's own.
        """
        return self._planned(None, schema, self.records if records is None else records)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.measure != "auto":
            warn(
                f'measure="{self.measure}" goes with version 2.0: leave it out, and what is nearer is measured; for '
                "tables alone, measure what plan_pairs plans, and fit the release.",
                DeprecationWarning,
            )
        if self.epsilon is not None and self.stages == 2 and self._noise != "gaussian":
            raise ValueError(
                "Two stages are priced for Gaussian noise: give a delta, such as 1e-9, or leave stages at 1."
            )

    def _check_release(self, release: Release, variables: Sequence[str]) -> None:
        if self.stages == 2 or self.target is not None or self.records is not None or self.measure != "auto":
            raise ValueError(
                "A release is measured already: leave out stages, target and records, and also measure, since they say "
                "what to measure."
            )
        super()._check_release(release, variables)

    def _plan(self, structure: None, public: Any) -> Any:
        """Plan tables of single variables first, and then what their total suggests: more of these, or pairs too."""
        declared, target = self.records, self.target
        takes_residuals = self._takes_residuals(public)
        first, second = _SHARES[self._noise]
        second = _SCOUTED if self.stages == 2 else second
        own = [variable for variable in public.schema.variables if variable not in public.schema.structure.refined]
        before: dict[Clique, float] = {(variable,): first / len(own) for variable in own}

        @cache
        def planned(schema: Schema, drowned: bool) -> Mapping[Clique, float]:
            """Return all shares, less those of the first stage."""
            if target is None:
                cliques, weights = plan_triples(schema, SINGLES[drowned], self._triples(schema, public))
            else:
                cliques, weights = plan_prediction(schema, _in_pairs(schema, target), SINGLES[drowned])
            whole = sum(weights)
            shares = {clique: weight / whole for clique, weight in zip(cliques, weights, strict=True)}
            left = {clique: share - before.get(clique, 0.0) for clique, share in shares.items()}
            return MappingProxyType({clique: share for clique, share in left.items() if share > 0.0})

        def grouped(units: float | None, release: NoisyMarginals | None) -> Schema:
            """Return the schema with groups of states, which are chosen by the first stage."""
            schema = public.schema if release is None else release.schema
            return with_groups(schema, numbers_of_groups(schema, self._noise_of(public.neighbours), units), release)

        @cache  # the stages share what they ask for
        def pairs(schema: Schema) -> Measure | MeasureResiduals:
            if not takes_residuals:
                return Measure.of(planned(schema, False), schema)
            triples = self._triples(public.schema, public)
            return MeasureResiduals(plan_residuals(public.schema, neighbours=public.neighbours, triples=triples))

        def judged(units: float | None, release: Any) -> tuple[Schema, bool | None]:
            """Return the schema with groups of states, and whether noise drowns its pairs."""
            units = units if declared is None else declared
            schema = grouped(units, release)
            return schema, self._drowned(schema, units, release, public.neighbours)

        def probed(units: float | None, release: Any) -> Measure | MeasureResiduals:
            schema, hidden = judged(units, release)
            return Measure.of(planned(schema, bool(hidden)), schema) if hidden is not False else pairs(schema)

        def rest(units: float | None, release: Any) -> Measure | MeasureResiduals:
            schema, hidden = judged(units, release)
            if release is not None and not release.independent:  # the stage before has decided for residuals
                return pairs(schema)
            if hidden is None and release is not None:
                hidden = not pairs_depend(release)
            if not hidden and takes_residuals:
                return pairs(schema)
            shares = planned(schema, bool(hidden))
            if self.stages == 2 and not hidden and release is not None:
                scouts = self._fitted(release, schema.select(schema.variables), min(_SCOUTS, self.members))
                aim = None if target is None else _in_pairs(schema, target)
                for with_target in (True, False):
                    wanted = {pair: d for pair, d in disagreement(scouts).items() if (aim in pair) == with_target}
                    shares = favouring(shares, wanted)
            return Measure.of(shares, schema)

        stages: list[tuple[float, Asked]] = [
            (first, lambda *_: Measure.of(before)),
            (second, probed),
            (1 - first - second, rest),
        ]
        return self._staged([stage for stage in stages if stage[0]], public, "measure all pairs")

    def _triples(self, schema: Schema, public: PublicRecords) -> dict[Clique, float]:
        """Return the triples that are measured too, and their shares."""
        plain = self.target is None and self.stages == 1 and public.single_records
        if self.records is None or not self.delta or not plain:
            return {}
        return clear_triples(schema, self.records, table_deviation(self._price(), self.delta, public.neighbours))

    def _drowned(
        self, schema: Schema, units: float | None, release: NoisyMarginals | None, neighbours: str
    ) -> bool | None:
        """Return whether noise drowns pairs of these units, judging by single variables; None if only pairs show it."""
        if units is None:
            return False
        same = {} if release is None else chances_of_the_same(release)
        for coarser, (finer, _) in schema.structure.derived.items():  # groups have about equal shares
            same.setdefault(coarser, max(same.get(finer, 0.0), 1.0 / schema.cardinality(coarser)))
        return drowned(pair_noise(schema, max(units, 1.0), self._noise_of(neighbours), same), pure=not self.delta)

    def _takes_residuals(self, public: PublicRecords) -> bool:
        """Whether to measure residuals of pairs that noise does not drown, by public values."""
        if self.measure == "tables":
            return False
        structure = public.schema.structure
        reasons = {
            "Laplace noise": self._noise != "gaussian" or not self.delta,
            "stages=2": self.stages == 2,
            "a target": self.target is not None,
            "units or weights": not public.single_records,
            "dependencies and hierarchies": bool(structure.dependent or structure.refined),
        }
        needed = [reason for reason, applies in reasons.items() if applies]
        if self.measure == "residuals" and needed:
            raise ValueError(f"Residuals are not measured with {needed[0]}: leave measure out.")
        return self.measure == "residuals" or (not needed and residuals_pay(public.schema))

    def _read(self, structure: None, release: Any) -> None:
        release = require_mixture_release(release)
        schema = release.schema.select(fitted_variables(release, self.pooled))
        warn_of_unmeasured(release, schema)
        fit = self._fitted(release, schema, self.members)
        self.penalty_ = fit.penalty
        self.network_ = PrivateMixtureNetwork.fitted(schema, fit, release)

    def _fitted(self, release: MixtureRelease, schema: Schema, members: int) -> MixtureFit:
        return fit_of_release(release, schema, components=self.components, members=members, steps=self._steps)


def _in_pairs(schema: Schema, variable: str) -> str:
    """Return the variable that represents another in pairs: its coarser variable, or else itself."""
    return schema.structure.refined.get(variable, (variable,))[0]


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
    guarantee_, release_
        See :class:`~pgmpy_dp.AutoMLE`.

    Notes
    -----
    The release contains the tables of :func:`~pgmpy_dp.plan_households`. A household has a total weight of 1 in each
    table, whatever its number of persons. The alternative, counting persons, requires noise that is larger by a factor
    of `max_persons`, and is more accurate only if nearly all households have that many. The weights hide that large
    households have more persons; the size, a variable that is paired with every other, restores this.

    One mixture is fitted to the pairs of households, sizes and persons, as by :class:`~pgmpy_dp.PairwiseMixture`, so
    that both levels agree. Persons are drawn independently given the household, and then exchanged between households
    until pairs of two persons match the release (see `PrivateHouseholdNetwork.simulate` for what is preserved).

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> homes = pd.DataFrame({"id": range(400), "tenure": ["owned", "rented"] * 200})
    >>> people = pd.DataFrame({"id": [*range(400), *range(0, 400, 2)], "age": ["adult"] * 400 + ["child"] * 200})
    >>> tenure, age = dp.Schema({"tenure": ["owned", "rented"]}), dp.Schema({"age": ["child", "adult"]})
    >>> schema = dp.HouseholdSchema(tenure, age, key="id", max_persons=2)
    >>> data = dp.PrivateHouseholds(homes, people, schema, dp.PrivacyBudget(4.0, 1e-6))
    >>> estimator = dp.HouseholdMixture(epsilon=4.0, delta=1e-6, members=2).fit(data)
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

    _steps: ClassVar[int] = 300  # number of steps of the optimiser
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
        """
        own = data.household_schema if isinstance(data, PrivateHouseholds) else self.schema
        return self._run(own, data if persons is None else (data, persons))

    def plan(self, schema: HouseholdSchema | None = None, records: float | None = None) -> Plan:
        """Return what `fit` would measure, and its noise, as `PrivateMLE.plan` does.

        Parameters
        ----------
        schema : HouseholdSchema, optional
            By default the estimator's own.
        records : float, optional
            A public guess of the number of households.
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
            tables = require_tables(
                counted, "HouseholdMixture is fitted to noisy tables: measure those that plan_households lists."
            )
            for variable, states in structure.measured.states.items():
                if tables.schema.states.get(variable, states) != states:
                    raise SchemaError(f"Variable {variable!r} has other states in the release than in the schema.")
            unmeasured = set(structure.joined.variables).difference(*tables.tables)
            if unmeasured:
                raise SchemaError(
                    f"The release has no table with {', '.join(map(repr, sorted(unmeasured)))}: measure those that "
                    "plan_households lists."
                )
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
        self.network_ = PrivateHouseholdNetwork(structure, fit.mixture, release.total, release.guarantee, pairs)
