"""Rules of a schema: what is refused, what they come to, and that files keep them."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.cli import main

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


@given(
    st.sampled_from(["<=", "<", ">=", ">", "="]),
    st.integers(-3, 3),
    *[st.lists(st.integers(0, 12), min_size=2, max_size=5, unique=True).map(sorted)] * 2,
)
def test_a_comparison_allows_the_bins_with_numbers_that_meet_it(sign, more, first, second):
    """Against every pair of whole numbers, those of the last bin's upper edge included."""
    wholes = {"a-b": dp.Bins(first, decimals=0), "c": dp.Bins(second, decimals=0)}
    schema = dp.Schema(wholes, missing={"c": "unknown"})
    rule = dp.Allowed.comparing(schema, f"a-b {sign} c {'-' if more < 0 else '+'} {abs(more)}")
    meets = {"<=": int.__le__, "<": int.__lt__, ">=": int.__ge__, ">": int.__gt__, "=": int.__eq__}[sign]

    def numbers(edges, place):
        return range(edges[place], edges[place + 1] + (place == len(edges) - 2))

    wanted = {
        (schema.states["a-b"][i], schema.states["c"][j])
        for i in range(len(first) - 1)
        for j in range(len(second) - 1)
        if any(meets(x, y + more) for x in numbers(first, i) for y in numbers(second, j))
    }
    assert set(rule.combinations) == wanted | {(state, "unknown") for state in schema.states["a-b"]}


def test_comparisons_of_other_numbers():
    schema = dp.Schema({"a": dp.Bins([0, 0.5, 1.0]), "b": [0.5, 1.0], "c": ["x", "y"], "d": dp.Bins([0, float("inf")])})
    assert ("0_to_0.5", 0.5) not in dp.Allowed.comparing(schema, "a >= b").combinations
    assert ("0_to_0.5", 0.5) in dp.Allowed.comparing(schema, "a < b").combinations
    assert len(dp.Allowed.comparing(schema, "d > a").combinations) == 2
    rates = dp.Schema({"a": [0.1, 0.3], "b": [0.1, 0.3], "c": dp.Bins([0, 0.1, 0.3, 0.4], decimals=1)})
    assert dp.Allowed.comparing(rates, "a = b + 0.2").combinations == ((0.3, 0.1),)  # 0.1 + 0.2 > 0.3 in floats
    assert ("0.1_to_0.3", 0.1) not in dp.Allowed.comparing(rates, "c >= b + 0.2").combinations
    assert ("0.3_to_0.4", 0.1) in dp.Allowed.comparing(rates, "c <= b + 0.2").combinations
    half = dp.Schema({"a": dp.Bins([0, 1.5, 3], decimals=0), "b": [1, 1.5, 2]})
    assert ("1.5_to_3", 1.5) not in dp.Allowed.comparing(half, "a <= b").combinations
    for wrong in ("a <= c", "a", "a <= a", "a <= z", "a <= b + c"):
        with pytest.raises(dp.SchemaError, match=r"comparison"):
            dp.Allowed.comparing(schema, wrong)


def test_rules_stand_in_a_file_beside_the_dictionary(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("words.csv").write_text(
        "variable,type,states,edges\nbuilt,,,1990|2000|2010\ncrash,,,1990|2000|2010\nsex,,f|m,\n"
        "pregnant,,yes|no,\nplace,,Ulm|Aalen|Kiel,\nregion,,south|north,\nrooms,integer,1|2,\n"
    )
    Path("rules.csv").write_text(
        "rule,combination\nforbidden,sex=m; rooms=1|2; place=Kiel\nallowed,sex=f; pregnant=yes|no\n"
        "allowed,pregnant=no; sex=m\ndependent,place=Ulm|Aalen; region=south\ndependent,place=Kiel; region=north\n"
        "comparison,built <= crash\n"
    )

    def made(*more):
        return CliRunner().invoke(main, ["schema", "words.csv", "--rules", *more])

    assert made("rules.csv", "--out", "schema.json").exit_code == 0
    schema = dp.Schema.load("schema.json")
    assert set(schema.rules) == {
        dp.Forbidden({"sex": ["m"], "rooms": [1, 2], "place": ["Kiel"]}),
        dp.Allowed(("sex", "pregnant"), [("f", "yes"), ("f", "no"), ("m", "no")]),
        dp.Dependency("place", "region", {"Ulm": "south", "Aalen": "south", "Kiel": "north"}),
        dp.Allowed.comparing(schema, "built <= crash"),
    }
    for row, message in (
        ("forbiden,sex=m", "a rule is"),
        ("allowed,sx=m", "'sx'"),
        ("forbidden,sex=x; rooms=1", "'x'"),
        ("forbidden,sex=m; pregnant=yes,no", "row 2 has 3 cells"),
        ("forbidden,sex=m; sex=f", "row 2: a rule names 'sex' twice"),
    ):
        Path("wrong.csv").write_text(f"rule,combination\n{row}\n")
        refused = made("wrong.csv")
        assert refused.exit_code == 1
        assert message in refused.stderr
    assert "not rules for --rules, but a data dictionary" in made("words.csv").stderr
