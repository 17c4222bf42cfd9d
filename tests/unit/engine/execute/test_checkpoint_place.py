"""Checkpoints on an object store: as in a folder, and of two writers one gets through."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    ObjectStoreError,
    OutputExistsError,
    StoreBusyError,
)
from graphsys.core.ownership import new_claim
from graphsys.engine.execute.checkpoint_place import CheckpointPlace, has_checkpoint
from graphsys.engine.programs.pagerank import PageRank
from graphsys.engine.run import run
from graphsys.facade.graph import Graph
from tests.buckets import Bucket
from tests.clusters import run_by_workers
from tests.stores import edge_chunk, make_store
from tests.unit.engine.execute.test_checkpoint import StopAfter, StoppedError

PROGRAM = PageRank(iterations=9)
PAIRS = [(u, (u * k + 1) % 60) for u in range(60) for k in (2, 3, 5)]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return make_store(tmp_path / "graph", edge_chunk(PAIRS), partitions=3).graph


def stopped(graph: Graph, place: str, steps: int, **options: Any) -> None:
    with pytest.raises(StoppedError):
        run(
            PROGRAM,
            graph,
            checkpoint=place,
            checkpoint_every=2,
            num_threads=1,
            progress=StopAfter(steps),
            **options,
        )


def test_a_run_goes_on_from_there(bucket: Bucket, graph: Graph) -> None:
    place, expected = bucket.place("kept"), run(PROGRAM, graph, num_threads=1)
    assert not has_checkpoint(place)
    stopped(graph, place, 5)
    assert has_checkpoint(place)
    folders = {it.partition("/")[0] for it in bucket.names("kept")}
    assert len(folders) == 2  # one superstep, and checkpoint.json
    message = r"s3://\w+/kept holds a checkpoint of PageRank after 4 supersteps; resume it"
    with pytest.raises(OutputExistsError, match=message):
        run(PROGRAM, graph, checkpoint=place)
    found = run(
        PROGRAM, graph, checkpoint=place, checkpoint_every=2, resume=True, num_threads=1
    )
    assert found.table.equals(expected.table)
    kept = {it.partition("/")[0] for it in bucket.names("kept")}
    assert len(kept) == 2
    assert not kept & folders - {"checkpoint.json"}
    assert list((bucket.cache / "staging").iterdir()) == []


def test_of_two_runs_that_write_there_one_ends(bucket: Bucket, graph: Graph) -> None:
    place = bucket.place("kept")

    class Other(StopAfter):
        """Another run, which begins and commits while this one computes."""

        def advance(self, steps: int, **figures: float) -> None:
            if self.left == 3:
                stopped(graph, place, 7)
            super().advance(steps, **figures)

    message = r"kept got a checkpoint of another run meanwhile, which stays; let that run"
    with pytest.raises(StoreBusyError, match=message):
        run(PROGRAM, graph, checkpoint=place, checkpoint_every=2, progress=Other(4))
    head = json.loads(bucket.read("kept/checkpoint.json"))["content"]
    assert head["position"]["superstep"] == 6
    names = {it.partition("/")[0] for it in bucket.names("kept")}
    assert names == {"checkpoint.json", head["folder"]}  # the loser took its own with it
    found = run(PROGRAM, graph, checkpoint=place, resume=True, num_threads=1)
    assert found.table.equals(run(PROGRAM, graph, num_threads=1).table)


def test_what_a_killed_run_left_goes_with_the_next_checkpoint(
    bucket: Bucket, graph: Graph
) -> None:
    bucket.write("kept/superstep-7-00ff/x.npy", b"half")
    name, text = new_claim("superstep-7-00ff")
    bucket.write(f"kept/superstep-7-00ff/{name}", text)
    stopped(graph, bucket.place("kept"), 3)
    assert not [it for it in bucket.names("kept") if "00ff" in it]


def flip(content: bytes) -> bytes:
    return content[:-1] + bytes([content[-1] ^ 1])


@pytest.mark.parametrize(
    ("change", "message"),
    [(flip, "does not match its checksum"), (None, "is missing")],
)
def test_damage_is_told(
    bucket: Bucket, graph: Graph, change: Callable[[bytes], bytes] | None, message: str
) -> None:
    stopped(graph, bucket.place("kept"), 3)
    name = next(it for it in bucket.names("kept") if it.endswith(".npy"))
    if change is None:
        bucket.client.delete_object(Bucket=bucket.name, Key=f"kept/{name}")
    else:
        bucket.write(f"kept/{name}", change(bucket.read(f"kept/{name}")))
    with pytest.raises(CorruptStoreError, match=message):
        run(PROGRAM, graph, checkpoint=bucket.place("kept"), resume=True)


def test_what_is_no_place_for_checkpoints_is_refused(bucket: Bucket, graph: Graph) -> None:
    make_store(bucket.place("graph"), edge_chunk([(1, 2)]))
    with pytest.raises(ConfigError, match=r"lies inside .*, which is a graph and"):
        run(PROGRAM, graph, checkpoint=bucket.place("graph/kept"))
    bucket.write("other/notes.txt", b"")
    with pytest.raises(OutputExistsError, match=r"holds notes\.txt and is no folder of"):
        run(PROGRAM, graph, checkpoint=bucket.place("other"))
    with pytest.raises(ConfigError, match="there is no bucket 'nobody'"):
        run(PROGRAM, graph, checkpoint="s3://nobody/kept")
    assert not has_checkpoint("s3://nobody/kept")


@pytest.mark.usefixtures("one_try")
def test_a_storage_that_fails_leaves_the_checkpoint_before(
    bucket: Bucket, graph: Graph
) -> None:
    place = bucket.place("kept")
    stopped(graph, place, 3)
    before = bucket.read("kept/checkpoint.json")

    def fault(request: dict[str, Any]) -> tuple[int, str] | None:
        is_put = request["REQUEST_METHOD"] == "PUT"
        is_array = is_put and "/superstep-" in request["PATH_INFO"]
        return (503, "SlowDown") if is_array else None

    bucket.server.fault = fault
    with pytest.raises(ObjectStoreError, match="the storage failed 1 times"):
        run(PROGRAM, graph, checkpoint=place, checkpoint_every=2, resume=True)
    assert bucket.read("kept/checkpoint.json") == before


def test_workers_write_and_read_one_checkpoint(bucket: Bucket, graph: Graph) -> None:
    options = {"iterations": 9}
    expected, _ = run_by_workers("pagerank", graph.path, options, 2)
    place = bucket.place("kept")
    whole, _ = run_by_workers(
        "pagerank", graph.path, options, 2, checkpoint=place, checkpoint_every=4
    )
    assert whole.equals(expected)
    head = json.loads(bucket.read("kept/checkpoint.json"))["content"]
    assert {name.partition("__")[0] for name in head["files"]} == {"worker-0", "worker-1"}
    names = {it.partition("/")[0] for it in bucket.names("kept")}
    assert names == {"checkpoint.json", head["folder"]}
    again, parts = run_by_workers(
        "pagerank",
        graph.path,
        options,
        2,
        checkpoint=place,
        checkpoint_every=4,
        resume=True,
    )
    assert again.equals(expected)
    assert not any(part.get("steps") for part in parts)  # all of it was there
    message = r"cannot be resumed: it has the parts of 2 \(workers\), this run has 1; rem"
    with pytest.raises(ConfigError, match=message):
        run(PROGRAM, graph, checkpoint=place, resume=True)


def test_a_folder_is_a_place_too(tmp_path: Path) -> None:
    first = CheckpointPlace.at(tmp_path / "kept")
    first.claim()
    with pytest.raises(StoreBusyError, match="is being written by another process"):
        CheckpointPlace.at(tmp_path / "kept").claim()
    first.release()
    CheckpointPlace.at(tmp_path / "kept").claim()
