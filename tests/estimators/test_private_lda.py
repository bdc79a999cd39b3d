"""Private topic model: recovery, the ledger, the paper's epsilon, interruptions, refusals."""

import math

import numpy as np
import pytest
from scipy import sparse

import pgmpy_dp as dp
from pgmpy_dp import papers
from pgmpy_dp.privacy import price

WORDS = [f"word{number}" for number in range(12)]
# Three topics of four words of their own, and a little of the rest.
BETA = np.kron(np.eye(3), np.array([0.45, 0.3, 0.15, 0.06])) + 0.04 / 12


def documents(count, seed, length=40):
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.full(3, 0.2), count)
    return rng.multinomial(length, shares @ BETA), shares


def private(counts, neighbours="add_remove", noise=None, budget=(1.0, 1e-6), length=40):
    noise = dp.SimulatedNoise(1) if noise is None else noise
    return dp.PrivateDocuments(sparse.csr_array(counts), WORDS, dp.PrivacyBudget(*budget), length, neighbours, noise)


def best_match(components):
    """Order of the topics that fits best."""
    found = components / components.sum(axis=1, keepdims=True)
    return [int(np.abs(found - topic).sum(axis=1).argmin()) for topic in BETA], found


def test_topics_are_recovered():
    """At epsilon 1; the perplexity is near that of the true topics, and far from that of one topic."""
    train, test = documents(5000, 1)[0], documents(500, 2)
    lda = dp.PrivateLDA(3, 1.0, 1e-6, steps=20, sampling_rate=0.3).fit(private(train))
    order, found = best_match(lda.components_)
    assert sorted(order) == [0, 1, 2]
    assert np.abs(found[order] - BETA).sum(axis=1).max() < 0.15
    # Of all documents, not of a sample; each is clipped to a fifth of its words.
    assert lda.components_.sum() == pytest.approx(train.sum() / 5, rel=0.05)
    counts, shares = test
    assert np.abs(lda.transform(counts)[:, order] - shares).mean() < 0.1
    rate = counts.sum(axis=0) / counts.sum()
    alone = math.exp(-float(rate @ np.log(rate)))
    truth = math.exp(-float((counts * np.log(shares @ BETA)).sum()) / counts.sum())
    assert truth < lda.perplexity(counts) < truth + 0.2 * (alone - truth)
    assert list(lda.feature_names_in_) == WORDS
    assert list(lda.get_feature_names_out()) == ["privatelda0", "privatelda1", "privatelda2"]


def test_the_whole_bound_counts_the_topics_as_well():
    train = documents(500, 1)[0]
    lda = dp.PrivateLDA(3, 1.0, 1e-6, steps=5, sampling_rate=1.0).fit(private(train))
    given, whole, spread = (lda.perplexity(train, total) for total in (None, 500, 5_000_000))
    assert given < spread < whole
    assert given == pytest.approx(spread, rel=1e-3)


def test_the_paper_s_epsilon_and_what_holds():
    """Samples of a twentieth, 20 steps, noise of 1.24 document norms, delta = 1e-4: printed as 2.38, really 4.23."""
    data = private(documents(100, 1)[0], "replace_one", budget=(10.0, 1e-4))
    lda = dp.PrivateLDA(3, None, 1e-4, batch_size=5, noise_multiplier=1.24 / math.sqrt(2.0), random_state=3).fit(data)
    printed = papers.printed_epsilon(lda.guarantee_, lda.noise_multiplier_, steps=20, sampling_rate=0.05)
    assert printed == pytest.approx(2.382594, rel=1e-3)  # a part in 1024 of delta is the grid's
    plan = {"steps": 20, "sampling_rate": 0.05, "sampling": "without_replacement"}
    real = papers.price(lda.noise_multiplier_, 1e-4, **plan, accounting="moments")
    assert real == pytest.approx(4.231543, rel=1e-3)
    assert lda.guarantee_.epsilon == pytest.approx(price(lda.noise_multiplier_, 1e-4, **plan))
    assert 2.382594 < lda.guarantee_.epsilon < 4.231543  # the same noise by a sharper conversion
    assert data.budget.spent.epsilon == pytest.approx(lda.guarantee_.epsilon)
    other = dp.PrivateLDA(3, 1.0, 1e-6, steps=5, sampling_rate=1.0).fit(documents(20, 1)[0])
    assert papers.printed_epsilon(other.guarantee_, other.noise_multiplier_, steps=5, sampling_rate=1.0) is None


def test_other_bad_input():
    counts = documents(20, 1)[0]
    data = private(counts)
    with pytest.raises(ValueError, match="Fitting documents costs privacy"):
        dp.PrivateLDA(3, None, 1e-6, noise_multiplier=1.0).fit(counts)
    lda = dp.PrivateLDA(3, 1.0, 1e-6, steps=5, sampling_rate=1.0).fit(counts)
    for use in (lda.transform, lda.perplexity):
        with pytest.raises(TypeError, match="public documents"):
            use(data)
        with pytest.raises(dp.SchemaError, match="12 words"):
            use(counts[:, :5])
        with pytest.raises(dp.SchemaError, match="not negative"):
            use(-counts)
    with pytest.raises(ValueError, match="None of these documents"):
        lda.perplexity(np.zeros((3, 12)))
    assert lda.transform(np.zeros((2, 12))) == pytest.approx(np.full((2, 3), 1 / 3))
