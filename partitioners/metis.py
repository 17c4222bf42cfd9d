"""METIS through pymetis, for graphs that fit in memory.

Karypis, Kumar, "A fast and high quality multilevel scheme for partitioning irregular
graphs", SIAM J. Sci. Comput. 20(1), 1998. Nodes weigh their degree plus one, so edges are
balanced.
"""

import numpy as np
import numpy.typing as npt

from graphsys.core.deps import require
from graphsys.partitioners.base import PARTITIONERS, NodeStream
from graphsys.partitioners.rows import simple_rows

# peaks of R-MAT and planted graphs with 2 and 4 million ends, rounded up
_BYTES_PER_END = 80
_BYTES_PER_NODE = 300


class Metis:
    """METIS's multilevel k-way method, with the whole graph in memory."""

    def __call__(
        self, stream: NodeStream, num_partitions: int, seed: int
    ) -> npt.NDArray[np.uint32]:
        """Assign the nodes.

        Raises:
            MissingDependencyError: pymetis is not installed.
        """
        pymetis = require("pymetis", extra="all")
        if num_partitions == 1 or not stream.num_nodes:
            return np.zeros(stream.num_nodes, dtype=np.uint32)
        starts, neighbors = simple_rows(stream)
        _, parts = pymetis.part_graph(
            num_partitions,
            adjacency=pymetis.CSRAdjacency(starts, neighbors),
            vweights=(stream.degrees + 1).tolist(),
            recursive=False,
            options=pymetis.Options(seed=seed % 2**31),
        )
        return np.asarray(parts, dtype=np.uint32)

    def memory_bytes(self, num_nodes: int, num_ends: int) -> int:
        """Return about what METIS and our copies for it take."""
        return _BYTES_PER_END * num_ends + _BYTES_PER_NODE * num_nodes


PARTITIONERS.register("metis")(Metis())
