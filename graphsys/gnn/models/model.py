"""What training and inference ask of a model: input to rows, layer by layer, to output."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from graphsys.core.errors import CorruptStoreError
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.disk_embedding import StoredEmbedding
from graphsys.gnn.ops.adjacency import SparseRows

Rows = Mapping[str, SparseRows]
Tensors = dict[str, torch.Tensor]
Relation = tuple[str, str, str]

_CONTAINERS = nn.ModuleDict(), nn.ParameterDict()
"""Whose attributes, such as ``items`` and ``to``, cannot be names of what they hold."""


class Model(nn.Module, ABC):
    """A model of a run: ``finish(convolve(... convolve(embed(x))))``.

    Attributes:
        config: The settings.
        num_out: Features of the output.
        decoder: What makes scores of the output, so that its weights are the run's.
        learned: Tables of learned rows, by :func:`key_of` the node type.
        stored: Learned rows on disk.
        side_loss: What the loss of the batch that was read last has besides, or None.
        side_tasks: Modules of what is learned beside the task, by :func:`key_of` its name.
        side_types: Node types that those are of.
        shards: Where processes share the weights out, has a layer's whole while it runs.
        inputs: What the first layer read in training by type, where there are such tasks,
            until it is asked for.
    """

    def __init__(
        self, config: GnnConfig, num_out: int, decoder: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.config, self.num_out, self.decoder = config, num_out, decoder
        self.learned, self.stored = nn.ModuleDict(), StoredEmbedding(config, {})
        self.side_loss: torch.Tensor | None = None
        self.side_tasks, self.side_types = nn.ModuleDict(), tuple[str, ...]()
        self.inputs: dict[str, Any] = {}
        self.shards: Any = None  # what trains is not known here
        self._read: Tensors = {}  # learned rows of the input read last, for their penalty

    @abstractmethod
    def forward(self, hops: Sequence[Rows], x: Mapping[str, Any]) -> Tensors:
        """Return the output of the seeds by type.

        Args:
            hops: Where messages go, the farthest hop first.
            x: Input of the nodes farthest away: features, bags, or numbers of nodes.
        """

    @abstractmethod
    def embed(self, x: Mapping[str, Any]) -> Tensors:
        """Return the rows that the first layer reads."""

    @abstractmethod
    def convolve(
        self,
        k: int,
        rows: Rows,
        h: Mapping[str, torch.Tensor],
        own: Mapping[str, torch.Tensor] | None = None,
    ) -> Tensors:
        """Apply layer ``k``.

        Args:
            k: Which, from 0.
            rows: Where messages go, by relation.
            h: Rows of the sources by type.
            own: Rows of the destinations by type; the first sources by default.
        """

    @abstractmethod
    def finish(self, h: Mapping[str, torch.Tensor]) -> Tensors:
        """Return the output of the last layer's rows."""

    @abstractmethod
    def first_weights(self) -> list[nn.Parameter]:
        """Return the parameters of the first layer that takes features."""

    def restore(self, weights: Tensors, path: Path) -> None:
        """Take over the weights of a run.

        Raises:
            CorruptStoreError: They are others than the config and the graph ask for.
        """
        own = {name: tuple(value.shape) for name, value in self.state_dict().items()}
        found = {name: tuple(value.shape) for name, value in weights.items()}
        for name in sorted(own.keys() | found.keys()):
            if own.get(name) != found.get(name):
                raise CorruptStoreError(
                    f"the weights of the run {path} do not fit its config.toml and the "
                    f"graph: {name!r} is {found.get(name, 'missing')} there, expected "
                    f"{own.get(name, 'none')}; restore its files, or train it again"
                )
        self.load_state_dict(weights)

    def row_penalty(self, places: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """Return half the squares of the learned rows of nodes, their mean over all nodes.

        Args:
            places: Where the input that was read last has each node, by type; types
                without learned rows count as 0.
        """
        total = torch.zeros(())
        for name, chosen in places.items():
            if name in self._read:
                rows = self._read[name].index_select(0, chosen)
                total = total + rows.square().sum() / 2
        return total / max(1, sum(len(chosen) for chosen in places.values()))


class UnlayeredModel(Model):
    """A model whose rows are not made layer by layer: of a table, or of a stream."""

    def embed(self, x: Mapping[str, Any]) -> Tensors:
        """Is not asked for."""
        raise NotImplementedError

    def convolve(
        self,
        k: int,
        rows: Rows,
        h: Mapping[str, torch.Tensor],
        own: Mapping[str, torch.Tensor] | None = None,
    ) -> Tensors:
        """Is not asked for."""
        raise NotImplementedError

    def finish(self, h: Mapping[str, torch.Tensor]) -> Tensors:
        """Is not asked for."""
        raise NotImplementedError

    def first_weights(self) -> list[nn.Parameter]:
        """Return none: no layer takes features."""
        return []


def key_of(name: str) -> str:
    """Return a name as torch allows it in the names of modules.

    Examples:
        >>> key_of("likes"), key_of("v1.0"), key_of("to"), key_of("items")
        ('likes', 'v1%2E0', '%74o', '%69tems')
    """
    key = name.replace("%", "%25").replace(".", "%2E")
    if any(hasattr(container, key) for container in _CONTAINERS):
        return f"%{ord(key[0]):X}{key[1:]}"
    return key
