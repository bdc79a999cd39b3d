"""Rules in a mixture: each component is confined to a box of states in which nothing is forbidden.

A forbidden combination consists of a state of each of several blocks of variables. If a component's tables exclude one
of these states, it never has the combination, and its blocks stay independent. So every component gets, for each block,
the cells that it may use: a box around a record that obeys the rules, as large as possible.

Boxes cover every two states that rules allow together, but not every three. If no box has some evidence, the release
contains no information about the other variables given it: they are then assumed independent, apart from the rules and
the evidence.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp

from pgmpy_dp.inference.distribution import ImpossibleEvidenceError
from pgmpy_dp.inference.mixtures.children import Whole
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.table import Scope, Variable, Vector

Cells = NDArray[np.bool_]  # axes: component, cells of a block

# Orders in which components go through the blocks; retries of dead ends; boxes drawn at once to cover the possible
# pairs, and most boxes drawn.
_ORDERS, _TRIES, _AT_ONCE, _MAX = 8, 50, 32, 400
_FEW_TRIES = 20  # to find a record that satisfies the evidence and all rules


@dataclass(frozen=True)
class Rules:
    """Rules about variables with numbered states."""

    dependent: Mapping[Variable, tuple[Variable, Whole]] = field(default_factory=dict)  # a root, states for its
    zeros: Sequence[tuple[Scope, NDArray[np.bool_]]] = ()  # which combinations of states may occur
    refined: Mapping[Variable, tuple[Variable, Whole]] = field(default_factory=dict)  # coarser variable, its states

    def root(self, variable: Variable) -> Variable:
        """Return the variable from which a variable follows, or itself."""
        return self.dependent[variable][0] if variable in self.dependent else variable

    def consistent(
        self, variables: Sequence[Variable], counts: ArrayLike, deviation: float
    ) -> tuple[Scope, Vector, float]:
        """Reduce a noisy table so that no two of its variables have the same root.

        Beside its root, a dependent variable has one state for each of the root's: other cells are dropped. Of several
        dependent variables without their root one is kept, and the others are summed out.
        """
        names, table = list(variables), np.asarray(counts, dtype=np.float64)
        for variable in [name for name in variables if name in self.dependent]:
            root, states = self.dependent[variable]
            axis = names.index(variable)
            if root in names:
                moved = np.moveaxis(table, (names.index(root), axis), (0, 1))
                names.remove(variable)
                table = np.moveaxis(moved[np.arange(len(states)), states], 0, names.index(root))
            elif [self.root(name) for name in names].count(root) > 1:
                deviation *= table.shape[axis] ** 0.5
                table = table.sum(axis=axis)
                names.remove(variable)
        return tuple(names), table, deviation


class _Groups:
    """Groups of a block's cells that a rule does not distinguish."""

    def __init__(self, groups: Whole, count: int) -> None:
        self.of_cells, self.count = groups, count
        self._order = np.argsort(groups, kind="stable")
        self._starts = np.flatnonzero(np.diff(groups[self._order], prepend=-1))
        self._occupied = groups[self._order][self._starts]

    def present(self, cells: Cells) -> NDArray[np.float32]:
        """Return which groups contain one of the cells."""
        result = np.zeros((len(cells), self.count), dtype=np.float32)
        result[:, self._occupied] = np.logical_or.reduceat(cells[:, self._order], self._starts, axis=1)
        return result


@dataclass(frozen=True)
class _Link:
    """A rule between blocks: which combinations of groups of cells are forbidden, with one axis per block."""

    forbidden: NDArray[np.float32]
    groups: Mapping[int, _Groups]

    def hits(self, number: int, boxes: Mapping[int, Cells]) -> Cells:
        """Mark the cells of a block that form a forbidden combination with some of the other blocks' cells."""
        letters = dict(zip(self.groups, string.ascii_lowercase, strict=False))
        present = {other: own.present(boxes[other]) for other, own in self.groups.items() if other != number}
        if len(present) == 1:
            (others,) = present.values()
            forbidden = self.forbidden if number == list(self.groups)[1] else self.forbidden.T
            hits = others @ forbidden
        else:
            product = ",".join(["".join(letters.values()), *("z" + letters[other] for other in present)])
            hits = np.einsum(f"{product}->z{letters[number]}", self.forbidden, *present.values(), optimize=True)
        return (hits > 0)[:, self.groups[number].of_cells]


class Boxes:
    """Boxes of cells of blocks, within which every rule holds."""

    def __init__(
        self,
        rules: Rules,
        blocks: Sequence[Scope],
        cells: Sequence[Whole],
        cardinalities: Mapping[Variable, int],
    ) -> None:
        self.possible = [np.ones(len(own), dtype=bool) for own in cells]
        self._links: list[_Link] = []
        position = {
            variable: (number, axis) for number, block in enumerate(blocks) for axis, variable in enumerate(block)
        }
        for scope, allowed in rules.zeros:
            axes: dict[int, list[int]] = {}
            states: dict[int, list[Whole]] = {}
            for axis, variable in enumerate(scope):
                root, codes = rules.dependent.get(variable, (variable, np.arange(cardinalities[variable])))
                number, column = position[root]
                axes.setdefault(number, []).append(axis)
                states.setdefault(number, []).append(codes[cells[number][:, column]])
            shapes = {number: [allowed.shape[axis] for axis in own] for number, own in axes.items()}
            sizes = [math.prod(shape) for shape in shapes.values()]
            groups = {
                number: _Groups(np.ravel_multi_index(tuple(states[number]), tuple(shapes[number])), size)
                for number, size in zip(axes, sizes, strict=True)
            }
            forbidden = ~allowed.transpose([axis for own in axes.values() for axis in own]).reshape(sizes)
            if len(axes) == 1:
                (number,) = axes
                self.possible[number] &= ~forbidden[groups[number].of_cells]
            elif forbidden.any():
                self._links.append(_Link(forbidden.astype(np.float32), groups))
        self.tied = sorted({number for link in self._links for number in link.groups})

    def draw(
        self,
        shares: Sequence[Vector],
        count: int,
        generator: np.random.Generator,
        given: Mapping[int, Whole] | None = None,
        tries: int = _TRIES,
    ) -> list[Cells]:
        """Draw boxes of cells by block around records; those for which no record was found are left out."""
        results = [np.tile(possible, (count, 1)) for possible in self.possible]
        kept = np.ones(count, dtype=bool)
        for part in range(min(_ORDERS, count)):
            rows = np.arange(part, count, min(_ORDERS, count))
            fixed = {number: cells[rows] for number, cells in (given or {}).items()}
            seeds, sound = self._seeds(shares, rows.size, generator, fixed, tries)
            boxes = dict(seeds)
            for number in generator.permutation(self.tied):
                boxes[number] = self._compatible(number, boxes, rows.size)
                results[number][rows] = boxes[number]
            kept[rows] = sound
        return [own[kept] for own in results]

    def cover(self, generator: np.random.Generator) -> list[Cells]:
        """Draw boxes until each pair of cells of two blocks lies in one of them, or is assumed impossible."""
        even = [possible.astype(np.float64) for possible in self.possible]
        result = self.draw(even, _AT_ONCE if self.tied else 1, generator)
        for one, other in itertools.combinations(self.tied, 2):
            together = result[one].T.astype(np.float32) @ result[other].astype(np.float32)
            alone = {one: np.eye(self.possible[one].size, dtype=bool)}
            possible = self._compatible(other, alone, self.possible[one].size) & self.possible[one][:, None]
            missing = np.argwhere((together == 0) & possible)
            while len(missing) and len(result[0]) < _MAX:
                tried, missing = missing[:_AT_ONCE], missing[_AT_ONCE:]
                more = self.draw(even, len(tried), generator, {one: tried[:, 0], other: tried[:, 1]}, 5)
                if len(more[0]) and len(missing):
                    covered = np.zeros((self.possible[one].size, self.possible[other].size), dtype=bool)
                    for first, second in zip(more[one], more[other], strict=True):
                        covered |= np.logical_and.outer(first, second)
                    missing = missing[~covered[missing[:, 0], missing[:, 1]]]
                result = [np.concatenate(pair) for pair in zip(result, more, strict=True)]
        return result

    def _seeds(
        self,
        shares: Sequence[Vector],
        count: int,
        generator: np.random.Generator,
        given: Mapping[int, Whole],
        tries: int,
    ) -> tuple[dict[int, Cells], Cells]:
        """Draw a cell of every tied block so that no rule is violated; return for which rows that was possible."""
        seeds = {number: np.zeros((count, self.possible[number].size), dtype=bool) for number in self.tied}
        open_rows = np.arange(count)
        for _ in range(tries):
            drawn: dict[int, Cells] = {}
            alive = np.ones(open_rows.size, dtype=bool)
            free = [number for number in generator.permutation(self.tied) if number not in given]
            for number in [*given, *free]:
                weights = self._compatible(number, drawn, open_rows.size) * shares[number]
                if number in given:
                    weights *= np.arange(weights.shape[1]) == given[number][open_rows, None]
                sums = np.cumsum(weights, axis=1)
                alive &= sums[:, -1] > 0
                spots = (sums <= (generator.random(open_rows.size) * sums[:, -1])[:, None]).sum(axis=1)
                drawn[number] = np.arange(weights.shape[1]) == np.minimum(spots, weights.shape[1] - 1)[:, None]
            for number, cells in drawn.items():
                seeds[number][open_rows[alive]] = cells[alive]
            open_rows = open_rows[~alive]
            if not open_rows.size:
                break
        sound = np.ones(count, dtype=bool)
        sound[open_rows] = False
        return seeds, sound

    def _compatible(self, number: int, boxes: Mapping[int, Cells], count: int) -> Cells:
        """Return which cells of a block violate no rule with any cells of the other given blocks."""
        result = np.tile(self.possible[number], (count, 1))
        for link in self._links:
            if number in link.groups and all(other in boxes or other == number for other in link.groups):
                result &= ~link.hits(number, boxes)
        return result


def conditioned(mixture: Mixture, rules: Rules, evidence: Mapping[Variable, int]) -> Mixture:
    """Return the mixture given evidence, over the same variables.

    Raises ImpossibleEvidenceError if the rules exclude the evidence.
    """
    if not evidence:
        return mixture
    if not rules.zeros or np.isfinite(mixture.log_evidence(evidence)):
        return mixture.given(evidence)
    result = _independent(mixture, rules, evidence)
    if result is None:
        raise ImpossibleEvidenceError(f"evidence on {', '.join(map(repr, evidence))} has probability zero")
    return result.given(evidence)


def _independent(mixture: Mixture, rules: Rules, evidence: Mapping[Variable, int]) -> Mixture | None:
    """Return components of independent variables that obey the rules and the evidence; None if there are none."""
    coarse = mixture.only([variable for variable in mixture.variables if variable not in rules.refined])
    zeros = list(rules.zeros)
    for variable, state in evidence.items():
        if variable in rules.refined:
            variable, groups = rules.refined[variable]
            state = int(groups[state])
        zeros.append(((variable,), np.arange(coarse.cardinalities[variable]) == state))
    roots = coarse.roots
    blocks = [(variable,) for variable in roots.cardinalities]
    cells = [np.arange(states)[:, None] for states in roots.cardinalities.values()]
    boxes = Boxes(Rules(rules.dependent, zeros), blocks, cells, coarse.cardinalities)
    # A state without mass in the mixture gets the smallest positive mass.
    shares = [np.maximum(share, share[share > 0].min()) for share in map(roots.marginal, blocks)]
    generator = np.random.default_rng(0)
    if not all(own.any() for own in boxes.possible) or not len(boxes.draw(shares, 1, generator, tries=_FEW_TRIES)[0]):
        return None
    tables = [share * box for share, box in zip(shares, boxes.cover(generator), strict=True)]
    masses = np.stack([table.sum(axis=1) for table in tables])
    logs = np.log(masses).sum(axis=0)
    scaled = [table / mass[:, None] for table, mass in zip(tables, masses, strict=True)]
    weights = np.exp(logs - logsumexp(logs))
    return Mixture.of(mixture.cardinalities, blocks, weights, scaled, mixture.children)
