"""Which stored edges deletions mean, against a list of edges that is searched in a loop."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EdgeType
from graphsys.facade.graph import Graph
from graphsys.storage import EdgeChunk
from graphsys.storage.dynamic.append import append
from graphsys.storage.verify.verify import verify
from tests.stores import ListSource, edge_chunk, make_store, pairs_of, read_edges
from tests.unit.storage.dynamic.test_append import add

Row = tuple[int, int, str, int]


def drawn(rng: np.random.Generator, size: int, ids: int) -> list[Row]:
    pairs, times = rng.integers(0, ids, (size, 2)).tolist(), rng.integers(0, 50, size)
    names = [f"r{k}" for k in rng.integers(0, 3, size)]
    return [(a, b, r, t) for (a, b), r, t in zip(pairs, names, times.tolist(), strict=True)]


def chunk_of(rows: list[Row], columns: tuple[str, ...] = ("relation", "time")) -> EdgeChunk:
    values: dict[str, Any] = {
        "relation": pa.array([row[2] for row in rows]),
        "time": np.array([row[3] for row in rows]),
    }
    return edge_chunk([row[:2] for row in rows], **{it: values[it] for it in columns})


def means(gone: Row, row: Row, columns: tuple[str, ...], is_directed: bool) -> bool:
    """Tell whether a deletion means an edge."""
    ends = [sorted(it[:2]) if not is_directed else list(it[:2]) for it in (gone, row)]
    return (
        ends[0] == ends[1]
        and ("relation" not in columns or gone[2] == row[2])
        and ("time" not in columns or row[3] <= gone[3])
    )


@pytest.mark.parametrize("is_directed", [True, False])
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("columns", [(), ("relation",), ("time",), ("relation", "time")])
def test_edges_go_that_a_search_in_a_list_finds(
    tmp_path: Path, is_directed: bool, partitions: int, columns: tuple[str, ...]
) -> None:
    rng, store = np.random.default_rng(len(columns)), tmp_path / "g"
    rows = drawn(rng, 80, 9)
    kind: dict[str, Any] = {"is_directed": is_directed}
    made = make_store(store, chunk_of(rows), partitions=partitions, **kind)
    made.graph.close()
    for number in range(3):
        fresh = drawn(rng, 20, 10 + number)
        gone = [*drawn(rng, 12, 13), *rows[:2], *rows[-2:], rows[-1]]
        found = [[r for r in rows if means(it, r, columns, is_directed)] for it in gone]
        removed = {id(row) for meant in found for row in meant}
        halves = [chunk_of(gone[:7], columns), chunk_of(gone[7:], columns)]
        added = ListSource([chunk_of(fresh)], **kind)
        report = append(store, added, deletes=[ListSource(halves)], missing_deletes="count")
        assert report.num_removed == len(removed)
        assert report.missing_deletes == sum(not meant for meant in found)
        rows = [row for row in rows if id(row) not in removed] + fresh
        with report.graph as graph:
            names = {
                (e.relation, dict(e.values)["time"]) for e in read_edges(graph, "edge")
            }
            assert names == {row[2:] for row in rows}
            pairs = pairs_of(graph)
            if not is_directed:
                pairs = Counter(tuple(sorted(pair)) for pair in pairs.elements())
            ends = [row[:2] if is_directed else tuple(sorted(row[:2])) for row in rows]
            assert pairs == Counter(ends)
    assert verify(store).problems == []


def test_the_earliest_of_several_deletions_counts(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2)] * 3, time=[1, 4, 9])).graph.close()
    gone = edge_chunk([(1, 2)] * 3, time=[20, 5, 30])
    report = add(store, deletes=[gone])
    assert (report.num_removed, report.missing_deletes) == (3, 0)
    report.graph.close()
    with Graph(store) as graph:
        shown = [graph.at(time).num_edges for time in (4, 5, 19, 20)]
        assert shown == [2, 0, 1, 0]  # that of time 9 went at 20


def test_what_came_after_a_delta_that_added_nothing_is_found(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2), (2, 3)])).graph.close()
    add(store, deletes=[edge_chunk([(1, 2)])]).graph.close()
    add(store, edge_chunk([(1, 2)])).graph.close()
    with add(store, deletes=[edge_chunk([(1, 2)])]).graph as graph:
        assert pairs_of(graph) == Counter([(2, 3)])


def test_edges_between_types_have_a_direction_even_if_called_undirected(
    tmp_path: Path,
) -> None:
    buys, store = EdgeType("user", "buys", "item"), tmp_path / "g"
    chunk = edge_chunk([(1, 2), (2, 1), (3, 2)], buys)
    make_store(store, chunk, is_directed=False, partitions={"user": 2, "item": 1})
    gone = edge_chunk([(2, 1)], buys)
    report = add(store, deletes=[gone], is_directed=False)
    assert report.num_removed == 1
    with report.graph as graph:
        assert pairs_of(graph, "buys") == Counter([(1, 2), (3, 2)])


def test_an_unknown_relation_is_of_no_edge(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2)], relation=pa.array(["a"]))).graph.close()
    gone = edge_chunk([(1, 2)], relation=pa.array(["b"]))
    with pytest.raises(InputError, match=r"the edge 1 -> 2 is not in .*, so it cannot"):
        add(store, deletes=[gone])


def test_several_that_are_missing_are_counted_behind_the_first(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([("a", "b")])).graph.close()
    gone = edge_chunk([("a", "b"), ("b", "a"), ("x", "b"), ("x", "y")])
    with pytest.raises(InputError, match=r"the edge 'b' -> 'a' and 2 more is not in"):
        add(store, deletes=[gone])


def test_either_all_deletions_have_a_time_or_none(tmp_path: Path) -> None:
    store = tmp_path / "g"
    make_store(store, edge_chunk([(1, 2), (2, 3)], time=[1, 2])).graph.close()
    mixed = [edge_chunk([(1, 2)], time=[5]), edge_chunk([(2, 3)])]
    with pytest.raises(InputError, match="some deletions have a time and some have not"):
        add(store, deletes=mixed)
    plain = tmp_path / "plain"
    make_store(plain, edge_chunk([(1, 2)])).graph.close()
    with pytest.raises(InputError, match="the column 'time', which the edges of type"):
        add(plain, deletes=[edge_chunk([(1, 2)], time=[5])])
    with pytest.raises(ConfigError, match="got 'ask', expected error or count"):
        add(store, deletes=[edge_chunk([(1, 2)])], missing_deletes="ask")


def test_files_of_deletions_say_where_and_when(tmp_path: Path) -> None:
    store = tmp_path / "g"
    chunk = edge_chunk([(1, 2), (1, 2), (1, 3)], time=[1, 9, 2])
    make_store(store, chunk, order="original").graph.close()
    add(store, edge_chunk([(1, 2)], time=[3])).graph.close()
    add(store, deletes=[edge_chunk([(1, 2)], time=[5])]).graph.close()
    (path,) = (store / "gen-1/deltas/2").rglob("*.arrow")
    with pa.memory_map(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    assert table.column_names == ["delta", "src", "dst", "row", "copy", "time"]
    assert sorted(table["delta"].to_pylist()) == [0, 1]
    assert table["time"].to_pylist() == [5, 5]
