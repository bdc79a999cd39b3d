"""Releases of draws from a private posterior."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.privacy.checks import checked_number, whole_number
from pgmpy_dp.privacy.guarantee import Guarantee, counted
from pgmpy_dp.privacy.posterior import draw_cost, range_of
from pgmpy_dp.release.archive import Measurements, Numbers, check_shape, checked_guarantee, entry
from pgmpy_dp.release.contrasts import Floats
from pgmpy_dp.release.kinds import Release, frozen_array
from pgmpy_dp.schema import Clique, Schema

_ROUNDING = 1e-9


class _Draws(Release):
    """Draws of a network, each given by arrays of its families."""

    drawn: ClassVar[bool] = True
    cliques = ()
    draws: tuple[Mapping[Clique, Floats], ...]

    @property
    def families(self) -> tuple[Clique, ...]:
        """Each node with its parents."""
        return tuple(self.draws[0])

    def mean(self) -> Mapping[Clique, Floats]:
        """Average the draws of each family."""
        means = {family: np.mean([draw[family] for draw in self.draws], axis=0) for family in self.families}
        return MappingProxyType(means)

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        families = [
            {"variables": list(f), "shape": list(table.shape)} | self._stated(f) for f, table in self.draws[0].items()
        ]
        return super().contents() | {"draws": len(self.draws), "families": families}

    def measurements(self) -> Measurements:
        """Return all draws of each family, flat: the draws are the first axis."""
        return [(np.concatenate([draw[family].ravel() for draw in self.draws]), None) for family in self.families]

    def _stated(self, family: Clique) -> dict[str, float]:
        """Return the public numbers of a family in the descriptor."""
        raise NotImplementedError

    def _check(self, *mechanisms: str) -> None:
        """Check what both kinds have in common, and store read-only copies of the draws."""
        name, guarantee = type(self).__name__, self._require_promise(*mechanisms, of_records=True)
        if not self.draws or not self.draws[0]:
            raise ValueError(f"{name} needs at least one draw of at least one family.")
        families = self.families
        if len({family[0] for family in families}) < len(families):
            raise ValueError(f"{name}: the families must start with different nodes.")
        if any(set(draw) != set(families) for draw in self.draws):
            raise ValueError(f"{name}: every draw must have the same families.")
        copies = [{family: frozen_array(draw[family], np.float64) for family in families} for draw in self.draws]
        self._settle(guarantee=guarantee, draws=tuple(MappingProxyType(copy) for copy in copies))

    def _keep_positive(self, name: str, keys: tuple[Any, ...]) -> None:
        """Store a read-only mapping of these keys to positive numbers."""
        numbers = getattr(self, name)
        if not isinstance(numbers, Mapping) or set(numbers) != set(keys):
            raise ValueError(f"{type(self).__name__}: {name} must have a number for each family, and no other.")
        kept = {key: _positive(f"{name} of {key!r}", numbers[key]) for key in keys}
        self._settle(**{name: kept})

    def __repr__(self) -> str:
        return f"{type(self).__name__}: {counted(len(self.draws), 'draw')} of a network\n  {self.guarantee}"


@dataclass(frozen=True, eq=False, repr=False)
class PosteriorDraws(_Draws, kind="posterior_draws", properties=("draws", "families", "power")):
    """Release of draws of CPDs from a truncated posterior.

    Attributes
    ----------
    schema : Schema
    draws : tuple of mappings of family to ndarray
        P(node | parents) of every family of a network, axes in family order; one mapping per draw.
    floors : mapping of family to float
        Smallest possible probability.
    power : float
        Power to which the likelihood was raised.
    guarantee : Guarantee
        Guarantee of all draws together.

    Raises
    ------
    SchemaError
        If a family does not match the schema.
    ValueError
        If a draw is not a CPD above its floors, or floors and power contradict the guarantee.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500})
    >>> data = dp.PrivateDataset(records, dp.Schema({"smoke": ["yes", "no"]}), dp.PrivacyBudget(5.0))
    >>> drawn = data.sample_posterior([("smoke",)], {("smoke",): [1.0, 1.0]}, epsilon=2.0, draws=2)
    >>> drawn.families, len(drawn.draws)
    ((('smoke',),), 2)
    """

    schema: Schema
    draws: tuple[Mapping[Clique, Floats], ...]
    floors: Mapping[Clique, float]
    power: float
    guarantee: Guarantee

    def __post_init__(self) -> None:
        self._check("posterior_sampling", "exponential")
        families = self.schema.require(self.families)
        self._keep_positive("floors", families)
        self._settle(power=_positive("power", self.power))
        for family in families:
            minimum, shape = self.floors[family], self.schema.shape(family)
            if minimum * shape[0] > 1 + _ROUNDING:
                raise ValueError(f"PosteriorDraws: {shape[0]} states leave no room for the floor of {family}.")
            for draw in self.draws:
                table = draw[family]
                # Comparisons with NaN are false, so NaN is refused.
                if table.shape != shape or not (table >= minimum * (1 - _ROUNDING)).all():
                    raise ValueError(f"PosteriorDraws: {family} needs shape {shape}, and no cell below its floor.")
                if not (np.abs(table.sum(axis=0) - 1) <= _ROUNDING).all():
                    raise ValueError(f"PosteriorDraws: the rows of {family} must sum to 1.")
        states = [self.schema.cardinality(family[0]) for family in families]
        ranges = [range_of(min(self.floors[f], 1 / r), r) for f, r in zip(families, states, strict=True)]
        loss = len(self.draws) * draw_cost(ranges, self.power, self.guarantee.neighbours)
        self._require_covered(loss, "drawing with these floors and this power")

    def contents(self) -> dict[str, Any]:
        """Return what the descriptor of the file states about the release."""
        return super().contents() | {"power": self.power}

    def _stated(self, family: Clique) -> dict[str, float]:
        return {"floor": self.floors[family]}

    @classmethod
    def interpret(cls, schema: Schema, contents: Mapping[str, Any], numbers: Numbers) -> Self:
        """Invert `contents`."""
        power, entries = checked_number("power", contents["power"]), _entries(contents)
        families = schema.require([entry(each, "variables", list) for each in entries])
        floors = {}
        for family, each in zip(families, entries, strict=True):
            check_shape(each, family, schema.shape(family), {"variables", "shape", "floor"})
            floors[family] = checked_number(f"floor of {family}", each["floor"])
        draws, guarantee = _draws(contents, {family: schema.shape(family) for family in families}, numbers)
        return cls(schema, draws, floors, power, guarantee)


@dataclass(frozen=True, eq=False, repr=False)
class RegressionDraws(_Draws, kind="regression_draws", properties=("draws", "families")):
    """Release of draws of linear regressions of nodes on their parents from a truncated posterior.

    Attributes
    ----------
    schema : Schema
        With the variables' bounds.
    draws : tuple of mappings of family to ndarray
        Intercept and one slope per parent, in the variables' own units, of every family; one mapping per draw.
    std : mapping of node to float
        Residual standard deviations, which are given and not drawn.
    coefficient_bound : mapping of node to float
        Largest norm of the coefficients of values scaled to [-1, 1].
    powers : mapping of node to float
        Power to which the likelihood was raised.
    guarantee : Guarantee
        Guarantee of all draws together.

    Raises
    ------
    SchemaError
        If a variable has no bounds.
    ValueError
        If coefficients are missing, not finite or beyond their bound.

    Examples
    --------
    >>> import numpy as np, pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import LinearGaussianBayesianNetwork
    >>> age = np.tile(np.arange(20.0, 80.0), 200)
    >>> records = pd.DataFrame({"age": age, "pressure": 90.0 + 0.6 * age})
    >>> bounds, std = {"age": (0, 100), "pressure": (50, 200)}, {"age": 20, "pressure": 5}
    >>> sampler = dp.papers.LinearPosteriorSampler(20.0, bounds=bounds, coefficient_bound=2, std=std)
    >>> _ = LinearGaussianBayesianNetwork([("age", "pressure")]).fit(records, estimator=sampler)
    >>> sampler.release_.families
    (('age',), ('pressure', 'age'))
    """

    schema: Schema
    draws: tuple[Mapping[Clique, Floats], ...]
    std: Mapping[str, float]
    coefficient_bound: Mapping[str, float]
    powers: Mapping[str, float]
    guarantee: Guarantee

    def __post_init__(self) -> None:
        self._check("posterior_sampling")
        _require_bounds(self.schema, self.families)
        for name in ("std", "coefficient_bound", "powers"):
            self._keep_positive(name, tuple(family[0] for family in self.families))
        for family in self.families:
            for draw in self.draws:
                if draw[family].shape != (len(family),) or not np.isfinite(draw[family]).all():
                    raise ValueError(
                        f"RegressionDraws: {family} needs an intercept and a slope for each parent, finite."
                    )
                if not self._norm(family, draw[family]) <= self.coefficient_bound[family[0]] * (1 + _ROUNDING):
                    raise ValueError(f"RegressionDraws: the coefficients of {family} are beyond their bound.")

    def _norm(self, family: Clique, coefficients: Floats) -> float:
        """Compute the norm of the coefficients of values scaled to [-1, 1]."""
        (low, *lows), (high, *highs) = zip(*(self.schema.bounds[variable] for variable in family), strict=True)
        middles, halves = np.add(lows, highs) / 2, np.subtract(highs, lows) / 2
        with np.errstate(over="ignore", invalid="ignore"):
            intercept = coefficients[0] + coefficients[1:] @ middles - (low + high) / 2
            return float(np.linalg.norm(np.append(intercept, coefficients[1:] * halves)) / ((high - low) / 2))

    def _stated(self, family: Clique) -> dict[str, float]:
        node = family[0]
        return {"std": self.std[node], "coefficient_bound": self.coefficient_bound[node], "power": self.powers[node]}

    @classmethod
    def interpret(cls, schema: Schema, contents: Mapping[str, Any], numbers: Numbers) -> Self:
        """Invert `contents`."""
        entries = _entries(contents)
        families = tuple(tuple(entry(each, "variables", list)) for each in entries)
        _require_bounds(schema, families)
        public = ("std", "coefficient_bound", "power")
        stated: dict[str, dict[str, float]] = {name: {} for name in public}
        for family, each in zip(families, entries, strict=True):
            check_shape(each, family, (len(family),), {"variables", "shape", *public})
            for name in public:
                stated[name][family[0]] = checked_number(f"{name} of {family[0]!r}", each[name])
        draws, guarantee = _draws(contents, {family: (len(family),) for family in families}, numbers)
        return cls(schema, draws, stated["std"], stated["coefficient_bound"], stated["power"], guarantee)


def _positive(name: str, value: Any) -> float:
    number = checked_number(name, value)
    if not 0 < number < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {number!r}.")
    return number


def _require_bounds(schema: Schema, families: tuple[Clique, ...]) -> None:
    """Raise unless all variables of the families are numbers with bounds."""
    for family in families:
        if not family or not all(isinstance(variable, str) and variable in schema.bounds for variable in family):
            raise SchemaError("RegressionDraws: every family needs variables with bounds in the schema.")
        if len(set(family)) < len(family):
            raise SchemaError(f"RegressionDraws: {family} repeats a variable.")
    if len(set(families)) < len(families):
        raise SchemaError("RegressionDraws: a family occurs twice.")


def _entries(contents: Mapping[str, Any]) -> list[Any]:
    results: list[Any] = entry(contents, "families", list)
    if not results:
        raise ValueError("draws have at least one family.")
    return results


def _draws(
    contents: Mapping[str, Any], shapes: Mapping[Clique, tuple[int, ...]], numbers: Numbers
) -> tuple[tuple[dict[Clique, Floats], ...], Guarantee]:
    """Read the draws of families of these shapes, and the guarantee."""
    number = whole_number("draws", entry(contents, "draws", int))
    arrays = numbers.take({family: (number, *shape) for family, shape in shapes.items()}, drawn=True)
    draws = tuple({family: array[draw] for family, array in arrays.items()} for draw in range(number))
    return draws, checked_guarantee(contents, arrays.values())
