"""A variable that follows from a finer one is routed: no table of all states of both is made, from fit to records."""

import tracemalloc
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.inference.mixtures.children import Child
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.release import Guarantee

FINE, COARSE = 20_000, 500
PLACES = np.arange(FINE) % COARSE
GROUPS = {f"f{number}": f"c{number % COARSE}" for number in range(FINE)}


def schema_of(kind, fine=FINE, coarse=COARSE):
    groups = {f"f{number}": f"c{number % coarse}" for number in range(fine)}
    states = {"fine": list(groups), "coarse": [f"c{number}" for number in range(coarse)], "a": ["x", "y"]}
    return dp.Schema(states, rules=[kind("fine", "coarse", groups)])


@contextmanager
def at_most(megabytes):
    """As bytes a table of all cells takes 10 MB, as floats 80 MB."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < megabytes * 1e6
    finally:
        tracemalloc.stop()


def network_of(kind):
    draw, a = np.random.default_rng(0), np.array([[0.2, 0.8], [0.7, 0.3]])
    if kind is dp.Dependency:
        tables = [draw.dirichlet(np.ones(FINE), 2), a]
        sizes = {"fine": FINE, "coarse": COARSE, "a": 2}
        mixture = Mixture.of(
            sizes, [("fine",), ("a",)], [0.5, 0.5], tables, {"coarse": Child.function("fine", PLACES, COARSE)}
        )
    else:
        tables = [draw.dirichlet(np.ones(COARSE), 2), a]
        children = {"fine": Child.within("coarse", PLACES, np.full(FINE, COARSE / FINE), COARSE)}
        sizes = {"fine": FINE, "coarse": COARSE, "a": 2}
        mixture = Mixture.of(sizes, [("coarse",), ("a",)], [0.5, 0.5], tables, children)
    guarantee = Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True)
    return dp.PrivateMixtureNetwork(schema_of(kind), mixture, 1000.0, guarantee)


@pytest.mark.parametrize("kind", [dp.Dependency, dp.Hierarchy])
def test_answers_and_records_make_none(kind):
    network = network_of(kind)
    network.simulate(10, seed=0)  # compiles
    with at_most(20):
        assert network.query(["coarse"], {"fine": "f507"}).get_value(coarse="c7") == pytest.approx(1.0)
        fine = network.query(["fine"], {"coarse": "c7", "a": "x"}).values
        assert (fine > 0).sum() == FINE / COARSE
        drawn = network.simulate(1000, seed=0)
    with at_most(5):
        assert network.schema_.possible(["fine"], {"coarse": "c7"}).sum() == FINE / COARSE
        assert network.schema_.possible(["coarse"], {"fine": "f507"}).sum() == 1
    assert (drawn["fine"].astype(str).map(GROUPS) == drawn["coarse"].astype(str)).all()


@pytest.mark.slow
def test_fits_and_bounds_make_none():
    draw, schema = np.random.default_rng(0), schema_of(dp.Hierarchy)
    fine = draw.choice(list(GROUPS), 2000)
    frame = pd.DataFrame({"fine": fine, "coarse": pd.Series(fine).map(GROUPS), "a": draw.choice(["x", "y"], 2000)})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
    release = data.measure(dp.plan_pairs(schema)[0], 1.0)
    with at_most(60):
        network = dp.PairwiseMixture(components=2, members=1).fit(release).network_
    network.sample_draws(4)
    with at_most(30):
        bounds = network.query(["fine"], {"coarse": "c7"}, interval=0.9)
        assert (bounds["upper"] > 0).sum() <= FINE / COARSE
        network.query(["coarse"], {"fine": "f507"}, interval=0.9)


@pytest.mark.parametrize("kind", [dp.Dependency, dp.Hierarchy])
def test_what_needs_a_dense_table_refuses_large_ones_with_a_way_out(kind, monkeypatch):
    monkeypatch.setattr("pgmpy_dp.networks.bayesian_network._MAX_CELLS", FINE * COARSE - 1)
    with pytest.raises(ValueError, match=r"would have more than 67 million cells.*ask the mixture itself"):
        network_of(kind).to_bayesian_network()
    schema = schema_of(kind, 50_000)
    assert schema.possible(["coarse"], {"fine": "f507"}).sum() == 1
    network = dp.PrivateBayesianNetwork([("fine", "coarse"), ("coarse", "a")])
    data = dp.PrivateDataset(
        pd.DataFrame({"fine": ["f1"], "coarse": ["c1"], "a": ["x"]}), schema, dp.PrivacyBudget(1.0)
    )
    with pytest.raises(dp.SchemaError, match="fit PairwiseMixture, which needs no network"):
        network.fit(data, estimator=dp.PrivateMLE(1.0))
    assert not data.budget.history
