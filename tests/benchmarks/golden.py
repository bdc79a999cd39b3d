"""What the library answers on fixed releases, to the last bit: written before code is moved, and compared after.

    export PYTHONHASHSEED=0                                   # pgmpy's predictions order their columns by it
    python tests/benchmarks/golden.py before.json             # writes the answers
    python tests/benchmarks/golden.py after.json --against before.json

Every mechanism and estimator of the trust tests runs with simulated noise. Networks, a grid and mixtures answer with
their whole face, and their files are read back. Numbers are kept as hexadecimal floats, so that equal means equal.
Chains amplify rounding: compare only what one machine wrote.
"""

import hashlib
import json
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "audit"))
from common import options
from conftest import FITS, MECHANISMS, NEIGHBOURS

import pgmpy_dp as dp
from pgmpy_dp.privacy import SimulatedNoise

STATES = {"age": dp.Bins([0, 18, 40, 65]), "smoke": ["yes", "no"], "lung": ["yes", "no"], "xray": ["a", "b", "c"]}
SCHEMA = dp.Schema(STATES)
RULED = dp.Schema(STATES, rules=[dp.Forbidden({"smoke": ["yes"], "age": ["0_to_18"]})])
EDGES = [("age", "smoke"), ("smoke", "lung"), ("lung", "xray")]
PAIRS = [("age", "smoke"), ("smoke", "lung"), ("lung", "xray"), ("age", "lung"), ("smoke", "xray"), ("age", "xray")]
GRID = [("age", "smoke"), ("smoke", "lung"), ("lung", "xray"), ("age", "xray")]
EVIDENCE = {"smoke": "yes", "age": 30}
Answers = Iterator[tuple[str, Any]]


def records(count: int = 4000) -> pd.DataFrame:
    """Draw records of a person's age, habit and findings."""
    draw = np.random.default_rng(0)
    age, smoke = draw.integers(0, 65, count), draw.random(count) < 0.4
    lung = draw.random(count) < np.where(smoke & (age >= 18), 0.3, 0.1)
    xray = np.where(lung, draw.integers(0, 3, count), draw.integers(0, 2, count))
    smoke &= age >= 18
    named = {"age": age, "smoke": np.where(smoke, "yes", "no"), "lung": np.where(lung, "yes", "no")}
    return pd.DataFrame({**named, "xray": np.array(["a", "b", "c"])[xray]})


def released(schema: dp.Schema, cliques: Any, **how: Any) -> dp.NoisyMarginals:
    """Measure tables of the records with simulated noise."""
    budget = dp.PrivacyBudget(2.0, how.get("delta", 0.0))
    data = dp.PrivateDataset(records(), schema, budget, noise=SimulatedNoise(3))
    return data.measure(cliques, 1.0, **how)


def face(network: Any) -> Answers:
    """Ask a network all that it answers."""
    calls: dict[str, Callable[[], Any]] = {
        "query": lambda: network.query(["lung", "xray"], EVIDENCE),
        "map_query": lambda: network.map_query(["lung", "xray"], EVIDENCE),
        "map_probability": lambda: network.map_probability(["lung", "xray"], EVIDENCE),
        "marginal": lambda: network.marginal(["lung", "xray"]),
        "predict": lambda: network.predict(records(20)[["xray", "smoke"]]),
        "predict_probability": lambda: network.predict_probability(records(20)[["xray", "smoke"]]),
        "log_likelihood": lambda: network.log_likelihood(records(200)),
        "simulate": lambda: network.simulate(n_samples=50, seed=5),
        "simulate given": lambda: network.simulate(n_samples=50, seed=5, evidence={"smoke": "yes"}),
        "simulate numbers": lambda: network.simulate(n_samples=50, seed=5, numbers="drawn"),
        "check_fit": lambda: network.check_fit(),
        "guarantee": lambda: network.guarantee_,
    }
    for target in ("population", "records"):
        of = {"target": target}
        calls[f"bounds, {target}"] = lambda of=of: network.query(["lung"], EVIDENCE, interval=0.9, **of)
        values = {"lung": {"yes": 1.0, "no": 0.0}}
        calls[f"expectation, {target}"] = lambda of=of: network.expectation(values, EVIDENCE, **of)
    for name, call in calls.items():
        yield name, answer(call)


def answer(call: Callable[[], Any]) -> Any:
    """Return what a call gives, or the kind of error that it raises."""
    try:
        return call()
    except (ValueError, TypeError, AttributeError, NotImplementedError) as error:
        return f"{type(error).__name__}"


def models() -> Answers:
    """Fit every kind of model to fixed releases, and ask it."""
    pairs, families = released(SCHEMA, PAIRS), released(SCHEMA, [("age", "smoke"), ("smoke", "lung"), ("lung", "xray")])
    gaussian = released(SCHEMA, PAIRS, delta=1e-6, mechanism="gaussian")
    mixture = {"components": 5, "members": 2}
    made = {
        "bayesian": lambda: dp.PrivateBayesianNetwork(EDGES).fit(pairs),
        "bayesian, families": lambda: dp.PrivateBayesianNetwork(EDGES).fit(families),
        "bayesian, gaussian": lambda: dp.PrivateBayesianNetwork(EDGES).fit(gaussian, estimator=dp.PrivateMLE()),
        "bayesian, posterior mean": lambda: dp.PrivateBayesianNetwork(EDGES).fit(
            families, estimator=dp.PosteriorMean(draws=40)
        ),
        "grid": lambda: dp.PrivateMarkovNetwork(GRID).fit(pairs),
        "grid, loopy": lambda: dp.PrivateMarkovNetwork(GRID).fit(pairs, estimator=dp.CollectiveEM(inference="loopy")),
        "ruled": lambda: dp.PrivateBayesianNetwork(EDGES).fit(released(RULED, PAIRS)),
        "mixture": lambda: dp.PairwiseMixture(**mixture).fit(gaussian).network_,
        "mixture, ruled": lambda: dp.PairwiseMixture(**mixture).fit(released(RULED, PAIRS)).network_,
    }
    for kind, make in made.items():
        network = make()
        for name, value in face(network):
            yield f"{kind}: {name}", value
        with tempfile.TemporaryDirectory() as folder:
            for ending in ("json", "zip"):
                path = Path(folder) / f"model.{ending}"
                network.save(path)
                again = type(network).load(path)
                yield f"{kind}: {ending} read back", answer(lambda again=again: again.query(["lung"], EVIDENCE))
                if ending == "json":
                    yield f"{kind}: file", json.loads(path.read_text())


def fits() -> Answers:
    """Fit every estimator and call every mechanism of the trust tests with simulated noise."""
    for fit in FITS:
        data = fit.data(NEIGHBOURS[fit.pairs][fit.relation][0], SimulatedNoise(1))
        yield f"{fit.name}, {fit.relation}", answer(lambda fit=fit, data=data: parameters(fit(data, 1.0)[0]))
    for mechanism in MECHANISMS:
        data = mechanism.data(mechanism.neighbours[0], SimulatedNoise(1))
        yield f"{mechanism.name}, {mechanism.relation}", answer(lambda m=mechanism, d=data: m.call(d, 1.0))


def parameters(estimator: Any) -> Any:
    """Collect the fitted attributes of an estimator."""
    return {name: value for name, value in sorted(vars(estimator).items()) if name.endswith("_") and name[0] != "_"}


def plain(value: Any) -> Any:
    """Write a value as what JSON holds, floats to the last bit; large arrays by their hash."""
    if isinstance(value, (bool, str, int, type(None))):
        return value
    if isinstance(value, (float, np.floating)):
        return float(value).hex()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        if value.size > 64 and value.dtype != object:
            return f"{value.dtype} {value.shape} {hashlib.sha256(np.ascontiguousarray(value).tobytes()).hexdigest()}"
        return [plain(each) for each in value.ravel().tolist()]
    if isinstance(value, (pd.DataFrame, pd.Series)):
        named = [list(map(str, axis)) for axis in value.axes]
        return [*named, [plain(each) for each in value.astype(object).to_numpy().ravel().tolist()]]
    if isinstance(value, dict) or hasattr(value, "items"):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain(each) for each in (sorted(value, key=str) if isinstance(value, (set, frozenset)) else value)]
    if hasattr(value, "get_value") and hasattr(value, "values"):  # a factor or CPD
        return [list(map(str, value.variables)), plain(np.asarray(value.values))]
    if hasattr(value, "tables"):
        return [plain(value.tables), str(value.guarantee) if hasattr(value, "guarantee") else ""]
    return str(value).split(" object at ")[0]


def main() -> None:
    """Write the answers, and compare them."""
    asked = options("out", against=Path)
    warnings.simplefilter("ignore")
    found = {name: plain(value) for answers in (models(), fits()) for name, value in answers}
    written = json.dumps(found, indent=1, default=str)
    asked.out.write_text(re.sub(r"\b[0-9a-f]{32}\b", "a random name", written))  # of costs and ledgers
    print(f"{len(found)} answers")
    if asked.against:
        before = json.loads(asked.against.read_text())
        after = json.loads(asked.out.read_text())
        for name in sorted(before.keys() | after.keys()):
            if before.get(name) != after.get(name):
                print(f"differs: {name}\n  {str(before.get(name))[:200]}\n  {str(after.get(name))[:200]}")


if __name__ == "__main__":
    main()
