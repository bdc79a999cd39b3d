"""One mixture models households and their persons, and generates two tables that are joined by a key."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, NoReturn, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.inference.mixtures.household_records import draw_persons
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.formats.file_kinds import HOUSEHOLDS
from pgmpy_dp.models.mixture_network import (
    FittedMixture,
    MixtureDistribution,
    PrivateMixtureNetwork,
    mixture_of,
    numbers_of,
    reading_model,
    total_of,
    write_model,
)
from pgmpy_dp.models.model import Model, seeded
from pgmpy_dp.models.questions import require_frame
from pgmpy_dp.models.simulated import GivenNumbers, Numbers, WithinBins, converted
from pgmpy_dp.privacy.checks import checked_number
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Clique, HouseholdSchema, Schema

Together = Mapping[Clique, tuple[Vector, float]]


_NO_BOUNDS = "A network of households keeps no release, and so has no bounds and no test of fit."


@dataclass(frozen=True, eq=False)
class FittedHouseholds(FittedMixture):
    """The fit of households and persons: a question is answered at one of the levels."""

    _: KW_ONLY
    households: FittedMixture
    persons: FittedMixture

    def distribution_of(self, names: Collection[str]) -> MixtureDistribution:
        of_households = set(names) <= set(self.households.schema.variables)
        return (self.households if of_households else self.persons).distribution

    def required_releases(self) -> NoReturn:
        raise ValueError(_NO_BOUNDS)

    @cached_property
    def refits(self) -> NoReturn:
        raise ValueError(_NO_BOUNDS)


class PrivateHouseholdNetwork(Model):
    """A mixture over a household, its size and one of its persons, which answers queries at both levels.

    A query that names only variables of households, or their size, is answered for households. Any other query, and
    `log_likelihood`, is answered for persons, each with the variables of the household. `households` and `persons`
    answer every query at their level.

    Parameters
    ----------
    schema : HouseholdSchema
    mixture : Mixture
        Over the variables of ``schema.joined``: a household drawn uniformly, and one of its persons drawn uniformly.
    total : float
        The number of households.
    guarantee : Guarantee
        The guarantee for the households behind the fit.
    together : mapping of clique to (ndarray, float)
        For pairs of ``schema.together``: the number of households by the states of two of their persons, without
        "nobody", and the standard deviation of the noise in a cell.

    Attributes
    ----------
    schema_, mixture_, total_, guarantee_, together_
        As the parameters.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> homes = pd.DataFrame({"id": range(400), "tenure": ["owned", "rented"] * 200})
    >>> people = pd.DataFrame({"id": [*range(400), *range(0, 400, 2)], "age": ["adult"] * 400 + ["child"] * 200})
    >>> tenure, age = dp.Schema({"tenure": ["owned", "rented"]}), dp.Schema({"age": ["child", "adult"]})
    >>> schema = dp.HouseholdSchema(tenure, age, key="id", max_persons=2)
    >>> estimator = dp.HouseholdMixture(epsilon=4.0, delta=1e-6, schema=schema, members=2).fit(homes, people)
    >>> bool(estimator.network_.households.query(["size"], {"tenure": "owned"}).get_value(size=2) > 0.9)
    True
    >>> drawn, members = estimator.network_.simulate(100, seed=0)
    >>> set(drawn["id"]) == set(members["id"])
    True
    """

    def __init__(
        self, schema: HouseholdSchema, mixture: Mixture, total: float, guarantee: Guarantee, together: Together
    ) -> None:
        if dict(mixture.cardinalities) != schema.joined.cardinalities():
            raise SchemaError("The mixture is not over the variables and states of the schema.")
        self.schema_, self.mixture_, self.total_ = schema, mixture, float(total)
        self.guarantee_ = guarantee.after(schema.measured.guarantee)
        self.together_ = dict(together)

    @cached_property
    def households(self) -> PrivateMixtureNetwork:
        """Return the network for households: their variables and their size."""
        level = self.schema_.level
        return PrivateMixtureNetwork(level, self.mixture_.only(level.variables), self.total_, self.guarantee_)

    @cached_property
    def persons(self) -> PrivateMixtureNetwork:
        """Return the network for persons: their variables and the variables of their household."""
        size = self.schema_.size
        sizes = np.arange(1.0, self.schema_.max_persons + 1)
        total = self.total_ * float(self.mixture_.marginal((size,)) @ sizes)
        mixture = self.mixture_.given({size: sizes})
        return PrivateMixtureNetwork(self.schema_.joined, mixture, total, self.guarantee_)

    @cached_property
    def _fitted(self) -> FittedHouseholds:
        households, persons = self.households._fitted, self.persons._fitted
        given = self.schema_.joined, persons.mixture, self.total_, self.guarantee_
        return FittedHouseholds(*given, households=households, persons=persons)

    @property
    def draws_(self) -> NoReturn:
        """Raise ValueError: bounds are not available for households."""
        raise ValueError(_NO_BOUNDS)

    def sample_draws(self, draws: int = 0, seed: int = 0) -> NoReturn:
        """Raise, as `draws_` does."""
        raise ValueError(_NO_BOUNDS)

    def simulate(  # type: ignore[override]  # it gives two tables
        self,
        n_samples: int | None = None,
        *,
        evidence: Mapping[str, Any] | None = None,
        seed: int | None = None,
        numbers: Numbers = "states",
        predicting: str | None = None,
        partial_samples: pd.DataFrame | None = None,
    ) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Draw synthetic households and their persons.

        Parameters
        ----------
        n_samples : int, optional
            The number of households; by default the number that the release reports.
        evidence : mapping of variable to state, optional
            Of households; records of persons given states of persons are drawn by `persons`.
        partial_samples : DataFrame, optional
            Households, with any of their columns: what they lack is drawn, and their persons. A column of the key, if
            there is one, names them.
        predicting : None
            Not available here; use `households` or `persons` to draw records of a single table with it.
        seed, numbers
            As for every model; see `Model.simulate`.

        Returns
        -------
        households, persons : pandas.DataFrame
            Columns as declared, the key first. Each key, numbered from 1, belongs to one household and to as many
            persons as the household's size, at least one.

        Notes
        -----
        The records preserve, as far as the release determines them, the two-way tables of household variables and size,
        of person variables, of a person and the household, and of two persons of one household. They do not preserve
        dependence among three persons beyond their pairs, or between a pair of persons and the household beyond that of
        each person.
        """
        fitted, generator, schema = self._fitted, seeded(seed), self.schema_
        numbers, given = fitted.read_as(numbers), pd.DataFrame()
        if partial_samples is not None:
            require_frame(partial_samples)
            given = partial_samples.drop(columns=schema.key, errors="ignore")
        if predicting is not None or {*schema.persons.variables} & {*(evidence or ()), *given}:
            raise ValueError(
                "Households are drawn with their persons, given columns of households and without predicting; one "
                "table alone is drawn in other ways by network.households.simulate and network.persons.simulate."
            )
        if partial_samples is None:
            drawn, _ = self.households._sampled(n_samples, evidence, generator)
        else:
            drawn = self.households._completed(given, n_samples, evidence, generator)
        homes = np.stack([drawn[variable] for variable in schema.level.variables], axis=1).astype(np.int32)
        keys = _keys(schema.key, partial_samples, len(homes))
        scale = len(homes) / self.total_
        together = [
            (one, schema.another[other], table * scale, deviation * scale)
            for (one, other), (table, deviation) in self.together_.items()
        ]
        owners, people = draw_persons(self.mixture_, schema.level.variables, schema.size, together, homes, generator)

        shapes = {v: fitted.shape(v) for v in fitted.bins} if numbers == "drawn" else {}
        known = GivenNumbers.of(given, fitted.bins, numbers)
        within = WithinBins(shapes, generator, fitted.schema.states, given=known.values)

        def frame(own: Schema, keys: Any, codes: Any) -> pd.DataFrame:
            places = {variable: (own, codes[:, position]) for position, variable in enumerate(own.variables)}
            return pd.DataFrame({schema.key: keys} | converted(places, numbers, within))

        households = known.kept_in(frame(schema.households, keys, homes))
        return households, frame(schema.persons, keys[owners], people)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the network as JSON; an existing file is replaced only when complete.

        Raises
        ------
        ValueError
            If the name does not end in ``.json``: the network has no release for a ``.zip`` file to carry.
        """
        together = [
            {"variables": list(pair), "households": table.ravel().tolist(), "deviation": deviation}
            for pair, (table, deviation) in self.together_.items()
        ]
        write_model(path, HOUSEHOLDS, self, {"together": together})

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote; see `pgmpy_dp.load` for errors."""
        with reading_model(path, HOUSEHOLDS, "network of households") as (stored, _):
            schema, guarantee = HouseholdSchema.from_dict(stored["schema"]), Guarantee.from_dict(stored["guarantee"])
            together = {}
            for each in stored["together"]:
                pair = tuple(each["variables"])
                if pair not in schema.together:
                    raise ValueError("it has a table of persons that are not declared")
                shape = schema.persons.cardinality(pair[0]), schema.persons.cardinality(schema.another[pair[1]])
                table, deviation = numbers_of(each["households"]), checked_number("deviation", each["deviation"])
                if not (np.abs(table) < 2.0**63).all() or deviation <= 0:
                    raise ValueError("it has a table that is not one of households")
                together[pair] = table.reshape(shape), deviation
            return cls(schema, mixture_of(schema.joined, stored), total_of(stored), guarantee, together)

    def __repr__(self) -> str:
        homes, people = len(self.schema_.households.variables), len(self.schema_.persons.variables)
        return (
            f"PrivateHouseholdNetwork({homes} + {people} variables, {self.mixture_.weights.size} components)\n"
            f"  {self.guarantee_}"
        )


def _keys(name: str, given: pd.DataFrame | None, count: int) -> NDArray[Any]:
    """Return the keys of households: those that are given, or numbers from 1."""
    if given is None or name not in given:
        return np.arange(1, count + 1)
    keys = given[name]
    if keys.isna().any() or not keys.is_unique:
        raise SchemaError(f"Column {name!r} of partial_samples is the key: give each household one of its own.")
    return keys.to_numpy()
