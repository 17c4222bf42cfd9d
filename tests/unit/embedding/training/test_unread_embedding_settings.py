"""Settings of an embedding that nothing reads are told when a training begins."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from graphsys import embedding
from graphsys.embedding import EmbeddingConfig, train
from graphsys.storage import Graph
from tests.unit.embedding.triple_graphs import Triples, write

TRIPLES = [(i, f"r{i % 2}", (i * 7 + 3) % 20) for i in range(40)]
PLAIN: Triples = [(a, None, b) for a, _, b in TRIPLES]
SMALL: dict[str, Any] = {
    "dim": 8,
    "epochs": 1,
    "batch_size": 40,
    "num_batch_negatives": 10,
    "num_uniform_negatives": 10,
    "threads": 1,
}
OPERATOR = {"operator": "diagonal"}


@pytest.fixture
def facts(tmp_path: Path) -> Graph:
    return write(tmp_path / "facts", TRIPLES)


def told(graph: Graph, folder: Path, config: EmbeddingConfig) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(graph, config, folder / "run")
    return [str(it.message) for it in caught]


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"margin": 0.2}, "margin"),
        ({"mode": "1vsall"}, ""),
        ({"mode": "1vsall", "num_uniform_negatives": 30}, "num_uniform_negatives"),
        ({"weigh_by_answers": True}, "weigh_by_answers"),
        ({"regularizer_kind": "l2"}, "regularizer_kind"),
        ({"lr_factor": 0.1}, "lr_factor"),
        ({"lr_patience": 5}, "lr_patience"),
        ({"min_improvement": 0.1}, "min_improvement"),
        ({"eval_split": "test"}, "eval_split"),
        ({"relation_lr": 0.2}, "relation_lr"),
        ({"operator_init": "random"}, "operator_init"),
        ({"init_state": False}, "init_state"),
        ({"deterministic": True, "threads": 2}, "threads"),
        ({"bucket_order": "random"}, "bucket_order"),
        ({"buffer_partitions": 2}, "buffer_partitions"),
        ({"join_partitions": True}, "join_partitions"),
        ({"prefetch": False}, "prefetch"),
    ],
)
def test_a_setting_without_effect_is_told(
    facts: Graph, tmp_path: Path, settings: dict[str, Any], name: str
) -> None:
    negatives = ("num_batch_negatives", "num_uniform_negatives")
    small = (
        SMALL
        if "mode" not in settings
        else {key: value for key, value in SMALL.items() if key not in negatives}
    )
    found = told(facts, tmp_path, EmbeddingConfig(**{**small, **settings}))
    assert [it.partition("=")[0] for it in found] == ([name] if name else [])


@pytest.mark.parametrize(
    "settings",
    [
        {"loss": "ranking", "margin": 0.2},
        {**OPERATOR, "relation_lr": 0.2, "operator_init": "random"},
        {"regularizer": 0.1, "regularizer_kind": "l2"},
        {"importance_weights": True},
        {"dropout": 0.1, "reciprocal": True},
        {"parameter_servers": 2},
        {"deterministic": True},
    ],
)
def test_a_setting_with_effect_is_not_told(
    facts: Graph, tmp_path: Path, settings: dict[str, Any]
) -> None:
    assert told(facts, tmp_path, EmbeddingConfig(**{**SMALL, **settings})) == []


def test_several_partitions_read_what_one_does_not(tmp_path: Path) -> None:
    graph = write(tmp_path / "facts", PLAIN, partitions=2, partitioner="range")
    config = EmbeddingConfig(
        **SMALL, bucket_order="random", buffer_partitions=2, prefetch=False
    )
    assert told(graph, tmp_path, config) == []


def test_it_says_why_and_a_resume_says_nothing(facts: Graph, tmp_path: Path) -> None:
    config = EmbeddingConfig(**SMALL, relation_lr=0.2)
    assert told(facts, tmp_path, config) == [
        (
            "relation_lr=0.2 has no effect with loss softmax, mode sampled and operator "
            "identity: no relation has an operator with parameters"
        )
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        longer = replace(config, epochs=2)
        assert train(facts, longer, tmp_path / "run", resume=True).epochs == 2


def test_what_a_preset_chose_is_not_told(facts: Graph, tmp_path: Path) -> None:
    chosen = embedding.load_config(
        preset="wn18rr-complex", overrides=["dim=8", "epochs=1", "regularizer=0"]
    )
    assert not any("has no effect" in it for it in told(facts, tmp_path, chosen))
