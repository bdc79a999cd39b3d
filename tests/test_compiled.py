"""Loops are compiled once, and a progress bar counts them."""

import io

import numba
from numba.core import event
from tqdm import tqdm

from pgmpy_dp import _compiled


def test_a_bar_counts_the_loops_that_are_compiled(monkeypatch):
    written = io.StringIO()
    terminal = {"disable": False, "file": written, "delay": 0, "mininterval": 0}
    monkeypatch.setattr(_compiled, "tqdm", lambda **options: tqdm(**options | terminal))

    @numba.njit
    def doubled(value):
        return 2 * value

    progress = _compiled._Progress()
    with event.install_listener("numba:compile", progress):
        assert doubled(1.0) == doubled(1.0)
        assert progress.bar.n == 1
        doubled(1)  # for other types, once more
        assert progress.bar.n == 2
    assert "Compiling, once on this machine: 1loop" in written.getvalue()
    assert any(isinstance(listener, _compiled._Progress) for listener in event._registered["numba:compile"])
