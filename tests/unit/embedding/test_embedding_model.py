"""What a model may consist of, from the graph to the use of a run; and what it may not."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
import safetensors.numpy
import torch

from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.embedding import (
    EmbeddingConfig,
    Embeddings,
    RelationConfig,
    evaluate,
    export,
    load_config,
    nearest,
    train,
)
from graphsys.embedding import run as runs
from graphsys.embedding.type_configs import NodeTypeConfig
from graphsys.storage import Graph
from graphsys.storage.source import NodeChunk
from tests.stores import edge_chunk, make_store

MakeRing = Callable[[int], Graph]
LIKES, NEAR = EdgeType("user", "likes", "item"), EdgeType("place", "near", "place")
BAGS = [[k % 7, 7 + k % 3] if k % 5 else [] for k in range(20)]


@pytest.fixture(scope="module")
def market(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    """Return users who like items with words; and places, joined to neither."""
    path = tmp_path_factory.mktemp("market") / "graph"
    rng = np.random.default_rng(1)
    pairs = list(zip(rng.integers(0, 30, 300), rng.integers(0, 20, 300), strict=True))
    make_store(
        path,
        NodeChunk(
            ids=np.arange(20),
            node_type="item",
            features={
                "words": pa.array(BAGS, pa.large_list(pa.uint32())),
                "numbers": np.ones((20, 2), dtype=np.float32),
            },
        ),
        edge_chunk([*((k, k % 20) for k in range(30)), *pairs[:250]], LIKES),
        edge_chunk(pairs[250:], LIKES, "test"),
        edge_chunk([(k, (k + 1) % 15) for k in range(15)], NEAR),
        partitions={"user": 2, "item": 1, "place": 2},
    )
    return Graph(path)


def settings(**changes: Any) -> EmbeddingConfig:
    usual: dict[str, Any] = {
        "dim": 6,
        "epochs": 2,
        "threads": 1,
        "deterministic": True,
        "batch_size": 32,
        "num_batch_negatives": 16,
        "num_uniform_negatives": 8,
        "init_scale": 0.3,
        "edge_types": ("likes",),
        "checkpoint_seconds": 60.0,
    }
    return EmbeddingConfig(**usual | changes)


def featurized(**changes: Any) -> NodeTypeConfig:
    usual: dict[str, Any] = {"features": "words"}
    return NodeTypeConfig(**usual | changes)


def files(path: Path) -> dict[str, bytes]:
    state = runs.read_state(path)
    return {name.rsplit(".", 2)[0]: (path / name).read_bytes() for name in state.files}


@pytest.mark.parametrize("pooling", ["mean", "sum"])
def test_a_featurized_type_trains_the_table_of_its_features(
    market: Graph, tmp_path: Path, pooling: Any
) -> None:
    config = settings(node_types={"item": featurized(pooling=pooling)})
    train(market, config, tmp_path / "run")
    run = Embeddings(tmp_path / "run")
    table = run.table("item", 0)
    assert table.shape == (10, 6)
    words = torch.tensor([word for bag in BAGS for word in bag])
    begins = torch.tensor(np.cumsum([0, *map(len, BAGS)]))
    wanted = torch.nn.functional.embedding_bag(
        words, torch.tensor(table), begins, mode=pooling, include_last_offset=True
    ).numpy()
    order = np.array(market.node_ids("item").to_pylist())
    np.testing.assert_allclose(run.rows("item", 0), wanted[order], atol=1e-6)
    np.testing.assert_allclose(
        run.lookup([7, 0], node_type="item"), wanted[[7, 0]], atol=1e-6
    )
    assert not run.lookup([5], node_type="item").any()  # no features: zeros


def test_a_featurized_run_is_evaluated_searched_and_exported(
    market: Graph, tmp_path: Path
) -> None:
    config = settings(node_types={"item": featurized()}, epochs=8)
    report = train(market, config, tmp_path / "run")
    assert report.metrics["loss"] < 2 * np.log(25)  # both ends, of 16 + 8 nodes
    assert 0 < evaluate(report.run, split="test")["metrics"]["mrr"] <= 1
    found = nearest(report.run, 8, 3, node_type="item")
    assert found.column("id").to_pylist() != [8]
    assert found.num_rows == 3
    export(report.run, tmp_path / "out.parquet", node_type="item")
    exported = pyarrow.parquet.read_table(tmp_path / "out.parquet")
    rows = np.array(exported.column("embedding").to_pylist(), dtype=np.float32)
    ids = exported.column("id").to_pylist()
    np.testing.assert_array_equal(
        rows, Embeddings(report.run).lookup(ids, node_type="item")
    )


def test_untouched_features_keep_their_first_values(market: Graph, tmp_path: Path) -> None:
    config = settings(node_types={"item": featurized()}, epochs=1, num_uniform_negatives=0)
    before = settings(node_types={"item": featurized()}, epochs=1, lr=1e-12)
    train(market, config, tmp_path / "run")
    train(market, before, tmp_path / "before")
    after, first = (Embeddings(tmp_path / name) for name in ("run", "before"))
    moved = np.abs(after.table("item", 0) - first.table("item", 0)).max(axis=1)
    assert (moved > 1e-3).all()  # every word is in some bag


def test_a_global_vector_is_in_every_row(market: Graph, tmp_path: Path) -> None:
    own = {"item": NodeTypeConfig(global_embedding=False)}
    config = settings(global_embedding=True, node_types=own, loss="logistic")
    train(market, config, tmp_path / "run")
    run = Embeddings(tmp_path / "run")
    vector = np.load(next((tmp_path / "run" / "globals").rglob("user.*.npy")))
    assert vector.shape == (2, 6)
    assert np.abs(vector[0]).max() > 1e-3
    table = np.concatenate([run.table("user", part) for part in range(2)])
    rows = np.concatenate([run.rows("user", part) for part in range(2)])
    np.testing.assert_allclose(rows, table + vector[0], atol=1e-6)
    np.testing.assert_allclose(run.take("user", np.arange(30)), rows)
    assert not list((tmp_path / "run" / "globals").rglob("item.*"))
    assert 0 < evaluate(run, split="test")["metrics"]["mrr"] <= 1


@pytest.mark.parametrize("reciprocal", [False, True])
def test_a_resumed_run_with_all_of_it_is_bit_equal(
    market: Graph, tmp_path: Path, reciprocal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = settings(
        epochs=3,
        operator="affine",
        reciprocal=reciprocal,
        bias=True,
        global_embedding=True,
        regularizer=0.01,
        regularizer_kind="l2",
        node_types={"item": featurized()},
        checkpoint_seconds=0.0,
    )
    train(market, config, tmp_path / "whole")
    end = runs.EmbeddingRunState.end_epoch

    def interrupted(self: runs.EmbeddingRunState) -> None:
        end(self)
        if self.epoch == 2:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(runs.EmbeddingRunState, "end_epoch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train(market, config, tmp_path / "part")
    train(market, config, tmp_path / "part", resume=True)
    assert files(tmp_path / "part") == files(tmp_path / "whole")


def test_types_may_have_dimensions_and_scales_of_their_own(
    market: Graph, tmp_path: Path
) -> None:
    config = settings(
        edge_types=(),
        lr=1e-9,
        node_types={"place": NodeTypeConfig(dim=4, init_scale=2.0)},
    )
    train(market, config, tmp_path / "run")
    run = Embeddings(tmp_path / "run")
    assert run.rows("user", 0).shape[1] == 6
    assert run.lookup([3], node_type="place").shape == (1, 4)
    assert 1.5 < np.std(run.take("place", np.arange(15))) < 2.5
    assert 0.2 < np.std(run.take("user", np.arange(30))) < 0.4
    export(run, tmp_path / "out.safetensors")
    shapes = {
        k: v.shape
        for k, v in safetensors.numpy.load_file(tmp_path / "out.safetensors").items()
    }
    assert shapes == {"user": (30, 6), "item": (20, 6), "place": (15, 4)}
    export(run, tmp_path / "out.npy", node_type="place")
    assert np.load(tmp_path / "out.npy").shape == (15, 4)
    with pytest.raises(
        ConfigError, match=r"rows of different lengths \(.*place 4.*\), .*node_type"
    ):
        export(run, tmp_path / "out.tsv")


def test_ends_of_an_edge_type_need_one_dimension(market: Graph, tmp_path: Path) -> None:
    config = settings(node_types={"item": NodeTypeConfig(dim=4)})
    with pytest.raises(
        ConfigError, match=r"'likes' joins 'user' of dim 6 with 'item' of dim 4"
    ):
        train(market, config, tmp_path / "run")


@pytest.mark.parametrize("operator", ["complex_diagonal", "rotation"])
def test_complex_operators_need_an_even_dimension(
    market: Graph, tmp_path: Path, operator: Any
) -> None:
    message = rf"dim: got 5, expected an even number for the operator {operator}"
    with pytest.raises(ConfigError, match=message):
        EmbeddingConfig(dim=5, operator=operator)
    places = {"place": NodeTypeConfig(dim=5)}
    config = settings(edge_types=("near",), node_types=places, operator=operator)
    with pytest.raises(
        ConfigError, match=r"dim of node type 'place': got 5, expected an even"
    ):
        train(market, config, tmp_path / "run")


def test_a_bias_needs_a_dimension_to_compare() -> None:
    with pytest.raises(
        ConfigError, match=r"bias: got true with dim 1, expected at least 2"
    ):
        EmbeddingConfig(dim=1, bias=True)


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        ("operator", "complex_diagnal", "complex_diagonal"),
        ("comparator", "squared_l", "squared_l2"),
        ("loss", "sotfmax", "softmax"),
    ],
)
def test_a_wrong_name_is_told_the_right_one(kind: str, name: str, meant: str) -> None:
    wrong: dict[str, Any] = {kind: name}
    with pytest.raises(UnknownNameError, match=rf"unknown {kind} '{name}'.*mean '{meant}'"):
        EmbeddingConfig(**wrong)
    with pytest.raises(ConfigError, match=rf"{kind}: got '{name}'.*mean '{meant}'"):
        load_config(overrides=[f"{kind}={name}"])


@pytest.mark.parametrize(
    ("types", "error", "message"),
    [
        ({"itm": {"dim": 6}}, UnknownNameError, "unknown node type 'itm'.*mean 'item'"),
        (
            {"item": {"features": "word"}},
            UnknownNameError,
            "unknown feature 'word'.*mean 'words'",
        ),
        (
            {"item": {"features": "numbers"}},
            ConfigError,
            "'numbers' is an array of numbers",
        ),
        (
            {"user": {"features": "words"}},
            UnknownNameError,
            "unknown feature 'words'; known: none",
        ),
    ],
)
def test_wrong_settings_of_node_types_are_errors(
    market: Graph, tmp_path: Path, types: Any, error: type[Exception], message: str
) -> None:
    config = settings(
        node_types={name: NodeTypeConfig(**values) for name, values in types.items()}
    )
    with pytest.raises(error, match=message):
        train(market, config, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_features_have_rows_of_bytes(market: Graph, tmp_path: Path) -> None:
    reached = []
    for row_dtype in ("float32", "int8"):
        types = {"item": featurized()}
        config = settings(node_types=types, row_dtype=row_dtype, epochs=8)
        report = train(market, config, tmp_path / row_dtype)
        reached.append(report.metrics["loss"])
    assert reached[1] == pytest.approx(reached[0], rel=0.02)
    run = Embeddings(tmp_path / "int8")
    words, items = run.table("item", 0), run.rows("item", 0)
    for row, bag in zip(items, BAGS, strict=True):
        wanted = words[bag].mean(axis=0) if bag else np.zeros(6)
        np.testing.assert_allclose(row, wanted, rtol=1e-5, atol=1e-6)


def test_a_featurized_type_has_one_partition(tmp_path: Path) -> None:
    bags = pa.array([[k] for k in range(8)], pa.large_list(pa.uint32()))
    make_store(
        tmp_path / "graph",
        NodeChunk(ids=np.arange(8), features={"words": bags}),
        edge_chunk([(k, (k + 1) % 8) for k in range(8)]),
        partitions=2,
    )
    config = settings(edge_types=(), node_types={"node": featurized()})
    with pytest.raises(ConfigError, match=r"the type has 2 partitions, expected 1"):
        train(Graph(tmp_path / "graph"), config, tmp_path / "run")


def test_the_learning_rate_of_one_relation_moves_only_its_operator(
    make_ring: MakeRing, tmp_path: Path
) -> None:
    relations = {"next": RelationConfig(lr=1e-9), "*": RelationConfig()}
    config = settings(
        edge_types=(),
        operator="diagonal",
        relations=relations,
        reciprocal=True,
        relation_lr=0.5,
    )
    train(make_ring(1), config, tmp_path / "run")
    run = Embeddings(tmp_path / "run")
    (model,) = run.model
    moved = np.abs(run.operators(model)[0] - 1.0).reshape(3, 6).max(axis=1)
    code = model.relations.index("next")
    assert moved[code] < 1e-6
    assert (np.delete(moved, code) > 0.1).all()


@pytest.mark.parametrize("partitions", [1, 2])
@pytest.mark.parametrize(
    "changes",
    [
        {"operator": "rotation", "comparator": "squared_l2", "operator_init": "random"},
        {"operator": "affine", "comparator": "dot"},
        {"relations": {"*": RelationConfig(all_negatives=True)}},
        {"bias": True, "dim": 34, "global_embedding": True},
        {"regularizer_kind": "l2", "regularizer": 0.001},
    ],
    ids=["rotation", "affine", "all_negatives", "bias", "l2"],
)
def test_each_learns_the_ring(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    changes: dict[str, Any],
    partitions: int,
) -> None:
    config = dataclasses.replace(ring_config, **{"importance_weights": False} | changes)
    report = train(make_ring(partitions), config, tmp_path / "run")
    assert evaluate(report.run, split="train")["metrics"]["mrr"] > 0.9


def test_all_negatives_ignore_the_other_pools(make_ring: MakeRing, tmp_path: Path) -> None:
    everything = {"*": RelationConfig(all_negatives=True)}
    losses = []
    for num in (0, 1, 20):
        config = settings(
            edge_types=(),
            relations=everything,
            num_batch_negatives=0,
            num_uniform_negatives=num,
        )
        losses.append(train(make_ring(1), config, tmp_path / str(num)).metrics["loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert losses[0] == pytest.approx(losses[2], rel=1e-5)


def test_a_rotation_is_given_by_its_angles(make_ring: MakeRing, tmp_path: Path) -> None:
    config = settings(edge_types=(), operator="rotation", operator_init="random")
    train(make_ring(1), config, tmp_path / "run")
    run = Embeddings(tmp_path / "run")
    (model,) = run.model
    assert np.diff(model.offsets).tolist() == [3, 3, 3]
    assert run.operators(model).shape == (2, 9)
