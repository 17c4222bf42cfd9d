"""Scores of whole graphs: rows of nodes layer by layer, and a readout after each."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import InputShape
from graphsys.gnn.data.graph_batches import membership
from graphsys.gnn.models.model import Relation, Rows, Tensors, key_of
from graphsys.gnn.models.network import Network
from graphsys.gnn.ops.functional import spmm

Level = tuple[Rows, Tensors]
"""Rows of relations and of graphs, and those of the nodes."""


class GraphNetwork(Network):
    """``sum over k of W_k readout({h_v^k : v in graph}) + b_k``, of k = 0 to ``layers``.

    ``h^0`` is the input and ``h^k`` what layer k makes of it, normalized (``norm``, after
    the layer here) and activated; the readout is the sum, mean or maximum over the nodes of
    a graph. Dropout is of the readouts, as the paper has it. A graph without nodes has
    readouts of 0.

    Args:
        config: Layers and their sizes.
        relations: Name, node type and neighbors' type of each relation within graphs.
        shapes: Input of every node type.
        num_out: Scores of a graph.
        graph_type: Node type of the graphs, under which the output is.

    References:
        Xu et al., "How powerful are graph neural networks?", ICLR 2019, section 4.2: the
        concatenation of all layers' readouts, of which a linear layer is this sum.
    """

    def __init__(
        self,
        config: GnnConfig,
        relations: Sequence[Relation],
        shapes: Mapping[str, InputShape],
        num_out: int,
        graph_type: str,
    ) -> None:
        super().__init__(config, relations, shapes, config.dim)
        self.num_out, self._graph_type = num_out, graph_type
        self.exit = nn.Identity()  # scores are those of the readouts
        norm = {"layer": nn.LayerNorm, "batch": nn.BatchNorm1d}.get(config.norm)
        self.norms = nn.ModuleList(
            nn.Identity() if norm is None else norm(config.dim)
            for _ in range(config.layers)
        )
        has_entry = len(self.entry) > 0
        first = {
            n: config.dim if has_entry else s.dim or config.dim for n, s in shapes.items()
        }
        later = dict.fromkeys(shapes, config.dim)
        self.scores = nn.ModuleList(
            nn.ModuleDict(
                {key_of(n): nn.Linear(size, num_out) for n, size in sizes.items()}
            )
            for sizes in [first, *[later] * config.layers]
        )

    def forward(self, hops: Sequence[Rows], x: Mapping[str, Any]) -> Tensors:
        """Return the scores of a batch's graphs ``[graphs, num_out]``.

        Args:
            hops: One layer: the relations of all nodes of the graphs, and the graphs.
            x: Input of those nodes by type.
        """
        (rows,) = hops
        found = self._scores(self._levels(rows, x))
        self.side_loss = self._loss_of_hops()
        return {self._graph_type: found}

    def _levels(self, rows: Rows, x: Mapping[str, Any]) -> Iterator[Level]:
        """Yield the input and what each layer makes of it, with the rows it is over."""
        h = self.embed(x)
        yield rows, h
        for k in range(self.config.layers):
            h = self._run_layer(self._layer, k, rows, h)
            rows, h = self._pool(k, rows, h)
            yield rows, h

    def _scores(self, levels: Iterable[Level]) -> torch.Tensor:
        """Return the sum of the scores of graphs by all levels."""
        found = [self._read_out(k, *level) for k, level in enumerate(levels)]
        return torch.stack(found).sum(dim=0)

    def _pool(self, k: int, rows: Rows, h: Tensors) -> tuple[Rows, Tensors]:
        """Return the nodes that the layer after ``k`` sees, and their rows: all of them."""
        del k  # for those that pool
        return rows, h

    def _layer(self, k: int, rows: Rows, h: Tensors) -> Tensors:
        """Return the rows of nodes after layer ``k``."""
        found = {}
        for name, new in self._messages(k, rows, h, h).items():
            made = self._activate(self.norms[k](new))
            found[name] = h[name] + made if self.config.residual else made
        return found

    def _read_out(self, k: int, rows: Rows, h: Tensors) -> torch.Tensor:
        """Return the scores of graphs by the rows of their nodes after ``k`` layers."""
        linears: Any = self.scores[k]
        parts = []
        for name, values in h.items():
            found = spmm(rows[membership(name)], values, reduce=self.config.readout)
            found = functional.dropout(found, self.config.dropout, self.training)
            parts.append(linears[key_of(name)](found))
        return torch.stack(parts).sum(dim=0)
