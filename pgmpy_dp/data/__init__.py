"""The wall: the only part that sees records."""

from pgmpy_dp.data.dataset import PrivateDataset
from pgmpy_dp.data.exact import exact_marginals

__all__ = ["PrivateDataset", "exact_marginals"]
