"""Training: it learns, and does not depend on threads."""

import re
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import (
    BudgetError,
    ConfigError,
    InvalidGraphError,
    TrainingFailedError,
    UnknownNameError,
)
from graphsys.core.memory import resident_bytes
from graphsys.core.progress import Progress
from graphsys.gnn import GnnConfig, layerwise_passes
from graphsys.gnn.data.loader import Batch, Loader
from graphsys.gnn.layerwise_inference import entries_within, infer
from graphsys.gnn.models.network import Network
from graphsys.gnn.training.api import build_context
from graphsys.storage import Graph
from tests.unit.gnn.conftest import NUM_NODES, Store

MODELS = ("sage", "gcn", "gat", "gatv2", "gin", "pinsage")


def config_of(**changes: Any) -> GnnConfig:
    is_whole = changes.get("batch_size") == 0 or changes.get("model") == "lightgcn"
    settings: dict[str, Any] = {
        "dim": 16,
        "heads": 2,
        "epochs": 25,
        "batch_size": 8,
        "fanouts": () if is_whole else (5, 5),
        "lr": 0.02,
        "num_walks": 20,
        "eval_every": 0,
        "keep": "last",
        "threads": 1,
    }
    return GnnConfig(**{**settings, **changes})


def weights_of(run: Path) -> dict[str, torch.Tensor]:
    return dict(gnn.open_run(run).context.network.state_dict())


class StoppedError(Exception):
    """Stands for a kill between two batches."""


class StopAfter(Progress):
    """Raises after so many steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def advance(self, steps: int, **figures: float) -> None:
        """Count down."""
        self.steps -= steps
        if self.steps == 0:
            raise StoppedError


def are_equal(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("model", MODELS)
def test_every_model_overfits_batches(groups: Store, tmp_path: Path, model: Any) -> None:
    report = gnn.train(groups(2), config_of(model=model, epochs=40), tmp_path / "run")
    found = gnn.evaluate(tmp_path / "run", split="train")
    assert found["metrics"]["accuracy"] >= 0.95
    assert report.epochs == 40
    assert report.metrics["loss"] < 0.4
    assert report.edges_per_second > 0


@pytest.mark.parametrize("model", [name for name in MODELS if name != "pinsage"])
def test_every_model_overfits_the_whole_graph(
    groups: Store, tmp_path: Path, model: Any
) -> None:
    config = config_of(model=model, batch_size=0, epochs=80)
    gnn.train(groups(2), config, tmp_path / "run")
    found = gnn.evaluate(tmp_path / "run", split="train")["metrics"]
    assert found["accuracy"] >= 0.9
    assert gnn.evaluate(tmp_path / "run")["metrics"]["num_nodes"] == 12


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "sage", "norm": "layer", "residual": True, "dropout": 0.2},
        {"model": "sage", "aggregator": "pool", "norm": "batch"},
        {"model": "gat", "activation": "elu", "attention_dropout": 0.2},
        {"model": "sage", "frontier": "new", "replace": True},
    ],
)
def test_options_of_models_train(
    groups: Store, tmp_path: Path, changes: dict[str, Any]
) -> None:
    gnn.train(groups(1), config_of(epochs=40, **changes), tmp_path / "run")
    assert gnn.evaluate(tmp_path / "run", split="train")["metrics"]["accuracy"] >= 0.9


@pytest.mark.parametrize("model", ["sage", "gcn", "gat", "gin"])
def test_layers_over_all_nodes_are_the_whole_graph_s(
    groups: Store, tmp_path: Path, model: Any
) -> None:
    """Inference layer by layer equals one pass over the graph, and so do full fanouts."""
    graph = groups(3)
    config = config_of(model=model, fanouts=(-1, -1), epochs=3)
    gnn.train(graph, config, tmp_path / "run")
    opened = gnn.open_run(tmp_path / "run")
    context, nodes = opened.context, np.array([5, 40, 0])
    by_layer = opened.output(nodes)
    with torch.no_grad():
        layer = context.message_graph.whole()
        x = context.features.gather({"node": np.arange(NUM_NODES)})
        whole = context.network([layer, layer], x)["node"][torch.from_numpy(nodes)]
        sample = context.message_graph.sampler.sample(nodes)
        features = context.features.gather(sample.nodes)
        sampled = context.network(context.message_graph.wrap(sample.layers), features)[
            "node"
        ]
    assert np.allclose(by_layer, whole.numpy(), atol=1e-5)
    assert np.allclose(by_layer, sampled.numpy(), atol=1e-5)


def test_threads_and_prefetching_change_nothing(groups: Store, tmp_path: Path) -> None:
    graph = groups(2)
    losses = []
    for k, (threads, prefetch) in enumerate([(1, 0), (1, 4), (3, 1)]):
        config = config_of(epochs=3, threads=threads, prefetch=prefetch, dropout=0.1)
        losses.append(gnn.train(graph, config, tmp_path / f"run{k}").metrics["loss"])
    assert losses[0] == losses[1]
    assert losses[2] == pytest.approx(losses[0], rel=1e-5)


@pytest.mark.parametrize("prefetch", [1, 3])
def test_batches_are_made_while_another_is_used(groups: Store, prefetch: int) -> None:
    config = config_of(prefetch=prefetch)
    context = build_context(groups(1), config)
    loader = Loader(context.message_graph, context.features, prefetch)
    began: dict[int, threading.Event] = {k: threading.Event() for k in range(8)}
    make = loader.make

    def noted(seeds: Any, *, epoch: int, number: int) -> Batch:
        began[number].set()
        assert threading.current_thread() is not threading.main_thread()
        return make(seeds, epoch=epoch, number=number)

    loader.make = noted  # type: ignore[method-assign]
    seeds = [{"node": np.arange(k, 48, 8)} for k in range(8)]
    for batch in loader.batches(seeds, epoch=0):
        following = range(batch.number + 1, min(batch.number + 1 + prefetch, 8))
        assert all(began[number].wait(timeout=10) for number in following)
        assert not any(began[k].is_set() for k in range(batch.number + 2 + prefetch, 8))
        loader.release(batch)


def test_best_epoch_is_kept_and_patience_ends(groups: Store, tmp_path: Path) -> None:
    config = config_of(
        epochs=200, eval_every=1, patience=4, keep="best", monitor="loss", lr=0.05
    )
    report = gnn.train(groups(1), config, tmp_path / "run")
    best = report.metrics["best_epoch"]
    assert report.epochs == best + 4 < 200
    state = gnn.open_run(tmp_path / "run").state
    assert state.history[best - 1][1] == min(row[1] for row in state.history)
    found = gnn.evaluate(tmp_path / "run", split="valid")["metrics"]
    assert found["loss"] == pytest.approx(report.metrics["valid_loss"], rel=1e-4)
    assert found["accuracy"] == pytest.approx(report.metrics["valid_accuracy"])


def test_report_says_where_time_went(groups: Store, tmp_path: Path) -> None:
    metrics = gnn.train(groups(1), config_of(epochs=3), tmp_path / "run").metrics
    context = ("sample", "gather", "forward", "backward", "step")
    assert all(metrics[f"{name}_seconds"] > 0 for name in context)
    assert metrics["batches"] == 9
    assert metrics["peak_memory_bytes"] > 0


@pytest.mark.usefixtures("slow_batches")
@pytest.mark.parametrize(("prefetch", "low", "high"), [(0, 0.0, 0.0), (4, 0.3, 1.0)])
def test_sampling_overlaps_with_training_where_it_is_prefetched(
    groups: Store, tmp_path: Path, prefetch: int, low: float, high: float
) -> None:
    config = config_of(epochs=2, prefetch=prefetch, batch_size=4)
    metrics = gnn.train(groups(1), config, tmp_path / "run").metrics
    assert low <= metrics["overlap_alpha"] <= high
    shorter = min(metrics["prepare_seconds"], metrics["compute_seconds"])
    assert metrics["overlap_alpha"] == metrics["overlap_seconds"] / shorter
    if prefetch:  # two threads sample: their seconds add up to more than went by
        summed = metrics["sample_seconds"] + metrics["gather_seconds"]
        assert metrics["prepare_seconds"] < summed


def test_predictions_are_the_users_ids_and_classes(groups: Store, tmp_path: Path) -> None:
    graph = groups(2)
    gnn.train(graph, config_of(epochs=40), tmp_path / "run")
    table = gnn.predict(tmp_path / "run")
    assert sorted(table["id"].to_pylist()) == list(range(100, 100 + NUM_NODES))
    right = [p == (i - 100) % 3 for i, p in zip(*_columns(table), strict=True)]
    assert sum(right) > 0.8 * NUM_NODES
    some = gnn.predict(tmp_path / "run", [130, "101"])
    assert some["id"].to_pylist() == [130, 101]
    whole = dict(zip(*_columns(table), strict=True))
    assert some["prediction"].to_pylist() == [whole[130], whole[101]]
    assert all(1 / 3 <= p <= 1 for p in some["probability"].to_pylist())
    with pytest.raises(UnknownNameError, match="node 7 is not among the 48 nodes"):
        gnn.predict(tmp_path / "run", [7])


def _columns(table: pa.Table) -> tuple[list[Any], list[Any]]:
    return table["id"].to_pylist(), table["prediction"].to_pylist()


def test_several_classes_per_node(groups: Store, tmp_path: Path) -> None:
    lists = [[f"c{k % 3}"] + (["even"] if k % 2 == 0 else []) for k in range(NUM_NODES)]
    graph = groups(1, columns={"tags": pa.array(lists)})
    gnn.train(graph, config_of(label="tags", epochs=60), tmp_path / "run")
    found = gnn.evaluate(tmp_path / "run", split="train")["metrics"]
    assert found["f1_micro"] > 0.8
    assert {"f1_macro", "roc_auc", "accuracy"} <= found.keys()
    table = gnn.predict(tmp_path / "run", [100])
    assert set(table["prediction"].to_pylist()[0]) <= {"c0", "c1", "c2", "even"}


def test_types_without_features_are_learned(library: Graph, tmp_path: Path) -> None:
    for name, size in (("batches", 4), ("whole", 0)):
        config = config_of(epochs=30, batch_size=size)
        gnn.train(library, config, tmp_path / name)
        found = gnn.evaluate(tmp_path / name, split="train")["metrics"]
        assert found["accuracy"] == 1.0
        assert "roc_auc" in found
    assert gnn.predict(tmp_path / "whole")["prediction"][0].as_py().startswith("taste")


@pytest.mark.parametrize("batch_size", [8, 0])
def test_bags_of_words_are_learned(groups: Store, tmp_path: Path, batch_size: int) -> None:
    words = pa.array(
        [[k % 3, 3 + k % 7] for k in range(NUM_NODES)], pa.large_list(pa.uint32())
    )
    graph = groups(2, x=words)
    gnn.train(graph, config_of(batch_size=batch_size, epochs=60), tmp_path / "run")
    assert gnn.evaluate(tmp_path / "run")["metrics"]["accuracy"] >= 0.8
    names = gnn.open_run(tmp_path / "run").context.network.state_dict()
    assert names["learned.node.weight"].shape == (10, 16)


def test_hidden_rows_may_lie_in_files(groups: Store, tmp_path: Path) -> None:
    gnn.train(groups(2), config_of(epochs=2), tmp_path / "run")
    opened = gnn.open_run(tmp_path / "run")
    context = opened.context
    mapped = infer(context, "node", scratch=tmp_path)
    assert np.array_equal(mapped, opened.output())


@pytest.mark.parametrize("memory", ["4GB", None])
def test_hidden_rows_that_a_budget_has_no_room_for_lie_in_files(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, memory: str | None
) -> None:
    folders: list[Path | None] = []

    def room(shape: tuple[int, int], folder: Path | None) -> Any:
        folders.append(folder)
        return np.empty(shape, dtype=np.float32)

    monkeypatch.setattr("graphsys.gnn.layerwise_passes.room_for", room)
    monkeypatch.setattr(
        "graphsys.gnn.layerwise_inference.resident_bytes", lambda: 4 * 10**9
    )
    config = config_of(epochs=1, eval_every=1)
    gnn.train(groups(1), config, tmp_path / "run", memory=memory)
    # what a plan probes is not kept; the evaluation comes last
    assert (folders[-1] is not None) == (memory is not None)


def test_batches_of_evaluation_keep_to_a_budget(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 10**9
    sizes: list[int] = []
    most: list[int] = []
    monkeypatch.setattr("graphsys.gnn.layerwise_inference.resident_bytes", lambda: now)
    context = build_context(groups(1), config_of(dim=128))

    def within(budget: int | None) -> int:
        return entries_within(replace(context, budget=budget))

    assert within(None) == within(10**11) == 1 << 20
    assert within(now + 153_600_000) == 25_000
    assert within(now - 1) == 1 << 12
    monkeypatch.setattr("graphsys.gnn.layerwise_inference._LEAST_ENTRIES", 8)
    cut = layerwise_passes.LayerByLayer.spans

    def spans(*given: Any) -> Any:
        found = cut(*given)
        sizes.append(len(found))
        return found

    monkeypatch.setattr("graphsys.gnn.layerwise_passes.LayerByLayer.spans", spans)
    losses = []
    budget = resident_bytes() + 4 * 10**9  # has room for all but the evaluation
    monkeypatch.setattr(
        "graphsys.gnn.layerwise_inference.resident_bytes", lambda: budget + 1
    )
    for name, memory in (("bounded", budget), ("free", None)):
        config = config_of(epochs=1, eval_every=1)
        report = gnn.train(groups(1), config, tmp_path / name, memory=memory)
        losses.append(report.metrics["valid_loss"])
        most.append(max(sizes))
        sizes.clear()
    assert most[0] > most[1] == 1
    assert losses[0] == pytest.approx(losses[1])


# ---- bad input


def test_labels_missing_for_a_split(groups: Store, tmp_path: Path) -> None:
    label = [None if k in (0, 2) else k % 3 for k in range(NUM_NODES)]
    graph = groups(1, columns={"label": pa.array(label, pa.int64())})
    message = "2 of 24 nodes of split 'train' have no 'label': "
    with pytest.raises(InvalidGraphError, match=re.escape(message)):
        gnn.train(graph, config_of(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_features_that_are_no_numbers(groups: Store, tmp_path: Path) -> None:
    x = np.ones((NUM_NODES, 4), dtype=np.float32)
    x[[3, 30], 1] = np.nan, np.inf
    message = "features x of 2 of 48 nodes of type 'node' are not finite, first of nodes "
    with pytest.raises(InvalidGraphError, match=message) as caught:
        gnn.train(groups(1, x=x), config_of(), tmp_path / "run")
    assert "103" in str(caught.value)
    assert "130" in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fanouts": (5,)}, "fanouts: got 1 (5) for 2 layers, expected one per layer"),
        ({"fanouts": (5, 0)}, "fanouts: got [5, 0], expected numbers >= 1, or -1 for all"),
        ({"dim": 15, "model": "gat"}, "dim: got 15, expected a multiple of heads, 2"),
        ({"hard_negatives": 2}, "hard_negatives: got 2 with model sage, expected model"),
        ({"label": "group"}, "no node type of"),
        ({"label": "x1"}, "column 'x1' of node type 'node' is double, expected integers"),
        ({"split": "label"}, "puts no node into split 'train'; it has '0', '1', '2'"),
        ({"features": ("y",)}, "unknown feature 'y'; known: x"),
        ({"edge_types": ("y",)}, "unknown edge type 'y'; known: edge"),
        ({"node_type": "paper"}, "unknown node type 'paper'; known: node"),
        ({"weighted": True}, "edges 'edge' have no weights"),
        ({"model": "pinsage", "batch_size": 0}, "batch_size: got 0 with model pinsage"),
        ({"model": "pinsage", "fanouts": (3, -1)}, "fanouts: got [3, -1] with model pin"),
    ],
)
def test_settings_that_do_not_fit(
    groups: Store, tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    graph = groups(1, columns={"x1": np.full(NUM_NODES, 0.5)})
    with pytest.raises((ConfigError, UnknownNameError), match=re.escape(message)):
        gnn.train(graph, config_of(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_loss_that_is_not_a_number(groups: Store, tmp_path: Path) -> None:
    x = np.full((NUM_NODES, 4), 1e38, dtype=np.float32)
    with pytest.raises(TrainingFailedError, match="the loss of batch 0 of epoch 1 is"):
        gnn.train(groups(1, x=x), config_of(), tmp_path / "run")


def test_batch_that_does_not_fit_into_memory(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried ...")

    monkeypatch.setattr(Network, "forward", fail)
    message = "edges does not fit into memory; try --set batch_size=4, or smaller fanouts"
    with pytest.raises(BudgetError, match=message):
        gnn.train(groups(1), config_of(), tmp_path / "run")


@pytest.mark.parametrize("cache", ["degree", "importance", "lru", "sieve"])
def test_a_cache_of_features_changes_nothing(
    groups: Store, tmp_path: Path, cache: Any
) -> None:
    graph = groups(2)
    plain = gnn.train(graph, config_of(epochs=2), tmp_path / "plain")
    changes = {"cache": cache, "cache_memory": "1500B", "epochs": 2}
    report = gnn.train(graph, config_of(**changes), tmp_path / "run")
    assert report.metrics["loss"] == plain.metrics["loss"]
    assert 0 < report.metrics["cache_hit_rate"] < 1
    assert "cache_hit_rate" not in plain.metrics
    with pytest.raises(ConfigError, match="cache_memory: got"):
        gnn.train(graph, config_of(cache=cache, cache_memory="10B"), tmp_path / "small")
