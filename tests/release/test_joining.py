"""Releases of the same records are joined: the promise adds up, the noise goes down, and nothing is understated."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pgmpy.models import DiscreteBayesianNetwork

import pgmpy_dp as dp
from pgmpy_dp.inference import GaussianNoise, LaplaceNoise
from pgmpy_dp.release.marginals import pooled_counts

STATES = {"a": ["x", "y"], "b": ["x", "y", "z"]}
SCHEMA = dp.Schema(STATES)
EDGES = [("a", "b")]
CODES = np.random.default_rng(0).integers(0, [2, 3], (900, 2))
FRAME = pd.DataFrame({v: np.array(STATES[v])[CODES[:, i]] for i, v in enumerate("ab")})
KINDS = {"laplace": {}, "gaussian": {"delta": 1e-7, "mechanism": "gaussian"}}


def measured(epsilon, kind="laplace", cliques=EDGES, neighbours="add_remove", noise=None):
    budget = dp.PrivacyBudget(20.0, 0.0 if kind == "laplace" else 1e-5)
    data = dp.PrivateDataset(
        FRAME, SCHEMA, budget, neighbours=neighbours, **({} if noise is None else {"noise": noise})
    )
    return data.measure(cliques, epsilon, **KINDS[kind])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_promises_add_up_and_noise_goes_down(kind, neighbours, tmp_path):
    first, second = measured(0.5, kind, neighbours=neighbours), measured(1.0, kind, [("b", "a")], neighbours)
    joined = first + second
    assert joined.cliques == (("a", "b"),)
    assert (joined.guarantee.epsilon, joined.guarantee.mechanism) == (1.5, kind)
    assert joined.guarantee.delta == first.guarantee.delta + second.guarantee.delta
    if kind == "gaussian":
        assert joined.guarantee.rho >= first.guarantee.rho + second.guarantee.rho
    assert joined.guarantee.private
    precision = 1 / first.variances["a", "b"] + 1 / second.variances["b", "a"]
    assert joined.variances["a", "b"] == pytest.approx(1 / precision + 1 / 8, rel=0.05)  # it is rounded
    assert joined.variances["a", "b"] > 1 / precision
    weights = np.array([1 / first.scales["a", "b"] ** 2, 1 / second.scales["b", "a"] ** 2])
    mean = np.average([first.tables["a", "b"], second.tables["b", "a"].T], axis=0, weights=weights)
    assert np.abs(joined.tables["a", "b"] - mean).max() <= 0.5
    assert joined.public_total == first.public_total
    joined.save(tmp_path / "joined.zip")
    assert dp.NoisyMarginals.load(tmp_path / "joined.zip") == joined


def test_what_tables_were_chosen_among_stays_with_them(tmp_path):
    chosen = replace(measured(0.25, cliques=[("b", "a")]), chosen_among={("b", "a"): 12})
    chosen.save(tmp_path / "chosen.zip")
    assert dp.NoisyMarginals.load(tmp_path / "chosen.zip").chosen_among == {("b", "a"): 12}
    for joined in (measured(0.5) + chosen, chosen + measured(0.5)):
        assert dict(joined.chosen_among) == {joined.cliques[0]: 12}
    fewer = replace(chosen, chosen_among={("b", "a"): 3})
    assert dict((measured(0.5, cliques=[("a",)]) + fewer).chosen_among) == {("b", "a"): 3}
    assert fewer != chosen
    for wrong in ({("a",): 3}, {("b", "a"): 0}, {("b", "a"): 2.5}):
        with pytest.raises(ValueError, match=r"is stated to be chosen|must be a whole number"):
            replace(chosen, chosen_among=wrong)


@given(
    st.lists(st.floats(0.3, 50.0), min_size=2, max_size=2).map(tuple),
    st.sampled_from(["laplace", "gaussian"]),
    st.integers(0, 2**32 - 1),
)
@example((1.5, 1.5), "gaussian", 52)  # half of all means are ties
@example((1.2, 1.2 * 3**0.5), "gaussian", 52)  # a quarter
@settings(max_examples=40, deadline=None)
def test_no_noise_is_understated(scales, kind, seed):
    """The scale of a pooled table says at least what the noise in it is: variances of 4,000 cells, within 15 %."""
    draw = getattr(dp.SimulatedNoise(seed), f"discrete_{kind}")
    zeros = np.zeros(4000, dtype=np.int64)
    law = LaplaceNoise if kind == "laplace" else GaussianNoise
    table, scale = pooled_counts((draw(zeros, scales[0]), draw(zeros, scales[1])), scales, kind)
    said = law.unit * scale**2
    assert table.var() < 1.15 * said + 0.02
    assert table.var() > 0.85 * said - 0.35  # noise of whole numbers is less than its scale says where it is small


def test_weights_of_units_are_rounded_to_their_parts_alone():
    people = FRAME.assign(person=np.arange(len(FRAME)) // 3)
    budget, noise = dp.PrivacyBudget(20.0), dp.SimulatedNoise(0)
    data = dp.PrivateDataset(people, SCHEMA, budget, unit="person", noise=noise)
    first, second = data.measure(EDGES, 0.5), data.measure(EDGES, 1.0)
    joined = first + second
    precisions = [1 / part.variances["a", "b"] for part in (first, second)]
    mean = np.average([part.tables["a", "b"] for part in (first, second)], axis=0, weights=precisions)
    assert np.abs(joined.tables["a", "b"] - mean).max() <= 2.0**-20
    assert joined.variances["a", "b"] == pytest.approx(1 / sum(precisions), rel=1e-9)


def test_what_cannot_be_joined_is_refused():
    one = measured(0.5)
    people = FRAME.assign(person=np.arange(len(FRAME)) // 2)
    units = dp.PrivateDataset(people, SCHEMA, dp.PrivacyBudget(1.0), unit="person", max_rows=2)
    plain, turned = (
        dp.PrivateDataset(FRAME, schema, dp.PrivacyBudget(1.0))
        for schema in (SCHEMA, dp.Schema({"b": STATES["b"][::-1], "a": STATES["a"]}))
    )
    for other, refusal in (
        (one, "with itself"),
        (measured(0.5, "gaussian"), "the same kind of noise"),
        (measured(0.5, neighbours="replace_one"), "different neighbours"),
        (dp.exact_marginals(FRAME, SCHEMA, EDGES), "Exact counts"),
        (plain.measure(EDGES, 0.5, sampling_rate=0.5), "on all records"),
        (units.measure(EDGES, 0.5), "different unit"),
        (turned.measure([("b",)], 0.5), "other states"),
    ):
        with pytest.raises(ValueError, match=refusal):
            _ = one + other
    with pytest.raises(TypeError):
        _ = one + 1
    data = dp.PrivateDataset(FRAME, SCHEMA, dp.PrivacyBudget(20.0, 1e-6))
    residuals = data.measure_residuals(dict.fromkeys([(), ("a",), ("b",), ("a", "b")], 9.0), delta=1e-6)
    for other in (one, replace(measured(0.5, "gaussian"), chosen_among={("a", "b"): 12})):
        with pytest.raises(ValueError, match="Gaussian noise, of single records, whose tables were not chosen"):
            _ = residuals + other


def test_schemas_are_joined_with_bins_and_stand_ins():
    bins = dp.Schema({"age": dp.Bins([0, 40, 90])}, missing={"age": "none"})
    joined = bins.join(SCHEMA)
    assert joined.variables == ("age", "a", "b")
    assert joined.bins == bins.bins
    assert joined.missing == {"age": "none"}
    assert SCHEMA.join(SCHEMA) == SCHEMA
    for other in (dp.Schema({"a": ["y", "x"]}), dp.Schema(bounds={"a": (0, 1)})):
        with pytest.raises(dp.SchemaError, match="'a' has other states"):
            SCHEMA.join(other)


ESTIMATORS = {
    "CollectiveEM": dp.CollectiveEM,
    "PrivateMLE": dp.PrivateMLE,
    "PrivateBayesianEstimator": dp.papers.PrivateBayesianEstimator,
    "PosteriorMean": lambda: dp.PosteriorMean(draws=20),
}


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", [list, tuple])
def test_estimators_fit_several_releases(name, kind):
    """They hold the variables between them, and each its own part of the privacy loss."""
    releases = kind([measured(0.5), measured(1.0), measured(0.25, cliques=[("b",)])])
    network = dp.PrivateBayesianNetwork(EDGES).fit(releases, estimator=ESTIMATORS[name]())
    assert network.guarantee_.epsilon == 1.75
    assert network.query(["b"]).values == pytest.approx(np.full(3, 1 / 3), abs=0.1)


def test_markov_networks_and_mixtures_fit_several_releases():
    releases = [measured(5.0, cliques=[("a",)]), measured(5.0, cliques=[("b",), ("a", "b")])]
    network = dp.PrivateMarkovNetwork(EDGES).fit(releases)
    assert network.guarantee_.epsilon == 10.0
    assert network.release_ == releases[0] + releases[1]
    estimator = dp.PairwiseMixture(components=2, members=1).fit(tuple(releases))
    assert estimator.guarantee_ == estimator.network_.guarantee_ == network.guarantee_
    assert estimator.network_.query(["a"]).values == pytest.approx([0.5, 0.5], abs=0.1)


def test_lists_that_are_no_releases_of_one_kind():
    network, one = DiscreteBayesianNetwork(EDGES), measured(0.5)
    for estimator in (dp.PrivateMLE(), dp.PosteriorMean()):
        with pytest.raises(ValueError, match="given twice"):
            network.fit([one, measured(0.5), one], estimator=estimator)
    with pytest.raises(ValueError, match="CollectiveEM or PosteriorMean"):
        network.fit([one, measured(0.5, "gaussian")], estimator=dp.PrivateMLE())
    with pytest.raises(TypeError, match="DataFrame"):
        network.fit([one, FRAME], estimator=dp.PrivateMLE())
    assert network.fit([one], estimator=dp.PrivateMLE()).get_cpds("a") is not None


def test_schemas_that_read_shared_variables_otherwise_are_not_joined():
    rule, states = dp.Forbidden({"a": ["x"], "b": ["z"]}), {**STATES, "c": ["u", "v"]}
    plain, ruled = dp.Schema(STATES, missing={"a": "x"}), dp.Schema(STATES, missing={"a": "x"}, rules=[rule])
    with pytest.raises(dp.SchemaError, match="A rule about 'a', 'b'"):
        ruled.join(plain)
    with pytest.raises(dp.SchemaError, match="Variable 'a' has other missing"):
        plain.join(dp.Schema(STATES, missing={"a": "x"}, missing_values={"a": ["?"]}))
    wider = dp.Schema(states, missing={"a": "x"}, rules=[rule, dp.Forbidden({"a": ["y"], "c": ["v"]})])
    assert len(ruled.join(wider).rules) == 2
