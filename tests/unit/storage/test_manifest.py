"""graph.json: what it says is checked before it is believed."""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import CorruptStoreError, InvalidGraphError
from graphsys.storage import Graph
from graphsys.storage.manifest import Manifest, check_path, checksum_of, file_name


def rewrite(store: Path, **changes: Any) -> None:
    """Change fields of graph.json and give it a checksum that matches."""
    manifest = Manifest.read(store)
    (store / "graph.json").write_text(replace(manifest, **changes).to_json())


def test_what_is_written_is_what_is_read(store: Path) -> None:
    manifest = Manifest.read(store)
    (store / "graph.json").write_text(manifest.to_json())
    assert Manifest.read(store) == manifest


def test_equal_content_has_an_equal_fingerprint_in_any_generation(store: Path) -> None:
    manifest = Manifest.read(store)
    files = [replace(f, path=f.path.replace("gen-1/", "gen-7/")) for f in manifest.files]
    assert replace(manifest, generation=7, files=files).fingerprint == manifest.fingerprint


@pytest.mark.parametrize(
    "path", ["../x", "gen-1/../../x", "/etc/passwd", "a\\b", "", "a\0b"]
)
def test_a_path_that_leaves_the_folder_is_refused(path: str, store: Path) -> None:
    with pytest.raises(CorruptStoreError, match="not inside the graph's folder"):
        check_path(path, store)
    files = [replace(entry, path=path) for entry in Manifest.read(store).files[:1]]
    rewrite(store, files=files)
    with pytest.raises(CorruptStoreError, match="not inside the graph's folder"):
        Graph(store)


def test_a_newer_format_is_refused(store: Path) -> None:
    rewrite(store, format_version=5)
    with pytest.raises(CorruptStoreError, match=r"version 5, .* up to 4; upgrade graphsys"):
        Graph(store)


def test_an_altered_manifest_is_refused(store: Path) -> None:
    path = store / "graph.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(CorruptStoreError, match="does not match its own checksum"):
        Graph(store)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not valid JSON"),
        ("[]", "no format_version"),
        ("{}", "no format_version"),
        ('{"format_version": "new"}', "format version new"),
        ("[" * 100_000, "not valid JSON"),
        ('{"format_version": ' + "9" * 5000 + "}", "not valid JSON"),
    ],
)
def test_what_is_no_manifest_is_refused(text: str, message: str, store: Path) -> None:
    (store / "graph.json").write_text(text)
    with pytest.raises(CorruptStoreError, match=message):
        Graph(store)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"generation": 0}, "generation is 0"),
        ({"generation": "1"}, "generation is '1', expected int"),
        ({"files": {}}, r"files is \{\}, expected a list"),
        ({"node_types": {}}, "expected a node type"),
        ({"partitioning": None}, "partitioning is None, expected an object"),
        ({"extra": 1}, "extra is not a known field"),
    ],
)
def test_a_field_of_the_wrong_kind_is_named(
    change: dict[str, Any], message: str, store: Path
) -> None:
    content = json.loads((store / "graph.json").read_text())
    content.update(change)
    content["checksum"] = checksum_of(content)
    (store / "graph.json").write_text(json.dumps(content))
    with pytest.raises(CorruptStoreError, match=message):
        Graph(store)


def test_offsets_that_fall_are_refused(store: Path) -> None:
    manifest = Manifest.read(store)
    user = replace(manifest.node_types["user"], offsets=[0, 5, 3])
    rewrite(store, node_types={**manifest.node_types, "user": user})
    with pytest.raises(CorruptStoreError, match=r"user.offsets is \[0, 5, 3\]"):
        Graph(store)


def test_a_missing_graph_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(InvalidGraphError, match="does not exist"):
        Graph(tmp_path / "absent")
    with pytest.raises(InvalidGraphError, match=r"has no graph\.json"):
        Graph(tmp_path)


def test_a_manifest_that_is_a_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "graph.json").mkdir()
    with pytest.raises(CorruptStoreError, match="cannot be read: is a directory"):
        Graph(tmp_path)


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda path: path.unlink(), "is missing"),
        (lambda path: (path.unlink(), path.symlink_to(path.name)), "is missing"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), r"bytes, graph\.json says"),
        (lambda path: path.write_bytes(b"x" * path.stat().st_size), "not an Arrow file"),
    ],
)
def test_opening_notices_what_it_promises_to(
    damage: Any, message: str, store: Path
) -> None:
    damage(next(store.rglob("bucket-*.arrow")))
    with pytest.raises(CorruptStoreError, match=message):
        Graph(store)


def test_names_become_single_safe_components() -> None:
    names = ["a/b", "..", ".", "", "100%", "\u00fc", "a", "A", "%", "n" * 300, "n" * 301]
    components = [file_name(name) for name in names]
    assert len(set(components)) == len(names)
    for component in components:
        assert component not in ("", ".", "..")
        assert "/" not in component
        assert component.isascii()
        assert len(component) <= 200
    assert file_name("a/b") == "a%2Fb"
    assert file_name("..") == "%2E%2E"


@pytest.mark.parametrize(("field", "size"), [("rows", 2**63), ("rows", -1), ("bytes", -1)])
def test_impossible_sizes_are_refused(field: str, size: int, store: Path) -> None:
    content = json.loads((store / "graph.json").read_text())
    content["files"][0][field] = size
    content["checksum"] = checksum_of(content)
    (store / "graph.json").write_text(json.dumps(content))
    with pytest.raises(CorruptStoreError, match=rf"files\..* is {size}"):
        Manifest.read(store)


def forge(store: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change what a manifest says, and make its checksum right."""
    content = json.loads((store / "graph.json").read_text())
    change(content)
    content["checksum"] = checksum_of(content)
    (store / "graph.json").write_text(json.dumps(content))


def test_a_million_partitions_are_refused_at_once(store: Path) -> None:
    node_type = json.loads((store / "graph.json").read_text())["node_types"].popitem()[0]
    offsets = [0] * 10**6
    forge(store, lambda it: it["node_types"][node_type].update(offsets=offsets))
    with pytest.raises(CorruptStoreError, match="999999 partitions', expected at most"):
        Manifest.read(store)


def test_a_deep_manifest_is_refused(store: Path) -> None:
    deep: Any = []
    for _ in range(300):
        deep = [deep]
    forge(store, lambda it: it["partitioning"].update(quality=deep))
    with pytest.raises(CorruptStoreError, match="nested deeper than 100 levels"):
        Manifest.read(store)
    (store / "graph.json").write_text("[" * 10**5)
    with pytest.raises(CorruptStoreError, match="nested deeper than 100 levels"):
        Manifest.read(store)


def test_a_pipe_in_the_place_of_the_manifest_is_not_waited_for(store: Path) -> None:
    (store / "graph.json").unlink()
    os.mkfifo(store / "graph.json")
    with pytest.raises(CorruptStoreError, match="cannot be read: not a plain file"):
        Graph(store)
