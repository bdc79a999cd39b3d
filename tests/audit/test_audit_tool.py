"""The audit as a tool: its bound holds as often as it says, and it reads any output."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest

from pgmpy_dp.evaluation import audit


@dataclass(frozen=True)
class OneNumber:
    value: float


@dataclass(frozen=True)
class AnotherNumber:
    value: float


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
        (lambda x: x(1.0), (OneNumber, AnotherNumber), "structure: output has OneNumber"),
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
