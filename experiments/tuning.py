"""Grid search on the records themselves, which no privacy guarantee covers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from tqdm.auto import tqdm

from pgmpy_dp.data import PrivateDataset, PrivateDocuments


@dataclass(frozen=True)
class NotPrivateSearch:
    """Result of a grid search, which is NOT PRIVATE.

    Attributes
    ----------
    scores : DataFrame
        One row per setting, best first, with its options and `score`.
    best : dict
        Options of the best setting, as arguments for `set_params`.
    private : False
        Always.
    """

    scores: pd.DataFrame
    best: dict[str, Any]
    private: Literal[False] = False

    def __str__(self) -> str:
        return (
            f"NOT PRIVATE: best of {len(self.scores)} settings, chosen by {len(self.scores)} fits to the same records. "
            "The epsilon of a fit with these settings does not cover the choice."
        )

    __repr__ = __str__


def not_private_grid_search(
    estimator: Any,
    grid: Mapping[str, Sequence[Any]],
    model: Any,
    records: Any,
    score: Callable[[Any], float],
) -> NotPrivateSearch:
    """Fit every combination of options and rank them. NOT PRIVATE: for simulated or public records.

    Bernstein et al. (2017) choose sampling rates, clip norms, learning rates and numbers of steps of private gradient
    ascent in this way. Each fit is private by itself, but the comparison is not accounted for; it reveals more the more
    settings are tried.

    Parameters
    ----------
    estimator : estimator
        Estimator such as `PrivateSGD` or `PrivateVB`; cloned for each setting.
    grid : mapping of option to values
    model : network
        Copied for each setting.
    records : data frame
        Records with the estimator's own `state_names`. A `PrivateDataset` is refused.
    score : callable
        Maps a fitted network to a number, larger for better fits, such as
        ``lambda network: network.log_likelihood(test)``.

    Returns
    -------
    NotPrivateSearch

    Raises
    ------
    TypeError
        If `records` is a data set with a ledger.
    ValueError
        If an option has no values, or the estimator does not have the option.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> simulated = pd.DataFrame({"a": ["x", "y"] * 2000, "b": ["x", "y"] * 2000})
    >>> sgd = dp.papers.PrivateSGD(
    ...     1.0, 1e-6, {"a": ["x", "y"], "b": ["x", "y"]}, steps=20, sampling_rate=1.0, statistic="features"
    ... )
    >>> network = dp.PrivateMarkovNetwork([("a", "b")])
    >>> search = not_private_grid_search(
    ...     sgd, {"learning_rate": [0.01, 1.0]}, network, simulated, lambda network: network.log_likelihood(simulated)
    ... )
    >>> print(search)
    NOT PRIVATE: best of 2 settings, chosen by 2 fits to the same records. The epsilon of a fit ...
    >>> search.best, search.private
    ({'learning_rate': 1.0}, False)
    """
    if isinstance(records, (PrivateDataset, PrivateDocuments)):
        raise TypeError(
            "A grid search is not private: it takes simulated or public records, not a data set behind a ledger."
        )
    settings = list(ParameterGrid({name: list(values) for name, values in grid.items()}))
    scores = []
    for options in tqdm(settings, desc="Grid search, NOT PRIVATE", delay=1.0, disable=None):
        network = model.copy()
        network.fit(records, estimator=clone(estimator).set_params(**options))
        scores.append(float(score(network)))
    table = pd.DataFrame(settings).assign(score=scores).sort_values("score", ascending=False, ignore_index=True)
    return NotPrivateSearch(table, settings[int(np.argmax(scores))])
