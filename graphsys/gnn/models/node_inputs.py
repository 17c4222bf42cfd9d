"""What features of nodes add to the rows of models that follow events."""

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.data.events import EventStream
from graphsys.gnn.data.features import FeatureBags, InputShape


class NodeInputs(nn.Module):
    """Addends of rows, linear in the features of nodes; nothing for types without any.

    Dense features pass a linear layer; of a bag the mean of a learned row per word counts,
    as in networks that stand still.

    Args:
        events: The stream.
        dim: Length of the rows.
    """

    def __init__(self, events: EventStream, dim: int) -> None:
        super().__init__()
        self._events = events
        shapes = {} if events.inputs is None else events.inputs.shapes
        self._types = [n for n, it in shapes.items() if it.dim or it.is_bag]
        self.layers = nn.ModuleList(_layer(shapes[name], dim) for name in self._types)

    def add_to(self, rows: torch.Tensor, nodes: torch.Tensor) -> torch.Tensor:
        """Return rows with what features add.

        Args:
            rows: float32 ``[n, dim]``.
            nodes: Their nodes' numbers in the stream, int64 ``[n]``.
        """
        events = self._events
        for name, layer in zip(self._types, self.layers, strict=True):
            is_src = name == events.src_type and events.first_dst > 0
            is_own = (nodes < events.first_dst) == is_src
            places = is_own.nonzero()[:, 0]
            if not len(places):
                continue
            assert events.inputs is not None  # there are types with features
            local = nodes[places] - (0 if is_src else events.first_dst)
            found = events.inputs.gather({name: local.numpy()})[name]
            if isinstance(found, FeatureBags):
                assert isinstance(layer, nn.Embedding)  # as :func:`_layer` makes it
                added = functional.embedding_bag(
                    found.values, layer.weight, found.begins, mode="mean"
                )
            else:
                added = layer(found)
            rows = rows.index_add(0, places, added)
        return rows


def _layer(shape: InputShape, dim: int) -> nn.Module:
    if shape.is_bag:
        return nn.Embedding(shape.num_learned, dim)
    return nn.Linear(shape.dim, dim)
