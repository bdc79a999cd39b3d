"""Records drawn by chance, and the share of their variance that pairs leave open, against brute force."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from pgmpy_dp.inference.mixtures import refits
from pgmpy_dp.inference.mixtures.fit.ensemble import fit_mixture
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.mixtures.refits import draw_refits

CARDS = {"a": 2, "b": 3, "c": 2, "d": 4}


def mixture(seed=0):
    draw = np.random.default_rng(seed)
    blocks = [("d", "a"), ("c",), ("b",)]
    tables = [
        draw.dirichlet(np.full(size, 0.5), 6).reshape(6, *shape) for size, shape in ((8, (4, 2)), (2, (2,)), (3, (3,)))
    ]
    return Mixture.of(CARDS, blocks, draw.dirichlet(np.ones(6)), tables)


def test_records_have_the_mixtures_joint_distribution():
    made, count = mixture(), 200_000
    codes = made.sample(count, np.random.default_rng(1))
    joint = made.marginal("abcd")
    counts = np.bincount(np.ravel_multi_index(tuple(codes.T.astype(int)), joint.shape), minlength=joint.size)
    expected = count * joint.ravel()
    assert counts[expected == 0].sum() == 0
    squares = ((counts - expected)[expected > 0] ** 2 / expected[expected > 0]).sum()
    assert squares < 47 + 5 * math.sqrt(2 * 47)  # 48 cells; a chi-square is five deviations away once in a million


def test_the_open_share_is_that_of_interactions_of_three_and_more():
    """Indicators of independent variables are projected on functions of each set of variables."""
    draw = np.random.default_rng(0)
    asked, given = [draw.dirichlet(np.ones(3)), draw.dirichlet(np.ones(2))], [0.3, 0.8]
    found = refits._beyond_pairs(asked, given).reshape(3, 2)
    for states in np.ndindex(3, 2):
        shares = [*(s[i] for s, i in zip(asked, states, strict=True)), *given]
        parts = {
            kept: math.prod(1 - p if place in kept else p for place, p in enumerate(shares))
            for size in range(5)
            for kept in itertools.combinations(range(4), size)
        }
        matters = {kept: part for kept, part in parts.items() if set(kept) & {0, 1}}
        beyond = sum(part for kept, part in matters.items() if len(kept) > 2)
        assert found[states] == pytest.approx(beyond / sum(matters.values()))
    assert refits._beyond_pairs(asked[:1], given[:1]) == pytest.approx(np.zeros(3))


@pytest.mark.parametrize("of_records", [True, False])
def test_records_beyond_the_limit_are_drawn_to_the_mixture(monkeypatch, of_records):
    """A sixteenth of the records gives deviations as large as those of all.

    Over seeds, the logarithm of the ratio of their squares has a standard deviation of a third: log(4) is exceeded by 3
    in 100,000. Without `_drawn_to` in the tables the ratio is 16 for the population; without it in the truth of the
    records alone it is a thousand.
    """
    made, count = mixture(), 16_000
    pairs = [
        (pair, count * made.marginal(pair), 5.0 if of_records else 0.5) for pair in itertools.combinations(CARDS, 2)
    ]
    fit = fit_mixture(CARDS, pairs, components=10, members=2, generator=np.random.default_rng(0))
    deviations = []
    for maximum in (count, count // 16):
        monkeypatch.setattr(refits, "_MAX_RECORDS", maximum)
        draws = draw_refits(fit, pairs, draws=16, generator=np.random.default_rng(1))
        assert len(draws.records[0]) == pytest.approx(maximum, rel=0.01)
        deviations.append(draws.predict(["b"], {}, of_records=of_records).deviations)
    all_records, few = np.square(deviations).sum(axis=1)
    assert 1 / 4 < few / all_records < 4


@pytest.mark.parametrize(("noise", "lower", "upper"), [(0.05, 0.0, 0.004), (0.4, 0.02, 0.12)])
def test_dependence_that_noise_hides_is_missing_from_the_fit(noise, lower, upper):
    """All pairs of ten variables have a squared correlation of .04, with noise of standard deviation `noise`.

    The refits of a fit without dependence do not show that it lacks it.
    """
    draw, total = np.random.default_rng(0), 10_000
    common = draw.random(total) < 0.5
    columns = [np.where(draw.random(total) < 0.2**0.5, common, draw.random(total) < 0.5) for _ in range(10)]
    tables = []
    for one, other in itertools.combinations(range(10), 2):
        counts = np.bincount(2 * columns[one] + columns[other], minlength=4).reshape(2, 2)
        noisy = counts + noise * total / 4 * draw.standard_normal((2, 2))
        tables.append(([str(one), str(other)], noisy, noise * total / 4))
    fit = fit_mixture({str(number): 2 for number in range(10)}, tables, generator=np.random.default_rng(0))
    draws = draw_refits(fit, tables, generator=np.random.default_rng(1))
    assert lower <= draws.missing <= upper
    question = ["0"], {"1": 1}
    without = replace(draws, missing=0.0).predict(*question, of_records=False)
    added = draws.predict(*question, of_records=False).deviations ** 2 - without.deviations**2
    share = fit.mixture.marginal(["1"])[1]
    assert added == pytest.approx(draws.missing * np.prod(without.values) * (1 - share) / share)


def test_evidence_that_members_exclude_and_the_whole_allows_has_an_answer():
    """Cells without records are in no member's block; components of independent variables have them all the same."""
    counts = {"ab": [[4000.0, 0.0], [0.0, 4000.0]], "ac": [[3000.0, 1000.0], [1000.0, 3000.0]]}
    tables = [(tuple(pair), np.array(table), 1.0) for pair, table in counts.items()]
    tables.append((("b", "c"), np.array(counts["ac"]), 1.0))
    fit = fit_mixture(dict.fromkeys("abc", 2), tables, components=4, members=2, generator=np.random.default_rng(0))
    given = {"a": 0, "b": 1}
    with pytest.raises(ValueError, match="probability zero"):
        fit.members[0].given(given)
    draws = draw_refits(fit, tables, draws=4, generator=np.random.default_rng(1))
    for of_records in (True, False):
        found = draws.predict(["c"], given, of_records=of_records)
        assert found.values == pytest.approx(fit.mixture.given(given).marginal("c"))
        assert (found.deviations > 0.2).all()  # since nothing is known
