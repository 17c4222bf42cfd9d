"""Checkpoints: a resumed run ends as an unbroken one, and nothing else is resumed."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphsys.core import ownership
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    OutputExistsError,
    StorageFullError,
)
from graphsys.core.ownership import is_draft
from graphsys.core.progress import Progress
from graphsys.engine import program as gs
from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.programs.sssp import ShortestPaths
from graphsys.engine.run import run
from graphsys.engine.topology import Topology
from graphsys.storage import Graph
from tests.stores import edge_chunk, make_store


class StoppedError(Exception):
    """What a run ends with that somebody breaks off."""


class StopAfter(Progress):
    """Breaks a run off after some supersteps, before the last one is saved."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def advance(self, steps: int, **figures: float) -> None:
        self.left -= steps
        if self.left < 0:
            raise StoppedError


class TwoPhases(gs.VertexProgram):
    """Alternates between two phases and keeps totals, states of nodes and of edges."""

    loop = True
    rounds: int = 5
    value = gs.state("float64", default=1.0)
    kept = gs.edge_state("float64", default=0.5)
    moved = gs.aggregator(gs.sum_)

    class Keep(gs.Phase):
        stores = "kept"
        combine = gs.sum_

        def message(self, src: Any, edge: Any) -> Any:
            return 0.5 * edge.kept + src.value / (1 + src.out_degree)

        def update(self, node: Any, message: Any) -> Any:
            return 0.9 * node.value + 0.1 * message

        def aggregate(self, before: Any, node: Any) -> Any:
            return abs(node.value - before.value)

    class Shrink(gs.Phase):
        def update(self, node: Any) -> Any:
            return node.value / (1.0 + self.total("moved"))

    phases = (Keep, Shrink)

    def until(self, totals: Any) -> bool:
        return self.superstep >= 2 * self.rounds


class Deltas(gs.VertexProgram):
    """Scores by differences, which accumulate over all supersteps."""

    delta = True
    delta_tolerance = 1e-6
    score = gs.state("float64", default=0.15)
    combine = gs.sum_

    def message(self, src: Any, edge: Any) -> Any:
        return 0.85 * src.score / src.out_degree

    def update(self, node: Any, message: Any) -> Any:
        return 0.15 + message


@pytest.fixture(scope="module")
def graph(tmp_path_factory: Any) -> Iterator[Graph]:
    rng = np.random.default_rng(0)
    # a long ring with chords, so that the frontier stays small for many supersteps
    pairs = [(k, (k + 1) % 900) for k in range(900)]
    pairs += rng.integers(0, 900, (150, 2)).tolist()
    chunk = edge_chunk(pairs, weight=rng.integers(1, 9, len(pairs)))
    folder = tmp_path_factory.mktemp("checkpoint") / "graph"
    with make_store(folder, chunk, partitions=3).graph as found:
        yield found


PROGRAMS: dict[str, gs.VertexProgram] = {
    "pagerank": PageRank(iterations=12),
    "sssp": ShortestPaths(source=5),
    "two phases": TwoPhases(),
    "deltas": Deltas(),
}


@pytest.mark.parametrize("name", list(PROGRAMS))
@pytest.mark.parametrize("stop", [1, 4, 9])
def test_a_resumed_run_ends_like_an_unbroken_one(
    graph: Graph, tmp_path: Path, name: str, stop: int
) -> None:
    program, folder = PROGRAMS[name], tmp_path / "checkpoint"
    expected = run(program, graph, num_threads=1)
    options: dict[str, Any] = {"checkpoint": folder, "checkpoint_every": 2}
    with pytest.raises(StoppedError):
        run(program, graph, num_threads=1, progress=StopAfter(stop), **options)
    assert len(list(folder.glob("superstep-*"))) == (1 if stop > 1 else 0)
    done = run(program, graph, num_threads=1, resume=True, **options)
    assert done.supersteps == expected.supersteps
    assert done.table.equals(expected.table)
    again = run(program, graph, resume=True, **options)  # there is nothing left to do
    assert again.table.equals(expected.table)


def broken_off(graph: Graph | Topology, folder: Path) -> None:
    with pytest.raises(StoppedError):
        run(
            PageRank(iterations=9),
            graph,
            checkpoint=folder,
            checkpoint_every=2,
            progress=StopAfter(5),
        )


def resumed(program: gs.VertexProgram, graph: Graph | Topology, folder: Path) -> None:
    run(program, graph, checkpoint=folder, resume=True)


def test_another_run_is_refused_with_the_difference(graph: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    broken_off(graph, folder)
    with pytest.raises(ConfigError, match=r"other parameters: damping = 0\.85, now 0\.5"):
        resumed(PageRank(iterations=9, damping=0.5), graph, folder)
    with pytest.raises(ConfigError, match="it has program 'PageRank', this run 'Deltas'"):
        resumed(Deltas(), graph, folder)
    other = make_store(tmp_path / "other", edge_chunk([(0, 1), (1, 2)])).graph
    with pytest.raises(ConfigError, match="it has another graph"):
        resumed(PageRank(iterations=9), other, folder)
    with pytest.raises(
        OutputExistsError, match="checkpoint of PageRank after 4 supersteps"
    ):
        run(PageRank(iterations=9), graph, checkpoint=folder)


def test_a_changed_program_is_refused(graph: Graph, tmp_path: Path) -> None:
    def named(factor: float) -> type[gs.VertexProgram]:
        class Decay(gs.VertexProgram):
            amount = factor
            value = gs.state("float64", default=1.0)
            max_supersteps = 6
            combine = gs.sum_

            def message(self, src: Any, edge: Any) -> Any:
                return src.value

            def update(self, node: Any, message: Any) -> Any:
                return message * self.amount

        return Decay

    folder = tmp_path / "checkpoint"
    with pytest.raises(StoppedError):
        run(
            named(0.5),
            graph,
            checkpoint=folder,
            checkpoint_every=1,
            progress=StopAfter(3),
        )
    with pytest.raises(ConfigError, match="it has another program's source"):
        resumed(named(0.25)(), graph, folder)


def test_a_damaged_checkpoint_is_refused(graph: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    broken_off(graph, folder)
    whole = tmp_path / "whole"
    shutil.copytree(folder, whole)
    path = folder / "superstep-4" / "state__score.npy"

    def damage(change: Any, match: str) -> None:
        shutil.rmtree(folder)
        shutil.copytree(whole, folder)
        change()
        with pytest.raises(CorruptStoreError, match=match):
            resumed(PageRank(iterations=9), graph, folder)

    data = path.read_bytes()
    flipped = data[:-1] + bytes([data[-1] ^ 1])
    damage(path.unlink, r"state__score\.npy")
    damage(lambda: path.write_bytes(data[:-8]), "bytes, expected")
    damage(lambda: path.write_bytes(flipped), "checksum does not match")
    damage(lambda: (folder / "checkpoint.json").write_text("{"), r"checkpoint\.json")
    said = (whole / "checkpoint.json").read_text()
    later = said.replace('"superstep": 4', '"superstep": 5')
    assert later != said
    damage(
        lambda: (folder / "checkpoint.json").write_text(later), "checksum does not match"
    )


def ring(last: int) -> Topology:
    return Topology.from_edges(np.array([0, 1, 2]), np.array([1, 2, last]), 3)


def test_edges_in_memory_are_told_apart(tmp_path: Path) -> None:
    one = ring(0)
    other = ring(1)
    broken_off(one, tmp_path / "checkpoint")
    with pytest.raises(ConfigError, match="another graph"):
        resumed(PageRank(iterations=9), other, tmp_path / "checkpoint")
    resumed(PageRank(iterations=9), one, tmp_path / "checkpoint")


def test_a_folder_of_something_else_is_left_alone(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("mine")
    with pytest.raises(OutputExistsError, match=r"holds thesis\.tex"):
        run(PageRank(iterations=2), graph, checkpoint=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_a_folder_whose_claim_was_cut_short_by_a_kill_is_used(
    graph: Graph, tmp_path: Path
) -> None:
    step = tmp_path / "kept" / "superstep-2"
    step.mkdir(parents=True)
    (step / ".graphsys-0123456789abcdef").touch()
    run(PageRank(iterations=4), graph, checkpoint=tmp_path / "kept", checkpoint_every=2)
    assert sorted(it.name for it in (tmp_path / "kept").iterdir()) == [
        "checkpoint.json",
        "superstep-4",
    ]


def test_nonsense_settings_are_refused(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="checkpoint_every must be 1 or more, got 0"):
        run(PageRank(), graph, checkpoint=tmp_path / "a", checkpoint_every=0)
    with pytest.raises(ConfigError, match="resume needs checkpoint"):
        run(PageRank(), graph, resume=True)
    with pytest.raises(ConfigError, match="checkpoint_every needs checkpoint, the folder"):
        run(PageRank(), graph, checkpoint_every=2)


def test_what_a_killed_run_left_beside_its_checkpoint_goes(
    graph: Graph, tmp_path: Path
) -> None:
    folder = tmp_path / "checkpoint"
    whole = run(PageRank(iterations=3), graph, checkpoint=folder, checkpoint_every=1)
    clean = sorted(folder.rglob("*"))
    (kept,) = folder.glob("superstep-*")
    ownership.claim(kept)  # as between a commit and what comes after it
    ownership.claim(ownership.make_folder(folder / "superstep-1"))
    found = run(PageRank(iterations=3), graph, checkpoint=folder, resume=True)
    assert found.table.equals(whole.table)
    assert sorted(folder.rglob("*")) == clean


FULL = """
import resource, signal, sys
from pathlib import Path
import graphsys as gs
from graphsys.core.ownership import is_draft
from graphsys.core.errors import StorageFullError
from graphsys.engine.programs.pagerank import PageRank
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
try:
    gs.run(PageRank(iterations=3), gs.open(sys.argv[1]), checkpoint=Path(sys.argv[2]),
           checkpoint_every=1)
except StorageFullError as err:
    print(err)
"""


def test_a_full_disk_is_one_error(graph: Graph, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL, str(graph.path), str(tmp_path / "checkpoint")]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    assert "file too large; allow larger files" in done.stdout
    left = {path.name for path in (tmp_path / "checkpoint").iterdir()}
    assert left <= {"checkpoint.json", "superstep-1"}


def test_a_disk_that_fills_up_at_the_commit_leaves_the_checkpoint_before(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "checkpoint"
    broken_off(graph, folder)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    def fail(new: Path, target: Path) -> None:
        assert target.name == "checkpoint.json"
        assert is_draft(new.name, target.name)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(StorageFullError, match="no space left"):
        resumed(PageRank(iterations=9), graph, folder)
    assert {
        path: path.read_bytes() for path in folder.rglob("*") if path.is_file()
    } == before


def test_deep_json_is_no_checkpoint(graph: Graph, tmp_path: Path) -> None:
    folder = tmp_path / "checkpoint"
    broken_off(graph, folder)
    (folder / "checkpoint.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(CorruptStoreError, match="nested deeper than 100 levels"):
        resumed(PageRank(iterations=9), graph, folder)
