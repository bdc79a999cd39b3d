"""The pages of the documentation: their code runs, their links lead somewhere, and no public name is missing."""

import doctest
import re
import shlex
from operator import attrgetter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

import pgmpy_dp as dp
from pgmpy_dp.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("docs/guides/*.md"))]
EXECUTED = [path for path in PAGES if "\n```python\n" in path.read_text()]
ELSEWHERE = {"https://keepachangelog.com", "https://pgmpy.org"}
COMMANDS = [path for path in PAGES if "\n    pgmpy-dp release" in path.read_text()]


def records():
    generator = np.random.default_rng(0)
    smoke = generator.random(3000) < 0.3
    lung = generator.random(3000) < np.where(smoke, 0.2, 0.03)
    xray = generator.random(3000) < np.where(lung, 0.9, 0.05)
    frame = pd.DataFrame({"smoke": smoke, "lung": lung, "xray": xray})
    return frame.replace({True: "yes", False: "no"})


@pytest.fixture
def prepared(tmp_path, monkeypatch):
    """What pages take for given: a frame, its schema, a network, a ledger, and files of them."""
    monkeypatch.chdir(tmp_path)
    frame = records()
    schema = dp.Schema({"smoke": ["yes", "no"], "lung": ["yes", "no"], "xray": ["yes", "no"]})
    network = dp.PrivateBayesianNetwork([("smoke", "lung"), ("lung", "xray")])
    noisy = dp.PrivateDataset(frame, schema, dp.PrivacyBudget(1.0)).measure([("smoke", "lung"), ("lung", "xray")], 1.0)
    noisy.save("release.zip")
    frame.to_csv("records.csv", index=False)
    lines = "variable,states\nsmoke,yes|no\nlung,yes|no\nxray,yes|no\n"
    (tmp_path / "dictionary.csv").write_text(lines)
    (tmp_path / "edges.txt").write_text("smoke -> lung\nlung -> xray\n")
    visits = frame.assign(person_id=np.arange(len(frame)) // 2)
    return {"dp": dp, "pd": pd, "frame": frame, "schema": schema, "network": network, "noisy": noisy, "visits": visits}


@pytest.mark.parametrize("path", EXECUTED, ids=lambda path: path.stem)
def test_code_runs(path, prepared):
    """Blocks that begin with ```python run one after the other; others, of sources that are not at hand, do not."""
    for block in re.findall(r"\n```python\n(.*?)```", path.read_text(), flags=re.DOTALL):
        exec(compile(block, path.name, "exec"), prepared)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_commands_run(path, prepared):
    """Those of records, release and network; the page's visits are not at hand."""
    Path("release.zip").unlink()
    text = re.sub(r"\\\n\s+", "", path.read_text())
    calls = [line.strip() for line in re.findall(r"\n    (pgmpy-dp .*)", text)]
    for call in calls:
        if any(word in call for word in ("visits", "towns", "demo", "DATA", "fine.json", "--dry-run", "synth")):
            continue
        if "mixture.json" in call or "pairs.zip" in call:
            continue
        result = CliRunner().invoke(main, shlex.split(call)[1:])
        assert result.exit_code == 0, (call, result.output)


BESIDE = [ROOT / f"{name}.md" for name in ("ARCHITECTURE", "CONTRIBUTING", "CHANGELOG")]


@pytest.mark.parametrize("path", [*PAGES, *BESIDE], ids=lambda path: path.stem)
def test_links_lead_somewhere(path):
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
        if link.startswith("http"):
            continue  # see below
        target, _, heading = link.partition("#")
        found = (path.parent / target).resolve() if target else path
        if found.parent.name == "project":  # copied there when the site is built
            found = ROOT / found.name
        if found.parent.name == "tutorials":  # likewise
            found = ROOT / "tutorials" / f"{found.name}.ipynb"
        # Figures are drawn when the site is built: the papers' from the CSVs beside them.
        if found.parent.name == "drawn":
            assert f'"{found.stem}' in (ROOT / "docs" / "drawings.py").read_text(), link
            continue
        assert found.exists() or (found.suffix == ".svg" and found.with_suffix(".csv").exists()), link
        if heading:
            titles = re.findall(r"(?m)^#+ (.*)$", found.read_text())
            assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, link


def test_names_commands_and_files_of_pages_are_there():
    """Those of `from_0_3` have a test of their own."""
    written = {
        path: path.read_text() for path in [*PAGES, *BESIDE[:2], ROOT / "SECURITY.md"] if path.stem != "from_0_3"
    }
    stale = []
    for path, text in written.items():
        for name in re.findall(r"`(dp(?:\.\w+)+)(?![.\w])", text):
            try:
                attrgetter(name.removeprefix("dp."))(dp)
            except AttributeError:
                stale.append((path.name, name))
        stale += [
            (path.name, name) for name in re.findall(r"pgmpy-dp ([a-z][\w-]*)", text) if name not in main.commands
        ]
        for row in text.splitlines():
            folder = ROOT
            for file in re.findall(r"`((?:[a-z_]+/)*test_\w+\.py)`", row):
                folder = (ROOT / file).parent if "/" in file else folder
                stale += [] if (folder / Path(file).name).exists() else [(path.name, file)]
    assert stale == []


def test_links_to_elsewhere_are_known():
    """They are few. No test opens them, for it may have no network: whoever adds one does, and lists it."""
    pages = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "pyproject.toml", ROOT / "CITATION.cff"]
    found = {link for page in pages for link in re.findall(r"https?:[^\s)>\]\"'`]*", page.read_text())}
    assert found <= ELSEWHERE, found - ELSEWHERE


# What papers print otherwise than the library has it, which only experiments and tests use.
AS_PRINTED = {name for name in dp.papers.__all__ if name.startswith(("Printed", "printed_"))}
AS_PRINTED |= {"cgm_em", "compute_parameters", "data_dependent", "independent", "tables_noise"}


def test_every_public_name_has_a_page_with_an_example():
    index = "".join(path.read_text() for path in ROOT.glob("docs/api/*.md"))
    finder = doctest.DocTestFinder()
    public = {name: room for room in (dp, dp.papers) for name in room.__all__}
    missing = {name for name in public if f"\n   {name}\n" not in index}
    plain = {
        name
        for name, room in public.items()
        if name not in AS_PRINTED
        and not any(part.examples for part in finder.find(getattr(room, name), name, module=False))
    }
    assert (missing, plain) == (set(), set())
