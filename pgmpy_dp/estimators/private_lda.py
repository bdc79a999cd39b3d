"""Latent Dirichlet allocation, a topic model, from noisy sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted, validate_data

from pgmpy_dp.data import PrivateDocuments
from pgmpy_dp.data.documents import checked_counts
from pgmpy_dp.data.mechanisms.integer_sums import checked_norm
from pgmpy_dp.data.wall import require_public
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.base import require_same
from pgmpy_dp.estimators.iterated import (
    DELAY,
    FORGETTING,
    ArrayEstimator,
    ArrayTransformer,
    Learner,
    concentrations,
    conjugate_steps,
    learning_rate,
)
from pgmpy_dp.privacy.checks import Constraint, exact_positive, number, optional, whole

if TYPE_CHECKING:
    from pgmpy_dp.inference.topics import Topics

Matrix = NDArray[np.float64]

# Default clip norm as a fraction of the document length (Foulds et al.).
_CLIPPED = 0.1
_LENGTH = 500


@dataclass(eq=False, repr=False)
class PrivateLDA(ArrayEstimator, ArrayTransformer, BaseEstimator):  # type: ignore[misc]
    """Topic model of private documents: variational Bayes with Gaussian noise on the topics' expected word counts.

    A step takes a random sample of the documents, infers the topics of each under the current model, and moves the
    topics towards the noisy sum of their expected word counts. Parameters are named as in scikit-learn's
    `LatentDirichletAllocation`.

    Parameters
    ----------
    epsilon, neighbours, delta, steps, batch_size, noise_multiplier
        See :class:`~pgmpy_dp.PrivateVB`.
    budget : PrivacyBudget, optional
        See :class:`~pgmpy_dp.PrivateLogisticRegression`.
    n_components : int
        Number of topics.
    sampling_rate : float
        Probability that a document is in a step's sample; its product with `steps` is the number of epochs.
    document_length : int, optional
        Number of words that raw documents are resampled to, 500 by default; `PrivateDocuments` have their own.
    clip_norm : float, optional
        Bound of the norm of a document's expected counts; by default a tenth of the documents' length.
    doc_topic_prior, topic_word_prior : float, optional
        Dirichlet parameters alpha and eta, 1 / n_components by default.
    learning_offset, learning_decay, random_state
        See `delay`, `forgetting` and `random_state` of :class:`~pgmpy_dp.PrivateVB`.

    Attributes
    ----------
    components_ : ndarray, shape (n_components, words)
        Dirichlet parameters of the topics: ``components_ / components_.sum(axis=1, keepdims=True)`` are their
        distributions over words.
    doc_topic_prior_, topic_word_prior_ : float
    feature_names_in_ : ndarray of str
        The public vocabulary, if the documents have one.
    guarantee_, noise_multiplier_, n_steps_, n_features_in_
        See :class:`~pgmpy_dp.PrivateLogisticRegression`.

    Notes
    -----
    Foulds, Park, Chaudhuri and Welling (2020), section 4. Documents are resampled to the same length, so that no
    document dominates, and the norms of their expected counts are clipped; both are part of the private mechanism
    (:class:`~pgmpy_dp.data.PrivateDocuments`, :class:`~pgmpy_dp.data.mechanisms.sums.NoisySums`). Expected counts are
    non-negative, so replacing a document changes a sum by at most sqrt(2) times the clip norm; :doc:`/papers` says
    where the paper's accounting differs. Steps are those of :class:`~pgmpy_dp.PrivateVB`.

    A step's noise on each word of each topic has the standard deviation `noise_multiplier_` * clip_norm (sqrt(2) times
    that for neighbours that replace a document); compare it with the mean count, sampling_rate * documents * length /
    (topics * words). If it is much larger, use fewer topics and words, shorter documents and larger samples.

    The topics of single documents are not part of the release: `transform` and `perplexity` are for documents that are
    public, or one's own.

    Examples
    --------
    >>> import numpy as np, pgmpy_dp as dp
    >>> counts = np.repeat([[6, 4, 0, 0], [0, 0, 5, 5]], 5000, axis=0)
    >>> lda = dp.PrivateLDA(n_components=2, epsilon=1.0, delta=1e-6, sampling_rate=0.5, document_length=10)
    >>> topics = lda.fit(counts).transform(np.array([[3, 3, 0, 0], [0, 0, 4, 2]]))
    >>> bool(topics[0].argmax() != topics[1].argmax()), lda.perplexity(counts[:10]) < 4
    (True, True)
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "n_components": whole(1),
        "clip_norm": optional(checked_norm),
        "doc_topic_prior": optional(number(minimum=1e-6, maximum=1e6)),
        "topic_word_prior": optional(number(minimum=1e-6, maximum=1e6)),
        "learning_offset": DELAY,
        "learning_decay": FORGETTING,
    }

    n_components: int = 50
    _: KW_ONLY
    steps: int = 20
    sampling_rate: float | None = 0.05
    document_length: int | None = None
    clip_norm: float | None = None
    doc_topic_prior: float | None = None
    topic_word_prior: float | None = None
    learning_offset: float = 1.0
    learning_decay: float = 0.7
    random_state: int = 0

    def fit(self, counts: Any, y: None = None) -> Self:
        """Learn the topics of private documents.

        Parameters
        ----------
        counts : PrivateDocuments, scipy sparse array or ndarray, shape (documents, words)
            Documents with a ledger (charged), or raw word counts, of which nothing but this fit is released. The number
            of columns is public.
        y : None
            Ignored.

        Raises
        ------
        SchemaError, BudgetExceededError, TypeError, ValueError
            As `PrivateMLE.fit`; if the ledger has too little left, the message states a noise multiplier that fits.
        """
        self._run(None, counts)
        if isinstance(counts, PrivateDocuments):
            self.feature_names_in_ = np.array(counts.vocabulary, dtype=object)
        return self

    def _learner(self, structure: None, public: PrivateDocuments) -> Learner:
        topics, words = int(self.n_components), len(public.vocabulary)
        alpha, eta = (
            1.0 / topics if prior is None else float(prior) for prior in (self.doc_topic_prior, self.topic_word_prior)
        )
        rate = learning_rate(self.learning_offset, self.learning_decay)
        clip = _CLIPPED * public.length if self.clip_norm is None else self.clip_norm
        start = np.random.default_rng(self.random_state).gamma(100.0, 0.01, topics * words)

        def finish(learned: Matrix) -> None:
            self.components_ = learned.reshape(topics, words)
            self.doc_topic_prior_, self.topic_word_prior_ = alpha, eta
            self.n_features_in_ = words

        def statistic(natural: Matrix) -> Callable[[Any], Any]:
            from pgmpy_dp.inference.topics import Topics

            return Topics(natural.reshape(topics, words), np.full(topics, alpha)).expected_counts

        steps = conjugate_steps(start, statistic, float(clip), concentrations(eta), rate)
        return Learner(start.size, steps, finish)

    def transform(self, counts: Any) -> Matrix:
        """Infer expected topic shares of public documents, shape (documents, n_components).

        Parameters
        ----------
        counts : scipy sparse array or ndarray, shape (documents, words)
            Not resampled. The shares of a private document are private and not covered by the guarantee.
        """
        gamma = self._topics().infer(self._public(counts))
        return gamma / gamma.sum(axis=1, keepdims=True)

    def perplexity(self, counts: Any, total_documents: float | None = None) -> float:
        """Compute an upper bound of the perplexity per word of public, held-out documents.

        Parameters
        ----------
        counts : scipy sparse array or ndarray, shape (documents, words)
            Public documents: the result is exact, and would leak private ones.
        total_documents : float, optional
            Number of documents over which the divergence of the topics from their prior is spread, as in the bound of
            Hoffman, Blei and Bach (2010) for a training corpus. By default the divergence is left out, since held-out
            documents did not contribute to the topics.

        Returns
        -------
        float
            1 at best; the number of words for a uniform distribution.
        """
        documents = self._public(counts)
        words = float(documents.sum())
        if not words:
            raise ValueError("None of these documents has a word of the vocabulary: perplexity is undefined.")
        topics = self._topics()
        bound = topics.bound(documents)
        if total_documents is not None:
            share = documents.shape[0] / float(exact_positive("total_documents", total_documents))
            bound -= share * topics.divergence(self.topic_word_prior_)
        return math.exp(-bound / words)

    def score(self, counts: Any, y: None = None) -> float:
        """Compute a lower bound of the log-likelihood of public, held-out documents, in nats."""
        return float(self._topics().bound(self._public(counts)))

    def _source(self, structure: None, counts: Any, public: Any) -> PrivateDocuments:
        """Return the given documents with a ledger, or create a ledger for raw ones."""
        if not isinstance(counts, PrivateDocuments):
            if self.epsilon is None:
                raise ValueError(
                    "Fitting documents costs privacy: give the estimator an epsilon, or hand in PrivateDocuments, to "
                    "whose ledger the price of noise_multiplier can be charged."
                )
            checked = checked_counts(counts)
            return PrivateDocuments(
                checked,
                [str(column) for column in range(checked.shape[1])],
                self._budget(),
                length=_LENGTH if self.document_length is None else self.document_length,
                neighbours=self.neighbours or "add_remove",
            )
        if self.budget is not None:
            raise ValueError("The documents have their own budget: leave it out.")
        require_same("neighbours", self.neighbours, counts.neighbours, "documents have")
        require_same("document_length", self.document_length, counts.length, "documents have")
        return counts

    def _topics(self) -> Topics:
        from pgmpy_dp.inference.topics import Topics  # imports numba

        check_is_fitted(self)
        return Topics(self.components_, np.full(self.components_.shape[0], self.doc_topic_prior_))

    def _public(self, counts: Any) -> sparse.csr_array:
        check_is_fitted(self)
        require_public(counts, "documents")
        columns = np.shape(counts)[-1:]
        if len(np.shape(counts)) == 2 and columns != (self.n_features_in_,):
            raise SchemaError(
                f"X has {columns[0]} features, but {type(self).__name__} is expecting {self.n_features_in_} features "
                f"as input: the topics are over {self.n_features_in_} words."
            )
        return checked_counts(validate_data(self, counts, reset=False, accept_sparse=True, dtype=None))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = tags.input_tags.positive_only = True
        return tags
