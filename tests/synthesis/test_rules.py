"""Rules of the schema in a mixture, from records to synthetic records; what contradicts them is said."""

import itertools
import warnings

import numpy as np
import pandas as pd
import pytest
from pgmpy.inference import VariableElimination

import pgmpy_dp as dp

REGIONS = {"Ulm": "south", "Kiel": "north", "Bonn": "west", "Passau": "south", "Essen": "west"}
RULES = [
    dp.Dependency("place", "region", REGIONS),
    dp.Forbidden({"age": ["child"], "married": ["yes", "once"]}),
    dp.Forbidden({"region": "south", "boat": "yes"}),
    dp.Allowed(("age", "job"), [("child", "no"), ("adult", "no"), ("adult", "yes"), ("old", "no")]),
]
STATES = {
    "place": list(REGIONS),
    "region": ["north", "south", "west"],
    "age": ["child", "adult", "old"],
    "married": ["no", "yes", "once"],
    "boat": ["no", "yes"],
    "job": ["no", "yes"],
}
SCHEMA = dp.Schema(STATES, rules=RULES)


def records(count: int, *, rules: bool = True, seed: int = 0) -> pd.DataFrame:
    """Records by chance, of which those are kept that obey the rules; or all of them."""
    draw = np.random.default_rng(seed)
    frame = pd.DataFrame({v: draw.choice(states, 8 * count) for v, states in STATES.items()})
    if rules:
        frame["region"] = frame["place"].map(REGIONS)
        frame = frame[~broken(frame)]
    return frame.iloc[:count].reset_index(drop=True)


def broken(frame: pd.DataFrame) -> pd.Series:
    return (
        (frame["place"].map(REGIONS) != frame["region"])
        | ((frame["age"] == "child") & (frame["married"] != "no"))
        | ((frame["region"] == "south") & (frame["boat"] == "yes"))
        | ((frame["age"] != "adult") & (frame["job"] == "yes"))
    )


@pytest.fixture(scope="module")
def network():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return dp.PairwiseMixture(3.0, 1e-6, SCHEMA, components=20, members=2).fit(records(4000)).network_


def test_variables_that_follow_from_each_other_are_in_no_pair():
    cliques, weights = dp.plan_pairs(SCHEMA)
    assert ("place", "region") not in cliques
    assert {("region", "age"), ("place", "age"), ("region",)} <= set(cliques)
    assert sum(weights) == pytest.approx(1.0)


def test_no_synthetic_record_breaks_a_rule(network, tmp_path):
    network.save(tmp_path / "network.json")
    for held in (network, dp.PrivateMixtureNetwork.load(tmp_path / "network.json")):
        drawn = held.simulate(20_000, seed=0)
        assert not broken(drawn).any()
        assert list(drawn.columns) == list(STATES)
        assert not broken(held.simulate(2000, seed=0, evidence={"region": "south"})).any()
    real = records(4000)
    for pair in itertools.combinations(STATES, 2):
        one, other = (frame.value_counts(list(pair), normalize=True) for frame in (drawn, real))
        assert one.sub(other, fill_value=0).abs().sum() / 2 < 0.05, pair


def test_answers_and_bounds_give_what_is_forbidden_no_probability(network):
    network.sample_draws(4)
    bounds = network.query(["married"], {"age": "child"}, interval=0.9)
    assert bounds.loc["no"].tolist() == pytest.approx([1.0, 1.0, 1.0])
    assert (bounds.loc[["yes", "once"]] == 0.0).all(axis=None)
    pair = network.query(["region", "place"], interval=0.9)
    assert (pair.loc[("north", "Ulm")] == 0.0).all()
    assert network.query(["boat"], {"place": "Ulm"}).get_value(boat="yes") == 0.0
    assert network.map_query(["region"], {"place": "Kiel"}) == {"region": "north"}
    with pytest.raises(ValueError, match="probability zero"):
        network.query(["age"], {"region": "south", "boat": "yes"})
    answer = VariableElimination(network.to_bayesian_network()).query(
        ["boat"], {"region": "south"}, show_progress=False
    )
    assert answer.get_value(boat="yes") == 0.0


@pytest.mark.parametrize("change", ["region", "married", "boat", "job"])
def test_a_rule_that_the_records_break_is_reported(change):
    frame = records(4000)
    frame[change] = records(4000, rules=False, seed=1)[change]
    release = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(3.0)).measure(dp.plan_pairs(SCHEMA)[0], 3.0)
    with pytest.warns(UserWarning, match=f"contradicts.*'{change}'"):
        network = dp.PairwiseMixture(components=5, members=1).fit(release).network_
    assert not broken(network.simulate(1000, seed=0)).any()


def test_records_that_break_a_rule_are_counted_like_any_other():
    frame = pd.concat([records(50), records(50, rules=False, seed=2)])
    assert broken(frame).any()
    plain = dp.Schema(STATES)
    cliques = [("age", "job"), ("place", "region")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for source in (frame, {v: frame[v].to_numpy() for v in frame}):
            ruled, free = (
                dp.PrivateDataset(pd.DataFrame(source), schema, dp.PrivacyBudget(1.0), noise=dp.SimulatedNoise(0))
                for schema in (SCHEMA, plain)
            )
            one, other = (data.measure(cliques, 1.0) for data in (ruled, free))
            assert all((one.tables[clique] == other.tables[clique]).all() for clique in cliques)
