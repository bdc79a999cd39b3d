"""Estimators that iterate through the wall share a plan, charged before the first step, and the loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

from tqdm.auto import tqdm

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.sums import NoisySums
from pgmpy_dp.estimators.steps import dataset_of, refuse_rules
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.checks import number
from pgmpy_dp.release import Release

# Of learning rates: they stay in (0, 1], and do not fall so quickly that later steps hardly count.
DELAY, FORGETTING = number(least=1.0), number(above=0.0, most=1.0)


def plan_options(estimator: Any) -> dict[str, Any]:
    """Read an estimator's parameters as arguments of :meth:`~pgmpy_dp.PrivateDataset.plan`.

    Raises
    ------
    ValueError
        If it has no delta.
    """
    if not estimator.delta:
        raise ValueError("Sums over samples have Gaussian noise, which needs a delta: give one, such as 1e-6.")
    names = ("steps", "epsilon", "delta", "noise_multiplier", "sampling_rate", "batch_size")
    options = {name: getattr(estimator, name) for name in names}
    return options if estimator.batch_size is None else options | {"sampling_rate": None}


def private_dataset(
    estimator: Any, data: Any, variables: Sequence[str], state_names: Any, budget: PrivacyBudget | None = None
) -> PrivateDataset:
    """Find the private data set behind what `fit` was handed; raw records are charged to the budget, if there is one.

    Raises
    ------
    SchemaError, ValueError, TypeError
    """
    if isinstance(data, Release):
        raise TypeError("This estimator iterates over records: hand it the data set, not a release.")
    dataset = dataset_of(data, variables, estimator.epsilon, estimator.delta, estimator.neighbours, state_names, budget)
    refuse_rules(estimator, dataset.schema, variables)
    return dataset


def learning_rate(delay: float, forgetting: float) -> Callable[[int], float]:
    """Weigh step t = 0, 1, ... in a running average: by 1, and then by (delay + t)^(-forgetting)."""
    tau, kappa = float(delay), float(forgetting)
    return lambda step: (tau + step) ** -kappa if step else 1.0


def run(plan: NoisySums, step: Callable[[int], None], name: str) -> int:
    """Take all steps of a plan under a progress bar; a user who interrupts keeps what was learned.

    Returns
    -------
    int
        Finished steps.
    """
    epsilon = plan.guarantee.epsilon
    with tqdm(total=plan.steps, desc=f"{name}, epsilon {epsilon:g} charged for all steps", delay=1.0) as bar:
        done = 0
        try:
            while done < plan.steps:
                step(done)
                done += 1
                bar.update()
            return done
        except KeyboardInterrupt:
            if not done:
                raise
            warnings.warn(
                f"{name} was stopped after {done} of {plan.steps} steps. It keeps what it has learned; all of "
                f"epsilon={epsilon:g} is charged.",
                stacklevel=3,
            )
            return done
