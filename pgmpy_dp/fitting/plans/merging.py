"""Merging of the rare states of a variable, by a noisy table."""

from __future__ import annotations

from typing import Any

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.release import NoisyMarginals
from pgmpy_dp.schema import Hierarchy, Schema, State


def merge_rare_states(
    release: NoisyMarginals, variable: str, coarser: str, *, rest: State = "rare", deviations: float = 3.0
) -> Schema:
    """Define a coarser variable with the states that stand out from the noise, and one state for all others.

    The schema has a :class:`~pgmpy_dp.Hierarchy` between the two. Measure pairs under it, and fit both releases:
    answers and synthetic records have all states again, with the rare ones by their shares in the noisy table. All of
    this is post-processing (McKenna, Miklau and Sheldon 2021 merge counts below three standard deviations). Guarantees
    of what is measured under the schema include the release's, since its states depend on it; together both count it
    once.

    Parameters
    ----------
    release : NoisyMarginals
        With the table of the variable, or larger ones.
    variable : str
    coarser : str
        Name of the coarser variable, which the schema must not have.
    rest : state
        Its state for all rare ones.
    deviations : float
        A state is rare if its noisy count is below this number of standard deviations of the noise.

    Returns
    -------
    Schema

    Raises
    ------
    SchemaError
        If the schema has a variable of this name, or a frequent state is named like `rest`.
    ValueError
        If no table contains the variable, or the number of deviations is not positive.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"place": ["Ulm"] * 5000 + ["Bonn"] * 4000 + ["Kiel", "Trier"]})
    >>> budget = dp.PrivacyBudget(2.0)
    >>> data = dp.PrivateDataset(records, dp.Schema({"place": ["Bonn", "Kiel", "Trier", "Ulm"]}), budget)
    >>> places = data.measure([("place",)], epsilon=0.5)
    >>> schema = dp.merge_rare_states(places, "place", "area", deviations=50)
    >>> schema.states["area"]
    ('Bonn', 'Ulm', 'rare')
    """
    exact_positive("deviations", deviations)
    schema = release.schema
    if coarser in schema.states or coarser in schema.bounds:
        raise SchemaError(f"The schema has a variable {coarser!r}: give the coarser variable another name.")
    counts, variance = release.marginal((variable,))
    rare = counts < deviations * variance**0.5
    states = schema.states[variable]
    frequent = [state for state, is_rare in zip(states, rare.tolist(), strict=True) if not is_rare]
    merged = {state: rest if is_rare else state for state, is_rare in zip(states, rare.tolist(), strict=True)}
    declared: dict[str, Any] = dict(schema.declared)
    declared[coarser] = [*frequent, rest] if rare.any() else frequent
    rules = (*schema.rules, Hierarchy(variable, coarser, merged, column=False, found=release.guarantee))
    return schema.replace(variables=declared, rules=rules, found={**schema.found, coarser: release.guarantee})
