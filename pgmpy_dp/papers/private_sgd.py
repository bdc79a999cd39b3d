"""Private stochastic gradient ascent on the likelihood, with clipped per-record gradients and Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp.data.mechanisms.integer_sums import checked_norm
from pgmpy_dp.data.mechanisms.sums import NoisySums
from pgmpy_dp.estimators.iterated import Iterated, Learner
from pgmpy_dp.estimators.network_estimator import PrivateNetworkEstimator, Structure
from pgmpy_dp.fitting.readings.undirected import Tying
from pgmpy_dp.inference import build_engine
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.inference.trees.factor_graph import INFERENCE
from pgmpy_dp.observed.factors import markov_scopes, require_joined
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, optional
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class PrivateSGD(Iterated, PrivateNetworkEstimator):
    """Learn the log-potentials of a Markov network by noisy stochastic gradient ascent.

    This is the baseline of Bernstein et al. (2017) after Abadi et al. (2016). Each step samples records at random, adds
    Gaussian noise to the sum of their clipped log-likelihood gradients, and updates the log-potentials.

    Parameters
    ----------
    epsilon, neighbours, delta, steps, sampling_rate, batch_size, noise_multiplier, state_names
        See :class:`~pgmpy_dp.PrivateVB`.
    statistic : {"gradient", "features"}
        "gradient": each record's gradient, its indicators minus the network's marginals, is clipped and summed, as in
        the paper. "features": only the indicators are summed, since the marginals are public. Their norm is the same
        for all records, so clipping and its bias are avoided.
    clip_norm : float, optional
        Clipping norm for "gradient"; by default the square root of the number of tables, the typical norm.
    learning_rate : float
        Step size along the gradient of the mean log-likelihood of a record.
    total : float, optional
        Public guess of the number of records, needed for "gradient" under "add_remove", where the true number is
        private. Sums are divided by the sampling rate times this number.
    inference : {"auto", "junction_tree", "loopy"}
        Inference of the network's marginals in each step. Tied parameters need a junction tree.
    cliques : sequence of tuples of str
        Cliques of the network that have log-potentials in addition to the edges.

    Attributes
    ----------
    guarantee_, parameters_, state_names_, noise_multiplier_, n_steps_
        See :class:`~pgmpy_dp.PrivateVB`.

    Notes
    -----
    The gradient of shared parameters is the sum of their cliques' gradients. The gradients of single cliques are
    clipped and noised first, and the noisy ones are summed.

    A record's gradient is phi(x) - mu(theta), with its clique indicators phi and the network's marginals mu. Its norm
    is a table look-up, and clipped gradients are summed as weighted tables, without a vector for each record
    (:meth:`~pgmpy_dp.data.mechanisms.sums.NoisySums.noisy_tables`). The returned log-potentials are the mean over the
    second half of the steps, in which much of the noise cancels.

    For "features", the size of a sample is estimated from its noisy tables.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 2000, "lung": ["yes", "no", "no", "no"] * 1000})
    >>> states = {"smoke": ["yes", "no"], "lung": ["yes", "no"]}
    >>> estimator = dp.papers.PrivateSGD(epsilon=1.0, delta=1e-6, state_names=states, steps=50, statistic="features")
    >>> network = dp.PrivateMarkovNetwork([("smoke", "lung")]).fit(records, estimator)
    >>> bool(network.query(["lung"], {"smoke": "no"}).get_value(lung="no") > 0.9)
    True
    """

    _tags: ClassVar[dict[str, Any]] = {"supported_model_types": (DiscreteMarkovNetwork,)}

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "statistic": choice("gradient", "features"),
        "clip_norm": optional(checked_norm),
        "learning_rate": exact_positive,
        "total": optional(exact_positive),
        "inference": choice(*INFERENCE),
    }

    state_names: Mapping[str, Any] | Schema | None = None
    _: KW_ONLY
    steps: int = 500
    sampling_rate: float | None = 0.1
    statistic: str = "gradient"
    clip_norm: float | None = None
    learning_rate: float = 1.0
    total: float | None = None
    inference: str = "auto"
    cliques: Sequence[Clique] = ()

    def _structure(self, model: Any) -> Structure:
        network = super()._structure(model)
        require_joined(network, self.cliques)
        tying = Tying.of(network)
        if tying is None:
            return network
        if self.cliques or self.inference == "loopy":
            raise ValueError(
                "PrivateSGD fits tied parameters on a junction tree, and of the tied cliques and edges alone."
            )
        return replace(tying, pooled=False)  # records have the nodes' columns, not the groups'

    def _learner(self, structure: Structure, public: Any) -> Learner:
        if self.total is None and self.statistic == "gradient" and public.neighbours == "add_remove":
            raise ValueError(
                'The number of records is private: give a public guess as total, or take statistic="features", which '
                "needs none."
            )
        variables = tuple(self._variables(structure))
        schema, tied = public.schema.select(variables), None
        if isinstance(structure, Tying):
            tied = structure.engine(schema)
            engine: Any = tied.tree
        else:
            engine = build_engine(schema.cardinalities(), markov_scopes(structure, self.cliques), self.inference)
        layout, rate = engine.layout, float(self.learning_rate)
        typical = math.sqrt(len(layout.scopes))
        clip = typical if self.clip_norm is None or self.statistic == "features" else self.clip_norm

        shape = [layout.cardinalities[variable] for variable in variables]
        cliques = [[variables.index(variable) for variable in scope] for scope in layout.scopes]

        def gradient(sums: NoisySums, marginals: Vector) -> Vector:
            """Compute the noisy gradient of the mean log-likelihood of a record."""
            if self.statistic == "gradient":
                public = sums.batch_size if self.total is None else sums.sampling_rate * self.total
                centre = np.minimum(marginals, 1.0)  # rounding in calibration may raise a probability above 1
                return sums.noisy_tables(cliques, shape, clip, centre) / max(float(public or 1.0), 1.0)
            tables = sums.noisy_tables(cliques, shape, clip)
            # Every table sums to the sample's size, with a noise variance proportional to its number of cells.
            seen = np.add.reduceat(tables, layout.offsets[:-1])
            return tables / max(float(np.average(seen, weights=1.0 / np.diff(layout.offsets))), 1.0) - marginals

        def steps(sums: NoisySums) -> Iterator[Vector]:
            potentials, halfway = np.zeros(layout.size), math.ceil(sums.steps / 2)
            tail = potentials
            for number in range(sums.steps):
                slope = gradient(sums, engine.calibrate(potentials).marginals)
                potentials = potentials + rate * (slope if tied is None else tied.expand(tied.sum(slope)))
                late = number >= sums.steps / 2
                tail = tail + (potentials - tail) / (number - halfway + 1) if late else potentials
                yield tail

        def finish(potentials: Vector) -> None:
            self._set_parameters(self._factors(engine, potentials, schema), schema)

        return Learner(layout.size, steps, finish, variables)
