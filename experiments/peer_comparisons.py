"""Comparisons of speed and memory with mbi (Private-PGM) and pgmpy's MirrorDescentEstimator on equal noisy tables.

mbi is imported inside functions and subprocesses only: `pip install 'pgmpy-dp[bench]'`. It runs in double precision and
without a persistent compilation cache, as it recommends.
"""

from __future__ import annotations

import json
import math
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from pgmpy.models import DiscreteBayesianNetwork

from experiments.closest import closest_marginals
from experiments.peer_processes import Run, run
from experiments.protocol import third_order_chain
from pgmpy_dp.estimators.from_tables import CollectiveEM
from pgmpy_dp.evaluation import bnlearn_network, kl_divergence, random_markov_network
from pgmpy_dp.inference import Calibration, JunctionTree, sample
from pgmpy_dp.inference.tables.table import Scope, Vector
from pgmpy_dp.networks import PrivateMarkovNetwork
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.release import Guarantee, NoisyMarginals
from pgmpy_dp.schema import Schema

CASES = ("asia", "child", "alarm", "hailfinder", "chain")
ESTIMATORS = ("MirrorDescent", "DualAveraging", "InteriorGradient", "UniversalAcceleratedMethod", "LBFGS")
PGMPY_SECONDS = 60


@dataclass(frozen=True)
class Problem:
    """Noisy tables of one network.

    Attributes
    ----------
    cardinalities : dict of str to int
    scopes : list of tuples of str
    observed : ndarray
        Noisy counts of all tables, concatenated.
    scales : list of float
        Standard deviation of each table's noise, in records.
    total : float
        Number of records.
    """

    cardinalities: dict[str, int]
    scopes: list[Scope]
    observed: Vector
    scales: list[float]
    total: float

    def save(self, path: Path) -> None:
        """Write JSON, which a fresh process can read without this package."""
        path.write_text(json.dumps({**self.__dict__, "observed": self.observed.tolist()}))


@dataclass(frozen=True)
class Comparison:
    """One quantity for this package and for mbi, whose value is a lower bound if `reached` is False.

    The value for pgmpy's estimator is NaN if it was not measured or did not finish.
    """

    case: str
    ours: float
    theirs: float
    reached: bool = True
    pgmpy: float = math.nan

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours


def example_network(name: str) -> Network:
    """Return a bnlearn network that pgmpy ships, or "chain": third-order, with ten variables of ten states."""
    if name == "chain":
        return random_markov_network(third_order_chain(), 10, 0)
    return bnlearn_network(name)


def noisy_problem(name: str, records: int = 10_000, epsilon: float = 1.0, seed: int = 0) -> Problem:
    """Simulate Laplace noise on the tables of all families (for the chain, all edges), which share epsilon equally."""
    layout, potentials, _ = log_linear(example_network(name))
    tree = JunctionTree.build(layout.cardinalities, layout.scopes)
    generator = np.random.default_rng(seed)
    codes = sample(tree, tree.calibrate(potentials), records, generator)
    column = {variable: number for number, variable in enumerate(tree.variables)}
    scale = len(layout.scopes) / epsilon
    tables = []
    for scope, shape in zip(layout.scopes, layout.shapes, strict=True):
        cells = np.ravel_multi_index([codes[:, column[v]] for v in scope], shape)
        counts = np.bincount(cells, minlength=int(np.prod(shape)))
        tables.append(counts + np.round(generator.laplace(0.0, scale, counts.size)))
    scales = [scale * 2**0.5] * len(tables)
    return Problem(dict(layout.cardinalities), list(layout.scopes), np.concatenate(tables), scales, float(records))


@cache
def _truth(case: str) -> tuple[JunctionTree, Vector, Calibration]:
    layout, potentials, _ = log_linear(example_network(case))
    tree = JunctionTree.build(layout.cardinalities, layout.scopes)
    return tree, potentials, tree.calibrate(potentials)


def divergence(case: str, potentials: Vector) -> float:
    """Compute KL(true network || distribution with these log-potentials), in nats."""
    tree, own, truth = _truth(case)
    held = truth.marginals > 0
    gap = float(truth.marginals[held] @ (own[held] - potentials[held]))
    return gap - truth.log_partition + tree.calibrate(potentials).log_partition


def table_divergence(case: str, tables: Vector) -> float:
    """Average KL(true table || fitted table) over the tables, in nats; each fitted table is normalised."""
    tree, _, truth = _truth(case)
    starts = tree.layout.offsets[:-1]
    shares = tables / np.repeat(np.add.reduceat(tables, starts), np.diff(tree.layout.offsets))
    held = truth.marginals > 0
    with np.errstate(divide="ignore"):
        return float(truth.marginals[held] @ np.log(truth.marginals[held] / shares[held])) / starts.size


def default_divergence(case: str) -> float:
    """Compute KL(true network || fit of `CollectiveEM` with default options to the same tables), in nats."""
    truth, problem = example_network(case), noisy_problem(case)
    layout = _truth(case)[0].layout
    tables = {scope: np.rint(table).astype(np.int64) for scope, table in layout.tables(problem.observed).items()}
    scales = dict(zip(problem.scopes, (deviation / 2**0.5 for deviation in problem.scales), strict=True))
    made_up = Guarantee.of(1.0, private=False)
    noisy = NoisyMarginals(Schema.from_model(truth), tables, scales, made_up)
    fitted = PrivateMarkovNetwork(truth.edges()) if case == "chain" else DiscreteBayesianNetwork(truth.edges())
    return kl_divergence(truth, fitted.fit(noisy, estimator=CollectiveEM()))


def fresh_process(case: str, repeats: int = 3) -> dict[str, Comparison]:
    """Time fits in fresh processes up to the loss of mbi's 1000 mirror-descent steps of two calibrations each.

    pgmpy's estimator runs once with its default 100 iterations, for at most `PGMPY_SECONDS`.

    Returns
    -------
    dict
        Medians of "seconds", "cpu" (seconds) and "megabytes", the "loss" reached, and KL divergences from the true
        network in nats: "tables", the mean over tables; "distribution", which is not measured for pgmpy, whose tables
        are inconsistent; and "default", the fit of `CollectiveEM` to the same tables, next to mbi's distribution.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "problem.json"
        problem = noisy_problem(case)
        problem.save(path)
        mbi = run("mbi", path)
        tree = JunctionTree.build(problem.cardinalities, problem.scopes)
        scale = tree.layout.per_cell(problem.scales)
        fit = closest_marginals(tree, problem.observed, scale, problem.total, 0.0, 1000)  # compiles on the first call
        steps = int(np.argmax(fit.losses <= mbi.loss)) + 1 if fit.losses[-1] <= mbi.loss else fit.losses.size
        ours = [run("ours", path, str(steps)) for _ in range(repeats)]
        theirs = [mbi, *(run("mbi", path) for _ in range(repeats - 1))]
        try:
            pgmpy = run("pgmpy", path, longest=PGMPY_SECONDS)
        except RuntimeError:
            pgmpy = None

    def median(read: Callable[[Run], float]) -> Comparison:
        return Comparison(
            case,
            statistics.median(map(read, ours)),
            statistics.median(map(read, theirs)),
            pgmpy=math.nan if pgmpy is None else read(pgmpy),
        )

    return {
        "seconds": median(lambda done: done.seconds),
        "cpu": median(lambda done: done.cpu),
        "megabytes": median(lambda done: done.megabytes),
        "loss": median(lambda done: done.loss),
        "tables": median(lambda done: table_divergence(case, done.tables)),
        "distribution": Comparison(case, divergence(case, ours[0].potentials), divergence(case, mbi.potentials)),
        "default": Comparison(case, default_divergence(case), divergence(case, mbi.potentials)),
    }


def _mbi() -> tuple[Any, Any]:
    import jax

    config: Any = jax.config
    config.update("jax_enable_x64", True)
    config.update("jax_enable_compilation_cache", False)
    import mbi

    return jax, mbi


def _measured(problem: Problem) -> tuple[Any, list[Any]]:
    """Convert the problem to a domain and measurements of mbi."""
    _, mbi = _mbi()
    cards = problem.cardinalities
    domain = mbi.Domain(tuple(cards), tuple(cards.values()))
    ends = np.cumsum([domain.size(scope) for scope in problem.scopes])[:-1]
    tables = np.split(problem.observed, ends)
    return domain, [
        mbi.LinearMeasurement(table, scope, scale)
        for table, scope, scale in zip(tables, problem.scopes, problem.scales, strict=True)
    ]


def _seconds(action: Callable[[], Any]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def calibration(case: str, repeats: int = 200) -> Comparison:
    """Time the fastest warm calibration with all marginals; for mbi, by the faster of its two CPU oracles."""
    jax, mbi = _mbi()
    problem = noisy_problem(case)
    tree = JunctionTree.build(problem.cardinalities, problem.scopes)
    potentials = np.random.default_rng(0).normal(size=tree.layout.size)
    domain, _ = _measured(problem)
    arrays = {
        scope: mbi.Factor(domain.project(scope), jax.numpy.asarray(table))
        for scope, table in tree.layout.tables(potentials).items()
    }
    cliques = mbi.clique_utils.maximal_subset(problem.scopes)
    theirs = mbi.CliqueVector(domain, cliques, {clique: arrays[clique] for clique in cliques})
    oracles = [
        jax.jit(oracle)
        for oracle in (mbi.marginal_oracles.message_passing_hugin, mbi.marginal_oracles.message_passing_shafer_shenoy)
    ]
    actions: list[Callable[[], Any]] = [lambda: tree.calibrate(potentials)]
    actions += [partial(lambda oracle: jax.block_until_ready(oracle(theirs)), oracle) for oracle in oracles]
    for action in actions:
        action()
    least = np.min([[_seconds(action) for action in actions] for _ in range(repeats)], axis=0)
    return Comparison(case, float(least[0]), float(least[1:].min()))


class _Stop(Exception):
    pass


def near_optimum(
    case: str, within: float = 1e-3, longest: float = 60.0, estimators: Sequence[str] = ESTIMATORS
) -> tuple[Comparison, dict[str, float]]:
    """Time fits up to a loss within a relative distance of the least loss, after compilation on both sides.

    Returns
    -------
    comparison, seconds
        This package against the best of mbi's estimators, and the seconds of each estimator of mbi (infinite beyond
        `longest`).
    """
    jax, mbi = _mbi()
    problem = noisy_problem(case)
    tree = JunctionTree.build(problem.cardinalities, problem.scopes)
    scale = tree.layout.per_cell(problem.scales)
    best = closest_marginals(tree, problem.observed, scale, problem.total, tolerance=1e-6, max_iter=20_000).losses
    goal = (1 + within) * best[-1]
    needed = int(np.argmax(best <= goal)) + 1
    ours = statistics.median(
        _seconds(lambda: closest_marginals(tree, problem.observed, scale, problem.total, 0.0, needed)) for _ in range(5)
    )
    domain, measured = _measured(problem)
    loss = mbi.marginal_loss.from_linear_measurements(measured, domain)

    def seconds(name: str) -> float:
        estimator = getattr(mbi.estimation, name)()
        begun = [math.inf]

        def look(marginals: Any) -> None:
            if float(loss(marginals)) <= goal or time.perf_counter() - begun[0] > longest:
                raise _Stop

        spent = math.inf
        for iterations in (50, 10**6):  # the first run is for compilation
            try:
                estimator.estimate(domain, loss, known_total=problem.total, iters=iterations, callback_fn=look)
            except _Stop:
                spent = time.perf_counter() - begun[0]
            begun[0] = time.perf_counter()
        jax.clear_caches()  # otherwise compiled programs accumulate until memory mappings run out
        return spent if 0 <= spent <= longest else math.inf

    theirs = {name: seconds(name) for name in estimators}
    fastest = min(theirs.values())
    return Comparison(case, ours, min(fastest, longest), fastest <= longest), theirs


def table_cells(case: str) -> Comparison:
    """Count the cells of all tables of the junction tree."""
    _, mbi = _mbi()
    layout, _, _ = log_linear(example_network(case))
    domain = mbi.Domain(tuple(layout.cardinalities), tuple(layout.cardinalities.values()))
    tree, _ = mbi.junction_tree.make_junction_tree(domain, list(layout.scopes))
    ours = JunctionTree.cliques_of(layout.cardinalities, layout.scopes)
    cells = [domain.size(clique) for clique in mbi.junction_tree.maximal_cliques(tree)]
    return Comparison(case, float(sum(domain.size(clique) for clique in ours)), float(sum(cells)))
