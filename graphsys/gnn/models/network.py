"""A network of layers: inputs by node type, a layer per hop and relation, an output."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.disk_embedding import StoredEmbedding
from graphsys.gnn.data.features import FeatureBags, InputShape, WholeEmbedding
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.models.model import Model, Relation, Rows, Tensors, key_of
from graphsys.gnn.models.recomputation import Layer, LayerCosts, recomputed
from graphsys.gnn.ops.sparse_features import Linear, SparseFeatures


class Network(Model):
    """A layer per hop and relation.

    Messages of several relations into a node type are added. Types that no relation leads
    into have a linear layer of their own rows per hop (``own_rows``). Where types differ in
    their input, or with ``residual``, a linear layer brings each to ``dim`` first. Types
    without features have one learned row per node, those with bags one per number in them;
    these are parameters in ``learned``, or on disk in ``stored``.

    Args:
        config: Layers and their sizes.
        relations: Name, node type and neighbors' type of each relation.
        shapes: Input of every node type.
        num_out: Features of the output.
        decoder: What makes scores of the output, so that its weights are the run's.
        wanted: Types whose output is asked for; all by default.

    Attributes:
        recomputed: Layers that keep their inputs alone for the backward pass.
        costs: Measures the layers of a forward pass, if there.
    """

    def __init__(
        self,
        config: GnnConfig,
        relations: Sequence[Relation],
        shapes: Mapping[str, InputShape],
        num_out: int,
        decoder: nn.Module | None = None,
        wanted: Collection[str] | None = None,
    ) -> None:
        super().__init__(config, num_out, decoder)
        self.relations = list(relations)
        everything = range(config.layers if config.recompute == "all" else 0)
        self.recomputed: frozenset[int] = frozenset(everything)
        self.costs: LayerCosts | None = None
        self.learned, self.stored = _make_learned(config, shapes)
        dims = {name: shape.dim or config.dim for name, shape in shapes.items()}
        is_even = len(set(dims.values())) == 1 and not config.residual
        self.entry = nn.ModuleDict(
            {} if is_even else {key_of(n): Linear(d, config.dim) for n, d in dims.items()}
        )
        first = next(iter(dims.values())) if is_even else config.dim
        self.spec = spec_of(config.model)
        has_exit = config.residual or self.spec.exit_layers > 0
        sizes = [first, *[config.dim] * config.layers]
        if not has_exit:
            sizes[-1] = num_out
        lasts = [not has_exit and k == config.layers - 1 for k in range(config.layers)]
        self.hops = nn.ModuleList(
            _make_hop(config, self.relations, sizes[k : k + 2], is_last=is_last)
            for k, is_last in enumerate(lasts)
        )
        self.own_rows = self._make_own_rows(shapes, sizes, wanted)
        self.norms = nn.ModuleList(_make_norm(config, size) for size in sizes[:-1])
        self.exit: nn.Module = nn.Identity()
        if self.spec.exit_layers == 2:
            self.exit = nn.Sequential(
                nn.Linear(config.dim, config.dim),
                nn.ReLU(),
                nn.Linear(config.dim, num_out, bias=False),
            )
        elif has_exit:
            self.exit = nn.Linear(config.dim, num_out)

    def _make_own_rows(
        self,
        shapes: Mapping[str, InputShape],
        sizes: Sequence[int],
        wanted: Collection[str] | None,
    ) -> nn.ModuleList:
        """Return linear layers for types without messages, of every hop that is read."""
        reached = {own for _, own, _ in self.relations}
        senders = {other for _, _, other in self.relations}
        made = []
        for k, (num_in, num_out) in enumerate(pairwise(sizes)):
            is_last = k == len(sizes) - 2
            read = (wanted if wanted is not None else shapes) if is_last else senders
            mean = self.spec.is_mean_of_layers  # which takes the input as it is
            lone = [] if mean else [n for n in shapes if n in read and n not in reached]
            made.append(nn.ModuleDict({key_of(n): Linear(num_in, num_out) for n in lone}))
        return nn.ModuleList(made)

    def restore(self, weights: Tensors, path: Path) -> None:
        """Take over the weights of a run, also of before types without messages had any."""
        if not any(name.startswith("own_rows.") for name in weights):
            self.own_rows = nn.ModuleList(nn.ModuleDict() for _ in self.own_rows)
        super().restore(weights, path)

    def forward(self, hops: Sequence[Rows], x: Mapping[str, Any]) -> Tensors:
        """Return the output of the seeds by type."""
        h = self._run_part("embed", self.embed, x)
        if self.spec.is_mean_of_layers:
            return self._mean_of_layers(hops, h)
        for k, rows in enumerate(hops):
            h = self._run_part(k, self._run_layer, self.convolve, k, rows, h)
        self.side_loss = self._loss_of_hops()
        return self._run_part("finish", self.finish, h)

    def parts(self) -> dict[object, list[nn.Module]]:
        """Return the modules that run together, in the order of a forward pass."""
        layers: dict[object, list[nn.Module]] = {
            k: [self.norms[k], hop, self.own_rows[k]] for k, hop in enumerate(self.hops)
        }
        return {"embed": [self.learned, self.entry], **layers, "finish": [self.exit]}

    def _run_part(self, part: object, layer: Any, *values: Any) -> Tensors:
        """Return the rows that a part makes, which has its weights then."""
        run = layer if self.shards is None else partial(self.shards.run, part, layer)
        found: Tensors = run(*values)
        return found

    def _loss_of_hops(self) -> torch.Tensor | None:
        """Return what layers add to the loss of the batch read last."""
        every = [getattr(hop, "side_loss", None) for hop in self.hops]
        losses = [loss for loss in every if loss is not None]
        return torch.stack(losses).sum() if losses else None

    def embed(self, x: Mapping[str, Any]) -> Tensors:
        """Return the rows that the first layer reads."""
        result = {}
        for name, values in x.items():
            key = key_of(name)
            if key in self.learned or name in self.stored:
                values = self._read_learned(name, values)
                if self.config.row_decay:
                    self._read[name] = values
            if len(self.side_tasks) and self.training:
                self.inputs[name] = values
            if key in self.entry:
                values = self._activate(self.entry[key](self._drop(values)))
            result[name] = values
        return result

    def _read_learned(self, name: str, values: Any) -> Any:
        """Return learned rows: of all nodes, of some, or the means of bags."""
        if name in self.stored:
            rows = self.stored.read(name, values)
            return rows.to(next(self.parameters()).device)
        table: Any = self.learned[key_of(name)]
        if isinstance(values, WholeEmbedding):
            return table.weight
        if isinstance(values, FeatureBags):
            return table(values.values, values.begins)
        return table(values)

    def convolve(
        self,
        k: int,
        rows: Rows,
        h: Mapping[str, torch.Tensor],
        own: Mapping[str, torch.Tensor] | None = None,
    ) -> Tensors:
        """Apply layer ``k``."""
        is_last = k == self.config.layers - 1
        norm = self.norms[k]
        ready = {name: self._drop(norm(value)) for name, value in h.items()}
        mine = ready if own is None else {n: self._drop(norm(v)) for n, v in own.items()}
        summed = self._messages(k, rows, ready, mine)
        if self.config.residual:
            before = h if own is None else own
            return {n: before[n][: len(v)] + self._activate(v) for n, v in summed.items()}
        if is_last and not isinstance(self.exit, nn.Sequential):
            return summed
        return {name: self._activate(value) for name, value in summed.items()}

    def _messages(
        self,
        k: int,
        rows: Rows,
        ready: Mapping[str, torch.Tensor],
        mine: Mapping[str, torch.Tensor],
    ) -> Tensors:
        """Return the sums over relations of what layer ``k`` makes of messages, by type."""
        hop, own_rows = self.hops[k], self.own_rows[k]
        assert isinstance(own_rows, nn.ModuleDict)  # __init__ made it
        summed = {
            name: own_rows[key_of(name)](x)
            for name, x in mine.items()
            if key_of(name) in own_rows
        }
        if not isinstance(hop, nn.ModuleDict):  # a layer over all relations
            everywhere: Any = hop
            return {**everywhere(rows, ready, mine), **summed}
        for name, node_type, other in self.relations:
            each = rows[name]
            if node_type not in mine or other not in ready:
                continue
            x_dst = mine[node_type]
            if len(x_dst) > each.num_dst:
                x_dst = x_dst[: each.num_dst]
            layer: Any = hop[key_of(name)]
            new = layer(each, ready[other], x_dst)
            summed[node_type] = summed[node_type] + new if node_type in summed else new
        return summed

    @property
    def can_recompute(self) -> bool:
        """Whether layers keep something that they could compute again, and no loss."""
        has_losses = any(hasattr(hop, "side_loss") for hop in self.hops)
        return not (self.spec.is_mean_of_layers or has_losses)

    def finish(self, h: Mapping[str, torch.Tensor]) -> Tensors:
        """Return the output of the last layer's rows."""
        return {name: self.exit(value) for name, value in h.items()}

    def first_weights(self) -> list[nn.Parameter]:
        """Return the parameters of the first layer that takes features."""
        chosen = self.entry if len(self.entry) else self.hops[0]
        return list(chosen.parameters())

    def _run_layer(self, layer: Layer, k: int, rows: Rows, h: Tensors) -> Tensors:
        """Apply layer ``k``; in training again in the backward pass, if it is chosen."""
        if self.costs is not None:
            return self.costs.run(layer, k, rows, h)
        if k in self.recomputed and self.training and torch.is_grad_enabled():
            modules = [*self.norms[k].modules(), *self.hops[k].modules()]
            return recomputed(layer, k, rows, h, modules)
        return layer(k, rows, h)

    def _mean_of_layers(self, hops: Sequence[Rows], x: Tensors) -> Tensors:
        """Return the mean of the input and of the rows after each layer, as LightGCN does.

        As ``(x + A (x + A (x + ...))) / (layers + 1)``, which adds what it has once a
        layer, in the backward pass too.
        """
        h = x
        for k, rows in enumerate(hops):
            summed = self._messages(k, rows, h, h)
            h = {n: summed[n] + x[n][: len(summed[n])] if n in summed else x[n] for n in x}
        return {name: value / (len(hops) + 1) for name, value in h.items()}

    def _drop(self, x: Any) -> Any:
        if isinstance(x, SparseFeatures):
            return x.dropout(self.config.dropout, self.training)
        return functional.dropout(x, self.config.dropout, self.training)

    def _activate(self, x: torch.Tensor) -> torch.Tensor:
        if self.spec.has_activation:
            return x
        return functional.elu(x) if self.config.activation == "elu" else torch.relu_(x)


def _make_learned(
    config: GnnConfig, shapes: Mapping[str, InputShape]
) -> tuple[nn.ModuleDict, StoredEmbedding]:
    """Return the learned rows as parameters, or as rows on disk; the other is empty."""
    wanted = {name: shape for name, shape in shapes.items() if not shape.dim}
    tables = nn.ModuleDict()
    if config.learned_rows == "disk":
        sizes = {name: shape.num_learned for name, shape in wanted.items()}
        return tables, StoredEmbedding(config, sizes)
    for name, shape in wanted.items():
        tables[key_of(name)] = (
            nn.EmbeddingBag(shape.num_learned, config.dim, mode="mean")
            if shape.is_bag
            else nn.Embedding(shape.num_learned, config.dim)
        )
    for table in tables.values():
        nn.init.normal_(table.weight, std=0.1)  # type: ignore[arg-type]
    return tables, StoredEmbedding(config, {})


def _make_hop(
    config: GnnConfig, relations: Sequence[Relation], sizes: Sequence[int], *, is_last: bool
) -> nn.Module:
    """Return a layer per relation, or one over all of them."""
    spec = spec_of(config.model)
    if spec.make_hop is not None:
        everywhere: nn.Module = spec.make_hop(config, relations, *sizes)
        return everywhere
    make: Any = spec.make_layer
    return nn.ModuleDict(
        {key_of(name): make(config, *sizes, is_last) for name, _, _ in relations}
    )


def _make_norm(config: GnnConfig, size: int) -> nn.Module:
    if config.norm == "layer":
        return nn.LayerNorm(size)
    return nn.BatchNorm1d(size) if config.norm == "batch" else nn.Identity()
