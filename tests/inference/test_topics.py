"""Documents' topics: the compiled updates against plain numpy in log space, and against scikit-learn."""

import math

import numpy as np
import pytest
from scipy import integrate, sparse
from scipy.special import beta as beta_function
from scipy.special import logsumexp, psi
from sklearn.decomposition import LatentDirichletAllocation

from pgmpy_dp.inference.topics import ITERATIONS, TOLERANCE, Topics, _digamma


def documents(seed, size=7, words=9):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(1.0, (size, words)) * rng.integers(1, 5, (size, words))
    counts[2] = 0
    return counts


def plain(document, logs, prior):
    """Gamma and c_w phi_kw of one document, as the paper writes it."""
    gamma = prior + document.sum() / prior.size
    for _ in range(ITERATIONS):
        scores = psi(gamma)[:, None] + logs
        phi = np.exp(scores - logsumexp(scores, axis=0))
        new = prior + (document * phi).sum(axis=1)
        change, gamma = np.abs(new - gamma).mean(), new
        if change < TOLERANCE:
            break
    scores = psi(gamma)[:, None] + logs
    return gamma, document * np.exp(scores - logsumexp(scores, axis=0))


@pytest.mark.parametrize("x", [1e-6, 0.02, 0.5, 1.0, 3.7, 9.999, 10.0, 250.0, 1e8])
def test_digamma(x):
    assert _digamma(x) == pytest.approx(float(psi(x)), rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("prior", [0.3, 1e-3])
@pytest.mark.parametrize("smallest", [0.1, 1e-4])
def test_updates_are_those_of_the_paper(prior, smallest):
    """Small Dirichlet parameters drive all weights of a word below the range of floats, here in many places."""
    rng = np.random.default_rng(1)
    concentrations = np.where(rng.random((4, 9)) < 0.5, smallest, rng.gamma(2.0, 2.0, (4, 9)))
    alpha, counts = np.full(4, prior), documents(3)
    topics = Topics(concentrations, alpha)
    gamma, expected = topics.infer(sparse.csr_array(counts)), topics.expected_counts(sparse.csr_array(counts)).toarray()
    for number, document in enumerate(counts):
        wanted, words = plain(document, topics.expected_logs, alpha)
        assert gamma[number] == pytest.approx(wanted, rel=1e-7)
        assert expected[number].reshape(4, 9) == pytest.approx(words, abs=1e-7)
    assert (expected >= 0).all()
    assert expected.sum(axis=1) == pytest.approx(counts.sum(axis=1), rel=1e-12)
    assert gamma[2] == pytest.approx(alpha)  # without words


def test_a_document_does_not_depend_on_its_neighbours():
    counts = sparse.csr_array(documents(5))
    topics = Topics(np.random.default_rng(2).gamma(1.0, size=(3, 9)), np.full(3, 0.2))
    together = topics.expected_counts(counts).toarray()
    for number in range(counts.shape[0]):
        assert (topics.expected_counts(counts[[number]]).toarray() == together[number]).all()


def test_the_bound_is_one():
    """Two topics that are all but known, theta by quadrature."""
    beta = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    topics = Topics(1e7 * beta, np.full(2, 0.8))
    for document in ([3, 1, 0], [2, 2, 2], [0, 0, 9]):

        def density(theta):
            words = ((theta * beta[0] + (1 - theta) * beta[1]) ** np.array(document)).prod()
            return words * (theta * (1 - theta)) ** -0.2 / beta_function(0.8, 0.8)

        truth = math.log(integrate.quad(density, 0, 1)[0])
        bound = topics.bound(sparse.csr_array([document]))
        assert truth - 0.5 < bound < truth


def test_scikit_learn_agrees():
    counts = documents(8, 30, 40)
    concentrations = np.random.default_rng(4).gamma(0.5, 3.0, (5, 40)) + 0.1
    reference = LatentDirichletAllocation(
        5, doc_topic_prior=0.3, topic_word_prior=0.1, max_doc_update_iter=ITERATIONS, random_state=0
    ).fit(counts)
    reference.components_ = concentrations
    topics = Topics(concentrations, np.full(5, 0.3))
    reference.exp_dirichlet_component_ = np.exp(topics.expected_logs)
    bound = topics.bound(sparse.csr_array(counts)) - topics.divergence(0.1)
    assert math.exp(-bound / counts.sum()) == pytest.approx(reference.perplexity(counts), rel=1e-4)
