"""Fourier releases: agreement, non-negativity, the noise, the file."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from archives import require_refused

import pgmpy_dp as dp
from pgmpy_dp import papers
from pgmpy_dp.data.mechanisms.contrasts import FourierCoefficients
from pgmpy_dp.observed.factors import families
from pgmpy_dp.observed.reading import observe
from pgmpy_dp.release import contrasts
from pgmpy_dp.release.contrasts import downward_closure, fourier_sensitivity, noise_scales

SCHEMA = dp.Schema({"a": ["x", "y"], "b": [0, 1, 2], "c": [0, 1, 2, 3], "d": ["only"]})
CLIQUES = [("b", "a"), ("c", "b"), ("d", "c")]


def records(count, seed=0):
    generator = np.random.default_rng(seed)
    frame = {v: np.array(SCHEMA.states[v])[generator.integers(0, SCHEMA.cardinality(v), count)] for v in "abcd"}
    return pd.DataFrame(frame)


def dataset(count=300, epsilon=100.0, neighbours="add_remove", noise=None):
    noise = noise or dp.SimulatedNoise(1)
    return dp.PrivateDataset(records(count), SCHEMA, dp.PrivacyBudget(epsilon), neighbours=neighbours, noise=noise)


def require_agreement(tables, atol=1e-9):
    for (one, left), (other, right) in combinations(tables.items(), 2):
        common = [v for v in one if v in other]
        sums = []
        for clique, table in ((one, left), (other, right)):
            summed = table.sum(axis=tuple(i for i, v in enumerate(clique) if v not in common))
            kept = [v for v in clique if v in common]
            sums.append(summed.transpose([kept.index(v) for v in common]))
        np.testing.assert_allclose(sums[0], sums[1], atol=atol)


def test_without_noise_the_tables_are_the_counts():
    data = dataset(epsilon=1e5)
    exact = dp.exact_marginals(records(300), SCHEMA, CLIQUES)
    for noisy in (data.measure_coefficients(CLIQUES, 1e4), exact):
        for clique, table in noisy.to_coefficients().tables.items():
            np.testing.assert_allclose(table, exact.tables[clique], atol=0.05)
    np.testing.assert_allclose(exact.to_coefficients().table(("c",)), exact.tables["c", "b"].sum(axis=1))


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mechanism", [FourierCoefficients, papers.PrintedCoefficients])
def test_released_marginals_agree_and_are_non_negative(neighbours, mechanism):
    noisy = dataset(40, neighbours=neighbours).release(mechanism(CLIQUES, 0.5))
    require_agreement(noisy.tables)
    assert min(table.min() for table in noisy.tables.values()) < 0
    raised = noisy.to_coefficients().non_negative()
    require_agreement(raised.tables)
    smallest = [table.min() for table in raised.tables.values()]
    assert min(smallest) == pytest.approx(0.0, abs=1e-6)  # no more than needed
    assert min(smallest) >= 0
    paper = noisy.to_coefficients().non_negative(papers.printed_increment(noisy))
    assert paper.values[()] - noisy.to_coefficients().values[()] == pytest.approx(papers.printed_increment(noisy))
    require_agreement(paper.tables, atol=1e-6)


def test_on_alarm_families(bnlearn, simulate):
    network, frame = bnlearn("alarm"), simulate("alarm", 500, 1)
    schema = dp.Schema.from_model(network)
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(10.0))
    noisy = data.measure_coefficients(families(network), 1.0)
    require_agreement(noisy.to_coefficients().non_negative().tables)
    assert noisy.scale == pytest.approx(484.5059, abs=1e-3)  # ADD sensitivity of the least contrasts


def test_the_papers_increment_is_the_printed_one():
    """Corollary 3 with b = 2 |N_I| / epsilon: 4 t |N_I|^2 / epsilon, t = log(|N_I| / p) / 2; 13477 by D.5."""
    schema = dp.Schema({v: [0, 1] for v in ["y", *map(str, range(16))]})
    frame = pd.DataFrame({v: [0, 1] * 25 for v in schema.variables})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0))
    cliques = [("y",), *((str(i), "y") for i in range(16))]
    noisy = data.release(papers.PrintedCoefficients(cliques, 1.0))
    assert noisy.scale == pytest.approx(68.0)
    assert papers.printed_increment(noisy, 0.1) == pytest.approx(4 * math.log(340) / 2 * 34**2)
    assert papers.printed_increment(noisy, 0.1) == pytest.approx(13477, abs=1)
    assert noisy.guarantee.epsilon == pytest.approx(0.5)  # adding a record moves each coefficient by 1 only
    assert data.budget.spent.epsilon == noisy.guarantee.epsilon


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mechanism", [FourierCoefficients, papers.PrintedCoefficients])
def test_charge_and_guarantee_are_what_the_noise_costs(neighbours, mechanism):
    data = dataset(epsilon=1.0, neighbours=neighbours)
    noisy = data.release(mechanism(CLIQUES, 0.75))
    (charge,) = data.budget.history
    loss = fourier_sensitivity(SCHEMA, downward_closure(SCHEMA, CLIQUES), neighbours) / noisy.scale
    assert loss <= float(charge.epsilon) <= 0.75
    assert charge.epsilon == Fraction(str(noisy.guarantee.epsilon))
    assert float(charge.epsilon) == pytest.approx(loss, rel=1e-8)
    assert (float(charge.epsilon) == 0.75) == (mechanism is FourierCoefficients)
    assert (() in noisy.values) == (neighbours == "add_remove")
    assert noisy.public_total == (None if neighbours == "add_remove" else 300)


def test_noise_has_the_stated_variance():
    """1,000 releases; a ratio has a standard deviation of 0.07 (kurtosis 6), and 0.5 is seven of them."""
    data = dataset(epsilon=1e6)
    drawn = [data.measure_coefficients([("c", "b"), ("b", "a")], 1.0) for _ in range(1000)]
    for subset, stated in drawn[0].noise_variances.items():
        values = np.array([noisy.values[subset] for noisy in drawn])
        np.testing.assert_allclose(values.var(axis=0) / stated, 1.0, atol=0.5)
    for clique in [("c", "b"), ("b",)]:
        cells = np.array([noisy.table(clique) for noisy in drawn]).var(axis=0)
        assert cells.mean() == pytest.approx(drawn[0].variance(clique), rel=0.3)
        assert drawn[0].variance(clique) == pytest.approx(2 * drawn[0].scale ** 2 / SCHEMA.cells(clique), rel=0.01)
    assert drawn[0].total_variance == pytest.approx(2 * drawn[0].scale ** 2, rel=0.01)


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
def test_coefficients_and_a_private_number_of_records_are_observed_as_sums_of_cells(neighbours):
    """The exact counts are within eight deviations of what was observed, each row in the table that it belongs to."""
    noisy = dataset(neighbours=neighbours).measure_coefficients(CLIQUES, 40.0)
    seen = observe(noisy, SCHEMA.variables)
    exact = dp.exact_marginals(records(300), SCHEMA, seen.cliques).tables
    errors = seen.expected(np.concatenate([exact[clique].ravel() for clique in seen.cliques])) - seen.noise.observed
    assert (np.abs(errors) <= 8 * np.sqrt(seen.noise.variance)).all()
    tables = np.repeat(np.arange(len(seen.cliques)), [SCHEMA.cells(clique) for clique in seen.cliques])
    for row, owner in zip(seen.matrix.toarray(), seen.owners, strict=True):
        if owner >= 0:
            assert set(tables[row != 0]) == {owner}
    alone = seen.owners == -1
    if neighbours == "replace_one":
        assert not alone.any()
    else:
        assert (seen.noise.observed[alone], seen.noise.variance[alone]) == (noisy.total, noisy.total_variance)


def test_tables_are_reconciled_by_least_squares():
    """`to_coefficients` of independent tables against the generalised least-squares solution."""
    cliques = [("a", "b"), ("b", "c"), ("b",)]
    noisy = dataset(50).measure(cliques, 1.0, weights=[1.0, 2.0, 3.0])
    agreed = noisy.to_coefficients().tables
    require_agreement(agreed)
    full = np.arange(2 * 3 * 4).reshape(2, 3, 4)
    rows, values, deviation = [], [], []
    for clique in cliques:
        axes = tuple("abc".index(v) for v in clique)
        for cell in np.ndindex(*SCHEMA.shape(clique)):
            index = [slice(None)] * 3
            for axis, state in zip(axes, cell, strict=True):
                index[axis] = state
            row = np.zeros(24)
            row[full[tuple(index)].ravel()] = 1
            rows.append(row)
            values.append(noisy.tables[clique][cell])
            deviation.append(math.sqrt(noisy.variances[clique]))
    weight = 1 / np.array(deviation)
    best, *_ = np.linalg.lstsq(np.array(rows) * weight[:, None], np.array(values) * weight)
    expected = np.array(rows) @ best
    np.testing.assert_allclose(np.concatenate([agreed[c].ravel() for c in cliques]), expected, atol=1e-8)


def test_a_file_without_numbers_is_read(tmp_path):
    """A variable with one state has no coefficients but the number of records, which is public here."""
    data = dp.PrivateDataset({("a",): [5]}, dp.Schema({"a": ["x"]}), dp.PrivacyBudget(1.0), "replace_one")
    noisy = data.measure_coefficients([("a",)], 0.5)
    noisy.save(tmp_path / "release.zip")
    assert dp.papers.NoisyCoefficients.load(tmp_path / "release.zip") == noisy
    assert noisy.values == {}
    assert noisy.tables["a",].tolist() == [5.0]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(scale=1.0), "costs epsilon"),
        (lambda c: c.update(scale=1e4), "do not follow"),
        (lambda c: c.update(scale="1"), "scale"),
        (lambda c: c.update(kind="tables"), "properties"),
        (lambda c: c.update(kind="samples"), "kind"),
        (lambda c: c["contrasts"].update({"2": [[-1, 1]]}), "contrasts"),
        (lambda c: c["subsets"].pop(), "subsets"),
        (lambda c: c["subsets"][1].update(shape=[2]), "shape"),
        (lambda c: c["cliques"].pop(), "contrasts"),
    ],
)
def test_altered_files_are_refused(tmp_path, change, message):
    noisy = dataset().measure_coefficients(CLIQUES, 0.3)
    require_refused(tmp_path / "release.zip", noisy, message, change=change)


def test_bad_input_is_refused_before_the_charge(monkeypatch):
    data = dataset(epsilon=1.0)
    for epsilon in (0, -1.0, math.nan, math.inf, True, "1", 1e-18):
        with pytest.raises(ValueError, match="epsilon"):
            data.measure_coefficients(CLIQUES, epsilon)
    with pytest.raises(ValueError, match="outside the range of 64-bit"):
        data.measure_coefficients(CLIQUES, 1e-14)
    with pytest.raises(dp.SchemaError, match="Unknown variable"):
        data.measure_coefficients([("a", "e")], 0.5)
    monkeypatch.setattr(contrasts, "MAX_COEFFICIENTS", 17)
    with pytest.raises(dp.SchemaError, match="the 7 subsets of the cliques have 18 coefficients"):
        data.measure_coefficients([("b", "c"), ("a", "b"), ("a", "c")], 0.5)
    with pytest.raises(dp.SchemaError, match=r"alone has 24 coefficients"):
        data.measure_coefficients([("a", "b", "c")], 0.5)
    assert data.budget.history == ()
    monkeypatch.setattr(contrasts, "MAX_COEFFICIENTS", 24)
    assert data.measure_coefficients([("a", "b", "c")], 0.5).cliques == (("a", "b", "c"),)


def test_a_clique_that_was_not_measured_is_named():
    noisy = dataset().measure_coefficients(CLIQUES, 1.0)
    with pytest.raises(dp.SchemaError, match=r"no measured clique contains \('a', 'c'\)"):
        noisy.table(("a", "c"))


def test_a_release_has_the_values_of_every_subset_and_no_other():
    noisy = dataset().measure_coefficients(CLIQUES, 1.0)
    fewer = {subset: array for subset, array in noisy.values.items() if subset != ("b", "c")}
    for values in (fewer, {**noisy.values, ("a", "c"): np.zeros((1, 3), dtype=np.int64)}):
        with pytest.raises(ValueError, match="every subset of the cliques, and no other"):
            replace(noisy, values=values)


def test_scales_follow_the_weights():
    noisy = dataset().measure_coefficients(CLIQUES, 1.0)
    assert noise_scales(SCHEMA, ("a",), noisy.scale) == pytest.approx(noisy.scale)
    np.testing.assert_allclose(noise_scales(SCHEMA, ("b",), 1.0), np.sqrt([6 / 3, 2 / 3]))
