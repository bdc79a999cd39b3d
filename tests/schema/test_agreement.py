"""Schemas of several holders agree on the common refinement, or it is said what to declare."""

import pytest

import pgmpy_dp as dp


def test_states_bins_and_texts_are_those_of_all_and_a_holder_may_lack_a_variable():
    north = dp.Schema(
        {"age": dp.Bins([0, 40, 80]), "ward": ["a", "b"], "sex": ["f", "m"]},
        missing={"sex": "?"},
        bounds={"cost": (0, 10)},
        missing_values={"sex": ["NA"]},
    )
    south = dp.Schema(
        {"ward": ["b", "c"], "age": dp.Bins([0, 60, 80], ["young", "old"]), "payer": ["own", "state"]},
        other={"ward": "elsewhere"},
        bounds={"cost": (-5, 5)},
    )
    agreed = dp.agree([north, south])
    assert agreed.variables == ("age", "ward", "sex", "payer")
    assert agreed.states["age"] == ("0_to_40", "40_to_60", "old")
    assert agreed.states["ward"] == ("a", "b", "c", "elsewhere")
    assert agreed.states["sex"] == ("f", "m", "?")
    assert (agreed.missing_values["sex"], agreed.bounds["cost"]) == (("NA",), (-5.0, 10.0))
    assert dp.agree([agreed, agreed]) == agreed == dp.agree([agreed, north.select(["sex"])])
    assert agreed.select(["age", "ward"]).join(agreed.select(["ward", "payer"])).states["ward"] == agreed.states["ward"]


def test_a_bin_keeps_its_name_and_what_finding_it_cost():
    found = dp.Guarantee.of(0.5)
    one = dp.Schema({"age": dp.Bins([0, 18, 120], ["minor", "adult"], found=found)})
    agreed = dp.agree(
        [one, dp.Schema({"age": dp.Bins([0, 18, 65, 120])}).replace(variables={"age": dp.Bins([18, 65])})]
    )
    assert agreed.states["age"] == ("minor", "18_to_65", "65_to_120")
    assert agreed.guarantee.every == found.costs


def test_a_rule_is_kept_where_all_who_have_its_variables_declare_it():
    states = {"sex": ["f", "m"], "job": ["a", "b"], "pregnant": ["yes", "no"]}
    common, own = dp.Forbidden({"sex": "m", "pregnant": "yes"}), dp.Forbidden({"sex": "m", "job": "a"})
    agreed = dp.agree([dp.Schema(states, rules=[common, own]), dp.Schema(states, rules=[common])])
    assert agreed.rules == (common,)
    assert dp.agree([dp.Schema(states, rules=[own]), dp.Schema({"sex": ["f", "m"]})]).rules == (own,)


@pytest.mark.parametrize(
    ("one", "other", "named"),
    [
        (dp.Schema({"a": dp.Bins([0, 1])}), dp.Schema({"a": ["x"]}), "declare Bins"),
        (dp.Schema({"a": ["x"]}), dp.Schema(bounds={"a": 3}), "declare the same Bins"),
        (dp.Schema({"a": [0, 1]}), dp.Schema({"a": ["0", "1"]}), "no state of schema 1"),
        (dp.Schema({"a": ["yes", "no"]}), dp.Schema({"a": ["Yes", "no"]}), "'yes' and 'Yes' look like one state"),
        (dp.Schema({"a": ["x"]}, {"a": "?"}), dp.Schema({"a": ["x"]}, {"a": "none"}), "missing values are called"),
        (
            dp.Schema({"a": dp.Bins([0, 1, 2], ["l", "h"])}),
            dp.Schema({"a": dp.Bins([0, 1], ["low"])}),
            "called 'l' and 'low'",
        ),
    ],
)
def test_where_there_is_no_refinement_it_is_said_what_to_declare(one, other, named):
    with pytest.raises(dp.SchemaError, match=named):
        dp.agree([one, other])


def test_agreeing_takes_two():
    with pytest.raises(dp.SchemaError, match="two schemas or more"):
        dp.agree([dp.Schema({"a": ["x"]})])
