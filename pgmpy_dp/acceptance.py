"""Criteria by which synthetic records are held against private ones, for `PrivateDataset.check` and `retry`."""

from pgmpy_dp.data.mechanisms.acceptance import CheckedRecords, LargestError, PredictionError, UniqueMatches

__all__ = ["CheckedRecords", "LargestError", "PredictionError", "UniqueMatches"]
