"""Black-box audit: does `measure` tell two neighbouring data sets apart more than epsilon allows?

The event and the direction are chosen on the first half of the outputs; on the second half, Clopper-Pearson
bounds give a lower bound of log(P(event | one) / P(event | other)) that exceeds the true epsilon with
probability at most FALSE_ALARM. So a correct release fails with at most that probability; noise at 0.7 times
its scale (epsilon 2.86 in truth) passes unnoticed with probability below 1e-4.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.privacy import OPENDP_NOISE, PrivacyBudget
from pgmpy_dp.schema import Schema

EPSILON = 2.0
RUNS = 2_800  # of each data set
FALSE_ALARM = 1e-6


class TooLittleNoise:
    """The planted bug."""

    private = True

    def discrete_laplace(self, counts, scale):
        return OPENDP_NOISE.discrete_laplace(counts, 0.7 * scale)

    discrete_gaussian = None


def outputs(records: int, noise) -> np.ndarray:
    schema = Schema({"v": ["x", "y"]})
    budget = PrivacyBudget(EPSILON * RUNS)
    data = PrivateDataset(pd.DataFrame({"v": ["x"] * records}), schema, budget, noise=noise)
    return np.array([data.measure([("v",)], EPSILON).tables["v",] for _ in range(RUNS)])


def lower_bound_of_epsilon(one: np.ndarray, other: np.ndarray) -> float:
    """Events: one cell at least, or at most, a threshold."""
    half = RUNS // 2

    def frequency(sample, event):
        cell, sign, threshold = event
        return int((sign * sample[:, cell] >= sign * threshold).sum())

    values = np.concatenate([one[:half], other[:half]])
    events = [
        (cell, sign, threshold)
        for cell in range(values.shape[1])
        for sign in (1, -1)
        for threshold in np.unique(values[:, cell])
    ]
    best = None
    for event in events:
        for p, q in ((one, other), (other, one)):
            hits, others = frequency(p[:half], event), frequency(q[:half], event)
            # Prefer events whose ratio is large and can be established: discount by about three standard
            # errors.
            score = np.log((hits + 1) / (others + 1)) - 3 * np.sqrt(1 / (hits + 1) + 1 / (others + 1))
            if best is None or score > best[0]:
                best = (score, event, p, q)
    assert best is not None
    _, event, p, q = best
    level = FALSE_ALARM / 2
    tested = RUNS - half
    hits, others = frequency(p[half:], event), frequency(q[half:], event)
    low = stats.beta.ppf(level, hits, tested - hits + 1) if hits else 0.0
    high = stats.beta.ppf(1 - level, others + 1, tested - others) if others < tested else 1.0
    return float(np.log(low / high)) if low else -np.inf


@pytest.mark.parametrize(("noise", "sound"), [(OPENDP_NOISE, True), (TooLittleNoise(), False)], ids=["sound", "bug"])
def test_a_sound_release_passes_and_a_planted_bug_fails(noise, sound):
    bound = lower_bound_of_epsilon(outputs(5, noise), outputs(6, noise))
    assert (bound <= EPSILON) is sound, f"lower bound of epsilon: {bound:.3f}, claimed: {EPSILON}"
