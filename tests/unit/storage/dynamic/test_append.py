"""Appends: what a store with deltas holds is what a store of all would hold."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core import ownership
from graphsys.core.errors import ConfigError, InputError, InvalidGraphError, StoreBusyError
from graphsys.core.types import EdgeType
from graphsys.engine.topology import Topology
from graphsys.facade.graph import Graph
from graphsys.storage import EdgeChunk, GraphReader, NodeChunk
from graphsys.storage import info as infos
from graphsys.storage.dynamic.append import AppendReport, append
from graphsys.storage.dynamic.compact import compact
from graphsys.storage.info import details, info
from graphsys.storage.locks import WriterLock
from graphsys.storage.verify.verify import verify
from tests.stores import ListSource, edge_chunk, make_store, pairs_of, read_edges
from tests.unit.storage.conftest import LIKES

KNOWS = EdgeType("user", "knows", "user")


def add(
    store: Path, *chunks: EdgeChunk | NodeChunk, **options: Any
) -> AppendReport[GraphReader]:
    """Append chunks; ``deletes`` are chunks too."""
    deletes = [ListSource(options.pop("deletes"))] if "deletes" in options else []
    source = ListSource(chunks, is_directed=options.pop("is_directed", True))
    return append(store, source if chunks else None, deletes=deletes, **options)


def random_chunk(rng: np.random.Generator, size: int, ids: int, is_string: bool) -> Any:
    """Return edges with every kind of column."""
    src, dst = rng.integers(0, ids, size), rng.integers(0, ids, size)
    names = [[f"n{k}" if is_string else int(k) for k in ends] for ends in (src, dst)]
    return edge_chunk(
        zip(*names, strict=True),
        relation=pa.array([f"r{k}" for k in rng.integers(0, 3, size)]),
        time=rng.integers(0, 1000, size),
        weight=rng.integers(0, 9, size).astype(float),
        note=pa.array([f"x{k}" for k in rng.integers(0, 9, size)]),
    )


def rows_of(graph: Graph, direction: str) -> Counter[Any]:
    """Return every entry of the indexes by ids, after looking whether it makes sense."""
    found: Counter[Any] = Counter()
    ids, offsets = graph.node_ids("node").to_pylist(), graph.offsets("node")
    sequence = read_edges(graph, "edge")
    names = graph.relations("edge") or []
    for part in range(graph.num_partitions("node")):
        index = getattr(graph, direction)("edge", part)
        for row in range(len(index.indptr) - 1):
            begin, end = int(index.indptr[row]), int(index.indptr[row + 1])
            neighbors = index.indices[begin:end].tolist()
            assert neighbors == sorted(neighbors)
            for entry in range(begin, end):
                own, other = ids[offsets[part] + row], ids[index.indices[entry]]
                edge = sequence[index.edge[entry]]
                assert {edge.src, edge.dst} == {own, other}
                values = dict(edge.values)
                assert values["time"] == index.time[entry]
                assert values["weight"] == index.weight[entry]
                assert edge.relation == names[index.relation[entry]]
                found[own, other, edge.relation, edge.values] += 1
    return found


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("is_string", [True, False])
def test_deltas_read_as_a_store_of_all(
    tmp_path: Path, is_directed: bool, partitions: int, is_string: bool
) -> None:
    rng = np.random.default_rng(3)
    chunks = [random_chunk(rng, 150, 30, is_string)]
    one, all_ = tmp_path / "one", tmp_path / "all"
    kind: dict[str, Any] = {"partitions": partitions, "is_directed": is_directed}
    make_store(one, *chunks, **kind).graph.close()
    for k in range(3):
        chunks.append(random_chunk(rng, 40, 33 + 6 * k, is_string))
        add(one, chunks[-1], is_directed=is_directed).graph.close()
    make_store(all_, *chunks, **kind).graph.close()
    with Graph(one) as found, Graph(all_) as wanted:
        for direction in ("out_index", "in_index"):
            assert rows_of(found, direction) == rows_of(wanted, direction)
        assert (found.num_nodes, found.num_edges) == (wanted.num_nodes, wanted.num_edges)
        for (i, j), count in np.ndenumerate(found.bucket_counts("edge")):
            assert found.bucket("edge", i, j).num_edges == count
    assert verify(one).problems == []


def test_an_open_graph_keeps_what_it_showed(tmp_path: Path) -> None:
    with make_store(tmp_path / "g", edge_chunk([(1, 2), (2, 3)])).graph as before:
        with add(tmp_path / "g", edge_chunk([(3, 9)])).graph as after:
            assert pairs_of(before) == Counter([(1, 2), (2, 3)])
            assert pairs_of(after) == Counter([(1, 2), (2, 3), (3, 9)])
        assert before.generation == 1
        assert before.num_nodes == 3
        assert before.out_index("edge", 0).indices.tolist() == [1, 2]


def test_an_append_touches_no_file_of_before(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk([(1, 2), (2, 3)]), partitions=2).graph.close()

    def files() -> dict[Path, tuple[int, int]]:
        found = (tmp_path / "g/gen-1").rglob("*.arrow")
        return {p: (p.stat().st_mtime_ns, p.stat().st_ino) for p in found}

    before = files()
    add(tmp_path / "g", edge_chunk([(1, 4)])).graph.close()
    new = files().keys() - before.keys()
    assert {p: files()[p] for p in before} == before
    assert {p.relative_to(tmp_path / "g/gen-1/deltas/1").as_posix() for p in new} == {
        "edges/edge/train.arrow",
        "nodes/node/part-2.arrow",
    }


def test_numbers_stay_and_new_nodes_form_a_partition(tmp_path: Path) -> None:
    made = make_store(tmp_path / "g", edge_chunk([(5, 2), (2, 8)]), order="original")
    with made.graph as before:
        known = before.node_ids("node").to_pylist()
    with add(tmp_path / "g", edge_chunk([(9, 5), (1, 2)])).graph as now:
        assert now.node_ids("node").to_pylist() == [*known, 1, 9]
        assert now.offsets("node").tolist() == [0, 3, 5]
        assert now.lookup("node", [9, 5]).tolist() == [4, 1]


# ---- deletions


def test_a_deletion_removes_all_copies_and_nothing_else(tmp_path: Path) -> None:
    pairs = [(1, 2), (1, 2), (1, 3), (2, 1)]
    make_store(tmp_path / "g", edge_chunk(pairs)).graph.close()
    report = add(tmp_path / "g", deletes=[edge_chunk([(1, 2)])])
    assert (report.num_removed, report.num_added) == (2, 0)
    with report.graph as now:
        assert pairs_of(now) == Counter([(1, 3), (2, 1)])
        assert now.num_edges == 2
        assert now.out_index("edge", 0).indices.tolist() == [2, 0]
        assert sorted(now.in_index("edge", 0).indices.tolist()) == [0, 1]
    assert verify(tmp_path / "g").ok


def test_deletions_come_before_what_is_added(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk([(1, 2)], weight=[1.0])).graph.close()
    new = edge_chunk([(1, 2)], weight=[5.0])
    with add(tmp_path / "g", new, deletes=[edge_chunk([(1, 2)])]).graph as now:
        assert [edge.values for edge in read_edges(now, "edge")] == [(("weight", 5.0),)]


def test_an_appended_edge_can_be_deleted_and_come_again(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2)]), is_directed=False).graph.close()
    add(store, edge_chunk([(7, 1), (7, 1), (2, 2)]), is_directed=False).graph.close()
    add(store, deletes=[edge_chunk([(1, 7), (2, 2)])]).graph.close()
    with Graph(store) as graph:
        assert pairs_of(graph) == Counter([(1, 2)])
        assert [len(graph.out_index("edge", p).indices) for p in (0, 1)] == [2, 0]
    add(store, edge_chunk([(7, 1)]), is_directed=False).graph.close()
    add(store, deletes=[edge_chunk([(1, 2)])]).graph.close()
    with Graph(store) as graph:
        assert graph.neighbors(7) == [1]
        assert graph.neighbors(2) == []
    assert verify(store).problems == []


def test_relation_and_time_narrow_a_deletion(tmp_path: Path) -> None:
    edges = edge_chunk(
        [(1, 2)] * 4, relation=pa.array(["a", "a", "b", "b"]), time=[1, 9, 1, 9]
    )
    make_store(tmp_path / "g", edges).graph.close()
    gone = edge_chunk([(1, 2)], relation=pa.array(["a"]), time=[5])
    with add(tmp_path / "g", deletes=[gone]).graph as now:
        found = {(e.relation, dict(e.values)["time"]) for e in read_edges(now, "edge")}
        assert found == {("a", 9), ("b", 1), ("b", 9)}
    assert verify(tmp_path / "g").ok


def test_a_deletion_reaches_every_split(store: Path) -> None:
    with add(store, deletes=[edge_chunk([("u1", 3)], LIKES)]).graph as now:
        assert ("u1", 3) not in pairs_of(now, "likes", "test")
        assert ("u1", 3) not in pairs_of(now, "likes", "train")
    assert verify(store).problems == []


def test_deletions_of_what_is_not_there(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2)])).graph.close()
    gone = [edge_chunk([(2, 1), (1, 2), (7, 8)])]
    text = (
        r"the edge 2 -> 1 and 1 more is not in .*g, so it cannot be deleted; leave it out"
    )
    with pytest.raises(InputError, match=text):
        add(store, deletes=gone)
    with Graph(store) as graph:
        assert not graph.manifest.deltas
    report = add(store, deletes=gone, missing_deletes="count")
    report.graph.close()
    assert (report.num_removed, report.missing_deletes) == (1, 2)
    report = add(store, deletes=gone, missing_deletes="count")
    report.graph.close()
    assert (report.missing_deletes, report.bytes_written) == (3, 0)
    assert info(store)["num_edges"] == 0
    with pytest.raises(ConfigError, match="got 'skip', expected error or count"):
        add(store, deletes=gone, missing_deletes="skip")


# ---- schema


def refuse(store: Path, text: str, *chunks: Any, **options: Any) -> None:
    before = (store / "graph.json").read_bytes()
    with pytest.raises(InputError, match=text):
        add(store, *chunks, **options)
    assert (store / "graph.json").read_bytes() == before
    assert verify(store).problems == []


def test_schema_changes_are_refused_by_name(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2)], weight=[2.0], time=[1])).graph.close()
    fine: dict[str, Any] = {"weight": [1.0], "time": [2]}
    odd = edge_chunk([(1, 3)], note=["x"], **fine)
    refuse(
        store,
        "have the column 'note', the graph's have the columns time, weight; "
        "an append changes no schema",
        odd,
    )
    refuse(
        store,
        "lack the column 'time', which the graph's have",
        edge_chunk([(1, 3)], weight=[1.0]),
    )
    refuse(
        store,
        "in split 'test', but the graph has the splits train",
        edge_chunk([(1, 3)], split="test", **fine),
    )
    refuse(
        store,
        r"weight 0.1 of edge type 'edge' is not exact as float",
        edge_chunk([(1, 3)], weight=[0.1], time=[2]),
    )
    refuse(
        store, r"has integers as ids in .*, got strings", edge_chunk([("a", "b")], **fine)
    )
    refuse(
        store,
        "edges of type .*knows.*, but the graph has",
        edge_chunk([(1, 3)], EdgeType("node", "knows", "node"), **fine),
    )
    refuse(
        store,
        "nodes of type 'user', but the graph has node",
        NodeChunk(ids=np.arange(2), node_type="user"),
    )
    refuse(
        store,
        "undirected edges, the graph .* directed ones",
        edge_chunk([(1, 3)], **fine),
        is_directed=False,
    )
    refuse(store, "nothing to append", NodeChunk(ids=np.array([1, 2])))
    refuse(
        store,
        "have the column 'weight', expected src, dst",
        deletes=[edge_chunk([(1, 2)], weight=[1.0])],
    )
    refuse(
        store,
        "have the column 'relation', which the edges of type 'edge' have not",
        deletes=[edge_chunk([(1, 2)], relation=pa.array(["a"]))],
    )
    refuse(
        store,
        "lists nodes to delete, expected edges",
        deletes=[NodeChunk(ids=np.array([1]))],
    )


def test_new_nodes_bring_the_columns_of_the_others(store: Path) -> None:
    rows = NodeChunk(
        ids=pa.array(["new", "u9"]),
        node_type="user",
        columns={"label": [7, 8], "split": pa.array(["test", "valid"])},
        features={"x": np.ones((2, 2), np.float32)},
    )
    with add(store, rows, edge_chunk([("new", "u0")], KNOWS)).graph as now:
        part = now.num_partitions("user") - 1
        table = now.nodes("user", part)
        assert table.to_pylist() == [
            {"id": "new", "label": 7, "split": "test"},
            {"id": "u9", "label": 8, "split": "valid"},
        ]
        assert now.features("user", part, "x").tolist() == [[1, 1], [1, 1]]
        assert now.manifest.node_types["user"].splits == {"train": 3, "test": 4, "valid": 1}
        first = now.manifest.deltas[0]
        assert first.node_splits == {"user": {"test": 1, "valid": 1}}
    assert verify(store).problems == []


@pytest.mark.parametrize("with_rows", [True, False])
def test_two_types_with_columns_get_new_nodes_at_once(
    tmp_path: Path, with_rows: bool
) -> None:
    def rows(node_type: str, node: int, label: int) -> NodeChunk:
        x = {"x": np.full((1, 2), label, np.float32)} if with_rows else {}
        columns = {"label": [label], "name": pa.array([f"{node_type}{label}"])}
        ids = np.array([node])
        return NodeChunk(ids=ids, node_type=node_type, columns=columns, features=x)

    kinds = "user", "item"
    likes = EdgeType("user", "likes", "item")
    first = [rows(kind, 0, 1) for kind in kinds]
    make_store(tmp_path / "g", *first, edge_chunk([(0, 0)], likes)).graph.close()
    new = [rows(kind, 5, 2) for kind in kinds] if with_rows else []
    with add(tmp_path / "g", *new, edge_chunk([(5, 5)], likes)).graph as now:
        for kind in kinds:
            label, name = (2, f"{kind}2") if with_rows else (None, None)
            assert now.nodes(kind, 1).to_pylist() == [
                {"id": 5, "label": label, "name": name}
            ]
            if with_rows:
                assert now.features(kind, 1, "x").tolist() == [[2, 2]]
    assert verify(tmp_path / "g").ok


def test_rows_of_nodes_are_checked(store: Path) -> None:
    columns = {"label": [1], "split": pa.array(["test"])}
    x = {"x": np.zeros((1, 2), np.float32)}
    refuse(
        store,
        "node 'u0' of type 'user' is in .* already; an append has rows of new",
        NodeChunk(ids=pa.array(["u0"]), node_type="user", columns=columns, features=x),
    )
    refuse(
        store,
        "lack the column 'x'",
        NodeChunk(ids=pa.array(["v"]), node_type="user", columns=columns),
    )
    refuse(
        store,
        "'user' has features, but there are none for 1 new nodes: v",
        edge_chunk([("u0", "v")], KNOWS),
    )
    wide = {"x": np.zeros((1, 3), np.float32)}
    refuse(
        store,
        r"feature 'x' of node type 'user' is float32\[3\], in the graph "
        r"float32\[2\]",
        NodeChunk(ids=pa.array(["v"]), node_type="user", columns=columns, features=wide),
    )
    odd = {"label": pa.array(["tall"]), "split": pa.array(["test"])}
    refuse(
        store,
        "column 'label' of node type 'user' is string, in the graph int64",
        NodeChunk(ids=pa.array(["v"]), node_type="user", columns=odd, features=x),
    )


def test_new_nodes_without_rows_have_null_columns(tmp_path: Path) -> None:
    nodes = NodeChunk(ids=np.arange(3), columns={"label": [1, 2, 3]})
    make_store(tmp_path / "g", nodes, edge_chunk([(0, 1)])).graph.close()
    with add(tmp_path / "g", edge_chunk([(0, 9)])).graph as now:
        assert now.nodes("node", 1).to_pylist() == [{"id": 9, "label": None}]
    assert verify(tmp_path / "g").ok


def test_new_relations_stand_behind_the_others(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2)], relation=pa.array(["m"]))).graph.close()
    new = edge_chunk([(1, 2), (2, 1)], relation=pa.array(["a", "m"]))
    with add(store, new).graph as now:
        assert now.relations("edge") == ["m", "a"]
        found = Counter((e.src, e.dst, e.relation) for e in read_edges(now, "edge"))
        assert found == Counter([(1, 2, "m"), (1, 2, "a"), (2, 1, "m")])
        assert len(now.bucket("edge", 0, 0).relation) == 3  # type: ignore[arg-type] # it is there
    assert verify(store).problems == []


# ---- writers and the manifest


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk([(1, 2)])).graph.close()
    lock = WriterLock(tmp_path / "g")
    try:
        with pytest.raises(StoreBusyError, match="is being written by another process"):
            add(tmp_path / "g", edge_chunk([(1, 3)]))
    finally:
        lock.release()
    with pytest.raises(InvalidGraphError, match="none does not exist"):
        add(tmp_path / "none", edge_chunk([(1, 3)]))
    assert not (tmp_path / "none").exists()


def test_what_a_killed_append_left_is_told_and_swept(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2)])).graph.close()
    left = store / "gen-1/deltas/1/edges/edge/train.arrow"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"half")
    (problem,) = verify(store).problems
    assert problem.what.endswith("a killed append left it, and the next one removes it")
    lock = WriterLock(store)
    assert verify(store).ok  # somebody is writing it
    lock.release()
    add(store, edge_chunk([(1, 3)])).graph.close()
    assert verify(store).problems == []
    assert info(store)["num_edges"] == 2


def test_a_store_with_deltas_says_so(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2), (2, 3)])).graph.close()
    assert "deltas" not in details(store)
    assert "deltas" not in json.loads((store / "graph.json").read_text())
    add(store, edge_chunk([(3, 1)]), deletes=[edge_chunk([(1, 2)])]).graph.close()
    facts = details(store)
    assert (facts["deltas"], facts["added"], facts["removed"]) == (1, 1, 1)
    assert facts["bytes"]["deltas"] > 0
    assert json.loads((store / "graph.json").read_text())["format_version"] == 3


@pytest.mark.parametrize("nodes", [100, 200_000])
def test_ids_are_found_with_and_without_a_table(tmp_path: Path, nodes: int) -> None:
    """Small integers, large ones and strings each have a table of their own kind."""
    near, far = np.arange(nodes), np.arange(nodes) * 10**9
    texts = pa.array([f"k{n}" for n in range(nodes)])
    for kind, ids in (("near", near), ("far", far), ("texts", texts)):
        store = tmp_path / kind
        chunk = EdgeChunk(src=ids[:-1], dst=ids[1:])
        make_store(store, chunk, partitions=2).graph.close()
        for _ in range(2):
            new = EdgeChunk(src=ids[:3], dst=ids[-3:])
            with add(store, new).graph as now:
                assert now.num_nodes == nodes
        tables = list(store.rglob("deltas/*/ids/*.arrow"))
        assert len(tables) == (nodes > 2**16)
        with Graph(store) as graph:
            first = ids[0].as_py() if isinstance(ids, pa.Array) else int(ids[0])
            assert len(graph.neighbors(first)) == 3
        assert verify(store).problems == []


@pytest.mark.parametrize("is_directed", [True, False])
def test_rows_of_all_partitions_are_there_as_one(tmp_path: Path, is_directed: bool) -> None:
    """Where new nodes alone made partitions: an algorithm puts nothing together again."""
    store, rng = tmp_path / "g", np.random.default_rng(0)
    kind: dict[str, Any] = {"is_directed": is_directed}
    first = make_store(store, random_chunk(rng, 90, 20, False), **kind)
    with first.graph as graph:
        assert graph.joined_index("edge", "out") is None  # the file is that
    add(store, random_chunk(rng, 40, 30, False), **kind).graph.close()
    with Graph(store) as graph:
        assert graph.num_partitions("node") == 2
        topology = Topology.of(graph)
        for direction, read in (("out", graph.out_index), ("in", graph.in_index)):
            joined = graph.joined_index("edge", direction)
            assert joined is not None
            assert np.shares_memory(topology.csr(direction).indices, joined.indices)  # type: ignore[arg-type] # one of two
            parts = [read("edge", part) for part in (0, 1)]
            assert np.concatenate([p.indices for p in parts]).tolist() == (
                joined.indices.tolist()
            )
            ends = [parts[0].indptr[-1] + parts[1].indptr[1:]]
            assert [*parts[0].indptr, *ends[0]] == joined.indptr.tolist()
            assert np.shares_memory(parts[1].indices, joined.indices)
    make_store(tmp_path / "two", edge_chunk([(1, 2)]), partitions=2).graph.close()
    with add(tmp_path / "two", edge_chunk([(1, 5)])).graph as graph:
        assert graph.joined_index("edge", "out") is None


def test_info_suggests_to_compact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2), (2, 3), (3, 1)])).graph.close()
    for k in range(2):
        add(store, edge_chunk([(k, 9)])).graph.close()
    assert "advice" not in details(store)
    monkeypatch.setattr(infos, "_MANY_DELTAS", 2)
    text = "2 deltas are merged again after each append; "
    text += "graphsys compact folds them in"
    assert details(store)["advice"] == text
    monkeypatch.setattr(infos, "_FEW_EDGES", 2)
    assert "2 deltas and 2 changed edges beside 5 are merged" in details(store)["advice"]
    compact(store).graph.close()
    assert "advice" not in details(store)


def test_the_claim_of_a_writer_killed_as_it_had_committed_goes_with_the_next(
    tmp_path: Path,
) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2)])).graph.close()
    add(store, edge_chunk([(2, 3)])).graph.close()
    (delta,) = store.glob("gen-*/deltas/1")
    ownership.claim(delta)
    add(store, edge_chunk([(3, 4)])).graph.close()
    assert not ownership.is_claimed(delta)
    with Graph(store) as graph:
        assert pairs_of(graph) == Counter([(1, 2), (2, 3), (3, 4)])
