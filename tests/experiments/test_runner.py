"""The runner of the experiments: rows kept, trials not repeated, figures and captions written; and the catalogue."""

import dataclasses

import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure

from experiments import runner
from experiments.__main__ import main
from experiments.catalogue import CATALOGUE, load


def drawn(rows):
    figure = Figure(layout="constrained")
    figure.add_subplot().plot(rows["value"])
    return figure


class Counting:
    """An experiment of four trials of two rows each, which can be stopped before one of them."""

    def __init__(self):
        self.ran, self.stop = [], None
        self.experiment = runner.Experiment(
            trials=lambda quick: [{"kind": "a", "x": x / 10} for x in range(2 if quick else 4)],
            run=self.run,
            results=("part", "value"),
            figure=drawn,
            caption=lambda rows: f"\n    {len(rows)}\n    rows\n\n    claims",
        )

    def run(self, kind, x):
        if x == self.stop:
            raise KeyboardInterrupt
        self.ran.append(x)
        return [{"part": part, "value": x / 3 + part} for part in range(2)]


@pytest.fixture
def counting(monkeypatch):
    counting = Counting()
    monkeypatch.setattr(runner, "load", lambda name: counting.experiment)
    monkeypatch.setattr(runner, "run_trial", lambda name, trial: counting.run(**trial))
    return counting


def reproduce(folder, quick=False):
    return runner.reproduce("counting", folder, quick, processes=1)


def test_a_run_writes_table_figures_and_caption(counting, tmp_path):
    written = reproduce(tmp_path / "out")
    assert [path.name for path in written] == ["counting.csv", "counting.png", "counting.svg", "counting.txt"]
    rows = pd.read_csv(written[0])
    assert list(rows.columns) == ["kind", "x", "rows", "version", "private", "part", "value"]
    assert not rows["private"].any()
    assert len(rows) == 8
    assert written[3].read_text().startswith("8 rows\n\nclaims\n\nNoise is simulated")
    assert all(path.stat().st_size > 1000 for path in written[1:3])


def test_a_stopped_run_goes_on_and_ends_as_if_never_stopped(counting, tmp_path):
    whole = reproduce(tmp_path / "whole")[0].read_bytes()
    counting.ran.clear()
    counting.stop = 0.2
    with pytest.raises(KeyboardInterrupt):
        reproduce(tmp_path)
    assert counting.ran == [0.0, 0.1]
    counting.stop = None
    reproduce(tmp_path)
    assert counting.ran == [0.0, 0.1, 0.2, 0.3]
    assert (tmp_path / "counting.csv").read_bytes() == whole
    reproduce(tmp_path)
    assert len(counting.ran) == 4


@pytest.mark.parametrize("cut", [1, 10, 30])  # within a line, within a trial, and both
def test_a_trial_that_a_kill_left_incomplete_is_run_again(counting, tmp_path, cut):
    path = reproduce(tmp_path)[0]
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    counting.ran.clear()
    reproduce(tmp_path)
    assert counting.ran == [0.3]
    assert path.read_bytes() == whole


def test_quick_trials_are_drawn_alone_and_used_again(counting, tmp_path):
    assert reproduce(tmp_path, quick=True)[3].read_text().startswith("4 rows")
    assert reproduce(tmp_path)[3].read_text().startswith("8 rows")
    assert counting.ran == [0.0, 0.1, 0.2, 0.3]
    assert reproduce(tmp_path, quick=True)[3].read_text().startswith("4 rows")
    assert len(pd.read_csv(tmp_path / "counting.csv")) == 8


def refused(folder, text):
    path = folder / "counting.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match="another experiment or version"):
        reproduce(folder)
    assert path.read_text() == text


def test_a_table_of_another_version_is_not_overwritten(counting, monkeypatch, tmp_path):
    refused(tmp_path, "kind,y\na,1\n")
    (tmp_path / "counting.csv").unlink()
    text = reproduce(tmp_path)[0].read_text()
    first = counting.experiment
    counting.experiment = dataclasses.replace(first, version=2)
    refused(tmp_path, text)
    counting.experiment = first
    monkeypatch.setattr(runner, "__version__", "0")
    refused(tmp_path, text)


@pytest.mark.parametrize("name", CATALOGUE)
def test_trials_are_told_apart_by_what_is_in_the_table(name):
    experiment = load(name)
    for quick in (True, False):
        trials = experiment.trials(quick)
        identities = {runner._identity(trial) for trial in trials}
        assert len(identities) == len(trials)
        assert {tuple(trial) for trial in trials} == {tuple(trials[0])}
        assert not set(trials[0]) & set(experiment.results)
    assert len(experiment.trials(True)) <= len(experiment.trials(False))


def test_an_experiment_in_processes_of_its_own_repeats_exactly(monkeypatch, tmp_path):
    whole = load("bayes-naive")
    few = dataclasses.replace(
        whole,
        trials=lambda quick: [t for t in whole.trials(True) if t["epsilon"] in (10, 100) and not t["repeat"]],
        figure=lambda rows: drawn(rows.assign(value=rows["exact"])),
    )
    monkeypatch.setattr(runner, "load", lambda name: few)
    tables = [runner.reproduce("bayes-naive", tmp_path / str(n), processes=n)[0].read_bytes() for n in (1, 2)]
    assert tables[0] == tables[1]


def test_command_line():
    listed = CliRunner().invoke(main, ["--help"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in CATALOGUE)
    assert CliRunner().invoke(main, ["nothing"]).exit_code == 2
