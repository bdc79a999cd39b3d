"""Mixing of a Markov chain: R-hat and effective sample sizes."""

from __future__ import annotations

import numpy as np

from pgmpy_dp.inference.tables.layout import Vector

# A mean is uncertain if it has at least this standard error and fewer than this share of effective draws.
UNCERTAIN = (0.05, 0.25)


def mixing(draws: Vector) -> tuple[Vector, Vector]:
    """Compare the halves of one chain, and sum its autocorrelations (Vehtari and others 2021, without ranks).

    Parameters
    ----------
    draws : ndarray of shape (draws, quantities)
        In the order of the chain; at least 8 draws.

    Returns
    -------
    r_hat, effective : ndarray of shape (quantities,)
        For a quantity that never changes, R-hat is 1 and all draws are effective.

    Examples
    --------
    >>> generator = np.random.default_rng(0)
    >>> steps = generator.standard_normal((4000, 2))
    >>> for number in range(1, 4000):
    ...     steps[number, 1] += 0.8 * steps[number - 1, 1]  # worth a ninth of independent draws
    >>> r_hat, effective = mixing(steps)
    >>> [bool(effective[0] > 3000), bool(300 < effective[1] < 600), bool((r_hat < 1.02).all())]
    [True, True, True]
    >>> drifting = steps + np.linspace(0, 4, 4000)[:, None]
    >>> bool((mixing(drifting)[0] > 1.1).all())
    True
    """
    size = len(draws) // 2
    halves = np.stack([draws[:size], draws[size : 2 * size]])
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * size, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, axis=1)[:, :size].mean(axis=0) / size
    within = covariance[0] * size / (size - 1)
    pooled = covariance[0] + halves.mean(axis=1).var(axis=0, ddof=1)
    moving = within > 1e-300
    within, pooled = np.where(moving, within, 1.0), np.where(moving, pooled, 1.0)
    correlation = 1 - (within - covariance) / pooled
    correlation[0] = 1.0
    pairs = correlation[0 : size - 1 : 2] + correlation[1:size:2]
    pairs = np.minimum.accumulate(np.where(np.logical_and.accumulate(pairs > 0, axis=0), pairs, 0.0), axis=0)
    worth = 2 * size / np.maximum(2 * pairs.sum(axis=0) - 1, 0.5)
    return np.where(moving, np.sqrt(pooled / within), 1.0), np.where(moving, worth, float(len(draws)))


def uncertain(shares: Vector, error: float, effective_share: float) -> str:
    """Describe the probability with the most uncertain mean; empty if all are known well enough.

    Parameters
    ----------
    shares : ndarray of shape (draws, probabilities)
    error, effective_share : float
        A mean is uncertain if it has at least this standard error and fewer than this share of effective draws.

    Examples
    --------
    >>> drifting = np.linspace(0.2, 0.6, 200)[:, None]
    >>> uncertain(drifting, *UNCERTAIN)
    'has a standard error of 0.11 (R-hat 2.63, 1 effective draws)'
    """
    r_hat, effective = mixing(shares)
    errors = np.where(effective < effective_share * len(shares), shares.std(axis=0) / np.sqrt(effective), 0.0)
    worst = int(errors.argmax())
    if errors[worst] < error:
        return ""
    return (
        f"has a standard error of {errors[worst]:.2f} (R-hat {r_hat[worst]:.2f}, "
        f"{effective[worst]:.0f} effective draws)"
    )
