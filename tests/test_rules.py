"""Rules of a schema: what is refused, what they come to, and that files keep them."""

import pickle

import numpy as np
import pytest

import pgmpy_dp as dp

STATES = {"place": ["Ulm", "Kiel", "Bonn"], "region": ["north", "south"], "land": [1, 2], "age": dp.Bins([0, 18, 99])}
PLACES = dp.Dependency("place", "region", {"Kiel": "north", "Ulm": "south", "Bonn": "north"})
RULES = [
    PLACES,
    dp.Dependency("region", "land", {"north": 2, "south": 1}),
    dp.Forbidden({"age": "0_to_18", "land": [2]}),
    dp.Allowed(("place", "age"), [("Ulm", "0_to_18"), ("Kiel", "18_to_99"), ("Bonn", "18_to_99")]),
]


def test_files_pickles_joins_and_selections_keep_rules(tmp_path):
    schema = dp.Schema(STATES, rules=RULES)
    schema.save(tmp_path / "schema.json")
    for again in (dp.Schema.load(tmp_path / "schema.json"), pickle.loads(pickle.dumps(schema))):
        assert again == schema
        assert hash(again) == hash(schema)
        assert set(again.rules) == set(schema.rules)
    assert schema != dp.Schema(STATES)
    assert schema.select(["region", "land", "age"]).rules == (schema.rules[1], schema.rules[2])
    assert schema.join(dp.Schema({"x": [0, 1]})).rules == schema.rules
    assert schema.join(schema) == schema
    assert "rules" not in "".join(dp.Schema(STATES).to_dict())


def test_estimators_that_cannot_hold_rules_refuse_them_unpaid():
    budget = dp.PrivacyBudget(1.0, 1e-6)
    schema = dp.Schema(STATES, rules=RULES)
    rows = np.array([[0, 1, 0, 0], [1, 0, 1, 1]] * 5)
    data = dp.PrivateDataset(rows, schema, budget)
    apart = dp.PrivateBayesianNetwork([("place", "age")])  # no family has age and land
    apart.add_nodes_from(schema.variables)
    for network, estimator in (
        (apart, dp.PrivateVB(1.0, 1e-6)),
        (apart, dp.papers.PosteriorSampler(1.0)),
        (dp.PrivateMarkovNetwork([("place", "region"), ("land", "age")]), dp.papers.PrivateSGD(1.0, 1e-6, total=10.0)),
    ):
        with pytest.raises(dp.SchemaError, match="rule"):
            network.fit(data, estimator=estimator)
    with pytest.raises(dp.SchemaError, match="PairwiseMixture"):
        dp.PrivateStructureSearch(1.0, 1e-6).fit(data)
    assert not budget.history


def test_dependencies_lead_to_their_roots():
    structure = dp.Schema(STATES, rules=RULES).structure
    assert {v: (root, codes.tolist()) for v, (root, codes) in structure.dependent.items()} == {
        "region": ("place", [1, 0, 0]),
        "land": ("place", [0, 1, 1]),
    }
    assert [scope for scope, _ in structure.zeros] == [("age", "land"), ("place", "age")]


def test_a_circle_of_dependencies_forbids_what_is_left():
    back = dp.Dependency("region", "place", {"north": "Kiel", "south": "Ulm"})
    structure = dp.Schema(STATES, rules=[PLACES, back]).structure
    ((scope, allowed),) = structure.zeros
    assert (scope, allowed.tolist()) == (("place",), [True, True, False])


def test_two_dependencies_of_one_variable_forbid_what_contradicts():
    ages = dp.Dependency("age", "region", {"0_to_18": "north", "18_to_99": "south"})
    ((scope, allowed),) = dp.Schema(STATES, rules=[PLACES, ages]).structure.zeros
    assert scope == ("age", "region")
    np.testing.assert_array_equal(allowed, np.eye(2, dtype=bool))


def test_states_for_missing_values_follow_each_other():
    missing = {"place": "?", "region": "unknown"}
    schema = dp.Schema(STATES, missing, rules=[PLACES])
    assert dict(schema.rules[0].states)["?"] == "unknown"
    with pytest.raises(dp.SchemaError, match="no state of 'region' is given for '\\?'"):
        dp.Schema(STATES, {"place": "?"}, rules=[PLACES])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: dp.Forbidden({"age": "young"}), "variable 'age' has no state 'young'"),
        (lambda: dp.Forbidden({"job": "yes"}), "no states of variable 'job'"),
        (lambda: dp.Forbidden({}), "needs a dict"),
        (lambda: dp.Allowed(("place", "age"), [("Ulm",)]), "has 2 states"),
        (lambda: dp.Allowed(("place",), []), "no combination"),
        (lambda: dp.Dependency("place", "region", {"Ulm": "south"}), "is given for 'Kiel', 'Bonn'"),
        (lambda: dp.Dependency("place", "place", {}), "name two variables"),
        (lambda: "place", "A rule is a Forbidden"),
    ],
)
def test_rules_that_say_nothing_sound_are_refused(make, message):
    with pytest.raises(dp.SchemaError, match=message):
        dp.Schema(STATES, rules=[make()])


@pytest.mark.parametrize(
    "stored", [3, [3], [{}], [{"forbidden": 3}], [{"allowed": {}}], [{"dependency": {"states": 1}}]]
)
def test_files_with_unsound_rules_are_refused(stored):
    with pytest.raises(dp.SchemaError, match="rule"):
        dp.Schema.from_dict(dp.Schema(STATES).to_dict() | {"pgmpy_dp:rules": stored})
