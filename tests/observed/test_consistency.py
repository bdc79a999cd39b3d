"""Mutual consistency: equations (16) to (18)."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.observed.consistency import intersections, make_consistent

CARDS = {"a": 2, "b": 3, "c": 2, "d": 4, "e": 2}
SCHEMA = dp.Schema({variable: range(card) for variable, card in CARDS.items()})

cliques = st.lists(
    st.permutations(sorted(CARDS)).flatmap(lambda order: st.integers(1, 4).map(lambda size: tuple(order[:size]))),
    min_size=1,
    max_size=5,
    unique_by=frozenset,
)


def marginal(table, clique, wanted):
    """Summed to some variables, in alphabetical order."""
    kept = sorted(wanted)
    summed = table.sum(axis=tuple(i for i, variable in enumerate(clique) if variable not in wanted))
    return summed.transpose([[v for v in clique if v in wanted].index(variable) for variable in kept])


def counts_of(counts, clique):
    """The clique's marginal of the counts of all five variables."""
    return marginal(counts, tuple(CARDS), set(clique)).transpose([sorted(clique).index(v) for v in clique])


def all_counts(generator):
    return generator.multinomial(5000, generator.dirichlet(np.ones(96))).reshape(tuple(CARDS.values()))


@settings(max_examples=60, deadline=None)
@given(cliques, st.integers(0, 2**32 - 1), st.booleans())
def test_tables_agree_on_all_common_variables(measured, seed, known):
    generator = np.random.default_rng(seed)
    tables = {clique: generator.normal(scale=50, size=SCHEMA.shape(clique)) for clique in measured}
    weights = {clique: generator.uniform(0.1, 3.0) for clique in measured}
    agreed = make_consistent(tables, weights, 123.0 if known else None)
    for one, other in itertools.combinations(measured, 2):
        common = set(one) & set(other)
        left, right = (marginal(agreed[clique], clique, common) for clique in (one, other))
        np.testing.assert_allclose(left, right, atol=1e-9)
    totals = [tables[clique].sum() for clique in measured]
    expected = 123.0 if known else np.average(totals, weights=[weights[clique] for clique in measured])
    assert agreed[measured[0]].sum() == pytest.approx(expected, abs=1e-9)
    again = make_consistent(agreed, weights, 123.0 if known else None)
    for clique in measured:
        np.testing.assert_allclose(again[clique], agreed[clique], atol=1e-9)


@settings(max_examples=30, deadline=None)
@given(cliques, st.integers(0, 2**32 - 1))
def test_tables_of_one_population_stay_as_they_are(measured, seed):
    generator = np.random.default_rng(seed)
    counts = all_counts(generator)
    tables = {clique: counts_of(counts, clique) for clique in measured}
    agreed = make_consistent(tables, dict.fromkeys(measured, 1.0))
    for clique in measured:
        np.testing.assert_allclose(agreed[clique], tables[clique], atol=1e-9)


def test_intersections_are_the_closure():
    measured = [("a", "b", "c"), ("b", "c", "d"), ("c", "d", "e"), ("c",)]
    expected = set()
    for size in range(2, 5):
        for chosen in itertools.combinations(measured, size):
            expected.add(frozenset.intersection(*map(frozenset, chosen)))
    found = intersections(measured)
    assert set(found) == expected | {frozenset()}
    assert [len(common) for common in found] == sorted(len(common) for common in found)
    many = [tuple(f"v{i}" for i in range(18) if i != left) for left in range(18)]
    with pytest.raises(ValueError, match="too many for mutual consistency"):
        intersections(many)


def released(tables, epsilons, neighbours="add_remove", total=None):
    scales = {clique: 1.0 / epsilon for clique, epsilon in zip(tables, epsilons, strict=True)}
    guarantee = dp.Guarantee.of(100.0, 0.0, None, neighbours, "laplace", True)
    return dp.NoisyMarginals(SCHEMA, tables, scales, guarantee, total)


def test_inverse_variance_is_least_squares_for_two_tables():
    """The projection on agreeing tables in the metric of the noise; and it beats the weights epsilon."""
    generator = np.random.default_rng(0)
    measured, epsilons = [("a", "b", "d"), ("e", "b")], [0.3, 0.2]
    counts = all_counts(generator)
    errors = {"epsilon": 0.0, "inverse_variance": 0.0, "none": 0.0}
    for _ in range(200):
        tables, truth = {}, {}
        for clique, epsilon in zip(measured, epsilons, strict=True):
            truth[clique] = counts_of(counts, clique)
            noise = np.round(generator.laplace(scale=1 / epsilon, size=SCHEMA.shape(clique)))
            tables[clique] = truth[clique] + noise.astype(int)
        release = released(tables, epsilons)
        results = {name: dp.papers.mutual_consistency(release, name) for name in ("epsilon", "inverse_variance")}
        for name, result in (results | {"none": tables}).items():
            errors[name] += sum(((result[clique] - truth[clique]) ** 2).sum() for clique in measured)
    assert errors["inverse_variance"] < errors["epsilon"] < errors["none"]
    sizes = [SCHEMA.cells(clique) for clique in measured]
    flat = np.concatenate([tables[clique].ravel() for clique in measured]).astype(float)
    variance = np.repeat([release.variances[clique] for clique in measured], sizes)
    constraint = np.zeros((3, flat.size))
    for state in range(3):
        left, right = np.zeros(SCHEMA.shape(measured[0])), np.zeros(SCHEMA.shape(measured[1]))
        left[:, state], right[:, state] = 1.0, -1.0
        constraint[state] = np.concatenate([left.ravel(), right.ravel()])
    gain = variance[:, None] * constraint.T @ np.linalg.inv(constraint * variance @ constraint.T)
    best = flat - gain @ (constraint @ flat)
    found = np.concatenate([results["inverse_variance"][clique].ravel() for clique in measured])
    np.testing.assert_allclose(found, best, atol=1e-9)


def test_a_public_total_is_kept_and_bad_weights_are_refused():
    tables = {("a",): np.array([10, 12]), ("a", "c"): np.array([[3, 4], [5, 9]])}
    release = released(tables, [0.5, 0.5], "replace_one", 25)
    for table in dp.papers.mutual_consistency(release).values():
        assert table.sum() == pytest.approx(25)
    with pytest.raises(ValueError, match="weights is 'size'"):
        dp.papers.mutual_consistency(release, "size")


@pytest.mark.parametrize("weights", ["epsilon", "inverse_variance"])
def test_exact_counts_agree_already(weights):
    """They have no noise that could weight them."""
    counts = all_counts(np.random.default_rng(0))
    tables = {clique: counts_of(counts, clique) for clique in [("a", "b", "d"), ("d", "c"), ("b", "e", "a")]}
    exact = dp.NoisyMarginals(
        SCHEMA, tables, dict.fromkeys(tables, 0.0), dp.Guarantee.of(math.inf, 0.0, None, "add_remove", "none", False)
    )
    for clique, agreed in dp.papers.mutual_consistency(exact, weights).items():
        np.testing.assert_allclose(agreed, tables[clique], atol=1e-9)
