"""The gate: any source of records becomes indices of public states, record by record. Values are seen only here."""

from pgmpy_dp.records.csv_decoding import CsvFile
from pgmpy_dp.records.gate import Records, open_records
from pgmpy_dp.records.memory import EncodedRecords

__all__ = ["CsvFile", "EncodedRecords", "Records", "open_records"]
