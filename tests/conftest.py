"""Networks and records that several tests share."""

import os
import shutil
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path

# Before numpy is loaded, here and in the processes that tests start: of several threads of BLAS on the cores of two
# processes of tests, each waits for the others many times as long as it works.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

sys.path.append(str(Path(__file__).parents[1]))  # for `experiments`, behind an installed package

import numpy as np
import pandas as pd
import pytest
from archives import rewrite
from filelock import FileLock
from numba.core.dispatcher import Dispatcher

from pgmpy_dp.evaluation import bnlearn_network
from pgmpy_dp.networks.network import simulate as simulated_by
from pgmpy_dp.schema import Schema

_compile = Dispatcher.compile


def _compile_once(dispatcher, signature):
    """Compile a function, or load what another process of tests has compiled meanwhile."""
    if not (folder := dispatcher._cache.cache_path):  # where no cache can be written
        return _compile(dispatcher, signature)
    with FileLock(f"{folder}/{dispatcher.__name__}.lock"):
        return _compile(dispatcher, signature)


Dispatcher.compile = _compile_once


TESTS = Path(__file__).parent

# Rooms and files whose tests are for who changes them; README's command runs what a user should see pass.
FULL = {
    TESTS / place
    for place in (
        "experiments", "fitting", "inference", "models", "observed", "papers", "records", "structure", "synthesis",
        # Exact costs, planted bugs and odds of what these draw are in tests/audit, and in data/ what is left there.
        *(f"data/test_{name}.py" for name in (
            "contrasts", "documents", "features", "integer_sums", "partition_selection", "quantiles",
            "regression_cost", "selection", "split_sums", "steps", "sums", "tables",
        )),
        *(f"privacy/test_{name}.py" for name in (
            "blocks", "coins", "cost", "guarantee", "rounding", "sequences", "subsampling",
        )),
        # Files of all versions are in release/test_golden_files.py, and estimators of all kinds in test_base.py.
        *(f"release/test_{name}.py" for name in (
            "coefficients", "contrasts", "draws", "interchange", "joining", "listing", "residuals",
        )),
        *(f"schema/test_{name}.py" for name in (
            "agreement", "bins", "date_bins", "date_format", "dictionary", "fields", "rules",
        )),
        *(f"networks/test_{name}.py" for name in ("elimination", "network", "rules", "tied", "wide")),
        *(f"estimators/test_{name}.py" for name in ("bayesian", "iterated", "public_tables", "several_noises")),
    )
} | {TESTS.parent / "experiments"}  # fmt: skip


def _is_full(path):
    return not FULL.isdisjoint([path, *path.parents])


def pytest_ignore_collect(collection_path, config):
    """Do not read what would not run and was not asked for: that takes each process of tests a quarter of a minute."""
    if collection_path not in FULL or "not full" not in config.option.markexpr:
        return None
    asked = [Path(argument.partition("::")[0]).absolute() for argument in config.args]
    return None if any(collection_path in (path, *path.parents) for path in asked) else True


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(items):
    """Mark the tests of some rooms and files, and let one process run all with Spark, whose start takes longer."""
    for item in items:
        if _is_full(item.path):
            item.add_marker(pytest.mark.full)
    items.sort(key=lambda item: "spark" not in item.name.lower())  # the first half is given to one process


_network = cache(bnlearn_network)


@cache
def _records(name, count, seed):
    return simulated_by(_network(name), count, seed)


def _together(code, path):
    """What three processes print that are handed a path, say "ready" and go on together at a line of input."""
    command = [sys.executable, "-W", "ignore", "-c", code, str(path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    processes = [subprocess.Popen(command, **pipes) for _ in range(3)]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    return [process.communicate(timeout=60)[0] for process in processes]


@pytest.fixture
def rewritten():
    """Function: the path of a release's file, what changes its descriptor, and its rows; its hash is right again."""
    return rewrite


@pytest.fixture
def started_together():
    """Function: code and a path to what three processes print that run it at the same time."""
    return _together


@pytest.fixture(scope="session")
def smokers():
    """Schema and records of three variables, of which one depends on one of the others."""
    generator = np.random.default_rng(0)
    smoke = generator.random(4000) < 0.3
    lung = generator.random(4000) < np.where(smoke, 0.4, 0.1)
    columns = {"smoke": np.where(smoke, "yes", "no"), "lung": np.where(lung, "yes", "no")}
    records = pd.DataFrame({**columns, "site": generator.integers(0, 3, 4000)})
    return Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"], "site": [0, 1, 2]}), records


@pytest.fixture
def bnlearn():
    """Function: name to network of the bnlearn repository."""
    return _network


@pytest.fixture
def simulate():
    """Function: name, number of records and seed to records drawn from that network."""
    return _records


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Headless Chromium; the test is skipped where there is none, unless REQUIRE_BROWSER is set."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (chromium and driver and find_spec("selenium")):
        assert "REQUIRE_BROWSER" not in os.environ, "no chromium, chromedriver or selenium"
        pytest.skip("needs chromium, chromedriver and selenium")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-component-update",
        "--disable-background-networking", "--disable-sync", f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
        "--window-size=1000,900",
    ):  # fmt: skip
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    started = webdriver.Chrome(options=options, service=Service(driver))
    started.get("about:blank")
    yield started
    started.quit()
