"""A commit counts only once all that it names is on the disk: who syncs what, and when."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import GraphsysError, OutputExistsError, StoreBusyError
from graphsys.storage.locks import WriterLock
from graphsys.storage.runs import run_folder
from graphsys.storage.transaction import Transaction
from graphsys.storage.verify.verify import verify
from tests.stores import edge_chunk, make_store
from tests.syncs import watch_disk

PAIRS = [(1, 2), (2, 3), (3, 1)]


def test_a_manifest_replaces_the_old_one_after_all_that_it_names_is_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, store = watch_disk(monkeypatch), tmp_path / "g"
    seen = []

    def look(source: Path, target: Path) -> None:
        if target == store / "graph.json":
            stated = json.loads(disk.files[source])  # the draft, as it is on the disk
            names = [Path(path) for path in list_files(stated)]
            assert names
            assert [name for name in names if not disk.holds(store / name)] == []
            folders = {parent for name in names for parent in name.parents[:-1]}
            for folder in folders - {Path("gen-1")}:  # every folder above a file too
                above = disk.folders[(store / folder).parent]
                assert folder.name in above
            seen.append(target)

    disk.renames.append(look)
    make_store(store, edge_chunk(PAIRS, weight=np.ones(3))).graph.close()
    assert seen == [store / "graph.json"]
    after = disk.order[disk.order.index(("rename", store / "graph.json")) :]
    assert after.index(("sync", store)) < after.index(("sync", tmp_path))
    assert {"graph.json", "gen-1"} <= disk.folders[store]
    assert "g" in disk.folders[tmp_path]


def list_files(stated: Any) -> list[str]:
    """Return the paths that a manifest names, wherever it does."""
    if isinstance(stated, dict):
        own = [stated["path"]] if "path" in stated and "checksum" in stated else []
        return own + [path for value in stated.values() for path in list_files(value)]
    if isinstance(stated, list):
        return [path for value in stated for path in list_files(value)]
    return []


def test_a_graph_is_replaced_only_where_that_was_asked_for(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk(PAIRS)).graph.close()
    with pytest.raises(OutputExistsError, match="already holds a graph"):
        Transaction(tmp_path / "g")


def test_a_graph_that_came_while_waiting_for_the_lock_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "g"
    make_store(tmp_path / "other", edge_chunk(PAIRS)).graph.close()

    def slow_lock(path: Path) -> Any:  # another writer commits first
        shutil.copytree(tmp_path / "other", path, dirs_exist_ok=True)
        return WriterLock(path)

    monkeypatch.setattr("graphsys.storage.transaction.WriterLock", slow_lock)
    with pytest.raises(OutputExistsError, match="already holds a graph"):
        make_store(store, edge_chunk([(7, 8)]))
    assert verify(store).ok


def test_what_cannot_be_removed_does_not_undo_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk(PAIRS)).graph.close()
    rmdir = os.rmdir

    def busy(path: Any, **options: Any) -> None:
        if Path(str(path)).name == "gen-1":
            raise PermissionError(13, "Permission denied")
        rmdir(path, **options)

    monkeypatch.setattr(os, "rmdir", busy)
    make_store(store, edge_chunk([(7, 8)]), overwrite=True).graph.close()
    assert (store / "gen-1").is_dir()
    monkeypatch.undo()
    assert json.loads((store / "graph.json").read_text())["generation"] == 2
    make_store(store, edge_chunk([(7, 8)]), overwrite=True).graph.close()
    assert not (store / "gen-1").exists()  # the next writer sweeps


def test_a_file_of_a_run_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, file = watch_disk(monkeypatch), tmp_path / "run.json"
    file.write_bytes(b"old")

    def look(source: Path, target: Path) -> None:
        if target == file:
            assert disk.files[source] == b"new"

    disk.renames.append(look)
    run_folder.write_durably(file, b"new")
    assert disk.order.index(("rename", file)) < disk.order.index(("sync", tmp_path))
    assert disk.holds(file)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_a_lock_that_cannot_be_had_leaves_no_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(path: Path) -> Any:
        raise StoreBusyError(f"{path} is being written")

    monkeypatch.setattr("graphsys.storage.transaction.WriterLock", busy)
    with pytest.raises(StoreBusyError, match="is being written"):
        make_store(tmp_path / "a" / "b" / "g", edge_chunk(PAIRS))
    assert list(tmp_path.iterdir()) == []


def test_a_graph_is_not_made_inside_of_another(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk(PAIRS)).graph.close()
    with pytest.raises(GraphsysError, match="inside"):
        Transaction(tmp_path / "g" / "inner")
    assert verify(tmp_path / "g").ok
    assert not (tmp_path / "g" / "inner").exists()
