"""A cost is an entry of a ledger, a part of a guarantee, and provenance: the same value, read back exactly."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgmpy_dp.privacy.cost import Approx, Cost, Protects, Pure, Zcdp

FRACTIONS = st.fractions(Fraction(1, 10**9), 100)
DELTAS = st.fractions(Fraction(1, 10**12), Fraction(1, 10))
LOSSES = st.one_of(
    st.builds(Pure, FRACTIONS),
    st.builds(Approx, FRACTIONS, DELTAS),
    st.builds(Approx, FRACTIONS, DELTAS, st.floats(1e-9, 10)),
    st.builds(Zcdp, st.floats(1e-12, 1e6)),
    st.builds(Zcdp, st.floats(1e-9, 10), FRACTIONS, DELTAS),
)
PROTECTS = st.one_of(
    st.none(),
    st.builds(Protects, st.sampled_from(["add_remove", "replace_one"])),
    st.builds(Protects, st.just("add_remove"), st.just("person id"), st.sampled_from([None, 1, 7])),
    st.builds(Protects, st.just("replace_one"), largest_weight=st.floats(0.1, 1e6)),
    st.just("whatever was agreed upon"),
)


@given(LOSSES, PROTECTS, st.booleans(), st.text(max_size=20))
def test_it_is_read_back_as_it_was(loss, protects, private, label):
    cost = Cost(label, "gaussian", loss, protects, private, id="name", holder="ledger", chooses="a graph")
    cost = replace(cost, versions=(("opendp", "1"),), noise=(("scale", 2.0),), ledger_total=(1.5, 1e-6))
    assert Cost.from_dict(json.loads(json.dumps(cost.to_dict()))) == cost


def test_an_entry_of_an_earlier_version_is_one():
    held = {"label": "t", "mechanism": "laplace", "epsilon": "1/10", "protects": "one record added or removed"}
    cost = Cost.from_dict(held)
    assert (cost.loss, cost.protects, cost.id, cost.holder) == (Pure(0.1), Protects("add_remove"), "", None)
    assert cost.to_dict() == held
    assert replace(cost, protects=held["protects"]) == cost  # the text is another way to state it


@pytest.mark.parametrize(
    "parts",
    [
        *({"loss": None}, {"loss": 0.1}, {"mechanism": "none"}, {"private": 1}, {"sampling_rate": 0.0}, {"label": 3}),
        *({"noise": {"scale": float("nan")}}, {"versions": {"opendp": 1}}, {"holder": 3}, {"protects": 3}),
        {"ledger_total": (float("nan"), 0.0)},
    ],
)
def test_unsound_parts_are_refused(parts):
    with pytest.raises(ValueError):
        Cost(**{"label": "t", "mechanism": "laplace", "loss": Pure(0.1)} | parts)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({}, "has a loss"),
        ({"rho": 0.1, "epsilon": "1"}, "exactly one"),
        ({"rho": 0.1, "delta": "1/1000000"}, "exactly one"),
        ({"max_rows": 2, "epsilon": "1"}, "not which unit"),
    ],
)
def test_unsound_entries_are_refused(bad, message):
    with pytest.raises(ValueError, match=message):
        Cost.from_dict({"label": "t", "mechanism": "laplace", **bad})


def selected(epsilon=1.0, delta=1e-6, scale=1.0, threshold=15.0, rows=1, **parts):
    protects = Protects("add_remove", "person", rows)
    noise = (("scale", scale), ("threshold", threshold))
    loss = Approx(epsilon, delta)
    return Cost("states", "partition_selection", loss, protects, noise=noise, id="a", holder="b", **parts)


def test_what_found_states_is_checked_against_its_own_noise():
    """Scale 1 and threshold 15 are what a record costs at (1, 1e-6)."""
    assert Cost.from_dict(selected().to_dict()) == selected()
    for forged in ({"epsilon": 0.001}, {"delta": 1e-30}, {"scale": 0.9}, {"threshold": 14.0}, {"rows": 2}):
        with pytest.raises(ValueError, match="costs more than"):
            selected(**forged)
    silent = {name: value for name, value in selected().to_dict().items() if name != "noise"}
    with pytest.raises(ValueError, match="does not state its noise"):
        Cost.from_dict(silent)
