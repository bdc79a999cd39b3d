"""The demonstration, as a user runs it."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp.cli import main


def test_demo_writes_what_it_names(tmp_path):
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE" in result.output
    assert result.output.count("\nP(") == 3
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"release.zip", "bayesian.zip", "markov.zip", "report.html", "explore.html", "bounds.png"}
    noisy = dp.NoisyMarginals.load(tmp_path / "out" / "release.zip")
    assert noisy.guarantee.private
    assert noisy.guarantee.epsilon == 1.0
    for name in ("bayesian.zip", "markov.zip"):
        network = dp.load(tmp_path / "out" / name)
        answer = network.query(["visits"], evidence={"health": "poor"})
        assert answer.values.sum() == pytest.approx(1.0)
        assert answer.state_names["visits"] == list(noisy.schema.states["visits"])
        report = ["report", str(tmp_path / "out" / name), "--out", str(tmp_path / f"{name}.html")]
        assert CliRunner().invoke(main, report).exit_code == 0


def test_errors_are_sentences_not_tracebacks(tmp_path):
    refused = CliRunner().invoke(main, ["demo", "--out", str(tmp_path), "--epsilon", "0"])
    assert refused.exit_code == 1
    assert "Error: --epsilon must be greater than 0" in refused.output
    unknown = CliRunner().invoke(main, ["demos"])
    assert unknown.exit_code == 2
    assert "Traceback" not in unknown.output
