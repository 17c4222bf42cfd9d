"""Where the files of deltas are, and what a store was before its deltas."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from graphsys.storage import manifest as names
from graphsys.storage.delta_entry import DeltaEntry
from graphsys.storage.manifest import EdgeTypeEntry, Manifest, NodeTypeEntry, file_name

FORMAT_VERSION: Final = 3
"""What a store with deltas says: who reads on without them reads something else."""


def delta_folder(generation: int, number: int) -> str:
    """Return the folder of a delta, relative to the graph's."""
    return f"gen-{generation}/deltas/{number}"


def in_delta(path: str, number: int) -> str:
    """Return where a file of a generation is in a delta of it."""
    generation, _, rest = path.partition("/")
    return f"{generation}/deltas/{number}/{rest}"


def added_file(generation: int, number: int, edge_type: str, split: str) -> str:
    """Return the path of the edges that a delta added."""
    folder = f"{delta_folder(generation, number)}/edges/{file_name(edge_type)}"
    return f"{folder}/{file_name(split)}.arrow"


def removed_file(generation: int, number: int, edge_type: str, split: str) -> str:
    """Return the path of the edges that a delta removed."""
    folder = f"{delta_folder(generation, number)}/deletions/{file_name(edge_type)}"
    return f"{folder}/{file_name(split)}.arrow"


def id_table_file(generation: int, number: int, node_type: str) -> str:
    """Return the path of the table from ids to numbers of a type's first partitions."""
    return f"{delta_folder(generation, number)}/ids/{file_name(node_type)}.arrow"


def delta_of(manifest: Manifest, node_type: str, part: int) -> int:
    """Return the number of the delta whose new nodes form a partition; 0 for none."""
    for delta in reversed(manifest.deltas):
        own = delta.partitions.get(node_type)
        if own == part:
            return delta.number
        if own is not None and own < part:
            break
    return 0


def node_path(manifest: Manifest, node_type: str, part: int) -> str:
    """Return the path of a partition's node table, in a delta or not."""
    path = names.node_file(manifest.generation, node_type, part)
    number = delta_of(manifest, node_type, part)
    return in_delta(path, number) if number else path


def feature_path(manifest: Manifest, node_type: str, name: str, part: int) -> str:
    """Return the path of a partition's features, in a delta or not."""
    path = names.feature_file(manifest.generation, node_type, name, part)
    number = delta_of(manifest, node_type, part)
    return in_delta(path, number) if number else path


def before_deltas(manifest: Manifest) -> Manifest:
    """Return the manifest of the generation as it was written, before any append."""
    return after_deltas(manifest, 0)


def after_deltas(manifest: Manifest, count: int) -> Manifest:
    """Return the manifest as it was after the first ``count`` deltas."""
    later = manifest.deltas[count:]
    if not later:
        return manifest
    marks = tuple(f"{delta_folder(manifest.generation, it.number)}/" for it in later)
    first_version = names.needed_version(
        manifest.node_types.values(), manifest.edge_types.values()
    )
    return replace(
        manifest,
        node_types={
            name: _first_nodes(later, name, node)
            for name, node in manifest.node_types.items()
        },
        edge_types={
            name: _first_edges(later, name, edge)
            for name, edge in manifest.edge_types.items()
        },
        files=[entry for entry in manifest.files if not entry.path.startswith(marks)],
        format_version=manifest.format_version if count else first_version,
        deltas=manifest.deltas[:count],
    )


def _first_nodes(
    later: Sequence[DeltaEntry], name: str, node: NodeTypeEntry
) -> NodeTypeEntry:
    parts = [d.partitions[name] for d in later if name in d.partitions]
    if not parts:
        return node
    offsets = node.offsets[: parts[0] + 1]
    features, splits = {}, dict(node.splits)
    for feature, entry in node.features.items():
        features[feature] = dict(entry)
        if "stored_rows" in entry:  # rows of deltas are not shared
            features[feature]["stored_rows"] -= node.num_nodes - offsets[-1]
    for delta in later:
        for split, count in delta.node_splits.get(name, {}).items():
            splits[split] -= count
    splits = {split: count for split, count in splits.items() if count > 0}
    return replace(node, offsets=offsets, features=features, splits=splits)


def _first_edges(
    later: Sequence[DeltaEntry], name: str, edge: EdgeTypeEntry
) -> EdgeTypeEntry:
    num_edges, new = dict(edge.num_edges), 0
    for delta in later:
        new += delta.relations.get(name, 0)
        for split in num_edges:
            num_edges[split] -= delta.added.get(name, {}).get(split, 0)
            num_edges[split] += delta.removed.get(name, {}).get(split, 0)
    relations = edge.relations
    if relations is not None and new:
        relations = relations[: len(relations) - new]
    return replace(edge, num_edges=num_edges, relations=relations)
