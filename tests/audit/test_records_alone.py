"""What a record contributes to a sum is its own to the last bit, whatever records come with it.

The sensitivity of a sum of integers rests on it: a last digit that changes with the number of records, as in products
by BLAS, may take another record's contribution across a step of the grid.
"""

import numpy as np
import pandas as pd
import pytest
from noises import Noted
from pgmpy.models import DiscreteBayesianNetwork
from scipy import sparse

import pgmpy_dp as dp
from pgmpy_dp.data.mechanisms.integer_sums import Moments, checked_vectors, integer_rows
from pgmpy_dp.data.mechanisms.sums import NoisySums

RECORDS = 300
STEPS = {"epsilon": 1.0, "delta": 1e-2, "steps": 5, "sampling_rate": 1.0}


def vb():
    names = [f"v{i}" for i in range(6)]
    network = DiscreteBayesianNetwork([(latent, name) for latent in "yz" for name in names], latents={"y", "z"})
    states = dp.Schema({**{name: [0, 1] for name in names}, "y": [0, 1, 2], "z": [0, 1]})
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 2, (RECORDS, 6)), columns=names)
    network.fit(frame, estimator=dp.PrivateVB(state_names=states, **STEPS))


def lda():
    dp.PrivateLDA(4, document_length=30, **STEPS).fit(np.random.default_rng(0).poisson(0.7, (RECORDS, 25)))


def logistic_regression():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(RECORDS, 19)), rng.integers(0, 4, RECORDS)
    dp.PrivateLogisticRegression(bounds=(-2.0, 2.0), classes=range(4), **STEPS).fit(X, y)


def linear_regression():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(RECORDS, 9)), rng.normal(size=RECORDS)
    dp.papers.PrivateLinearRegression(bounds=(-2.0, 2.0), target_bounds=(-2.0, 2.0), **STEPS).fit(X, y)


def sigmoid_belief_network():
    dp.papers.PrivateSigmoidBeliefNetwork(5, **STEPS).fit(np.random.default_rng(0).integers(0, 2, (RECORDS, 12)))


def by_product():
    """Planted: a statistic by BLAS."""
    frame = pd.DataFrame(np.random.default_rng(0).integers(0, 3, (RECORDS, 30)), columns=[f"v{i}" for i in range(30)])
    schema = dp.Schema({name: [0, 1, 2] for name in frame.columns})
    weights = np.random.default_rng(1).normal(size=(30, 30))
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0, 1e-2))
    data.plan(1, epsilon=1.0, delta=1e-2, sampling_rate=1.0).noisy_sum(lambda codes: codes @ weights, 1.0)


def bits(contributed):
    parts = vars(contributed).values() if hasattr(contributed, "means") else [contributed]
    return [np.asarray(part.toarray() if sparse.issparse(part) else part) for part in parts if part is not None]


@pytest.fixture
def differing(monkeypatch):
    """How many records contributed otherwise than alone or in other company, one number for each sum."""
    found = []

    def watched(original):
        def take(plan, statistic, *others, **options):
            rows = plan._rows
            together, changed = bits(statistic(rows)), set()
            for size, start in [(1, 0), (1, 17), (2, 5), (3, 100), (7, 1), (64, 50), (rows.shape[0] - 1, 1)]:
                for whole, part in zip(together, bits(statistic(rows[start : start + size])), strict=True):
                    same = (whole[start : start + size] == part).all(axis=1)
                    changed.update((start + np.flatnonzero(~same)).tolist())
            found.append(len(changed))
            return original(plan, statistic, *others, **options)

        return take

    for name in ("noisy_sum", "noisy_moments"):
        monkeypatch.setattr(NoisySums, name, watched(getattr(NoisySums, name)))
    return found


@pytest.mark.parametrize("fit", [vb, lda, logistic_regression, linear_regression, sigmoid_belief_network])
def test_a_contribution_depends_on_no_other_record(fit, differing):
    fit()
    assert differing == [0] * STEPS["steps"]


def test_products_by_blas_would_be_noticed(differing):
    by_product()
    assert differing[0] > 0


ODD = {  # values that add up to something else in another order
    "by columns": lambda rng, rows: np.asfortranarray(
        10.0 ** rng.uniform(-17, 17, (rows, 300)) * rng.choice([-1, 1], (rows, 300))
    ),
    "repeated entries": lambda rng, rows: repeated(rng, rows),
    "repeated entries by coordinates": lambda rng, rows: repeated(rng, rows).tocoo(),
}


def repeated(rng, rows):
    """Rows of 20 entries in 5 columns, in any order, some of them large and of either sign."""
    values = rng.choice([1e16, 1.0, -1e16, 3.0], rows * 20)
    ends = np.arange(0, rows * 20 + 1, 20)
    return sparse.csr_array((values, rng.integers(0, 5, rows * 20), ends), shape=(rows, 5))


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64])
def test_what_is_made_of_a_statistic_depends_on_no_other_record(kind, size):
    made = ODD[kind](np.random.default_rng(0), 300)

    def steps(vectors):
        checked, _ = checked_vectors(vectors, vectors.shape[0], None)
        taken = integer_rows(checked, 1.0, 2**40)
        return taken.toarray() if sparse.issparse(taken) else taken

    together = steps(made)
    assert np.count_nonzero(together.any(axis=1)) > 100
    for start in range(0, 300 - size, 7):
        # As a statistic makes them of fewer records, in its own layout.
        if isinstance(made, np.ndarray):
            alone = np.array(made[start : start + size], order="F")
        else:
            part = repeated(np.random.default_rng(0), 300)[start : start + size]
            alone = part.asformat(made.format)
        assert (steps(alone) == together[start : start + size]).all()


@pytest.mark.parametrize("value", [1e308, np.inf, -np.inf, np.nan, np.longdouble("1e4000")])
@pytest.mark.parametrize("form", ["dense", "csr", "coo", "moments"])
@pytest.mark.filterwarnings("error")
def test_no_warning_tells_of_a_record(form, value):
    rows = np.array([[1.0, 0.0], [value, value]])
    if form == "moments":
        assert Moments(rows, None, rows, rows).checked(2).means.dtype == np.float64
        return
    if form != "dense":
        if rows.dtype == np.longdouble:
            pytest.skip("scipy has no such matrices")
        twice = (np.concatenate([rows[1], rows[1]]), ([0, 0, 1, 1], [0, 0, 1, 0]))
        rows = sparse.coo_array(twice, shape=(2, 2))
        rows = rows if form == "coo" else sparse.csr_array((twice[0], [0, 0, 1, 0], [0, 2, 4]), shape=(2, 2))
    checked, _ = checked_vectors(rows, 2, 2)
    integer_rows(checked, 1.0, 2**20)


@pytest.mark.parametrize("layout", ["C", "F"])
def test_moments_are_taken_by_rows(layout):
    parts = [np.array(np.random.default_rng(0).normal(size=(50, 9)), order=layout) for _ in range(4)]
    assert all(part.flags.c_contiguous for part in vars(Moments(*parts).checked(50)).values())


def test_records_weigh_in_noisy_tables_what_they_weigh_alone():
    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(40)]
    frame = pd.DataFrame(rng.integers(0, 2, (9, 40)), columns=names)
    schema, noise = dp.Schema({name: [0, 1] for name in names}), Noted()
    cliques = [*((i,) for i in range(40)), ()]  # the last has one cell: all records' weights, as its centre is 0
    centre = np.append(rng.integers(-(2**20), 2**20, 80) / 2.0**20, 0.0)

    def weight(rows):
        data = dp.PrivateDataset(frame.iloc[rows], schema, dp.PrivacyBudget(1.0, 1e-2), noise=noise)
        plan = data.plan(1, epsilon=1.0, delta=1e-2, sampling_rate=1.0)
        plan.noisy_tables(cliques, [2] * 40, 3.0, centre)
        return noise.seen[-1][1][-1]

    alone = [weight([row]) for row in range(9)]
    assert weight(range(9)) == sum(alone)
    assert [weight([0, row]) - alone[0] for row in range(1, 9)] == alone[1:]
