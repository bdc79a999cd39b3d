"""One question, one value: the same questions through every door of seven models.

    python tests/benchmarks/doors.py                # 1,000 questions to each model; without Chromium, no page
    python tests/benchmarks/doors.py --questions 50 --shell 10     # of these, ten through the command line as well

Doors: `query`, `query` with bounds for the population and for the records, `expectation` with and without bounds,
`marginal` (of questions without evidence), the page in a browser, and the shell (of some questions, since each of its
calls loads the network). Printed are the largest difference of each door from `query`, and how far its value lies
outside its bounds. A network whose test of fit fails answers otherwise than its CPDs: `eliminated` says how far.
"""

import json
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from click.testing import CliRunner
from common import options
from pgmpy.inference import VariableElimination

import pgmpy_dp as dp
from pgmpy_dp.cli import main as shell

SCHEMA = dp.Schema(
    {
        "age": dp.Bins([0, 18, 40, 60, 80]),
        "married": ["no", "yes"],
        "health": ["good", "fair", "poor"],
        "well": ["no", "yes"],
        "work": ["none", "part", "full"],
    },
    rules=[dp.Forbidden({"age": "0_to_18", "married": "yes"})],
)
RIGHT = [("age", "married"), ("age", "health"), ("health", "well"), ("age", "work"), ("health", "work")]
WRONG = [("married", "age"), ("well", "health"), ("well", "work")]
Question = tuple[str, dict[str, str]]


def records(count: int, seed: int) -> pd.DataFrame:
    """Draw persons whose health and work follow from their age."""
    draw = np.random.default_rng(seed)
    age = draw.integers(0, 80, count)
    married = np.where((age >= 18) & (draw.random(count) < 0.6), "yes", "no")
    ill = np.clip(draw.poisson(age / 50), 0, 2)
    well = np.where(draw.random(count) < 0.9 - 0.35 * ill, "yes", "no")
    work = np.clip(2 - ill + draw.integers(-1, 2, count), 0, 2) * (age >= 18)
    named = {"health": np.array(["good", "fair", "poor"])[ill], "work": np.array(["none", "part", "full"])[work]}
    return pd.DataFrame({"age": age, "married": married, **named, "well": well})


def private(count: int, seed: int, delta: float = 0.0, schema: dp.Schema = SCHEMA) -> dp.PrivateDataset:
    """Hold records that are measured with simulated noise."""
    return dp.PrivateDataset(records(count, seed), schema, dp.PrivacyBudget(1.0, delta), noise=dp.SimulatedNoise(seed))


def models() -> Iterator[tuple[str, Any]]:
    """Fit seven models: five networks, a grid and a mixture."""
    for name, edges in (("right", RIGHT), ("wrong", WRONG)):
        yield name, dp.PrivateBayesianNetwork(edges).fit(private(5000, 0), estimator=dp.AutoMLE(1.0))
    planned = dp.plan_measurements(dp.PrivateBayesianNetwork(RIGHT), SCHEMA)
    data = private(5000, 1, 1e-6)
    gaussian = data.measure(planned[0], 1.0, delta=1e-6, weights=planned[1], mechanism="gaussian")
    yield "Gaussian", dp.PrivateBayesianNetwork(RIGHT).fit(gaussian)
    unruled = SCHEMA.replace(rules=())
    search = dp.PrivateStructureSearch(epsilon=1.0, delta=1e-6, state_names=unruled)
    yield "search", search.fit(private(5000, 2, 1e-6, unruled)).network_
    grid = [("age", "married"), ("married", "well"), ("well", "health"), ("health", "age")]
    yield "grid", dp.PrivateMarkovNetwork(grid).fit(private(5000, 3).measure(grid, 1.0), estimator=dp.CollectiveEM())
    parts: dict[str | int | float | bool, dp.NoisyMarginals] = {}
    for site, count in (("north", 4000), ("south", 500)):
        parts[site] = private(count, count).measure(planned[0], 1.0)
    pooled = dp.PartiallyPooledMarginals.of(dp.union(parts))
    yield "partially pooled", pooled.apart(dp.PrivateBayesianNetwork(RIGHT)).fit(pooled)
    mixture = dp.PairwiseMixture(epsilon=1.0, delta=1e-6, state_names=SCHEMA, members=4, components=8)
    yield "mixture", mixture.fit(private(5000, 5, 1e-6)).network_


def questions(model: Any, count: int) -> list[Question]:
    """Draw variables, and evidence on up to three others that records of the model have."""
    draw, states = np.random.default_rng(0), model.schema_.states
    asked = []
    for row in model.simulate(count, seed=0).to_dict("records"):
        variable, *others = draw.permutation(list(states)).tolist()
        asked.append((variable, {other: row[other] for other in others[: draw.integers(4)]}))
    return asked


def in_python(model: Any, question: Question) -> Iterator[tuple[str, Any]]:
    """Answer a question by each method of the model: probabilities, or a frame with bounds."""
    variable, given = question
    states = list(model.schema_.states[variable])
    yield "query", model.query([variable], given).values
    if not given:
        yield "marginal", model.marginal([variable])
    for target in ("population", "records"):
        yield f"query, {target}", model.query([variable], given, interval=0.9, target=target)
    for name, how in (("expectation", {"interval": None}), ("expectation, population", {"interval": 0.9})):
        each = [{variable: {s: float(s == state) for s in states}} for state in states]
        yield name, pd.concat([model.expectation(values, given, **how) for values in each])


def in_shell(path: Path, question: Question, *bounds: str) -> list[float]:
    """Ask the command line, which prints JSON."""
    variable, given = question
    evidence = [word for name, state in given.items() for word in ("--evidence", f"{name}={state}")]
    call = ["query", str(path), "--target", variable, *evidence, *bounds, "--json"]
    answer = CliRunner().invoke(shell, call, catch_exceptions=False).stdout
    return [row["probability"] for row in json.loads(answer)["answer"]]


def page(path: Path) -> Callable[[str, Question], dict[str, dict[str, dict[str, float]]]]:
    """Open a page in a headless browser, and give a function that asks it."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    chosen = webdriver.ChromeOptions()
    chosen.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={path.parent / path.stem}"):
        chosen.add_argument(flag)
    browser = webdriver.Chrome(options=chosen, service=Service(shutil.which("chromedriver")))
    browser.get(path.as_uri())
    browser.execute_async_script("const [done] = arguments; explorer.ready.then(() => done(), done)")
    way = {"interval": 0.9, "target": "population"}

    def ask(door: str, question: Question) -> Any:
        ways = {"interval": None} if door == "page" else way
        return browser.execute_script("return explorer.query(...arguments)", [question[0]], question[1], ways)

    ask.close = browser.quit  # type: ignore[attr-defined]
    return ask


def outside(frame: pd.DataFrame) -> float:
    """Say by how much a value lies outside its bounds."""
    return float(max((frame["lower"] - frame["value"]).max(), (frame["value"] - frame["upper"]).max(), 0.0))


def compare(model: Any, count: int, of_shell: int, folder: Path) -> tuple[dict[str, float], float]:
    """Ask a model through all doors: the largest difference of each from `query`, and from the bounds."""
    asked = questions(model, count)
    model.save(folder / "model.zip")
    opened = None
    if shutil.which("chromium"):
        model.explore(folder / "page.html")
        opened = page(folder / "page.html")
    far: dict[str, float] = {}
    beyond = 0.0

    def note(door: str, values: Any, expected: Any) -> None:
        far[door] = max(far.get(door, 0.0), float(np.abs(np.asarray(values) - expected).max()))

    for number, question in enumerate(asked):
        (_, expected), *answers = in_python(model, question)
        for door, answer in answers:
            note(door, answer["value"] if isinstance(answer, pd.DataFrame) else answer, expected)
            if isinstance(answer, pd.DataFrame) and "lower" in answer:
                beyond = max(beyond, outside(answer))
        if opened is not None:
            states = model.schema_.states[question[0]]
            for door in ("page", "page, population"):
                answer = opened(door, question)[question[0]]
                note(door, [answer[str(state)]["value"] for state in states], expected)
        if number < of_shell:
            note("shell", in_shell(folder / "model.zip", question), expected)
            note("shell, population", in_shell(folder / "model.zip", question, "--interval", "0.9"), expected)
        if isinstance(model, dp.PrivateBayesianNetwork | dp.PrivateMarkovNetwork):
            factor = VariableElimination(model).query([question[0]], question[1], show_progress=False)
            note("eliminated", factor.values / factor.values.sum(), expected)
    if opened is not None:
        opened.close()  # type: ignore[attr-defined]
    return far, beyond


def main() -> None:
    chosen = options(questions=1000, shell=50)
    warnings.simplefilter("ignore")
    for name, model in models():
        with tempfile.TemporaryDirectory() as folder:
            far, beyond = compare(model, chosen.questions, chosen.shell, Path(folder))
        print(f"{name}: {chosen.questions} questions, at most {beyond:.1e} outside their bounds", flush=True)
        for door, difference in far.items():
            print(f"    {door:<24}{difference:.1e}", flush=True)


if __name__ == "__main__":
    main()
