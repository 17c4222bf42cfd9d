"""METIS through pymetis, for graphs that fit in memory.

Karypis, Kumar, "A fast and high quality multilevel scheme for partitioning irregular
graphs", SIAM J. Sci. Comput. 20(1), 1998. Nodes weigh their degree plus one, so edges are
balanced.
"""

import numpy as np
import numpy.typing as npt

from graphsys.core.deps import require
from graphsys.partitioners.stream import STREAM_PARTITIONERS, NodeStream


@STREAM_PARTITIONERS.register("metis")
def metis(stream: NodeStream, num_partitions: int, seed: int) -> npt.NDArray[np.uint32]:
    """Assign nodes by METIS's k-way method, with the whole graph in memory.

    Raises:
        MissingDependencyError: pymetis is not installed.
    """
    pymetis = require("pymetis", extra="all")
    if num_partitions == 1 or not stream.num_nodes:
        return np.zeros(stream.num_nodes, dtype=np.uint32)
    lengths, neighbours = [], []
    for first, indptr, indices in stream.blocks():
        counts = indptr[1:].astype(np.int64) - indptr[:-1].astype(np.int64)
        nodes = np.repeat(np.arange(first, first + len(counts)), counts)
        is_other = nodes != indices  # METIS takes no self-loops
        lengths.append(np.bincount(nodes[is_other] - first, minlength=len(counts)))
        neighbours.append(indices[is_other].astype(np.int64))
    starts = np.concatenate(([0], np.cumsum(np.concatenate(lengths))))
    options = pymetis.Options(seed=seed)
    _, parts = pymetis.part_graph(
        num_partitions,
        adjacency=pymetis.CSRAdjacency(starts, np.concatenate(neighbours)),
        vweights=(stream.degrees + 1).tolist(),
        options=options,
    )
    return np.asarray(parts, dtype=np.uint32)
