"""What is said after Ctrl-C, a kill or a full disk leads to the end of the work."""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graphsys.embedding.run import EmbeddingRunState
from graphsys.gnn.training.trainer import GnnTrainer
from tests.advice.case import advised
from tests.advice.conftest import Command
from tests.advice.test_tune import FILES as SEARCHED
from tests.advice.test_tune import MADE

FEW = "--set dim=4 --set checkpoint_seconds=0"
REPLACING = "graphsys/storage/runs/run_replacement.py"
Interrupted = Callable[[str], str]


@pytest.fixture
def graph(folder: Path, command: Command) -> Path:
    """Make the graph ``g`` of three nodes in the current folder."""
    (folder / "a.txt").write_text("1 2\n2 3\n3 1\n")
    assert command("ingest a.txt -o g").code == 0
    return folder / "g"


@contextmanager
def ctrl_c(owner: type, name: str, call: int) -> Iterator[None]:
    """Have one of a function's calls end as Ctrl-C ends it."""
    function, count = getattr(owner, name), 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal count
        count += 1
        if count == call:
            raise KeyboardInterrupt
        return function(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, counted)
        yield
    assert count >= call


@pytest.fixture
def interrupted(graph: Path, command: Command) -> Interrupted:
    """Return a function that ends a training after its first epoch by Ctrl-C."""

    def do(line: str) -> str:
        is_gnn = "train gnn" in line
        owner = GnnTrainer if is_gnn else EmbeddingRunState
        with ctrl_c(owner, "end_epoch", 2):
            done = command(line)
        assert done.code == 130, done.said
        return done.said

    return do


def epochs(out: str) -> int:
    """Return how many epochs a training's report names."""
    return int(json.loads(out)["epochs"])


@pytest.mark.parametrize(
    "words", ["embedding g -o run", "gnn g -o run --set task=link_prediction"]
)
def test_a_training_goes_on_as_it_says(
    command: Command, interrupted: Interrupted, words: str
) -> None:
    said = interrupted(f"train {words} {FEW} --set epochs=3")
    line = advised(
        said, "graphsys/cli/train.py", r"go on with (graphsys train \S+ g -o run --resume)$"
    )
    done = command(f"{line[1]} --json")
    assert (done.code, epochs(done.out)) == (0, 3)


def test_a_search_goes_on_as_it_says(graph: Path, command: Command) -> None:
    pytest.importorskip("optuna")
    for name, content in SEARCHED.items():
        (graph.parent / name).write_text(str(content))
    assert command(MADE).code == 0
    with ctrl_c(EmbeddingRunState, "end_epoch", 2):
        done = command("tune ring -o search --config search.toml --trials 2")
    assert done.code == 130, done.said
    line = advised(
        done.said,
        "graphsys/cli/tune.py",
        r"go on with (graphsys tune ring -o search --resume)",
    )
    assert json.loads(command(f"{line[1]} --trials 2 --json").out)["trials"] == 2


def test_a_checkpoint_that_is_asked_says_how_its_training_goes_on(
    command: Command, interrupted: Interrupted
) -> None:
    interrupted(f"train embedding g -o run {FEW} --set epochs=3")
    asked = command("evaluate run --split train")
    goes_on = advised(
        asked.said,
        "graphsys/cli/evaluate.py",
        "run is a checkpoint after 1 whole epochs; its training goes on with (--resume)",
    )
    assert command(f"train embedding g -o run {goes_on[1]}").code == 0
    assert "checkpoint" not in command("evaluate run --split train").said


def test_a_run_that_was_to_replace_another_is_gone_on_with(
    command: Command, interrupted: Interrupted, graph: Path
) -> None:
    place = graph.parent
    assert command(f"train embedding g -o run {FEW} --set epochs=1").code == 0
    again = f"train embedding g -o run {FEW} --set epochs=3 --overwrite"
    interrupted(again)
    note = (place / ".run.graphsys-next" / ".replaces").read_text()
    shutil.copytree(place, place.with_name("other"))
    line = advised(
        note, REPLACING, r"Go on with `(graphsys train) \.\.\. (-o run --resume)`"
    )
    done = command(f"{line[1]} embedding g {line[2]} --json")
    assert (done.code, epochs(done.out)) == (0, 3)


def test_a_run_that_is_to_replace_one_that_is_gone_is_named(
    command: Command, interrupted: Interrupted, graph: Path
) -> None:
    assert command(f"train embedding g -o run {FEW} --set epochs=1").code == 0
    interrupted(f"train embedding g -o run {FEW} --set epochs=3 --overwrite")
    shutil.rmtree("run")
    missed = command("evaluate run")
    goes_on = advised(missed.said, REPLACING, "is to replace it: go on with (--resume)")
    done = command(f"train embedding g -o run {goes_on[1]} --json")
    assert (done.code, epochs(done.out)) == (0, 3)
    assert command("verify run").code == 0


def test_a_training_that_is_dropped_could_have_been_gone_on_with(
    command: Command, interrupted: Interrupted, graph: Path
) -> None:
    replacing = f"train embedding g -o run {FEW} --set epochs=3 --overwrite"
    assert command(f"train embedding g -o run {FEW} --set epochs=1").code == 0
    interrupted(replacing)
    kept = graph.parent / "kept"
    kept.mkdir()
    for name in ("run", ".run.graphsys-next"):
        shutil.copytree(name, kept / name)
    dropped = command(replacing)
    assert dropped.code == 0
    would = advised(dropped.said, REPLACING, r"\((--resume) would have gone on with it\)")
    for name in ("run", ".run.graphsys-next"):
        shutil.rmtree(name, ignore_errors=True)
        shutil.move(kept / name, name)
    done = command(f"train embedding g -o run {would[1]} --json")
    assert (done.code, epochs(done.out)) == (0, 3)


def test_what_a_kill_left_in_a_run_goes_as_it_is_resumed(
    command: Command, interrupted: Interrupted
) -> None:
    interrupted(f"train embedding g -o run {FEW} --set epochs=3")
    table = next(Path("run").rglob("*.npy"))
    left = table.with_name(re.sub(r"\d+(?=\.npy)", "987", table.name))
    shutil.copy(table, left)
    found = command("verify run")
    assert found.code == 1
    remedy = advised(
        found.out, "graphsys/storage/verify/run.py", "(--resume) removes what a kill left"
    )
    assert command(f"train embedding g -o run {remedy[1]}").code == 0
    assert not left.exists()
    assert command("verify run").code == 0


def test_a_network_without_weights_is_trained_on(graph: Path, command: Command) -> None:
    words = f"train gnn g -o run {FEW} --set epochs=1 --set task=link_prediction"
    with ctrl_c(GnnTrainer, "train_batch", 1):
        assert command(words).code == 130
    asked = command("predict run -o rows.csv")
    goes_on = advised(
        asked.said,
        "graphsys/gnn/inference/trained_model.py",
        "has no weights yet; go on with (--resume)",
    )
    assert command(f"train gnn g -o run {goes_on[1]}").code == 0
    assert command("predict run -o rows.csv").code == 0


ENDS = """\
from pathlib import Path

import graphsys as gs


class Halved(gs.VertexProgram):
    value = gs.state("float64", default=1.0)
    combine, max_supersteps = gs.sum, 6

    def message(self, src, edge):
        return src.value

    def update(self, node, message):
        return message / 2.0

    def until(self, totals):
        told = Path("supersteps.txt")
        told.open("a").write("x")
        if len(told.read_text()) in STOPS:
            raise KeyboardInterrupt
        return False
"""


def test_a_run_that_keeps_nothing_names_what_does_and_goes_on_from_it(
    graph: Path, command: Command
) -> None:
    (graph.parent / "own.py").write_text(ENDS.replace("STOPS", "(3, 6)"))
    line = "run own.py:Halved g -o out.csv"
    first = command(line)
    assert first.code == 130, first.said
    kept = advised(
        first.said, "graphsys/cli/run.py", r"keep their state with (--checkpoint) FOLDER"
    )
    line = f"{line} {kept[1]} kept --checkpoint-every 1"
    second = command(line)
    assert second.code == 130, second.said
    again = advised(
        second.said, "graphsys/cli/run.py", r"go on by the same command and (--resume)$"
    )
    assert command(f"{line} {again[1]}").code == 0
    told = Path("supersteps.txt").read_text()
    assert len(told) < 3 + 3 + 6, "it began again"
    rows = Path("out.csv").read_text().split()[1:]
    assert rows == [f"{node},{0.5**6}" for node in (1, 2, 3)]
