"""Verify: whatever happens to a file, it is named; nothing else is."""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import InvalidGraphError
from graphsys.storage.manifest import FileEntry, Manifest
from graphsys.storage.verify.verify import Problem, verify
from tests.stores import edge_chunk, make_store


def files_of(store: Path) -> list[str]:
    return sorted(str(p.relative_to(store)) for p in store.rglob("*") if p.is_file())


def problems(store: Path) -> dict[str, str]:
    return {problem.file: problem.what for problem in verify(store).problems}


def test_a_sound_store_has_no_problems(sound_store: Path) -> None:
    report = verify(sound_store)
    assert report.ok
    assert report.problems == []


def flip(data: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(data)
    changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
    return bytes(changed)


DAMAGES: dict[str, Callable[[bytes, np.random.Generator], bytes | None]] = {
    "flipped bit": flip,
    "flipped byte at the end": lambda data, _: data[:-1] + bytes([data[-1] ^ 255]),
    "truncated": lambda data, rng: data[: rng.integers(len(data))],
    "emptied": lambda data, _: b"",
    "appended": lambda data, rng: data + rng.bytes(int(rng.integers(1, 9))),
    "appended newline": lambda data, _: data + b"\n",
    "deleted": lambda data, _: None,
    "other text": lambda data, _: b"\xff\xfe" + data[2:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_damage_to_every_file_is_found(
    damage: str, store: Path, rng: np.random.Generator
) -> None:
    for name in files_of(store):
        path = store / name
        data = path.read_bytes()
        changed = DAMAGES[damage](data, rng)
        path.unlink() if changed is None else path.write_bytes(changed)
        assert [problem.file for problem in verify(store).problems] == [name], (
            name,
            damage,
        )
        path.write_bytes(data)
    assert verify(store).ok


def test_a_file_that_is_not_listed_is_a_problem(store: Path) -> None:
    (store / "notes.txt").write_text("hello")
    (store / "gen-1" / "edges" / "stray.arrow").touch()
    (store / "folder").mkdir()
    (store / "folder" / "x").write_text("x")
    assert problems(store) == {
        "notes.txt": "is not listed in graph.json; remove it",
        "gen-1/edges/stray.arrow": "is not listed in graph.json and empty; remove it",
        "folder/x": "is not listed in graph.json; remove it",
    }


def test_a_file_whose_name_is_not_text_is_still_shown(store: Path) -> None:
    with open(os.fsencode(store) + b"/\xff.bin", "wb") as file:
        file.write(b"x")
    assert list(problems(store)) == [r"\xff.bin"]


def test_a_lock_is_no_part_of_the_store_and_other_generations_are_left_over(
    store: Path,
) -> None:
    (store / ".lock").touch()
    assert verify(store).ok
    for generation in ("gen-0", "gen-2", "gen-17"):
        (store / generation).mkdir()
        (store / generation / "left-over").touch()
    assert list(problems(store)) == ["gen-0", "gen-17", "gen-2"]


def test_a_link_out_of_the_folder_is_a_problem(store: Path, tmp_path: Path) -> None:
    victim = next(name for name in files_of(store) if "bucket" in name)
    shutil.move(store / victim, tmp_path / "outside")
    (store / victim).symlink_to(tmp_path / "outside")
    (store / "link").symlink_to(tmp_path)
    found = problems(store)
    assert found[victim].startswith("is a link out of the graph's folder")
    assert found["link"].startswith("is a link that graph.json does not list")
    assert len(found) == 2


def test_a_folder_in_place_of_a_file_is_a_problem(store: Path) -> None:
    victim = next(name for name in files_of(store) if "bucket" in name)
    (store / victim).unlink()
    (store / victim).mkdir()
    assert problems(store) == {victim: "is not a plain file"}


def test_a_missing_generation_is_a_problem_of_all_its_files(store: Path) -> None:
    count = len(files_of(store)) - 1
    shutil.rmtree(store / "gen-1")
    found = problems(store)
    assert len(found) == count
    assert set(found.values()) == {"is missing"}


def test_a_file_in_place_of_the_generation_is_a_problem(store: Path) -> None:
    shutil.rmtree(store / "gen-1")
    (store / "gen-1").write_text("x")
    found = problems(store)
    assert found.pop("gen-1") == "is not listed in graph.json; remove it"
    assert set(found.values()) == {"is missing"}


def test_a_missing_manifest_is_a_problem_and_no_graph_at_all_an_error(
    store: Path, tmp_path: Path
) -> None:
    (store / "graph.json").unlink()
    assert verify(store).problems == [Problem("graph.json", "is missing")]
    empty = tmp_path / "empty"
    empty.mkdir()
    for folder in (empty, tmp_path / "absent"):
        with pytest.raises(InvalidGraphError, match=folder.name):
            verify(folder)


def test_a_newer_format_is_a_problem_that_says_to_upgrade(store: Path) -> None:
    path = store / "graph.json"
    path.write_text(path.read_text().replace('"format_version": 1', '"format_version": 5'))
    found = problems(store)
    assert list(found) == ["graph.json"]
    assert "format version 5" in found["graph.json"]
    assert "upgrade graphsys" in found["graph.json"]


def test_a_reformatted_manifest_is_a_problem(store: Path) -> None:
    path = store / "graph.json"
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    assert list(problems(store)) == ["graph.json"]


# ---- content that was written wrong, with checksums that match


def rewrite(
    store: Path, name: str, change: Callable[[pa.RecordBatch], pa.RecordBatch]
) -> None:
    """Replace a file by an altered one and correct the manifest to match."""
    path = store / name
    batch = change(pa.ipc.open_file(pa.py_buffer(path.read_bytes())).get_batch(0))
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write(batch)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    manifest = Manifest.read(store)
    entry = FileEntry(
        path=name,
        rows=batch.num_rows,
        bytes=path.stat().st_size,
        checksum=f"sha256:{digest}",
    )
    files = [entry if old.path == name else old for old in manifest.files]
    (store / "graph.json").write_text(replace(manifest, files=files).to_json())


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    out = tmp_path / "plain"
    make_store(out, edge_chunk([(0, 1), (0, 2), (1, 2), (2, 0), (2, 2)])).graph.close()
    return out


BUCKET = "gen-1/edges/edge/train/bucket-0-0.arrow"
OUT, IN = "gen-1/index/edge/out-0.arrow", "gen-1/index/edge/in-0.arrow"


def set_column(name: str, values: list[int]) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    def change(batch: pa.RecordBatch) -> pa.RecordBatch:
        at = batch.schema.get_field_index(name)
        kind = batch.schema.field(name).type
        column = pa.array([values] if pa.types.is_large_list(kind) else values, type=kind)
        return batch.set_column(at, name, column)

    return change


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        (BUCKET, set_column("src", [0, 0, 1, 2, 9]), "has src 9 in row 4, its partition"),
        (BUCKET, set_column("dst", [1, 2, 2, 0, 3]), "has dst 3 in row 4, its partition"),
        (BUCKET, set_column("src", [0, 1, 0, 2, 2]), "is not sorted by .* at row 2"),
        (BUCKET, set_column("dst", [2, 1, 2, 0, 2]), "is not sorted by .* at row 1"),
        (OUT, set_column("indptr", [0, 2, 1, 5]), "wrong row offsets at row 1"),
        (OUT, set_column("indptr", [1, 2, 3, 5]), "wrong row offsets at row 0"),
        (OUT, set_column("indptr", [0, 2, 3, 4]), "wrong row offsets at row 3"),
        (OUT, set_column("indptr", [0, 2, 3]), "3 row offsets for 3 nodes"),
        (OUT, set_column("indices", [1, 2, 2, 0, 3]), "has neighbor 3 of 3 at entry 4"),
        (OUT, set_column("indices", [2, 1, 2, 0, 2]), "not sorted at entry 1"),
        (OUT, set_column("indices", [1, 2, 2, 0, 1]), "does not hold the edges"),
        (IN, set_column("indices", [1, 0, 0, 1, 2]), "does not hold the edges"),
        (OUT, lambda batch: batch.select(["indptr"]), "has the columns"),
        (BUCKET, lambda batch: batch.rename_columns(["src", "x"]), "has the columns"),
        (BUCKET, lambda batch: batch.slice(0, 0), "lists 0"),
    ],
)
def test_wrong_content_is_found_behind_right_checksums(
    plain: Path, name: str, change: Callable[[pa.RecordBatch], pa.RecordBatch], what: str
) -> None:
    rewrite(plain, name, change)
    found = problems(plain)
    if what == "lists 0":
        assert "says 5 edges of 'edge' in split 'train', lists 0" in found["graph.json"]
        return
    assert set(found) == ({name, OUT} if name == BUCKET else {name})
    assert re.search(what, found[name])
    if name == BUCKET:
        assert found[OUT] == "was built from other buckets than those listed"


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("partitions", [1, 3])
def test_indexes_with_columns_match_their_buckets(
    is_directed: bool, partitions: int, tmp_path: Path, rng: np.random.Generator
) -> None:
    pairs = rng.integers(0, 20, (300, 2)).tolist()
    chunk = edge_chunk(
        pairs, weight=rng.random(300), time=np.arange(300), note=pa.array(["x"] * 300)
    )
    make_store(tmp_path / "g", chunk, is_directed=is_directed, partitions=partitions)
    assert verify(tmp_path / "g").problems == []


def test_few_open_files_are_no_damage(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> str:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr("graphsys.storage.verify.verify._what_is_damaged", fail)
    with pytest.raises(OSError, match="Too many open files"):
        verify(store)
