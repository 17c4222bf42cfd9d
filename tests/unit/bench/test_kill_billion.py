"""The judge of scripts/kill_billion: it tells other results and changed inputs."""

import importlib.machinery
import importlib.util
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    monkeypatch.setenv("PYTHONPATH", "")
    path = ROOT / "scripts" / "kill_billion"
    loader = importlib.machinery.SourceFileLoader("kill_billion", str(path))
    spec = importlib.util.spec_from_loader(loader.name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def two(script: Any, folder: Path) -> Any:
    """Return settings of two folders with the same store and ranks."""
    settings = []
    for name in ("whole", "again"):
        here = folder / name
        generation = here / "graph" / ("gen-1" if name == "whole" else "gen-7")
        generation.mkdir(parents=True)
        (generation / "a.arrow").write_bytes(b"edges")
        pq.write_table(pa.table({"id": [0, 1], "value": [0.5, None]}), here / "wcc.parquet")
        settings.append(script.Setting(folder=here, scale=10, memory=""))
    return settings


def test_equal_outputs_pass(script: Any, tmp_path: Path) -> None:
    whole, again = two(script, tmp_path)
    for step in ("build", "wcc"):
        script._require_equal(whole, again, step)
    script._require_before(whole, again, "verify")


def test_other_values_other_bytes_and_changed_inputs_are_told(
    script: Any, tmp_path: Path
) -> None:
    whole, again = two(script, tmp_path)
    pq.write_table(
        pa.table({"id": [0, 1], "value": [0.25, None]}), again.folder / "wcc.parquet"
    )
    (again.folder / "graph" / "gen-7" / "a.arrow").write_bytes(b"edge?")
    with pytest.raises(script.Wrong, match="wcc after a kill: column value differs"):
        script._require_equal(whole, again, "wcc")
    with pytest.raises(script.Wrong, match="makes another store"):
        script._require_equal(whole, again, "build")
    with pytest.raises(script.Wrong, match="bfs changed build's output"):
        script._require_before(whole, again, "bfs")


def test_a_step_that_fails_or_hangs_is_told(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    setting = script.Setting(folder=tmp_path, scale=10, memory="")
    refused = [sys.executable, "-c", "import sys; sys.exit('error: no')"]
    monkeypatch.setattr(script, "_command", lambda *_, **__: refused)
    with pytest.raises(script.Wrong, match="verify fails undisturbed: error: no"):
        script._undisturbed(setting, "verify")
    monkeypatch.setattr(script, "_LIMIT_S", 0.1)
    with pytest.raises(script.Wrong, match="hangs"):
        script._run([sys.executable, "-c", "import time; time.sleep(9)"])
