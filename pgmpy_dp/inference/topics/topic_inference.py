"""Variational inference of documents' topics in latent Dirichlet allocation, for given topics.

See Blei, Ng and Jordan 2003; the updates are equations 2 to 5 of Hoffman, Blei and Bach 2010. A document is its counts
c_w of words; q(theta) is a Dirichlet distribution with parameters gamma, and phi_kw is the probability that an
occurrence of word w belongs to topic k:

    phi_kw  ∝  exp(psi(gamma_k) + E[log beta_kw]),     gamma_k = alpha_k + sum_w c_w phi_kw.

Each document starts at the same point and is iterated until gamma has settled: the result is a function of the document
and the topics alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln, psi

Matrix = NDArray[np.float64]


class Topics:
    """Topics as Dirichlet distributions over words, and inference of documents under them.

    Parameters
    ----------
    concentrations : ndarray of float64, shape (topics, words)
        Dirichlet parameters lambda.
    prior : ndarray of float64, shape (topics,)
        Dirichlet parameters alpha of a document's topics.
    """

    def __init__(self, concentrations: Matrix, prior: Matrix) -> None:
        self.prior = prior
        self.expected_logs: Matrix = psi(concentrations) - psi(concentrations.sum(axis=1, keepdims=True))
        # Logs are shifted by word to a maximum of 0: phi does not change, and does not underflow as a whole.
        self._largest = self.expected_logs.max(axis=0)
        self._logs = np.ascontiguousarray((self.expected_logs - self._largest).T)
        self._weights = np.exp(self._logs)

    def infer(self, counts: sparse.csr_array) -> Matrix:
        """Infer Dirichlet parameters gamma of the documents' topics, shape (documents, topics)."""
        from pgmpy_dp.inference.topics import topic_kernel

        gamma = np.empty((counts.shape[0], self.prior.size))
        topic_kernel.infer(*_parts(counts), self._logs, self._weights, self.prior, gamma, np.empty(0))
        return gamma

    def expected_counts(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Compute each document's c_w phi_kw, shape (documents, topics * words), topic by topic.

        They are non-negative; a document's entries sum to its number of words.
        """
        from pgmpy_dp.inference.topics import topic_kernel

        documents, words = counts.shape
        topics = self.prior.size
        rows, columns, values = _parts(counts)
        found = np.empty(values.size * topics)
        topic_kernel.infer(
            rows, columns, values, self._logs, self._weights, self.prior, np.empty((documents, topics)), found
        )
        wide = np.int32 if topics * max(words, values.size) < 2**31 else np.int64
        cells = np.empty(found.size, dtype=wide)
        topic_kernel.cell_numbers(rows, columns, topics, words, cells)
        return sparse.csr_array((found, cells, (rows * topics).astype(wide)), shape=(documents, topics * words))

    def bound(self, counts: sparse.csr_array) -> float:
        """Bound from below the documents' total log-probability, given the distribution of the topics.

        This is equation 1 of Hoffman et al. 2010 without the terms of the topics: by Jensen's inequality it bounds the
        log of the documents' probability averaged over the topics' distribution.
        """
        from pgmpy_dp.inference.topics import topic_kernel

        gamma = self.infer(counts)
        totals = gamma.sum(axis=1)
        logs = psi(gamma) - psi(totals)[:, None]
        rows, columns, values = _parts(counts)
        word_bounds = topic_kernel.word_bounds(rows, columns, logs, self._logs) + self._largest[columns]
        documents = ((self.prior - gamma) * logs + gammaln(gamma) - gammaln(self.prior)).sum(axis=1)
        return float(values @ word_bounds) + float((documents + gammaln(self.prior.sum()) - gammaln(totals)).sum())


def topic_divergence(concentrations: Matrix, prior: float) -> float:
    """Sum the KL divergences of the topics' Dirichlet distributions from their symmetric prior.

    Parameters
    ----------
    concentrations : ndarray of float64, shape (topics, words)
    prior : float
        Dirichlet parameter eta of every word.
    """
    words = concentrations.shape[1]
    totals = concentrations.sum(axis=1)
    logs = psi(concentrations) - psi(totals)[:, None]
    parts = ((concentrations - prior) * logs - gammaln(concentrations) + gammaln(prior)).sum(axis=1)
    return float((parts + gammaln(totals) - gammaln(words * prior)).sum())


def _parts(counts: sparse.csr_array) -> tuple[Any, Any, Any]:
    return counts.indptr.astype(np.int64), counts.indices.astype(np.int64), counts.data.astype(np.float64)
