"""Fits of mixtures: gradients, what noisy tables say together, and what comes back."""

import itertools
import math
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from pgmpy_dp.inference.mixtures.fit import ensemble
from pgmpy_dp.inference.mixtures.fit.base import Shape, Targets, start_from
from pgmpy_dp.inference.mixtures.fit.ensemble import disagreement, fit_mixture
from pgmpy_dp.inference.mixtures.fit.member import MemberProblem, fit_member
from pgmpy_dp.inference.mixtures.fit.noisy_tables import NoisyTables, shrunk
from pgmpy_dp.inference.mixtures.mixture import Mixture
from pgmpy_dp.inference.tables.table import centred

CARDS = {"a": 2, "b": 3, "c": 2, "d": 4}
MEASURED = [(0,), (3,), (0, 1), (0, 2), (1, 2), (2, 3), (0, 1, 2), (1, 2, 3), (0, 1, 2, 3)]


def chain(seed: int = 0) -> np.ndarray:
    """A joint table in which neighbours depend on each other."""
    generator = np.random.default_rng(seed)
    ab, bc, cd = (generator.gamma(0.5, size=shape) for shape in ((2, 3), (3, 2), (2, 4)))
    table = np.einsum("ab,bc,cd->abcd", ab, bc, cd)
    return table / table.sum()


def tables_of(joint, size, total=1.0, deviation=1.0, generator=None):
    """All marginals of some size as noisy tables."""
    found = []
    for axes in itertools.combinations(range(4), size):
        counts = total * joint.sum(axis=tuple(axis for axis in range(4) if axis not in axes))
        if generator is not None:
            counts = counts + deviation * generator.standard_normal(counts.shape)
        found.append((tuple(list(CARDS)[axis] for axis in axes), counts, deviation))
    return found


def every_kind_of_target(blocks, kept, residuals=False, dtype=np.float64):
    """A problem with targets within a block and across two and three; cells of blocks beyond `kept` are missing."""
    generator = np.random.default_rng(0)
    cells = tuple(np.argwhere(np.ones([list(CARDS.values())[variable] for variable in block])) for block in blocks)
    cells = tuple(cell[:kept] if len(block) > 1 else cell for cell, block in zip(cells, blocks, strict=True))
    shape = Shape(tuple(CARDS.values()), blocks, cells)
    joint = chain()
    margins = {axes: joint.sum(axis=tuple(axis for axis in range(4) if axis not in axes)) for axes in MEASURED}
    targets = [
        Targets(np.array([axes]), (centred(margin) if residuals else margin)[None], np.array([1.0 + len(axes)]))
        for axes, margin in margins.items()
    ]
    log_base = np.log(generator.dirichlet(np.ones(int(shape.starts[-1]))))
    smoothing = [None, generator.random((3, 3)), None, generator.random((4, 4))]
    return MemberProblem(shape, log_base, smoothing, targets, residuals=residuals, dtype=dtype)


def gradient_error(problem, number, penalty):
    """Relative difference of a parameter's derivative in some direction from the loss's difference."""
    generator = np.random.default_rng(1)
    parameters = problem.start(3, generator)
    parameters[1][:] = generator.standard_normal(3)
    direction = generator.standard_normal(parameters[number].shape)
    ends = []
    for step in (1e-5, -1e-5):
        moved = list(parameters)
        moved[number] = parameters[number] + step * direction
        ends.append(problem.gradient(tuple(moved), penalty)[0])
    slope = float((problem.gradient(parameters, penalty)[1][number] * direction).sum())
    return abs((ends[0] - ends[1]) / 2e-5 / slope - 1)


@pytest.mark.parametrize("sliced", [0.1, 1000])
@pytest.mark.parametrize(
    "blocks", [((0,), (1,), (2,), (3,)), ((1, 2), (0,), (3,)), ((0, 3), (1, 2)), ((0, 1, 3), (2,)), ((0, 1, 2, 3),)]
)
@pytest.mark.parametrize("residuals", [False, True])
def test_gradients_are_finite_differences(blocks, sliced, residuals, monkeypatch):
    monkeypatch.setattr("pgmpy_dp.inference.mixtures.fit.member._SLICED", sliced)
    problem = every_kind_of_target(blocks, 5, residuals)
    assert max(gradient_error(problem, number, penalty=0.3) for number in (0, 1)) < 1e-6
    assert max(gradient_error(problem, number, penalty=0.0) for number in (0, 1, 2)) < 1e-6


def test_smoothing_that_is_not_transposed_on_the_way_back_is_found():
    problem = every_kind_of_target(((1, 2), (0,), (3,)), kept=5)
    problem._smoothing = problem._smoothing._replace(transposed=problem._smoothing.matrices)
    assert gradient_error(problem, 0, penalty=0.3) > 1e-2


@pytest.mark.parametrize("residuals", [False, True])
def test_strips_in_turn_stand_for_all_pairs(residuals, monkeypatch):
    """By turns, the derivatives by states are on average those of one strip of all pairs."""
    blocks = ((1, 2), (0,), (3,))
    whole = every_kind_of_target(blocks, 5, residuals)
    monkeypatch.setattr("pgmpy_dp.inference.mixtures.fit.member._COMPARED", 4)
    strips = every_kind_of_target(blocks, 5, residuals)
    assert len(whole._strips) == 1 < len(strips._strips)
    parameters = whole.start(3, np.random.default_rng(1))
    loss, wanted = whole.gradient(parameters, 0.3)
    assert strips.gradient(parameters, 0.3)[0] == pytest.approx(loss)
    turns = [strips.gradient(parameters, 0.3, turn)[1] for turn in range(len(strips._strips))]
    for all_pairs, *of_turns in zip(wanted, strips.gradient(parameters, 0.3)[1], *turns, strict=True):
        np.testing.assert_allclose(of_turns[0], all_pairs, atol=1e-12)
        np.testing.assert_allclose(np.mean(of_turns[1:], axis=0), all_pairs, atol=1e-12)


@pytest.mark.parametrize("sliced", [0.1, 1000])
@pytest.mark.parametrize("blocks", [((0,), (1,), (2,), (3,)), ((1, 2), (0,), (3,)), ((0, 1, 3), (2,)), ((0, 1, 2, 3),)])
@pytest.mark.parametrize("residuals", [False, True])
def test_the_loss_is_that_of_the_marginals(blocks, sliced, residuals, monkeypatch):
    monkeypatch.setattr("pgmpy_dp.inference.mixtures.fit.member._SLICED", sliced)
    problem = every_kind_of_target(blocks, 48, residuals)
    weights, tables, *_ = problem.tables(problem.start(3, np.random.default_rng(1)))
    parts = [tables[problem.shape.of_block(number)] for number in range(len(blocks))]
    scopes = ["".join("abcd"[variable] for variable in block) for block in blocks]
    shaped = [
        own.reshape(*(list(CARDS.values())[v] for v in block), 3) for own, block in zip(parts, blocks, strict=True)
    ]
    whole = np.einsum(",".join(["k", *(f"{own}k" for own in scopes)]) + "->abcd", weights, *shaped)
    expected, joint = 0.0, chain()
    for axes in MEASURED:
        apart = (whole - joint).sum(axis=tuple(axis for axis in range(4) if axis not in axes))
        expected += (1 + len(axes)) / 5 * ((centred(apart) if residuals else apart) ** 2).sum() / 2
    parameters = problem.start(3, np.random.default_rng(1))
    assert problem.gradient(parameters, 0.0)[0] == pytest.approx(expected)


def test_total_and_shares_are_pooled_by_precision():
    noisy = NoisyTables.of(
        {"a": 2, "b": 2}, [(("a",), [30.0, 70.0], 1.0), (("b", "a"), [[20.0, 40.0], [10.0, 50.0]], 2.0)]
    )
    # Sums of 100 and of 120, of variances 2 and 16; the first state has 30 either way, of variances 1 and 8.
    assert noisy.total == pytest.approx((100 / 2 + 120 / 16) / (1 / 2 + 1 / 16))
    second = (70 + 90 / 8) / (1 + 1 / 8)
    excess = (30 + second - noisy.total) / 2
    np.testing.assert_allclose(noisy.singles[0], np.array([30 - excess, second - excess]) / noisy.total)


def test_residuals_and_the_number_of_records_make_the_tables():
    """Whatever else the tables of residuals say is not looked at."""
    joint, generator = 1000.0 * chain(), np.random.default_rng(0)
    own = [((), joint.sum(), 5.0), *tables_of(joint, 1), *tables_of(joint, 2, deviation=2.0)]
    spoilt = [(scope, table + generator.normal(0, 50, table.shape[1:]), noise) if scope[1:] else (scope, table, noise)
              for scope, table, noise in own]  # fmt: skip
    noisy = NoisyTables.of(CARDS, spoilt, residuals=True)
    assert noisy.total == pytest.approx(1000.0)
    for number, (_, table, _) in enumerate(tables_of(joint, 1)):
        np.testing.assert_allclose(noisy.singles[number], table / 1000)
        assert noisy.single_deviations[number] == pytest.approx(math.sqrt(1 - 1 / table.size))
    for (_, table, _), found in zip(tables_of(joint, 2), noisy.pairs, strict=True):
        np.testing.assert_allclose(found.counts, table)
        assert found.deviation == pytest.approx(2 * math.sqrt(math.prod(1 - 1 / states for states in table.shape)))
    even = Mixture.of(
        CARDS, [(v,) for v in CARDS], [1.0], [np.full((1, states), 1 / states) for states in CARDS.values()]
    )
    assert ensemble._misfit(even, noisy) == pytest.approx(
        ensemble._misfit(even, NoisyTables.of(CARDS, own, residuals=True))
    )


def test_thinned_halves_have_the_noise_they_say_and_independent():
    table = np.zeros((100, 100))
    noisy = NoisyTables.of({"a": 100, "b": 100}, [(("a", "b"), np.random.default_rng(0).normal(table, 3.0), 3.0)])
    halves = [next(iter(half)) for half in noisy.thinned(0.5, np.random.default_rng(1))]
    for half in halves:
        assert half.counts.std() == pytest.approx(half.deviation, rel=0.03)
    assert np.corrcoef(halves[0].counts.ravel(), halves[1].counts.ravel())[0, 1] == pytest.approx(0.0, abs=0.04)


def test_the_strongest_pairs_form_blocks_and_impossible_cells_are_left_out():
    joint = np.zeros((2, 3, 2, 4))
    joint[0, 0, :, :] = joint[1, 1:, :, :] = 0.1
    joint[:, :, 0, :2] *= 10
    joint[:, :, 1, 2:] *= 10
    joint /= joint.sum()
    shape, log_base = start_from(NoisyTables.of(CARDS, tables_of(joint, 2, 10_000, 1.0, np.random.default_rng(0))))
    assert shape.blocks == ((0, 1), (2, 3))
    assert shape.cells[0].tolist() == [[0, 0], [1, 1], [1, 2]]
    np.testing.assert_allclose(np.exp(log_base[:3]), joint.sum(axis=(2, 3))[[0, 1, 1], [0, 1, 2]], atol=0.05)


def test_what_two_of_three_variables_rule_out_no_component_has():
    """Sex, marital status and relationship: a married woman is a wife. Pairs alone, in pairs' blocks, cannot say so."""
    sizes, joint = {"sex": 2, "married": 2, "role": 4}, np.zeros((2, 2, 4))
    joint[0, 1, 0], joint[1, 1, 1] = 0.3, 0.2  # husband, wife
    joint[:, 0, 2:] = [[0.15, 0.1], [0.1, 0.15]]
    noise, names = np.random.default_rng(0), list(sizes)
    tables = []
    for axes in itertools.combinations(range(3), 2):
        counts = 5000 * joint.sum(axis=3 - sum(axes))
        tables.append((tuple(names[axis] for axis in axes), counts + 3 * noise.standard_normal(counts.shape), 3.0))
    shape, _ = start_from(NoisyTables.of(sizes, tables))
    assert shape.blocks == ((0, 1, 2),)
    assert not {(0, 1, 1), (1, 1, 0)} & set(map(tuple, shape.cells[0].tolist()))
    mixture = fit_mixture(sizes, tables, components=10, members=2, generator=noise).mixture
    assert mixture.marginal(names)[joint == 0].sum() < 0.002
    assert np.abs(mixture.marginal(names) - joint).sum() / 2 < 0.01


def test_pairs_that_contradict_each_other_join_no_block():
    """Of two of these pairs each says that the other's records have no state of the third variable."""
    one, other = np.array([[1000.0, 0.0], [0.0, 0.0]]), np.array([[0.0, 0.0], [0.0, 1000.0]])
    tables = [(("a", "b"), one, 1.0), (("b", "c"), other, 1.0), (("a", "c"), np.diag([500.0, 500.0]), 1.0)]
    shape, log_base = start_from(NoisyTables.of(dict.fromkeys("abc", 2), tables))
    assert np.isfinite(log_base).all()
    assert all(len(cells) for cells in shape.cells)


def test_a_table_far_below_zero_forms_no_block():
    one = np.array([1000.0, 10.0, 0.0, 0.0, 5000.0])
    tables = [((variable,), one, 1.0) for variable in "abc"]
    tables += [(("a", "b"), np.diag(one), 1.0), (("b", "c"), np.full((5, 5), -1000.0), 1.0)]
    with np.errstate(all="raise", under="ignore"):
        shape, log_base = start_from(NoisyTables.of(dict.fromkeys("abc", 5), tables))
    assert shape.blocks == ((0, 1), (2,))
    assert np.isfinite(log_base).all()


@pytest.mark.parametrize("size", [2, 3])
def test_a_joint_table_comes_back_from_its_marginals(size):
    joint = chain(3)
    tables = tables_of(joint, size, 1e5, 3.0, np.random.default_rng(1))
    fit = fit_mixture(CARDS, tables, components=20, members=2, generator=np.random.default_rng(0))
    assert fit.total == pytest.approx(1e5, rel=1e-3)
    for axes in itertools.combinations(range(4), 2):
        pair = tuple(list(CARDS)[axis] for axis in axes)
        exact = joint.sum(axis=tuple(axis for axis in range(4) if axis not in axes))
        assert np.abs(fit.mixture.marginal(pair) - exact).sum() / 2 < 0.004
    assert np.abs(fit.mixture.marginal(tuple(CARDS)) - joint).sum() / 2 < (0.03 if size == 2 else 0.01)
    assert (fit.mixture.marginal(tuple(CARDS)) > 0).all()
    assert len(fit.members) == 2
    assert max(disagreement(fit).values()) < 0.02


def test_a_penalty_that_forbids_dependence_leaves_the_product_that_fits_best():
    """The base follows the targets whatever the penalty: many components then agree with the only one."""
    problem, losses = every_kind_of_target(((0,), (1,), (2,), (3,)), kept=5, dtype=np.float32), []
    for penalty, components in ((100.0, 8), (0.0, 1)):
        found = fit_member(problem, penalty, components, 400, np.random.default_rng(0))
        losses.append(problem.gradient(found, 0.0)[0])
    assert losses[0] == pytest.approx(losses[1], rel=1e-2)


@pytest.mark.parametrize(("count", "left"), [(10, "uniform"), (300, "singles"), (20_000, "pairs")])
def test_noise_leaves_the_uniform_distribution_then_singles_then_pairs(count, left):
    joint = chain(3)
    noise, variables = np.random.default_rng(0), list(CARDS)
    tables = tables_of(joint, 2, count, 40.0, noise)
    tables += [((v,), count * joint.sum(axis=tuple({0, 1, 2, 3} - {a})) + 5 * noise.standard_normal(CARDS[v]), 5.0)
               for a, v in enumerate(variables)]  # fmt: skip
    fit = fit_mixture(CARDS, tables, components=20, members=2, known_total=count, generator=np.random.default_rng(0))
    assert fit.uniform == (left == "uniform")
    assert (fit.components > 1) == (left == "pairs")
    if left == "uniform":
        flat = np.full(tuple(CARDS.values()), 1 / 48)
        np.testing.assert_allclose(fit.mixture.marginal(tuple(CARDS)), flat, atol=1 / (count + 1))
    assert all(np.isfinite(member.weights).all() for member in fit.members)


def test_shrunk_shares_are_closer_than_projected_ones_unless_few_states_have_records():
    """Mean over 200 draws of noise."""
    draw = np.random.default_rng(0)
    for shares, deviation, minimum, maximum in (
        ([0.3, 0.3, 0.2, 0.1, 0.1], 0.2, 0.5, 0.9),
        ([0.3, 0.3, 0.2, 0.1, 0.1], 0.01, 0.98, 1.01),
        ([0.9, 0.1, 0.0, 0.0, 0.0], 0.1, 0.9, 1.15),
        ([0.5, 0.5], 0.2, 0.5, 0.9),
    ):
        noise, errors = deviation * draw.standard_normal((200, len(shares))), np.zeros(2)
        for one in noise:
            tables = NoisyTables.of({"a": len(shares)}, [(("a",), shares + one, deviation)], 1.0)
            for place, found in enumerate((tables.singles[0], shrunk(tables.singles[0], deviation)[0])):
                errors[place] += np.abs(found - shares).sum()
        assert minimum < errors[1] / errors[0] < maximum, (shares, deviation)


@pytest.mark.parametrize(("deviation", "more"), [(0.5, True), (2000.0, False)])
def test_more_steps_are_taken_where_noise_is_small(deviation, more):
    tables = tables_of(chain(3), 2, 1e5, deviation, np.random.default_rng(0))
    fit = fit_mixture(CARDS, tables, components=20, members=1, steps=40, generator=np.random.default_rng(0))
    assert (fit.steps > 40) == more
    assert fit.steps <= 107  # 8/3 of them


@pytest.mark.parametrize("width", ensemble._WIDTHS)
@pytest.mark.parametrize("power", [-2, 0, 3])
def test_the_settings_are_those_that_predict_the_other_half_best(width, power):
    """With known risks, in nats: the width, and the penalty to a half of a factor."""
    best = ensemble._FIRST_PENALTY * ensemble._FACTOR**power

    def risk(own):
        apart = math.log(own.penalty / best, ensemble._FACTOR)
        return 30.0 * (own.width != width) + apart**2 + 100.0 * (own.components < 40)

    start = SimpleNamespace(
        ordered=True,
        cardinalities=CARDS,
        problem=lambda _: SimpleNamespace(precision=1.0, gradient=lambda found, _: (risk(found), None)),
        adapted=lambda problem, _: problem,
        fit=lambda problem, own, generator: own,
    )
    halves = SimpleNamespace(thinned=lambda *_: (None, None))
    with ThreadPoolExecutor(2) as pool:
        found = ensemble._choose(halves, start, 40, 400, 1, np.random.default_rng(0), pool, lambda: None)
    assert (found.width, found.components) == (width, 40)
    assert abs(math.log(found.penalty / best, ensemble._FACTOR)) <= 0.5 + 1e-9


def test_states_that_are_alike_share_coefficients(monkeypatch):
    """Eighteen states in six groups, of which all depends: pairs and triples come closer, by 7 % in two releases."""
    group, variables = np.arange(18) % 6, range(4)
    within = np.where(group[:, None] == group, 6.0, 0.5)
    joint = np.einsum("a,ab,bc,cd->abcd", np.random.default_rng(0).gamma(5.0, size=18), within, within, within)
    joint /= joint.sum()
    scopes = [own for size in (2, 3) for own in itertools.combinations(variables, size)]
    exact = {own: joint.sum(axis=tuple(set(variables) - set(own))) for own in scopes}
    noise, errors = np.random.default_rng(0), []
    tables = [(own, 20_000 * exact[own] + 4 * noise.standard_normal((18, 18)), 4.0) for own in scopes[:6]]
    for alike in (True, False):
        settings = ensemble._Settings(0.01, 0.0, 50, 400, alike)
        monkeypatch.setattr(ensemble, "_choose", lambda *_, settings=settings: settings)
        fit = fit_mixture(dict.fromkeys(variables, 18), tables, generator=np.random.default_rng(0))
        assert fit.alike == alike
        errors.append(np.mean([np.abs(fit.mixture.marginal(own) - exact[own]).sum() for own in scopes]))
    assert errors[0] < 0.97 * errors[1]


def test_the_fit_does_not_depend_on_threads_or_hash_seeds(monkeypatch):
    tables = tables_of(chain(), 2, 1000, 5.0, np.random.default_rng(0))
    found = []
    for threads in (1, 2):
        monkeypatch.setattr("pgmpy_dp.inference.mixtures.fit.ensemble.cores", lambda threads=threads: threads)
        with threadpool_limits(threads):
            fit = fit_mixture(CARDS, tables, components=10, members=4, steps=20, generator=np.random.default_rng(0))
        found.append(fit.mixture.marginal(tuple(CARDS)))
    np.testing.assert_array_equal(*found)
    code = (
        "import numpy as np; from pgmpy_dp.inference.mixtures.fit.base import start_from;"
        "from pgmpy_dp.inference.mixtures.fit.noisy_tables import NoisyTables; t = np.eye(3) * 50 + 10;"
        "names = 'abcdef'; import itertools;"
        "print(start_from(NoisyTables.of(dict.fromkeys(names, 3),"
        " [(p, t, 1.0) for p in itertools.combinations(names, 2)]))[0].blocks)"
    )
    blocks = {
        subprocess.run([sys.executable, "-c", code], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
                       capture_output=True, text=True, check=True).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(blocks) == 1


def test_wide_tables_take_fewer_fits_and_come_as_close(monkeypatch):
    joint, found, fits = chain(), [], []
    tables = tables_of(joint, 2, 1000, 5.0, np.random.default_rng(0))
    fitted = ensemble.fit_member
    monkeypatch.setattr(ensemble, "fit_member", lambda *args: fits.append(args) or fitted(*args))
    for maximum in (400, 10):
        monkeypatch.setattr(ensemble, "_MANY_STATES", maximum)
        fits.clear()
        fit = fit_mixture(CARDS, tables, components=20, steps=100, generator=np.random.default_rng(0))
        found.append((fit.size, len(fits), np.abs(fit.mixture.marginal(tuple(CARDS)) - joint).sum()))
    (size, count, error), (fewer, less, other) = found
    assert (size, fewer) == (12, 11)
    assert less < count - 2
    assert other < 1.2 * error + 0.01


@pytest.mark.parametrize(
    ("tables", "problem"),
    [([(("a",), [1.0, 2.0], 1.0)], "in no table"), ([(("a",), [1.0], 1.0)], "shape"),
     ([(("q",), [1.0], 1.0)], "names one"),
     ([(("a",), [1.0, np.nan], 1.0)], "finite"), ([(("a",), [1.0, 2.0], 0.0)], "positive")],
)  # fmt: skip
def test_wrong_tables_are_refused(tables, problem):
    with pytest.raises(ValueError, match=problem):
        NoisyTables.of({"a": 2, "b": 2}, tables)
