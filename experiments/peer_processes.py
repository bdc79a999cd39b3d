"""Benchmarks in which each library fits a model to noisy tables in a separate process.

The process saves the fitted tables, in the problem's order, and the log-potentials if it has a distribution. It prints
its loss and its peak memory.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pgmpy_dp.inference.tables.table import Vector

_MAX_BYTES = 8 * 2**30

# The process sets its own limits: a hook between fork and exec would fork a process that runs JAX threads.
_LIMITS = """
import resource
resource.setrlimit(resource.RLIMIT_CPU, ({longest}, {longest} + 1))
resource.setrlimit(resource.RLIMIT_AS, ({most_bytes}, {most_bytes}))
"""

_START = """
import json, re, sys, warnings
warnings.filterwarnings("ignore")
import numpy as np
problem = json.load(open(sys.argv[1]))
cards, scopes, total = problem["cardinalities"], [tuple(scope) for scope in problem["scopes"]], problem["total"]
observed = np.array(problem["observed"])
"""

_OURS = """
from pgmpy_dp.inference import JunctionTree
from experiments.closest import closest_marginals
tree = JunctionTree.build(cards, scopes)
fit = closest_marginals(tree, observed, tree.layout.per_cell(problem["scales"]), total, 0.0, int(sys.argv[3]))
tables, potentials = total * fit.marginals, fit.potentials
"""

_MBI = """
import jax
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_enable_compilation_cache", False)
import mbi
domain = mbi.Domain(tuple(cards), tuple(cards.values()))
ends = np.cumsum([domain.size(scope) for scope in scopes])[:-1]
measured = [
    mbi.LinearMeasurement(table, scope, scale)
    for table, scope, scale in zip(np.split(observed, ends), scopes, problem["scales"])
]
model = mbi.estimation.MirrorDescent().estimate(domain, measured, known_total=total, iters=1000)
tables = np.concatenate([np.asarray(model.project(scope).datavector()) for scope in scopes])
held = dict(model.potentials.tables)
flat = lambda scope: held[scope].datavector() if scope in held else np.zeros(domain.size(scope))
potentials = np.concatenate([np.asarray(flat(scope)) for scope in scopes])
"""

# The estimator counts marginals from records; here the noisy marginals replace them, and the records only give N.
_PGMPY = """
import pandas as pd
from pgmpy.estimators import MirrorDescentEstimator
from pgmpy.factors import FactorDict
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteMarkovNetwork
network = DiscreteMarkovNetwork()
network.add_nodes_from(cards)
shapes = [[cards[variable] for variable in scope] for scope in scopes]
ends = np.cumsum([np.prod(shape) for shape in shapes])[:-1]
noisy = {}
for scope, shape, table in zip(scopes, shapes, np.split(observed, ends)):
    network.add_edges_from((a, b) for number, a in enumerate(scope) for b in scope[number + 1 :])
    network.add_factors(DiscreteFactor(scope, shape, np.zeros(table.size)))
    noisy[scope] = DiscreteFactor(scope, shape, table)
FactorDict.from_dataframe = lambda df, marginals: FactorDict(noisy)
records = pd.DataFrame({variable: np.arange(int(total)) % states for variable, states in cards.items()})
tree = MirrorDescentEstimator(network, records).estimate(scopes, show_progress=False)
tables = []
for scope in scopes:
    clique = next(clique for clique in tree.nodes() if set(scope) <= set(clique))
    table = tree.get_factors(clique).marginalize([v for v in clique if v not in scope], inplace=False)
    tables.append(table.values.transpose([table.variables.index(v) for v in scope]).ravel())
tables, potentials = np.concatenate(tables), []
"""

_END = """
scales = np.repeat(problem["scales"], [np.prod([cards[variable] for variable in scope]) for scope in scopes])
np.savez(sys.argv[2], tables=tables, potentials=potentials)
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(json.dumps([float((((tables - observed) / scales) ** 2).sum() / 2), peak]))
"""

_PROGRAMS = {"ours": _OURS, "mbi": _MBI, "pgmpy": _PGMPY}


@dataclass(frozen=True)
class Run:
    """Result of one benchmark process.

    Attributes
    ----------
    seconds, cpu : float
        Wall-clock seconds, and CPU seconds of all threads.
    loss : float
    megabytes : float
        Peak memory.
    tables : ndarray
        Fitted tables, in records.
    potentials : ndarray
        Log-potentials; empty if the program has none.
    """

    seconds: float
    cpu: float
    loss: float
    megabytes: float
    tables: Vector
    potentials: Vector


def _environment() -> dict[str, str]:
    """Return an environment in which a child imports the same modules, whatever its working folder contains."""
    searched = os.pathsep.join(sys.path)
    seed = "0"  # pgmpy's junction trees depend on it
    return {**os.environ, "PYTHONPATH": searched, "PYTHONSAFEPATH": "1", "PYTHONHASHSEED": seed}


def run(library: str, problem: Path, *arguments: str, longest: int | None = None) -> Run:
    """Fit a saved problem in a separate process.

    Parameters
    ----------
    library : {"ours", "mbi", "pgmpy"}
    problem : Path
    *arguments : str
        Arguments of the program.
    longest : int, optional
        CPU seconds after which the process is ended. If given, its memory is also limited to 8 GiB.

    Raises
    ------
    RuntimeError
        If the process fails or reaches a limit.
    """
    limits = "" if longest is None else _LIMITS.format(longest=longest, most_bytes=_MAX_BYTES)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryDirectory() as folder:
        fit = Path(folder) / "fit.npz"
        command = [sys.executable, "-W", "ignore", "-c", limits + _START + _PROGRAMS[library] + _END]
        start = time.perf_counter()
        process = subprocess.Popen(
            [*command, str(problem), str(fit), *arguments],
            stdout=out,
            stderr=None if longest is None else subprocess.DEVNULL,
            env=_environment(),
        )
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"the benchmark process of {library} ended with status {process.returncode}")
        out.seek(0)
        printed = out.read().decode().strip().splitlines()[-1]
        loss, megabytes = json.loads(printed)  # the process's own peak: getrusage's includes its parent's
        with np.load(fit) as held:
            return Run(seconds, used.ru_utime + used.ru_stime, loss, megabytes, held["tables"], held["potentials"])
