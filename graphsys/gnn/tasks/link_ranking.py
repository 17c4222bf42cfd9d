"""How high held-out pairs rank among all nodes, known ones left out."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from graphsys.core.arrays import distinct
from graphsys.core.errors import ConfigError
from graphsys.core.types import true_splits
from graphsys.gnn.data.positive_pairs import Pairs, read_pairs
from graphsys.gnn.data.split_names import unknown_split
from graphsys.gnn.tasks.decoders import Decoder, Dot
from graphsys.gnn.tasks.output import Output
from graphsys.metrics.ranking import ranking_metrics
from graphsys.storage.reader import GraphReader

Ints = npt.NDArray[np.int64]
Doubles = npt.NDArray[np.float64]
_AT_A_TIME: Final = 256
_DOT: Final = Dot()
Scores = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
TOP: Final = 20
"""Length of the lists that recall and NDCG are of."""


@dataclass(frozen=True, kw_only=True)
class Ends:
    """The rows of both ends of pairs, and which pairs there are.

    Attributes:
        graph: The graph.
        edge_type: Name of the edge type that says which belong together.
        relation: Code of the relation that edges are to be of; None for any.
        src_type: Node type of the first ends.
        dst_type: Node type of the second ends.
        src: Rows of all nodes of the first type, float32 ``[N, F]``.
        dst: Rows of all nodes of the second type, float32 ``[M, F]``.
        order: The columns of edges that hold the first and the second end.
    """

    graph: GraphReader
    edge_type: str
    relation: int | None = None
    src_type: str
    dst_type: str
    src: torch.Tensor
    dst: torch.Tensor
    order: tuple[int, int] = (0, 1)

    def pairs_of(self, split: str | None) -> Ints:
        """Return the pairs of a split (None: train), int64 ``[n, 2]``."""
        found = read_pairs(self.graph, self.edge_type, split, relation=self.relation)
        return found[:, self.order]

    def known(self, splits: Sequence[str | None]) -> Any:
        """Return the pairs of splits (None: train) as a matrix, both ways if undirected."""
        found = _matrix(
            [self.pairs_of(name) for name in splits], (len(self.src), len(self.dst))
        )
        is_directed = self.graph.is_directed_type(self.edge_type)
        if not is_directed and self.src_type == self.dst_type:
            found = found + found.T
        return found


def require_split(graph: GraphReader, edge_type: str, split: str) -> None:
    """Check that there are edges of a split.

    Raises:
        UnknownNameError: There is no such split.
        ConfigError: It is empty.
    """
    if split not in graph.splits(edge_type):
        raise unknown_split(split, graph.splits(edge_type), of_edges=True)
    if not len(read_pairs(graph, edge_type, split)):
        raise ConfigError(f"split {split!r} of edges {edge_type!r} is empty")


def rank_pairs(
    graph: GraphReader, pairs: Pairs, split: str, output: Output, score: Decoder = _DOT
) -> dict[str, Any]:
    """Rank the pairs of a split by their scores, both ways, against all nodes.

    Where the edges lead to the nodes of the pairs from those of another type, which have
    no rows (pins on boards), a source's row is the mean of those of its neighbors in train.
    Rank is 1 + better + equal / 2; known pairs of any split are no candidates, but for
    ``unfiltered``.

    Returns:
        ``mrr``, ``mr``, ``hits@1``, ``hits@3``, ``hits@10``, the same under
        ``unfiltered``, ``num_edges``, ``num_candidates``; and as of recommendations (all
        pairs of a source at once, those of train left out) ``recall@20`` and ``ndcg@20``.

    Raises:
        UnknownNameError: There is no such split.
        ConfigError: It is empty.
    """
    require_split(graph, pairs.edge_type, split)
    ends = read_ends(graph, pairs, output, score)
    wanted, src, dst = ends.pairs_of(split), ends.src, ends.dst
    known = ends.known(true_splits(graph.splits(pairs.edge_type)))
    tails = _ranks(score, src, dst, wanted, known.tocsr())
    asked = score if score.is_symmetric else _turned(score)
    heads = _ranks(asked, dst, src, wanted[:, ::-1], known.T.tocsr())
    filtered, raw = (np.concatenate(both) for both in zip(tails, heads, strict=True))
    return {
        **ranking_metrics([filtered], [raw]),
        **_recommended(score, src, dst, wanted, ends.known([None])),
        "num_edges": len(wanted),
        "num_candidates": len(dst),
    }


def recommend_pairs(
    graph: GraphReader, pairs: Pairs, split: str, output: Output, score: Decoder = _DOT
) -> dict[str, Any]:
    """Find the pairs of a split among the 20 best of each source; those of train are none.

    A source without rows of its own has that of :func:`rank_pairs`.

    Returns:
        ``recall@20``: of a source's pairs, how many are found; ``ndcg@20``: with the place
        discounted by its logarithm, of the best possible; means over sources that have
        pairs (Wang et al., "Neural graph collaborative filtering", SIGIR 2019, as LightGCN
        measures it); ``num_sources``, ``num_edges``, ``num_candidates``.

    Raises:
        UnknownNameError: There is no such split.
        ConfigError: It is empty.
    """
    require_split(graph, pairs.edge_type, split)
    ends = read_ends(graph, pairs, output, score)
    wanted = ends.pairs_of(split)
    return {
        **_recommended(score, ends.src, ends.dst, wanted, ends.known([None])),
        "num_sources": len(distinct(wanted[:, 0])),
        "num_edges": len(wanted),
        "num_candidates": len(ends.dst),
    }


def is_from_others(graph: GraphReader, pairs: Pairs) -> bool:
    """Tell whether edges join the type of pairs, which is one, with another."""
    kind = graph.edge_type(pairs.edge_type)
    return pairs.src_type == pairs.dst_type and kind.src_type != kind.dst_type


def read_ends(
    graph: GraphReader, pairs: Pairs, output: Output, score: Decoder = _DOT
) -> Ends:
    """Compute the rows of both ends of pairs, where the decoder is."""
    if not is_from_others(graph, pairs):
        src, dst = _rows_of_ends(graph, pairs, output, score)
        return Ends(
            graph=graph,
            edge_type=pairs.edge_type,
            src_type=pairs.src_type,
            dst_type=pairs.dst_type,
            src=src,
            dst=dst,
        )
    kind = graph.edge_type(pairs.edge_type)
    own, other, order = pairs.dst_type, kind.src_type, (0, 1)
    if own == kind.src_type:
        other, order = kind.dst_type, (1, 0)
    dst = output(own, np.arange(graph.num_nodes_of(own))).cpu()
    shape = (graph.num_nodes_of(other), len(dst))
    train = _matrix([read_pairs(graph, pairs.edge_type)[:, order]], shape).tocsr()
    counts = np.maximum(np.diff(train.indptr), 1)[:, None]
    src = torch.from_numpy((train @ dst.numpy() / counts).astype(np.float32))
    device = _device_of(score)
    return Ends(
        graph=graph,
        edge_type=pairs.edge_type,
        src_type=other,
        dst_type=own,
        src=src.to(device),
        dst=dst.to(device),
        order=order,
    )


def _rows_of_ends(
    graph: GraphReader, pairs: Pairs, output: Output, score: Decoder
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the rows of all nodes of both types, where the decoder is."""
    device = _device_of(score)
    src = output(pairs.src_type, np.arange(graph.num_nodes_of(pairs.src_type))).to(device)
    if pairs.src_type == pairs.dst_type:
        return src, src
    dst = output(pairs.dst_type, np.arange(graph.num_nodes_of(pairs.dst_type)))
    return src, dst.to(device)


def _device_of(score: Decoder) -> torch.device:
    return next((p.device for p in score.parameters()), torch.device("cpu"))


def _matrix(pairs: list[Ints], shape: tuple[int, int]) -> Any:
    rows, columns = np.concatenate(pairs).T
    return sp.coo_matrix((np.ones(len(rows), np.int8), (rows, columns)), shape=shape)


def _turned(score: Decoder) -> Scores:
    """Return the scores of second nodes with all first ones."""
    return lambda queries, answers: score(answers, queries).T.contiguous()


@torch.no_grad()
def _ranks(
    score: Scores, queries: torch.Tensor, answers: torch.Tensor, pairs: Ints, known: Any
) -> tuple[Doubles, Doubles]:
    """Return filtered and unfiltered ranks ``[n]``."""
    filtered, raw = np.empty(len(pairs)), np.empty(len(pairs))
    for begin in range(0, len(pairs), _AT_A_TIME):
        some = pairs[begin : begin + _AT_A_TIME]
        line = torch.arange(len(some))
        scores = score(queries[torch.from_numpy(some[:, 0].copy())], answers)
        own = scores[line, torch.from_numpy(some[:, 1].copy())][:, None]
        better, equal = (scores > own).sum(dim=1), (scores == own).sum(dim=1) - 1
        raw[begin : begin + len(some)] = (1 + better + equal.double() / 2).cpu()
        row, column = known[some[:, 0]].nonzero()
        is_other = column != some[row, 1]
        row, column = torch.from_numpy(row[is_other]), torch.from_numpy(column[is_other])
        scores[row.long(), column.long()] = -torch.inf
        better, equal = (scores > own).sum(dim=1), (scores == own).sum(dim=1) - 1
        filtered[begin : begin + len(some)] = (1 + better + equal.double() / 2).cpu()
    return filtered, raw


@torch.no_grad()
def _recommended(
    score: Decoder, src: torch.Tensor, dst: torch.Tensor, pairs: Ints, train: Any
) -> dict[str, float]:
    """Return recall and NDCG of the best 20 for every source that has pairs."""
    train = train.tocsr()
    wanted = _matrix([pairs], (len(src), len(dst))).tocsr()
    users = distinct(pairs[:, 0])
    top = min(TOP, len(dst))
    discount = 1 / np.log2(np.arange(2, top + 2))
    recalls, gains = [], []
    for begin in range(0, len(users), _AT_A_TIME):
        some = users[begin : begin + _AT_A_TIME]
        scores = score(src[torch.from_numpy(some)], dst)
        row, column = train[some].nonzero()
        scores[torch.from_numpy(row).long(), torch.from_numpy(column).long()] = -torch.inf
        best = scores.topk(top, dim=1).indices.cpu().numpy()
        for user, items in zip(some, best, strict=True):
            own = wanted.indices[wanted.indptr[user] : wanted.indptr[user + 1]]
            is_hit = np.isin(items, own)
            recalls.append(is_hit.sum() / len(own))
            gains.append((is_hit * discount).sum() / discount[: len(own)].sum())
    return {
        f"recall@{TOP}": float(np.mean(recalls)),
        f"ndcg@{TOP}": float(np.mean(gains)),
    }
