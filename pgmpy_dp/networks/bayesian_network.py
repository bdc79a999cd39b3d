"""Bayesian networks that keep their release, and mixtures as such: a latent root with every block below it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NoReturn, Self

import networkx as nx
import numpy as np
import pandas as pd
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.base import chosen_estimator, require_informable
from pgmpy_dp.estimators.from_tables import AutoMLE, PrivateMLE
from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.models.fitted import BoundedAnswer, bounds, check_interval, check_target, state_index
from pgmpy_dp.models.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.models.questions import checked_evidence, checked_records
from pgmpy_dp.models.simulated import WithinBins, numbered
from pgmpy_dp.networks.fitted_in_groups import FittedInGroups
from pgmpy_dp.networks.network import PrivateNetwork, named
from pgmpy_dp.observed.factors import family
from pgmpy_dp.privacy.checks import whole_number
from pgmpy_dp.privacy.guarantee import FIT_KEY, carry_learned

_COMPONENT = "component"
# Maximum number of cells of a joint table with the latent root, since pgmpy's inference multiplies these tables.
_MAX_CELLS = 2**26


class PrivateBayesianNetwork(PrivateNetwork, DiscreteBayesianNetwork):
    """A pgmpy `DiscreteBayesianNetwork` that keeps its release, so that its answers have bounds.

    It is constructed like pgmpy's own network. Everything after `fit` is post-processing: queries cost no privacy.

    Its variables are those with edges, and those added by `add_node` and `add_nodes_from`. As in pgmpy, other variables
    of the records are left out; they cost no privacy. ``network.add_nodes_from(schema.variables)`` adds all variables
    of a schema.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    >>> noisy = data.measure([("lung", "smoke")], epsilon=1.0)
    >>> network = dp.PrivateBayesianNetwork([("smoke", "lung")]).fit(noisy)
    >>> bounds = network.query(["lung"], evidence={"smoke": "yes"}, interval=0.9)
    >>> list(bounds.columns)
    ['value', 'lower', 'upper']
    >>> bool(bounds.loc["yes", "lower"] < 0.5 < bounds.loc["yes", "upper"])
    True
    """

    def __init__(self, ebunch: Iterable[tuple[str, str]] | None = None, latents: Any = None, **options: Any) -> None:
        edges = list(ebunch) if isinstance(ebunch, Iterator) else ebunch
        try:
            super().__init__(edges, latents=latents, **options)
        except (nx.NetworkXError, ValueError) as error:
            if isinstance(error.__cause__, SchemaError):
                raise error.__cause__ from None
            with suppress(nx.NetworkXException):
                circle = nx.find_cycle(nx.DiGraph(edges))
                names = " -> ".join(str(edge[0]) for edge in [*circle, circle[0]])
                raise ValueError(f"The edges form a cycle: {names}.") from None
            raise

    def fit(
        self,
        data: Any = None,
        estimator: Any = "auto",
        sample_weight: None = None,
        public: Any = None,
        **options: Any,
    ) -> PrivateBayesianNetwork:
        """Estimate the CPDs and keep the release.

        Parameters
        ----------
        data : NoisyMarginals, NoisyCoefficients, list of them, PrivateDataset, data frame, or path of a file
            One or several releases of the same records cost nothing; a data set is charged the estimator's epsilon.
        estimator : "auto", or an estimator of this package or of pgmpy
            "auto" means `AutoMLE()`. Bounds require an estimator that releases tables or coefficients.
        sample_weight : None
            For compatibility with pgmpy; weights of records are those of a data set, `PrivateDataset(weights=...)`.
        public : mapping of clique to table, optional
            Tables published elsewhere, such as ``{("sex", "age"): counts}``, exact or as `PublicTable`. They cost no
            privacy; see `InformedMarginals`.
        """
        estimator = chosen_estimator(estimator, AutoMLE, options)
        before = self._forget()
        try:
            if public is None:
                super().fit(data, estimator=estimator, sample_weight=sample_weight)
            else:
                require_informable(estimator).fit(self, data, sample_weight=sample_weight, public=public)
                self.add_cpds(*estimator.parameters_)
        except BaseException:  # the old parameters keep their guarantee
            self._forget()
            if before is not None:
                self.__dict__[FIT_KEY] = before
            raise
        self._keep(estimator)
        return self

    def _answered_by_families(self) -> bool:
        with suppress(TypeError, ValueError):  # no table contains a family, or there are no tables
            own = PrivateMLE().fit(self, self._fitted.releases).parameters_
            return any(self.get_cpds(cpd.variable) != cpd for cpd in own)
        return False

    def add_cpds(self, *cpds: TabularCPD) -> None:
        """Add or replace CPDs; the guarantee is removed, with a warning, if they differ from those of the fit.

        Their states are then accessed by name: pgmpy's inference refuses positions.
        """
        super().add_cpds(*(named(cpd) if isinstance(cpd, TabularCPD) else cpd for cpd in cpds))
        self._follow_parameters()

    def remove_node(self, node: Any) -> None:
        """Remove a node; its children's CPDs become means over its states, which also derive from the release."""
        guarantee = getattr(self, "guarantee_", None)
        super().remove_node(node)
        if guarantee is not None:
            self.guarantee_ = guarantee

    def do(self, nodes: Any, inplace: bool = False) -> PrivateBayesianNetwork:
        """Remove the edges from the parents of nodes, as pgmpy does.

        The result keeps the guarantee, but has no bounds, since no release was drawn from such a network.
        """
        guarantee = getattr(self, "guarantee_", None)
        network: PrivateBayesianNetwork = super().do(nodes, inplace=inplace)
        if guarantee is not None:
            network.guarantee_ = guarantee
        return network

    def to_markov_model(self) -> Any:
        """Return the Markov network of the CPDs, of pgmpy's own class, which keeps the guarantee."""
        network = super().to_markov_model()
        carry_learned(self, network)
        if (guarantee := getattr(self, "guarantee_", None)) is not None:
            network.guarantee_ = guarantee
        return network

    def cpd_interval(self, node: str, interval: float = 0.9, target: str = "population") -> pd.DataFrame:
        """Compute bounds for every entry of P(node | parents); see `query` for `interval` and `target`.

        Returns
        -------
        DataFrame
            One row per state of the node and configuration of its parents (levels in that order), with columns `value`,
            `lower` and `upper`. For a rare configuration, bounds are those of the prior: nearly 0 and 1.
        """
        fitted = self._fitted
        schema = fitted.schema
        schema.require([(node,)])
        check_interval(interval)
        check_target(target)
        scope = family(self, node)
        if isinstance(fitted, FittedInGroups) and not fitted.nodes.groups.keys().isdisjoint(scope):
            given = ", ".join(f"{parent!r}: ..." for parent in scope[1:])
            raise ValueError(
                f"Some of {scope} were measured in groups of states: ask query, as in query([{node!r}], {{{given}}}, "
                "interval=0.9), which bounds each answer."
            )
        fitted = fitted.part(scope)
        posterior = fitted.posterior
        layout, draws = posterior.layout, posterior.draws(target)
        number = layout.scopes.index(scope)
        own = draws[:, layout.offsets[number] : layout.offsets[number + 1]]
        mass = fitted.uncertainty.conditioning.marginals(draws, [scope]).mean(axis=0).reshape(layout.shapes[number])
        records = np.broadcast_to(posterior.totals.mean() * mass.sum(axis=0), mass.shape)
        rows = np.exp(own)
        index = state_index(schema, scope)
        return BoundedAnswer.of(rows.mean(axis=0), *bounds(rows, interval), records.ravel(), index)

    def simulate(self, n_samples: int | None = None, *, seed: int | None = None, **options: Any) -> Any:
        """Draw independent synthetic records; :meth:`.Model.simulate` describes `evidence`, `numbers` and `predicting`.

        With `data_sets`, a list of as many data frames is returned, each drawn from a different network of `draws_`.
        All options of pgmpy are supported. pgmpy's method is used if ``do``, ``virtual_evidence``,
        ``virtual_intervention``, ``missing_prob``, ``partial_samples`` or ``return_full`` is given, or a junction tree
        does not fit in memory; otherwise records are drawn exactly. The state of numpy's global generator is not
        changed.
        """
        options = {name: option for name, option in options.items() if option is not None}
        ours = {"evidence", "include_latents", "show_progress", "data_sets", "numbers", "predicting"}
        if "data_sets" in options:
            if further := set(options) - ours:
                raise ValueError(f"Data sets from the posterior take no {min(further)}: leave it or data_sets out.")
            return super().simulate(n_samples, seed=seed, **options)
        if set(options) <= ours:
            with suppress(TreeTooLargeError):
                return super().simulate(n_samples, seed=seed, **options)
        fitted = self._fitted
        fitted.warn_of_misfit()
        options.pop("predicting", None)  # independent draws preserve every table
        numbers = fitted.read_as(options.pop("numbers", "states"))
        if isinstance(given := options.get("partial_samples"), pd.DataFrame):
            n_samples = len(given) if n_samples is None else n_samples
            if n_samples != len(given):
                raise ValueError(f"partial_samples has {len(given)} records for {n_samples}: leave n_samples out.")
        n_samples = self._count(n_samples)
        schema, schemas = fitted.schema, fitted.declared
        fixed = {name: options[name] for name in ("evidence", "do") if name in options}
        options |= {name: checked_evidence(schema, given, schemas) for name, given in fixed.items()}
        partial: dict[str, list[Any]] = {}
        if "partial_samples" in options:
            partial, options["partial_samples"] = self._positions(options["partial_samples"])
            if twice := set(partial) & {variable for given in fixed.values() for variable in given}:
                raise SchemaError(f"Variable {min(twice)!r} is in partial_samples and in evidence or do: give it once.")
        seed = int(np.random.default_rng().integers(2**32)) if seed is None else whole_number("seed", seed, 0)
        before = np.random.get_state()  # noqa: NPY002  # pgmpy's method seeds it
        promising_nothing = self.copy()  # pgmpy's method adds CPDs of its own
        promising_nothing._forget()
        try:
            drawn: pd.DataFrame = DiscreteBayesianNetwork.simulate(promising_nothing, n_samples, seed=seed, **options)
        finally:
            np.random.set_state(before)  # noqa: NPY002
        for column in drawn.columns.intersection([name for v in partial for name in (v, f"{v}_full")]):
            drawn[column] = pd.Categorical(drawn[column].map(dict(enumerate(partial[column.removesuffix("_full")]))))
        nodes = [node for node in self.nodes() if node in drawn]
        # With `do` and the like, records do not have the network's distribution, so that numbers depend on bins alone.
        shapes = {v: fitted.shape(v) for v in fitted.bins if numbers == "drawn" and v in nodes}
        within = WithinBins(shapes, self._within_bins(seed), schema.states)
        return numbered(drawn[nodes + sorted(drawn.columns.difference(nodes))], schemas, numbers, within)

    def _positions(self, records: pd.DataFrame) -> tuple[dict[str, list[Any]], pd.DataFrame]:
        """Convert partial samples to positions of states in the tables, as pgmpy's sampler expects."""
        schema = self._fitted.schema
        codes = checked_records(schema, records, self._fitted.declared)
        if any((own < 0).any() for own in codes.values()):
            raise SchemaError("partial_samples has missing values: leave out the column, which is then drawn.")
        names = {variable: list(self.get_cpds(variable).state_names[variable]) for variable in codes}
        order = {v: np.array([own.index(state) for state in schema.states[v]]) for v, own in names.items()}
        return names, pd.DataFrame({v: order[v][own] for v, own in codes.items()})

    def get_state_probability(self, states: Mapping[str, Any]) -> float:
        """Compute the probability of some variables' states, which are read like the evidence of `query`."""
        return float(
            super().get_state_probability(checked_evidence(self._fitted.schema, states, self._fitted.declared))
        )

    def fit_update(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise TypeError: pgmpy's method adds exact counts of records."""
        raise TypeError(
            "fit_update adds exact counts of records, which are not private. Measure the new records, and fit the "
            "release, or several of the same records together by estimator=PosteriorMean()."
        )

    def edge_strength(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise TypeError: pgmpy's edge strengths are exact statistics of records."""
        raise TypeError(
            "edge_strength computes exact statistics of records, which are not private. For public ones, or some "
            "simulated from this network, call it of DAG(network.edges())."
        )

    def copy(self) -> PrivateBayesianNetwork:
        """Return an independent network with the same structure, CPDs and release."""
        return type(self).of(self)

    @classmethod
    def of(cls, network: DiscreteBayesianNetwork) -> Self:
        """Build one with the structure and CPDs of another network; for bounds, call `attach_release`.

        Examples
        --------
        >>> from pgmpy.factors.discrete import TabularCPD
        >>> plain = DiscreteBayesianNetwork()
        >>> plain.add_node("smoke")
        >>> plain.add_cpds(TabularCPD("smoke", 2, [[0.3], [0.7]], state_names={"smoke": ["yes", "no"]}))
        >>> PrivateBayesianNetwork.of(plain).query(["smoke"]).values.tolist()
        [0.3, 0.7]
        """
        fresh = cls()
        fresh.add_nodes_from(network.nodes())
        fresh.add_edges_from(network.edges())
        fresh.latents = set(network.latents)
        fresh.add_cpds(*[cpd.copy() for cpd in network.get_cpds()])
        carry_learned(network, fresh)
        fitted = vars(network).get(FIT_KEY)
        if fitted is not None:
            fresh.__dict__[FIT_KEY] = fitted.changed(network=fresh)
        elif getattr(network, "guarantee_", None) is not None:  # set on a plain network by the file's reader
            fresh.guarantee_ = network.guarantee_
        return fresh


def latent_root_network(model: PrivateMixtureNetwork) -> PrivateBayesianNetwork:
    """Convert a mixture to a Bayesian network; errors as in `PrivateMixtureNetwork.to_bayesian_network`."""
    mixture, schema = model.mixture_, model.schema_
    states, root = schema.state_names, _COMPONENT
    while root in states:
        root += "_"
    count = mixture.weights.size
    if count * max(schema.cells(block) for block in mixture.blocks) > _MAX_CELLS:
        raise ValueError("A CPD would have more than 67 million cells: fit fewer components or members.")
    names: dict[str, list[Any]] = {**states, root: list(range(count))}
    cpds: list[TabularCPD] = []

    def add(variable: str, values: Vector, *parents: str) -> None:
        sizes = [len(names[parent]) for parent in parents]
        kept = {name: names[name] for name in (variable, *parents)}
        cpds.append(TabularCPD(variable, len(values), values, list(parents), sizes, state_names=kept))

    add(root, mixture.weights[:, None])
    for block, table in zip(mixture.blocks, mixture.tables, strict=True):
        for position, variable in enumerate(block):
            known = table.sum(axis=tuple(range(position + 2, table.ndim)))
            whole = known.sum(axis=-1, keepdims=True)
            rows = np.where(whole > 0, known / np.where(whole > 0, whole, 1.0), 1.0 / known.shape[-1])
            add(variable, np.moveaxis(rows, -1, 0).reshape(rows.shape[-1], -1), root, *block[:position])
    for variable, child in mixture.children.items():
        if child.states * len(names[child.parent]) > _MAX_CELLS:
            raise ValueError(
                f"The CPD of {variable!r} given {child.parent!r} would have more than 67 million cells, as pgmpy's are "
                "dense: ask the mixture itself, which holds no such table."
            )
        values = child.shares.toarray().T
        values[:, ~values.any(axis=0)] = 1 / child.states  # of impossible states of the parent
        add(variable, values, child.parent)
    edges = [(parent, cpd.variable) for cpd in cpds for parent in cpd.variables[1:]]
    network = PrivateBayesianNetwork(edges, latents={root})
    network.add_cpds(*cpds)
    network.check_model()
    network._note_states(schema.found)
    network._set(guarantee=model.guarantee_, declared=(schema,))
    return network
