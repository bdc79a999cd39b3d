"""Numbers within bins have the shape that the counts of all bins tell."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pgmpy_dp as dp
from pgmpy_dp.inference.collective.noise_laws import GaussianNoise, LaplaceNoise
from pgmpy_dp.inference.densities import FineHistogram, _integrated
from pgmpy_dp.models import numbers
from pgmpy_dp.models.numbers import shape_of
from pgmpy_dp.report import render_report

GENERATOR = np.random.default_rng(1)
COUNT = 20_000
# Populations with edges as somebody declares them who has not seen the records.
CASES = {
    "uniform": (GENERATOR.uniform(0, 1000, COUNT), [0, 200, 400, 600, 1000]),
    "exponential": (GENERATOR.exponential(1000, COUNT), [0, 500, 1000, 2000, 1_000_000]),
    "lognormal": (GENERATOR.lognormal(10, 1, COUNT), [0, 10_000, 20_000, 50_000, 100_000, 10_000_000]),
    "Pareto": (1000 * (1 + GENERATOR.pareto(1.5, COUNT)), [0, 2000, 5000, 10_000, 10_000_000]),
    "normal": (5000 + 100 * GENERATOR.standard_normal(COUNT), [0, 4900, 5000, 5100, 100_000]),
    "visits": (GENERATOR.negative_binomial(1, 0.4, COUNT), [0, 1, 2, 3, 4, 200]),
    "many bins": (GENERATOR.exponential(1000, COUNT), [*range(0, 4000, 50), 1_000_000]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("noise", [0.0, 20.0])
def test_drawn_means_are_near_those_of_records(name, noise):
    """Filled evenly, six of seven are 1.1 to 120 times too large."""
    records, edges = CASES[name]
    counts = np.histogram(records, edges)[0] + noise * np.random.default_rng(0).standard_normal(len(edges) - 1)
    bins, shares = dp.Bins(edges), np.maximum(counts, 0) / COUNT
    shape = shape_of(bins, tuple(shares), noise, float(COUNT))
    assert shape.mean == pytest.approx(np.floor(records).mean(), rel=0.12)
    drawn = shape.drawn_means
    assert 0.8 * np.min(drawn) < np.floor(records).mean() < 1.2 * np.max(drawn)
    assert np.max(drawn) < 2 * np.floor(records).mean()


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=8, unique=True),
    st.sampled_from([None, 0, 2]),
    st.sampled_from([0.0, 10.0, 1e6]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_numbers_are_finite_and_in_their_bins(edges, decimals, noise, open_ends, random):
    ends = sorted({round(edge, 2) if decimals == 2 else float(round(edge)) for edge in edges})
    if len(ends) < 2:
        return
    ends = [-np.inf, *ends, np.inf] if open_ends else ends
    shares = [random.choice([0.0, 0.001, 1.0]) * random.random() for _ in ends[1:]]
    bins = dp.Bins(ends, decimals=decimals)
    shape = shape_of(bins, tuple(np.array(shares) / max(sum(shares), 1)), noise, 1000.0)
    places = np.repeat(np.arange(len(shares)), 50)
    tilts = np.random.default_rng(0).standard_normal(places.size) * 10
    for draw, slopes in ((None, None), (None, tilts), (1, tilts)):
        numbers = shape.drawing(places, slopes, draw).draw(np.random.default_rng(1))
        assert np.isfinite(numbers).all()
        assert (np.searchsorted(ends, numbers, side="right") - 1 == places).all()
    assert np.isfinite(shape.given(shape.chances[::-1]).means).all()
    assert (np.diff(shape.quantiles([0.1, 0.5, 0.9])) >= 0).all()


def test_a_spike_with_a_bin_of_its_own_leaves_its_neighbours_alone():
    edges = [0, 20, 40, 41, 60, 100]
    with_spike, without = (
        shape_of(dp.Bins(edges), (0.2, 0.3, spike, 0.15, 0.05), 1.0, 10_000.0).means for spike in (0.01, 0.3)
    )
    assert with_spike[2] == without[2] == 40
    assert np.abs(with_spike - without).max() < 1e-9


CHANCE, ROW = np.random.default_rng(2), np.arange(COUNT)
FINER = {  # records with heaps or gaps within bins that their counts do not tell, and edges
    "heaps": (CHANCE.choice([20, 37, 40, 45, 50], COUNT, p=[0.15, 0.1, 0.45, 0.1, 0.2]), [0, 20, 35, 41, 60, 168]),
    "a far heap": (np.where(ROW % 50, 100 * CHANCE.gamma(2, 1, COUNT), 9000), [0, 100, 200, 500, 10_000]),
    "two humps": (CHANCE.normal(50, 10, COUNT) + 400 * (ROW % 3 == 0), [0, 50, 100, 1000]),
}


def detailed(records, edges, noise, seed=0):
    """The shape told by counts of bins with little noise, and a finer histogram with more."""
    bins, draw = dp.Bins(edges), np.random.default_rng(seed)
    shares = np.histogram(records, edges)[0] / COUNT
    detail = np.histogram(np.floor(records), bins.fine.edges)[0] + noise * draw.standard_normal(len(bins.fine.labels))
    return shape_of(bins, tuple(shares), 1.0, float(COUNT)), shape_of(
        bins, tuple(shares), 1.0, float(COUNT), (tuple(detail / COUNT), noise / COUNT)
    )


@pytest.mark.parametrize("name", FINER)
def test_a_finer_histogram_tells_what_bins_cannot(name):
    records, edges = FINER[name]
    free, measured = detailed(records, edges, 50.0)
    ends = np.quantile(np.floor(records), [0.1, 0.5, 0.9])
    widths = np.diff(edges)[np.searchsorted(edges, ends, side="right") - 1]
    near, far = (np.abs(shape.quantiles([0.1, 0.5, 0.9]) - ends) / widths for shape in (measured, free))
    assert near.max() < 0.07
    assert far.max() > 0.09
    assert measured.mean == pytest.approx(records.mean(), rel=0.2 if name == "a far heap" else 0.03)
    assert np.ptp(measured.drawn_means) < np.ptp(free.drawn_means)
    assert 0.97 * np.min(measured.drawn_means) < records.mean() < 1.03 * np.max(measured.drawn_means)


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.integers(-1000, 1000), min_size=2, max_size=6, unique=True),
    st.sampled_from([None, 0, 1]),
    st.sampled_from([LaplaceNoise, GaussianNoise]),
    st.sampled_from([0.0, 0.003, 0.3]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_a_refined_density_has_the_share_of_each_bin_and_a_mean_within_it(edges, decimals, law, noise, ends, random):
    half = 0.5 if decimals is None else 0.0  # then numbers may have any decimals
    bins = dp.Bins([*([-np.inf] * ends), *sorted(edge + half for edge in edges), *([np.inf] * ends)], decimals=decimals)
    if bins.fine is None:
        return
    size, cells = len(bins.labels), len(bins.fine.labels)
    shares = np.array([random.choice([0.0, 0.01, 1.0]) * random.random() for _ in range(size)])
    held = np.array([random.choice([0.0, 1.0]) * random.random() for _ in range(cells)])
    outputs = held + noise * np.array([8 * random.random() - 4 for _ in range(cells)])
    detail = (tuple(outputs / max(outputs.sum(), 1.0)), noise)
    shape = shape_of(bins, tuple(shares / max(shares.sum(), 1.0)), 5.0, 1000.0, detail, law)
    closed, owners = np.array(bins.closed().edges), shape.density.owners
    for drawn in (shape.density.shares, *shape.density.drawn[:3], shape.given(shape.chances[::-1]).density.shares):
        assert np.bincount(owners, drawn) == pytest.approx(np.ones(size))
        means = np.bincount(owners, drawn * shape.middles)
        slack = 1e-9 * np.abs(closed).max()
        assert ((closed[:-1] - slack <= means) & (means <= closed[1:] + slack)).all()
        assert (drawn >= 0).all()
    assert (shape.ends[0] <= shape.middles + slack).all()
    assert (shape.middles <= shape.ends[1] + slack).all()


def test_laplace_noise_and_sampling_add_up():
    """The density of their sum is an integral over the noise."""
    fine = FineHistogram(np.arange(3.0), np.array([0.3, -0.05]), 0.1, LaplaceNoise, 100.0)
    means, step = np.array([[0.001, 0.2], [0.001, 0.2]]), 1e-5
    noise = np.arange(-3, 3, step)
    for cell, row in zip(fine.shares, fine.likelihood(means), strict=True):
        exact = []
        for mean in means[0]:
            variance, scale = max(mean, 0.01) / 100, 0.1 / np.sqrt(2)
            both = np.exp(-np.abs(noise) / scale - (cell - mean - noise) ** 2 / variance / 2)
            exact.append(np.log(both.sum() * step / np.sqrt(variance)))
        assert row[1] - row[0] == pytest.approx(exact[1] - exact[0], abs=1e-6)


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_heaps_at_lower_edges_are_seen_in_a_finer_histogram_and_allowed_for_without_one(share):
    edges, chance = [0, 500, 1000, 1500, 2000, 3000, 4000, 5000, 10_000, 50_000], np.random.default_rng(3)
    records = np.floor(chance.lognormal(7.5, 0.8, COUNT))
    lower = np.array(edges)[np.searchsorted(edges, records, side="right") - 1]
    records = np.where(chance.random(COUNT) < share, lower, records)
    free, measured = detailed(records, edges, 40.0)
    assert measured.mean == pytest.approx(records.mean(), rel=0.02)
    assert free.mean > (1 + 0.2 * share) * records.mean()
    for shape in (free, measured):
        low, high = shape.mean_ends(0.9)
        assert low - shape.unseen[0] < 1.005 * records.mean() < high + shape.unseen[1]
    assert free.unidentified == numbers.UNSEEN
    assert measured.unidentified is None
    if share == 1:
        assert np.mean(np.isin(measured.drawing(np.full(1000, 4), None).draw(np.random.default_rng(0)), edges)) > 0.95


def test_a_heap_of_numbers_with_decimals_is_drawn_at_its_edge():
    _, measured = detailed((ROW % 3 > 0).astype(float), [0, 0.5, 1.5], 40.0)
    assert (measured.drawing(np.zeros(1000, int), None).draw(np.random.default_rng(0)) == 0.0).all()


def test_a_tail_is_not_longer_than_what_stands_out_of_the_noise():
    """Errs once in 70: a histogram's noise stands out with a probability of 1e-4, in one of 150 with one of .015.

    Laplace noise that is taken for normal stands out in one of 25.
    """
    records, edges = GENERATOR.geometric(0.3, COUNT) - 1, [0, 1, 3, 6, 11, np.inf]
    bins, noise = dp.Bins(edges), 190.0
    shares = np.histogram(records, edges)[0] / COUNT
    exact = np.histogram(records, bins.fine.edges)[0]
    far = dict.fromkeys((LaplaceNoise, GaussianNoise), 0)
    for seed in range(150):
        noisy = exact + LaplaceNoise(exact, noise**2).draw(1, np.random.default_rng(seed))[0]
        for law in [LaplaceNoise, GaussianNoise][: 1 if far[GaussianNoise] else 2]:  # the bug is seen once
            shape = shape_of(bins, tuple(shares), 20.0, float(COUNT), (tuple(noisy / COUNT), noise / COUNT), law)
            far[law] += abs(shape.mean / records.mean() - 1) > 0.2
    assert far[LaplaceNoise] == 0
    assert far[GaussianNoise] > 0


def test_the_empty_part_of_a_wide_bin_stays_empty_where_the_density_leans():
    """Tilted without a limit, the empty cells had a mean of 80 of numbers that are 42 at most."""
    records = np.random.default_rng(0).integers(15, 43, COUNT)
    _, measured = detailed(records, [0, 20, 25, 30, 40, 120], 10.0)
    found = measured.given(measured.chances * [0.1, 0.5, 1, 3, 10] / (measured.chances @ [0.1, 0.5, 1, 3, 10]))
    assert measured.means[-1] < found.means[-1] < 43


def test_noise_in_a_finer_histogram_leaves_the_shape_alone():
    """Filled by the counts above 0, the mean of these is more than ten times too large."""
    records, edges = CASES["exponential"]
    ratios = []
    for seed in range(10):
        free, measured = detailed(records, edges, 300.0, seed)
        ratios.append(measured.mean / free.mean)
    assert np.abs(np.log(ratios)).max() < 0.25


def test_tilts_keep_the_shape_of_all_records_together():
    shape = shape_of(dp.Bins([0, 10, 20, 1000]), (0.5, 0.3, 0.2), 1.0, 10_000.0)
    places = np.full(50_000, 2)
    slopes = np.random.default_rng(0).choice([-1.5, 0.5, 1.0], places.size)
    leaned, plain = (shape.drawing(places, own).draw(np.random.default_rng(1)) for own in (slopes, None))
    assert leaned[slopes > 0].mean() > 1.2 * leaned[slopes < 0].mean()
    spread = plain.std() * np.sqrt(2 / places.size)
    assert abs(leaned.mean() - plain.mean()) < 6 * spread  # errs once in 1e8


def test_noise_in_the_probability_of_a_tail_leaves_its_mean_alone():
    """Leaning with it, a tail of 50 in 10,000 records instead of 2 had a mean of thirty times its near end."""
    shape = shape_of(dp.Bins([0, 5, 10, 20, 40, np.inf]), (0.1, 0.4, 0.3, 0.15, 0.05), 30.0, 10_000.0)
    found = shape.given(np.array([0.2, 0.7, 0.0948, 0.0002, 0.005]))
    assert found.means[-1] == shape.means[-1] < 100
    assert found.means[2] < shape.means[2]


@pytest.fixture(scope="module")
def related():
    """Two numbers whose correlation is .9; bins alone, filled independently, keep .7 of it."""
    generator = np.random.default_rng(0)
    first, second = generator.standard_normal((2, COUNT))
    records = pd.DataFrame({"a": 50 + 10 * first, "b": 50 + 10 * (0.9 * first + np.sqrt(0.19) * second)})
    return records, dp.Schema({v: dp.Bins([0, 40, 50, 60, 200], decimals=1) for v in "ab"}, missing={"b": "unknown"})


def test_numbers_depend_on_each_other_within_their_bins(related, tmp_path):
    records, schema = related
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(10.0), noise=dp.SimulatedNoise(0))
    release = data.measure([("a", "b")], 1.0)
    network = dp.PrivateBayesianNetwork([("a", "b")]).fit(release)
    drawn = network.simulate(COUNT, seed=1, numbers="drawn")
    assert drawn["a"].corr(drawn["b"].astype(float)) > 0.78
    mixture = dp.PairwiseMixture(members=2, components=8).fit(data.measure(dp.plan_pairs(schema)[0], 3.0)).network_
    for model in (network, mixture):
        model.save(tmp_path / "network.zip")
        drawn = model.simulate(COUNT, seed=1, numbers="drawn")
        assert dp.load(tmp_path / "network.zip").simulate(COUNT, seed=1, numbers="drawn").equals(drawn)
    free = mixture.quantiles(variables=["a"]).loc["a", 0.9] - np.quantile(records["a"], 0.9)
    assert abs(free) < 0.5


def test_fewer_than_two_finite_edges_are_no_scale():
    schema = dp.Schema({"a": dp.Bins([-np.inf, 0, np.inf])})
    data = dp.PrivateDataset(pd.DataFrame({"a": [-1.0, 1.0] * 50}), schema, dp.PrivacyBudget(1.0))
    network = dp.PrivateMarkovNetwork()
    network.add_node("a")
    network.fit(data.measure([("a",)], 1.0))
    with pytest.raises(dp.SchemaError, match="fewer than two finite edges"):
        network.simulate(5, numbers="drawn")


def test_means_and_quantiles_have_bounds_that_include_the_tail(related):
    records, schema = related
    holes = records.assign(b=records["b"].mask(np.arange(COUNT) % 5 == 0))
    data = dp.PrivateDataset(holes, schema, dp.PrivacyBudget(10.0), noise=dp.SimulatedNoise(0))
    fine = [("a in detail",), ("b in detail",)]
    measured = dp.PrivateBayesianNetwork([("a", "b")]).fit(data.measure([("a", "b"), *fine], 1.0))
    network = dp.PrivateBayesianNetwork([("a", "b")]).fit(data.measure([("a", "b")], 1.0))
    for model, widest in ((network, 12), (measured, 2)):  # bins are 10 wide, or were measured finely
        means = model.expectation()
        assert list(means.index) == ["a", "b"]
        assert (means["value"] - 50).abs().max() < 1.5
        assert ((means["lower"] < holes.mean()) & (holes.mean() < means["upper"])).all()
        assert (means["upper"] - means["lower"]).max() < widest
    assert not measured.unidentified_means()
    assert network.unidentified_means() == dict.fromkeys(
        "ab", "where numbers are within bins was not measured finely enough"
    )
    assert network.expectation(interval=None)["value"].to_numpy() == pytest.approx(means["value"].to_numpy(), abs=0.2)
    given = network.expectation(["a"], {"b": 70}, interval=None).loc["a", "value"]
    assert given == pytest.approx(records["a"][records["b"] > 60].mean(), rel=0.1)
    assert network.quantiles(variables=["a"]).loc["a"].to_numpy() == pytest.approx(
        np.quantile(records["a"], [0.1, 0.5, 0.9]), abs=2
    )
    assert list(network.quantiles(evidence={"a": 55}).index) == ["b"]
    with pytest.raises(dp.SchemaError, match="'c'"):
        network.expectation(["c"])


@pytest.mark.parametrize(("order", "power"), [(2, 1), (3, 2)])
def test_the_prior_is_white_noise_integrated_so_often(order, power):
    """Its covariance is the integral of the product of (s - u)^k / k! and (t - u)^k / k!, exact by Gauss's rule."""
    places = np.array([-2.0, -0.3, 0.5, 1.25, 3.0])
    nodes, weights = np.polynomial.legendre.leggauss(4)
    for row, first in zip(_integrated(places, order), places, strict=True):
        for found, second in zip(row, places, strict=True):
            s, t = abs(first), abs(second)
            u = min(s, t) * (nodes + 1) / 2
            exact = min(s, t) / 2 * weights @ ((s - u) * (t - u)) ** power / math.factorial(power) ** 2
            assert found == pytest.approx(exact if first * second > 0 else 0.0, rel=1e-12)


def test_bounds_of_means_allow_for_a_trend_where_the_structure_is_wrong(monkeypatch):
    """A number and nine answers have one cause, which the network leaves out; three answers were not measured with it.

    Effects that are independent in every bin, as of states, nearly cancel in a mean: bounds then hold none of six.
    """
    draw = np.random.default_rng(0)
    cause, names = draw.standard_normal(COUNT), [f"y{place}" for place in range(9)]
    records = pd.DataFrame({v: np.where(draw.random(COUNT) < 1 / (1 + np.exp(-0.9 * cause)), "b", "a") for v in names})
    records["x"] = np.floor(50 + 6 * cause + 8 * draw.standard_normal(COUNT)).clip(0, 99)
    schema = dp.Schema({"x": dp.Bins([0, *range(20, 85, 2), 100])} | {v: ["a", "b"] for v in names})
    pairs = [(names[j], names[k]) for j in range(4) for k in range(j + 3, 9)]
    data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(20.0), noise=dp.SimulatedNoise(0))
    network = dp.PrivateBayesianNetwork([])
    network.add_nodes_from(schema.variables)
    network.fit(data.measure([*((v, "x") for v in names[3:]), *pairs, ("x in detail",)], 20.0))

    def held():
        asked = [(v, state) for v in names[:3] for state in "ab"]
        found = pd.concat([network.expectation(["x"], {v: state}) for v, state in asked])
        truth = np.array([records["x"][records[v] == state].mean() for v, state in asked])
        return ((found["lower"] <= truth) & (truth <= found["upper"])).sum()

    assert held() == 6
    monkeypatch.setattr(numbers, "_TREND", 0.0)
    assert held() == 0


@pytest.mark.parametrize("kind", ["network", "mixture"])
def test_whole_numbers_have_whole_quantiles_and_draws_everywhere(kind):
    """A column of 0 and 1 had a median of .009874."""
    generator = np.random.default_rng(0)
    frame = pd.DataFrame({"visits": generator.poisson(3, 4000), "ill": generator.integers(0, 2, 4000)})
    schema = dp.Schema({"visits": dp.Bins([0, 1.5, 3, 6.5, 30], decimals=0), "ill": dp.Bins([0, 0.5, 1], decimals=0)})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0, 1e-6), noise=dp.SimulatedNoise(0))
    if kind == "network":
        model = dp.PrivateBayesianNetwork([("ill", "visits")]).fit(data, dp.AutoMLE(1.0))
    else:
        model = dp.PairwiseMixture(1.0, 1e-6, members=1).fit(data).network_
    quantiles = model.quantiles(np.linspace(0.05, 0.95, 19))
    assert (quantiles % 1 == 0).all(axis=None)
    assert set(quantiles.loc["ill"]) == {0, 1}
    for numbers_as in ("drawn", "midpoint"):
        drawn = model.simulate(1000, seed=1, numbers=numbers_as)
        assert {str(dtype) for dtype in drawn.dtypes} == {"int64"}
        assert set(drawn["ill"]) == {0, 1}
    page = render_report(model.release_, model)
    assert page.count("10 to 90 %: 0 to 1.") == 1
    assert page.count("10 to 90 %: 1 to 5.") == 1
