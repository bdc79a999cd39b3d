"""The names of the room, read by lazy_loader and by type checkers."""

from .accuracy import AccuracyPlan, plan_accuracy
from .allocation import DataDependentAllocation, PlannedAllocation, SizeAllocation, UniformAllocation
from .laskey import laskey_sensitivities
from .merging import merge_rare_states
from .pairs import plan_households, plan_pairs
from .planning import plan_measurements

__all__ = [
    "AccuracyPlan",
    "DataDependentAllocation",
    "PlannedAllocation",
    "SizeAllocation",
    "UniformAllocation",
    "laskey_sensitivities",
    "merge_rare_states",
    "plan_accuracy",
    "plan_households",
    "plan_measurements",
    "plan_pairs",
]
