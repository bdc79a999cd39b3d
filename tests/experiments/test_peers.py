"""What the comparison with peers measures: divergences, and fits in processes of their own."""

import numpy as np
import pytest

from experiments import peer_comparisons as peers
from experiments.closest import closest_marginals
from experiments.peer_processes import run
from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.observed.factors import log_linear


def test_divergences_from_the_true_network():
    layout, own, _ = log_linear(peers.example_network("asia"))
    tree = JunctionTree.build(layout.cardinalities, layout.scopes)
    truth = tree.calibrate(own)
    assert peers.divergence("asia", own + 3.0) == pytest.approx(0.0, abs=1e-12)
    assert peers.table_divergence("asia", 500 * truth.marginals) == pytest.approx(0.0, abs=1e-12)

    joint = np.zeros(tuple(layout.cardinalities.values()))
    axis = {variable: number for number, variable in enumerate(layout.cardinalities)}
    for scope, table in layout.tables(own).items():
        order = np.argsort([axis[variable] for variable in scope])
        shape = [states if variable in scope else 1 for variable, states in layout.cardinalities.items()]
        joint = joint + table.transpose(order).reshape(shape)
    probabilities = np.exp(joint)
    held = probabilities[probabilities > 0] / probabilities.sum()
    uniform = float(held @ np.log(held * joint.size))
    assert peers.divergence("asia", np.zeros_like(own)) == pytest.approx(uniform)

    even = np.concatenate([np.full(table.size, 1.0 / table.size) for table in layout.tables(own).values()])
    marginals = layout.tables(truth.marginals).values()
    apart = [float((table[table > 0] * np.log(table[table > 0] * table.size)).sum()) for table in marginals]
    assert peers.table_divergence("asia", even) == pytest.approx(np.mean(apart))


def test_a_process_of_its_own_fits_the_same(tmp_path, monkeypatch):
    (tmp_path / "pgmpy_dp.py").write_text("raise ImportError('another copy')")
    monkeypatch.chdir(tmp_path)
    problem = peers.noisy_problem("asia")
    problem.save(tmp_path / "problem.json")
    tree = JunctionTree.build(problem.cardinalities, problem.scopes)
    scale = tree.layout.per_cell(problem.scales)
    here = closest_marginals(tree, problem.observed, scale, problem.total, 0.0, 50)
    there = run("ours", tmp_path / "problem.json", "50")
    assert there.loss == pytest.approx(here.losses[-1])
    assert there.tables == pytest.approx(problem.total * here.marginals)
    assert tree.calibrate(there.potentials).marginals == pytest.approx(here.marginals)
    with pytest.raises(RuntimeError, match="process of ours ended"):
        run("ours", tmp_path / "nothing.json", "50")


@pytest.mark.slow
def test_a_process_of_pgmpy_fits_and_is_ended_at_its_limit(tmp_path):
    problem = peers.noisy_problem("asia")
    problem.save(tmp_path / "problem.json")
    scale = JunctionTree.build(problem.cardinalities, problem.scopes).layout.per_cell(problem.scales)
    own = run("pgmpy", tmp_path / "problem.json", longest=60)
    assert own.loss == pytest.approx((((own.tables - problem.observed) / scale) ** 2).sum() / 2)
    with pytest.raises(RuntimeError, match="process of pgmpy ended"):  # its imports alone take longer
        run("pgmpy", tmp_path / "problem.json", longest=1)
