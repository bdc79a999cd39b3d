"""Residuals: what a record changes, by brute force; noise of tables as claimed; the file; fits."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from archives import require_refused, restate
from noises import Noted

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms import contrasts
from pgmpy_dp.privacy.cost import Approx
from pgmpy_dp.release import coefficients
from pgmpy_dp.release.contrasts import _replacement_bound, residual_sensitivity

SCHEMA = dp.Schema({"a": ["x", "y"], "b": [0, 1, 2], "c": [0, 1, 2, 3], "d": ["only"]})
SCALES = {(): 9.0, ("a",): 4.0, ("b",): 7.0, ("c",): 5.0, ("b", "a"): 3.0, ("b", "c"): 6.0, ("d", "c"): 5.0}
RELATIONS = ("add_remove", "replace_one")
DELTA = 1e-6


def frame(cells):
    made = pd.DataFrame(cells, columns=["a", "b", "c", "d"])
    return made.astype({"a": "str", "b": "int64", "c": "int64", "d": "str"})


def records(count, seed=0):
    generator = np.random.default_rng(seed)
    a = generator.integers(0, 2, count)
    b = a + generator.integers(0, 2, count)
    cells = zip(np.array(["x", "y"])[a], b, b + generator.integers(0, 2, count), ["only"] * count, strict=True)
    return frame(list(cells))


def dataset(source, neighbours="add_remove", noise=None, epsilon=1e9):
    budget = dp.PrivacyBudget(epsilon, 1e-3)
    return dp.PrivateDataset(source, SCHEMA, budget, neighbours=neighbours, noise=noise or dp.SimulatedNoise(1))


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_finer_histograms_are_measured_beside_them(neighbours, tmp_path):
    """The worst change is over all pairs of records of every cell, and every cell of the finer histogram."""
    schema = dp.Schema({"n": dp.Bins([0, 3, 7]), "a": ["x", "y"]})
    fine = schema.details["n in detail"].bins.edges
    cells = [(left + 0.1, a) for left in fine[:-1] for a in "xy"]
    scales = {(): 9.0, ("n",): 4.0, ("a",): 7.0, ("a", "n"): 3.0, ("n in detail",): 5.0}
    seen = []
    for cell in cells:
        noise, frame = Noted(), pd.DataFrame([cell], columns=["n", "a"]).astype({"a": "str"})
        data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1e9, 1e-3), neighbours, noise=noise)
        noisy = data.measure_residuals(scales, delta=DELTA)
        seen.append(np.concatenate([np.array(counts) / scale for _, counts, scale in noise.seen]))
    pairs = itertools.combinations(seen, 2) if neighbours == "replace_one" else ((one, 0.0) for one in seen)
    worst = max(float(((one - other) ** 2).sum()) for one, other in pairs)
    assert worst <= 2 * noisy.guarantee.rho
    if neighbours == "add_remove":
        assert worst >= 2 * noisy.guarantee.rho * (1 - 1e-8)
    assert noisy.cliques == (("a", "n"),)
    np.testing.assert_allclose(noisy.details["n in detail",].round(2), [0.0] * (len(fine) - 2) + [1.0])  # no noise here
    noisy.save(tmp_path / "release.zip")
    back = dp.NoisyResiduals.load(tmp_path / "release.zip")
    assert back == noisy
    assert dict(back.details).keys() == {("n in detail",)}


def test_the_table_of_a_variable_with_one_state_is_stated_as_noisy_as_any():
    noisy = dataset(records(50)).measure_residuals(SCALES, delta=DELTA)
    (whole, *_), (alone, table, deviation) = noisy.tables_of(["d"])
    assert (whole, alone) == ((), ("d",))
    assert table.tolist() == [noisy.total]
    assert deviation == pytest.approx(max(SCALES.values()), rel=1e-6)


def test_scales_are_found_for_a_price():
    data = dataset(records(50))
    noisy = data.release(contrasts.Residuals(SCALES, DELTA, 0.7))
    assert float(data.budget.history[0].epsilon) == noisy.guarantee.epsilon == 0.7
    assert noisy.scales["a",] / noisy.scales["a", "b"] == pytest.approx(4.0 / 3.0)
    minimum = coefficients.residual_epsilon(SCHEMA, noisy.scales, "add_remove", DELTA)
    assert 0.7 * (1 - 1e-4) < minimum <= 0.7


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_sensitivity_by_projection_of_tables(neighbours):
    """Over all pairs of cells and mixed numbers of states: residuals are tables projected on what sums to 0."""
    generator = np.random.default_rng(3)
    for _ in range(20):
        cards = dict(zip("vwxyz", generator.integers(2, 5, 5).tolist(), strict=True))
        sets = [s for size in (0, 1, 2, 3) for s in itertools.combinations("vwxyz", size) if generator.random() < 0.6]
        scales = {s: float(generator.uniform(0.5, 3)) for s in sets if s or neighbours == "add_remove"}
        cells = np.array(list(itertools.product(*(range(n) for n in cards.values()))))
        inner = np.zeros((len(cells), len(cells)))
        for subset, scale in scales.items():
            part = np.ones_like(inner)
            for v in subset:
                codes = cells[:, "vwxyz".index(v)]
                part *= (np.eye(cards[v]) - 1 / cards[v])[np.ix_(codes, codes)]
            inner += part / scale**2
        own = np.diag(inner)
        worst = own.max() if neighbours == "add_remove" else (own[:, None] + own - 2 * inner).max()
        assert residual_sensitivity(scales, cards, neighbours) == pytest.approx(worst, rel=1e-8)
        if neighbours == "replace_one":  # what stands in where that is too much work
            weights = {s: 2 * math.prod(1 - 1 / cards[v] for v in s) / scale**2 for s, scale in scales.items()}
            assert worst <= _replacement_bound(weights, cards) <= 1.5 * worst


def test_a_hundred_variables_that_are_replaced_have_a_bound():
    """All pairs of two states: half of the variables differ in the worst case, set by set all pairs would be worst."""
    pairs = dict.fromkeys(itertools.combinations(range(100), 2), 1.0)
    cut = 50 * 50  # pairs in which one differs change by 4 p = 1, others by nothing
    assert cut <= residual_sensitivity(pairs, dict.fromkeys(range(100), 2), "replace_one") <= 1.03 * cut


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_tables_have_the_stated_noise(neighbours):
    """120 releases of seeded noise: a ratio of variances has a standard deviation of 0.13, and 0.9 is seven of them."""
    source = records(50)
    exact = dp.exact_marginals(source, SCHEMA, [("b", "a"), ("c",), ("c", "b")]).tables
    data = dataset(source, neighbours)
    drawn = [data.measure_residuals(SCALES, delta=DELTA) for _ in range(120)]
    for clique, truth in exact.items():
        errors = np.array([noisy.table(clique) for noisy in drawn]) - truth
        stated = drawn[0].noise(clique)[1]
        np.testing.assert_allclose(errors.var(axis=0) / stated**2, 1.0, atol=0.9)
        assert np.abs(errors.mean(axis=0)).max() < 7 * stated / math.sqrt(120)
        within = (np.abs(errors) <= 1.96 * stated).mean()
        assert within == pytest.approx(0.95, abs=0.06)
    total = 81.0 if neighbours == "add_remove" else 0.0
    assert drawn[0].total_variance == total
    by_hand = total / 36 + (16 * (1 / 2) / 9) + (49 * (2 / 3) / 4) + 9 * (1 / 2) * (2 / 3)
    assert drawn[0].noise(("a", "b"))[1] == pytest.approx(math.sqrt(by_hand))
    assert drawn[0].noise(("a", "b"))[0] == 3.0
    with pytest.raises(dp.SchemaError, match="no measured clique contains"):
        drawn[0].table(("a", "c"))


def test_tables_agree_and_can_be_made_non_negative():
    noisy = dataset(records(20)).measure_residuals(SCALES, delta=DELTA)
    assert noisy.cliques == (("b", "a"), ("b", "c"), ("d", "c"))
    np.testing.assert_allclose(noisy.tables["b", "a"].sum(axis=1), noisy.tables["b", "c"].sum(axis=1))
    np.testing.assert_allclose(noisy.tables["d", "c"][0], noisy.tables["b", "c"].sum(axis=0))
    assert min(table.min() for table in noisy.tables.values()) < 0
    raised = noisy.to_coefficients().non_negative().tables
    assert min(table.min() for table in raised.values()) >= 0
    np.testing.assert_allclose(raised["b", "a"].sum(axis=1), raised["b", "c"].sum(axis=1))


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_a_release_is_charged_as_one_block(neighbours):
    data = dataset(records(50), neighbours)
    noisy = data.measure_residuals(SCALES, delta=DELTA)
    (charge,) = data.budget.history
    assert float(charge.epsilon) == noisy.guarantee.epsilon
    assert float(charge.delta) == noisy.guarantee.delta == DELTA
    assert isinstance(charge.loss, Approx)  # one block, at the rho of its noise
    assert charge.rho == noisy.guarantee.rho
    assert noisy.public_total == (50 if neighbours == "replace_one" else None)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c["subsets"][1].update(scale=1e-3), "costs rho"),
        (lambda c: c["subsets"][1].update(scale=1e4), "do not follow"),
        (lambda c: c["subsets"][1].update(scale="1"), "scale"),
        (lambda c: c["subsets"][1].update(scale=-4.0), "scale"),
        (lambda c: c["subsets"][1].update(parts=1), "parts"),
        (lambda c: c["subsets"][1].update(parts=1024.0), "parts"),
        (lambda c: c["guarantee"].update(rho=1e-3), "something else than its costs"),
        (lambda c: restate(c, rho_of_noise=1e-3), "costs rho"),
        (lambda c: restate(c, rho_of_noise=None), "rho"),
        (lambda c: restate(c, epsilon="1/10"), "does not guarantee"),
        (lambda c: c.update(kind="coefficients"), "properties"),
        (lambda c: c["subsets"].pop(), "subsets"),
        (lambda c: c["cliques"][0].update(shape=[2, 3]), "has shape"),
        (lambda c: c["contrasts"].update({"2": [[-1, 1]]}), "contrasts"),
    ],
)
def test_altered_files_are_refused(tmp_path, change, message):
    noisy = dataset(records(50)).measure_residuals(SCALES, delta=DELTA)
    require_refused(tmp_path / "release.zip", noisy, message, change=change)


@pytest.mark.parametrize(("delta", "message"), [(0.0, "delta"), (0.1, "more than the budget's")])
def test_bad_deltas_are_refused_before_the_charge(delta, message):
    data = dataset(records(5))
    with pytest.raises(ValueError, match=message):
        data.measure_residuals({(): 1.0, ("a",): 1.0}, delta=delta)

    assert data.budget.history == ()


def test_large_contrasts_are_counted_in_fewer_parts():
    schema = dp.Schema({"v": list(range(199)), "w": list(range(1999)), "x": [0, 1]})
    parts = {s: coefficients.coefficient_parts(schema, s) for s in [(), ("x",), ("v",), ("v", "w")]}
    assert parts["x",] == parts[()] == 1024
    for subset in [("v",), ("v", "w")]:
        largest = math.prod(int(abs(coefficients.contrasts(schema.cardinality(v)).values).max()) for v in subset)
        assert 1 <= parts[subset] * largest <= 2**22 < 2 * 1024 * parts[subset] * largest


@pytest.mark.parametrize("network", [dp.PrivateBayesianNetwork, dp.PrivateMarkovNetwork])
def test_fits_recover_the_tables(network):
    source = records(2000)
    fine = dict.fromkeys(SCALES, 0.05)
    noisy = dataset(source).measure_residuals(fine, delta=DELTA)
    fitted = network([("a", "b"), ("b", "c")]).fit(noisy, estimator=dp.CollectiveEM())
    truth = dp.exact_marginals(source, SCHEMA, [("b", "c")]).tables["b", "c"]
    found = fitted.query(["b", "c"])
    values = found.values if found.variables == ["b", "c"] else found.values.T
    np.testing.assert_allclose(2000 * values, truth, atol=1.0)
    assert fitted.guarantee_ == noisy.guarantee
    assert fitted.check_fit() is not None


def test_the_posterior_is_updated_by_them():
    noisy = dataset(records(2000)).measure_residuals(dict.fromkeys(SCALES, 0.05), delta=DELTA)
    estimator = dp.papers.PrivateBayesianEstimator(equivalent_sample_size=1e-3)
    fitted = dp.PrivateBayesianNetwork([("a", "b"), ("b", "c")]).fit(noisy, estimator=estimator)
    truth = dp.exact_marginals(records(2000), SCHEMA, [("a",)]).tables["a",]
    np.testing.assert_allclose(2000 * fitted.query(["a"]).values, truth, atol=2.0)


def test_what_needs_independent_noise_says_what_to_do():
    noisy = dataset(records(50)).measure_residuals(SCALES, delta=DELTA)
    with pytest.raises(ValueError, match="CollectiveEM"):
        dp.PrivateBayesianNetwork([("a", "b")]).fit(noisy, estimator=dp.PrivateMLE())


def test_a_score_of_families_reads_residuals_as_it_reads_tables():
    noisy = dataset(records(5000)).measure_residuals(SCALES, delta=DELTA)
    tables = dataset(records(5000)).measure([("a", "b"), ("b", "c")], 1.0, delta=DELTA, mechanism="gaussian")
    for release in (noisy, tables):
        score = dp.NoisyScore(release)
        assert score.local_score("b", ("a",)) > score.local_score("b", ()) + 100


@pytest.mark.parametrize("scale", [1e-4, 1e16])
def test_noise_that_whole_numbers_cannot_carry_has_no_price(scale):
    schema = dp.Schema({"a": [0, 1], "b": [0, 1, 2]})
    with pytest.raises(ValueError, match="too small or too large for 64-bit integers"):
        coefficients.residual_epsilon(schema, {("a", "b"): scale}, "add_remove", 1e-6)


def test_every_scale_is_within_its_bounds():
    noisy = dataset(records(50)).measure_residuals(SCALES, delta=DELTA)
    for scale in (2.0**-51, 2.0**51):
        with pytest.raises(ValueError, match=r"from 2\*\*-50 to 2\*\*50"):
            replace(noisy, scales={**noisy.scales, ("a",): scale})


@pytest.mark.parametrize("neighbours", RELATIONS)
def test_a_variable_of_one_state_that_was_not_measured_has_no_marginal(neighbours):
    schema = dp.Schema({"a": [0, 1], "constant": ["x"]})
    frame = pd.DataFrame({"a": [0, 1, 1], "constant": "x"})
    scales = {("a",): 2.0} | ({(): 2.0} if neighbours == "add_remove" else {})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(9, DELTA), neighbours=neighbours)
    noisy = data.measure_residuals(scales, delta=DELTA)
    assert noisy.marginal(("a",))[0].shape == (2,)
    for clique in (("constant",), ("a", "constant"), ("a", "unknown")):
        with pytest.raises(ValueError, match="The release has no table that holds"):
            noisy.marginal(clique)


def test_joined_residuals_state_the_noise_of_rounding_to_parts_of_a_record():
    """Coefficients are rounded to whole parts, and contrasts of two states have length 2**0.5."""
    schema = dp.Schema({"a": [0, 1], "b": [0, 1]})
    frame = pd.DataFrame({"a": [0, 1, 1], "b": [0, 1, 0]})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(9, 2 * DELTA))
    scales = {(): 2.0, ("a",): 3.0, ("b",): 3.0, ("a", "b"): 4.0}
    one, other = (data.measure_residuals(scales, delta=DELTA) for _ in range(2))
    for subset, scale in (one + other).scales.items():
        length = 2.0 ** (len(subset) / 2)
        rounding = 1 / (12 * (one.parts(subset) * length) ** 2)
        assert scale**2 == pytest.approx(scales[subset] ** 2 / 2 + rounding, rel=1e-12)
