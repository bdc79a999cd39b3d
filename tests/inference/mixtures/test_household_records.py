"""Persons change places between households: what is counted on the way is what a count from the start gives."""

import itertools

import numpy as np
import pytest

from pgmpy_dp.inference.mixtures import record_kernel as kernel
from pgmpy_dp.inference.mixtures.household_records import _pairs, draw_persons
from pgmpy_dp.inference.mixtures.mixture import Mixture


@pytest.fixture
def households():
    """Thirty households of one to four persons, with three variables of 2, 3 and 2 states."""
    draw = np.random.default_rng(0)
    sizes = draw.integers(1, 5, 30)
    owners = np.repeat(np.arange(30), sizes)
    offsets = np.array([0, 2, 5, 7])
    persons = (draw.integers(0, [2, 3, 2], (owners.size, 3)) + offsets[:-1]).astype(np.int32)
    return persons, owners, np.concatenate([[0], np.cumsum(sizes)]), 1.0 / np.maximum(sizes * (sizes - 1), 1)


def counted(persons, owners, weights):
    """Weights of ordered pairs of persons of a household, by a state of each."""
    found = np.zeros((7, 7))
    for one, other in itertools.permutations(range(len(persons)), 2):
        if owners[one] == owners[other]:
            for u, v in itertools.product(persons[one], persons[other]):
                found[u, v] += weights[owners[one]]
    return found


def test_pairs_are_counted(households):
    persons, owners, _, weights = households
    assert np.allclose(_pairs(persons, owners, weights, 7), counted(persons, owners, weights))


def test_exchanges_lower_the_cost_and_keep_count(households):
    persons, owners, starts, weights = households
    draw = np.random.default_rng(1)
    homes = np.stack([draw.integers(0, 2, 30), 2 + draw.integers(0, 3, 30)], axis=1).astype(np.int32)
    expected = counted(persons, owners, weights)
    expected = np.abs(expected + draw.normal(0, 2, expected.shape))
    expected = (expected + expected.T) / 2
    price, link_price = 1 / (expected + 1), np.full((5, 7), 0.01)
    links = np.zeros((5, 7))

    def linked():
        found = np.zeros((5, 7))
        for person, owner in zip(persons, owners, strict=True):
            for h, u in itertools.product(homes[owner], person):
                found[h, u] += 1
        return found

    def cost():
        above = np.triu(counted(persons, owners, weights) - expected) ** 2 * price
        return above.sum() + ((linked() - before) ** 2 * link_price).sum()

    before, first, everybody = linked(), None, sorted(map(tuple, persons))
    first = cost()
    excess = counted(persons, owners, weights) - expected
    alike, size = np.arange(owners.size), np.full(owners.size, owners.size)
    made = kernel.exchange_persons(
        persons, owners, starts, homes, weights, alike, np.zeros_like(alike), size,
        excess, price, links, link_price, 3000, draw,
    )  # fmt: skip
    assert made > 20
    assert cost() < 0.7 * first
    assert sorted(map(tuple, persons)) == everybody
    assert np.allclose(np.triu(excess), np.triu(counted(persons, owners, weights) - expected))
    assert np.allclose(links, linked() - before)


def test_persons_are_as_the_tables_of_two_say():
    """Couples who are drawn independently are made alike."""
    mixture = Mixture.of({"size": 2, "sex": 2}, [("size",), ("sex",)], [1.0], [[[0.5, 0.5]], [[0.5, 0.5]]])
    unlike = np.array([[0.0, 500.0], [500.0, 0.0]])
    homes = np.arange(2000, dtype=np.int32)[:, None] % 2
    owners, people = draw_persons(
        mixture, ["size"], "size", [("sex", "sex", unlike, 5.0)], homes, np.random.default_rng(0)
    )
    couples = np.flatnonzero(homes[:, 0] == 1)
    found = people[np.isin(owners, couples), 0].reshape(-1, 2)
    assert (found[:, 0] != found[:, 1]).mean() > 0.95
    assert (people[:, 0] == 0).sum() == pytest.approx(len(people) / 2, abs=2)
