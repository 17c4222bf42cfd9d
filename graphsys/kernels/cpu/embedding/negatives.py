"""Draws of negatives: uniform, by degree, by relation; how likely they were.

A pool of a chunk is drawn from the nodes of the resident partition, once for each side.
Every draw is a hash of (key of the chunk, pool, draw, side), never of the worker.

By degree: from an alias table.

By relation: the nodes seen as answers of the relation in training (Krompass, Baier,
Tresp, "Type-constrained representation learning in knowledge graphs", ISWC 2015).
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from graphsys.kernels.cpu.embedding.known import Known
from graphsys.kernels.cpu.embedding.vector_math import Floats
from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import inline_jit, jit, lean_jit

Ints = npt.NDArray[np.int64]

UNIFORM: Final = 0
DEGREE: Final = 1
TYPE: Final = 2
HARD: Final = 3

_TO_FRACTION: Final = np.float32(1.0 / (1 << 24))


class Pools(NamedTuple):
    """The pools that are drawn, one after the other behind the positives of a chunk.

    Attributes:
        kinds: Code of each, int64 ``[P]``.
        begins: Where each begins behind the positives, int64 ``[P + 1]``.
        tables: Which of the sampler's alias tables it draws from, int64 ``[P]``.
        num_kept: How many of a hard pool count, else 0, int64 ``[P]``.
    """

    kinds: Ints
    begins: Ints
    tables: Ints
    num_kept: Ints


class Sampler(NamedTuple):
    """What the pools of one side are drawn from: one partition of ``N`` nodes.

    Attributes:
        num_nodes: N.
        shares: Of the alias tables, float32 ``[T, N]``.
        aliases: Of the alias tables, uint32 ``[T, N]``.
        type_begins: Where each relation begins in ``type_nodes``, int64 ``[R + 1]``.
        type_nodes: Nodes seen as answers of each relation, uint32.
        pool_bias: Added to the scores of each pool, float32 ``[P]``.
        node_bias: Added to that, by alias table and node, float32 ``[T, N]``, or empty.
        has_type_bias: Whether the log of the number of nodes of the relation is added for
            each pool, uint8 ``[P]``.
        edge_bias: Added to the scores of in-batch negatives, by edge of the bucket,
            float32 ``[E]``, or empty.
    """

    num_nodes: int
    shares: Floats
    aliases: npt.NDArray[np.uint32]
    type_begins: Ints
    type_nodes: npt.NDArray[np.uint32]
    pool_bias: Floats
    node_bias: Floats
    has_type_bias: npt.NDArray[np.uint8]
    edge_bias: Floats


class Candidates(NamedTuple):
    """What the queries of a bucket are compared with, besides the batch.

    Attributes:
        pools: What is drawn.
        src, dst: From what, on either side.
        src_known, dst_known: Answers known on either side, which are masked.
        temperatures: Of the self-adversarial weights, of the batch and of each pool,
            float32 ``[1 + P]``, 0 for equal weights; or empty: equal weights for all.
        has_hard: Whether a pool is hard.
    """

    pools: Pools
    src: Sampler
    dst: Sampler
    src_known: Known
    dst_known: Known
    temperatures: Floats
    has_hard: bool


@inline_jit
def draw_alias(share: Floats, alias: npt.NDArray[np.uint32], draw: np.uint64) -> np.int64:
    """Turn 64 random bits into a node of an alias table."""
    # Low bits choose the cell; the fraction takes a hash of them, to be independent.
    cell = np.int64(draw % np.uint64(share.size))
    fraction = np.float32(mix64(draw) >> np.uint64(40)) * _TO_FRACTION
    return cell if fraction < share[cell] else np.int64(alias[cell])


@inline_jit
def key_of_pool(key: np.uint64, pool: int) -> np.uint64:
    """Return the key of a pool's draws; the first one's is the chunk's."""
    return key if pool == 0 else mix64(key ^ mix64(np.uint64(pool)))


@lean_jit
def draw_pools(
    pools: Pools,
    sampler: Sampler,
    key: np.uint64,
    side: int,
    relation: int,
    num_positives: int,
    nodes: Ints,
    bias: Floats,
) -> None:
    """Draw the pools of one side of a chunk.

    Args:
        pools: Which.
        sampler: From what.
        key: Key of the chunk.
        side: 0 for sources, 1 for destinations.
        relation: Relation of the chunk, for pools by relation.
        num_positives: Where the pools begin in ``nodes`` and ``bias``.
        nodes: Receives the local numbers.
        bias: Receives what is added to their scores.
    """
    for p in range(pools.kinds.size):
        kind, table = pools.kinds[p], pools.tables[p]
        first, last = num_positives + pools.begins[p], num_positives + pools.begins[p + 1]
        pool_key = key_of_pool(key, p)
        low, size = 0, sampler.num_nodes
        shift = sampler.pool_bias[p]
        if kind == TYPE:
            low = sampler.type_begins[relation]
            size = sampler.type_begins[relation + 1] - low
            if sampler.has_type_bias[p]:
                shift += np.float32(np.log(max(size, 1)))
        for u in range(last - first):
            # Sources get even numbers and destinations odd ones: one key serves both sides.
            draw = mix64(pool_key + np.uint64(2 * u + side))
            bias[first + u] = shift
            if kind == DEGREE:
                node = draw_alias(sampler.shares[table], sampler.aliases[table], draw)
                nodes[first + u] = node
                if sampler.node_bias.size > 0:
                    bias[first + u] += sampler.node_bias[table, node]
            elif kind == TYPE and size > 0:
                at = low + np.int64(draw % np.uint64(size))
                nodes[first + u] = sampler.type_nodes[at]
            else:
                nodes[first + u] = np.int64(draw % np.uint64(sampler.num_nodes))


@jit
def collect_types(
    indptr: npt.NDArray[np.uint32],
    relation: npt.NDArray[np.uint16],
    num_relations: int,
) -> tuple[Ints, npt.NDArray[np.uint32]]:
    """List the nodes of every relation from the rows of an index.

    Args:
        indptr: Where the row of each node begins ``[N + 1]``.
        relation: Relation of each entry, or empty for one relation.
        num_relations: R.

    Returns:
        Where each relation begins, int64 ``[R + 1]``, and the nodes that have an entry of
        it, ascending, uint32.
    """
    num_nodes = indptr.size - 1
    begins = np.zeros(num_relations + 1, np.int64)
    last = np.full(num_relations, -1, np.int64)
    for v in range(num_nodes):
        for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
            r = np.int64(relation[e]) if relation.size > 0 else 0
            if last[r] != v:
                last[r] = v
                begins[r + 1] += 1
    for r in range(num_relations):
        begins[r + 1] += begins[r]
    nodes, ends = np.empty(begins[-1], np.uint32), begins[:-1].copy()
    last[:] = -1
    for v in range(num_nodes):
        for e in range(np.int64(indptr[v]), np.int64(indptr[v + 1])):
            r = np.int64(relation[e]) if relation.size > 0 else 0
            if last[r] != v:
                last[r] = v
                nodes[ends[r]] = v
                ends[r] += 1
    return begins, nodes


@jit
def batch_bias(
    nodes: npt.NDArray[np.uint32],
    relation: npt.NDArray[np.uint32],
    order: npt.NDArray[np.uint32],
    num_nodes: int,
    out: Floats,
) -> None:
    """Give every edge minus the log of how often its node is among the edges.

    Args:
        nodes: Local number of the node of every edge ``[E]``.
        relation: Relation of every edge, to count among the edges of the same one, which
            are side by side in ``order``; or empty.
        order: The edges.
        num_nodes: Nodes of the partition.
        out: Receives -log(count / edges), float32 ``[E]``.
    """
    counts = np.zeros(num_nodes, np.int64)
    begin = 0
    while begin < order.size:
        end = begin
        while end < order.size and (
            relation.size == 0 or relation[order[end]] == relation[order[begin]]
        ):
            counts[nodes[order[end]]] += 1
            end += 1
        for k in range(begin, end):
            share = counts[nodes[order[k]]] / (end - begin)
            out[order[k]] = -np.log(share)
        for k in range(begin, end):
            counts[nodes[order[k]]] = 0
        begin = end
