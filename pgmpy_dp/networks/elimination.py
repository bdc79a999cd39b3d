"""pgmpy's variable elimination with the evidence of a network's own `query`, and answers that sum to 1.

On a Markov network pgmpy 1.1.2 multiplies the factors without normalising, so that evidence gives P(b, a=1) instead of
P(b | a=1), and it ignores virtual evidence. Without variables, its `map_query` ignores the evidence on every network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any

import numpy as np
from pgmpy.factors.discrete import DiscreteFactor, TabularCPD
from pgmpy.inference import VariableElimination as Elimination
from pgmpy.models import DiscreteBayesianNetwork, DiscreteMarkovNetwork

from pgmpy_dp.inference import TreeTooLargeError
from pgmpy_dp.inference.trees.conditioning import TreeDistribution
from pgmpy_dp.models.mixture_network import PrivateMixtureNetwork
from pgmpy_dp.models.questions import Question, impossible
from pgmpy_dp.networks.bayesian_network import PrivateBayesianNetwork
from pgmpy_dp.networks.markov_network import PrivateMarkovNetwork
from pgmpy_dp.networks.network import PrivateNetwork
from pgmpy_dp.observed.factors import Network, log_linear, ordered_table
from pgmpy_dp.schema import Schema


class VariableElimination(Elimination):
    """pgmpy's variable elimination, whose answers are conditional distributions on every model.

    Parameters
    ----------
    model : PrivateBayesianNetwork, PrivateMarkovNetwork, PrivateMixtureNetwork or a network of pgmpy
        A mixture is converted by its `to_bayesian_network`.

    Examples
    --------
    >>> network = DiscreteMarkovNetwork([("a", "b")])
    >>> network.add_factors(DiscreteFactor(["a", "b"], [2, 2], [0.3, 0.1, 0.1, 0.5]))
    >>> VariableElimination(network).query(["b"], {"a": 0}).values.round(2).tolist()
    [0.75, 0.25]
    >>> Elimination(network).query(["b"], {"a": 0}).values.round(2).tolist()  # pgmpy's own: P(b, a=0)
    [0.3, 0.1]
    """

    def __init__(self, model: Network | PrivateMixtureNetwork) -> None:
        network = model.to_bayesian_network() if isinstance(model, PrivateMixtureNetwork) else model
        if not isinstance(network, DiscreteBayesianNetwork | DiscreteMarkovNetwork):
            raise TypeError(f"A Bayesian or Markov network or a mixture is needed, got {type(model).__name__}.")
        if isinstance(network, PrivateNetwork):
            _ = network._fitted.schema  # raises if it is not fitted
        super().__init__(network)

    def query(
        self,
        variables: Sequence[str],
        evidence: Mapping[str, Any] | None = None,
        virtual_evidence: Sequence[TabularCPD | DiscreteFactor] | None = None,
        elimination_order: Any = "greedy",
        joint: bool = True,
        show_progress: bool = True,
    ) -> DiscreteFactor | dict[str, DiscreteFactor]:
        """Compute the distribution of some variables given the states of others.

        Parameters
        ----------
        variables : sequence of str
        evidence : mapping of variable to state, optional
            States, numbers in bins or texts of missing values, as in `PrivateBayesianNetwork.query`.
        virtual_evidence, elimination_order, joint, show_progress
            As in pgmpy.

        Returns
        -------
        DiscreteFactor, or with ``joint=False`` a dict of variable to DiscreteFactor
            Each sums to 1.

        Raises
        ------
        SchemaError, ValueError
            As `Model.query`; a position is not a state.
        """
        asked, given = self._checked(variables, evidence)
        if virtual_evidence is not None:
            weighted, given = self._weighted(virtual_evidence, given)
            return weighted.query(asked, given, None, elimination_order, joint, show_progress)
        with np.errstate(invalid="ignore"):  # 0 / 0, refused below
            result = super().query(asked, given, None, elimination_order, joint, show_progress)
        for answer in [result] if joint else result.values():
            _normalise(answer, given)
        return result

    def map_query(
        self,
        variables: Sequence[str] | None = None,
        evidence: Mapping[str, Any] | None = None,
        virtual_evidence: Sequence[TabularCPD | DiscreteFactor] | None = None,
        elimination_order: Any = "MinFill",
        show_progress: bool = True,
    ) -> dict[str, Any]:
        """Find the most probable joint state of some variables, by default of all observed ones without evidence.

        See `query` for parameters and errors.
        """
        asked, given = self._checked(variables, evidence)
        if virtual_evidence is not None:
            weighted, given = self._weighted(virtual_evidence, given)
            return weighted.map_query(asked, given, None, elimination_order, show_progress)
        if isinstance(elimination_order, str) and elimination_order == "greedy":  # pgmpy supports it only in `query`
            answer: Any = self.query(asked, given)
        else:
            answer = self._eliminated(asked, "marginalize", given, elimination_order, show_progress)
        (state,) = answer.assignment([int(np.argmax(answer.values))])
        return {variable: dict(state)[variable] for variable in asked}

    def max_marginal(
        self,
        variables: Sequence[str] | None = None,
        evidence: Mapping[str, Any] | None = None,
        elimination_order: Any = "MinFill",
        show_progress: bool = True,
    ) -> float:
        """Compute the largest entry of the normalised max-marginals of some variables, as pgmpy does.

        See `map_query` for parameters and errors.
        """
        asked, given = self._checked(variables, evidence)
        return float(np.max(self._eliminated(asked, "maximize", given, elimination_order, show_progress).values))

    def _eliminated(
        self, asked: list[str], operation: str, given: dict[str, Any], order: Any, show_progress: bool
    ) -> DiscreteFactor:
        """Eliminate all other variables one by one."""
        network, known = self.model, given
        if isinstance(network, DiscreteBayesianNetwork):
            network, known = self._prune_bayesian_model(asked, given)
        inner = Elimination(network)
        inner._initialize_structures()
        with np.errstate(invalid="ignore"):
            answer = inner._variable_elimination(asked, operation, known, order, True, show_progress)
        return _normalise(answer, given)

    def _checked(
        self, variables: Sequence[str] | None, evidence: Mapping[str, Any] | None
    ) -> tuple[list[str], dict[str, Any]]:
        declared = self.model._fitted.declared if isinstance(self.model, PrivateNetwork) else ()
        question = Question.of(Schema.from_model(self.model), variables, evidence, declared)
        asked, given = question.asked, question.given
        with question.possible(), suppress(TreeTooLargeError):  # pgmpy's answers may ignore impossible evidence
            self._distribution.given(question.places).singles(asked[:1])
        if variables is None:
            asked = [variable for variable in asked if variable not in self.model.latents]
        return asked, given

    @cached_property
    def _distribution(self) -> TreeDistribution:
        layout, logs, _ = log_linear(self.model)
        return TreeDistribution(layout, logs, families=isinstance(self.model, DiscreteBayesianNetwork))

    def _weighted(
        self, virtual_evidence: Sequence[TabularCPD | DiscreteFactor], given: dict[str, Any]
    ) -> tuple[VariableElimination, dict[str, Any]]:
        """Build an elimination on the network with virtual evidence, which pgmpy ignores on a Markov network."""
        self._check_virtual_evidence(virtual_evidence)
        states = self.model.states
        likelihoods = []
        for weights in virtual_evidence:
            (variable,) = weights.variables
            table, own = ordered_table(weights, states), {variable: states[variable]}
            likelihoods.append(DiscreteFactor([variable], table.shape, table, own))
        bayesian = isinstance(self.model, DiscreteBayesianNetwork)
        network = (PrivateBayesianNetwork if bayesian else PrivateMarkovNetwork).of(self.model)
        network._forget()  # the guarantee does not cover these tables
        weighted = VariableElimination(network)
        if isinstance(network, PrivateMarkovNetwork):
            network.add_factors(*likelihoods)
            return weighted, given
        weighted._virtual_evidence(likelihoods)
        return weighted, given | {f"__{one.variables[0]}": 0 for one in likelihoods}


def _normalise(answer: DiscreteFactor, given: Mapping[str, Any]) -> DiscreteFactor:
    mass = float(np.sum(answer.values))
    if not mass > 0:
        raise impossible(given)
    answer.values = answer.values / mass
    return answer
