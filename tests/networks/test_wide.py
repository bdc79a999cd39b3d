"""Wide networks are tested and drawn in parts: a question needs its variables and their ancestors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.networks import fitted_network

EDGES = [("a", "b"), ("b", "c"), ("b", "d"), ("d", "e"), ("f", "g")]
SCHEMA = dp.Schema({variable: ["no", "yes"] for variable in "abcdefg"})
QUESTIONS = [(["b"], {"a": "yes"}), (["d"], {"c": "no"}), (["g"], {}), (["a", "b"], {})]


@pytest.fixture(scope="module")
def release():
    generator = np.random.default_rng(0)
    bits = {"a": generator.random(3000) < 0.4, "f": generator.random(3000) < 0.3}
    for parent, child in EDGES:
        bits[child] = np.where(generator.random(3000) < 0.7, bits[parent], generator.random(3000) < 0.5)
    frame = pd.DataFrame({v: np.where(bits[v], "yes", "no") for v in "abcdefg"})
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    return data.measure(*dp.plan_measurements(dp.PrivateBayesianNetwork(EDGES), SCHEMA)[:1], epsilon=1.0)


@pytest.fixture
def wide(release, monkeypatch):
    """A network of 24 cells, where 8 are many, and what is drawn and tested of it."""
    done = {"draw_networks": [], "check_network": []}

    def counted(own, calls):
        def call(network, *arguments, **options):
            calls.append("".join(sorted(network.nodes())))
            return own(network, *arguments, **options)

        return call

    for name, calls in done.items():
        monkeypatch.setattr(fitted_network, name, counted(getattr(fitted_network, name), calls))
    monkeypatch.setattr(fitted_network, "WIDE", 8)
    return dp.PrivateBayesianNetwork(EDGES).fit(release), done


def test_a_question_draws_and_tests_the_families_that_it_needs_once(wide):
    network, done = wide
    for _ in range(2):
        network.query(["b"], {"a": "yes"}, interval=0.9)
        network.expectation({"b": {"no": 0.0, "yes": 1.0}}, {"a": "no"}, interval=0.5)
        network.query(["b"])
        network.cpd_interval("b")
    assert done == {"draw_networks": ["ab"], "check_network": ["ab"]}
    network.map_probability(["g"])
    assert done["draw_networks"] == ["ab", "fg"]
    assert network.fit_checked_


def test_answers_do_not_depend_on_what_was_asked_before(wide, release):
    network, _ = wide
    again = dp.PrivateBayesianNetwork(EDGES).fit(release)
    found = {str(question): network.query(*question, interval=0.9) for question in QUESTIONS}
    for question in reversed(QUESTIONS):
        plain = again.query(*question)
        bounded = again.query(*question, interval=0.9)
        pd.testing.assert_frame_equal(bounded, found[str(question)])
        np.testing.assert_allclose(plain.values.ravel(), bounded["value"])


def test_bounds_are_about_those_of_the_whole(wide, release, monkeypatch):
    """Children tell of their parents' shares, so that the part's bounds may be wider, hardly narrower."""
    network, done = wide
    parts = [network.query(*question, interval=0.9) for question in QUESTIONS]
    monkeypatch.setattr(fitted_network, "WIDE", 100)
    whole = dp.PrivateBayesianNetwork(EDGES).fit(release)
    for question, part in zip(QUESTIONS, parts, strict=True):
        full = whole.query(*question, interval=0.9)
        np.testing.assert_allclose(part["value"], full["value"])
        ratio = (part["upper"] - part["lower"]).sum() / (full["upper"] - full["lower"]).sum()
        assert 0.8 < ratio < 1.4
    assert done["draw_networks"][-1] == "abcdefg"


def test_parts_of_an_estimators_own_draws(wide, release):
    network, done = wide
    network.fit(release, estimator=dp.PosteriorMean(draws=50))
    bounded = network.query(["d"], {"c": "no"}, interval=0.9)
    assert not done["draw_networks"]
    part = network._fitted.part(["d", "c"]).posterior
    assert part.schema.variables == ("a", "b", "c", "d")
    own = network.draws_.layout.tables(network.draws_.population[7])
    for scope, table in part.layout.tables(part.population[7]).items():
        np.testing.assert_array_equal(table, own[scope])
    assert (bounded["lower"] < bounded["upper"]).all()


def test_a_page_with_bounds_has_no_parts(wide, tmp_path):
    network, done = wide
    with pytest.raises(TreeTooLargeError, match="question by question"):
        network.explore(tmp_path / "page.html")
    assert not done["draw_networks"]
