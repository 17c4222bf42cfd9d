"""What a store holds, from its manifest alone."""

import os
from pathlib import Path
from typing import Any

from graphsys.core.memory import format_bytes
from graphsys.storage.deltas.merge_cache import kept_bytes
from graphsys.storage.manifest import Manifest, NodeTypeEntry, needed_version
from graphsys.storage.reader import GraphReader
from graphsys.storage.write.feature_encoding import GIVEN, SHARED, saved_bytes

_MANY_DELTAS = 100
_MANY_EDGES = 0.1
_FEW_EDGES = 1 << 20  # are merged in a fraction of a second
_KINDS = {
    "buckets": "edges",
    "indexes": "index",
    "nodes": "nodes",
    "features": "features",
}


def info(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return the counts of a graph, as ``graphsys info --json`` prints them.

    Returns:
        ``num_nodes`` (all splits), ``num_edges`` (stored training edges),
        ``num_edges_by_split``, ``directed``, ``node_types`` and ``edge_types``
        (``{name: count}``; of edges, the training ones), ``partitions`` (of the node type
        that has most) and ``bytes_per_edge`` (of the buckets, all splits together).

    Raises:
        InvalidGraphError: there is no graph.
        CorruptStoreError: the manifest or a file is missing, cut short or too new.
    """
    with GraphReader(path) as graph:
        nodes, edges = graph.manifest.node_types, graph.manifest.edge_types
        by_split: dict[str, int] = {}
        for edge in edges.values():
            for split, count in edge.num_edges.items():
                by_split[split] = by_split.get(split, 0) + count
        stored = sum(by_split.values())
        sizes = bytes_by_kind(graph.manifest)
        bucket_bytes = sizes["buckets"] + sizes.get("deltas", 0)
        return {
            "num_nodes": graph.num_nodes,
            "num_edges": graph.num_edges,
            "num_edges_by_split": by_split,
            "directed": graph.is_directed,
            "node_types": {name: node.num_nodes for name, node in nodes.items()},
            "edge_types": {name: graph.num_edges_of(name) for name in edges},
            "partitions": max((node.num_partitions for node in nodes.values()), default=1),
            "bytes_per_edge": bucket_bytes / stored if stored else 0.0,
        }


def details(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what else people like to know: how a graph was made, and what it takes.

    Returns:
        ``source`` (where it is known), ``generation``, ``partitioner`` and the figures of
        its quality; ``nodes`` by type: ``id_type``, ``order``, ``partitions``, ``columns``,
        ``splits`` and ``features``, each by name; ``edges`` by type: ``src_type``,
        ``dst_type``, ``directed``, ``relations`` (their number, or None), ``columns`` and,
        where it is known, the ``time_unit`` of the column ``time``;
        ``bytes`` of buckets, indexes, nodes and features. Where there are deltas, their
        number as ``deltas``, the edges they ``added`` and ``removed``, their bytes, and
        the ``advice`` to compact, where reading is slowed.

    Raises:
        InvalidGraphError: there is no graph.
        CorruptStoreError: the manifest or a file is missing, cut short or too new.
    """
    with GraphReader(path) as graph:
        manifest = graph.manifest
    facts: dict[str, Any] = {"source": manifest.source} if manifest.source else {}
    facts["generation"] = manifest.generation
    if manifest.deltas:
        facts["deltas"] = len(manifest.deltas)
        for key in ("added", "removed"):
            facts[key] = changed_edges(manifest, key)
        if advice := compaction_advice(manifest):
            facts["advice"] = advice
    facts["partitioner"] = manifest.partitioning.get("method", "unknown")
    facts.update(manifest.partitioning.get("quality", {}))
    facts["nodes"] = {
        name: {
            "id_type": node.id_type,
            "order": manifest.order.get(name, "original"),
            "partitions": node.num_partitions,
            "columns": dict(node.columns),
            "splits": dict(node.splits),
            "features": _features(node),
        }
        for name, node in manifest.node_types.items()
    }
    facts["edges"] = {
        name: {
            "src_type": edge.src_type,
            "dst_type": edge.dst_type,
            "directed": edge.directed,
            "relations": None if edge.relations is None else len(edge.relations),
            "columns": dict(edge.columns),
            **({"time_unit": edge.time_unit} if edge.time_unit else {}),
        }
        for name, edge in manifest.edge_types.items()
    }
    facts["bytes"] = bytes_by_kind(manifest)
    if kept := kept_bytes(Path(path)):
        facts["bytes"]["merged"] = kept
    return facts


def bytes_by_kind(manifest: Manifest) -> dict[str, int]:
    """Return the bytes of the buckets, indexes, node tables and features.

    With ``deltas``, if there are any.
    """
    sizes = dict.fromkeys(_KINDS, 0)
    if manifest.deltas:
        mark = f"gen-{manifest.generation}/deltas/"
        sizes["deltas"] = sum(e.bytes for e in manifest.files if e.path.startswith(mark))
    for kind, folder in _KINDS.items():
        prefix = f"gen-{manifest.generation}/{folder}/"
        sizes[kind] = sum(e.bytes for e in manifest.files if e.path.startswith(prefix))
    return sizes


def changed_edges(manifest: Manifest, key: str) -> int:
    """Return how many edges all deltas together ``added`` or ``removed``."""
    return sum(
        sum(splits.values())
        for delta in manifest.deltas
        for splits in getattr(delta, key).values()
    )


def compaction_advice(manifest: Manifest) -> str:
    """Return what is said of a store that had better be compacted, or nothing.

    Whoever first asks for rows after an append merges all deltas into them. That takes
    longer the more files there are, and the more edges changed (``scripts/bench/run
    dynamic``).
    """
    changed = changed_edges(manifest, "added") + changed_edges(manifest, "removed")
    stored = sum(sum(it.num_edges.values()) for it in manifest.edge_types.values())
    reasons = []
    if len(manifest.deltas) >= _MANY_DELTAS:
        reasons.append(f"{len(manifest.deltas)} deltas")
    if changed > _MANY_EDGES * stored and changed >= _FEW_EDGES:
        reasons.append(f"{changed} changed edges beside {stored}")
    if not reasons:
        return ""
    what = f"{' and '.join(reasons)} are merged again after each append"
    return f"{what}; graphsys compact folds them in"


def shared_bytes(manifest: Manifest) -> int:
    """Return what it saves that features are stored once where rows repeat."""
    return sum(
        saved_bytes(node.num_nodes, entry)
        for node in manifest.node_types.values()
        for entry in node.features.values()
    )


def kept_form(manifest: Manifest) -> str:
    """Return how features are to be stored when a store is written again: as they are."""
    return SHARED if needed_version(manifest.node_types.values()) > 1 else GIVEN


def _features(node: NodeTypeEntry) -> dict[str, str]:
    shown = {}
    for name, entry in node.features.items():
        shown[name] = f"{entry['dtype']}[{entry['dim'] or 'bag'}]"
        if "stored_rows" in entry:
            saved = format_bytes(saved_bytes(node.num_nodes, entry))
            shown[name] += f" ({entry['stored_rows']} rows shared, {saved} saved)"
    return shown
