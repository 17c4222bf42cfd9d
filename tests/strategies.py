"""Hypothesis strategies for the domain: graphs as users have them, and their chunks."""

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from graphsys.core.types import EdgeType
from graphsys.storage import EdgeChunk, NodeChunk

MAX_ID = 2**63 - 1
TYPE_NAMES = ("node", "user", "a/b", "..", ".", "", "100%", "gr\u00fc\u00df e", "n" * 300)
SPLITS = ("train", "valid", "test", "t/\u00e9")


@dataclass(frozen=True)
class PlainEdge:
    """One edge of the input."""

    src: Any
    dst: Any
    columns: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PlainGraph:
    """A graph in plain Python, and the chunks that say the same.

    Attributes:
        edges: Edges by (edge type, split), in the order of the chunks.
        nodes: Ids by node type, with the columns of those that a node table lists.
        features: Feature rows by node type and id.
        chunks: What a source yields.
        is_directed: Whether the edges have a direction.
    """

    edges: dict[tuple[EdgeType, str], list[PlainEdge]]
    nodes: dict[str, dict[Any, dict[str, Any]]]
    features: dict[str, dict[Any, list[float]]]
    chunks: list[EdgeChunk | NodeChunk]
    is_directed: bool


def id_pools() -> st.SearchStrategy[list[Any]]:
    """Ids of one node type: dense, sparse or text, never of two kinds."""
    dense = st.lists(st.integers(0, 20), min_size=1, max_size=12, unique=True)
    sparse = st.lists(st.integers(0, MAX_ID), min_size=1, max_size=12, unique=True)
    edge_cases = st.sampled_from([0, 1, 2**31, 2**32 - 1, 2**32, MAX_ID - 1, MAX_ID])
    edges = st.lists(edge_cases, min_size=1, max_size=6, unique=True)
    # numpy and Arrow hold no lone surrogates
    text = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
    texts = st.lists(text, min_size=1, max_size=12, unique=True)
    return st.one_of(dense, sparse, edges, texts)


def _id_array(draw: st.DrawFn, ids: list[Any], is_text: bool) -> Any:
    if is_text:
        kind = draw(st.sampled_from([pa.string(), pa.large_string()]))
        array = pa.array(ids, type=kind)
        return array.dictionary_encode() if draw(st.booleans()) else array
    largest = max(ids, default=0)
    fits = [
        t for t in (np.int64, np.uint64, np.uint32, np.int32) if largest <= np.iinfo(t).max
    ]
    return np.asarray(ids, dtype=draw(st.sampled_from(fits)))


COLUMNS: dict[str, st.SearchStrategy[Any]] = {
    # sums of these are exact in float32, in any order
    "weight": st.integers(-40, 40).map(lambda n: n / 4),
    "time": st.integers(-(2**63), MAX_ID),
    "relation": st.sampled_from(["likes", "knows", "", "\u00e9t\u00e9"]),
    "note": st.one_of(st.none(), st.text(max_size=3)),
    "flag": st.booleans(),
}


def _column(name: str, values: list[Any]) -> Any:
    types = {"note": pa.string(), "relation": pa.string(), "flag": pa.bool_()}
    if name in types:
        return pa.array(values, type=types[name])
    return np.asarray(values, dtype=np.float64 if name == "weight" else np.int64)


def _cuts(draw: st.DrawFn, length: int) -> list[slice]:
    at = draw(st.lists(st.integers(0, length), max_size=3))
    bounds = [0, *sorted(at), length]
    return [slice(a, b) for a, b in pairwise(bounds)]


@st.composite
def plain_graphs(draw: st.DrawFn) -> PlainGraph:
    """Draw a graph of up to three node types and three edge types."""
    node_types = draw(
        st.lists(st.sampled_from(TYPE_NAMES), min_size=1, max_size=3, unique=True)
    )
    pools = {name: draw(id_pools()) for name in node_types}
    is_text = {name: isinstance(pool[0], str) for name, pool in pools.items()}
    kinds = draw(
        st.lists(
            st.builds(
                EdgeType,
                st.sampled_from(node_types),
                st.sampled_from(["edge", "likes", "a/b", "..", ""]),
                st.sampled_from(node_types),
            ),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    edges: dict[tuple[EdgeType, str], list[PlainEdge]] = {}
    chunks: list[EdgeChunk | NodeChunk] = []
    nodes: dict[str, dict[Any, dict[str, Any]]] = {}
    for kind in kinds:
        columns = draw(st.lists(st.sampled_from(sorted(COLUMNS)), unique=True))
        splits = draw(
            st.lists(st.sampled_from(SPLITS), min_size=1, max_size=3, unique=True)
        )
        for split in splits:
            one = st.builds(
                PlainEdge,
                st.sampled_from(pools[kind.src_type]),
                st.sampled_from(pools[kind.dst_type]),
                st.fixed_dictionaries({name: COLUMNS[name] for name in columns}),
            )
            rows = draw(st.lists(one, max_size=30))
            edges[kind, split] = rows
            for cut in _cuts(draw, len(rows)):
                piece = rows[cut]
                for node_type, ids in (
                    (kind.src_type, [e.src for e in piece]),
                    (kind.dst_type, [e.dst for e in piece]),
                ):
                    for key in ids:
                        nodes.setdefault(node_type, {}).setdefault(key, {})
                    nodes.setdefault(node_type, {})
                chunks.append(
                    EdgeChunk(
                        src=_id_array(draw, [e.src for e in piece], is_text[kind.src_type]),
                        dst=_id_array(draw, [e.dst for e in piece], is_text[kind.dst_type]),
                        edge_type=kind,
                        split=split,
                        columns={
                            n: _column(n, [e.columns[n] for e in piece]) for n in columns
                        },
                    )
                )
    features: dict[str, dict[Any, list[float]]] = {}
    for name in node_types:
        if draw(st.booleans()):
            chunks.extend(
                _node_chunks(draw, name, pools[name], is_text[name], nodes, features)
            )
    chunks = draw(st.permutations(chunks)) if draw(st.booleans()) else chunks
    return PlainGraph(edges, nodes, features, chunks, draw(st.booleans()))


def _node_chunks(
    draw: st.DrawFn,
    name: str,
    pool: list[Any],
    is_text: bool,
    nodes: dict[str, dict[Any, dict[str, Any]]],
    features: dict[str, dict[Any, list[float]]],
) -> list[NodeChunk]:
    ids = draw(st.permutations(pool))
    has_features = draw(st.booleans())
    rows = nodes.setdefault(name, {})
    for k, key in enumerate(ids):
        rows[key] = {"label": k, "split": draw(st.sampled_from(["train", "test", None]))}
    if has_features:
        features[name] = {key: [k, -k, k / 2] for k, key in enumerate(ids)}
    chunks = []
    for cut in _cuts(draw, len(ids)):
        piece = ids[cut]
        dense = np.asarray([features[name][key] for key in piece] if has_features else [])
        chunks.append(
            NodeChunk(
                ids=_id_array(draw, piece, is_text),
                node_type=name,
                columns={
                    "label": np.asarray([rows[key]["label"] for key in piece], np.int64),
                    "split": pa.array([rows[key]["split"] for key in piece], pa.string()),
                },
                features={"x": dense.reshape(-1, 3).astype(np.float32)}
                if has_features
                else {},
            )
        )
    return chunks


def ingest_options() -> st.SearchStrategy[dict[str, Any]]:
    """Options of an ingest: none of them but the last two may change what is read back."""
    return st.fixed_dictionaries(
        {
            "partitions": st.integers(1, 5),
            "partitioner": st.sampled_from(["hash", "random", "range", "ldg", "fennel"]),
            "order": st.sampled_from(["auto", "degree", "original", "rcm"]),
            "memory": st.sampled_from([16 << 20, 10**9]),
            "seed": st.integers(0, 2**32),
            "coalesce": st.booleans(),
            "drop_self_loops": st.booleans(),
        }
    )
