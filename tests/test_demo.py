"""The demonstration, as a user runs it."""

import pytest
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp import demo
from pgmpy_dp.cli import main


def test_demo_writes_what_it_names(tmp_path):
    result = CliRunner().invoke(main, ["demo", "--out", str(tmp_path / "out")])
    assert result.exit_code == 0, result.output
    assert "NOT PRIVATE" in result.output
    assert result.output.count("\nP(") == 3
    page = (tmp_path / "out" / "report.html").read_text()
    assert "median 0." not in page  # numbers in bins are whole, and whether somebody is limited is no number
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


@pytest.mark.full
def test_the_network_passes_its_own_test_and_its_bounds_hold_the_records_answers():
    """On eight releases; on a hundred, tests/benchmarks/demonstration.py has the rates."""
    records, failures, covered = demo.first_years(demo.load_records()), 0, []
    assert len(records) == 4836
    for seed in range(8):
        network = dp.PrivateBayesianNetwork(demo.EDGES)
        network.fit(demo.release(records, 1.0, noise=dp.SimulatedNoise([1, seed])))
        failures += network.check_fit().fails
        for variable, evidence in demo.QUERIES[: 3 if seed < 3 else 0]:
            bounds, truth = network.query([variable], evidence, 0.9), demo.truth(records, variable, evidence)
            covered += list((bounds["lower"] <= truth) & (truth <= bounds["upper"]))
    assert failures <= 1
    assert sum(covered) >= 0.75 * len(covered)  # of 36 states, not independent


def test_what_is_refused_leaves_no_folder(tmp_path):
    result = CliRunner().invoke(main, ["demo", "--epsilon", "0", "--out", str(tmp_path / "out")])
    assert result.exit_code == 1
    assert "--epsilon" in result.output
    assert not list(tmp_path.iterdir())
