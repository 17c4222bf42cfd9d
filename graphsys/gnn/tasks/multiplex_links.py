"""Links of several relations: a row per node and relation, learned by skip-gram."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError, unknown_name
from graphsys.core.types import true_splits
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.loader import Batch, Trim
from graphsys.gnn.data.positive_pairs import read_pairs
from graphsys.gnn.data.split_names import unknown_split
from graphsys.gnn.models.gatne import Contexts, names_by_type
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import sddmm
from graphsys.gnn.process_group import current_process_group
from graphsys.gnn.tasks.decoders import Dot
from graphsys.gnn.tasks.link_ranking import Ends
from graphsys.gnn.tasks.output import Output, rows_column
from graphsys.gnn.tasks.pair_losses import pair_loss
from graphsys.gnn.tasks.skipgram import TypePair, WalkWindows
from graphsys.metrics.areas import pair_metrics
from graphsys.sampling import NegativeSampler, relation_names, relation_rows, rows_of
from graphsys.sampling.adjacency import PartitionedCsr
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]


@dataclass(kw_only=True)
class PairGroup:
    """The pairs of a batch whose ends are of the same types.

    Attributes:
        ends: Those types.
        rows: For each seed of the first type and each of its relations, the second nodes.
        negatives: Numbers of nodes that all pairs share ``[K]``, or K for each pair, laid
            out as the second nodes are.
    """

    ends: TypePair
    rows: SparseRows
    negatives: Ints | SparseRows


class PairSeeds(dict[str, Ints]):
    """The first nodes of a batch's pairs by type, each once, and the pairs.

    Attributes:
        groups: The pairs that are this process's.
        num_pairs: Pairs of all processes.
    """

    groups: list[PairGroup]
    num_pairs: int


class MultiplexLinks:
    """Rows by relation, of which each predicts the context rows of nodes near on walks.

    The walks of a relation train its rows; what tells edges afterwards are the inner
    products of both ends' rows of that relation, which are of length 1.

    Raises:
        ConfigError: A single relation, or settings of other models.
        UnknownNameError: An edge type or node type that is not in the graph.
    """

    metric = "roc_auc"
    units: Sequence[float] = ()

    def __init__(self, graph: GraphReader, config: GnnConfig) -> None:
        _check(config)
        self.graph, self.config, self.process_group = graph, config, current_process_group()
        rows = relation_rows(graph, config.edge_types)
        self.names = names_by_type([(r.name, r.node_type, r.neighbor_type) for r in rows])
        self.relations = {
            name: (edge_type, code)
            for edge_type in dict.fromkeys(graph.edge_type_name(r.edge_type) for r in rows)
            for name, code in relation_names(graph, edge_type).items()
        }
        if len(self.relations) < 2:
            raise ConfigError(
                f"model gatne has a row per node and relation; of {graph.path} there is "
                f"only {', '.join(self.relations)}; take model sage, or more edge_types"
            )
        self.node_type = config.node_type or rows[0].node_type
        if self.node_type not in self.names:
            raise unknown_name("node type", self.node_type, self.names)
        self.num_out = len(self.relations) * config.dim
        self.classes: list[Any] = []
        self.trim: Trim | None = None
        sizes = {r.node_type: r.num_nodes for r in rows}
        self._contexts = Contexts(sizes, config.dim)
        self.decoder: nn.Module | None = self._contexts
        self._windows = WalkWindows(
            rows=rows,
            names=self.names,
            walk_length=config.walk_length,
            window=config.window,
            seed=config.seed,
            p=config.p,
            q=config.q,
        )
        self._negatives = {name: _make_negatives(name, rows, config) for name in sizes}

    def seeds(self, epoch: int) -> "WalkBatches":
        """Return the seeds of every batch of an epoch, made when they are asked for."""
        return WalkBatches(self, self._windows.starts(epoch), epoch)

    def make_seeds(self, starts: Ints, epoch: int, number: int) -> PairSeeds:
        """Walk from starts and return the pairs found, with their negatives."""
        found = self._windows.pairs(starts, epoch=epoch, batch=number)
        seeds = PairSeeds()
        seeds.num_pairs = sum(len(pairs) for pairs in found.values())
        own = dict(_shares(found, self.process_group.share(np.arange(seeds.num_pairs))))
        for name in dict.fromkeys(first for first, _ in own):
            parts = [pairs[:, 0] for ends, pairs in own.items() if ends[0] == name]
            seeds[name] = distinct(np.concatenate(parts))
        seeds.groups = [
            self._group(ends, pairs, seeds[ends[0]], epoch, number)
            for ends, pairs in own.items()
        ]
        return seeds

    def loss(self, rows: Mapping[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """Return the mean loss of a batch's pairs and negatives."""
        positive, negative = [], []
        for group in _seeds_of(batch).groups:
            first, second = group.ends
            query = rows[first].index_select(0, batch.places[first])
            query, context = query.view(-1, self.config.dim), self._contexts.of(second)
            positive.append(_scores(group.rows, query, context))
            if isinstance(group.negatives, SparseRows):
                found = _scores(group.negatives, query, context)
                negative.append(found.view(len(positive[-1]), -1))
                continue
            shared = context.index_select(0, torch.from_numpy(group.negatives))
            lengths = torch.from_numpy(np.diff(group.rows.indptr))
            negative.append(torch.repeat_interleave(query @ shared.T, lengths, dim=0))
        return pair_loss(self.config, torch.cat(positive), torch.cat(negative))

    def num_terms(self, batch: Batch) -> int:
        """Return how many pairs a batch of all processes has."""
        return _seeds_of(batch).num_pairs

    @property
    def known_splits(self) -> list[str]:
        """Names of the splits that have edges of some relation."""
        kinds = [it for it, _ in self.relations.values()]
        return list(dict.fromkeys(name for it in kinds for name in self.graph.splits(it)))

    def watch(self, output: Output) -> tuple[float, float] | None:
        """Return 1 - ROC-AUC and ROC-AUC of the watched split, or None without one."""
        split = self.config.eval_split
        if not any(split in self.graph.splits(it) for it, _ in self.relations.values()):
            return None
        found = self.measure(split, output)[self.metric]
        return 1 - found, found

    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split; see :func:`tell_edges`."""
        rows = {
            name: output(name, np.arange(self.graph.num_nodes_of(name))).numpy()
            for name in self.names
        }

        def scores(relation: str, pairs: Ints) -> npt.NDArray[Any]:
            kind = self.graph.edge_type(self.relations[relation][0])
            src, dst = (
                self.rows_of(rows[name], relation, name)[nodes]
                for name, nodes in zip((kind.src_type, kind.dst_type), pairs.T, strict=True)
            )
            return np.einsum("nd,nd->n", src, dst)  # type: ignore[no-any-return]

        seed = self.config.seed
        return tell_edges(self.graph, self.relations, split, scores, seed=seed)

    def answers(
        self, found: npt.NDArray[np.float32], relation: str | None
    ) -> dict[str, Any]:
        """Return ``embedding``: the rows of a relation; see :meth:`rows_of`."""
        return {"embedding": rows_column(self.rows_of(found, relation))}

    def row_types(self, relation: str | None) -> list[str]:
        """Return the node types of a relation, or of any."""
        return [n for n, names in self.names.items() if relation in (None, *names)]

    def rows(self, output: Output, node_type: str, relation: str | None) -> torch.Tensor:
        """Return the rows of a relation of all nodes of a type."""
        found = output(node_type, np.arange(self.graph.num_nodes_of(node_type)))
        own = self.rows_of(found.numpy(), relation, node_type)
        return torch.from_numpy(np.ascontiguousarray(own))

    def ends(self, output: Output, relation: str | None) -> Ends:
        """Return the rows of both ends of a relation's edges."""
        if relation is None:
            raise self._no_relation(self.node_type)
        if relation not in self.relations:
            raise unknown_name("relation", relation, self.relations)
        edge_type, code = self.relations[relation]
        kind = self.graph.edge_type(edge_type)
        src, dst = (self.rows(output, n, relation) for n in (kind.src_type, kind.dst_type))
        return Ends(
            graph=self.graph,
            edge_type=edge_type,
            relation=code,
            src=src,
            dst=dst,
            src_type=kind.src_type,
            dst_type=kind.dst_type,
        )

    def scores(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the inner products of every query with every other row, ``[n, m]``."""
        return Dot()(query, others)  # type: ignore[no-any-return]

    def _no_relation(self, node_type: str) -> ConfigError:
        return ConfigError(
            "nodes have a row for each of the relations "
            f"{', '.join(self.names[node_type])}; choose one with --relation"
        )

    def rows_of(
        self,
        output: npt.NDArray[np.float32],
        relation: str | None,
        node_type: str | None = None,
    ) -> npt.NDArray[np.float32]:
        """Return the rows of a relation ``[n, dim]`` in the output for a node type.

        Raises:
            ConfigError: No relation.
            UnknownNameError: The node type has no part in it.
        """
        node_type = node_type or self.node_type
        names = self.names[node_type]
        if relation is None:
            raise self._no_relation(node_type)
        if relation not in names:
            raise unknown_name("relation", relation, names)
        begin = names.index(relation) * self.config.dim
        return output[:, begin : begin + self.config.dim]

    def _group(
        self, ends: TypePair, pairs: Ints, seeds: Ints, epoch: int, number: int
    ) -> PairGroup:
        """Lay pairs ``[n, 3]`` out in rows, and draw their negatives."""
        first, second = ends
        num_relations = len(self.names[first])
        row = np.searchsorted(seeds, pairs[:, 0]) * num_relations + pairs[:, 2]
        lengths = np.bincount(row, minlength=len(seeds) * num_relations)
        indptr = np.concatenate([[0], np.cumsum(lengths)])
        others = pairs[np.argsort(row, kind="stable"), 1]
        sampler, count = self._negatives[second], self.config.num_negatives
        is_shared = self.config.negatives_of == "batch"
        types = list(self.names)
        key = number * len(types) ** 2 + types.index(first) * len(types)
        drawn = sampler.draw(
            others[:1] if is_shared else others,
            count,
            epoch=epoch,
            batch=key + types.index(second),
        )
        negatives: Ints | SparseRows = drawn[0]
        if not is_shared:
            negatives = _rows(indptr * count, drawn.ravel(), sampler.num_candidates)
        return PairGroup(
            ends=ends,
            rows=_rows(indptr, others, sampler.num_candidates),
            negatives=negatives,
        )


class WalkBatches(Sequence[PairSeeds]):
    """The batches of an epoch; walks are drawn when a batch is asked for."""

    def __init__(self, task: MultiplexLinks, starts: Ints, epoch: int) -> None:
        self._task, self._starts, self._epoch = task, starts, epoch
        self._size = task.config.batch_size

    def __len__(self) -> int:
        return -(-len(self._starts) // self._size)

    @overload
    def __getitem__(self, number: int) -> PairSeeds: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[PairSeeds]: ...
    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        starts = self._starts[number * self._size : (number + 1) * self._size]
        return self._task.make_seeds(starts, self._epoch, number)


def _check(config: GnnConfig) -> None:
    for name, is_set, reason in (
        ("task", config.task != "link_prediction", "link_prediction"),
        ("batch_size", not config.batch_size, "at least 1, for neighbors are sampled"),
        ("decoder", config.decoder != "dot", "dot, for pairs have a context row"),
        ("alike_negatives", config.alike_negatives > 0, "0, for its negatives are drawn"),
        ("learned_rows", config.learned_rows == "disk", "memory, where contexts are"),
        ("reverse_edges", not config.reverse_edges, "true, for relations go both ways"),
    ):
        if is_set:
            raise ConfigError(
                f"{name}: got {getattr(config, name)} with model gatne, expected {reason}"
            )


def _make_negatives(
    node_type: str, rows: Sequence[PartitionedCsr], config: GnnConfig
) -> NegativeSampler:
    degrees = None
    if config.negatives == "degree":
        degrees = sum(each.degrees() for each in rows if each.node_type == node_type)
    into = next(each for each in rows if each.neighbor_type == node_type)
    return NegativeSampler(into, config.negatives, degrees=degrees, seed=config.seed)  # type: ignore[arg-type]


def _shares(
    found: Mapping[TypePair, Ints], chosen: Ints
) -> Iterator[tuple[TypePair, Ints]]:
    """Yield the chosen ones of all pairs, counted through, where there are any."""
    begin = 0
    for ends, pairs in found.items():
        own = chosen[(chosen >= begin) & (chosen < begin + len(pairs))] - begin
        begin += len(pairs)
        if len(own):
            yield ends, pairs[own]


def _rows(indptr: Ints, indices: Ints, num_src: int) -> SparseRows:
    return SparseRows(indptr, indices.astype(np.int32), num_src, is_prefix=False)


def _scores(rows: SparseRows, query: torch.Tensor, context: torch.Tensor) -> torch.Tensor:
    """Return the inner products of queries with the context rows of their pairs."""
    return sddmm(rows, context[:, None], query[:, None])


def _seeds_of(batch: Batch) -> PairSeeds:
    assert isinstance(batch.seeds, PairSeeds)  # made by this task
    return batch.seeds


Floats = npt.NDArray[Any]
Scores = Callable[[str, Ints], Floats]
_MEANS = ("roc_auc", "pr_auc", "f1")


def tell_edges(
    graph: GraphReader,
    relations: Mapping[str, tuple[str, int | None]],
    split: str,
    scores: Scores,
    *,
    seed: int,
) -> dict[str, Any]:
    """Tell the edges of a split from pairs that are none.

    Those pairs are the split ``..._negative`` of the same relation; where that is empty, as
    many are drawn: with the same first nodes, and second ones that are no neighbors in
    training, drawn uniformly.

    Args:
        graph: An open graph.
        relations: Edge type and code of each relation; without a code it is the whole type.
        split: The split.
        scores: Given a relation and pairs ``[n, 2]``, returns their scores ``[n]``.
        seed: Of drawn pairs.

    Returns:
        ``roc_auc``, ``pr_auc`` and ``f1`` of
        :func:`graphsys.metrics.areas.pair_metrics`, means over relations
        that have edges in the split; ``num_edges``; all of them of each under
        ``relations``.

    Raises:
        UnknownNameError: There is no such split.
        ConfigError: It has no edges.
    """
    types = dict.fromkeys(edge_type for edge_type, _ in relations.values())
    known = true_splits(dict.fromkeys(s for kind in types for s in graph.splits(kind)))
    if split not in known:
        raise unknown_split(split, known, of_edges=True)
    found: dict[str, Any] = {}
    for name, (edge_type, code) in relations.items():
        edges = _pairs(graph, edge_type, split, code)
        if not len(edges):
            continue
        others = _pairs(graph, edge_type, f"{split}_negative", code)
        if not len(others):
            sampler = NegativeSampler(
                rows_of(graph, edge_type, "out"), is_excluding=True, seed=seed
            )
            drawn = sampler.draw(edges[:, 0], 1, batch=code or 0)
            others = np.stack([edges[:, 0], drawn[:, 0]], axis=1)
        metrics = pair_metrics(scores(name, edges), scores(name, others))
        found[name] = {**metrics, "num_edges": len(edges)}
    if not found:
        raise ConfigError(f"split {split!r} of edges {', '.join(types)} is empty")
    means = {key: float(np.mean([it[key] for it in found.values()])) for key in _MEANS}
    total = sum(it["num_edges"] for it in found.values())
    return {**means, "num_edges": total, "relations": found}


def _pairs(graph: GraphReader, edge_type: str, split: str, code: int | None) -> Ints:
    if split not in graph.splits(edge_type):
        return np.empty((0, 2), dtype=np.int64)
    return read_pairs(graph, edge_type, split, relation=code)
