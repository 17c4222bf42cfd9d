"""Ingest: what is counted, cleaned, warned of and refused."""

import errno
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core.errors import ConfigError, InputError, UnknownNameError
from graphsys.core.events import recording
from graphsys.core.types import EdgeType
from graphsys.storage import EdgeChunk, ingest
from graphsys.storage.ingest.split_spec import SplitSpec
from tests.stores import ListSource, edge_chunk, make_store, pairs_of

MESSY = [(1, 2), (1, 2), (2, 2), (2, 1), (2, 2)]


def test_duplicates_and_loops_are_counted_and_kept(tmp_path: Path) -> None:
    report = make_store(tmp_path / "g", edge_chunk(MESSY))
    assert (report.duplicates, report.self_loops) == (2, 2)
    assert report.graph.num_edges == 5
    assert report.seconds > 0
    assert report.peak_memory_bytes > 10**6


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize(
    ("options", "is_directed", "kept"),
    [
        ({"coalesce": True}, True, {(1, 2): 1, (2, 1): 1, (2, 2): 1}),
        ({"drop_self_loops": True}, True, {(1, 2): 2, (2, 1): 1}),
        ({"coalesce": True, "drop_self_loops": True}, True, {(1, 2): 1, (2, 1): 1}),
    ],
)
def test_cleaning_keeps_what_it_says(
    options: dict[str, bool],
    is_directed: bool,
    kept: dict[Any, int],
    partitions: int,
    tmp_path: Path,
) -> None:
    report = make_store(tmp_path / "g", edge_chunk(MESSY), partitions=partitions, **options)
    assert pairs_of(report.graph) == kept
    assert (report.duplicates, report.self_loops) == (2, 2)  # as found


def test_coalescing_merges_both_directions_of_undirected_edges(tmp_path: Path) -> None:
    chunk = edge_chunk([(1, 2), (2, 1), (3, 1)], weight=np.array([1.0, 2.0, 4.0]))
    report = make_store(tmp_path / "g", chunk, is_directed=False, coalesce=True)
    assert report.duplicates == 1
    weights = report.graph.bucket("edge", 0, 0).weight
    assert weights is not None
    assert weights.tolist() == [3.0, 4.0]


def test_twins_of_undirected_edges_are_warned_of(tmp_path: Path) -> None:
    source = ListSource([edge_chunk([(1, 2), (2, 1), (3, 4), (4, 3)])], is_directed=False)
    with pytest.warns(UserWarning, match="pass --coalesce"):
        ingest(source, tmp_path / "g").graph.close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make_store(tmp_path / "h", edge_chunk([(1, 2), (2, 1)])).graph.close()


def test_equal_input_gives_an_equal_store(tmp_path: Path, rng: np.random.Generator) -> None:
    pairs = rng.integers(0, 50, (500, 2)).tolist()
    fingerprints = {
        make_store(tmp_path / str(n), edge_chunk(pairs), partitions=3).graph.fingerprint
        for n in range(2)
    }
    assert len(fingerprints) == 1


def test_types_with_one_relation_name_are_told_apart(tmp_path: Path) -> None:
    kinds = [
        EdgeType("a", "r", "b"),
        EdgeType("b", "r", "a"),
        EdgeType("a", "r-r", "b"),
        EdgeType("a-r", "r", "b"),
        EdgeType("a", "x", "b"),
    ]
    chunks = [edge_chunk([(n, n)], kind) for n, kind in enumerate(kinds)]
    with make_store(tmp_path / "g", *chunks).graph as graph:
        assert sorted(graph.edge_types) == sorted(kinds)
        named = [graph.edge_type_name(kind) for kind in kinds]
        assert len(set(named)) == len(kinds)
        assert named[-1] == "x"
        for n, name in enumerate(named):
            assert pairs_of(graph, name) == {(n, n): 1}


def test_names_built_from_types_never_collide(tmp_path: Path) -> None:
    kinds = [
        EdgeType("a-r", "r", "b"),
        EdgeType("a", "r", "r-b"),
        EdgeType("a", "a-r-r-b", "b"),
    ]
    chunks = [edge_chunk([(n, n)], kind) for n, kind in enumerate(kinds)]
    with make_store(tmp_path / "g", *chunks).graph as graph:
        assert sorted(graph.edge_types) == sorted(kinds)
        for n, kind in enumerate(kinds):
            assert pairs_of(graph, graph.edge_type_name(kind)) == {(n, n): 1}


@pytest.mark.parametrize(
    "chunks", [[], [EdgeChunk(src=np.empty(0, int), dst=np.empty(0, int))]]
)
def test_nothing_at_all_is_an_error(chunks: list[EdgeChunk], tmp_path: Path) -> None:
    with pytest.raises(InputError, match="test holds no edges and no nodes"):
        make_store(tmp_path / "g", *chunks)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partitions": 0}, "partitions: got 0, expected 1 to"),
        ({"partitions": 10**6}, "partitions: got 1000000"),
        ({"partitions": {"node": 0}}, "partitions: got 0"),
        ({"partitions": "node=2"}, "partitions: got 'node=2', expected 1 to"),
        ({"order": "size"}, "order: got 'size'"),
        ({"memory": "1MB"}, "memory: got .*, expected at least 16"),
        ({"memory": "much"}, "memory: got 'much'"),
    ],
)
def test_options_out_of_range_are_refused(
    options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=message):
        make_store(tmp_path / "g", edge_chunk([(1, 2)]), **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("options", [{"partitioner": "hahs"}, {"partitions": {"nodes": 2}}])
def test_unknown_names_are_answered_with_the_nearest(
    options: dict[str, Any], tmp_path: Path
) -> None:
    with pytest.raises(UnknownNameError, match=r"did you mean '(hash|node)'"):
        make_store(tmp_path / "g", edge_chunk([(1, 2)]), **options)
    assert list(tmp_path.iterdir()) == []


def test_types_have_their_own_numbers_of_partitions(tmp_path: Path) -> None:
    chunk = edge_chunk([(n, n % 3) for n in range(30)], EdgeType("u", "r", "v"))
    with make_store(tmp_path / "g", chunk, partitions={"u": 3}).graph as graph:
        assert (graph.num_partitions("u"), graph.num_partitions("v")) == (3, 1)
        assert graph.bucket_counts("r").shape == (3, 1)


def test_ingest_is_seen_as_events(tmp_path: Path) -> None:
    with recording() as recorder:
        make_store(tmp_path / "g", edge_chunk([(1, 2)])).graph.close()
    assert {"scan", "number", "group", "write"} <= {event.name for event in recorder.events}


def test_source_that_cannot_be_read_is_not_the_outputs_fault(tmp_path: Path) -> None:
    def chunks() -> Iterator[EdgeChunk]:
        yield edge_chunk([(1, 2)])
        raise PermissionError(errno.EACCES, "Permission denied", "/far/edges.txt")

    source = ListSource([])
    source.chunks = chunks  # type: ignore[method-assign]  # one that fails midway
    with pytest.raises(
        InputError, match=r"/far/edges.txt: cannot be read: permission denied"
    ):
        ingest(source, tmp_path / "g")
    assert not (tmp_path / "g").exists()


@pytest.mark.parametrize(
    "options",
    [
        {"order": "rcm"},
        {"order": "rabbit"},
        {"partitioner": "ldg"},
        {"split": SplitSpec(valid=0.2, test=0.2)},
    ],
)
def test_a_graph_is_replaced_by_one_that_is_written_twice(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    """The temporary store lies inside the graph that is replaced."""
    pairs = [(k, (3 * k + 1) % 20) for k in range(20)]
    make_store(tmp_path / "g", edge_chunk(pairs[:9]), partitions=2).graph.close()
    again = make_store(
        tmp_path / "g", edge_chunk(pairs), partitions=2, overwrite=True, **options
    )
    with again.graph as graph:
        splits = graph.splits("edge")
        assert sum((pairs_of(graph, "edge", it) for it in splits), Counter()) == Counter(
            pairs
        )
    assert sorted(it.name for it in (tmp_path / "g").iterdir()) == ["gen-2", "graph.json"]
