"""Pictures of the benchmarks, drawn from the kept tables whenever the site is built."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests" / "benchmarks"))

# A file: the section of the page, the number of its table, how many first columns name a row, the columns that are
# drawn, the label of the axis, and its scale. Numbers in brackets are drawn as empty circles.
TABLES = {
    "peers": ("How accurate, how fast?", 1, 1, slice(1, None), "how many times as much mbi takes", "log"),
    "misfit": ("Is a wrong network found?", 0, 1, slice(1, None), "rejected, % (empty: of right networks)", "linear"),
    "real_bounds": ("Bounds: real records", 0, 2, slice(2, 3), "% (empty: edges taken for right)", "linear"),
    "made_bounds": ("Bounds: records that a network made", 0, 1, slice(1, 4), "% (empty: of the records)", "linear"),
    "pairs": ("Records without a network", 0, 1, slice(1, None), "mean total variation", "log"),
    "households": ("Persons in households", 0, 1, slice(1, None), "mean total variation (empty: largest)", "log"),
    "public": ("Tables published elsewhere", 0, 1, slice(1, None), "mean total variation", "log"),
}


def table_of(text: str, section: str, number: int) -> list[list[str]]:
    """Return the cells of a table of a section, its header first."""
    own = text.split(f"\n## {section}", 1)[1].split("\n## ")[0]
    found = re.findall(r"(?:^\|.*\n)+", own, re.MULTILINE)[number].splitlines()
    rows = [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in found]
    return [rows[0], *rows[2:]]


def numbers(cell: str) -> list[float]:
    """Return the numbers of a cell, the one in brackets last."""
    return [float(text.replace("−", "-")) for text in re.findall(r"[−-]?\d*\.?\d+", cell)]


def draw_table(text: str, target: Path) -> None:
    """Draw a table of the page: a line of circles for each row."""
    section, number, named, columns, label, scale = TABLES[target.stem]
    head, *rows = table_of(text, section, number)
    page = Figure(figsize=(8.5, 1.3 + 0.26 * len(rows)), layout="constrained")
    axes = page.subplots()
    for place, column in enumerate(range(len(head))[columns]):
        points = [(numbers(row[column]), at) for at, row in enumerate(rows) if column < len(row) and row[column]]
        for first, filled in ((0, f"C{place}"), (1, "none")):
            kept = [(values[first], at) for values, at in points if len(values) > first]
            if kept:
                axes.scatter(
                    *zip(*kept, strict=True),
                    edgecolors=f"C{place}",
                    facecolors=filled,
                    label=head[column] if not first else None,
                )
    axes.set(xscale=scale, xlabel=label, yticks=range(len(rows)), ylim=(len(rows) - 0.4, -0.6), ylabel=head[0])
    axes.set_yticklabels([", ε = ".join(row[:named]) if named > 1 else row[0] for row in rows])
    axes.grid(axis="y", alpha=0.4)
    if len(range(len(head))[columns]) > 1:
        page.legend(loc="outside lower center", ncols=3, frameon=False)
    page.savefig(target, metadata={"Date": None})


def draw_all() -> None:
    """Draw every picture that is missing or older than what it is drawn from."""
    import demonstration
    import directed_accuracy
    import holders
    import numbers_in_bins
    import outlook
    import sharp
    import structure
    import synthesizers
    import synthetic_inference

    kept, drawn, page = HERE / "pictures", HERE / "drawn", HERE / "benchmarks.md"
    drawn.mkdir(exist_ok=True)
    demonstration.draw(pd.read_csv(kept / "demonstration.csv"), drawn / "demonstration.svg")
    structure.figure(kept / "structure.csv", drawn / "structure.svg")
    numbers_in_bins.draw(pd.read_csv(kept / "numbers.csv"), drawn / "numbers.svg")
    holders.figure(kept / "holders.csv", drawn / "holders.svg")
    sharp.draw(pd.read_csv(kept / "sharp.csv"), drawn / "sharp.svg")
    outlook.draw(pd.read_csv(kept / "outlook.csv"), drawn / "outlook.svg")
    estimators = pd.read_csv(kept / "estimators.csv")
    directed_accuracy.draw_estimators(estimators, drawn / "estimators.svg")
    directed_accuracy.draw_allocations(estimators, drawn / "allocations.svg")
    synthesizers.draw(pd.read_csv(kept / "synthesizers.csv"), drawn / "synthesizers.svg")
    synthetic_inference.draw(pd.read_csv(kept / "regressions.csv"), drawn / "regressions.svg")
    for name in TABLES:
        draw_table(page.read_text("utf-8"), drawn / f"{name}.svg")
