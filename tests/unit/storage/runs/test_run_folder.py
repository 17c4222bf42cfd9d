"""The folder of a training run, function by function: who may write, what is compared."""

import json
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core import ownership
from graphsys.core.checksums import file_digest
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    OutputExistsError,
    StorageFullError,
    StoreBusyError,
    TrainingFailedError,
)
from graphsys.storage import Graph
from graphsys.storage.manifest import checksum_of
from graphsys.storage.runs import run_folder
from graphsys.storage.runs import run_replacement as replacement
from tests.stores import edge_chunk, make_store

CONTENT: dict[str, Any] = {"graph": {"path": "g"}, "files": {}, "checksums": {}, "step": 3}


def make_run(out: Path, **content: Any) -> Path:
    """Make a run of two files and a configuration."""
    (out / "rows").mkdir(parents=True)
    (out / "rows" / "a.npy").write_bytes(b"abcdef")
    (out / "b.npy").write_bytes(b"xyz")
    (out / "config.toml").write_text("dim = 4\n")
    names = ["rows/a.npy", "b.npy"]
    run_folder.write_content(
        out,
        CONTENT
        | {
            "files": {name: (out / name).stat().st_size for name in names},
            "checksums": {n: file_digest(out / n) for n in (*names, "config.toml")},
        }
        | content,
    )
    return out


def stated(out: Path) -> tuple[dict[str, int], dict[str, str]]:
    content = run_folder.read_content(out)
    return content["files"], content["checksums"]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_run_of_a_network_says_so(tmp_path: Path) -> None:
    for text, found in (
        ('{"kind": "gnn"}', True),
        ('{"kind": "other"}', False),
        ("{}", False),
        ("[]", False),
        ("{", False),
    ):
        (tmp_path / "run.json").write_text(text)
        assert run_folder.is_gnn_run(tmp_path) is found, text
    assert not run_folder.is_gnn_run(tmp_path / "none")
    assert not run_folder.is_gnn_run(tmp_path / "run.json")


def test_a_graph_is_the_same_wherever_it_lies(tmp_path: Path) -> None:
    pairs = [(0, 1), (1, 2), (2, 0)]
    make_store(tmp_path / "one", edge_chunk(pairs), partitions=2).graph.close()
    make_store(tmp_path / "more", edge_chunk([*pairs, (0, 2)])).graph.close()
    shutil.copytree(tmp_path / "one", tmp_path / "copy")
    with Graph(tmp_path / "one") as graph:
        told = run_folder.describe_graph(graph)
    assert told["path"] == str((tmp_path / "one").resolve())
    assert (told["num_nodes"], told["num_edges"]) == (3, 3)
    assert told["partitions"] == {"node": 2}
    with Graph(tmp_path / "copy") as graph:
        assert run_folder.is_same_graph(told, graph)
        run_folder.require_same_graph(told, graph, tmp_path / "run")
        assert not run_folder.is_same_graph(told | {"num_edges": 4}, graph)
    with Graph(tmp_path / "more") as graph:
        assert not run_folder.is_same_graph(told, graph)
        with pytest.raises(ConfigError, match="num_edges: 3 -> 4") as caught:
            run_folder.require_same_graph(told, graph, tmp_path / "run")
    assert "path:" not in str(caught.value)


@pytest.mark.parametrize("resume", [False, True])
def test_a_new_output_is_free_and_nothing_is_there_to_resume(
    tmp_path: Path, resume: bool
) -> None:
    out = tmp_path / "run"
    if resume:
        with pytest.raises(ConfigError, match="holds no run to resume"):
            run_folder.require_free(out, resume=True, overwrite=False)
    else:
        run_folder.require_free(out, resume=False, overwrite=False)
    assert names(tmp_path) == []


def test_an_output_that_holds_a_run_wants_one_of_two_options(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run")
    with pytest.raises(OutputExistsError, match="continue it with --resume or replace"):
        run_folder.require_free(out, resume=False, overwrite=False)
    run_folder.require_free(out, resume=True, overwrite=False)
    run_folder.require_free(out, resume=False, overwrite=True)
    (out / "run.json").unlink()
    replacement.begin_replacement(out)
    with pytest.raises(ConfigError, match="holds no run to resume"):
        run_folder.require_free(out, resume=True, overwrite=False)
    (replacement.staging_path(out) / "run.json").write_text("{}")
    run_folder.require_free(out, resume=True, overwrite=False)


def test_an_output_that_is_no_run_is_refused_whatever_the_options(tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(OutputExistsError, match="already exists, an empty folder"):
        run_folder.require_free(out, resume=False, overwrite=False)
    run_folder.require_free(out, resume=False, overwrite=True)
    ownership.claim(out)  # what a training that never began leaves
    for name in (".lock", "config.toml", "run.json.new", "config.toml.new"):
        (out / name).write_text("")
    for overwrite in (False, True):
        run_folder.require_free(out, resume=False, overwrite=overwrite)
    (out / "thesis.tex").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for path in (out, tmp_path / "file"):
        for overwrite in (False, True):
            with pytest.raises(OutputExistsError, match="exists and is no run; choose"):
                run_folder.require_free(path, resume=False, overwrite=overwrite)


def test_a_training_writes_to_the_run_or_beside_it(tmp_path: Path) -> None:
    out = tmp_path / "run"
    beside = replacement.staging_path(out)

    def folder(*, resume: bool = False, overwrite: bool = False) -> Path:
        return run_folder.folder_to_train(out, resume=resume, overwrite=overwrite)

    assert folder() == folder(overwrite=True) == out
    make_run(out)
    assert folder() == folder(resume=True) == out
    assert folder(overwrite=True) == beside
    replacement.begin_replacement(out)
    (beside / "run.json").write_text("{}")
    assert folder(resume=True) == folder(overwrite=True) == beside
    assert folder() == out


def test_a_run_is_written_in_place_or_replaced_when_it_is_whole(tmp_path: Path) -> None:
    out = tmp_path / "run"
    with run_folder.writing(out, resume=False, overwrite=False) as path:
        assert path == out
        assert (out / ".lock").exists()
        (out / "run.json").write_text("first")
    with run_folder.writing(out, resume=False, overwrite=True) as path:
        assert path == replacement.staging_path(out)
        (path / "run.json").write_text("second")
        assert (out / "run.json").read_text() == "first"
    assert names(out) == ["run.json"]
    assert (out / "run.json").read_text() == "second"
    assert names(tmp_path) == ["run"]


def test_an_error_keeps_what_can_be_resumed_and_drops_what_cannot(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run")

    def fail(name: str) -> None:
        with run_folder.writing(out, resume=False, overwrite=True) as path:
            (path / name).write_text("{}")
            raise KeyError(name)

    with pytest.raises(KeyError):
        fail("config.toml")
    assert names(tmp_path) == ["run"]
    with pytest.raises(KeyError):
        fail("run.json")
    assert names(tmp_path) == [".run.graphsys-next", "run"]
    assert names(replacement.staging_path(out)) == [".replaces", "run.json"]
    (replacement.staging_path(out) / "half").write_text("")
    with run_folder.writing(out, resume=True, overwrite=False) as path:
        assert names(path) == [".lock", ".replaces", "half", "run.json"]  # as it was
    assert names(out) == ["half", "run.json"]


def test_what_a_kill_after_the_exchange_left_goes(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run")
    (out / ".replaces").write_text("")
    make_run(replacement.staging_path(out))
    with run_folder.writing(out, resume=True, overwrite=False) as path:
        assert path == out
        assert names(tmp_path) == ["run"]
        assert not (out / ".replaces").exists()


def test_one_training_at_a_time_holds_a_folder_and_makes_it_where_it_must(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "a" / "run"
    with run_folder.locked(out):
        claim, lock = names(out)
        assert lock == ".lock"
        assert ownership.CLAIM.fullmatch(claim)
        with pytest.raises(StoreBusyError, match="being written by another"):
            run_folder.locked(out).__enter__()
    assert names(tmp_path / "a") == []  # nothing came of it
    out.mkdir()
    for _ in range(2):
        with run_folder.locked(out):
            pass
        assert out.is_dir()
        assert names(out) == []

    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(StorageFullError):
        run_folder.locked(tmp_path / "other").__enter__()


def test_what_a_run_says_is_read_as_it_was_written(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run")
    content = run_folder.read_content(out)
    assert content["format_version"] == run_folder.FORMAT_VERSION == 2
    assert content["step"] == 3
    text = (out / "run.json").read_text()
    assert text == json.dumps(json.loads(text), indent=1) + "\n"
    assert json.loads(text)["checksum"] == checksum_of(content)
    assert names(out) == ["b.npy", "config.toml", "rows", "run.json"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"step": 4}, "it does not match its own checksum"),
        ({"checksum": None}, "it does not match its own checksum"),
        ({"format_version": 3}, "format 3 is newer than 2"),
        ({"format_version": "x"}, "cannot be read: invalid literal"),
        ({"format_version": 1, "graph": {"path": 7}}, "graph.path is missing"),
        ({"format_version": 1, "graph": {}}, "cannot be read: 'path'"),
    ],
)
def test_what_a_run_says_is_refused_where_it_was_altered(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    out = make_run(tmp_path / "run")
    content = json.loads((out / "run.json").read_text())
    (out / "run.json").write_text(json.dumps(content | changes))
    with pytest.raises(CorruptStoreError, match=message):
        run_folder.read_content(out)


def test_runs_from_before_checksums_are_read_and_newer_ones_where_that_is_known(
    tmp_path: Path,
) -> None:
    file = tmp_path / "run.json"
    file.write_text(json.dumps({"format_version": 1, "graph": {"path": "g"}}))
    assert run_folder.read_content(tmp_path)["format_version"] == 1
    whole = {"format_version": 3, "graph": {"path": "g"}}
    file.write_text(json.dumps(whole | {"checksum": checksum_of(whole)}))
    assert run_folder.read_content(tmp_path, newest=3) == whole
    file.write_text("[]")
    with pytest.raises(CorruptStoreError, match="expected an object"):
        run_folder.read_content(tmp_path)
    with pytest.raises(FileNotFoundError):
        run_folder.read_content(tmp_path / "none")


def test_a_checkpoint_is_not_named_where_a_file_of_it_is_gone(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run")
    before = (out / "run.json").read_bytes()
    content = run_folder.read_content(out)
    for name, data in (("config.toml", None), ("b.npy", b"xy"), ("rows/a.npy", None)):
        kept = (out / name).read_bytes()
        (out / name).unlink()
        if data is not None:
            (out / name).write_bytes(data)
        with pytest.raises(TrainingFailedError, match=f"{name} was removed or changed"):
            run_folder.write_content(out, content | {"step": 4})
        (out / name).write_bytes(kept)
    assert (out / "run.json").read_bytes() == before
    run_folder.write_content(out, content | {"step": 4})
    assert run_folder.read_content(out)["step"] == 4
    shutil.rmtree(out)
    with pytest.raises(TrainingFailedError):
        run_folder.write_content(out, content)


def test_files_are_compared_by_size_and_then_by_content(tmp_path: Path) -> None:
    out = make_run(tmp_path / "run")
    files, checksums = stated(out)
    run_folder.check_files(out, files, checksums)
    for name in ("rows/a.npy", "b.npy"):
        sound = (out / name).read_bytes()
        (out / name).write_bytes(sound[:-1] + b"!")
        run_folder.check_files(out, files, checksums, content=False)
        with pytest.raises(
            CorruptStoreError, match=f"{name} has the checksum [0-9a-f]{{32}}, "
        ):
            run_folder.check_files(out, files, checksums)
        (out / name).write_bytes(sound + b"!")
        size = len(sound)
        with pytest.raises(
            CorruptStoreError, match=f"has {size + 1} bytes, .* says {size}"
        ):
            run_folder.check_files(out, files, checksums, content=False)
        (out / name).unlink()
        with pytest.raises(CorruptStoreError, match="is missing from the checkpoint"):
            run_folder.check_files(out, files, checksums, content=False)
        (out / name).write_bytes(sound)
    (out / "config.toml").unlink()
    with pytest.raises(CorruptStoreError, match=r"config.toml cannot be read"):
        run_folder.check_files(out, files, checksums)


def test_content_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, seen = make_run(tmp_path / "run"), []

    def noted(file: Path) -> str:
        seen.append(file.name)
        return file_digest(file)

    monkeypatch.setattr("graphsys.storage.runs.run_check.file_digest", noted)
    monkeypatch.setattr("graphsys.storage.checked_files._SETTLED_NS", -(10**9))
    for _ in range(2):
        run_folder.check_files(out, *stated(out))
        assert sorted(seen) == ["a.npy", "b.npy", "config.toml"]


def test_old_runs_have_checksums_of_arrays_and_older_ones_none(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.save(tmp_path / "a.npy", array)
    files = {"a.npy": (tmp_path / "a.npy").stat().st_size}
    crc = zlib.crc32(array.tobytes())
    run_folder.check_files(tmp_path, files, {"a.npy": crc})
    with pytest.raises(CorruptStoreError, match=f"checksum {crc:08x}, run.json says 00000"):
        run_folder.check_files(tmp_path, files, {"a.npy": 7})
    run_folder.check_files(tmp_path, files, {}, content=False)
    run_folder.check_files(tmp_path, {}, {})
    assert not list(recwarn)
    with pytest.warns(UserWarning, match="only their sizes were compared"):
        run_folder.check_files(tmp_path, files, {})
    (tmp_path / "a.npy").write_bytes(b"no array")
    with pytest.raises(CorruptStoreError, match="cannot be read"):
        run_folder.check_files(tmp_path, {}, {"a.npy": crc})


def test_a_file_that_cannot_be_written_leaves_the_old_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(b"old")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageFullError):
        run_folder.write_durably(file, b"new")
    assert names(tmp_path) == ["run.json"]
    assert file.read_bytes() == b"old"
    monkeypatch.undo()
    run_folder.write_durably(file, memoryview(b"new"))
    assert names(tmp_path) == ["run.json"]
    assert file.read_bytes() == b"new"


def test_a_folder_is_made_durable_and_let_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced, fsync = [], os.fsync

    def noted(descriptor: int) -> None:
        synced.append((descriptor, os.readlink(f"/proc/self/fd/{descriptor}")))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    run_folder.sync_folder(tmp_path)
    run_folder.sync_folder(tmp_path / "none")
    assert [path for _, path in synced] == [str(tmp_path)]
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(synced[0][0])
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        run_folder.sync_folder(tmp_path / "file")
