"""What a network's training says of its memory, against what torch itself has."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from graphsys import gnn
from graphsys.core.events import recording
from graphsys.gnn.tasks.task import epoch_seeds
from graphsys.gnn.training import memory_watch
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.trainer import GnnTrainer
from graphsys.training.memory_split import MEMORY, PARTS
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import are_equal, config_of, weights_of


def saved_by_autograd(root: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors that the nodes of a graph keep, by walking it."""
    seen, stack = set(), [root]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        stack += [other for other, _ in node.next_functions]
        names = [name for name in dir(node) if name.startswith("_saved_")]
        found = [getattr(node, name) for name in names]
        found += [getattr(node, "saved_tensors", ())]
        for value in found:
            values = value if isinstance(value, tuple) else (value,)
            yield from (v for v in values if isinstance(v, torch.Tensor))


@pytest.mark.parametrize(
    ("model", "aggregator"),
    [("sage", "mean"), ("sage", "max"), ("gat", "mean"), ("gcn", "mean"), ("gin", "mean")],
)
def test_activations_are_what_autograd_keeps(
    groups: Store, model: str, aggregator: Any
) -> None:
    """The oracle walks the graph of the loss, in which nothing of ours takes part."""
    config = config_of(model=model, aggregator=aggregator, dropout=0.5, batch_size=0)
    context = build_context(groups(1), config)
    trainer = GnnTrainer(context)
    seeds = epoch_seeds(context.task, config, 0)
    trainer.train_batch(0, next(trainer.batches(0, seeds)), len(seeds))
    batch = next(trainer.batches(0, seeds))
    torch.manual_seed(0)
    context.network.train()
    loss = context.task.loss(context.network(batch.hops, batch.x), batch)
    others = [*context.network.parameters(), *batch.x.values()]
    others += [batch.hops[0][name].weight for name in batch.hops[0]]
    others += [batch.hops[0][name].self_weight for name in batch.hops[0]]
    known = {x.untyped_storage().data_ptr() for x in others if x is not None}
    kept = {
        x.untyped_storage().data_ptr(): x.untyped_storage().nbytes()
        for x in saved_by_autograd(loss.grad_fn)
    }
    expected = sum(size for place, size in kept.items() if place not in known)
    assert trainer.stepper.memory.most["activations"] == expected > 0


def test_a_report_has_the_parts_of_its_peak(groups: Store, tmp_path: Path) -> None:
    graph = groups(1)
    metrics = gnn.train(graph, config_of(), tmp_path / "run", memory="2GB").metrics
    weights = build_context(graph, config_of()).network.parameters()
    size = sum(p.nbytes for p in weights)
    for kind in ("planned", "peak"):
        split = metrics[f"{kind}_memory_split"]
        assert list(split) == list(PARTS)
        assert sum(split.values()) == metrics[f"{kind}_memory_bytes"]
        assert split["parameters"] == split["gradients"] == size
        assert 2 * size <= split["optimizer"] < 2.1 * size  # two moments, and steps
        assert split["features"] > 0 < split["topology"]
        assert split["caches"] == 0
    assert metrics["planned_memory_split"]["activations"] > 0


def test_a_cache_is_a_part(groups: Store, tmp_path: Path) -> None:
    config = config_of(cache="lru", cache_memory="20KB", epochs=1)
    metrics = gnn.train(groups(1), config, tmp_path / "run").metrics
    assert 48 * 8 * 4 < metrics["peak_memory_split"]["caches"] <= 20_000


def test_steps_of_one_batch_are_counted_once(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []

    def hooks(*functions: Any) -> Any:
        calls.append(functions)
        return torch.autograd.graph.saved_tensors_hooks(*functions)

    monkeypatch.setattr(memory_watch, "saved_tensors_hooks", hooks)
    config = config_of(batch_size=0, epochs=6)
    gnn.train(groups(1), config, tmp_path / "run")
    assert len(calls) == 1
    with recording({MEMORY: lambda _: None}):
        gnn.train(groups(1), config, tmp_path / "seen")
    assert len(calls) == 7


def test_counting_changes_no_weight(groups: Store, tmp_path: Path) -> None:
    graph = groups(1)
    config = config_of(model="gat", dropout=0.3, epochs=3, deterministic=True)
    gnn.train(graph, config, tmp_path / "plain")
    with recording({MEMORY: lambda _: None}) as recorder:
        gnn.train(graph, config, tmp_path / "seen")
    assert are_equal(weights_of(tmp_path / "plain"), weights_of(tmp_path / "seen"))
    told = [event for event in recorder.events if event.name == MEMORY]
    assert [event.attributes["phase"] for event in told] == 9 * [
        "forward",
        "backward",
        "step",
    ]
    assert all(sum(e.attributes["parts"].values()) >= e.value for e in told)  # type: ignore[attr-defined]
