"""From records to a report and synthetic records, by the installed package; and how much memory its engine takes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Compiled code is tried by one calibration. To compile the rest takes a minute, and two variables need it not: below,
# all is interpreted, in one process that imports pgmpy once.
ENGINE = """
import resource
from pgmpy_dp.inference import JunctionTree
print(resource.getrusage(0).ru_maxrss // 1024)
import numpy as np
tree = JunctionTree.build({"a": 2, "b": 2}, [("a", "b")])
assert abs(tree.calibrate(np.log([1.0, 2, 3, 4])).log_partition - np.log(10)) < 1e-9
"""
used = int(subprocess.run([sys.executable, "-c", ENGINE], capture_output=True, text=True, check=True).stdout)
assert used < 200, f"import of pgmpy_dp.inference takes {used} MB"
command = Path(sys.executable).with_name("pgmpy-dp")
version = subprocess.run([str(command), "--version"], capture_output=True, text=True, check=True).stdout

os.environ["NUMBA_DISABLE_JIT"] = "1"
from pgmpy_dp.cli import main  # noqa: E402

with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    Path("records.csv").write_text("smoke,lung\n" + "yes,yes\nyes,no\nno,no\nno,no\n" * 50)
    Path("dictionary.csv").write_text("variable,states\nsmoke,yes|no\nlung,yes|no\n")
    Path("edges.txt").write_text("smoke -> lung\n")
    for arguments in (
        "schema dictionary.csv --out schema.json",
        "ledger create ledger.json --epsilon 2",
        "release records.csv --schema schema.json --model edges.txt --epsilon 1 --ledger ledger.json --out noisy.zip",
        "fit noisy.zip --model edges.txt --out fitted.zip",
        "query fitted.zip --target lung --evidence smoke=yes --interval 0.9",
        "sample fitted.zip --rows 100 --out synthetic.csv",
        "report fitted.zip --out report.html",
    ):
        main(arguments.split(), standalone_mode=False)
    assert len(Path("synthetic.csv").read_text().splitlines()) == 101
    os.chdir("/")

print(f"Python {sys.version.split()[0]}: {version.strip()} works; its engine is imported in {used} MB")
