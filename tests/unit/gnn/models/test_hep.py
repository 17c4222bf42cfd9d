"""HEP and AHEP against formulas written out; what they learn, and what they refuse."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import ConfigError
from graphsys.gnn.data.loader import Loader
from graphsys.gnn.data.positive_pairs import read_pairs
from graphsys.gnn.layerwise_inference import infer
from graphsys.gnn.models.hep import HEP
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.step import Stepper
from graphsys.storage import Graph
from tests.conftest import Call
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.multiplex_graphs import numbers
from tests.unit.gnn.training.test_api import StopAfter, StoppedError, are_equal, weights_of

MODELS = ("hep", "ahep")
Floats = npt.NDArray[np.float64]


def config_of(**changes: Any) -> gnn.GnnConfig:
    settings: dict[str, Any] = {
        "model": "hep",
        "dim": 5,
        "layers": 2,
        "epochs": 2,
        "batch_size": 8,
        "threads": 1,
        "margin": 0.5,
    }
    return gnn.GnnConfig(**{**settings, **changes})


def layer(w: Any, k: int, graph: Graph, h: dict[str, Floats]) -> dict[str, Floats]:
    """Return ``tanh(W_t h_v + b_t + W_c mean(h_u))`` of readers and books, one by one."""
    pairs = read_pairs(graph, "reads").tolist()
    new = {}
    for own, other, name, flip in (
        ("book", "reader", "reads", False),
        ("reader", "book", "reads:reversed", True),
    ):
        e = h[own] @ w[f"hops.{k}.own.{own}.weight"].T + w[f"hops.{k}.own.{own}.bias"]
        r = np.zeros_like(e)
        for v in range(len(e)):
            near = [p[flip] for p in pairs if p[not flip] == v]
            if near:
                r[v] = np.mean(h[other][near], axis=0) @ w[f"hops.{k}.of.{name}.weight"].T
        new[own] = np.tanh(e + r)
    return new


def test_rows_are_those_of_plain_numpy(library: Graph) -> None:
    config = config_of(task="link_prediction")
    context = build_context(library, config)
    w = numbers(context.network)
    x = context.features.gather({"book": np.arange(24)})["book"].numpy()
    h = {
        "book": x @ w["entry.book.weight"].T + w["entry.book.bias"],
        "reader": w["learned.reader.weight"] @ w["entry.reader.weight"].T
        + w["entry.reader.bias"],
    }
    for k in range(2):
        h = layer(w, k, library, h)
    wanted = h["book"] @ w["exit.weight"].T + w["exit.bias"]
    np.testing.assert_allclose(infer(context, "book"), wanted, atol=1e-5)
    seeds = {"book": np.array([7, 20, 2])}
    with context.message_graph.sample(seeds, epoch=0, batch=0) as sample:
        hops = context.message_graph.wrap(sample.layers)
        rows = context.network(hops, context.features.gather(sample.nodes))["book"]
    rows = rows[torch.from_numpy(sample.seed_places["book"])].detach()
    np.testing.assert_allclose(rows, wanted[[7, 20, 2]], atol=1e-5)


def test_ahep_with_all_sources_is_hep(library: Graph) -> None:
    found = []
    for config in (
        config_of(task="link_prediction"),
        config_of(task="link_prediction", model="ahep", fanouts=(-1, -1)),
    ):
        context = build_context(library, config)
        loader = Loader(context.message_graph, context.features, prefetch=0)
        batch = loader.make({"book": np.arange(9)}, epoch=0, number=0)
        weights = [rows.weight for hop in batch.hops for rows in hop.values()]
        assert all((it is None) == (config.model == "hep") for it in weights)
        found.append(context.network(batch.hops, batch.x)["book"][batch.places["book"]])
    torch.testing.assert_close(*found)


def test_the_loss_of_embedding_propagation_is_that_of_the_paper() -> None:
    """Node 2 has no neighbors and does not count."""
    torch.manual_seed(2)
    hop = HEP([("likes", "n", "n")], 4, 3, margin=0.7, weight=0.5)
    rows = SparseRows(np.array([0, 2, 3, 3, 5]), np.array([1, 2, 0, 0, 1], np.int32), 4)
    x = torch.randn(4, 4)
    torch.manual_seed(9)
    hop({"likes": rows}, {"n": x}, {"n": x})
    torch.manual_seed(9)
    others = torch.randint(4, (4,))
    e = (x @ hop.own["n"].weight.T + hop.own["n"].bias).detach().numpy()  # type: ignore[operator]
    means = {0: (x[1] + x[2]) / 2, 1: x[0], 3: (x[0] + x[1]) / 2}
    terms: list[float] = []
    for v, mean in means.items():
        r = (mean @ hop.of["likes"].weight.T).detach().numpy()  # type: ignore[operator]
        near = float(np.linalg.norm(r - e[v]) - np.linalg.norm(r - e[others[v]]))
        terms.append(max(0.0, 0.7 + near))
    assert hop.side_loss is not None
    assert max(terms) > 0
    assert hop.side_loss.item() == pytest.approx(0.5 * np.mean(terms), abs=1e-4)
    hop.eval()
    hop({"likes": rows}, {"n": x}, {"n": x})
    assert hop.side_loss is None


@pytest.mark.parametrize("recompute", [False, True])
def test_the_loss_of_a_step_has_that_of_all_layers(groups: Store, recompute: bool) -> None:
    losses = []
    for weight in (0.0, 2.0):
        config = config_of(propagation_weight=weight, recompute=recompute)
        context = build_context(groups(), config)
        loader = Loader(context.message_graph, context.features, prefetch=0)
        seeds = context.task.seeds(0)[0]
        value, _ = Stepper(context).train(0, loader.make(seeds, epoch=0, number=0), 1)
        losses.append(value)
    besides = context.network.side_loss
    assert besides is not None
    assert besides.item() > 0.1
    assert losses[1] - losses[0] == pytest.approx(besides.item(), rel=1e-4)


@pytest.mark.parametrize("model", MODELS)
def test_both_learn_classes_and_a_resumed_run_is_equal_bit_by_bit(
    groups: Store, tmp_path: Path, model: str
) -> None:
    graph = groups(2)
    config = config_of(
        model=model,
        dim=16,
        epochs=12,
        fanouts=() if model == "hep" else (16, 16),
        deterministic=True,
        checkpoint_seconds=0,
    )
    gnn.train(graph, config, tmp_path / "whole", memory="4GB")
    assert gnn.evaluate(tmp_path / "whole")["metrics"]["accuracy"] > 0.8
    with pytest.raises(StoppedError):
        gnn.train(graph, config, tmp_path / "run", progress=StopAfter(8))
    gnn.train(graph, None, tmp_path / "run", resume=True)
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))


def test_a_batch_of_ahep_reads_fewer_rows_and_entries(
    groups: Store, tmp_path: Path
) -> None:
    graph, read = groups(), {}
    for model, fanouts in (("hep", ()), ("ahep", (4, 4))):
        config = config_of(model=model, fanouts=fanouts, epochs=1)
        gnn.train(graph, config, tmp_path / model)
        read[model] = gnn.open_run(tmp_path / model).state.num_edges
    assert read["ahep"] < read["hep"] / 3


def test_the_command_line_trains_ranks_and_exports(
    library: Graph, tmp_path: Path, call: Call
) -> None:
    run = tmp_path / "run"
    words = ["--set", "model=ahep", "--set", "task=link_prediction", "--set", "epochs=1"]
    train = ("train", "gnn", library.path, "-o", run, *words, "--memory", "4GB")
    assert "batches per epoch" in call(*train, "--dry-run")[1]
    assert call(*train)[0] == 0
    found = json.loads(call("evaluate", run, "--json")[1])["metrics"]
    assert 0 <= found["mrr"] <= 1
    code, said, _ = call("nearest", run, 3, "--node-type", "book", "--json")
    assert code == 0
    assert len(json.loads(said)) > 0
    assert call("export", run, "-o", tmp_path / "rows.parquet")[0] == 0
    assert (tmp_path / "rows.parquet").exists()
    disk = ("--set", "learned_rows=disk")
    assert call("train", "gnn", library.path, "-o", tmp_path / "d", *words, *disk)[0] == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size: got 0 with model ahep, expected at least 1"),
        ({"sampler": "labor"}, "model: got ahep with sampler labor"),
        ({"replace": True}, "replace: got True .* a hop of ahep is sampled as one"),
        ({"weighted": True}, "weighted: got True .* a hop of ahep is sampled as one"),
        ({"sample_at": "owners"}, "model: got ahep with sample_at owners"),
        ({"task": "graph_classification"}, "model: got ahep with task graph_class"),
    ],
)
def test_what_a_shared_sample_cannot_do_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        gnn.GnnConfig(model="ahep", **settings)
