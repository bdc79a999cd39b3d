"""Private documents behind the wall, as word counts with a public vocabulary and a privacy budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.data.features import floats, number_matrix
from pgmpy_dp.data.mechanisms.integer_sums import canonical_rows
from pgmpy_dp.data.wall import Wall
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.privacy.noise import OPENDP_NOISE, NoiseSource
from pgmpy_dp.records.memory import require_summable

# Documents resampled at a time, and the largest count of one word in a document.
_DOCUMENTS, _MAX = 4096, 2**24


class PrivateDocuments(Wall):
    """Private documents with their public vocabulary and privacy budget.

    A record is a document. All answers come from :meth:`plan`, which charges the budget. Statistics receive the word
    counts of documents as a scipy CSR array of shape (m, words). The object can be neither copied nor pickled.

    Parameters
    ----------
    counts : scipy sparse array or matrix, or ndarray, shape (documents, words)
        Number of times that each document contains each word: non-negative integers. They are copied.
    vocabulary : sequence of str
        The word of each column. It is public and must be chosen without these documents: a vectorizer that was *fitted*
        to them has read it from private data, one with a given ``vocabulary`` has not.
    budget : PrivacyBudget
        The ledger for these documents.
    length : int
        Every document is resampled to this many words, drawn with replacement from its own, once, here. Long documents
        thus count no more than short ones. A document without words stays empty.
    neighbours : {"add_remove", "replace_one"}
        How neighbouring collections differ: in one document added or removed (their number is private), or in one
        document changed (their number is public).
    noise : NoiseSource
        Keep the default for privacy; a :class:`~pgmpy_dp.privacy.SimulatedNoise` is not private.

    Raises
    ------
    SchemaError
        If the vocabulary does not match the counts, or counts are negative or not integers.
    TypeError, ValueError
        If another argument is of the wrong kind.

    Notes
    -----
    Resampling depends only on the document and on independent randomness, so neighbours stay neighbours. No privacy is
    claimed from it (Foulds et al. 2020, section 4).

    Examples
    --------
    >>> counts = np.array([[2, 0, 1], [0, 0, 0], [0, 3, 0]])
    >>> documents = PrivateDocuments(counts, ["tea", "cup", "pot"], PrivacyBudget(1.0, 1e-6), length=100)
    >>> sums = documents.plan(5, epsilon=1.0, delta=1e-6, sampling_rate=1.0)
    >>> sums.noisy_sum(lambda counts: counts, clip_norm=100.0, non_negative=True).shape
    (3,)
    """

    _stays = (
        "PrivateDocuments can be neither copied nor pickled: documents and ledger stay where they are. Save the "
        "fitted topics instead."
    )

    def __init__(
        self,
        counts: Any,
        vocabulary: Sequence[str],
        budget: PrivacyBudget,
        length: int = 500,
        neighbours: str = "add_remove",
        noise: NoiseSource = OPENDP_NOISE,
    ) -> None:
        super().__init__(budget, neighbours, noise)
        self._length = whole_number("length", length, maximum=2**20)
        self._vocabulary = _checked_words(vocabulary)
        checked = checked_counts(counts)
        if checked.shape[1] != len(self._vocabulary):
            raise SchemaError(
                f"The vocabulary has {len(self._vocabulary)} words, but the counts have {checked.shape[1]} columns: "
                "each column needs a word."
            )
        require_summable(checked.shape[0])
        self._rows = resampled(checked, self._length, noise.keys)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """The public vocabulary."""
        return self._vocabulary

    @property
    def length(self) -> int:
        """Number of words of every document that is not empty."""
        return self._length

    def __repr__(self) -> str:
        return (
            f"PrivateDocuments({len(self._vocabulary)} words, length={self._length}, "
            f"neighbours={self._neighbours!r}, budget={self._budget!r})"
        )


def checked_counts(counts: Any) -> sparse.csr_array:
    """Copy word counts to a CSR array of int64, without duplicates and zeros.

    Raises SchemaError if they are negative, not integers, or too large; TypeError if they are not a matrix of numbers.
    """
    entries = _entries(counts)
    if entries is None:
        raise TypeError(
            "Documents are counts of words: a scipy sparse array or a matrix of numbers without a mask, with one row "
            f"per document and one column per word; got {type(counts).__name__}."
        )
    refusal = SchemaError(
        "Counts of words must be whole numbers, not negative, and at most 2**24 for one word of a document."
    )
    if not ((entries.data >= -_MAX) & (entries.data <= _MAX)).all():  # entries of the same word can then be added
        raise refusal
    rows = canonical_rows(entries, np.float64 if entries.data.dtype.kind == "f" else np.int64)
    if not ((rows.data >= 0) & (rows.data <= _MAX) & (rows.data == np.floor(rows.data))).all():
        raise refusal
    rows = rows.astype(np.int64)
    rows.eliminate_zeros()
    return rows


def _entries(counts: Any) -> sparse.coo_array | None:
    """Return the counts by coordinates, possibly with duplicates; None if they are not a matrix of numbers."""
    if not sparse.issparse(counts):
        values = number_matrix(counts)
        if values is None:
            return None
        return sparse.coo_array(floats(values) if values.dtype.kind == "f" else values)
    if counts.ndim != 2 or counts.dtype.kind not in "iufb" or counts.shape[1] < 1:
        return None
    try:
        if hasattr(counts, "check_format"):
            counts.check_format()  # the conversion would trust the index
        return sparse.coo_array(counts)
    except ValueError:
        pass
    # Raised outside of the handler, so that it does not carry scipy's error, which shows an index.
    raise SchemaError("The sparse array of counts is damaged: an index lies outside of its shape.")


def resampled(counts: sparse.csr_array, length: int, keys: Callable[[int], NDArray[np.uint64]]) -> sparse.csr_array:
    """Draw `length` words with replacement from each document that is not empty."""
    parts = []
    for start in range(0, counts.shape[0], _DOCUMENTS):
        part = counts[start : start + _DOCUMENTS]
        ends = np.concatenate(([0], np.cumsum(part.data)))  # where the words of each entry end, across its documents
        firsts = ends[part.indptr]
        filled = np.flatnonzero(np.diff(firsts))
        sizes = np.diff(firsts)[filled].astype(np.uint64)
        # The modulus changes the probability of a word by less than 2**-64, and privacy does not depend on it.
        words = (keys(filled.size * length).reshape(filled.size, length) % sizes[:, None]).astype(np.int64)
        entries = np.searchsorted(ends, (words + firsts[filled][:, None]).ravel(), side="right") - 1
        drawn = np.bincount(entries, minlength=part.nnz).astype(np.int32)
        parts.append(sparse.csr_array((drawn, part.indices, part.indptr), shape=part.shape))
        parts[-1].eliminate_zeros()
    return sparse.csr_array(sparse.vstack(parts, format="csr")) if parts else counts.astype(np.int32)


def _checked_words(vocabulary: Any) -> tuple[str, ...]:
    if isinstance(vocabulary, (str, bytes)) or not hasattr(vocabulary, "__iter__"):
        raise TypeError(f"vocabulary must list the words of the columns, got {type(vocabulary).__name__}.")
    words = tuple(vocabulary)
    if not words or not all(isinstance(word, str) for word in words) or len(set(words)) != len(words):
        raise SchemaError("vocabulary must list at least one word, each a text and different from the others.")
    return tuple(str(word) for word in words)
