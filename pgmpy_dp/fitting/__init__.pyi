"""The names of the room, read by lazy_loader and by type checkers."""

from .plans.accuracy import AccuracyPlan, plan_accuracy
from .plans.allocation import DataDependentAllocation, PlannedAllocation, SizeAllocation, UniformAllocation
from .plans.pairs import plan_households, plan_pairs
from .plans.planning import merge_rare_states, plan_measurements

__all__ = [
    "AccuracyPlan",
    "DataDependentAllocation",
    "PlannedAllocation",
    "SizeAllocation",
    "UniformAllocation",
    "merge_rare_states",
    "plan_accuracy",
    "plan_households",
    "plan_measurements",
    "plan_pairs",
]
