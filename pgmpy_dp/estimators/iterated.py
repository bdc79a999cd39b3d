"""Base class of iterative estimators: one plan, charged before the first step, and one loop."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data
from tqdm.auto import tqdm

from pgmpy_dp.data.mechanisms.sums import NoisySums, SampledSums
from pgmpy_dp.data.wall import require_public
from pgmpy_dp.errors import warn
from pgmpy_dp.estimators.base import PrivateEstimator, refuse_rules
from pgmpy_dp.inference.tables.table import Vector
from pgmpy_dp.privacy import PrivacyBudget
from pgmpy_dp.privacy.checks import number
from pgmpy_dp.release import Release
from pgmpy_dp.schema import Schema

Learned = TypeVar("Learned")

# Constraints of learning rates: they stay in (0, 1] and do not decrease too fast for later steps to count.
DELAY, FORGETTING = number(minimum=1.0), number(above=0.0, maximum=1.0)


@dataclass(eq=False, repr=False)
class Iterated(PrivateEstimator):
    """Base class of estimators whose steps, which `_learner` defines, take noisy sums over random samples."""

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

    def _check_release(self, release: Release, variables: Sequence[str]) -> None:
        raise TypeError("This estimator iterates over records: hand it the data set, not a release.")

    def _check_rules(self, structure: Any, schema: Schema) -> None:
        refuse_rules(self, schema, self._variables(structure, schema))

    def _plan(self, structure: Any, public: Any) -> SampledSums:
        return self._sums(self._learner(structure, public))

    def _measure(self, structure: Any, source: Any, public: Any) -> tuple[Learner, NoisySums]:
        learner = self._learner(structure, source)
        return learner, source.begin(self._sums(learner))

    def _read(self, structure: Any, release: tuple[Learner, NoisySums]) -> None:
        learner, sums = release
        learned, self.n_steps_ = take_steps(sums, learner.steps(sums), type(self).__name__)
        learner.finish(learned)
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
    """The steps of an estimator: an iterator over the results of each, which `finish` converts to attributes."""

    width: int | tuple[int, int, int]  # the number of entries of a step's sum, or the shape of its moments
    steps: Callable[[NoisySums], Iterator[Any]]
    finish: Callable[[Any], None]
    variables: tuple[str, ...] | None = None  # the columns of the records that the steps read, in order


def learning_rate(delay: float, forgetting: float) -> Callable[[int], float]:
    """Return the weight of step t = 0, 1, ... in a running average: 1, then (delay + t)^(-forgetting)."""
    tau, kappa = float(delay), float(forgetting)
    return lambda step: (tau + step) ** -kappa if step else 1.0


def take_steps(sums: NoisySums, steps: Iterator[Learned], name: str) -> tuple[Learned, int]:
    """Run all steps of a plan with a progress bar, and count them; on an interrupt, keep what was learned."""
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
            warn(
                f"{name} was stopped after {done} of {sums.steps} steps. It keeps what it has learned; all of "
                f"epsilon={epsilon:g} is charged."
            )
    return learned, done  # type: ignore[return-value]  # a plan has at least one step


def conjugate_steps(
    start: Vector,  # public natural parameters
    statistic: Callable[[Vector], Callable[[Any], Any]],
    bound: float,  # the norm to which the statistics of a record are clipped
    posterior: Callable[[Vector], Vector],
    rate: Callable[[int], float],
    non_negative: bool = True,  # of statistics, which lowers the sensitivity to replacing a record
) -> Callable[[NoisySums], Iterator[Vector]]:
    """Return the steps of private variational Bayes of a conjugate-exponential model, by two functions.

    Given natural parameters, `statistic` is the function of records to their expected sufficient statistics, to the
    last bit each of its own record alone; `posterior` makes a running average of their noisy sums valid parameters.
    """

    def steps(sums: NoisySums) -> Iterator[Vector]:
        natural, average = start, np.zeros(start.size)
        for step in range(sums.steps):
            noisy = sums.noisy_sum(statistic(natural), bound, non_negative=non_negative)
            share = rate(step)
            average = (1.0 - share) * average + share * noisy / sums.sampling_rate
            natural = posterior(average)
            yield natural

    return steps


def concentrations(prior: float) -> Callable[[Vector], Vector]:
    """Return a posterior of Dirichlet distributions, whose statistics are expected counts: negative ones count as 0."""
    return lambda counts: prior + np.maximum(counts, 0.0)


@dataclass(eq=False, repr=False)
class ArrayEstimator(Iterated):
    """Base class of iterative estimators of arrays, with scikit-learn's interface."""

    _: KW_ONLY
    budget: PrivacyBudget | None = None

    def _budget(self) -> PrivacyBudget:
        """Return the common ledger of fits to raw records, or create one for this fit alone."""
        if self._is_copy:
            tied = "They share a ledger." if self.budget else "budget=dp.PrivacyBudget(...) ties all to one ledger."
            warn(
                f"This {type(self).__name__} is a copy, as GridSearchCV makes one for each fit: each costs epsilon "
                f"= {self.epsilon}. {tied} Scores of held-out private records are exact: no budget covers them, nor a "
                "choice that is made by them. Score on public records."
            )
        return super()._budget() if self.budget is None else self.budget

    def _public_array(self, X: Any) -> Vector:
        """Read public records, for which a fitted estimator is asked."""
        check_is_fitted(self)
        require_public(X)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))


@dataclass(eq=False, repr=False)
class ArrayTransformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin):  # type: ignore[misc]
    """Last base of transformers of public records, so that the number of components is the first parameter."""

    n_components: int = 10

    def fit_transform(self, X: Any, y: Any = None, **options: Any) -> NoReturn:
        """Refuse: the same records would be private and public. Call `fit`, then `transform` public records."""
        raise TypeError(
            f"{type(self).__name__} does not transform the records it is fitted to: the guarantee does not "
            "cover values of single records. Call fit with private records, then transform with public ones."
        )

    @property
    def _n_features_out(self) -> int:
        fitted: Any = self
        return int(fitted.components_.shape[0])
