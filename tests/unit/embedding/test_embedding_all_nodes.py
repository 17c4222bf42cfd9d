"""Modes 1vsall and kvsall: a step against torch's losses over all nodes, and trainings."""

import dataclasses
from collections import defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from graphsys.core.config import from_mapping
from graphsys.core.errors import ConfigError
from graphsys.datasets import ingest
from graphsys.embedding import EmbeddingConfig, evaluate, load_config, train
from graphsys.graph.csr import read_only
from graphsys.kernels.cpu.embedding.chunk import ASKS_DST, ASKS_SRC
from graphsys.kernels.cpu.embedding.known import Known
from graphsys.kernels.cpu.embedding.step import Settings
from graphsys.storage import Graph
from tests import embedding_oracle
from tests.embedding_codes import COMPARATOR_CODES, OPERATOR_CODES
from tests.embedding_oracle import DIM, Step, check, operate, penalty, score

MakeRing = Callable[[int], Graph]
Numbers = npt.NDArray[np.uint32]
ENDS = {ASKS_DST: "destinations", ASKS_SRC: "sources"}


def known_of(
    given: Numbers, relation: Numbers, answers: Numbers, sizes: list[int]
) -> Known:
    """Return edges as the index of the nodes that are given has them."""
    order = np.lexsort((relation, answers, given))
    indptr = np.searchsorted(given[order], np.arange(sizes[0] + 1)).astype(np.uint32)
    return Known(
        indptr=read_only(indptr),
        indices=read_only(answers[order]),
        relation=read_only(relation[order].astype(np.uint16)),
        first=0,
        num_nodes=sizes[1],
    )


class AllNodesStep(Step):
    """A step whose loss torch takes over all nodes at once.

    Args:
        config: The settings.
        batch: Which batch of the bucket is trained.
        is_shared: Whether both ends are one partition.
        is_weighted: Whether edges have weights.
    """

    def __init__(self, config: EmbeddingConfig, batch: int = 0, **keys: Any) -> None:
        super().__init__(config, **keys)
        batches = self.edges.batches[batch : batch + 2]
        self.edges = self.edges._replace(batches=np.ascontiguousarray(batches))
        (self.chunk,) = range(*batches.tolist())
        asked = self.edges.asked
        self.asked = int(asked[self.chunk]) if len(asked) else ASKS_DST | ASKS_SRC

    def settings(self) -> Settings:
        """Return the kernel's settings, with the edges as known answers."""
        candidates = super().settings().candidates
        if self.config.reads_known_edges:
            sizes = [len(self.src_rows), self.num_dst]
            candidates = candidates._replace(
                src_known=known_of(self.dst, self.relation, self.src, sizes[::-1]),
                dst_known=known_of(self.src, self.relation, self.dst, sizes),
            )
        return super().settings()._replace(candidates=candidates, use_batch=False)

    def questions(self, side: int) -> list[tuple[int, int, list[int], float]]:
        """Return given node, relation, answers and weight of every question one way."""
        given, answers = self.src.tolist(), self.dst.tolist()
        if side == ASKS_SRC:
            given, answers = answers, given
        edges = list(zip(given, self.relation.tolist(), answers, strict=True))
        if self.config.mode == "1vsall":
            weights = self.weight.tolist()
            return [(g, r, [a], w) for (g, r, a), w in zip(edges, weights, strict=True)]
        found = defaultdict(list)
        for g, r, a in edges:
            found[g, r].append(a)
        is_weighed = self.config.weigh_by_answers
        return [
            (g, r, list(dict.fromkeys(every)), float(len(every)) if is_weighed else 1.0)
            for (g, r), every in found.items()
        ]

    def _loss(
        self,
        src_rows: torch.Tensor,
        dst_rows: torch.Tensor,
        table: list[torch.Tensor],
        vectors: list[torch.Tensor],
    ) -> tuple[torch.Tensor, torch.Tensor]:
        config, offsets = self.config, self.model.offsets
        total = 0.0 * torch.stack([p.sum() for p in table]).sum()  # of a side not asked
        for side in ENDS:
            for given, r, answers, weight in (
                self.questions(side) if side & self.asked else ()
            ):
                code = int(self.model.codes[r])
                p = table[side == ASKS_SRC and config.reciprocal][
                    offsets[r] : offsets[r + 1]
                ]
                if side == ASKS_SRC:
                    scores = score(config, operate(code, p, dst_rows[[given]]), src_rows)
                elif config.reciprocal:
                    scores = score(config, operate(code, p, src_rows[[given]]), dst_rows)
                else:
                    scores = score(config, src_rows[[given]], operate(code, p, dst_rows))
                total = total + weight * self._of_question(scores, answers)
        return total, config.regularizer * self._questions_penalty(
            src_rows, dst_rows, table
        )

    def _of_question(self, scores: torch.Tensor, answers: list[int]) -> torch.Tensor:
        smoothing, labels = self.config.label_smoothing, torch.zeros_like(scores)
        labels[0, answers] = 1.0
        if self.config.loss == "softmax":
            return torch.nn.functional.cross_entropy(
                scores, labels / labels.sum(), label_smoothing=smoothing
            )
        labels = (1 - smoothing) * labels + smoothing / labels.numel()
        return torch.nn.functional.binary_cross_entropy_with_logits(
            scores, labels, reduction="sum"
        )

    def _questions_penalty(
        self, src_rows: torch.Tensor, dst_rows: torch.Tensor, table: list[torch.Tensor]
    ) -> torch.Tensor:
        """Return the penalty on the operator and an edge of each question."""
        config, model, total = self.config, self.model, torch.zeros(())
        if not config.regularizer:
            return total
        low, high = self.edges.chunks[self.chunk]
        kind, is_complex = config.regularizer_kind, model.has_complex
        edges = self.edges
        for e in edges.order[low:high].tolist():
            r = int(edges.relation[e])
            weight = float(edges.weight[e]) if len(edges.weight) else 1.0
            code = int(model.codes[r])
            for side in ENDS:
                if side & self.asked:
                    p = table[side == ASKS_SRC and config.reciprocal]
                    own = p[model.offsets[r] : model.offsets[r + 1]]
                    ends = (src_rows[int(edges.src[e])], dst_rows[int(edges.dst[e])])
                    if kind == "dura":
                        given = ends[side == ASKS_SRC][None]
                        own = 2 * penalty(kind, operate(code, own, given), is_complex)
                        for x in ends:
                            own = own + penalty(kind, x, is_complex)
                        total = total + weight * own.sum() / 2
                        continue
                    for x in (own, *ends):
                        total = total + weight * penalty(kind, x, is_complex)
        return total


def settings(**changes: Any) -> EmbeddingConfig:
    usual: dict[str, Any] = {"dim": DIM, "operator": "diagonal", "batch_size": 99}
    return EmbeddingConfig(**usual | changes)


@pytest.fixture
def many_edges(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have questions with several answers, and answers of several questions."""
    monkeypatch.setattr(embedding_oracle, "NUM_EDGES", 30)


# a node that is compared with itself has no gradient of its distance in torch
SIDES = [*product(COMPARATOR_CODES, [False]), ("dot", True)]


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize(("comparator", "is_shared"), SIDES)
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("operator", list(OPERATOR_CODES))
def test_a_step_of_1vsall_is_torchs_cross_entropy(
    operator: Any, reciprocal: bool, comparator: Any, is_shared: bool, smoothing: float
) -> None:
    config = settings(
        mode="1vsall",
        operator=operator,
        comparator=comparator,
        reciprocal=reciprocal,
        label_smoothing=smoothing,
    )
    check(AllNodesStep(config, is_shared=is_shared))


@pytest.mark.usefixtures("many_edges")
@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize(("loss", "smoothing"), [("softmax", 0.0), ("logistic", 0.1)])
@pytest.mark.parametrize(("comparator", "is_shared"), SIDES)
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("operator", list(OPERATOR_CODES))
def test_a_step_of_kvsall_is_torchs_loss_of_each_question_once(
    operator: Any,
    reciprocal: bool,
    comparator: Any,
    is_shared: bool,
    loss: Any,
    smoothing: float,
    batch: int,
) -> None:
    config = settings(
        mode="kvsall",
        operator=operator,
        comparator=comparator,
        reciprocal=reciprocal,
        loss=loss,
        label_smoothing=smoothing,
    )
    step = AllNodesStep(config, batch, is_shared=is_shared, is_weighted=False)
    asked = step.questions(step.asked)
    assert len(asked) < len(step.src), "no question has two answers"
    check(step)


@pytest.mark.usefixtures("many_edges")
@pytest.mark.parametrize("weigh_by_answers", [False, True])
@pytest.mark.parametrize("batch", [0, 1])
@pytest.mark.parametrize(("loss", "smoothing"), [("softmax", 0.3), ("logistic", 0.0)])
@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_a_question_of_kvsall_is_regularized_with_an_edge_that_answers_it(
    reciprocal: bool,
    loss: Any,
    smoothing: float,
    batch: int,
    bias: bool,
    weigh_by_answers: bool,
) -> None:
    config = settings(
        mode="kvsall",
        operator="complex_diagonal",
        reciprocal=reciprocal,
        loss=loss,
        bias=bias,
        label_smoothing=smoothing,
        regularizer=0.05,
        weigh_by_answers=weigh_by_answers,
    )
    check(AllNodesStep(config, batch, is_weighted=False))


@pytest.mark.parametrize("batch", [0, 1])
def test_dura_penalizes_a_question_one_way(batch: int) -> None:
    config = settings(
        mode="kvsall",
        operator="complex_diagonal",
        reciprocal=True,
        regularizer=0.05,
        regularizer_kind="dura",
    )
    check(AllNodesStep(config, batch, is_weighted=False))


def test_questions_weighed_by_their_answers_have_the_loss_of_every_edge(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(embedding_oracle, "NUM_EDGES", 12)  # none of them repeated
    losses = []
    for mode in ("1vsall", "kvsall"):
        config = settings(
            mode=mode,
            operator="complex_diagonal",
            reciprocal=True,
            weigh_by_answers=mode == "kvsall",
        )
        total = 0.0
        for batch in range(1 if mode == "1vsall" else 2):
            step = AllNodesStep(config, batch, is_weighted=False)
            edges = set(zip(step.src, step.relation, step.dst, strict=True))
            assert len(edges) == 12 > len({(g, r) for g, r, *_ in step.questions(ASKS_DST)})
            total += step.run_kernel().loss
        losses.append(total)
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("reciprocal", [False, True])
@pytest.mark.parametrize("mode", ["1vsall", "kvsall"])
@pytest.mark.parametrize("size", [3, 7])
def test_every_question_is_asked_once_an_epoch(
    mode: Any, reciprocal: bool, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_oracle, "NUM_EDGES", 60)
    step = Step(settings(mode=mode, reciprocal=reciprocal, batch_size=size))
    edges, asked = step.edges, []
    for c, (low, high) in enumerate(edges.chunks.tolist()):
        assert 0 < high - low <= size
        members = edges.order[low:high]
        for side in ENDS:
            if len(edges.asked) == 0 or edges.asked[c] & side:
                given = (step.src if side == ASKS_DST else step.dst)[members]
                relations = step.relation[members]
                asked += [(side, *it) for it in zip(given, relations, strict=True)]
    every = [
        (side, *it)
        for side, given in ((ASKS_DST, step.src), (ASKS_SRC, step.dst))
        for it in zip(given, step.relation, strict=True)
    ]
    assert sorted(asked) == sorted(set(every) if mode == "kvsall" else every)


@pytest.mark.parametrize("partitions", [1, 4])
@pytest.mark.parametrize(
    ("mode", "loss", "smoothing"),
    [
        ("1vsall", "softmax", 0.0),
        ("1vsall", "softmax", 0.1),
        ("kvsall", "softmax", 0.0),
        ("kvsall", "logistic", 0.1),
    ],
)
@pytest.mark.parametrize("reciprocal", [False, True])
def test_a_ring_is_learned_from_all_nodes(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    mode: Any,
    loss: Any,
    smoothing: float,
    reciprocal: bool,
    partitions: int,
) -> None:
    config = dataclasses.replace(
        ring_config,
        mode=mode,
        loss=loss,
        label_smoothing=smoothing,
        reciprocal=reciprocal,
        join_partitions=True,
    )
    report = train(make_ring(partitions), config, tmp_path / "run")
    assert evaluate(report.run, split="train")["metrics"]["mrr"] > 0.9


def test_all_nodes_of_umls_rank_better_than_samples(
    shared_data: Path, tmp_path: Path
) -> None:
    ingest(shared_data / "umls", tmp_path / "graph", format="triples")
    small = ["dim=64", "epochs=30", "deterministic=true", "checkpoint_seconds=60"]
    every = ["epochs=100", "batch_size=25", "regularizer=0.1", "lr=0.2", "loss=logistic"]
    found = {}
    for mode, changes in (
        ("sampled", ["relations={}", "num_batch_negatives=50", "num_uniform_negatives=50"]),
        ("1vsall", []),
        ("kvsall", every),
    ):
        overrides = [*small, f"mode={mode}", *changes]
        config = load_config(preset="umls-complex", overrides=overrides)
        train(tmp_path / "graph", config, tmp_path / mode)
        found[mode] = evaluate(tmp_path / mode, split="valid")["metrics"]["mrr"]
    assert found["1vsall"] > found["sampled"] > 0.85
    assert found["kvsall"] > found["sampled"]


def test_a_bucket_asks_only_for_nodes_of_its_partitions(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    config = dataclasses.replace(ring_config, mode="kvsall", epochs=60)
    report = train(make_ring(4), config, tmp_path / "run")
    assert evaluate(report.run, split="train")["metrics"]["mrr"] > 0.7


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mode": "kvsal"}, r"mode: got 'kvsal', expected .*did you mean 'kvsall'"),
        (
            {"mode": "1vsall", "loss": "logistic"},
            "loss: got logistic with mode 1vsall, expected softmax; --set loss=softmax",
        ),
        (
            {"mode": "kvsall", "loss": "ranking"},
            "mode: got kvsall with the loss ranking, expected the loss logistic, soft",
        ),
        ({"label_smoothing": 0.1}, "label_smoothing: got 0.1 with mode sampled, expected"),
        ({"mode": "kvsall", "eval_fraction": 0.1}, "eval_fraction: got 0.1 with mode kv"),
        ({"mode": "kvsall", "mask_known_edges": True}, "mask_known_edges: got True with"),
        ({"mode": "kvsall", "partition_groups": 2}, "partition_groups: got 2 with mode kv"),
        (
            {"mode": "kvsall", "edge_sets": [{"split": "a"}]},
            r"edge_sets.split: got \['a'\]",
        ),
        (
            {"mode": "1vsall", "mask_known_edges": True, "label_smoothing": 0.1},
            "mask_known_edges: got True with mode 1vsall, which it does not go with; leave",
        ),
        (
            {"mode": "1vsall", "negatives": [{"kind": "uniform", "num": 3}]},
            "negatives: got .* with mode 1vsall, which it does not go with; leave one of",
        ),
        (
            {"mode": "1vsall", "disable_src_negatives": True},
            "mode: got 1vsall with negativ",
        ),
    ],
)
def test_what_all_nodes_do_not_go_with_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        from_mapping(EmbeddingConfig, changes)


def test_questions_of_weighted_edges_are_refused(shop: Graph, tmp_path: Path) -> None:
    config = EmbeddingConfig(dim=4, epochs=1, mode="kvsall")
    with pytest.raises(
        ConfigError, match="mode: got kvsall for edge type 'likes', whose e"
    ):
        train(shop, config, tmp_path / "run")
    assert not (tmp_path / "run").exists()
    for changes in ({"edge_weights": False}, {"mode": "1vsall"}):
        config = dataclasses.replace(config, **changes)
        assert train(shop, config, tmp_path / str(changes)).epochs == 1
