"""Names: the one that an unknown name is close to, what takes the place of former ones, and how names are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any

public: Callable[[str], Any]  # finds what has a public name, for rooms below it; the package registers it

_LONGEST, _MAX = 100, 2000  # comparing names takes time of the square of their length


def closest(name: Any, known: Iterable[Any]) -> str | None:
    """Find the known name that is close to another, if there is one."""
    if not isinstance(name, str) or len(name) > _LONGEST:
        return None
    names = [own for own in known if isinstance(own, str) and len(own) <= _LONGEST][:_MAX]
    same = (own for own in names if own.casefold() == name.casefold())  # in another case
    return next(same, None) or next(iter(get_close_matches(name, names, n=1)), None)


def suggestion(name: Any, known: Iterable[Any]) -> str:
    """Return the question whether a known name was meant, if one is close, as the end of a message."""
    close = closest(name, known)
    return f" Did you mean {close!r}?" if close else ""


def printable(text: str) -> str:
    """Escape characters that move a cursor, hide or reverse a text: names come from files of others."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


# Names of version 0.3 that are gone, with what takes their place; `docs/from_0_3.md` has all that changed.
_JUDGES = "evaluation.compare, which judges synthetic records against the release"
_PAPERS = (
    "StochasticLipschitz conditional_errors count_error_bound divergence_bound exponential_map_failure "
    "fourier_marginal_bound inference_error_bounds joint_stochastic_lipschitz map_agreement marginal_errors mu_score "
    "parameter_errors posterior_divergence stochastic_lipschitz_bound"
)
FORMER = {
    "pgmpy_dp": {
        "AutoModel": "PairwiseMixture, or PrivateStructureSearch where a sparse graph is to be expected",
        "MaximumLikelihood": "NotPrivateMLE",
        **dict.fromkeys(("acceptance", "CheckedRecords", "LargestError", "PredictionError", "UniqueMatches"), _JUDGES),
    },
    "pgmpy_dp.evaluation": {
        **{name: f"pgmpy_dp.papers.{name}" for name in _PAPERS.split()},
        "DivergenceBound": "what pgmpy_dp.papers.divergence_bound returns",
        "ErrorBounds": "what pgmpy_dp.papers.inference_error_bounds returns",
        "QueryErrors": "what pgmpy_dp.papers.conditional_errors returns",
        "not_private_grid_search": "experiments.tuning, in a checkout",
        "NotPrivateSearch": "experiments.tuning, in a checkout",
    },
    "pgmpy_dp.plotting": {
        "plot_allocation": 'estimator.allocation_["share"].plot.barh()',
        "plot_divergence": "pandas' plot(loglog=True)",
    },
}


def instead(room: str, name: str) -> str:
    """Hint at the replacement of a name of version 0.3, as the end of an error."""
    now = FORMER[room].get(name)
    return f"; it is gone since 1.0: use {now}" if now else ""
