"""KaHIP, for graphs that fit in memory: the smallest cuts, in the longest time.

Sanders, Schulz, "Think locally, act globally: highly balanced graph partitioning", SEA
2013; its preset for social networks (Meyerhenke, Sanders, Schulz, "Partitioning complex
networks via size-constrained clustering", SEA 2014). Nodes weigh their degree plus one,
so edges are balanced.
"""

import numpy as np
import numpy.typing as npt

from graphsys.core.deps import require
from graphsys.core.errors import BudgetError
from graphsys.partitioners.base import PARTITIONERS, NodeStream
from graphsys.partitioners.rows import simple_rows

_IMBALANCE = 0.03
_MAX_ENDS = 2**31 - 1
# the peak of a planted graph with 4 million ends, rounded up
_BYTES_PER_END = 50
_BYTES_PER_NODE = 200


class Kahip:
    """KaHIP's ``kaffpa`` with the preset ``fastsocial``."""

    def __call__(
        self, stream: NodeStream, num_partitions: int, seed: int
    ) -> npt.NDArray[np.uint32]:
        """Assign the nodes.

        Raises:
            MissingDependencyError: the package ``kahip`` is not installed.
            BudgetError: the graph has more ends of edges than KaHIP can count.
        """
        kahip = require("kahip", extra="kahip")
        if num_partitions == 1 or not stream.num_nodes:
            return np.zeros(stream.num_nodes, dtype=np.uint32)
        num_ends = int(stream.degrees.sum())
        if num_ends + stream.num_nodes > _MAX_ENDS:
            raise BudgetError(
                f"kahip counts in 32 bits, and this graph has {num_ends} ends of edges and "
                f"{stream.num_nodes} nodes; take reldg"
            )
        starts, neighbors = simple_rows(stream)
        _, parts = kahip.kaffpa(
            stream.degrees + 1,
            starts,
            np.ones(len(neighbors), dtype=np.int32),
            neighbors,
            num_partitions,
            _IMBALANCE,
            True,  # quiet
            seed % 2**31,
            kahip.FASTSOCIAL,
        )
        return np.asarray(parts, dtype=np.uint32)

    def memory_bytes(self, num_nodes: int, num_ends: int) -> int:
        """Return about what KaHIP and our copies for it take."""
        return _BYTES_PER_END * num_ends + _BYTES_PER_NODE * num_nodes


PARTITIONERS.register("kahip")(Kahip())
