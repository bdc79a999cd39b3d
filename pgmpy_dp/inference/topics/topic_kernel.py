"""Compiled variational inference of documents' topics, by :mod:`pgmpy_dp.inference.topics.topic_inference`.

Documents are given as the parts of a CSR matrix: `rows` (where each begins), `columns` (words) and `values` (counts).
"""

from __future__ import annotations

import math

import numpy as np

from pgmpy_dp._compiled import compiled
from pgmpy_dp.inference.trees.kernel import TINY

# Mean change of the entries of gamma below which a document has settled, and most iterations.
TOLERANCE, ITERATIONS = 1e-3, 100


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
def infer(rows, columns, values, logs, weights, prior, gamma, found):
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
            for k in range(topics):
                total[k] = 0.0
            for word in range(size):
                row = local[word]
                norm = 0.0
                for k in range(topics):
                    norm += theta[k] * row[k]
                if norm > TINY:
                    share = values[start + word] / norm
                    for k in range(topics):
                        total[k] += share * theta[k] * row[k]
                else:
                    _add_in_logs(values[start + word], log_theta, logs[columns[start + word]], total, 1)
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
            for word in range(size):
                row = local[word]
                norm = 0.0
                for k in range(topics):
                    norm += theta[k] * row[k]
                if norm > TINY:
                    share = values[start + word] / norm
                    for k in range(topics):
                        block[k * size + word] = share * theta[k] * row[k]
                else:
                    for k in range(topics):
                        block[k * size + word] = 0.0
                    _add_in_logs(values[start + word], log_theta, logs[columns[start + word]], block[word:], size)


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
def cell_numbers(rows, columns, topics, words, cells):
    """Compute cell indices topic * words + word, in the order of `found`."""
    for document in range(rows.size - 1):
        start, size = rows[document], rows[document + 1] - rows[document]
        block = cells[start * topics : (start + size) * topics]
        for k in range(topics):
            for word in range(size):
                block[k * size + word] = k * words + columns[start + word]


@compiled
def word_bounds(rows, columns, log_theta, log_words):
    """Compute the log of sum_k exp(log_theta_dk + log_words_wk) for every word of every document."""
    found = np.empty(columns.size)
    for document in range(rows.size - 1):
        theta = log_theta[document]
        for place in range(rows[document], rows[document + 1]):
            word = log_words[columns[place]]
            largest = -np.inf
            for k in range(theta.size):
                largest = max(largest, theta[k] + word[k])
            norm = 0.0
            for k in range(theta.size):
                norm += math.exp(theta[k] + word[k] - largest)
            found[place] = largest + math.log(norm)
    return found
