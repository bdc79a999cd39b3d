"""The names of the room, read by lazy_loader and by type checkers."""

from .plans.accuracy import AccuracyPlan as AccuracyPlan
from .plans.accuracy import plan_accuracy as plan_accuracy
from .plans.allocation import DataDependentAllocation as DataDependentAllocation
from .plans.allocation import PlannedAllocation as PlannedAllocation
from .plans.allocation import SizeAllocation as SizeAllocation
from .plans.allocation import UniformAllocation as UniformAllocation
from .plans.pairs import plan_households as plan_households
from .plans.pairs import plan_pairs as plan_pairs
from .plans.planning import merge_rare_states as merge_rare_states
from .plans.planning import plan_measurements as plan_measurements
