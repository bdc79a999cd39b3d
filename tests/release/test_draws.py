"""Draws of networks: their file, and what of it is believed."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from archives import require_refused, restate

import pgmpy_dp as dp
from pgmpy_dp.observed.reading import observe

SCHEMA = dp.Schema({"a": ["x", "y,z"], "b": [0, 1, 2]}, bounds={"age": (20.0, 70.0), "dose": (-1.0, 3.0)})
FAMILIES = [("a",), ("b", "a")]
REGRESSIONS = [("age",), ("dose", "age")]


def dataset(neighbours="add_remove"):
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"a": generator.choice(["x", "y,z"], 60), "b": generator.integers(0, 3, 60)})
    frame["age"], frame["dose"] = generator.uniform(20, 70, 60), generator.uniform(-1, 3, 60)
    return dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(100.0), neighbours=neighbours, noise=dp.SimulatedNoise(1))


def drawn(kind, neighbours="add_remove"):
    prior = {family: np.ones(SCHEMA.shape(family)) for family in FAMILIES if kind != "regression"}
    match kind:
        case "posterior":
            return dataset(neighbours).sample_posterior(FAMILIES, prior, 2.0, draws=3)
        case "map":
            return dataset(neighbours).sample_map(FAMILIES, prior, 2.0)
    one = {"age": 10.0, "dose": 1.0}
    return dataset(neighbours).sample_regressions(REGRESSIONS, one, {"age": 1.0, "dose": 2.0}, 2.0, draws=2)


@pytest.mark.parametrize(
    ("kind", "made"), [("posterior", dp.papers.PosteriorDraws), ("regression", dp.papers.RegressionDraws)]
)
def test_draws_cannot_be_changed(tmp_path, kind, made):
    drawn(kind).save(tmp_path / "draws.zip")
    for rows in made.load(tmp_path / "draws.zip").draws:
        assert not any(table.flags.writeable for table in rows.values())


@pytest.mark.parametrize("kind", ["posterior", "map"])
@pytest.mark.parametrize("none", [(), ({},)])
def test_a_release_has_a_draw_of_a_family(kind, none):
    with pytest.raises(ValueError, match="needs at least one draw of at least one family"):
        replace(drawn(kind), draws=none)


def test_draws_are_fitted_by_nothing():
    release, network = drawn("posterior"), dp.PrivateBayesianNetwork([("a", "b")])
    for estimator in (dp.PrivateMLE(), dp.CollectiveEM(), dp.papers.PrivateBayesianEstimator()):
        with pytest.raises(TypeError, match="draws of a network"):
            network.fit(release, estimator=estimator)
    with pytest.raises(TypeError, match="not tables"):
        observe(release, ["a"])


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("posterior", lambda c: c.update(draws=4), "not the next cell"),
        ("posterior", lambda c: c.update(draws=2), "more rows"),
        ("posterior", lambda c: c.update(draws=10**15), "fewer rows"),
        ("posterior", lambda c: c.update(draws=0), "draws"),
        ("posterior", lambda c: c.update(draws=True), "draws"),
        ("posterior", lambda c: c.update(power=1.5), "costs epsilon"),
        ("posterior", lambda c: c.update(power=math.nan), "NaN"),
        ("posterior", lambda c: c.update(power=-1), "positive"),
        ("posterior", lambda c: c.update(public_total=60), "properties"),
        ("posterior", lambda c: c["guarantee"].update(epsilon=0.5), "something else than its costs"),
        ("posterior", lambda c: restate(c, epsilon="1/2"), "costs epsilon"),
        ("posterior", lambda c: restate(c, mechanism="laplace"), "posterior_sampling"),
        ("posterior", lambda c: c["families"][1].update(floor=0.3), "below its floor|no cell"),
        ("posterior", lambda c: c["families"][1].update(floor=1e-9), "costs epsilon"),
        ("posterior", lambda c: c["families"][1].update(floor="0.1"), "floor"),
        ("posterior", lambda c: c["families"][1].update(shape=[2, 3]), "shape"),
        ("posterior", lambda c: c["families"][1].update(variables=["b", "c"]), "Unknown variable"),
        ("posterior", lambda c: c.update(families=[]), "at least one"),
        ("posterior", lambda c: c.update(kind="regression_draws"), "properties"),
        ("regression", lambda c: restate(c, mechanism="laplace"), "posterior_sampling"),
        ("regression", lambda c: c["families"][1].update(std=0.0), "std"),
        ("regression", lambda c: c["families"][1].update(coefficient_bound=1e-6), "beyond their bound"),
        ("regression", lambda c: c["families"][1].update(variables=["dose", "dose"]), "repeats"),
        ("regression", lambda c: c["families"][1].update(variables=["dose", "a"]), "bounds"),
        ("regression", lambda c: c["families"][1].update(variables=["dose", []]), "bounds"),
        ("regression", lambda c: c["families"][1].update(variables=["age"], shape=[1]), "twice"),
        ("regression", lambda c: c.update(families=[]), "at least one"),
    ],
)
def test_altered_descriptors_are_refused(tmp_path, kind, change, message):
    require_refused(tmp_path / "draws.zip", drawn(kind), message, change=change)


@pytest.mark.parametrize("change", [lambda own: {}, list, lambda own: {**own, ("c",): 0.1}])
def test_each_family_has_a_floor_and_nothing_else_has(change):
    release = drawn("posterior")
    with pytest.raises(ValueError, match="floors must have a number for each family, and no other"):
        replace(release, floors=change(dict(release.floors)))


@pytest.mark.parametrize(
    ("number", "message"),
    [
        *((number, "two indices and a number") for number in (b"nan", b"inf", b"0.1,0.1", b"")),
        (b"1e999", "sum to 1|finite"),
        (b"-0.5", "below its floor|no cell|bound"),
        (b"0.123", "sum to 1|below|bound"),
    ],
)
@pytest.mark.parametrize("kind", ["posterior", "regression"])
def test_altered_numbers_are_refused(tmp_path, kind, number, message):
    def change(rows):
        lines = rows.splitlines(keepends=True)
        return b"".join([lines[0], b"0,0," + number + b"\n", *lines[2:]])

    require_refused(tmp_path / "draws.zip", drawn(kind), message, rows=change)
