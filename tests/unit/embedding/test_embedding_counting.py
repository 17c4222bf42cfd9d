"""Steps with several pools, masks, hard and self-adversarial negatives, against torch."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.schedule import BucketTask, cut_bucket
from graphsys.embedding.model import relation_sets
from graphsys.embedding.negatives_config import PoolConfig
from graphsys.embedding.training.edge_sets import list_steps
from graphsys.embedding.training.kernel_table import compiled_objective
from graphsys.embedding.training.negatives import DST, SRC, Negatives
from graphsys.kernels.cpu.embedding.bags import PLAIN
from graphsys.kernels.cpu.embedding.negatives import Candidates, draw_pools
from graphsys.kernels.cpu.embedding.rows import Tables
from graphsys.kernels.cpu.embedding.step import Settings, train_batches
from graphsys.kernels.cpu.hashing import mix64
from graphsys.storage import Graph
from tests.embedding_oracle import compare

if TYPE_CHECKING:
    from graphsys.kernels.cpu.embedding.chunk import Edges

Floats = npt.NDArray[np.float32]
DIM, KEY, LR = 6, 5, 0.1


class Oracle:
    """One batch of the ring with identity operators: what torch makes of it."""

    def __init__(self, graph: Graph, config: EmbeddingConfig) -> None:
        self.config = config
        (self.relations,) = relation_sets(graph, config)
        (step,) = list_steps(graph, [self.relations], config)
        bucket = graph.bucket(self.relations.edge_type, 0, 0)
        assert bucket.relation is not None
        self.edges: Edges = cut_bucket(
            bucket.src.astype(np.uint32),
            bucket.dst.astype(np.uint32),
            bucket.relation.astype(np.uint32),
            np.empty(0, np.float32),
            self.relations,
            config,
            (0,),
        )
        self.step: BucketTask = step
        self.candidates: Candidates = Negatives(graph, config).candidates(
            self.relations, step, self.edges
        )
        rng = np.random.default_rng(1)
        size = graph.num_nodes_of("entity")
        self.rows = rng.normal(size=(size, DIM)).astype(np.float32)
        self.state = rng.random(size).astype(np.float32)
        self.known = set(
            zip(
                bucket.src.tolist(),
                bucket.relation.tolist(),
                bucket.dst.tolist(),
                strict=True,
            )
        )

    def run_kernel(self) -> tuple[float, Floats]:
        config = self.config
        settings = Settings(
            candidates=self.candidates,
            use_batch=any(pool.kind == "batch" for pool in config.pools),
            objective=compiled_objective(config, self.relations),
            lr=np.float32(LR),
            relation_lr=np.float32(LR),
            regularizer=np.float32(0.0),
            regularizer_kind=0,
            key=np.uint64(KEY),
        )
        rows, state = self.rows.copy(), self.state.copy()
        losses = np.zeros(len(self.edges.batches) - 1)
        train_batches(
            Tables(rows, state, rows, state, True),
            PLAIN,
            self.relations.operators(self.relations.initial()),
            self.edges,
            settings,
            0,
            1,
            1,
            np.full(len(rows), -1, np.int32),
            losses,
        )
        return float(losses[0]), rows

    def run_torch(self) -> tuple[float, Floats]:
        rows = torch.tensor(self.rows, requires_grad=True)
        total = torch.zeros(())
        for c in range(self.edges.batches[0], self.edges.batches[1]):
            total = total + self._chunk(rows, c)
        total.backward()  # type: ignore[no-untyped-call]  # torch's
        assert rows.grad is not None
        g = rows.grad.numpy()
        state = self.state + (g**2).mean(1)
        wanted = self.rows - LR * g / (np.sqrt(state) + 1e-10)[:, None]
        return float(total.detach()), np.asarray(wanted)

    def _chunk(self, rows: torch.Tensor, c: int) -> torch.Tensor:
        edges, pools = self.edges, self.candidates.pools
        members = edges.order[edges.chunks[c, 0] : edges.chunks[c, 1]]
        members = members[np.argsort(edges.relation[members], kind="stable")]
        relation, n = edges.relation[members], len(members)
        ends = []
        for side, column in ((SRC, edges.src), (DST, edges.dst)):
            sampler = (self.candidates.src, self.candidates.dst)[side]
            nodes = np.empty(n + int(pools.begins[-1]), np.int64)
            bias = np.zeros(len(nodes), np.float32)
            nodes[:n] = column[members]
            if len(sampler.edge_bias):
                bias[:n] = sampler.edge_bias[members] - np.log(n - 1)
            key = np.uint64(mix64(np.uint64(KEY + c)))
            draw_pools(pools, sampler, key, side, int(relation[0]), n, nodes, bias)
            ends.append((nodes, bias))
        (src, src_bias), (dst, dst_bias) = ends
        comparator = self.config.comparator
        tails = compare(comparator, rows[src[:n]], rows[dst])
        heads = compare(comparator, rows[dst[:n]], rows[src])
        known_tails = [
            [(int(s), int(r), int(d)) in self.known for d in dst]
            for s, r in zip(src[:n], relation, strict=True)
        ]
        known_heads = [
            [(int(s), int(r), int(d)) in self.known for s in src]
            for d, r in zip(dst[:n], relation, strict=True)
        ]
        config = self.config
        return self._side(
            tails, dst, dst_bias, known_tails, config.disable_dst_negatives
        ) + self._side(heads, src, src_bias, known_heads, config.disable_src_negatives)

    def _side(
        self,
        scores: torch.Tensor,
        nodes: npt.NDArray[np.int64],
        bias: Floats,
        known: list[list[bool]],
        is_disabled: bool,
    ) -> torch.Tensor:
        n, spans = len(scores), [(0, len(scores), 0)]
        pools = self.candidates.pools
        for p, kept in enumerate(pools.num_kept.tolist()):
            spans.append((n + int(pools.begins[p]), n + int(pools.begins[p + 1]), kept))
        counts = nodes[None] != nodes[:n, None]
        if self.config.mask_known_edges:
            counts &= ~np.array(known)
        use_batch = any(pool.kind == "batch" for pool in self.config.pools)
        if not use_batch:
            counts[:, :n] = False
        if is_disabled:
            counts[:] = False
        num_easy = 0
        values = scores.detach().numpy().astype(np.float64)
        for low, high, kept in spans:
            if kept:
                gap = values[:, low:high] - np.diag(values)[:, None]
                hard = np.where(counts[:, low:high], 1 / (1 + np.exp(-gap)), 0).mean(0)
                seen: set[int] = set()
                for j, node in enumerate(nodes[low:high].tolist()):
                    hard[j] = -1 if node in seen else hard[j]
                    seen.add(node)
                counts[:, low + np.argsort(-hard, kind="stable")[kept:]] = False
                num_easy += high - low - kept
        total = torch.zeros(())
        temperatures = [0.0, *(pool.adversarial for pool in self.config.drawn_pools)]
        for pool in self.config.pools:
            if pool.kind == "batch":
                temperatures[0] = pool.adversarial
        softplus = torch.nn.functional.softplus
        for i in range(n):
            row, allowed = scores[i], torch.tensor(counts[i])
            positive = row[i]
            negatives = (row + torch.tensor(bias))[allowed]
            if self.config.loss == "softmax":
                together = torch.cat([positive[None], negatives])
                total = total + torch.logsumexp(together, 0) - positive
            elif self.config.loss == "ranking":
                margin = self.config.margin
                total = total + torch.relu(margin + negatives - positive).sum()
            else:
                total = total + softplus(-positive)
                size = len(nodes) - num_easy - (0 if use_batch else n)
                for (low, high, kept), t in zip(spans, temperatures, strict=True):
                    part = row[low:high][allowed[low:high]]
                    if t:
                        weights = torch.softmax(t * part, 0).detach()
                        mean = (weights * softplus(part)).sum() * (kept or high - low)
                    else:
                        mean = softplus(part).sum()
                    total = total + mean / size
        return total


BATCH = PoolConfig(kind="batch", num=9)
UNIFORM = PoolConfig(kind="uniform", num=7)
DEGREE = PoolConfig(kind="degree", num=5, alpha=0.6)
TYPE = PoolConfig(kind="type", num=6)
HARD = PoolConfig(kind="hard", num=3, drawn=12)


def weighed(pool: PoolConfig, **keys: Any) -> PoolConfig:
    return PoolConfig(**{**vars(pool), **keys})


CASES: dict[str, dict[str, Any]] = {
    "every pool corrected by logQ": {
        "negatives": tuple(
            weighed(pool, importance=True) for pool in (BATCH, UNIFORM, DEGREE, TYPE)
        ),
    },
    "hard beside batch": {"negatives": (BATCH, HARD, UNIFORM)},
    "hard without batch": {"negatives": (DEGREE, HARD)},
    "masked ranking": {"negatives": (BATCH, DEGREE, HARD, TYPE), "loss": "ranking"},
    "hard logistic": {"negatives": (HARD, UNIFORM), "loss": "logistic"},
    "self-adversarial": {
        "negatives": (
            weighed(BATCH, adversarial=0.5),
            weighed(UNIFORM, adversarial=2.0),
            DEGREE,
            weighed(HARD, adversarial=1.0),
        ),
        "loss": "logistic",
    },
    "no sources": {
        "negatives": (BATCH, weighed(UNIFORM, importance=True)),
        "disable_src_negatives": True,
    },
    "no destinations": {
        "negatives": (weighed(BATCH, importance=True), DEGREE),
        "disable_dst_negatives": True,
    },
    "no sources, ranking": {
        "negatives": (BATCH, HARD),
        "loss": "ranking",
        "disable_src_negatives": True,
    },
    "no destinations, logistic": {
        "negatives": (BATCH, weighed(UNIFORM, adversarial=2.0), HARD),
        "loss": "logistic",
        "disable_dst_negatives": True,
    },
    "self-adversarial without batch": {
        "negatives": (weighed(TYPE, adversarial=1.5), UNIFORM),
        "loss": "logistic",
    },
}


@pytest.mark.parametrize("comparator", ["dot", "cos", "squared_l2"])
@pytest.mark.parametrize("name", CASES)
def test_steps_equal_autograd(
    make_ring: Callable[[int], Graph], name: str, comparator: Any
) -> None:
    for masked, reciprocal in ((False, True), (True, True), (True, False)):
        config = EmbeddingConfig(
            dim=DIM,
            comparator=comparator,
            reciprocal=reciprocal,
            mask_known_edges=masked,
            batch_size=18,
            **CASES[name],
        )
        oracle = Oracle(make_ring(1), config)
        loss, rows = oracle.run_kernel()
        wanted_loss, wanted_rows = oracle.run_torch()
        assert loss == pytest.approx(wanted_loss, rel=1e-4)
        np.testing.assert_allclose(rows, wanted_rows, atol=3e-4)
        assert np.abs(rows - oracle.rows).max() > 0.01
