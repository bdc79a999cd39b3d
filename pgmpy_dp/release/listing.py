"""The list of arrays in a release file: one by one, or where there are very many, those of one kind together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from pgmpy_dp.release.archive import check_shape, entry
from pgmpy_dp.schema import Clique, Schema
from pgmpy_dp.schema.schema import places

MAX_LISTED = 2**12  # arrays that are stated one by one

Statement = Mapping[str, Any]  # what a file states about an array, or about several


def state_arrays(schema: Schema, arrays: Mapping[Clique, Statement]) -> list[dict[str, Any]]:
    """List arrays with their properties, of which "shape" is one.

    Very many arrays are stated by the positions of their variables in the schema, those with the same properties
    together. Where these do not follow each other, "numbers" are their positions among all arrays.
    """
    if len(arrays) <= MAX_LISTED:
        return [{"variables": list(clique), **properties} for clique, properties in arrays.items()]
    position = places(schema)
    groups: dict[str, dict[str, Any]] = {}
    for number, (clique, properties) in enumerate(arrays.items()):
        alike = groups.setdefault(repr(properties), {"positions": [], "numbers": [], **properties})
        alike["positions"] += [position[variable] for variable in clique]
        alike["numbers"].append(number)
    if list(chain.from_iterable(alike["numbers"] for alike in groups.values())) == list(range(len(arrays))):
        for alike in groups.values():
            del alike["numbers"]
    return list(groups.values())


def read_arrays(schema: Schema, entries: Sequence[Any]) -> list[tuple[Clique, Statement]]:
    """Invert `state_arrays`: pair the variables of each array with the statement about it, in order."""
    names = list(places(schema))
    arrays: list[tuple[Clique, Statement]] = []
    numbers: list[Any] = []
    for stated in entries:
        arrays += [(clique, stated) for clique in _stated_cliques(names, stated)]
        numbers += entry(stated, "numbers", list) if "numbers" in stated else []
    if not numbers:
        return arrays
    if any(type(number) is not int for number in numbers) or sorted(numbers) != list(range(len(arrays))):
        raise ValueError(f"the numbers of {len(arrays)} arrays must be all from 0 to {len(arrays) - 1}.")
    ordered = dict(zip(numbers, arrays, strict=True))
    return [ordered[number] for number in range(len(arrays))]


def check_arrays(
    arrays: Iterable[tuple[Clique, Statement]],
    shapes: Iterable[tuple[int, ...]],
    properties: set[str],
    optional: frozenset[str] = frozenset(),
) -> None:
    """Check that arrays have these shapes and properties; others must be optional."""
    checked = set()
    for (clique, stated), expected in zip(arrays, shapes, strict=True):
        if (id(stated), expected) not in checked:
            named = {"positions", *({"numbers"} & stated.keys())} if "positions" in stated else {"variables"}
            check_shape(stated, clique, expected, named | properties | (stated.keys() & optional))
            checked.add((id(stated), expected))


def _stated_cliques(names: Sequence[str], stated: Any) -> list[Clique]:
    """Read the variables of one array, or those of several arrays of one shape by their positions."""
    if type(stated) is not dict or "positions" not in stated:
        return [tuple(entry(stated, "variables", list))]
    positions, size = entry(stated, "positions", list), len(entry(stated, "shape", list))
    if not size and not positions:
        return [()]
    if not positions or not size or len(positions) % size:
        raise ValueError("the positions of tables must be one for each of their axes.")
    if not all(type(position) is int and 0 <= position < len(names) for position in positions):
        raise ValueError(f"the positions of variables must be whole numbers from 0 to {len(names) - 1}.")
    clique = [names[position] for position in positions]
    return [tuple(clique[start : start + size]) for start in range(0, len(clique), size)]
