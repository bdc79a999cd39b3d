"""The documentation site: `sphinx-build -W -b html docs docs/_build`."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pandas as pd

import pgmpy_dp

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.path.append(str(HERE.parent))
from drawings import draw_all  # noqa: E402

from experiments.catalogue import load  # noqa: E402

draw_all()
# Files of the project and the tutorials are pages too; Sphinx reads what lies in its own folder.
for folder, names in (
    ("project", ["ARCHITECTURE.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md"]),
    ("tutorials", sorted(path.name for path in (HERE.parent / "tutorials").glob("*.ipynb"))),
):
    (HERE / folder).mkdir(exist_ok=True)
    for stale in (HERE / folder).iterdir():
        if stale.name not in names:
            stale.unlink()
    for name in names:
        source = HERE.parent / (name if folder == "project" else f"tutorials/{name}")
        target = HERE / folder / name
        content = source.read_bytes().replace(b"(../SECURITY.md)", b"(../project/SECURITY.md)")
        content = content.replace(b"](docs/", b"](../") if folder == "project" else content
        if not target.exists() or target.read_bytes() != content:
            target.write_bytes(content)

# The page on the landing page answers about the demonstration's records, which are public; the release is a new one.
live = HERE / "live" / "explore.html"
if not live.exists():
    from pgmpy_dp import demo

    live.parent.mkdir(exist_ok=True)
    network = pgmpy_dp.PrivateBayesianNetwork(demo.EDGES)
    records = pgmpy_dp.PrivateDataset(demo.first_years(demo.load_records()), demo.SCHEMA, pgmpy_dp.PrivacyBudget(1.0))
    cliques, weights = pgmpy_dp.plan_measurements(network, demo.SCHEMA, check=0.15)
    network.fit(records.measure(cliques, 1.0, weights=weights)).explore(live, title=demo.TITLE)

for kept in (HERE / "experiments").glob("*.csv"):  # the papers' figures are drawn from the kept results
    load(kept.stem).figure(pd.read_csv(kept)).savefig(kept.with_suffix(".svg"), metadata={"Date": None})

project = "pgmpy_dp"
copyright = "the contributors of pgmpy_dp"
version = release = pgmpy_dp.__version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx_design",
]
exclude_patterns = ["_build", "jupyter_execute", "README.md", "templates", "live"]
templates_path = ["templates"]
html_extra_path = ["live"]
html_theme = "pydata_sphinx_theme"
html_title = "pgmpy_dp"
html_theme_options = {"show_prev_next": False, "navigation_with_keys": False, "header_links_before_dropdown": 6}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_sidebars = {"index": []}
html_show_sourcelink = False
myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "off"  # tests run the tutorials; their stored outputs are shown
default_role = "py:obj"
autosummary_generate = True
toc_object_entries_show_parents = "hide"
autodoc_typehints = "none"  # numpydoc sections have them
autodoc_inherit_docstrings = False
numpydoc_show_class_members = False


def setup(app: Any) -> None:
    """Docstrings are plain text, in which a bar is the size of something, and no substitution."""
    app.connect("autodoc-process-docstring", _bars)
    app.connect("autodoc-skip-member", _skip)


def _skip(app: Any, what: str, name: str, held: Any, skip: bool, options: Any) -> bool:
    """Leave out what is inherited from other packages: their own pages have it."""
    function = getattr(held, "fget", None) or getattr(held, "func", None) or held
    foreign = not (getattr(function, "__module__", None) or "pgmpy_dp").startswith("pgmpy_dp")
    return skip or name.endswith("_request") or (what == "class" and foreign)


def _bars(app: Any, what: str, name: str, held: Any, options: Any, lines: list[str]) -> None:
    for place, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`+[^`]*`+)", line)
            lines[place] = "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in parts)
