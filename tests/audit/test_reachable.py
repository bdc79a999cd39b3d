"""What hangs on a fitted estimator, a fitted network and a release: no record, no seed, no generator, no ledger.

The walk follows every reference that Python's garbage collector knows, the bases of array views, and closures, but
does not enter modules, classes and the globals of functions. It is repeated on what pickles bring back.
"""

import copyreg
import gc
import pickle
import random
import types

import narwhals
import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp

RECORDS = 4093  # a prime that nothing else has a reason to be
SEED = 98765432109
SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y", "z"]})
EDGES = [("a", "b"), ("b", "c")]

_LEAVES = (types.ModuleType, type, str, bytes, int, float, bool, type(None), np.dtype, np.generic)
_GENERATORS = (
    np.random.Generator,
    np.random.BitGenerator,
    np.random.RandomState,
    np.random.SeedSequence,
    random.Random,
)


def reachable(root):
    """Every object that can be reached, with how it was reached; not what is in public tables made of a release."""
    seen, queue = {}, [(root, "it")]
    for name in ("allocation_", "edges_", "posterior_counts_"):
        public = getattr(root, name, None)
        if public is not None:
            # A row or a table a family, or a row an edge.
            assert len(public) == len(SCHEMA.variables) or name == "edges_"
            seen[id(public)] = public
    while queue:
        thing, path = queue.pop()
        if id(thing) in seen:
            continue
        seen[id(thing)] = thing
        yield thing, path
        if isinstance(thing, _LEAVES):
            continue
        if isinstance(thing, types.FunctionType):
            held = [thing.__closure__, thing.__defaults__, thing.__kwdefaults__, thing.__dict__]
        else:
            held = gc.get_referents(thing)
            if isinstance(thing, np.ndarray):  # the owner of a view's memory is no referent
                held = [*held, thing.base]
            held += [getattr(thing, slot, None) for slot in copyreg._slotnames(type(thing)) or ()]
        name = type(thing).__name__
        queue.extend((other, f"{path} > {name}") for other in held if other is not None)


def suspicious(thing) -> str | None:
    if isinstance(thing, (dp.PrivateDataset, dp.PrivateDocuments, dp.PrivacyBudget)):
        return "the wall or its ledger"
    if isinstance(thing, (dp.SimulatedNoise, *_GENERATORS)):
        return "a source of randomness"
    if isinstance(thing, (pd.DataFrame, pd.Series, pd.Index, narwhals.DataFrame, narwhals.Series)):
        return "a data frame"
    if isinstance(thing, np.ndarray) and thing.size >= RECORDS:
        return "an array as long as the records"
    if isinstance(thing, (list, tuple, bytes, str)) and len(thing) >= RECORDS and not isinstance(thing, str):
        return "a sequence as long as the records"
    if isinstance(thing, (int, float, np.number)) and not isinstance(thing, bool) and thing in (RECORDS, SEED):
        return f"the number {thing}"
    return None


def findings(root) -> list[str]:
    return [f"{found}: {path}" for thing, path in reachable(root) if (found := suspicious(thing))]


def leaks(fitted, *names) -> set[str]:
    """Find what hangs on what is fitted and on its pickles, and names that these hold, three times over.

    Once in some fifty fits the noise gives the very number of records.
    """
    names = ("PrivateDataset", "PrivacyBudget", "Generator", *names)
    found = None
    for _ in range(3):
        now = set()
        for root in fitted():
            packed = pickle.dumps(root)
            now |= {
                *findings(root),
                *findings(pickle.loads(packed)),
                *(name for name in names if name.encode() in packed),
            }
        found = now if found is None else found & now
        if not found:
            break
    return found


def records():
    generator = np.random.default_rng(0)
    return pd.DataFrame({v: generator.choice(list(SCHEMA.states[v]), RECORDS) for v in SCHEMA.variables}).astype("str")


def iterative_fits():
    """Estimators that iterate over other data, of RECORDS rows, and a network with a latent variable."""
    frame = records()
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(9.0, 1e-3), noise=dp.SimulatedNoise(SEED))
    plan = {"epsilon": 1.0, "delta": 1e-6, "steps": 2, "sampling_rate": 1.0}
    vb = dp.PrivateVB(**plan, state_names={"z": [0, 1]})
    latent = DiscreteBayesianNetwork([("z", "a"), ("z", "b")], latents={"z"}).fit(data, estimator=vb)
    counts = np.stack([np.arange(RECORDS) % 3, np.arange(RECORDS) % 2], axis=1)
    budget = dp.PrivacyBudget(9.0, 1e-3)
    documents = dp.PrivateDocuments(counts, ["tea", "pot"], budget, 10, noise=dp.SimulatedNoise(SEED))
    topics = [dp.PrivateLDA(2, **plan).fit(source) for source in (documents, counts)]
    features = np.arange(RECORDS)[:, None] / RECORDS
    kept = {"bounds": (0, 1), "classes": [0, 1]}
    classifier = dp.PrivateLogisticRegression(**plan, **kept).fit(features, np.arange(RECORDS) % 2)
    source = dp.PrivateFeatures(features, np.arange(RECORDS) % 2, **kept, budget=budget, noise=dp.SimulatedNoise(SEED))
    causes = dp.papers.PrivateSigmoidBeliefNetwork(2, **plan)
    behind = dp.PrivateDataset(frame, SCHEMA.select(["a", "b"]), budget, noise=dp.SimulatedNoise(SEED))
    return [
        *(vb, latent, *topics),
        *(classifier, dp.PrivateLogisticRegression(**plan).fit(source)),
        *(causes.fit(behind), dp.papers.PrivateSigmoidBeliefNetwork(2, **plan).fit(counts % 2)),
    ]


def test_nothing_private_hangs_on_an_iterative_fit():
    assert not leaks(iterative_fits, "PrivateDocuments", "PrivateFeatures")


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_nothing_private_hangs_on_a_release(neighbours, tmp_path):
    data = dp.PrivateDataset(records(), SCHEMA, dp.PrivacyBudget(2.0, 1e-6), neighbours=neighbours)
    public = [f"the number {RECORDS}"] if neighbours == "replace_one" else []  # the number of records is public there
    for how in ({}, {"mechanism": "gaussian", "delta": 1e-6}):
        noisy = data.measure([("a", "b"), ("c",)], 0.5, **how)
        noisy.save(tmp_path / "release.zip")
        for release in (noisy, pickle.loads(pickle.dumps(noisy)), dp.NoisyMarginals.load(tmp_path / "release.zip")):
            assert [finding.split(":")[0] for finding in findings(release)] == public


@pytest.mark.parametrize("source", ["records", "data set"])
def test_nothing_private_hangs_on_any_estimator(fit, source):
    if fit.relation == "replace_one":
        pytest.skip("the number of records is public, and would be found everywhere")
    if fit.source.__name__ != "discrete":
        pytest.skip("of other data: iterative_fits")

    def fitted():
        frame, budget = records(), dp.PrivacyBudget(1.0, fit.delta)
        if source == "records":
            estimator, model = fit.estimator(1.0), fit.network and fit.network(EDGES)
            estimator.state_names = SCHEMA
            if model is None:
                estimator.fit(frame)
            else:
                model.fit(frame, estimator=estimator)
        else:
            estimator, model = fit(dp.PrivateDataset(frame, SCHEMA, budget, noise=dp.SimulatedNoise(SEED)), 1.0, EDGES)
        if isinstance(model, dp.PrivateMarkovNetwork):
            model.query(["a"])
            model.simulate(10, seed=SEED)
        held = (getattr(estimator, name, None) for name in ("release_", "network_"))
        return filter(None, (estimator, model, *held))

    assert not leaks(fitted, "SimulatedNoise", str(SEED))


def test_nothing_private_hangs_on_what_a_mechanism_returns(mechanism):
    if mechanism.relation == "replace_one":
        pytest.skip("the number of records is public, and would be found everywhere")
    many = (
        pd.concat([mechanism.neighbours[0]] * (RECORDS // len(mechanism.neighbours[0]) + 1))
        if len(mechanism.neighbours[0])
        else pd.concat([mechanism.neighbours[1]] * RECORDS)
    )
    assert not leaks(lambda: [mechanism.call(mechanism.data(many[:RECORDS]), 0.5)])


@pytest.mark.parametrize(
    "hide",
    [
        lambda data, frame: [frame],
        lambda data, frame: {"budget": data.budget},
        lambda data, frame: lambda: data,
        lambda data, frame: data.measure,
        lambda data, frame: np.asarray(frame["a"])[:3],
        lambda data, frame: np.zeros(RECORDS, np.uint8)[:1].reshape(1, 1),
        lambda data, frame: types.SimpleNamespace(rng=np.random.default_rng(1)),
        lambda data, frame: types.SimpleNamespace(total=len(frame)),
        lambda data, frame: random.Random(1).random,
    ],
)
def test_what_is_planted_is_found(hide):
    frame = records()
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0))
    estimator = dp.PrivateMLE(epsilon=0.5)
    DiscreteBayesianNetwork(EDGES).fit(data, estimator=estimator)
    assert findings(estimator) == []
    estimator.parameters_[0].extra = hide(data, frame)
    assert findings(estimator)
