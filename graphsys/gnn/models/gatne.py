"""GATNE: a row per node and relation, of what the node is and of its relations' rows."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.features import FeatureBags, InputShape
from graphsys.gnn.model_spec import ModelSpec, register
from graphsys.gnn.models.model import Model, Relation, Rows, Tensors, key_of
from graphsys.gnn.ops.adjacency import join_rows
from graphsys.gnn.ops.functional import spmm
from graphsys.sampling import relation_name


class Gatne(Model):
    """Rows ``v_ir = normalize(b_i + M_r^T U_i a_ir)``, one for each relation of a node.

    ``b_i`` is the node's base row, ``U_i`` has an edge row for each relation that its type
    has a part in: the mean of the neighbors' edge rows by that relation, ``layers`` times
    over (a node without such neighbors keeps its own), and ``a_ir = softmax(w_r^T tanh(W_r
    U_i))`` are the shares of the relations. Base and edge rows are learned, one per node
    (GATNE-T), or linear in the node's features where it has some (GATNE-I). The paper's
    alpha_r is part of ``M_r`` here, its ``beta_r D^T x_i`` part of the base row.

    Inside, a node's rows lie side by side: its base row ``[dim]``, then its edge rows; the
    output has the rows of all its relations, ``[n, relations * dim]``.

    Args:
        config: Sizes: ``dim`` of base rows, ``edge_dim`` of edge rows, ``attention_dim``.
        relations: Name, node type and neighbors' type of each; both ways of a relation.
        shapes: Input of every node type.
        decoder: What makes scores of the output.

    Attributes:
        names: The relations that a node type has a part in, by type.

    References:
        Cen et al., "Representation learning for attributed multiplex heterogeneous
        network", KDD 2019, equations 2 to 6 and 13.
    """

    def __init__(
        self,
        config: GnnConfig,
        relations: Sequence[Relation],
        shapes: Mapping[str, InputShape],
        decoder: nn.Module | None = None,
    ) -> None:
        every = list(dict.fromkeys(relation_name(name) for name, _, _ in relations))
        super().__init__(config, len(every) * config.dim, decoder)
        self._relations = list(relations)
        self.names = names_by_type(relations)
        self._places = {
            node_type: torch.tensor([every.index(name) for name in names])
            for node_type, names in self.names.items()
        }
        self.linear, self.edge = nn.ModuleDict(), nn.ModuleDict()
        for name, shape in shapes.items():
            tables = self.linear if shape.dim else self.learned
            tables[key_of(name)] = _make_table(shape, config.dim)
            width = len(self.names[name]) * config.edge_dim
            self.edge[key_of(name)] = _make_table(shape, width)
        count, std = len(every), 1 / math.sqrt(config.dim)
        sizes = config.edge_dim, config.attention_dim
        self.hidden = nn.Parameter(torch.randn(count, *sizes) * std)  # W_r
        self.scores = nn.Parameter(torch.randn(count, config.attention_dim) * std)  # w_r
        self.spread = nn.Parameter(torch.randn(count, config.edge_dim, config.dim) * std)

    def forward(self, hops: Sequence[Rows], x: Mapping[str, Any]) -> Tensors:
        """Return the output of the seeds by type; base rows are read for those alone."""
        edge = {name: self._edge_rows(name, values) for name, values in x.items()}
        for rows in hops:
            edge = self._aggregate(rows, edge, edge)
        return {
            name: self._combine(name, self._base(name, _first(x[name], len(u))), u)
            for name, u in edge.items()
        }

    def embed(self, x: Mapping[str, Any]) -> Tensors:
        """Return base and edge rows side by side."""
        return {
            name: torch.cat(
                [self._base(name, values), self._edge_rows(name, values).flatten(1)], dim=1
            )
            for name, values in x.items()
        }

    def convolve(
        self,
        k: int,
        rows: Rows,
        h: Mapping[str, torch.Tensor],
        own: Mapping[str, torch.Tensor] | None = None,
    ) -> Tensors:
        """Take the means of neighbors' edge rows; base rows stay."""
        del k  # all layers are alike
        mine = h if own is None else own
        found = self._aggregate(rows, self._edges_of(h), self._edges_of(mine))
        dim = self.config.dim
        return {
            name: torch.cat([mine[name][: len(u), :dim], u.flatten(1)], dim=1)
            for name, u in found.items()
        }

    def finish(self, h: Mapping[str, torch.Tensor]) -> Tensors:
        """Return the rows of all relations of a node side by side."""
        edge, dim = self._edges_of(h), self.config.dim
        return {name: self._combine(name, h[name][:, :dim], edge[name]) for name in h}

    def first_weights(self) -> list[nn.Parameter]:
        """Return the parameters of the linear layers that take features."""
        return list(self.linear.parameters())

    def _base(self, name: str, values: Any) -> torch.Tensor:
        is_learned = key_of(name) in self.learned
        tables = self.learned if is_learned else self.linear
        found = _rows_from(tables[key_of(name)], values)
        if is_learned and self.config.row_decay:
            self._read[name] = found
        return found

    def _edge_rows(self, name: str, values: Any) -> torch.Tensor:
        """Return the first edge rows of nodes ``[n, relations, edge_dim]``."""
        found = _rows_from(self.edge[key_of(name)], values)
        return torch.unflatten(found, 1, (-1, self.config.edge_dim))

    def _edges_of(self, h: Mapping[str, torch.Tensor]) -> Tensors:
        dim, size = self.config.dim, self.config.edge_dim
        return {n: torch.unflatten(v[:, dim:], 1, (-1, size)) for n, v in h.items()}

    def _aggregate(self, rows: Rows, edge: Tensors, own: Tensors) -> Tensors:
        """Return the means of neighbors' edge rows, relation by relation."""
        found: Tensors = {}
        for node_type, before in own.items():
            parts = []
            for place, relation in enumerate(self.names[node_type]):
                into = [
                    (rows[name], edge[other][:, self.names[other].index(relation)])
                    for name, own_type, other in self._relations
                    if own_type == node_type
                    and relation_name(name) == relation
                    and other in edge
                ]
                own_rows = before[: _num_dst(rows, self._relations, node_type), place]
                if not into or not len(own_rows):
                    parts.append(own_rows)
                    continue
                joined = join_rows([each for each, _ in into])
                mean = spmm(joined, torch.cat([x for _, x in into]), reduce="mean")
                parts.append(torch.where(joined.degrees[:, None] > 0, mean, own_rows))
            found[node_type] = torch.stack(parts, dim=1)
        return found

    def _combine(
        self, node_type: str, base: torch.Tensor, edge: torch.Tensor
    ) -> torch.Tensor:
        """Return ``[n, relations * dim]`` of base rows and edge rows."""
        places = self._places[node_type]
        hidden = torch.tanh(torch.einsum("nms,rsa->nrma", edge, self.hidden[places]))
        share = torch.einsum("nrma,ra->nrm", hidden, self.scores[places]).softmax(dim=2)
        spread = torch.einsum("nrs,rsd->nrd", share @ edge, self.spread[places])
        return functional.normalize(base[:, None] + spread, dim=2).flatten(1)


class Contexts(nn.Module):
    """A learned row for every node as the second of a pair, by node type.

    Args:
        sizes: Nodes of every type.
        dim: Numbers of a row.
    """

    def __init__(self, sizes: Mapping[str, int], dim: int) -> None:
        super().__init__()
        std = 1 / math.sqrt(dim)
        self.rows = nn.ParameterDict(
            {key_of(name): torch.randn(size, dim) * std for name, size in sizes.items()}
        )

    def of(self, node_type: str) -> torch.Tensor:
        """Return the rows of a type ``[N, dim]``."""
        rows: torch.Tensor = self.rows[key_of(node_type)]
        return rows


def names_by_type(relations: Sequence[Relation]) -> dict[str, list[str]]:
    """Return the relations that every node type has a part in, in their order.

    Args:
        relations: Name, node type and neighbors' type of each; both ways of a relation.
    """
    found: dict[str, dict[str, None]] = {}
    for name, node_type, _ in relations:
        found.setdefault(node_type, {})[relation_name(name)] = None
    return {node_type: list(names) for node_type, names in found.items()}


def _make_table(shape: InputShape, width: int) -> nn.Module:
    if shape.dim:
        return nn.Linear(shape.dim, width, bias=False)
    table: Any = (
        nn.EmbeddingBag(shape.num_learned, width, mode="mean")
        if shape.is_bag
        else nn.Embedding(shape.num_learned, width)
    )
    nn.init.normal_(table.weight, std=0.1)
    return table  # type: ignore[no-any-return]


def _rows_from(table: nn.Module, values: Any) -> torch.Tensor:
    if isinstance(values, FeatureBags):
        return table(values.values, values.begins)  # type: ignore[no-any-return]
    return table(values)  # type: ignore[no-any-return]


def _first(values: Any, count: int) -> Any:
    """Return the input of the first nodes."""
    if not isinstance(values, FeatureBags):
        return values[:count]
    end = int(values.begins[count]) if count < len(values) else len(values.values)
    return FeatureBags(values.values[:end], values.begins[:count])


def _num_dst(rows: Rows, relations: Sequence[Relation], node_type: str) -> int:
    return next(rows[name].num_dst for name, own, _ in relations if own == node_type)


register(
    ModelSpec(
        name="gatne",
        make_model=Gatne,
        messages="relations",
        is_skipgram=True,
        device_gap=lambda config: ("model", "all others"),
    )
)
