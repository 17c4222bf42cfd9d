"""One optimizer step of the embedding trainer, by the kernel and by torch autograd."""

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch

from graphsys.core.types import EdgeType
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.data.schedule import cut_bucket
from graphsys.embedding.model import relation_sets
from graphsys.embedding.training.kernel_table import compiled_objective
from graphsys.embedding.training.negative_tables import uniform_candidates
from graphsys.embedding.training.objective import REGULARIZER_CODES
from graphsys.kernels.cpu.embedding.bags import NO_BAGS, NO_VECTOR, Bags, Extras
from graphsys.kernels.cpu.embedding.regularizers import drop
from graphsys.kernels.cpu.embedding.rows import Tables
from graphsys.kernels.cpu.embedding.step import Settings, train_batches
from graphsys.kernels.cpu.hashing import mix64
from graphsys.kernels.jit import jit
from tests.embedding_codes import OPERATOR_CODES

Floats = npt.NDArray[np.float32]
DIM, NUM_SRC, NUM_DST, KEY, NUM_EDGES = 6, 7, 5, 11, 6
RELATION_LR, SRC_BIAS, DST_BIAS = 0.02, 0.3, 0.7


@jit
def dropped(rows: Floats, rate: np.float32, key: np.uint64) -> None:
    """Leave out what the kernel does."""
    drop(rows, rate, key)


class OneEdgeType:
    """The part of a graph that the model reads: one edge type with three relations."""

    edge_types = [EdgeType("node", "edge", "node")]  # noqa: RUF012

    def edge_type_name(self, edge_type: EdgeType) -> str:
        return edge_type.relation

    def relations(self, edge_type: EdgeType) -> list[str] | None:
        return ["a", "b", "c"]


def operate(code: int, p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Apply an operator to rows, float ``[n, DIM]``."""
    half, square = DIM // 2, DIM * DIM
    if code == OPERATOR_CODES["identity"]:
        return x
    if code == OPERATOR_CODES["translation"]:
        return x + p
    if code == OPERATOR_CODES["diagonal"]:
        return x * p
    if code == OPERATOR_CODES["linear"]:
        return x @ p.reshape(DIM, DIM).T
    if code == OPERATOR_CODES["affine"]:
        return x @ p[:square].reshape(DIM, DIM).T + p[square:]
    if code == OPERATOR_CODES["rotation"]:
        factors = torch.polar(torch.ones(half), p)
    else:
        factors = torch.complex(p[:half], p[half:])
    z = torch.complex(x[:, :half], x[:, half:]) * factors
    return torch.cat([z.real, z.imag], dim=1)


def compare(comparator: str, q: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Score every query against every candidate."""
    if comparator == "dot":
        return q @ c.T
    if comparator == "cos":
        return torch.nn.functional.normalize(q) @ torch.nn.functional.normalize(c).T
    apart = q[:, None] - c[None]
    if comparator == "l1":
        return -apart.abs().sum(-1)
    if comparator == "complex_l1":
        squares = apart[..., : DIM // 2] ** 2 + apart[..., DIM // 2 :] ** 2
        return -(squares + 1e-30).sqrt().sum(-1)
    square = (apart**2).sum(-1)
    return -square if comparator == "squared_l2" else -square.sqrt()


def score(config: EmbeddingConfig, q: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    """Score with the config's comparator and, as PBG does, its bias."""
    if not config.bias:
        return compare(config.comparator, q, c)
    rest, others = q.clone(), c.clone()
    rest[:, 0] = others[:, 0] = 0
    return q[:, :1] + c[:, 0] + compare(config.comparator, rest, others)


def row_losses(
    config: EmbeddingConfig,
    scores: torch.Tensor,
    nodes: list[int],
    bias: float,
    use_batch: bool,
) -> torch.Tensor:
    """Return the loss of every query; the positive of query i is candidate i."""
    losses = []
    size = len(scores)
    for i, row in enumerate(scores):
        allowed = [
            j for j in range(len(row)) if nodes[j] != nodes[i] and (j >= size or use_batch)
        ]
        shift = torch.tensor([bias if j >= size else 0.0 for j in allowed])
        negatives = row[allowed] + shift
        if config.loss == "softmax":
            losses.append(
                torch.logsumexp(torch.cat([row[i : i + 1], negatives]), 0) - row[i]
            )
        elif config.loss == "logistic":
            share = len(row) if use_batch else len(row) - size  # masked ones count: PBG
            softplus = torch.nn.functional.softplus
            losses.append(softplus(-row[i]) + softplus(negatives).sum() / share)
        else:
            losses.append(torch.relu(config.margin + negatives - row[i]).sum())
    return torch.stack(losses)


def penalty(kind: str, x: torch.Tensor, is_complex: bool) -> torch.Tensor:
    """Return the regularizer of every row."""
    if kind in ("l2", "dura"):
        return (x**2).sum(-1)
    if not is_complex:
        return (x.abs() ** 3).sum(-1)
    half = x.shape[-1] // 2
    return ((x[..., :half] ** 2 + x[..., half:] ** 2) ** 1.5).sum(-1)


def adagrad(rows: torch.Tensor, state: Floats, lr: Floats | float, by_row: bool) -> Floats:
    """Take one step of (row-wise) Adagrad."""
    assert rows.grad is not None
    g = rows.grad.numpy()
    square = (g**2).mean(1) if by_row else g**2
    new = state + square
    root = np.sqrt(new) + 1e-10
    return np.asarray(rows.detach().numpy() - lr * g / (root[:, None] if by_row else root))


def adam(rows: torch.Tensor, state: Floats, lr: float) -> Floats:
    """Take torch's step of SparseAdam, each row by an optimizer of its own."""
    assert rows.grad is not None
    found = rows.detach().numpy().copy()
    for v in np.flatnonzero(rows.grad.numpy().any(axis=1)):
        row = torch.nn.Parameter(rows.detach()[[v]].clone())
        row.grad = torch.sparse_coo_tensor(torch.tensor([[0]]), rows.grad[[v]], row.shape)
        optimizer = torch.optim.SparseAdam([row], lr=lr)
        mean, square = torch.tensor(state[v, 1:]).reshape(2, 1, -1)
        optimizer.state[row] = {
            "step": int(state[v, 0]),
            "exp_avg": mean.clone(),
            "exp_avg_sq": square.clone(),
        }
        optimizer.step()  # type: ignore[no-untyped-call]  # torch's
        found[v] = row.detach().numpy()[0]
    return found


@dataclass
class Result:
    """What a step leaves: the loss, both tables, operators, global vectors."""

    loss: float
    src_rows: Floats
    dst_rows: Floats
    operators: Floats
    globals: list[Floats]


class Step:
    """A bucket of a few edges, trained once by the kernel and once by torch.

    Args:
        config: The settings.
        is_shared: Whether both ends are one partition.
        is_weighted: Whether edges have weights.
        dst_bags: Features of the destinations, which are a type of its own then.
    """

    def __init__(
        self,
        config: EmbeddingConfig,
        *,
        is_shared: bool = False,
        is_weighted: bool = True,
        dst_bags: Bags = NO_BAGS,
    ) -> None:
        rng = np.random.default_rng(3)
        self.config, self.is_shared, self.dst_bags = config, is_shared, dst_bags
        (self.model,) = relation_sets(OneEdgeType(), config)
        self.num_dst = NUM_SRC if is_shared else NUM_DST
        num_rows = self.num_dst
        if len(dst_bags.begins):
            num_rows = int(dst_bags.features.max()) + 1
        self.src_rows = rng.normal(size=(NUM_SRC, DIM)).astype(np.float32)
        width = () if config.optimizer == "row_adagrad" else (DIM,)
        if config.optimizer == "adam":
            width = (1 + 2 * DIM,)
        self.src_state = rng.random((NUM_SRC, *width)).astype(np.float32)
        self.dst_rows, self.dst_state = self.src_rows, self.src_state
        if not is_shared:
            self.dst_rows = rng.normal(size=(num_rows, DIM)).astype(np.float32)
            self.dst_state = rng.random((num_rows, *width)).astype(np.float32)
        if config.optimizer == "adam":
            for state in (self.src_state, self.dst_state):  # once or often, or never
                state[:, 0] = rng.choice([0, 1, 7, 30_000], len(state))
                state[state[:, 0] == 0] = 0
        self.table = self.model.initial()
        self.table += rng.normal(size=self.table.shape).astype(np.float32)
        self.table[1::2] **= 2
        size = NUM_EDGES
        self.src = rng.integers(0, NUM_SRC, size).astype(np.uint32)
        self.dst = rng.integers(0, self.num_dst, size).astype(np.uint32)
        self.relation = np.sort(rng.integers(0, 3, size)).astype(np.uint32)
        if not config.reciprocal:
            self.relation[:] = 1
        self.weight = rng.random(size).astype(np.float32)
        self.vectors: list[Floats] = []
        if config.global_embedding:
            self.vectors = [
                rng.random((2, DIM)).astype(np.float32) for _ in range(2 - is_shared)
            ]
        used = self.weight if is_weighted else self.weight[:0]
        if not is_weighted:
            self.weight[:] = 1.0
        self.edges = cut_bucket(
            self.src, self.dst, self.relation, used, self.model, config, ()
        )

    def settings(self) -> Settings:
        """Return the kernel's settings."""
        config = self.config
        return Settings(
            candidates=uniform_candidates(
                config, (NUM_SRC, self.num_dst), (SRC_BIAS, DST_BIAS)
            ),
            use_batch=config.num_batch_negatives > 0,
            objective=compiled_objective(config, self.model),
            lr=np.float32(config.lr),
            relation_lr=np.float32(RELATION_LR),
            regularizer=np.float32(config.regularizer),
            regularizer_kind=REGULARIZER_CODES[config.regularizer_kind],
            key=np.uint64(KEY),
            dropout=np.float32(config.dropout),
            relation_prediction=np.float32(config.relation_prediction),
        )

    def run_kernel(self) -> Result:
        """Train by the kernel."""
        src_rows, src_state = self.src_rows.copy(), self.src_state.copy()
        dst_rows, dst_state = src_rows, src_state
        if not self.is_shared:
            dst_rows, dst_state = self.dst_rows.copy(), self.dst_state.copy()
        table, losses = self.table.copy(), np.zeros(1)
        vectors = [vector.copy() for vector in self.vectors]
        extras = Extras(
            NO_BAGS,
            self.dst_bags,
            vectors[0] if vectors else NO_VECTOR,
            vectors[-1] if vectors else NO_VECTOR,
            self.is_shared,
        )
        train_batches(
            Tables(src_rows, src_state, dst_rows, dst_state, self.is_shared),
            extras,
            self.model.operators(table),
            self.edges,
            self.settings(),
            0,
            1,
            1,
            np.full(NUM_SRC + len(dst_rows), -1, dtype=np.int32),
            losses,
        )
        return Result(
            float(losses[0]), src_rows, dst_rows, table[::2], [v[0] for v in vectors]
        )

    def run_torch(self) -> Result:
        """Train by torch."""
        src_rows = torch.tensor(self.src_rows, requires_grad=True)
        dst_rows = src_rows
        if not self.is_shared:
            dst_rows = torch.tensor(self.dst_rows, requires_grad=True)
        table = [torch.tensor(row, requires_grad=True) for row in self.table[::2]]
        vectors = [torch.tensor(v[0], requires_grad=True) for v in self.vectors]
        total, extra = self._loss(src_rows, dst_rows, table, vectors)
        (total + extra).backward()  # type: ignore[no-untyped-call]  # torch's
        lr, by_row = self.config.lr, self.config.optimizer == "row_adagrad"

        def moved(rows: torch.Tensor, state: Floats) -> Floats:
            if self.config.optimizer == "adam":
                return adam(rows, state, lr)
            return adagrad(rows, state, lr, by_row)

        new_src = moved(src_rows, self.src_state)
        new_dst = new_src if self.is_shared else moved(dst_rows, self.dst_state)
        rates = RELATION_LR * np.repeat(self.model.lr_factors, np.diff(self.model.offsets))
        new_table = [
            adagrad(p, self.table[2 * k + 1], rates, by_row=False)
            if p.numel()
            else np.empty(0, dtype=np.float32)
            for k, p in enumerate(table)
        ]
        return Result(
            float(total.detach()),
            new_src,
            new_dst,
            np.stack(new_table),
            [
                adagrad(vector, old[1], RELATION_LR, by_row=False)
                for vector, old in zip(vectors, self.vectors, strict=True)
            ],
        )

    def _pools(self, all_negatives: bool) -> tuple[list[int], list[int]]:
        key = mix64(np.uint64(KEY))  # of chunk 0
        src, dst = self.src.tolist(), self.dst.tolist()
        if all_negatives:
            return src + list(range(NUM_SRC)), dst + list(range(self.num_dst))
        for u in range(self.config.num_uniform_negatives):
            with np.errstate(over="ignore"):
                src.append(int(mix64(np.uint64(key) + np.uint64(2 * u))) % NUM_SRC)
                dst.append(int(mix64(np.uint64(key) + np.uint64(2 * u + 1))) % self.num_dst)
        return src, dst

    def _masks(self, n: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Return what dropout multiplies the questions of chunk 0 with, either way."""
        key = np.uint64(mix64(np.uint64(KEY) ^ np.uint64(mix64(np.uint64(0)))))
        masks = np.ones((2, n, DIM), dtype=np.float32)
        if self.config.dropout:
            for mask, draws in zip(masks, (key, ~key), strict=True):
                dropped(mask, np.float32(self.config.dropout), draws)
        return torch.tensor(masks[0]), torch.tensor(masks[1])

    def _take(self, rows: torch.Tensor, nodes: list[int], bags: Bags) -> torch.Tensor:
        if not len(bags.begins):
            return rows[nodes]
        pooled = torch.nn.functional.embedding_bag(
            torch.tensor(bags.features.astype(np.int64)),
            rows,
            torch.tensor(bags.begins),
            mode="mean" if bags.is_mean else "sum",
            include_last_offset=True,
        )
        return pooled[nodes]

    def _loss(
        self,
        src_rows: torch.Tensor,
        dst_rows: torch.Tensor,
        table: list[torch.Tensor],
        vectors: list[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        config, model, n = self.config, self.model, len(self.src)
        order = self.edges.order.astype(np.int64)
        order = order[np.argsort(self.relation[order], kind="stable")]
        self.src, self.dst = self.src[order], self.dst[order]
        relation, weight = self.relation[order].tolist(), torch.tensor(self.weight[order])
        weight = weight * torch.tensor(model.weights[relation])
        has_all = bool(model.all_negatives[relation[0]])
        src, dst = self._pools(has_all)
        src_x = self._take(src_rows, src, NO_BAGS)
        dst_x = self._take(dst_rows, dst, self.dst_bags)
        if vectors:
            src_x, dst_x = src_x + vectors[0], dst_x + vectors[-1]

        apply = partial(self._apply, table)
        if config.reciprocal:
            there, back = self._masks(n)
            tails = score(config, apply(0, src_x[:n], relation) * there, dst_x)
            heads = score(config, apply(1, dst_x[:n], relation) * back, src_x)
        else:
            moved = apply(0, dst_x, [relation[0]] * len(dst))
            tails = score(config, src_x[:n], moved)
            heads = score(config, moved[:n], src_x)
        use_batch = config.num_batch_negatives > 0 and not has_all
        biases = (0.0, 0.0) if has_all else (DST_BIAS, SRC_BIAS)
        total = (row_losses(config, tails, dst, biases[0], use_batch) * weight).sum()
        total = (
            total + (row_losses(config, heads, src, biases[1], use_batch) * weight).sum()
        )
        of_relations = self._relation_losses(src_x[:n], dst_x[:n], table, relation)
        total = total + config.relation_prediction * (of_relations * weight).sum()
        return total, config.regularizer * self._penalty(
            src_x[:n], dst_x[:n], table, relation, weight
        )

    def _apply(
        self, table: list[torch.Tensor], side: int, x: torch.Tensor, codes: list[int]
    ) -> torch.Tensor:
        """Apply to every row the operator of its relation."""
        rows, model = [], self.model
        for row, r in zip(x, codes, strict=True):
            low, high = model.offsets[r], model.offsets[r + 1]
            rows.append(operate(int(model.codes[r]), table[side][low:high], row[None]))
        return torch.cat(rows)

    def _relation_losses(
        self,
        src_x: torch.Tensor,
        dst_x: torch.Tensor,
        table: list[torch.Tensor],
        relation: list[int],
    ) -> torch.Tensor:
        """Return the losses of every edge's relation among all, of both ways."""
        n, num_relations = len(relation), len(self.model.offsets) - 1
        every = [(side, r) for side in range(len(table)) for r in range(num_relations)]

        def losses(x: torch.Tensor, y: torch.Tensor, first: int) -> torch.Tensor:
            moved = [self._apply(table, side, x, [r] * n) for side, r in every]
            scores = torch.stack([(rows * y).sum(1) for rows in moved], dim=1)
            own = torch.tensor([first + r for r in relation])
            return torch.nn.functional.cross_entropy(scores, own, reduction="none")

        if len(table) == 1:
            return 2 * losses(dst_x, src_x, 0)
        return losses(src_x, dst_x, 0) + losses(dst_x, src_x, num_relations)

    def _penalty(
        self,
        src_x: torch.Tensor,
        dst_x: torch.Tensor,
        table: list[torch.Tensor],
        relation: list[int],
        weight: torch.Tensor,
    ) -> torch.Tensor:
        config, model = self.config, self.model
        kind, is_complex = config.regularizer_kind, model.has_complex
        ends = penalty(kind, src_x, is_complex) + penalty(kind, dst_x, is_complex)
        if kind == "dura":
            for side, x in enumerate((src_x, dst_x)):
                compared = self._apply(table, side, x, relation)
                compared = compared * self._masks(len(relation))[side]
                ends = ends + penalty(kind, compared, is_complex)
            return (ends * weight).sum()
        total = 2 * (ends * weight).sum()
        for r, w in zip(relation, weight, strict=True):
            low, high = model.offsets[r], model.offsets[r + 1]
            if model.codes[r] == OPERATOR_CODES["rotation"]:
                continue  # of length one, always
            is_complex = model.codes[r] == OPERATOR_CODES["complex_diagonal"]
            for p in table if config.reciprocal else [table[0], table[0]]:
                total = total + w * penalty(kind, p[low:high], bool(is_complex))
        return total


def check(step: Step) -> None:
    """Assert that kernel and torch leave the same."""
    got, wanted = step.run_kernel(), step.run_torch()
    np.testing.assert_allclose(got.loss, wanted.loss, rtol=1e-4)
    np.testing.assert_allclose(got.src_rows, wanted.src_rows, atol=2e-4)
    np.testing.assert_allclose(got.dst_rows, wanted.dst_rows, atol=2e-4)
    np.testing.assert_allclose(got.operators, wanted.operators, atol=2e-4)
    for vector, other in zip(got.globals, wanted.globals, strict=True):
        np.testing.assert_allclose(vector, other, atol=2e-4)
