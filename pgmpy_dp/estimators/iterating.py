"""What estimators that iterate through the wall share: a plan, charged before the first step, and the loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from tqdm.auto import tqdm

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.sums import NoisySums
from pgmpy_dp.estimators.measuring import dataset_of
from pgmpy_dp.privacy.checks import exact_positive
from pgmpy_dp.release import Release


@dataclass(frozen=True)
class Iteration:
    """What an iterative estimator will spend, and in how many steps.

    Attributes
    ----------
    epsilon, delta : float
        Of all steps together.
    steps : int
    sampling_rate : float or None
    batch_size : int or None
        In place of the rate, where the number of records is public.
    accounting : str
        Rule by which the noise is found; see :func:`~pgmpy_dp.privacy.price`.
    """

    epsilon: float | None
    delta: float
    steps: int
    sampling_rate: float | None
    batch_size: int | None
    accounting: str

    @classmethod
    def of(cls, estimator: Any) -> Iteration:
        """Read the parameters of these names off an estimator."""
        return cls(**{field.name: getattr(estimator, field.name) for field in fields(cls)})

    def dataset(self, data: Any, variables: Sequence[str], state_names: Any, neighbours: str | None) -> PrivateDataset:
        """The private data set behind what `fit` was handed.

        Raises
        ------
        SchemaError, ValueError, TypeError
        """
        if isinstance(data, Release):
            raise TypeError("This estimator iterates over records: hand it the data set, not a release.")
        self.require_delta()
        return dataset_of(data, variables, self.epsilon, self.delta, neighbours, state_names)

    def require_delta(self) -> None:
        """Refuse a plan without a delta."""
        if not self.delta:
            raise ValueError("Sums over samples have Gaussian noise, which needs a delta: give one, such as 1e-6.")

    def open(self, dataset: PrivateDataset, variables: Sequence[str], width: int | tuple[int, int, int]) -> NoisySums:
        """Charge the plan of sums or moments of a width; errors as :meth:`~pgmpy_dp.data.PrivateDataset.plan`."""
        return dataset.plan(**self.options, variables=variables, width=width)

    @property
    def options(self) -> dict[str, Any]:
        """The plan, as arguments of `plan`."""
        return {
            "steps": self.steps,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "sampling_rate": self.sampling_rate if self.batch_size is None else None,
            "batch_size": self.batch_size,
            "accounting": self.accounting,
        }


def learning_rate(
    delay: Any, forgetting: Any, names: tuple[str, str] = ("delay", "forgetting")
) -> Callable[[int], float]:
    """The weight of step t = 0, 1, ... in a running average: 1, and then (delay + t)^(-forgetting).

    Raises
    ------
    ValueError
        If it would not be in (0, 1], or would fall so quickly that later steps hardly count; with the options' names.
    """
    tau, kappa = (float(exact_positive(name, value)) for name, value in zip(names, (delay, forgetting), strict=True))
    if kappa > 1.0 or tau < 1.0:
        raise ValueError(f"The learning rate needs {names[1]} at most 1 and {names[0]} at least 1.")
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
