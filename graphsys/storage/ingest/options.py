"""How a store is made: the options of an ingest, checked."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphsys.core.errors import ConfigError
from graphsys.core.memory import format_bytes
from graphsys.partitioners import check_partitioner, is_stream_partitioner
from graphsys.storage.ids.id_mapping import ORDERS
from graphsys.storage.ingest.orders import GRAPH_ORDERS
from graphsys.storage.manifest import MAX_PARTITIONS
from graphsys.storage.write.feature_encoding import GIVEN, parse_forms

MIN_MEMORY = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestOptions:
    """How a store is made.

    Attributes:
        partitions: Partitions of every node type, or of each by name.
        partitioner: Name of the partitioner.
        order: "auto", "degree", "original", "rabbit" or "rcm".
        memory_bytes: Budget of anonymous memory.
        undirected: Take every edge for both directions, whatever the source says.
        coalesce: Keep one edge of each (src, dst, relation), weights summed.
        drop_self_loops: Remove edges from a node to itself.
        seed: Seed of the partitioner.
        features_as: How dense features are stored: "given"; "float16"; "int8", with a scale
            for each row; "shared", each distinct row of a partition once, where that is
            smaller; or "float16,shared", "int8,shared".
        missing_nodes: Nodes that edges name and no table lists: "make" and say so,
            "refuse", or "" to make them without a word.
    """

    partitions: int | Mapping[str, int] = 1
    partitioner: str = "hash"
    order: str = "auto"
    memory_bytes: int = 4 * 10**9
    undirected: bool = False
    coalesce: bool = False
    drop_self_loops: bool = False
    seed: int = 0
    features_as: str = GIVEN
    missing_nodes: str = ""

    def __post_init__(self) -> None:
        """Check the values.

        Raises:
            ConfigError: one is out of range or unknown.
        """
        if self.order not in ORDERS:
            raise ConfigError(
                f"order: got {self.order!r}, expected one of {', '.join(ORDERS)}"
            )
        if self.missing_nodes not in ("", "make", "refuse"):
            raise ConfigError(
                f"missing_nodes: got {self.missing_nodes!r}, expected make, drop or refuse"
            )
        check_partitioner(self.partitioner)
        parse_forms(self.features_as)
        given = self.partitions
        for count in given.values() if isinstance(given, Mapping) else [given]:
            if not isinstance(count, (int, np.integer)) or not 1 <= count <= MAX_PARTITIONS:
                raise ConfigError(
                    f"partitions: got {count!r}, expected 1 to {MAX_PARTITIONS}, or a "
                    'number by node type, {"user": 3}'
                )
        if self.memory_bytes < MIN_MEMORY:
            raise ConfigError(
                f"memory: got {format_bytes(self.memory_bytes)}, expected at least "
                f"{format_bytes(MIN_MEMORY)}"
            )

    @property
    def needs_structure(self) -> bool:
        """Whether partitions or order can only be found on the whole graph."""
        return self.order in GRAPH_ORDERS or is_stream_partitioner(self.partitioner)

    def num_partitions(self, node_type: str) -> int:
        """Return the partitions of a node type (1 where only others are named)."""
        if isinstance(self.partitions, Mapping):
            return self.partitions.get(node_type, 1)
        return self.partitions
