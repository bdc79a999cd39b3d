"""h(n), the density of collective graphical models and Proposition 5 of Bernstein et al. (2017), by brute force."""

from collections import Counter
from itertools import product

import numpy as np
import pytest

from pgmpy_dp import papers
from pgmpy_dp.evaluation import random_markov_network
from pgmpy_dp.inference import GaussianNoise, JunctionTree, counts_by_dual
from pgmpy_dp.observed.factors import log_linear

CHAIN = [("x0", "x1"), ("x1", "x2")]
STATES = list(product(range(2), repeat=3))  # of x0, x1, x2


def tables(shares):
    """Counts of both cliques of the chain, from a value for each of `STATES`."""
    full = np.array(shares).reshape(2, 2, 2)
    return {CHAIN[0]: full.sum(axis=2), CHAIN[1]: full.sum(axis=0)}


def statistics(records):
    return tables([records.count(state) for state in STATES])


def frozen(counts):
    return tuple(counts[clique].tobytes() for clique in CHAIN)


def probabilities(network):
    layout, theta, _ = log_linear(network)
    logs = [sum(part[tuple(s[int(v[1])] for v in c)] for c, part in layout.tables(theta).items()) for s in STATES]
    return np.exp(logs) / np.exp(logs).sum()


def test_the_weight_counts_the_ordered_data_sets_and_densities_sum_to_one():
    network = random_markov_network(CHAIN, 2, seed=0)
    shares = dict(zip(STATES, probabilities(network), strict=True))
    orders, mass, kept = Counter(), Counter(), {}
    for records in product(STATES, repeat=3):
        counts = statistics(records)
        key = frozen(counts)
        kept[key] = counts
        orders[key] += 1
        mass[key] += np.prod([shares[record] for record in records])
    for key, counts in kept.items():
        assert round(np.exp(papers.log_weight(counts))) == orders[key]
        assert np.exp(papers.log_density(network, counts)) == pytest.approx(mass[key], rel=1e-9)
    assert sum(np.exp(papers.log_density(network, counts)) for counts in kept.values()) == pytest.approx(1.0)


def test_counts_of_no_data_set_have_no_weight():
    counts = statistics([(0, 0, 1), (1, 1, 0)])
    assert papers.log_weight(counts) > -np.inf
    for wrong in ([[2, 0], [0, 0]], [[1.5, 0], [0, 0.5]], [[2, -1], [0, 1]]):
        assert papers.log_weight({**counts, CHAIN[0]: np.array(wrong)}) == -np.inf


def test_entropy_is_that_of_the_model_with_these_marginals_and_stirling_is_near_for_many_records():
    network = random_markov_network(CHAIN, 2, seed=1)
    shares = probabilities(network)
    assert papers.entropy(tables(1000 * shares)) == pytest.approx(-1000 * (shares @ np.log(shares)), rel=1e-9)
    each = np.round(100 * shares) + 1
    apart = []
    for multiple in (1, 10, 100):
        counts = tables(multiple * each)
        total = multiple * each.sum()
        exact = papers.log_density(network, counts)
        apart.append(abs(papers.log_density(network, counts, approximate=True) - exact) / total)
        # log k! - (k log k - k) is between 0 and 1 + log(k + 1) / 2, for N, two states of x1 and eight cells.
        assert apart[-1] * total <= 11 * (1 + np.log(total + 1) / 2)
    assert apart[0] > 5 * apart[1] > 25 * apart[2]


def test_a_cycle_has_no_junction_tree_and_every_factor_needs_counts():
    cycle = {pair: np.ones((2, 2)) for pair in (("a", "b"), ("b", "c"), ("c", "d"), ("a", "d"))}
    with pytest.raises(ValueError, match="no junction tree"):
        papers.log_weight(cycle)
    with pytest.raises(ValueError, match=r"No table has the counts of \('x1', 'x2'\)"):
        papers.log_density(random_markov_network(CHAIN, 2, seed=0), {("x0", "x1"): np.ones((2, 2))})


def test_problem_6_is_the_entropy_plus_the_noise():
    """The E-step's counts are a maximum of Proposition 5: other consistent counts have a lower value."""
    network = random_markov_network(CHAIN, 2, seed=2)
    layout, theta, _ = log_linear(network)
    tree = JunctionTree.build(layout.cardinalities, layout.scopes)
    generator = np.random.default_rng(0)
    noise = GaussianNoise(generator.uniform(0, 20, layout.size), np.full(layout.size, 9.0))
    found = counts_by_dual(tree, theta, noise, 50.0, 1e-9, 500)

    def value(counts):
        own = dict(zip(layout.scopes, layout.split(counts), strict=True))
        return papers.log_density(network, own, approximate=True) - noise.loss(counts)

    best = value(found.counts)
    for step in generator.dirichlet(np.ones(8), 30):
        other = layout.flatten(tables(50.0 * step)[scope] for scope in layout.scopes)
        assert value(found.counts + 0.01 * (other - found.counts)) <= best + 1e-6
