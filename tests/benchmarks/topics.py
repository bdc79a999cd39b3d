"""A private topic model at full size: 20,000 documents, 8,000 words, 50 topics, one epoch.

    python tests/benchmarks/topics.py [--sklearn]

Wanted: below ten minutes on two cores and below 2 GB. Prints the paper's epsilon beside what holds for its noise; then
seconds (by the clock, and of processors together) and peak memory of a fit with private noise, and held-out
perplexities: all documents alike (exact), the private topics at epsilon = 1, and the same steps with little noise.
Documents are simulated from 50 topics. --sklearn adds scikit-learn's online algorithm, which is not private, and the
ratio of times.
"""

import math
import time

import numpy as np
from common import options, peak_megabytes
from scipy import sparse
from sklearn.decomposition import LatentDirichletAllocation

import pgmpy_dp as dp
from pgmpy_dp import papers

DOCUMENTS, WORDS, TOPICS, LENGTH = 20_000, 8_000, 50, 500
STEPS, RATE, DELTA = 20, 0.05, 1e-6


def corpus(count: int, seed: int) -> sparse.csr_array:
    """Documents of topics whose words follow Zipf's law."""
    rng = np.random.default_rng(7)
    zipf = 1.0 / np.arange(1, WORDS + 1)
    topics = np.array([rng.dirichlet(np.maximum(300.0 * zipf / zipf.sum(), 1e-3)) for _ in range(TOPICS)])
    rng = np.random.default_rng(seed)
    parts = []
    for start in range(0, count, 500):
        shares = rng.dirichlet(np.full(TOPICS, 0.1), min(500, count - start))
        words = shares @ topics
        parts.append(sparse.csr_array(rng.multinomial(LENGTH, words / words.sum(axis=1, keepdims=True))))
    return sparse.csr_array(sparse.vstack(parts, format="csr"))


def reference() -> None:
    """The paper's setting: samples of 20,000 of 400,000 documents, 20 steps, noise of 1.24 document norms."""
    plan = {"steps": 20, "sampling_rate": 0.05, "sampling": "without_replacement"}
    paper = papers.price(1.24, 1e-4, **plan, accounting="moments")
    corrected = papers.price(1.24 / math.sqrt(2.0), 1e-4, **plan, accounting="moments")
    tight = papers.price(1.24 / math.sqrt(2.0), 1e-4, **plan)
    added = papers.price(1.24, 1e-4, **{**plan, "sampling": "poisson"})
    print(f"The paper's noise: epsilon {paper:.2f} as printed, {corrected:.2f} with the sensitivity of a replacement")
    print(f"  ({tight:.2f} by our conversion of the same bound); {added:.2f} for one added or removed, Poisson samples")


def main() -> None:
    asked = options(sklearn=False)
    reference()
    train, test = corpus(DOCUMENTS, 1), corpus(1_000, 2)
    share = np.asarray(test.sum(axis=0)).ravel() / test.sum()
    print(f"corpus in memory: peak {peak_megabytes():.0f} MB")
    print(f"all documents alike    perplexity {math.exp(-float(share[share > 0] @ np.log(share[share > 0]))):7.1f}")
    plan = {"steps": STEPS, "sampling_rate": RATE, "document_length": LENGTH}
    start, working = time.perf_counter(), time.process_time()
    lda = dp.PrivateLDA(TOPICS, 1.0, DELTA, **plan).fit(train)
    seconds, private = time.perf_counter() - start, time.process_time() - working
    peak = peak_megabytes()
    print(
        f"PrivateLDA epsilon 1   perplexity {lda.perplexity(test):7.1f}   {seconds:.0f} s, "
        f"of one core {private:.0f} s, peak {peak:.0f} MB"
    )
    budget = dp.PrivacyBudget(1e9, 0.5)
    documents = dp.PrivateDocuments(train, [str(word) for word in range(WORDS)], budget, LENGTH)
    quiet = dp.PrivateLDA(TOPICS, None, 0.01, STEPS, RATE, noise_multiplier=0.3).fit(documents)
    print(f"the same, little noise perplexity {quiet.perplexity(test):7.1f}")
    if asked.sklearn:
        batch = int(RATE * DOCUMENTS)
        working = time.process_time()
        peer = LatentDirichletAllocation(
            TOPICS, learning_method="online", max_iter=1, batch_size=batch, random_state=0
        ).fit(train)
        seconds = time.process_time() - working
        lda.components_ = peer.components_
        print(
            f"scikit-learn, online   perplexity {lda.perplexity(test):7.1f}   of one core {seconds:.0f} s, "
            f"ratio {private / seconds:.2f}"
        )


if __name__ == "__main__":
    main()
