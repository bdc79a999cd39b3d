"""The analyst's half says nothing of the records that the release does not say.

Two neighbouring data sets are forced to the same release, by a noise source that returns the same tables for both.
All that is said and kept afterwards must then be equal byte for byte: log records, warnings, standard output and
error, exceptions, reprs, attributes, saved files. The owner's side is recorded as well, up to the release.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import io
import logging
import pickle
import warnings
import zlib

import numpy as np
import pandas as pd
import pytest
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.evaluation import kl_divergence

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y", "z"], "n": dp.Bins(range(6))})
EDGES = [("a", "b"), ("b", "c")]
CLIQUES = [("a", "b"), ("b", "c")]


class SameTables:
    """Noise that hides the counts altogether."""

    private = True  # so that the guarantee's text is that of a private release

    def discrete_laplace(self, counts, scale):
        return np.array([zlib.crc32(f"{counts.size} {i} {scale}".encode()) % 900 - 100 for i in range(counts.size)])

    discrete_gaussian = discrete_laplace

    def __init__(self):
        self.drawn = 0

    def coins(self, rate, size):
        return np.ones(size, dtype=bool)

    def choose(self, chosen, size):
        return np.arange(size) < chosen

    def least(self, scores, scale):
        return 0

    def below(self, bound):
        self.drawn += 1
        return int.from_bytes(hashlib.sha256(str(self.drawn).encode()).digest()) % bound


class Said:
    """Everything said while the block runs."""

    def __init__(self):
        self.lines = []

    def note(self, name, value):
        self.lines.append(f"{name}: {value}")

    def attempt(self, name, call):
        try:
            self.note(name, repr(call()))
        except Exception as error:
            self.note(
                name, f"{type(error).__name__}: {error} / {error.__cause__!r} / {getattr(error, '__notes__', None)}"
            )

    @contextlib.contextmanager
    def recording(self):
        output, errors, logged = io.StringIO(), io.StringIO(), io.StringIO()
        handler = logging.StreamHandler(logged)
        handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
        root = logging.getLogger()
        loggers = [root, *(logging.getLogger(name) for name in list(logging.root.manager.loggerDict))]
        before = [(logger, logger.level) for logger in loggers]
        for logger in loggers:
            logger.setLevel(
                logging.WARNING if logger.name.startswith("numba") else logging.DEBUG
            )  # it tells of compiling
        root.addHandler(handler)
        pgmpy_logger = logging.getLogger("pgmpy")
        if not pgmpy_logger.propagate:
            pgmpy_logger.addHandler(handler)
        try:
            with (
                contextlib.redirect_stdout(output),
                contextlib.redirect_stderr(errors),
                warnings.catch_warnings(record=True) as warned,
            ):
                warnings.simplefilter("always")
                yield
        finally:
            root.removeHandler(handler)
            pgmpy_logger.removeHandler(handler)
            for logger, level in before:
                logger.setLevel(level)
        self.note("log", logged.getvalue())
        self.note("output", output.getvalue())
        self.note("errors", errors.getvalue())
        self.note("warnings", [f"{w.category.__name__} {w.message} {w.filename} {w.lineno}" for w in warned])


def sample(neighbours):
    return {"sampling_rate": 1.0} if neighbours == "add_remove" else {"batch_size": 1}


def behind_the_wall(neighbours):
    """Estimators that go through the wall themselves. The priors are so strong that no draw depends on a record."""
    steps = {"delta": 1e-2, "steps": 2, "sampling_rate": None, **sample(neighbours)}
    stages = dp.DataDependentAllocation(sampling_rate=1.0)
    directed, undirected = (lambda: DiscreteBayesianNetwork(EDGES)), (lambda: dp.PrivateMarkovNetwork(EDGES))
    prior = {"prior_type": "BDeu", "equivalent_sample_size": 2.0**60}
    yield dp.PrivateMLE(1.0, allocation=stages), directed(), 0.0
    yield dp.PrivateBayesianEstimator(epsilon=1.0, release="fourier"), directed(), 0.0
    yield dp.PosteriorSampler(1.0, draws=2, split=True, **prior), directed(), 0.0
    yield dp.ExponentialMAP(1.0, **prior), directed(), 0.0
    yield dp.PrivateVB(1.0, **steps), directed(), 1e-2
    yield dp.PrivateSGD(1.0, statistic="features", **steps), undirected(), 1e-2


def broken(estimator):
    changed = copy.copy(estimator)
    changed.epsilon = float("nan")
    return changed


def tables_of(model):
    factors = model.get_cpds() if hasattr(model, "get_cpds") else model.get_factors()
    return [(factor.variables, factor.state_names, factor.values.tobytes()) for factor in factors]


def told(records, neighbours, folder, quirk=lambda records: None):
    """Both halves of the work, and everything that was said."""
    said = Said()
    folder.mkdir()
    with contextlib.chdir(folder), said.recording():
        budget = dp.PrivacyBudget(8.0, 1e-6)
        data = dp.PrivateDataset(records, SCHEMA, budget, neighbours=neighbours, noise=SameTables())
        said.note("data", repr(data))
        quirk(records)
        said.attempt("refused", lambda: data.measure([("a", "d")], 1.0))
        said.attempt("too much", lambda: data.measure(CLIQUES, 99.0))
        noisy = data.measure(CLIQUES, 1.0)
        said.attempt("gaussian", lambda: data.measure(CLIQUES, 1.0, delta=1e-6, mechanism="gaussian"))
        said.note("ledger", (budget, budget.history, budget.spent, budget.remaining))
        noisy.save("release.zip")
        release = dp.NoisyMarginals.load("release.zip")
        said.note(
            "release", (repr(release), release == noisy, release.total, release.total_variance, release.variances)
        )
        for estimator, model in (
            (dp.PrivateMLE(), DiscreteBayesianNetwork(EDGES)),
            (dp.CollectiveEM(max_iter=5), DiscreteBayesianNetwork(EDGES)),
            (dp.CollectiveEM(max_iter=5), dp.PrivateMarkovNetwork(EDGES)),
            (dp.CollectiveEM(inference="loopy", max_iter=5), dp.PrivateMarkovNetwork(EDGES)),
            (dp.NaiveMLE(max_iter=20), dp.PrivateMarkovNetwork(EDGES)),
        ):
            model.fit(release, estimator=estimator)
            kept = {name: value for name, value in vars(estimator).items() if name not in ("parameters_", "release_")}
            said.note("estimator", (estimator, sorted(map(str, kept.items())), estimator.release_ == release))
            said.note("tables", tables_of(model))
            said.note("answer", VariableElimination(model).query(["a"], evidence={"c": "x"}, show_progress=False))
            said.attempt("unknown", lambda model=model: VariableElimination(model).query(["q"], show_progress=False))
            said.note("self", kl_divergence(model, model) < 1e-9)
            if isinstance(model, dp.PrivateMarkovNetwork):
                said.note("query", model.query(["b"], {"a": "y"}).values.tobytes())
                said.note("records", model.simulate(5, seed=3).to_csv())
                said.attempt("unknown state", lambda model=model: model.query(["b"], {"a": "w"}))
                model.save("model.json")
                said.note("file", (folder / "model.json").read_bytes())
                said.note("loaded", tables_of(dp.PrivateMarkovNetwork.load("model.json")))
            said.note("pickle", pickle.loads(pickle.dumps(model)).nodes())
        for estimator, model, delta in behind_the_wall(neighbours):
            budget = dp.PrivacyBudget(1.0, delta)
            data = dp.PrivateDataset(records, SCHEMA, budget, neighbours=neighbours, noise=SameTables())
            model.fit(data, estimator=estimator)
            kept = {n: v for n, v in vars(estimator).items() if n not in ("parameters_", "release_", "stage1_release_")}
            said.note("estimator", (estimator, sorted(map(str, kept.items()))))
            said.note("tables", tables_of(model))
            said.note("ledger", (budget, budget.history))
            said.attempt("nothing left", lambda data=data, e=estimator, m=model: m.fit(data, estimator=e))
            said.attempt("bad epsilon", lambda data=data, e=estimator, m=model: m.fit(data, estimator=broken(e)))
        edges = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(1.0), neighbours=neighbours, noise=SameTables())
        said.note("bins", edges.quantile_bins("n", 3, 0.5))
        said.attempt("no bins", lambda: edges.quantile_bins("a", 3, 0.5))
        said.note("coefficients", edges.measure_coefficients(CLIQUES, 0.5))
        plan = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(1.0, 1e-2), neighbours, SameTables()).plan(
            1, epsilon=1.0, delta=1e-2, variables=["a"], **sample(neighbours)
        )
        said.note("plan", plan)
        said.note("sum", plan.noisy_sum(lambda codes: codes, 1.0))
        said.attempt("no step", lambda: plan.noisy_sum(lambda codes: codes, 1.0))
        said.attempt("paid for", lambda: dp.PrivateMLE(epsilon=1.0).fit(DiscreteBayesianNetwork(EDGES), release))
        said.attempt("not measured", lambda: dp.PrivateMLE().fit(DiscreteBayesianNetwork([("a", "c")]), release))
        said.attempt("no records", lambda: dp.PrivateMLE().fit(DiscreteBayesianNetwork(EDGES), data))
        said.note("files", [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())])
    return "\n".join(line.replace(str(folder), "FOLDER") for line in said.lines)


def frame(rows):
    made = pd.DataFrame(rows, columns=["a", "b", "c"], dtype="str")
    return made.assign(n=made["a"].map({"x": 0.5, "y": 4.5}).astype("float64"))


ROWS = [("x", "y", "z"), ("y", "y", "x"), ("x", "x", "y")] * 5
PAIRS = {
    "one more": ("add_remove", ROWS, [*ROWS, ("y", "x", "z")]),
    "the first": ("add_remove", [], [("x", "x", "x")]),
    "replaced": ("replace_one", [*ROWS, ("x", "x", "x")], [*ROWS, ("y", "y", "z")]),
    "the only one replaced": ("replace_one", [("x", "x", "x")], [("y", "y", "y")]),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_equal_releases_leave_equal_traces(pair, tmp_path):
    neighbours, one, other = pair
    assert told(frame(one), neighbours, tmp_path / "one") == told(frame(other), neighbours, tmp_path / "other")


@pytest.mark.parametrize(
    "quirk",
    [
        lambda records: logging.getLogger("pgmpy").debug("%d rows", len(records)),
        lambda records: logging.getLogger("pgmpy_dp.deep").info("%d rows", len(records)),
        lambda records: warnings.warn(f"{len(records)} rows", stacklevel=1),
        lambda records: print(len(records)),
    ],
)
def test_a_planted_trace_is_seen(quirk, tmp_path):
    neighbours, one, other = PAIRS["one more"]
    traces = [told(frame(rows), neighbours, tmp_path / str(len(rows)), quirk) for rows in (one, other)]
    assert traces[0] != traces[1]
    assert "15 rows" in traces[0] or "output: 15" in traces[0]
