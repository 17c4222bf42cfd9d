"""The held-out edges of a split, in an order that no layout of the store changes."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError
from graphsys.embedding.data.edge_stream import Triples, stream_edges
from graphsys.embedding.data.held_out_split import HELD_OUT
from graphsys.embedding.model import RelationSet
from graphsys.kernels.cpu import hashing
from graphsys.kernels.cpu.sampling.keyed_draws import edge_keys
from graphsys.storage.ids.string_ids import string_buffers
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Words = npt.NDArray[np.uint64]


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Held-out edges of one edge type, sorted by relation name, then by ``key``.

    Attributes:
        relations: The relations of the edge type.
        src: Numbers of the sources in their type, int64 ``[M]``.
        relation: Codes of the relations ``[M]``.
        dst: Numbers of the destinations in their type ``[M]``.
        key: A hash of the seed and the names in each edge, uint64 ``[M]``.
    """

    relations: RelationSet
    src: Ints
    relation: Ints
    dst: Ints
    key: Words

    def __len__(self) -> int:
        return len(self.src)

    def take(self, chosen: npt.NDArray[np.integer]) -> "HeldOut":
        """Return some of the edges, in their order."""
        chosen = np.sort(chosen)
        return HeldOut(
            relations=self.relations,
            src=self.src[chosen],
            relation=self.relation[chosen],
            dst=self.dst[chosen],
            key=self.key[chosen],
        )


def with_split(
    graph: GraphReader, model: Iterable[RelationSet], split: str
) -> list[RelationSet]:
    """Return the edge types that have edges in a split.

    Raises:
        ConfigError: None has.
    """
    model = list(model)
    chosen = [m for m in model if graph.num_edges_of(m.edge_type, split)]
    if not chosen:
        known = sorted({s for m in model for s in graph.splits(m.edge_type)} - {split})
        holds_out = (
            "train with --set eval_fraction=F; of each pair of partitions F of the edges, "
            "rounded down, are held out"
            if split == HELD_OUT
            else "hold edges out before training, graphsys split GRAPH -o GRAPH2"
        )
        raise ConfigError(
            f"split {split!r} has no edges; the graph has {', '.join(known) or 'none'}; "
            f"name one of these, or {holds_out}"
        )
    return chosen


def held_out_edges(
    graph: GraphReader,
    model: Sequence[RelationSet],
    split: str,
    *,
    most: int | None = None,
    seed: int = 0,
) -> list[HeldOut]:
    """Read the edges of a split, or a uniform sample of them.

    Args:
        graph: The graph.
        model: Edge types to read, see :func:`with_split`.
        split: The split.
        most: How many edges to keep of all edge types together; None for all. The sample
            is drawn by the users' ids, so it is the same in any layout of the store.
        seed: Of the sample.

    Returns:
        The edges of every edge type, one entry per entry of ``model``.
    """
    found = [_read(graph, relations, split, most, seed) for relations in model]
    if most is None or sum(map(len, found)) <= most:
        return found
    keys = np.concatenate([edges.key for edges in found])
    owner = np.repeat(np.arange(len(found)), [len(edges) for edges in found])
    places = np.concatenate([np.arange(len(edges)) for edges in found])
    kept = np.argsort(keys, kind="stable")[:most]
    return [
        edges.take(places[kept[owner[kept] == number]])
        for number, edges in enumerate(found)
    ]


def node_keys(graph: GraphReader, node_type: str, part: int) -> Words:
    """Return a hash of every node's id in a partition, uint64 ``[N]``."""
    ids = graph.nodes(node_type, part).column("id").combine_chunks()
    keys = np.empty(len(ids), dtype=np.uint64)
    if graph.manifest.node_types[node_type].id_type == "int64":
        hashing.hash_integers(ids.to_numpy(), keys)
    else:
        hashing.hash_strings(*string_buffers(ids), keys)
    return keys


def name_key(*parts: int | str) -> np.uint64:
    """Return a hash of names and numbers."""
    text = "\x1f".join(map(str, parts)).encode()
    return np.uint64(int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big"))


def _read(
    graph: GraphReader, relations: RelationSet, split: str, most: int | None, seed: int
) -> HeldOut:
    """Read one edge type's edges, keeping those with the smallest keys."""
    kind = relations.edge_type
    kept: list[Triples] = []
    kept_keys: list[Words] = []
    num_kept = 0
    names = [name_key(seed, relations.name, name) for name in relations.relations]
    relation_keys = np.array(names, dtype=np.uint64)
    for i in range(graph.num_partitions(kind.src_type)):
        src_keys = node_keys(graph, kind.src_type, i)
        for j in range(graph.num_partitions(kind.dst_type)):
            dst_keys: Words | None = None
            for piece in stream_edges(graph, kind, [split], [(i, j)]):
                if dst_keys is None:
                    dst_keys = node_keys(graph, kind.dst_type, j)
                keys = np.empty(len(piece.src), dtype=np.uint64)
                edge_keys(
                    src_keys,
                    dst_keys,
                    relation_keys,
                    piece.src - graph.offsets(kind.src_type)[i],
                    piece.relation,
                    piece.dst - graph.offsets(kind.dst_type)[j],
                    keys,
                )
                kept.append(piece)
                kept_keys.append(keys)
                num_kept += len(keys)
                if most is not None and num_kept > 2 * most:
                    kept, kept_keys = _smallest(kept, kept_keys, most)
                    num_kept = most
    if most is not None and num_kept > most:
        kept, kept_keys = _smallest(kept, kept_keys, most)
    return _in_order(relations, kept, kept_keys)


def _smallest(
    pieces: list[Triples], keys: list[Words], most: int
) -> tuple[list[Triples], list[Words]]:
    joined, key = Triples(*map(np.concatenate, zip(*pieces, strict=True))), _join(keys)
    order = np.argsort(key, kind="stable")[:most]
    return [Triples(*(column[order] for column in joined))], [key[order]]


def _in_order(relations: RelationSet, pieces: list[Triples], keys: list[Words]) -> HeldOut:
    none = np.empty(0, dtype=np.int64)
    columns = [np.concatenate([none, *(piece[k] for piece in pieces)]) for k in range(3)]
    key = _join(keys)
    place = np.empty(len(relations.relations), dtype=np.int64)
    place[np.argsort(relations.relations)] = np.arange(len(place))
    order = np.lexsort((key, place[columns[1]]))
    return HeldOut(
        relations=relations,
        src=columns[0][order],
        relation=columns[1][order],
        dst=columns[2][order],
        key=key[order],
    )


def _join(keys: list[Words]) -> Words:
    return np.concatenate([np.empty(0, dtype=np.uint64), *keys])
