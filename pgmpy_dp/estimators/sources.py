"""Data for `fit`: releases, which are joined, private data sets, and records with declared states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgmpy_dp._names import closest
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.mechanism import PublicTable
from pgmpy_dp.errors import Message, SchemaError
from pgmpy_dp.release import InformedMarginals, NoisyMarginals, Release
from pgmpy_dp.release.kinds import refuse_repeated
from pgmpy_dp.schema import Schema


def informed(release: Release, public: Any) -> Release:
    """Join public tables to a release, if there are any.

    Raises
    ------
    SchemaError, ValueError
        If they do not match its schema.
    TypeError
        If it is not a release of tables.
    """
    if public is None:
        return release
    if isinstance(release, InformedMarginals):
        return InformedMarginals(release.noisy, {**release.public, **public})
    return InformedMarginals(release, public)  # type: ignore[arg-type]  # which it refuses if it is of another kind


def variables_of(data: Any, state_names: Mapping[str, Any] | Schema | None) -> tuple[str, ...]:
    """List the variables of a release, a data set or what is public of one, or those declared for records."""
    if isinstance(data, Release):
        return data.variables
    states = data.schema if isinstance(data, (PrivateDataset, PublicTable)) else state_names
    return tuple(states.variables if isinstance(states, Schema) else states or ())


def refuse_rules(estimator: object, schema: Schema, variables: Sequence[str]) -> None:
    """Refuse a schema with rules, for estimators whose fitted models would silently violate them.

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
    """Join releases of the same records with the same kind of noise; return other data unchanged.

    Returns
    -------
    Release, or list of Release
        Several if their noise is of several kinds, or if they include coefficients.

    Raises
    ------
    TypeError
        If a list contains releases and other objects.
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
        tables = isinstance(part, (NoisyMarginals, InformedMarginals)) and part.guarantee.sampling_rate == 1
        kind = part.guarantee.mechanism if tables else number
        found[kind] = found[kind] + part if kind in found else part
    return next(iter(found.values())) if len(found) == 1 else list(found.values())


def together(data: Any) -> Any:
    """Join several releases of the same records into one, and return other data unchanged.

    Raises
    ------
    TypeError, SchemaError, ValueError
        As in `joined`; also if the releases have noise of several kinds or include coefficients.
    """
    found = joined(data)
    if isinstance(found, list) and isinstance(found[0], Release):
        raise ValueError(
            Message(
                "Only noisy tables with noise of one kind, on all records, can be joined",
                "fit these releases with CollectiveEM or PosteriorMean, which take each with its own noise",
                "fit them with --estimator collective-em or posterior-mean, which take each with its own noise",
            )
        )
    return found


def require_agreement(
    held: Release | PrivateDataset | PublicTable,
    relation: str,
    variables: Sequence[str],
    neighbours: str | None,
    state_names: Any,
) -> None:
    """Refuse options that contradict the data."""
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
    """Refuse an option that contradicts the data, unless it is None."""
    if asked not in (None, held):
        raise ValueError(f"The estimator asks for {name}={asked!r}, but the {holder} {held!r}: leave it out.")


def declared(state_names: Mapping[str, Any] | Schema | None, variables: Sequence[str]) -> Schema:
    """Return the schema of the model's variables, from a dict of states or a schema, in its order.

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
