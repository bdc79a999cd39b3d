"""Pairs once, an ensemble of mixtures behind them: a model of records for owners without a network."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from sklearn.base import BaseEstimator

from pgmpy_dp.data.mechanisms.tables import NoisyTables
from pgmpy_dp.data.mechanisms.two_stages import TwoStageTables
from pgmpy_dp.errors import Message
from pgmpy_dp.estimators.base import NOISE, Plan, TableEstimator
from pgmpy_dp.fitting.plans.pairs import PLAN_PAIRS, plan_pairs, plan_prediction
from pgmpy_dp.fitting.readings.mixture_fits import Tables, fit_of_release, warn_of_unmeasured
from pgmpy_dp.inference.mixtures.fit.ensemble import MixtureFit, disagreement
from pgmpy_dp.models.mixtures.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.privacy.checks import Constraint, whole
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.release.informed_marginals import require_tables
from pgmpy_dp.schema import Schema

# Members that say by their disagreement where a second stage should measure.
_SCOUTS = 6


@dataclass(eq=False, repr=False)
class PairwiseMixture(TableEstimator, BaseEstimator):  # type: ignore[misc]
    """A mixture fitted to noisy tables of all pairs of variables; no network is needed.

    Parameters
    ----------
    components : int
        Of each member; a quarter of them where that predicts the thinned release better.
    members : int
        Fits from different starts, whose mean is the model. The spread between starts averages out.
    stages : {1, 2}
        With 2, a third of the privacy loss goes to a first release of all pairs, and the rest to a second, in which
        pairs have less noise on which the members disagree. For Gaussian noise.
    target : str, optional
        A variable that is to be predicted from the others: pairs with it are measured with less noise, and tables of it
        with two others as well, where these have few states.
    mechanism : {"auto", "laplace", "gaussian"}
        Kind of noise. "auto" is Gaussian exactly where delta > 0; Laplace noise, for pure epsilon, is far more over so
        many tables. Gaussian noise is charged as one block where units have one row, else by zCDP.

    Attributes
    ----------
    network_ : PrivateMixtureNetwork
    release_ : NoisyMarginals
    guarantee_ : Guarantee
    penalty_ : float
        The price of dependence within a component that thinning the release chose.

    Notes
    -----
    The release is one table a variable and one a pair, and with a target some of three. It is thinned into two releases
    with independent noise, one of which is fitted and the other predicted, to choose how strongly components are drawn
    to independence, how far neighbouring states of ordered variables share their parameters, and how many components
    and steps a member has: this is post-processing and costs nothing. Ordered are binned variables, and those whose
    states are ascending numbers. States of others share parameters too, if noise leaves room for it and there are
    twelve members or more: as far as the first third of them make them alike. Members are fitted side by side where
    there are cores; the result is the same.

    Rules of the schema hold without exception. Variables that follow from another are carried along with it, and
    their tables are tables of its states in groups; forbidden combinations are kept out of every component. Evidence on
    three variables or more that the rules allow may still be refused as impossible.

    A mixture of pairs says little of what three variables do together beyond their pairs, and nothing of functional
    dependencies among many, unless they are rules. With few records, or at small epsilon, rare states are blurred.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> estimator = dp.PairwiseMixture(epsilon=1.0, delta=1e-6, state_names=schema, members=2).fit(records)
    >>> print(estimator.guarantee_)  # doctest: +NORMALIZE_WHITESPACE
    differentially private with epsilon = 1.0 and delta = 1e-06, for one record added or removed
    (discrete Gaussian noise)
    >>> bool(0.4 < estimator.network_.query(["lung"], {"smoke": "yes"}).get_value(lung="yes") < 0.6)
    True
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "components": whole(1),
        "members": whole(1),
        "stages": whole(1, 2),
        "mechanism": NOISE,
    }

    _steps: ClassVar[int] = 400  # of the optimiser

    _informable: ClassVar[bool] = True

    components: int = 100
    members: int = 12
    stages: int = 1
    target: str | None = None

    def fit(self, data: Any, y: None = None, public: Any = None) -> Self:
        """Fit the mixture.

        Parameters
        ----------
        data : NoisyMarginals, list of them, PrivateDataset or data frame
            A release that holds every variable, or several of the same records, which are joined (free), a data set
            (charged epsilon and delta), or records.
        y : None
            Ignored; scikit-learn hands it over.
        public : mapping of clique to table, optional
            Tables that are published elsewhere, exact or as `PublicTable`, at no privacy cost; see `InformedMarginals`.

        Returns
        -------
        PairwiseMixture

        Raises
        ------
        SchemaError
            If states are not declared, or the records do not agree with them.
        BudgetExceededError
            If the data set's ledger has less than epsilon left; nothing is charged.
        ValueError
            If an argument is out of range.

        Warns
        -----
        UserWarning
            If a release holds no table of some pair of variables.
        """
        return self._fit(None, data, public)

    def plan(self, public: Any) -> Plan:
        """Say what `fit` would measure, and how noisy it would be; no record is needed, and nothing is charged.

        Parameters
        ----------
        public : Schema
            Of the records.

        Returns
        -------
        Plan
        """
        return self._planned(None, public)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.epsilon is not None and self.stages == 2 and self._noise != "gaussian":
            raise ValueError(
                Message(
                    "Two stages are priced for Gaussian noise",
                    "give a delta, such as 1e-9, or leave stages at 1",
                    "give a --delta, such as 1e-9, or leave --stages out",
                )
            )

    def _paid(self, release: Release, variables: Sequence[str]) -> Release:
        if self.stages == 2 or self.target is not None:
            raise ValueError("A release is measured already: leave out stages and target, which say what to measure.")
        return super()._paid(release, variables)

    def _plan(self, structure: None, public: Any) -> Any:
        """Plan all pairs, and triples with a target, in one stage or two."""
        schema = public.schema
        cliques, weights = plan_pairs(schema) if self.target is None else plan_prediction(schema, self.target)
        assert self.epsilon is not None
        if self.stages == 1:
            # A block, as "auto" takes it, where there is a delta: without one "gaussian" is refused by name.
            mechanism = "auto" if self.mechanism == "gaussian" and self.delta else self.mechanism
            return NoisyTables(cliques, self.epsilon, self.delta, mechanism, weights)

        def wanted(first: NoisyMarginals) -> Mapping[Any, float]:
            return disagreement(self._fitted(first, schema.select(schema.variables), min(_SCOUTS, self.members)))

        groups = [self.target in clique if len(clique) == 2 else None for clique in cliques]
        return TwoStageTables(cliques, self.epsilon, self.delta, weights, groups, wanted)

    def _read(self, structure: None, release: Any) -> PrivateMixtureNetwork:
        release = require_tables(release, Message("A mixture is fitted to noisy tables", *PLAN_PAIRS))
        schema = release.schema.select(release.variables)
        warn_of_unmeasured(release, schema)
        fit = self._fitted(release, schema, self.members)
        self.penalty_ = fit.penalty
        return PrivateMixtureNetwork.fitted(schema, fit, release)

    def _finish(self, structure: None, release: Any, found: PrivateMixtureNetwork) -> None:
        super()._finish(structure, release, found)
        self.network_ = found

    def _fitted(self, release: Tables, schema: Schema, members: int) -> MixtureFit:
        return fit_of_release(release, schema, components=self.components, members=members, steps=self._steps)
