"""From records to a report and synthetic records, by the installed package; and how much memory its engine takes."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

USED = "import resource, sys, pgmpy_dp.inference as i; i.JunctionTree; print(resource.getrusage(0).ru_maxrss // 1024)"
used = int(subprocess.run([sys.executable, "-c", USED], capture_output=True, text=True, check=True).stdout)
assert used < 200, f"import of pgmpy_dp.inference takes {used} MB"

command = Path(sys.executable).with_name("pgmpy-dp")
records = "smoke,lung\n" + "yes,yes\nyes,no\nno,no\nno,no\n" * 500
RELEASE = "release records.csv --schema schema.json --model edges.txt --epsilon 1"
# One fit tries what is compiled. To compile the rest takes a minute; for two variables it may be interpreted.
interpreted = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    Path("records.csv").write_text(records)
    Path("dictionary.csv").write_text("variable,states\nsmoke,yes|no\nlung,yes|no\n")
    Path("edges.txt").write_text("smoke -> lung\n")
    for arguments, environment in (
        ("schema dictionary.csv --out schema.json", interpreted),
        ("ledger create ledger.json --epsilon 2", interpreted),
        (f"{RELEASE} --ledger ledger.json --out noisy.zip", interpreted),
        ("fit noisy.zip --model edges.txt --estimator collective-em --out fitted.zip", os.environ),
        ("query fitted.zip --target lung --evidence smoke=yes --interval 0.9", interpreted),
        ("sample fitted.zip --rows 100 --out synthetic.csv", interpreted),
        ("report fitted.zip --out report.html", interpreted),
    ):
        subprocess.run([str(command), *arguments.split()], check=True, stdout=subprocess.DEVNULL, env=environment)
    assert len(Path("synthetic.csv").read_text().splitlines()) == 101
    os.chdir("/")

import pgmpy_dp  # noqa: E402

print(f"Python {sys.version.split()[0]}: {pgmpy_dp.__version__} works; its engine is imported in {used} MB")
