"""Training with LABOR and on the past alone: it learns, and sees nothing later."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import ConfigError, InvalidGraphError
from graphsys.gnn import GnnConfig
from graphsys.gnn.data.labels import read_times
from graphsys.gnn.data.positive_pairs import without_pairs
from graphsys.gnn.training.api import build_context
from graphsys.sampling import LaborSampler
from graphsys.storage import Graph, NodeChunk
from tests.stores import edge_chunk, make_store

NUM_NODES = 60
BEFORE = 50  # times of nodes are 50 and up


def config_of(**changes: Any) -> GnnConfig:
    settings: dict[str, Any] = {
        "dim": 16,
        "epochs": 20,
        "batch_size": 16,
        "fanouts": (4, 4),
        "lr": 0.02,
        "eval_every": 0,
        "keep": "last",
        "threads": 1,
    }
    return GnnConfig(**{**settings, **changes})


def make_graph(path: Path, *, num_late: int = 0, times: Any = None) -> Graph:
    """Return nodes whose class is that of their neighbors; late edges say the opposite."""
    rng = np.random.default_rng(3)
    label = np.arange(NUM_NODES) % 2
    early = {(int(a), int(b)) for a, b in rng.integers(0, NUM_NODES, (400, 2))}
    pairs = [(a, b) for a, b in sorted(early) if label[a] == label[b] and a != b]
    late = [(k, (k + 1) % NUM_NODES) for k in range(num_late)]
    x = rng.normal(0, 1, (NUM_NODES, 4)).astype(np.float32)
    x[:, 0] += label
    split = np.array(["train", "train", "valid", "test"])[np.arange(NUM_NODES) // 2 % 4]
    nodes = NodeChunk(
        ids=np.arange(NUM_NODES),
        columns={
            "label": label,
            "split": pa.array(split.tolist()),
            "time": np.arange(NUM_NODES) + BEFORE if times is None else times,
        },
        features={"x": x},
    )
    time = np.concatenate(
        [np.arange(len(pairs)) % BEFORE, np.full(num_late, BEFORE + NUM_NODES)]
    )
    make_store(path, nodes, edge_chunk(pairs + late, time=time), order="original")
    return Graph(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"sampler": "labor"},
        {"sampler": "labor", "frontier": "new", "model": "gcn"},
        {"sampler": "labor", "labor_iterations": 1},
        {"sampler": "labor", "labor_iterations": -1, "model": "gcn"},
        {"sampler": "labor", "labor_iterations": 2, "model": "rgcn", "frontier": "new"},
        {"sampler": "temporal"},
        {"sampler": "temporal", "recent": True, "model": "gatv2", "heads": 2},
    ],
)
def test_training_learns(tmp_path: Path, changes: dict[str, Any]) -> None:
    graph = make_graph(tmp_path / "g")
    report = gnn.train(graph, config_of(**changes), tmp_path / "run")
    assert report.metrics["loss"] < 0.4
    assert gnn.evaluate(tmp_path / "run", split="train")["metrics"]["accuracy"] > 0.9


def test_later_edges_change_nothing(tmp_path: Path) -> None:
    config = config_of(sampler="temporal", fanouts=(-1, -1), epochs=3)
    found = []
    for num_late in (0, 40):
        graph = make_graph(tmp_path / f"g{num_late}", num_late=num_late)
        run = tmp_path / f"run{num_late}"
        gnn.train(graph, config, run)
        found.append(gnn.open_run(run).output())
    assert found[0].shape == (NUM_NODES, 2)
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)
    plain = gnn.open_run(tmp_path / "run40")
    some = plain.output(np.array([7, 3]))
    np.testing.assert_allclose(some, found[1][[7, 3]], atol=1e-5)


def test_nodes_without_times(tmp_path: Path) -> None:
    times = pa.array([None if k == 1 else k for k in range(NUM_NODES)], pa.int64())
    graph = make_graph(tmp_path / "g", times=times)
    message = "1 of 32 nodes of type 'node' have no time, before which to sample: 1"
    with pytest.raises(InvalidGraphError, match=re.escape(message)):
        gnn.train(graph, config_of(sampler="temporal", batch_size=60), tmp_path / "run")
    days = pa.array(np.arange(NUM_NODES).astype("datetime64[D]"))
    graph = make_graph(tmp_path / "days", times=days)
    assert (read_times(graph, "node") == np.arange(NUM_NODES) * 86400).all()
    graph = make_graph(tmp_path / "text", times=pa.array(["x"] * NUM_NODES))
    message = (
        "column 'time' of node type 'node' is large_string, expected integers or timestamps"
    )
    with pytest.raises(ConfigError, match=re.escape(message)):
        gnn.train(graph, config_of(sampler="temporal"), tmp_path / "run2")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"recent": True}, "recent: got true with sampler neighbor, expected sampler"),
        ({"sampler": "labor", "replace": True}, "replace: got True with sampler labor"),
        (
            {"sampler": "labor", "weighted": True, "model": "gat"},
            "weighted: got true with sampler labor and model gat, whose neighbors count",
        ),
        (
            {"sampler": "labor", "weighted": True, "aggregator": "max"},
            "expected model gcn, hep, rgcn or sage with aggregator mean, or sampler nei",
        ),
        (
            {"sampler": "labor", "weighted": True, "sample_at": "owners"},
            "weighted: got True with sample_at owners, which draws a row by its node alone",
        ),
        ({"sampler": "labor", "recent": True}, "it knows no time"),
        ({"sampler": "labor", "model": "pinsage"}, "its neighborhoods are walked"),
        ({"sampler": "labor", "batch_size": 0}, "the whole graph is not sampled"),
        (
            {"labor_iterations": 1},
            "got 1 with sampler neighbor, expected sampler labor, or",
        ),
        (
            {"sampler": "labor", "labor_iterations": 1, "model": "gat"},
            "got 1 with model gat, whose neighbors count alike; expected model gcn, hep,",
        ),
        (
            {"sampler": "labor", "labor_iterations": 1, "aggregator": "max"},
            "expected model gcn, hep, rgcn or sage with aggregator mean, or 0",
        ),
        (
            {"sampler": "labor", "labor_iterations": -2},
            "labor_iterations: got -2, expected",
        ),
        (
            {"sampler": "labor", "labor_iterations": 1, "sample_at": "owners"},
            "labor_iterations: got 1 with sample_at owners",
        ),
        ({"sampler": "temporal", "model": "gcn"}, "its sums know later edges"),
        (
            {"sampler": "temporal", "task": "link_prediction"},
            "task: got link_prediction with sampler temporal",
        ),
        ({"sampler": "temporal", "recent": True, "weighted": True}, "are not drawn"),
    ],
)
def test_settings_that_contradict(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        config_of(**changes)


@pytest.mark.parametrize("model", ["sage", "gcn", "rgcn", "hep"])
def test_weighed_samples_of_all_neighbors_say_what_all_of_them_do(
    tmp_path: Path, model: str
) -> None:
    """With all neighbors the weights are 1 / d: means are what they are without."""
    graph = make_graph(tmp_path / "g")
    seeds = {"node": np.arange(10)}
    outputs = []
    for iterations in (0, 1):
        config = config_of(
            sampler="labor", labor_iterations=iterations, model=model, fanouts=(-1, -1)
        )
        torch.manual_seed(0)
        context = build_context(graph, config)
        context.network.eval()
        messages = context.message_graph
        sample = messages.sample(seeds, epoch=0, batch=0)
        hops = messages.wrap(sample.layers)
        assert (hops[0][messages.relations[0][0]].weight is not None) == (
            bool(iterations) or model == "gcn"
        )
        x = {"node": torch.from_numpy(graph.features("node", 0, "x")[sample.input_nodes])}
        outputs.append(context.network(hops, x)["node"].detach().numpy())
    np.testing.assert_allclose(outputs[0], outputs[1], atol=1e-5)


def test_what_is_left_of_a_weighed_row_stands_for_all_of_it(tmp_path: Path) -> None:
    graph = make_graph(tmp_path / "g")
    sampler = LaborSampler(graph, [4], iterations=1)
    block = sampler.sample(np.arange(NUM_NODES)).blocks[0]
    rows = np.repeat(block.dst_nodes, np.diff(block.indptr))
    src = block.src_nodes[block.indices][::3].copy()
    for has_shares in (False, True):
        (layer,) = without_pairs(
            [{"edge": block}], "edge", src, rows[::3], has_shares=has_shares
        )
        left = layer["edge"]
        assert left.weight is not None
        assert left.num_edges < block.num_edges
        totals = np.bincount(
            np.repeat(np.arange(left.num_dst), np.diff(left.indptr)),
            left.weight,
            left.num_dst,
        )
        filled = totals > 0
        assert np.allclose(totals[filled], 1) == has_shares
