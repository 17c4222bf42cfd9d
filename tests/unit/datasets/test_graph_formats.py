"""METIS, OpenKE, LDBC Graphalytics, GAP: small files, and every refusal."""

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets import open_source
from graphsys.storage.source import EdgeChunk, NodeChunk


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def read(path: Any, **options: Any) -> tuple[list[int], list[tuple[Any, ...]]]:
    """Return the listed nodes, and the edges with their columns."""
    nodes: list[int] = []
    rows: list[tuple[Any, ...]] = []
    for chunk in open_source(path, **options).chunks():
        if isinstance(chunk, NodeChunk):
            nodes += chunk.ids.tolist()
        else:
            columns = [chunk.src, chunk.dst, *chunk.columns.values()]
            rows += zip(*(column.tolist() for column in columns), strict=True)
    return nodes, rows


def test_metis_lists_each_edge_once(tmp_path: Path) -> None:
    path = write(tmp_path / "g.graph", "% c\n4 3\n2 3\n% in between\n1 3\n2 1\n\n")
    assert not open_source(path).is_directed
    assert read(path) == ([1, 2, 3, 4], [(1, 2), (1, 3), (2, 3)])
    packed = tmp_path / "h.graph.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read(packed) == read(path)


def test_metis_sizes_and_weights(tmp_path: Path) -> None:
    path = write(tmp_path / "g.graph", "2 2 111 2\n5 1 2 1 9 2 0.5\n6 3 4 1 5e-1\n")
    chunks = list(open_source(path).chunks())
    assert isinstance(chunks[0], NodeChunk)
    columns = {name: list(it) for name, it in chunks[0].columns.items()}
    assert columns == {"size": [5, 6], "weight": [1, 3], "weight_2": [2, 4]}
    assert read(path)[1] == [(1, 1, 9.0), (1, 2, 0.5)]


def test_metis_weights_that_need_a_full_parser(tmp_path: Path) -> None:
    weight = "0.1234567890123456789012345"
    path = write(tmp_path / "g.graph", f"2 1 1\n2 {weight}\n1 {weight}\n")
    assert read(path)[1] == [(1, 2, float(weight))]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\n", ":1: found 'a b', expected a METIS header"),
        ("2 1 7\n2\n1\n", "found the code '7', expected three digits"),
        ("2 1 11 0\n2\n1\n", "found 0 weights a node"),
        ("2 1\n3\n1\n", r":2: found '3' as a neighbor, expected a number of 1 to 2"),
        ("2 1\n2\n0\n", r":3: found '0' as a neighbor"),
        ("2 1\n2\n-1\n", r":3: found '-1', expected an integer"),
        ("2 1 1\n2\n1 1\n", ":2: found a neighbor without a weight"),
        ("2 1 1\n2 x\n1 1\n", ":2: found 'x' as weight, expected a number"),
        ("2 1 10\n\n1 2\n2 1\n", "a line of neighbors behind those of 2 nodes"),
        ("3 1\n2\n1\n", "found the lines of 2 nodes, expected 3 as line 1 says"),
        ("2 1\n2\n\n", "1 neighbors have greater numbers and 0 smaller ones"),
        ("3 2\n2\n3\n1\n", "2 neighbors have greater numbers and 1 smaller ones"),
        ("4 2\n2\n3\n4 1\n1\n", "have greater numbers"),
        ("2 1 1\n2 3\n1 4\n", "do not both list it or weigh it alike"),
        ("2 5\n2\n1\n", "found 1 edges, expected 5 as line 1 says"),
    ],
)
def test_metis_refuses(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(write(tmp_path / "g.graph", text))


def openke(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        write(folder / f"{name}.txt", text)
    return folder


def test_openke_names_entities_and_relations(tmp_path: Path) -> None:
    openke(
        tmp_path,
        train2id="2\r\n0 1 1\r\n1 2 0\r\n",
        test2id="1\n2 0 1\n",
        entity2id="4\nA B\t0\nC\t1\nD\t2\nlonely\t3\n",
        relation2id="2\nlikes\t1\nis\t0\n",
    )
    nodes, rows = read(tmp_path)
    assert nodes == [0, 1, 2, 3]
    assert rows == [(0, 1, "likes"), (1, 2, "is"), (2, 0, "likes")]
    splits = [
        it.split for it in open_source(tmp_path).chunks() if isinstance(it, EdgeChunk)
    ]
    assert splits == ["train", "test"]
    assert read(tmp_path / "train2id.txt")[1] == rows[:2]


def test_openke_without_names(tmp_path: Path) -> None:
    assert read(openke(tmp_path, train2id="1\n0 1 7\n")) == ([], [(0, 1, "7")])


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"train2id": "0 1 1\n"}, "train2id.txt:1: found '0 1 1', expected the number of"),
        ({"train2id": "3\n0 1 1\n"}, "train2id.txt:1: says 3 lines, found 1"),
        ({"train2id": "1\n0 1\n"}, "train2id.txt:2: found 2 columns, expected 3"),
        (
            {"train2id": "2\n0 1 0\n\n0 1 9\n", "relation2id": "1\nr\t0\n"},
            "train2id.txt:4: found relation 9, expected one of the 1",
        ),
        (
            {"train2id": "1\n0 1 0\n", "relation2id": "1\nr\t1\n"},
            "ids of 1 names are not 0 to 0",
        ),
        (
            {"train2id": "1\n0 1 0\n", "entity2id": "3\nA\t0\nB\t1\nC\t0\n"},
            "entity2id.txt:4: node 0 is listed a second time, after line 2",
        ),
    ],
)
def test_openke_refuses(tmp_path: Path, files: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(openke(tmp_path, **files))
    with pytest.raises(ConfigError, match="columns head, tail, relation"):
        open_source(tmp_path, format="openke", columns="a,b,c")


def test_graphalytics_reads_both_files(tmp_path: Path) -> None:
    write(tmp_path / "g.v", "1 x 0.5\n2 y 1\n9 z 2\n")
    write(tmp_path / "g.e", "1 2 0.5\n2 1 3\n")
    for name in ("g.v", "g.e"):
        assert read(tmp_path / name) == ([1, 2, 9], [(1, 2, 0.5), (2, 1, 3.0)])
    assert open_source(tmp_path / "g.e").is_directed
    chunk = next(iter(open_source(tmp_path).chunks()))
    assert isinstance(chunk, NodeChunk)
    assert chunk.columns["v1"].to_pylist() == ["x", "y", "z"]
    assert chunk.columns["v2"].tolist() == [0.5, 1, 2]
    write(tmp_path / "g.properties", "# x\ngraph.g.directed = false\n")
    assert not open_source(tmp_path / "g.e").is_directed


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"g.e": "1 2\n"}, r"g\.v: no such file"),
        ({"g.v": "1\n2\n", "g.e": "1 2\n3\n"}, r"g\.e:2: found 1 column"),
        ({"g.v": "1\n2 3\n", "g.e": "1 2\n"}, r"g\.v:2: found 2 columns, expected 1"),
        ({"g.v": "1\n2\n\n1\n", "g.e": "1 2\n"}, r"g\.v:4: node 1 is listed a second time"),
        (
            {"g.v": "a\n2\n", "g.e": "1 2\n"},
            r"g\.v:1: found 'a' as id, expected an integer",
        ),
        (
            {"g.v": "1\n", "g.e": "1 2\n", "g.properties": "graph.g.directed = maybe\n"},
            r"g\.properties:1: got 'maybe', expected true or false",
        ),
    ],
)
def test_graphalytics_refuses(tmp_path: Path, files: dict[str, str], message: str) -> None:
    for name, text in files.items():
        write(tmp_path / name, text)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "g.e")


def test_graphalytics_takes_one_graph_at_a_time(tmp_path: Path) -> None:
    for name in ("g", "h"):
        write(tmp_path / f"{name}.v", "1\n2\n")
        write(tmp_path / f"{name}.e", "1 2\n")
    with pytest.raises(InputError, match="of another graph than"):
        open_source([tmp_path / "g.e", tmp_path / "h.v"])


def serialized(
    rows: list[list[tuple[int, int]]], *, directed: bool, weighted: bool
) -> bytes:
    """Write GAP's binary layout (writer.h, WriteSerializedGraph)."""
    offsets = np.cumsum([0, *map(len, rows)]).astype("<i8")
    flat = [it for row in rows for it in row]
    entries = np.array(flat, dtype="<i4").reshape(-1, 2)
    body = offsets.tobytes() + (entries if weighted else entries[:, 0].copy()).tobytes()
    head = struct.pack("<?qq", directed, len(flat), len(rows))
    return head + body * (2 if directed else 1)


def test_gap_text(tmp_path: Path) -> None:
    path = write(tmp_path / "g.wel", "0 1 5\n1 2 6\n")
    assert read(path) == ([], [(0, 1, 5.0), (1, 2, 6.0)])
    path = write(tmp_path / "g.gr", "c x\np sp 4 2\nc y\na 1 2 803\na 2 1 -5\n")
    assert read(path) == ([1, 2, 3, 4], [(1, 2, 803.0), (2, 1, -5.0)])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a 1 2 3\n", r"g\.gr:1: found 'a 1 2 3', expected 'p sp NODES ARCS' before"),
        ("p sp 4\n", r"g\.gr:1: found 'p sp 4', expected 'p sp NODES ARCS'"),
        ("p sp 4 1\n", "no arc in the file"),
        ("p sp 4000000000000 1\n", r"g\.gr:1: 4000000000000 nodes, expected at most"),
        ("p sp 4 2\na 1 2 3\n", "found 1 arcs, expected 2"),
        ("p sp 4 2\na 1 2 3\ne 1 2 3\n", r"g\.gr:3: found 'e', expected the letter a"),
        ("p sp 4 2\na 1 2 3\na 1 5 3\n", r"g\.gr:3: found a 1 5, expected an arc"),
        ("p sp 4 2\na 1 2 3\na 1 2\n", r"g\.gr:3: found 3 columns, expected 4"),
    ],
)
def test_dimacs_refuses(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(write(tmp_path / "g.gr", text))


@pytest.mark.parametrize("is_packed", [False, True])
def test_gap_binary(tmp_path: Path, is_packed: bool) -> None:
    rows = [[(1, 7), (2, 8)], [(0, 7)], [(0, 8)], []]
    for name, directed in (("d", True), ("u", False)):
        for suffix, weighted in ((".sg", False), (".wsg", True)):
            content = serialized(rows, directed=directed, weighted=weighted)
            path = tmp_path / f"{name}{suffix}{'.gz' * is_packed}"
            path.write_bytes(gzip.compress(content) if is_packed else content)
            nodes, found = read(path)
            expected = [(0, 1, 7), (0, 2, 8), (1, 0, 7), (2, 0, 8)]
            expected = [it if weighted else it[:2] for it in expected]  # type: ignore[misc] # two shapes of rows
            assert nodes == [0, 1, 2, 3]
            assert found == (expected if directed else expected[:2])
            assert open_source(path).is_directed == directed


def test_gap_binary_refuses(tmp_path: Path) -> None:
    path = tmp_path / "g.sg"
    good = serialized([[(1, 0)], [(0, 0)]], directed=False, weighted=False)
    for content, message in (
        (b"\x00\x01", "2 bytes, expected a head of 17"),
        (good[:-1], "48 bytes, expected 49 for 2 nodes and 2 entries"),
        (good[:-4] + struct.pack("<i", 9), "a neighbor outside 0 to 1"),
        (good[:17] + struct.pack("<q", 1) + good[25:], "offsets do not rise from 0 to 2"),
        (good[:25] + struct.pack("<q", 5) + good[33:], "offsets do not rise"),
        (good[:-4] + struct.pack("<i", 1), "says undirected, but 1 neighbors"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read(path)
