"""A stream as one graph in memory, for what cannot work block by block."""

import numpy as np
import numpy.typing as npt

from graphsys.partitioners.base import NodeStream


def whole_rows(
    stream: NodeStream,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    """Return the rows of a graph below 2^31 nodes as they are, loops included.

    Returns:
        Row offsets, int64 ``[N + 1]``, and neighbors, int32 ``[ends]``.
    """
    indptr = np.zeros(stream.num_nodes + 1, dtype=np.int64)
    np.cumsum(stream.degrees, out=indptr[1:])
    indices = np.empty(int(indptr[-1]), dtype=np.int32)
    at = 0
    for _, _, block in stream.blocks():
        indices[at : at + len(block)] = block
        at += len(block)
    return indptr, indices


def simple_rows(
    stream: NodeStream,
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return the rows of a graph without self-loops, which METIS and KaHIP do not take.

    Returns:
        Row offsets, int64 ``[N + 1]``, and neighbors, int64.
    """
    lengths = np.zeros(stream.num_nodes, dtype=np.int64)
    neighbors = [np.empty(0, dtype=np.int64)]
    for first, indptr, indices in stream.blocks():
        counts = indptr[1:].astype(np.int64) - indptr[:-1].astype(np.int64)
        nodes = np.repeat(np.arange(first, first + len(counts)), counts)
        is_other = nodes != indices
        own = np.bincount(nodes[is_other] - first, minlength=len(counts))
        lengths[first : first + len(counts)] = own
        neighbors.append(indices[is_other].astype(np.int64))
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return starts, np.concatenate(neighbors)
