"""Variational inference of documents' topics in latent Dirichlet allocation, for given topics.

See Blei, Ng and Jordan 2003; the updates are equations 2 to 5 of Hoffman, Blei and Bach 2010. A document is its counts
c_w of words; q(theta) is a Dirichlet distribution with parameters gamma, and phi_kw is the probability that an
occurrence of word w belongs to topic k:

    phi_kw  ∝  exp(psi(gamma_k) + E[log beta_kw]),     gamma_k = alpha_k + sum_w c_w phi_kw.

Each document starts at the same point and is iterated until gamma has settled: the result is a function of the document
and the topics alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, psi

from pgmpy_dp._compiled import compiled
from pgmpy_dp.inference.trees.kernel import TINY

Matrix = NDArray[np.float64]

# Mean change of the entries of gamma below which a document has settled, and maximum number of iterations.
TOLERANCE, ITERATIONS = 1e-3, 100


class Topics:
    """Topics as Dirichlet distributions over words, and inference of documents under them."""

    def __init__(self, concentrations: Matrix, prior: Matrix) -> None:
        self.concentrations, self.prior = concentrations, prior
        self.expected_logs: Matrix = psi(concentrations) - psi(concentrations.sum(axis=1, keepdims=True))
        # Logs are shifted by word to a maximum of 0: phi does not change, and does not underflow as a whole.
        self._largest = self.expected_logs.max(axis=0)
        self._logs = np.ascontiguousarray((self.expected_logs - self._largest).T)
        self._weights = np.exp(self._logs)

    def infer(self, counts: sparse.csr_array) -> Matrix:
        """Infer Dirichlet parameters gamma of the documents' topics, shape (documents, topics)."""
        gamma = np.empty((counts.shape[0], self.prior.size))
        _infer(*_parts(counts), self._logs, self._weights, self.prior, gamma, np.empty(0))
        return gamma

    def expected_counts(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Compute each document's c_w phi_kw, shape (documents, topics * words), topic by topic.

        They are non-negative; a document's entries sum to its number of words.
        """
        documents, words = counts.shape
        topics = self.prior.size
        rows, columns, values = _parts(counts)
        result = np.empty(values.size * topics)
        _infer(rows, columns, values, self._logs, self._weights, self.prior, np.empty((documents, topics)), result)
        wide = np.int32 if topics * max(words, values.size) < 2**31 else np.int64
        cells = np.empty(result.size, dtype=wide)
        _cell_numbers(rows, columns, topics, words, cells)
        return sparse.csr_array((result, cells, (rows * topics).astype(wide)), shape=(documents, topics * words))

    def bound(self, counts: sparse.csr_array) -> float:
        """Bound from below the documents' total log-probability, given the distribution of the topics.

        This is equation 1 of Hoffman et al. 2010 without the terms of the topics: by Jensen's inequality it bounds the
        log of the documents' probability averaged over the topics' distribution.
        """
        gamma = self.infer(counts)
        totals = gamma.sum(axis=1)
        logs = psi(gamma) - psi(totals)[:, None]
        rows, columns, values = _parts(counts)
        word_bounds = _word_bounds(rows, columns, logs, self._logs) + self._largest[columns]
        documents = ((self.prior - gamma) * logs + gammaln(gamma) - gammaln(self.prior)).sum(axis=1)
        return float(values @ word_bounds) + float((documents + gammaln(self.prior.sum()) - gammaln(totals)).sum())

    def divergence(self, prior: float) -> float:
        """Sum the KL divergences of the topics from their symmetric prior with this Dirichlet parameter eta."""
        words, totals = self.concentrations.shape[1], self.concentrations.sum(axis=1)
        logs = (self.concentrations - prior) * self.expected_logs
        parts = (logs - gammaln(self.concentrations) + gammaln(prior)).sum(axis=1)
        return float((parts + gammaln(totals) - gammaln(words * prior)).sum())


def _parts(counts: sparse.csr_array) -> tuple[Any, Any, Any]:
    """Return where the rows of documents begin, their words and the words' counts."""
    return counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data.astype(np.float64)


@compiled
def _digamma(x):
    """Compute digamma by recurrence up to 10, then by the asymptotic series; accurate to 1e-14 for positive x."""
    below = 0.0
    while x < 10.0:
        below += 1.0 / x
        x += 1.0
    square = 1.0 / (x * x)
    series = 1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252 - square * (1.0 / 240 - square / 132)))
    return math.log(x) - 0.5 / x - square * series - below


@compiled
def _infer(rows, columns, values, logs, weights, prior, gamma, found):
    """Fill gamma, one row per document; and c_w phi_kw by document and topic if `found` has room."""
    topics = prior.size
    longest = 0
    for document in range(gamma.shape[0]):
        longest = max(longest, rows[document + 1] - rows[document])
    local = np.empty((longest, topics))
    theta, log_theta, total = np.empty(topics), np.empty(topics), np.empty(topics)
    for document in range(gamma.shape[0]):
        start, end = rows[document], rows[document + 1]
        size = end - start
        own = gamma[document]
        length = 0.0
        for word in range(size):
            length += values[start + word]
            source, to = weights[columns[start + word]], local[word]
            for k in range(topics):
                to[k] = source[k]
        for k in range(topics):
            own[k] = prior[k] + length / topics
        for _ in range(ITERATIONS):
            _topic_weights(own, log_theta, theta)
            _add_shares(values[start:end], local, columns[start:end], logs, log_theta, theta, total, 0, 1)
            change = 0.0
            for k in range(topics):
                new = prior[k] + total[k]
                change += abs(new - own[k])
                own[k] = new
            if change < TOLERANCE * topics:
                break
        if found.size:
            _topic_weights(own, log_theta, theta)
            block = found[start * topics : end * topics]
            _add_shares(values[start:end], local, columns[start:end], logs, log_theta, theta, block, 1, size)


@compiled
def _add_shares(values, weights, words, logs, log_theta, theta, into, by_word, by_topic):
    """Set `into` to the sums of c_w phi_kw in its cells, which lie so far apart by word and by topic."""
    for cell in range(into.size):
        into[cell] = 0.0
    for word in range(values.size):
        row, own, norm = weights[word], into[word * by_word :], 0.0
        for k in range(theta.size):
            norm += theta[k] * row[k]
        if norm > TINY:
            share = values[word] / norm
            for k in range(theta.size):
                own[k * by_topic] += share * theta[k] * row[k]
        else:
            _add_in_logs(values[word], log_theta, logs[words[word]], own, by_topic)


@compiled
def _topic_weights(gamma, log_theta, theta):
    """Compute exp(psi(gamma)) up to a factor, with maximum 1, and its logarithm."""
    largest = -np.inf
    for k in range(gamma.size):
        log_theta[k] = _digamma(gamma[k])
        largest = max(largest, log_theta[k])
    for k in range(gamma.size):
        log_theta[k] -= largest
        theta[k] = math.exp(log_theta[k])


@compiled
def _add_in_logs(value, log_theta, log_word, total, stride):
    """Add value * phi to every `stride`-th cell of `total`, for a word whose weights all underflow."""
    largest = -np.inf
    for k in range(log_theta.size):
        largest = max(largest, log_theta[k] + log_word[k])
    norm = 0.0
    for k in range(log_theta.size):
        norm += math.exp(log_theta[k] + log_word[k] - largest)
    for k in range(log_theta.size):
        total[k * stride] += value * math.exp(log_theta[k] + log_word[k] - largest) / norm


@compiled
def _cell_numbers(rows, columns, topics, words, cells):
    """Compute cell indices topic * words + word, in the order of `found`."""
    for document in range(rows.size - 1):
        start, size = rows[document], rows[document + 1] - rows[document]
        block = cells[start * topics : (start + size) * topics]
        for k in range(topics):
            for word in range(size):
                block[k * size + word] = k * words + columns[start + word]


@compiled
def _word_bounds(rows, columns, log_theta, log_words):
    """Compute the log of sum_k exp(log_theta_dk + log_words_wk) for every word of every document."""
    result = np.empty(columns.size)
    for document in range(rows.size - 1):
        theta = log_theta[document]
        for position in range(rows[document], rows[document + 1]):
            word = log_words[columns[position]]
            largest = -np.inf
            for k in range(theta.size):
                largest = max(largest, theta[k] + word[k])
            norm = 0.0
            for k in range(theta.size):
                norm += math.exp(theta[k] + word[k] - largest)
            result[position] = largest + math.log(norm)
    return result
