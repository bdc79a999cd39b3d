"""Errors of answers against enumeration."""

import numpy as np
import pytest
from pgmpy.factors.discrete import TabularCPD
from pgmpy.models import DiscreteBayesianNetwork

from pgmpy_dp.errors import SchemaError
from pgmpy_dp.evaluation import kl_divergence
from pgmpy_dp.papers import conditional_errors, inference_error_bounds, map_agreement, marginal_errors, parameter_errors


def network(seed, parents):
    """A network a -> c <- b with its CPD's parents in either order, and its joint table over a, b, c."""
    generator = np.random.default_rng(seed)
    a, b, c = generator.dirichlet([1, 1]), generator.dirichlet([1] * 3), generator.dirichlet([1, 1], (2, 3))
    model = DiscreteBayesianNetwork([("a", "c"), ("b", "c")])
    rows = c.transpose(2, 0, 1) if parents == ["a", "b"] else c.transpose(2, 1, 0)
    model.add_cpds(
        TabularCPD("a", 2, a[:, None]),
        TabularCPD("b", 3, b[:, None]),
        TabularCPD("c", 2, rows.reshape(2, 6), parents, [2, 3] if parents == ["a", "b"] else [3, 2]),
    )
    return model, a[:, None, None] * b[None, :, None] * c, [a, b, *c.reshape(6, 2)]


def test_measures_are_those_of_the_joint_tables():
    (one, p, rows), (other, q, own) = network(0, ["a", "b"]), network(1, ["b", "a"])
    found = parameter_errors(one, other)
    distances = [np.abs(x - y).sum() for x, y in zip(rows, own, strict=True)]
    assert sorted(found.distances) == pytest.approx(sorted(distances))
    assert found.divergence == pytest.approx(
        np.mean([(x * np.log(x / y)).sum() for x, y in zip(rows, own, strict=True)])
    )

    assert marginal_errors(one, other, [["c", "a"]]).l1 == pytest.approx(np.abs(p.sum(1) - q.sum(1)).sum())
    given = [table[1, :, 0] / table[1, :, 0].sum() for table in (p, q)]
    assert conditional_errors(one, other, [("b", {"c": 0, "a": 1})]).l1 == pytest.approx(
        np.abs(given[0] - given[1]).sum()
    )

    best = [np.unravel_index(table.argmax(), table.shape) for table in (p, q)]
    assert map_agreement(one, other, [(["a", "b", "c"], {})]) == (best[0] == best[1])
    assert map_agreement(one, one, [(["a", "b", "c"], {}), (["b"], {"c": 1})]) == 1.0
    never = TabularCPD("a", 2, [[1.0], [0.0]])
    other.add_cpds(never)
    assert map_agreement(one, other, [(["b"], {"a": 1}), (["a"], {})]) == 0.5 * (rows[0].argmax() == 0)
    other = network(1, ["b", "a"])[0]
    alike = [table[:, :, 1].sum(0).argmax() for table in (p, q)]
    assert map_agreement(one, other, [(["b"], {"c": 1})]) == (alike[0] == alike[1])


@pytest.mark.parametrize("measure", [kl_divergence, inference_error_bounds, parameter_errors])
def test_networks_of_other_variables_are_not_compared(measure):
    """A divergence over too few variables was negative."""
    larger, smaller = network(0, ["a", "b"])[0], network(0, ["a", "b"])[0]
    larger.add_node("d")
    larger.add_cpds(TabularCPD("d", 2, [[0.5], [0.5]]))
    for pair in ((larger, smaller), (smaller, larger)):
        with pytest.raises(SchemaError, match="'d'"):
            measure(*pair)
