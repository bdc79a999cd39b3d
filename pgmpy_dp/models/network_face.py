"""Queries, releases and files of Bayesian and Markov networks."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import pandas as pd

from pgmpy_dp._notebooks import table
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.errors import MIXTURE, Message, ReleaseFormatError, SchemaError, callers_level
from pgmpy_dp.fitting.checks.fit_checks import QUICK, check_network
from pgmpy_dp.fitting.checks.misfit import FitCheck
from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks, draw_networks
from pgmpy_dp.inference.densities import DRAWS
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.models.answering import named_evidence
from pgmpy_dp.models.bounds import NAME_RELEASE
from pgmpy_dp.models.formats.formats import read_network, save_network
from pgmpy_dp.models.model import Model, places
from pgmpy_dp.models.numbers import Numbers, WithinBins, labelled, numbered
from pgmpy_dp.models.provenance import NO_GUARANTEE, Provenance
from pgmpy_dp.models.questions import checked_evidence
from pgmpy_dp.models.trees.answers import Drawn, TreeAnswers, slowly
from pgmpy_dp.models.trees.conditioning import Conditioning
from pgmpy_dp.models.trees.deviations import HIGHER, SCALES, Deviations
from pgmpy_dp.models.trees.farthest_pairs import measure_farthest
from pgmpy_dp.models.trees.named_tables import named
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.observed.observations import agreed_schema, agreed_total
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.privacy.guarantee import DECLARED, GRAPH_KEY, learned_graph
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.release.carrying import promised
from pgmpy_dp.release.kinds import first_holding, found_states, joint_guarantee, refuse_exact
from pgmpy_dp.schema import Schema


class PrivateNetwork(Model, Provenance):
    """Base class of `PrivateMarkovNetwork` and `PrivateBayesianNetwork`, with the methods of a fitted network."""

    _posterior: PosteriorNetworks
    _misfit: Deviations
    _read_by: tuple[Schema, ...]

    def add_edges_from(self, ebunch: Iterable[Any], *arguments: Any, **options: Any) -> None:
        """Add edges, as pgmpy does, but refuse a text, whose first two letters pgmpy would take for nodes.

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
        """Build pgmpy's junction tree, in whose tables states are accessed by name, as in the network."""
        tree = super().to_junction_tree()  # type: ignore[misc]
        tree.factors = [named(factor) for factor in tree.factors]
        return tree

    def _answering(self, names: Collection[str] | None = None) -> TreeAnswers:
        schema = self._fitted()
        layout, logs, _ = log_linear(self, schema.states)
        return TreeAnswers(schema, layout, logs, self._drawn_answers, self._correcting)

    @property
    def draws_(self) -> PosteriorNetworks:
        """Return networks drawn from their posterior given the release: 200, unless `sample_draws` was called.

        Bounds are equal-tailed quantiles of the networks' answers, shifted and widened by the deviation of the release
        from the network; see `pgmpy_dp.models.trees.deviations`. For variables that were measured together this
        deviation is known. Otherwise it is estimated from pairs of variables that were measured beside the network's
        families, if the release has at least three, such as those of `plan_measurements` with ``check=0.15``. Without
        such pairs, bounds assume that the structure is correct unless the families' own tables contradict it, and
        ``attrs["note"]`` says so. If the noise hides the evidence, bounds are only as good as the prior.
        """
        getattr(self, "release_", None)  # a changed network drops its draws
        return vars(self).get("_posterior") or self._drawn_afresh(200, 0)

    def sample_draws(self, draws: int = 200, seed: int = 0) -> PosteriorNetworks:
        """Draw and keep new `draws_`; see `pgmpy_dp.fitting.readings.posterior_networks.draw_networks`.

        Parameters
        ----------
        draws : int
            The number of draws, at least 20; bounds have a Monte Carlo error that decreases with it.
        seed : int
            The same seed gives the same draws; privacy does not depend on them.

        Warns
        -----
        UserWarning
            If the mean of some probability is uncertain although the chain was extended.
        """
        whole_number("draws", draws, 20)
        posterior = self._drawn_afresh(draws, seed)
        if posterior.poor:
            warnings.warn(slowly(f"the mean of one probability {posterior.poor}", draws), stacklevel=callers_level())
        return posterior

    def _drawn_afresh(self, draws: int, seed: int) -> PosteriorNetworks:
        self._fitted()
        self._posterior = draw_networks(self, self._releases(), draws, seed)
        return self._posterior

    def _drawn_answers(self) -> Drawn:
        """Return the draws with their conditioning and deviations."""
        posterior, held = self.draws_, vars(self).get("_drawn")
        if held is None or held.posterior is not posterior:
            held = self._drawn = Drawn.of(posterior, [release.as_measured for release in self._releases()])
        return held

    def _correcting(self) -> Deviations | None:
        """Return the release's deviations from the network if the test of fit fails, by which answers are corrected."""
        self._warn_of_misfit(bounds=True)
        check = vars(self).get("_check")
        if check is None or not check.fails:
            return None
        if "_misfit" not in vars(self):
            measured = [release.as_measured for release in self._releases()]
            schema = agreed_schema(measured, list(self._fitted().variables))
            layout, logs, _ = log_linear(self, schema.states)
            self._misfit = Deviations(schema, Conditioning(layout), logs[None], agreed_total(measured)[0], measured)
        return self._misfit

    def _tells(self, asked: Sequence[str], given: Mapping[str, Any]) -> bool:
        return self._drawn_answers().deviations["records"].tell(asked, given)

    def _unknown_effects(self, asked: Sequence[str], given: Mapping[str, Any]) -> float:
        deviations = self._drawn_answers().deviations["records"]
        measured = [release.as_measured for release in self._releases()]
        if deviations.outside is None or first_holding(measured, (*asked, *given)) is not None:
            return 0.0

        def scale(weights: Vector) -> float:
            """Return a mean that the prior, where few pairs were measured, does not dominate."""
            return float(weights @ np.sqrt(SCALES)) ** 2

        pairs = [(variable, other) for variable in asked for other in given]
        unknown = [pair for pair in pairs if first_holding(measured, pair) is None]
        scales = [scale(deviations.inside.new if deviations.joins(pair) else deviations.outside) for pair in unknown]
        return math.hypot(*scales, math.sqrt(len(given) - 1) * HIGHER * scale(deviations.outside))

    def _total(self) -> float:
        if getattr(self, "release_", None) is None:
            fact = "The network has no release, which tells the number of records"
            raise ValueError(Message(fact, "give n_samples", f"give --rows, or {NAME_RELEASE}"))
        return agreed_total(self._releases())[0]

    @property
    def fit_checked_(self) -> bool:
        """Whether the test of `check_fit` was run; queries run it themselves if it is cheap."""
        return "_check" in vars(self)

    def measure_misfit(
        self, data: PrivateDataset, epsilon: float | Fraction, *, delta: float = 0.0, pairs: int = 3
    ) -> NoisyMarginals:
        """Measure the pairs of variables on which records and network differ most, to detect missing edges.

        Among pairs that the network does not join, those whose counts are farthest from the network's expected counts
        are chosen privately; half of the privacy loss is spent on the choice and half on their tables. The tables are
        attached to the release: `check_fit` and bounds use them, and `guarantee_`, also after a new fit to `release_`,
        is the sum of both.

        Parameters
        ----------
        data : PrivateDataset
            The records of the network's release.
        epsilon : float
            Charged to the data set's ledger; with a delta as one (epsilon, delta) block, which a ledger accepts only
            before Gaussian measurements.
        delta : float
            In (0, 1) for Gaussian noise and the exponential mechanism; with 0, Laplace noise and permute-and-flip.
        pairs : int
            The maximum number of pairs.

        Returns
        -------
        NoisyMarginals
            The tables of the chosen pairs. Its guarantee includes the network's releases, on which the choice depends;
            composed with them, these are counted once.

        Raises
        ------
        BudgetExceededError
            If the ledger has less left; nothing is charged.
        SchemaError
            If the data set has other states.
        ValueError
            If the network has no release, joins all pairs, or its release is for another neighbouring relation; and if
            epsilon, delta or pairs are out of range. Nothing is charged.
        TypeError
            If `data` is not a `PrivateDataset`.

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
        schema, releases = self._fitted(), self._releases()
        measured = measure_farthest(self, schema, releases, data, epsilon, delta, whole_number("pairs", pairs))
        self.attach_release(*releases, measured)
        return measured

    @cached_property
    def _check(self) -> FitCheck:
        return check_network(self, self._releases())

    def __repr__(self) -> str:
        network: Any = self
        size = f"{len(network.nodes())} variables, {len(network.edges())} edges"
        return f"{type(self).__name__}({size})\n  {self._promise()}"

    __str__ = __repr__  # that of networkx omits the guarantee

    def _repr_html_(self) -> str:
        network: Any = self
        nodes = list(network.nodes())
        directed = hasattr(network, "get_parents")
        joined = {node: (network.get_parents if directed else network.neighbors)(node) for node in nodes}
        heads = ["variable", "parents" if directed else "neighbours"]
        rows = [(node, ", ".join(map(str, others))) for node, others in joined.items()]
        return table(f"{type(self).__name__} of {len(nodes)} variables: {self._promise()}.", heads, rows, most=60)

    def attach_release(self, *releases: Release) -> None:
        """Attach the release, or several of the same records, from which bounds are computed.

        This is needed for networks that were fitted elsewhere or read from a file. `guarantee_` becomes the joint
        guarantee of the releases and of whatever the network was learned from before.

        Raises
        ------
        TypeError
            If one is not a release of tables or coefficients.
        SchemaError
            If their states differ from the network's.
        ValueError
            If they are exact counts, or their guarantees differ in more than epsilon and delta.
        """
        for release in releases:
            if not isinstance(release, Release) or not release.cliques:
                raise TypeError(f"A NoisyMarginals or NoisyCoefficients is needed, got {type(release).__name__}.")
            for variable, states in self._fitted().states.items():
                if variable in release.schema.states and set(release.schema.states[variable]) != set(states):
                    raise SchemaError(f"Variable {variable!r} has other states in the release than in the network.")
            refuse_exact(release)
        if not releases:
            raise TypeError("Give at least one release.")
        held = vars(self).get("guarantee_", NO_GUARANTEE)
        before = DECLARED if held.mechanism == "none" else held
        guarantee = (joint_guarantee(releases) | before).after(learned_graph(self))
        self._forget()
        self.guarantee_ = guarantee
        self.release_ = releases[0] if len(releases) == 1 else releases
        self._note_states(found_states(releases))

    def _carrying(self, releases: Sequence[Release]) -> Self:
        """Attach the releases that the network's file carries, if any.

        The file's own guarantee is kept if its privacy loss is larger than theirs.

        Raises
        ------
        ReleaseFormatError
            If it is smaller, or is for another neighbouring relation or unit.
        """
        if releases:
            promise = vars(self).pop("guarantee_", None)
            self.attach_release(*releases)
            if promise is not None:
                self.guarantee_ = promised(promise, releases)
        return self

    def simulate(
        self,
        n_samples: int | None = None,
        *,
        evidence: Mapping[str, Any] | None = None,
        seed: int | None = None,
        numbers: Numbers = "states",
        predicting: str | None = None,
        include_latents: bool = False,
        show_progress: bool = True,
        data_sets: int | None = None,
    ) -> Any:
        """Draw independent synthetic records exactly; see :meth:`.Model.simulate`.

        Parameters
        ----------
        n_samples, evidence, seed, numbers, predicting
            See `Model.simulate`.
        include_latents : bool
            Whether to include columns of latent variables.
        show_progress : bool
            For compatibility with pgmpy; it has no effect.
        data_sets : int, optional
            Return a list of this many data frames, each drawn from a different network of `draws_`. `pgmpy_dp.combine`
            combines the estimates from each into one, with an interval that includes noise and sampling error.

        Returns
        -------
        DataFrame, or with `data_sets` a list of DataFrame
            Columns in the order of the release's schema or, without a release, of the nodes.
        """
        if data_sets is not None:
            return self._data_sets(self._count(n_samples), data_sets, seed, evidence, numbers)
        hidden: Collection[str] = () if include_latents else self.latents  # type: ignore[attr-defined]
        shown = [variable for variable in self._shown() if variable not in hidden]
        return self._records(n_samples, evidence, seed, numbers, predicting, shown)

    def _data_sets(
        self, count: int, data_sets: int, seed: int | None, evidence: Mapping[str, Any] | None, numbers: Numbers
    ) -> list[pd.DataFrame]:
        """Draw each data set from a different posterior draw, evenly spaced over the draws."""
        (schemas, numbers), whole = self._read_as(numbers), whole_number("data_sets", data_sets)
        given = checked_evidence(self._fitted(), evidence, schemas)
        self._warn_of_misfit()
        posterior, generator = self.draws_, np.random.default_rng(seed)
        draws, own = posterior.population, posterior.schema
        if whole > len(draws):
            raise ValueError(f"There are {len(draws)} draws for {whole} data sets: draw as many by sample_draws first.")
        conditioning, known = Conditioning(posterior.layout), places(own, given)
        shapes = self._shapes(list(self._bins())) if numbers == "drawn" else {}
        found = []
        for number, place in enumerate(np.linspace(0, len(draws) - 1, whole).round().astype(int)):
            with named_evidence(given):
                codes = conditioning.sample(draws[place], known, count, generator)
            seeded = np.random.default_rng(None if seed is None else [seed + number, 1])
            drawn = TreeAnswers(own, posterior.layout, draws[place], self._drawn_answers)
            within = WithinBins(shapes, seeded, own.states, partial(drawn.given_others, codes), number % DRAWS)
            found.append(numbered(labelled(codes, own, self._shown()), schemas, numbers, within))
        return found

    def _within_bins(self, seed: int | None) -> np.random.Generator:
        return np.random.default_rng(None if seed is None else [seed, 1])

    def _shown(self) -> list[str]:
        return list(self.nodes())  # type: ignore[attr-defined]

    def _predicted(self) -> list[str]:
        return [variable for variable in self._shown() if variable not in self.latents]  # type: ignore[attr-defined]

    def _declared(self) -> tuple[Schema, ...]:
        """List the schemas of the original records, if the network has or had a release."""
        return vars(self).get("_read_by", ())  # type: ignore[no-any-return]

    def save(self, filename: str | os.PathLike[str], filetype: str | None = None) -> None:
        """Write the network as `pgmpy_dp.networks.save_network` does, in the format of the suffix.

        A ``.zip`` file carries the release, so that bounds, `check_fit`, reports and the edges of bins, by which
        numbers are read and drawn, remain available. Other files name the states alone, bins included: attach the
        release by `attach_release`. Only ``.zip`` and ``.json`` files contain the guarantee.

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
            If the file does not have the format of its suffix, or holds a network of the other kind.
        """
        with read_network(filename, filetype) as (network, releases):
            if not issubclass(cls, type(network)):
                kind = type(network).__name__
                raise ReleaseFormatError(f"it holds a {kind}: pgmpy_dp.load reads models of every kind.")
            return cls.of(network)._carrying(releases)

    @classmethod
    def of(cls, network: Network) -> Self:
        """Build one with the structure and parameters of another network of the same kind."""
        raise NotImplementedError

    def _keep(self, estimator: Any) -> None:
        """Keep an estimator's release, its guarantee, and the posterior if it drew one.

        Warns
        -----
        UserWarning
            If it has no guarantee and its name does not say so, as with pgmpy's own estimators.
        """
        self._forget()
        vars(self).pop("_read_by", None)
        for _, data in self.nodes(data=True):  # type: ignore[attr-defined]
            data.pop(GRAPH_KEY, None)
        self._note_states(getattr(estimator, "_found", {}))
        self.guarantee_ = getattr(estimator, "guarantee_", NO_GUARANTEE)
        if self.guarantee_ is NO_GUARANTEE:
            warnings.warn(
                f"NOT PRIVATE: {type(estimator).__name__} promises nothing for the records, and the network may tell "
                "all of them. Fit it by an estimator of pgmpy_dp, such as AutoMLE.",
                stacklevel=callers_level(),
            )
        release = getattr(estimator, "release_", None)
        if release is not None and (isinstance(release, tuple) or release.cliques):  # no bounds from releases of draws
            self.release_ = release
        if isinstance(posterior := getattr(estimator, "posterior_", None), PosteriorNetworks):
            self._posterior = posterior

    def _warn_of_misfit(self, bounds: bool = False) -> None:
        """Warn once if the test of fit fails; it is run for bounds, and otherwise only if it is cheap."""
        most_work = math.inf if bounds else QUICK
        released = getattr(self, "release_", None) is not None
        if "_check" not in vars(self) and released and vars(self).get("_tried", 0.0) < most_work:
            self._tried = most_work
            with suppress(ValueError):  # tables are too large, or do not cover the network
                self._check = check_network(self, self._releases(), most_work=most_work)
        check = vars(self).get("_check")
        if check is not None and check.fails and "_warned" not in vars(self):
            self._warned = True
            advice = "add edges where {} finds it, {}or {}"
            own = "fit by {}, which reads each family from its own table, " if self._told_by_families() else ""
            python = advice.format("check_fit()", own.format("PrivateMLE()"), MIXTURE[0])
            shell = advice.format("pgmpy-dp check", own.format("--estimator private-mle"), MIXTURE[1])
            worst = f": {check.worst(1)[0]}" if check.worst() else ""
            fact = (
                f"The release contradicts the network ({check.probability}, misfit {check.z2:.3g} times the "
                f"expected){worst}. Parameters, files and synthetic records may be far off; answers about variables "
                "that were measured together follow the release, and bounds allow for what else it tells"
            )
            warnings.warn(Message(fact, python, shell), stacklevel=callers_level())

    def _told_by_families(self) -> bool:
        """Return whether every family has its own table, and CPDs from these would differ from the network's."""
        return False
