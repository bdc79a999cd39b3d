"""Answers of fitted networks with their uncertainty."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from pgmpy.factors.discrete import DiscreteFactor

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.networks import log_linear
from pgmpy_dp.estimators.uncertainty import PosteriorNetworks, draw_networks
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.models.conditioning import Conditioning
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.release import Guarantee, NoisyCoefficients, NoisyMarginals, Release, compose
from pgmpy_dp.schema import Schema

# A bound this many records away from 0 or 1 is 0 or 1: counts are whole numbers.
_HALF = 0.5
# Largest joint table of variables whose most probable state is asked for.
_MAX_JOINT = 2**20


class AnsweringNetwork:
    """What `PrivateMarkovNetwork` and `PrivateBayesianNetwork` answer, with bounds where they are asked for.

    Attributes
    ----------
    release_ : NoisyMarginals, NoisyCoefficients or tuple of them
        What the network was fitted to; bounds come from it.
    posterior_ : PosteriorNetworks
        Networks drawn from what the release leaves open. Drawn when first needed, and kept.
    """

    schema_: Schema
    guarantee_: Guarantee
    release_: Release | tuple[Release, ...]

    def query(
        self,
        variables: Sequence[str],
        evidence: Mapping[str, Any] | None = None,
        interval: float | None = None,
        target: str = "population",
    ) -> DiscreteFactor | pd.DataFrame:
        """Distribution of some variables given the states of others.

        Parameters
        ----------
        variables : sequence of str
        evidence : mapping of variable to state, optional
        interval : float in (0, 1), optional
            The share of posterior probability between the bounds, such as 0.9. Without it, the answer alone.
        target : {"population", "records"}
            What the bounds are for: the distribution behind the records, or the answer that the same records would give
            without noise. The first are wider: they count the chance in which records were sampled as well.

        Returns
        -------
        DiscreteFactor, or with `interval` a DataFrame
            Normalised. The frame has a row a state (of several variables, a joint one) and the columns `value` (the
            fitted network's answer), `lower` and `upper`. Bounds less than half a record away from 0 or 1 are 0 or 1.

        Raises
        ------
        SchemaError
            If a variable or state is unknown.
        ValueError
            If the evidence has probability zero, leaves the answer undefined, and no interval is asked for; if the
            interval is not between 0 and 1, or the network has no release.
        TreeTooLargeError
            With an interval, if a junction tree does not fit in memory.

        Warns
        -----
        UserWarning
            With an interval, if the release does not tell whether the evidence occurs at all.

        Notes
        -----
        Bounds are equal-tailed, of the draws in `posterior_`; a fit that is penalised may lie outside. They take the
        structure for right, and count records as independent: with several rows a person, the population's are too
        narrow. Where the release hides the evidence they are those of the prior, and no better than it.
        """
        asked, given = list(variables), self._checked(variables, evidence)
        if interval is None:
            return self._point(asked, given)
        check_interval(interval)
        values, draws, records = self._answers(asked, given, target)
        states = self._fitted().states
        if len(asked) == 1:
            index = pd.Index(list(states[asked[0]]), name=asked[0])
        else:
            index = pd.MultiIndex.from_product([list(states[variable]) for variable in asked], names=asked)
        return bounds_frame(values.ravel(), draws.reshape(len(draws), -1), interval, index, records)

    def map_query(
        self, variables: Sequence[str] | None = None, evidence: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Most probable joint state of some variables (all that are not given by default); errors as `query`."""
        given = self._checked(variables, evidence)
        asked = self._others(given) if variables is None else list(variables)
        if given and asked:
            self._point(asked[:1], given)  # refuses evidence of probability zero
        answer: dict[str, Any] = _elimination(self).map_query(asked, evidence=given, show_progress=False)
        return answer

    def map_probability(
        self,
        variables: Sequence[str] | None = None,
        evidence: Mapping[str, Any] | None = None,
        target: str = "population",
    ) -> tuple[dict[str, Any], float]:
        """The most probable joint state, as `map_query`, and the posterior probability that it is the right one.

        Parameters
        ----------
        variables : sequence of str, optional
            All that are not given by default; else few enough that their joint table fits in memory.
        evidence : mapping of variable to state, optional
        target : {"population", "records"}
            As `query`.

        Returns
        -------
        assignment : dict
        probability : float
            The share of `posterior_` in which it is the most probable state.
        """
        given = self._checked(variables, evidence)
        asked = self._others(given) if variables is None else list(variables)
        everything = set(asked) == set(self._others(given))
        if not everything and self._fitted().cells(asked) > _MAX_JOINT:
            raise ValueError(
                f"The joint table of these {len(asked)} variables is too large: ask for fewer, or for all that are not "
                "given."
            )
        answer = self.map_query(asked, given)
        draws, conditioning = self.posterior_.draws(target), self._conditioning
        if everything:
            found = conditioning.most_probable(draws, asked, given)
        else:
            tables, _ = conditioning.distributions(draws, asked, given)
            found = [tuple(int(i) for i in np.unravel_index(int(np.argmax(t)), t.shape)) for t in tables]
        place = tuple(self._fitted().states[variable].index(answer[variable]) for variable in asked)
        return answer, float(np.mean([place == states for states in found]))

    def expectation(
        self,
        values: Mapping[str, Mapping[Any, float]],
        evidence: Mapping[str, Any] | None = None,
        interval: float = 0.9,
        target: str = "population",
    ) -> pd.DataFrame:
        """Expected values of numbers attached to states, with bounds.

        Parameters
        ----------
        values : mapping of variable to mapping of state to float
            Such as ``{"age": {"young": 25, "old": 70}}``; a number for every state.
        evidence, interval, target
            As `query`.

        Returns
        -------
        DataFrame
            A row a variable; columns `value`, `lower`, `upper`.
        """
        if not isinstance(values, Mapping):
            raise TypeError('Give a number for every state: expectation({"age": {"young": 25, "old": 70}}).')
        check_interval(interval)
        rows = []
        for variable, numbers in values.items():
            given = self._checked([variable], evidence)
            states = self._fitted().states[variable]
            if set(numbers) != set(states):
                raise SchemaError(f"Give a number for every state of {variable!r}: {', '.join(map(repr, states))}.")
            weights = np.array([float(numbers[state]) for state in states])
            if not np.isfinite(weights).all():
                raise ValueError(f"The numbers of {variable!r} must be finite.")
            answer, draws, _ = self._answers([variable], given, target)
            rows.append(
                bounds_frame(np.array([answer @ weights]), (draws @ weights)[:, None], interval, [variable], None)
            )
        return pd.concat(rows).rename_axis("variable")

    @property
    def posterior_(self) -> PosteriorNetworks:
        """Networks drawn from what the release leaves open: 200, unless `sample_posterior` was called."""
        if "_posterior" not in self.__dict__:
            self.sample_posterior()
        posterior: PosteriorNetworks = self.__dict__["_posterior"]
        return posterior

    def sample_posterior(self, draws: int = 200, seed: int = 0) -> PosteriorNetworks:
        """Draw `posterior_` afresh, and keep it; see `pgmpy_dp.estimators.uncertainty.draw_networks`.

        Parameters
        ----------
        draws : int
            At least 20; the bounds themselves have an error from so many draws.
        seed : int
            Draws are repeatable; no privacy hangs on them.
        """
        whole_number("draws", draws, 20)
        self._fitted()
        held = self.__dict__.get("release_")
        if held is None:
            raise ValueError(
                "The network has no release, from which bounds are drawn: fit it to one, or attach that which it was "
                "fitted to by network.attach_release(dp.NoisyMarginals.load('release.zip'))."
            )
        releases = held if isinstance(held, tuple) else (held,)
        self.__dict__.pop("_held_conditioning", None)
        posterior = draw_networks(self, releases, draws, seed)
        self.__dict__["_posterior"] = posterior
        return posterior

    def attach_release(self, *releases: Release) -> None:
        """Keep the release, or several of the same records, that bounds are to be drawn from.

        For networks that were fitted elsewhere or read from a file. `guarantee_` becomes that of all of them together.

        Raises
        ------
        TypeError
            If one is no release of tables or coefficients.
        SchemaError
            If their states are not those of the network.
        ValueError
            If they are exact counts, or their promises differ in more than epsilon and delta.
        """
        for release in releases:
            if not isinstance(release, (NoisyMarginals, NoisyCoefficients)):
                raise TypeError(f"A NoisyMarginals or NoisyCoefficients is needed, got {type(release).__name__}.")
            for variable, states in self._fitted().states.items():
                if variable in release.schema.states and set(release.schema.states[variable]) != set(states):
                    raise SchemaError(f"Variable {variable!r} has other states in the release than in the network.")
            if release.guarantee.mechanism == "none":
                raise ValueError("These are exact counts, not a release: without noise there is nothing to bound.")
        if not releases:
            raise TypeError("Give at least one release.")
        guarantee = compose([release.guarantee for release in releases])
        self._forget()
        self.guarantee_ = guarantee
        self.release_ = releases[0] if len(releases) == 1 else releases

    def _keep(self, estimator: Any) -> None:
        """Keep what an estimator was fitted to, and the posterior if it drew one."""
        self._forget()
        if isinstance(release := getattr(estimator, "release_", None), (NoisyMarginals, NoisyCoefficients, tuple)):
            self.release_ = release
        if isinstance(posterior := getattr(estimator, "posterior_", None), PosteriorNetworks):
            self.__dict__["_posterior"] = posterior

    def _forget(self) -> None:
        """Drop what was derived from parameters and release."""
        for name in ("_posterior", "_held_conditioning", "release_"):
            self.__dict__.pop(name, None)

    def _fitted(self) -> Schema:
        raise NotImplementedError

    def _others(self, given: Mapping[str, Any]) -> list[str]:
        return [variable for variable in self._fitted().variables if variable not in given]

    def _checked(self, variables: Sequence[str] | None, evidence: Mapping[str, Any] | None) -> dict[str, Any]:
        schema, given = self._fitted(), dict(evidence or {})
        if isinstance(variables, str):
            raise TypeError(f"Name the variables in a list: [{variables!r}].")
        if variables is not None:
            schema.require([variables])
        for variable, state in given.items():
            schema.require([(variable,)])
            if state not in schema.states[variable]:
                states = ", ".join(map(repr, schema.states[variable]))
                raise SchemaError(f"Variable {variable!r} has no state {state!r}; it has {states}.")
            if variables is not None and variable in variables:
                raise SchemaError(f"Variable {variable!r} is both asked for and given as evidence.")
        return given

    def _point(self, asked: list[str], given: dict[str, Any]) -> DiscreteFactor:
        with np.errstate(invalid="ignore"):  # 0 / 0, refused below
            answer = _elimination(self).query(asked, evidence=given, show_progress=False)
        mass = float(np.sum(answer.values))
        if not mass > 0:
            raise ValueError(f"The evidence {given} has probability zero in the fitted network.")
        answer.values = answer.values / mass
        return answer

    @property
    def _conditioning(self) -> Conditioning:
        posterior = self.posterior_
        if "_held_conditioning" not in self.__dict__:
            self.__dict__["_held_conditioning"] = Conditioning(posterior.layout, posterior.schema)
        held: Conditioning = self.__dict__["_held_conditioning"]
        return held

    def _answers(self, asked: list[str], given: dict[str, Any], target: str) -> tuple[Vector, Vector, float]:
        """The fitted network's answer, that of every draw, and how many records have the evidence."""
        posterior = self.posterior_
        draws, shares = self._conditioning.distributions(posterior.draws(target), asked, given)
        records = posterior.totals * shares
        layout, logs, _ = log_linear(self, posterior.schema.states)
        own = self._conditioning if layout == posterior.layout else Conditioning(layout, posterior.schema)
        hidden = bool(given) and float(np.quantile(records, 0.05)) < 1
        try:
            value = own.distributions([logs], asked, given)[0][0]
        except ValueError:  # the fitted network gives the evidence no probability
            value, hidden = draws.mean(axis=0), True
        if hidden:
            warnings.warn(
                f"The release does not tell whether any record has the evidence {given}: the noise decides the answer.",
                stacklevel=3,
            )
        return value, draws, float(np.mean(records)) if given else float(np.mean(posterior.totals))


def bounds(draws: Vector, interval: float, records: Any = None) -> tuple[Vector, Vector]:
    """Lower and upper bounds of each column of draws.

    Parameters
    ----------
    draws : ndarray of shape (draws, answers)
    interval : float
        How often a further draw would lie between them; below as often as above (hence Weibull's positions: the
        usual ones are right for the middle of many draws, not for how often the next one lies outside of few).
    records : float or ndarray of shape (answers,), optional
        For probabilities, among how many records: bounds within half a record of 0 or 1 are 0 or 1.
    """
    lower, upper = np.quantile(draws, [(1 - interval) / 2, (1 + interval) / 2], axis=0, method="weibull")
    if records is not None:
        lower = np.where(lower * records < _HALF, 0.0, lower)
        upper = np.where((1 - upper) * records < _HALF, 1.0, upper)
    return lower, upper


def bounds_frame(values: Vector, draws: Vector, interval: float, index: Any, records: Any) -> pd.DataFrame:
    """Answers with their bounds."""
    lower, upper = bounds(draws, interval, records)
    return pd.DataFrame({"value": values, "lower": lower, "upper": upper}, index=index)


def check_interval(interval: Any) -> None:
    """Refuse what is no share between 0 and 1."""
    if isinstance(interval, (bool, str)) or not 0 < interval < 1:
        raise ValueError(f"interval is {interval!r}; it must be between 0 and 1, such as 0.9.")


def _elimination(network: Any) -> Any:
    from pgmpy.inference import VariableElimination  # imports half a second and 60 MB of pgmpy

    return VariableElimination(network)
