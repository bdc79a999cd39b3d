"""The loop that estimators share: its progress bar, and users who interrupt."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from pgmpy_dp.estimators import iterating

PLAN = SimpleNamespace(steps=4, guarantee=SimpleNamespace(epsilon=0.75))


def test_the_bar_says_what_is_spent(monkeypatch, capsys):
    bar = iterating.tqdm
    monkeypatch.setattr(iterating, "tqdm", lambda **options: bar(**{**options, "delay": 0, "mininterval": 0}))
    assert iterating.run(PLAN, lambda number: None, "PrivateLDA") == 4
    shown = capsys.readouterr().err
    assert "PrivateLDA, epsilon 0.75 charged for all steps" in shown
    assert "4/4" in shown


def test_an_interruption_keeps_the_finished_steps():
    taken = []

    def step(number):
        if number == 2:
            raise KeyboardInterrupt
        taken.append(number)

    with pytest.warns(UserWarning, match=r"stopped after 2 of 4 steps.*epsilon=0\.75 is charged"):
        assert iterating.run(PLAN, step, "PrivateVB") == 2
    assert taken == [0, 1]


def test_an_interruption_of_the_first_step_has_learned_nothing():
    def step(number):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        iterating.run(PLAN, step, "PrivateSGD")
