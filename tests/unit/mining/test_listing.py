"""Listed matches are the pattern, all different, as many as are counted."""

import threading
import time
from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphsys.core.errors import ConfigError, OutputExistsError, StorageFullError
from graphsys.mining import (
    Pattern,
    SimpleGraph,
    count,
    exists,
    match_stream,
    matches,
    write_matches,
)
from graphsys.mining import listing as module

GRAPH = nx.gnp_random_graph(40, 0.25, seed=7)


@pytest.fixture(scope="module")
def rows() -> SimpleGraph:
    edges = np.array(GRAPH.edges)
    return SimpleGraph.of((edges[:, 0] * 10, edges[:, 1] * 10))


@pytest.mark.parametrize("induced", ["edge", "vertex"])
@pytest.mark.parametrize("text", ["a-b", "a-b b-c c-a a-d", "house", "c-a a-b", "6-cycle"])
def test_matches_are_as_many_as_are_counted(
    rows: SimpleGraph, text: str, induced: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 100)
    tables = list(matches(rows, text, induced=induced))
    assert all(table.num_rows == 100 for table in tables[:-1])
    found = pa.concat_tables(tables)
    pattern = Pattern.of(text)
    assert found.column_names == list("abcdef"[: pattern.num_nodes])
    listed = np.stack([column.to_numpy() // 10 for column in found.columns], axis=1)
    keys = set()
    for match in listed.tolist():
        assert len(set(match)) == pattern.num_nodes
        edges = [frozenset((match[a], match[b])) for a, b in pattern.edges]
        assert all(GRAPH.has_edge(*edge) for edge in edges)
        if induced == "vertex":
            assert GRAPH.subgraph(match).number_of_edges() == len(edges)
        keys.add(frozenset(edges))
    assert len(keys) == len(listed) == count(rows, text, induced=induced)


def test_a_limit_ends_the_listing(rows: SimpleGraph) -> None:
    (table,) = matches(rows, "triangle", limit=7)
    assert table.num_rows == 7
    assert list(matches(rows, "8-clique", limit=1)) == []
    assert list(matches(rows, "triangle", limit=0)) == []
    with pytest.raises(ConfigError, match="limit=-1: expected 0 or more matches"):
        matches(rows, "triangle", limit=-1)


def test_matches_are_written(rows: SimpleGraph, tmp_path: Path) -> None:
    out = tmp_path / "m.parquet"
    num = write_matches(rows, "diamond", out)
    assert num == pq.read_table(out).num_rows == count(rows, "diamond")
    with pytest.raises(OutputExistsError, match=r"m\.parquet exists"):
        write_matches(rows, "diamond", out)
    assert write_matches(rows, "8-clique", out, overwrite=True) == 0
    assert pq.read_table(out).column_names == list("abcdefgh")
    with pytest.raises(ConfigError, match=r"cannot list matches to 'm.csv': expected a \."):
        write_matches(rows, "diamond", tmp_path / "m.csv")


def test_a_listing_that_the_disk_may_not_hold_is_refused(
    rows: SimpleGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "describe_disk", lambda folder: {"free_bytes": 1000})
    out = tmp_path / "new" / "m.parquet"
    with pytest.raises(
        StorageFullError, match=r"about [\d,]+ matches take up to .* free; l"
    ):
        write_matches(rows, "house", out)
    assert not out.parent.exists()
    assert write_matches(rows, "house", out, limit=10) == 10


@pytest.mark.parametrize("text", ["triangle", "a-b b-c c-a a-d", "5-path"])
def test_the_order_does_not_depend_on_threads(
    rows: SimpleGraph, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BATCH", 64)
    alone = pa.concat_tables(matches(rows, text, num_threads=1))
    assert alone.num_rows > 200
    for num_threads in (2, 5):
        tables = list(matches(rows, text, num_threads=num_threads))
        assert pa.concat_tables(tables).equals(alone)
    some = pa.concat_tables(matches(rows, text, num_threads=3, limit=100))
    assert some.equals(alone.slice(0, 100))


def test_a_listing_that_is_left_ends_its_threads(rows: SimpleGraph) -> None:
    before = threading.active_count()
    for _ in matches(rows, "8-path", limit=10**9):  # more than could be listed
        break
    assert threading.active_count() == before


def test_whether_a_pattern_exists(rows: SimpleGraph) -> None:
    for text in ("triangle", "house", "5-clique", "8-clique", "6-cycle"):
        for induced in ("edge", "vertex"):
            expected = count(rows, text, induced=induced) > 0
            for num_threads in (1, 3):
                found = exists(rows, text, induced=induced, num_threads=num_threads)
                assert found == expected


def test_the_first_match_ends_the_search() -> None:
    # the last nodes have the only triangle; before it are 1e13 paths of four nodes
    edges = [(a, 3000 + b) for a in range(300) for b in range(300)]
    edges += [(9000, 9001), (9001, 9002), (9000, 9002)]
    ends = np.array(edges)
    graph = SimpleGraph.of((ends[:, 0], ends[:, 1]))
    began = time.perf_counter()
    assert exists(graph, "a-b b-c c-d d-e e-f")
    assert exists(graph, "triangle")
    assert time.perf_counter() - began < 20


def test_an_error_in_a_thread_is_raised(
    rows: SimpleGraph, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise MemoryError("no room for matches")

    monkeypatch.setattr(match_stream, "fill_matches", fails)
    with pytest.raises(MemoryError, match="no room for matches"):
        list(matches(rows, "triangle"))
    with pytest.raises(MemoryError, match="no room for matches"):
        exists(rows, "triangle")
