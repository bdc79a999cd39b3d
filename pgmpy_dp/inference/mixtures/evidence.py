"""Answers to evidence that rules allow, even if no component of a fitted mixture has it.

Components are confined to boxes of states. These cover every two states that rules allow together, but not every three.
If no box has the evidence, the release says nothing about what goes with it: variables are then assumed independent,
apart from the rules and the evidence.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.special import logsumexp

from pgmpy_dp.inference.mixtures.boxes import Boxes, Rules
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.layout import Variable

_TRIES = 20  # to find a record that obeys all rules


def conditioned(mixture: Mixture, rules: Rules, evidence: Mapping[Variable, int]) -> Mixture:
    """Return the mixture given evidence, over the same variables.

    Raises ValueError if the rules exclude the evidence.

    Examples
    --------
    >>> even = np.full((1, 2), 0.5)
    >>> mixture = Mixture.of({"a": 2, "b": 2}, [("a",), ("b",)], [1.0], [[[1.0, 0.0]], even])
    >>> rules = Rules(zeros=[(("a", "b"), np.array([[True, True], [True, False]]))])
    >>> conditioned(mixture, rules, {"a": 1}).marginal(["b"]).tolist()
    [1.0, 0.0]
    """
    if not evidence:
        return mixture
    if not rules.zeros or np.isfinite(mixture.log_evidence(evidence)):
        return mixture.condition(evidence)
    found = _independent(mixture, rules, evidence)
    if found is None:
        raise ValueError(f"evidence on {', '.join(map(repr, evidence))} has probability zero")
    return found.condition(evidence)


def _independent(mixture: Mixture, rules: Rules, evidence: Mapping[Variable, int]) -> Mixture | None:
    """Return components of independent variables that obey the rules and the evidence; None if there are none."""
    coarse, zeros = mixture.coarse, list(rules.zeros)
    for variable, state in evidence.items():
        if variable in mixture.refined:
            finer = mixture.refined[variable]
            variable, state = finer.coarser, int(finer.groups[state])
        zeros.append(((variable,), np.arange(coarse.cardinalities[variable]) == state))
    roots = coarse.roots
    blocks = [(variable,) for variable in roots.cardinalities]
    cells = [np.arange(states)[:, None] for states in roots.cardinalities.values()]
    boxes = Boxes(Rules(coarse.dependent, zeros), blocks, cells, coarse.cardinalities)
    # A state without mass in the mixture gets as much as the least that has some.
    shares = [np.maximum(share, share[share > 0].min()) for share in map(roots.marginal, blocks)]
    generator = np.random.default_rng(0)
    if not all(own.any() for own in boxes.possible) or not len(boxes.draw(shares, 1, generator, tries=_TRIES)[0]):
        return None
    tables = [share * box for share, box in zip(shares, boxes.cover(generator), strict=True)]
    masses = np.stack([table.sum(axis=1) for table in tables])
    logs = np.log(masses).sum(axis=0)
    scaled = [table / mass[:, None] for table, mass in zip(tables, masses, strict=True)]
    found = Mixture.of(coarse.cardinalities, blocks, np.exp(logs - logsumexp(logs)), scaled, coarse.dependent)
    return found.refine(mixture.cardinalities, mixture.refined) if mixture.refined else found
