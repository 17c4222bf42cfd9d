"""Temporal link prediction: baselines by hand, nothing of the future, memory by epoch."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import graphsys as gs
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.core.types import EdgeType
from graphsys.gnn import load_config
from graphsys.gnn.testing import TaskContract
from graphsys.gnn.training.api import build_context
from graphsys.storage import EdgeChunk, Graph, NodeChunk, ingest
from tests.stores import ListSource
from tests.unit.gnn.event_stores import (
    LEARNED,
    STREAMS,
    Events,
    config_of,
    event_store,
    favorites,
)

_EDGE = EdgeType("node", "edge", "node")
SMALL: Events = [(0, 1, 10), (0, 2, 20), (3, 2, 30), (0, 1, 40), (1, 3, 50), (0, 3, 60)]


def scores_of(graph: Graph, model: str, node: int, before: int, **changes: Any) -> Any:
    """Return the scores of a node with nodes 0, 1, ... just before a time."""
    context = build_context(graph, config_of(model, valid_share=0, **changes))
    numbers = graph.lookup("node", list(range(graph.num_nodes))).astype(np.int64)
    stream = context.task.stream  # type: ignore[attr-defined]
    stream.eval()
    stream.advance(stream.events.before(before))
    with torch.no_grad():
        found = stream.scores(numbers[[node]], np.array([before]), before)[0]
    return found.numpy()[numbers].tolist()


def test_edgebank_scores_pairs_that_were_there(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", SMALL) as graph:
        assert scores_of(graph, "edgebank", 0, 60) == [0, 1, 1, 0]
        assert scores_of(graph, "edgebank", 0, 20) == [0, 1, 0, 0]  # strictly before
        assert scores_of(graph, "edgebank", 2, 60) == [0, 0, 0, 0]  # a direction counts


def test_edgebank_forgets_behind_its_window(tmp_path: Path) -> None:
    # training edges span 10 to 60: a window of .6 is 30
    with event_store(tmp_path / "g", SMALL) as graph:
        assert scores_of(graph, "edgebank", 0, 50, time_window=0.6) == [0, 1, 1, 0]
        assert scores_of(graph, "edgebank", 0, 51, time_window=0.6) == [0, 1, 0, 0]
        assert scores_of(graph, "edgebank", 0, 71, time_window=0.6) == [0, 0, 0, 1]


def test_recency_puts_own_pairs_before_others(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", SMALL) as graph:
        # of 0: 1 at 40, then 2 at 20; then 3, written to at 50; 0 never was
        assert scores_of(graph, "recency", 0, 60) == [0, 6 + 4, 6 + 2, 5]
        assert scores_of(graph, "recency", 3, 40) == [0, 1, 6 + 3, 0]


def test_undirected_pairs_count_both_ways(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", SMALL, undirected=True) as graph:
        assert scores_of(graph, "edgebank", 2, 60) == [1, 0, 0, 1]
        assert scores_of(graph, "recency", 2, 60) == [6 + 2, 5, 3, 6 + 3]


def test_ranks_are_among_all_nodes_and_ties_in_the_middle(tmp_path: Path) -> None:
    events = [(0, 1, 10), (0, 2, 20), (0, 1, 30), (0, 3, 30), (1, 3, 40)]
    with event_store(tmp_path / "g", events) as graph:
        config = config_of("edgebank", valid_share=0, test_share=0.5, batch_size=1)
        gs.gnn.train(graph, config, tmp_path / "run")
    found = gs.gnn.evaluate(tmp_path / "run")["metrics"]
    # of five edges the last two are test, and the one of the same time goes with them.
    # 0 to 1: 2 is as good, so 1.5; 0 to 3: 1 is at the same time, so no candidate, 2 is
    # better, 0 as good: 2.5, unfiltered 3.5; 1 to 3: all four as good: 2.5
    assert found["num_edges"] == 3
    assert found["num_candidates"] == 4
    assert found["mr"] == pytest.approx((1.5 + 2.5 + 2.5) / 3)
    assert found["unfiltered"]["mr"] == pytest.approx((1.5 + 3.5 + 2.5) / 3)
    assert found["mrr"] == pytest.approx((1 / 1.5 + 2 / 2.5) / 3)
    assert {n: v["num_queries"] for n, v in found["by_pair"].items()} == {
        "new": 2,
        "seen": 1,
    }


@pytest.mark.parametrize("model", [*STREAMS, "sage"])
def test_nothing_of_the_future_helps(model: str, tmp_path: Path) -> None:
    """Valid is ranked alike whether or not its answers, or others, come later."""
    events, found = favorites(120), []
    valid = events[84:102]
    planted = [(s, d, events[102][2] + k) for k, (s, d, _) in enumerate(valid)]
    for k, later in enumerate((events[102:], planted)):
        with event_store(tmp_path / f"g{k}", events[:102] + later, partitions=2) as graph:
            gs.gnn.train(graph, config_of(model), tmp_path / f"run{k}")
        result = gs.gnn.evaluate(tmp_path / f"run{k}", split="valid")["metrics"]
        assert result["num_edges"] == 18
        found.append(result)
    assert found[0] == found[1]


@pytest.mark.parametrize("model", STREAMS)
def test_an_answer_helps_from_the_time_after_it_on(model: str, tmp_path: Path) -> None:
    """The next event comes once more: at its own time, which says nothing, or before."""
    events = favorites(120)
    source, answer, time = events[-1] = (3, 9, events[-1][2])  # never seen so far
    found = {}
    for name, copies in (
        ("alone", []),
        ("at once", [events[-1]]),
        ("before", [(source, answer, time - 1)]),
    ):
        share = (1 + len(copies)) / (120 + len(copies))
        with event_store(tmp_path / name, events + copies) as graph:
            scores = np.array(
                scores_of(graph, model, source, time, test_share=share, batch_size=1)
            )
        found[name] = (scores[:, None] < scores).sum(axis=1)
    assert np.array_equal(found["alone"], found["at once"])
    assert not np.array_equal(found["alone"], found["before"])
    if model in ("edgebank", "recency"):
        assert found["before"][answer] < found["alone"][answer]


@pytest.mark.parametrize("model", STREAMS)
def test_a_batch_is_scored_before_any_of_it_is_taken_in(model: str, tmp_path: Path) -> None:
    events = [(s, d, t // 40) for s, d, t in favorites(200)]  # four of one time
    with event_store(tmp_path / "g", events) as graph:
        context = build_context(graph, config_of(model, batch_size=6))
    task: Any = context.task
    stream, told = task.stream, []
    scores, compare = stream.scores, stream.compare

    def score(sources: Any, times: Any, before: int) -> Any:
        told.append((int(stream.position), len(sources), before))
        return scores(sources, times, before)

    def learn(seeds: Any, before: int) -> Any:
        told.append((int(stream.position), seeds.end - seeds.begin, before))
        return compare(seeds, before)

    stream.scores, stream.compare = score, learn
    task.measure("test", None)
    for seeds in task.seeds(0):
        context.network([], {"events": seeds})
    time, done = stream.events.time, {"test": 168, "train": 0}
    for position, size, before in told:
        split = "test" if position >= 168 else "train"
        assert position == done[split] == (time < before).sum()
        assert time[position] == before
        done[split] += size
    assert done == {"test": 200, "train": 140 if stream.is_trained else 0}


@pytest.mark.parametrize("model", LEARNED)
def test_a_pattern_is_learned(model: str, tmp_path: Path) -> None:
    with event_store(tmp_path / "g", favorites()) as graph:
        report = gs.gnn.train(graph, config_of(model, epochs=8), tmp_path / "run")
    assert report.metrics["valid_mrr"] > 0.5  # 24 nodes: chance is .16
    assert gs.gnn.evaluate(tmp_path / "run")["metrics"]["mrr"] > 0.5


@pytest.mark.parametrize("model", LEARNED)
def test_every_epoch_begins_without_memory(model: str, tmp_path: Path) -> None:
    with event_store(tmp_path / "g", favorites(120)) as graph:
        context = build_context(graph, config_of(model))
    task, network = context.task, context.network
    seeds: Any = task.seeds(0)

    def first() -> Any:
        return network([], {"events": seeds[0]})["positive"].detach()

    network.eval()
    before = first()
    for k in range(1, len(seeds)):
        network([], {"events": seeds[k]})
    stream: Any = task.stream  # type: ignore[attr-defined]
    memory = stream.state if model == "evolving" else stream.memory
    assert memory.abs().sum() > 0
    assert torch.equal(first(), before)
    assert int(task.stream.position) == 20  # type: ignore[attr-defined]


@pytest.mark.parametrize("model", LEARNED)
def test_evaluation_leaves_the_memory_where_it_was(model: str, tmp_path: Path) -> None:
    with event_store(tmp_path / "g", favorites(120)) as graph:
        task: Any = build_context(graph, config_of(model)).task
    task.stream.advance(84)
    kept = {name: value.clone() for name, value in task.stream.state_dict().items()}
    first = task.measure("test", None)
    assert task.measure("train", None) != first
    assert task.measure("test", None) == first
    for name, value in task.stream.state_dict().items():
        assert torch.equal(value, kept[name]), name


def test_a_batch_of_one_event_sees_the_event_before(tmp_path: Path) -> None:
    """The size of batches is the protocol of state."""
    events = [(k % 3, 3 + k // 6, k) for k in range(60)]  # each pair twice in a row of six
    found = {}
    with event_store(tmp_path / "g", events) as graph:
        for size in (1, 20):
            config = config_of("edgebank", batch_size=size)
            task = build_context(graph, config).task
            found[size] = task.measure("test", None)["mrr"]  # type: ignore[arg-type]
    assert found[1] > found[20]


@pytest.mark.parametrize("model", [*LEARNED, "sage"])  # heuristics have no weights
class TestContract(TaskContract):
    name = "temporal_link_prediction"

    @pytest.fixture(autouse=True)
    def _model(self, model: str) -> None:
        self.settings = {"model": model, "heads": 2}  # type: ignore[misc]


def test_a_heuristic_has_no_rows_to_predict(tmp_path: Path) -> None:
    with event_store(tmp_path / "g", favorites(60)) as graph:
        gs.gnn.train(graph, config_of("recency"), tmp_path / "run")
    with pytest.raises(
        ConfigError, match=r"model recency has no rows .* graphsys evaluate"
    ):
        gs.gnn.predict(tmp_path / "run")
    with pytest.raises(UnknownNameError, match="unknown split 'later'"):
        gs.gnn.evaluate(tmp_path / "run", split="later")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"task": "link_prediction"}, "task: got link_prediction with model tgn"),
        ({"batch_size": 0}, "batch_size: got 0 with model tgn"),
        ({"negatives": "degree"}, "negatives: got degree with model tgn"),
        ({"sampler": "labor"}, "sampler: got labor with model tgn"),
        ({"learned_rows": "disk"}, "learned_rows: got disk with model tgn"),
        ({"fanouts": (-1,)}, "fanouts: got .* with model tgn"),
        ({"num_negatives": 0}, "num_negatives: got 0 with model tgn"),
    ],
)
def test_settings_that_do_not_fit_are_refused(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        config_of("tgn", **changes)
    assert load_config(overrides=["task=temporal_link_prediction"]).model == "sage"


def test_a_wide_memory_is_learned_as_a_narrow_one_is(tmp_path: Path) -> None:
    """Steps of Adam add up over the width: at 512 the loss of jodie rose above chance."""
    with event_store(tmp_path / "g", favorites()) as graph:
        config = config_of("jodie", epochs=4, dim=512, lr=0.003)
        report = gs.gnn.train(graph, config, tmp_path / "run")
    assert report.metrics["loss"] < 2.5  # of 24 nodes, log 24 is 3.2


@pytest.mark.parametrize(
    ("model", "kind"), [("tgn", "dense"), ("tgn", "bag"), ("jodie", "dense")]
)
def test_features_of_nodes_are_read(tmp_path: Path, model: str, kind: str) -> None:
    """Who meets whom depends on features alone, and most who meet in test are new."""
    rng, groups = np.random.default_rng(0), 6
    group = np.arange(300) % groups
    src = rng.permutation(np.tile(np.arange(60), 7))
    dst = 60 + groups * rng.integers(0, 40, len(src)) + group[src]
    edges = {"src": src, "dst": dst, "time": np.arange(len(src))}
    told: Any = np.eye(groups, dtype=np.float32)[group]
    if kind == "bag":
        told = pa.array([[it] for it in group.tolist()], type=pa.large_list(pa.uint32()))

    def mrr(name: str, features: dict[str, Any]) -> float:
        nodes = NodeChunk(ids=np.arange(300), node_type="node", features=features)
        source = ListSource(
            [nodes, EdgeChunk(src=src, dst=dst, edge_type=_EDGE, columns=rest)]
        )
        with ingest(source, tmp_path / name).graph as graph:
            config = config_of(model, epochs=5, batch_size=40, dim=16, lr=0.02)
            gs.gnn.train(graph, config, tmp_path / f"{name}-run")
        return float(gs.gnn.evaluate(tmp_path / f"{name}-run")["metrics"]["mrr"])

    rest = {"time": edges["time"]}
    with_them, without = mrr("with", {"x": told}), mrr("without", {})
    assert with_them > 2 * without, (with_them, without)
