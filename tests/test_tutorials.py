"""The tutorials run from beginning to end."""

from pathlib import Path

import nbformat
import pytest
from jupyter_client import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.util import run_sync

FOLDER = Path(__file__).resolve().parents[1] / "tutorials"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


def outputs(notebook, kind):
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    return [output for cell in cells for output in cell.outputs if output.output_type == kind]


def read(path):
    return nbformat.read(path, as_version=4)


def test_tutorials_are_there():
    assert sorted(int(path.stem.split("_")[0]) for path in NOTEBOOKS) == list(range(1, len(NOTEBOOKS) + 1))


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """One for all: imports take longer than most tutorials."""
    folder = tmp_path_factory.mktemp("kernel")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("IPYTHONDIR", str(folder / "ipython"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(folder / "runtime"))
        manager = AsyncKernelManager(kernel_name="python3")
        run_sync(manager.start_kernel)()
        yield manager
        run_sync(manager.shutdown_kernel)(now=True)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_tutorial_runs(path, tmp_path, kernel):
    work = tmp_path / "work"
    work.mkdir()
    notebook = read(path)
    afresh = f"%reset -f\n%cd -q {work}\nimport sys; sys.path.append({str(FOLDER.parent)!r})"  # no name is left
    afresh = nbformat.v4.new_code_cell(afresh)
    client = NotebookClient(nbformat.v4.new_notebook(cells=[afresh, *notebook.cells]), km=kernel, timeout=300)
    client.execute(cleanup_kc=False)  # raises CellExecutionError, with the traceback
    client.kc.stop_channels()
    assert outputs(notebook, "error") == []
    assert list(work.iterdir()) == []  # leaves no files where it was started


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_stored_outputs_are_presentable(path):
    notebook = read(path)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))  # run once, in order
    assert outputs(notebook, "error") == []
    assert [output.text for output in outputs(notebook, "stream") if output.name == "stderr"] == []
    shown = outputs(notebook, "execute_result") + outputs(notebook, "display_data")
    assert any("image/png" in output.data for output in shown)
    assert not any(cell.metadata for cell in notebook.cells)
