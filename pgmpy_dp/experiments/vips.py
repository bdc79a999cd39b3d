"""Both comparisons of VIPS with private gradients have these methods, and this ascent."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from pgmpy_dp.experiments import papers
from pgmpy_dp.inference.layout import Vector

METHODS = {
    "published": "VIPS, the paper's plan, moments accountant",
    "plain": "VIPS, the paper's plan, plain composition",
    "sgd": "DP-SGD, Renyi accountant, tuned in hindsight",
}
ACCOUNTING = {"published": "moments", "plain": "naive"}
_PLAN: dict[str, Any] = {"steps": 100, "sampling_rate": 0.05}


def private_ascent(
    data: Any,
    gradient: Callable[[Vector, Any], Vector],
    start: Vector,
    rate: float,
    *,
    epsilon: float,
    delta: float,
    clip: float,
    records: int,
) -> Vector:
    """Follow clipped and noisy gradients, a row a record, given the parameters and the records."""
    multiplier = papers.calibrate(epsilon, delta, **_PLAN, accounting="moments")
    plan = data.plan(**_PLAN, epsilon=epsilon, delta=delta, noise_multiplier=multiplier)
    parameters = start
    for _ in range(plan.steps):
        noisy = plan.noisy_sum(partial(gradient, parameters), clip) / (_PLAN["sampling_rate"] * records)
        parameters = parameters + rate * noisy
    return parameters
