"""Fig. 1 and Tables 1 and 2 of Chowdhury, Rekatsinas and Jha (2020) ask whether data-dependent budgets pay."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.estimators import MaximumLikelihood, PrivateMLE
from pgmpy_dp.evaluation import inference_error_bounds, kl_divergence, mu_score
from pgmpy_dp.experiments.drawing import plot_quartiles
from pgmpy_dp.experiments.populations import bnlearn_network, marginals, random_variables
from pgmpy_dp.experiments.runner import Experiment
from pgmpy_dp.networks import simulate
from pgmpy_dp.privacy import PrivacyBudget, SimulatedNoise
from pgmpy_dp.schema import Schema

NETWORKS = ("asia", "sachs", "child", "alarm")
RECORDS = 10_000
EPSILONS = (1.0, 1.5, 2.0, 2.5, 3.0)
FLOOR = 1e-6  # of probabilities in divergences: read as in the paper, many are zero
METHODS: dict[str, dict[str, Any]] = {
    "D-Ind": {"tables": "paper", "allocation": "uniform"},
    "data-dependent": {"tables": "paper", "allocation": "data_dependent"},
    "default": {},
}
ERRORS = {"parameters": "parameters", "marginals": "marginal queries", "conditionals": "conditional queries"}
RESULTS = ("method", *ERRORS, *(f"{error}_kl" for error in ERRORS), "map_accuracy", "mu", "joint_kl")


def trials(quick: bool) -> list[dict[str, Any]]:
    """List data sets of each network at each epsilon."""
    sets = range(2 if quick else 10)
    epsilons = EPSILONS[::4] if quick else EPSILONS
    return [{"network": n, "epsilon": e, "set": s} for n in NETWORKS for e in epsilons for s in sets]


def run(network: str, epsilon: float, set: int) -> list[dict[str, Any]]:
    """Make one row a method."""
    logging.getLogger("pgmpy").setLevel(logging.ERROR)
    truth = bnlearn_network(network)
    records = simulate(truth, RECORDS, seed=set)
    schema = Schema.from_model(truth)
    exact = _fit(truth, records, MaximumLikelihood(state_names=schema))
    rows = []
    for method, options in METHODS.items():
        data = PrivateDataset(records, schema, PrivacyBudget(epsilon), noise=SimulatedNoise([set, int(10 * epsilon)]))
        fitted = _fit(truth, data, PrivateMLE(epsilon, **options))
        rows.append({"method": method, **_errors(exact, fitted, seed=set), "joint_kl": _joint(truth, fitted)})
    return rows


def _fit(truth: DiscreteBayesianNetwork, data: Any, estimator: Any) -> DiscreteBayesianNetwork:
    network = DiscreteBayesianNetwork(truth.edges())
    network.add_nodes_from(truth.nodes())
    return network.fit(data, estimator=estimator)


def _errors(exact: DiscreteBayesianNetwork, fitted: DiscreteBayesianNetwork, seed: int) -> dict[str, float]:
    """Compare with the fit without noise: rows of CPDs, ten marginal, ten conditional and twenty MAP queries."""
    parameters = [  # parents have one order in all estimators: one column a configuration
        pair
        for node in exact.nodes()
        for pair in zip(exact.get_cpds(node).get_values().T, fitted.get_cpds(node).get_values().T, strict=True)
    ]
    sets = random_variables(exact, [1, 2] * 5 + [2, 3] * 5, seed)
    answers = list(zip(marginals(exact, sets), marginals(fitted, sets), strict=True))
    plain = [(p.ravel(), q.ravel()) for p, q in answers[:10]]
    # These are given the other variables of a set, in their most probable states.
    given = [(_given(p, p), _given(p, q)) for p, q in answers[10:]]
    bounds = inference_error_bounds(exact, fitted)
    errors: dict[str, float] = {}
    for name, held in (("parameters", parameters), ("marginals", plain), ("conditionals", given)):
        errors[name] = float(np.mean([np.abs(p - q).sum() for p, q in held]))
        errors[f"{name}_kl"] = float(np.mean([_divergence(p, q) for p, q in held]))
    errors["mu"] = float(np.mean([mu_score(float(np.abs(p - q).sum()), bounds) for p, q in [*plain, *given]]))
    errors["map_accuracy"] = _map_accuracy(exact, fitted, seed)
    return errors


def _given(reference: np.ndarray, joint: np.ndarray) -> np.ndarray:
    evidence = np.unravel_index(reference.sum(axis=0).argmax(), reference.shape[1:])
    column = joint[(slice(None), *evidence)]
    return np.asarray(column / max(column.sum(), 1e-300))


def _divergence(p: np.ndarray, q: np.ndarray) -> float:
    held = p > 0
    return float((p[held] * np.log(p[held] / np.maximum(q[held], FLOOR))).sum())


def _map_accuracy(exact: DiscreteBayesianNetwork, fitted: DiscreteBayesianNetwork, seed: int) -> float:
    """Compute the share of queries, one to four variables given one to four, answered as by the exact fit."""
    sets = random_variables(exact, [2, 4, 6, 8] * 5, 1000 + seed)
    eliminations = VariableElimination(exact), VariableElimination(fitted)
    records = simulate(exact, len(sets), seed=2000 + seed)  # this evidence occurs
    agreed = 0
    for variables, (_, record) in zip(sets, records.iterrows(), strict=True):
        half = len(variables) // 2
        evidence = {v: record[v] for v in variables[half:]}
        first, second = (e.map_query(variables[:half], evidence, show_progress=False) for e in eliminations)
        agreed += first == second
    return agreed / len(sets)


def _joint(truth: DiscreteBayesianNetwork, fitted: DiscreteBayesianNetwork) -> float:
    """Compute KL(true || fitted) of the joint distributions, probabilities floored."""
    floored = fitted.copy()
    for cpd in floored.get_cpds():
        cpd.values = np.maximum(cpd.values, FLOOR)
        cpd.normalize()
    return kl_divergence(truth, floored)


def figure(rows: pd.DataFrame) -> Figure:
    """Draw a row of panels a network: three kinds of L1 error and the accuracy of MAP queries."""
    drawn = Figure(figsize=(12.6, 2.6 * len(NETWORKS)), layout="constrained")
    panels = drawn.subplots(len(NETWORKS), 4, squeeze=False, sharex=True)
    for line, network in zip(panels, NETWORKS, strict=True):
        held = rows[rows["network"] == network]
        for axes, (column, label) in zip(line, [*ERRORS.items(), ("map_accuracy", "MAP queries")], strict=True):
            wide = held.pivot(index=["epsilon", "set"], columns="method", values=column).reset_index()
            plot_quartiles(axes, wide, "epsilon", list(METHODS))
            axes.set_title(f"{network}: {label}", fontsize=9)
            axes.set_ylim(bottom=0)
        line[3].set_ylim(min(0.7, 0.95 * held["map_accuracy"].min()), 1.02)
        line[0].set_ylabel("mean L1 error")
        line[3].set_ylabel("share right")
    for axes in panels[-1]:
        axes.set_xlabel("epsilon")
    handles, labels = panels[0][0].get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False)
    return drawn


def caption(rows: pd.DataFrame) -> str:
    """Write claim, outcome and reasons."""
    least, most = rows["epsilon"].min(), rows["epsilon"].max()
    means = rows.groupby(["network", "epsilon", "method"])[[*ERRORS, "map_accuracy", "mu", "joint_kl"]].mean()
    parts = []
    for network in NETWORKS:
        one = means.loc[network, least]
        parts.append(
            f"{network} "
            + " / ".join(f"{one.loc[method, 'parameters']:.3g}" for method in METHODS)
            + f", D-Ind at {most:g} {means.loc[(network, most, 'D-Ind'), 'parameters']:.3g}"
        )
    wins = {
        error: sum(
            bool(means.loc[(n, e, "data-dependent"), error] < means.loc[(n, e, "D-Ind"), error])
            for n, e in rows[["network", "epsilon"]].drop_duplicates().itertuples(index=False)
        )
        for error in ERRORS
    }
    cells = len(means) // len(METHODS)
    better = ", ".join(f"{wins[error]} of {cells} cells ({label})" for error, label in ERRORS.items())
    at_least = "; ".join(parts)
    accuracy = "; ".join(
        f"{n} " + " / ".join(f"{means.loc[(n, least, m), 'map_accuracy']:.2f}" for m in METHODS) for n in NETWORKS
    )
    mu = "; ".join(f"{n} " + " / ".join(f"{means.loc[(n, least, m), 'mu']:.2g}" for m in METHODS) for n in NETWORKS)
    joint = "; ".join(
        f"{n} " + " / ".join(f"{means.loc[(n, least, m), 'joint_kl']:.3g}" for m in METHODS) for n in NETWORKS
    )
    return f"""
        Error of networks fitted from {RECORDS:,} records, against the fit without noise: rows of CPDs, ten
        marginal and ten conditional queries, share of twenty MAP queries answered alike. Medians and quartiles
        of {rows["set"].nunique()} data sets. D-Ind: two tables a family, equal budgets. Data-dependent: the
        paper's two stages. Default: PrivateMLE as it comes.

        The paper (Chowdhury et al. 2020): the data-dependent scheme has strictly lower error than D-Ind, as low
        at epsilon 1 as D-Ind at 3 (Fig. 1); at epsilon 1 MAP accuracy rises from .79-.89 to .86-1 (Table 1); mu
        falls (Table 2).

        Here: mean L1 error of the parameters at epsilon {least:g}, D-Ind / data-dependent / default:
        {at_least}. The data-dependent scheme is the better of the first two in {better}. MAP accuracy
        at epsilon {least:g}: {accuracy}. mu: {mu}. Joint KL from the generating network: {joint}.

        Why they differ: (1) a first stage on a sample has more relative noise than the same budget spent on all
        records, for every sampling rate; (2) by the paper's formula the sensitivity of a node is a constant of
        the graph, so it carries no information of the data; (3) the weights favour nodes near the root, whose
        tables are small and need little; (4) of two tables a family the parents' cancels when CPD rows are
        normalised, and half of the budget with it. The paper does not state the first stage's share nor its
        sampling rate (here .1 and .1). The default measures one table a family, with shares by its cells.
    """


ALLOCATIONS = Experiment(trials, run, RESULTS, figure, caption)
