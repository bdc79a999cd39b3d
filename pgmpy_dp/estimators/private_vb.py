"""`PrivateVB` learns discrete Bayesian networks with latent variables from noisy sufficient statistics."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pgmpy.base import DAG
from scipy import sparse
from scipy.special import psi

from pgmpy_dp.data.mechanisms.integer_sums import checked_norm
from pgmpy_dp.errors import SchemaError
from pgmpy_dp.estimators.iterated import (
    DELAY,
    FORGETTING,
    Iterated,
    Learner,
    concentrations,
    conjugate_steps,
    learning_rate,
)
from pgmpy_dp.estimators.network_estimator import PrivateNetworkEstimator
from pgmpy_dp.inference import JunctionTree, Layout
from pgmpy_dp.inference.tables.table import Rows, Vector
from pgmpy_dp.inference.trees.factor_graph import MAX_TABLE_CELLS
from pgmpy_dp.observed.factors import families, tabular_cpd
from pgmpy_dp.privacy.checks import Constraint, exact_positive, optional
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class PrivateVB(Iterated, PrivateNetworkEstimator):
    """Stochastic variational Bayes with Gaussian noise on the expected sufficient statistics.

    It learns all CPDs of a discrete Bayesian network, including those of latent variables (the model's `latents`),
    which are not in the records. Every row of a CPD has a Dirichlet distribution. A step takes a random sample of the
    records, infers their latent variables under the current distribution (exactly, by a junction tree), and moves the
    Dirichlet parameters towards the noisy sum of the records' expected family tables.

    Parameters
    ----------
    epsilon : float, optional
        Total privacy loss of all steps, charged as one block before the first. With None, the cost of
        `noise_multiplier` is charged.
    neighbours
        See :class:`~pgmpy_dp.AutoMLE`.
    delta : float
        In (0, 1), since the noise is Gaussian.
    steps : int
        Number of noisy sums.
    sampling_rate : float
        Probability that a record is in a step's sample.
    batch_size : int, optional
        Size of a sample, instead of the rate, for neighbours "replace_one".
    noise_multiplier : float, optional
        Standard deviation of the noise divided by the sensitivity of a sum; by default the smallest that epsilon
        allows.
    state_names : mapping of variable to states, or Schema
        States of the latent variables or, for raw records, of all variables.
    clip_norm : float, optional
        Bound of the norm of a record's stacked family tables; by default the square root of the number of families,
        which no record exceeds.
    prior : float
        Pseudo-count of every cell.
    delay, forgetting : float
        tau and kappa of the learning rate (tau + t)^(-kappa), t = 0, 1, ...
    random_state : int
        Seed of the public start, which distinguishes the latent states. Privacy does not depend on it.

    Attributes
    ----------
    parameters_ : list of TabularCPD
        Posterior means, in the order of the model's nodes.
    concentrations_ : dict of family to ndarray
        Dirichlet parameters, axes in family order.
    guarantee_, state_names_
        See :class:`~pgmpy_dp.AutoMLE`.
    noise_multiplier_ : float
    n_steps_ : int
        Steps taken; fewer than `steps` if the user interrupted.

    Notes
    -----
    Foulds, Park, Chaudhuri and Welling (2020). With S_t the noisy sum over the sampling rate, an unbiased estimate of
    the expected statistics of all records, s <- (1 - rho_t) s + rho_t S_t, and the Dirichlet parameters are
    prior + max(s, 0). Averaging before negative counts are truncated lets noise cancel. The first step's statistics
    replace the start. In each step, latent variables are inferred from released parameters alone: no private state is
    carried over between steps.

    Each family's part of a record's statistics is a distribution over the family's cells, of norm at most 1. All
    entries are non-negative, so replacing a record changes a sum by at most sqrt(2) times the clip norm.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> from pgmpy.models import DiscreteBayesianNetwork
    >>> records = pd.DataFrame({"a": ["x", "y"] * 500, "b": ["x", "y"] * 500, "c": ["x", "y"] * 500})
    >>> network = DiscreteBayesianNetwork([("z", "a"), ("z", "b"), ("z", "c")], latents={"z"})
    >>> states = {"a": ["x", "y"], "b": ["x", "y"], "c": ["x", "y"], "z": [0, 1]}
    >>> estimator = dp.PrivateVB(epsilon=2.0, delta=1e-6, state_names=states, steps=20, sampling_rate=1.0)
    >>> _ = network.fit(records, estimator=estimator)
    >>> abs(network.get_cpds("a").values[0, 0] - network.get_cpds("a").values[0, 1]) > 0.5
    np.True_
    """

    _tags: ClassVar[dict[str, Any]] = {"supports_latent_variables": True}

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "clip_norm": optional(checked_norm),
        "prior": exact_positive,
        "delay": DELAY,
        "forgetting": FORGETTING,
    }

    state_names: Mapping[str, Any] | Schema | None = None
    _: KW_ONLY
    steps: int = 100
    sampling_rate: float | None = 0.2
    clip_norm: float | None = None
    prior: float = 1.0
    delay: float = 1.0
    forgetting: float = 0.6
    random_state: int = 0

    def _structure(self, model: Any) -> DAG:
        if not isinstance(self.state_names, (Mapping, Schema, type(None))):
            raise SchemaError(f"state_names must be a dict or a Schema, got {type(self.state_names).__name__}.")
        if not isinstance(model, DAG):
            raise TypeError(f"PrivateVB fits a pgmpy DiscreteBayesianNetwork, got {type(model).__name__}.")
        if not self._variables(model):
            raise ValueError("The model has no observed variables.")
        return model

    def _variables(self, structure: DAG, data: Any = None) -> list[str]:
        latents = set(getattr(structure, "latents", ()))
        return [node for node in structure.nodes() if node not in latents]

    def _learner(self, structure: DAG, public: Any) -> Learner:
        prior, rate = float(self.prior), learning_rate(self.delay, self.forgetting)
        nodes, observed, scopes = list(structure.nodes()), self._variables(structure), families(structure)
        clip = math.sqrt(len(scopes)) if self.clip_norm is None else self.clip_norm
        hidden = self._latent_states(nodes, set(nodes).difference(observed))
        states = {**public.schema.select(observed).states, **hidden}
        cards = {node: len(states[node]) for node in nodes}
        completion = Completion(cards, scopes, observed, MAX_TABLE_CELLS)  # raises before the charge if too large
        layout = completion.layout
        rows = Rows(layout)
        # Nearly uniform rows: with latent states far apart, poor optima are more frequent.
        drawn = np.random.default_rng(self.random_state).gamma(10.0, size=layout.size)
        start = drawn / rows.sums(drawn) + 1.0  # one record per row in all; later outweighed by the prior

        def statistic(natural: Vector) -> Callable[[Any], Any]:
            return partial(completion.expected, log_rows=psi(natural) - psi(rows.sums(natural)))

        def finish(learned: Vector) -> None:
            means = layout.split(learned / rows.sums(learned))
            self.parameters_ = [tabular_cpd(scope, mean, states) for scope, mean in zip(scopes, means, strict=True)]
            self.concentrations_ = layout.tables(learned)
            self.state_names_ = {node: list(states[node]) for node in nodes}
            self._is_fitted = True

        steps = conjugate_steps(start, statistic, float(clip), concentrations(prior), rate)
        return Learner(start.size, steps, finish, tuple(observed))

    def _latent_states(self, nodes: list[str], latents: set[str]) -> dict[str, tuple[Any, ...]]:
        """Return the declared states of the latent variables."""
        named = self.state_names.states if isinstance(self.state_names, Schema) else (self.state_names or {})
        without = [node for node in nodes if node in latents and node not in named]
        if without:
            raise SchemaError(
                f"Latent variable {without[0]!r} has no declared states: add it to state_names, such as "
                f"state_names={{{without[0]!r}: [0, 1, 2]}}."
            )
        hidden = {node: named[node] for node in nodes if node in latents}
        return dict(Schema(hidden).states) if hidden else {}

    def _states(self, structure: DAG) -> dict[str, Any] | Schema | None:
        """Return the declared states of the observed variables, or None; those of latent variables are required."""
        latents = set(getattr(structure, "latents", ()))
        self._latent_states(list(structure.nodes()), latents)
        if isinstance(self.state_names, Schema):
            rest = [variable for variable in self.state_names.variables if variable not in latents]
            return self.state_names.select(rest) if rest else None
        return {v: states for v, states in (self.state_names or {}).items() if v not in latents} or None


@dataclass(frozen=True)
class _Part:
    """Slice of a family's table at a record's observed variables: a table over the family's latent variables."""

    start: int  # offset of the family's table in the layout
    observed: tuple[tuple[int, int], ...]  # columns of the records and their strides
    cells: NDArray[np.int64]  # offsets of the latent configurations, in the order of the latent scope
    scope: int  # index of the latent scope; -1 if the family has no latent variable


class Completion:
    """Map from records of observed variables to expected indicators of all families, by a tree of the latent ones."""

    def __init__(
        self,
        cardinalities: Mapping[str, int],
        families: Sequence[Clique],
        observed: Sequence[str],
        max_cells: float = math.inf,
    ) -> None:
        self.layout = Layout.of(cardinalities, families)
        column = {variable: number for number, variable in enumerate(observed)}
        latents = [variable for variable in cardinalities if variable not in column]
        hidden = [tuple(latent for latent in latents if latent in family) for family in families]
        scopes = [scope for scope in dict.fromkeys(hidden) if scope]
        self._tree = None
        if scopes:
            cards = {latent: cardinalities[latent] for latent in latents}
            self._tree = JunctionTree.build(cards, scopes, max_cells=max_cells)
        self._parts = []
        for start, family, shape, scope in zip(
            self.layout.offsets[:-1], families, self.layout.shapes, hidden, strict=True
        ):
            stride = {v: math.prod(shape[axis + 1 :]) for axis, v in enumerate(family)}
            cells = np.zeros(1, dtype=np.int64)
            for latent in scope:
                cells = (cells[:, None] + stride[latent] * np.arange(cardinalities[latent])).ravel()
            seen = tuple((column[v], stride[v]) for v in family if v in column)
            self._parts.append(_Part(int(start), seen, cells, scopes.index(scope) if scope else -1))

    def expected(self, records: NDArray[np.integer], log_rows: Vector) -> sparse.csr_array:
        """Compute expected indicators of all families' cells by record; those of a family have norm at most 1."""
        codes = np.asarray(records, dtype=np.int64)
        positions = []
        for part in self._parts:
            base = np.full(codes.shape[0], part.start)
            for column, stride in part.observed:
                base += codes[:, column] * stride
            positions.append(base[:, None] + part.cells)
        posterior = self._posterior(positions, codes.shape[0], log_rows)
        values = [np.ones((codes.shape[0], 1)) if part.scope < 0 else posterior[part.scope] for part in self._parts]
        indices = np.concatenate(positions, axis=1)
        ends = np.arange(codes.shape[0] + 1) * indices.shape[1]
        shape = (codes.shape[0], self.layout.size)
        return sparse.csr_array((np.concatenate(values, axis=1).ravel(), indices.ravel(), ends), shape=shape)

    def _posterior(self, places: Sequence[NDArray[np.int64]], count: int, log_rows: Vector) -> list[Vector]:
        """Compute the posterior marginals of every latent scope, one row per record."""
        if self._tree is None:
            return []
        offsets, marginals = self._tree.layout.offsets, np.zeros((count, self._tree.layout.size))
        for part, place in zip(self._parts, places, strict=True):
            if part.scope >= 0:
                start = offsets[part.scope]
                marginals[:, start : start + part.cells.size] += log_rows[place]
        for row in range(count):
            marginals[row] = self._tree.calibrate(marginals[row]).marginals
        return np.split(marginals, offsets[1:-1], axis=1)
