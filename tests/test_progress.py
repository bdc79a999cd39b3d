"""Bars of long work: each counts what was done, and is hidden where nobody looks."""

import io

import numpy as np
import pytest
from tqdm import tqdm

import pgmpy_dp as dp
from pgmpy_dp import _progress
from pgmpy_dp.privacy import OPENDP_NOISE
from pgmpy_dp.records.memory import count_all

PAIRS = [("a", "b"), ("a", "c"), ("b", "c")]
SCHEMA = dp.Schema({name: [0, 1] for name in "abc"})
CODES = {name: np.arange(1000, dtype=np.uint8) % 2 for name in "abc"}
LONG = {
    "Drawing noise": lambda: OPENDP_NOISE.discrete_laplace(np.zeros(20_000, np.int64), 3.0),
    "Counting": lambda: count_all(CODES, SCHEMA, PAIRS, np.ones(1000, np.int64)),
}


@pytest.mark.parametrize("what", LONG)
def test_a_bar_reaches_its_end_on_a_terminal_only(what, monkeypatch, capsys):
    written = io.StringIO()
    terminal = {"disable": False, "file": written, "delay": 0, "mininterval": 0, "leave": True}
    LONG[what]()
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(_progress, "tqdm", lambda *given, **options: tqdm(*given, **options | terminal))
    LONG[what]()
    assert f"{what}: 100%" in written.getvalue()
