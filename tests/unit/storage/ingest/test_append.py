from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EdgeType
from graphsys.storage import Graph
from graphsys.storage.ingest.append import append
from graphsys.storage.ingest.ingest import ingest
from graphsys.storage.source import EdgeChunk, NodeChunk, Source
from graphsys.storage.verify.verify import verify

LIKES = EdgeType("user", "likes", "item")


class Pairs(Source):
    """Edges user -> item given as pairs; nodes with a column first, if asked for."""

    name = "pairs"

    def __init__(
        self, pairs: list[tuple[str, str]], users: list[str] | None = None
    ) -> None:
        self._pairs, self._users = pairs, users

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        if self._users is not None:
            ages = np.arange(len(self._users))
            yield NodeChunk(
                ids=pa.array(self._users), node_type="user", columns={"age": ages}
            )
        yield EdgeChunk(
            src=pa.array([a for a, _ in self._pairs]),
            dst=pa.array([b for _, b in self._pairs]),
            edge_type=LIKES,
        )


def pairs_of(graph: Graph) -> list[tuple[str, str]]:
    """Return all edges as sorted pairs of the user's ids."""
    users, items = (graph.node_ids(name).to_pylist() for name in ("user", "item"))
    result = []
    for i, j in graph.buckets(LIKES):
        bucket = graph.bucket(LIKES, i, j)
        src = bucket.src + graph.offsets("user")[i]
        dst = bucket.dst + graph.offsets("item")[j]
        result += [(users[s], items[d]) for s, d in zip(src, dst, strict=True)]
    return sorted(result)


def some_pairs(rng: np.random.Generator, count: int, low: int) -> list[tuple[str, str]]:
    draws = rng.integers(low, low + 30, size=(count, 2))
    return [(f"u{a}", f"i{b}") for a, b in draws]


def test_appended_edges_and_nodes_are_in_the_new_store_by_id(
    tmp_path: Path, rng: np.random.Generator
) -> None:
    old, new = some_pairs(rng, 200, 0), some_pairs(rng, 80, 20)
    first = ingest(Pairs(old), tmp_path / "old", partitions={"user": 3, "item": 2}).graph
    report = append(first, Pairs(new), tmp_path / "new")
    assert pairs_of(report.graph) == sorted(old + new)
    assert report.graph.num_partitions("user") == 3
    assert report.graph.num_partitions("item") == 2
    assert pairs_of(first) == sorted(old)
    assert verify(tmp_path / "new").problems == []


def test_columns_of_old_nodes_are_kept_and_new_nodes_may_bring_theirs(
    tmp_path: Path,
) -> None:
    old = ingest(Pairs([("a", "x"), ("b", "x")], ["a", "b"]), tmp_path / "old").graph
    new = append(old, Pairs([("c", "y")], ["c"]), tmp_path / "new").graph
    table = new.nodes("user", 0).to_pydict()
    assert dict(zip(table["id"], table["age"], strict=True)) == {"a": 0, "b": 1, "c": 0}


def test_a_node_listed_twice_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    old = ingest(Pairs([("a", "x")], ["a"]), tmp_path / "old").graph
    with pytest.raises(InputError, match="'user' lists 1 nodes more than once: a"):
        append(old, Pairs([("a", "y")], ["a"]), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_appending_in_place_is_refused(tmp_path: Path) -> None:
    old = ingest(Pairs([("a", "x")]), tmp_path / "old").graph
    with pytest.raises(ConfigError, match=r"cannot append to .*old in place; give another"):
        append(old, Pairs([("a", "y")]), tmp_path / "old", overwrite=True)


def test_edges_without_direction_do_not_join_directed_ones(tmp_path: Path) -> None:
    old = ingest(Pairs([("a", "x")]), tmp_path / "old").graph
    more = Pairs([("a", "y")])
    more.is_directed = False
    with pytest.raises(ConfigError, match=r"undirected edges \(pairs\) to the directed"):
        append(old, more, tmp_path / "new")
