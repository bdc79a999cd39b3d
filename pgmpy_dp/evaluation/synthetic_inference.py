"""Combination of estimates from several synthetic data sets into one estimate with a valid interval."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.models.fitted import check_interval
from pgmpy_dp.privacy.checks import number


def combine(
    estimates: Any, variances: Any, *, n: float, n_synthetic: float, interval: float = 0.95, null: float = 0.0
) -> pd.DataFrame:
    """Combine estimates from synthetic data sets, each drawn from a different draw of the posterior.

    The variance of an estimate from one synthetic data set ignores the privacy noise and the sampling from a model. The
    spread of estimates between data sets, drawn by ``network.simulate(n_synthetic, data_sets=20)``, shows both.

    Parameters
    ----------
    estimates : sequence of float, of arrays or of Series, one per data set
        Estimates of the same quantities, such as the coefficients of a regression.
    variances : as `estimates`
        Squared standard errors from each data set.
    n : float
        Number of records; if it is private, its estimate ``release.total``.
    n_synthetic : float
        Number of records of each synthetic data set.
    interval : float in (0, 1)
        Confidence level of the intervals.
    null : float
        Value under the null hypothesis of `p_value`.

    Returns
    -------
    DataFrame
        One row per quantity, with the columns `estimate`, `standard_error`, `degrees_of_freedom`, `lower`, `upper`
        and `p_value` (two-sided, by Student's t).

    Raises
    ------
    ValueError
        If there are fewer than two data sets, or an estimate or a variance is missing or not finite.

    Notes
    -----
    With the mean q and the variance b of m estimates, and the mean u of their variances, the variance of q is
    T = (1 + 1/m) b - u, with (m - 1) (1 - u / ((1 + 1/m) b))^2 degrees of freedom. Where T is not positive it is
    replaced by u n_synthetic / n, the variance that n records would give without noise, with m - 1 degrees of freedom.
    With many more synthetic than private records, u is small, T is stable and intervals are short.

    The intervals assume that the network's structure and the analyst's model are correct.

    Source: Raghunathan, Reiter and Rubin (2003), "Multiple imputation for statistical disclosure limitation"; Räisä,
    Jälkö, Kaski and Honkela (2023), "Noise-aware statistical inference with differentially private synthetic data".

    Examples
    --------
    >>> found = combine([0.52, 0.47, 0.55, 0.49], [1e-4] * 4, n=1000, n_synthetic=5000)
    >>> found.round(3).loc[0, ["estimate", "standard_error", "lower", "upper"]].tolist()
    [0.508, 0.038, 0.377, 0.638]
    """
    from scipy.stats import t as student

    values, squares = _table("estimates", estimates), _table("variances", variances)
    if values.shape != squares.shape or len(values) < 2:
        raise ValueError("Give an estimate and a variance for each of at least two data sets.")
    if (squares < 0).to_numpy().any():
        raise ValueError("variances must not be negative: they are squared standard errors.")
    for name, value in (("n", n), ("n_synthetic", n_synthetic)):
        number(above=0.0)(name, value)
    check_interval(interval)
    count, within = len(values), squares.mean().to_numpy()
    between = (1.0 + 1.0 / count) * values.var(ddof=1).to_numpy()
    total = between - within
    valid = total > 0
    total = np.where(valid, total, within * n_synthetic / n)
    freedom = (count - 1) * np.where(valid, 1.0 - within / np.where(valid, between, 1.0), 1.0) ** 2
    estimate, error = values.mean().to_numpy(), np.sqrt(total)
    half = student.ppf(0.5 + interval / 2, freedom) * error
    with np.errstate(divide="ignore", invalid="ignore"):
        beyond = np.abs(estimate - null) / error
    columns = {
        "estimate": estimate,
        "standard_error": error,
        "degrees_of_freedom": freedom,
        "lower": estimate - half,
        "upper": estimate + half,
        "p_value": 2.0 * student.sf(beyond, freedom),
    }
    return pd.DataFrame(columns, index=values.columns)


def _table(name: str, values: Any) -> pd.DataFrame:
    """Tabulate finite numbers, one row per data set and one column per quantity."""
    parts = [values.loc[label] for label in values.index] if isinstance(values, pd.DataFrame) else list(values)
    rows = [part if isinstance(part, pd.Series) else np.atleast_1d(np.asarray(part, dtype=float)) for part in parts]
    if len({np.shape(row) for row in rows}) > 1 or any(np.ndim(row) != 1 for row in rows):
        raise ValueError(f"{name} must hold the same quantities for each data set.")
    table = pd.DataFrame(rows).reset_index(drop=True).astype(float)
    if not np.isfinite(table.to_numpy()).all():
        raise ValueError(f"{name} must be finite numbers, one a quantity and data set.")
    return table
