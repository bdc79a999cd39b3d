"""The mean of a posterior's networks is taken from all points of a chain, and hangs little on how far it has come."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pgmpy_dp.fitting.readings.posterior_networks import (
    Chain,
    PosteriorNetworks,
    calibrated,
    networks_of,
    ruled,
    run_chain,
)
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.tables.rows import Rows
from pgmpy_dp.observed.factors import Network
from pgmpy_dp.release import Release

_LONGEST = 32  # a chain is run on so far, in units of the draws, while means are uncertain


def draw_mean(
    network: Network, releases: Sequence[Release], draws: int = 200, seed: int = 0
) -> tuple[PosteriorNetworks, Vector]:
    """Draw networks as `draw_networks` does, from a longer chain, and compute the mean tables of the population's.

    Returns
    -------
    posterior : PosteriorNetworks
    mean : ndarray of shape (posterior.layout.size,)
    """
    generator = np.random.default_rng(seed)
    chain = run_chain(network, releases, draws, generator, _LONGEST)
    posterior, problem = networks_of(chain, draws, generator), chain.problem
    if problem.rows is not None:
        return posterior, _mean_tables(chain, problem.rows)
    each = [calibrated(problem, logs).marginals[problem.cells] for logs in posterior.population]
    return posterior, np.asarray(np.mean(each, axis=0))


def _mean_tables(chain: Chain, rows: Rows) -> Vector:
    """Average tables, each row with as much of what has mean zero as takes most of its variance away.

    Such control variates leave the mean as it is: see `LogPosterior.row_differences`. Cells that rules forbid stay
    empty.
    """
    problem, density = chain.problem, chain.density
    tables, differences = np.empty((2, len(chain.points), problem.cells.size))
    for number, (point, own) in enumerate(zip(chain.points, chain.priors, strict=True)):
        density.terms = density.terms._replace(prior=own)
        calibration = problem.tree.calibrate(density.potentials(point))
        counts = density.total(point) * calibration.marginals[problem.cells]
        # Rows are independent given the records: the mean of the population's tables is that of the rows' means.
        logs = ruled(problem, rows.normalise(np.log(counts + own))[None])[0]
        tables[number] = calibrated(problem, logs).marginals[problem.cells]
        # By so much a mean table follows its row. But for deviations of the sample it does not hang on it.
        held = rows.sums(counts)
        slope = rows.sums(tables[number]) * held / (held + rows.sums(own))
        differences[number] = slope * density.row_differences(point)
    mean, off = tables.mean(axis=0), differences.mean(axis=0)
    covariance = rows.totals(((tables - mean) * (differences - off)).mean(axis=0))
    variance = rows.totals(((differences - off) ** 2).mean(axis=0))
    share = np.clip(-covariance / np.maximum(variance, 1e-300), 0.0, 1.0)[rows.numbers]
    found = np.where(mean > 0.0, np.maximum(mean + share * off, 1e-12 * mean), 0.0)
    return np.asarray(found * rows.sums(mean) / np.maximum(rows.sums(found), 1e-300))
