"""The gate turns any source of records into positions of public states, record by record. Only here are values seen."""

from pgmpy_dp.records.csv_file import CsvFile
from pgmpy_dp.records.gate import Records, open_records
from pgmpy_dp.records.memory import EncodedRecords

__all__ = ["CsvFile", "EncodedRecords", "Records", "open_records"]
