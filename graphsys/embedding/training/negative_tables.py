"""Pools and samplers as the kernels take them, and what is checked of an index."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import CorruptStoreError
from graphsys.embedding.config import EmbeddingConfig
from graphsys.graph.csr import Csr, read_only
from graphsys.kernels.cpu.embedding import negatives as kernels
from graphsys.kernels.cpu.embedding.known import Known
from graphsys.kernels.cpu.embedding.negatives import Candidates, Pools, Sampler
from graphsys.storage.reader import GraphReader

Floats = npt.NDArray[np.float32]

_CODES: Final = {
    "uniform": kernels.UNIFORM,
    "degree": kernels.DEGREE,
    "type": kernels.TYPE,
    "hard": kernels.HARD,
}


def layout(config: EmbeddingConfig) -> Pools:
    """Lay the pools of a config out one behind the other."""
    drawn = config.drawn_pools
    degrees = np.cumsum([pool.kind == "degree" for pool in drawn], dtype=np.int64)
    return Pools(
        kinds=np.array([_CODES[pool.kind] for pool in drawn], dtype=np.int64),
        begins=np.cumsum([0, *(pool.num_drawn for pool in drawn)], dtype=np.int64),
        tables=np.maximum(degrees - 1, 0),
        num_kept=np.array(
            [pool.num if pool.kind == "hard" else 0 for pool in drawn], dtype=np.int64
        ),
    )


def degree_weights(indptr: npt.NDArray[Any], alpha: float) -> npt.NDArray[np.float64]:
    """Return degree ** alpha of every row, or ones where no row has an entry."""
    degrees = np.diff(indptr.astype(np.int64, copy=False)).astype(np.float64)
    weights = degrees**alpha
    return weights if weights.sum() > 0 else np.ones(len(degrees))


def uniform_sampler(num_nodes: int, pool_bias: Floats) -> Sampler:
    """Return what uniform pools are drawn from.

    Args:
        num_nodes: Nodes of the partition.
        pool_bias: Added to the scores of each pool, float32 ``[P]``.
    """
    return Sampler(
        num_nodes=num_nodes,
        shares=np.ones((0, num_nodes), np.float32),
        aliases=np.zeros((0, num_nodes), np.uint32),
        type_begins=np.zeros(1, np.int64),
        type_nodes=np.empty(0, np.uint32),
        pool_bias=pool_bias,
        node_bias=np.zeros((0, 0), np.float32),
        has_type_bias=np.zeros(len(pool_bias), np.uint8),
        edge_bias=np.empty(0, np.float32),
    )


def uniform_candidates(
    config: EmbeddingConfig, sizes: tuple[int, int], biases: tuple[float, float] = (0, 0)
) -> Candidates:
    """Return the candidates of a config whose drawn pools are all uniform.

    Args:
        config: The pools.
        sizes: Nodes of the source and of the destination partition.
        biases: Added to the scores of negatives on either side.
    """
    num_pools = len(config.drawn_pools)
    src, dst = (
        uniform_sampler(size, np.full(num_pools, bias, np.float32))
        for size, bias in zip(sizes, biases, strict=True)
    )
    nothing, no_weights = nothing_known(), np.empty(0, np.float32)
    return Candidates(layout(config), src, dst, nothing, nothing, no_weights, False)


def nothing_known() -> Known:
    """Return what masks nothing."""
    return Known(
        indptr=read_only(np.empty(0, np.uint32)),
        indices=read_only(np.empty(0, np.uint32)),
        relation=read_only(np.empty(0, np.uint16)),
        first=0,
        num_nodes=0,
    )


def require_sound(index: Csr, num_relations: int, name: str, graph: GraphReader) -> None:
    """Check what kernels trust: rows inside the index, relations that exist.

    Raises:
        CorruptStoreError: They are not.
    """
    ends = index.indptr
    is_sound = int(ends[0]) == 0 and int(ends[-1]) == len(index.indices)
    is_sound = is_sound and bool(np.all(ends[1:] >= ends[:-1]))
    relation = index.relation
    if relation is not None and len(relation):
        is_sound = is_sound and int(relation.max()) < num_relations
    if not is_sound:
        raise CorruptStoreError(
            f"an index of edge type {name} in graph {graph.path} has rows or relations "
            "outside of its range; run `graphsys verify`, then ingest again"
        )
