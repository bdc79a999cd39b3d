"""What a notebook shows of each thing."""

import pandas as pd
import pytest

import pgmpy_dp as dp

HOSTILE = "<script>"


def test_everything_has_a_table_and_names_are_escaped():
    schema = dp.Schema({HOSTILE: ["yes", "no"], "lung": ["yes", HOSTILE]})
    frame = pd.DataFrame({HOSTILE: ["yes", "no"] * 500, "lung": ["yes", HOSTILE, HOSTILE, HOSTILE] * 250})
    budget = dp.PrivacyBudget(2.0, 1e-6)
    noisy = dp.PrivateDataset(frame, schema, budget).measure([(HOSTILE, "lung")], 1.0)
    network = dp.PrivateBayesianNetwork([(HOSTILE, "lung")]).fit(noisy)
    answer = network.query(["lung"], {HOSTILE: "yes"}, interval=0.9)
    markov = dp.PrivateMarkovNetwork([(HOSTILE, "lung")]).fit(noisy)
    for shown in (schema, budget, noisy, noisy.guarantee, network, markov, answer):
        html = shown._repr_html_()
        assert "<table>" in html
        assert HOSTILE not in html
    assert answer._repr_html_().count("<svg") == 2
    assert "epsilon = 1.0" in noisy._repr_html_()
    assert type(answer.round(2)) is pd.DataFrame


def test_a_release_is_saved_as_a_zip_file(tmp_path):
    data = dp.PrivateDataset({("a",): [5, 6]}, dp.Schema({"a": ["x", "y"]}), dp.PrivacyBudget(1.0))
    noisy = data.measure([("a",)], 1.0)
    with pytest.raises(ValueError, match=r"x\.json: a release is a zip file: end its name in \.zip"):
        noisy.save(tmp_path / "x.json")
    assert list(tmp_path.iterdir()) == []
