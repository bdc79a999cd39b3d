"""Synthetic records beside a release and beside records."""

import itertools

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import compare

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y", "z"], "c": dp.Bins([0, 1, 2, 5])})


def made(count, seed, shift=0.0):
    draw = np.random.default_rng(seed)
    a = draw.random(count) < 0.3
    b = np.where(draw.random(count) < 0.6 + shift, a.astype(int), draw.integers(3, size=count))
    return pd.DataFrame({"a": np.where(a, "y", "x"), "b": np.array(["x", "y", "z"])[b], "c": 5 * draw.random(count)})


def test_records_beside_records_by_hand():
    one, other = made(500, 0), made(400, 1)
    found = compare(one, other, SCHEMA)
    assert found.attrs["guarantee"].startswith("NOT PRIVATE")
    assert len(found) == 6
    table = pd.crosstab(one["a"], one["b"]) / 500 - pd.crosstab(other["a"], other["b"]) / 400
    assert found.loc[[("a", "b")], "error"].item() == pytest.approx(table.abs().to_numpy().sum() / 2)
    assert found["error"].is_monotonic_decreasing
    assert (found["noise"] == 0).all()
    with pytest.raises(dp.SchemaError, match="schema"):
        compare(one, other)


def test_noise_is_told_from_misfit():
    """Beside a release, the records themselves have no excess (6 tables, 3.5 deviations each); others have."""
    records = made(20_000, 2)
    cliques = [c for size in (1, 2) for c in itertools.combinations("abc", size)]
    data = dp.PrivateDataset(records, SCHEMA, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(3))
    release = data.measure(cliques, 1.0)
    true = compare(release, records)
    assert (true["excess"].abs() < 3.5 * 2).all()  # squares of Laplace noise vary more than those of Gaussian noise
    assert true["error"].to_numpy() == pytest.approx(true["noise"].to_numpy(), rel=1.5)
    wrong = compare(release, made(20_000, 4, shift=0.2))
    assert wrong.index[0] == ("a", "b")
    assert wrong["excess"].iloc[0] > 50


def test_a_model_is_compared_by_its_marginals():
    records = made(5000, 5)
    estimator = dp.PairwiseMixture(5.0, 1e-6, SCHEMA, components=8, members=2).fit(records)
    found = compare(estimator.release_, estimator.network_)
    assert (found["excess"] < 5).all()
    assert compare(records, estimator.network_, SCHEMA)["error"].max() < 0.02


def test_a_model_with_other_states_is_no_model_of_the_release():
    """The same records in another order of states: a comparison by places would find them far apart."""
    records = made(500, 6)[["a"]]
    one, other = (dp.Schema({"a": states}) for states in (["x", "y"], ["y", "x"]))
    network = dp.PairwiseMixture(5.0, 1e-6, other, components=2, members=1).fit(records).network_
    with pytest.raises(dp.SchemaError, match="'a' has other states"):
        compare(records, network, one)
