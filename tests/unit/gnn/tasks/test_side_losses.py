"""Side tasks: the loss in plain torch, what it compares, reports, resumes and refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch
from torch.nn import functional

import graphsys as gs
from graphsys import gnn
from graphsys.core.errors import ConfigError, UnknownNameError
from graphsys.gnn.data.features import FeatureBags, InputShape
from graphsys.gnn.data.loader import Loader
from graphsys.gnn.tasks.side_losses import Content, side_losses
from graphsys.gnn.training.api import build_context
from graphsys.gnn.training.step import Stepper
from graphsys.storage import Graph, NodeChunk
from graphsys.training.history import history
from tests.conftest import Call
from tests.stores import edge_chunk, make_store
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.test_process_group import train_in_two
from tests.unit.gnn.training.test_api import StopAfter, StoppedError, weights_of

CONTENT = {"content": 0.5}


def config_of(**changes: Any) -> gnn.GnnConfig:
    settings: dict[str, Any] = {
        "task": "link_prediction",
        "side_tasks": CONTENT,
        "dim": 8,
        "epochs": 2,
        "batch_size": 40,
        "fanouts": (4, 4),
        "num_negatives": 10,
        "num_walks": 10,
        "lr": 0.01,
        "eval_every": 0,
        "keep": "last",
        "deterministic": True,
    }
    return gnn.GnnConfig(**{**settings, **changes})


@pytest.fixture
def words(tmp_path: Path) -> Graph:
    """Return a ring of 40 nodes whose words are their own number and that of a group."""
    bags = pa.array([[k, 40 + k % 4] for k in range(40)], pa.large_list(pa.uint32()))
    make_store(
        tmp_path / "words",
        NodeChunk(ids=np.arange(40), features={"text": bags}),
        edge_chunk([(k, (k + step) % 40) for step in (1, 4, 8) for k in range(40)]),
        is_directed=False,
    )
    return Graph(tmp_path / "words")


def test_the_loss_is_that_of_plain_torch() -> None:
    torch.manual_seed(3)
    shapes = {"pin": InputShape(dim=5), "board": InputShape(dim=0, is_bag=True)}
    content = Content(config_of(temperature=0.2), shapes, 4)
    rows = {"pin": torch.randn(6, 4), "board": torch.randn(3, 4)}
    inputs = {"pin": torch.randn(6, 5), "board": torch.randn(3, 8)}
    losses: list[float] = []
    for name in rows:
        layer: Any = content.maps[name]
        mapped = inputs[name] @ layer.weight.T + layer.bias
        for k in range(len(mapped)):
            cos = functional.cosine_similarity
            by_row = torch.exp(cos(rows[name][k : k + 1], mapped) / 0.2)
            by_content = torch.exp(cos(rows[name], mapped[k : k + 1]) / 0.2)
            losses += [-torch.log(it[k] / it.sum()).item() for it in (by_row, by_content)]
    assert content(rows, inputs).item() == pytest.approx(np.mean(losses), rel=1e-5)


@pytest.mark.parametrize("model", ["sage", "gcn", "ahep", "hgt"])
@pytest.mark.parametrize("frontier", ["all", "new"])
def test_rows_and_features_are_of_the_same_distinct_nodes(
    library: Graph, model: str, frontier: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Destinations of pairs, without negatives; readers have no features."""
    context = build_context(library, config_of(model=model, frontier=frontier))
    seen = compared(context, monkeypatch)
    pairs = context.task._now.pairs_of(0)  # type: ignore[attr-defined]
    nodes = np.unique(pairs[:, 1])
    wanted = context.features.gather({"book": nodes})["book"].numpy()
    assert {n: len(x) for n, x in seen.items()} == {"book": len(nodes)}
    np.testing.assert_allclose(sorted(seen["book"].tolist()), sorted(wanted.tolist()))


@pytest.mark.parametrize("model", ["sage", "pinsage"])
def test_bags_are_compared_as_their_means_of_learned_rows(
    words: Graph, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sources of pairs, where both ends are of one type."""
    context = build_context(words, config_of(model=model, positives="walks"))
    seen = compared(context, monkeypatch)
    nodes = np.unique(context.task._now.pairs_of(0)[:, 0])  # type: ignore[attr-defined]
    bags = context.features.gather({"node": nodes})["node"]
    assert isinstance(bags, FeatureBags)
    table: Any = context.network.learned["node"]
    wanted = table(bags.values, bags.begins).detach().numpy()
    np.testing.assert_allclose(
        sorted(seen["node"].tolist()), sorted(wanted.tolist()), rtol=1e-5
    )


def compared(context: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return the features that the first batch's rows are compared with, by type."""
    seeds = context.task.seeds(0)
    loader = Loader(context.message_graph, context.features, 0, context.task.trim)
    batch = loader.make(seeds[0], epoch=0, number=0)
    found: dict[str, Any] = {}

    def look(rows: Any, inputs: Any) -> torch.Tensor:
        assert {n: len(x) for n, x in rows.items()} == {
            n: len(x) for n, x in inputs.items()
        }
        found.update({name: x.detach().numpy() for name, x in inputs.items()})
        return torch.zeros(())

    context.network.train()
    rows = context.network(batch.hops, batch.x)
    monkeypatch.setattr(context.network.side_tasks["content"], "forward", look)
    count = len(context.task._now.pairs_of(0))
    assert side_losses(context.network, rows, batch, count)["content"].item() == 0
    assert context.network.inputs == {}  # so that nothing of a batch stays
    return found


def test_weight_0_trains_what_no_side_task_does(words: Graph, tmp_path: Path) -> None:
    for name, tasks in (("without", {}), ("zero", {"content": 0.0})):
        gnn.train(words, config_of(side_tasks=tasks), tmp_path / name)
    without, zero = weights_of(tmp_path / "without"), weights_of(tmp_path / "zero")
    assert [name for name in zero if name not in without] == [
        "side_tasks.content.maps.node.weight",
        "side_tasks.content.maps.node.bias",
    ]
    assert all(torch.equal(zero[name], without[name]) for name in without)
    one, two = (gnn.open_run(tmp_path / name).state for name in ("without", "zero"))
    assert one.losses == two.losses == two.task_losses["task"]
    assert one.task_losses == {}


def test_it_is_learned_and_rows_find_their_words(words: Graph, tmp_path: Path) -> None:
    config = config_of(side_tasks={"content": 1.0}, epochs=40, lr=0.03, dim=32)
    gnn.train(words, config, tmp_path / "run")
    run = gnn.open_run(tmp_path / "run")
    losses = run.state.task_losses["content"]
    assert losses[-1] < losses[0] / 2
    network: Any = run.context.network
    bags = run.context.features.gather({"node": np.arange(40)})["node"]
    words_of = network.learned["node"](bags.values, bags.begins)
    mapped = functional.normalize(network.side_tasks["content"].maps["node"](words_of))
    best = (torch.from_numpy(run.output()) @ mapped.T).argmax(dim=1)
    assert (best == torch.arange(40)).float().mean().item() > 0.8


def test_reports_and_curves_tell_the_losses_apart(
    words: Graph, tmp_path: Path, call: Call
) -> None:
    run = tmp_path / "run"
    settings = ["task=link_prediction", "side_tasks.content=0.25", "epochs=3", "dim=8"]
    options = [part for it in settings for part in ("--set", it)]
    code, said, _ = call("train", "gnn", words.path, "-o", run, "--json", *options)
    assert code == 0
    report = json.loads(said)
    found = report.get("metrics", report)
    total = found["task_loss"] + 0.25 * found["content_loss"]
    assert found["loss"] == pytest.approx(total, rel=1e-4)
    curves = history(run).curves
    assert [len(curves[it]) for it in ("loss", "task_loss", "content_loss")] == [3, 3, 3]
    assert curves["content_loss"][-1] == (3, found["content_loss"])


def test_a_resumed_run_is_equal_bit_by_bit(words: Graph, tmp_path: Path) -> None:
    config = config_of(epochs=3, checkpoint_seconds=0, dropout=0.2)
    gnn.train(words, config, tmp_path / "whole")
    with pytest.raises(StoppedError):
        gnn.train(words, config, tmp_path / "run", progress=StopAfter(5))
    assert gnn.open_run(tmp_path / "run").state.batch
    gnn.train(words, None, tmp_path / "run", resume=True)
    whole, run = weights_of(tmp_path / "whole"), weights_of(tmp_path / "run")
    assert all(torch.equal(whole[name], run[name]) for name in whole)
    one, two = (gnn.open_run(tmp_path / name).state for name in ("whole", "run"))
    assert one.task_losses == two.task_losses
    assert len(one.task_losses["content"]) == 3


@pytest.mark.parametrize("learned_rows", ["memory", "disk"])
def test_a_plan_takes_it_in(words: Graph, tmp_path: Path, learned_rows: Any) -> None:
    config = config_of(learned_rows=learned_rows)
    plan = gnn.train(words, config, tmp_path / "run", dry_run=True, memory="4GB").metrics
    alone = config_of(learned_rows=learned_rows, side_tasks={})
    other = gnn.train(words, alone, tmp_path / "run", dry_run=True, memory="4GB").metrics
    more = plan["planned_parameter_bytes"] - other["planned_parameter_bytes"]
    assert more == 4 * (8 * 8 + 8)
    gnn.train(words, config, tmp_path / "run", memory="4GB")


def test_two_processes_train_it_each_among_its_own(library: Graph, tmp_path: Path) -> None:
    """Their losses are of fewer negatives than those of one process, so lower."""
    config = config_of(epochs=2)
    gnn.train(library, config, tmp_path / "one")
    train_in_two(library, config, tmp_path / "two")
    one, two = (gnn.open_run(tmp_path / name).state for name in ("one", "two"))
    assert two.task_losses["task"] == pytest.approx(one.task_losses["task"], rel=0.05)
    assert 0 < two.task_losses["content"][0] < one.task_losses["content"][0]
    totals = np.add(two.task_losses["task"], np.multiply(0.5, two.task_losses["content"]))
    assert two.losses == pytest.approx(totals.tolist(), rel=1e-4)


def test_a_step_in_bfloat16_has_a_loss_of_32_bits(words: Graph) -> None:
    context = build_context(words, config_of(precision="bfloat16"))
    loader = Loader(context.message_graph, context.features, 0)
    batch = loader.make(context.task.seeds(0)[0], epoch=0, number=0)
    stepper = Stepper(context)
    value, _ = stepper.train(0, batch, 1)
    parts = stepper.losses
    assert value == pytest.approx(parts["task"] + 0.5 * parts["content"], rel=1e-3)


def test_ends_without_features_are_refused(library: Graph, groups: Store) -> None:
    with pytest.raises(UnknownNameError, match="side task 'contents'"):
        config_of(side_tasks={"contents": 1.0})
    edges = pa.table({"src": [0, 1, 2], "dst": [1, 2, 0]})
    bare = gs.ingest(
        out=library.path.parent / "bare", edges={("node", "edge", "node"): edges}
    ).graph
    with pytest.raises(
        ConfigError, match="of type 'node' have no features that are read; expected some"
    ):
        build_context(bare, config_of())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"task": "node_classification"}, "task: got node_classification with side_tasks"),
        ({"task": "temporal_link_prediction"}, "expected link_prediction or recommend"),
        (
            {"model": "gatne"},
            "model: got gatne with side_tasks content, expected a model of",
        ),
        ({"model": "lightgcn"}, "model: got lightgcn .* expected a model that samples"),
        ({"batch_size": 0}, "batch_size: got 0 with side_tasks content, expected at least"),
        (
            {"side_tasks": {"content": -1.0}},
            "side_tasks.content: got -1.0, expected a float",
        ),
    ],
)
def test_what_has_no_rows_to_compare_is_refused(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        config_of(**settings)
