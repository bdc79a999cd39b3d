"""Contrasts, and the sensitivity of Fourier coefficients by brute force over all neighbours."""

import math

import numpy as np
import pytest

import pgmpy_dp as dp
from pgmpy_dp.papers import printed_sensitivity
from pgmpy_dp.release import contrasts as room
from pgmpy_dp.release.contrasts import Contrasts, contrasts, downward_closure, fourier_sensitivity


def helmert(states):
    values = np.array([[1] * states] + [[1] * k + [-k] + [0] * (states - k - 1) for k in range(1, states)])
    return Contrasts(values, (values**2).sum(axis=1))


def fourier(states):
    """The real discrete Fourier basis, as functions of mean square 1."""
    angle = 2 * np.pi * np.outer(np.arange(1, states // 2 + 1), np.arange(states)) / states
    rows = [math.sqrt(2) * row for k in range(len(angle)) for row in (np.cos(angle[k]), np.sin(angle[k]))]
    if states % 2 == 0:
        rows = [*rows[:-2], np.cos(angle[-1])]
    return np.array(rows)


@pytest.mark.parametrize("states", [1, 2, 3, 4, 5, 7, 8, 16, 20, 33])
def test_contrasts_are_orthogonal_integers_of_the_least_spread(states):
    functions = contrasts(states)
    assert functions.values.dtype == np.int64
    np.testing.assert_array_equal(functions.values @ functions.values.T, np.diag(functions.squares))
    np.testing.assert_allclose(functions.inverse @ functions.values, np.eye(states), atol=1e-12)
    if states > 1:
        assert functions.spread <= helmert(states).spread + 1e-12
        assert functions.spread <= np.abs(fourier(states)).sum(axis=0).max() + 1e-12


def test_spreads_have_the_published_values():
    """Section D.6 of the specification: A(r) of Helmert's basis and, for four states, of the Fourier basis."""
    for states, spread in [(3, 1.932), (4, 2.808), (5, 3.640), (8, 5.934), (10, 7.341), (20, 13.48)]:
        assert helmert(states).spread == pytest.approx(spread, abs=5e-3)
    assert contrasts(4).spread == pytest.approx(1 + math.sqrt(2))
    assert contrasts(3).spread == pytest.approx(1.932, abs=5e-4)
    assert contrasts(8).spread == pytest.approx(3 + math.sqrt(2))


STRUCTURES = {
    "naive Bayes": ([(0,), (1, 0), (2, 0), (3, 0)], 12, 8),
    "chain": ([(0,), (1, 0), (2, 1), (3, 2)], 10, 8),
    "dense": ([(0,), (1,), (0, 1, 2), (1, 2, 3)], 16, 12),
    "independent": ([(0,), (1,), (2,)], 6, 4),
    "full": ([(0, 1, 2)], 8, 8),
}


@pytest.mark.parametrize("name", STRUCTURES)
def test_binary_sensitivities_are_the_published_ones(name):
    """spec/README.md, test vectors: REP * 2^(|I| / 2) and ADD = |N_I|."""
    cliques, replaced, size = STRUCTURES[name]
    cliques = [tuple(map(str, clique)) for clique in cliques]
    schema = dp.Schema({v: [0, 1] for clique in cliques for v in clique})
    closure = downward_closure(schema, cliques)
    cards = dict.fromkeys(schema.variables, 2)
    assert len(closure) == size
    assert fourier_sensitivity(schema, closure, "add_remove") == pytest.approx(size)
    assert fourier_sensitivity(schema, closure, "replace_one") == pytest.approx(replaced)
    assert replaced <= printed_sensitivity(closure, cards) == 2 * size


def test_mixed_sensitivities_in_helmerts_basis_are_the_published_ones(monkeypatch):
    """Section D.6: cards (2, 3, 4), families {0}, {0, 1}, {1, 2}."""
    schema = dp.Schema({f"Helmert's {v}": range(v + 2) for v in range(3)})  # whose sensitivities no other test asks for
    zero, one, two = schema.variables
    closure = downward_closure(schema, [(zero,), (zero, one), (one, two)])
    monkeypatch.setattr(room, "contrasts", helmert)
    assert fourier_sensitivity(schema, closure, "add_remove") == pytest.approx(14.0965, abs=5e-5)
    assert fourier_sensitivity(schema, closure, "replace_one") == pytest.approx(19.1746, abs=5e-5)


@pytest.mark.parametrize("cards", [[8, 8, 8, 8], [200]])
def test_too_large_for_the_exact_value_takes_the_bound(cards):
    schema = dp.Schema({f"v{number}": range(states) for number, states in enumerate(cards)})
    closure = downward_closure(schema, [schema.variables])
    added = fourier_sensitivity(schema, closure, "add_remove")
    assert fourier_sensitivity(schema, closure, "replace_one") == pytest.approx(2 * (added - 1))
    with pytest.raises(ValueError, match="neighbours"):
        fourier_sensitivity(schema, closure, "swap")


def test_a_clique_has_at_most_four_million_coefficients():
    schema = dp.Schema({"a": range(2048), "b": range(2048), "c": range(2049)})
    assert downward_closure(schema, [("a", "b")]) == ((), ("a",), ("b",), ("a", "b"))  # 2**22
    with pytest.raises(dp.SchemaError, match="more than 4194304"):
        downward_closure(schema, [("a", "c")])
