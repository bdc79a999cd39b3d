"""Private data behind the wall: the only part of the package that sees records."""

from pgmpy_dp.data.dataset import PrivateDataset
from pgmpy_dp.data.documents import PrivateDocuments
from pgmpy_dp.data.features import PrivateFeatures
from pgmpy_dp.data.households import PrivateHouseholds
from pgmpy_dp.data.mechanisms.tables import exact_marginals

__all__ = [
    "PrivateDataset",
    "PrivateDocuments",
    "PrivateFeatures",
    "PrivateHouseholds",
    "exact_marginals",
]
