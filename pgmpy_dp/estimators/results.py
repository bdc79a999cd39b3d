"""The last steps of estimators of networks: they set their results, which hold the schema's rules."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from pgmpy.factors.discrete import TabularCPD
from sklearn.exceptions import ConvergenceWarning

from pgmpy_dp.errors import Message
from pgmpy_dp.inference import Layout
from pgmpy_dp.inference.collective.counts_behind import Engine
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.trees.tied import TiedTree
from pgmpy_dp.observed.broken_rules import warn_of_broken_rules
from pgmpy_dp.observed.contradictions import warn_of_contradictions
from pgmpy_dp.observed.factors import markov_factors, tabular_cpd
from pgmpy_dp.observed.rule_tables import barred_cells, family_masks, ruled_table, scope_masks
from pgmpy_dp.release import Release
from pgmpy_dp.release.kinds import compose_releases
from pgmpy_dp.schema import Clique, Schema


def finish_markov(
    estimator: Any,
    engine: Engine,
    potentials: Vector,
    scopes: Sequence[Clique],
    release: Release | tuple[Release, ...],
    schema: Schema,
) -> None:
    """Set the fitted attributes of an estimator of a Markov network.

    Factors are made for `scopes`; other tables of the engine's layout must have potentials of zero. pgmpy refuses
    factors whose variables are no clique of the graph, and measured tables need not be.
    """
    if schema.rules:
        places = engine.layout.places(scopes)
        potentials = potentials.copy()
        potentials[places] += barred_cells(scopes, scope_masks(scopes, schema), schema)
    calibration = engine.calibrate(potentials)
    warn_unless(calibration.converged, estimator, "Loopy belief propagation")
    log_partition = calibration.log_partition
    layout = Layout.of(engine.layout.cardinalities, scopes)
    own = potentials[engine.layout.places(scopes)]
    finish(estimator, markov_factors(layout, own, log_partition, schema.states), release, schema)


def warn_unless(converged: bool, estimator: Any, what: str = "The fit") -> None:
    """Warn that a fit did not converge: it is private all the same, but not what it should be."""
    if not converged:
        warnings.warn(
            Message(
                f"{what} of {type(estimator).__name__} did not converge, so the network may be far from the release",
                "raise max_iter, or use inference='junction_tree' where it fits in memory",
                "see what --estimator auto gives",
            ),
            ConvergenceWarning,
            stacklevel=4,
        )


def finish(estimator: Any, parameters: list[Any], release: Release | tuple[Release, ...], schema: Schema) -> None:
    """Set the fitted attributes of an estimator, its CPDs or factors first; CPDs are made to hold rules."""
    releases = release if isinstance(release, tuple) else (release,)
    warn_of_contradictions(releases)
    if schema.rules:
        warn_of_broken_rules(releases)
        if parameters and isinstance(parameters[0], TabularCPD):
            parameters = _ruled(parameters, schema)
    estimator.parameters_ = parameters
    estimator.state_names_ = schema.state_names
    estimator.release_ = releases[0] if len(releases) == 1 else releases
    estimator.guarantee_ = compose_releases(releases)
    estimator._is_fitted = True


def _ruled(cpds: Sequence[TabularCPD], schema: Schema) -> list[TabularCPD]:
    masks = family_masks([tuple(cpd.variables) for cpd in cpds], schema)
    return [
        tabular_cpd(tuple(cpd.variables), ruled_table(cpd.values, masks.get(tuple(cpd.variables))), schema.states)
        for cpd in cpds
    ]


def finish_tied(
    estimator: Any, engine: TiedTree, potentials: Vector, release: Release | tuple[Release, ...], nodes: Schema
) -> None:
    """Set the fitted attributes of an estimator of a Markov network with tied parameters: a factor for each clique."""
    tree = engine.tree
    finish_markov(estimator, tree, engine.expand(potentials), tree.layout.scopes, release, nodes)
