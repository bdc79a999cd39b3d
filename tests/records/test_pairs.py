"""Pairs counted by one product are the tables counted one by one."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pgmpy_dp.records import memory
from pgmpy_dp.schema import Schema


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.integers(0, 40), st.integers(1, 30), st.randoms())
def test_products_count_what_tables_do(states, rows, block, random):
    names = [f"v{place}" for place in range(len(states))]
    schema = Schema({name: list(range(r)) for name, r in zip(names, states, strict=True)})
    codes = {
        name: np.array([random.randrange(r) for _ in range(rows)], dtype=np.uint8)
        for name, r in zip(names, states, strict=True)
    }
    cliques = [(name,) for name in names] + list(itertools.permutations(names, 2))
    cliques = random.sample(cliques, random.randint(1, len(cliques)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory, "_PRODUCT", block)
        counted = memory.count_pairs(codes, schema, cliques)
    assert set(counted) == set(cliques)
    for clique in cliques:
        expected = memory.count(codes, schema, clique)
        assert counted[clique].dtype == np.int64
        assert counted[clique].shape == expected.shape
        assert (counted[clique] == expected).all()


def test_tables_come_in_the_order_asked_for_whichever_way_they_are_counted():
    schema = Schema({name: [0, 1] for name in "abcd"})
    codes = {name: np.array([0, 1, 1, 0], dtype=np.uint8) for name in "abcd"}
    cliques = [("a", "b", "c"), ("b", "a"), ("d",), ("a", "b", "c", "d"), ("c", "d")]
    assert list(memory.count_all(codes, schema, cliques)) == cliques
