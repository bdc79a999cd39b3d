"""A fitted network is held against the releases that it was fitted to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from pgmpy.models import DiscreteMarkovNetwork
from scipy import sparse

from pgmpy_dp.fitting.factors import Network, log_linear, table_places
from pgmpy_dp.fitting.joint_observations import JointObservations, agreed_schema
from pgmpy_dp.fitting.misfit import FitCheck, held_against, scoring_step
from pgmpy_dp.fitting.testing_tables import affordable
from pgmpy_dp.inference import Calibration, JunctionTree, TreeTooLargeError, build_engine
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.inference.rows import Rows
from pgmpy_dp.inference.sampling import sample_counts
from pgmpy_dp.inference.table import Table
from pgmpy_dp.release import Release

_DRAWS = 1000
# One suffices but where the fit was to a release that says nearly nothing beside another.
_STEPS = 2
# Derivatives of all tables by all parameters take at most half a gigabyte.
_MAX_DERIVATIVES = 2**26
# Tables that only test are held against the network while its tree has no more cells, or twice its own.
_MOST_CELLS = 2**14
# Cells times derivatives and draws of a check that takes a second: of alarm's tables, or of all pairs of sachs.
QUICK = 2**25


def check_network(
    network: Network, releases: Sequence[Release], seed: int = 0, most_work: float = math.inf
) -> FitCheck:
    """Test whether releases contradict a network: post-processing, at no cost to privacy.

    Parameters
    ----------
    network : DiscreteBayesianNetwork or DiscreteMarkovNetwork
        With parameters that were fitted to the releases, by any estimator.
    releases : sequence of NoisyMarginals or NoisyCoefficients
        One or several releases of the same records.
    seed : int
    most_work : float
        Refuse what takes more cells times derivatives and draws, such as `QUICK`.

    Raises
    ------
    SchemaError
        If the releases disagree on the states of a variable, or lack one.
    TreeTooLargeError
        If the junction tree, or the derivatives of all tables, do not fit in memory, or take too much work.
    """
    nodes = list(network.nodes())
    schema = agreed_schema(releases, nodes)
    layout, logs, _ = log_linear(network, schema.states)
    chosen = partial(affordable, layout.cardinalities, layout.scopes, most=_MOST_CELLS)
    seen = JointObservations.of(releases, nodes, chosen)
    directed = not isinstance(network, DiscreteMarkovNetwork)
    tables = list(dict.fromkeys(seen.cliques))
    cells = seen.layout.size
    if cells * layout.size > _MAX_DERIVATIVES or cells * (layout.size + _DRAWS) > most_work:
        raise TreeTooLargeError(
            f"the test of fit needs derivatives of {cells:,} measured cells by {layout.size:,} parameters, more than "
            "allowed"
        )
    tree = build_engine(layout.cardinalities, dict.fromkeys([*layout.scopes, *tables]), "junction_tree")
    assert isinstance(tree, JunctionTree)
    if (tree.table_cells + cells) * (layout.size + _DRAWS) > most_work:
        raise TreeTooLargeError(f"the test of fit needs a tree of {tree.table_cells:,} cells, more than allowed")
    places, free = table_places(tree.layout, seen.cliques), table_places(tree.layout, layout.scopes)
    rows = Rows(layout) if directed else None
    calibration, tangents = _linearised(tree, logs, free, places, rows)
    # The law is that of small steps of the parameters. They may be far off if a closer release was attached later.
    for _ in range(_STEPS):
        logs = logs + scoring_step(seen, calibration.marginals[places], tangents)
        logs = logs if rows is None else rows.normalise(logs)
        calibration, tangents = _linearised(tree, logs, free, places, rows)
    shares = calibration.marginals[places]
    deviations = _deviations(tree, calibration, seen, np.random.default_rng(seed))
    return held_against(seen, shares, deviations, tangents, seed)


def _linearised(
    tree: JunctionTree, logs: Vector, free: NDArray[np.int64], places: NDArray[np.int64], rows: Rows | None
) -> tuple[Calibration, Vector]:
    """Calibrate a network's log-potentials, and find the derivatives of measured cells by them."""
    potentials = np.zeros(tree.layout.size)
    potentials[free] = logs
    calibration = tree.calibrate(potentials)
    tangents = np.empty((places.size, free.size))
    direction = np.zeros(tree.layout.size)
    for column, cell in enumerate(free):
        direction[cell] = 1.0
        tangents[:, column] = tree.covariance_product(calibration, direction)[places]
        direction[cell] = 0.0
    if rows is not None:  # rows of a CPD stay normalised
        whole = sparse.csr_array((np.ones(free.size), (np.arange(free.size), rows.numbers)))
        tangents -= np.exp(logs) * (tangents @ whole)[:, rows.numbers]
    return calibration, tangents


def _deviations(
    tree: JunctionTree, calibration: Calibration, seen: JointObservations, generator: np.random.Generator
) -> Vector:
    """Simulate the tables of as many records as there are, less their expectation; in parts, for large trees."""
    count, layout = max(1, round(seen.total)), seen.layout
    number = {variable: place for place, variable in enumerate(tree.variables)}
    scopes = [tuple(number[variable] for variable in clique) for clique in layout.scopes]
    holders = [
        min(
            (place for place, clique in enumerate(tree.cliques) if set(scope) <= set(clique.table.scope)),
            key=lambda place: tree.cliques[place].table.cells,
        )
        for scope in scopes
    ]
    part = int(np.clip(2**23 // tree.table_cells, 1, _DRAWS))
    parts = []
    for start in range(0, _DRAWS, part):
        drawn = sample_counts(tree, calibration, count, min(part, _DRAWS - start), generator)
        tables = [
            Table((-1, *tree.cliques[holder].table.scope), drawn[holder]).margin((-1, *scope)).values
            for scope, holder in zip(scopes, holders, strict=True)
        ]
        parts.append(np.hstack([table.reshape(len(table), -1) for table in tables]))
    expected = calibration.marginals[table_places(tree.layout, seen.cliques)]
    deviations: Vector = np.vstack(parts) - count * expected
    return deviations
