"""`PrivateSGD` follows stochastic gradients of the likelihood, which are clipped for each record and noised."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from pgmpy.models import DiscreteMarkovNetwork
from pgmpy.parameter_estimator.base import DiscreteParameterEstimator

from pgmpy_dp.data.mechanisms.integer_sums import checked_norm
from pgmpy_dp.data.mechanisms.sums import NoisySums
from pgmpy_dp.estimators.iterating import plan_options, private_dataset, run
from pgmpy_dp.estimators.parameters import Parameters, check_parameters, refuse_weights
from pgmpy_dp.estimators.results import warn_unless
from pgmpy_dp.fitting.plans.tying import Tying
from pgmpy_dp.inference import Layout, build_engine
from pgmpy_dp.inference.tables.layout import Vector
from pgmpy_dp.inference.trees.engine import INFERENCE
from pgmpy_dp.observed.factors import markov_factors, markov_network, markov_scopes, require_joined
from pgmpy_dp.privacy.checks import Constraint, choice, exact_positive, optional
from pgmpy_dp.schema import Clique, Schema


@dataclass(eq=False, repr=False)
class PrivateSGD(Parameters, DiscreteParameterEstimator):
    """Log-potentials of a Markov network are learned by noisy stochastic gradient ascent.

    The baseline of Bernstein et al. (2017) after Abadi et al. (2016). Each step takes a random sample of the records,
    sums their clipped gradients of the log-likelihood with Gaussian noise, and moves the log-potentials.

    Parameters
    ----------
    epsilon, delta : float
        What all steps together cost; charged before the first as one block.
    state_names : mapping of variable to states, or Schema
        Declared states; needed for raw records.
    steps : int
    sampling_rate : float
        Probability of a record to be in a step's sample.
    batch_size : int, optional
        Size of a sample in place of the rate, for neighbours "replace_one".
    statistic : {"gradient", "features"}
        "gradient": each record's gradient, its indicators less the network's marginals, is clipped and summed, as in
        the paper. "features": the marginals are public, so only the indicators are summed; their norm is the same for
        all records, so that nothing is clipped and no bias comes from clipping.
    clip_norm : float, optional
        For "gradient"; by default the square root of the number of tables, the typical norm.
    learning_rate : float
        Step along the gradient of the mean log-likelihood of a record.
    total : float, optional
        A public guess of the number of records, for "gradient" under "add_remove": with the sampling rate it gives the
        public size by which sums are divided. The true number is private there.
    inference : {"auto", "junction_tree", "loopy"}
        For the network's marginals in each step. Tied parameters need a junction tree.
    cliques : sequence of tuples of str
        Variables, all joined by edges, whose tables carry log-potentials as well as those of the edges.
    noise_multiplier : float, optional
        Standard deviation of the noise over the sensitivity of a sum; by default the least that epsilon allows.
    neighbours : {"add_remove", "replace_one"}, optional
        For raw records; "add_remove" by default. A `PrivateDataset` has its own.

    Attributes
    ----------
    parameters_ : list of DiscreteFactor
        With partition function 1.
    state_names_ : dict
    guarantee_ : Guarantee
    noise_multiplier_ : float
    n_steps_ : int
        Steps taken; fewer than `steps` if the user interrupted.

    Notes
    -----
    Cliques that share parameters share their gradients' sum. Each clique's own gradient is clipped and noised with the
    others, and the noisy ones are summed.

    A record's gradient is phi(x) - mu(theta), phi being its clique indicators and mu the network's marginals. Its norm
    is a table look-up, and clipped gradients add up as weighted tables: no record's vector is made
    (:meth:`~pgmpy_dp.data.mechanisms.sums.NoisySums.noisy_tables`). The log-potentials returned are the mean over the
    second half of the steps, in which much of the noise cancels.

    For "features", a sample's size is estimated from the noisy tables themselves.

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

    _tags = {  # noqa: RUF012
        "supported_model_types": (DiscreteMarkovNetwork,),
        "supports_latent_variables": False,
        "supports_weighted_data": False,
    }

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "statistic": choice("gradient", "features"),
        "clip_norm": optional(checked_norm),
        "learning_rate": exact_positive,
        "total": optional(exact_positive),
        "inference": choice(*INFERENCE),
    }

    epsilon: float = 1.0
    delta: float = 0.0
    state_names: Mapping[str, Any] | Schema | None = None
    steps: int = 500
    sampling_rate: float | None = 0.1
    batch_size: int | None = None
    statistic: str = "gradient"
    clip_norm: float | None = None
    learning_rate: float = 1.0
    total: float | None = None
    inference: str = "auto"
    cliques: Sequence[Clique] = ()
    noise_multiplier: float | None = None
    neighbours: str | None = None

    def fit(self, model: DiscreteMarkovNetwork, data: Any, sample_weight: None = None) -> PrivateSGD:
        """Learn the factors of a Markov network.

        Parameters
        ----------
        model : PrivateMarkovNetwork or pgmpy DiscreteMarkovNetwork
        data : PrivateDataset or data frame
            A data set (charged), or records (with declared states).
        sample_weight : None
            Not supported.

        Returns
        -------
        PrivateSGD

        Raises
        ------
        SchemaError
            If states are not declared, or the records do not agree with them.
        BudgetExceededError
            If the data set's ledger has too little left; nothing is charged.
        ValueError
            If an argument is out of range; nothing is charged.
        """
        check_parameters(self)
        refuse_weights(type(self).__name__, sample_weight)
        network = markov_network(model, type(self).__name__)
        require_joined(network, self.cliques)
        tying = Tying.of(network)
        if tying is not None and (self.cliques or self.inference == "loopy"):
            raise ValueError(
                "PrivateSGD fits tied parameters on a junction tree, and of the tied cliques and edges alone."
            )
        rate = float(self.learning_rate)
        variables = list(network.nodes())
        scopes = markov_scopes(network, self.cliques)
        if tying is not None:
            tying = replace(tying, pooled=False)  # records have the nodes' columns, not the groups'
            scopes = tuple(clique for group in tying.groups.values() for clique in group)
        typical = math.sqrt(len(scopes))
        clip = typical if self.clip_norm is None or self.statistic == "features" else self.clip_norm
        options = plan_options(self)
        dataset = private_dataset(self, data, variables, self.state_names)
        if self.total is None and self.statistic == "gradient" and dataset.neighbours == "add_remove":
            raise ValueError(
                'The number of records is private: give a public guess as total, or take statistic="features", which '
                "needs none."
            )
        schema = dataset.schema.select(variables)
        tied = None if tying is None else tying.engine(tying.node_schema(schema), tying.name_schema(schema))
        engine = build_engine(schema.cardinalities(), scopes, self.inference) if tied is None else tied.tree
        plan = dataset.plan(**options, variables=variables, width=engine.layout.size)
        gradient = _Gradient(plan, engine.layout, variables, clip, self.statistic, self.total)
        potentials, tail = np.zeros(engine.layout.size), np.zeros(engine.layout.size)

        def step(number: int) -> None:
            nonlocal potentials
            slope = gradient(engine.calibrate(potentials).marginals)
            potentials = potentials + rate * (slope if tied is None else tied.expand(tied.sum(slope)))
            tail[:] = potentials if number < plan.steps / 2 else tail + (potentials - tail) / (number - halfway + 1)

        halfway = math.ceil(plan.steps / 2)
        self.n_steps_ = run(plan, step, type(self).__name__)
        calibration = engine.calibrate(tail)
        warn_unless(calibration.converged, self, "Loopy belief propagation")
        self.parameters_ = markov_factors(engine.layout, tail, calibration.log_partition, schema.states)
        self.state_names_ = schema.state_names
        self.guarantee_ = plan.guarantee
        self.noise_multiplier_ = plan.noise_multiplier
        self._is_fitted = True
        return self


class _Gradient:
    """Noisy gradient of the mean log-likelihood of a record, from the network's marginals."""

    def __init__(
        self,
        plan: NoisySums,
        layout: Layout,
        variables: list[str],
        clip: float,
        statistic: str,
        total: float | None,
    ) -> None:
        self.plan, self.layout, self.clip, self.statistic = plan, layout, clip, statistic
        column = {variable: number for number, variable in enumerate(variables)}
        self.cliques = [[column[variable] for variable in scope] for scope in layout.scopes]
        self.shape = [layout.cardinalities[variable] for variable in variables]
        public = plan.sampling_rate * total if total is not None else plan.batch_size
        self.size = 1.0 if public is None else max(float(public), 1.0)

    def __call__(self, marginals: Vector) -> Vector:
        if self.statistic == "gradient":
            centre = np.minimum(marginals, 1.0)  # calibration may round a probability up past 1
            return self.plan.noisy_tables(self.cliques, self.shape, self.clip, centre) / self.size
        tables = self.plan.noisy_tables(self.cliques, self.shape, self.clip)
        # Every table sums to the sample's size; the noise of its sum has a variance in proportion to its cells.
        cells = np.diff(self.layout.offsets)
        sums = np.add.reduceat(tables, self.layout.offsets[:-1])
        size = max(float(np.average(sums, weights=1.0 / cells)), 1.0)
        return tables / size - marginals
