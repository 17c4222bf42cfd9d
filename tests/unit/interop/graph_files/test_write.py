"""Graphs as files of other systems, read back as their specifications say."""

import datetime as dt
import json
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

from graphsys.core.errors import (
    BudgetError,
    ConfigError,
    OutputExistsError,
    UnknownNameError,
)
from graphsys.core.types import EdgeType
from graphsys.facade.graph import Graph
from graphsys.interop.graph_files import write, write_graph
from graphsys.interop.graph_files.graphar import write_graphar
from graphsys.storage import EdgeChunk, NodeChunk
from tests.stores import make_store

yaml = pytest.importorskip("yaml", reason="PyYAML comes with the extra all")
LIKES = EdgeType("user", "likes", "item")
FOLLOWS = EdgeType("user", "follows", "user")
USERS = [f"u{k}" for k in range(23)]
VERTEX_CHUNK, EDGE_CHUNK = 7, 5


@pytest.fixture
def shop(tmp_path: Path) -> Graph:
    """Return a graph of two node types and two edge types, of three and two partitions."""
    rng = np.random.default_rng(1)
    likes = rng.integers(0, [23, 11], (90, 2))
    likes[:40, 0] = 3  # a row longer than a chunk
    users = pa.array(USERS)
    moments = pa.array(likes[:, 0] * 1000).cast(pa.timestamp("s"))
    follows = np.unique(np.sort(rng.integers(0, 23, (40, 2)), axis=1), axis=0)
    follows = np.concatenate([follows[follows[:, 0] != follows[:, 1]], [[4, 4]]])
    make_store(
        tmp_path / "shop",
        NodeChunk(
            ids=users,
            node_type="user",
            columns={"age": pa.array([None if k % 5 == 0 else k for k in range(23)])},
            features={"x": np.arange(46, dtype=np.float32).reshape(23, 2)},
        ),
        NodeChunk(ids=np.arange(11) * 3 + 1, node_type="item"),
        EdgeChunk(
            src=users.take(pa.array(likes[:, 0])),
            dst=likes[:, 1] * 3 + 1,
            edge_type=LIKES,
            columns={
                "weight": likes.sum(axis=1).astype(np.float32),
                "time": moments,
                "note": pa.array([f"{a}-{b}" for a, b in likes.tolist()]),
                "relation": pa.array(["saw", "bought"]).take(pa.array(likes[:, 1] % 2)),
            },
        ),
        EdgeChunk(
            src=users.take(pa.array(follows[:, 0])),
            dst=users.take(pa.array(follows[:, 1])),
            edge_type=FOLLOWS,
        ),
        partitions={"user": 3, "item": 2},
    )
    return Graph(tmp_path / "shop")


@pytest.fixture
def ring(tmp_path: Path) -> Graph:
    """Return an undirected ring with a loop and a weight."""
    src = np.array([*range(16), 5])
    dst = np.array([*((np.arange(16) + 1) % 16), 5])
    chunk = EdgeChunk(src=src, dst=dst, columns={"weight": src + 0.5})
    make_store(tmp_path / "ring", chunk, is_directed=False, partitions=3)
    return Graph(tmp_path / "ring")


def edges_of(graph: Graph, name: str, *columns: str) -> Counter[Any]:
    """Return how often each edge is in a store, by ids and columns."""
    found: Counter[Any] = Counter()
    for table in graph.edge_chunks(name):
        rows = table.select(["src", "dst", *columns]).to_pylist()
        found.update(tuple(row.values()) for row in rows)
    return found


def both_ways(edges: Counter[Any]) -> Counter[Any]:
    """Return edges and those against them, loops once."""
    back = Counter({(b, a, *rest): n for (a, b, *rest), n in edges.items() if a != b})
    return edges + back


def as_csr(graph: Graph, out: Path, **options: Any) -> dict[str, Any]:
    write_graph(graph, out, format="csr", **options)
    said: dict[str, Any] = json.loads((out / "csr.json").read_text())
    return said


def test_csr_arrays_are_scipys(ring: Graph, tmp_path: Path) -> None:
    said = as_csr(ring, tmp_path / "out")
    assert said["node_types"]["node"]["num_nodes"] == 16
    (edges,) = said["edge_types"]
    assert edges["is_symmetric"]
    assert not edges["directed"]
    folder = tmp_path / "out" / edges["folder"]
    parts = [np.load(folder / edges["files"][it]) for it in ("weight", "indices", "indptr")]
    assert (sp.csr_array(tuple(parts), shape=(16, 16)) != ring.to_scipy()).nnz == 0
    ids = np.load(tmp_path / "out" / "nodes/node/ids.npy")
    assert ids.tolist() == ring.node_ids("node").to_pylist()


def test_csr_has_all_columns(shop: Graph, tmp_path: Path) -> None:
    said = as_csr(shop, tmp_path / "out")
    likes = next(it for it in said["edge_types"] if it["edge_type"] == list(LIKES))
    folder = tmp_path / "out" / likes["folder"]
    indptr, indices = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
    src = np.repeat(np.arange(23), np.diff(indptr))
    users, items = shop.node_ids("user"), shop.node_ids("item")
    assert likes["time_unit"] == "s"
    times = np.load(folder / "time.npy")
    notes = pa.ipc.open_file(folder / "columns.arrow").read_all()["note"].to_pylist()
    names = [likes["relations"][k] for k in np.load(folder / "relation.npy")]
    found = Counter(
        (users[a].as_py(), items[b].as_py(), relation, float(w), when, note)
        for a, b, relation, w, when, note in zip(
            src.tolist(),
            indices.tolist(),
            names,
            np.load(folder / "weight.npy"),
            [dt.datetime.fromtimestamp(t, dt.UTC).replace(tzinfo=None) for t in times],
            notes,
            strict=True,
        )
    )
    assert found == edges_of(shop, "likes", "relation", "weight", "time", "note")
    x = np.load(tmp_path / "out/nodes/user/features/x.npy")
    kept = pa.ipc.open_file(tmp_path / "out/nodes/user/ids.arrow").read_all()["id"]
    assert x.tolist() == [
        [2.0 * int(i[1:]), 2.0 * int(i[1:]) + 1] for i in kept.to_pylist()
    ]


@pytest.mark.parametrize("rows", [1, 3, 1 << 17])
def test_blocks_of_any_size_are_the_same(
    shop: Graph, tmp_path: Path, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_csr(shop, tmp_path / "one")
    monkeypatch.setattr(write, "LARGEST_BLOCK", rows)
    as_csr(shop, tmp_path / "two")
    for file in sorted((tmp_path / "one").rglob("*.*")):
        other = tmp_path / "two" / file.relative_to(tmp_path / "one")
        if file.suffix == ".npy":
            assert file.read_bytes() == other.read_bytes()
        elif file.suffix == ".arrow":
            read = [pa.ipc.open_file(it).read_all() for it in (file, other)]
            assert read[0].equals(read[1])


def test_networkit_files_are_the_graph(shop: Graph, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_graph(shop, out, format="networkit")
    text = (out / "schema.cypher").read_text()
    tables = re.findall(r"CREATE REL TABLE (\w+)\(FROM (\w+) TO (\w+)", text)
    assert sorted(tables) == [("follows", "user", "user"), ("likes", "user", "item")]
    assert (
        "CREATE NODE TABLE user(id STRING, age INT64, x FLOAT[2], PRIMARY KEY(id))" in text
    )
    for name, src_type, dst_type in tables:
        indices = pq.ParquetFile(out / f"indices_{name}.parquet")
        assert indices.schema_arrow.metadata[b"icebug_disk_version"] == b"v1"
        ends = [
            pq.read_table(out / f"nodes_{it}.parquet")["id"].to_pylist()
            for it in (src_type, dst_type)
        ]
        ptr = pq.read_table(out / f"indptr_{name}.parquet")["ptr"].to_numpy()
        assert (len(ptr), ptr[0]) == (len(ends[0]) + 1, 0)
        table = indices.read()
        src = np.repeat(np.arange(len(ends[0])), np.diff(ptr)).tolist()
        columns = ["relation", "weight", "time", "note"] if name == "likes" else []
        found = Counter(
            (ends[0][a], ends[1][row.pop("target")], *(row[it] for it in columns))
            for a, row in zip(src, table.to_pylist(), strict=True)
        )
        assert found == edges_of(shop, name, *columns)


def test_networkit_has_undirected_edges_both_ways(ring: Graph, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_graph(ring, out, format="networkit")
    ids = pq.read_table(out / "nodes_node.parquet")["id"].to_pylist()
    ptr = pq.read_table(out / "indptr_edge.parquet")["ptr"].to_numpy()
    table = pq.read_table(out / "indices_edge.parquet")
    assert table.schema.metadata[b"graphsys_directed"] == b"false"
    src = np.repeat(np.arange(16), np.diff(ptr))
    ends = [ids[it] for it in table["target"].to_pylist()]
    found = Counter(
        zip([ids[it] for it in src], ends, table["weight"].to_pylist(), strict=True)
    )
    assert found == both_ways(edges_of(ring, "edge", "weight"))


def graphar(graph: Graph, out: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write an archive of small chunks; return its description of the graph."""
    small = partial(write_graphar, vertex_chunk=VERTEX_CHUNK, edge_chunk=EDGE_CHUNK)
    monkeypatch.setattr(write, "write_graphar", small)
    write_graph(graph, out, format="graphar")
    return out / f"{out.name}.graph.yml"


def number_in(path: Path) -> int:
    return int.from_bytes(path.read_bytes(), "little")


def vertices_in(info: Path) -> tuple[str, list[dict[str, Any]]]:
    """Return a vertex type and its vertices, by the specification."""
    said = yaml.safe_load(info.read_text())
    folder = info.parent / said["prefix"]
    count, size = number_in(folder / "vertex_count"), said["chunk_size"]
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    for group in said["property_groups"]:
        for chunk in range(-(-count // size)):
            table = pq.ParquetFile(folder / group["prefix"] / f"chunk{chunk}").read()
            assert table.num_rows == min(size, count - chunk * size)
            names = [it["name"] for it in group["properties"]]
            for k, row in enumerate(table.to_pylist()):
                assert row["_graphArVertexIndex"] == chunk * size + k
                rows[chunk * size + k] |= {name: row[name] for name in names}
    return said["type"], rows


def edges_in(info: Path, counts: dict[str, int]) -> tuple[str, list[tuple[Any, ...]]]:
    """Return an edge type and its edges, by the specification; offsets are compared."""
    said = yaml.safe_load(info.read_text())
    (order,) = said["adj_lists"]
    assert (order["ordered"], order["aligned_by"]) == (True, "src")
    folder = info.parent / said["prefix"] / order["prefix"]
    count, size = counts[said["src_type"]], said["src_chunk_size"]
    assert number_in(folder / "vertex_count") == count
    found: list[tuple[Any, ...]] = []
    for part in range(-(-count // size)):
        num_edges = number_in(folder / f"edge_count{part}")
        rows: list[dict[str, Any]] = []
        for chunk in range(-(-num_edges // said["chunk_size"])):
            at = f"part{part}/chunk{chunk}"
            table = pq.ParquetFile(folder / "adj_list" / at).read().to_pylist()
            for group in said.get("property_groups", []):
                more = pq.ParquetFile(folder / group["prefix"] / at).read().to_pylist()
                table = [a | b for a, b in zip(table, more, strict=True)]
            rows += table
        assert len(rows) == num_edges
        src = [row["_graphArSrcIndex"] for row in rows]
        offsets = (
            pq.ParquetFile(folder / f"offset/chunk{part}").read().column(0).to_pylist()
        )
        nodes = range(part * size, min((part + 1) * size, count) + 1)
        assert offsets == np.searchsorted(src, nodes).tolist()
        found += [tuple(row.values()) for row in rows]
    return said["edge_type"], found


def test_a_graphar_archive_is_as_specified(
    shop: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = graphar(shop, tmp_path / "out", monkeypatch)
    said = yaml.safe_load(info.read_text())
    assert (said["name"], said["version"]) == ("out", "gar/v1")
    nodes = dict(vertices_in(info.parent / it) for it in said["vertices"])
    assert [it["id"] for it in nodes["user"]] == shop.node_ids("user").to_pylist()
    for row in nodes["user"]:
        number = int(row["id"][1:])
        assert row["x"] == [2 * number, 2 * number + 1]
        assert row["age"] == (None if number % 5 == 0 else number)
    counts = {name: len(rows) for name, rows in nodes.items()}
    edges = dict(edges_in(info.parent / it, counts) for it in said["edges"])
    found = Counter(
        (nodes["user"][a]["id"], nodes["item"][b]["id"], *rest)
        for a, b, *rest in edges["likes"]
    )
    assert found == edges_of(shop, "likes", "weight", "time", "relation", "note")


def test_a_graphar_archive_has_undirected_edges_once(
    ring: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = graphar(ring, tmp_path / "out", monkeypatch)
    (edge_info,) = yaml.safe_load(info.read_text())["edges"]
    assert yaml.safe_load((info.parent / edge_info).read_text())["directed"] is False
    _, edges = edges_in(info.parent / edge_info, {"node": 16})
    ids = ring.node_ids("node").to_pylist()
    found = Counter((*sorted([ids[a], ids[b]]), w) for a, b, w in edges)
    stored = edges_of(ring, "edge", "weight")
    assert found == Counter((*sorted([a, b]), w) for a, b, w in stored.elements())


def test_names_that_yaml_would_read_otherwise(tmp_path: Path) -> None:
    kind = EdgeType("no", "a: b", 'say "1"')
    chunk = EdgeChunk(
        src=np.array([1]), dst=np.array([2]), edge_type=kind, columns={"12": np.array([3])}
    )
    make_store(tmp_path / "g", chunk)
    write_graph(Graph(tmp_path / "g"), tmp_path / "out", format="graphar")
    said = yaml.safe_load((tmp_path / "out/out.graph.yml").read_text())
    info = yaml.safe_load((tmp_path / "out" / said["edges"][0]).read_text())
    assert (info["src_type"], info["edge_type"], info["dst_type"]) == tuple(kind)
    assert info["property_groups"][0]["properties"][0]["name"] == "12"
    assert (tmp_path / "out" / info["prefix"] / "ordered_by_source/adj_list").is_dir()


def test_only_a_folder_of_an_export_is_replaced(ring: Graph, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_graph(ring, out)
    with pytest.raises(OutputExistsError, match="out exists; replace it with --overwrite"):
        write_graph(ring, out)
    write_graph(ring, out, format="networkit", overwrite=True)
    assert not (out / "csr.json").exists()
    assert (out / "schema.cypher").exists()
    (out / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match=r"holds 'mine\.txt', which no export wrote"):
        write_graph(ring, out, overwrite=True)
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="holds files that no export wrote"):
        write_graph(ring, other, overwrite=True)
    with pytest.raises(ConfigError, match="is a graph; name a new folder"):
        write_graph(ring, ring.path, overwrite=True)
    with pytest.raises(ConfigError, match="is no folder; name a new one"):
        write_graph(ring, other / "mine.txt")
    assert sorted(it.name for it in tmp_path.iterdir()) == ["other", "out", "ring"]


def test_a_failed_export_leaves_what_was_there(
    ring: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write_graph(ring, out)

    def fail(*args: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(write, "write_csr", fail)
    with pytest.raises(OSError, match="space"):
        write_graph(ring, out, overwrite=True)
    assert (out / "csr.json").exists()
    assert sorted(it.name for it in tmp_path.iterdir()) == ["out", "ring"]


def test_what_a_killed_export_left_goes(ring: Graph, tmp_path: Path) -> None:
    left = tmp_path / ".out.graphsys-0123456789abcdef.new"
    left.mkdir()
    (left / "csr.json").write_text("{}")
    other = tmp_path / ".out.graphsys-0123456789abcdee.new"
    other.mkdir()
    said = {"graphsys": "0123456789abcdef", "folder": left.name}
    (left / ".graphsys-0123456789abcdef").write_text(json.dumps(said))
    (other / "mine.txt").write_text("mine")
    write_graph(ring, tmp_path / "out")
    assert not left.exists()
    assert (other / "mine.txt").exists()


def test_memory_is_kept_to(ring: Graph, tmp_path: Path) -> None:
    with pytest.raises(BudgetError, match=r"writing csr needs .* give --memory") as refusal:
        write_graph(ring, tmp_path / "out", memory="1MB")
    found = re.search(r"--memory (\S+)", str(refusal.value))
    assert found is not None
    write_graph(ring, tmp_path / "out", memory=found[1])


def test_what_has_no_type_there_is_refused(tmp_path: Path) -> None:
    clock = pa.array([dt.time(1, 2)])
    chunk = EdgeChunk(src=np.array([1]), dst=np.array([2]), columns={"at": clock})
    make_store(tmp_path / "g", chunk)
    graph = Graph(tmp_path / "g")
    for name, system in (("graphar", "GraphAr"), ("networkit", "icebug")):
        with pytest.raises(
            ConfigError, match=rf"column 'at' .* which {system} has no type"
        ):
            write_graph(graph, tmp_path / "out", format=name)
    write_graph(graph, tmp_path / "out", format="csr")
    columns = pa.ipc.open_file(tmp_path / "out/edges/edge/columns.arrow").read_all()
    assert columns["at"].to_pylist() == [dt.time(1, 2)]


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    large = pa.array([2**64 - 1], pa.uint64())
    chunk = EdgeChunk(src=np.array([1]), dst=np.array([2]), columns={"n": large})
    make_store(tmp_path / "g", chunk)
    with pytest.raises(ConfigError, match=r"column 'n' .* does not fit int64 of GraphAr"):
        write_graph(Graph(tmp_path / "g"), tmp_path / "out", format="graphar")


def test_formats_that_there_are_not(ring: Graph, tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown format of graphs 'graphr'"):
        write_graph(ring, tmp_path / "out", format="graphr")
    for name in ("pyg", "dgl"):
        with pytest.raises(
            ConfigError, match=rf"call graphsys.open\(GRAPH\).to_{name}\(\)"
        ):
            write_graph(ring, tmp_path / "out", format=name)


def test_other_splits_are_told(tmp_path: Path) -> None:
    pairs = {"train": [(1, 2), (2, 3)], "test": [(3, 1)]}
    chunks = [
        EdgeChunk(src=np.array(it)[:, 0], dst=np.array(it)[:, 1], split=split)
        for split, it in pairs.items()
    ]
    make_store(tmp_path / "g", *chunks)
    facts = write_graph(Graph(tmp_path / "g"), tmp_path / "out")
    assert facts["splits_left_out"] == {"edge": ["test"]}
    assert np.load(tmp_path / "out/edges/edge/indices.npy").shape == (2,)


def test_the_command(ring: Graph, tmp_path: Path, run_cli: Any) -> None:
    done = run_cli(
        "export", ring.path, "--format", "csr", "-o", "out", "--json", cwd=tmp_path
    )
    assert json.loads(done.stdout)["num_edges"] == 17
    assert (tmp_path / "out/csr.json").exists()
    done = run_cli("export", ring.path, "--format", "csr", "-o", "out", cwd=tmp_path)
    assert (done.returncode, "replace it with --overwrite" in done.stderr) == (2, True)
    again = ("--format", "graphar", "-o", "out", "--overwrite")
    done = run_cli("export", ring.path, *again, "--node-type", "node", cwd=tmp_path)
    assert done.returncode == 2
    assert "--node-type does not go with --format" in done.stderr
    done = run_cli("export", ring.path, *again, cwd=tmp_path)
    assert "wrote out" in done.stderr
    assert (tmp_path / "out/out.graph.yml").exists()
