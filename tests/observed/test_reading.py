"""Releases of every kind are read alike: alone, joined, united, partially pooled, and beside public tables."""

import itertools
import math
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import compare
from pgmpy_dp.inference.tables.table import centred
from pgmpy_dp.observed.contradictions import unlike
from pgmpy_dp.observed.observed import Observed
from pgmpy_dp.observed.partially_pooled_marginals import PartiallyPooledMarginals
from pgmpy_dp.release import Release
from pgmpy_dp.report import write_report

STATES = {"site": ["north", "south"], "a": ["x", "y"], "b": [0, 1, 2], "c": ["u", "v"], "d": ["only"]}
SCHEMA = dp.Schema({variable: STATES[variable] for variable in "abcd"})
CLIQUES = [("b", "a"), ("a", "c"), ("b", "c"), ("d", "c")]
SCALES = {(): 30.0, **{(v,): 14.0 for v in "abc"}, ("a", "b"): 9.0, ("a", "c"): 8.0, ("b", "c"): 9.0, ("c", "d"): 14.0}
KINDS = {
    "tables": lambda data: data.measure(CLIQUES, 1.0, delta=1e-6),
    "laplace": lambda data: data.measure(CLIQUES, 1.0),
    "residuals": lambda data: data.measure_residuals(SCALES, delta=1e-6),
    "coefficients": lambda data: data.measure_coefficients(CLIQUES, 1.0),
}
COUNTS = {"north": 3000, "south": 1500}
MIXED = [pair for pair in itertools.combinations_with_replacement(KINDS, 2) if pair != ("laplace", "laplace")]


@cache
def records(site="north", seed=0, tilt=0.0):
    """Three variables that depend on each other; `tilt` moves records of a site to the last states."""
    weights = np.array([8, 2, 6, 4, 1, 4, 1, 5, 2, 6, 5, 6 + 40 * tilt])
    cells = np.random.default_rng(seed).choice(12, COUNTS[site], p=weights / weights.sum())
    a, b, c = np.unravel_index(cells, (2, 3, 2))
    codes = {"a": a, "b": b, "c": c, "d": 0 * a}
    return pd.DataFrame({v: np.array(STATES[v])[code] for v, code in codes.items()}).assign(site=site)


@cache
def released(kind, site="north", seed=0, neighbours="add_remove", tilt=0.0):
    noise, own = dp.SimulatedNoise([seed, COUNTS[site]]), records(site, seed, tilt)[["a", "b", "c", "d"]]
    return KINDS[kind](dp.PrivateDataset(own, SCHEMA, dp.PrivacyBudget(1e6, 1e-3), neighbours, noise=noise))


def united(kinds, seed=0, neighbours="add_remove", tilt=0.0):
    one, other = kinds
    north, south = released(one, "north", seed, neighbours), released(other, "south", seed, neighbours, tilt)
    return dp.union({"north": north, "south": south})


def cells(frame):
    """How many records are in each cell of all variables together."""
    table = np.zeros([len(states) for states in STATES.values()])
    np.add.at(table, tuple(pd.Categorical(frame[v], states).codes for v, states in STATES.items()), 1)
    return table


def counted(table, clique):
    """Of these cells, those of some variables, in the order of these."""
    kept = [v for v in STATES if v in clique]
    others = tuple(axis for axis, v in enumerate(STATES) if v not in clique)
    return table.sum(axis=others).transpose([kept.index(v) for v in clique])


def informed(release, frame, seed=0):
    """Public tables of the records themselves, with errors as stated."""
    errors = 5.0 * np.random.default_rng(seed).standard_normal((2, 3, 2))
    table = counted(cells(frame), ("c", "b", "a")) + errors
    return dp.InformedMarginals(release, {("c", "b", "a"): dp.PublicTable(table * (len(frame) / table.sum()), 5.0)})


def distances(release, frame, variables):
    """Mean squares of what the release observes, of what mixtures read, and of its tables, in units of noise."""
    seen, exact = Observed.of([release], variables), cells(frame)
    counts = np.concatenate([counted(exact, clique).ravel() for clique in seen.cliques])
    observed = ((seen.noise.observed - seen.expected(counts)) ** 2 / seen.noise.variance).mean()
    read, whole = [], 0.0
    for clique, table, deviation in release.tables_of(variables):
        apart = table - counted(exact, clique) if clique else table - len(frame)
        residuals = apart if release.independent else centred(apart)
        read.append(((residuals / deviation) ** 2).sum())
        whole += math.prod(len(STATES[v]) - (not release.independent) for v in clique)
    tables = [
        release.squares(clique, table - counted(exact, clique))
        for clique, table in release.tables.items()
        if "site" in variables or "site" not in clique
    ]
    return observed, sum(read) / whole, *([sum(s for s, _ in tables) / sum(n for _, n in tables)] if tables else [])


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("kind", KINDS)
def test_one_release_alone_and_beside_public_tables_is_as_noisy_as_stated(kind, neighbours):
    """Of 30 releases with at least 10 independent numbers, mean squares deviate by at most .12 of Laplace noise."""
    alone, beside = [], []
    for seed in range(30):
        release, frame = released(kind, seed=seed, neighbours=neighbours), records(seed=seed)
        alone.append(distances(release, frame, ["a", "b", "c", "d"]))
        beside.append(distances(informed(release, frame, seed), frame, ["a", "b", "c", "d"]))
    np.testing.assert_allclose(np.mean(alone, axis=0), 1.0, atol=0.35)
    np.testing.assert_allclose(np.mean(beside, axis=0), 1.0, atol=0.35)


@pytest.mark.parametrize("kinds", MIXED)
def test_unions_of_any_kinds_are_as_noisy_as_stated(kinds):
    apart, together = [], []
    for seed in range(30):
        union = united(kinds, seed)
        frame = pd.concat([records(site, seed) for site in COUNTS])
        apart.append(distances(union, frame, ["site", "a", "b", "c"]))
        together.append(distances(union, frame, ["c", "b", "a"])[:2])
    np.testing.assert_allclose(np.mean(apart, axis=0), 1.0, atol=0.35)
    np.testing.assert_allclose(np.mean(together, axis=0), 1.0, atol=0.35)


@pytest.mark.parametrize("kinds", MIXED)
def test_files_hold_unions_and_public_tables_of_any_kind(kinds, tmp_path):
    union, beside = united(kinds, neighbours="replace_one"), informed(released(kinds[1]), records())
    for release in (union, beside, PartiallyPooledMarginals.of(union)):
        release.save(tmp_path / "release.zip")
        again = Release.load(tmp_path / "release.zip")
        assert again == release == pickle.loads(pickle.dumps(release))
        assert (again.marginal(("a", "c"))[0] == release.marginal(("a", "c"))[0]).all()
    assert union.public_total == 4500


def test_residuals_join_residuals_and_tables(tmp_path):
    """The mean weighted by precision; the price covers both, and mixtures read lists of them."""
    both = []
    for seed in range(30):
        residuals, tables = (released(kind, seed=seed) for kind in ("residuals", "tables"))
        again = released("residuals", seed=seed + 100)
        joined = tables + residuals
        both.append(distances(joined, records(seed=seed), ["a", "b", "c", "d"]))
        assert joined.guarantee.rho == pytest.approx(residuals.guarantee.rho + tables.guarantee.rho)
        assert joined.noise(("a", "b"))[1] < min(release.noise(("b", "a"))[1] for release in (residuals, tables))
    np.testing.assert_allclose(np.mean(both, axis=0), 1.0, atol=0.35)
    twice = residuals + again
    np.testing.assert_allclose(
        np.array(list(twice.scales.values())) * 2**0.5, list(residuals.scales.values()), rtol=1e-4
    )
    assert twice.cliques == residuals.cliques
    twice.save(tmp_path / "twice.zip")
    assert Release.load(tmp_path / "twice.zip") == twice
    estimator = dp.PairwiseMixture(members=1, components=4).fit([residuals, tables])
    assert estimator.release_ == residuals + tables
    with pytest.raises(ValueError, match="joined with itself"):
        residuals + residuals
    with pytest.raises(ValueError, match="Gaussian noise"):
        residuals + released("laplace")
    with pytest.raises(ValueError, match="different neighbours"):
        residuals + released("residuals", neighbours="replace_one")


class Quick(dp.PairwiseMixture):
    """Few steps of its optimiser are enough for four variables."""

    _steps = 150


@pytest.mark.parametrize(
    ("kinds", "parts"),
    [
        (("residuals", "residuals"), True),
        (("residuals", "tables"), False),  # whose first part is that of the first
        (("coefficients", "residuals"), True),
    ],
)
def test_models_pages_and_comparisons_read_them(kinds, parts, tmp_path):
    union, frame = united(kinds, 1), pd.concat([records(site, 1) for site in COUNTS])
    beside = informed(union.parts["north"], frame[frame["site"] == "north"])
    pooled = PartiallyPooledMarginals.of(union)
    for release in (*([union.parts["north"], beside] if parts else []), union, pooled):
        own = frame if release in (union, pooled) else frame[frame["site"] == "north"]
        mixture = Quick(members=2, components=8).fit(release).network_
        network = dp.PrivateBayesianNetwork([("a", "b"), ("a", "c"), ("b", "c")])
        network = network if own is not frame else release.apart(network)
        network.fit(release, estimator=dp.CollectiveEM())
        exact = cells(own)
        for model in (mixture, network):
            truth = counted(exact, ("b", "a")) / len(own)
            assert np.abs(model.marginal(["b", "a"]) - truth).sum() / 2 < 0.03
            bounds = model.query(["c"], {"a": "y"}, interval=0.999)
            share = counted(exact, ("c", "a"))[:, 1]
            assert ((bounds["lower"] < share / share.sum()) & (share / share.sum() < bounds["upper"])).all()
            write_report(release, tmp_path / "report.html", model)
        assert not mixture.check_fit().fails
        mixture.explore(tmp_path / "page.html")
        found = compare(release, mixture)
        assert set(found.index) == set(release.tables)
    assert compare(union, frame[::-1])["excess"].max() < 4


def test_partial_pooling_of_residuals_is_nearer_to_a_small_part():
    """The small part borrows: its table is nearer to the records behind it than its own, mean of 20 unions."""
    gain = []
    for seed in range(20):
        union = united(("residuals", "residuals"), seed)
        pooled = PartiallyPooledMarginals.of(union).marginal(("site", "b", "a"))[0][1]
        own, truth = union.parts["south"].table(("b", "a")), counted(cells(records("south", seed)), ("b", "a"))
        gain.append([np.abs(pooled - truth).sum(), np.abs(own - truth).sum()])
    assert np.mean(gain, axis=0)[0] < np.mean(gain, axis=0)[1]


def test_parts_that_differ_are_found_and_like_ones_are_not():
    """Of 30 unions of like parts, one in a hundred would be called unlike."""
    assert sum(bool(unlike(united(("residuals", "residuals"), seed))) for seed in range(30)) <= 2
    assert unlike(united(("residuals", "tables"), tilt=1.0))
