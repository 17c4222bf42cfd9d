"""A graph of which there are sizes only, so that the verbs' own plans can be asked.

Rows are arrays without memory behind them: all their entries are one. Whoever asks for
sizes gets them; nobody may read.
"""

from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from graphsys.core.types import EdgeType, number_dtype
from graphsys.engine.topology import Topology
from graphsys.graph.csr import Csr, offset_dtype
from graphsys.graph.file_columns import FileColumn
from graphsys.storage.node_numbers import NodeNumbers

if TYPE_CHECKING:
    from graphsys.storage.reader import GraphReader

NODE = "node"
EDGE = EdgeType(NODE, "edge", NODE)
_TRAIN = "train"


class SizedGraph:
    """A directed graph of one type of nodes and edges, evenly partitioned."""

    def __init__(self, num_nodes: int, num_edges: int, partitions: int = 1) -> None:
        self.num_nodes, self.num_edges, self.partitions = num_nodes, num_edges, partitions
        self.node_types, self.edge_types = [NODE], [EDGE]
        self.is_directed = True
        self.manifest = SimpleNamespace(edge_types={"edge": SimpleNamespace(columns={})})
        self.path = "a graph of these sizes"

    def num_partitions(self, node_type: str) -> int:
        """Return the partitions of a node type."""
        return self.partitions

    def num_nodes_of(self, node_type: str) -> int:
        """Return the nodes of a type."""
        return self.num_nodes

    def num_edges_of(self, edge_type: EdgeType, split: str) -> int:
        """Return the edges of a type."""
        return self.num_edges

    def default_split(self, edge_type: EdgeType) -> str:
        """Return the split that is trained on."""
        return _TRAIN

    def splits(self, edge_type: EdgeType) -> list[str]:
        """Return the splits of an edge type."""
        return [_TRAIN]

    def bucket_counts(self, edge_type: EdgeType, split: str) -> npt.NDArray[np.int64]:
        """Return the edges of every bucket, int64 ``[P, P]``: as many each."""
        shape = (self.partitions, self.partitions)
        return np.full(shape, self.num_edges // self.partitions**2, dtype=np.int64)

    def edge_type_name(self, edge_type: EdgeType) -> str:
        """Return the name of an edge type."""
        return "edge"

    def relations(self, edge_type: EdgeType) -> list[str]:
        """Return the relations: none."""
        return []

    def is_directed_type(self, edge_type: EdgeType) -> bool:
        """Tell whether edges of a type have a direction."""
        return True

    def offsets(self, node_type: str) -> npt.NDArray[np.int64]:
        """Return the first number of every partition, int64 ``[P + 1]``."""
        parts = np.arange(self.partitions + 1, dtype=object) * self.num_nodes
        return (parts // self.partitions).astype(np.int64)

    def out_index(self, edge_type: EdgeType, part: int) -> Csr:
        """Return the rows of a partition, of these sizes."""
        return self._indexes[part]

    def in_index(self, edge_type: EdgeType, part: int) -> Csr:
        """Return the same: sizes do not differ."""
        return self._indexes[part]

    def joined_index(self, edge_type: EdgeType, direction: str) -> None:
        """Return nothing: there are no deltas."""

    @cached_property
    def _indexes(self) -> list[Csr]:
        offsets = self.offsets(NODE)
        whole, rest = divmod(self.num_edges, self.partitions)
        found = []
        for part in range(self.partitions):
            entries = whole + (part < rest)
            rows = int(offsets[part + 1] - offsets[part])
            found.append(
                Csr(
                    indptr=_nothing(rows + 1, offset_dtype(entries)),
                    indices=_nothing(entries, number_dtype(self.num_nodes)),
                    files={"indices": FileColumn(path=Path(), begin=0, length=entries)},
                )
            )
        return found


def _nothing(length: int, dtype: Any) -> npt.NDArray[Any]:
    """Return an array of a length that takes no memory."""
    return np.broadcast_to(np.zeros(1, dtype=dtype), (length,))


class SizedNumbers(NodeNumbers):
    """The numbering of a graph whose integer ids are in the order of its nodes."""

    def __init__(self, num_nodes: int) -> None:
        super().__init__({}, "a graph of these sizes")
        self.bases = np.array([0, num_nodes], dtype=np.int64)
        self.__dict__["are_ordered"] = True

    @property
    def id_bytes(self) -> float:
        """Bytes of an id."""
        return 8.0

    def base(self, node_type: str) -> int:
        """Return the first number of a type."""
        return 0


def sized_topology(graph: SizedGraph) -> Topology:
    """Return a graph as algorithms see it, for their plans only."""
    numbers = SizedNumbers(graph.num_nodes)
    return Topology(numbers, is_directed=True, graph=cast("GraphReader", graph))
