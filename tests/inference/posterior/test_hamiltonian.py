"""Posterior draws of log-potentials: the density, the draws against quadrature, single moves, and concentrations."""

import math
from copy import copy
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import sparse
from scipy.special import betaincinv, expit, gammaln, ndtri
from scipy.stats import norm

from pgmpy_dp.inference import JunctionTree
from pgmpy_dp.inference.collective.noise_laws import LaplaceNoise
from pgmpy_dp.inference.posterior.hamiltonian import (
    _ACCEPTANCE,
    TAIL,
    Concentrations,
    HiddenRows,
    State,
    _StepSize,
    each_mean,
    log_gamma,
    mean_network,
    redraw_tails,
    sample_posterior,
)
from pgmpy_dp.inference.posterior.log_posterior import LogPosterior, _largest, bend
from pgmpy_dp.inference.posterior.trajectories import MIN, Terms, exponentials, log1p
from pgmpy_dp.inference.tables.table import Layout, Rows

CARDS = {"a": 2, "b": 3, "c": 2}
FAMILIES = [("a",), ("b", "a"), ("c", "a", "b")]


def rounded(scale):
    return LaplaceNoise.of_scale(np.zeros_like(scale), scale).hyperbolic()


def density(rows, gaussian, total_scale, seed=0, scale=20.0):
    """Noisy sums of a loop of three variables, some cells observed twice."""
    generator = np.random.default_rng(seed)
    tree = JunctionTree.build(CARDS, [*FAMILIES, ("a", "b")])
    cells = np.arange(Layout.of(CARDS, FAMILIES).size)
    effects = np.arange(cells.size, tree.layout.size)
    sums = sparse.csr_array(sparse.vstack([sparse.eye_array(cells.size), generator.normal(size=(3, cells.size))]))
    observed = 1000 * generator.random(sums.shape[0])
    noise, corner = rounded(np.full(observed.size, scale))
    prior = generator.uniform(0.3, 2, cells.size)
    bends = np.full(cells.size, np.inf)
    terms = Terms(
        tree.program, tree.maps, tree.layout.offsets, cells, rows, bends, prior, effects, np.full(effects.size, 0.1),
        cells, sums.indptr.astype(np.int32), sums.indices.astype(np.int32), sums.data, observed, noise,
        np.full_like(corner, -1.0) if gaussian else corner, 1000.0, total_scale,
    )  # fmt: skip
    return LogPosterior(tree, terms)


ROWS = np.concatenate([np.zeros(2), 1 + np.arange(6) % 2, 3 + np.arange(12) % 6]).astype(np.int64)


@pytest.mark.parametrize("rows", [ROWS, np.zeros(0, np.int64)], ids=["rows", "free"])
@pytest.mark.parametrize(("gaussian", "total_scale"), [(False, 5.0), (True, 0.0)])
def test_gradient(rows, gaussian, total_scale):
    target, generator = density(rows, gaussian, total_scale), np.random.default_rng(1)
    point = generator.normal(size=target.size)
    bends = np.where(np.arange(target.free) % 2, np.inf, generator.normal(size=target.free))
    target.terms = target.terms._replace(bends=bends)
    _, gradient = target(point)
    for k, along in enumerate(np.eye(target.size)):
        rise = (target(point + 1e-5 * along)[0] - target(point - 1e-5 * along)[0]) / 2e-5
        assert gradient[k] == pytest.approx(rise, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("rows", [ROWS, np.zeros(0, np.int64)], ids=["rows", "free"])
def test_the_density_does_not_depend_on_where_arrays_lie(rows):
    """Compiled loops have copies for arrays that may overlap: with sums in any order, neighbours had other values."""
    target, generator = density(rows, False, 5.0), np.random.default_rng(3)
    arena = np.zeros(2000)
    own = ("prior", "spread", "observed", "scale", "corner")

    def evaluated(point, place):
        elsewhere = copy(target)
        tops, masses, slopes, _, *others = (place(array) for array in target.scratch)
        elsewhere.scratch = (tops, masses, slopes, slopes.view(np.int64), *others)
        elsewhere.terms = target.terms._replace(**{name: place(getattr(target.terms, name)) for name in own})
        gradient, metric = place(np.zeros(target.size)), elsewhere._resting
        return elsewhere.trajectory(place(point), gradient, gradient, 0.0, 0, metric), gradient.tolist()

    for _ in range(200):
        point = generator.normal(size=target.size)
        ends = [0]

        def side_by_side(array, ends=ends):
            begin = ends[-1] + int(generator.integers(3))
            ends.append(begin + array.size)
            view = arena[begin : ends[-1]]
            view[:] = array
            return view

        assert evaluated(point, side_by_side) == evaluated(point, np.array)


def test_metric_is_the_curvature_of_gaussian_noise():
    """With Gaussian noise and no residuals, the Gauss-Newton Hessian is the Hessian."""
    target = density(np.zeros(0, np.int64), True, 5.0)
    point = np.random.default_rng(2).normal(size=target.size)
    marginals = target.tree.calibrate(target.potentials(point)).marginals[target.terms.places]
    exact = target.total(point) * (target._sums @ marginals)
    target.terms = target.terms._replace(observed=exact)
    metric = target.metric(point)
    steps = 1e-5 * np.eye(target.size)
    hessian = np.array([-(target(point + step)[1] - target(point - step)[1]) / 2e-5 for step in steps])
    scaled = metric.unit[:, None] * (hessian + 0.3 * np.eye(target.size)) * metric.unit
    largest = np.linalg.eigvalsh(scaled)[-3:]
    assert np.sort(metric.stiffness)[-3:] == pytest.approx(largest, rel=0.05)
    assert np.diag(scaled) == pytest.approx(np.ones(target.size), abs=1e-3)


def test_rounded_laplace_keeps_the_variance():
    scale, corner = rounded(np.array([3.0]))
    grid = np.linspace(-200, 200, 400_001)
    weights = np.exp(-np.sqrt(grid**2 + corner) / scale)
    assert (weights @ grid**2) / weights.sum() == pytest.approx(2 * 3.0**2, rel=1e-6)


def of_counts(scopes, rows, bends, prior, cells, observed, noise, corner):
    """The density of tables over variables of two states, of which noisy counts of 100 records are observed."""
    tree = JunctionTree.build(dict.fromkeys(scopes[-1], 2), scopes)
    none, ends = np.zeros(0, np.int64), np.arange(observed.size + 1, dtype=np.int32)
    terms = Terms(
        tree.program, tree.maps, tree.layout.offsets, np.arange(prior.size), rows, np.full(prior.size, bends), prior,
        none, np.zeros(0), cells, ends, ends[:-1], np.ones(observed.size), observed, noise, corner, 100.0, 0.0,
    )  # fmt: skip
    return LogPosterior(tree, terms)


def errors(gaussian, belief, directed):
    """Of log-odds' mean and standard deviation, in standard errors; the sampler believes the noise so large.

    One variable of two states and two noisy counts of 100 records. Its share is Beta(0.1, 0.1), or the logistic
    function of a normal variable with variance 1000, the difference of two log-potentials: both may be next to zero.
    """
    observed, prior = np.array([4.0, 97.0]), np.full(2, 0.1 if directed else 0.002)

    def noise(size):
        return (np.full(2, size), np.full(2, -1.0)) if gaussian else rounded(np.full(2, size))

    rows = np.zeros(2 * directed, np.int64)
    target = of_counts([("a",)], rows, np.inf, prior, np.arange(2), observed, *noise(belief))

    def renew(values, generator):
        return prior

    points, *_ = sample_posterior(target, np.zeros(3), 500, renew, np.random.default_rng(0), thinning=5)
    potentials = np.array([target.potentials(point) for point in points])
    drawn = potentials[:, 0] - potentials[:, 1]
    middles = (np.arange(20_000) + 0.5) / 20_000
    share = betaincinv(0.1, 0.1, middles) if directed else expit(1000**0.5 * ndtri(middles))
    scale, corner = noise(10.0)
    residual = observed - 100 * np.stack([share, 1 - share], axis=1)
    loss = residual**2 / (2 * scale**2) if gaussian else np.sqrt(residual**2 + corner) / scale
    weights, odds = np.exp(-loss.sum(axis=1)), np.log(share / np.maximum(1 - share, 1e-12))
    mean = np.average(odds, weights=weights)
    deviation = np.sqrt(np.average((odds - mean) ** 2, weights=weights))
    return max(abs(drawn.mean() - mean) / deviation, abs(drawn.std() / deviation - 1) / 2**0.5) * 400**0.5


@pytest.mark.parametrize("directed", [True, False], ids=["rows", "free"])
@pytest.mark.parametrize("gaussian", [False, True])
def test_draws_agree_with_quadrature(gaussian, directed):
    """500 draws, whose mean and standard deviation lie within 5 standard errors of 400 independent ones.

    A failure in 100,000 if the chain is right: over 12 seeds, errors had a root mean square of 0.4 to 1.0. It is found
    out if it takes the noise for a tenth.
    """
    assert errors(gaussian, 10.0, directed) < 5
    assert errors(gaussian, 1.0, directed) > 5


def one_row(scale=80.0):
    """Two states with concentrations of 0.3 and 0.6, and their noisy counts among 100 records."""
    rows, prior, observed = np.zeros(2, np.int64), np.array([0.3, 0.6]), np.array([60.0, 20.0])
    return of_counts([("a",)], rows, np.inf, prior, np.arange(2), observed, *rounded(np.full(2, scale)))


def test_differences_of_rows_have_mean_zero_and_explain_what_noise_hides():
    """Within 5 standard errors of 250 independent draws; with concentrations of twice the size they have another."""
    target, prior = one_row(), np.array([0.3, 0.6])
    points, *_ = sample_posterior(target, np.zeros(3), 500, lambda *_: prior, np.random.default_rng(0), longest=1)
    shares = np.exp([target.potentials(point) for point in points])

    def error(differences):
        return np.abs(differences.mean(axis=0) / differences.std(axis=0)).max() * 250**0.5

    differences = np.array([target.row_differences(point) for point in points])
    np.testing.assert_allclose(differences.sum(axis=1), 0.0, atol=1e-9)
    assert error(differences) < 5
    assert (shares + differences).std(axis=0).max() < 0.7 * shares.std(axis=0).min()
    target.terms = target.terms._replace(prior=np.array([0.3, 1.2]))
    assert error(np.array([target.row_differences(point) for point in points])) > 5


@pytest.mark.parametrize("bends", [np.inf, -1.0])
def test_redrawn_rows_agree_with_quadrature(bends, monkeypatch):
    """Without trajectories: mean and mean square of a share, within 5 standard errors of 1000 independent draws.

    It is found out if rows are drawn from twice their concentrations.
    """
    middles = betaincinv(0.3, 0.6, (np.arange(20_000) + 0.5) / 20_000)
    target = one_row()
    residuals = target.terms.observed - 100 * np.stack([middles, 1 - middles], axis=1)
    loss = np.sqrt(residuals**2 + target.terms.corner) / target.terms.scale
    weights = np.exp(-loss.sum(axis=1))
    mode = np.log([0.7, 0.3, 1.0])
    mode[-1] = 0.0
    hidden = HiddenRows(target.precision_of_rows(mode, target.curvature(mode)))
    both = 2 * 0.7 / target.terms.scale[0] ** 2  # what leaves one cell is in the other
    assert hidden.signal(target, mode) == pytest.approx([100**2 * both])

    def error():
        generator, state, shares = np.random.default_rng(0), State(mode, *target(mode)), []
        for _ in range(2000):
            state = hidden.redraw(target, state, generator, learning=False)
            shares.append(np.exp(target.potentials(state.point))[0])
        drawn, wanted = np.array(shares)[:, None] ** [1, 2], middles[:, None] ** [1, 2]
        means = np.average(wanted, axis=0, weights=weights)
        spread = np.sqrt(np.average((wanted - means) ** 2, axis=0, weights=weights))
        return np.abs((drawn.mean(axis=0) - means) / spread).max() * 1000**0.5

    target.terms = target.terms._replace(bends=np.full(2, bends))
    assert error() < 5
    monkeypatch.setattr("pgmpy_dp.inference.posterior.hamiltonian.log_gamma", lambda prior, g: log_gamma(2 * prior, g))
    assert error() > 5


def parent_and_child():
    """Both of two states, and noisy counts of their table, of 100 records."""
    rows, prior = np.array([0, 0, 1, 2, 1, 2]), np.array([0.5, 0.8, 0.4, 0.6, 0.7, 0.3])
    observed, noise = np.array([35.0, 15.0, 15.0, 35.0]), rounded(np.full(4, 20.0))
    return of_counts([("a",), ("b", "a")], rows, -1.0, prior, 2 + np.arange(4), observed, *noise)


def test_redraws_go_back_as_often_as_there(monkeypatch):
    """A child's row is drawn where it has few records; its parent's row, drawn with it, may give it many.

    From 4000 independent draws of the posterior as many go from few records to many as go back, within 5 standard
    errors. It is found out if it is left out of account that with many the child's row would not have been chosen.
    """
    target, generator = parent_and_child(), np.random.default_rng(0)
    cuts = (np.arange(60) + 0.5) / 60
    axes = betaincinv(target.terms.prior[[0, 2, 3]], target.terms.prior[[1, 4, 5]], cuts[:, None]).T
    parent, child, other = (axis.ravel() for axis in np.meshgrid(*axes, indexing="ij"))
    tables = np.stack([parent * child, (1 - parent) * other, parent * (1 - child), (1 - parent) * (1 - other)], axis=1)
    residuals = target.terms.observed - 100 * tables
    weights = np.exp(-(np.sqrt(residuals**2 + target.terms.corner) / target.terms.scale).sum(axis=1))
    drawn = generator.choice(weights.size, 4000, p=weights / weights.sum())
    shares = np.stack([parent, 1 - parent, child, other, 1 - child, 1 - other], axis=1)[drawn]
    hidden = HiddenRows(np.array([0.0, 8 / 50**2, 0.0]))  # it has few if it has less than 50

    def error():
        changes = []
        for own in shares:
            point = np.append(bend(np.log(own), target.terms.bends), 0.0)
            state = hidden.redraw(target, State(point, *target(point)), generator, learning=False)
            few = [target.row_counts(each)[1] < 50 for each in (point, state.point)]
            if state.point[2] != point[2]:
                changes.append(int(few[0]) - int(few[1]))
        return abs(sum(changes)) / np.count_nonzero(changes) ** 0.5

    assert error() < 5
    monkeypatch.setattr("pgmpy_dp.inference.posterior.hamiltonian._log_chance", lambda chosen, chances: 0.0)
    assert error() > 5


def chain(prior, scale, longest=2):
    """40 draws from a chain of one trajectory each, with Dirichlet rows of such a concentration."""
    target = density(ROWS, True, 0.0, scale=scale)
    concentrations = np.full(target.free, prior)
    target.terms = target.terms._replace(prior=concentrations)
    start = np.zeros(target.size)
    generator = np.random.default_rng(0)
    return sample_posterior(target, start, 40, lambda *_: concentrations, generator, 50, thinning=1, longest=longest)


def test_a_chain_that_mixes_slowly_says_so():
    """Rows with one cell next to 1, of which noise hides not all: from one cell to another they take long."""
    points, priors, poor = chain(0.05, 200)
    assert "effective draws" in poor
    assert points.shape[0] == priors.shape[0] == 80  # as long as it may become
    assert not chain(10.0, 1e6)[2]


def test_a_chain_is_run_on_while_means_are_uncertain():
    assert [len(chain(0.05, 200, longest)[0]) for longest in (1, 2, 8)] == [40, 80, 320]
    assert len(chain(10.0, 1e6, 8)[0]) < 320


def drawn_rows(count, copies=1):
    """A density, and points with independent rows, `copies` of each."""
    target = density(ROWS, True, 0.0)
    return target, np.repeat(np.random.default_rng(4).normal(size=(count, target.size)), copies, axis=0)


def test_errors_of_means_add_one_over_the_number_of_effective_draws():
    for copies in (1, 10):
        assert "add 2%" in mean_network(*drawn_rows(50, copies), whole=False)
        assert not mean_network(*drawn_rows(200, copies), whole=False)
        assert not mean_network(*drawn_rows(50, copies), whole=True)
    assert mean_network(*drawn_rows(12, 20), whole=True)


def test_rows_that_are_hardly_ever_used_do_not_count_for_the_mean_network():
    """Half of the chain is stuck in the rows of c given the second state of a, which 1 in 3,000 or nearly all have."""
    target, points = drawn_rows(1000)
    points[:500, 14 - 3 + np.array([0, 1, 2])], points[:500, 14 + 3 + np.array([0, 1, 2])] = 3.0, -3.0
    for sign, poor in ((4.0, False), (-4.0, True)):
        points[:, :2] = sign, -sign
        assert "the mean of one probability has a standard error" in each_mean(target, points, whole=True)
        assert bool(mean_network(target, points, whole=True)) == poor


@pytest.mark.parametrize("size", [3, 40, 400])
def test_the_stiffest_directions_are_alike_in_every_run(size):
    """The vector of ones is an eigenvector, and most eigenvalues are 1: each run once went on from noise of its own."""
    steep = np.linalg.qr(np.random.default_rng(1).standard_normal((size, min(size, 6))))[0]
    matrix = np.eye(size) + (steep * np.geomspace(100, 2, steep.shape[1])) @ steep.T + 3.0 / size
    values, vectors = _largest(lambda vector: matrix @ vector, size)
    wanted = np.linalg.eigvalsh(matrix)[-len(values) :]
    steep = wanted > 4
    assert values[steep] == pytest.approx(wanted[steep], rel=1e-2)
    assert np.abs(matrix @ vectors - vectors * values)[:, steep].max() < 0.1
    assert (_largest(lambda vector: matrix @ vector, size)[1] == vectors).all()


def test_steps_are_adapted_by_dual_averaging():
    """As Hoffman and Gelman (2014) write it: by the mean of how far acceptance is from what it should be."""
    step, accepted = _StepSize(0.5), np.array([0.1, 0.9, 0.4, 0.8, 1.0, 0.7])
    logarithms, weights = [], np.arange(1, 7.0) ** -0.75
    for number, share in enumerate(accepted, 1):
        step.learn(share)
        excess = (_ACCEPTANCE - accepted[:number]).sum() / (number + 10)
        logarithms.append(np.log(1.0) - np.sqrt(number) / 0.05 * excess)
        assert step.current == pytest.approx(np.exp(logarithms[-1]))
    mean = np.log(0.5)
    for weight, logarithm in zip(weights, logarithms, strict=True):
        mean = weight * logarithm + (1 - weight) * mean
    assert step.settled == pytest.approx(np.exp(mean))


def test_nothing_is_learned_once_draws_are_kept(monkeypatch):
    """A chain whose moves go on learning from its draws has another law."""
    learning, redraw = [], HiddenRows.redraw
    monkeypatch.setattr(HiddenRows, "redraw", lambda *given, **how: learning.append(how) or redraw(*given, **how))
    sample_posterior(
        one_row(), np.zeros(3), 20, lambda *_: np.array([0.3, 0.6]), np.random.default_rng(0), 30, longest=1
    )
    flags = [how["learning"] for how in learning]
    assert flags == [True] * 20 + [False] * (len(flags) - 20)
    assert len(flags) > 30


PRIOR = np.array([0.5, 2.0, 1.5, 0.7])
LIKELIHOOD = -np.array([0.3, -0.2, 0.1, 0.4, 5.0])  # the slope of the log likelihood; the last is no cell
UNIFORM = np.array([0.2, 0.9])


class Density:
    """Prior times likelihood: Dirichlet rows whose sums are far away, or normal log-potentials."""

    def __init__(self, rows):
        self.free, self.terms = 4, SimpleNamespace(rows=np.array(rows, dtype=np.int64), prior=PRIOR)

    def values(self, point):
        return point[: self.free], np.ones(self.free)

    def __call__(self, point):
        cells = point[: self.free]
        prior = PRIOR @ cells if self.terms.rows.size else -0.5 * PRIOR @ cells**2
        return float(prior + LIKELIHOOD @ point), 2 * point


class Given:
    """A generator whose uniform numbers are given: of the draws, then of what decides."""

    def __init__(self, decides):
        self.decides = decides

    def random(self, size=None):
        return self.decides if size is None else UNIFORM[:size]


@pytest.mark.parametrize("rows", [[], [0, 0, 1, 1]], ids=["free", "rows"])
def test_a_tail_is_drawn_from_its_prior_and_taken_as_the_likelihood_says(rows):
    density, edges = Density(rows), np.array([-1.0, 3.0, -1.5, -9.0])
    point = np.array([-4.0, 2.0, -3.0, 0.5, 7.0])
    tail = [0, 2] if rows else [0, 1]  # in rows the second is the largest of its own, which is in no tail
    if not rows:
        point[2] = -1.0
    below = edges[tail]
    moved = redraw_tails(density, point, edges, Given(1 - 2**-53)).point  # always taken
    if rows:
        below = np.minimum(below, np.array([2.0, 0.5]) + math.log(TAIL))
        shares = np.exp(PRIOR[tail] * (moved[tail] - below))
    else:
        spread = np.sqrt(PRIOR[tail])
        shares = norm.cdf(moved[tail] * spread) / norm.cdf(below * spread)
    np.testing.assert_allclose(shares, 1 - UNIFORM, rtol=1e-9)
    others = np.setdiff1d(np.arange(5), tail)
    np.testing.assert_array_equal(moved[others], point[others])
    chance = math.exp(LIKELIHOOD @ (moved - point))
    assert 0.01 < chance < 0.99
    for decides, reached in ((1 - 0.999 * chance, moved), (1 - 1.001 * chance, point)):
        state = redraw_tails(density, point, edges, Given(decides))
        value, gradient = density(reached)
        np.testing.assert_array_equal(state.point, reached)
        assert state.value == value
        np.testing.assert_array_equal(state.gradient, gradient)


FAMILY = Rows(Layout.of({"parents": 4, "node": 2}, [("node", "parents")]))
LOGS = FAMILY.normalise(np.log([0.7, 0.9, 0.99, 0.8, 0.3, 0.1, 0.01, 0.2]))


def posterior():
    """Means and standard deviations of the concentrations' logarithms, by a grid of them, their centre and variance."""
    logs, centre = np.linspace(np.log(0.02), np.log(10.0), 81), np.linspace(-4.0, 3.0, 71)
    variance = np.geomspace(0.01, 20.0, 61)
    # Inverse gamma with weight 2 and 0.1, a density of the logarithm; the centre is normal about log(0.5).
    believed = -np.log(variance) - 0.1 / variance + 0 * centre[:, None] - 0.5 * (centre[:, None] - np.log(0.5)) ** 2
    normal = np.exp(-((logs[:, None, None] - centre[:, None]) ** 2) / (2 * variance)) / np.sqrt(variance)
    together = np.einsum("acv,bcv,cv->ab", normal, normal, np.exp(believed))
    first, second = np.exp(logs)[:, None], np.exp(logs)
    sums = LOGS.reshape(2, 4).sum(axis=1)
    rows = 4 * (gammaln(first + second) - gammaln(first) - gammaln(second)) + sums[0] * first + sums[1] * second
    weights = together * np.exp(rows)
    shares = [weights.sum(axis=1 - axis) / weights.sum() for axis in range(2)]
    means = np.array([share @ logs for share in shares])
    return means, np.sqrt(np.array([share @ logs**2 for share in shares]) - means**2)


def test_concentrations_given_their_rows():
    """4000 draws, whose means lie within 6 standard errors of 100 independent ones, as their deviations.

    A failure in a million if every 40th draw is independent; a draw is worth a fourteenth of an independent one.
    """
    prior, generator = Concentrations(FAMILY), np.random.default_rng(0)
    drawn = []
    for number in range(4000):
        shapes = prior.renew(LOGS + number % 3, generator)  # whatever the sums of the rows
        drawn.append(np.log(shapes[[0, 4]]))
    means, deviations = posterior()
    assert np.mean(drawn, axis=0) == pytest.approx(means, abs=6 * deviations.max() / 100**0.5)
    assert np.std(drawn, axis=0) == pytest.approx(deviations, rel=6 / 200**0.5)


GRID = Rows(Layout.of({"rare": 2, "other": 2, "node": 2}, [("node", "rare", "other")]))


def believed(generator):
    """Draw concentrations of the grid's 8 cells from their prior, by rejection of those out of range."""
    while True:
        centre = np.log(0.5) + generator.standard_normal()
        variance, *variances = 0.1 / generator.gamma(1.0, size=5)
        bases = centre + np.sqrt(variance) * generator.standard_normal(2)
        rare, other = np.sqrt(np.reshape(variances, (2, 2, 1))) * generator.standard_normal((2, 2, 2))
        logs = bases[:, None, None] + rare.T[:, :, None] + other.T[:, None, :]
        drawn = np.exp(logs).ravel()
        if ((drawn > 0.02) & (drawn < 10.0)).all():
            return drawn


def test_concentrations_with_effects_of_parents_keep_their_prior():
    """Rows drawn from their concentrations, and these given the rows, in turn: both keep the prior (Geweke 2004).

    Shares of 12,000 draws below quantiles of the prior, within 6 standard errors of 400 independent draws: a failure
    in a million if every 30th draw is independent.
    """
    generator, prior = np.random.default_rng(1), Concentrations(GRID)
    shapes, found = prior.first, []
    for _ in range(12_000):
        rows = np.empty(8)
        for row in range(4):
            rows[GRID.numbers == row] = np.log(np.maximum(generator.dirichlet(shapes[GRID.numbers == row]), 1e-300))
        shapes = prior.renew(rows, generator)
        found.append(shapes)
    exact = np.array([believed(generator) for _ in range(4000)])
    for statistic in (lambda c: np.log(c[:, 0]), lambda c: np.log(c[:, 0] * c[:, 7] / c[:, 1] / c[:, 6])):
        levels = np.quantile(statistic(exact), [0.1, 0.5, 0.9])
        shares = (statistic(np.array(found))[:, None] < levels).mean(axis=0)
        assert shares == pytest.approx([0.1, 0.5, 0.9], abs=6 * 0.5 / 400**0.5)


def test_exponentials_are_the_librarys():
    generator = np.random.default_rng(0)
    exponents = np.concatenate([MIN * generator.random(10_000), -generator.random(10_000), -1e-9 * np.arange(9), [MIN]])
    found = np.empty_like(exponents)
    exponentials(exponents.copy(), found, found.view(np.int64))
    np.testing.assert_allclose(found, np.exp(exponents), rtol=1e-15)


def test_logarithms_are_the_librarys():
    generator = np.random.default_rng(0)
    numbers = np.concatenate([generator.random(10_000), 10.0 ** (-300 * generator.random(10_000)), [0.0, 1.0]])
    np.testing.assert_allclose([log1p(number) for number in numbers], np.log1p(numbers), rtol=5e-16)
