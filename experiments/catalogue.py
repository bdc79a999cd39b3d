"""The papers' experiments, one per module, with a common runner. Noise is simulated: nothing is private.

Trials run in separate processes, which import only this module before they set their number of threads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import Any

# Module and title of each experiment by name; modules are imported when an experiment runs.
CATALOGUE = {
    "cgm-chain": (
        "cgm_divergence:CHAIN",
        "KL against N and epsilon, third-order chain (Bernstein et al. 2017, Fig. 2 a-d)",
    ),
    "cgm-er": ("cgm_divergence:RANDOM_GRAPH", "the same on an Erdos-Renyi graph (Fig. 2 e-h)"),
    "cgm-pathologies": ("cgm_pathologies:PATHOLOGIES", "what is wrong with naive likelihood (Fig. 1 a-c)"),
    "cgm-scatter": ("cgm_scatter:SCATTER", "true and learned edge marginals (Fig. 3 a)"),
    "cgm-mobility": ("cgm_mobility:MOBILITY", "tied chain of places, held-out likelihood (Fig. 3 b), simulated visits"),
    "dd-networks": (
        "dd_networks:ALLOCATIONS",
        "data-dependent budgets (Chowdhury et al. 2020, Fig. 1, Tables 1 and 2)",
    ),
    "bayes-naive": ("bayes_naive:NAIVE_BAYES", "naive Bayes from private posteriors (Zhang et al. 2016, Fig. 2)"),
    "bayes-linear": ("bayes_linear:LINEAR", "linear regression drawn from its posterior (Fig. 2, right)"),
    "vips-lda": ("vips_lda:TOPIC_MODEL", "private topics (Foulds et al., VIPS, Fig. 2 and Table 1)"),
    "vips-logistic": ("vips_logistic:LOGISTIC", "private logistic regression beside DP-SGD (VIPS, full version)"),
    "vips-sbn": ("vips_sbn:SIGMOID", "private sigmoid belief networks beside DP-SGD (VIPS, full version)"),
    "coverage": ("coverage:COVERAGE", "how often bounds of answers hold, and how wide they are"),
    "peers": ("peers:PEERS", "speed and memory beside mbi; needs the extra bench"),
}


def start() -> None:
    """Limit the process to one thread without progress bars, by variables that libraries read on import."""
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1", TQDM_DISABLE="1")


def load(name: str) -> Any:
    """Load an experiment by its name in the catalogue."""
    module, _, attribute = CATALOGUE[name][0].partition(":")
    return getattr(import_module(f"{__package__}.{module}"), attribute)


def run_trial(name: str, trial: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Run one trial in the current process."""
    try:
        rows: list[dict[str, Any]] = load(name).run(**trial)
    except ValueError as error:
        raise ValueError(f"{name}, trial {dict(trial)}: {error}") from error
    return rows
