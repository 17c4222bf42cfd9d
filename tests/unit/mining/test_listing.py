"""Listed matches are the pattern, all different, as many as are counted."""

from pathlib import Path

import networkx as nx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphsys.core.errors import ConfigError, OutputExistsError, StorageFullError
from graphsys.mining import Pattern, SimpleGraph, count, matches, write_matches
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
