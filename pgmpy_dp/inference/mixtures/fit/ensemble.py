"""Fit of an ensemble of mixtures, which is a mixture again, to one release of noisy tables."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from pgmpy_dp._progress import progress
from pgmpy_dp._threads import cores, one_thread
from pgmpy_dp.inference.mixtures.balanced_records import pair_shares
from pgmpy_dp.inference.mixtures.boxes import Boxes, Rules
from pgmpy_dp.inference.mixtures.children import Child
from pgmpy_dp.inference.mixtures.fit.base import Matrix, Shape, Targets, among_alike, among_neighbours, start_from
from pgmpy_dp.inference.mixtures.fit.denoised_children import denoised_within
from pgmpy_dp.inference.mixtures.fit.member import MemberProblem, Parameters, fit_member
from pgmpy_dp.inference.mixtures.fit.noisy_tables import Alike, NoisyTables, coarse_table, fine_counts, shrunk
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.table import Variable, Vector

# Widths, in states, within which ordered states share their coefficients with neighbours; chosen on census records. The
# wider one is for variables of many states, of which it is at most a third.
_WIDE, _NARROW = 5.0, 3.0
_WIDTHS = (_WIDE, _NARROW, 0.0)
# Nats by which one choice must predict better than another, and mixtures than a product; less may be chance.
_MARGIN, _OF_PRODUCTS = 10.0, 5.0
# Penalties tried: powers of a factor times the first one, and the maximum number of steps of that search.
_FIRST_PENALTY, _FACTOR, _TRIES = 0.006, 2.0, 6
_MORE = 1.5
# Maximum number of steps, as a multiple of those asked for, since little noise leaves more to fit. More steps than that
# hardly bring pairs closer, but move the dependence of three variables away from the records, which the thinned
# release's pairs do not reveal.
_LONGEST = 8 / 3
# With more states in all, further members gain little over the first, as there are many pairs, and a fit takes long:
# there are fewer members, down to the second number, and no more steps are tried.
_MANY_STATES, _FEW_MEMBERS = 400, 4
_THINNING = 0.5  # share of noise added for thinning
_TEACHERS = 4  # number of members that determine which states are alike: with fewer, others would resemble them
_MIN_SHARE = 1e-9
_BESIDE = 0.01  # maximum weight of members in a mixture with the uniform distribution
_HIDDEN = 25  # components of refits of a product
_BLANK = 4.0  # nats by which a product must fit better than the uniform distribution, beyond its degrees of freedom


@dataclass(frozen=True)
class MixtureFit:
    """A fit to a release.

    Attributes
    ----------
    mixture : Mixture
        The mean of all members, and a component without any dependence that weighs less than one record, so that
        nothing is impossible. Under rules there are several of the latter, which together cover every pair of states
        that may occur. Where noise drowns the records, these are uniform, and weigh more.
    total : float
        Number of records.
    size : int
        Number of members.
    penalty, width : float
        Settings chosen by thinning: the price per record of a nat of divergence from independent blocks, and the width
        within which ordered states share coefficients.
    steps : int
        Number of Adam steps.
    covering : int
        Number of components without dependence.
    rules : Rules
    alike : bool
        Whether similar states of other variables share coefficients.
    """

    mixture: Mixture
    total: float
    size: int
    penalty: float
    width: float
    steps: int
    covering: int = 1
    rules: Rules = field(default_factory=Rules)
    alike: bool = False

    @property
    def components(self) -> int:
        """Number of components of a member."""
        return (self.mixture.weights.size - self.covering) // self.size

    @property
    def coarse_cardinalities(self) -> dict[Variable, int]:
        """Numbers of states of the variables that are fitted: those without a coarser one."""
        return {v: states for v, states in self.mixture.cardinalities.items() if v not in self.rules.refined}

    @property
    def uniform(self) -> bool:
        """Whether the mixture is nearly uniform, since noise hides the records."""
        return bool(self.mixture.weights[-self.covering :].sum() > 0.5)

    @property
    def members(self) -> tuple[Mixture, ...]:
        """Fits from different starts, each a mixture: where they agree, the release determines the answer."""
        whole, components = self.mixture, self.components
        parts = [slice(begin, begin + components) for begin in range(0, self.size * components, components)]
        return tuple(
            Mixture(
                whole.cardinalities, whole.blocks, whole.weights[part] / whole.weights[part].sum(),
                tuple(table[part] for table in whole.tables), whole.children,
            )
            for part in parts
        )  # fmt: skip


def fit_mixture(
    cardinalities: Mapping[Variable, int],
    tables: Iterable[tuple[Sequence[Variable], ArrayLike, float]],
    *,
    ordered: Collection[Variable] = (),
    components: int = 100,
    members: int = 12,
    steps: int = 300,
    known_total: float | None = None,
    residuals: bool = False,
    rules: Rules | None = None,
    generator: np.random.Generator,
) -> MixtureFit:
    """Fit an ensemble of mixtures to noisy counts.

    Parameters
    ----------
    cardinalities : mapping of variable to int
        Every variable must be in at least one. Pairs work best; larger tables are used as they are.
    ordered : collection of variables
        Variables whose states have an order.
    components, members, steps : int
        Components of a member; members of the ensemble; Adam steps of a member's fit. A quarter of the components, or
        half the steps, are used if they predict the thinned release better; a single component, a product of
        independent blocks, unless others clearly do; 8/3 of the steps where they clearly do. Beyond 400 states in all,
        members are fewer, down to four, and have half the steps.
    known_total, residuals
        See `NoisyTables`.
    rules : Rules, optional
        Rules that always hold. Variables that follow from others have no parameters.
    generator : numpy.random.Generator

    Returns
    -------
    MixtureFit

    Examples
    --------
    >>> pair = [[400.0, 100.0], [100.0, 400.0]]
    >>> fit = fit_mixture({"a": 2, "b": 2}, [(("a", "b"), pair, 1.0)], generator=np.random.default_rng(0))
    >>> fit.mixture.marginal(("a", "b")).round(2)
    array([[0.4, 0.1],
           [0.1, 0.4]])
    """
    rules, given = rules or Rules(), list(tables)
    sizes = {variable: states for variable, states in cardinalities.items() if variable not in rules.refined}
    coarse = [coarse_table(rules.refined, sizes, table) for table in given]
    noisy = NoisyTables.of(sizes, [rules.consistent(*table) for table in coarse], known_total, residuals)
    start, states = _Start.of(noisy, sizes, rules, ordered), sum(sizes.values())
    if states > _MANY_STATES:
        members = min(members, max(_FEW_MEMBERS, round(members * _MANY_STATES / states)))
    seeds = generator.spawn(members + 1)
    with (
        one_thread(),
        ThreadPoolExecutor(cores()) as pool,
        progress("Fitting", "fit", members + _TRIES) as bar,
    ):
        third = members // 3
        whole = start.problem(noisy)
        chosen = _choose(noisy, start, components, steps, third, seeds[-1], pool, bar.update)
        bar.total = bar.n + members
        results: list[tuple[Matrix, Matrix]] = []
        for part in (seeds[:third], seeds[third:-1]):
            if results:  # their mean is a better base for the others, and determines which states are similar
                start = replace(start, log_base=_mean_logs(results))
                start = (
                    start.taught(start.ensemble(results, noisy, seeds[-1].spawn(1)[0])[0]) if chosen.alike else start
                )
            problem = start.adapted(whole, chosen.width)
            for parameters in pool.map(partial(start.fit, problem, chosen), part):
                results.append(problem.tables(parameters)[:2])
                bar.update()
    freedom = 0.0
    if chosen.components == 1:
        results, freedom = start.shrunk(results, noisy)
    mixture, covering = start.ensemble(results, noisy, seeds[-1])
    if chosen.components == 1:
        uniform, count = start.ensemble(results, noisy, seeds[-1].spawn(1)[0], uniform=True)
        if _misfit(uniform, noisy) < _misfit(mixture, noisy) + 2 * (freedom + _BLANK):
            mixture, covering = uniform, count
    fine = fine_counts(rules.refined, given)
    mixture = refined_by(mixture, cardinalities, rules, fine, noisy.total, denoised_within)
    return MixtureFit(
        mixture, noisy.total, members, chosen.penalty, chosen.width, chosen.steps, covering, rules, chosen.alike
    )


def refined_by(
    mixture: Mixture,
    cardinalities: Mapping[Variable, int],
    rules: Rules,
    fine: Mapping[Variable, tuple[Vector, float]],
    total: float,
    within: Callable[..., Mapping[Variable, Child]],
) -> Mixture:
    """Add finer variables to a mixture by their noisy counts, from which `within` estimates them."""
    totals = {coarser: total * mixture.marginal((coarser,)) for coarser, _ in rules.refined.values()}
    return mixture.extended(cardinalities, within(rules.refined, fine, totals)) if totals else mixture


def refitting(fit: MixtureFit, ordered: Collection[Variable]) -> Callable[[NoisyTables, np.random.Generator], Mixture]:
    """Return a function that fits one member to other tables of the same variables, with the settings of a fit.

    Neither it nor the tables may contain variables that refine others. Members of a product, or of the uniform
    distribution, depend on noise as if neither had been chosen: they show what it may hide.
    """
    components = fit.components if fit.components > 1 else _HIDDEN
    settings = _Settings(fit.penalty, fit.width, components, fit.steps)
    alike = _alike(fit.mixture, ordered) if fit.alike else {}

    def refit(noisy: NoisyTables, generator: np.random.Generator) -> Mixture:
        start = replace(_Start.of(noisy, fit.coarse_cardinalities, fit.rules, ordered), alike=alike)
        problem = start.adapted(start.problem(noisy), fit.width)
        result = problem.tables(start.fit(problem, settings, generator))[:2]
        return start.ensemble([result], noisy, generator)[0]

    return refit


def _alike(mixture: Mixture, ordered: Collection[Variable]) -> dict[Variable, Vector]:
    """Compute how similar the states of variables without an order are in a mixture."""
    return among_alike(mixture, [variable for block in mixture.blocks for variable in block if variable not in ordered])


def disagreement(fit: MixtureFit) -> dict[tuple[Variable, Variable], float]:
    """For every pair of variables, sum the standard deviation of the members' probabilities over its cells.

    A second release should spend more where this is large.
    """
    root = fit.rules.root
    pairs = (pair for pair in itertools.combinations(fit.coarse_cardinalities, 2) if root(pair[0]) != root(pair[1]))
    return {pair: float(np.std([member.marginal(pair) for member in fit.members], axis=0).sum()) for pair in pairs}


@dataclass(frozen=True)
class _Settings:
    """Settings chosen by thinning."""

    penalty: float
    width: float
    components: int
    steps: int
    alike: bool = False


@dataclass(frozen=True)
class _Start:
    """What all members of an ensemble have in common."""

    cardinalities: Mapping[Variable, int]
    rules: Rules
    total: float
    shape: Shape
    log_base: Vector
    ordered: Collection[int]
    alike: Mapping[Variable, Vector] = field(default_factory=dict)

    @classmethod
    def of(
        cls, noisy: NoisyTables, cardinalities: Mapping[Variable, int], rules: Rules, ordered: Collection[Variable]
    ) -> _Start:
        """Determine blocks and their base tables."""
        numbers = {variable: number for number, variable in enumerate(cardinalities)}
        dependent = {numbers[v]: (numbers[root], states) for v, (root, states) in rules.dependent.items()}
        shape, log_base = start_from(noisy, dependent)
        return cls(cardinalities, rules, noisy.total, shape, log_base, {numbers[v] for v in ordered if v in numbers})

    @property
    def names(self) -> list[Variable]:
        return list(self.cardinalities)

    @cached_property
    def blocks(self) -> list[tuple[Variable, ...]]:
        return [tuple(self.names[variable] for variable in block) for block in self.shape.blocks]

    @cached_property
    def boxes(self) -> Boxes | None:
        """Boxes to which components are confined; None if there are no rules."""
        if not self.rules.zeros:
            return None
        return Boxes(self.rules, self.blocks, self.shape.cells, self.cardinalities)

    def taught(self, mixture: Mixture) -> _Start:
        """Let similar states of variables without an order share coefficients, by their similarity in a mixture."""
        return replace(self, alike=_alike(mixture, {self.names[number] for number in self.ordered}))

    def adapted(self, problem: MemberProblem, width: float) -> MemberProblem:
        """Return the loss of a member with this base, whose ordered states share coefficients within a width."""
        smoothing = [
            among_neighbours(states, min(width, max(_NARROW, states / 3)))
            if number in self.ordered and width > 0
            else self.alike.get(variable)
            for number, (variable, states) in enumerate(self.cardinalities.items())
        ]
        return problem.adapted(self.log_base, smoothing)

    def problem(self, observed: NoisyTables) -> MemberProblem:
        """Return the loss of one member for noisy counts, which are converted to shares of the records."""
        targets = [
            Targets(
                alike.variables,
                observed.compared(observed.counts[alike.cells] / self.total, 1),
                (self.total / observed.deviations[alike.numbers]) ** 2,
            )
            for alike in observed.alike
            if alike.variables.size
        ]
        smoothing = [None] * len(self.cardinalities)
        return MemberProblem(self.shape, self.log_base, smoothing, targets, self.boxes, observed.residuals)

    def fit(self, problem: MemberProblem, settings: _Settings, generator: np.random.Generator) -> Parameters:
        penalty = settings.penalty * self.total / problem.precision
        return fit_member(problem, penalty, settings.components, settings.steps, generator)

    def shrunk(
        self, found: Sequence[tuple[Matrix, Matrix]], noisy: NoisyTables
    ) -> tuple[list[tuple[Matrix, Matrix]], float]:
        """Shrink the mean of fitted products by the noise that its variables have; return degrees of freedom too."""
        shape, mean, freedom = self.shape, np.mean([tables @ weights for weights, tables in found], axis=0), 0.0
        rows = {block: shape.of_block(number) for number, block in enumerate(shape.blocks)}
        squares = 1 / np.array(shape.cardinalities)
        for block, own in rows.items():
            if len(block) == 1:
                squares[block[0]] = (mean[own] ** 2).sum()
        # A table is as informative about a variable as if the others were known, and independent of it.
        precisions = np.zeros(len(squares))
        for numbers, variables, _ in noisy.alike:
            for axis in range(variables.shape[1]):
                others = squares[np.delete(variables, axis, axis=1)].prod(axis=1)
                np.add.at(precisions, variables[:, axis], others / noisy.deviations[numbers] ** 2)
        shares = mean.copy()
        for block, own in rows.items():
            deviation = 0.0
            if len(block) == 1 and self.boxes is None:
                deviation = precisions[block[0]] ** -0.5 / self.total
            shares[own], free = shrunk(mean[own], deviation)
            freedom += free
        return [(weights, shares[:, None]) for weights, _ in found], freedom

    def ensemble(
        self,
        found: Sequence[tuple[Matrix, Matrix]],
        noisy: NoisyTables,
        generator: np.random.Generator,
        uniform: bool = False,
    ) -> tuple[Mixture, int]:
        """Combine members, followed by components of independent variables; return the number of the latter too."""
        shape = self.shape
        covering = self._covering(noisy, generator, uniform)
        one_record, count = 1 / (noisy.total + 1), len(next(iter(covering.values())))
        share = 1 - min(one_record, _BESIDE) if uniform else one_record
        weights = np.concatenate(
            [weights * ((1 - share) / len(found)) for weights, _ in found] + [np.full(count, share / count)]
        )
        tables = []
        for number, block in enumerate(shape.blocks):
            table = np.zeros((weights.size, math.prod(shape.cardinalities[variable] for variable in block)))
            begin = 0
            for part, cells in found:
                table[begin : begin + part.size, shape.codes(number)] = cells[shape.of_block(number)].T
                begin += part.size
            for row in range(count):
                table[begin + row] = reduce(np.multiply.outer, [covering[variable][row] for variable in block]).ravel()
            tables.append(table.reshape(-1, *(shape.cardinalities[variable] for variable in block)))
        children = {
            variable: Child.function(root, states, self.cardinalities[variable])
            for variable, (root, states) in self.rules.dependent.items()
        }
        return Mixture.of(self.cardinalities, self.blocks, weights, tables, children), count

    def _covering(self, noisy: NoisyTables, generator: np.random.Generator, uniform: bool) -> dict[int, Vector]:
        """Return the tables of single variables in the components of independent variables, with a row for each."""
        variables = sorted(variable for block in self.shape.blocks for variable in block)
        shares = [noisy.possible(variable) for variable in variables]
        if uniform:
            shares = [np.full(own.size, 1 / own.size) for own in shares]
        if self.rules.zeros:
            blocks = [(self.names[variable],) for variable in variables]
            cells = [np.arange(own.size)[:, None] for own in shares]
            drawn = Boxes(self.rules, blocks, cells, self.cardinalities).cover(generator)
            if not len(drawn[0]):
                raise ValueError("The rules contradict each other: no record obeys them all.")
            shares = [own * box for own, box in zip(shares, drawn, strict=True)]
        else:
            shares = [own[None] for own in shares]
        return {v: own / own.sum(axis=1, keepdims=True) for v, own in zip(variables, shares, strict=True)}


def _choose(
    noisy: NoisyTables,
    start: _Start,
    components: int,
    steps: int,
    teachers: int,
    generator: np.random.Generator,
    pool: ThreadPoolExecutor,
    progress: Callable[[], Any],
) -> _Settings:
    """Choose settings with which a fit to one half of the thinned release best predicts the other half.

    Settings that will be, or may be, compared next are tried at once if there are several cores.
    """
    half, other = noisy.thinned(_THINNING, generator)
    fitted, predicted = start.problem(half), start.problem(other)
    margin = _MARGIN / predicted.precision
    seed = int(generator.integers(2**32))
    known: dict[_Settings, Future[tuple[Parameters, float]]] = {}

    def tried(start: _Start, settings: _Settings) -> tuple[Parameters, float]:
        result = start.fit(start.adapted(fitted, settings.width), settings, np.random.default_rng(seed))
        progress()
        return result, start.adapted(predicted, settings.width).gradient(result, 0.0)[0]

    def risk(settings: _Settings, *ahead: _Settings) -> float:
        for each in (settings, *(ahead if cores() > 1 else ())):
            if each not in known:
                known[each] = pool.submit(tried, start, each)
        return known[settings].result()[1]

    best, lowest = _Settings(_FIRST_PENALTY, 0.0, components, max(steps // 2, 1)), math.inf
    for width in _WIDTHS if start.ordered else (0.0,):
        first = replace(best, width=width)
        if risk(first, replace(first, penalty=first.penalty * _FACTOR)) > lowest + margin:
            continue  # at another penalty it would hardly be the best
        result = _walk(risk, first)
        if risk(result) < lowest - margin:
            best, lowest = result, risk(result)
    best = replace(best, penalty=best.penalty * _FACTOR ** _vertex(risk, best))
    # Few components and few steps are penalties too, which noise may favour. If many components show through the noise,
    # an ensemble gains from more steps, and from sharing among similar states if neighbours share too, even if single
    # members do not: these are dropped only if they do clear harm.
    few = replace(best, components=max(components // 4, 1))
    # A member of one component is a product of independent blocks: others must predict better by more than chance.
    alone = replace(best, components=1)
    risk(best, few, alone)
    longer, wide = best, sum(start.cardinalities.values()) > _MANY_STATES
    if not wide:
        longer = _walk(risk, replace(best, penalty=_MORE * best.penalty, steps=steps))
    if risk(alone) < min(risk(best), risk(few), risk(longer)) + _OF_PRODUCTS / predicted.precision:
        return alone
    if risk(few) < risk(best) + margin:
        return min((best, few, longer), key=risk)
    gains, best = risk(longer) < risk(best), longer if risk(longer) < risk(best) + margin else best
    longest = replace(best, steps=round(_LONGEST * steps))
    if not wide and gains and risk(longest) < risk(best) - margin:
        best = longest
    if teachers < _TEACHERS:
        return best
    member = start.adapted(fitted, best.width).tables(known[best].result()[0])[:2]
    taught = start.taught(start.ensemble([member], half, generator)[0])
    harm = tried(taught, best)[1] - risk(best)
    return replace(best, alike=bool(taught.alike) and harm < (margin if best.width > 0 else 0.0))


def _misfit(mixture: Mixture, noisy: NoisyTables) -> float:
    """Return the sum of squared residuals of noisy tables, in units of their noise."""
    misfit = 0.0
    for (numbers, _, cells), marginals in marginals_of(mixture, noisy):
        residuals = noisy.compared(noisy.total * marginals - noisy.counts[cells], 1)
        misfit += float((residuals.reshape(len(cells), -1) ** 2).sum(axis=1) @ noisy.deviations[numbers] ** -2.0)
    return misfit


def marginals_of(mixture: Mixture, noisy: NoisyTables) -> Iterator[tuple[Alike, Vector]]:
    """Yield tables of one shape with the marginals of a mixture, whose variables are numbered in their order."""
    names, roots = mixture.variables, mixture.roots
    begins = dict(zip(roots.variables, np.cumsum([0, *roots.cardinalities.values()]), strict=False))
    shares, starts = pair_shares(roots), np.array([begins.get(variable, -1) for variable in names])
    for alike in noisy.alike:
        marginals = np.empty(alike.cells.shape)
        known = (starts[alike.variables] >= 0).all(axis=1) & (alike.variables.shape[1] in (1, 2))
        if known.any():
            marginals[known] = Alike(*(own[known] for own in alike)).gathered(shares, starts)
        for number in np.flatnonzero(~known):
            marginals[number] = mixture.marginal([names[variable] for variable in alike.variables[number]])
        yield alike, marginals


def _walk(risk: Callable[..., float], start: _Settings) -> _Settings:
    """Follow decreasing risk from penalty to penalty until the next one is worse, or tries run out."""
    second = replace(start, penalty=start.penalty * _FACTOR)
    best = start if risk(start, second) <= risk(second) else second
    factor = 1 / _FACTOR if best == start else _FACTOR
    for left in range(_TRIES - 3, -1, -1):
        following, next_but_one = (replace(best, penalty=best.penalty * factor**power) for power in (1, 2))
        if risk(following, *([next_but_one] if left else [])) >= risk(best):
            break
        best = following
    return best


def _vertex(risk: Callable[..., float], best: _Settings) -> float:
    """Return the minimum of the parabola through the risks of a penalty and its neighbours, in powers of _FACTOR."""
    near = [replace(best, penalty=best.penalty * _FACTOR**step) for step in (-1, 0, 1)]
    below, here, above = (risk(each, *near) for each in near)
    curvature = below - 2 * here + above
    return min(max((below - above) / (2 * curvature), -0.5), 0.5) if curvature > 0 else 0.0


def _mean_logs(found: Sequence[tuple[Matrix, Matrix]]) -> Vector:
    """Return logs of the members' mean tables: they are closer to the truth than the release's, so a better base."""
    mean = sum(tables @ weights for weights, tables in found) / len(found)
    logs: Vector = np.log(np.maximum(mean, _MIN_SHARE))
    return logs
