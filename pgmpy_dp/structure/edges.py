"""What a release tells of each edge of a network that was fitted to it."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pandas as pd

from pgmpy_dp.inference.tables.table import Table
from pgmpy_dp.models.trees.conditioning import Conditioning
from pgmpy_dp.networks import PrivateBayesianNetwork
from pgmpy_dp.observed.factors import families, log_linear
from pgmpy_dp.privacy.mechanisms import table_sensitivity
from pgmpy_dp.release import NoisyMarginals


def described(
    network: PrivateBayesianNetwork, release: NoisyMarginals, oriented: Collection[tuple[str, str]]
) -> pd.DataFrame:
    """Describe the edges: whether they are oriented, what they tell, how well they fit and what they cost.

    See `PrivateStructureSearch` for the columns.
    """
    scopes = families(network)
    layout, potentials, _ = log_linear(network, release.schema.states)
    flat = Conditioning(layout, release.schema).marginals([potentials], scopes)[0]
    sizes = [release.schema.cells(scope) for scope in scopes]
    tables = np.split(flat, np.cumsum(sizes)[:-1])
    rows = []
    for scope, values in zip(scopes, tables, strict=True):
        joint = Table(scope, values.reshape(release.schema.shape(scope)))
        for parent in scope[1:]:
            residual, cost = _measured(release, (scope[0], parent), joint)
            information = _information(joint, scope[0], parent)
            rows.append((parent, scope[0], (parent, scope[0]) in oriented, information, residual, cost))
    frame = pd.DataFrame(rows, columns=["parent", "child", "oriented", "information", "residual", "cost"])
    return frame.assign(found=np.nan, verdict="not repeated")


def _information(joint: Table[np.float64], child: str, parent: str) -> float:
    """Compute the conditional mutual information of child and parent given the other parents, in nats."""

    def entropy(variables: list[str]) -> float:
        shares = joint.margin(variables).values
        return -float((shares * np.log(np.where(shares > 0, shares, 1.0))).sum())

    others = [variable for variable in joint.variables if variable not in (child, parent)]
    found = entropy([child, *others]) + entropy([parent, *others]) - entropy([child, parent, *others]) - entropy(others)
    return max(found, 0.0)


def _measured(release: NoisyMarginals, pair: tuple[str, str], joint: Table[np.float64]) -> tuple[float, float]:
    """Compare the tables that hold a pair with the network, and sum what they cost."""
    share = joint.margin(pair).values
    expected, residuals, cost = release.total * share, [], 0.0
    one = table_sensitivity(release.guarantee.neighbours, "squared_l2" if release.guarantee.rho else "l1")
    for clique, table in release.tables.items():
        if set(pair) <= set(clique):
            seen = Table(clique, table).margin(pair).values
            variance = release.variances[clique] * table.size / seen.size + expected * (1 - share)
            residuals.append(float(((seen - expected) ** 2 / variance).mean()))
            scale = release.scales[clique]
            cost += one / scale**2 / 2 if release.guarantee.rho else one / scale
    return float(np.mean(residuals)) if residuals else np.nan, cost
