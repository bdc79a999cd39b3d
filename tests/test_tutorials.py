"""The tutorials run from beginning to end."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).resolve().parents[1] / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def outputs(notebook, kind):
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output for cell in cells for output in cell.outputs if output.output_type == kind]


def read(path):
    return nbformat.read(path, as_version=4)


def test_tutorials_are_there():
    numbers = [int(path.stem.split("_")[0]) for path in NOTEBOOKS]
    assert len(numbers) == len(set(numbers)) >= 11


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_tutorial_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    work = tmp_path / "work"
    work.mkdir()
    notebook = read(path)
    client = NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(work)}})
    client.execute()  # raises CellExecutionError, with the traceback
    assert outputs(notebook, "error") == []
    assert list(work.iterdir()) == []  # leaves no files where it was started


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_presentable(path):
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))  # run once, in order
    assert outputs(notebook, "error") == []
    assert [output.text for output in outputs(notebook, "stream") if output.name == "stderr"] == []
    assert any("image/png" in output.data for output in outputs(notebook, "execute_result"))
    assert not any(cell.metadata for cell in notebook.cells)
