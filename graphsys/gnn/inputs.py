"""What the first layer reads: features of a type side by side, bags, or learned rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.errors import ConfigError, InvalidGraphError, cut_list, unknown_name
from graphsys.gnn.config import GnnConfig
from graphsys.sampling import FeatureRows
from graphsys.sampling.blocks import Buffers
from graphsys.storage.reader import Graph

Ints = npt.NDArray[np.int64]
_AT_A_TIME = 1 << 16
_ROWS_SHOWN = 5


@dataclass(frozen=True, kw_only=True)
class InputShape:
    """What a network has to know of the input of one node type.

    Attributes:
        dim: Dense features; 0: none, so rows are learned, one per node.
        num_nodes: Nodes of the type.
    """

    dim: int
    num_nodes: int


class Inputs:
    """The input of every node type: dense features, or numbers of nodes.

    Args:
        graph: An open graph.
        node_types: Those that take part.
        config: Names features, and whether to scale them.

    Raises:
        UnknownNameError: No type has a feature that the config names.
        ConfigError: A feature that is named is a bag.
    """

    def __init__(self, graph: Graph, node_types: Sequence[str], config: GnnConfig) -> None:
        self._is_scaling = config.normalize_features
        self._rows: dict[str, FeatureRows | None] = {}
        self._sizes = {name: graph.num_nodes_of(name) for name in node_types}
        everything = sorted({f for name in node_types for f in graph.feature_names(name)})
        for name in config.features:
            if name not in everything:
                raise unknown_name("feature", name, everything)
        for name in node_types:
            entries = graph.manifest.node_types[name].features
            chosen = [
                f
                for f, entry in entries.items()
                if f in config.features or (not config.features and entry["dim"])
            ]
            self._rows[name] = FeatureRows(graph, name, chosen) if chosen else None

    @property
    def shapes(self) -> Mapping[str, InputShape]:
        """What the network has to know, by type."""
        return {
            name: InputShape(dim=rows.dim if rows else 0, num_nodes=self._sizes[name])
            for name, rows in self._rows.items()
        }

    def gather(self, nodes: Mapping[str, Ints], buffers: Buffers | None = None) -> Any:
        """Return the input of nodes by type: float32 ``[n, F]``, or their numbers ``[n]``.

        Args:
            nodes: Numbers of nodes by type.
            buffers: Where rows are written; fresh arrays by default.
        """
        return {
            name: self._gather(name, numbers, buffers) for name, numbers in nodes.items()
        }

    def check(self) -> None:
        """Look at every feature once.

        Raises:
            InvalidGraphError: Some are no finite numbers; says how many and where.
        """
        for name, rows in self._rows.items():
            if rows is None:
                continue
            count, first = 0, list[int]()
            for begin in range(0, rows.num_nodes, _AT_A_TIME):
                nodes = np.arange(begin, min(begin + _AT_A_TIME, rows.num_nodes))
                is_bad = ~np.isfinite(rows.gather(nodes)).all(axis=1)
                count += int(is_bad.sum())
                first += nodes[is_bad][: _ROWS_SHOWN - len(first)].tolist()
            if count:
                raise InvalidGraphError(
                    f"features {', '.join(rows.names)} of {count} of {rows.num_nodes} "
                    f"nodes of type {name!r} are not finite; the first are rows "
                    f"{cut_list(first)}; mend them and ingest again"
                )

    def _gather(self, name: str, nodes: Ints, buffers: Buffers | None) -> torch.Tensor:
        rows = self._rows[name]
        if rows is None:
            return torch.from_numpy(np.array(nodes, dtype=np.int64))
        out = None
        if buffers is not None:
            room = buffers.room(("features", name), len(nodes) * rows.dim, np.float32)
            out = room[: len(nodes) * rows.dim].reshape(len(nodes), rows.dim)
        values = rows.gather(nodes, out)
        if self._is_scaling:
            total = values.sum(axis=1, keepdims=True)
            np.divide(values, total, out=values, where=total != 0)
        return torch.from_numpy(values)


def require_types(graph: Graph, node_types: Sequence[str], wanted: str) -> None:
    """Check that messages reach a node type.

    Raises:
        ConfigError: They do not.
    """
    if wanted not in node_types:
        raise ConfigError(
            f"no edges of those chosen have ends of node type {wanted!r}; they have "
            f"{', '.join(node_types)}"
        )
