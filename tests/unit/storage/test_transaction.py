"""Commit or nothing: aborts, full disks, read-only targets, outputs that exist."""

import errno
import os
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core import ownership
from graphsys.core.errors import InputError, OutputExistsError, StorageFullError
from graphsys.core.threads import run_parallel
from graphsys.storage import Graph, scratch
from graphsys.storage.transaction import Transaction, disk_errors
from graphsys.storage.verify.verify import verify
from tests.stores import edge_chunk, make_store, pairs_of

BROKEN = edge_chunk([(1, 2)], weight=np.array([np.nan]))


def everything(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_failed_ingest_leaves_nothing_not_even_folders(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not finite"):
        make_store(tmp_path / "a" / "b" / "g", edge_chunk([(1, 2)], weight=[1.0]), BROKEN)
    assert everything(tmp_path) == []


def test_a_disk_without_room_for_a_byte_is_left_as_it_was(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(StorageFullError, match="file too large; allow larger files"):
            make_store(tmp_path / "a" / "new", edge_chunk([(1, 2)]))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert everything(tmp_path) == []


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    out = tmp_path / "g"
    out.mkdir()
    with pytest.raises(InputError):
        make_store(out, BROKEN, overwrite=True)
    assert everything(tmp_path) == ["g"]


def test_an_empty_folder_is_an_output_too(tmp_path: Path) -> None:
    out = tmp_path / "g"
    out.mkdir()
    with pytest.raises(OutputExistsError, match="already exists, an empty folder"):
        make_store(out, edge_chunk([(1, 2)]))
    assert everything(tmp_path) == ["g"]
    make_store(out, edge_chunk([(1, 2)]), overwrite=True).graph.close()
    assert verify(out).ok


def test_a_failed_overwrite_leaves_the_old_graph(store: Path) -> None:
    before = everything(store)
    with pytest.raises(InputError):
        make_store(store, BROKEN, overwrite=True)
    assert everything(store) == before
    assert verify(store).ok


def test_a_graph_is_not_replaced_unasked(store: Path) -> None:
    with pytest.raises(OutputExistsError, match=r"already holds a graph; .*--overwrite"):
        make_store(store, edge_chunk([(1, 2)]))


@pytest.mark.parametrize("overwrite", [False, True])
def test_what_is_no_graph_is_never_replaced(overwrite: bool, tmp_path: Path) -> None:
    folder, file, foreign = tmp_path / "folder", tmp_path / "file", tmp_path / "foreign"
    folder.mkdir()
    (folder / "thesis.tex").write_text("x")
    file.write_text("x")
    foreign.mkdir()
    (foreign / "graph.json").write_text('{"nodes": []}')
    for out in (folder, file, foreign):
        before = everything(tmp_path)
        with pytest.raises(OutputExistsError, match=out.name):
            make_store(out, edge_chunk([(1, 2)]), overwrite=overwrite)
        assert everything(tmp_path) == before
    assert file.read_text() == "x"


def test_a_graph_with_strange_files_is_not_replaced(store: Path) -> None:
    (store / "thesis.tex").write_text("x")
    with pytest.raises(OutputExistsError, match=r"thesis\.tex"):
        make_store(store, edge_chunk([(1, 2)]), overwrite=True)


@pytest.mark.parametrize("damage", ["", '{"format_version": 9}'])
def test_overwrite_mends_a_graph_whose_manifest_is_broken(store: Path, damage: str) -> None:
    (store / "graph.json").write_text(damage)
    before = everything(store)
    with pytest.raises(InputError):
        make_store(store, BROKEN, overwrite=True)
    assert everything(store) == before
    with make_store(store, edge_chunk([(1, 2)]), overwrite=True).graph as graph:
        assert pairs_of(graph) == {(1, 2): 1}
    assert [name for name in everything(store) if "/" not in name] == [
        "gen-2",
        "graph.json",
    ]
    assert verify(store).ok


def test_litter_of_a_killed_writer_is_swept_away(tmp_path: Path) -> None:
    out = tmp_path / "g"
    (out / "gen-1" / "scratch").mkdir(parents=True)
    (out / "gen-1" / "scratch" / "0001-ids").write_text("x")
    ownership.claim(out / "gen-1")
    (out / ".lock").touch()
    make_store(out, edge_chunk([(1, 2)])).graph.close()
    assert [name for name in everything(out) if "/" not in name] == ["gen-1", "graph.json"]
    assert verify(out).ok


def test_scratch_is_gone_after_the_commit(store: Path) -> None:
    assert not list(store.rglob("*scratch*"))


def test_errors_that_are_not_the_disks_pass_unchanged(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), disk_errors(tmp_path):
        raise FileNotFoundError(errno.ENOENT, "no")
    with (
        pytest.raises(StorageFullError, match="no space left on device; free some space"),
        disk_errors(tmp_path),
    ):
        raise OSError(errno.ENOSPC, "full")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 1 MiB, as only root may."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if (
        os.geteuid() != 0
        or subprocess.run(mount, capture_output=True, check=False).returncode
    ):
        pytest.skip("mounting a small tmpfs needs root and the right to mount")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("share", [0.5, 0.0])
def test_a_full_disk_is_one_error_and_leaves_nothing(
    small_disk: Path,
    share: float,
    monkeypatch: pytest.MonkeyPatch,
    rng: np.random.Generator,
) -> None:
    monkeypatch.setattr(scratch, "_IN_MEMORY_SHARE", share)  # 0: streams spill to the disk
    pairs = rng.integers(0, 10**9, (200_000, 2)).tolist()
    with pytest.raises(
        StorageFullError, match=r"allow larger files|free some space|are needed"
    ):
        make_store(small_disk / "g", edge_chunk(pairs))
    assert everything(small_disk) == []


def test_space_is_reserved_before_it_is_mapped(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space left"):
        scratch.Scratch(small_disk, 0).array(1 << 20, np.int64)


def test_a_full_disk_keeps_the_old_graph(
    small_disk: Path, rng: np.random.Generator
) -> None:
    out = small_disk / "g"
    make_store(out, edge_chunk([(1, 2)])).graph.close()
    pairs = rng.integers(0, 10**9, (200_000, 2)).tolist()
    with pytest.raises(StorageFullError):
        make_store(out, edge_chunk(pairs), overwrite=True)
    with Graph(out) as graph:
        assert pairs_of(graph) == {(1, 2): 1}
    assert verify(out).ok


def test_a_full_disk_in_any_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no disk can be mounted: the system says "full" at the n-th flush."""
    calls = 0

    def fsync(fd: int) -> None:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    for failing in range(1, 100):
        calls, out = 0, tmp_path / f"g{failing}"
        try:
            make_store(out, edge_chunk([(1, 2)])).graph.close()
        except StorageFullError:
            assert not out.exists() or verify(out).ok
            continue
        break
    assert 4 < failing < 40


def test_a_read_only_target_is_one_error(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    if os.geteuid() == 0:  # root writes anywhere but on a read-only file system
        bind = ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(target)]
        if subprocess.run(bind, capture_output=True, check=False).returncode:
            pytest.skip("no right to mount a read-only file system")
    else:
        target.chmod(0o500)
    try:
        for out in (target / "g", target):
            with pytest.raises(StorageFullError, match="where you may write"):
                make_store(out, edge_chunk([(1, 2)]), overwrite=True)
        assert everything(target) == []
    finally:
        if os.geteuid() == 0:
            subprocess.run(["umount", str(target)], check=True)
        else:
            target.chmod(0o700)


def test_files_may_be_added_from_threads(tmp_path: Path) -> None:
    with Transaction(tmp_path / "g") as transaction:
        batch = pa.record_batch([pa.array([1, 2])], ["x"])
        run_parallel(
            lambda n: transaction.add_file(f"gen-1/f{n}/x.arrow", batch), range(20), 4
        )
        assert {entry.rows for entry in transaction.files} == {2}
        assert len({entry.path for entry in transaction.files}) == 20
        assert len({entry.checksum for entry in transaction.files}) == 1
    assert everything(tmp_path) == []
