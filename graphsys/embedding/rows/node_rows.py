"""How the rows of a node type come about: its own table, or pooled from features."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, CorruptStoreError, unknown_name
from graphsys.embedding.config import EmbeddingConfig
from graphsys.storage.reader import GraphReader

if TYPE_CHECKING:  # numba takes half a second, which asking for neighbors has not
    from graphsys.kernels.cpu.embedding.bags import Bags

Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]


class EmbeddingTables:
    """The tables that the node types of a graph train, and rows made from them.

    Raises:
        UnknownNameError: The config names a node type or a feature that is not there.
        ConfigError: A type cannot be featurized as the config says.
    """

    def __init__(self, graph: GraphReader, config: EmbeddingConfig) -> None:
        self._graph, self._config = graph, config
        self._bags: dict[str, Bags] = {}
        for name, settings in config.node_types.items():
            if name not in graph.node_types:
                raise unknown_name("node type", name, graph.node_types)
            if settings.features is not None:
                self._require_bags(name, settings.features)

    def sizes(self, node_type: str) -> Ints:
        """Return the rows of the table of every partition, int64 ``[P]``."""
        if self._config.of_type(node_type).features is None:
            return np.diff(self._graph.offsets(node_type))
        features = self.bags(node_type).features
        return np.array([int(features.max(initial=0)) + 1], dtype=np.int64)

    def bags(self, node_type: str) -> "Bags":
        """Return the features of the nodes of a type, or none."""
        from graphsys.kernels.cpu.embedding.bags import NO_BAGS, make_bags

        settings = self._config.of_type(node_type)
        if settings.features is None:
            return NO_BAGS
        if node_type not in self._bags:
            column: Any = self._graph.features(node_type, 0, settings.features)
            begins = column.offsets.to_numpy()
            values = column.values.to_numpy()
            num_nodes = self._graph.num_nodes_of(node_type)
            if (
                len(begins) != num_nodes + 1
                or begins[0] < 0
                or begins[-1] > len(values)
                or (np.diff(begins) < 0).any()
            ):
                raise CorruptStoreError(
                    f"feature {settings.features!r} of node type {node_type!r} in graph "
                    f"{self._graph.path} has bags that do not follow each other, expected "
                    f"{num_nodes}; run `graphsys verify`, then ingest again"
                )
            self._bags[node_type] = make_bags(
                begins, values, is_mean=settings.pooling == "mean"
            )
        return self._bags[node_type]

    def pool(self, node_type: str, table: Floats, nodes: Ints | None = None) -> Floats:
        """Return the rows of nodes of a partition.

        Args:
            node_type: Their type.
            table: The table of the partition.
            nodes: Their local numbers, int64 ``[n]``; all of them by default.

        Returns:
            float32 ``[n, D]``; the table itself for all where it holds them.
        """
        if self._config.of_type(node_type).features is None:
            return table if nodes is None else table[nodes]
        from graphsys.kernels.cpu.embedding.bags import gather_bags

        bags = self.bags(node_type)
        if nodes is None:
            nodes = np.arange(len(bags.begins) - 1)
        rows = np.empty((len(nodes), table.shape[1]), dtype=np.float32)
        view = np.asarray(table).view()
        view.flags.writeable = False  # as mapped ones are: one compiled kernel
        gather_bags(view, bags, nodes.astype(np.int64), False, rows)
        return rows

    def _require_bags(self, node_type: str, feature: str) -> None:
        graph = self._graph
        if feature not in graph.feature_names(node_type):
            raise unknown_name("feature", feature, graph.feature_names(node_type))
        partitions = graph.num_partitions(node_type)
        if partitions != 1:
            raise ConfigError(
                f"node_types.{node_type}.features: the type has {partitions} partitions, "
                f"expected 1, for its features are trained in one table; partition again "
                f"with --partitions {node_type}=1"
            )
        if not pa.types.is_large_list(
            getattr(graph.features(node_type, 0, feature), "type", None) or pa.null()
        ):
            raise ConfigError(
                f"node_types.{node_type}.features: {feature!r} is an array of numbers, "
                "expected bags (lists of uint32)"
            )


def require_one_dim(config: EmbeddingConfig, types: Iterable[str], what: str) -> int:
    """Return the length of the rows of some node types.

    Raises:
        ConfigError: It is not the same for all.
    """
    dims = {name: config.dim_of(name) for name in types}
    if len(set(dims.values())) > 1:
        shown = ", ".join(f"{name} {dim}" for name, dim in dims.items())
        raise ConfigError(
            f"{what}: the node types have rows of different lengths ({shown}), expected "
            "one; choose a type with node_type"
        )
    return next(iter(dims.values()))
