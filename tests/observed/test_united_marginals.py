"""Unions: releases of different records become one release with a public variable more, and promise what holds."""

import copy
import json
import pickle
import warnings
from dataclasses import replace
from functools import reduce
from operator import or_

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.evaluation import audit
from pgmpy_dp.inference.collective.noise_laws import ByRows, GaussianNoise, LaplaceNoise
from pgmpy_dp.observed.contradictions import _drawn_noise
from pgmpy_dp.observed.reading import observe
from pgmpy_dp.privacy import OPENDP_NOISE
from pgmpy_dp.privacy.cost import Cost
from pgmpy_dp.release import Guarantee, NoisyMarginals, Release

SCHEMA = dp.Schema({"a": ["x", "y"], "b": ["x", "y", "z"], "c": ["u", "v"]})
LAPLACE = {"epsilon": 1.0}
GAUSSIAN = {"epsilon": 20.0, "delta": 1e-6, "rho": 1.0, "mechanism": "gaussian"}


def part(cliques, seed=0, promise=LAPLACE, scale=4.0, records=900, total=None):
    """A release of noisy tables, with a cost of its own for each seed."""
    generator = np.random.default_rng(seed)
    tables = {c: generator.poisson(records / SCHEMA.cells(c), SCHEMA.shape(c)) for c in cliques}
    guarantee = Guarantee.of(**promise, name=f"part {seed}")
    return NoisyMarginals(SCHEMA, tables, dict.fromkeys(cliques, scale), guarantee, total)


# The guarantee


def apart(holders, overlap=1):
    """The guarantee of a union of releases of different holders."""
    return replace(reduce(or_, holders), overlap=overlap)


def outcomes(epsilon, delta):
    """Distributions of two outcomes under neighbours, (epsilon, delta)-private and no better: randomised response."""
    likely = (1 - delta) * np.exp(epsilon) / (1 + np.exp(epsilon))
    one = np.array([likely, 1 - delta - likely, delta, 0.0])
    return one, one[[1, 0, 3, 2]]


def violation(distributions, changed, epsilon):
    """The delta of releases side by side, if the records of some holders change, at an epsilon: a sum over outcomes."""
    one = reduce(np.multiply.outer, [before for before, _ in distributions])
    other = reduce(np.multiply.outer, [d[number in changed] for number, d in enumerate(distributions)])
    return max(np.maximum(p - np.exp(epsilon) * q, 0).sum() for p, q in ((one, other), (other, one)))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.1, 3.0), st.sampled_from([0.0, 0.01, 0.2])), min_size=2, max_size=4),
    st.integers(1, 4),
)
def test_the_guarantee_holds_for_every_outcome_and_every_choice_of_holders(prices, overlap):
    overlap = min(overlap, len(prices))
    holders = [Guarantee.of(e, d, None, "add_remove", "several", True) for e, d in prices]
    stated = apart(holders, overlap)
    distributions = [outcomes(*price) for price in prices]
    subsets = [[n for n in range(len(prices)) if bits >> n & 1] for bits in range(1, 2 ** len(prices))]
    worst = max(violation(distributions, s, stated.epsilon) for s in subsets if len(s) <= overlap)
    assert worst <= stated.delta + 1e-12


def test_nothing_less_would_hold():
    distributions = [outcomes(1.0, 0.0), outcomes(2.0, 0.0)]
    holders = [Guarantee.of(e) for e in (1.0, 2.0)]
    stated = apart(holders)
    assert violation(distributions, [1], stated.epsilon) < 1e-12 < violation(distributions, [1], stated.epsilon - 1e-3)
    both = apart(holders, overlap=2)
    assert violation(distributions, [0, 1], both.epsilon) < 1e-12
    assert violation(distributions, [0, 1], stated.epsilon) > 0.1  # where a person of both is counted once


def test_each_price_is_the_sum_of_the_largest_and_what_was_found_before_is_added_once():
    found = Guarantee.of(0.5, 1e-7, None, "add_remove", "partition_selection", True)
    prices = [(2.5, 3e-6, 0.1), (1.5, 5e-6, 0.3), (3.0, 2e-6, 0.2)]
    holders = [Guarantee.of(*price, mechanism="gaussian") for price in prices]
    holders[2] = holders[2].after(found)
    one, two = apart(holders), apart(holders, overlap=2)
    assert (one.epsilon, one.delta, one.own.rho, one.earlier) == (3.5, 5.1e-6, 0.3, found.costs)
    assert (two.epsilon, two.delta, two.own.rho) == (6.0, 8.1e-6, 0.5)
    assert "in one of the united releases" in str(one)
    assert "in up to 2 of the united releases" in str(two)
    assert Guarantee.from_dict(json.loads(json.dumps(two.to_dict()))) == two == pickle.loads(pickle.dumps(two))
    assert not one.covers(two)
    assert not two.covers(replace(one, overlap=3))


def paid(cliques, seed=0):
    """A release that a ledger of its own has paid for."""
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["x", "z"], "c": ["u", "v"]})
    budget, noise = dp.PrivacyBudget(1.0), dp.SimulatedNoise(seed)
    return dp.PrivateDataset(frame, SCHEMA, budget, noise=noise).measure(cliques, 1.0)


@pytest.mark.parametrize("released", [part, paid])
def test_all_that_one_part_was_joined_of_counts_together(released):
    """Whoever has paid for it: what is joined is of the same records."""
    joined = released([("a",)]) + released([("b",)], 1)
    one, two = (dp.union({"n": joined, "s": released([("a",)], 2)}, overlap=overlap) for overlap in (1, 2))
    assert (joined.guarantee.epsilon, one.guarantee.epsilon, two.guarantee.epsilon) == (2.0, 2.0, 3.0)


@pytest.mark.parametrize("change", [{"neighbours": "replace_one"}, {"unit": "person"}])
def test_relation_and_unit_agree_and_samples_exact_counts_and_unions_are_refused(change):
    with pytest.raises(ValueError, match=next(iter(change))):
        apart([Guarantee.of(1.0), Guarantee.of(1.0, **change)])
    total = 900 if "neighbours" in change else None
    with pytest.raises(ValueError, match=next(iter(change))):
        dp.union({"n": part([("a",)]), "s": part([("a",)], 1, LAPLACE | change, total=total)})
    with pytest.raises(ValueError, match="not samples"):
        dp.union({"n": part([("a",)]), "s": part([("a",)], 1, LAPLACE | {"sampling_rate": 0.5})})
    both = dp.union({"n": part([("a",)]), "s": part([("a",)], 1)})
    with pytest.raises(TypeError, match="can be united, got united tables"):
        dp.union({"n": part([("a",)], 2), "s": both})
    exact = {"epsilon": float("inf"), "mechanism": "none", "private": False}
    with pytest.raises(ValueError, match="Exact counts"):
        dp.union({"n": part([("a",)]), "s": part([("a",)], 1, exact, scale=0.0)})


def united(rows, epsilons, overlap=1):
    parts = {}
    for site, count, epsilon in zip("ns", rows, epsilons, strict=True):
        table = OPENDP_NOISE.discrete_laplace(np.array([count, 0]), 1 / epsilon)
        parts[site] = NoisyMarginals(SCHEMA, {("a",): table}, {("a",): 1 / epsilon}, Guarantee.of(epsilon))
    return dp.union(parts, overlap=overlap)


def test_an_audit_passes_the_union_and_catches_the_mean_of_epsilons_and_an_overlap_that_is_not_counted():
    """Each right claim fails by chance in at most one of a thousand runs; the planted ones are off by a factor."""
    one_site, both_sites = ((0, 3), (1, 3)), ((0, 0), (1, 1))

    def refuted(epsilons, neighbours, claim, trials):
        return audit(lambda rows: united(rows, epsilons).tables, neighbours, claim, trials=trials).refuted

    claim = united((1, 3), (3.0, 0.2)).guarantee.epsilon
    assert claim == 3.0
    assert not refuted((3.0, 0.2), one_site, claim, 100)
    assert refuted((3.0, 0.2), one_site, np.mean((3.0, 0.2)), 1000)
    twice = united((1, 3), (1.5, 1.5), overlap=2).guarantee.epsilon
    assert twice == 3.0
    assert not refuted((1.5, 1.5), both_sites, twice, 100)
    assert refuted((1.5, 1.5), both_sites, 1.5, 1000)


def test_under_replace_one_the_numbers_of_records_of_all_parts_are_public():
    promise = LAPLACE | {"neighbours": "replace_one"}
    both = dp.union({"n": part([("a",)], 0, promise, total=900), "s": part([("a",)], 1, promise, total=100)})
    assert (both.public_total, both.total, both.total_variance) == (1000, 1000.0, 0.0)
    assert "replaced by another in one of the united releases, their number being public" in str(both.guarantee)


# What it says


@st.composite
def unions(draw):
    """Parts with other tables, axes, noise and privacy losses."""
    sets = st.lists(
        st.sampled_from([("a",), ("a", "b"), ("b", "a"), ("c", "b"), ("a", "b", "c")]), min_size=1, max_size=3
    )
    parts = {}
    for number in range(draw(st.integers(2, 3))):
        cliques = list({frozenset(c): c for c in draw(sets)}.values())
        promise, scale = draw(st.sampled_from([(LAPLACE, 3.0), ({"epsilon": 2.0}, 1.5), (GAUSSIAN, 3.0)]))
        parts[draw(st.sampled_from([f"site {number}", number, number + 0.5]))] = part(cliques, number, promise, scale)
    return dp.union(parts, draw(st.sampled_from(["site", "period"])), draw(st.integers(1, len(parts))))


@settings(max_examples=40, deadline=None)
@given(unions())
def test_files_and_pickles_keep_a_union(tmp_path_factory, both):
    path = tmp_path_factory.mktemp("union") / "all.zip"
    both.save(path)
    loaded = Release.load(path)
    assert loaded == both == pickle.loads(pickle.dumps(both))
    assert list(loaded.parts) == list(both.parts)
    assert (loaded.guarantee, loaded.schema, loaded.cliques) == (both.guarantee, both.schema, both.cliques)
    assert repr(loaded) == repr(both)
    assert both._repr_html_()


@settings(max_examples=40, deadline=None)
@given(unions(), st.sampled_from([["a"], ["b", "a"], ["c"], ["a", "b", "c"]]))
def test_observations_are_those_of_each_part_with_its_own_noise(both, asked):
    asked = [variable for variable in asked if variable in both.variables]
    if not asked:
        return
    seen = observe(both, [both.variable, *asked])
    counts = np.arange(float(seen.sums.shape[1]))
    assert seen.cliques[-1] == (both.variable,)
    expected, places = (
        seen.expected(counts),
        np.split(counts, np.cumsum([both.schema.cells(c) for c in seen.cliques])[:-1]),
    )
    sizes = zip(places[-1], both.parts.values(), strict=True)
    rows = [(place, one.total, max(one.total_variance, 0.25)) for place, one in sizes]
    for number, one in enumerate(both.parts.values()):
        own = observe(one, [v for v in asked if v in one.variables]) if set(asked) & set(one.variables) else None
        for owner, clique in enumerate(own.cliques if own else ()):
            place = next(n for n, c in enumerate(seen.cliques) if set(c[1:]) == set(clique))
            cells = places[place].reshape(both.schema.shape(seen.cliques[place]))[number]
            cells = cells.transpose([seen.cliques[place][1:].index(v) for v in clique]).ravel()
            noise = own.noise.take(own.owners == owner)
            rows += zip(cells, noise.observed, noise.variance, strict=True)
    assert sorted(zip(expected, seen.noise.observed, seen.noise.variance, strict=True)) == sorted(rows)


def test_without_its_variable_a_union_is_the_sum_of_its_parts_and_of_their_noise():
    north, south = part([("a", "b")]), part([("b", "a")], 1, GAUSSIAN, 3.0, 100)
    both = dp.union({"north": north, "south": south})
    summed = north.tables["a", "b"] + south.tables["b", "a"].T
    variance = north.variances["a", "b"] + 9.0
    for clique in (("a", "b"), ("b", "a")):
        table, found = both.marginal(clique)
        assert (table == (summed if clique[0] == "a" else summed.T)).all()
        assert found == pytest.approx(variance)
    seen = observe(both, ["a", "b"])
    assert (seen.noise.observed == summed.ravel()).all()
    assert seen.noise.variance == pytest.approx(np.full(6, variance))
    assert both.total == north.total + south.total
    sites = observe(both, ["site"])
    assert (sites.noise.observed == [north.total, south.total]).all()


def test_noise_in_a_cell_of_both_is_the_quadratic_mean_of_that_of_the_parts():
    scales = {"north": 3.0, "south": 5.0}
    parts = {site: part([("a", "b")], seed, scale=scale) for seed, (site, scale) in enumerate(scales.items())}
    each = [own.noise(("a", "b")) for own in parts.values()]
    assert [scale for scale, _ in each] == [3.0, 5.0]
    assert all(deviation > 1.3 * scale for scale, deviation in each)  # of Laplace noise
    found = dp.union(parts, variable="site").noise(("site", "a", "b"))
    assert found == pytest.approx([17.0**0.5, np.sqrt(np.mean([deviation**2 for _, deviation in each]))])


@pytest.mark.parametrize("cliques", [[("a", "b")], [("a",), ("b",), ("a", "c")]])
def test_a_partially_pooled_union_observes_its_tables_and_the_parts_numbers_of_records(cliques):
    parts = {site: part(cliques, seed) for seed, site in enumerate(("north", "south"))}
    partial = dp.PartiallyPooledMarginals.of(dp.union(parts, variable="site"))
    seen = observe(partial, partial.variables)
    assert seen.cliques[-1] == ("site",)
    assert np.bincount(seen.owners).tolist() == [partial.schema.cells(clique) for clique in seen.cliques]
    np.testing.assert_allclose(seen.noise.observed[-2:], partial.totals)
    for clique, table in partial.tables.items():  # which have noise of their own, not that of the parts
        squares, dimensions = partial.squares(clique, table)
        variance = partial.cell_variance(clique, clique)
        assert (squares, dimensions) == (pytest.approx((table**2 / variance).sum()), table.size)
        assert variance.mean() == pytest.approx(partial.noise(clique)[1] ** 2)


def test_distances_are_in_units_of_each_parts_noise():
    """Tables are compared with a model: what is far off for one part's noise is not for another's."""
    scales = {"north": 3.0, "south": 30.0}
    parts = {site: part([("a", "b")], seed, scale=scale) for seed, (site, scale) in enumerate(scales.items())}
    apart = np.ones((2, 2, 3))
    expected = sum(6 / own.variances["a", "b"] for own in parts.values())
    assert dp.union(parts, variable="site").squares(("site", "a", "b"), apart) == (pytest.approx(expected), 12)


def test_interactions_of_parts_have_the_noise_of_their_margins():
    parts = {str(scale): part([("a", "b")], seed, scale=scale) for seed, scale in enumerate((3.0, 5.0))}
    _, variances = dp.PartiallyPooledMarginals.of(dp.union(parts))._measured_interactions()["a",]
    margins = [own.marginal(("a",))[1] / own.total**2 for own in parts.values()]  # of shares
    assert variances == pytest.approx(margins)


def test_a_table_that_only_some_measured_says_nothing_of_the_others_but_their_share_of_all():
    both = dp.union({"north": part([("a",), ("c",)]), "south": part([("a",)], 1), "west": part([("a",), ("c",)], 2)})
    assert both.cliques == (("site", "a"), ("site", "c"))
    assert list(both.tables) == [("site", "a")]
    seen = observe(both, ["site", "a", "c"])
    assert seen.owners.tolist() == [0] * 6 + [1] * 4 + [2] * 3
    counts = np.arange(15.0)
    assert seen.expected(counts).tolist() == [*counts[:6], 6, 7, 10, 11, 12, 13, 14]
    pooled, variance = both.marginal(("c",))
    held = both.parts["north"], both.parts["west"]
    own = sum(one.tables["c",] for one in held)
    factor = both.total / sum(one.total for one in held)
    assert pooled == pytest.approx(factor * own)
    assert variance > factor**2 * sum(one.variances["c",] for one in held)
    filled, _ = both.marginal(("site", "c"))
    assert filled[1] == pytest.approx(both.parts["south"].total * own / sum(one.total for one in held))


def test_coefficients_that_only_some_measured_are_scaled_to_all_records():
    def coefficients(cliques, records):
        frame = pd.DataFrame({v: [states[0], states[0], states[1]] * records for v, states in SCHEMA.states.items()})
        return dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(9.0)).measure_coefficients(cliques, 9.0)

    north = coefficients([("a",), ("c",)], 200)
    both = dp.union({"north": north, "south": coefficients([("a",)], 600)})
    seen, own = (observe(release, ["c"]).noise.observed for release in (both, north))
    assert seen == pytest.approx(own * both.total / north.total)


def test_rows_of_several_laws_are_taken_in_any_order():
    noise = ByRows(
        (LaplaceNoise(np.array([0.0, 1.0, 4.0]), np.ones(3)), GaussianNoise(np.array([2.0, 3.0]), np.full(2, 4.0))),
        (np.array([0, 1, 4]), np.array([2, 3])),
    )
    order = np.array([3, 0, 4, 2])
    taken = noise.take(order)
    assert taken.observed.tolist() == order.tolist()
    assert taken.variance.tolist() == [4, 1, 1, 4]
    assert [rows.tolist() for rows in taken.rows] == [[1, 2], [0, 3]]


def test_noise_of_a_sum_is_taken_for_the_law_that_is_nearer_in_kurtosis():
    """Equal Laplace noise of k parts has an excess kurtosis of 3 / k; noise of which one part has most is its."""
    for scales, law in (((4, 4), LaplaceNoise), ((4, 4, 4), GaussianNoise), ((4, 4, 40), LaplaceNoise)):
        parts = {str(place): part([("a",)], place, scale=scale) for place, scale in enumerate(scales)}
        assert type(observe(dp.union(parts), ["a"]).noise) is law
    mixed = {"north": part([("a",)]), "south": part([("a",)], 1, GAUSSIAN, 3.0)}
    assert type(observe(dp.union(mixed), ["a"]).noise) is GaussianNoise


# What is refused


@pytest.mark.parametrize(
    ("parts", "named"),
    [
        ({"north": part([("a",)])}, "two releases or more"),
        ([part([("a",)])], "two releases or more"),
        ({"north": part([("a",)]), "south": part([("a",)])}, "given twice"),
        ({"north": part([("a",)]), "south": "south.zip"}, "south: releases of tables, residuals"),
        ({"north": part([("a",)]), None: part([("a",)], 1)}, "None"),
    ],
)
def test_what_is_no_union_is_refused_by_name(parts, named):
    with pytest.raises((TypeError, ValueError), match=named):
        dp.union(parts)


def test_other_states_and_a_name_that_is_taken_are_refused_with_a_way_out():
    promise = Guarantee.of(1.0)
    other = NoisyMarginals(dp.Schema({"a": ["y", "x"]}), {("a",): np.array([1, 2])}, {("a",): 4.0}, promise)
    with pytest.raises(dp.SchemaError, match=r"north and south: Variable 'a' has other states.*dp.agree"):
        dp.union({"north": part([("a",)]), "south": other})
    with pytest.raises(dp.SchemaError, match="have a variable 'a' already"):
        dp.union({"north": part([("a",)]), "south": part([("a",)], 1)}, variable="a")
    with pytest.raises(ValueError, match="overlap is 3"):
        dp.union({"north": part([("a",)]), "south": part([("a",)], 1)}, overlap=3)


def restate(stated, *costs, **parts):
    """Let a guarantee state these costs, and what they come to."""
    stated["guarantee"] = Guarantee(frozenset(map(Cost.from_dict, costs)), **parts).to_dict()


def costs_of(stated):
    return stated["guarantee"]["costs"]


def mean(stated):
    first, second = stated["parts"]
    (own,) = costs_of(first)
    restate(first, own | {"epsilon": "2"})
    restate(stated, *costs_of(first), *costs_of(second), overlap=1)
    stated["guarantee"]["epsilon"] = 1.5


def nested(stated):
    inner = {name: own for name, own in stated.items() if name != "format_version"}
    stated["parts"][0] = {"state": "north", **copy.deepcopy(inner)}


CHANGES = {
    "less": lambda stated: stated["guarantee"].update(epsilon=0.5),
    "less of all costs": lambda stated: restate(
        stated, *(cost | {"epsilon": "1/2"} for cost in costs_of(stated)), overlap=1
    ),
    "mean": mean,
    "more holders": lambda stated: stated["guarantee"].update(overlap=2),
    "none may be at both": lambda stated: restate(stated, *costs_of(stated)),
    "overlapping": lambda stated: stated.update(overlap=2),
    "another site": lambda stated: stated["parts"][1].update(state="elsewhere"),
    "one site": lambda stated: stated["parts"][1].update(state="north"),
    "less noise": lambda stated: stated["parts"][1]["cliques"][0].update(scale=0.1),
    "nested": nested,
    "a part more": lambda stated: stated["parts"].append(stated["parts"][0] | {"state": "west"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_file_whose_union_does_not_follow_from_its_parts_is_refused(tmp_path, change, rewritten):
    path = tmp_path / "all.zip"
    dp.union({"north": part([("a",)]), "south": part([("a",)], 1)}).save(path)
    rewritten(path, change)
    with pytest.raises(dp.ReleaseFormatError):
        Release.load(path)


# Partial pooling


def like(shares, records, seed, epsilon=1.0, first=0.4):
    """A release of two variables with these shares of b given a."""
    generator = np.random.default_rng(seed)
    joint = np.array([first, 1.0 - first])[:, None] * shares
    table = generator.multinomial(records, joint.ravel()).reshape(2, 3)
    noise = dp.SimulatedNoise(seed).discrete_laplace(np.zeros(6, dtype=np.int64), 1 / epsilon).reshape(2, 3)
    return NoisyMarginals(SCHEMA, {("a", "b"): table + noise}, {("a", "b"): 1 / epsilon}, Guarantee.of(epsilon))


ONE, OTHER = np.array([[0.2, 0.3, 0.5], [0.5, 0.3, 0.2]]), np.array([[0.4, 0.3, 0.3], [0.2, 0.5, 0.3]])


def test_parts_borrow_where_they_are_alike_and_keep_their_own_where_they_are_not():
    """Over 40 unions a small part loses half of its error by three like it, and gains none by three unlike it."""
    errors, counts = {}, {"alike": [], "unlike": []}
    for name, small in (("alike", ONE), ("unlike", OTHER)):
        for seed in range(40):
            large = {site: like(ONE, 4000, 9 * seed + number) for number, site in enumerate("nsw")}
            both = dp.union(large | {"small": like(small, 300, 9 * seed + 5)})
            partial, truth = dp.PartiallyPooledMarginals.of(both), np.array([0.4, 0.6])[:, None] * small
            counts[name].append(partial.apart_releases[3].total)
            pooled, own = both.marginal(("a", "b"))[0], both.parts["small"].tables["a", "b"]
            outputs = {"alone": own / 300, "pooled": pooled / pooled.sum()}
            outputs["partial"] = partial.tables["site", "a", "b"][3] / partial.parts["small"].total
            for way, table in outputs.items():
                errors.setdefault((name, way), []).append(np.abs(table - truth).sum())
    mean = {key: np.mean(own) for key, own in errors.items()}
    assert mean["alike", "partial"] < 0.5 * mean["alike", "alone"]
    # It is fitted to about as many records as it borrows from: all 12300, or few beyond its own 300.
    assert np.median(counts["alike"]) > 9000
    assert np.median(counts["unlike"]) < 1000
    assert mean["unlike", "partial"] < 1.03 * mean["unlike", "alone"] < 0.6 * mean["unlike", "pooled"]


def test_what_is_common_given_a_variable_is_borrowed_though_its_shares_differ():
    """Over 20 unions a small part loses a quarter of its error in b given a by three in which a has other shares."""
    errors = []
    for seed in range(20):
        firsts = zip((0.2, 0.4, 0.6, 0.85), (4000, 4000, 4000, 300), strict=True)
        parts = {n: like(ONE, size, 9 * seed + n, first=own) for n, (own, size) in enumerate(firsts)}
        both = dp.union({f"site {n}": part for n, part in parts.items()})
        outputs = [both.tables["site", "a", "b"][3], dp.PartiallyPooledMarginals.of(both).tables["site", "a", "b"][3]]
        rows = [np.maximum(table, 0.1) / np.maximum(table, 0.1).sum(axis=1, keepdims=True) for table in outputs]
        errors.append([np.abs(own - ONE).sum() for own in rows])
    alone, partial = np.mean(errors, axis=0)
    assert partial < 0.8 * alone


def test_errors_of_shares_are_errors_of_what_is_expected_of_pairs():
    """A record's products of contrasts of independent variables vary by 1 less the product of their squared means."""
    partial = dp.PartiallyPooledMarginals.of(dp.union({site: like(ONE, 4000, n) for n, site in enumerate("ns")}))
    alone, full = partial._interactions, partial._with_all_errors
    means = [1 - SCHEMA.cells(v) * alone[v].chance for v in (("a",), ("b",))]
    assert full["a", "b"].chance == pytest.approx((1 - means[0] * means[1]) / 6)
    assert (full["a", "b"].variance > alone["a", "b"].variance).all()
    lent, drawn = (releases[0].variances["a", "b"] for releases in (partial.apart_releases, partial.drawn_releases))
    assert drawn > lent


def months(slopes, seed, names=range(12)):
    """Releases of twelve months of 500 records, with these log-odds of b given a, and their shares."""
    rows = np.exp(np.array([0.0, 0.3, -0.3]) + slopes[:, None, None] * np.array([[0, 1, -1], [0, -1, 1]]))
    rows /= rows.sum(axis=2, keepdims=True)
    parts = [like(own, 500, 50 * seed + number, 0.2) for number, own in enumerate(rows)]
    return dp.union(dict(zip(names, parts, strict=True)), "month"), np.array([0.4, 0.6])[:, None] * rows


def test_periods_borrow_from_their_neighbours_and_not_across_a_jump():
    """Over 8 drifts in small steps; the same months called by names borrow from all others."""
    errors, records, jump = {}, [], np.repeat([0.0, 1.0], 6)
    for seed in range(8):
        drift = 0.07 * np.random.default_rng(seed).normal(size=12).cumsum() + np.linspace(-0.7, 0.7, 12)
        both, truth = months(drift, seed)
        named, _ = months(drift, seed, "abcdefghijkl")
        pooled = both.marginal(("a", "b"))[0]
        outputs = {
            "alone": both.tables["month", "a", "b"] / both.totals[:, None, None],
            "pooled": np.broadcast_to(pooled / pooled.sum(), truth.shape),
            "periods": dp.PartiallyPooledMarginals.of(both).tables["month", "a", "b"] / both.totals[:, None, None],
            "sites": dp.PartiallyPooledMarginals.of(named).tables["month", "a", "b"] / both.totals[:, None, None],
        }
        for way, table in outputs.items():
            errors.setdefault(way, []).append(np.abs(table - truth).sum())
        still, moved = (dp.PartiallyPooledMarginals.of(months(s, seed)[0]) for s in (0.0 * jump, jump))
        records.append([[each.apart_releases[number].total for number in (0, 5)] for each in (still, moved)])
    mean = {way: np.mean(own) for way, own in errors.items()}
    assert mean["periods"] < 0.9 * min(mean["sites"], mean["alone"], mean["pooled"])
    still, moved = np.mean(records, axis=0)
    assert (moved < 0.75 * still).all()  # what months have in common still is, such as the shares of a
    assert (moved > 1000).all()


def test_partial_pooling_is_a_release_of_the_same_promise_that_files_keep(tmp_path):
    both = dp.union({"north": part([("a",), ("b", "c")]), "south": part([("a",)], 1, GAUSSIAN, 3.0, 100)}, overlap=2)
    partial = dp.PartiallyPooledMarginals.of(both)
    partial.save(tmp_path / "all.zip")
    assert Release.load(tmp_path / "all.zip") == partial != both
    assert (partial.guarantee, partial.schema, partial.total) == (both.guarantee, both.schema, both.total)
    assert set(partial.tables) == {("site", "a"), ("site", "b", "c")}
    for table in partial.tables.values():
        assert table.reshape(2, -1).sum(axis=1) == pytest.approx([one.total for one in both.parts.values()])
    lent = partial.tables["site", "b", "c"] / partial.tables["site", "b", "c"].sum(axis=(1, 2), keepdims=True)
    assert lent[1] == pytest.approx(lent[0], abs=0.02)  # the south did not measure it
    assert observe(partial, ["a"]).noise.observed == pytest.approx(observe(both, ["a"]).noise.observed)


def test_the_variance_of_a_record_is_that_at_a_parts_own_shares():
    """It is p (1 - p), and .3 of the mean at least: of a part whose share noise made negative."""
    counts = {"rare": (200, 1800), "even": (1000, 1000), "below": (-20, 1020)}
    parts = {
        site: NoisyMarginals(SCHEMA, {("a",): np.array(own)}, {("a",): 2.0}, Guarantee.of(1.0))
        for site, own in counts.items()
    }
    found = dp.PartiallyPooledMarginals.of(dp.union(parts))._interactions["a",].chance / 2
    own = np.array([0.1 * 0.9, 0.25])
    assert found[:2] == pytest.approx(own, rel=0.1)
    assert found[2] == pytest.approx(0.3 * np.array([2000, 2000]) @ own / 5000, rel=0.1)


def test_noise_of_residuals_is_drawn_with_the_variance_that_their_tables_have():
    frame = pd.DataFrame({v: list(states[:2]) for v, states in SCHEMA.states.items()})
    data = dp.PrivateDataset(frame, SCHEMA, dp.PrivacyBudget(9.0, 1e-6))
    residuals = data.measure_residuals({(): 3.0, ("a",): 5.0, ("b",): 4.0, ("a", "b"): 2.0}, delta=1e-6)
    drawn = _drawn_noise(residuals, ("a", "b"), 0.0, np.random.default_rng(0))
    assert drawn.var(axis=0).mean() == pytest.approx(residuals.noise(("a", "b"))[1] ** 2, rel=0.15)


def test_releases_of_different_records_that_are_joined_or_fitted_together_are_named():
    """Ten pairs of the same number of records are not: noise alone is taken for a difference once in 10^7 pairs."""
    one, other = part([("a", "b")], seed=1), part([("b", "c")], seed=2, records=3000)
    with pytest.warns(UserWarning, match="about .* records, which noise does not explain. .*union"):
        one.join(other)
    network = dp.PrivateBayesianNetwork([("a", "b"), ("b", "c")])
    for second in (other, part([("b", "c")], 2, GAUSSIAN, records=3000)):  # whose other kind of noise is not joined
        with pytest.warns(UserWarning, match="noise does not explain"):
            network.fit([one, second], estimator=dp.CollectiveEM())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(10):
            noise = np.random.default_rng(seed).laplace(scale=4.0, size=(2, 2, 3))
            tables = [np.rint(150 + own).astype(int) for own in noise]
            releases = [
                NoisyMarginals(SCHEMA, {("a", "b"): own}, {("a", "b"): 4.0}, Guarantee.of(1.0)) for own in tables
            ]
            releases[0].join(releases[1])


@pytest.mark.parametrize("estimator", [dp.AutoMLE(), dp.PrivateMLE()])
def test_parts_without_a_common_table_are_fitted_by_what_takes_each(estimator):
    united = dp.union({"one": part([("a", "b")]), "other": part([("b", "c")], seed=1)}, variable="site")
    network = dp.PrivateBayesianNetwork([("site", "a"), ("a", "b"), ("b", "c")])
    with pytest.raises(ValueError, match="fit it with CollectiveEM"):
        network.fit(united, estimator=estimator)
    assert network.fit(united, estimator=dp.CollectiveEM()).check_model()


def test_a_file_whose_parts_have_no_tables_is_no_union():
    union = dp.union({site: part([("a", "b")], seed) for seed, site in enumerate(("north", "south"))})
    contents = copy.deepcopy(union.contents())
    contents["parts"][0]["kind"] = "DiscoveredStates"
    with pytest.raises(ValueError, match="a release of 'DiscoveredStates' has no tables of its own"):
        type(union).interpret(union.schema, contents, None)


def test_releases_that_one_cost_paid_for_are_no_union():
    one = part([("a", "b")], 0)
    with pytest.raises(ValueError, match="paid for by one cost: they count the same records"):
        dp.union({"north": one, "south": replace(part([("a", "b")], 1), guarantee=one.guarantee)})
