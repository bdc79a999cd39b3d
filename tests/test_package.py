"""What importing the package brings with it, and what a notebook shows of each thing."""

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

import pgmpy_dp as dp


def printed(code, *arguments, **environment):
    """What a process of Python prints that runs this code."""
    command, environment = [sys.executable, "-W", "ignore", "-c", code, *arguments], os.environ | environment
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()


def test_import_leaves_the_heavy_libraries_alone():
    """numba, OpenDP, dp-accounting, matplotlib and pgmpy's inference load when they are first needed."""
    code = (
        "import sys, pgmpy_dp as dp\n"
        "[getattr(dp, name) for name in dp.__all__ if name != 'VariableElimination']\n"  # which derives from pgmpy's
        "heavy = 'numba', 'opendp', 'dp_accounting', 'matplotlib', 'pgmpy.inference'\n"
        "print([name for name in heavy if name in sys.modules])\n"
        "dp.plotting.plot_bounds, dp.evaluation.compare, dp.exports.load_network"  # rooms come with the package
    )
    assert printed(code) == "[]"


def test_importing_the_package_alone_imports_nothing_slow():
    code = "import sys, pgmpy_dp\nprint([m for m in ('numpy', 'pandas', 'pgmpy') if m in sys.modules])"
    assert printed(code) == "[]"


def test_an_analyst_gets_from_a_release_to_synthetic_records_without_pgmpy(tmp_path):
    schema = dp.Schema({"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y", "z"]})
    counts = {("a", "b"): [[40, 10], [20, 30]], ("b", "c"): [[30, 20, 10], [5, 5, 30]]}
    data = dp.PrivateDataset(counts, schema, dp.PrivacyBudget(1.0))
    data.measure([("a", "b"), ("b", "c")], epsilon=1.0).save(tmp_path / "release.zip")
    code = """
import sys
import numpy as np
import pgmpy_dp as dp
from pgmpy_dp.inference import JunctionTree, LaplaceNoise, counts_by_dual, sample
noisy = dp.NoisyMarginals.load(sys.argv[1])
tree = JunctionTree.build(noisy.schema.cardinalities(), noisy.cliques)
observed = tree.layout.flatten(noisy.tables.values())
assert "scipy.optimize" not in sys.modules
noise = LaplaceNoise(observed.astype(float), tree.layout.per_cell([*noisy.variances.values()]))
fit = counts_by_dual(tree, np.zeros(tree.layout.size), noise, noisy.total)
codes = sample(tree, tree.calibrate(fit.potentials), 1000, np.random.default_rng(0))
assert codes.shape == (1000, 3)
print([m for m in ("pgmpy", "pandas", "opendp") if m in sys.modules])
"""
    assert printed(code, str(tmp_path / "release.zip")) == "[]"


def test_public_names_are_there_and_errors_are_value_errors():
    assert all(hasattr(room, name) for room in (dp, dp.papers) for name in room.__all__)
    assert all(issubclass(getattr(dp, name), ValueError) for name in dp.__all__ if name.endswith("Error"))


@pytest.mark.parametrize(
    ("name", "meant"),
    [("PrivatSGD", "papers.PrivateSGD"), ("NaiveMLE", "papers.NaiveMLE"), ("Privatedataset", "PrivateDataset")],
)
def test_a_name_that_is_not_known_is_answered_with_the_name_that_was_meant(name, meant):
    with pytest.raises(AttributeError, match=f"did you mean '{meant}'"):
        getattr(dp, name)


def test_fits_do_not_depend_on_the_hash_seed(capsys):
    code = (
        "import pandas as pd, pgmpy_dp as dp\n"
        "from pgmpy.models import DiscreteBayesianNetwork\n"
        "states = dict.fromkeys('abcd', ['x', 'y', 'z'])\n"
        "records = pd.DataFrame({v: [states[v][(i * k) % 3] for i in range(60)] for k, v in enumerate('abcd', 1)})\n"
        "data = dp.PrivateDataset(records, dp.Schema(states), dp.PrivacyBudget(9.0), noise=dp.SimulatedNoise(1))\n"
        "edges = [('a', 'b'), ('b', 'c'), ('a', 'c'), ('c', 'd')]\n"
        "network = DiscreteBayesianNetwork(edges).fit(data, estimator=dp.CollectiveEM(epsilon=1.0))\n"
        "markov = dp.PrivateMarkovNetwork(edges).fit(data, estimator=dp.CollectiveEM(epsilon=1.0))\n"
        "tables = [*network.get_cpds(), *markov.get_factors()]\n"
        "print([table.values.tobytes().hex() for table in tables])"
    )
    exec(code, {})  # with the seed of this process
    other = "7" if os.environ.get("PYTHONHASHSEED") == "0" else "0"
    assert capsys.readouterr().out.strip() == printed(code, PYTHONHASHSEED=other)


def test_no_data_is_shipped():
    """The demonstration's records come with statsmodels, under its licence; a file of data here would need its own."""
    package = Path(dp.__file__).parent
    others = {path.name for path in package.rglob("*") if path.is_file() and path.parent.name != "__pycache__"}
    others = {name for name in others if not name.endswith((".py", ".pyi", ".js"))}
    assert others == {"py.typed", "page.html.j2", "promise.html.j2", "page.html", "page.css"}


HOSTILE = "<script>"


def test_everything_has_a_table_and_names_are_escaped():
    schema = dp.Schema({HOSTILE: ["yes", "no"], "lung": ["yes", HOSTILE]})
    frame = pd.DataFrame({HOSTILE: ["yes", "no"] * 500, "lung": ["yes", HOSTILE, HOSTILE, HOSTILE] * 250})
    budget = dp.PrivacyBudget(2.0, 1e-6)
    noisy = dp.PrivateDataset(frame, schema, budget).measure([(HOSTILE, "lung")], 1.0)
    network = dp.PrivateBayesianNetwork([(HOSTILE, "lung")]).fit(noisy)
    answer = network.query(["lung"], {HOSTILE: "yes"}, interval=0.9)
    markov = dp.PrivateMarkovNetwork([(HOSTILE, "lung")]).fit(noisy)
    for shown in (schema, budget, noisy, noisy.guarantee, network, markov, answer):
        html = shown._repr_html_()
        assert "<table>" in html
        assert HOSTILE not in html
    assert answer._repr_html_().count("<svg") == 2
    assert "epsilon = 1.0" in noisy._repr_html_()
    assert type(answer.round(2)) is pd.DataFrame
