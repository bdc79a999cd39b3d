"""Counting 20 pairs of 10 columns from several sources, as ratios to the plainest way, and what memory it takes.

    python tests/benchmarks/sources.py [ROWS]

Wanted at 1e7 rows: frames in memory, once encoded, within 1.5 times numpy's bincount; DuckDB within 1.3 times
hand-written SQL; a Parquet file below 300 MB above what the process holds before.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

import duckdb
import numpy as np
import pyarrow
import pyarrow.parquet
from common import peak_megabytes

import pgmpy_dp as dp
from pgmpy_dp.records import open_records

SIZES = {f"v{i}": states for i, states in enumerate([2, 3, 4, 5, 8, 10, 12, 16, 20, 30])}
SCHEMA = dp.Schema({variable: list(range(states)) for variable, states in SIZES.items()})
PAIRS = list(combinations(SIZES, 2))[::2][:20]


def write(path: Path, rows: int) -> None:
    """Write uniform records, a million at a time."""
    rng = np.random.default_rng(0)
    fields = pyarrow.schema([(variable, pyarrow.int64()) for variable in SIZES])
    with pyarrow.parquet.ParquetWriter(path, fields) as writer:
        for start in range(0, rows, 10**6):
            columns = {v: rng.integers(0, states, min(10**6, rows - start)) for v, states in SIZES.items()}
            writer.write_table(pyarrow.table(columns, schema=fields))


def seconds(*works, repeats: int = 5) -> list[float]:
    """Median times of several pieces of work, taken in turns."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(repeats):
        for work, taken in zip(works, times, strict=True):
            start = time.perf_counter()
            work()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def parquet_in_bounded_memory(path: str) -> None:
    """Check and count a Parquet file, and print what it took beyond an open one of a single row."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "one.parquet", 1)
        open_records(Path(folder) / "one.parquet", SCHEMA, SCHEMA.variables).counts(PAIRS)
    before, start = peak_megabytes(), time.perf_counter()
    records = open_records(path, SCHEMA, SCHEMA.variables)
    checked = time.perf_counter()
    records.counts(PAIRS)
    counted = time.perf_counter()
    print(
        f"Parquet path: {records.size} rows, check {checked - start:.1f} s, count {counted - checked:.1f} s, "
        f"peak memory {peak_megabytes():.0f} MB, {peak_megabytes() - before:.0f} MB above before"
    )


def main(rows: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.parquet"
        write(path, rows)
        subprocess.run([sys.executable, __file__, str(path)], check=True)
        if rows > 2 * 10**7:  # more than fits beside it
            return

        relation = duckdb.from_parquet(str(path))
        relation.to_table("records")
        table = duckdb.table("records")
        lazy = open_records(table, SCHEMA, SCHEMA.variables)
        queries = [f"SELECT {a}, {b}, count(*) FROM records GROUP BY {a}, {b}" for a, b in PAIRS]
        sets = ", ".join(f"({a}, {b})" for a, b in PAIRS)
        in_one = f"SELECT {', '.join(SIZES)}, count(*) FROM records GROUP BY GROUPING SETS ({sets})"
        by_hand, at_once, ours = seconds(
            lambda: [duckdb.sql(query).fetchall() for query in queries],
            lambda: duckdb.sql(in_one).fetchall(),
            lambda: lazy.counts(PAIRS),
        )
        print(
            f"DuckDB table: SQL by hand {by_hand:.2f} s, all grouping sets in one query {at_once:.2f} s, ours "
            f"{ours:.2f} s, ratio to the faster {ours / min(by_hand, at_once):.2f} (1.3 wanted)"
        )
        duckdb.sql("DROP TABLE records")

        frame = pyarrow.parquet.read_table(path).to_pandas()
        start = time.perf_counter()
        eager = open_records(frame, SCHEMA, SCHEMA.variables)
        encoding = time.perf_counter() - start
        columns = {variable: frame[variable].to_numpy() for variable in SIZES}
        del frame

        def bincount() -> None:
            for a, b in PAIRS:
                np.bincount(columns[a] * SIZES[b] + columns[b], minlength=SIZES[a] * SIZES[b])

        plain, ours = seconds(bincount, lambda: eager.counts(PAIRS))
        print(
            f"pandas: encoding once {encoding:.2f} s; plain bincount {plain:.2f} s, ours {ours:.2f} s, "
            f"ratio {ours / plain:.2f} (1.5 wanted)"
        )


if __name__ == "__main__":
    argument = sys.argv[1] if len(sys.argv) > 1 else "1e7"
    if Path(argument).suffix == ".parquet":
        parquet_in_bounded_memory(argument)
    else:
        main(int(float(argument)))
