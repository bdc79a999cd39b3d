"""Methods and gradient ascent shared by the comparisons of VIPS with private gradients."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pandas as pd

from experiments.protocol import Settings, settings_in_words
from pgmpy_dp import papers
from pgmpy_dp.inference.tables.table import Vector

METHODS = {
    "published": "VIPS, the paper's plan, moments accountant",
    "strong": "VIPS, the paper's plan, strong composition",
    "plain": "VIPS, the paper's plan, plain composition",
    "sgd": "DP-SGD, Renyi accountant, tuned in hindsight",
}
ACCOUNTING = {"published": "moments", "strong": "strong", "plain": "naive"}


def private_ascent(
    data: Any,
    gradient: Callable[[Vector, Any], Vector],
    start: Vector,
    settings: Settings,
    *,
    epsilon: float,
    delta: float,
    records: int,
) -> Vector:
    """Ascend clipped and noisy gradients; `gradient` maps parameters and records to one row per record."""
    samples: dict[str, Any] = {"steps": settings.steps, "sampling_rate": settings.sampling_rate}
    multiplier = papers.calibrate(epsilon, delta, **samples, accounting="moments")
    plan = data.plan(**samples, epsilon=epsilon, delta=delta, noise_multiplier=multiplier)
    parameters = start
    for _ in range(plan.steps):
        noisy = plan.noisy_sum(partial(gradient, parameters), settings.clip_norm) / (settings.sampling_rate * records)
        parameters = parameters + settings.learning_rate * noisy
    return parameters


def settings_found(rows: pd.DataFrame, first: Settings) -> str:
    """Describe the settings found for private gradients, for a caption."""
    kept = int((rows["sgd_sampling_rate"] == first.sampling_rate).sum())
    rate = f"the first sampling rate, {first.sampling_rate:g}, was kept in {kept} of {len(rows)} trials"
    return f"{settings_in_words(rows)}; {rate}"
