"""Fitted networks answer with their uncertainty, simulate records, and go into files."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Self, overload

import numpy as np
import pandas as pd
from pgmpy.factors.discrete import DiscreteFactor

from pgmpy_dp._notebooks import table
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.errors import Message, ReleaseFormatError, SchemaError
from pgmpy_dp.fitting.checks.fit_checks import QUICK, check_network
from pgmpy_dp.fitting.checks.misfit import FitCheck
from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks, draw_networks, mixes_slowly
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.inference.posterior.mixing import UNCERTAIN, uncertain
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.models.bounds import ATTACH_RELEASE, NAME_RELEASE, bounds_frame, check_interval, state_index
from pgmpy_dp.models.formats.formats import read_network, save_network
from pgmpy_dp.models.numbers import Numbers, numbered, require_numbers
from pgmpy_dp.models.provenance import NO_GUARANTEE, Provenance
from pgmpy_dp.models.questions import checked_evidence, checked_question, numbers_of_states
from pgmpy_dp.models.simulation import simulate, simulate_from_draws
from pgmpy_dp.models.trees.conditioning import Conditioning
from pgmpy_dp.models.trees.deviations import Deviations
from pgmpy_dp.models.trees.farthest_pairs import measure_farthest
from pgmpy_dp.models.trees.named_tables import named
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.release import NoisyMarginals, Release, compose
from pgmpy_dp.release.carrying import require_promised
from pgmpy_dp.release.composition import sharing
from pgmpy_dp.release.kinds import compose_releases
from pgmpy_dp.schema import Schema

_STRUCTURE = Message(
    "These variables were not measured together, nor enough pairs that the network does not join: the bounds hold if "
    "its structure is right, and otherwise the release cannot tell",
    "plan_measurements(..., check=0.15) measures such pairs",
    "pgmpy-dp release --check 0.15 measures such pairs",
)

# Joint states of which `map_probability` draws the whole table.
_FEW_STATES = 1000


class PrivateNetwork(Provenance):
    """`PrivateMarkovNetwork` and `PrivateBayesianNetwork` share what they can do once they are fitted."""

    schema_: Schema
    _posterior: PosteriorNetworks
    _read_by: tuple[Schema, ...]

    def add_edges_from(self, ebunch: Iterable[Any], *arguments: Any, **options: Any) -> None:
        """Add edges, as pgmpy does; a text is none, of which pgmpy would take the first two letters.

        Raises
        ------
        SchemaError
            If an edge is a text.
        """
        edges = list(ebunch)
        for edge in edges:
            if isinstance(edge, str):
                raise SchemaError(f"An edge is a pair of names, such as ('age', 'sex'), got the text {edge!r}.")
        super().add_edges_from(edges, *arguments, **options)  # type: ignore[misc]

    def to_junction_tree(self) -> Any:
        """Make pgmpy's junction tree, whose tables' states go by their names as those of the network."""
        tree = super().to_junction_tree()  # type: ignore[misc]
        tree.factors = [named(factor) for factor in tree.factors]
        return tree

    def query(
        self,
        variables: Sequence[str],
        evidence: Mapping[str, Any] | None = None,
        interval: float | None = None,
        target: str = "population",
    ) -> DiscreteFactor | pd.DataFrame:
        """Find the distribution of some variables given the states of others.

        Parameters
        ----------
        variables : sequence of str
        evidence : mapping of variable to state, optional
            With a release, a number stands for the bin that holds it, and a text among the `missing_values` of its
            schema for the state of missing values.
        interval : float in (0, 1), optional
            Bounds have this share of the posterior probability between them, such as 0.9; without it there are none.
        target : {"population", "records"}
            Bounds are for the distribution behind the records, or for the answer that the same records would give
            without noise. The first are wider: they count the chance in which records were sampled as well.

        Returns
        -------
        DiscreteFactor, or with `interval` a DataFrame
            The answer is normalised. The frame has a row for each state (or joint state) and the columns `value`,
            `lower` and `upper`; a value is always between its bounds. Bounds less than half a record away from 0 or 1
            are 0 or 1.

        Raises
        ------
        SchemaError
            If a variable or state is unknown, or no bin holds a number.
        ValueError
            If the evidence has probability zero, if the interval is not between 0 and 1, or if the network has no
            release.
        TreeTooLargeError
            If a junction tree does not fit in memory; without an interval, one of what the answer depends on.

        Warns
        -----
        UserWarning
            With an interval, if the release does not tell whether the evidence occurs at all. Once, if the test of fit
            fails; it is made at the first answer where it takes about a second, else at the first with an interval.

        Notes
        -----
        With an interval, the value is the mean of draws, and bounds are their equal-tailed quantiles: draws of
        `posterior_`, moved and widened by how far the release deviates from the network, see
        `pgmpy_dp.models.trees.deviations`. Where variables were measured together, that is known. Otherwise it is
        judged by other pairs of variables that the network does not join, if the release has at least three, as those
        of ``plan_measurements(..., check=0.15)``; bounds for the records then hold the records' own answer. If it has
        none, bounds take the structure for right, and say so in ``attrs["note"]``.

        Records count as independent: with several rows a person, the population's bounds are too narrow. Where the
        release hides the evidence they are those of the prior, and no better than it.

        Examples
        --------
        >>> import pgmpy_dp as dp
        >>> records = pd.DataFrame({"age": [7, 40, 41, 64] * 250, "smoke": ["no", "yes", "no", "no"] * 250})
        >>> schema = dp.Schema({"age": dp.Bins([0, 18, 65]), "smoke": ["yes", "no"]})
        >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(10.0))
        >>> network = dp.PrivateBayesianNetwork([("age", "smoke")]).fit(data.measure([("age", "smoke")], epsilon=10.0))
        >>> answer = network.query(["smoke"], {"age": 40})  # that of {"age": "18_to_65"}
        >>> round(float(answer.get_value(smoke="yes")), 1)
        0.3
        """
        schema, asked, given = self._checked(variables, evidence)
        if interval is None:
            return self._point(asked, given)
        check_interval(interval)
        values, draws, records = self._answers(asked, given, target)
        index = state_index(schema, asked)
        frame = bounds_frame(values.ravel(), draws.reshape(len(draws), -1), interval, index, records)
        return self._noted(frame, self._deviations.tell(asked, given))

    def map_query(
        self, variables: Sequence[str] | None = None, evidence: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Find the most probable joint state of some variables, by default of all that are not given.

        Other variables are summed out first. Of states that are equally probable it is the first, in the order in
        which variables are asked for.

        Raises
        ------
        SchemaError
            If a variable or state is unknown.
        ValueError
            If the evidence has probability zero.
        TreeTooLargeError
            If the tables of an exact answer do not fit in memory.
        """
        schema, asked, given = self._checked(variables, evidence)
        (answer,) = self._most_probable(schema, asked, [given])
        return answer

    def map_probability(
        self,
        variables: Sequence[str] | None = None,
        evidence: Mapping[str, Any] | None = None,
        target: str = "population",
    ) -> tuple[dict[str, Any], float]:
        """Find the most probable joint state of some variables, and how sure the release makes it.

        Parameters
        ----------
        variables, evidence
            They are those of `map_query`.
        target : {"population", "records"}
            It is that of `query`.

        Returns
        -------
        state : dict
        probability : float
            The share of draws in which the state is the most probable one.

        Notes
        -----
        Of up to a thousand joint states, draws are those of `query` with an interval: moved and widened by how far the
        release deviates from the network, so that the state may be another than that of `map_query`, which takes the
        fitted network at its word. Of more, they are those of `posterior_`, and the state is that of `map_query`.
        """
        schema, asked, given = self._checked(variables, evidence)
        if math.prod(schema.shape(tuple(asked))) <= _FEW_STATES:
            with suppress(TreeTooLargeError):
                mean, draws, _ = self._answers(asked, given, target)
                best = int(mean.argmax())
                places = np.unravel_index(best, mean.shape)
                answer = {v: schema.states[v][int(place)] for v, place in zip(asked, places, strict=True)}
                return answer, float(np.mean(draws.reshape(len(draws), -1).argmax(axis=1) == best))
        answer = self.map_query(asked, given)
        found = self._conditioning.most_probable(self.posterior_.draws(target), asked, given)
        place = tuple(schema.states[variable].index(answer[variable]) for variable in asked)
        return answer, float(np.mean([place == states for states in found]))

    def expectation(
        self,
        values: Mapping[str, Mapping[Any, float]],
        evidence: Mapping[str, Any] | None = None,
        interval: float = 0.9,
        target: str = "population",
    ) -> pd.DataFrame:
        """Find the expected values of numbers attached to states, with bounds.

        Parameters
        ----------
        values : mapping of variable to mapping of state to float
            Every state has a number, as in ``{"age": {"young": 25, "old": 70}}``.
        evidence, interval, target
            They are those of `query`.

        Returns
        -------
        DataFrame
            It has a row for each variable, and columns `value`, `lower` and `upper`.
        """
        check_interval(interval)
        rows, told = [], True
        for variable, weights in numbers_of_states(self._fitted(), values).items():
            _, asked, given = self._checked([variable], evidence)
            answer, draws, _ = self._answers(asked, given, target)
            told &= self._deviations.tell(asked, given)
            rows.append(bounds_frame(np.array([answer @ weights]), (draws @ weights)[:, None], interval, asked, None))
        return self._noted(pd.concat(rows).rename_axis("variable"), told)

    @property
    def posterior_(self) -> PosteriorNetworks:
        """Return networks drawn from what the release leaves open: 200, unless `sample_posterior` was called."""
        getattr(self, "release_", None)  # a network that was changed drops its draws
        return vars(self).get("_posterior") or self._drawn_afresh(200, 0)

    def sample_posterior(self, draws: int = 200, seed: int = 0) -> PosteriorNetworks:
        """Draw `posterior_` afresh, and keep it; see `pgmpy_dp.fitting.readings.posterior_networks.draw_networks`.

        Parameters
        ----------
        draws : int
            Bounds have an error from a finite number of draws; 20 are the least.
        seed : int
            The same seed gives the same draws; no privacy hangs on them.

        Warns
        -----
        UserWarning
            If some probability's mean is uncertain though the chain was run longer.
        """
        whole_number("draws", draws, 20)
        posterior = self._drawn_afresh(draws, seed)
        if posterior.poor:
            warnings.warn(_slowly(f"the mean of one probability {posterior.poor}", draws), stacklevel=2)
        return posterior

    def _drawn_afresh(self, draws: int, seed: int) -> PosteriorNetworks:
        self._fitted()
        releases = self._releases()
        vars(self).pop("_conditioning", None)
        self._posterior = draw_networks(self, releases, draws, seed)
        return self._posterior

    @property
    def fit_checked_(self) -> bool:
        """Whether `check_fit` was made: answers make it themselves where that takes little work."""
        return "_check" in vars(self)

    def check_fit(self) -> FitCheck:
        """Hold the release against the network: post-processing, at no cost to privacy.

        The release says how noisy it is, so that the misfit of a right network has a known law, whatever the estimator;
        see `pgmpy_dp.fitting.checks.misfit`. The result is kept until the network changes.

        Returns
        -------
        FitCheck
            `p_value`, `z2`, the frames `tables` and `pairs` of what is off and by how much, and `fails`.

        Raises
        ------
        ValueError
            If the network has no release.
        TreeTooLargeError
            If a junction tree, or derivatives of all measured tables, do not fit in memory.

        Notes
        -----
        Tables of families say little of edges that are missing. `measure_misfit` looks for them at the least cost, and
        `plan_measurements(..., check=0.15)` measures some other tables in the first place.

        Records are counted as independent; where units have several rows, the test errs to the side of the network.
        """
        self._fitted()
        self._releases()  # a network that was changed has none, and drops the check
        return self._check

    def measure_misfit(
        self, data: PrivateDataset, epsilon: float | Fraction, *, delta: float = 0.0, pairs: int = 3
    ) -> NoisyMarginals:
        """Measure the pairs of variables whose records are farthest from the network, to see whether edges are missing.

        Pairs that the network does not join are chosen privately, by the distance of their counts from what it expects;
        half of the privacy loss goes to that, half to their tables. They are attached beside the release: `check_fit`
        and bounds use them, `guarantee_` promises the sum, and a new fit to `release_` as well.

        Parameters
        ----------
        data : PrivateDataset
            The records that the network's release is of.
        epsilon : float
            Charged to the data set's ledger; with a delta as one (epsilon, delta) block, which a ledger takes before
            Gaussian measurements.
        delta : float
            In (0, 1) for Gaussian noise and the exponential mechanism; with 0, Laplace noise and permute-and-flip.
        pairs : int
            The most that are measured.

        Returns
        -------
        NoisyMarginals
            The tables of the chosen pairs. Its guarantee counts the network's releases, by which they were chosen;
            with these together it counts them once.

        Raises
        ------
        BudgetExceededError
            If the ledger has less left; nothing is charged.
        SchemaError
            If the data set has other states.
        ValueError
            If the network has no release, joins all pairs, or its release is for another change of the records; in an
            attempt of `PrivateDataset.retry`, since the network would keep what failed tries release; and if epsilon,
            delta or pairs are out of range. Nothing is charged.
        TypeError
            If the records are not behind a `PrivateDataset`.

        Examples
        --------
        >>> import pgmpy_dp as dp
        >>> records = pd.DataFrame({"age": [7, 40, 41, 64] * 250, "smoke": ["no", "yes", "no", "no"] * 250})
        >>> schema = dp.Schema({"age": dp.Bins([0, 18, 65]), "smoke": ["yes", "no"]})
        >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(2.0))
        >>> network = dp.PrivateBayesianNetwork()
        >>> network.add_nodes_from(["age", "smoke"])  # and no edge
        >>> _ = network.fit(data.measure([("age",), ("smoke",)], epsilon=1.0))
        >>> network.measure_misfit(data, epsilon=1.0).cliques
        (('age', 'smoke'),)
        >>> network.check_fit().fails
        True
        """
        schema, releases, promised = self._fitted(), self._releases(), self.guarantee_
        measured = measure_farthest(self, schema, releases, data, epsilon, delta, whole_number("pairs", pairs))
        guarantee = compose([promised, measured.guarantee])  # it may count more than the releases do
        told = [part for release in releases for part in release.payments]  # they say what the pairs are far from
        measured = replace(measured, guarantee=sharing(measured.guarantee, told))
        self.attach_release(*releases, measured)
        self.guarantee_ = guarantee
        return measured

    @cached_property
    def _check(self) -> FitCheck:
        return check_network(self, self._releases())

    def _releases(self) -> tuple[Release, ...]:
        held = getattr(self, "release_", None)
        if held is None:
            raise ValueError(
                Message(
                    "The network has no release, or was changed since it was fitted",
                    f"fit it, or {ATTACH_RELEASE}",
                    NAME_RELEASE,
                )
            )
        return held if isinstance(held, tuple) else (held,)

    def __repr__(self) -> str:
        network: Any = self
        size = f"{len(network.nodes())} variables, {len(network.edges())} edges"
        return f"{type(self).__name__}({size})\n  {self._promise()}"

    def _repr_html_(self) -> str:
        network: Any = self
        nodes = list(network.nodes())
        directed = hasattr(network, "get_parents")
        joined = {node: (network.get_parents if directed else network.neighbors)(node) for node in nodes}
        heads = ["variable", "parents" if directed else "neighbours"]
        rows = [(node, ", ".join(map(str, others))) for node, others in joined.items()]
        return table(f"{type(self).__name__} of {len(nodes)} variables: {self._promise()}.", heads, rows, most=60)

    def attach_release(self, *releases: Release) -> None:
        """Keep the release, or several of the same records, that bounds are to be drawn from.

        Networks that were fitted elsewhere or read from a file need it. `guarantee_` becomes that of all together.

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
            if not isinstance(release, Release) or not release.cliques:
                raise TypeError(f"A NoisyMarginals or NoisyCoefficients is needed, got {type(release).__name__}.")
            for variable, states in self._fitted().states.items():
                if variable in release.schema.states and set(release.schema.states[variable]) != set(states):
                    raise SchemaError(f"Variable {variable!r} has other states in the release than in the network.")
            if release.guarantee.mechanism == "none":
                raise ValueError("These are exact counts, not a release: without noise there is nothing to bound.")
        if not releases:
            raise TypeError("Give at least one release.")
        guarantee = compose_releases(releases)
        self._forget()
        self.guarantee_ = guarantee
        self.release_ = releases[0] if len(releases) == 1 else releases

    def _carrying(self, releases: Sequence[Release]) -> Self:
        """Attach what the network's file carries, if anything.

        The file's own promise stays where it counts more than they do.

        Raises
        ------
        ReleaseFormatError
            If it counts less, or is for something else.
        """
        if releases:
            promise = vars(self).get("guarantee_")
            if promise is not None:
                require_promised(promise, releases)
            self.attach_release(*releases)
            if promise is not None:
                self.guarantee_ = promise
        return self

    @overload
    def simulate(
        self,
        n_samples: int = 10,
        *,
        evidence: Mapping[str, Any] | None = None,
        seed: int | None = None,
        include_latents: bool = False,
        show_progress: bool = True,
        data_sets: int,
        numbers: Numbers = "states",
    ) -> list[pd.DataFrame]: ...
    @overload
    def simulate(
        self,
        n_samples: int = 10,
        *,
        evidence: Mapping[str, Any] | None = None,
        seed: int | None = None,
        include_latents: bool = False,
        show_progress: bool = True,
        data_sets: None = None,
        numbers: Numbers = "states",
    ) -> pd.DataFrame: ...
    def simulate(
        self,
        n_samples: int = 10,
        *,
        evidence: Mapping[str, Any] | None = None,
        seed: int | None = None,
        include_latents: bool = False,
        show_progress: bool = True,
        data_sets: int | None = None,
        numbers: Numbers = "states",
    ) -> pd.DataFrame | list[pd.DataFrame]:
        """Draw independent synthetic records exactly, as `pgmpy_dp.networks.simulate` does for any network.

        The names of the other arguments are pgmpy's; `show_progress` has no effect, since nothing takes long enough to
        show.

        Parameters
        ----------
        evidence : mapping of variable to state, optional
            It is that of `query`.
        data_sets : int, optional
            Give a list of so many data frames, each drawn from another network of `posterior_`. What is estimated from
            each, `pgmpy_dp.combine` makes one estimate of, with an interval that counts noise and sampling.
        numbers : {"states", "uniform", "midpoint"}
            Binned variables come back as the labels of their bins, as numbers drawn from within them, or as their
            middles. Between whole edges numbers are whole; a bin of width 1 gives its lower edge.

        Returns
        -------
        DataFrame, or with `data_sets` a list of DataFrame
            Columns in the order of the release's schema; without a release, in that of the nodes.

        Raises
        ------
        ValueError
            If numbers are asked for, and the network has no release, which says the edges of bins.
        SchemaError
            If numbers are asked for, and a bin is open.

        Warns
        -----
        UserWarning
            Once, if the test of fit fails, as in `query`.
        """
        schema, schemas = self._fitted(), self._schemas_of_numbers(numbers)
        evidence = checked_evidence(schema, evidence, schemas)
        self._warn_of_misfit(stacklevel=3)
        if data_sets is None:
            return numbered(simulate(self, n_samples, seed, evidence, include_latents), schemas, numbers, seed)
        frames = simulate_from_draws(self, self.posterior_, self._conditioning, n_samples, data_sets, seed, evidence)
        return [
            numbered(frame, schemas, numbers, None if seed is None else seed + place)
            for place, frame in enumerate(frames)
        ]

    def _declared(self) -> tuple[Schema, ...]:
        """List the schemas that the records were read by, if the network has or had a release."""
        return vars(self).get("_read_by", ())  # type: ignore[no-any-return]

    def _schemas_of_numbers(self, numbers: Numbers) -> tuple[Schema, ...]:
        """List those schemas, which must say the edges of bins unless names are asked for."""
        schemas = self._declared()
        if numbers == "states":
            return schemas
        if not schemas:
            raise ValueError(
                Message(
                    "The network has no release, which states the edges of its bins",
                    f'use numbers="states", or {ATTACH_RELEASE}',
                    f"use --numbers states, or {NAME_RELEASE}",
                )
            )
        for schema in schemas:
            require_numbers({v: bins for v, bins in schema.bins.items() if v in self.nodes()}, numbers)  # type: ignore[attr-defined]
        return schemas

    def save(self, filename: str | os.PathLike[str], filetype: str | None = None) -> None:
        """Write the network as `pgmpy_dp.networks.save_network` does, in the format that the end of the name says.

        A ``.zip`` file carries the release: bounds, `check_fit` and reports are those of this network again. In other
        files it is not: `attach_release` brings it back. The guarantee is in ``.zip`` and ``.json`` files alone.

        Raises
        ------
        ValueError
            If the name ends in ``.zip`` and the network has no release.
        """
        self._fitted()
        save_network(self, filename, filetype=filetype)

    @classmethod
    def load(cls, filename: str | os.PathLike[str], filetype: str | None = None) -> Self:
        """Read a network that `save`, the command line or another program wrote, as `load_network` does.

        Raises
        ------
        ReleaseFormatError
            If the file is not of the format its name says, or holds a network of the other kind.
        """
        with read_network(filename, filetype) as (network, releases):
            if not issubclass(cls, type(network)):
                kind = type(network).__name__
                raise ReleaseFormatError(f"{filename} holds a {kind}: read it by pgmpy_dp.networks.load_network.")
            return cls.of(network)._carrying(releases)

    @classmethod
    def of(cls, network: Network) -> Self:
        """Make one with the structure and parameters of another network of the same kind."""
        raise NotImplementedError

    def _keep(self, estimator: Any) -> None:
        """Keep what an estimator was fitted to, what holds for it, and the posterior if it drew one.

        Warns
        -----
        UserWarning
            If it promises nothing and its name does not say so, as with pgmpy's own estimators.
        """
        self._forget()
        vars(self).pop("_read_by", None)
        self.guarantee_ = getattr(estimator, "guarantee_", NO_GUARANTEE)
        if self.guarantee_ is NO_GUARANTEE:
            warnings.warn(
                f"NOT PRIVATE: {type(estimator).__name__} promises nothing for the records, and the network may tell "
                "all of them. Fit it by an estimator of pgmpy_dp, such as AutoMLE.",
                stacklevel=3,
            )
        release = getattr(estimator, "release_", None)
        if release is not None and (isinstance(release, tuple) or release.cliques):  # bounds do not follow from draws
            self.release_ = release
        if isinstance(posterior := getattr(estimator, "posterior_", None), PosteriorNetworks):
            self._posterior = posterior

    def _fitted(self) -> Schema:
        raise NotImplementedError

    def _checked(
        self, variables: Sequence[str] | None, evidence: Mapping[str, Any] | None
    ) -> tuple[Schema, list[str], dict[str, Any]]:
        """Refuse what the network does not have; warn where the test of fit fails."""
        schema = self._fitted()
        question = checked_question(schema, variables, evidence, self._declared())
        self._warn_of_misfit()
        return schema, *question

    def _warn_of_misfit(self, most_work: float = QUICK, stacklevel: int = 4) -> None:
        """Warn once if the test of fit fails, where it has been made or takes no more work."""
        released = getattr(self, "release_", None) is not None
        if "_check" not in vars(self) and released and vars(self).get("_tried", 0.0) < most_work:
            self._tried = most_work
            with suppress(ValueError):  # tables that are too large, or do not cover the network
                self._check = check_network(self, self._releases(), most_work=most_work)
        check = vars(self).get("_check")
        if check is not None and check.fails and "_warned" not in vars(self):
            self._warned = True
            advice = "add edges where {} finds it, {}or {}, which needs no network"
            own = "fit by {}, which reads each family from its own table, " if self._told_by_families() else ""
            python = advice.format("check_fit()", own.format("PrivateMLE()"), "fit PairwiseMixture")
            shell = advice.format("pgmpy-dp check", own.format("--estimator private-mle"), "use pgmpy-dp synthesize")
            worst = f": {check.worst(1)[0]}" if check.worst() else ""
            fact = (
                f"The release contradicts the network ({check.probability}, misfit {check.z2:.3g} times the "
                f"expected){worst}. Answers and synthetic records may be far off; bounds allow for it as far as the "
                "release tells"
            )
            warnings.warn(Message(fact, python, shell), stacklevel=stacklevel)

    def _told_by_families(self) -> bool:
        """Say whether CPDs that are each read from its own table are there to be had, and others than these."""
        return False

    def _noted(self, frame: pd.DataFrame, told: bool) -> pd.DataFrame:
        """Note beside answers that the test of fit fails, and where the release does not tell how far they are off."""
        check = vars(self).get("_check")
        if check is not None and check.fails:
            frame.attrs["misfit"] = f"The release contradicts the network ({check.probability})"
        if not told:
            frame.attrs["note"] = _STRUCTURE
        return frame

    def _point(self, asked: list[str], given: dict[str, Any]) -> DiscreteFactor:
        """Find an answer without bounds."""
        raise NotImplementedError

    def _most_probable(
        self, schema: Schema, asked: Sequence[str], evidence: Iterable[Mapping[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Find the most probable joint state of the same variables under each evidence."""
        layout, logs, _ = log_linear(self, schema.states)
        conditioning = Conditioning(layout, schema)
        for given in evidence:
            (places,) = conditioning.most_probable([logs], asked, given)
            yield {variable: schema.states[variable][place] for variable, place in zip(asked, places, strict=True)}

    @cached_property
    def _conditioning(self) -> Conditioning:
        return Conditioning(self.posterior_.layout, self.posterior_.schema)

    def _answers(self, asked: list[str], given: dict[str, Any], target: str) -> tuple[Vector, Vector, float]:
        """Find the answer, that of every draw, and how many records have the evidence."""
        self._warn_of_misfit(math.inf)
        posterior = self.posterior_
        draws, shares = self._conditioning.distributions(posterior.draws(target), asked, given)
        poor = uncertain(draws.reshape(len(draws), -1), *UNCERTAIN)
        if poor:
            warnings.warn(_slowly(f"this answer's mean {poor}", len(draws)), stacklevel=3)
        records = posterior.totals * shares
        if given and float(np.quantile(records, 0.05)) < 1:
            warnings.warn(
                f"The release does not tell whether any record has the evidence {given}: the noise decides the answer.",
                stacklevel=3,
            )
        mean = float(np.mean(records if given else posterior.totals))
        draws = self._deviations.applied(draws, asked, given, mean, target)
        if posterior.schema.rules:  # deviations know of no rules
            draws = draws * posterior.schema.possible(asked, given)
            draws /= draws.sum(axis=tuple(range(1, draws.ndim)), keepdims=True)
        return draws.mean(axis=0), draws, mean

    @property
    def _deviations(self) -> Deviations:
        """Return what the release tells of deviations from the network, for the posterior drawn last."""
        posterior, held = self.posterior_, vars(self).get("_deviating")
        if held is None or held.posterior is not posterior:
            held = self._deviating = Deviations(posterior, self._releases(), self._conditioning)
        return held


def _slowly(mean: str, draws: int) -> Message:
    return mixes_slowly(mean, f"sample_posterior(draws={4 * draws}), and compare two seeds", f"--draws {4 * draws}")
