"""What memory records without a network take, and what the libraries take alone.

    python tests/benchmarks/memory.py FOLDER

FOLDER holds the census records, as for synthesis.py. Each line is a process of its own: one that imports the libraries
and calls a compiled function once, and `pgmpy-dp synthesize` from a CSV file to a CSV file, at epsilon 1. Peak memory
is the resident set, which counts the libraries' code.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from common import options, process
from synthesis import adult

# Kernels are read from the cache on disk, as they are from the second run on.
LIBRARIES = """
import dp_accounting, narwhals, networkx, numpy, opendp.measurements, pandas, sklearn.base, threadpoolctl, tqdm
from pgmpy_dp.inference.mixtures.record_kernel import even_counts
room = numpy.zeros(2)
even_counts(numpy.array([3]), numpy.array([[0.5, 0.5]]), room, numpy.zeros((1, 2), dtype=numpy.int64), room.copy())
"""
COMMAND = "import sys; from pgmpy_dp.cli import main; main(sys.argv[1:], standalone_mode=False)"


def main() -> None:
    """Print a line for the libraries and one for the command."""
    frame, _, schema = adult(options("folder").folder)
    with TemporaryDirectory() as folder:
        records, declared, out = (str(Path(folder, name)) for name in ("records.csv", "schema.json", "synthetic.csv"))
        frame.to_csv(records, index=False)
        schema.save(declared)
        call = ["synthesize", records, "--schema", declared, "--epsilon", "1", "--delta", "1e-9", "--no-ledger"]
        call += ["--out", out, "--force"]
        process("-c", COMMAND, *call)  # fills the cache
        print("                         MB  CPU s")
        for name, code, arguments in (("libraries alone", LIBRARIES, []), ("pgmpy-dp synthesize", COMMAND, call)):
            ended = process("-c", code, *arguments, stderr=None)
            if ended.status:
                raise SystemExit(f"The process ended with status {ended.status}.")
            print(f"{name:20} {ended.megabytes:6.0f} {ended.seconds:6.1f}")


if __name__ == "__main__":
    main()
