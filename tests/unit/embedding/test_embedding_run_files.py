"""Every byte of a run is checked before it is used, once, and `verify` looks at all."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.checksums import file_digest
from graphsys.core.errors import CorruptStoreError, TrainingFailedError
from graphsys.embedding import EmbeddingConfig, open_run, train
from graphsys.embedding import run as runs
from graphsys.embedding.training_log import read_log
from graphsys.storage.verify.run import verify_run
from tests.trainings import RemoveAt
from tests.unit.embedding.training.test_embedding_api import MakeRing, short


@pytest.fixture
def run(make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path) -> Path:
    config = short(ring_config, preserve_every=1)
    train(make_ring(2), config, tmp_path / "run")
    return tmp_path / "run"


def files_of(run: Path) -> list[Path]:
    inner = (f for f in run.rglob("*") if f.is_file() and "checkpoints" not in f.parts)
    return sorted(inner)


def edit_json(run: Path, change: Any) -> None:
    content = json.loads((run / "run.json").read_text())
    change(content)
    (run / "run.json").write_text(json.dumps(content))


def test_a_sound_run_verifies_and_every_file_has_a_checksum(run: Path) -> None:
    assert verify_run(run).problems == []
    content = json.loads((run / "run.json").read_text())
    listed = {*content["files"], "config.toml"}
    assert content["checksums"].keys() == listed
    assert {f.relative_to(run).as_posix() for f in files_of(run)} == {
        *listed,
        "run.json",
        "training.jsonl",
    }


def test_a_flipped_bit_in_any_file_is_found_by_verify_and_on_opening(
    run: Path, rng: np.random.Generator
) -> None:
    for file in files_of(run):
        sound = file.read_bytes()
        for place in [3, *rng.integers(0, len(sound), 3).tolist()]:
            damaged = bytearray(sound)
            damaged[place] ^= 1 << rng.integers(8)
            file.write_bytes(damaged)
            problems = [problem.file for problem in verify_run(run).problems]
            # preserved checkpoints share files by links
            found = [name for name in problems if not name.startswith("checkpoints/")]
            assert found == [file.relative_to(run).as_posix()], place
            if file.name != "training.jsonl":  # for people; nothing reads it
                with pytest.raises((CorruptStoreError, ValueError)):
                    open_run(run)
        file.write_bytes(sound)
    open_run(run)


def test_a_log_that_grew_after_the_end_is_found(run: Path) -> None:
    with (run / "training.jsonl").open("a") as file:
        file.write("{}\n")
    assert [problem.file for problem in verify_run(run).problems] == ["training.jsonl"]


def test_a_pipe_and_added_bytes_are_found(run: Path) -> None:
    (run / "training.jsonl").unlink()
    os.mkfifo(run / "training.jsonl")
    with (run / "run.json").open("a") as file:
        file.write("\n")
    found = {problem.file: problem.what for problem in verify_run(run).problems}
    assert found.keys() == {"run.json", "training.jsonl"}
    assert found["run.json"] == "is not byte for byte what its checksum stands for"
    with pytest.raises(OSError, match="not a plain file"):
        read_log(run)


def test_a_missing_entry_is_no_untrained_partition(run: Path) -> None:
    def lose(content: dict[str, Any]) -> None:
        name = next(name for name in content["files"] if name.startswith("rows/"))
        del content["files"][name], content["checksums"][name]

    edit_json(run, lose)
    with pytest.raises(CorruptStoreError, match="does not match its own checksum"):
        open_run(run)
    edit_json(run, lambda content: content.pop("checksum"))
    with pytest.raises(CorruptStoreError, match="does not match its own checksum"):
        open_run(run)


def make_old(run: Path) -> None:
    """Make a run what it was before version 2."""

    def change(content: dict[str, Any]) -> None:
        content.pop("checksum")
        content["checksums"] = {}
        content["format_version"] = 1

    edit_json(run, change)


def test_old_runs_open_with_a_note_and_their_headers_are_compared(run: Path) -> None:
    make_old(run)
    with pytest.warns(UserWarning, match="from before files had checksums"):
        opened = open_run(run)
    rows = opened.rows("entity", 0)
    name = next(name for name in opened.state.files if name.startswith("rows/"))
    np.save(run / name, np.ascontiguousarray(rows.T))
    assert (run / name).stat().st_size == opened.state.files[name]
    with pytest.warns(UserWarning, match="from before"):
        opened = open_run(run)
    with pytest.raises(CorruptStoreError, match=r"has shape \(.*expected \("):
        [opened.rows("entity", part) for part in range(2)]


def test_content_is_compared_once_while_files_are_the_same(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def noted(file: Path) -> str:
        seen.append(file.name)
        return file_digest(file)

    monkeypatch.setattr("graphsys.storage.runs.run_check.file_digest", noted)
    monkeypatch.setattr("graphsys.storage.checked_files._SETTLED_NS", -(10**9))
    open_run(run)
    num_files = len(seen)
    assert num_files == len(runs.read_state(run).checksums)
    open_run(run)
    assert len(seen) == num_files
    (run / "config.toml").touch()
    open_run(run)
    assert seen[num_files:] == ["config.toml"]


def test_verify_names_what_is_not_listed_and_damage_in_checkpoints(run: Path) -> None:
    (run / "rows" / "entity" / "part-9.99.npy").write_bytes(b"left by a kill")
    kept = next((run / "checkpoints").iterdir())
    (kept / "config.toml").write_text("dim = [")
    found = {problem.file: problem.what for problem in verify_run(run).problems}
    assert found.keys() == {
        "rows/entity/part-9.99.npy",
        f"checkpoints/{kept.name}/config.toml",
    }
    assert "is not listed" in found["rows/entity/part-9.99.npy"]


@pytest.mark.parametrize("steps", [1, 3, 8])
def test_a_run_removed_while_it_is_trained_is_an_error(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path, steps: int
) -> None:
    out = tmp_path / "run"
    config = short(ring_config, checkpoint_seconds=0)
    with pytest.raises(TrainingFailedError, match="was removed or changed while the run"):
        train(make_ring(2), config, out, progress=RemoveAt(out, steps))
    assert not (out / "run.json").exists()
    assert not list(out.rglob("*.npy"))
