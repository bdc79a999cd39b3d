"""Estimation of each family separately, from noisy tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LaplaceNoise, SampledNoise, end_to_end
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.observed.factors import conditional
from pgmpy_dp.observed.observations import sampling_variance
from pgmpy_dp.release.consistency import consistency_weights, make_consistent, mutual_consistency
from pgmpy_dp.release.informed_marginals import ReleasedTables
from pgmpy_dp.schema import Clique

_ROUNDS = 2
_TOLERANCE = 1e-9


def read_joint(release: ReleasedTables, scopes: Sequence[Clique], agreement: str | None) -> list[Vector]:
    """Estimate P(node | parents) of each family from the least noisy table that contains it, by `explain_tables`.

    Parameters
    ----------
    release : NoisyMarginals
    scopes : sequence of tuples of str
        Families, the node first.
    agreement : {"epsilon", "inverse_variance"} or None
        Weights with which the release is first made mutually consistent.

    Raises ValueError if the release lacks a family.
    """
    tables = release.tables if agreement is None else mutual_consistency(release, agreement)
    found, strata = [release.with_noise(scope, tables) for scope in scopes], [release.strata(scope) for scope in scopes]
    parts: list[Any] = []
    totals: list[float] = []
    pseudo: list[float] = []
    for scope, noise, own in zip(scopes, found, strata, strict=True):
        axis, known = own or (0, [release.total])
        cells = np.broadcast_arrays(noise.observed, noise.variance)
        pieces = [np.moveaxis(each, axis, 0) if own else each[None] for each in cells]
        parts += [type(noise)(*piece) for piece in zip(*pieces, strict=True)]
        totals += known
        pseudo += [1.0 / release.schema.cardinality(scope[0])] * len(known)
    explained = iter(explain_tables(parts, pseudo, np.array(totals)))
    result = []
    for own in strata:
        axis, known = own or (0, [release.total])
        table = np.stack([next(explained) for _ in known], axis)
        result.append(conditional(table if own else table[0]))
    return result


def read_pairs(release: ReleasedTables, scopes: Sequence[Clique], agreement: str | None) -> list[Vector]:
    """Estimate P(node | parents) from a family's own table and that of the parents (Chowdhury et al., Algorithm 1).

    Negative counts are set to zero and rows of the family's table are normalised; times the parents' shares of the
    records this is the family's marginal. The rows of the marginal, made consistent or not, are the result: without
    consistency the parents' table cancels.

    Parameters and errors are those of `read_joint`.
    """
    marginals: dict[Clique, Vector] = {}
    for scope in scopes:
        rows = conditional(np.maximum(release.marginal(scope)[0], 0.0))
        mass = np.ones(())
        if parents := scope[1:]:
            counts = np.maximum(release.marginal(parents)[0], 0.0)
            mass = counts / counts.sum() if counts.any() else np.full_like(counts, 1.0 / counts.size)
        marginals[scope] = release.total * mass * rows
    if agreement is not None:
        own = consistency_weights(release, agreement)
        weights = {scope: own[release.holding_clique(scope)] for scope in scopes}
        marginals = make_consistent(marginals, weights)
    return [conditional(np.maximum(table, 0.0)) for table in marginals.values()]


def explain_tables(
    tables: Sequence[LaplaceNoise | GaussianNoise], pseudo: Sequence[float], total: float | Vector
) -> list[Vector]:
    """Find the counts of each table that maximise its penalised expected log-likelihood; see `PrivateMLE`.

    Cells of a table with equal noisy counts and noise have equal solutions, so each is solved for once: a large table
    costs little more than sorting it.

    Parameters
    ----------
    tables : sequence of LaplaceNoise or GaussianNoise
        Noisy counts of a table, with the variance of all its cells or of each.
    pseudo : sequence of float
        Pseudo-count per cell of each table.
    total : float or ndarray of shape (tables,)
        Sum of every table's counts.

    Returns
    -------
    list of ndarray
        Positive counts, in the shapes of the tables.
    """
    cells = [np.broadcast_arrays(noise.observed, noise.variance) for noise in tables]
    distinct = [np.unique(y + 1j * variance, return_inverse=True, return_counts=True) for y, variance in cells]
    sizes = [values.size for values, _, _ in distinct]
    offsets = np.cumsum([0, *sizes])
    copies = np.concatenate([part[2] for part in distinct]).astype(np.float64)
    noises = zip(tables, distinct, strict=True)
    seen = end_to_end([type(noise)(part[0].real, part[0].imag) for noise, part in noises])
    prior = np.repeat(np.asarray(pseudo, dtype=np.float64), sizes)
    totals = np.broadcast_to(np.asarray(total, dtype=np.float64), len(tables))
    counts = np.maximum(seen.observed, prior * np.sqrt(seen.variance))
    for _ in range(_ROUNDS):
        noise = seen.sampled(sampling_variance(counts, np.repeat(totals, sizes)))
        counts = _constrained_maximum(offsets, copies, noise, counts, prior, totals)
    parts = np.split(counts, offsets[1:-1])
    return [
        part[inverse].reshape(noise.observed.shape)
        for part, (_, inverse, _), noise in zip(parts, distinct, tables, strict=True)
    ]


def _constrained_maximum(
    offsets: NDArray[np.int64],
    copies: Vector,
    noise: SampledNoise,
    start: Vector,
    pseudo: Vector,
    total: Vector,
) -> Vector:
    """Maximise log p + pseudo . log n with the sum of every table fixed, by safeguarded Newton on the multipliers.

    For a multiplier l the stationary count solves pseudo / n + gradient(n) = l, whose left side decreases in n; the sum
    of the counts, each taken `copies` times, decreases in l.
    """
    tables = np.repeat(np.arange(offsets.size - 1), np.diff(offsets))
    steep = np.abs(noise.gradient(np.zeros_like(start))) + pseudo / np.maximum(start, 1e-300)

    def sums(values: Vector) -> Vector:
        return np.add.reduceat(copies * values, offsets[:-1])

    high = np.maximum.reduceat(steep, offsets[:-1]) + sums(pseudo) / total
    low = -np.maximum.reduceat(np.abs(noise.gradient(total[tables])), offsets[:-1])
    multiplier = np.zeros(offsets.size - 1)
    logs = np.log(np.maximum(start, 1e-12))
    for _ in range(100):
        logs = _stationary(noise, logs, pseudo, multiplier[tables])
        counts = np.exp(logs)
        excess = sums(counts) - total
        if (np.abs(excess) <= _TOLERANCE * total).all():
            break
        low, high = np.where(excess > 0, multiplier, low), np.where(excess < 0, multiplier, high)
        slope = sums(1.0 / (pseudo / counts**2 + noise.curvature(counts)))
        newton = multiplier + excess / slope
        multiplier = np.where((newton > low) & (newton < high), newton, (low + high) / 2)
    return counts * (total / sums(counts))[tables]  # the iteration may stop short if a release contradicts its total


def _stationary(noise: SampledNoise, logs: Vector, pseudo: Vector, multiplier: Vector) -> Vector:
    """Solve pseudo / n + gradient(n) = multiplier for log n, cell by cell, by safeguarded Newton."""
    low, high = np.full_like(logs, -60.0), np.full_like(logs, 60.0)
    for _ in range(120):
        counts = np.exp(logs)
        value = pseudo / counts + noise.gradient(counts) - multiplier
        low, high = np.where(value > 0, logs, low), np.where(value > 0, high, logs)
        slope = pseudo / counts + noise.curvature(counts) * counts
        newton = logs + value / np.maximum(slope, 1e-300)
        # At the root to the last digit the step is zero and ends at the bracket's end: it must not be halved again.
        moved = np.where((newton >= low) & (newton <= high), newton, (low + high) / 2)
        if (np.abs(moved - logs) <= 1e-12).all():
            return moved
        logs = moved
    return logs
