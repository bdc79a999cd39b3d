"""Fitted networks of both kinds: questions, releases, files, and where the parameters come from."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any, Self, TypeVar

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp._notebooks import table
from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.steps import Asking, Choose, Measure, Step, TablesInSteps
from pgmpy_dp.errors import ReleaseFormatError, SchemaError, warn
from pgmpy_dp.fitting.plans.planning import shares
from pgmpy_dp.fitting.readings.posterior_networks import PosteriorNetworks, warn_of_slow_mixing
from pgmpy_dp.inference.densities import DRAWS
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.conditioning import Conditioning
from pgmpy_dp.models.formats.formats import read_network, save_network
from pgmpy_dp.models.model import Model, seeded
from pgmpy_dp.models.questions import Question
from pgmpy_dp.models.simulated import Numbers, WithinBins, labelled, numbered
from pgmpy_dp.networks.fitted_in_groups import FittedInGroups
from pgmpy_dp.networks.fitted_network import Contents, FittedNetwork
from pgmpy_dp.observed.factors import Network, log_linear
from pgmpy_dp.observed.observed import agreed_total
from pgmpy_dp.observed.reading import joined_pairs
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.privacy.cost import Protects
from pgmpy_dp.privacy.guarantee import DECLARED, FIT_KEY, GRAPH_KEY, Guarantee, learned, learned_graph
from pgmpy_dp.release import NoisyMarginals, Release
from pgmpy_dp.release.carrying import promised
from pgmpy_dp.release.kinds import found_states, joint_guarantee, refuse_exact, several
from pgmpy_dp.schema import Clique, Schema

Table = TypeVar("Table", DiscreteFactor, TabularCPD)


class NamedFactor(DiscreteFactor):
    """A factor whose states are accessed only by name."""

    def reduce(self, values: Any, inplace: bool = True, show_warnings: bool = True) -> Any:
        """Reduce to given states of some variables."""
        values = values if isinstance(values, str) else [self._named(pair) for pair in values]
        return super().reduce(values, inplace=inplace, show_warnings=show_warnings)

    def _named(self, pair: Any) -> Any:
        if not isinstance(pair, tuple) or pair[0] not in self.variables:
            return pair  # pgmpy refuses it
        variable, state = pair
        if hasattr(pair, "state"):  # a `State` of pgmpy's Gibbs sampler holds a position
            return variable, self.get_state_names(variable, state)
        self.get_state_no(variable, state)
        return pair


class NamedCPD(NamedFactor, TabularCPD):
    """A CPD whose states are accessed only by name, also in its copies and factors."""

    def copy(self) -> TabularCPD:
        """Return an independent copy."""
        return named(super().copy())

    def to_factor(self) -> DiscreteFactor:
        """Return a factor with the same table."""
        return named(super().to_factor())


def named(table: Table) -> Table:
    """View a table of pgmpy with access by name only; a change of either table changes both."""
    kind = NamedCPD if isinstance(table, TabularCPD) else NamedFactor
    own = kind.__new__(kind)
    own.__dict__ = vars(table)
    return own


NO_GUARANTEE = Guarantee.of(math.inf, mechanism="none", private=False)


def simulate(
    network: Network,
    n_samples: int = 10,
    seed: int | None = None,
    evidence: Mapping[str, Any] | None = None,
    include_latents: bool = False,
) -> pd.DataFrame:
    """Draw independent records of any network of pgmpy exactly, without numpy's global generator."""
    whole_number("n_samples", n_samples, 0)
    schema = Schema.from_model(network)
    question = Question.of(schema, None, evidence)
    layout, potentials, _ = log_linear(network, schema.states)
    with question.possible():
        generator = seeded(seed)
        codes = Conditioning(layout).sample(potentials, question.places, n_samples, generator)
    hidden = () if include_latents else network.latents
    shown = [variable for variable in network.nodes() if variable not in hidden]
    return labelled(codes, schema, shown)


class PrivateNetwork(Model):
    """Base class of `PrivateMarkovNetwork` and `PrivateBayesianNetwork`, with the methods of a fitted network."""

    @property
    def guarantee_(self) -> Guarantee:
        """Return the guarantee for the records behind the parameters.

        After an estimator without a guarantee, such as pgmpy's own, its mechanism is "none".
        """
        guarantee = self._fitted.guarantee
        if guarantee is None:
            raise AttributeError(f"The network has {self._promise()}.")
        return guarantee

    @guarantee_.setter
    def guarantee_(self, guarantee: Guarantee) -> None:
        self._set(guarantee=guarantee)

    def _promise(self) -> str:
        """Describe the guarantee, or why there is none."""
        fitted = self._fitted
        unfitted = "holds parameters of other origin" if fitted.contents.tables else "is not fitted"
        return f"no guarantee: it {unfitted}" if fitted.guarantee is None else str(fitted.guarantee)

    @property
    def release_(self) -> Release | tuple[Release, ...]:
        """Return the release that the network was fitted to, from which bounds are computed."""
        releases = self._fitted.releases
        if not releases:
            raise AttributeError("The network has no release: it is not fitted to one, or was changed since.")
        return releases[0] if len(releases) == 1 else releases

    @property
    def schema_(self) -> Schema:
        """Return the variables and their states."""
        return self._fitted.schema

    @property
    def groups_(self) -> dict[str, int]:
        """Return the number of groups in which the states of a node were measured, for each such node.

        A `Hierarchy` declares groups, or the fit has made them; see :class:`~pgmpy_dp.AutoMLE`.
        """
        fitted = self._fitted
        return fitted.nodes.sizes if isinstance(fitted, FittedInGroups) else {}

    @property
    def _fitted(self) -> FittedNetwork:
        """The fit, for present contents: any change removes the release, and a table of other origin the guarantee."""
        # Structure is public, and tables that are left when others are removed still derive from the release.
        fitted, contents = vars(self).get(FIT_KEY), Contents.of(self)
        if fitted is None:
            fitted = FittedNetwork(self, contents)
        elif fitted.contents != contents:
            before, fitted = fitted, FittedNetwork(self, contents, declared=fitted.declared)
            if before.guarantee is not None:
                if before.guarantee.mechanism == "none" or contents.tables <= before.promised:
                    fitted = fitted.changed(guarantee=before.guarantee, promised=before.promised)
                else:
                    warn(
                        "The network has no guarantee any more: parameters that do not come from its fit may tell "
                        "anything about the records. Fit it again, or attach_release, if they follow from that "
                        "release."
                    )
        vars(self)[FIT_KEY] = fitted
        return fitted

    def _set(self, **fields: Any) -> None:
        """Replace the fit by one of the present contents, whose guarantee holds for them."""
        before, contents = vars(self).get(FIT_KEY), Contents.of(self)
        if before is None or before.contents != contents:
            before = FittedNetwork(self, contents, declared=() if before is None else before.declared)
        vars(self)[FIT_KEY] = before.changed(promised=contents.tables, **fields)

    def _forget(self) -> FittedNetwork | None:
        """Remove the fit, and return it."""
        return vars(self).pop(FIT_KEY, None)

    def _follow_parameters(self) -> None:
        """Remove the guarantee if a table differs from those that it was given for."""
        if FIT_KEY in vars(self):
            _ = self._fitted

    def _note_states(self, costs: Mapping[str, Guarantee]) -> None:
        """Store the guarantees of finding the states of variables in records."""
        graph: Any = self
        for node, data in graph.nodes(data=True):
            if node in costs:
                data[GRAPH_KEY] = learned(data.get(GRAPH_KEY), costs[node])

    def add_edges_from(self, ebunch: Iterable[Any], *arguments: Any, **options: Any) -> None:
        """Add edges, as pgmpy does, but refuse a text, whose first two letters pgmpy would take for nodes."""
        edges = list(ebunch)
        for edge in edges:
            if isinstance(edge, str):
                raise SchemaError(f"An edge is a pair of names, such as ('age', 'sex'), got the text {edge!r}.")
        super().add_edges_from(edges, *arguments, **options)  # type: ignore[misc]

    def to_junction_tree(self) -> Any:
        """Build pgmpy's junction tree, in whose tables states are accessed by name, as in the network.

        pgmpy cannot build a tree of a network of several components. These are joined by factors of ones, which leave
        the distribution as it is.
        """
        network: Any = self
        skeleton = network.to_undirected() if network.is_directed() else network
        first = [next(iter(component)) for component in nx.connected_components(skeleton)]
        if len(first) > 1:
            whole = network.to_markov_model() if network.is_directed() else network
            tables = [(f.variables, f.cardinality, f.values) for f in whole.get_factors()]
            sizes, states = whole.get_cardinality(), Schema.from_model(network).state_names
            for pair in pairwise(first):
                shape = [sizes[variable] for variable in pair]
                tables.append((list(pair), shape, np.ones(shape)))
            joined = DiscreteMarkovNetwork([*whole.edges(), *pairwise(first)])
            joined.add_factors(*(DiscreteFactor(*table, {v: states[v] for v in table[0]}) for table in tables))
            tree = joined.to_junction_tree()
        else:
            tree = super().to_junction_tree()  # type: ignore[misc]
        tree.factors = [named(factor) for factor in tree.factors]
        return tree

    @property
    def draws_(self) -> PosteriorNetworks:
        """Return networks drawn from their posterior given the release: 200, unless `sample_draws` was called.

        Bounds of a Bayesian network with more than 4,096 parameters are computed from draws of the part that a question
        depends on, the variables of the question and their ancestors, and the test of fit is that of this part.

        Bounds are equal-tailed quantiles of the networks' answers, or those of normal answers of the same mean and
        variance where these reach further, shifted and widened by the deviation of the release from the network, which
        is known for variables that were measured together, and otherwise estimated; see `pgmpy_dp.models.deviations`
        and, for what is assumed without measured pairs, `plan_measurements`. If the noise hides the evidence, bounds
        are only as good as the prior.
        """
        return self._fitted.posterior

    def sample_draws(self, draws: int = 200, seed: int = 0) -> PosteriorNetworks:
        """Draw and keep new `draws_`; see `pgmpy_dp.fitting.readings.posterior_networks.draw_networks`.

        Parameters
        ----------
        draws, seed : int
            See `Model.sample_draws`; at least 20 draws.

        Warns
        -----
        UserWarning
            If the mean of some probability is uncertain although the chain was extended.
        """
        whole_number("draws", draws, 20)
        self._fitted.required_releases()
        vars(self)[FIT_KEY] = self._fitted.redrawn(draws, seed)
        posterior = self._fitted.posterior
        if posterior.poor:
            warn_of_slow_mixing(posterior.poor, draws)
        return posterior

    @property
    def fit_checked_(self) -> bool:
        """Whether the test of `check_fit` was run; queries run it themselves if it is cheap."""
        whole = self._fitted
        return any(fitted.check is not None for fitted in (whole, *whole._parts.values()))

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
        BudgetExceededError, SchemaError, ValueError, TypeError
            As `PrivateDataset.measure`, and if the data set has other states or protects another change than the
            network's release, or the network has no release or joins all pairs; nothing is charged.

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
        if isinstance(self._fitted, FittedInGroups):
            raise ValueError(
                "Pairs are not chosen by a network whose variables were measured in groups of states: fit it with a "
                "larger check, such as AutoMLE(check=0.3), which measures pairs that the network does not join."
            )
        schema, releases = self._fitted.schema, self._fitted.required_releases()
        measured = measure_farthest(self, schema, releases, data, epsilon, delta, whole_number("pairs", pairs))
        self.attach_release(*releases, measured)
        return measured

    def __repr__(self) -> str:
        network: Any = self
        size = f"{len(network.nodes())} variables, {len(network.edges())} edges"
        return f"{type(self).__name__}({size})\n  {self._promise()}"

    __str__ = __repr__  # the one of networkx omits the guarantee

    def _repr_html_(self) -> str:
        network: Any = self
        nodes = list(network.nodes())
        directed = hasattr(network, "get_parents")
        joined = {node: (network.get_parents if directed else network.neighbors)(node) for node in nodes}
        heads = ["variable", "parents" if directed else "neighbours"]
        rows = [(node, ", ".join(map(str, others))) for node, others in joined.items()]
        return table(f"{type(self).__name__} of {len(nodes)} variables: {self._promise()}.", heads, rows, maximum=60)

    def attach_release(self, *releases: Release) -> None:
        """Attach the release, or several of the same records, from which bounds are computed.

        This is needed for networks that were fitted elsewhere or read from a file. `guarantee_` becomes the joint
        guarantee of the releases and of whatever the network was learned from before.

        Raises
        ------
        TypeError, SchemaError, ValueError
            If one is not a release of tables or coefficients, their states differ from the network's, they are exact
            counts, or their guarantees differ in more than epsilon and delta.
        """
        for release in releases:
            if not isinstance(release, Release) or not release.cliques:
                raise TypeError(f"A NoisyMarginals or NoisyCoefficients is needed, got {type(release).__name__}.")
            for variable, states in self._fitted.schema.states.items():
                if variable in release.schema.states and set(release.schema.states[variable]) != set(states):
                    raise SchemaError(f"Variable {variable!r} has other states in the release than in the network.")
            refuse_exact(release)
        if not releases:
            raise TypeError("Give at least one release.")
        fit = vars(self).get(FIT_KEY)
        guarantee = None if fit is None else fit.guarantee
        before = DECLARED if guarantee is None or guarantee.mechanism == "none" else guarantee
        guarantee = (joint_guarantee(releases) | before).after(learned_graph(self))
        self._note_states(found_states(releases))
        self._keep_fit(guarantee, releases)

    def _carrying(self, releases: Sequence[Release]) -> Self:
        """Attach the releases that the file carries, if any; its own guarantee stays if its privacy loss is larger."""
        if releases:
            before = self._forget()
            self.attach_release(*releases)
            if before is not None and before.guarantee is not None:
                self.guarantee_ = promised(before.guarantee, releases)
        return self

    def simulate(
        self,
        n_samples: int | None = None,
        *,
        evidence: Mapping[str, Any] | None = None,
        seed: int | None = None,
        numbers: Numbers = "states",
        predicting: str | None = None,
        partial_samples: pd.DataFrame | None = None,
        include_latents: bool = False,
        show_progress: bool = True,
        data_sets: int | None = None,
    ) -> Any:
        """Draw independent synthetic records exactly; see :meth:`.Model.simulate`.

        Parameters
        ----------
        n_samples, evidence, seed, numbers, predicting, partial_samples
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
        return self._records(n_samples, evidence, seed, numbers, predicting, partial_samples, shown)

    def _data_sets(
        self, count: int, data_sets: int, seed: int | None, evidence: Mapping[str, Any] | None, numbers: Numbers
    ) -> list[pd.DataFrame]:
        """Draw each data set from a different posterior draw, evenly spaced over the draws."""
        fitted, whole = self._fitted, whole_number("data_sets", data_sets)
        numbers = fitted.read_as(numbers)
        question = Question.of(fitted.schema, None, evidence, fitted.declared)
        fitted.warn_of_misfit()
        draws, generator = len(fitted.posterior.totals), seeded(seed)
        if whole > draws:
            raise ValueError(f"There are {draws} draws for {whole} data sets: draw as many by sample_draws first.")
        shapes = fitted.shapes(list(fitted.bins)) if numbers == "drawn" else {}
        frames = []
        for number, position in enumerate(np.linspace(0, draws - 1, whole).round().astype(int).tolist()):
            with question.possible():
                schema, codes, others = fitted.drawn_records(position, question.given, count, generator)
            within_bins = np.random.default_rng(None if seed is None else [seed + number, 1])
            within = WithinBins(shapes, within_bins, schema.states, others, number % DRAWS)
            frames.append(numbered(labelled(codes, schema, self._shown()), fitted.declared, numbers, within))
        return frames

    def _within_bins(self, seed: int | None) -> np.random.Generator:
        return np.random.default_rng(None if seed is None else [seed, 1])

    def _shown(self) -> list[str]:
        return list(self.nodes())  # type: ignore[attr-defined]

    def _predicted(self) -> list[str]:
        return [variable for variable in self._shown() if variable not in self.latents]  # type: ignore[attr-defined]

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
        _ = self._fitted.schema
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
        """Keep an estimator's release, its guarantee, and the posterior if it drew one."""
        self._forget()
        for _, data in self.nodes(data=True):  # type: ignore[attr-defined]
            data.pop(GRAPH_KEY, None)
        self._note_states(getattr(estimator, "_found", {}))
        guarantee = getattr(estimator, "guarantee_", NO_GUARANTEE)
        if guarantee is NO_GUARANTEE:
            warn(
                f"NOT PRIVATE: {type(estimator).__name__} gives no privacy guarantee, and the network may reveal "
                "the records it was fitted to. Fit it by an estimator of pgmpy_dp, such as AutoMLE."
            )
        release = getattr(estimator, "release_", None)
        if not isinstance(release, tuple) and (release is None or not release.cliques):
            release = None  # no bounds from releases of draws
        posterior = getattr(estimator, "posterior_", None)
        self._keep_fit(guarantee, several(release), posterior if isinstance(posterior, PosteriorNetworks) else None)

    def _keep_fit(
        self, guarantee: Guarantee, releases: Sequence[Release], posterior: PosteriorNetworks | None = None
    ) -> None:
        contents, schemas = Contents.of(self), tuple(release.schema for release in releases)
        fitted = FittedNetwork(
            self, contents, contents.tables, guarantee, tuple(releases), schemas, estimated=posterior
        )
        vars(self)[FIT_KEY] = FittedInGroups.of(fitted)

    def _answered_by_families(self) -> bool:
        """Return whether every family has its own table, and CPDs from these would differ from the network's."""
        return False


# Shares of the privacy loss. Most pairs give no evidence of a missing edge, and the others give strong evidence: mutual
# information of 0.05 nat moves a tenth of the records. So few pairs are chosen privately, and share the rest.
_CHOOSING, _MEASURING = 0.5, 0.5


def require_same_change(protects: Protects, releases: Sequence[Release]) -> None:
    """Raise if records protect another change than a release of them, since no guarantee would hold for both."""
    for own in (release.guarantee.protects for release in releases):
        if own != protects:
            limits = {} if own.unit == "record" else {"unit": own.unit, "max_rows": own.max_rows}
            stated = {"neighbours": own.neighbours} | limits | {"largest_weight": own.largest_weight}
            written = {name: f'"{value}"' if isinstance(value, str) else value for name, value in stated.items()}
            named = ", ".join(f"{name}={value}" for name, value in written.items() if value is not None)
            raise ValueError(
                "The data set protects another change of the records than the network's release, which is for "
                f"{named}: name these, and no others."
            )


def measure_farthest(
    network: Network,
    schema: Schema,
    releases: Sequence[Release],
    data: PrivateDataset,
    epsilon: float | Fraction,
    delta: float,
    pairs: int,
) -> NoisyMarginals:
    """Choose pairs that a network does not join, by references that follow from public numbers, and measure them."""
    if not isinstance(data, PrivateDataset):
        raise TypeError(
            f"data must be a PrivateDataset, whose ledger is charged, got {type(data).__name__}: write "
            "PrivateDataset(records, schema, PrivacyBudget(epsilon))."
        )
    require_same_change(Protects(data.neighbours, data.unit, data.max_rows, data.largest_weight), releases)
    for variable, states in schema.states.items():
        if set(data.schema.states.get(variable, ())) != set(states):
            raise SchemaError(f"Variable {variable!r} has other states in the data set than in the network, or none.")
    schema = data.schema.select(schema.variables)
    layout, logs, _ = log_linear(network, schema.states)
    joined = joined_pairs([*layout.scopes, *(rule.variables for rule in schema.rules)])
    open_pairs = [pair for pair in combinations(schema.variables, 2) if frozenset(pair) not in joined]
    if not open_pairs:
        raise ValueError("The network joins all pairs of its variables: there is no other pair to measure.")
    tables = Conditioning(layout).pairs(logs, open_pairs)
    total, _ = agreed_total(releases)
    references: dict[Clique, Vector] = {pair: total * table for pair, table in tables.items()}
    steps = [Step(_CHOOSING, min(pairs, len(references))), Step(_MEASURING)]

    def asking() -> Asking[NoisyMarginals]:
        chosen: Sequence[Clique] = yield Choose(references, lambda _: references.keys())
        return (yield Measure(chosen, shares(schema, chosen)))

    label = f"choose and measure {steps[0].picks} of {len(references)} pairs"
    measured, _ = data.after(network, *releases).release(TablesInSteps(steps, epsilon, delta, asking, label))
    return replace(measured, chosen_among=dict.fromkeys(measured.cliques, len(references)))
