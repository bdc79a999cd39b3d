"""Kernels are compiled once a machine, for no problem in particular, wherever the package lies."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event
from tqdm import tqdm

from pgmpy_dp import _compiled, _progress
from pgmpy_dp.inference import FactorGraph, JunctionTree
from pgmpy_dp.inference.trees import elimination_kernel, kernel

CODE = """
import numpy as np
from pgmpy_dp.inference.trees import kernel
buffer = np.empty(2)
assert kernel.exponentiate(np.zeros(2), np.array([0, 2]), buffer) == (0.0, False) and (buffer == 1.0).all()
print(kernel.__file__, sum(kernel.exponentiate.stats.cache_hits.values()))
"""


def run(folder: Path, cache: Path) -> tuple[str, int]:
    """Where the kernel was imported from, and whether it came from a cache."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(cache), "HOME": str(cache)}
    environment.pop("NUMBA_CACHE_DIR", None)
    command = [sys.executable, "-W", "ignore", "-c", CODE]
    done = subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=True)
    path, hits = done.stdout.rsplit(maxsplit=1)
    return path, int(hits)


@pytest.fixture
def read_only(tmp_path):
    """The package where nothing can be written: a file stands in the place of its cache, which stops even root."""
    package = Path(kernel.__file__).parents[2]
    shutil.copytree(package, tmp_path / "pgmpy_dp", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "pgmpy_dp/inference/trees/__pycache__").write_text("")
    return tmp_path


def test_a_read_only_install_is_compiled_once_a_user(read_only):
    path, hits = run(read_only, read_only / "cache")
    assert (Path(path), hits) == (read_only / "pgmpy_dp/inference/trees/kernel.py", 0)
    assert run(read_only, read_only / "cache") == (path, 1)


def test_without_any_place_to_write_it_still_runs(read_only):
    (read_only / "taken").write_text("")
    assert run(read_only, read_only / "taken")[1] == 0


CALIBRATION = """
import numpy as np
from pgmpy_dp.inference import JunctionTree
generator = np.random.default_rng(0)
tree = JunctionTree.build({"a": 40, "b": 30, "c": 50}, [("a", "b"), ("b", "c")])
found = []
for _ in range(20):
    calibration = tree.calibrate(generator.normal(size=tree.layout.size))
    found += [calibration.log_partition, *tree.covariance_product(calibration, generator.normal(size=tree.layout.size))]
found = np.array(found).tobytes().hex()
"""


def test_results_are_the_same_on_every_processor(tmp_path):
    """Compiled for the least of its kind, with narrower registers and no fused products, to the last bit."""

    settings = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", f"{CALIBRATION}\nprint(found)"]
    there = subprocess.run(command, env=os.environ | settings, capture_output=True, text=True, check=True).stdout
    exec(CALIBRATION, here := {})
    assert there.strip() == here["found"]


def test_nothing_is_compiled_for_a_problem():
    """Neither for its size, nor for potentials that are strided, read-only or of single precision."""
    kernels = (kernel.exponentiate, kernel.calibrate, kernel.covariance_product, kernel.loopy_sweep)
    kernels += (elimination_kernel.eliminate,)

    def versions_after(cards, scopes, *make):
        tree, graph = JunctionTree.build(cards, scopes), FactorGraph.build(cards, scopes)
        for potentials in (of(tree.layout.size) for of in make):
            calibration = tree.calibrate(potentials)
            tree.covariance_product(calibration, potentials)
            graph.calibrate(potentials)
        return [len(function.signatures) for function in kernels]

    def read_only(size):
        potentials = np.zeros(size)
        potentials.flags.writeable = False
        return potentials

    once = versions_after({"a": 2}, [("a",)], np.zeros)  # other compiled functions may have versions of their own
    kinds = (np.zeros, read_only, lambda size: np.zeros((size, 2))[:, 0], lambda size: np.zeros(size, np.float32))
    again = versions_after({"a": 3, "b": 2, "c": 2}, [("a", "b"), ("b", "c"), ("a", "c")], *kinds)
    assert again == once


def test_a_bar_counts_the_loops_that_are_compiled(monkeypatch):
    written = io.StringIO()
    terminal = {"disable": False, "file": written, "delay": 0, "mininterval": 0}
    monkeypatch.setattr(_progress, "tqdm", lambda *given, **options: tqdm(*given, **options | terminal))

    @numba.njit
    def doubled(value):
        return 2 * value

    progress = _compiled._Progress()
    with event.install_listener("numba:compile", progress):
        assert doubled(1.0) == doubled(1.0)
        assert progress.bar.n == 1
        doubled(1)  # for other types, once more
        assert progress.bar.n == 2
    assert "Compiling, once on this machine: 1loop" in written.getvalue()
    assert any(isinstance(listener, _compiled._Progress) for listener in event._registered["numba:compile"])
