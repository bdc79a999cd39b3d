"""Black-box audits of privacy claims: how well do outputs distinguish two neighbouring inputs?

Outputs are read as a structure and numbers: arrays, releases, fitted estimators, networks and plain values, or lists,
mappings and data classes of these.
"""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from pgmpy_dp._progress import progress
from pgmpy_dp.privacy.checks import checked_delta, exact_positive, whole_number

Numbers = NDArray[np.float64]

_STRUCTURES = 4  # number of most frequent structures whose numbers are searched
_COLUMNS = 64  # how many numbers, those that differ most, are searched individually
_THRESHOLDS = 200  # candidate thresholds per number
_BINS = 16  # bins of each histogram in the likelihood ratio
_HUGE = 1e100  # replaces infinity in sums
_KEPT = ("guarantee_", "release_", "mixture_", "total_")  # attributes of models that are read
_CATEGORY = "category"  # in a structure, a number that encodes a text or a similar value


@dataclass(frozen=True)
class AuditResult:
    """Result of an audit: whether a claim is refuted, and by which event.

    Attributes
    ----------
    epsilon_lower : float
        Lower bound on the true epsilon at the audited delta; it fails with probability at most ``1 - confidence``.
    epsilon, delta : float
        The claim.
    event : str
        The event that distinguishes the inputs, and its counts.
    confidence : float
        Confidence of `epsilon_lower`.
    trials : int
        Number of outputs drawn from each input.
    """

    epsilon_lower: float
    epsilon: float
    delta: float
    event: str
    confidence: float
    trials: int

    @property
    def refuted(self) -> bool:
        """Return whether the claim is refuted."""
        return self.epsilon_lower > self.epsilon

    def __str__(self) -> str:
        verdict = "REFUTED" if self.refuted else "not refuted"
        delta = f", delta = {self.delta:g}" if self.delta else ""
        return (
            f"epsilon = {self.epsilon:g}{delta} {verdict}: at least {self.epsilon_lower:.3f} with confidence "
            f"{self.confidence:g} ({self.event}; {self.trials} trials each)"
        )


def audit(
    fit_or_release: Callable[[Any], Any],
    neighbours: tuple[Any, Any],
    epsilon: float,
    delta: float = 0.0,
    trials: int = 2000,
    confidence: float = 0.999,
) -> AuditResult:
    """Search the outputs of a function for a violation of (epsilon, delta)-differential privacy.

    Parameters
    ----------
    fit_or_release : callable
        Maps an input to an output: a release, a fitted estimator or network, numbers, arrays, or lists, mappings and
        data classes of these. It must draw fresh randomness at every call. An exception counts as an output.
    neighbours : pair
        Two inputs that are neighbours under the claim. The larger their difference, the more an audit finds.
    epsilon, delta : float
        The claim.
    trials : int
        Number of calls for each input, at least 40.
    confidence : float
        Confidence of `epsilon_lower`, in (0, 1). A correct mechanism is refuted with at most the remaining probability.

    Raises
    ------
    ValueError
        If an argument is out of range.
    TypeError
        If the outputs contain objects of an unknown kind.
    Exception
        The first error of `fit_or_release`, if every call fails.

    Notes
    -----
    On the first half of the outputs, the audit chooses an event that is likely under one input and rare under the
    other: a structure (keys, states, lengths, an error); a threshold on, or a value of, a single number; the exponent
    of the lowest binary digit of a number (Mironov 2012); or a threshold on a score learned there, which is a linear
    discriminant or a sum of log likelihood ratios. The second half gives confidence bounds on the two probabilities of
    the event (Clopper and Pearson 1934), and ``log((lower bound under one - delta) / upper bound under the other)``
    bounds epsilon from below.

    The bound never exceeds about ``log(trials / 2 / log(2 / (1 - confidence)))``. An audit can refute a
    claim but never prove it: a claim that is not refuted may still be wrong for other inputs or rarer events.

    Examples
    --------
    >>> import numpy as np
    >>> generator = np.random.default_rng(0)
    >>> result = audit(lambda count: count + generator.laplace(scale=0.5), (10, 11), epsilon=1.0)
    >>> result.refuted, 1.5 < result.epsilon_lower < 2.0
    (True, True)
    """
    claim, delta = float(exact_positive("epsilon", epsilon)), checked_delta(delta, zero_allowed=True)
    trials = whole_number("trials", trials, 40)
    if isinstance(confidence, bool) or not isinstance(confidence, float) or not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}.")
    level = (1.0 - confidence) / 2.0  # error probability of each of the two one-sided bounds
    draws = _Draws.take(fit_or_release, neighbours, trials)
    chosen, half = slice(0, trials // 2), trials // 2
    best = max(_events(draws, chosen, level, delta), key=lambda event: event.bound)
    first, second = (draws.hits(best, side, slice(half, trials)) for side in (best.side, 1 - best.side))
    tested = trials - half
    bound = float(_lower_bound(np.array([first]), np.array([second]), tested, level, delta)[0])
    likelier = ("first", "second")[best.side]
    words = f"{best.words}: {first} times under the {likelier} input, {second} under the other, of {tested}"
    return AuditResult(max(bound, 0.0), claim, delta, words, confidence, trials)


@dataclass(frozen=True)
class _Event:
    """The event that an output has one structure and a score in a range."""

    words: str
    side: int  # index of the input under which the event is likelier
    bound: float  # lower bound on epsilon on the first half, by which the event was chosen
    structure: tuple[Any, ...]
    score: Callable[[Numbers], Numbers] | None = None
    low: float = -math.inf
    high: float = math.inf


@dataclass(frozen=True)
class _Draws:
    """Structures and numbers of all outputs under both inputs, and one output of each structure."""

    observer: Observer
    structures: tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]
    numbers: tuple[list[Numbers], list[Numbers]]
    examples: dict[tuple[Any, ...], Any]

    @classmethod
    def take(cls, function: Callable[[Any], Any], neighbours: tuple[Any, Any], trials: int) -> _Draws:
        if not isinstance(neighbours, (tuple, list)) or len(neighbours) != 2:
            raise ValueError("neighbours must be a pair of inputs.")
        draws = cls(Observer(), ([], []), ([], []), {})
        failures = []
        for _ in progress("Auditing", "trial", of=range(trials)):
            for side, given in enumerate(neighbours):
                try:
                    output = function(given)
                except Exception as error:
                    failures.append(error)
                    output = error.with_traceback(None)
                structure, numbers = draws.observer.read(output)
                draws.structures[side].append(structure)
                draws.numbers[side].append(numbers)
                draws.examples.setdefault(structure, output)
            if len(failures) == 2 * trials:
                raise failures[0]
        return draws

    def matrix(self, structure: tuple[Any, ...], side: int, part: slice) -> Numbers:
        """Return the numbers of the outputs of one structure, one row each."""
        pairs = zip(self.structures[side][part], self.numbers[side][part], strict=True)
        rows = [numbers for result, numbers in pairs if result == structure]
        return np.array(rows) if rows else np.empty((0, self.observer.read(self.examples[structure])[1].size))

    def hits(self, event: _Event, side: int, part: slice) -> int:
        matrix = self.matrix(event.structure, side, part)
        if event.score is None or not len(matrix):
            return len(matrix)
        values = event.score(matrix)
        return int(((values >= event.low) & (values <= event.high)).sum())


def _lower_bound(
    hits: NDArray[np.int64], others: NDArray[np.int64], trials: int, level: float, delta: float
) -> Numbers:
    """Bound epsilon from below by two Clopper-Pearson bounds, each of which fails with probability at most `level`."""
    low = np.where(hits > 0, stats.beta.ppf(level, np.maximum(hits, 1), trials - hits + 1), 0.0)
    high = np.where(others < trials, stats.beta.ppf(1.0 - level, others + 1, np.maximum(trials - others, 1)), 1.0)
    with np.errstate(divide="ignore"):
        bound: Numbers = np.log(np.maximum(low - delta, 0.0)) - np.log(high)
    return bound


def _events(draws: _Draws, chosen: slice, level: float, delta: float) -> Iterator[_Event]:
    """Find the best event of each kind on the first half of the outputs."""
    seen = Counter(structure for side in (0, 1) for structure in draws.structures[side][chosen])
    common = [structure for structure, _ in seen.most_common(_STRUCTURES)]
    for structure in common:
        choice = _Choice(structure, chosen.stop, level, delta)
        both = [draws.structures[side][chosen].count(structure) for side in (0, 1)]

        def words(_: int, structure: tuple[Any, ...] = structure) -> str:
            return _structure_words(draws, structure, common)

        yield choice.best(both, words)
        yield from _number_events(draws, choice)


def _number_events(draws: _Draws, choice: _Choice) -> Iterator[_Event]:
    structure, size = choice.structure, choice.size
    learning = [draws.matrix(structure, side, slice(0, size // 2)) for side in (0, 1)]
    choosing = [draws.matrix(structure, side, slice(size // 2, size)) for side in (0, 1)]
    whole = [np.concatenate(parts) for parts in zip(learning, choosing, strict=True)]
    pooled = np.concatenate(whole)
    varying = np.flatnonzero((pooled != pooled[0]).any(axis=0)) if pooled.size else np.empty(0, np.int64)
    if not varying.size:
        return
    columns = varying[np.argsort([-_separation(whole[0][:, c], whole[1][:, c]) for c in varying])][:_COLUMNS]
    _, positions = draws.observer.places(draws.examples[structure])
    category: list[bool] = []  # which numbers encode texts or similar values
    for entry in structure:
        if entry == _CATEGORY:
            category.append(True)
        elif isinstance(entry, tuple) and entry[:1] == ("numbers",):
            category += [False] * math.prod(entry[1])
    for column in columns:
        position = positions[column]

        def value(matrix: Numbers, column: int = column) -> Numbers:
            return matrix[:, column]

        def named(number: float, column: int = column) -> str:
            return (draws.observer.category(number) if category[column] else None) or f"{number:.6g}"

        yield from choice.ranges(position, value, whole, named, ordered=not category[column])
        numbers = pooled[np.isfinite(pooled[:, column]), column]
        if (numbers % 1.0 != 0.0).any():

            def finest(matrix: Numbers, column: int = column) -> Numbers:
                """Find the lowest non-zero binary digit; adding a larger number removes finer digits."""
                finite = np.where(np.isfinite(matrix[:, column]), matrix[:, column], 0.0)
                mantissa, exponent = np.frexp(finite)
                integers = np.abs(mantissa * 2.0**53).astype(np.int64)
                lowest = np.log2(np.maximum(integers & -integers, 1))
                return np.where(finite == 0.0, 1100.0, exponent - 53 + lowest)

            name = f"exponent of the lowest binary digit of {position}"
            yield from choice.ranges(name, finest, whole)
    if min(map(len, learning)) >= 10 and min(map(len, choosing)) > 0:
        for name, score in (
            (f"linear discriminant of {len(columns)} numbers", _discriminant(learning, columns)),
            (f"likelihood ratio of {len(columns)} numbers", _likelihood_ratio(learning, columns)),
        ):
            yield from replace(choice, size=size - size // 2).ranges(name, score, choosing)


@dataclass(frozen=True)
class _Choice:
    """Choice of events of one structure from a number of outputs for each input."""

    structure: tuple[Any, ...]
    size: int
    level: float
    delta: float

    def ranges(
        self,
        name: str,
        score: Callable[[Numbers], Numbers],
        samples: Sequence[Numbers],
        named: Callable[[float], str] = lambda number: f"{number:.6g}",
        ordered: bool = True,
    ) -> Iterator[_Event]:
        """Find the best thresholds and the best single value of a score."""
        values = [np.sort(score(matrix)) for matrix in samples]
        distinct, counts = np.unique(np.concatenate(values), return_counts=True)
        cuts = distinct
        if distinct.size > _THRESHOLDS:
            cuts = distinct[np.unique(np.linspace(0, distinct.size - 1, _THRESHOLDS).astype(np.int64))]
        atoms = distinct[np.argsort(-counts, kind="stable")[:_THRESHOLDS]]
        atoms = atoms[np.isin(atoms, distinct[counts > 1])]
        if ordered:
            above = [part.size - np.searchsorted(part, cuts, "left") for part in values]
            below = [np.searchsorted(part, cuts, "right") for part in values]
            yield self.best(above, lambda i: f"{name} >= {named(cuts[i])}", score, low=cuts)
            yield self.best(below, lambda i: f"{name} <= {named(cuts[i])}", score, high=cuts)
        if atoms.size:
            equal = [np.searchsorted(part, atoms, "right") - np.searchsorted(part, atoms, "left") for part in values]
            yield self.best(equal, lambda i: f"{name} = {named(atoms[i])}", score, atoms, atoms)

    def best(
        self,
        hits: Sequence[Any],
        words: Callable[[int], str],
        score: Callable[[Numbers], Numbers] | None = None,
        low: Any = None,
        high: Any = None,
    ) -> _Event:
        """Choose the candidate with the largest bound, given its counts under both inputs."""
        pairs, position = np.unique(np.atleast_2d(np.array(hits).T), axis=0, return_inverse=True)
        chances = self.size, self.level, self.delta
        bounds = [_lower_bound(pairs[:, k], pairs[:, 1 - k], *chances)[position.ravel()] for k in (0, 1)]
        side = int(np.argmax([bound.max() for bound in bounds]))
        best = int(np.argmax(bounds[side]))
        ends = -math.inf if low is None else float(low[best]), math.inf if high is None else float(high[best])
        return _Event(words(best), side, float(bounds[side][best]), self.structure, score, *ends)


def _separation(one: Numbers, other: Numbers) -> float:
    """Compute the largest difference between the two empirical distribution functions."""
    points = np.concatenate([one, other])
    shares = [np.searchsorted(np.sort(part), points, "right") / max(part.size, 1) for part in (one, other)]
    return float(np.abs(shares[0] - shares[1]).max())


def _discriminant(samples: Sequence[Numbers], columns: NDArray[np.int64]) -> Callable[[Numbers], Numbers]:
    """Return Fisher's linear discriminant, which detects sums and differences with little or no noise."""
    parts = [np.clip(matrix[:, columns], -_HUGE, _HUGE) for matrix in samples]
    centre, spread = np.concatenate(parts).mean(axis=0), np.concatenate(parts).std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    parts = [(part - centre) / spread for part in parts]
    within = np.concatenate([part - part.mean(axis=0) for part in parts])
    covariance = within.T @ within / len(within) + 1e-9 * np.eye(columns.size)
    weights = np.linalg.solve(covariance, parts[0].mean(axis=0) - parts[1].mean(axis=0))

    def score(matrix: Numbers) -> Numbers:
        return (np.clip(matrix[:, columns], -_HUGE, _HUGE) - centre) / spread @ weights

    return score


def _likelihood_ratio(samples: Sequence[Numbers], columns: NDArray[np.int64]) -> Callable[[Numbers], Numbers]:
    """Return the sum of the numbers' log likelihood ratios from histograms, as if the numbers were independent."""
    terms: list[tuple[int, Numbers, Numbers]] = []
    for column in columns:
        parts = [matrix[:, column] for matrix in samples]
        pooled = np.unique(np.concatenate(parts))
        if pooled.size > 2 * _BINS:
            pooled = np.unique(np.quantile(np.concatenate(parts), np.linspace(0, 1, _BINS + 1)[1:]))
        counts = [np.bincount(np.searchsorted(pooled, part), minlength=pooled.size + 1) for part in parts]
        expected = [(count + 1.0) / (count.sum() + count.size) for count in counts]
        difference = counts[0] - counts[1] * (parts[0].size / parts[1].size)
        statistic = float((difference**2 / np.maximum(counts[0] + counts[1], 1)).sum())
        # Chi-squared if the distributions are equal: leave out numbers that would only add noise.
        if statistic > pooled.size + 3.0 * math.sqrt(2.0 * pooled.size) or not terms:
            terms.append((int(column), pooled, np.log(expected[0]) - np.log(expected[1])))

    def score(matrix: Numbers) -> Numbers:
        results = [logs[np.searchsorted(edges, matrix[:, column])] for column, edges, logs in terms]
        return np.asarray(np.sum(results, axis=0))

    return score


def _structure_words(draws: _Draws, structure: tuple[Any, ...], common: Sequence[tuple[Any, ...]]) -> str:
    """Describe where a structure differs from another."""
    others = [other for other in common if other != structure]
    if not others:
        return "any output of the common structure"
    positions, _ = draws.observer.places(draws.examples[structure])
    other = others[0]
    first = next((i for i, (own, its) in enumerate(zip(structure, other, strict=False)) if own != its), None)
    if first is None:
        return f"structure of {len(structure)} parts"
    entry = structure[first]
    difference = " ".join(map(str, entry)) if isinstance(entry, tuple) else str(entry)
    return f"structure: {positions[first] or 'output'} has {difference}"


@dataclass
class Observer:
    """Reader of outputs, which encodes each text, None or similar value by the same number in every output."""

    categories: dict[tuple[type, Any], int] = field(default_factory=dict)

    def read(self, output: Any) -> tuple[tuple[Any, ...], NDArray[np.float64]]:
        """Return the structure of an output (keys, lengths, types) and its numbers, in a fixed order."""
        result = _Found(self.categories)
        result.walk(output, "")
        return tuple(result.structure), np.array(result.numbers, dtype=np.float64)

    def places(self, output: Any) -> tuple[list[str], list[str]]:
        """Return the places of the entries of an output's structure, and of its numbers."""
        result = _Found(self.categories, named=True)
        result.walk(output, "")
        return result.structure_places, result.number_places

    def category(self, number: float) -> str | None:
        """Return the text or other value that a number encodes."""
        return next((repr(value) for (_, value), code in self.categories.items() if code == number), None)


@dataclass
class _Found:
    categories: dict[tuple[type, Any], int]
    named: bool = False
    structure: list[Any] = field(default_factory=list)
    numbers: list[float] = field(default_factory=list)
    structure_places: list[str] = field(default_factory=list)
    number_places: list[str] = field(default_factory=list)

    def walk(self, value: Any, place: str) -> None:
        if value is None or isinstance(value, (str, bytes)):
            self._add_structure(_CATEGORY, place)
            self.numbers.append(self.categories.setdefault((type(value), value), len(self.categories)))
            self.number_places.append(place)
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            self._add_numbers(value, place)
        elif isinstance(value, (bool, int, float, Fraction, np.generic)):
            self._add_numbers(np.asarray(_as_float(value)), place)
        elif isinstance(value, Mapping):
            self._add_structure(("keys", tuple(value)), place)
            for key, item in value.items():
                self.walk(item, f"{place}[{key!r}]" if self.named else "")
        elif isinstance(value, AbstractSet):
            self._add_structure(("set", tuple(sorted(map(repr, value)))), place)
        elif isinstance(value, BaseException):
            self._add_structure(("raised", type(value).__name__), place)
            self.walk(str(value), f"{place} message")
        elif (parts := _parts(value)) is not None:
            self._add_structure(type(value).__name__, place)
            for name, item in parts:
                self.walk(item, f"{place}.{name}".lstrip(".") if self.named else "")
        elif isinstance(value, Iterable):
            items = list(value)
            self._add_structure(("length", len(items)), place)
            for index, item in enumerate(items):
                self.walk(item, f"{place}[{index}]" if self.named else "")
        else:
            raise TypeError(
                f"An audit cannot read a {type(value).__name__}: let the audited function return numbers, arrays, a "
                "release, a fitted estimator or network, or lists and mappings of these."
            )

    def _add_structure(self, entry: Any, place: str) -> None:
        self.structure.append(entry)
        self.structure_places.append(place)

    def _add_numbers(self, array: NDArray[Any], place: str) -> None:
        values = array.astype(np.float64).ravel()
        absent = np.isnan(values)
        if absent.any():  # events use the places of NaN, not its value
            self._add_structure(("not a number", tuple(np.flatnonzero(absent).tolist())), place)
            values = np.where(absent, 0.0, values)
        self._add_structure(("numbers", array.shape), place)
        self.numbers.extend(values.tolist())
        if self.named:
            spots = [", ".join(map(str, index)) for index in np.ndindex(array.shape)]
            self.number_places.extend(f"{place}[{spot}]" if spot else place or "output" for spot in spots)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # the integer or fraction exceeds the largest float
        return math.inf if value > 0 else -math.inf


def _parts(value: Any) -> Iterable[tuple[str, Any]] | None:
    """Return the results that an object holds, by name; None if it holds none."""
    if isinstance(value, type):
        return None
    if hasattr(value, "get_params"):  # estimators: data classes of parameters, with results in addition
        return [(name, part) for name, part in vars(value).items() if name[0] != "_"]
    if dataclasses.is_dataclass(value):
        return [(part.name, getattr(value, part.name)) for part in dataclasses.fields(value)]
    if hasattr(value, "to_factor") or (hasattr(value, "variables") and hasattr(value, "get_value")):  # CPDs, factors
        return [(name, getattr(value, name)) for name in ("variables", "state_names", "values")]
    if hasattr(value, "beta") and hasattr(value, "evidence"):  # linear Gaussian CPDs
        return [(name, getattr(value, name)) for name in ("variable", "evidence", "beta", "std")]
    if hasattr(value, "columns") and hasattr(value, "to_numpy"):  # data frames
        return [("columns", list(value.columns)), ("rows", value.to_numpy())]
    results = list(_results(value))
    read = getattr(value, "get_cpds", None) or getattr(value, "get_factors", None)
    if read is not None:
        return [("nodes", list(value.nodes())), ("edges", list(value.edges())), ("factors", read()), *results]
    return results or None


def _results(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the results that a model stores of its fit; raise if it has neither a guarantee nor a release."""
    attributes = [name for name in getattr(value, "__dict__", {}) if name.endswith("_") and name[0] != "_"]
    for name in dict.fromkeys([*attributes, *_KEPT]):
        with suppress(AttributeError, ValueError):
            yield name, getattr(value, name)
