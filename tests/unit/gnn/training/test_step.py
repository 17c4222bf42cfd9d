"""Options of a training step: each against the step it stands for."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphsys import gnn
from graphsys.core.errors import MissingDependencyError
from graphsys.gnn import GnnConfig
from graphsys.gnn.ops.adjacency import SparseRows
from graphsys.gnn.ops.functional import spmm
from graphsys.gnn.training.optimizer import Lamb
from graphsys.training.tensorboard import FOLDER
from tests.unit.gnn.conftest import Store
from tests.unit.gnn.training.test_api import (
    StopAfter,
    StoppedError,
    are_equal,
    config_of,
    weights_of,
)

EXACT = {"fanouts": (-1, -1), "epochs": 3, "dropout": 0.0, "lr": 0.01}


def trained(graph: Any, path: Path, **changes: Any) -> dict[str, torch.Tensor]:
    gnn.train(graph, config_of(**{**EXACT, **changes}), path)
    return weights_of(path)


def are_close(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor], by: float) -> bool:
    return all(torch.allclose(a[name], b[name], atol=by) for name in a)


def test_gradients_of_two_batches_make_the_step_of_one(
    groups: Store, tmp_path: Path
) -> None:
    """24 training nodes: batches of 6, two by two, are batches of 12."""
    graph = groups(1)
    # the order of seeds is that of the epoch, cut at other places
    two = trained(graph, tmp_path / "two", batch_size=6, accumulate=2)
    one = trained(graph, tmp_path / "one", batch_size=12)
    other = trained(graph, tmp_path / "other", batch_size=6)
    assert are_close(two, one, 1e-5)
    assert not are_close(two, other, 1e-3)


def test_accumulating_resumes_at_a_step(groups: Store, tmp_path: Path) -> None:
    graph = groups(1)
    config = config_of(
        batch_size=5, accumulate=3, epochs=3, deterministic=True, checkpoint_seconds=0
    )
    gnn.train(graph, config, tmp_path / "whole")  # 5 batches: steps after 3 and 2
    with pytest.raises(StoppedError):
        gnn.train(graph, config, tmp_path / "run", progress=StopAfter(9))
    assert gnn.open_run(tmp_path / "run").state.batch in (0, 3)
    gnn.train(graph, None, tmp_path / "run", resume=True)
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))


@pytest.mark.parametrize(
    ("model", "norm", "precision"),
    [
        ("sage", "none", "float32"),
        ("gat", "layer", "float32"),
        ("gcn", "batch", "float32"),
        ("gin", "batch", "float32"),
        ("sage", "batch", "bfloat16"),
    ],
)
def test_recomputing_changes_nothing(
    groups: Store, tmp_path: Path, model: Any, norm: Any, precision: Any
) -> None:
    """Running means of batch norm, too, see each batch once."""
    graph = groups(1)
    options = {"model": model, "norm": norm, "dropout": 0.4, "attention_dropout": 0.2}
    options["precision"] = precision
    kept = trained(graph, tmp_path / "kept", **options)
    again = trained(graph, tmp_path / "again", recompute="all", **options)
    assert are_equal(kept, again)


def test_truth_values_of_before_are_read(tmp_path: Path) -> None:
    file = tmp_path / "old.toml"
    for before, today in (("true", "all"), ("false", "auto")):
        file.write_text(f"recompute = {before}\n")
        assert gnn.load_config(file=file).recompute == today
        assert gnn.load_config(overrides=[f"recompute={before}"]).recompute == today
    old: Any = True
    assert GnnConfig(recompute=old).recompute == "all"


def test_recomputing_keeps_less(groups: Store) -> None:
    """Tensors held for the backward pass: inputs of layers alone."""
    from graphsys.gnn.training.api import build_context

    held = []
    for recompute in ("none", "all"):
        config = config_of(layers=3, fanouts=(-1,) * 3, recompute=recompute, dropout=0.5)
        context = build_context(groups(1), config)
        context.network.train()
        nodes = {"node": np.arange(48)}
        layer, x = context.message_graph.whole(), context.features.gather(nodes)
        kept: list[int] = []

        def note(tensor: torch.Tensor, kept: list[int] = kept) -> torch.Tensor:
            kept.append(tensor.numel())
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
            context.network([layer] * 3, x)["node"].sum()
        held.append(sum(kept))
    assert held[1] < held[0] / 2


@pytest.mark.parametrize("model", ["sage", "gcn", "gat", "gatv2", "gin"])
def test_bfloat16_products_learn_too(groups: Store, tmp_path: Path, model: Any) -> None:
    graph = groups(1)
    config = config_of(model=model, precision="bfloat16", epochs=40)
    report = gnn.train(graph, config, tmp_path / "run")
    assert gnn.evaluate(tmp_path / "run", split="train")["metrics"]["accuracy"] >= 0.9
    assert all(w.dtype == torch.float32 for w in weights_of(tmp_path / "run").values())
    exact = gnn.train(graph, config_of(model=model, epochs=40), tmp_path / "exact")
    assert report.metrics["loss"] != exact.metrics["loss"]
    assert report.metrics["loss"] == pytest.approx(exact.metrics["loss"], abs=0.2)


def test_sums_of_bfloat16_are_float32() -> None:
    rows = SparseRows(np.array([0, 300]), np.zeros(300, np.int32), 1, is_prefix=False)
    x = torch.tensor([[1.0]], dtype=torch.bfloat16, requires_grad=True)
    found = spmm(rows, x)
    assert found.dtype == torch.float32
    assert found.item() == 300  # bfloat16 has no 257
    found.sum().backward()  # type: ignore[no-untyped-call]
    assert x.grad is not None
    assert x.grad.dtype == torch.bfloat16


def test_lamb_takes_the_paper_s_step() -> None:
    weight = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    optimizer = Lamb([weight], lr=0.1, weight_decay=0.5)
    w, m, v = np.array([3.0, 4.0]), np.zeros(2), np.zeros(2)
    for step, grad in enumerate(([1.0, -2.0], [0.5, 0.5]), 1):
        weight.grad = torch.tensor(grad)
        optimizer.step()
        m = 0.9 * m + 0.1 * np.array(grad)
        v = 0.999 * v + 0.001 * np.array(grad) ** 2
        r = (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-6) + 0.5 * w
        w = w - 0.1 * np.linalg.norm(w) / np.linalg.norm(r) * r
        assert weight.detach().numpy() == pytest.approx(w, rel=1e-5)


@pytest.mark.parametrize(("optimizer", "lr"), [("lamb", 0.05), ("lars", 2.0)])
def test_an_optimizer_for_large_batches_trains_and_resumes(
    groups: Store, tmp_path: Path, optimizer: str, lr: float
) -> None:
    graph = groups(1)
    config = config_of(
        optimizer=optimizer,
        lr=lr,
        epochs=30,
        deterministic=True,
        checkpoint_seconds=0,
        weight_decay=1e-3,
    )
    gnn.train(graph, config, tmp_path / "whole")
    assert gnn.evaluate(tmp_path / "whole", split="train")["metrics"]["accuracy"] >= 0.9
    with pytest.raises(StoppedError):
        gnn.train(graph, config, tmp_path / "run", progress=StopAfter(7))
    gnn.train(graph, None, tmp_path / "run", resume=True)
    assert are_equal(weights_of(tmp_path / "run"), weights_of(tmp_path / "whole"))


def test_curves_are_written_for_tensorboard(groups: Store, tmp_path: Path) -> None:
    events = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    config = config_of(epochs=4, eval_every=2, tensorboard=True)
    report = gnn.train(groups(1), config, tmp_path / "run")
    found = events.EventAccumulator(str(tmp_path / "run" / FOLDER))
    found.Reload()
    losses = found.Scalars("loss")
    assert [event.step for event in losses] == [1, 2, 3, 4]
    assert losses[-1].value == pytest.approx(report.metrics["loss"], rel=1e-5)
    assert [event.step for event in found.Scalars("valid_accuracy")] == [2, 4]
    assert {"lr", "seconds", "valid_loss"} <= set(found.Tags()["scalars"])


def test_without_tensorboard_its_extra_is_named(
    groups: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "torch.utils.tensorboard", None)
    with pytest.raises(
        MissingDependencyError, match=r"pip install 'graphsys\[tensorboard\]'"
    ):
        gnn.train(groups(1), config_of(tensorboard=True), tmp_path / "run")


def test_defaults_are_those_of_runs_before_these_options() -> None:
    config = GnnConfig()
    assert (config.optimizer, config.accumulate, config.precision) == ("adam", 1, "float32")
    assert config.recompute == "auto"  # which does nothing without a budget
    assert not config.tensorboard
