"""Base classes of estimators, whose `fit` takes the steps source, plan, measure, observe, read and finish.

An estimator is a data class of its parameters. It defines the mechanism that it requests (`_plan`) and how it is fitted
to the release (`_read`). Fitting a release costs nothing; fitting a private data set charges its ledger; for records
with declared states, a private data set is created for this fit alone.
"""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import networkx as nx
from sklearn.base import clone

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.mechanism import Mechanism, PublicTable, Quote, quoted
from pgmpy_dp.data.mechanisms.residuals import Residuals
from pgmpy_dp.data.mechanisms.steps import StagedTables
from pgmpy_dp.data.mechanisms.tables import NoisyTables, deviations, noise_of
from pgmpy_dp.data.wall import Wall
from pgmpy_dp.estimators.sources import (
    declared,
    informed,
    require_agreement,
    require_variables,
    together,
    variables_of,
)
from pgmpy_dp.fitting.plans.outlook import Outlook
from pgmpy_dp.observed.broken_rules import warn_of_broken_rules
from pgmpy_dp.observed.contradictions import warn_of_contradictions
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.checks import Constraint, choice, number, shown, single
from pgmpy_dp.privacy.guarantee import Guarantee, learned_graph
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import found_states, joint_guarantee, several, warn_of_other_records
from pgmpy_dp.release.public_tables import read_public_tables
from pgmpy_dp.schema import Clique, Schema

_SINGLE = {"None", "bool", "float", "int", "str"}
_NEXT_SECTION = r"\n\n(?=\w+\n-{4,}\n)"


@dataclass(frozen=True)
class Plan:
    """The mechanism of an estimator and its noise, known before any record is read.

    Attributes
    ----------
    mechanism : Mechanism
        The mechanism for `PrivateDataset.release`; for tables, with `cliques` and `weights`.
    quote : Quote
        The charge and the guarantee; its `terms` are the public parameters of the noise.
    public : PublicTable
        What is public of the records.
    records : float, optional
        A public guess of the number of records, or of units.
    """

    mechanism: Mechanism[Any, Any]
    quote: Quote
    public: PublicTable
    records: float | None = None

    def __repr__(self) -> str:
        return f"Plan({self.quote.cost.label}: {self.guarantee})"

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the release."""
        return self.quote.guarantee

    @property
    def schema(self) -> Schema:
        """The schema of the records."""
        return self.public.schema

    @property
    def noise(self) -> dict[Clique, float]:
        """Standard deviation of the noise in a cell of each table, in records; empty if no tables are planned.

        Where earlier stages decide on later ones, it is what is foreseen for the guessed number of records.
        """
        if isinstance(self.mechanism, Residuals):
            return self.quote.terms.deviations(self.schema)  # type: ignore[no-any-return]
        if isinstance(self.mechanism, StagedTables):
            return self.mechanism.deviations(self.quote, self.public, self.records)
        return deviations(self.quote) if isinstance(self.mechanism, NoisyTables) else {}

    @property
    def outlook(self) -> Outlook:
        """Predicted accuracy for the guessed number of records.

        Raises
        ------
        ValueError
            If no number was guessed, or no tables are planned.
        """
        if self.records is None:
            raise ValueError("The number of records may be private: guess it, as in plan(..., records=8000).")
        noise = self.noise
        if not noise:
            raise ValueError("This plan has no noisy tables, and so no outlook.")
        return Outlook.of(self.schema, noise, self.records, self.guarantee)


def _described(doc: str, bases: Sequence[str]) -> str:
    """Add the parameters and attributes of base classes to a docstring, except those that it describes itself."""
    summary, *others = re.split(_NEXT_SECTION, doc)
    sections = []
    for title in ("Parameters", "Attributes"):
        own, inherited = _entries(doc, title), dict[str, str]()
        for base in reversed(bases):
            inherited |= {name: entry for name, entry in _entries(base, title).items() if name not in own}
        entries = inherited | own if title == "Parameters" else own | inherited
        if entries:  # several names may have one entry
            sections.append("\n".join([title, "-" * len(title), *dict.fromkeys(entries.values())]))
    return "\n\n".join([summary, *sections, *(part for part in others if not part.startswith(("Param", "Attr")))])


def _entries(doc: str, title: str) -> dict[str, str]:
    """Parse a section of a docstring: the entry of each name."""
    found = next((part for part in re.split(_NEXT_SECTION, doc) if part.startswith(f"{title}\n")), "")
    entries = re.split(r"\n(?=\S)", found)[2:]
    return {name: entry for entry in entries for name in entry.partition(" :")[0].partition("\n")[0].split(", ")}


class Estimator:
    """A data class of parameters, with constraints on some of them, and the steps of `fit`.

    Its representation shows numbers and names, but only the type of other parameters, which may contain records. A
    class's docstring describes its own parameters and attributes; those of its base classes are added.

    Attributes
    ----------
    guarantee_ : Guarantee
        The guarantee for the records behind the fit.
    """

    _repr_html_ = None
    _constraints: ClassVar[Mapping[str, Constraint]] = {}
    _informable: ClassVar[bool] = False  # whether it can use public tables
    _is_copy: ClassVar[bool] = False  # True for copies made by scikit-learn
    delta: float = 0.0  # for estimators without these parameters
    state_names: Any = None
    release_: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__doc__:
            bases = [inspect.cleandoc(base.__doc__ or "") for base in cls.__mro__[1:] if issubclass(base, Estimator)]
            cls.__doc__ = _described(inspect.cleandoc(cls.__doc__), bases)

    def __post_init__(self) -> None:
        given = dict(vars(self))
        super().__init__()
        vars(self).update(given)  # pgmpy's own __init__ resets the states

    def __sklearn_clone__(self) -> Any:
        """Make an unfitted copy, marked as a copy, which shares the ledger if there is one."""
        names = inspect.signature(type(self)).parameters
        kept = {name: getattr(self, name) for name in names if name == "budget"}
        copied = {name: clone(getattr(self, name), safe=False) for name in names if name not in kept}
        found = type(self)(**copied, **kept)
        vars(found)["_is_copy"] = True
        return found

    def __repr__(self) -> str:
        given = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = getattr(self, name, parameter.default)
            if not single(value) or value != parameter.default:
                given.append(f"{name}={shown(value)}")
        return f"{type(self).__name__}({', '.join(given)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self)}

    def _fit(self, model: Any, data: Any, public: Any = None) -> Self:
        """Take all steps; nothing is charged before `_measure`."""
        self._check_parameters()
        if public is not None:
            require_informable(self)
        structure, before = self._structure(model), learned_graph(model)
        found = self._source(structure, data, public)
        self._found = found_states(found if isinstance(found, tuple) else (found,))
        if isinstance(found, Wall):
            found = self._measure(structure, found.after(before), public)
        self._observe(structure, found)
        self._finish(structure, found, self._read(structure, found))
        if "guarantee_" in vars(self):
            self.guarantee_: Guarantee = vars(self)["guarantee_"].after(before)
        return self

    def _check_parameters(self) -> None:
        """Check the parameters, before the model and the records.

        Raises
        ------
        TypeError
            If a parameter is a model or records, as in pgmpy's old style of constructing estimators. The message shows
            only their type.
        ValueError
            If a parameter violates its constraint.
        """
        name = type(self).__name__
        for parameter in inspect.signature(type(self)).parameters.values():
            value, declared = getattr(self, parameter.name), set(re.findall(r"\w+", str(parameter.annotation)))
            foreign = hasattr(value, "columns") or isinstance(value, (nx.Graph, Wall))
            if foreign or (declared <= _SINGLE and not single(value)):
                raise TypeError(
                    f"{parameter.name} of {name} cannot be a {type(value).__name__}. Estimators are made with "
                    f"parameters alone; fit takes models and records: {name}(epsilon=1.0).fit(...)."
                )
        for parameter_name, constraint in self._constraints.items():
            constraint(parameter_name, getattr(self, parameter_name))

    def _structure(self, model: Any) -> Any:
        """Check the model, and return the structure that the other steps need."""
        return model

    def _variables(self, structure: Any, data: Any) -> Sequence[str]:
        """List the variables of the model or, without a network, of the data."""
        return variables_of(data, self.state_names)

    def _states(self, structure: Any) -> Mapping[str, Any] | Schema | None:
        """Return the declared states of the variables that records have."""
        found: Mapping[str, Any] | Schema | None = self.state_names
        return found

    def _require_held(self, structure: Any, schema: Schema) -> None:
        """Refuse a schema with rules that the fitted model would violate."""

    def _source(self, structure: Any, data: Any, public: Any) -> Any:
        """Return the release given to `fit`, joined with public tables, or else the source to measure.

        Raises
        ------
        SchemaError
            If a variable is not declared, a rule cannot be enforced, or a public table does not match the schema.
        ValueError
            If epsilon is given with a release, or missing without one.
        """
        raise NotImplementedError

    def _plan(self, structure: Any, public: Any) -> Any:
        """Choose the mechanism, from a source or a `PublicTable`; all checks are made here, before the charge."""
        raise NotImplementedError

    def _measure(self, structure: Any, source: Any, public: Any) -> Any:
        """Charge the source, and return its release, joined with public tables."""
        self.release_ = informed(self._released(structure, source), public)
        self.guarantee_ = self.release_.guarantee  # kept if `_read` fails, since they are paid for
        return self.release_

    def _released(self, structure: Any, source: Any) -> Any:
        """Charge the source, and return what is drawn."""
        return source.release(self._plan(structure, source))

    def _observe(self, structure: Any, release: Any) -> None:
        """Warn if releases are of different records, or contradict themselves or their rules."""
        releases = several(release)
        warn_of_other_records(releases)
        warn_of_contradictions(releases)
        warn_of_broken_rules(releases)

    def _read(self, structure: Any, release: Any) -> Any:
        """Compute the fitted model from the release."""
        raise NotImplementedError

    def _finish(self, structure: Any, release: Any, found: Any) -> None:
        """Set the fitted attributes."""
        self.release_ = release
        self.guarantee_ = joint_guarantee(several(release))


@dataclass(eq=False, repr=False)
class PrivateEstimator(Estimator):
    """Base class of estimators whose fit costs privacy.

    Parameters
    ----------
    epsilon : float, optional
        Privacy loss of the fit, for records or a private data set.
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A private data set has its own.
    """

    epsilon: float | None = None
    _: KW_ONLY
    neighbours: str | None = None

    def _source(self, structure: Any, data: Any, public: Any) -> Any:
        data = together(data)
        variables = self._variables(structure, data)
        if isinstance(data, Release):
            source: Any = informed(self._paid(data, variables), public)
        else:
            source = self._dataset(data, variables, self._states(structure))
            if public is not None:
                read_public_tables(public, source.schema)
        self._require_held(structure, source.schema)
        return source

    def _paid(self, release: Release, variables: Sequence[str]) -> Release:
        """Refuse a release that this estimator cannot be fitted to."""
        if not release.cliques:
            held = (
                "draws of a network, and no tables to fit: read its mean()." if release.drawn else "no tables to fit."
            )
            raise TypeError(f"{type(release).__name__} hold {held}")
        if self.epsilon is not None:
            raise ValueError(
                "A release is already paid for: leave epsilon out of the estimator, or hand it the data set."
            )
        if release.guarantee.mechanism == "none":
            raise ValueError("These are exact counts, not a release: fit the records with NotPrivateMLE.")
        require_variables(release.schema, variables, "release")
        require_agreement(release, release.guarantee.neighbours, variables, self.neighbours, self.state_names)
        return release

    def _dataset(self, data: Any, variables: Sequence[str], state_names: Any) -> PrivateDataset:
        """Return the data set given to `fit`, or create one from records for this fit alone."""
        if self.epsilon is None and isinstance(data, (str, os.PathLike)):
            raise ValueError("This is the path of a file: read the release by NoisyMarginals.load, and fit that.")
        self._price()
        if isinstance(data, PrivateDataset):
            require_variables(data.schema, variables, "data set's schema")
            require_agreement(data, data.neighbours, variables, self.neighbours, state_names)
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
                "Fitting records costs privacy: give the estimator an epsilon, as in "
                f"{type(self).__name__}(epsilon=1.0, state_names=schema)."
            )
        return self.epsilon

    def _planned(self, model: Any, schema: Schema | PublicTable | None, records: float | None) -> Plan:
        """Return the plan of a fit; without a schema, for the declared states."""
        self._check_parameters()
        structure = self._structure(model)
        public = self._public_table(structure, schema)
        mechanism = self._plan(structure, public)
        if records is not None:
            number(above=0.0)("records", records)
        return Plan(mechanism, quoted(mechanism, public, learned_graph(model)), public, records)

    def _public_table(self, structure: Any, schema: Schema | PublicTable | None) -> PublicTable:
        """Return what is public of the records of a plan; refuse what `fit` would refuse."""
        self._price()
        public = declared(self._states(structure), self._variables(structure, None)) if schema is None else schema
        if isinstance(public, Schema):
            public = PublicTable.of(public, self.delta, self.neighbours or "add_remove")
        if not isinstance(public, PublicTable):
            raise TypeError(f"plan takes a Schema, got {type(public).__name__}: no record is needed.")
        variables = self._variables(structure, public)
        require_variables(public.schema, variables, "schema")
        require_agreement(public, public.neighbours, variables, self.neighbours, self._states(structure))
        self._require_held(structure, public.schema)
        return public


@dataclass(eq=False, repr=False)
class TableEstimator(PrivateEstimator):
    """Base class of estimators that measure noisy tables or are fitted to a release of them.

    Parameters
    ----------
    epsilon : float, optional
        Privacy loss of the measurement, for records or a `PrivateDataset`. Leave it out to fit a release.
    delta : float
        0 for Laplace noise, in (0, 1) for Gaussian noise.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records.
    mechanism : {"auto", "laplace", "gaussian"}
        Kind of noise. "auto" is Gaussian if and only if delta > 0, charged as one block if units have one row.

    Attributes
    ----------
    release_ : NoisyMarginals
        The release that was measured or given.
    """

    delta: float = 0.0
    state_names: Mapping[str, Any] | Schema | None = None
    _: KW_ONLY
    mechanism: str = "auto"

    @property
    def _noise(self) -> str:
        """The kind of noise, "laplace" or "gaussian"."""
        return noise_of(self.mechanism, self.delta)

    def _plan(self, structure: Any, public: Any) -> Any:
        cliques, weights = self._tables(structure, public.schema)
        return NoisyTables(cliques, self._price(), self.delta, self.mechanism, weights)

    def _tables(self, structure: Any, schema: Schema) -> tuple[Sequence[Clique], Sequence[float]]:
        """Choose the tables and their shares of the privacy loss."""
        raise NotImplementedError


NOISE = choice("auto", "laplace", "gaussian")


def refuse_weights(estimator: object, sample_weight: Any) -> None:
    """Refuse weighted records, whose sensitivity differs from that of counts."""
    if sample_weight is not None:
        raise ValueError(
            f"{type(estimator).__name__} does not support sample_weight: the noise is scaled to unweighted records."
        )


def require_fitted(estimator: Any, attribute: str = "release_") -> None:
    """Refuse an estimator without an attribute that `fit` sets.

    Raises
    ------
    ValueError
    """
    if not hasattr(estimator, attribute):
        raise ValueError("The estimator is not fitted yet: call fit first.")


def require_estimator(estimator: Any, known: str = "None") -> None:
    """Refuse a name or a class instead of an estimator.

    Raises
    ------
    TypeError, ValueError
    """
    if isinstance(estimator, str):
        raise ValueError(
            f"estimator is {shown(estimator)}; choose one of {known}, or give an estimator, such as CollectiveEM()."
        )
    if isinstance(estimator, type):
        raise TypeError(f"estimator is the class {estimator.__name__}: give an instance, {estimator.__name__}().")


def require_informable(estimator: Any) -> Any:
    """Refuse an estimator that cannot use public tables, before any charge.

    Raises
    ------
    ValueError
    """
    if not getattr(estimator, "_informable", False):
        raise ValueError(
            f"{type(estimator).__name__} cannot use public tables: leave public out, or fit CollectiveEM, AutoMLE, "
            "PrivateMLE or PosteriorMean."
        )
    return estimator
