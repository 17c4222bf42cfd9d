"""The site's notebooks run from top to bottom, and progress shows in one."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

nbformat = pytest.importorskip("nbformat", reason="the extra docs is not installed")
nbclient = pytest.importorskip("nbclient", reason="the extra docs is not installed")
pytest.importorskip("ipykernel", reason="the extra docs is not installed")

pytestmark = pytest.mark.e2e
NOTEBOOKS = sorted((ROOT / "scripts" / "documenting" / "notebooks").glob("*.ipynb"))


def executed(notebook: Any, folder: Path) -> Any:
    client = nbclient.NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute()


def outputs_of(notebook: Any) -> list[Any]:
    return [it for cell in notebook.cells for it in cell.get("outputs", [])]


def test_there_are_five() -> None:
    assert len(NOTEBOOKS) == 5


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_was_kept_executed(path: Path, tmp_path: Path) -> None:
    kept = nbformat.read(path, as_version=4)
    shown = [cell for cell in kept.cells if cell.get("outputs")]
    assert all(it.output_type != "error" for it in outputs_of(kept))
    fresh = executed(nbformat.from_dict(kept), tmp_path)
    again = [cell for cell in fresh.cells if cell.get("outputs")]
    assert [cell.source for cell in again] == [cell.source for cell in shown]
    texts = [it.text for it in outputs_of(fresh) if it.output_type == "stream"]
    assert "warning" not in "".join(texts).lower()


def test_notebooks_hold_no_path_of_a_machine() -> None:
    for path in NOTEBOOKS:
        assert "/tmp" not in path.read_text(), path
        assert str(Path.home()) not in path.read_text(), path


TRAINING = """
import graphsys as gs
facts = {"src": list(range(50)), "dst": [(k + 1) % 50 for k in range(50)]}
graph = gs.ingest(facts, "graph").graph
from graphsys.core import progress
progress._FIRST_S = 0.0  # however fast the machine is
config = gs.embedding.EmbeddingConfig(dim=8, epochs=3)
gs.embedding.train(graph, config, "run")
"""


def test_a_training_shows_its_progress_and_its_report(tmp_path: Path) -> None:
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(TRAINING)])
    (cell,) = executed(made, tmp_path).cells
    html = [
        it.data["text/html"] for it in cell.outputs if "text/html" in it.get("data", {})
    ]
    assert any("<small>epoch 3" in it and "loss" in it for it in html)
    assert any("<caption>run</caption>" in it for it in html)


def test_nothing_is_shown_without_a_notebook(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", TRAINING],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert done.stdout == ""
    assert "epoch" not in done.stderr
