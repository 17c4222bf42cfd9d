"""Which layers are computed again for a budget, and what that leaves in memory."""

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys import gnn
from graphsys.core.errors import BudgetError
from graphsys.core.memory import return_large_blocks
from graphsys.gnn.models.recomputation import LayerCosts, choose_layers
from graphsys.gnn.tasks.task import epoch_seeds
from graphsys.gnn.training import plan
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.trainer import GnnTrainer
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import are_equal, config_of, weights_of

NUM_NODES = 20_000


def costs_of(kept: list[int], seconds: list[float]) -> LayerCosts:
    """Return costs of layers whose inputs take nothing."""
    costs = LayerCosts()
    costs.kept, costs.seconds, costs.inputs = kept, seconds, [0] * len(kept)
    costs._keeps_input = costs._is_input_kept = [False] * len(kept)
    return costs


def live(kept: list[int], chosen: tuple[int, ...]) -> int:
    """Walk through a step: forward, then backward with layers computed again."""
    held = {k: 0 if k in chosen else size for k, size in enumerate(kept)}
    most = sum(held.values())
    for k in reversed(range(len(kept))):
        held[k] = kept[k]
        most = max(most, sum(held.values()))
        held[k] = 0
    return max(most, *kept)


@pytest.mark.parametrize("seed", range(20))
def test_the_cheapest_layers_that_save_enough_are_chosen(seed: int) -> None:
    """The oracle walks through the step for every set of layers."""
    rng = np.random.default_rng(seed)
    kept = rng.integers(1, 100, 5).tolist()
    seconds = rng.random(5).tolist()
    costs = costs_of(kept, seconds)
    sets = [s for n in range(6) for s in combinations(range(5), n)]
    for chosen in sets:
        assert costs.peak(chosen) == live(kept, chosen)
    least = min(live(kept, s) for s in sets)
    for saved in range(0, sum(kept), 7):
        found = choose_layers(costs, saved)
        wanted = max(sum(kept) - saved, least)
        assert live(kept, tuple(found)) <= wanted
        cheapest = min(sum(seconds[k] for k in s) for s in sets if live(kept, s) <= wanted)
        assert sum(seconds[k] for k in found) == pytest.approx(cheapest)


def test_of_many_layers_those_are_chosen_that_keep_the_most_for_their_time() -> None:
    kept, seconds = [10] * 9 + [40] * 6, [1.0] * 15
    found = choose_layers(costs_of(kept, seconds), 100)
    assert len(found) == 3
    assert min(found) >= 9


@pytest.mark.parametrize("model", ["sage", "gat", "gin"])
def test_costs_are_what_steps_hold_less(groups: Store, model: str) -> None:
    """Against hooks of the whole step, with the layers chosen and without."""
    config = config_of(model=model, layers=3, fanouts=(), batch_size=0, dropout=0.5, dim=64)
    graph = groups(1)

    def held(chosen: tuple[int, ...]) -> int:
        context = build_context(graph, config)
        network: Any = context.network
        network.recomputed = frozenset(chosen)
        trainer = GnnTrainer(context)
        seeds = epoch_seeds(context.task, config, 0)
        trainer.train_batch(0, next(trainer.batches(0, seeds)), 1)
        return trainer.stepper.memory.most["activations"]

    costs = plan._layer_costs(build_context(graph, config))
    for chosen in ((2,), (1,), (1, 2)):
        told = sum(costs.kept[k] for k in chosen)
        assert 0.6 * told <= held(()) - held(chosen) <= 1.4 * told


@pytest.fixture
def wide(tmp_path: Path) -> Graph:
    """A ring of many nodes, of which 8 are trained."""
    split = np.array(["none"] * NUM_NODES, dtype=object)
    split[:8] = "train"
    nodes = NodeChunk(
        ids=np.arange(NUM_NODES),
        columns={"label": np.arange(NUM_NODES) % 2, "split": split.tolist()},
        features={"x": np.ones((NUM_NODES, 4), dtype=np.float32)},
    )
    edges = [(v, (v + 1) % NUM_NODES) for v in range(NUM_NODES)]
    make_store(tmp_path / "ring", nodes, edge_chunk(edges), is_directed=False)
    return Graph(tmp_path / "ring")


def test_a_budget_has_layers_recomputed_before_it_is_refused(
    wide: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    return_large_blocks(4 << 20)  # of what other tests have freed
    monkeypatch.setattr(plan, "_BATCHES", 1)  # of the whole graph they are alike
    options: dict[str, Any] = {"model": "gcn", "dim": 512, "layers": 4, "fanouts": ()}
    options |= {"batch_size": 0, "dropout": 0.5, "epochs": 1, "deterministic": True}
    config, never = config_of(**options), config_of(**options, recompute="none")
    found = gnn.train(wide, never, tmp_path / "no", dry_run=True).metrics
    budget = int(found["planned_memory_bytes"]) - 120 * 10**6
    with pytest.raises(BudgetError, match="give --memory"):
        gnn.train(wide, never, tmp_path / "never", memory=budget)
    report = gnn.train(wide, config, tmp_path / "run", memory=budget)
    layers = report.metrics["recomputed_layers"]
    assert layers
    assert set(layers) < set(range(4))
    assert report.metrics["peak_memory_bytes"] <= report.metrics["planned_memory_bytes"]
    free = gnn.train(wide, config, tmp_path / "free")
    assert "recomputed_layers" not in free.metrics
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "free"))
