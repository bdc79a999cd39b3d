"""Base class of iterative estimators: one plan, charged before the first step, and one loop."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, TypeVar

from tqdm.auto import tqdm

from pgmpy_dp.data import PrivateDataset
from pgmpy_dp.data.mechanisms.sums import NoisySums, SampledSums
from pgmpy_dp.errors import callers_level
from pgmpy_dp.estimators.base import PrivateEstimator
from pgmpy_dp.estimators.sources import refuse_rules
from pgmpy_dp.privacy.checks import number
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Schema

Learned = TypeVar("Learned")

# Constraints of learning rates: they stay in (0, 1] and do not decrease too fast for later steps to count.
DELAY, FORGETTING = number(least=1.0), number(above=0.0, most=1.0)


@dataclass(eq=False, repr=False)
class Iterated(PrivateEstimator):
    """Base class of estimators whose steps take noisy sums over random samples of the records.

    A subclass defines `_learner`, with the steps and the number of entries of their sums.

    Parameters
    ----------
    epsilon : float, optional
        Total privacy loss of all steps, charged as one block before the first. With None, the cost of
        `noise_multiplier` is charged.
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

    Attributes
    ----------
    noise_multiplier_ : float
    n_steps_ : int
        Steps taken; fewer than `steps` if the user interrupted.
    """

    epsilon: float | None = 1.0
    delta: float = 0.0
    _: KW_ONLY
    steps: int = 50
    sampling_rate: float | None = 1.0
    batch_size: int | None = None
    noise_multiplier: float | None = None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self.delta:
            raise ValueError("Sums over samples have Gaussian noise, which needs a delta: give one, such as 1e-6.")

    def _dataset(self, data: Any, variables: Sequence[str], state_names: Any) -> PrivateDataset:
        if isinstance(data, Release):
            raise TypeError("This estimator iterates over records: hand it the data set, not a release.")
        return super()._dataset(data, variables, state_names)

    def _source(self, structure: Any, data: Any, public: Any) -> Any:
        dataset = self._dataset(data, self._variables(structure, data), self._states(structure))
        self._require_held(structure, dataset.schema)
        return dataset

    def _require_held(self, structure: Any, schema: Schema) -> None:
        refuse_rules(self, schema, self._variables(structure, schema))

    def _plan(self, structure: Any, public: Any) -> SampledSums:
        return self._sums(self._learner(structure, public))

    def _measure(self, structure: Any, source: Any, public: Any) -> tuple[Learner, NoisySums]:
        learner = self._learner(structure, source)
        return learner, source.begin(self._sums(learner))

    def _observe(self, structure: Any, release: Any) -> None:
        """Do nothing: each step checks its own sum."""

    def _read(self, structure: Any, release: tuple[Learner, NoisySums]) -> Any:
        learner, sums = release
        found, self.n_steps_ = run(sums, learner.steps(sums), type(self).__name__)
        return found

    def _finish(self, structure: Any, release: tuple[Learner, NoisySums], found: Any) -> None:
        learner, sums = release
        learner.finish(found)
        self.guarantee_, self.noise_multiplier_ = sums.guarantee, sums.noise_multiplier

    def _learner(self, structure: Any, public: Any) -> Learner:
        """Prepare the steps from public information on the records; nothing is charged yet."""
        raise NotImplementedError

    def _sums(self, learner: Learner) -> SampledSums:
        rate = self.sampling_rate if self.batch_size is None else None
        options = (self.steps, self.delta, self.epsilon, self.noise_multiplier, rate, self.batch_size)
        return SampledSums(*options, width=learner.width, variables=learner.variables)


@dataclass(frozen=True)
class Learner:
    """The steps of an estimator.

    Attributes
    ----------
    width : int or tuple of int
        Number of entries of a step's sum, or the shape of its moments.
    steps : callable
        Maps the charged sums to an iterator over the learned state after each step.
    finish : callable
        Sets the fitted attributes from the learned state.
    variables : tuple of str, optional
        Columns of the records that the steps read, in order.
    """

    width: int | tuple[int, int, int]
    steps: Callable[[NoisySums], Iterator[Any]]
    finish: Callable[[Any], None]
    variables: tuple[str, ...] | None = None


def learning_rate(delay: float, forgetting: float) -> Callable[[int], float]:
    """Return the weight of step t = 0, 1, ... in a running average: 1, then (delay + t)^(-forgetting)."""
    tau, kappa = float(delay), float(forgetting)
    return lambda step: (tau + step) ** -kappa if step else 1.0


def run(sums: NoisySums, steps: Iterator[Learned], name: str) -> tuple[Learned, int]:
    """Run all steps of a plan with a progress bar; on an interrupt, return what was learned.

    Returns
    -------
    learned
        The state after the last finished step.
    number : int
        Number of finished steps.
    """
    epsilon = sums.guarantee.epsilon
    done, learned = 0, None
    with tqdm(total=sums.steps, desc=f"{name}, epsilon {epsilon:g} charged for all steps", delay=1.0) as bar:
        try:
            for learned in steps:  # noqa: B007
                done += 1
                bar.update()
        except KeyboardInterrupt:
            if not done:
                raise
            warnings.warn(
                f"{name} was stopped after {done} of {sums.steps} steps. It keeps what it has learned; all of "
                f"epsilon={epsilon:g} is charged.",
                stacklevel=callers_level(),
            )
    return learned, done  # type: ignore[return-value]  # a plan has at least one step
