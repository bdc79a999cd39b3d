"""Private numeric features between public bounds, with a class or a number per record, behind the wall."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence, Set
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.data.wall import Wall
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.budget import PrivacyBudget
from pgmpy_dp.privacy.noise import OPENDP_NOISE, NoiseSource
from pgmpy_dp.records.columns import objects
from pgmpy_dp.records.frames import column_at, column_names, encode, is_frame
from pgmpy_dp.records.memory import require_summable
from pgmpy_dp.schema import Schema

Vector = NDArray[np.float64]


class PrivateFeatures(Wall):
    """Private records of numeric features and a class or a target, with their privacy budget.

    All answers come from :meth:`plan`, which charges the budget first. Statistics receive the features, clipped to
    their bounds, and in a last column the index of the class, or the target, clipped as well. The object can be neither
    copied nor pickled.

    Parameters
    ----------
    X : array or frame, shape (number of records, d)
        Numeric features; for a frame, the columns are the features and name them.
    y : array or column, shape (number of records,)
        Classes, or numbers.
    bounds : pair of float or array of shape (d,)
        Public lower and upper bounds of the features; values beyond are clipped. They must not be taken from the
        records.
    classes : sequence, optional
        At least two public states; which of them occur is private.
    target_bounds : pair of float, optional
        In place of classes where y holds numbers: public lower and upper bounds, to which they are clipped.
    budget : PrivacyBudget
        The ledger for these records. Several data sets of the same persons should share one.
    neighbours : {"add_remove", "replace_one"}
        Whether neighbouring data sets differ in one record added or removed, or in one record changed.
    noise : NoiseSource
        Keep the default for privacy.

    Attributes
    ----------
    bounds : pair of ndarray of shape (d,)
    classes : tuple, or None
    target_bounds : pair of float, or None
    names : tuple of str, or None
        Names of the features, if X is a frame.

    Raises
    ------
    SchemaError
        If a feature holds missing values, NaN or infinity, or a class is not declared. The message names the feature
        and nothing else about the records.
    TypeError, ValueError
        If another argument is of the wrong kind.

    Examples
    --------
    >>> X, y = [[20.0, 1.5], [50.0, 0.0], [70.0, 2.5]], ["no", "no", "yes"]
    >>> data = PrivateFeatures(X, y, bounds=([0, 0], [100, 5]), classes=["no", "yes"], budget=PrivacyBudget(1.0, 1e-6))
    >>> data
    PrivateFeatures(2 features, 2 classes, neighbours='add_remove', budget=PrivacyBudget(...))
    """

    _stays = "PrivateFeatures can be neither copied nor pickled: records and ledger stay where they are."

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        bounds: tuple[Any, Any] | None,
        classes: Sequence[Any] | None = None,
        target_bounds: tuple[Any, Any] | None = None,
        budget: PrivacyBudget,
        neighbours: str = "add_remove",
        noise: NoiseSource = OPENDP_NOISE,
    ) -> None:
        super().__init__(budget, neighbours, noise)
        if (classes is None) == (target_bounds is None):
            raise ValueError(
                "Declare what y holds: either classes=[...], or target_bounds=(lowest, highest) where it is a number."
            )
        schema = None if classes is None else Schema({"y": list(classes)})
        self.classes = None if schema is None else schema.states["y"]
        self.target_bounds = None
        if self.classes is not None and len(self.classes) < 2:
            raise SchemaError("classes must declare at least two states.")
        if target_bounds is not None:
            (low,), (high,) = checked_bounds(target_bounds, 1, "target_bounds", "the target")
            self.target_bounds = float(low), float(high)
        values, self.names = _numbers(X)
        require_summable(values.shape[0])
        self.bounds = checked_bounds(bounds, values.shape[1])
        for number, column in enumerate(values.T):
            _require_finite(column, f"Feature {number}" if self.names is None else f"Feature {self.names[number]!r}")
        labels = _targets(y, self.target_bounds) if schema is None else encode(_classes(y), schema, ["y"])["y"]
        if labels.shape[0] != values.shape[0]:
            raise SchemaError("X and y must have one row each for every record: their lengths differ.")
        self._rows = np.column_stack([np.clip(values, *self.bounds), labels])

    def __repr__(self) -> str:
        kind = "a target" if self.classes is None else f"{len(self.classes)} classes"
        return (
            f"PrivateFeatures({self._rows.shape[1] - 1} features, {kind}, "
            f"neighbours={self._neighbours!r}, budget={self._budget!r})"
        )


def checked_bounds(bounds: Any, features: int, name: str = "bounds", of: str = "the features") -> tuple[Vector, Vector]:
    """Convert public bounds to two arrays with one number per feature."""
    if bounds is None or isinstance(bounds, (str, bytes)) or not hasattr(bounds, "__len__") or len(bounds) != 2:
        raise ValueError(
            f"{name} must be a pair of the lowest and highest values of {of}: public numbers, or one per "
            "feature. They must not be taken from the records, whose values are private."
        )
    try:
        low, high = (np.broadcast_to(np.asarray(bound, dtype=np.float64), (features,)).copy() for bound in bounds)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, or have one for each of the {features} features.") from None
    with np.errstate(over="ignore", invalid="ignore"):
        usable = np.isfinite(low) & np.isfinite(high) & np.isfinite(high - low) & ((high - low) / 2.0 > 0.0)
    if not usable.all():
        raise ValueError(f"{name} must be finite, and the lower bound of each feature below its upper bound.")
    return low, high


def _numbers(X: Any) -> tuple[Vector, tuple[str, ...] | None]:
    """Convert features to a float64 array, with NaN for missing values, and return their names."""
    if is_frame(X) and (names := column_names(X)):
        if len({*names}) < len(names):
            raise SchemaError("Two features have the same name: give each one of its own.")
        columns = [_floats(column_at(X, place), f"Feature {name!r}") for place, name in enumerate(names)]
        return np.column_stack(columns), tuple(names)
    values = None if is_frame(X) else number_matrix(X)
    if values is None:
        raise TypeError(
            "X must be a two-dimensional array without a mask, or a frame of numbers, one row a record; got "
            f"{type(X).__name__}."
        )
    return floats(values), None


def _require_finite(column: Vector, name: str) -> None:
    if not np.isfinite(column).all():
        raise SchemaError(f"{name} holds missing values, NaN or infinity: leave such records out, or fill them.")


def _targets(y: Any, bounds: Any) -> Vector:
    """Convert one number a record to float64 within the bounds."""
    if isinstance(nw.from_native(y, pass_through=True, series_only=True), nw.Series):
        values = _floats(y, "The target")
    else:
        one_column = [y] if isinstance(y, (list, tuple, np.ndarray)) and not is_masked(y) else None
        matrix = None if one_column is None else number_matrix(one_column)
        if matrix is None:
            raise TypeError(f"y must hold one number a record, without a mask, got {type(y).__name__}.")
        values = floats(matrix[0])
    _require_finite(values, "The target")
    return np.asarray(np.clip(values, *bounds))


def _floats(given: Any, name: str) -> Vector:
    """Convert a numeric column to float64, NaN for missing values. Library messages about values are suppressed."""
    column = nw.from_native(given, series_only=True).alias("number")
    objects_of_pandas = str(getattr(given, "dtype", None)) == "object"  # narwhals would call methods of these
    if objects_of_pandas or not (column.dtype.is_numeric() or column.dtype == nw.Boolean):
        raise SchemaError(f"{name} is not numeric: encode it as numbers.")
    try:
        missing = column.is_null().to_numpy().astype(bool)
        filled = column.fill_null(False if column.dtype == nw.Boolean else 0) if missing.any() else column
        values = floats(np.asarray(filled.to_numpy()))
    except Exception:
        problem = f"{name} has a type that cannot be converted to floats: convert it first."
    else:
        return np.where(missing, np.nan, values)
    raise SchemaError(problem)


def _classes(y: Any) -> Any:
    """Return the classes as a frame with one column, y; each keeps its type."""
    series = nw.from_native(y, pass_through=True, series_only=True)
    if isinstance(series, nw.Series):
        return series.alias("y").to_frame().to_native()
    one_dimension = len(getattr(y, "shape", (0,))) == 1
    if not one_dimension or isinstance(y, (str, bytes, Mapping, Set)) or is_masked(y) or not hasattr(y, "__iter__"):
        raise TypeError(f"y must hold one class a record, without a mask, got {type(y).__name__}.")
    if isinstance(y, np.ndarray) and y.dtype.kind in "biuf":
        return pd.DataFrame({"y": y})
    return pd.DataFrame({"y": pd.Series(objects(list(y)), dtype=object)})


def is_masked(values: Any) -> bool:
    """Whether numpy, making an array of these values, would drop a mask and so show the masked values."""
    rows = values if isinstance(values, (list, tuple)) else [values]
    return any(isinstance(row, np.ma.MaskedArray) for row in rows)


def number_matrix(given: Any) -> NDArray[Any] | None:
    """Convert to an array of numbers with a row per record and at least one column; None if that is impossible.

    numpy's messages about values are suppressed: they would reveal the number of rows, the length of a text, or that a
    value is masked.
    """
    if is_masked(given):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            values = np.asarray(given)
    except MemoryError:
        raise
    except Exception:
        return None
    return values if values.ndim == 2 and values.shape[1] > 0 and values.dtype.kind in "iufb" else None


def floats(values: NDArray[Any]) -> NDArray[np.float64]:
    """Convert numbers to float64; those too large become infinite, without a warning that would reveal them."""
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float64)
