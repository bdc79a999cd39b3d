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
with tempfile.TemporaryDirectory() as folder:
    os.chdir(folder)
    Path("records.csv").write_text(records)
    Path("dictionary.csv").write_text("variable,states\nsmoke,yes|no\nlung,yes|no\n")
    Path("edges.txt").write_text("smoke -> lung\n")
    for arguments in (
        "schema dictionary.csv --out schema.json",
        "ledger create ledger.json --epsilon 2",
        "release records.csv --schema schema.json --model edges.txt --epsilon 1 --ledger ledger.json --out release.zip",
        "fit release.zip --model edges.txt --out fitted.bif",
        "query fitted.bif --target lung --evidence smoke=yes --interval 0.9 --release release.zip",
        "sample fitted.bif --rows 100 --out synthetic.csv",
        "report release.zip --model fitted.bif --out report.html",
    ):
        subprocess.run([str(command), *arguments.split()], check=True, stdout=subprocess.DEVNULL)
    assert len(Path("synthetic.csv").read_text().splitlines()) == 101
    os.chdir("/")

import pgmpy_dp  # noqa: E402

print(f"Python {sys.version.split()[0]}: {pgmpy_dp.__version__} works; its engine is imported in {used} MB")
