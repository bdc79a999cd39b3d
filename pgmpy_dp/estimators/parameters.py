"""Estimators are made with parameters alone, and no records in the place of one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any, ClassVar

import networkx as nx
from sklearn.base import clone

from pgmpy_dp.data.wall import Wall
from pgmpy_dp.privacy.checks import Constraint, shown, single

_SINGLE = {"None", "bool", "float", "int", "str"}


class Parameters:
    """An estimator is a data class of its parameters, with constraints on some of them.

    Their representation shows numbers and names, and the type alone of all others: records may be among them.
    """

    _repr_html_ = None
    _constraints: ClassVar[Mapping[str, Constraint]] = {}
    _is_copy: ClassVar[bool] = False  # but for copies that scikit-learn made

    def __post_init__(self) -> None:
        given = dict(vars(self))
        super().__init__()
        vars(self).update(given)  # pgmpy sets the states to those that it is not handed

    def __sklearn_clone__(self) -> Any:
        """Make an unfitted copy; the ledger, if there is one, stays the same, and copies know that they are such."""
        names = inspect.signature(type(self)).parameters
        kept = {name: getattr(self, name) for name in names if name == "budget"}
        copied = {name: clone(getattr(self, name), safe=False) for name in names if name not in kept}
        found = type(self)(**copied, **kept)
        vars(found)["_is_copy"] = True
        return found

    def __repr__(self) -> str:
        given = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = getattr(self, name, parameter.default)
            if not single(value) or value != parameter.default:
                given.append(f"{name}={shown(value)}")
        return f"{type(self).__name__}({', '.join(given)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return {"text/plain": repr(self)}


def check_parameters(estimator: Any) -> None:
    """Check an estimator's parameters, before it sees a model or records.

    Raises
    ------
    TypeError
        If a model or records are in the place of one, as in pgmpy's old style of making estimators. The message has
        the type of what was handed in, and nothing of what it holds.
    ValueError
        If one breaks its constraint.
    """
    name = type(estimator).__name__
    for parameter in inspect.signature(type(estimator)).parameters.values():
        value, declared = getattr(estimator, parameter.name), set(re.findall(r"\w+", str(parameter.annotation)))
        foreign = hasattr(value, "columns") or isinstance(value, (nx.Graph, Wall))
        if foreign or (declared <= _SINGLE and not single(value)):
            raise TypeError(
                f"{parameter.name} of {name} cannot be a {type(value).__name__}. Estimators are made with parameters "
                f"alone; fit takes models and records: {name}(epsilon=1.0).fit(...)."
            )
    for parameter_name, constraint in estimator._constraints.items():
        constraint(parameter_name, getattr(estimator, parameter_name))


def refuse_weights(estimator: str, sample_weight: Any) -> None:
    """Refuse weighted records: they have another sensitivity than counted ones."""
    if sample_weight is not None:
        raise ValueError(f"{estimator} does not support sample_weight: the noise is scaled to unweighted records.")


def require_estimator(estimator: Any, known: str = "None") -> None:
    """Refuse a name or a class in the place of an estimator.

    Raises
    ------
    TypeError, ValueError
    """
    if isinstance(estimator, str):
        raise ValueError(
            f"estimator is {shown(estimator)}; choose one of {known}, or hand in an estimator, such as CollectiveEM()."
        )
    if isinstance(estimator, type):
        raise TypeError(f"estimator is the class {estimator.__name__}: hand in one of it, {estimator.__name__}().")


def require_informable(estimator: Any) -> Any:
    """Refuse an estimator that has no use for public tables, before it charges anything.

    Raises
    ------
    ValueError
    """
    if "public" not in inspect.signature(estimator.fit).parameters:
        raise ValueError(
            f"{type(estimator).__name__} cannot use public tables: leave public out, or fit CollectiveEM, AutoMLE, "
            "PrivateMLE or PosteriorMean."
        )
    return estimator
