"""A training of embeddings that is made longer when it goes on."""

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import ConfigError
from graphsys.embedding import EmbeddingConfig, evaluate, train
from graphsys.embedding import run as runs
from graphsys.embedding.checkpoints import preserved_epochs
from graphsys.storage import Graph
from graphsys.storage.runs import run_folder
from graphsys.storage.verify.run import verify_run
from tests.unit.embedding.training.test_embedding_callbacks import content, repeatable

MakeRing = Callable[[int], Graph]
EARLY: dict[str, Any] = {"eval_every": 1, "eval_split": "test", "patience": 4}


def longer(config: EmbeddingConfig, epochs: int, **changes: Any) -> EmbeddingConfig:
    return dataclasses.replace(config, epochs=epochs, **changes)


@pytest.mark.parametrize(
    "changes", [{}, EARLY, {"global_embedding": True, "reciprocal": True}]
)
@pytest.mark.parametrize("partitions", [1, 4])
def test_two_epochs_and_two_more_are_four_bit_by_bit(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    partitions: int,
    changes: dict[str, Any],
) -> None:
    graph, config = make_ring(partitions), repeatable(ring_config, epochs=2, **changes)
    whole, run = tmp_path / "whole", tmp_path / "run"
    train(graph, longer(config, 4), whole)
    train(graph, config, run)
    report = train(graph, longer(config, 4), run, resume=True)
    assert report.epochs == 4
    assert content(run) == content(whole)
    assert runs.read_state(run).losses == runs.read_state(whole).losses
    assert (run / "config.toml").read_bytes() == (whole / "config.toml").read_bytes()
    assert preserved_epochs(run) == preserved_epochs(whole)
    assert not verify_run(run).problems


def test_a_longer_training_keeps_its_best_of_before(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    """The best was the run's last epoch; what follows is worse by what counts as better."""
    graph, run = make_ring(1), tmp_path / "run"
    config = repeatable(ring_config, epochs=1, **EARLY, min_improvement=2)
    train(graph, config, run)
    before = content(run)
    report = train(graph, longer(config, 3), run, resume=True)
    assert report.metrics["best_epoch"] == 1
    assert content(run) == before
    advice = (
        r"epochs with the rows of its best, 1 \(patience 4\).*`graphsys train embedding"
    )
    with pytest.raises(ConfigError, match=advice):
        train(graph, longer(config, 6), run, resume=True)
    assert runs.read_config(run).epochs == 3
    train(graph, longer(config, 2, init_from=str(run), patience=0), tmp_path / "new")


def test_a_resume_cannot_end_before_what_was_trained(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, config, run = make_ring(1), repeatable(ring_config), tmp_path / "run"
    train(graph, config, run)
    message = "got 3, but the run .* was trained for 4 epochs; expected at least 4"
    with pytest.raises(ConfigError, match=message):
        train(graph, longer(config, 3), run, resume=True)


def test_other_settings_of_a_resume_are_written_down(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, config, run = make_ring(1), repeatable(ring_config), tmp_path / "run"
    train(graph, config, run)
    with pytest.raises(ConfigError, match=re.escape("(eval_split: valid -> test)")):
        train(graph, longer(config, 6, eval_split="test"), run, resume=True)
    train(graph, longer(config, 6, preserve_every=5, threads=1), run, resume=True)
    assert runs.read_config(run) == longer(config, 6, preserve_every=5, threads=1)
    assert preserved_epochs(run) == [5]


def test_rates_that_fall_over_all_epochs_are_told_of(
    make_ring: MakeRing, ring_config: EmbeddingConfig, tmp_path: Path
) -> None:
    graph, run = make_ring(1), tmp_path / "run"
    config = repeatable(ring_config, epochs=2, lr_schedule="linear")
    train(graph, config, run)
    with pytest.warns(UserWarning, match="rates of a run of 4 epochs, what is trained had"):
        train(graph, longer(config, 4), run, resume=True)
    train(graph, longer(config, 4), tmp_path / "whole")
    assert content(run) != content(tmp_path / "whole")


@pytest.mark.parametrize("last", range(3))
def test_a_kill_as_the_settings_change_leaves_a_whole_run(
    make_ring: MakeRing,
    ring_config: EmbeddingConfig,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    last: int,
) -> None:
    graph, run = make_ring(1), tmp_path / "run"
    config = repeatable(ring_config, epochs=2)
    train(graph, longer(config, 4), tmp_path / "whole")
    train(graph, config, run)
    left, write = [last], run_folder.write_durably

    def write_or_die(file: Path, data: bytes) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt  # nothing after it is done, as after a kill
        write(file, data)

    with monkeypatch.context() as patched:
        patched.setattr(run_folder, "write_durably", write_or_die)
        with pytest.raises(KeyboardInterrupt):
            train(graph, longer(config, 4), run, resume=True)
    assert evaluate(run, split="test")["metrics"]["mrr"] > 0
    assert not verify_run(run).problems
    assert runs.read_config(run).epochs == (4 if last == 2 else 2)
    train(graph, longer(config, 4), run, resume=True)
    assert content(run) == content(tmp_path / "whole")
    assert "config.toml" in runs.read_state(run).checksums
