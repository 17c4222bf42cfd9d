"""One optimizer step against torch autograd: every operator, comparator and loss."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch

from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.model import relation_sets
from graphsys.embedding.type_configs import RelationConfig
from graphsys.kernels.cpu.embedding.bags import make_bags
from tests import embedding_oracle
from tests.embedding_codes import COMPARATOR_CODES, LOSS_CODES, OPERATOR_CODES
from tests.embedding_oracle import (
    DIM,
    OneEdgeType,
    Step,
    adagrad,
    check,
    dropped,
    operate,
    score,
)

BAGS = [[0, 3], [], [2], [1, 1, 8], [3, 4, 5, 6, 7]]


def settings(**changes: Any) -> EmbeddingConfig:
    usual: dict[str, Any] = {
        "dim": DIM,
        "operator": "diagonal",
        "margin": 0.5,
        "num_batch_negatives": 8,
        "batch_size": 8,
        "num_uniform_negatives": 4,
    }
    return EmbeddingConfig(**usual | changes)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize(
    ("operator", "comparator", "loss"),
    list(product(OPERATOR_CODES, COMPARATOR_CODES, LOSS_CODES)),
)
def test_step_equals_autograd(
    operator: Any, comparator: Any, loss: Any, reciprocal: bool, bias: bool
) -> None:
    config = settings(
        operator=operator,
        comparator=comparator,
        loss=loss,
        reciprocal=reciprocal,
        bias=bias,
        regularizer=0.05,
    )
    check(Step(config))


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("loss", list(LOSS_CODES))
@pytest.mark.parametrize("comparator", list(COMPARATOR_CODES))
@pytest.mark.parametrize("reciprocal", [False, True])
def test_step_without_batch_negatives_equals_autograd(
    comparator: Any, reciprocal: bool, loss: Any, bias: bool
) -> None:
    config = settings(
        comparator=comparator,
        loss=loss,
        reciprocal=reciprocal,
        bias=bias,
        num_batch_negatives=0,
    )
    check(Step(config, is_weighted=False))


@pytest.mark.parametrize("loss", list(LOSS_CODES))
@pytest.mark.parametrize("comparator", list(COMPARATOR_CODES))
@pytest.mark.parametrize("reciprocal", [False, True])
def test_all_negatives_are_the_nodes_of_the_partition(
    comparator: Any, reciprocal: bool, loss: Any
) -> None:
    everything = {"*": RelationConfig(all_negatives=True)}
    config = settings(
        comparator=comparator, loss=loss, reciprocal=reciprocal, relations=everything
    )
    check(Step(config))


class FullSoftmax(Step):
    """A step whose loss torch takes over all nodes at once: every edge is two labels."""

    def _loss(
        self,
        src_rows: torch.Tensor,
        dst_rows: torch.Tensor,
        table: list[torch.Tensor],
        vectors: list[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        config, offsets = self.config, self.model.offsets
        total = torch.zeros(())
        for e in range(len(self.src)):
            r, code = int(self.relation[e]), int(self.model.codes[self.relation[e]])
            src, dst = self.src[e].astype(np.int64), self.dst[e].astype(np.int64)
            own, back = (p[offsets[r] : offsets[r + 1]] for p in (table[0], table[-1]))
            if config.reciprocal:
                tails = score(config, operate(code, own, src_rows[[src]]), dst_rows)
                heads = score(config, operate(code, back, dst_rows[[dst]]), src_rows)
            else:
                tails = score(config, src_rows[[src]], operate(code, own, dst_rows))
                heads = score(config, operate(code, own, dst_rows[[dst]]), src_rows)
            entropy = torch.nn.functional.cross_entropy
            both = entropy(tails, torch.tensor([dst])) + entropy(heads, torch.tensor([src]))
            total = total + float(self.weight[e]) * both
        return total, torch.zeros(())


# a node that is compared with itself has no gradient of its distance in torch
@pytest.mark.parametrize(
    ("comparator", "is_shared"), [*product(COMPARATOR_CODES, [False]), ("dot", True)]
)
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("operator", list(OPERATOR_CODES))
def test_all_nodes_alone_are_torchs_cross_entropy(
    operator: Any, reciprocal: bool, comparator: Any, is_shared: bool
) -> None:
    config = settings(
        operator=operator,
        comparator=comparator,
        reciprocal=reciprocal,
        num_batch_negatives=0,
        num_uniform_negatives=0,
        relations={"*": RelationConfig(all_negatives=True)},
    )
    check(FullSoftmax(config, is_shared=is_shared))


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("all_negatives", [False, True])
def test_every_number_of_a_row_may_have_a_state_of_its_own(
    is_shared: bool, all_negatives: bool
) -> None:
    config = settings(
        optimizer="adagrad",
        reciprocal=True,
        relations={"*": RelationConfig(all_negatives=all_negatives)},
        regularizer=0.05,
    )
    check(Step(config, is_shared=is_shared))


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("all_negatives", [False, True])
def test_adams_step_is_torchs_sparse_adam_of_each_row(
    is_shared: bool, all_negatives: bool
) -> None:
    config = settings(
        optimizer="adam",
        lr=0.03,
        reciprocal=True,
        relations={"*": RelationConfig(all_negatives=all_negatives)},
        regularizer=0.05,
    )
    check(Step(config, is_shared=is_shared))


def test_adam_moves_rows_of_features_too() -> None:
    begins = np.cumsum([0, *map(len, BAGS)])
    features = np.concatenate([np.array(bag, dtype=np.uint32) for bag in BAGS])
    config = settings(optimizer="adam", lr=0.03, reciprocal=True)
    check(Step(config, dst_bags=make_bags(begins, features, is_mean=True)))


@pytest.mark.parametrize("comparator", list(COMPARATOR_CODES))
@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("num_batch", [0, 8])
def test_numbers_of_a_questions_row_are_left_out_there_and_back(
    comparator: Any, is_shared: bool, num_batch: int
) -> None:
    config = settings(
        operator="complex_diagonal",
        comparator=comparator,
        reciprocal=True,
        dropout=0.4,
        num_batch_negatives=num_batch,
        regularizer=0.05,
    )
    check(Step(config, is_shared=is_shared))


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("operator", [it for it in OPERATOR_CODES if it != "identity"])
def test_an_edges_relation_is_compared_with_all_relations(
    operator: Any, reciprocal: bool, is_shared: bool
) -> None:
    config = settings(
        operator=operator,
        reciprocal=reciprocal,
        relation_prediction=0.7,
        regularizer=0.05,
        num_batch_negatives=0,
        relations={
            "*": RelationConfig(operator=operator),
            "c": RelationConfig(operator=operator, lr=0.5),
        },
    )
    check(Step(config, is_shared=is_shared))


def test_relations_of_different_operators_are_compared() -> None:
    operators = {"a": "diagonal", "b": "identity", "c": "linear"}
    config = settings(
        reciprocal=True,
        relation_prediction=0.7,
        relations={name: RelationConfig(operator=it) for name, it in operators.items()},
    )
    check(Step(config))


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_as_many_numbers_are_left_out_as_said_and_the_mean_stays(rate: float) -> None:
    rows, same = np.ones((2, 400, 50), dtype=np.float32)
    dropped(rows, np.float32(rate), np.uint64(1))
    dropped(same, np.float32(rate), np.uint64(1))
    assert np.array_equal(rows, same)
    kept = rows != 0
    np.testing.assert_allclose(rows[kept], 1 / (1 - rate), rtol=1e-6)
    for axis in (0, 1):  # of every row and column, not of few
        share = 1 - kept.mean(axis=axis)
        sigma = np.sqrt(rate * (1 - rate) / kept.shape[axis])
        assert abs(share - rate).max() < 5 * sigma
    dropped(same, np.float32(rate), np.uint64(2))
    assert (same != 0).mean() == pytest.approx((1 - rate) ** 2, rel=0.1)  # independent


def test_the_oracle_steps_as_adagrad_of_torch_does() -> None:
    rows = torch.tensor(np.random.default_rng(0).normal(size=(3, 4)), requires_grad=True)
    before = rows.detach().numpy().copy()
    step = torch.optim.Adagrad([rows], lr=0.3, initial_accumulator_value=0.5)
    (rows**3).sum().backward()  # type: ignore[no-untyped-call]  # torch's
    step.step()
    other = torch.tensor(before, requires_grad=True)
    (other**3).sum().backward()  # type: ignore[no-untyped-call]  # torch's
    found = adagrad(other, np.full((3, 4), 0.5, np.float32), 0.3, by_row=False)
    np.testing.assert_allclose(found, rows.detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize("kind", ["n3", "l2"])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("operator", ["complex_diagonal", "rotation", "affine"])
def test_step_on_one_partition_sums_the_gradients_of_both_sides(
    operator: Any, reciprocal: bool, kind: Any
) -> None:
    config = settings(
        operator=operator,
        reciprocal=reciprocal,
        num_uniform_negatives=3,
        regularizer=0.1,
        regularizer_kind=kind,
    )
    check(Step(config, is_shared=True))


@pytest.mark.parametrize("dropout", [0.0, 0.25])
@pytest.mark.parametrize("operator", ["complex_diagonal", "linear", "translation"])
def test_dura_penalizes_questions_as_they_are_compared(
    operator: Any, dropout: float
) -> None:
    config = settings(
        operator=operator,
        reciprocal=True,
        num_uniform_negatives=3,
        regularizer=0.1,
        regularizer_kind="dura",
        dropout=dropout,
    )
    check(Step(config))


@pytest.mark.parametrize("is_shared", [False, True])
def test_relations_with_different_operators_share_a_chunk(is_shared: bool) -> None:
    config = settings(
        reciprocal=True,
        relations={
            "a": RelationConfig(operator="linear", weight=0.5, lr=0.3),
            "b": RelationConfig(operator="translation", weight=2.0),
            "*": RelationConfig(operator="complex_diagonal", lr=0.01),
        },
    )
    check(Step(config, is_shared=is_shared))


@pytest.mark.parametrize("is_shared", [False, True])
@pytest.mark.parametrize("comparator", list(COMPARATOR_CODES))
@pytest.mark.parametrize("reciprocal", [False, True])
def test_a_global_vector_is_a_part_of_every_row_of_its_type(
    reciprocal: bool, comparator: Any, is_shared: bool
) -> None:
    config = settings(
        comparator=comparator,
        reciprocal=reciprocal,
        global_embedding=True,
        regularizer=0.05,
    )
    check(Step(config, is_shared=is_shared))


@pytest.mark.parametrize("has_global", [False, True])
@pytest.mark.parametrize("is_mean", [False, True])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("all_negatives", [False, True])
def test_rows_are_pooled_from_features_as_torch_does(
    reciprocal: bool, is_mean: bool, has_global: bool, all_negatives: bool
) -> None:
    begins = np.cumsum([0, *map(len, BAGS)])
    features = np.concatenate([np.array(bag, dtype=np.uint32) for bag in BAGS])
    config = settings(
        reciprocal=reciprocal,
        global_embedding=has_global,
        relations={"*": RelationConfig(all_negatives=all_negatives)},
        regularizer=0.05,
    )
    check(Step(config, dst_bags=make_bags(begins, features, is_mean=is_mean)))


@pytest.mark.parametrize("name", list(OPERATOR_CODES))
def test_initial_operators_leave_rows_as_they_are(name: Any) -> None:
    (model,) = relation_sets(OneEdgeType(), settings(operator=name))
    x = torch.randn(3, DIM)
    p = torch.tensor(model.initial()[0, : model.offsets[1]])
    torch.testing.assert_close(operate(OPERATOR_CODES[name], p, x), x)


@pytest.mark.parametrize("name", ["rotation", "linear", "complex_diagonal", "diagonal"])
def test_random_operators_keep_lengths(name: Any) -> None:
    config = settings(operator=name, operator_init="random")
    (model,) = relation_sets(OneEdgeType(), config)
    x = torch.randn(3, DIM)
    p = torch.tensor(model.initial()[0, : model.offsets[1]])
    y = operate(OPERATOR_CODES[name], p, x)
    torch.testing.assert_close(y.norm(dim=1), x.norm(dim=1))
    assert not torch.allclose(y, x)


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("comparator", list(COMPARATOR_CODES))
def test_step_of_more_than_a_vector_equals_autograd(
    comparator: Any, reciprocal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in {"DIM": 38, "NUM_SRC": 70, "NUM_EDGES": 21}.items():
        monkeypatch.setattr(embedding_oracle, name, size)
    config = EmbeddingConfig(
        dim=38,
        operator="complex_diagonal" if reciprocal else "identity",
        comparator=comparator,
        reciprocal=reciprocal,
        num_batch_negatives=32,
        batch_size=32,
        num_uniform_negatives=30,
    )
    check(Step(config))
