"""The analyst's half says nothing of the records that the release does not say.

Two neighbouring data sets are forced to the same release, by a noise source that returns the same tables for both.
All that is said and kept afterwards must then be equal byte for byte: log records, warnings, standard output and
error with its progress bars, exceptions, reprs, attributes, saved files. So must what the owner's side says up to the
release.
"""

import contextlib
import io
import itertools
import logging
import math
import pickle
import sys
import warnings
import zlib
from functools import partial
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from noises import Noted
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork
from tqdm import tqdm

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.posterior import LikelyRows, PosteriorRows
from pgmpy_dp.data.mechanisms.regression import PosteriorRegressions
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.evaluation.auditing import Observer
from pgmpy_dp.privacy import OPENDP_NOISE

pytestmark = pytest.mark.full

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y", "z"], "n": dp.Bins(range(6))})
EDGES = [("a", "b"), ("b", "c")]
CLIQUES = [("a", "b"), ("b", "c")]


class SameTables(Noted):
    """Noise that hides the counts altogether."""

    def discrete_laplace(self, counts, scale):
        return np.array([zlib.crc32(f"{counts.size} {i} {scale}".encode()) % 900 - 100 for i in range(counts.size)])

    discrete_gaussian = discrete_laplace


SAME = partial(SameTables, private=True)  # so that the guarantee's text is that of a private release


def same_draws(original, public):
    """A mechanism that draws: from the records, which is not handed out, and then from what is public."""

    def draw(mechanism, quote, known, private, noise):
        secret, simulated = (OPENDP_NOISE, dp.SimulatedNoise(0)) if isinstance(noise, SameTables) else (noise, noise)
        original(mechanism, quote, known, private, secret)
        return original(mechanism, quote, known, public(private), simulated)

    return draw


SAME_DRAWS = [
    (PosteriorRows, "draw", lambda counts: {family: 0 * table for family, table in counts.items()}),
    (LikelyRows, "draw", lambda counts: {family: 0 * table for family, table in counts.items()}),
    (PosteriorRegressions, "draw", lambda numbers: {variable: column[:0] for variable, column in numbers.items()}),
]


class Said:
    """Everything said while the block runs."""

    def __init__(self):
        self.lines = []

    def note(self, name, value):
        self.lines.append(f"{name}: {value}")

    def attempt(self, name, call):
        try:
            self.note(name, type(call()).__name__)
        except Exception as error:
            self.note(
                name, f"{type(error).__name__}: {error} / {error.__cause__!r} / {getattr(error, '__notes__', None)}"
            )

    @contextlib.contextmanager
    def recording(self):
        output, errors, logged = io.StringIO(), io.StringIO(), io.StringIO()
        handler = logging.StreamHandler(logged)
        handler.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))
        logging.getLogger("numba")  # which may not be imported yet
        root = logging.getLogger()
        loggers = [root, *(logging.getLogger(name) for name in list(logging.root.manager.loggerDict))]
        before = [(logger, logger.level) for logger in loggers]
        for logger in loggers:
            # Compiling, the tests' own lock of it, and Spark's client, which speaks whenever garbage is collected.
            other = logger.name.startswith(("numba", "filelock", "py4j"))
            logger.setLevel(logging.WARNING if other else logging.DEBUG)
        root.addHandler(handler)
        pgmpy_logger = logging.getLogger("pgmpy")
        if not pgmpy_logger.propagate:
            pgmpy_logger.addHandler(handler)
        try:
            # A second passes whenever a progress bar looks at the clock, and names of costs and ledgers are counted, so
            # that neither their number nor their order may follow the records.
            names = itertools.count()

            def named(size):
                return f"{next(names):0{2 * size}x}"

            with (
                contextlib.redirect_stdout(output),
                contextlib.redirect_stderr(errors),
                mock.patch("tqdm.std.time", side_effect=map(float, itertools.count())),
                mock.patch("secrets.token_hex", named),
                mock.patch("pgmpy_dp.privacy.budget.token_hex", named),
                contextlib.ExitStack() as stack,
                warnings.catch_warnings(record=True) as warned,
            ):
                for room, name, public in SAME_DRAWS:
                    stack.enter_context(mock.patch.object(room, name, same_draws(getattr(room, name), public)))
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


def tables_of(model):
    factors = model.get_cpds() if hasattr(model, "get_cpds") else model.get_factors()
    return [(factor.variables, factor.state_names, factor.values.tobytes()) for factor in factors]


def releases(said, records, neighbours, folder):
    """A release, its file, and all that is fitted to it."""
    budget = dp.PrivacyBudget(8.0, 1e-6)
    data = dp.PrivateDataset(records, SCHEMA, budget, neighbours=neighbours, noise=SAME())
    said.note("data", repr(data))
    said.attempt("refused", lambda: data.measure([("a", "d")], 1.0))
    said.attempt("too much", lambda: data.measure(CLIQUES, 99.0))
    noisy = data.measure(CLIQUES, 1.0)
    said.attempt("gaussian", lambda: data.measure(CLIQUES, 1.0, delta=1e-6, mechanism="gaussian"))
    said.note("ledger", (budget, budget.history, budget.spent, budget.remaining))
    noisy.save("release.zip")
    release = dp.NoisyMarginals.load("release.zip")
    said.note("release", (repr(release), release == noisy, release.total, release.total_variance, release.variances))
    for estimator, model in (
        (dp.PrivateMLE(), DiscreteBayesianNetwork(EDGES)),
        (dp.CollectiveEM(max_iter=5), DiscreteBayesianNetwork(EDGES)),
        (dp.CollectiveEM(max_iter=5), dp.PrivateMarkovNetwork(EDGES)),
        (dp.CollectiveEM(inference="loopy", max_iter=5), dp.PrivateMarkovNetwork(EDGES)),
        (dp.papers.NaiveMLE(max_iter=20), dp.PrivateMarkovNetwork(EDGES)),
        (dp.PosteriorMean(draws=20), DiscreteBayesianNetwork(EDGES)),
    ):
        model.fit(release, estimator=estimator)
        kept = {name: value for name, value in vars(estimator).items() if name not in ("parameters_", "release_")}
        said.note("estimator", (estimator, sorted(map(str, kept.items()))))
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
    said.attempt("paid for", lambda: dp.PrivateMLE(epsilon=1.0).fit(DiscreteBayesianNetwork(EDGES), release))
    said.attempt("not measured", lambda: dp.PrivateMLE().fit(DiscreteBayesianNetwork([("a", "c")]), release))
    said.attempt("no records", lambda: dp.PrivateMLE().fit(DiscreteBayesianNetwork(EDGES), data))
    said.note("files", [(path.name, path.read_bytes()) for path in sorted(folder.iterdir())])


def fits(said, records, neighbours, folder, fit):
    """An estimator that is handed the data set."""
    budget = dp.PrivacyBudget(1.0, fit.delta)
    data = fit.data(records, SAME(), budget)
    said.note("data", repr(data))
    estimator, network = fit(data, 1.0)
    said.note("estimator", estimator)
    for fitted in filter(None, (estimator, network)):
        structure, numbers = Observer().read(fitted)
        said.note("fitted", (structure, numbers.tolist()))
    said.note("ledger", (budget, budget.history))
    said.attempt("nothing left", lambda: fit(data, 1.0))
    said.attempt("bad epsilon", lambda: fit(data, math.nan))


def mechanisms(said, records, neighbours, folder):
    """What else the wall has."""
    edges = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(1.0), neighbours=neighbours, noise=SAME())
    said.note("bins", edges.quantile_bins("n", 3, 0.5))
    said.attempt("no bins", lambda: edges.quantile_bins("a", 3, 0.5))
    said.note("coefficients", edges.measure_coefficients(CLIQUES, 0.5))
    deltas = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(1.0, 1e-2), neighbours, SAME())
    said.note("residuals", deltas.measure_residuals({(): 20.0, ("a",): 20.0}, delta=1e-2))
    plan = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(1.0, 1e-2), neighbours, SAME()).plan(
        1, epsilon=1.0, delta=1e-2, variables=["a"], **sample(neighbours)
    )
    said.note("plan", plan)
    said.note("sum", plan.noisy_sum(lambda codes: codes, 1.0))
    said.attempt("no step", lambda: plan.noisy_sum(lambda codes: codes, 1.0))


def outputs(records, neighbours, folder, *parts):
    """All that is said in some parts of the work."""
    said = Said()
    folder.mkdir()
    with contextlib.chdir(folder), said.recording():
        for part in parts:
            part(said, records, neighbours, folder)
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


@pytest.fixture(autouse=True)
def _nothing_else_speaks(monkeypatch):
    """Modules speak when they are imported, once, and progress bars have a thread that looks at the real clock."""
    for room in (dp, dp.papers):
        for name in room.__all__:
            getattr(room, name)
    if tqdm.monitor is not None:
        tqdm.monitor.exit()
    monkeypatch.setattr(tqdm, "monitor", None)
    monkeypatch.setattr(tqdm, "monitor_interval", 0)


@pytest.mark.parametrize("part", [releases, mechanisms])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_equal_releases_leave_equal_traces(pair, part, tmp_path):
    neighbours, one, other = pair
    traces = [outputs(frame(rows), neighbours, tmp_path / name, part) for name, rows in (("a", one), ("b", other))]
    assert traces[0] == traces[1]


def test_equal_releases_leave_equal_fits(fit, neighbours_of, tmp_path):
    """So no fit leaks for certain what an audit would find: a number of records, a state list, counts without noise."""
    for pairs in ("records", "only record" if fit.pairs == "records" else fit.pairs):
        traces = [
            outputs(records, fit.relation, tmp_path / f"{pairs} {number}", partial(fits, fit=fit))
            for number, records in enumerate(neighbours_of(pairs, fit.relation))
        ]
        assert traces[0] == traces[1]
    assert fit.name != "PrivateVB" or "epsilon 1 charged for all steps: 100%" in traces[0]  # bars are seen


@pytest.mark.parametrize(
    "quirk",
    [
        lambda records: logging.getLogger("pgmpy").debug("%d rows", len(records)),
        lambda records: logging.getLogger("pgmpy_dp.deep").info("%d rows", len(records)),
        lambda records: warnings.warn(f"{len(records)} rows", stacklevel=1),
        lambda records: print(len(records)),
        lambda records: list(tqdm(records["a"], file=sys.stderr)),
    ],
)
def test_a_planted_trace_is_seen(quirk, tmp_path):
    neighbours, one, other = PAIRS["one more"]
    traces = [
        outputs(frame(rows), neighbours, tmp_path / str(len(rows)), lambda said, records, *others: quirk(records))
        for rows in (one, other)
    ]
    assert traces[0] != traces[1]
    assert "15 rows" in traces[0] or "output: 15" in traces[0] or "15/15" in traces[0]
