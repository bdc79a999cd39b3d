"""Captions say what rows say: other rows, another sentence; and kept results are of the experiments as they are."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from experiments import peers
from experiments.catalogue import load
from experiments.cgm_pathologies import LITTLE, PATHOLOGIES, PROJECTIONS
from experiments.coverage import COLUMNS, COVERAGE, MARKERS
from experiments.protocol import SEARCHED, Settings, search_in_turn
from experiments.runner import _identities, _identity

KEPT = sorted((Path(__file__).parents[2] / "docs" / "experiments").glob("*.csv"))


def said(experiment, rows):
    return " ".join(experiment.caption(rows).split())


def pathologies(gain, noisy):
    """Two sizes and three regularisations; `gain` is what projecting brings where little is regularised."""
    lines = []
    for size in (10**4, 10**6):
        sampling, privacy = 1.0 / size, 1e6 / size**2
        slopes = {"noisy": 2 * (sampling + privacy), "exact": sampling}
        slopes |= {"sampling, 1/N": sampling, "privacy, 1/N^2": privacy}
        lines += [("slopes", size, 0.0, name, value) for name, value in slopes.items()]
        divergences = dict(zip(PROJECTIONS, (1.0, 2.0 if size == 10**4 else 0.5, 1.0, gain), strict=True))
        lines += [("projection", size, 0.0, name, value) for name, value in divergences.items()]
    for weight, value in zip((1e-4, 1e-2, 1.0), noisy, strict=True):
        lines += [("regularization", 10**5, weight, "noisy", value), ("regularization", 10**5, weight, "exact", 1.0)]
    rows = pd.DataFrame(lines, columns=["part", "size", "weight", "series", "value"])
    return rows.assign(release=0)


def test_the_caption_of_what_is_wrong_with_naive_likelihood_follows_its_rows():
    text = said(PATHOLOGIES, pathologies(3.0, (9.0, 2.0, 2.1)))
    assert "the error is 2.000 times the sum" in text
    assert "equal at N = 1 million" in text
    assert "projected is better in 1 of 2 sizes, by factors of 0.5 to 2; with" in text
    assert f"lambda = {LITTLE:g} in 2, by 3 to 3." in text
    assert "least, 2, at lambda = 0.01, and within a tenth of that at 2 of 3 lambdas" in text
    assert "without noise it is least, 1, at lambda = 0.0001." in text
    assert "gives 9 with noise and 1 without" in text
    other = said(PATHOLOGIES, pathologies(0.5, (1.0, 2.0, 3.0)))
    assert f"lambda = {LITTLE:g} in 0, by 0.5 to 0.5." in other
    assert "at lambda = 0.0001, and within a tenth of that at 1 of 3" in other


def test_the_caption_of_bounds_follows_its_rows():
    lines = [
        {"network": network, "epsilon": epsilon, "target": target, "answers": kind}
        for network in ("asia", "alarm")
        for epsilon in (0.3, 3.0)
        for target in ("population", "records")
        for kind in MARKERS
    ]
    rows = pd.DataFrame(lines).assign(first=0, sets=10, **dict.fromkeys(COLUMNS, 0.05)).assign(coverage=0.9, width=1.0)
    worst = (rows["network"] == "alarm") & (rows["epsilon"] == 0.3) & (rows["answers"] == "query")
    rows.loc[worst, "coverage"], rows.loc[worst, "above"] = 0.7, 0.25
    rows.loc[worst & (rows["target"] == "records"), ["coverage", "rmse_mean"]] = 0.6, 0.01
    text = said(COVERAGE, rows)
    assert "query 0.700 to 0.900, width 1.00 to 1.00" in text
    assert "within 0.02 of what is said in 22 and lower in 2" in text
    assert "lowest, 0.600, for query answers of alarm at epsilon 0.3, for the records" in text
    assert "0.3: 0.858, width 1.00; 3: 0.900, width 1.00" in text
    assert "differ by 0.200 at most" in text
    assert "closer than the fit itself in 1 places" in text


def test_the_caption_of_the_comparison_with_peers_follows_its_rows():
    quantities = [*peers.FRESH.values(), "calibration, seconds", "to 0.1 % of the optimum, seconds", "table cells"]
    lines = [{"case": case, "quantity": name} for case in ("asia", "alarm") for name in quantities]
    rows = pd.DataFrame(lines).assign(ours=1.0, theirs=3.0, reached=True, pgmpy=np.nan, longest=20.0, estimators=5)
    rows.loc[(rows["case"] == "alarm") & (rows["quantity"] == "calibration, seconds"), "theirs"] = 0.5
    rows.loc[rows["quantity"] == "KL of the distribution", "theirs"] = 0.1
    rows.loc[(rows["case"] == "alarm") & rows["quantity"].str.startswith("to 0.1"), "reached"] = False
    rows.loc[rows["case"] == "asia", "pgmpy"] = 7.0
    text = said(peers.PEERS, rows)
    assert "calibration, seconds 0.5 to 3;" in text
    assert "2 (fresh process, peak megabytes), 1 (calibration, seconds), 2 (to 0.1 % of the optimum, seconds)" in text
    assert "its loss is no higher in 2" in text
    assert "in its time on 1, where" in text
    assert "finished on asia, loss 7 where 1 is reached. It did not finish, or failed, on alarm" in text
    assert "farther from the truth than mbi's on 2 of 2" in text
    assert "nearer than mbi's fit on 2" in text


def test_settings_are_searched_in_turn_and_sampling_rates_are_at_most_one():
    seen = []

    def loss(one):
        seen.append(one)
        return abs(np.log(one.learning_rate / 10)) + abs(np.log(one.sampling_rate / 1.0)) + one.steps / 100

    found, minimum = search_in_turn(loss, Settings(200, 1.0, 0.5, 2.0))
    assert found == Settings(50, 10.0, 1.0, 2.0)
    assert minimum == pytest.approx(0.5)
    assert len(seen) == 1 + sum(map(len, SEARCHED.values()))
    assert len(set(seen)) == len(seen)
    assert found.columns()["sgd_sampling_rate"] == 1.0


@pytest.mark.parametrize("path", KEPT, ids=[path.stem for path in KEPT])
def test_results_that_are_kept_are_full_runs_of_the_experiments_as_they_are(path):
    experiment, rows = load(path.stem), pd.read_csv(path)
    trials = experiment.trials(False)
    keys = list(trials[0])
    assert list(rows.columns) == [*keys, "rows", "version", "private", *experiment.results]
    assert {re.sub(".*-", "", version) for version in rows["version"]} == {str(experiment.version)}
    assert set(_identities(rows, keys)) == {_identity(trial) for trial in trials}
    assert (rows.groupby(keys)["rows"].transform("size") == rows["rows"]).all()
    caption = path.with_suffix(".txt").read_text()
    paragraphs = [" ".join(part.split()) for part in experiment.caption(rows).strip().split("\n\n")]
    assert caption.startswith("\n\n".join(paragraphs) + "\n\n")
