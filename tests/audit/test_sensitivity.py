"""Sensitivity by brute force: over all neighbours of small tables, what a record can change is what noise is scaled to.

Whole releases are taken, by way of a noise source that adds nothing, so encoding and counting are walked as well.
A new statistic is one entry of STATISTICS.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.observed.factors import families, maximal
from pgmpy_dp.privacy.noise import table_sensitivity

SCHEMA = dp.Schema({"a": ["x", "y"], "b": [0, 1, 2], "c": ["p", "q"]})
DOMAIN = list(itertools.product(*SCHEMA.states.values()))
RELATIONS = ("add_remove", "replace_one")
CLIQUES = [("a",), ("b",), ("a", "b"), ("c", "a"), ("a", "b", "c")]


class Silent:
    """No noise."""

    private = False

    def discrete_laplace(self, counts, scale):
        return counts

    discrete_gaussian = discrete_laplace


@dataclass(frozen=True)
class Statistic:
    """What is measured of records, and the sensitivities the library claims for it.

    `l1` and `l2` give for each relation the claim for the whole vector; `tight` says that a pair of neighbours
    reaches it, so that noise is not wasted either.
    """

    name: str
    measured: Callable[[pd.DataFrame, str], np.ndarray]
    l1: Callable[[str], float]
    l2: Callable[[str], float]
    tight: bool = True


def tables(cliques):
    def measured(frame, relation):
        data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(1.0), neighbours=relation, noise=Silent())
        noisy = data.measure(cliques, 1.0)
        return np.concatenate([noisy.tables[clique].ravel() for clique in noisy.cliques])

    number = len(cliques)
    return Statistic(
        f"tables of {cliques}",
        measured,
        lambda relation: number * table_sensitivity(relation, "l1"),
        lambda relation: (number * table_sensitivity(relation, "squared_l2")) ** 0.5,
    )


def family_cliques():
    from pgmpy.models import DiscreteBayesianNetwork

    network = DiscreteBayesianNetwork([("a", "b"), ("a", "c"), ("b", "c")])
    return families(network)


STATISTICS = [
    *(tables([clique]) for clique in CLIQUES),
    tables(CLIQUES),
    tables(family_cliques()),
    tables(maximal(family_cliques())),
]


def frame_of(records):
    columns = {v: [record[i] for record in records] for i, v in enumerate(SCHEMA.variables)}
    return pd.DataFrame({v: pd.Series(columns[v], dtype="int64" if v == "b" else "str") for v in SCHEMA.variables})


@cache
def neighbours(relation):
    """All pairs of tables of up to two records (three on the larger side), as sorted tuples."""
    small = [r for n in range(3) for r in itertools.combinations_with_replacement(DOMAIN, n)]
    if relation == "add_remove":
        return [(r, tuple(sorted((*r, x), key=DOMAIN.index))) for r in small for x in DOMAIN if len(r) < 2]
    pairs = {
        (r, tuple(sorted((*r[:i], x, *r[i + 1 :]), key=DOMAIN.index)))
        for r in small
        for i in range(len(r))
        for x in DOMAIN
        if x != r[i]
    }
    return sorted(pairs)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda statistic: statistic.name)
def test_no_neighbour_changes_more_than_claimed(statistic, relation):
    values = {
        records: statistic.measured(frame_of(records), relation)
        for records in {records for pair in neighbours(relation) for records in pair}
    }
    changes = [values[one].astype(float) - values[other] for one, other in neighbours(relation)]
    l1 = max(np.abs(change).sum() for change in changes)
    l2 = max(np.sqrt((change**2).sum()) for change in changes)
    for worst, claimed in ((l1, statistic.l1(relation)), (l2, statistic.l2(relation))):
        assert worst <= claimed * (1 + 1e-12)
        assert not statistic.tight or worst >= claimed * (1 - 1e-12)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
@pytest.mark.parametrize("weights", [None, [5, 1, 2, 0.5, 3]])
def test_the_noise_of_a_release_pays_for_every_neighbour(relation, mechanism, weights):
    """sum |change| / b is at most epsilon, sum change^2 / (2 sigma^2) at most rho, over all neighbours; and near it."""
    delta = 0.0 if mechanism == "laplace" else 1e-6
    releases, paid = {}, set()
    for records in {records for pair in neighbours(relation) for records in pair}:
        budget = dp.PrivacyBudget(0.7, delta)
        data = dp.PrivateDataset(frame_of(records), SCHEMA, budget, neighbours=relation, noise=Silent())
        releases[records] = data.measure(CLIQUES, 0.7, delta=delta, mechanism=mechanism, weights=weights)
        paid |= {replace(cost, id="", holder=None) for cost in releases[records].guarantee.every}
    assert len(paid) == 1  # the same for all but for its random names
    worst = 0.0
    for one, other in neighbours(relation):
        assert releases[one].scales == releases[other].scales
        loss = 0.0
        for clique in CLIQUES:
            change = np.abs(releases[one].tables[clique] - releases[other].tables[clique])
            scale = releases[one].scales[clique]
            loss += change.sum() / scale if mechanism == "laplace" else (change**2).sum() / (2 * scale**2)
        worst = max(worst, loss)
    guarantee = next(iter(releases.values())).guarantee
    charged = guarantee.epsilon if mechanism == "laplace" else guarantee.rho
    assert charged * (1 - 1e-9) <= worst <= charged * (1 + 1e-12)


def test_a_planted_error_is_caught():
    doubled = tables([("a", "b")])
    wrong = Statistic("twice", lambda f, r: 2 * doubled.measured(f, r), doubled.l1, doubled.l2)
    with pytest.raises(AssertionError):
        test_no_neighbour_changes_more_than_claimed(wrong, "add_remove")
