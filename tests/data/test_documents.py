"""Private documents: resampling, sensitivity by brute force, refusals."""

import math

import numpy as np
import pytest
from noises import Noted, largest_move
from scipy import sparse, stats

import pgmpy_dp as dp
from pgmpy_dp.data.documents import resampled
from pgmpy_dp.data.mechanisms import sums
from pgmpy_dp.inference.topics import Topics

WORDS = ["tea", "cup", "pot"]
DOCUMENTS = [(0, 0, 0), (5, 0, 0), (0, 2, 0), (1, 1, 0), (3, 0, 9), (1, 1, 1)]
LENGTH = 6


class NoNoise(Noted):
    """Resamples the same documents in the same way."""

    def keys(self, size):
        return np.random.default_rng(3).integers(2**63, size=size, dtype=np.uint64)


def private(documents=DOCUMENTS, neighbours="add_remove", noise=None, budget=(100.0, 1e-3), length=LENGTH):
    counts = np.array(documents, dtype=np.int64).reshape(-1, 3)
    return dp.PrivateDocuments(counts, WORDS, dp.PrivacyBudget(*budget), length, neighbours, noise or NoNoise())


TOPICS = Topics(np.array([[9.0, 0.2, 0.1], [0.3, 4.0, 5.0]]), np.full(2, 0.5))


def integer_sum(documents, neighbours, clip):
    """The sum before noise, in grid steps, and the sensitivity that the noise allows for."""
    data = private(documents, neighbours)
    size = {"batch_size": len(documents)} if neighbours == "replace_one" else {"sampling_rate": 1.0}
    data.plan(1, noise_multiplier=3.0, delta=1e-3, **size).noisy_sum(TOPICS.expected_counts, clip, non_negative=True)
    _, total, scale = data._noise.seen[-1]
    return total, scale / 3.0


def worst_ratio(neighbours, clip):
    """Largest move of the topics' expected counts between neighbours, over what the noise allows for."""
    return largest_move(DOCUMENTS, neighbours, lambda documents: integer_sum(documents, neighbours, clip))


@pytest.mark.parametrize("neighbours", ["add_remove", "replace_one"])
@pytest.mark.parametrize("clip", [0.1 * LENGTH, LENGTH])
def test_no_document_moves_the_topics_beyond_the_sensitivity(neighbours, clip):
    """Clipped documents reach it: without common words, they are at a right angle."""
    assert (0.98 if clip < 1 else 0.9) < worst_ratio(neighbours, clip) <= 1.0


def test_the_sensitivity_printed_in_the_paper_is_too_small(monkeypatch):
    grid = sums.NoisySums._grid
    monkeypatch.setattr(sums.NoisySums, "_grid", lambda self, cells, one: grid(self, cells, 1.0))
    assert worst_ratio("replace_one", 0.6) == pytest.approx(math.sqrt(2.0), rel=0.01)


def test_documents_without_words_count_as_nothing():
    """Neither their number nor where they are shows in a sum."""
    full, _ = integer_sum(DOCUMENTS[1:], "add_remove", 0.6)
    more, _ = integer_sum([*DOCUMENTS[1:], *[(0, 0, 0)] * 5], "add_remove", 0.6)
    assert full == more
    nothing, _ = integer_sum([(0, 0, 0)] * 3, "add_remove", 0.6)
    assert not any(nothing)
    plan = private([]).plan(1, epsilon=1.0, delta=1e-3, sampling_rate=1.0)
    assert plan.noisy_sum(TOPICS.expected_counts, 0.6).tolist() == [0.0] * 6


def test_documents_are_resampled_to_one_length():
    """Words of 9,000 documents against the multinomial distribution; false alarm below 1e-8."""
    share = np.array([0.1, 0.0, 0.3, 0.6])
    counts = sparse.csr_array(np.vstack([np.tile([1, 0, 3, 6], (9000, 1)), np.zeros((1, 4), int)]))

    def p_value(counts):
        found = resampled(counts, 5, dp.SimulatedNoise(2).keys).toarray()
        assert (found[:-1].sum(axis=1) == 5).all()
        assert not found[-1].any()
        # Of each word, how many documents have 0, 1, ... 5.
        seen = {word: np.bincount(found[:-1, word], minlength=6) for word in (0, 2, 3)}
        laws = {word: 9000 * stats.binom.pmf(np.arange(6), 5, share[word]) for word in seen}
        return min(stats.chisquare(seen[word], laws[word]).pvalue for word in seen)

    assert p_value(counts) > 1e-8
    assert p_value(sparse.csr_array(counts.sign())) < 1e-8  # how often a document has a word must count


@pytest.mark.parametrize(
    "form",
    [
        *(sparse.csr_matrix, sparse.csc_array, sparse.coo_array, np.asarray),
        *(lambda counts: counts.astype(float), lambda counts: counts.tolist()),
    ],
)
def test_forms_of_counts(form):
    counts = np.array([[0, 300, 0], [7, 0, 0]])
    data = dp.PrivateDocuments(form(counts), WORDS, dp.PrivacyBudget(1.0, 1e-3), 10, noise=NoNoise())
    assert data._rows.toarray().tolist() == [[0, 10, 0], [10, 0, 0]]


def test_entries_that_are_named_twice_add_up():
    twice = sparse.coo_array((np.array([200, 100], dtype=np.uint8), ([0, 0], [1, 1])), (1, 3))
    counts = dp.data.documents.checked_counts(twice)
    assert counts.toarray().tolist() == [[0, 300, 0]]
    given = sparse.csr_array(np.array([[1, 0, 2]]))
    kept = dp.data.documents.checked_counts(given)
    given.data[:] = 9
    assert kept.toarray().tolist() == [[1, 0, 2]]  # a copy


@pytest.mark.parametrize(
    ("counts", "error", "match"),
    [
        ([[1, -1, 0]], dp.SchemaError, "not negative"),
        *(([[1, value, 0]], dp.SchemaError, "whole numbers") for value in (0.5, math.nan)),
        *(([[1, value, 0]], dp.SchemaError, "at most") for value in (math.inf, 2**25)),
        ([[1, 2, 3, 4]], dp.SchemaError, "3 words, but the counts have 4 columns"),
        *((none, TypeError, "counts of words") for none in ([1, 2, 3], [["1", "2", "3"]], [[1j, 2, 3]], None)),
        ([[1, 2, 3], np.ma.masked_array([1, 2, 3], mask=[0, 0, 1])], TypeError, "without a mask"),
    ],
)
def test_bad_counts_are_refused(counts, error, match):
    budget = dp.PrivacyBudget(1.0, 1e-6)
    for given in (counts, sparse.csr_array(np.array(counts)) if error is dp.SchemaError else counts):
        with pytest.raises(error, match=match):
            dp.PrivateDocuments(given, WORDS, budget)
    with pytest.raises(error, match=match.replace("3 words, but", ".*")):
        dp.PrivateLDA(2, 1.0, 1e-6).fit(counts) if "columns" not in match else dp.PrivateDocuments(
            counts, WORDS, budget
        )
    assert budget.history == ()


@pytest.mark.parametrize(
    ("change", "error", "match"),
    [
        ({"vocabulary": "tea"}, TypeError, "vocabulary"),
        ({"vocabulary": 3}, TypeError, "vocabulary"),
        ({"vocabulary": ["tea", "tea", "pot"]}, dp.SchemaError, "different from the others"),
        ({"vocabulary": ["tea", 1, "pot"]}, dp.SchemaError, "each a text"),
        ({"length": 0}, ValueError, "length"),
        ({"length": 2.0}, ValueError, "length"),
        ({"neighbours": "swap"}, ValueError, "neighbours"),
        ({"budget": 1.0}, TypeError, "PrivacyBudget"),
        ({"noise": dp.SimulatedNoise}, TypeError, "noise"),
    ],
)
def test_other_bad_input(change, error, match):
    options = {"vocabulary": WORDS, "budget": dp.PrivacyBudget(1.0, 1e-6), **change}
    with pytest.raises(error, match=match):
        dp.PrivateDocuments(np.array(DOCUMENTS), **options)


@pytest.mark.parametrize("given", [np.ones((2, 3), dtype=complex), np.ones((2, 0), dtype=int)])
def test_sparse_arrays_of_other_kinds_are_no_counts(given):
    with pytest.raises(TypeError, match="counts of words"):
        dp.PrivateDocuments(sparse.csr_array(given), WORDS, dp.PrivacyBudget(1.0, 1e-6))


def test_documents_stay_where_they_are():
    data = private([(1, 1, 1)] * 4093)
    assert "4093" not in repr(data)
    assert data.vocabulary == tuple(WORDS)
