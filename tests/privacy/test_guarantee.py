"""A guarantee is a set of costs: each counts once, those of one ledger add up, and of several the largest count."""

import itertools
import json
import pickle
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.privacy.cost import Approx, Cost, Protects, Pure, Zcdp
from pgmpy_dp.privacy.guarantee import DECLARED, GRAPH_KEY, Guarantee, Learned, learned

RECORD = Protects("add_remove")


@dataclass
class Settings:
    content: Any


def cost(epsilon, holder="north", delta=0.0, rho=None, protects=RECORD, name=None, **parts):
    loss = Zcdp(rho, epsilon, delta) if rho else Approx(epsilon, delta) if delta else Pure(epsilon)
    mechanism = "gaussian" if delta else "laplace"
    return Cost("tables", mechanism, loss, protects, id=name or f"{holder} {epsilon} {delta}", holder=holder, **parts)


def paid(*costs, **parts):
    return Guarantee(frozenset(costs), **parts)


def sums(guarantee):
    return guarantee.epsilon, guarantee.delta


def planted_mean(guarantee):
    """A union that takes the mean of its holders."""
    holders = {cost.holder for cost in guarantee.every}
    return float(sum(cost.epsilon for cost in guarantee.every) / len(holders))


def by_brute_force(guarantee):
    """The most that a unit can lose over all sets of sites at which its records may be, epsilon and delta apart."""
    holders = {cost.holder for cost in guarantee.every}
    sites = {frozenset({holder}) for holder in holders} if not guarantee.sites else set(guarantee.sites)
    sites |= {frozenset({holder}) for holder in holders if not any(holder in site for site in sites)}
    sites = [site for site in sites if site & holders]
    size = guarantee.overlap or len(sites)
    worst = [Fraction(0), Fraction(0)]
    for chosen in itertools.combinations(sites, min(size, len(sites))):
        own = [cost for cost in guarantee.every if cost.holder in frozenset().union(*chosen)]
        worst[0] = max(worst[0], sum((cost.epsilon for cost in own), Fraction(0)))
        worst[1] = max(worst[1], sum((cost.delta for cost in own), Fraction(0)))
    return tuple(map(float, worst))


COSTS = [
    cost(epsilon, holder, delta)
    for holder in ("north", "south", "west")
    for epsilon, delta in ((Fraction(1, 10), 0.0), (Fraction(7, 10), Fraction(1, 10**7)), (Fraction(5, 2), 0.0))
]
SUBSETS = st.lists(st.sets(st.sampled_from(COSTS), max_size=4), min_size=1, max_size=4)


@settings(max_examples=200, deadline=None)
@given(SUBSETS, SUBSETS, st.sampled_from([None, 1, 2, 3]), st.sampled_from([(), (("north", "west"),)]))
def test_a_union_of_any_shape_is_the_worst_that_a_unit_loses(answers, before, overlap, sites):
    union = DECLARED
    for own in answers:
        union |= paid(*own)
    for own in before:
        union = union.after(paid(*own))
    union = replace(union, overlap=overlap, sites=frozenset(map(frozenset, sites)))
    assert union.every == frozenset().union(*answers, *before)
    assert sums(union) == by_brute_force(union)
    if union.every and len({one.holder for one in union.every}) > 1:  # the planted fault is seen where it is one
        assert planted_mean(union) <= union.epsilon or overlap == 1


def test_sites_with_a_ledger_in_common_are_one():
    one, other = (
        paid(cost(1.0), sites=frozenset({frozenset(pair)})) for pair in (("north", "south"), ("south", "west"))
    )
    assert (one | other).sites == {frozenset({"north", "south", "west"})}
    assert Guarantee.from_dict(json.loads(json.dumps((one | other).to_dict()))) == one | other


def test_the_planted_mean_is_caught():
    union = paid(cost(1.0), cost(0.25, "south"), overlap=1)
    assert sums(union) == by_brute_force(union)
    assert planted_mean(union) != by_brute_force(union)[0]


@settings(max_examples=100, deadline=None)
@given(SUBSETS, st.sampled_from([None, 1, 2]), st.sampled_from([None, 1, 2]))
def test_the_order_of_a_union_does_not_matter(answers, overlap, other):
    first, *rest = (paid(*own, overlap=overlap) for own in answers)
    last = paid(COSTS[0], overlap=other)
    for one in rest:
        assert first | one == one | first
        assert (first | one) | last == first | (one | last) or overlap != other
    assert first | DECLARED == first == first | first


def test_holders():
    north, south = paid(cost(1.0)), paid(cost(0.25, "south"))
    united = replace(north | south, overlap=1)
    assert (north | south).epsilon == 1.25  # undeclared, holders add up
    assert united.epsilon == 1.0
    assert replace(united, overlap=2).epsilon == 1.25
    second = paid(cost(0.5, name="second"))  # of the same ledger: the same persons
    assert replace(north | second, overlap=1).epsilon == 1.5
    assert (united | second).epsilon == 1.5  # the declaration still holds: north is one of them
    more = united | paid(cost(1.0, "west"))
    assert (more.overlap, more.epsilon) == (None, 2.25)  # it was made for others
    found = paid(cost(1.0, name="states"))  # by north, and used by south too: south's patients lose nothing by it
    both = replace(north.after(found) | paid(cost(1.5, "south")).after(found), overlap=1)
    assert both.epsilon == 2.0
    assert "in one of the united releases" in str(both)


def test_a_cost_of_an_unknown_holder_is_added_in_full_before_and_is_one_holder_by_itself():
    """As files of earlier versions have it: what found the states may have been paid for by any of the holders."""
    states = paid(cost(0.5, None, name="states"))
    parts = [paid(cost(epsilon, None, name=str(epsilon))).after(states) for epsilon in (1.0, 2.0)]
    assert replace(parts[0] | parts[1], overlap=1).epsilon == 2.5
    assert replace(parts[0] | parts[1], overlap=2).epsilon == 3.5


def test_losses_of_gaussian_noise_are_added_as_they_were_stated():
    """The epsilon that the sum of rhos implies is smaller, but at an order that depends on answers."""
    one, two = (paid(cost(0.5, rho=0.005, delta=1e-6, name=name)) for name in "ab")
    assert (sums(one | two), (one | two).rho) == ((1.0, 2e-6), 0.01)
    assert (one | paid(cost(0.5))).rho is None
    assert ((one | two).mechanism, (one | paid(cost(0.5))).mechanism) == ("gaussian", "several")


def test_two_costs_of_one_name_that_differ_are_refused_wherever_they_meet():
    one, other = paid(cost(1.0, name="a")), paid(cost(0.5, name="a"))
    for meeting in (
        lambda: one | other,
        lambda: one.after(other),
        lambda: learned([one, other]),
        lambda: learned(one, {1: other}),
    ):
        with pytest.raises(ValueError, match="one name"):
            meeting()


@pytest.mark.parametrize("change", [{"neighbours": "replace_one"}, {"unit": "household"}])
def test_no_promise_holds_for_different_changes(change):
    person = Protects("add_remove", "person", max_rows=2)
    one, other = paid(cost(1.0, protects=person)), paid(cost(0.5, protects=replace(person, **change)))
    with pytest.raises(ValueError, match=next(iter(change))):
        one | other
    with pytest.raises(ValueError, match="no one promise holds for both"):
        one.after(other)


def test_rows_of_units_may_count_otherwise_before_but_not_in_tables_together():
    person = Protects("add_remove", "person", max_rows=2)
    one, other = paid(cost(1.0, protects=person)), paid(cost(0.5, protects=replace(person, max_rows=None)))
    assert (one.after(other).max_rows, one.after(other).epsilon) == (2, 1.5)
    with pytest.raises(ValueError, match="max_rows"):
        one | other


def test_exact_counts_are_no_release():
    exact = Guarantee.of(float("inf"), mechanism="none", private=False)
    for meeting in (lambda: exact | paid(cost(1.0)), lambda: paid(cost(1.0)).after(exact)):
        with pytest.raises(ValueError, match="Exact counts"):
            meeting()
    assert (str(exact), exact.epsilon) == ("NOT PRIVATE: exact counts", float("inf"))


def test_one_simulated_part_marks_the_whole():
    simulated = paid(cost(0.5, private=False))
    assert not (paid(cost(1.0)) | simulated).private
    assert not paid(cost(1.0)).after(simulated).private
    assert "NOT PRIVATE: simulated" in str(paid(cost(1.0)).after(simulated))


@settings(max_examples=50, deadline=None)
@given(SUBSETS, st.sampled_from([None, 1, 2]))
def test_it_is_read_back_to_the_fraction(answers, overlap):
    first, *before = answers
    guarantee = paid(*first, overlap=overlap).after(*(paid(*own) for own in before))
    assert Guarantee.from_dict(json.loads(json.dumps(guarantee.to_dict()))) == guarantee
    assert pickle.loads(pickle.dumps(guarantee)) == guarantee


@pytest.mark.parametrize("name", ["epsilon", "delta", "neighbours", "private", "unit", "overlap"])
def test_a_statement_that_its_costs_do_not_make_is_refused(name):
    written = paid(cost(1.0, delta=1e-6), cost(0.5, "south", delta=1e-7), overlap=1).to_dict()
    changed = {"epsilon": 0.5, "delta": 1e-9, "neighbours": "replace_one", "private": False, "unit": "x", "overlap": 2}
    with pytest.raises(ValueError, match="states something else than its costs"):
        Guarantee.from_dict(written | {name: changed[name]})


OLD = {"neighbours": "add_remove", "private": True, "unit": "record", "versions": {}, "rho": None}


def old(epsilon, mechanism="laplace", delta=0.0, **parts):
    return {**OLD, "epsilon": epsilon, "delta": delta, "mechanism": mechanism, **parts}


def test_statements_of_earlier_versions_are_read_with_their_sums():
    states = old(0.5, "partition_selection", 1e-7, payment="states")
    tables = Guarantee.from_dict(old(1.5, delta=1e-7, shared=[states]), "tables")
    assert (sums(tables), sums(tables.own), tables.mechanism) == ((1.5, 1e-7), (1.0, 0.0), "laplace")
    again = Guarantee.from_dict(old(0.75, delta=1e-7, shared=[states]), "again")
    assert sums(tables | again) == (1.75, 1e-7)  # what they have in common, once
    steps = Guarantee.from_dict(old(2.0, shared=[old(2.0, payment="search")]))
    assert (sums(steps), steps.own, steps.earlier) == ((2.0, 0.0), steps, frozenset())
    chosen = Guarantee.from_dict(old(3.0, shared=[old(1.0, payment="tables")]), "chosen")
    assert sums(chosen | Guarantee.from_dict(old(1.0), "tables")) == (3.0, 0.0)
    union = Guarantee.from_dict(old(1.0, overlap=1))
    assert (union.overlap, Guarantee.from_dict(old(1.0, accepted=True)).epsilon) == (1, 1.0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"shared": [old(0.5, payment="p"), old(0.75, payment="q")]}, "at least the sums"),
        ({"shared": [old(0.5, payment="")]}, "have a payment"),
        ({"shared": [old(0.5, payment="p", shared=[old(0.1, payment="q")])]}, "no shared parts"),
        ({"shared": [old(0.5, payment="p", neighbours="replace_one")]}, "neighbours"),
        ({"epsilon": -1.0}, "epsilon > 0"),
        ({"delta": 1.0}, "delta < 1"),
        ({"mechanism": "wishful"}, "mechanism must be one of"),
        ({"rho": 0.1}, "rho is positive for Gaussian"),
    ],
)
def test_unsound_statements_of_earlier_versions_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Guarantee.from_dict(old(1.0) | changes)


def test_a_part_of_an_earlier_version_that_names_another_release_does_not_erase_its_cost():
    """An edited file: its part has the name of a release, and a smaller loss."""
    one = Guarantee.from_dict(old(1.0), "one")
    forged = Guarantee.from_dict(old(1.5, shared=[old(1e-9, payment="one")]), "two")
    with pytest.raises(ValueError, match="one name"):
        one | forged


def test_learned_finds_what_values_hold_and_nothing_else():
    states, edges = paid(cost(1.0, name="states")), paid(cost(2.0, name="edges"))
    assert learned([1, "a", None, {"b": 2.5}], frozenset(), object()) == DECLARED
    held = {"cliques": Learned([("a", "b")], edges), "found": (states, [states])}
    assert learned(held).every == states.every | edges.every
    assert learned(pickle.loads(pickle.dumps(held["cliques"]))).every == edges.every
    assert learned(Settings(held)).every == states.every | edges.every
    assert learned(Settings) == DECLARED
    graph = nx.DiGraph([("a", "b")], **{GRAPH_KEY: edges})
    graph.nodes["a"][GRAPH_KEY] = states
    assert learned(graph).every == states.every | edges.every
    assert held["cliques"] == (("a", "b"),)
