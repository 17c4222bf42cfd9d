"""Link prediction: pairs that belong together score above pairs that do not."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from graphsys.core.rng import generator
from graphsys.gnn.config import GnnConfig
from graphsys.gnn.data.loader import Batch, Layers, SeedsByType, Trim
from graphsys.gnn.data.message_graph import walk_rows
from graphsys.gnn.data.positive_pairs import Pairs, make_pairs, without_pairs
from graphsys.gnn.data.shuffled_edges import ShuffledEdges
from graphsys.gnn.model_spec import spec_of
from graphsys.gnn.part_specs import SAMPLERS, TASKS, TaskSpec
from graphsys.gnn.process_group import current_process_group
from graphsys.gnn.tasks.decoders import make_decoder
from graphsys.gnn.tasks.link_ranking import (
    TOP,
    Ends,
    rank_pairs,
    read_ends,
    recommend_pairs,
)
from graphsys.gnn.tasks.output import Output, rows_column
from graphsys.gnn.tasks.pair_losses import pair_loss
from graphsys.sampling import (
    ConditionalNegativeSampler,
    ImportanceSampler,
    NegativeSampler,
    Sample,
    rows_of,
)
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
_VISITS_PER_RANK = 8  # so that the last rank is reached


class LinkPrediction:
    """Rows of nodes whose inner products tell pairs that belong together.

    A batch shares its negatives, or each pair has its own, which are no known answers of
    it; a pair may have others that are like the positive (``alike``), and the second nodes
    of the batch's other pairs (``in_batch``; where that is the pair's own second node, it
    counts as a negative beaten). PinSage adds hard ones per pair, more each epoch: none in
    the first, one in the second, as in the paper. Edges of the batch itself are taken out
    of the blocks that the network sees.

    Raises:
        ConfigError: Several edge types to choose from, or no training edges.
        UnknownNameError: An edge type that is not in the graph.
    """

    metric = "mrr"
    units: Sequence[float] = ()
    relations: Collection[str] = ()

    def __init__(self, graph: GraphReader, config: GnnConfig) -> None:
        self.graph, self.config, self.process_group = graph, config, current_process_group()
        self.pairs: Pairs = make_pairs(graph, config)
        self.node_type, self.num_out = self.pairs.dst_type, config.dim
        self.classes: list[Any] = []
        has_edges = (
            config.positives == "edges" and spec_of(config.model).messages != "walks"
        )
        self.trim: Trim | None = self._trim if has_edges else None
        kind = graph.edge_type(self.pairs.edge_type)
        self._score = make_decoder(config, self.num_out)
        self.decoder: nn.Module | None = self._score
        is_dst = kind.dst_type == self.pairs.dst_type
        is_directed = graph.is_directed_type(self.pairs.edge_type)
        self._is_symmetric = not is_directed and kind.src_type == kind.dst_type
        # negatives are of the type that the rows of the other end list
        rows = rows_of(graph, self.pairs.edge_type, "out" if is_dst else "in")
        degrees = None
        if config.negatives == "degree":
            own = rows_of(graph, self.pairs.edge_type, "in" if is_dst else "out")
            degrees = own.degrees()
        self._is_sharing = config.negatives_of == "batch"
        self._negatives = NegativeSampler(
            rows,
            config.negatives,
            degrees=degrees,
            seed=config.seed,
            is_excluding=not self._is_sharing,
        )
        self._ranks = self._rank_sampler() if config.hard_negatives else None
        self._alike: ConditionalNegativeSampler | None = None
        if config.alike_negatives:
            self._alike = ConditionalNegativeSampler(
                rows,
                graph.node_column(self.pairs.dst_type, config.alike),
                is_excluding=rows.node_type == self.pairs.src_type,
                seed=config.seed,
            )
        self._now = PairBatches(self, np.empty((0, 2), dtype=np.int64), 0)

    @property
    def num_shared(self) -> int:
        """Negatives that all pairs of a batch are compared with."""
        return self.config.num_negatives if self._is_sharing else 0

    def num_hard(self, epoch: int) -> int:
        """Return how many hard negatives a pair has in an epoch, counted from 0."""
        return min(epoch, self.config.hard_negatives)

    def seeds(self, epoch: int) -> "PairBatches":
        """Return the seeds of every batch of an epoch, made when they are asked for."""
        self._now = PairBatches(self, self.pairs.epoch(epoch), epoch)
        return self._now

    def make_seeds(self, pairs: Ints, epoch: int, number: int) -> SeedsByType:
        """Return the ends of pairs and their negatives, as seeds by type.

        Where both ends are of one type its seeds are sources, destinations, shared
        negatives, negatives of each pair, else the destinations' type has all but the
        sources.
        """
        queries = np.zeros(1, dtype=np.int64) if self._is_sharing else pairs[:, 0]
        drawn = self._negatives.draw(
            queries, self.config.num_negatives, epoch=epoch, batch=number
        )
        second, own = [pairs[:, 1]], [np.empty((len(pairs), 0), dtype=np.int64)]
        (second if self._is_sharing else own).append(
            drawn[0] if self._is_sharing else drawn
        )
        if self.num_hard(epoch):
            own.append(self._draw_hard(pairs[:, 0], epoch, number))
        if self._alike is not None:
            count = self.config.alike_negatives
            alike = self._alike.draw(
                pairs[:, 0], pairs[:, 1], count, epoch=epoch, batch=number
            )
            own.append(alike)
        second.append(np.concatenate(own, axis=1).ravel())
        if self.pairs.src_type == self.pairs.dst_type:
            return {self.pairs.src_type: np.concatenate([pairs[:, 0], *second])}
        return {
            self.pairs.src_type: pairs[:, 0],
            self.pairs.dst_type: np.concatenate(second),
        }

    def loss(self, rows: Mapping[str, torch.Tensor], batch: Batch) -> torch.Tensor:
        """Return the mean loss of a batch's pairs and negatives."""
        src_type, dst_type = self.pairs.src_type, self.pairs.dst_type
        num_pairs = len(self._now.pairs_of(batch.number))
        # index_select: its gradient is added up ten times as fast as that of []
        query = rows[src_type].index_select(0, batch.places[src_type][:num_pairs])
        places = batch.places[dst_type][num_pairs if src_type == dst_type else 0 :]
        others = rows[dst_type].index_select(0, places)
        query = self._score.of_pairs(query, others[:num_pairs])
        end = num_pairs + self.num_shared
        positive = self._score.own(query, others[:num_pairs, None])
        negative = self._score(query, others[num_pairs:end])
        if len(others) > end:
            own = others[end:].reshape(num_pairs, -1, others.shape[1])
            negative = torch.cat([negative, self._score.own(query, own)], dim=1)
        if self.config.in_batch:
            scores = self._score(query, others[:num_pairs])
            is_own = places[:num_pairs, None] == places[None, :num_pairs]
            negative = torch.cat([negative, scores.masked_fill(is_own, -torch.inf)], dim=1)
        return pair_loss(self.config, positive, negative)

    def num_terms(self, batch: Batch) -> int:
        """Return how many pairs a batch of all processes has."""
        return len(self._now.all_pairs(batch.number))

    @property
    def known_splits(self) -> list[str]:
        """Names of the splits that have edges."""
        return list(self.graph.splits(self.pairs.edge_type))

    def watch(self, output: Output) -> tuple[float, float] | None:
        """Return 1 - metric and metric of the watched split, or None without such edges."""
        split = self.config.eval_split
        if split not in self.graph.splits(self.pairs.edge_type):
            return None
        found = self.measure(split, output)[self.metric]
        return 1 - found, found

    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split; see :func:`rank_pairs`."""
        return rank_pairs(self.graph, self.pairs, split, output, self._score)

    def row_types(self, relation: str | None = None) -> list[str]:
        """Return the node types of the edges that are learned."""
        kind = self.graph.edge_type(self.pairs.edge_type)
        return list(dict.fromkeys((kind.src_type, kind.dst_type)))

    def rows(
        self, output: Output, node_type: str, relation: str | None = None
    ) -> torch.Tensor:
        """Return the rows of a type; one without rows has the means of its neighbors'."""
        if node_type in (self.pairs.src_type, self.pairs.dst_type):
            return output(node_type, np.arange(self.graph.num_nodes_of(node_type)))
        return self.ends(output).src.cpu()

    def ends(self, output: Output, relation: str | None = None) -> Ends:
        """Return the rows of both ends of the pairs."""
        return read_ends(self.graph, self.pairs, output, self._score)

    def scores(self, query: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
        """Return the scores of every query with every other row, ``[n, m]``."""
        return self._score(query, others)  # type: ignore[no-any-return]

    def answers(
        self, found: npt.NDArray[np.float32], relation: str | None
    ) -> dict[str, Any]:
        """Return ``embedding``: the rows."""
        return {"embedding": rows_column(found)}

    def _trim(self, sample: Sample, number: int) -> Layers:
        src, dst = self._now.all_pairs(number).T
        return without_pairs(
            sample.layers,
            self.pairs.edge_type,
            src,
            dst,
            is_symmetric=self._is_symmetric,
            has_shares=SAMPLERS.get(self.config.sampler).has_shares(self.config),
        )

    def _rank_sampler(self) -> ImportanceSampler:
        """Return the sampler that ranks nodes by visits, with walks enough for it."""
        config = self.config
        rows, back = walk_rows(self.graph, config, self.node_type)
        visits = _VISITS_PER_RANK * config.hard_ranks[1]
        return ImportanceSampler(
            rows,
            back,
            num_neighbors=(1,),
            num_walks=-(-visits // config.walk_length),
            walk_length=config.walk_length,
            restart=config.restart,
            seed=config.seed,
        )

    def _draw_hard(self, queries: Ints, epoch: int, number: int) -> Ints:
        """Draw nodes from far down the ranking of each query, ``[pairs, hard]``.

        A query with too few visited nodes gets uniform ones.
        """
        assert self._ranks is not None  # there are hard negatives
        count = self.num_hard(epoch)
        low, high = self.config.hard_ranks
        indptr, found, _ = self._ranks.neighborhoods(queries, high - low, skip=low)
        rng = generator(self.config.seed, "hard", epoch, number)
        lengths = np.diff(indptr)
        places = (rng.random((len(queries), count)) * lengths[:, None]).astype(np.int64)
        chosen = self._negatives.draw(queries, count, epoch=epoch, batch=-1 - number)
        has_some = lengths > 0
        chosen[has_some] = found[indptr[:-1][has_some, None] + places[has_some]]
        return chosen


class Recommendation(LinkPrediction):
    """Link prediction as recommenders are measured: the best 20 of each source."""

    metric = f"recall@{TOP}"

    def measure(self, split: str, output: Output) -> dict[str, Any]:
        """Return the metrics of a split; see :func:`recommend_pairs`."""
        return recommend_pairs(self.graph, self.pairs, split, output, self._score)


for _name, _task in (
    ("link_prediction", LinkPrediction),
    ("recommendation", Recommendation),
):
    TASKS.add(TaskSpec(name=_name, make=_task, is_of_links=True))


class PairBatches(Sequence[SeedsByType]):
    """The batches of an epoch; their negatives are drawn when a batch is asked for."""

    def __init__(
        self, task: LinkPrediction, pairs: Ints | ShuffledEdges, epoch: int
    ) -> None:
        self._task, self._pairs, self._epoch = task, pairs, epoch
        self._size = task.config.batch_size or max(len(pairs), 1)

    def __len__(self) -> int:
        return -(-len(self._pairs) // self._size)

    def pairs_of(self, number: int) -> Ints:
        """Return this process's pairs of a batch, int64 ``[n, 2]``."""
        pairs, task = self.all_pairs(number), self._task
        kind = task.pairs.src_type
        return task.process_group.share_at(pairs, kind, pairs[:, 0])  # type: ignore[no-any-return]

    def all_pairs(self, number: int) -> Ints:
        """Return the pairs of a batch of all processes, int64 ``[n, 2]``."""
        return self._pairs[number * self._size : (number + 1) * self._size]

    @overload
    def __getitem__(self, number: int) -> SeedsByType: ...
    @overload
    def __getitem__(self, number: slice) -> Sequence[SeedsByType]: ...
    def __getitem__(self, number: int | slice) -> Any:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self._task.make_seeds(self.pairs_of(number), self._epoch, number)
