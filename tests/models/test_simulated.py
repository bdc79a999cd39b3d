"""Numbers that are drawn within bins meet the comparisons which rules state."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.models.numbers import shape_of
from pgmpy_dp.models.simulated import WithinBins, compared, converted
from pgmpy_dp.schema.rules import Comparison

SIGNS = {
    "<=": lambda first, second: first <= second,
    "<": lambda first, second: first < second,
    ">=": lambda first, second: first >= second,
    ">": lambda first, second: first > second,
    "=": lambda first, second: first == second,
}


def broken(frame, rules):
    """Count the records that break a comparison, by the decimals that they are written with."""
    count = 0
    for row in frame.to_dict("records"):
        for rule in rules:
            first, second = (row[name] for name in (rule.first, rule.second))
            if pd.isna(first) or pd.isna(second):
                continue
            if isinstance(first, pd.Timestamp):
                met = SIGNS[rule.sign](first, second + pd.Timedelta(days=float(rule.added)))
            elif isinstance(first, float) and len(repr(first)) > 8:  # numbers of any decimals
                met = SIGNS[rule.sign](first, second + float(rule.added))
            else:
                met = SIGNS[rule.sign](Decimal(str(first)), Decimal(str(second)) + rule.added)
            count += not met
    return count


def drawn(schema, rules, seed, given=None):
    """Draw numbers in every combination of states that the rules allow."""
    ruled = schema.replace(rules=[dp.Allowed.comparing(schema, rule) for rule in rules])
    ruled = dp.Schema.from_dict(ruled.to_dict())
    codes = np.argwhere(ruled.possible(ruled.variables)).repeat(20, axis=0)
    random = np.random.default_rng(seed)
    shapes = {v: shape_of(b, tuple(random.dirichlet(np.ones(len(b.labels)))), 1.0, 1e4) for v, b in ruled.bins.items()}
    within = WithinBins(shapes, random, ruled.states, given=given or {})
    columns = converted({v: (ruled, codes[:, place]) for place, v in enumerate(ruled.variables)}, "drawn", within)
    return pd.DataFrame(columns), codes, [Comparison.read(rule, ruled.variables) for rule in rules]


@st.composite
def numbers(draw):
    kind = draw(st.sampled_from(["whole", "tenths", "any", "days", "open"]))
    edges = sorted(draw(st.sets(st.integers(-9, 9), min_size=2, max_size=4)))
    if kind == "days":
        return kind, dp.DateBins([float(edge) for edge in edges])
    if kind == "open":
        return kind, dp.Bins([-np.inf, *edges, np.inf])
    if kind == "any":
        return kind, dp.Bins([edge + 0.5 for edge in edges])
    return kind, dp.Bins(edges, decimals={"whole": None, "tenths": 1}[kind])


@settings(max_examples=60, deadline=None)
@given(
    st.lists(numbers(), min_size=3, max_size=3),
    st.tuples(*2 * [st.tuples(st.sampled_from(list(SIGNS)), st.sampled_from(["", " + 1", " - 2", " + 0.3"]))]),
    st.integers(0, 99),
)
@example(  # no numbers in these bins satisfy both; a number near 0 changes the sum with -2 by its digits or not at all
    [("whole", dp.Bins([-4, 0, 1])), ("any", dp.Bins([-3.5, 0.5])), ("any", dp.Bins([-1.5, -0.5]))],
    (("<=", " - 2"), ("<", " - 2")),
    0,
)
def test_no_record_breaks_a_chain_of_comparisons(declared, signs, seed):
    dates = declared[0][0] == "days"
    declared = [one for one in declared if (one[0] == "days") == dates]
    names = "abc"[: len(declared)]
    bins = dict(zip(names, (own for _, own in declared), strict=True))
    schema = dp.Schema(bins, missing=dict.fromkeys(names[1:], "unknown"))
    rules = [
        f"{one} {sign} {other}{'' if '.' in more and (dates or sign == '=') else more}"
        for one, other, (sign, more) in zip(names, names[1:], signs, strict=False)
        if sign != "=" or "any" not in {kind for kind, _ in declared}  # a sum of floats is rounded
    ]
    if not all(Comparison.read(rule, names).combinations(schema) for rule in rules):
        return
    frame, codes, compared = drawn(schema, rules, seed)
    assert broken(frame, compared) == 0
    for place, name in enumerate(schema.variables):
        assert (frame[name].isna() == (codes[:, place] == len(bins[name].labels))).all()


def test_a_pair_in_one_bin_has_the_distribution_given_the_rule():
    """Independent uniform numbers in one bin, given that one is at most the other, have means at thirds."""
    schema = dp.Schema({"a": dp.Bins([0, 300]), "b": dp.Bins([0, 300])})
    schema = schema.replace(rules=[dp.Allowed.comparing(schema, "a <= b")])
    shapes, codes = {v: shape_of(schema.bins[v], (1.0,), 1.0, 1e4) for v in "ab"}, np.zeros(20_000, dtype=int)
    within = WithinBins(shapes, np.random.default_rng(0), schema.states)
    frame = pd.DataFrame(converted(dict.fromkeys("ab", (schema, codes)), "drawn", within))
    assert (frame["a"] <= frame["b"]).all()
    assert frame.mean().to_numpy() == pytest.approx([99.5, 199.5], abs=2)
    free = dp.Schema(schema.declared)
    plain = pd.DataFrame(
        converted(dict.fromkeys("ab", (free, codes)), "drawn", WithinBins(shapes, np.random.default_rng(0), {}))
    )
    kept = plain["a"] <= plain["b"]  # what meets the rule stays as it was
    pd.testing.assert_frame_equal(plain[kept], frame[kept])


RECORDS = pd.DataFrame({"a": np.arange(2000) % 50, "b": np.arange(2000) % 50 + 3, "c": (np.arange(2000) * 7) % 40 + 52})
SCHEMA = dp.Schema({v: dp.Bins([0, 20, 50, 100]) for v in "abc"}, missing={"b": "unknown"})
SCHEMA = SCHEMA.replace(rules=[dp.Allowed.comparing(SCHEMA, rule) for rule in ("a <= b", "b < c + 1")])


def data():
    return dp.PrivateDataset(RECORDS, SCHEMA, dp.PrivacyBudget(2.0, 1e-6), noise=dp.SimulatedNoise(0))


def bayesian():
    network = dp.PrivateBayesianNetwork([("a", "b"), ("b", "c")])
    return network.fit(data(), estimator=dp.AutoMLE(epsilon=1.0))


def markov():
    network = dp.PrivateMarkovNetwork([("a", "b"), ("b", "c")])
    return network.fit(data(), estimator=dp.CollectiveEM(epsilon=1.0))


def mixture():
    return dp.PairwiseMixture(epsilon=2.0, delta=1e-6, members=2).fit(data()).network_


@pytest.mark.filterwarnings("ignore:The release contradicts")
@pytest.mark.parametrize("made", [bayesian, markov, mixture])
def test_models_draw_numbers_that_meet_their_rules(made, tmp_path):
    network = made()
    network.save(tmp_path / "model.zip")
    rules = [rule.comparison for rule in SCHEMA.rules]
    for model in (network, dp.load(tmp_path / "model.zip")):
        assert broken(model.simulate(1500, seed=0, numbers="drawn"), rules) == 0
    if made is bayesian:  # pgmpy's method completes records
        return
    some = pd.DataFrame({"a": [15, 19, 48, None], "b": [None, None, None, 24]})
    completed = network.simulate(partial_samples=some, seed=1, numbers="drawn")
    assert completed["a"].tolist()[:3] == [15, 19, 48]
    assert completed["b"].tolist()[3] == 24
    assert broken(completed, rules) == 0


def test_comparisons_of_other_variables_and_other_rules_are_left_out():
    schema = dp.Schema({v: dp.Bins([0, 5, 9]) for v in "abcd"})
    rules = [dp.Allowed.comparing(schema, rule) for rule in ("a <= b", "c <= d", "b <= c")]
    either = dp.Allowed(("a", "d"), [("0_to_5", "5_to_9"), ("5_to_9", "0_to_5")])
    schema = schema.replace(rules=[*rules, either])
    assert [len(group) for group in compared([schema], "abcd")] == [3]
    assert [[(one.first, one.second) for one in group] for group in compared([schema], "abd")] == [[("a", "b")]]
    assert compared([schema], "ac") == []
