"""A Markov network that is fitted from noisy marginals."""

from __future__ import annotations

import copy
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pgmpy.factors.discrete import DiscreteFactor
from pgmpy.models import DiscreteMarkovNetwork

from pgmpy_dp._files import replacing
from pgmpy_dp.data import exact_marginals
from pgmpy_dp.errors import ReleaseFormatError
from pgmpy_dp.estimators import CollectiveEM
from pgmpy_dp.estimators.networks import log_linear
from pgmpy_dp.inference import Calibration, JunctionTree, build_engine, sample
from pgmpy_dp.inference.layout import Vector
from pgmpy_dp.models.answering import AnsweringNetwork
from pgmpy_dp.release import Guarantee
from pgmpy_dp.schema import Clique, Schema, parse_json

_FORMAT = "pgmpy_dp Markov network"
_VERSION = 1


class PrivateMarkovNetwork(AnsweringNetwork, DiscreteMarkovNetwork):
    """A discrete Markov network, fitted from private records or from a release.

    It is a pgmpy `DiscreteMarkovNetwork` whose factors have partition function 1, so pgmpy's own inference gives
    probabilities. Everything after `fit` is post-processing: queries cost no privacy.

    Parameters
    ----------
    edges : iterable of pairs of str, optional
        Undirected edges. Isolated nodes are added with `add_node`.
    tied : iterable of groups, or mapping of name to group, optional
        A group is a list of edges or nodes, as tuples, that share one table of log-potentials, axis by axis: all
        steps of a chain, say. An edge or node may lie in one group.

        In a mapping the name is the clique under which the group was measured: one table of all its places, such as
        ``{("now", "next"): [("x1", "x2"), ("x2", "x3")]}`` for records of single steps. That adds much less noise than
        a table for each place. With ``unit="person_id"``, the steps of a person weigh 1 together.

    Attributes
    ----------
    guarantee_ : Guarantee
        What holds for the records behind the fit.
    schema_ : Schema
        Variables and states.
    release_ : NoisyMarginals or NoisyCoefficients
        What it was fitted to, and what the bounds of its answers come from. It is not in the file that `save` writes:
        `attach_release` brings it back.
    posterior_ : PosteriorNetworks
        Networks drawn from what the release leaves open.

    Examples
    --------
    >>> import pandas as pd, pgmpy_dp as dp
    >>> records = pd.DataFrame({"smoke": ["yes", "no"] * 500, "lung": ["yes", "no", "no", "no"] * 250})
    >>> schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
    >>> data = dp.PrivateDataset(records, schema, dp.PrivacyBudget(1.0))
    >>> noisy = data.measure([("smoke", "lung")], epsilon=1.0)
    >>> network = dp.PrivateMarkovNetwork([("smoke", "lung")]).fit(noisy)
    >>> answer = network.query(["lung"], evidence={"smoke": "no"})
    >>> bool(answer.get_value(lung="no") > 0.9)
    True
    >>> bounds = network.query(["lung"], evidence={"smoke": "yes"}, interval=0.9)
    >>> bool(bounds.loc["yes", "lower"] < 0.5 < bounds.loc["yes", "upper"])
    True
    """

    guarantee_: Guarantee
    schema_: Schema

    def __init__(
        self,
        edges: Iterable[tuple[str, str]] | None = None,
        tied: Iterable[Iterable[Clique]] | Mapping[Clique, Sequence[Clique]] | None = None,
    ) -> None:
        super().__init__(edges, latents=[])
        self.tied = self._checked_groups(() if tied is None else tied)

    def _checked_groups(self, tied: Any) -> tuple[tuple[Clique, ...], ...] | dict[Clique, tuple[Clique, ...]]:
        """Groups of edges and nodes, each in one of them, axes corresponding."""
        names = [tuple(name) for name in tied] if isinstance(tied, Mapping) else None
        groups = [tuple(tuple(c) for c in g) for g in (tied.values() if isinstance(tied, Mapping) else tied)]
        seen: set[frozenset[str]] = set()
        for number, group in enumerate(groups):
            for clique in group:
                if not (self.has_edge(*clique) if len(clique) == 2 else len(clique) == 1 and self.has_node(*clique)):
                    raise ValueError(f"{clique!r} is neither an edge nor a node (a tuple of one) of the network.")
                if frozenset(clique) in seen:
                    raise ValueError(f"{clique!r} is tied twice.")
                seen.add(frozenset(clique))
            if len({len(clique) for clique in (*group, *(names[number : number + 1] if names else ()))}) != 1:
                raise ValueError(f"The cliques of a tied group, {group!r}, must have the same number of variables.")
        return tuple(groups) if names is None else dict(zip(names, groups, strict=True))

    def fit(self, data: Any, estimator: Any = None) -> PrivateMarkovNetwork:
        """Fit the factors and replace those of an earlier fit.

        Parameters
        ----------
        data : NoisyMarginals, PrivateDataset or data frame
            A release costs nothing; a data set is charged the estimator's epsilon.
        estimator : CollectiveEM, NaiveMLE or MaximumLikelihood, optional
            `CollectiveEM()` by default.

        Returns
        -------
        PrivateMarkovNetwork
            The network itself.
        """
        estimator = CollectiveEM() if estimator is None else estimator
        estimator.fit(self, data)
        self.set_factors(estimator.parameters_, estimator.guarantee_)
        self._keep(estimator)
        return self

    def set_factors(self, factors: Sequence[DiscreteFactor], guarantee: Guarantee) -> None:
        """Replace the factors, which must cover all nodes and have partition function 1.

        Raises
        ------
        ValueError
            If two factors have the same variables.
        """
        if len({frozenset(factor.variables) for factor in factors}) < len(factors):
            raise ValueError("Two factors have the same variables: multiply them first.")
        self.remove_factors(*self.get_factors())
        self.add_factors(*factors)
        self.guarantee_ = guarantee
        self.schema_ = Schema.from_model(self)
        self._forget()
        self.__dict__.pop("_engine", None)
        self.__dict__.pop("_calibration", None)

    def copy(self) -> PrivateMarkovNetwork:
        """An independent network with the same structure, factors and guarantee; pgmpy's own gives a plain one."""
        return copy.deepcopy(self)

    @cached_property
    def _engine(self) -> Any:
        layout, _, _ = log_linear(self, self._fitted().states)
        return build_engine(layout.cardinalities, layout.scopes)

    @cached_property
    def _calibration(self) -> Calibration:
        _, potentials, _ = log_linear(self, self._fitted().states)
        calibration: Calibration = self._engine.calibrate(potentials)
        return calibration

    def _fitted(self) -> Schema:
        if not hasattr(self, "schema_"):
            raise ValueError("The network is not fitted yet: call fit first.")
        return self.schema_

    def simulate(self, n_samples: int, seed: int | None = None) -> pd.DataFrame:
        """Independent synthetic records.

        Parameters
        ----------
        n_samples : int
        seed : int, optional
            For repeatable samples: records are drawn from a released distribution, no privacy hangs on it.

        Returns
        -------
        pandas.DataFrame
            One column a variable, in the order of the nodes.

        Raises
        ------
        ValueError
            If the network is too large for a junction tree.
        """
        if not isinstance(self._engine, JunctionTree):
            raise ValueError("Sampling needs a junction tree, and that of this network does not fit in memory.")
        states = self._fitted().states
        codes = sample(self._engine, self._calibration, n_samples, np.random.default_rng(seed))
        columns = {v: codes[:, number] for number, v in enumerate(self._engine.variables)}
        return pd.DataFrame({v: pd.Series(states[v]).take(columns[v]).array for v in self.nodes()})

    def log_likelihood(self, records: Any) -> float:
        """Mean log-likelihood of records that were not used in the fit, in nats a record.

        The records must be public, or the number kept: it is computed from them exactly.
        """
        layout, potentials, _ = log_linear(self, self._fitted().states)
        counts = exact_marginals(records, self._fitted(), layout.scopes)
        total = counts.total
        weights = layout.flatten(counts.tables[scope] for scope in layout.scopes) / total
        occupied = weights > 0
        return float(weights[occupied] @ potentials[occupied]) - self._calibration.log_partition

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write structure, factors and guarantee as one JSON file; an existing file is replaced only when complete.

        Raises
        ------
        ValueError
            If the name ends as that of another format.
        """
        if Path(path).suffix.lower() in (".bif", ".xmlbif", ".xml", ".uai"):
            raise ValueError(f"{path}: save writes JSON, .json; pgmpy_dp.exports.save_network writes .uai as well.")
        layout, potentials, _ = log_linear(self, self._fitted().states)
        content = {
            "format": _FORMAT,
            "version": _VERSION,
            "schema": self.schema_.to_dict(),
            "edges": sorted(sorted(edge) for edge in self.edges()),
            **({"tied": _ties_out(self.tied)} if self.tied else {}),
            "guarantee": self.guarantee_.to_dict(),
            "factors": [
                {"variables": list(scope), "log_potentials": [_number_out(value) for value in table.ravel()]}
                for scope, table in layout.tables(potentials).items()
            ],
        }
        with replacing(Path(path)) as handle:
            handle.write(json.dumps(content, ensure_ascii=False, indent=1).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> PrivateMarkovNetwork:
        """Read a network that `save` wrote.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ReleaseFormatError
            If the file is no such network.
        """
        if Path(path).is_dir():
            raise ReleaseFormatError(f"{path}: not a file; give the path of a network file.")
        try:
            content = parse_json(Path(path).read_bytes())
            if content["format"] != _FORMAT or content["version"] != _VERSION:
                raise ReleaseFormatError(f"{path} is no network that this version can read: it has another format.")
            schema = Schema.from_dict(content["schema"])
            network = cls([(first, second) for first, second in content["edges"]])
            network.add_nodes_from(schema.variables)
            network.tied = network._checked_groups(_ties_in(content.get("tied", [])))
            factors = [
                _factor_in(schema, tuple(factor["variables"]), factor["log_potentials"])
                for factor in content["factors"]
            ]
            network.set_factors(factors, Guarantee.from_dict(content["guarantee"]))
            network.check_model()
            if not all(np.all(factor.values) for factor in factors):
                _ = network._calibration  # refuses zeros that leave nothing possible
        except FileNotFoundError:
            raise
        except ReleaseFormatError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
            raise ReleaseFormatError(f"{path} holds no Markov network that save wrote: {error}") from error
        return network


def _ties_out(tied: Any) -> list[Any]:
    """JSON has no tuples for keys: pairs of name (or null) and cliques."""
    return [*tied.items()] if isinstance(tied, Mapping) else [[None, group] for group in tied]


def _ties_in(pairs: list[Any]) -> Any:
    if pairs and pairs[0][0] is not None:
        return {tuple(name): cliques for name, cliques in pairs}
    return [cliques for _, cliques in pairs]


def _number_out(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None  # JSON has no infinity; only log 0 is infinite


def _factor_in(schema: Schema, scope: tuple[str, ...], values: Sequence[float | None]) -> DiscreteFactor:
    logs: Vector = np.array([-math.inf if value is None else float(value) for value in values])
    with np.errstate(over="ignore"):
        exponentials = np.exp(logs)
    if not np.isfinite(exponentials).all():
        raise ReleaseFormatError(f"the factor of {scope} has values that are no numbers")
    states = {variable: list(schema.states[variable]) for variable in scope}
    return DiscreteFactor(list(scope), list(schema.shape(scope)), exponentials, state_names=states)
