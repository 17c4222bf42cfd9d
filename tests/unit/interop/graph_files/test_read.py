"""Archives of GraphAr and folders of icebug: our own come back, strangers' are read."""

from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EdgeType
from graphsys.datasets import open_source
from graphsys.facade.graph import Graph
from graphsys.facade.ingest import ingest
from graphsys.interop.graph_files import write, write_graph
from graphsys.interop.graph_files.graphar import write_graphar
from graphsys.storage import EdgeChunk, NodeChunk
from tests.stores import make_store

pytest.importorskip("yaml", reason="PyYAML comes with the extra all")
LIKES = EdgeType("user", "likes", "an item")
COLUMNS = ("weight", "time", "relation", "note")
PERSON = """\
type: person
chunk_size: 2
prefix: vertex/person/
property_groups:
  - properties:
      - name: id
        data_type: int64
        is_primary: true
    file_type: csv
  - properties:
      - name: first
        data_type: string
        is_primary: false
      - name: last
        data_type: string
        is_primary: false
    file_type: csv
version: gar/v1
"""
KNOWS = """\
src_type: person
edge_type: knows
dst_type: person
chunk_size: 2
src_chunk_size: 2
dst_chunk_size: 2
directed: {directed}
prefix: edge/person_knows_person/
adj_lists:
  - ordered: true
    aligned_by: dst
    file_type: csv
property_groups:
  - properties:
      - name: since
        data_type: int32
        is_primary: false
    file_type: csv
version: gar/v1
"""
SEES = KNOWS.replace("knows", "sees").format(directed="true")


@pytest.fixture
def shop(tmp_path: Path) -> Graph:
    """Return a graph of two node types, with columns and features."""
    rng = np.random.default_rng(2)
    likes = rng.integers(0, [19, 9], (70, 2))
    users = pa.array([f"u{k}" for k in range(19)])
    make_store(
        tmp_path / "shop",
        NodeChunk(
            ids=users,
            node_type="user",
            columns={"age": pa.array([None if k % 5 == 0 else k for k in range(19)])},
            features={"x": rng.normal(size=(19, 3)).astype(np.float32)},
        ),
        NodeChunk(ids=np.arange(9) * 3 + 1, node_type="an item"),
        EdgeChunk(
            src=users.take(pa.array(likes[:, 0])),
            dst=likes[:, 1] * 3 + 1,
            edge_type=LIKES,
            columns={
                "weight": likes.sum(axis=1).astype(np.float32),
                "time": pa.array(likes[:, 0] * 1000).cast(pa.timestamp("us")),
                "note": pa.array([f"{a}-{b}" for a, b in likes.tolist()]),
                "relation": pa.array(["saw", "bought"]).take(pa.array(likes[:, 1] % 2)),
            },
        ),
        partitions={"user": 3, "an item": 2},
    )
    return Graph(tmp_path / "shop")


def edges_of(graph: Graph, *columns: str) -> Counter[Any]:
    """Return how often each edge is in a store, of undirected ones the lesser end first."""
    found: Counter[Any] = Counter()
    for name in graph.manifest.edge_types:
        for table in graph.edge_chunks(name):
            for row in table.select(["src", "dst", *columns]).to_pylist():
                src, dst, *rest = row.values()
                ends = (src, dst) if graph.is_directed else sorted([src, dst])
                found[(name, *ends, *rest)] += 1
    return found


def nodes_of(graph: Graph) -> dict[Any, Any]:
    """Return columns and features of each node."""
    found = {}
    for name in graph.node_types:
        for part in range(graph.num_partitions(name)):
            rows = graph.nodes(name, part).to_pylist()
            names = graph.feature_names(name)
            features = [graph.features(name, part, it) for it in names]
            for k, row in enumerate(rows):
                found[name, row["id"]] = (
                    row,
                    [np.asarray(it[k]).tolist() for it in features],
                )
    return found


def there_and_back(
    graph: Graph, folder: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> Graph:
    small = partial(write_graphar, vertex_chunk=7, edge_chunk=5)
    monkeypatch.setattr(write, "write_graphar", small)
    write_graph(graph, folder / "files", format=format)
    return ingest(folder / "files", folder / "back").graph  # the format is guessed


@pytest.mark.parametrize("format", ["graphar", "networkit"])
def test_a_graph_comes_back(
    shop: Graph, tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = there_and_back(shop, tmp_path, format, monkeypatch)
    assert back.edge_types == [LIKES]
    assert back.time_unit(LIKES) == "us"
    assert edges_of(back, *COLUMNS) == edges_of(shop, *COLUMNS)
    assert nodes_of(back) == nodes_of(shop)


@pytest.mark.parametrize("format", ["graphar", "networkit"])
def test_an_undirected_graph_comes_back(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    src = np.array([*range(16), 5, 3])
    dst = np.array([*((np.arange(16) + 1) % 16), 5, 4])
    chunk = EdgeChunk(src=src, dst=dst, columns={"weight": src + 0.5})
    make_store(tmp_path / "ring", chunk, is_directed=False, partitions=3)
    ring = Graph(tmp_path / "ring")
    back = there_and_back(ring, tmp_path, format, monkeypatch)
    assert not back.is_directed
    assert edges_of(back, "weight") == edges_of(ring, "weight")


@pytest.mark.parametrize("format", ["graphar", "networkit"])
def test_undirected_edges_between_two_types_come_back(
    tmp_path: Path, format: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    src, dst = np.array([0, 1, 2, 3, 3, 0]), np.array([0, 0, 1, 1, 0, 2])
    chunk = EdgeChunk(src=src, dst=dst, edge_type=LIKES, columns={"weight": src + 0.5})
    make_store(tmp_path / "shop", chunk, is_directed=False, partitions=2)
    both = Graph(tmp_path / "shop")
    back = there_and_back(both, tmp_path, format, monkeypatch)
    assert not back.is_directed
    assert edges_of(back, "weight") == edges_of(both, "weight")


def archive(root: Path, *, directed: str = "true", **texts: str) -> Path:
    """Write a small archive as other writers do: CSV, by destination, usual prefixes."""
    counts = {"vertex/person/vertex_count": 3}
    files = {
        "people.graph.yml": "name: people\nvertices:\n  - person.vertex.yml\n"
        "edges:\n  - knows.edge.yml\n  - sees.edge.yml\nversion: gar/v1\n",
        "person.vertex.yml": PERSON,
        "knows.edge.yml": KNOWS.format(directed=directed),
        "sees.edge.yml": SEES,
        "vertex/person/id/chunk0": "_graphArVertexIndex,id\n0,70\n1,71\n",
        "vertex/person/id/chunk1": "_graphArVertexIndex,id\n2,72\n",
        "vertex/person/first_last/chunk0": "first,last\nAda,A\n007,B\n",
        "vertex/person/first_last/chunk1": "first,last\nCleo,C\n",
    }
    pair = "_graphArSrcIndex,_graphArDstIndex\n"
    for name in ("knows", "sees"):
        at = f"edge/person_{name}_person/ordered_by_dest"
        counts |= {f"{at}/vertex_count": 3, f"{at}/edge_count0": 3, f"{at}/edge_count1": 0}
        files |= {
            f"{at}/adj_list/part0/chunk0": f"{pair}1,0\n2,0\n",
            f"{at}/adj_list/part0/chunk1": f"{pair}1,1\n",
            f"{at}/since/part0/chunk0": "since\n1999\n2001\n",
            f"{at}/since/part0/chunk1": "since\n2003\n",
        }
    for name, text in (files | texts).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name, count in counts.items():
        (root / name).write_bytes(count.to_bytes(8, "little"))
    return root


def test_an_archive_of_others(tmp_path: Path) -> None:
    graph = ingest(archive(tmp_path / "a"), tmp_path / "g").graph
    assert graph.is_directed
    assert nodes_of(graph)["person", 71] == ({"id": 71, "first": "007", "last": "B"}, [])
    edges = [(71, 70, 1999), (72, 70, 2001), (71, 71, 2003)]
    names = list(graph.manifest.edge_types)
    assert len(names) == 2
    assert edges_of(graph, "since") == Counter((n, *it) for n in names for it in edges)


def test_undirected_edges_among_directed_ones_are_read_both_ways(tmp_path: Path) -> None:
    graph = ingest(archive(tmp_path / "a", directed="false"), tmp_path / "g").graph
    assert graph.is_directed
    found = edges_of(graph, "since")
    knows = sorted(it[1:] for it in found if "knows" in it[0])
    assert knows == [
        (70, 71, 1999),
        (70, 72, 2001),
        (71, 70, 1999),
        (71, 71, 2003),
        (72, 70, 2001),
    ]
    assert sum(found.values()) == 8


AT = "edge/person_knows_person/ordered_by_dest/adj_list/part0/chunk1"
PAIR = "_graphArSrcIndex,_graphArDstIndex\n"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        (AT, f"{PAIR}9,1\n", r"vertex 9, expected 0 to 2"),
        (AT, f"{PAIR}1,1\n0,0\n", r"chunk1: 2 rows, expected 1"),
        (AT, "a,b\n1,1\n", r"lacks column '_graphArSrcIndex'"),
        ("knows.edge.yml", "[", r"knows\.edge\.yml: no YAML"),
        ("knows.edge.yml", "a: 1\n", r"lacks 'src_type'"),
        (
            "person.vertex.yml",
            PERSON.replace("v1", "v2"),
            r"version 'gar/v2', expected gar/v1",
        ),
        (
            "person.vertex.yml",
            PERSON.replace("csv", "txt"),
            r"file type 'txt', expected one of",
        ),
        ("person.vertex.yml", PERSON.replace(": 2", ": 0"), r"chunk_size is 0, expected"),
        (
            "person.vertex.yml",
            PERSON.replace("person\n", "dog\n"),
            r"vertices of type 'person'",
        ),
        ("other.graph.yml", "name: other\n", r"2 graphs, expected one; name its file"),
    ],
)
def test_damaged_archives(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        ingest(archive(tmp_path / "a", **{name: text}), tmp_path / "g")


def test_a_missing_chunk(tmp_path: Path) -> None:
    root = archive(tmp_path / "a")
    (root / AT).rename(root / "away")
    with pytest.raises(InputError, match="chunk1: no csv of GraphAr"):
        ingest(root, tmp_path / "g")


SCHEMA = """\
CREATE NODE TABLE Person(age INT32, `key` STRING, PRIMARY KEY(`key`)) WITH (storage = '');
CREATE NODE TABLE City(id INT64, PRIMARY KEY (id)) WITH (storage = '');
CREATE REL TABLE `livesIn` (FROM Person TO City, since INT32) WITH (storage = '');
"""


def disk(root: Path, ptr: list[int], target: list[int], schema: str = SCHEMA) -> Path:
    """Write a folder as other writers do."""
    root.mkdir()
    (root / "schema.cypher").write_text(schema)
    since = pa.array(range(2000, 2000 + len(target)), pa.int32())
    tables = {
        "nodes_person": {"age": pa.array([3, 4, 5], pa.int32()), "key": ["a", "b", "c"]},
        "nodes_city": {"id": [70, 71]},
        "indices_livesin": {"target": pa.array(target, pa.uint64()), "since": since},
        "indptr_livesin": {"ptr": pa.array(ptr, pa.uint64())},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), root / f"{name}.parquet")
    return root


def test_a_folder_of_others(tmp_path: Path) -> None:
    graph = ingest(disk(tmp_path / "d", [0, 2, 2, 3], [0, 1, 1]), tmp_path / "g").graph
    assert graph.edge_types == [EdgeType("Person", "livesIn", "City")]
    assert nodes_of(graph)["Person", "c"] == ({"id": "c", "age": 5}, [])
    edges = Counter(it[1:] for it in edges_of(graph, "since").elements())
    assert edges == Counter([("a", 70, 2000), ("a", 71, 2001), ("c", 71, 2002)])


@pytest.mark.parametrize(
    ("ptr", "target", "schema", "message"),
    [
        ([0, 2, 3], [0, 1, 1], SCHEMA, r"3 offsets, expected 4"),
        ([0, 2, 1, 3], [0, 1, 1], SCHEMA, r"never fall"),
        ([0, 2, 2, 4], [0, 1, 1], SCHEMA, r"other than the 4 edges"),
        ([0, 2, 2, 2], [0, 1, 1], SCHEMA, r"other than the 2 edges"),
        ([0, 2, 2, 3], [0, 1, 7], SCHEMA, r"vertex 7, expected 0 to 1"),
        ([0], [], "CREATE TABLE t", r"no CREATE NODE TABLE"),
        ([0, 2, 2, 3], [0, 1, 1], SCHEMA.replace("City,", "Town,"), r"to nodes 'Town'"),
        (
            [0, 2, 2, 3],
            [0, 1, 1],
            SCHEMA.replace("lives", "works"),
            r"no Parquet file of icebug",
        ),
    ],
)
def test_damaged_folders(
    tmp_path: Path, ptr: list[int], target: list[int], schema: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        ingest(disk(tmp_path / "d", ptr, target, schema), tmp_path / "g")


def broken_name(path: Path, name: bytes) -> None:
    """Write a name of a column, in its file, that is no text."""
    data = path.read_bytes()
    assert name in data
    path.write_bytes(data.replace(name, b"\xc9" + name[1:]))


def test_names_of_columns_that_are_no_text(tmp_path: Path) -> None:
    root = archive(tmp_path / "a")
    broken_name(root / "vertex/person/first_last/chunk0", b"first,")
    with pytest.raises(InputError, match="chunk0: no csv of GraphAr: 'utf-8' codec"):
        ingest(root, tmp_path / "g")
    icebug = disk(tmp_path / "d", [0, 2, 2, 3], [0, 1, 1])
    table = pa.table({"old": pa.array([3, 4, 5]), "key": ["a", "b", "c"]})
    pq.write_table(table, icebug / "nodes_person.parquet", store_schema=False)
    broken_name(icebug / "nodes_person.parquet", b"old")
    with pytest.raises(
        InputError, match="parquet: no Parquet file of icebug: 'utf-8' codec"
    ):
        ingest(icebug, tmp_path / "h")


def test_a_property_without_a_type_is_read_as_it_looks(tmp_path: Path) -> None:
    untyped = PERSON.replace("        data_type: int64\n", "")
    root = archive(tmp_path / "a", **{"person.vertex.yml": untyped})
    graph = ingest(root, tmp_path / "g").graph
    assert nodes_of(graph)["person", 71] == ({"id": 71, "first": "007", "last": "B"}, [])


def test_options_that_do_not_go_with_them(tmp_path: Path) -> None:
    for root in (archive(tmp_path / "a"), disk(tmp_path / "d", [0, 0, 0, 0], [])):
        with pytest.raises(ConfigError, match="leave those options out"):
            open_source(root, skip=1)
