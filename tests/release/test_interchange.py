"""Releases go to mbi and come back, from OpenDP's contingency tables too."""

import sys
from types import SimpleNamespace

import numpy as np
import pytest

import pgmpy_dp as dp
from pgmpy_dp.exports import from_contingency_table, from_mbi, to_mbi
from pgmpy_dp.privacy.noise import laplace_variance

SCHEMA = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no", "unclear"]})
COUNTS = {("smoke", "lung"): [[40, 200, 3], [10, 700, 5]], ("lung",): [50, 900, 8]}
GAUSSIAN = dp.Guarantee.of(1.0, 1e-6, 0.02, "add_remove", "gaussian", True)


def measured(clique=("smoke",), values=(31.2, 67.9), stddev=5.0):
    return SimpleNamespace(noisy_measurement=np.array(values), clique=clique, stddev=stddev)


@pytest.mark.parametrize("options", [{}, {"mechanism": "gaussian", "delta": 1e-6}], ids=["laplace", "gaussian"])
def test_a_release_comes_back_from_mbi(options):
    data = dp.PrivateDataset({("smoke", "lung"): COUNTS["smoke", "lung"]}, SCHEMA, dp.PrivacyBudget(1.0, 1e-6))
    noisy = data.measure([("smoke", "lung"), ("lung",)], epsilon=0.5, weights=[3, 1], **options)
    tables = [
        SimpleNamespace(noisy_measurement=table.ravel() * 1.0, clique=clique, stddev=noisy.variances[clique] ** 0.5)
        for clique, table in noisy.tables.items()
    ]
    assert from_mbi(tables, SCHEMA, noisy.guarantee).tables.keys() == noisy.tables.keys()
    back = from_mbi(tables, SCHEMA, noisy.guarantee)
    for clique, table in noisy.tables.items():
        np.testing.assert_array_equal(back.tables[clique], table)
        assert back.scales[clique] == pytest.approx(noisy.scales[clique], rel=1e-6)


@pytest.mark.parametrize("real", [True, False])
def test_the_real_mbi_takes_them(real, monkeypatch):
    """And what stands in for it where it is not installed."""
    if real:
        pytest.importorskip("mbi")
    else:
        mbi = SimpleNamespace(LinearMeasurement=lambda values, clique, stddev: measured(clique, values, stddev))
        monkeypatch.setitem(sys.modules, "mbi", mbi)
    data = dp.PrivateDataset({("smoke", "lung"): COUNTS["smoke", "lung"]}, SCHEMA, dp.PrivacyBudget(1.0))
    noisy = data.measure([("smoke", "lung")], epsilon=0.5)
    (one,) = handed = to_mbi(noisy)
    assert one.clique == ("smoke", "lung")
    for back in (from_mbi([one], SCHEMA, noisy.guarantee), from_mbi(handed, SCHEMA)):
        assert back.tables[one.clique].tolist() == noisy.tables[one.clique].tolist()
        assert back.guarantee == noisy.guarantee
    with pytest.raises(ValueError, match="do not state their guarantee"):
        from_mbi([one], SCHEMA)


def test_tables_that_share_noise_are_not_handed_to_mbi():
    data = dp.PrivateDataset({("smoke", "lung"): COUNTS["smoke", "lung"]}, SCHEMA, dp.PrivacyBudget(1.0))
    with pytest.raises(ValueError, match="share noise, which mbi takes for independent"):
        to_mbi(data.measure_coefficients([("smoke", "lung")], epsilon=0.5))


def test_a_contingency_table_of_opendp():
    table = SimpleNamespace(
        keys={"smoke": ["yes", None], "age": [1, 2, 3]},
        marginals=SimpleNamespace(
            flatten=lambda: [measured((), [100.0]), measured(), measured(("smoke", "age"), [1, 2, 3, 4, 5, 6], 50.0)]
        ),
    )
    promised = dp.Guarantee.of(1.25, 1e-6, 0.03, "add_remove", "gaussian", True)
    found = from_contingency_table(table, promised)
    assert found.schema.states == {"smoke": ("yes", "missing"), "age": (1, 2, 3)}
    assert found.tables["smoke", "age"].tolist() == [[1, 2, 3], [4, 5, 6]]
    network = dp.PrivateMarkovNetwork([("smoke", "age")]).fit(found)
    assert network.guarantee_ == promised


def test_several_measurements_of_a_clique_are_weighed_together():
    promised = dp.Guarantee.of(1.5, 1e-6, 0.05, "add_remove", "gaussian", True)
    found = from_mbi([measured(values=[30, 60], stddev=5.0), measured(values=[40, 70], stddev=5.0)], SCHEMA, promised)
    assert found.tables["smoke",].tolist() == [35, 65]
    assert found.scales["smoke",] == pytest.approx(5.0 / 2**0.5)
    laplace = dp.Guarantee.of(1.0, 0.0, None, "add_remove", "laplace", True)
    with pytest.raises(dp.SchemaError, match="measured twice"):
        from_mbi([measured(), measured()], SCHEMA, laplace)


@pytest.mark.parametrize("scale", [0.05, 0.1, 1.0, 20.0, 2.0**40])
def test_the_scale_of_laplace_noise_follows_from_its_deviation(scale):
    promised = dp.Guarantee.of(1.0 / scale, 0.0, None, "add_remove", "laplace", True)
    found = from_mbi([measured(stddev=laplace_variance(scale) ** 0.5)], SCHEMA, promised)
    assert found.scales["smoke",] == pytest.approx(scale, rel=1e-12)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "no measurements"),
        ([measured(values=[1.0])], "2 finite counts"),
        ([measured(values=[1.0, np.nan])], "2 finite counts"),
        ([measured(("smok",))], "did you mean 'smoke'"),
        ([measured(stddev=0.1)], "more than the guarantee"),
        ([measured(stddev=0.0), measured(stddev=0.0)], "stddev of .* greater than 0"),
        ([measured(stddev=np.inf), measured(stddev=np.inf)], "stddev of .* greater than 0"),
        ([SimpleNamespace(**vars(measured()), query=np.cumsum)], "queries of other kinds"),
    ],
)
def test_what_is_no_release_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        from_mbi(given, SCHEMA, GAUSSIAN)
    with pytest.raises(ValueError, match="exact counts"):
        to_mbi(dp.exact_marginals({("lung",): COUNTS["lung",]}, SCHEMA, [("lung",)]))
