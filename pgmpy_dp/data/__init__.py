"""Private data behind the wall: the only part of the package that sees records."""

from pgmpy_dp.data.dataset import PrivateDataset
from pgmpy_dp.data.documents import PrivateDocuments
from pgmpy_dp.data.exact import exact_marginals
from pgmpy_dp.data.features import PrivateFeatures
from pgmpy_dp.data.households import PrivateHouseholds

__all__ = [
    "PrivateDataset",
    "PrivateDocuments",
    "PrivateFeatures",
    "PrivateHouseholds",
    "exact_marginals",
]
