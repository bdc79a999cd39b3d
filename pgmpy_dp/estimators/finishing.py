"""The attributes that every fitted estimator has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgmpy_dp.fitting.factors import markov_factors, table_places
from pgmpy_dp.inference import Layout
from pgmpy_dp.inference.collective import Engine
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.inference.tied import TiedTree
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Clique, Schema


def finish_markov(
    estimator: Any,
    engine: Engine,
    potentials: Vector,
    scopes: Sequence[Clique],
    release: Release,
    schema: Schema,
) -> None:
    """Set the fitted attributes of an estimator of a Markov network.

    Factors are made for `scopes`; other tables of the engine's layout must have potentials of zero. pgmpy refuses
    factors whose variables are no clique of the graph, and measured tables need not be.
    """
    log_partition = engine.calibrate(potentials).log_partition
    layout = Layout.of(engine.layout.cardinalities, scopes)
    own = potentials[table_places(engine.layout, scopes)]
    finish(estimator, markov_factors(layout, own, log_partition, schema.states), release, schema)


def finish(estimator: Any, parameters: list[Any], release: Release, schema: Schema) -> None:
    """Set the fitted attributes of an estimator, its CPDs or factors first."""
    estimator.parameters_ = parameters
    estimator.state_names_ = schema.state_names
    estimator.release_ = release
    estimator.guarantee_ = release.guarantee
    estimator._is_fitted = True


def finish_tied(estimator: Any, engine: TiedTree, potentials: Vector, release: Release, nodes: Schema) -> None:
    """Set the fitted attributes of an estimator of a Markov network with tied parameters: a factor for each clique."""
    tree = engine.tree
    finish_markov(estimator, tree, engine.expand(potentials), tree.layout.scopes, release, nodes)
