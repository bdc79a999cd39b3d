"""Release of noisy Fourier coefficients instead of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from pgmpy_dp.privacy.checks import checked_number
from pgmpy_dp.privacy.guarantee import Guarantee
from pgmpy_dp.privacy.noise import laplace_variance
from pgmpy_dp.release.archive import Contents
from pgmpy_dp.release.coefficients import downward_closure, noise_scales
from pgmpy_dp.release.contrasts import Floats, fourier_sensitivity
from pgmpy_dp.release.measured_coefficients import (
    MeasuredCoefficients,
    checked_coefficients,
    coefficient_shape,
    plain_cliques,
    stated_cliques,
    stated_subsets,
)
from pgmpy_dp.schema import Clique, Schema


@dataclass(frozen=True, eq=False, repr=False)
class NoisyCoefficients(
    MeasuredCoefficients, kind="coefficients", properties=("public_total", "cliques", "scale", "subsets", "contrasts")
):
    """Release of noisy Fourier coefficients of some cliques' marginals, whose tables agree with each other.

    Everything computed from it is post-processing and costs no privacy.

    Parameters
    ----------
    schema : Schema
        The public schema.
    cliques : tuple of tuples of str
        The measured cliques, in the order of the tables' axes.
    values : mapping of subset to ndarray of int64
        Noisy integer coefficients of every subset of the cliques, with one axis per variable in schema order; under
        ``replace_one`` without the empty subset, whose coefficient is the public number of records.
    scale : float
        Noise scale b of the coefficients with contrasts of mean square 1, in records; an integer coefficient of weight
        w has discrete Laplace noise of scale b / w (`pgmpy_dp.release.contrasts.coefficient_weights`).
    guarantee : Guarantee
    public_total : int or None
        The number of records if it is public (``replace_one``), else None.

    Raises
    ------
    SchemaError
        If a clique does not match the schema, or the closure is too large.
    ValueError
        If coefficients are missing or of the wrong kind, or the scale contradicts the guarantee.

    Notes
    -----
    A cell of a table with c cells has noise of variance about 2 b**2 / c.

    Examples
    --------
    >>> import pgmpy_dp as dp
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> data = dp.PrivateDataset({("smoke", "lung"): [[300, 100], [50, 550]]}, schema, dp.PrivacyBudget(1.0))
    >>> noisy = data.measure_coefficients([("smoke", "lung")], epsilon=1.0)
    >>> bool(abs(noisy.total - 1000) < 100)
    True
    """

    schema: Schema
    cliques: tuple[Clique, ...]
    values: Mapping[Clique, NDArray[np.int64]]
    scale: float
    guarantee: Guarantee
    public_total: int | None = None

    def __post_init__(self) -> None:
        cliques, values, total = checked_coefficients(
            "NoisyCoefficients", self.schema, self.guarantee, self.cliques, self.values, self.public_total, "laplace"
        )
        scale = checked_number("scale", self.scale)
        if not 0 < scale <= 2.0**50:
            raise ValueError(f"NoisyCoefficients: the noise scale must be positive, at most 2**50, got {scale!r}.")
        cards = {v: self.schema.cardinality(v) for clique in cliques for v in clique}
        closure = downward_closure(self.schema, cliques)
        loss = fourier_sensitivity(closure, cards, self.guarantee.neighbours) / scale
        stated = self.guarantee.own.epsilon
        if loss > stated * (1 + 1e-9):
            raise ValueError(
                f"NoisyCoefficients: noise of this scale costs epsilon={loss:.6g}, more than the guarantee's "
                f"{stated:.6g}."
            )
        plain = plain_cliques(self.schema, cliques)
        parts = {"cliques": plain, "values": MappingProxyType(values), "scale": scale, "public_total": total}
        parts["guarantee"] = self.guarantee.after(self.schema.guarantee)
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @cached_property
    def noise_variances(self) -> Mapping[Clique, Floats]:  # type: ignore[override]
        """The variance of the noise in every integer coefficient, by subset."""
        found = {}
        for subset in self.values:
            scales = noise_scales(self.schema, subset, self.scale)
            distinct, places = np.unique(scales, return_inverse=True)
            found[subset] = np.array([laplace_variance(s) for s in distinct])[places].reshape(scales.shape)
        return MappingProxyType(found)

    def noise(self, clique: Clique) -> tuple[float, float]:
        """Return the noise scale of the coefficients, and the standard deviation in a cell of a clique's table."""
        return self.scale, self.variance(clique) ** 0.5

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return super().contents() | {"scale": self.scale}

    @classmethod
    def interpret(cls, schema: Schema, guarantee: Guarantee, contents: Mapping[str, Any]) -> Contents[Self]:
        """Invert `contents`."""
        total, cliques = contents["public_total"], stated_cliques(contents, schema)
        shapes = {subset: coefficient_shape(schema, subset) for subset in stated_subsets(contents, schema, cliques)}
        scale = checked_number("scale", contents["scale"])
        return Contents(
            cls.kind, cls.drawn, shapes, lambda arrays: cls(schema, cliques, arrays, scale, guarantee, total)
        )

    def _noise_in_words(self) -> str:
        return f", noise scale {self.scale:.6g}"
