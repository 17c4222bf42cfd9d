"""Judges of torturing: they tell other results, changed inputs, commands that fail."""

import importlib
import os
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.conftest import ROOT


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The steps of case billion, as scripts/torture imports them."""
    monkeypatch.syspath_prepend(ROOT / "scripts")
    return importlib.import_module("torturing.billion")


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
    with pytest.raises(script.FaultError, match="wcc after a kill: column value differs"):
        script._require_equal(whole, again, "wcc")
    with pytest.raises(script.FaultError, match="makes another store"):
        script._require_equal(whole, again, "build")
    with pytest.raises(script.FaultError, match="bfs changed build's output"):
        script._require_before(whole, again, "bfs")


def test_a_step_that_fails_or_hangs_is_told(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting = script.Setting(folder=tmp_path, scale=10, memory="")
    monkeypatch.setattr(script, "_made", {"build": (1.0, 1)})
    refused = [sys.executable, "-c", "import sys; sys.exit('error: no')"]
    monkeypatch.setattr(script, "_command", lambda *_, **__: refused)
    with pytest.raises(script.FaultError, match="verify fails undisturbed: error: no"):
        script._undisturbed(setting, "verify")
    monkeypatch.setattr(script, "_LIMIT_S", 0.1)
    with pytest.raises(script.FaultError, match="hangs"):
        script._run([sys.executable, "-c", "import time; time.sleep(9)"])


def test_what_fails_is_a_fault_of_the_case(
    script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise script.FaultError("hangs", "it hangs")

    monkeypatch.setattr(script, "_undisturbed", refuse)
    verdict = script.Verdict()
    world = SimpleNamespace(folder=tmp_path)
    how = {"only": ["billion wcc"], "scale": 10, "memory": "1GB"}
    script.case(world, random.Random(0), verdict, **how)
    assert verdict.counts == {"hangs": 1, "cases": 1}
    assert verdict.faults == [("hangs", "billion: wcc, scale 10, 1GB: it hangs")]


def test_works_of_a_cluster_end_as_undisturbed_ones(script: Any, tmp_path: Path) -> None:
    cluster = importlib.import_module("torturing.cluster")
    for name in ("demo", "cora"):
        (tmp_path / name).mkdir()
    exact, about = cluster.Work("run", tmp_path), cluster.Work("gnn", tmp_path)
    exact.require_equal([0.5, 0.25], [0.5, 0.25 * (1 + 1e-12)])
    about.require_equal(0.80, 0.75)
    cluster.Work("mine", tmp_path).require_equal({"a": 3}, {"a": 3})
    for work, found, expected in (
        (exact, [0.5], [0.5, 0.5]),
        (exact, [0.5, 0.25], [0.5, 0.2500001]),
        (about, 0.60, 0.75),
        (about, float("nan"), 0.75),
        (cluster.Work("mine", tmp_path), {"a": 3}, {"a": 4}),
    ):
        with pytest.raises(script.FaultError) as told:
            work.require_equal(found, expected)
        assert told.value.kind == "silently_wrong"


@pytest.mark.parametrize("scene", ["billion", "cluster ingest"])
def test_a_scene_that_is_not_there_is_refused_with_those_that_are(scene: str) -> None:
    script = ROOT / "scripts" / "torture"
    environment = {**os.environ, "GRAPHSYS_VENV": str(Path(sys.executable).parents[1])}
    done = subprocess.run(
        [script, "--state", "none", "--scene", scene],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"there is no {scene!r}, but append, " in done.stderr
    assert "cluster triangles" in done.stderr
    assert "billion wcc" in done.stderr
