"""Names of version 0.3 that are gone, with what takes their place; `docs/from_0_3.md` has all that changed."""

from __future__ import annotations

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
    """Hint at the replacement of a name of version 0.3, as the end of an error.

    Examples
    --------
    >>> instead("pgmpy_dp", "MaximumLikelihood")
    '; it is gone since 1.0: use NotPrivateMLE'
    """
    now = FORMER[room].get(name)
    return f"; it is gone since 1.0: use {now}" if now else ""
