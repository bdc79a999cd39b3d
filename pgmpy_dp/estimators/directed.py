"""One Bayesian network behind all noisy tables: the fit of `CollectiveEM` for directed models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from pgmpy_dp.estimators.fitting import observation_noise
from pgmpy_dp.estimators.measuring import measured_table
from pgmpy_dp.estimators.networks import table_places
from pgmpy_dp.estimators.observing import Observations, observations
from pgmpy_dp.inference import Calibration, JunctionTree, Layout, TreeTooLargeError, build_engine
from pgmpy_dp.inference.engine import MAX_TABLE_CELLS
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.inference.optimisation import minimise
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Clique, Schema

_ROUNDS = 2


@dataclass(frozen=True)
class DirectedFit:
    """Fitted rows and how they were found.

    Attributes
    ----------
    tables : mapping of family to ndarray
        P(node | parents), axes in family order.
    objective : float
        Penalised expected log-likelihood, in nats, without constants.
    """

    tables: Mapping[Clique, Vector]
    objective: float


class _Problem:
    """Minus the penalised log-likelihood of the observations as a function of the logits of all rows."""

    def __init__(self, tree: JunctionTree, families: Layout, observed: Observations, total: float) -> None:
        layout = tree.layout
        self.tree, self.families, self.observed, self.total = tree, families, observed, total
        self.free = table_places(layout, families.scopes)
        self.seen = table_places(layout, observed.cliques)
        widths = [size // shape[0] for size, shape in zip(np.diff(families.offsets), families.shapes, strict=True)]
        first = np.cumsum([0, *widths])
        self.rows = np.concatenate(
            [
                start + np.arange(width * shape[0]) % width
                for start, width, shape in zip(first[:-1], widths, families.shapes, strict=True)
            ]
        )
        self.row_count = int(first[-1])
        self.pseudo = families.per_cell([1.0 / shape[0] for shape in families.shapes])

    def row_sums(self, values: Vector) -> Vector:
        sums: Vector = np.bincount(self.rows, values, self.row_count)[self.rows]
        return sums

    def log_rows(self, logits: Vector) -> Vector:
        top = np.full(self.row_count, -np.inf)
        np.maximum.at(top, self.rows, logits)
        shifted = logits - top[self.rows]
        log_rows: Vector = shifted - np.log(self.row_sums(np.exp(shifted)))
        return log_rows

    def calibrate(self, log_rows: Vector) -> Calibration:
        potentials = np.zeros(self.tree.layout.size)
        potentials[self.free] = log_rows
        return self.tree.calibrate(potentials)

    def observe(self, marginals: Vector) -> None:
        """Take the sampling variance at these marginals."""
        counts, seen = self.total * marginals[self.seen], self.observed
        mechanism = "gaussian" if seen.gaussian else "laplace"
        expected, squares = seen.expected(counts), seen.expected_squares(counts)
        self.noise = observation_noise(mechanism, seen.observed, seen.variance, expected, self.total, squares)

    def __call__(self, logits: Vector) -> tuple[float, Vector]:
        log_rows = self.log_rows(logits)
        calibration = self.calibrate(log_rows)
        expected = self.observed.expected(self.total * calibration.marginals[self.seen])
        value = self.noise.log_density(expected) + float(self.pseudo @ log_rows)
        direction = np.zeros(self.tree.layout.size)
        direction[self.seen] = self.total * self.observed.to_counts(self.noise.gradient(expected))
        slope = self.tree.covariance_product(calibration, direction)[self.free] + self.pseudo
        return -value, -(slope - np.exp(log_rows) * self.row_sums(slope))

    def steepness(self, log_rows: Vector, marginals: Vector, family_variance: Vector) -> Vector:
        """Diagonal approximation of the Hessian in the logits: precision of each cell by its own family's table."""
        rows, counts = np.exp(log_rows), self.total * marginals[self.free]
        curvature = (counts * (1 - rows)) ** 2 / (family_variance + counts)
        steepness: Vector = curvature + rows * (1 - rows) + 0.1 * self.pseudo + 1e-3
        return steepness


def fit_directed(
    tree: JunctionTree,
    families: Sequence[Clique],
    observed: Observations,
    release: Release,
    max_iter: int,
) -> DirectedFit:
    """The network that explains all observations best.

    Maximises over the rows theta of all CPDs

        sum over observations of E[log p(y | s)] + sum over rows of (1 / r) sum_x log theta[x | u],

    s being normal about N A mu(theta) with the variance of sampling (and b^2 for Laplace noise of scale b), y the noisy
    counts or coefficients, A the identity or the coefficients' contrasts, and mu(theta) the network's own marginals,
    which a junction tree gives with their exact derivatives.

    Parameters
    ----------
    tree : JunctionTree
        Whose layout holds all families and all observed cliques, each once.
    families : sequence of tuples of str
    observed : Observations
    release : NoisyMarginals or NoisyCoefficients
        Where the observations are from: for the total and the start.
    max_iter : int
        Most L-BFGS iterations in each of two rounds; the sampling variance is renewed between them.

    Returns
    -------
    DirectedFit
    """
    layout = Layout.of(tree.layout.cardinalities, families)
    problem = _Problem(tree, layout, observed, release.total)
    own = [_start(release, family, problem.total) for family in families]
    family_variance = layout.per_cell([variance for _, variance in own])
    start = np.maximum(layout.flatten(table for table, _ in own), 0.0) + 0.5 * np.sqrt(family_variance / 2)
    logits, value = np.log(start), np.inf
    for _ in range(_ROUNDS):
        log_rows = problem.log_rows(logits)
        marginals = problem.calibrate(log_rows).marginals
        problem.observe(marginals)
        scale = 1.0 / np.sqrt(problem.steepness(log_rows, marginals, family_variance))

        found = minimise(problem, logits, max_iter, gain=1e-8, memory=10, scale=scale)
        logits, value = found.point, found.value
    tables = layout.tables(np.exp(problem.log_rows(logits)))
    return DirectedFit(tables, -value)


def fit_release(release: Release, scopes: Sequence[Clique], max_iter: int) -> DirectedFit:
    """`fit_directed` on all that a release says of the families' variables.

    Raises
    ------
    ValueError
        If it says nothing of one.
    TreeTooLargeError
    """
    schema, seen = observations(release, [scope[0] for scope in scopes])
    cards = {variable: schema.cardinality(variable) for variable in schema.variables}
    tree = build_engine(cards, dict.fromkeys([*scopes, *seen.cliques]), "junction_tree")
    assert isinstance(tree, JunctionTree)
    return fit_directed(tree, scopes, seen, release, max_iter)


def require_exact(schema: Schema, scopes: Sequence[Clique]) -> None:
    """Refuse, before anything is charged, tables whose junction tree does not fit in memory.

    Raises
    ------
    TreeTooLargeError
    """
    cards = {variable: schema.cardinality(variable) for scope in scopes for variable in scope}
    size = sum(schema.cells(clique) for clique in JunctionTree.cliques_of(cards, scopes))
    if size > MAX_TABLE_CELLS:
        raise TreeTooLargeError(
            f"The junction tree of the network has {size:,} table cells, more than "
            f"{MAX_TABLE_CELLS:,}: use PrivateMLE(consistency=None), which needs none."
        )


def _start(release: Release, family: Clique, total: float) -> tuple[Vector, float]:
    """The family's own noisy table and variance; where it was not measured, a flat one as noisy as it is large."""
    if any(set(family) <= set(clique) for clique in release.cliques):
        return measured_table(release, family)
    shape = release.schema.shape(family)
    return np.full(shape, total / np.prod(shape)), total**2
