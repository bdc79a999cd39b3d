"""Estimators are data classes of parameters, fitted by one `run`: source, plan, measure and read.

An estimator defines two functions: `_plan(structure, public)` is the mechanism that it requests, and
`_read(structure, release)` sets the fitted attributes. Fitting a release costs nothing; fitting a private data set
charges its ledger; for records with declared states, a private data set is created for this fit alone.
"""

from __future__ import annotations

import inspect
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any, ClassVar, Self

import networkx as nx
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from pgmpy_dp._names import closest
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.contrasts import Residuals
from pgmpy_dp.data.mechanisms.mechanism import Mechanism, PublicRecords, Quote, quoted
from pgmpy_dp.data.mechanisms.steps import Asked, StagedTables
from pgmpy_dp.data.mechanisms.tables import CountedTables, deviations, noise_of
from pgmpy_dp.data.wall import Wall
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.fitting.plans.outlook import Outlook, warn_of_noise
from pgmpy_dp.models.model import Model
from pgmpy_dp.observed.contradictions import warn_of_contradictions
from pgmpy_dp.observed.informed_marginals import InformedMarginals, read_public_tables
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.blocks import table_deviation
from pgmpy_dp.privacy.checks import Constraint, choice, is_scalar, number, shown
from pgmpy_dp.privacy.guarantee import Guarantee, learned_graph
from pgmpy_dp.privacy.noise import table_sensitivity
from pgmpy_dp.release import NoisyMarginals, NoisyResiduals, Release
from pgmpy_dp.release.kinds import found_states, joint_guarantee, refuse_repeated, several, warn_of_other_records
from pgmpy_dp.schema import Clique, Schema

_SINGLE = {"None", "bool", "float", "int", "str"}
NOISE = choice("auto", "laplace", "gaussian")


@dataclass(frozen=True)
class Plan:
    """The mechanism of an estimator and its noise, known before any record is read."""

    mechanism: Mechanism[Any, Any, Any]
    quote: Quote[Any]  # the charge and the guarantee; its `terms` are the public parameters of the noise
    public: PublicRecords
    records: float | None = None  # a public guess of the number of records, or of units

    def __repr__(self) -> str:
        return f"Plan({self.quote.cost.label}: {self.guarantee})"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the release."""
        return self.quote.guarantee

    @property
    def schema(self) -> Schema:
        """The schema of the tables: that of the records, with groups of states if these are planned."""
        return self._foreseen()[0]

    @property
    def noise(self) -> dict[Clique, float]:
        """Standard deviation of the noise in a cell of each table, in records; of later stages, as foreseen."""
        return self._foreseen()[1]

    def _foreseen(self) -> tuple[Schema, dict[Clique, float]]:
        schema = self.public.schema
        if isinstance(self.mechanism, StagedTables):
            return self.mechanism.foreseen(self.quote, self.public, self.records)
        if isinstance(self.mechanism, Residuals):
            return schema, self.quote.terms.deviations(schema)
        return schema, deviations(self.quote) if isinstance(self.mechanism, CountedTables) else {}

    @property
    def outlook(self) -> Outlook:
        """Predicted accuracy for the guessed number of records."""
        if self.records is None:
            raise ValueError("The number of records may be private: give plan a guess of it, such as records=8000.")
        schema, noise = self._foreseen()
        if not noise:
            raise ValueError("This plan has no noisy tables, and so no outlook.")
        return Outlook.of(schema, noise, self.records, self.guarantee)


class Estimator:
    """A data class of parameters, which `_run` fits; its representation shows no parameter that may contain records."""

    _repr_html_ = None
    _constraints: ClassVar[Mapping[str, Constraint]] = {}
    _informable: ClassVar[bool] = False  # whether it can use public tables
    _is_copy: ClassVar[bool] = False  # True for copies made by scikit-learn
    delta: float = 0.0  # for estimators without these parameters
    state_names: Any = None
    release_: Any
    guarantee_: Guarantee

    def __post_init__(self) -> None:
        given = dict(vars(self))
        super().__init__()
        vars(self).update(given)  # pgmpy's own __init__ resets the states

    def __sklearn_clone__(self) -> Any:
        """Make an unfitted copy, marked as a copy, which shares the ledger if there is one."""
        names = inspect.signature(type(self)).parameters
        shared = {name: getattr(self, name) for name in names if name == "budget"}
        cloned = {name: clone(getattr(self, name), safe=False) for name in names if name not in shared}
        copy = type(self)(**cloned, **shared)
        vars(copy)["_is_copy"] = True
        return copy

    def __repr__(self) -> str:
        given = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = getattr(self, name, parameter.default)
            if not is_scalar(value) or value != parameter.default:
                given.append(f"{name}={shown(value)}")
        return f"{type(self).__name__}({', '.join(given)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self)}

    if not TYPE_CHECKING:  # else type checkers would accept every name as an attribute

        def __getattr__(self, name):
            kind = type(self).__name__
            if name.endswith("_") and not name.startswith("_") and "guarantee_" not in vars(self):
                raise NotFittedError(f"This {kind} is not fitted yet, and fit sets {name}: call fit first.")
            if name == "estimate":
                raise AttributeError(f"{kind} has fit, which sets parameters_, in place of pgmpy's older estimate.")
            of_model = not name.startswith("_") and hasattr(Model, name)
            way = ": ask the fitted network, which mixtures and searches keep as network_." if of_model else ""
            raise AttributeError(f"{kind!r} object has no attribute {name!r}{way}")

    def _run(self, model: Any, data: Any, public: Any = None) -> Self:
        """Fit: all that can be refused is refused before `_measure`, which charges."""
        self._check_parameters()
        if public is not None:
            require_informable(self)
        structure, before = self._structure(model), learned_graph(model)
        source = self._source(structure, data, public)
        self._found = found_states(source if isinstance(source, tuple) else (source,))
        measured = isinstance(source, Wall)
        release = self._measure(structure, source.after(before), public) if measured else source
        releases = [part for part in several(release) if isinstance(part, Release)]
        warn_of_noise(releases)
        warn_of_other_records(releases)
        warn_of_contradictions(releases)
        self._read(structure, release)
        if releases:
            self.release_, self.guarantee_ = release, joint_guarantee(releases)
        self.guarantee_ = self.guarantee_.after(before)
        return self

    def _check_parameters(self) -> None:
        """Refuse parameters that violate a constraint, and models or records, which pgmpy once took as parameters."""
        name = type(self).__name__
        for parameter in inspect.signature(type(self)).parameters.values():
            value, annotated = getattr(self, parameter.name), set(re.findall(r"\w+", str(parameter.annotation)))
            foreign = hasattr(value, "columns") or isinstance(value, (nx.Graph, Wall))
            if foreign or (annotated <= _SINGLE and not is_scalar(value)):
                raise TypeError(
                    f"{parameter.name} of {name} cannot be a {type(value).__name__}. Estimators are made with "
                    f"parameters alone; fit takes models and records: {name}(epsilon=1.0).fit(...)."
                )
        for parameter_name, constraint in self._constraints.items():
            constraint(parameter_name, getattr(self, parameter_name))

    def _structure(self, model: Any) -> Any:
        """Check the model, and return the structure that the other steps need."""
        return model

    def _variables(self, structure: Any, data: Any = None) -> Sequence[str]:
        """List the variables of the model or, without a network, of the data."""
        return variables_of(data, self.state_names)

    def _states(self, structure: Any) -> Mapping[str, Any] | Schema | None:
        """Return the declared states of the variables that records have."""
        return self.state_names

    def _check_rules(self, structure: Any, schema: Schema) -> None:
        """Refuse a schema with rules that the fitted model would violate."""

    def _source(self, structure: Any, data: Any, public: Any) -> Any:
        """Return the release given to `fit`, joined with public tables, or else the source to measure."""
        raise NotImplementedError

    def _plan(self, structure: Any, public: Any) -> Any:
        """Choose the mechanism, from a source or a `PublicRecords`; all checks are made here, before the charge."""
        raise NotImplementedError

    def _measure(self, structure: Any, source: Any, public: Any) -> Any:
        """Charge the source, and return its release, joined with public tables."""
        return self._paid(source.release(self._plan(structure, source)), public)

    def _paid(self, release: Any, public: Any) -> Any:
        """Keep a release that was paid for, even if `_read` fails."""
        self.release_ = informed(release, public)
        self.guarantee_ = self.release_.guarantee
        return self.release_

    def _read(self, structure: Any, release: Any) -> None:
        """Compute the fitted attributes from the release, and set them."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class PrivateEstimator(Estimator):
    """Base class of estimators whose fit costs privacy."""

    epsilon: float | None = None
    _: KW_ONLY
    neighbours: str | None = None

    def _source(self, structure: Any, data: Any, public: Any) -> Any:
        data = together(data)
        variables = self._variables(structure, data)
        if isinstance(data, Release):
            self._check_release(data, variables)
            source: Any = informed(data, public)
        else:
            source = self._dataset(data, variables, self._states(structure))
            if public is not None:
                read_public_tables(public, source.schema)
        self._check_rules(structure, source.schema)
        return source

    def _check_release(self, release: Release, variables: Sequence[str]) -> None:
        """Refuse a release that this estimator cannot be fitted to."""
        if not release.cliques:
            drawn = "draws of a network, and " if release.drawn else ""
            advice = ": read its mean()" if release.drawn else ""
            raise TypeError(f"{type(release).__name__} hold {drawn}no tables to fit{advice}.")
        if self.epsilon is not None:
            raise ValueError(
                "A release is already paid for: leave epsilon out of the estimator, or hand it the data set."
            )
        if release.guarantee.mechanism == "none":
            raise ValueError("These are exact counts, not a release: fit the records with NotPrivateMLE.")
        self._require_agreement(release, "release", release.guarantee.neighbours, variables, self.state_names)

    def _dataset(self, data: Any, variables: Sequence[str], state_names: Any) -> PrivateDataset:
        """Return the data set given to `fit`, or create one from records for this fit alone."""
        if self.epsilon is None and isinstance(data, (str, os.PathLike)) and os.fspath(data).lower().endswith(".zip"):
            raise ValueError("This is the path of a file: read the release by NoisyMarginals.load, and fit that.")
        self._price()
        if isinstance(data, PrivateDataset):
            self._require_agreement(data, "data set's schema", data.neighbours, variables, state_names)
            return data
        schema = declared(state_names, variables)
        return PrivateDataset(data, schema, self._budget(), neighbours=self.neighbours or "add_remove")

    def _budget(self) -> PrivacyBudget:
        """Create the ledger of a fit to raw records."""
        return PrivacyBudget(self._price(), self.delta)

    def _price(self) -> float:
        """Return epsilon, which a fit to records needs."""
        if self.epsilon is None:
            raise ValueError(
                f"Fitting records costs privacy: give the estimator an epsilon and states, {type(self).__name__} with "
                "epsilon=1.0 and state_names=schema, and give fit this estimator."
            )
        return self.epsilon

    def _planned(self, model: Any, schema: Schema | PublicRecords | None, records: float | None) -> Plan:
        """Return the plan of a fit; without a schema, for the declared states."""
        self._check_parameters()
        structure = self._structure(model)
        public = self._public_table(structure, schema)
        mechanism = self._plan(structure, public)
        if records is not None:
            number(above=0.0)("records", records)
        return Plan(mechanism, quoted(mechanism, public, learned_graph(model)), public, records)

    def _public_table(self, structure: Any, schema: Schema | PublicRecords | None) -> PublicRecords:
        """Return the public facts about the records of a plan; refuse arguments that `fit` would refuse."""
        self._price()
        public = declared(self._states(structure), self._variables(structure, None)) if schema is None else schema
        if isinstance(public, Schema):
            public = PublicRecords.of(public, self.delta, self.neighbours or "add_remove")
        if not isinstance(public, PublicRecords):
            raise TypeError(f"plan takes a Schema, got {type(public).__name__}: no record is needed.")
        variables = self._variables(structure, public)
        self._require_agreement(public, "schema", public.neighbours, variables, self._states(structure))
        self._check_rules(structure, public.schema)
        return public

    def _require_agreement(
        self, data: Any, where: str, neighbours: str, variables: Sequence[str], state_names: Any
    ) -> None:
        """Refuse data that lack variables, and options that contradict the data."""
        require_variables(data.schema, variables, where)
        require_same("neighbours", self.neighbours, neighbours)
        if state_names is None:
            return
        stated = declared(state_names, variables)
        for variable in variables:
            if stated.states[variable] != data.schema.states[variable]:
                raise SchemaError(
                    f"Variable {variable!r}: state_names differ from the states in the data's own schema: leave "
                    "state_names out."
                )


@dataclass(eq=False, repr=False)
class TableEstimator(PrivateEstimator):
    """Base class of estimators that measure noisy tables or are fitted to a release of them."""

    delta: float = 0.0
    state_names: Mapping[str, Any] | Schema | None = None
    _: KW_ONLY
    mechanism: str = "auto"

    @property
    def _noise(self) -> str:
        """The kind of noise, "laplace" or "gaussian"."""
        return noise_of(self.mechanism, self.delta)

    def _noisy_tables(self, cliques: Sequence[Clique], weights: Sequence[float]) -> CountedTables:
        """Return the measurement of tables with shares of the privacy loss."""
        return CountedTables(cliques, self._price(), self.delta, self.mechanism, weights)

    def _staged(self, stages: Sequence[tuple[float, Asked]], public: Any, label: str) -> StagedTables:
        """Return a measurement in stages, by their shares; refuse noise that tables at once would refuse."""
        if (self._noise == "gaussian") != bool(self.delta):
            self._noisy_tables([public.schema.variables[:1]], [1.0]).quote(public)  # refuses it
        return StagedTables(stages, self._price(), self.delta, label)

    def _noise_of(self, neighbours: str) -> Callable[[float], float]:
        """Return the standard deviation of the noise in a table as a function of its share of the privacy loss."""
        if self.delta:
            whole, power = table_deviation(self._price(), self.delta, neighbours), -0.5
        else:
            whole, power = math.sqrt(2.0) * float(table_sensitivity(neighbours, "l1")) / self._price(), -1.0
        return lambda share: whole * share**power


def refuse_weights(estimator: object, sample_weight: Any) -> None:
    """Refuse weighted records, whose sensitivity differs from that of counts."""
    if sample_weight is not None:
        raise ValueError(
            f"{type(estimator).__name__} does not support sample_weight: the noise is scaled to unweighted records."
        )


def chosen_estimator(estimator: Any, default: type[Estimator], options: Mapping[str, Any]) -> Any:
    """Return an estimator; refuse a name or a class in its place, and options that belong to it."""
    for name, value in options.items():
        raise TypeError(
            f"fit takes no {name}: give it to an estimator, as in fit(records, estimator=dp.AutoMLE({name}="
            f"{shown(value)}, ...))."
        )
    if estimator is None or (isinstance(estimator, str) and estimator == "auto"):
        return default()
    if isinstance(estimator, str):
        raise ValueError(
            f"estimator is {shown(estimator)}; choose one of None, 'auto', or give an estimator, such as "
            "CollectiveEM()."
        )
    if isinstance(estimator, type) and issubclass(estimator, Estimator):
        name, given = estimator.__name__, "epsilon=1.0, state_names=schema" if hasattr(estimator, "epsilon") else ""
        raise TypeError(f"estimator is the class {name}: give an instance, {name}({given}).")
    if isinstance(estimator, type) or not hasattr(estimator, "fit"):
        name = estimator.__name__ if isinstance(estimator, type) else type(estimator).__name__
        raise TypeError(
            f"estimator is {name}, and must be an instance with fit: AutoMLE(), with an epsilon for records, or "
            "NotPrivateMLE(), which reads them without privacy, as pgmpy's own estimators do."
        )
    return estimator


def require_informable(estimator: Any) -> Any:
    """Refuse an estimator that cannot use public tables, before any charge."""
    if not getattr(estimator, "_informable", False):
        raise ValueError(
            f"{type(estimator).__name__} cannot use public tables: leave public out, or fit CollectiveEM, AutoMLE, "
            "PrivateMLE or PosteriorMean."
        )
    return estimator


def informed(release: Release, public: Any) -> Release:
    """Join public tables to a release, if there are any."""
    if public is None:
        return release
    if isinstance(release, InformedMarginals):
        return InformedMarginals(release.noisy, {**release.public, **public})
    return InformedMarginals(release, public)  # type: ignore[arg-type]  # which it refuses if it is of another kind


def variables_of(data: Any, state_names: Mapping[str, Any] | Schema | None) -> tuple[str, ...]:
    """List the variables of a release, of a data set or the public facts about one, or those declared for records."""
    if isinstance(data, Release):
        return data.variables
    states = data.schema if isinstance(data, (PrivateDataset, PublicRecords)) else state_names
    return tuple(states.variables if isinstance(states, Schema) else states or ())


def refuse_rules(estimator: object, schema: Schema, variables: Sequence[str]) -> None:
    """Refuse a schema with rules, for estimators whose fitted models would silently violate them."""
    modelled = schema.select([variable for variable in variables if variable in schema.states])
    if modelled.rules:
        raise SchemaError(
            f"{type(estimator).__name__} cannot hold the schema's rules, such as that about "
            f"{', '.join(map(repr, modelled.rules[0].variables))}: "
            "fit PairwiseMixture, which does, or declare a schema without them."
        )


def joined(data: Any) -> Any:
    """Join releases of tables of the same records with the same kind of noise; return other data unchanged."""
    if not isinstance(data, (list, tuple)) or not any(isinstance(part, Release) for part in data):
        return data
    for part in data:
        if not isinstance(part, Release):
            raise TypeError(f"A list may hold releases only, got {type(part).__name__}.")
    refuse_repeated(data)
    results: dict[Any, Any] = {}
    for position, part in enumerate(data):
        tables = isinstance(part, (NoisyMarginals, InformedMarginals)) and part.independent
        kind = part.guarantee.mechanism if tables and part.guarantee.sampling_rate == 1 else position
        results[kind] = results[kind] + part if kind in results else part
    return next(iter(results.values())) if len(results) == 1 else list(results.values())


def together(data: Any) -> Any:
    """Join several releases of the same records into one, and return other data unchanged."""
    releases = joined(data)
    if isinstance(releases, list) and isinstance(releases[0], Release):
        residuals = (NoisyMarginals, NoisyResiduals, InformedMarginals)
        if all(isinstance(part, residuals) and part.guarantee.mechanism == "gaussian" for part in releases):
            return reduce(add, releases)
        raise ValueError(
            "Only noisy tables and residuals with noise of one kind, on all records, can be joined: "
            "fit these releases with CollectiveEM or PosteriorMean, which take each with its own noise."
        )
    return releases


def require_same(name: str, requested: Any, actual: Any, holder: str = "data has") -> None:
    """Refuse an option that contradicts the data, unless it is None."""
    if requested not in (None, actual):
        raise ValueError(f"The estimator asks for {name}={requested!r}, but the {holder} {actual!r}: leave it out.")


def declared(state_names: Mapping[str, Any] | Schema | None, variables: Sequence[str]) -> Schema:
    """Return the schema of the model's variables, from a dict of states or a schema, in its order."""
    if state_names is None:
        raise SchemaError(
            "States must be declared, not read off private records: give state_names={variable: states} or a Schema, "
            "such as Schema.from_model(network) of a network that has them."
        )
    schema = state_names if isinstance(state_names, Schema) else Schema(state_names)
    require_variables(schema, variables, "state_names")
    return schema.select([variable for variable in schema.variables if variable in variables])


def require_variables(schema: Schema, variables: Sequence[str], where: str) -> None:
    """Refuse variables of a model that are not declared."""
    missing = [variable for variable in variables if variable not in schema.states]
    if missing:
        names = ", ".join(repr(variable) for variable in missing)
        close = closest(missing[0], schema.states)
        meant = f" (did you mean {close!r}?)" if close else ""
        raise SchemaError(
            f"The model has variables that are not in the {where}: {names}{meant}. Declare their states, or leave "
            "them out of the model."
        )
