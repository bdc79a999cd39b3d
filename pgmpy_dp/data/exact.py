"""Exact counts without privacy, for baselines and tests."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from pgmpy_dp.records import open_records
from pgmpy_dp.records.memory import require_countable
from pgmpy_dp.release import Guarantee, NoisyMarginals
from pgmpy_dp.schema import Schema


def exact_marginals(records: Any, schema: Schema, cliques: Iterable[Iterable[str]]) -> NoisyMarginals:
    """Count the cliques without noise. NOT PRIVATE: the result states so and cannot be saved.

    Parameters
    ----------
    records : frame, array, path or mapping
        One row per record; see :class:`PrivateDataset`.
    schema : Schema
    cliques : iterable of iterables of str

    Returns
    -------
    NoisyMarginals
        With mechanism "none", infinite epsilon, private False and scales 0.

    Raises
    ------
    SchemaError
        If records or cliques do not match the schema.

    Examples
    --------
    >>> import pandas
    >>> records = pandas.DataFrame({"smoke": ["yes", "no", "no"]})
    >>> exact_marginals(records, Schema({"smoke": ["yes", "no"]}), [("smoke",)]).tables[("smoke",)].tolist()
    [1, 2]
    """
    checked = schema.require(cliques)
    for clique in checked:
        require_countable(schema, clique)
    variables = dict.fromkeys(variable for clique in checked for variable in clique)
    tables = open_records(records, schema, variables).counts(checked)
    guarantee = Guarantee.of(math.inf, mechanism="none", private=False)
    return NoisyMarginals(schema, tables, dict.fromkeys(checked, 0.0), guarantee)
