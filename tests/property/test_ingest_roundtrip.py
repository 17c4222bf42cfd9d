"""Ingest and read back: the same graph, however it is partitioned, ordered or spilled."""

import tempfile
import warnings
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsys.core.types import EdgeType
from graphsys.storage import Graph, ingest, scratch
from graphsys.storage.ids import integer_ids, string_ids
from graphsys.storage.info import info
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.verify.verify import verify
from graphsys.storage.write import edge_sort
from tests.stores import Edge, make_store, read_edges
from tests.strategies import PlainEdge, PlainGraph, ingest_options, plain_graphs


@contextmanager
def tiny_limits(is_tiny: bool) -> Iterator[None]:
    """Spill everything, in many shards and ranges, as a graph beyond the budget would."""
    with ExitStack() as stack:
        if is_tiny:
            patches: list[tuple[Any, str, Any]] = [
                (scratch, "_IN_MEMORY_SHARE", 0.0),
                (edge_sort, "_MIN_RANGE_EDGES", 3),
                (edge_sort, "_MAX_RANGE_EDGES", 3),
                (integer_ids.IntegerIds, "_choose_shard_bits", lambda *_: 2),
                (string_ids.StringIds, "_choose_shard_bits", lambda *_: 2),
            ]
            for where, name, value in patches:
                stack.enter_context(mock.patch.object(where, name, value))
        yield


@settings(max_examples=60)
@given(plain_graphs(), ingest_options(), st.booleans())
def test_what_is_read_back_is_what_went_in(
    plain: PlainGraph, options: dict[str, Any], is_tiny: bool
) -> None:
    with tempfile.TemporaryDirectory() as folder, tiny_limits(is_tiny):
        out = Path(folder) / "g"
        if not any(len(chunk) for chunk in lengths(plain)):
            return  # nothing at all is an error; test_ingest has it
        report = make_store(out, *plain.chunks, is_directed=plain.is_directed, **options)
        with report.graph as graph:
            check_nodes(graph, plain)
            found = [
                check_edges(graph, plain, kind, split, options)
                for kind, split in plain.edges
            ]
            assert report.duplicates == sum(duplicates for duplicates, _ in found)
            assert report.self_loops == sum(loops for _, loops in found)
            for kind in {kind for kind, _ in plain.edges}:
                check_indexes(graph, plain, kind)
        assert verify(out).problems == []
        facts = info(out)
        assert facts["num_nodes"] == sum(map(len, plain.nodes.values()))
        assert facts["directed"] == plain.is_directed
        assert [p.name for p in out.iterdir() if p.name != "graph.json"] == ["gen-1"]


@settings(max_examples=40)
@given(plain_graphs(), ingest_options(), ingest_options())
def test_a_store_written_again_is_the_same_graph(
    plain: PlainGraph, first: dict[str, Any], second: dict[str, Any]
) -> None:
    keep = {"coalesce": False, "drop_self_loops": False}
    with tempfile.TemporaryDirectory() as folder:
        out, again = Path(folder) / "g", Path(folder) / "again"
        if not any(len(chunk) for chunk in lengths(plain)):
            return
        options = {**first, **keep}
        report = make_store(out, *plain.chunks, is_directed=plain.is_directed, **options)
        with report.graph as graph, warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            ingest(GraphSource(graph), again, **{**second, **keep}).graph.close()
        with Graph(again) as graph:
            check_nodes(graph, plain)
            for kind, split in plain.edges:
                check_edges(graph, plain, kind, split, keep)
            for kind in {kind for kind, _ in plain.edges}:
                check_indexes(graph, plain, kind)
        assert verify(again).problems == []


def assert_same(found: Counter[Any], expected: Counter[Any]) -> None:
    assert found == expected, f"too many: {found - expected}, missing: {expected - found}"


def lengths(plain: PlainGraph) -> list[Any]:
    return [getattr(chunk, "src", getattr(chunk, "ids", None)) for chunk in plain.chunks]


def check_nodes(graph: Graph, plain: PlainGraph) -> None:
    assert set(graph.node_types) == set(plain.nodes)
    for name, rows in plain.nodes.items():
        assert Counter(graph.node_ids(name).to_pylist()) == Counter(dict.fromkeys(rows, 1))
        assert graph.num_nodes_of(name) == len(rows)
        ids = list(rows)
        numbers = graph.lookup(name, ids)
        assert graph.node_ids(name).take(numbers).to_pylist() == ids
        has_table = any(rows.values())
        for part in range(graph.num_partitions(name)):
            table = graph.nodes(name, part).to_pylist()
            for row in table:
                expected = rows[row["id"]]
                if has_table and len(table):
                    assert row["label"] == expected.get("label")
                    assert row["split"] == expected.get("split")
            if name in plain.features:
                features = graph.features(name, part, "x")
                assert features.tolist() == [
                    plain.features[name][row["id"]] for row in table
                ]


def check_edges(
    graph: Graph, plain: PlainGraph, kind: EdgeType, split: str, options: dict[str, Any]
) -> tuple[int, int]:
    """Compare the edges of a type and split; return duplicates and self-loops as found."""
    name = graph.edge_type_name(kind)
    is_symmetric = not plain.is_directed and kind.src_type == kind.dst_type
    given = [as_edge(edge, is_symmetric) for edge in plain.edges[kind, split]]
    stored = [
        Edge(*ends(edge.src, edge.dst, is_symmetric), edge.relation, edge.values)
        for edge in read_edges(graph, name, split)
    ]
    for i, j in np.ndindex(graph.bucket_counts(name, split).shape):
        bucket = graph.bucket(name, i, j, split)
        pairs = list(zip(bucket.src.tolist(), bucket.dst.tolist(), strict=True))
        assert pairs == sorted(pairs)
        assert bucket.num_edges == graph.bucket_counts(name, split)[i, j]
    groups: dict[Any, list[Edge]] = defaultdict(list)
    for edge in given:
        groups[edge[:3]].append(edge)
    is_same_type = kind.src_type == kind.dst_type
    loops = sum(edge.src == edge.dst for edge in given) if is_same_type else 0
    if options["drop_self_loops"] and is_same_type:
        groups = {key: group for key, group in groups.items() if key[0] != key[1]}
    if options["coalesce"]:
        assert_same(Counter(edge[:3] for edge in stored), Counter(dict.fromkeys(groups, 1)))
        for edge in stored:
            check_merged(edge, groups[edge[:3]])
    else:
        assert_same(Counter(stored), Counter(e for group in groups.values() for e in group))
    assert graph.num_edges_of(name, split) == len(stored)
    return len(given) - len({edge[:3] for edge in given}), loops


def as_edge(edge: PlainEdge, is_symmetric: bool) -> Edge:
    values = {k: v for k, v in edge.columns.items() if k != "relation"}
    pair = ends(edge.src, edge.dst, is_symmetric)
    return Edge(*pair, edge.columns.get("relation"), tuple(sorted(values.items())))


def ends(src: Any, dst: Any, is_symmetric: bool) -> tuple[Any, Any]:
    return (min(src, dst), max(src, dst)) if is_symmetric else (src, dst)


def check_merged(edge: Edge, group: list[Edge]) -> None:
    """Weights are summed; the other columns are those of one of the merged edges."""
    values = dict(edge.values)
    if "weight" in values:
        assert values["weight"] == sum(dict(one.values)["weight"] for one in group)
    others = {k: v for k, v in values.items() if k != "weight"}
    assert others in [
        {k: v for k, v in dict(one.values).items() if k != "weight"} for one in group
    ]


def check_indexes(graph: Graph, plain: PlainGraph, kind: EdgeType) -> None:
    """Compare both indexes with dictionaries of lists built from the buckets."""
    name = graph.edge_type_name(kind)
    is_indexed = graph.default_split(name) in graph.splits(name)
    edges = read_edges(graph, name) if is_indexed else []
    is_symmetric = not plain.is_directed and kind.src_type == kind.dst_type
    out: dict[Any, list[Any]] = defaultdict(list)
    into: dict[Any, list[Any]] = defaultdict(list)
    for position, edge in enumerate(edges):
        out[edge.src].append((edge.dst, position))
        into[edge.dst].append((edge.src, position))
        if is_symmetric and edge.src != edge.dst:
            out[edge.dst].append((edge.src, position))
    for direction, own, other, oracle in (
        ("out", kind.src_type, kind.dst_type, out),
        ("in", kind.dst_type, kind.src_type, out if is_symmetric else into),
    ):
        own_ids, other_ids = (
            graph.node_ids(own).to_pylist(),
            graph.node_ids(other).to_pylist(),
        )
        offsets = graph.offsets(own)
        for part in range(len(offsets) - 1):
            read = graph.out_index if direction == "out" else graph.in_index
            index = read(name, part)
            assert len(index.indptr) == offsets[part + 1] - offsets[part] + 1
            for row in range(len(index.indptr) - 1):
                span = slice(index.indptr[row], index.indptr[row + 1])
                neighbors = index.indices[span].tolist()
                assert neighbors == sorted(neighbors)
                rows = [
                    (other_ids[number], *values)
                    for number, *values in zip(
                        neighbors, *index_columns(graph, name, index, span), strict=True
                    )
                ]
                expected = [
                    (neighbor, *edge_columns(edges[position], index, position))
                    for neighbor, position in oracle[own_ids[offsets[part] + row]]
                ]
                assert_same(Counter(rows), Counter(expected))


def index_columns(graph: Graph, name: str, index: Any, span: slice) -> list[list[Any]]:
    columns = []
    if index.relation is not None:
        relations = graph.relations(name)
        assert relations is not None
        columns.append([relations[code] for code in index.relation[span]])
    for values in (index.weight, index.time, index.edge):
        if values is not None:
            columns.append(values[span].tolist())
    return columns


def edge_columns(edge: Edge, index: Any, position: int) -> list[Any]:
    values = dict(edge.values)
    columns: list[Any] = [] if index.relation is None else [edge.relation]
    columns += [values[k] for k in ("weight", "time") if getattr(index, k) is not None]
    return columns if index.edge is None else [*columns, position]
