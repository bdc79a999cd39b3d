"""The wall holds private documents as counts of words, with a public vocabulary and a privacy budget."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pgmpy_dp.data.matrices import canonical_rows, floats, number_matrix
from pgmpy_dp.data.wall import Wall
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.noise import OPENDP_NOISE, NoiseSource
from pgmpy_dp.records.memory import require_summable

# At most so many documents are resampled at a time, and a document may have one word at most so often.
_DOCUMENTS, _MOST = 4096, 2**24


class PrivateDocuments(Wall):
    """Private documents are held with their public vocabulary and privacy budget, as `PrivateDataset` holds records.

    A record is a document. All that leaves goes through :meth:`plan`, which charges the budget; statistics are handed
    the documents' counts of words as a scipy CSR array of shape (m, words). Objects can be neither copied nor pickled.

    Parameters
    ----------
    counts : scipy sparse array or matrix, or ndarray, shape (documents, words)
        How often each document has each word: whole numbers, not negative. Copied.
    vocabulary : sequence of str
        The word of each column. It is public: choose it without these documents (a vectorizer that was *fitted* to them
        read it off private data; one with a ``vocabulary`` of its own did not).
    budget : PrivacyBudget
        The ledger for these documents.
    length : int
        Every document is resampled to this many words, drawn with replacement from its own, once and here. Long
        documents thus count no more than short ones. A document without words stays empty.
    neighbours : {"add_remove", "replace_one"}
        What differs between neighbouring collections: one document more or less (their number is private), or one
        document changed (their number is public).
    noise : NoiseSource
        Leave the default for privacy. A :class:`~pgmpy_dp.privacy.SimulatedNoise` says that it is not private.

    Raises
    ------
    SchemaError
        If the vocabulary does not fit the counts, or counts are negative or no whole numbers.
    TypeError, ValueError
        If another argument is of the wrong kind.

    Notes
    -----
    Resampling is a function of a document and of randomness of its own, so that neighbours stay neighbours; no privacy
    is claimed from it (Foulds et al. 2020, section 4).

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
        if isinstance(length, bool) or not isinstance(length, (int, np.integer)) or not 1 <= length <= 2**20:
            raise ValueError(f"length must be a whole number of words from 1 to 2**20, got {length!r}.")
        self._vocabulary = _checked_words(vocabulary)
        checked = checked_counts(counts)
        if checked.shape[1] != len(self._vocabulary):
            raise SchemaError(
                f"The vocabulary has {len(self._vocabulary)} words, but the counts have {checked.shape[1]} columns: "
                "one column a word is needed."
            )
        self._length = int(length)
        require_summable(checked.shape[0])
        self._rows = resampled(checked, self._length, noise.keys)

    @property
    def vocabulary(self) -> tuple[str, ...]:
        """Return the public words."""
        return self._vocabulary

    @property
    def length(self) -> int:
        """Return the number of words of every document that has any."""
        return self._length

    def __repr__(self) -> str:
        return (
            f"PrivateDocuments({len(self._vocabulary)} words, length={self._length}, "
            f"neighbours={self._neighbours!r}, budget={self._budget!r})"
        )


def checked_counts(counts: Any) -> sparse.csr_array:
    """Copy counts of words to a CSR array of int64, without duplicates and zeros.

    Raises
    ------
    SchemaError
        If they are negative, no whole numbers, or too large.
    TypeError
        If they are no matrix of numbers.
    """
    entries = _entries(counts)
    if entries is None:
        raise TypeError(
            "Documents are counts of words: a scipy sparse array or a matrix of numbers without a mask, one row a "
            f"document and one column a word; got {type(counts).__name__}."
        )
    refusal = SchemaError(
        "Counts of words must be whole numbers, not negative, and at most 2**24 for one word of a document."
    )
    if not ((entries.data >= -_MOST) & (entries.data <= _MOST)).all():  # so that entries of one word can be added
        raise refusal
    rows = canonical_rows(entries, np.float64 if entries.data.dtype.kind == "f" else np.int64)
    if not ((rows.data >= 0) & (rows.data <= _MOST) & (rows.data == np.floor(rows.data))).all():
        raise refusal
    rows = rows.astype(np.int64)
    rows.eliminate_zeros()
    return rows


def _entries(counts: Any) -> sparse.coo_array | None:
    """List the counts by coordinates, some perhaps twice; return None where they are no matrix of numbers."""
    if not sparse.issparse(counts):
        values = number_matrix(counts)
        if values is None:
            return None
        return sparse.coo_array(floats(values) if values.dtype.kind == "f" else values)
    if counts.ndim != 2 or counts.dtype.kind not in "iufb" or counts.shape[1] < 1:
        return None
    try:
        if hasattr(counts, "check_format"):
            counts.check_format()  # the conversion would trust its index
        return sparse.coo_array(counts)
    except ValueError:
        pass
    # This is raised here and not above, so that it does not carry scipy's error, which shows an index.
    raise SchemaError("The sparse array of counts is damaged: an index lies outside of its shape.")


def resampled(counts: sparse.csr_array, length: int, keys: Callable[[int], NDArray[np.uint64]]) -> sparse.csr_array:
    """Draw `length` words with replacement from each document that has any.

    Parameters
    ----------
    counts : csr_array of int64
    length : int
    keys : callable
        Function from a number to that many uniform random 64-bit numbers.

    Returns
    -------
    csr_array of int32, same shape
    """
    parts = [
        _resampled(counts[start : start + _DOCUMENTS], length, keys) for start in range(0, counts.shape[0], _DOCUMENTS)
    ]
    return sparse.csr_array(sparse.vstack(parts, format="csr")) if parts else counts.astype(np.int32)


def _resampled(part: sparse.csr_array, length: int, keys: Callable[[int], NDArray[np.uint64]]) -> sparse.csr_array:
    ends = np.concatenate(([0], np.cumsum(part.data)))  # where each entry's words end among those of all documents
    firsts = ends[part.indptr]
    filled = np.flatnonzero(np.diff(firsts))
    sizes = np.diff(firsts)[filled].astype(np.uint64)
    # The remainder changes a word's probability by less than 2**-64, and no privacy depends on it.
    words = (keys(filled.size * length).reshape(filled.size, length) % sizes[:, None]).astype(np.int64)
    entries = np.searchsorted(ends, (words + firsts[filled][:, None]).ravel(), side="right") - 1
    drawn = np.bincount(entries, minlength=part.nnz).astype(np.int32)
    found = sparse.csr_array((drawn, part.indices, part.indptr), shape=part.shape)
    found.eliminate_zeros()
    return found


def _checked_words(vocabulary: Any) -> tuple[str, ...]:
    if isinstance(vocabulary, (str, bytes)) or not hasattr(vocabulary, "__iter__"):
        raise TypeError(f"vocabulary must list the words of the columns, got {type(vocabulary).__name__}.")
    words = tuple(vocabulary)
    if not words or not all(isinstance(word, str) for word in words) or len(set(words)) != len(words):
        raise SchemaError("vocabulary must list at least one word, each a text, none twice.")
    return tuple(str(word) for word in words)
