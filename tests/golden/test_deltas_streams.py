"""Update streams of real graphs, replayed: at every checked time equal to a rebuild."""

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys import algorithms
from graphsys.facade.graph import Graph
from graphsys.storage import EdgeChunk
from graphsys.storage.dynamic.compact import compact
from graphsys.storage.verify.verify import verify
from tests.deltas import append_chunks
from tests.stores import make_store


def table_of(graph: Graph, *columns: str) -> Counter[Any]:
    """Return the multiset of (src, dst, columns) of all edges."""
    found: Counter[Any] = Counter()
    for chunk in graph.edge_chunks():
        names = ["src", "dst", *columns]
        parts = [chunk.column(name).to_pylist() for name in names]
        found.update(zip(*parts, strict=True))
    return found


def pair_of(src: str, dst: str) -> tuple[int, int]:
    low, high = sorted((int(src), int(dst)))
    return low, high


def weighted(rows: dict[tuple[int, int], float]) -> EdgeChunk:
    ends = np.array(list(rows), dtype=np.int64).reshape(-1, 2)
    weight = np.array(list(rows.values()), dtype=float)
    return EdgeChunk(src=ends[:, 0], dst=ends[:, 1], columns={"weight": weight})


def read_weighted(file: Path) -> dict[tuple[int, int], float]:
    lines = [line.split() for line in file.read_text().splitlines()]
    return {pair_of(src, dst): float(weight) for src, dst, weight in lines}


def test_the_update_stream_of_graphalytics_leads_to_the_graph_it_should(
    shared_data: Path, tmp_path: Path
) -> None:
    """30,000 additions, deletions and changes of weights give ``p2p-31.e``."""
    folder = shared_data / "graphalytics-p2p31"
    now = read_weighted(folder / "p2p-31.e.mutable_base")
    store = tmp_path / "g"
    kind: dict[str, Any] = {"is_directed": False, "partitions": 2}
    make_store(store, weighted(now), **kind).graph.close()
    lines = (folder / "p2p-31.e.mutable_delta").read_text().splitlines()
    size = 3000
    for begin in range(0, len(lines), size):
        before, touched = dict(now), set()
        for line in lines[begin : begin + size]:
            what, src, dst, *weight = line.split()
            pair = pair_of(src, dst)
            touched.add(pair)
            if what == "d":
                now.pop(pair, None)
            else:
                now[pair] = float(weight[0])
        gone = weighted({pair: 0.0 for pair in touched if pair in before})
        gone = EdgeChunk(src=gone.src, dst=gone.dst)
        new = weighted({pair: now[pair] for pair in touched if pair in now})
        append_chunks(store, new, deletes=[gone], is_directed=False)
        if begin // size == 5:
            compact(store).graph.close()
        with Graph(store) as graph:
            found = table_of(graph, "weight")
            sorted_ends = Counter({(*sorted(k[:2]), k[2]): n for k, n in found.items()})
            assert sorted_ends == Counter((*pair, it) for pair, it in now.items())
    assert now == read_weighted(folder / "p2p-31.e")
    assert verify(store).problems == []
    with Graph(store) as graph:
        assert len(graph.manifest.deltas) == 4
        found_wcc = algorithms.wcc(graph).table.to_pydict()
        make_store(tmp_path / "all", weighted(now), **kind).graph.close()
        wanted = algorithms.wcc(tmp_path / "all").table.to_pydict()
        ids = dict(zip(wanted["id"], wanted["value"], strict=True))
        of = dict(zip(found_wcc["id"], found_wcc["value"], strict=True))
        assert {k: of[k] for k in ids} == ids  # nodes that lost all edges stay, alone
        assert all(of[k] == k for k in of.keys() - ids.keys())


def test_messages_replayed_by_time_equal_a_rebuild(
    shared_data: Path, tmp_path: Path
) -> None:
    text = (shared_data / "CollegeMsg" / "CollegeMsg.txt").read_text().splitlines()[1:]
    rows = np.array([line.split() for line in text], dtype=np.int64)
    rows = rows[np.argsort(rows[:, 2], kind="stable")]
    store, cuts = tmp_path / "g", np.linspace(0, len(rows), 9).astype(int)

    def chunk(part: np.ndarray[Any, Any]) -> EdgeChunk:
        return EdgeChunk(src=part[:, 0], dst=part[:, 1], columns={"time": part[:, 2]})

    make_store(store, chunk(rows[: cuts[1]])).graph.close()
    for begin, end in pairwise(cuts[1:].tolist()):
        append_chunks(store, chunk(rows[begin:end]))
        time = int(rows[end - 1, 2])
        with Graph(store) as graph:
            assert table_of(graph, "time") == Counter(map(tuple, rows[:end].tolist()))
            half = int(rows[end // 2, 2])
            for view, kept in (
                (graph.at(half), rows[:, 2] <= half),
                (graph.between(half, time), (rows[:, 2] >= half) & (rows[:, 2] < time)),
            ):
                wanted = rows[:end][kept[:end]]
                assert table_of(view, "time") == Counter(map(tuple, wanted.tolist()))
        make_store(tmp_path / "all", chunk(rows[:end]), overwrite=True).graph.close()
        ranks = []
        for path in (store, tmp_path / "all"):
            table = algorithms.pagerank(path, iterations=20).table.sort_by("id")
            ranks.append(table.to_pydict())
        assert ranks[0]["id"] == ranks[1]["id"]
        assert ranks[0]["value"] == pytest.approx(ranks[1]["value"], rel=1e-9)
    assert verify(store).problems == []


def test_facts_with_new_relations_replayed_by_year_equal_a_rebuild(
    shared_data: Path, tmp_path: Path
) -> None:
    text = (shared_data / "tkg-yago" / "train.txt").read_text().splitlines()
    rows = np.array([line.split()[:4] for line in text], dtype=np.int64)
    rows = rows[np.argsort(rows[:, 3], kind="stable")]
    store, cuts = tmp_path / "g", np.linspace(0, len(rows), 7).astype(int)

    def chunk(part: np.ndarray[Any, Any]) -> EdgeChunk:
        relation = pa.array([f"r{k}" for k in part[:, 1].tolist()])
        columns = {"relation": relation, "time": part[:, 3]}
        return EdgeChunk(src=part[:, 0], dst=part[:, 2], columns=columns)

    make_store(store, chunk(rows[: cuts[1]]), partitions=2).graph.close()
    for begin, end in pairwise(cuts[1:].tolist()):
        append_chunks(store, chunk(rows[begin:end]))
        with Graph(store) as graph:
            found = table_of(graph, "relation", "time")
        wanted = ((s, o, f"r{r}", t) for s, r, o, t in rows[:end].tolist())
        assert found == Counter(wanted)
    assert verify(store).problems == []
    with Graph.of(compact(store).graph) as graph:
        assert table_of(graph, "relation", "time") == found
        assert graph.relations("edge") == sorted(graph.relations("edge") or [])
