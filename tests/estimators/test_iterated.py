"""The loop that estimators share: its progress bar, and users who interrupt."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pgmpy_dp.estimators import iterated

PLAN = SimpleNamespace(steps=4, guarantee=SimpleNamespace(epsilon=0.75))


def steps(interrupted=None):
    for number in range(PLAN.steps):
        if number == interrupted:
            raise KeyboardInterrupt
        yield f"after step {number}"


def test_the_bar_says_what_is_spent(monkeypatch, capsys):
    bar = iterated.tqdm
    monkeypatch.setattr(iterated, "tqdm", lambda **options: bar(**{**options, "delay": 0, "mininterval": 0}))
    assert iterated.take_steps(PLAN, steps(), "PrivateLDA") == ("after step 3", 4)
    shown = capsys.readouterr().err
    assert "PrivateLDA, epsilon 0.75 charged for all steps" in shown
    assert "4/4" in shown


def test_an_interruption_keeps_the_finished_steps():
    with pytest.warns(UserWarning, match=r"stopped after 2 of 4 steps.*epsilon=0\.75 is charged"):
        assert iterated.take_steps(PLAN, steps(interrupted=2), "PrivateVB") == ("after step 1", 2)


def test_an_interruption_of_the_first_step_has_learned_nothing():
    with pytest.raises(KeyboardInterrupt):
        iterated.take_steps(PLAN, steps(interrupted=0), "PrivateSGD")
