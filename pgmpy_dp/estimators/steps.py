"""The first steps of every estimator: it finds its data, and measures what it was not handed.

A release costs nothing. The ledger of a private data set is charged. For records with declared states a private data
set is made for this one fit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from pgmpy_dp._names import closest
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.errors import Message, SchemaError
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.release import InformedMarginals, Release
from pgmpy_dp.release.informed_marginals import ReleasedTables
from pgmpy_dp.release.kinds import compose_releases, refuse_repeated
from pgmpy_dp.release.public_tables import read_public_tables
from pgmpy_dp.schema import Clique, Schema


def resolve(
    estimator: Any, data: Any, variables: Sequence[str], network: Any = None, public: Any = None
) -> Release | PrivateDataset:
    """Find the release to fit in what `fit` was handed, or else the data set to measure.

    Parameters
    ----------
    estimator : object
        Its `epsilon`, `delta`, `neighbours` and `state_names` say how records are measured.
    data : NoisyMarginals, NoisyCoefficients, list of NoisyMarginals, PrivateDataset or data frame
    variables : sequence of str
        Those of the model.
    network : pgmpy network, optional
        It is to hold the rules about its variables.
    public : mapping of clique to table, optional
        Public tables join a release here; of what is measured yet, `informed` makes them join, and here they are read.

    Raises
    ------
    SchemaError
        If a variable of the model is not declared, the network cannot hold a rule, or a public table does not fit.
    ValueError
        If epsilon is given with a release, or missing without one; for exact counts.
    """
    data = together(data)
    if isinstance(data, Release):
        source: Release | PrivateDataset = informed(paid_release(estimator, data, variables), public)
    else:
        delta = getattr(estimator, "delta", 0.0)
        source = dataset_of(data, variables, estimator.epsilon, delta, estimator.neighbours, estimator.state_names)
        if public is not None:
            read_public_tables(public, source.schema)
    _require_held(network, source.schema)
    return source


def informed(release: Release, public: Any) -> Release:
    """Join public tables to a release, if there are any.

    Raises
    ------
    SchemaError, ValueError
        If they do not fit its schema.
    TypeError
        If it is no release of tables.
    """
    if public is None:
        return release
    if isinstance(release, InformedMarginals):
        return InformedMarginals(release.noisy, {**release.public, **public})
    return InformedMarginals(release, public)  # type: ignore[arg-type]  # which it refuses if it is of another kind


def variables_of(data: Any, state_names: Mapping[str, Any] | Schema | None) -> tuple[str, ...]:
    """Name the variables of a release, of a data set, or those that are declared for records."""
    if isinstance(data, Release):
        return data.variables
    states = data.schema if isinstance(data, PrivateDataset) else state_names
    return tuple(states.variables if isinstance(states, Schema) else states or ())


def refuse_rules(estimator: Any, schema: Schema, variables: Sequence[str]) -> None:
    """Refuse a schema's rules, for estimators that cannot hold them: what they fit would break them silently.

    Raises
    ------
    SchemaError
    """
    own = schema.select([variable for variable in variables if variable in schema.states])
    if own.rules:
        raise SchemaError(
            Message(
                f"{type(estimator).__name__} cannot hold the schema's rules, such as that about "
                f"{', '.join(map(repr, own.rules[0].variables))}",
                "fit PairwiseMixture, which does, or declare a schema without them",
                "use pgmpy-dp synthesize, which does, or a schema without them",
            )
        )


def joined(data: Any) -> Any:
    """Join releases of the same records that have noise of one kind; other data are returned as they are.

    Returns
    -------
    Release, or list of Release
        Several where their noise is of several kinds, or coefficients are among them.

    Raises
    ------
    TypeError
        If a list holds releases and something else.
    SchemaError, ValueError
        If they cannot be joined; see `NoisyMarginals.join`.
    """
    if not isinstance(data, (list, tuple)) or not any(isinstance(part, Release) for part in data):
        return data
    for part in data:
        if not isinstance(part, Release):
            raise TypeError(f"A list may hold releases only, got {type(part).__name__}.")
    refuse_repeated(data)
    found: dict[Any, Any] = {}
    for number, part in enumerate(data):
        tables = isinstance(part, ReleasedTables) and part.guarantee.sampling_rate == 1
        kind = part.guarantee.mechanism if tables else number
        found[kind] = found[kind] + part if kind in found else part
    return next(iter(found.values())) if len(found) == 1 else list(found.values())


def together(data: Any) -> Any:
    """Join several releases of the same records into one, and return other data as they are.

    Raises
    ------
    TypeError, SchemaError, ValueError
        As `joined`; also if the releases have noise of several kinds, or coefficients are among them.
    """
    found = joined(data)
    if isinstance(found, list) and isinstance(found[0], Release):
        raise ValueError(
            "Only noisy tables with noise of one kind, on all records, can be joined: fit these releases with "
            "CollectiveEM or PosteriorMean, which take each with its own noise."
        )
    return found


def resolve_all(
    estimator: Any, data: Any, variables: Sequence[str], network: Any = None, public: Any = None
) -> tuple[Release, ...] | PrivateDataset:
    """Find what to fit as `resolve` does, where releases need not be joined; parameters and errors are the same.

    Between them, releases must hold the variables. Public tables join the first release of tables.
    """
    if not isinstance(data, (list, tuple)) or len(data) < 2 or not all(isinstance(part, Release) for part in data):
        source = resolve(estimator, data, variables, network, public)
        return (source,) if isinstance(source, Release) else source
    from pgmpy_dp.observed.observations import agreed_schema  # it imports scipy's solvers

    refuse_repeated(data)
    for release in data:
        paid_release(estimator, release, [variable for variable in variables if variable in release.schema.states])
    _require_held(network, agreed_schema(data, variables))
    compose_releases(data)  # refuses promises that differ, before the fit
    place = next((number for number, release in enumerate(data) if isinstance(release, ReleasedTables)), 0)
    return tuple(informed(release, public if number == place else None) for number, release in enumerate(data))


def _require_held(network: Any, schema: Schema) -> None:
    if network is not None:
        from pgmpy_dp.observed.rule_tables import require_held  # it imports pgmpy, which mixtures do without

        require_held(network, schema)


def paid_release(estimator: Any, release: Release, variables: Sequence[str]) -> Release:
    """Refuse a release that an estimator cannot be fitted to; errors as `resolve`."""
    if not release.cliques:
        held = "draws of a network, and no tables to fit: read its mean()." if release.drawn else "no tables to fit."
        raise TypeError(f"{type(release).__name__} hold {held}")
    if estimator.epsilon is not None:
        raise ValueError("A release is already paid for: leave epsilon out of the estimator, or hand it the data set.")
    if release.guarantee.mechanism == "none":
        raise ValueError("These are exact counts, not a release: fit the records with NotPrivateMLE.")
    _require_variables(release.schema, variables, "release")
    _require_agreement(release, release.guarantee.neighbours, variables, estimator.neighbours, estimator.state_names)
    return release


def dataset_of(
    data: Any,
    variables: Sequence[str],
    epsilon: Any,
    delta: Any,
    neighbours: str | None,
    state_names: Any,
    budget: PrivacyBudget | None = None,
) -> PrivateDataset:
    """Take the data set that was handed in, or make one of records for this fit alone; errors as `resolve`."""
    if epsilon is None:
        if isinstance(data, (str, os.PathLike)):
            raise ValueError("This is the path of a file: read the release by NoisyMarginals.load, and fit that.")
        raise ValueError("Fitting records costs privacy: give the estimator an epsilon, such as epsilon=1.0.")
    if isinstance(data, PrivateDataset):
        _require_variables(data.schema, variables, "data set's schema")
        _require_agreement(data, data.neighbours, variables, neighbours, state_names)
        return data
    schema = declared(state_names, variables)
    budget = PrivacyBudget(epsilon, delta) if budget is None else budget
    return PrivateDataset(data, schema, budget, neighbours=neighbours or "add_remove")


def measure(
    estimator: Any, dataset: PrivateDataset, cliques: Sequence[Clique], weights: Sequence[float], public: Any = None
) -> Release:
    """Measure tables as an estimator asks for, and join public ones."""
    options = {"delta": estimator.delta, "mechanism": estimator.mechanism}
    return informed(dataset.measure(cliques, estimator.epsilon, weights=weights, **options), public)


def _require_agreement(
    held: Release | PrivateDataset, relation: str, variables: Sequence[str], neighbours: str | None, state_names: Any
) -> None:
    """Refuse an option that says otherwise than the data: it is a mistake, not something to pass over."""
    require_same("neighbours", neighbours, relation)
    if state_names is not None:
        named = declared(state_names, variables)
        for variable in variables:
            if named.states[variable] != held.schema.states[variable]:
                raise SchemaError(
                    f"Variable {variable!r}: state_names differ from the states in the data's own schema: leave "
                    "state_names out."
                )


def require_same(name: str, asked: Any, held: Any, holder: str = "data has") -> None:
    """Refuse an option that says otherwise than the data; None says nothing."""
    if asked not in (None, held):
        raise ValueError(f"The estimator asks for {name}={asked!r}, but the {holder} {held!r}: leave it out.")


def declared(state_names: Mapping[str, Any] | Schema | None, variables: Sequence[str]) -> Schema:
    """The schema of the model's variables, from a dict of states or a schema and in its order.

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
    return schema.select([variable for variable in schema.variables if variable in variables])


def _require_variables(schema: Schema, variables: Sequence[str], where: str) -> None:
    missing = [variable for variable in variables if variable not in schema.states]
    if missing:
        names = ", ".join(repr(variable) for variable in missing)
        close = closest(missing[0], schema.states)
        meant = f" (did you mean {close!r}?)" if close else ""
        raise SchemaError(
            f"The model has variables that are not in the {where}: {names}{meant}. Declare their states, or leave "
            "them out of the model."
        )
