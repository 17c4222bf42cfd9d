"""One optimiser step against torch autograd: every operator, comparator and loss."""

from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from graphsys.core.types import EdgeType
from graphsys.embedding.config import EmbeddingConfig, RelationConfig
from graphsys.embedding.model import (
    COMPARATOR_CODES,
    LOSS_CODES,
    OPERATOR_CODES,
    RelationSet,
    relation_sets,
)
from graphsys.embedding.schedule import cut_bucket
from graphsys.kernels.cpu.embedding_rows import Tables
from graphsys.kernels.cpu.embedding_scores import Objective
from graphsys.kernels.cpu.embedding_step import Settings, train_batches
from graphsys.kernels.cpu.hashing import mix64

Floats = npt.NDArray[np.float32]
DIM, NUM_SRC, NUM_DST, KEY = 6, 7, 5, 11


class OneEdgeType:
    """The part of a graph that the model reads: one edge type with three relations."""

    edge_types = [EdgeType("node", "edge", "node")]  # noqa: RUF012

    def edge_type_name(self, edge_type: EdgeType) -> str:
        return edge_type.relation

    def relations(self, edge_type: EdgeType) -> list[str] | None:
        return ["a", "b", "c"]


def operate(code: int, p: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    half = DIM // 2
    if code == OPERATOR_CODES["identity"]:
        return x
    if code == OPERATOR_CODES["translation"]:
        return x + p
    if code == OPERATOR_CODES["diagonal"]:
        return x * p
    if code == OPERATOR_CODES["linear"]:
        return x @ p.reshape(DIM, DIM).T
    z = torch.complex(x[:, :half], x[:, half:]) * torch.complex(p[:half], p[half:])
    return torch.cat([z.real, z.imag], dim=1)


def compare(comparator: str, q: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
    if comparator == "dot":
        return q @ c.T
    if comparator == "cos":
        return torch.nn.functional.normalize(q) @ torch.nn.functional.normalize(c).T
    square = ((q[:, None] - c[None]) ** 2).sum(-1)
    return -square if comparator == "squared_l2" else -square.sqrt()


def row_losses(
    config: EmbeddingConfig, scores: torch.Tensor, nodes: list[int], bias: float
) -> torch.Tensor:
    losses = []
    size = len(scores)
    for i, row in enumerate(scores):
        allowed = [
            j
            for j in range(len(row))
            if nodes[j] != nodes[i] and (j >= size or config.num_batch_negatives > 0)
        ]
        shift = torch.tensor([bias if j >= size else 0.0 for j in allowed])
        negatives = row[allowed] + shift
        if config.loss == "softmax":
            losses.append(
                torch.logsumexp(torch.cat([row[i : i + 1], negatives]), 0) - row[i]
            )
        elif config.loss == "logistic":
            # masked ones count in the mean, as in PBG
            is_full = config.num_batch_negatives > 0 or config.comparator[-2:] == "l2"
            share = len(row) if is_full else len(row) - size
            softplus = torch.nn.functional.softplus
            losses.append(softplus(-row[i]) + softplus(negatives).sum() / share)
        else:
            losses.append(torch.relu(config.margin + negatives - row[i]).sum())
    return torch.stack(losses)


def cubic(x: torch.Tensor, is_complex: bool) -> torch.Tensor:
    if not is_complex:
        return (x.abs() ** 3).sum(-1)
    half = x.shape[-1] // 2
    return ((x[..., :half] ** 2 + x[..., half:] ** 2) ** 1.5).sum(-1)


def adagrad(rows: torch.Tensor, state: Floats, lr: float, by_row: bool) -> Floats:
    assert rows.grad is not None
    g = rows.grad.numpy()
    square = (g**2).mean(1) if by_row else g**2
    new = state + square
    root = np.sqrt(new) + 1e-10
    return np.asarray(rows.detach().numpy() - lr * g / (root[:, None] if by_row else root))


class Step:
    """A bucket of a few edges, trained once by the kernel and once by torch."""

    def __init__(self, config: EmbeddingConfig, *, is_shared: bool) -> None:
        rng = np.random.default_rng(3)
        self.config, self.is_shared = config, is_shared
        (self.model,) = relation_sets(OneEdgeType(), config)
        num_dst = NUM_SRC if is_shared else NUM_DST
        self.src_rows = rng.normal(size=(NUM_SRC, DIM)).astype(np.float32)
        self.dst_rows = (
            self.src_rows
            if is_shared
            else rng.normal(size=(num_dst, DIM)).astype(np.float32)
        )
        self.src_state = rng.random(NUM_SRC).astype(np.float32)
        self.dst_state = (
            self.src_state if is_shared else rng.random(num_dst).astype(np.float32)
        )
        self.table = self.model.initial()
        self.table += rng.normal(size=self.table.shape).astype(np.float32)
        self.table[1::2] **= 2
        size = 6
        self.src = rng.integers(0, NUM_SRC, size).astype(np.uint32)
        self.dst = rng.integers(0, num_dst, size).astype(np.uint32)
        self.relation = np.sort(rng.integers(0, 3, size)).astype(np.uint32)
        if not config.reciprocal:
            self.relation[:] = 1
        self.weight = rng.random(size).astype(np.float32)
        self.edges = cut_bucket(
            self.src, self.dst, self.relation, self.weight, self.model.weights, config, ()
        )

    def settings(self) -> Settings:
        config = self.config
        return Settings(
            num_uniform=config.num_uniform_negatives,
            use_batch=config.num_batch_negatives > 0,
            objective=Objective(
                COMPARATOR_CODES[config.comparator],
                LOSS_CODES[config.loss],
                np.float32(config.margin),
            ),
            src_bias=np.float32(0.3),
            dst_bias=np.float32(0.7),
            lr=np.float32(config.lr),
            relation_lr=np.float32(0.02),
            n3=np.float32(config.regulariser),
            key=np.uint64(KEY),
        )

    def run_kernel(self) -> tuple[float, Floats, Floats, Floats]:
        src_rows, src_state = self.src_rows.copy(), self.src_state.copy()
        dst_rows, dst_state = src_rows, src_state
        if not self.is_shared:
            dst_rows, dst_state = self.dst_rows.copy(), self.dst_state.copy()
        table, losses = self.table.copy(), np.zeros(1)
        train_batches(
            Tables(src_rows, src_state, dst_rows, dst_state, self.is_shared),
            self.model.operators(table),
            self.edges, self.settings(), 0, 1, 1,
            np.full(NUM_SRC + len(dst_rows), -1, dtype=np.int32), losses,
        )  # fmt: skip
        return float(losses[0]), src_rows, dst_rows, table

    def run_torch(self) -> tuple[float, Floats, Floats, Floats]:
        src_rows = torch.tensor(self.src_rows, requires_grad=True)
        dst_rows = src_rows
        if not self.is_shared:
            dst_rows = torch.tensor(self.dst_rows, requires_grad=True)
        table = [torch.tensor(row, requires_grad=True) for row in self.table[::2]]
        total, penalty = self._loss(src_rows, dst_rows, table)
        (total + penalty).backward()  # type: ignore[no-untyped-call]  # torch's
        lr = self.config.lr
        new_src = adagrad(src_rows, self.src_state, lr, by_row=True)
        new_dst = (
            new_src
            if self.is_shared
            else adagrad(dst_rows, self.dst_state, lr, by_row=True)
        )
        new_table = [
            adagrad(p, self.table[2 * k + 1], 0.02, by_row=False)
            if p.numel()
            else np.empty(0)
            for k, p in enumerate(table)
        ]
        return (
            float(total.detach()),
            new_src,
            new_dst,
            np.stack(new_table),
        )

    def _pools(self) -> tuple[list[int], list[int]]:
        key = mix64(np.uint64(KEY))  # of chunk 0
        src, dst = self.src.tolist(), self.dst.tolist()
        for u in range(self.config.num_uniform_negatives):
            with np.errstate(over="ignore"):
                src.append(int(mix64(np.uint64(key) + np.uint64(2 * u))) % NUM_SRC)
                dst.append(
                    int(mix64(np.uint64(key) + np.uint64(2 * u + 1))) % len(self.dst_rows)
                )
        return src, dst

    def _loss(
        self, src_rows: torch.Tensor, dst_rows: torch.Tensor, table: list[torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        config, model, n = self.config, self.model, len(self.src)
        order = self.edges.order.astype(np.int64)
        order = order[np.argsort(self.relation[order], kind="stable")]
        self.src, self.dst = self.src[order], self.dst[order]
        relation, weight = self.relation[order].tolist(), torch.tensor(self.weight[order])
        weight = weight * torch.tensor(model.weights[relation])
        src, dst = self._pools()
        src_x, dst_x = src_rows[src], dst_rows[dst]

        def apply(side: int, x: torch.Tensor, codes: list[int]) -> torch.Tensor:
            rows = []
            for row, r in zip(x, codes, strict=True):
                low, high = model.offsets[r], model.offsets[r + 1]
                rows.append(operate(int(model.codes[r]), table[side][low:high], row[None]))
            return torch.cat(rows)

        if config.reciprocal:
            tails = compare(config.comparator, apply(0, src_x[:n], relation), dst_x)
            heads = compare(config.comparator, apply(1, dst_x[:n], relation), src_x)
        else:
            moved = apply(0, dst_x, [relation[0]] * len(dst))
            tails = compare(config.comparator, src_x[:n], moved)
            heads = compare(config.comparator, moved[:n], src_x)
        total = (row_losses(config, tails, dst, 0.7) * weight).sum()
        total = total + (row_losses(config, heads, src, 0.3) * weight).sum()
        is_complex = model.has_complex
        ends = cubic(src_x[:n], is_complex) + cubic(dst_x[:n], is_complex)
        penalty = 2 * (ends * weight).sum()
        for r, w in zip(relation, weight, strict=True):
            low, high = model.offsets[r], model.offsets[r + 1]
            code = int(model.codes[r]) == OPERATOR_CODES["complex_diagonal"]
            for p in table if config.reciprocal else [table[0], table[0]]:
                penalty = penalty + w * cubic(p[low:high], code)
        return total, config.regulariser * penalty


def check(config: EmbeddingConfig, *, is_shared: bool) -> None:
    step = Step(config, is_shared=is_shared)
    loss, src_rows, dst_rows, table = step.run_kernel()
    wanted_loss, wanted_src, wanted_dst, wanted_table = step.run_torch()
    assert loss == pytest.approx(wanted_loss, rel=1e-4)
    np.testing.assert_allclose(src_rows, wanted_src, atol=2e-4)
    np.testing.assert_allclose(dst_rows, wanted_dst, atol=2e-4)
    np.testing.assert_allclose(table[::2], wanted_table, atol=2e-4)


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize(
    ("operator", "comparator", "loss"),
    list(product(OPERATOR_CODES, COMPARATOR_CODES, LOSS_CODES)),
)
def test_step_equals_autograd(
    operator: Any, comparator: Any, loss: Any, reciprocal: bool
) -> None:
    config = EmbeddingConfig(
        dim=DIM,
        operator=operator,
        comparator=comparator,
        loss=loss,
        reciprocal=reciprocal,
        margin=0.5,
        num_batch_negatives=8,
        batch_size=8,
        num_uniform_negatives=4,
        regulariser=0.05,
    )
    check(config, is_shared=False)


@pytest.mark.parametrize("comparator", list(COMPARATOR_CODES))
@pytest.mark.parametrize("reciprocal", [False, True])
def test_step_without_batch_negatives_equals_autograd(
    comparator: Any, reciprocal: bool
) -> None:
    config = EmbeddingConfig(
        dim=DIM,
        operator="diagonal",
        comparator=comparator,
        reciprocal=reciprocal,
        num_batch_negatives=0,
        batch_size=8,
        num_uniform_negatives=4,
    )
    check(config, is_shared=False)


def test_step_on_one_partition_sums_the_gradients_of_both_sides() -> None:
    config = EmbeddingConfig(
        dim=DIM,
        operator="complex_diagonal",
        reciprocal=True,
        num_batch_negatives=8,
        batch_size=8,
        num_uniform_negatives=3,
        regulariser=0.1,
    )
    check(config, is_shared=True)


def test_relations_with_different_operators_share_a_chunk() -> None:
    config = EmbeddingConfig(
        dim=DIM,
        reciprocal=True,
        num_batch_negatives=8,
        batch_size=8,
        num_uniform_negatives=3,
        relations={
            "a": RelationConfig(operator="linear", weight=0.5),
            "b": RelationConfig(operator="translation", weight=2.0),
            "*": RelationConfig(operator="complex_diagonal"),
        },
    )
    check(config, is_shared=True)


def test_initial_operators_leave_rows_as_they_are() -> None:
    operators: dict[Any, int] = dict(OPERATOR_CODES)
    for name, code in operators.items():
        config = EmbeddingConfig(dim=DIM, operator=name)
        (model,) = relation_sets(OneEdgeType(), config)
        assert isinstance(model, RelationSet)
        x = torch.randn(3, DIM)
        p = torch.tensor(model.initial()[0, : model.offsets[1]])
        torch.testing.assert_close(operate(code, p, x), x)
