"""Comparison of synthetic records or a model with a release or with records, table by table."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pgmpy_dp.data import exact_marginals
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.observed.informed_marginals import ReleasedTables
from pgmpy_dp.records.frames import labelled
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.schema import Clique, Schema


def compare(
    reference: Any, synthetic: Any, schema: Schema | None = None, sizes: Iterable[int] = (1, 2)
) -> pd.DataFrame:
    """Compare synthetic records or a model with a release, or with the records themselves.

    Parameters
    ----------
    reference : NoisyMarginals, or records
        A comparison with a release is post-processing, so its result may be published. A comparison with records is NOT
        PRIVATE and for their owner only.
    synthetic : records, or a network with a method `marginal`
        Binned variables of a frame may be numbers, or bin labels as returned by `simulate`. Records may be a path,
        such as that of a file from ``pgmpy-dp synthesize``, in the format of the schema.
    schema : Schema, optional
        Schema of the records; not needed for a release, which has its own.
    sizes : iterable of int
        Numbers of variables in the compared tables of records; ``(1, 2, 3)`` includes all triples. Ignored for a
        release, whose own tables are compared.

    Returns
    -------
    pandas.DataFrame
        One row per table, the worst first.

        - error: total variation distance between the reference's and the synthetic shares, in [0, 1] up to noise.
        - noise: expected `error` from the release's noise alone; 0 for records.
        - excess: excess of the squared error over its expectation under noise alone, in standard deviations. A value
          above about 3 shows a lack of fit. NaN for records.

        `attrs["guarantee"]` is the guarantee of the reference.

    Raises
    ------
    SchemaError
        If records are given without a schema, or do not agree with it.
    ValueError
        If one side has no records.
    TypeError
        If the reference is a release without tables.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> found = compare(records, pd.DataFrame({"smoke": ["yes", "no"], "lung": ["yes", "no"]}), schema)
    >>> found["error"].round(3).to_dict()
    {('smoke', 'lung'): 0.25, ('lung',): 0.25, ('smoke',): 0.0}
    """
    if not isinstance(reference, ReleasedTables):
        if isinstance(reference, Release):
            raise TypeError(f"{type(reference).__name__} hold no tables with independent noise: test by check_fit().")
        if schema is None:
            raise SchemaError("Records are compared by a schema: compare(records, synthetic, schema).")
        cliques = [c for size in sizes for c in itertools.combinations(schema.variables, size)]
        reference = _counted(reference, schema, cliques)
    else:
        schema = reference.schema
    own = None
    if not hasattr(synthetic, "marginal"):
        own = _counted(synthetic, schema, reference.cliques)
    held = getattr(synthetic, "schema_", None)
    for variable in reference.variables:
        if held is not None and held.states.get(variable) != reference.schema.states[variable]:
            raise SchemaError(f"Variable {variable!r} has other states in the network, or in another order.")
    total, rows = reference.total, []
    whole = 1.0 if own is None else own.total
    for clique, table in reference.tables.items():
        shares = synthetic.marginal(list(clique)) if own is None else own.tables[clique] / whole
        apart, deviation = table - total * np.asarray(shares), reference.noise(clique)[1]
        squares = float((apart**2).sum()) / deviation**2 if deviation else math.nan
        rows.append(
            {
                "error": float(np.abs(apart).sum()) / (2.0 * total),
                "noise": table.size * deviation * math.sqrt(2.0 / math.pi) / (2.0 * total),
                "excess": (squares - table.size) / math.sqrt(2.0 * table.size),
            }
        )
    index = pd.Index(reference.cliques, tupleize_cols=False, name="variables")
    frame = pd.DataFrame(rows, index=index)
    order = "error" if reference.guarantee.mechanism == "none" else "excess"
    frame = frame.sort_values(order, ascending=False, kind="stable")
    frame.attrs["guarantee"] = str(reference.guarantee)
    return frame


def _counted(records: Any, schema: Schema, cliques: Sequence[Clique]) -> NoisyMarginals:
    """Count records; refuse an empty set."""
    found = exact_marginals(records, labelled(records, schema), cliques)
    if not any(table.any() for table in found.tables.values()):
        raise ValueError("There are no records to compare: one side has none.")
    return found
