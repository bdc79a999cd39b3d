"""The attack of Mironov (2012) on the lattice of floating-point noise: it tells inputs apart where noise comes from
numpy, and has nothing to hold on to in a release: counts are integers, and all other numbers lie on public grids."""

import math

import numpy as np
import pandas as pd
import pytest

import pgmpy_dp as dp
from pgmpy_dp.evaluation import audit

SCALE = 1.0
DRAWS = 4000


def reachable(value: float, centre: float, scale: float) -> bool:
    """Whether numpy's Laplace sampler about a centre can give this very float, from one of its 2**53 uniforms.

    numpy draws u = k / 2**53 and returns centre + scale log(2 u) below 1/2, centre - scale log(2 - 2 u) above.
    """
    noise = (value - centre) / scale
    share = 0.5 * math.exp(-abs(noise))
    for k in range(round(share * 2.0**53) - 16, round(share * 2.0**53) + 17):
        u = k / 2.0**53
        if noise <= 0 and 0 < u < 0.5 and centre + scale * math.log(u + u) == value:
            return True
        u = (2**53 - k) / 2.0**53
        if noise >= 0 and 0.5 <= u < 1 and centre - scale * math.log(2.0 - u - u) == value:
            return True
    return False


def decided(values, truth: int, other: int) -> tuple[float, float]:
    """Share of outputs from which the attacker is certain, and is right or wrong."""
    verdicts = [(reachable(v, truth, SCALE), reachable(v, other, SCALE)) for v in values]
    return (
        sum(own and not its for own, its in verdicts) / len(verdicts),
        sum(its and not own for own, its in verdicts) / len(verdicts),
    )


def released(count: int, mechanism: str) -> np.ndarray:
    """Noisy counts of cells that all hold this count, as a user gets them."""
    schema = dp.Schema({"v": range(DRAWS)})
    delta = 0.0 if mechanism == "laplace" else 1e-6
    frame = pd.DataFrame({"v": np.repeat(np.arange(DRAWS), count)})
    data = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1 / SCALE, delta))
    return data.measure([("v",)], 1 / SCALE, delta=delta, mechanism=mechanism).tables["v",]


def test_the_attack_tells_inputs_of_numpy_noise_apart_for_certain():
    generator = np.random.default_rng(1)
    for truth, other in ((0, 1), (1, 0)):
        right, wrong = decided(truth + generator.laplace(scale=SCALE, size=DRAWS), truth, other)
        assert right > 0.2
        assert wrong == 0


@pytest.mark.parametrize("mechanism", ["laplace", "gaussian"])
def test_releases_are_integers_and_rule_no_count_out(mechanism):
    """What one count gives often, the other gives too: a false alarm has probability below 1e-7."""
    one, other = released(0, mechanism), released(1, mechanism)
    assert one.dtype == other.dtype == np.int64
    for values, others in ((one, other), (other, one)):
        distinct, times = np.unique(values, return_counts=True)
        assert np.isin(distinct[times >= 60], others).all()


GRIDS = {  # from a release to its numbers, and the grid that they lie on whatever the records are
    "persons of weight one": lambda noisy: (noisy.tables["v", "w"], multiples(2.0**-20)),
    "posterior": lambda drawn: (drawn.draws[0]["w", "v"], simplex(drawn.floors["w", "v"])),
    "exponential": lambda drawn: (drawn.draws[0]["w", "v"], simplex(drawn.floors["w", "v"])),
    "quantiles": lambda bins: (np.array(bins.edges), lambda values: np.isin(values, [0, 1, 2, 3])),
    "coefficients": lambda noisy: (np.concatenate([v.ravel() for v in noisy.values.values()]), multiples(1.0)),
}


def multiples(step):
    return lambda values: np.rint(values / step) * step == values


def simplex(floor):
    """Rows of two probabilities, by the first one's place on the grid."""
    first = floor + (1 - 2 * floor) * np.sin(np.pi * (2 * np.arange(8192) + 1) / (4 * 8192)) ** 2
    grid = np.stack([first, first[::-1]])
    grid = (grid / grid.sum(axis=0)).ravel()
    return lambda values: np.abs(values[..., None] - grid).min(axis=-1) < 1e-15


def test_other_numbers_lie_on_public_grids(mechanism):
    if mechanism.name not in GRIDS:
        pytest.skip("integers, or sums")
    for records in mechanism.neighbours:
        for _ in range(20):
            values, on_grid = GRIDS[mechanism.name](mechanism.call(mechanism.data(records), 0.5))
            assert on_grid(values).all()


@pytest.mark.parametrize("records", [0, 7])
def test_sums_lie_on_a_public_grid(records):
    """Whole multiples of clip_norm over the norm's bound in grid steps, both public."""
    frame = pd.DataFrame({"v": np.zeros(records, int)})
    data = dp.PrivateDataset(frame, dp.Schema({"v": [0, 1]}), dp.PrivacyBudget(2.0, 0.1))
    plan = data.plan(3, epsilon=2.0, delta=0.1, sampling_rate=1.0)
    step = 0.7 / plan._grid(2, 1.0)[0]
    for _ in range(3):
        values = plan.noisy_sum(lambda codes: np.hstack([codes, codes + 1 / 3]), clip_norm=0.7)
        assert (np.rint(values / step) * step == values).all()


def test_an_audit_finds_the_lattice_by_itself():
    generator = np.random.default_rng(1)
    result = audit(lambda count: count + generator.laplace(), (0, 1), 1.0, trials=2000, confidence=1 - 1e-6)
    assert result.epsilon_lower > 2
    assert "lowest binary digit" in result.event
