"""Bounds of a mixture's answers: how often they hold the truth, what they need, and what they refuse."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.inference.mixtures.refits import Prediction
from pgmpy_dp.records.frames import encode

NAMES = list("abcdef")
SCHEMA = dp.Schema({name: ["x", "y", "z"] for name in NAMES})
SMALL = {"components": 12, "members": 3}
FITS = 12
pytestmark = pytest.mark.filterwarnings("ignore:The release does not tell")


def records(seed, count=3000):
    """A chain with one interaction of three variables: e depends on whether b and d agree."""
    draw = np.random.default_rng(seed)
    kept = draw.random((6, count)) < 0.6
    codes = [draw.choice(3, count, p=[0.5, 0.3, 0.2])]
    for place in range(1, 6):
        source = np.where(codes[1] == codes[3], codes[3], 0) if place == 4 else codes[place - 1]
        codes.append(np.where(kept[place], source, draw.integers(3, size=count)))
    return pd.DataFrame({name: np.array(list("xyz"))[code] for name, code in zip(NAMES, codes, strict=True)})


def fitted(frame, seed, epsilon=1.0):
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(epsilon, 1e-6), noise=dp.SimulatedNoise(seed))
    return dp.PairwiseMixture(epsilon, 1e-6, **SMALL).fit(data)


@pytest.fixture(scope="module")
def fits():
    frames = [records(seed) for seed in range(FITS)]
    return [(frame, fitted(frame, seed)) for seed, frame in enumerate(frames)]


@pytest.fixture(scope="module")
def one(fits):
    return fits[0][1]


@cache
def many():
    return encode(records(10**6, 100_000), SCHEMA, NAMES)


def held(fits, given, of_population=False):
    """For each fit, how many of the answers of the records (or of many more) lie between their 90 % bounds."""
    shares = []
    for seed, (frame, estimator) in enumerate(fits):
        draw, inside = np.random.default_rng(seed), []
        codes = many() if of_population else encode(frame, SCHEMA, NAMES)
        for _ in range(15):
            asked, *others = draw.choice(NAMES, given + 1, replace=False).tolist()
            evidence = {other: frame[other].iat[draw.integers(20)] for other in others}
            kept = np.all([codes[other] == "xyz".index(state) for other, state in evidence.items()] or [True], axis=0)
            truth = np.bincount(codes[asked][np.broadcast_to(kept, codes[asked].shape)], minlength=3)
            if truth.sum() < 30:
                continue
            target = "population" if of_population else "records"
            found = estimator.network_.query([asked], evidence, interval=0.9, target=target)
            assert found["value"].between(found["lower"], found["upper"]).all()
            inside += [*found["lower"].le(truth / truth.sum()) & found["upper"].ge(truth / truth.sum())]
        shares.append(np.mean(inside))
    return np.array(shares)


@pytest.mark.parametrize("given", [*(pytest.param(number, marks=pytest.mark.slow) for number in (0, 1, 3)), 2])
def test_bounds_hold_the_answers_of_the_records_as_often_as_they_say(fits, given):
    """Shares of different fits are independent: their mean is four of its standard errors from 90 % once in 500 tries.

    Five points are granted beyond it: bounds are of few draws.
    """
    found = held(fits, given)
    assert abs(found.mean() - 0.9) < 0.05 + 4 * found.std(ddof=1) / np.sqrt(FITS)


def test_bounds_hold_the_answers_of_the_population(fits):
    for given in (0, 2):
        found = held(fits, given, of_population=True)
        assert abs(found.mean() - 0.9) < 0.05 + 4 * found.std(ddof=1) / np.sqrt(FITS), given


def test_half_as_wide_bounds_are_found_out(fits, monkeypatch):
    bounds = Prediction.bounds
    halved = lambda found, interval: bounds(replace(found, deviations=found.deviations / 2), interval)  # noqa: E731
    monkeypatch.setattr(Prediction, "bounds", halved)
    found = held(fits, given=2)
    assert found.mean() < 0.85 - 4 * found.std(ddof=1) / np.sqrt(FITS)


def test_the_mean_of_an_indicator_is_its_probability(one):
    answer = one.network_.query(["e"], {"b": "x", "d": "x"}, interval=0.9).loc["y"]
    mean = one.network_.expectation({"e": {"x": 0, "y": 1, "z": 0}}, {"b": "x", "d": "x"}).loc["e"]
    assert mean.to_numpy() == pytest.approx(answer.to_numpy(), rel=0.05)
    shifted = one.network_.expectation({"e": {"x": 7, "y": 9, "z": 7}}, {"b": "x", "d": "x"}).loc["e"]
    assert shifted.to_numpy() == pytest.approx(7 + 2 * mean.to_numpy())


def test_only_its_own_release_is_attached(one, fits, tmp_path):
    one.network_.save(tmp_path / "mixture.json")
    again = dp.PrivateMixtureNetwork.load(tmp_path / "mixture.json")
    with pytest.raises(TypeError, match="NoisyMarginals is needed, got str"):
        again.attach_release("release.zip")
    with pytest.raises(ValueError, match="another promise"):
        again.attach_release(fitted(fits[0][0], 0, epsilon=2.0).release_)
    other = dp.PairwiseMixture(1.0, 1e-6, SCHEMA.select(NAMES[:5]), **SMALL).fit(fits[0][0][NAMES[:5]])
    with pytest.raises(dp.SchemaError, match="other variables"):
        again.attach_release(other.release_)


def test_what_makes_no_sense_is_refused(one):
    network = one.network_
    with pytest.raises(ValueError, match="at least 4"):
        network.sample_draws(3)
    made = dp.PrivateMixtureNetwork(SCHEMA, network.mixture_, 100.0, network.guarantee_)
    with pytest.raises(ValueError, match="was not fitted"):
        made.query(["a"], interval=0.9)


def test_evidence_that_noise_hides_is_told():
    frame = records(3, count=100)
    network = fitted(frame.assign(a="x", b="x"), 0, epsilon=0.3).network_
    with pytest.warns(UserWarning, match="does not tell whether any record has the evidence"):
        found = network.query(["c"], {"a": "z", "b": "z"}, interval=0.9)
    assert (found["upper"] - found["lower"]).max() > 0.5
