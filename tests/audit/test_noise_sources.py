"""Randomness in the package, found on the syntax tree: private noise comes from OpenDP, nothing else draws it.

Every place that draws with numpy, the standard library or scipy is in ALLOWED, with the reason why no privacy hangs
on it. Aliases are resolved: `from numpy import random as r`, `import numpy as n`, `getattr(numpy, "random")`.
"""

import ast
from pathlib import Path

import pytest

import pgmpy_dp

PACKAGE = Path(pgmpy_dp.__file__).parent

# Where, as "file" or "file:class or function", and why.
ALLOWED = {
    "privacy/noise.py:SimulatedNoise": "for simulation studies; says that it is not private",
    "inference/trees/junction_tree.py": "synthetic records from a released distribution",
    "inference/trees/conditioning.py": "the generator of those",
    "inference/distribution.py": "the generator that distributions are handed",
    "inference/grouped.py": "the generator of records, and of their states within groups",
    "fitting/readings/grouped_networks.py": "simulated counts of states in groups, for bounds of a release's answers",
    "networks/fitted_in_groups.py": "the generator of these",
    "networks/fitted_network.py": "the generator of records of a drawn network",
    "inference/densities.py": "draws of a density that follows from a release, for bounds of means",
    "models/questions.py": "the generator of predictions that are drawn",
    "models/model.py": "the generator of records and draws of any model",
    "networks/network.py": "that of networks",
    "models/mixture_network.py": "that of mixtures",
    "networks/bayesian_network.py": "likewise, and numpy's global generator, which pgmpy's simulation would set",
    "papers/private_bayesian.py": "networks from a posterior that follows from a release",
    "fitting/readings/posterior_networks.py": "networks from what a release leaves open",
    "fitting/checks/misfit.py": "noise of a simulation, the law of what a release misses",
    "fitting/checks/fit_checks.py": "the generator of its records",
    "observed/contradictions.py": "redraws of released tables, for the law of how unlike they are by chance",
    "inference/posterior/hamiltonian.py": "the Markov chain that draws them, its moves and priors",
    "inference/posterior/log_posterior.py": "probes of its curvature",
    "inference/mixtures/fit/noisy_tables.py": "thinning of a release, to choose penalties by",
    "inference/mixtures/refits.py": "simulated releases of a fitted distribution, which is refitted for bounds",
    "inference/mixtures/fit/ensemble.py": "its generator, and those of the members' starts",
    "inference/mixtures/fit/member.py": "starts of an optimiser that sees a release",
    "inference/mixtures/balanced_records.py": "synthetic records from a released distribution",
    "inference/mixtures/children.py:Child": "states of synthetic records given those of another variable",
    "inference/mixtures/boxes.py": "what components of a mixture keep to, so that public rules hold",
    "inference/mixtures/mixture.py": "records from a released distribution",
    "inference/mixtures/record_kernel.py": "which of them exchange values, and which persons change places",
    "inference/mixtures/household_records.py": "synthetic households and persons from a released distribution",
    "models/simulated.py": "numbers within public bins that meet the comparisons of rules, for synthetic records",
    "models/numbers.py": "numbers within public bins, for synthetic records",
    "models/deviations.py": "draws of what a release leaves open of answers",
    "fitting/readings/mixture_fits.py": "generators of fits and of simulated releases, with given seeds",
    "estimators/private_vb.py": "a public random start, before any record is seen",
    "papers/sigmoid_belief_network.py": "likewise, and synthetic records from released weights",
    "estimators/private_lda.py": "likewise",
    "structure/search.py": "records of a graph that was fitted to a release, and edges that a climb tries without",
    "inference/tables/table.py:thinned": "thinning of a release",
    "inference/collective/noise_laws.py": "noise of a simulation, the law of what a release misses",
    "inference/trees/triangulation.py": "a local search over a public graph",
    "papers/foulds_2020.py": "a public random start, as the paper's",
    "evaluation/example_networks.py": "made-up networks",
}
SOURCES = ("random", "numpy.random", "scipy.stats", "numba.np.random", "torch", "jax.random", "secrets", "os.urandom")
# Secure coins, and names of files, ledgers and costs. Where they decide over records, tests/privacy/test_coins.py
# checks their distribution.
NAMES = ("_files.py", "privacy/ledger.py", "privacy/budget.py", "privacy/guarantee.py")
SECURE = {"privacy/coins.py": {"secrets", "os.urandom"}, **{file: {"secrets"} for file in NAMES}}
# Methods of generators, so that a generator handed in as an argument is seen as well.
# fmt: off
DRAWS = {
    "default_rng", "RandomState", "SeedSequence", "PCG64", "rvs", "standard_normal", "normal", "laplace", "gumbel",
    "geometric", "exponential", "standard_exponential", "gamma", "standard_gamma", "dirichlet", "poisson",
    "binomial", "multinomial", "multivariate_normal", "shuffle", "permutation", "permuted", "uniform", "integers",
    "randint", "rand", "randn", "random", "random_sample", "beta", "chisquare", "standard_cauchy", "logistic",
    "lognormal", "triangular", "gauss", "betavariate", "choices", "getrandbits", "randrange",
}
# fmt: on
DISTRIBUTION_ONLY = {"scipy.stats"}  # its distribution functions are no noise; its `rvs` is
# Functions of the same names; that of Dask brings all rows of a unit together; the coefficients of a CPD; and what a
# ledger paid for that decides about later answers.
INNOCENT = ("scipy.stats.beta", "scipy.stats.gamma", "scipy.special.", "math.", "cells.shuffle", "cpd.beta")
INNOCENT += ("self._budget.choices", "whole.choices")


def draws(source: str) -> list[tuple[str, str]]:
    """Where a file draws: enclosing class or function, and what it calls."""
    found: list[tuple[str, str]] = []
    names: dict[str, str] = {}

    def dotted(node) -> str | None:
        if isinstance(node, ast.Name):
            return names.get(node.id, node.id)
        if isinstance(node, ast.Attribute):
            base = dotted(node.value)
            return f"{base}.{node.attr}" if base else f"?.{node.attr}"
        if isinstance(node, ast.Call) and dotted(node.func) in ("getattr", "__import__", "importlib.import_module"):
            parts = [a.value if isinstance(a, ast.Constant) else dotted(a) for a in node.args]
            return ".".join(str(part) for part in parts)
        return None

    def visit(node, place) -> None:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not place:
            place = node.name
        if isinstance(node, ast.Import):
            for alias in node.names:
                names[alias.asname or alias.name.split(".")[0]] = (
                    alias.name if alias.asname else alias.name.split(".")[0]
                )
                report(alias.name, place, imported=True)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                report(f"{node.module}.{alias.name}", place, imported=True)
        elif isinstance(node, ast.Assign) and (name := dotted(node.value)) and name.startswith(SOURCES):
            names.update((target.id, name) for target in node.targets if isinstance(target, ast.Name))
        if isinstance(node, ast.Attribute) and (name := dotted(node)):
            report(name, place)
        if isinstance(node, ast.Call) and (name := dotted(node)):  # getattr and the like
            report(name, place)
        for child in ast.iter_child_nodes(node):
            visit(child, place)

    def report(name, place, imported=False) -> None:
        source = next((s for s in SOURCES if name == s or name.startswith(f"{s}.")), None)
        if source in DISTRIBUTION_ONLY and not name.endswith(".rvs"):
            source = None
        if source and imported and source == name == "secrets":
            source = None  # its use counts
        called = not imported and "." in name and name.rpartition(".")[2] in DRAWS and not name.startswith(INNOCENT)
        if source or called:
            found.append((place, source if source in ("secrets", "os.urandom") else name))

    visit(ast.parse(source), "")
    return found


def files():
    return sorted(path.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py"))


def allowed(file: str, place: str, name: str) -> str | None:
    """The entry that allows a draw."""
    if name in SECURE.get(file, ()):
        return file
    return next((key for key in (file, f"{file}:{place}") if key in ALLOWED), None)


def test_only_named_places_draw_from_anything_but_opendp():
    used, wrong = set(), []
    for file in files():
        for place, name in draws((PACKAGE / file).read_text(encoding="utf-8")):
            entry = allowed(file, place, name)
            used.add(entry)
            if entry is None:
                wrong.append(f"{file}, in {place or 'the module'}: {name}")
    assert not wrong, "not in ALLOWED: " + "; ".join(sorted(set(wrong)))
    assert used >= set(ALLOWED) | set(SECURE), f"no longer needed: {(set(ALLOWED) | set(SECURE)) - used}"


def test_no_file_of_the_wall_is_exempt():
    for key in ALLOWED:
        assert not key.startswith(("data/", "privacy/", "records/")) or key == "privacy/noise.py:SimulatedNoise"


@pytest.mark.parametrize(
    "planted",
    [
        "import numpy as np\nnp.random.laplace(0, 1)",
        "import numpy as n\ng = n.random.default_rng(3)",
        "from numpy import random as r\nr.normal()",
        "from numpy.random import default_rng as make\nmake()",
        "import numpy.random\nnumpy.random.normal()",
        "import random\nrandom.gauss(0, 1)",
        "from random import gauss",
        "import random as quiet",
        "from scipy import stats\nstats.laplace.rvs(size=3)",
        "from scipy.stats import laplace\nlaplace.rvs()",
        "import numpy as np\ngetattr(np, 'random').normal()",
        "import importlib\nimportlib.import_module('numpy.random').normal()",
        "__import__('random').gauss(0, 1)",
        "def f(generator, counts):\n    return counts + generator.laplace(size=3)",
        "import numpy as np\nrandom = np.random\ndraw = random.laplace",
        "import os\nos.urandom(8)",
        "import secrets\nsecrets.randbelow(3)",
        "class A:\n    def f(self):\n        return self._rng.standard_normal(3)",
    ],
)
def test_planted_draws_are_found(planted):
    found = draws(planted)
    assert found
    assert all(allowed("data/dataset.py", place, name) is None for place, name in found)


@pytest.mark.parametrize(
    "innocent",
    [
        "from scipy import stats\nstats.beta.ppf(0.1, 1, 2)",
        "import opendp.measurements as m\nm.make_laplace(d, t, scale=1.0)",
        "noise.discrete_laplace(counts, 1.0)",
        "import secrets",
    ],
)
def test_innocent_code_passes(innocent):
    assert draws(innocent) == []
