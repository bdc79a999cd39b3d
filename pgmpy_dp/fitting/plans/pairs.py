"""All pairs of variables, planned as one measurement."""

from __future__ import annotations

import itertools

from pgmpy_dp.schema import Clique, HouseholdSchema, Schema

# The variables' own tables get this share of the privacy loss together; each pair adds to what is known of them.
_SINGLES = 0.03
# Wider pairs get more, in proportion to this power of their cells; those with the target more again.
_POWER, _TARGET = 0.25, 5.0
# The target's triples get this share together, in proportion to this power of their cells, where the two others have no
# more cells than this.
_TRIPLES, _POWER_OF_TRIPLES, _FEW = 0.45, 0.5, 200

# Advice where a release lacks pairs, in Python and for the command line.
PLAN_PAIRS = "measure the tables of plan_pairs(schema)", "measure the tables that pgmpy-dp plan --pairs writes"


def plan_pairs(schema: Schema, target: str | None = None) -> tuple[tuple[Clique, ...], list[float]]:
    """Plan to measure each variable and every pair of variables, for a model that needs no network.

    Variables that follow from one variable by a `Dependency` of the schema are not paired with it nor with each other.
    The finer variable of a `Hierarchy` is in no pair, and its own table gets as much as a pair of so many cells.

    Parameters
    ----------
    schema : Schema
    target : str, optional
        A variable to be predicted from the others: pairs with it get five times the share.

    Returns
    -------
    cliques : tuple of tuples of str
    weights : list of float
        Each table's share; of the privacy loss by Gaussian noise (rho), they were chosen for.

    Raises
    ------
    SchemaError
        If the target is no variable of the schema.

    Examples
    --------
    >>> cliques, weights = plan_pairs(Schema({"age": ["young", "old"], "smoke": ["yes", "no"], "lung": ["yes", "no"]}))
    >>> cliques[3:]
    (('age', 'smoke'), ('age', 'lung'), ('smoke', 'lung'))
    >>> [round(weight, 3) for weight in weights]
    [0.01, 0.01, 0.01, 0.323, 0.323, 0.323]
    """
    if target is not None:
        schema.require([(target,)])
    dependent = schema.structure.dependent
    variables = list(schema.variables)
    root = {variable: dependent[variable][0] if variable in dependent else variable for variable in variables}
    refined = schema.structure.refined
    plain = [variable for variable in variables if variable not in refined]
    pairs = [pair for pair in itertools.combinations(plain, 2) if root[pair[0]] != root[pair[1]]]
    cliques = [*((variable,) for variable in refined), *pairs]
    sizes = [schema.cells(clique) ** _POWER * (_TARGET if target in clique else 1.0) for clique in cliques]
    singles = _SINGLES if cliques else 1.0
    weights = [singles / len(plain)] * len(plain) + _parts(1.0 - singles, sizes)
    return (*((variable,) for variable in plain), *cliques), weights


def plan_prediction(schema: Schema, target: str) -> tuple[tuple[Clique, ...], list[float]]:
    """Plan to measure all pairs, and the target's triples with two other variables that have few states together.

    What two variables tell of the target together, pairs do not say. Which triples there are hangs on the schema alone.

    Parameters
    ----------
    schema : Schema
    target : str
        A variable to be predicted from the others.

    Returns
    -------
    cliques : tuple of tuples of str
        Those of :func:`plan_pairs`, and then the triples.
    weights : list of float
        Each table's share.

    Examples
    --------
    >>> cliques, weights = plan_prediction(Schema({"age": ["young", "old"], "smoke": [0, 1], "lung": [0, 1]}), "lung")
    >>> cliques[-1], round(weights[-1], 3)
    (('age', 'smoke', 'lung'), 0.45)
    """
    cliques, weights = plan_pairs(schema, target)
    pairs = set(map(frozenset, cliques))
    triples = [
        (*pair, target)
        for pair in cliques
        if len(pair) == 2
        and schema.cells(pair) <= _FEW
        and target not in pair
        and all(frozenset((variable, target)) in pairs for variable in pair)
    ]
    if not triples:
        return cliques, weights
    sizes = [schema.cells(triple) ** _POWER_OF_TRIPLES for triple in triples]
    weights = [(1.0 - _TRIPLES) * weight for weight in weights]
    return (*cliques, *triples), weights + _parts(_TRIPLES, sizes)


def _parts(whole: float, sizes: list[float]) -> list[float]:
    """Part a whole in proportion to sizes."""
    total = sum(sizes)
    return [whole * size / total for size in sizes]


def plan_households(schema: HouseholdSchema) -> tuple[tuple[Clique, ...], list[float]]:
    """Plan to measure households and persons: pairs within a level and across, and pairs of two persons.

    Parameters
    ----------
    schema : HouseholdSchema

    Returns
    -------
    cliques : tuple of tuples of str
        Over the variables of ``schema.measured``: as :func:`plan_pairs` has them for a household, its size and a
        person, and then those of ``schema.together``.
    weights : list of float
        Each table's share.

    Examples
    --------
    >>> home, person = Schema({"tenure": ["owned", "rented"]}), Schema({"age": ["child", "adult"]})
    >>> cliques, weights = plan_households(HouseholdSchema(home, person, key="id", max_persons=3))
    >>> cliques[3:]
    (('tenure', 'size'), ('tenure', 'age'), ('size', 'age'), ('age', 'another age'))
    """
    cliques, weights = plan_pairs(schema.joined)
    # There is a pair, since the size is paired; others get as much for their cells.
    pair, weight = next(both for both in zip(cliques, weights, strict=True) if len(both[0]) == 2)
    each = weight / schema.joined.cells(pair) ** _POWER
    together = schema.together
    weights = [*weights, *(each * schema.measured.cells(pair) ** _POWER for pair in together)]
    return (*cliques, *together), _parts(1.0, weights)
