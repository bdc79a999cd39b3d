"""A mixture as a Bayesian network: a latent root with every block below it."""

from __future__ import annotations

from typing import Any

import numpy as np
from pgmpy.factors.discrete import TabularCPD

from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.mixtures.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork

_COMPONENT = "component"
# Maximum number of cells of a joint table with the latent root, since pgmpy's inference multiplies these tables.
_MAX_CELLS = 2**26


def latent_root_network(model: PrivateMixtureNetwork) -> PrivateBayesianNetwork:
    """Convert a mixture to a Bayesian network; errors as in `PrivateMixtureNetwork.to_bayesian_network`."""
    mixture, schema = model.mixture_, model.schema_
    states, root = schema.state_names, _COMPONENT
    while root in states:
        root += "_"
    count = mixture.weights.size
    if count * max(schema.cells(block) for block in mixture.blocks) > _MAX_CELLS:
        raise ValueError("A CPD would have more than 67 million cells: fit fewer components or members.")
    names: dict[str, list[Any]] = {**states, root: list(range(count))}
    cpds: list[TabularCPD] = []

    def add(variable: str, values: Vector, *parents: str) -> None:
        sizes = [len(names[parent]) for parent in parents]
        kept = {name: names[name] for name in (variable, *parents)}
        cpds.append(TabularCPD(variable, len(values), values, list(parents), sizes, state_names=kept))

    add(root, mixture.weights[:, None])
    for block, table in zip(mixture.blocks, mixture.tables, strict=True):
        for position, variable in enumerate(block):
            known = table.sum(axis=tuple(range(position + 2, table.ndim)))
            whole = known.sum(axis=-1, keepdims=True)
            rows = np.where(whole > 0, known / np.where(whole > 0, whole, 1.0), 1.0 / known.shape[-1])
            add(variable, np.moveaxis(rows, -1, 0).reshape(rows.shape[-1], -1), root, *block[:position])
    for variable, child in mixture.children.items():
        if child.states * len(names[child.parent]) > _MAX_CELLS:
            raise ValueError(
                f"The CPD of {variable!r} given {child.parent!r} would have more than 67 million cells, as pgmpy's are "
                "dense: ask the mixture itself, which holds no such table."
            )
        values = child.shares.toarray().T
        values[:, ~values.any(axis=0)] = 1 / child.states  # of impossible states of the parent
        add(variable, values, child.parent)
    edges = [(parent, cpd.variable) for cpd in cpds for parent in cpd.variables[1:]]
    network = PrivateBayesianNetwork(edges, latents={root})
    network.add_cpds(*cpds)
    network.check_model()
    network._note_states(schema.found)
    network._set(guarantee=model.guarantee_, declared=(schema,))
    return network
