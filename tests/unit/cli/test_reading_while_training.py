"""A run is read while it trains: each reader has one whole checkpoint until it is done."""

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphsys import embedding, gnn
from graphsys.cli import main as cli
from graphsys.embedding import open_run
from graphsys.storage.runs import run_check, run_folder, run_pins
from graphsys.storage.runs.run_pins import RunPin
from graphsys.storage.verify.run import verify_run
from graphsys.training.loop import TrainingLoop

TRAIN = {
    "embedding": "train embedding graph -o out --set dim=4 --set checkpoint_seconds=0 "
    "--set threads=1 --set preserve_every=50",
    "gnn": "train gnn graph -o out --set dim=4 --set task=link_prediction --set "
    "num_negatives=1 --set checkpoint_seconds=0 --set threads=1",
}
READ = {
    "embedding": (
        "evaluate out",
        "verify out",
        "nearest out 1 -k 3",
        "export out -o rows.parquet --overwrite",
        "predict out --nodes nodes.txt --top-k 2 -o best.parquet --overwrite",
    ),
    "gnn": (
        "evaluate out",
        "verify out",
        "nearest out 1 -k 3",
        "export out -o rows.parquet --overwrite",
    ),
}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    lines = [f"{k} {(k * step + 1) % 96}" for k in range(96) for step in (1, 3, 5)]
    Path("edges.txt").write_text("\n".join(lines) + "\n")
    Path("nodes.txt").write_text("1\n2\n")
    command = "ingest edges.txt -o graph --partitions 2 --split 0.8,0.1,0.1"
    assert cli.main(command.split()) == 0
    return tmp_path


def has_weights(run: Path) -> bool:
    file = run / "run.json"
    return file.exists() and bool(json.loads(file.read_text())["files"])


@pytest.mark.parametrize("kind", TRAIN)
def test_every_reader_beside_a_training_finds_a_whole_checkpoint(
    here: Path,
    kind: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert cli.main([*TRAIN[kind].split(), "--set", "epochs=2"]) == 0
    for command in READ[kind]:  # all is compiled and loaded now
        assert cli.main(command.split()) == 0
    codes: list[int] = []
    more = ["--set", "epochs=300", "--overwrite"]
    (here / "out").rename(here / "first")
    checkpoint, have_read = TrainingLoop.checkpoint, threading.Event()

    def last_where_all_is_read(loop: TrainingLoop) -> None:
        checkpoint(loop)
        if have_read.is_set():
            loop.stop()

    monkeypatch.setattr(TrainingLoop, "checkpoint", last_where_all_is_read)
    training = threading.Thread(
        target=lambda: codes.append(cli.main([*TRAIN[kind].split(), *more[:2]]))
    )
    training.start()
    while not has_weights(here / "out"):
        assert training.is_alive()
    failed, rounds = [], 0
    while training.is_alive() and rounds < 4:
        for command in READ[kind]:
            if cli.main(command.split()):
                failed.append((command, capsys.readouterr()))
        rounds += 1
    have_read.set()
    training.join()
    assert codes == [0]
    assert failed == []
    assert rounds > 2
    assert verify_run(here / "out").problems == []  # and nothing is left of old ones


def test_files_of_a_checkpoint_stay_while_it_is_read_and_go_then(here: Path) -> None:
    train = [*TRAIN["embedding"].split(), "--set", "epochs=3"]
    before: dict[Path, bytes] = {}

    def pin(run: Path) -> None:
        pins.append(RunPin(run))
        opened = open_run(run)
        assert opened.state.files
        before.update({run / it: (run / it).read_bytes() for it in opened.state.files})

    pins: list[RunPin] = []
    at_epochs(1, lambda: pin(here / "out"), lambda: cli.main(train))
    (reader,) = pins
    assert not reader.is_current()
    assert {file: file.read_bytes() for file in before} == before
    reader.release()
    assert not any(file.exists() for file in before if file not in current(here / "out"))
    assert verify_run(here / "out").problems == []


@pytest.mark.parametrize("kind", TRAIN)
def test_a_resume_that_changes_settings_while_a_reader_opens_the_run_is_no_damage(
    here: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cli.main([*TRAIN[kind].split(), "--set", "epochs=2"]) == 0
    opened = embedding if kind == "embedding" else gnn
    check, asked = run_check.check_files, list[Path]()

    def late(path: Path, *given: Any, **how: Any) -> None:
        if not asked:  # after the reader read run.json, before it compares files with it
            asked.append(path)
            words = f"train {kind} graph -o out --resume --set epochs=3"
            assert cli.main(words.split()) == 0
        check(path, *given, **how)

    monkeypatch.setattr(run_folder, "check_files", late)
    assert opened.open_run(here / "out").state.epoch == 3
    assert asked


def test_ctrl_c_while_a_checkpoint_is_let_go_is_no_other_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run.json").write_text('{"files": {}}')
    with run_pins.replacing(tmp_path):
        pass
    close = os.close

    def interrupted(file: int) -> None:
        close(file)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(os, "close", interrupted)
        with pytest.raises(KeyboardInterrupt):
            run_pins.remove_replaced(tmp_path, ())
    run_pins.forget(tmp_path)


def current(run: Path) -> set[Path]:
    return {run / name for name in open_run(run).state.files}


def at_epochs(epoch: int, do: Callable[[], None], work: Callable[[], int]) -> None:
    """Do something when so many epochs of a training of embeddings are committed."""
    from graphsys.embedding import run as runs

    commit = runs.commit
    seen: list[int] = []

    def noted(path: Path, state: runs.EmbeddingRunState) -> None:
        commit(path, state)
        if state.epoch >= epoch and not seen:
            seen.append(epoch)
            do()

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(runs, "commit", noted)
        assert work() == 0
