"""Audits: every mechanism and every whole fit stays below its claim, and planted bugs are caught.

Noise is OpenDP's. A correct mechanism is refuted with probability at most FALSE_ALARM in each audit, and there are
about twenty in the default run and forty in the slow one. What a bug must reach was set so that the planted ones are
missed with probability below 1e-4.
"""

from __future__ import annotations

import itertools
from collections import defaultdict

import numpy as np
import pandas as pd
import pytest
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.evaluation import audit
from pgmpy_dp.privacy import OPENDP_NOISE, SimulatedNoise

FALSE_ALARM = 1e-6
CONFIDENCE = 1 - FALSE_ALARM
SCHEMA = dp.Schema({"v": ["x", "y"], "w": ["x", "y"]})
SHORT = pd.DataFrame({"v": ["x"] * 4 + ["y"] * 4, "w": ["x", "y"] * 4})
NEIGHBOURS = {
    "add_remove": (SHORT, pd.concat([SHORT, pd.DataFrame({"v": ["x"], "w": ["x"]})])),
    "replace_one": tuple(pd.concat([SHORT, pd.DataFrame({"v": [s], "w": [s]})]) for s in "xy"),
}


class Noise:
    """OpenDP's noise at some times the scale asked for, drawn thousands of cells at a time."""

    private = True

    def __init__(self, times=1.0):
        self.times = times
        self.drawn = defaultdict(lambda: np.empty(0, np.int64))

    def _draw(self, draw, counts, scale):
        if self.drawn[draw, scale].size < counts.size:
            self.drawn[draw, scale] = draw(np.zeros(8192, np.int64), self.times * scale)
        noise, self.drawn[draw, scale] = np.split(self.drawn[draw, scale], [counts.size])
        return counts + noise

    def discrete_laplace(self, counts, scale):
        return self._draw(OPENDP_NOISE.discrete_laplace, counts, scale)

    def discrete_gaussian(self, counts, scale):
        return self._draw(OPENDP_NOISE.discrete_gaussian, counts, scale)


def datasets(neighbours="add_remove", delta=0.0, noise=None, pair=None):
    """Two neighbouring data sets with a budget for any number of trials."""
    return tuple(
        dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(1e9, delta), neighbours, noise or Noise())
        for records in pair or NEIGHBOURS[neighbours]
    )


ONE, TWO = [("v", "w")], [("v",), ("w",)]
CLAIMS = {  # cliques, relation, delta, weights, what an audit with little data must find of epsilon = 2
    "laplace add": (ONE, "add_remove", 0.0, None, 1.2),
    "laplace add weighted": (TWO, "add_remove", 0.0, [3, 1], 0.7),
    "laplace replace": (ONE, "replace_one", 0.0, None, 0.7),
    "gaussian add": (ONE, "add_remove", 0.1, None, 0.05),
    "gaussian replace weighted": (TWO, "replace_one", 0.1, [3, 1], 0.05),
}


def audited(claim, times, trials):
    cliques, neighbours, delta, weights, _ = claim
    how = {"delta": delta, "mechanism": "gaussian" if delta else "laplace", "weights": weights}
    pair = datasets(neighbours, delta, Noise(times))
    return audit(lambda data: data.measure(cliques, 2.0, **how), pair, 2.0, delta, trials, CONFIDENCE)


@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_releases_stay_below_their_claims(claim):
    result = audited(claim, 1.0, 1200)
    assert not result.refuted, result
    assert result.epsilon_lower > claim[-1], result  # the audit is not blind


@pytest.mark.slow
@pytest.mark.parametrize("times", [1.0, 0.7])
@pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)
def test_noise_at_seven_tenths_is_caught_everywhere(claim, times):
    result = audited(claim, times, 40_000 if claim[2] else 8000)
    assert result.refuted is (times < 1), result


def test_the_release_that_users_draw_is_the_one_audited():
    """Without drawing ahead: OpenDP is called for every table."""
    pair = datasets(noise=OPENDP_NOISE)
    result = audit(lambda data: data.measure(ONE, 2.0), pair, 2.0, trials=300, confidence=CONFIDENCE)
    assert not result.refuted, result
    assert result.epsilon_lower > 0.5, result


# Bugs. Each gives a function that publishes something and claims epsilon = 2, two neighbours, and trials.


def too_little_noise():
    return lambda data: data.measure(ONE, 2.0), datasets(noise=Noise(0.7)), 4000


def sensitivity_halved():
    return lambda data: data.measure(ONE, 2.0), datasets("replace_one", noise=Noise(0.5)), 1000


def number_of_records_leaked():
    def scaled_to_the_true_total(records):
        table = dataset[len(records)].measure(ONE, 2.0).tables["v", "w"]
        return table * (len(records) / max(table.sum(), 1))

    dataset = {len(r): data for r, data in zip(NEIGHBOURS["add_remove"], datasets(), strict=True)}
    return scaled_to_the_true_total, NEIGHBOURS["add_remove"], 600


def number_of_records_leaked_by_the_last_cell():
    def adjusted(records):
        table = dataset[len(records)].measure(ONE, 2.0).tables["v", "w"].copy()
        table[1, 1] += len(records) - table.sum()
        return table

    dataset = {len(r): data for r, data in zip(NEIGHBOURS["add_remove"], datasets(), strict=True)}
    return adjusted, NEIGHBOURS["add_remove"], 600


def states_read_from_the_records():
    noise = Noise()

    def fit(records):
        states = {v: sorted(set(records[v])) for v in ("v", "w")}
        data = dp.PrivateDataset(records, dp.Schema(states), dp.PrivacyBudget(2.0), noise=noise)
        return data.measure(TWO, 2.0)

    return fit, (SHORT, pd.concat([SHORT, pd.DataFrame({"v": ["z"], "w": ["x"]})])), 300


def error_depends_on_the_records():
    def refuses(records):
        if len(records) > 8:
            raise ValueError("too many records")
        return len(records) * 0

    return refuses, NEIGHBOURS["add_remove"], 300


def first_stage_not_charged():
    """Shares of the budget follow a first look, and show it."""

    def two_stages(data):
        first = data.measure(ONE, 2.0).tables["v", "w"]
        weights = [1.0, 1.0 + abs(int(first[0, 0]))]
        noisy = data.measure(TWO, 2.0, weights=weights)
        return noisy.tables, [2.0 / scale for scale in noisy.scales.values()]

    return two_stages, datasets(), 3000


def seed_reused_in_every_release():
    return lambda records: datasets(noise=Seeded(7), pair=[records])[0].measure(ONE, 2.0), NEIGHBOURS["add_remove"], 300


def seed_reused_in_both_tables():
    seeds = itertools.count()

    def release(data):
        seed = next(seeds)
        tables = []
        for clique in TWO:
            data._noise = Seeded(seed)
            tables.append(data.measure([clique], 1.0).tables[clique])
        return tables

    return release, datasets(pair=(SHORT, pd.concat([SHORT, pd.DataFrame({"v": ["x"], "w": ["y"]})]))), 600


class Seeded(SimulatedNoise):
    private = True

    def __init__(self, seed=7):
        super().__init__(seed)


BUGS = [
    too_little_noise,
    sensitivity_halved,
    number_of_records_leaked,
    number_of_records_leaked_by_the_last_cell,
    states_read_from_the_records,
    error_depends_on_the_records,
    first_stage_not_charged,
    seed_reused_in_every_release,
    seed_reused_in_both_tables,
]


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug):
    function, pair, trials = bug()
    result = audit(function, pair, 2.0, trials=trials, confidence=CONFIDENCE)
    assert result.refuted, result


# Whole fits: the estimator with its release and its record of guarantee, and the network.


def fitted(estimator, edges, epsilon):
    def fit(data):
        network = edges([("v", "w")])
        chosen = estimator(epsilon=epsilon)
        network.fit(data, estimator=chosen)
        return chosen, network

    return fit


FITS = {
    "PrivateMLE": (dp.PrivateMLE, DiscreteBayesianNetwork),
    "CollectiveEM directed": (dp.CollectiveEM, DiscreteBayesianNetwork),
    "CollectiveEM undirected": (dp.CollectiveEM, dp.PrivateMarkovNetwork),
    "NaiveMLE": (dp.NaiveMLE, dp.PrivateMarkovNetwork),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_fits_leak_nothing_for_certain(fit):
    """Few trials see what is certain or nearly so: the number of records, a state list, noise far too small."""
    result = audit(fitted(*fit, 1.0), datasets(), 1.0, trials=80, confidence=CONFIDENCE)
    assert not result.refuted, result


def test_a_fit_with_far_too_little_noise_is_caught():
    function = fitted(*FITS["NaiveMLE"], 0.5)
    result = audit(function, datasets(noise=Noise(0.1)), 0.5, trials=160, confidence=CONFIDENCE)
    assert result.refuted, result


@pytest.mark.slow
@pytest.mark.parametrize("times", [1.0, 0.7])
@pytest.mark.parametrize("neighbours", NEIGHBOURS)
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_fits_stay_below_their_claims_and_bugs_in_them_are_caught(fit, neighbours, times):
    pair = datasets(neighbours, noise=Noise(times))
    result = audit(fitted(*fit, 2.0), pair, 2.0, trials=4000, confidence=CONFIDENCE)
    assert result.refuted is (times < 1), result


# The tool itself.


def test_the_bound_holds_as_often_as_it_says():
    """Of 200 audits of randomised response with a true epsilon of log 3, at confidence .9, at most 42 exceed it.

    With each failing with probability .1, more than 42 do with probability below 1e-6.
    """
    generator = np.random.default_rng(5)
    results = [
        audit(lambda bit: bit ^ bool(generator.random() < 0.25), (False, True), 1.0, trials=100, confidence=0.9)
        for _ in range(200)
    ]
    assert sum(result.epsilon_lower > np.log(3) for result in results) <= 42
    assert np.mean([result.epsilon_lower for result in results]) > 0.3


@pytest.mark.parametrize(
    ("function", "pair", "words"),
    [
        (lambda x: {"a": [1, x]}, (3, 4), "['a'][1] "),
        (lambda x: {x: 1}, ("p", "q"), "structure: output has keys"),
        (lambda x: np.zeros(x), (3, 4), "structure: output has numbers"),
        (lambda x: [None, x], ("p", "q"), "[1] = '"),
        (lambda x: np.array([0.0, x]), (1.0, np.nan), "structure: output has n"),
        (lambda x: x, (1.0, np.inf), "output "),
        (lambda x: pd.DataFrame({"c": [x]}), ("p", "q"), "rows[0][0] = '"),
        (lambda x: 1 / x, (0, 1), "structure: output has"),
        (lambda x: {x, "r"}, ("p", "q"), "structure: output has set"),
    ],
)
def test_any_output_is_compared_and_the_event_is_told(function, pair, words):
    result = audit(function, pair, 1.0, trials=100)
    assert result.refuted
    assert words in result.event
    assert "REFUTED" in str(result)


def test_a_delta_is_taken_off():
    """Ten in a hundred outputs give the input away: (0, .1)-differential privacy and no better."""
    generator = np.random.default_rng(3)

    def sometimes(bit):
        return bit if generator.random() < 0.1 else 2

    assert audit(sometimes, (0, 1), 1.0, delta=0.01, trials=2000).refuted
    assert not audit(sometimes, (0, 1), 1.0, delta=0.11, trials=2000).refuted


def test_bad_arguments_are_refused():
    for bad in ({"trials": 39}, {"trials": True}, {"confidence": 1.0}, {"confidence": 1}, {"epsilon": 0}, {"delta": 1}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            audit(**({"fit_or_release": float, "neighbours": (0, 1), "epsilon": 1.0} | bad))
    with pytest.raises(ValueError, match="pair"):
        audit(float, 3, 1.0)
    with pytest.raises(ZeroDivisionError):
        audit(lambda x: x / 0, (1, 2), 1.0)
    with pytest.raises(TypeError, match="cannot read a function"):
        audit(lambda x: lambda: x, (1, 2), 1.0)
