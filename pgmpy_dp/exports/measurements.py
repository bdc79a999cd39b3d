"""Releases are converted to mbi's measurements, and measurements of mbi or OpenDP to releases.

All of it is post-processing of noisy tables. Measurements of other libraries do not state their guarantee: the caller
gives it as a `Guarantee`, and noise too small for it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.tables.table import pooled
from pgmpy_dp.privacy.checks import number
from pgmpy_dp.privacy.guarantee import Learned
from pgmpy_dp.release import Guarantee, NoisyMarginals
from pgmpy_dp.schema import Clique, Schema


def to_mbi(release: NoisyMarginals) -> Learned:
    """Convert a release to the measurements that mbi's estimators take.

    Parameters
    ----------
    release : NoisyMarginals

    Returns
    -------
    tuple of mbi.LinearMeasurement
        One per table, flat, with the standard deviation of its noise, and together with the guarantee of the release,
        which `from_mbi` reads. Their domain is ``mbi.Domain.fromdict(release.schema.cardinalities())``. An OpenDP
        ContingencyTable takes them by clique as `marginals`, with a model that mbi fitted to them.

    Raises
    ------
    ImportError
        If mbi is not installed.
    ValueError
        If the release holds exact counts, or residuals or coefficients, whose tables share noise.
    """
    if release.guarantee.mechanism == "none":
        raise ValueError("These are exact counts, which are not private: convert a release with noise.")
    if not release.independent:
        raise ValueError("These tables share noise, which mbi takes for independent: measure tables instead.")
    from mbi import LinearMeasurement

    measured = [
        LinearMeasurement(np.asarray(table, dtype=np.float64).ravel(), clique, math.sqrt(release.variances[clique]))
        for clique, table in release.tables.items()
    ]
    return Learned(measured, release.guarantee)


def from_mbi(measurements: Iterable[Any], schema: Schema, guarantee: Guarantee | None = None) -> NoisyMarginals:
    """Convert measurements of mbi to a release.

    Parameters
    ----------
    measurements : iterable of mbi.LinearMeasurement
        Noisy tables, flat, without a query of their own. Several of one clique with Gaussian noise are averaged by
        precision. Values are rounded to whole counts, and a measured total is left out.
    schema : Schema
        States of every attribute, in mbi's order.
    guarantee : Guarantee, optional
        The guarantee of the measurements, with mechanism "laplace" or "gaussian"; by default the guarantee that
        `to_mbi` stored with them.

    Raises
    ------
    SchemaError
        If an attribute is unknown, or a clique was measured twice with Laplace noise.
    ValueError
        If a measurement is not a table of its clique, or its noise is too small for the guarantee.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from pgmpy_dp.exports import from_mbi
    >>> measured = SimpleNamespace(noisy_measurement=[31.2, 67.9], clique=("smoke",), stddev=5.0)
    >>> promised = Guarantee.of(1.0, 1e-6, 0.02, mechanism="gaussian")
    >>> from_mbi([measured], Schema({"smoke": ["yes", "no"]}), promised).tables[("smoke",)].tolist()
    [31, 68]
    """
    if guarantee is None:
        if not isinstance(measurements, Learned):
            raise ValueError("Measurements of other libraries do not state their guarantee: give it.")
        guarantee = measurements.guarantee
    tables: dict[Clique, Any] = {}
    scales: dict[Clique, float] = {}
    gaussian = guarantee.mechanism == "gaussian"
    for measured in measurements:
        clique: Clique = tuple(measured.clique)
        if not clique:  # the number of records, which every table contains as well
            continue
        values = np.asarray(measured.noisy_measurement, dtype=np.float64)
        if not _whole(measured) or values.size != schema.cells(clique) or not np.isfinite(values).all():
            raise ValueError(
                f"The measurement of {clique} must hold {schema.cells(clique)} finite counts, one for each cell: "
                "queries of other kinds have no table."
            )
        table, deviation = values.reshape(schema.shape(clique)), float(measured.stddev)
        number(above=0.0)(f"stddev of {clique}", deviation)
        scale = deviation if gaussian else _laplace_scale(deviation)
        if clique in tables:  # a weighted mean of normal noise is normal
            if not gaussian:
                raise SchemaError(
                    f"The clique {clique} was measured twice, and means of Laplace noise are not Laplace."
                )
            table, precision = pooled([tables[clique], table], [scales[clique] ** -2, scale**-2])
            scale = precision**-0.5
        tables[clique], scales[clique] = table, scale
    if not tables:
        raise ValueError("There are no measurements.")
    rounded = {clique: np.rint(table).astype(np.int64) for clique, table in tables.items()}
    return NoisyMarginals(schema, rounded, scales, guarantee)


def from_contingency_table(table: Any, guarantee: Guarantee) -> NoisyMarginals:
    """Convert the marginals behind OpenDP's contingency table to a release.

    Parameters
    ----------
    table : opendp.extras.mbi.ContingencyTable
        Its `keys` are the states; the empty key becomes the state "missing".
    guarantee : Guarantee
        The guarantee of all of it, including the discovery of keys.

    Raises
    ------
    SchemaError, ValueError
        As `from_mbi`.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> from pgmpy_dp.exports import from_contingency_table
    >>> measured = SimpleNamespace(noisy_measurement=[31.2, 67.9], clique=("smoke",), stddev=5.0)
    >>> marginals = SimpleNamespace(flatten=lambda: [measured])
    >>> table = SimpleNamespace(keys={"smoke": ["yes", None]}, marginals=marginals)
    >>> promised = Guarantee.of(1.0, 1e-6, 0.02, mechanism="gaussian")
    >>> from_contingency_table(table, promised).schema.states["smoke"]
    ('yes', 'missing')
    """
    schema = Schema({str(column): _states(list(keys)) for column, keys in table.keys.items()})
    return from_mbi(table.marginals.flatten(), schema, guarantee)


def _whole(measured: Any) -> bool:
    """Return whether the cells themselves were measured, rather than another query of the table."""
    query = getattr(measured, "query", None)
    return query is None or "datavector" in getattr(query, "__name__", type(query).__name__).lower()


def _states(keys: list[Any]) -> list[Any]:
    plain = [key if isinstance(key, str | bool | int | float) else str(key) for key in keys if key is not None]
    return [plain.pop(0) if key is not None else "missing" for key in keys]


def _laplace_scale(deviation: float) -> float:
    """Find the scale b of discrete Laplace noise, whose variance is 1 / (2 sinh(1 / 2b)^2)."""
    return 0.5 / math.asinh(math.sqrt(0.5) / deviation)
