import errno
import json
import os
import threading
from pathlib import Path
from typing import Any

import pyarrow.fs
import pytest

import graphsys
from graphsys import distributed
from graphsys.core.errors import (
    ConfigError,
    CorruptStoreError,
    InvalidGraphError,
    ObjectStoreError,
    OutputExistsError,
    StorageFullError,
)
from graphsys.core.remote.locations import Location
from graphsys.core.types import EDGE, EdgeType
from graphsys.distributed.cluster import Cluster
from graphsys.distributed.run import ClusterRun
from graphsys.engine.algorithms import get
from graphsys.storage import Graph
from graphsys.storage.manifest import Manifest, checksum_of
from graphsys.storage.objects import copies
from graphsys.storage.objects.object_store import ObjectStore, file_system
from graphsys.storage.verify.folder import verify_folder
from tests.buckets import SECRET, Bucket
from tests.clusters import run_by_workers
from tests.object_server import every
from tests.stores import edge_chunk, make_store

PAIRS = [(n, (n * 7 + 1) % 40) for n in range(40)]


def store(bucket: Bucket, folder: str = "graph", **options: Any) -> str:
    make_store(bucket.place(folder), edge_chunk(PAIRS), partitions=2, **options)
    return bucket.place(folder)


def test_a_store_on_s3_is_the_one_of_a_folder(bucket: Bucket, tmp_path: Path) -> None:
    local = make_store(tmp_path / "local", edge_chunk(PAIRS), partitions=2).graph
    with Graph(store(bucket)) as graph:
        assert graph.fingerprint == local.fingerprint
        assert (
            graph.out_index(EDGE, 1).indices.tolist()
            == local.out_index(EDGE, 1).indices.tolist()
        )
        assert graph.ids_of("node", [3, 0]) == local.ids_of("node", [3, 0])
        assert copies.location_of(graph.path) == bucket.place("graph")
    assert verify_folder(bucket.place("graph")).ok


def test_files_come_when_they_are_mapped(bucket: Bucket) -> None:
    with Graph(store(bucket)) as graph:
        assert bucket.cached() == ["graph/graph.json"]
        graph.out_index(EDGE, 0)
        names = [
            "edge/in-0.arrow",
            "edge/in-1.arrow",
            "edge/out-0.arrow",
            "edge/out-1.arrow",
        ]
        assert bucket.cached() == [*names, "graph/graph.json"]
        bucket.server.reset()
        graph.in_index(EDGE, 1)
    assert bucket.server.requests == []


def test_a_folder_that_was_copied_there_opens(bucket: Bucket, tmp_path: Path) -> None:
    make_store(tmp_path / "g", edge_chunk(PAIRS), partitions=2)
    for file in (it for it in (tmp_path / "g").rglob("*") if it.is_file()):
        bucket.write(f"up/{file.relative_to(tmp_path / 'g')}", file.read_bytes())
    with graphsys.open(bucket.place("up")) as graph:
        assert graph.bucket(EDGE, 0, 0).num_edges >= 0
        assert graph.num_edges == 40


def test_two_threads_fetch_a_file_once(bucket: Bucket) -> None:
    place = store(bucket)
    graphs = [Graph(place), Graph(place)]
    bucket.server.reset()
    threads = [threading.Thread(target=it.out_index, args=(EDGE, 0)) for it in graphs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bucket.server.count("GET", "out-0.arrow") == 1


def test_a_half_fetched_file_is_gone_on_with(bucket: Bucket) -> None:
    with Graph(store(bucket)) as graph:
        entry = next(it for it in graph.manifest.files if it.path.endswith("out-0.arrow"))
        whole = bucket.read(f"graph/{entry.path}")
        part = graph.path / f"{entry.path}.part"
        part.parent.mkdir(parents=True)
        part.write_bytes(whole[:100])
        bucket.server.reset()
        graph.out_index(EDGE, 0)
        asked = [r for m, p, r in bucket.server.requests if p.endswith("out-0.arrow") and r]
        assert asked == [f"bytes=100-{len(whole) - 1}"]
        assert (graph.path / entry.path).read_bytes() == whole
        assert not part.exists()


def test_a_wrong_beginning_is_fetched_again(bucket: Bucket) -> None:
    with Graph(store(bucket)) as graph:
        entry = next(it for it in graph.manifest.files if it.path.endswith("out-0.arrow"))
        part = graph.path / f"{entry.path}.part"
        part.parent.mkdir(parents=True)
        part.write_bytes(b"x" * 100)
        graph.out_index(EDGE, 0)
        assert (graph.path / entry.path).read_bytes() == bucket.read(f"graph/{entry.path}")


def test_damage_is_refused_and_not_kept(bucket: Bucket) -> None:
    with Graph(store(bucket)) as graph:
        entry = next(it for it in graph.manifest.files if "out-0" in it.path)
        key = f"graph/{entry.path}"
        bucket.write(key, bytes([255]) + bucket.read(key)[1:])
        with pytest.raises(
            CorruptStoreError, match=r"out-0.arrow does not match its checks"
        ):
            graph.out_index(EDGE, 0)
        assert "edge/out-0.arrow" not in bucket.cached()
    problems = verify_folder(bucket.place("graph")).problems
    assert [(it.file, it.what) for it in problems] == [
        (entry.path, "does not match its checksum")
    ]


def test_a_graph_written_anew_meanwhile(bucket: Bucket) -> None:
    with Graph(store(bucket)) as graph:
        store(bucket, overwrite=True)
        with pytest.raises(
            CorruptStoreError, match=r"wrote s3://.*anew meanwhile; run the com"
        ):
            graph.out_index(EDGE, 0)
    with Graph(bucket.place("graph")) as graph:
        assert len(graph.out_index(EDGE, 0).indices)


def test_copies_of_older_states_go(bucket: Bucket) -> None:
    first = Graph(store(bucket)).path.parent
    os.close(copies._held.pop(first))  # as if that process had ended
    second = Graph(store(bucket, overwrite=True)).path.parent
    assert list((bucket.cache / "remote").iterdir()) == [second]


def forge(bucket: Bucket, path: str) -> str:
    place = store(bucket)
    content = json.loads(bucket.read("graph/graph.json"))
    content["files"][0]["path"] = path
    content["checksum"] = checksum_of(content)
    bucket.write("graph/graph.json", json.dumps(content).encode())
    return place


@pytest.mark.parametrize("path", ["../../../x.arrow", "/tmp/x.arrow", "gen-1/../../x"])
def test_paths_may_not_leave_the_copy(bucket: Bucket, path: str) -> None:
    place = forge(bucket, path)
    with pytest.raises(
        CorruptStoreError, match="not inside the graph's folder; do not use"
    ):
        Graph(place)
    assert "graph.json" in [it.file for it in verify_folder(place).problems]


def test_the_cache_is_bounded(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for folder in ("old", "new"):
        Graph(store(bucket, folder)).out_index(EDGE, 0)
    entries = sorted((bucket.cache / "remote").iterdir())
    assert len(entries) == 2
    used = sum(copies._bytes_of(entry) for entry in entries)
    monkeypatch.setenv(copies.LIMIT, str(used + 10))
    with pytest.raises(
        ConfigError, match=r"copies in use take .* GRAPHSYS_REMOTE_CACHE all"
    ):
        Graph(bucket.place("new")).bucket(EDGE, 0, 0)
    old = next(entry for entry in entries if (entry / "old").exists())
    os.close(copies._held.pop(old))  # as if another process had used it, and ended
    Graph(bucket.place("new")).bucket(EDGE, 0, 0)
    left = list((bucket.cache / "remote").iterdir())
    assert left == [entry for entry in entries if entry != old]


def test_each_tenth_request_may_fail(bucket: Bucket) -> None:
    bucket.server.fault = every(10, 503, "SlowDown")
    place = store(bucket)
    bucket.server.fault = every(10, 500, "InternalError")
    with Graph(place) as graph:
        assert len(graph.out_index(EDGE, 0).indices)
    assert verify_folder(place).ok


@pytest.mark.usefixtures("one_try")
def test_a_storage_that_only_fails(bucket: Bucket) -> None:
    place = store(bucket)
    bucket.server.fault = every(1, 503, "SlowDown")
    with pytest.raises(
        ObjectStoreError, match=r"the storage failed \d times \(.*wait a whi"
    ):
        Graph(place)


@pytest.mark.usefixtures("one_try")
def test_a_refused_user(bucket: Bucket) -> None:
    place = store(bucket)
    bucket.server.fault = every(1, 403, "SignatureDoesNotMatch")
    with pytest.raises(ConfigError, match="the storage refuses this user") as caught:
        Graph(place)
    assert SECRET not in str(caught.value)
    with pytest.raises(ConfigError, match=r"refuses this user \(SignatureDoesNotMatch\)"):
        store(bucket, "other")


@pytest.mark.usefixtures("one_try")
def test_nobody_answers(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://user:hush@127.0.0.1:9")
    with pytest.raises(
        ObjectStoreError, match=r"no storage answers at http://127\.0"
    ) as one:
        Graph(bucket.place("graph"))
    with pytest.raises(
        ObjectStoreError, match=r"no storage answers at http://127\.0"
    ) as two:
        store(bucket)
    assert "hush" not in f"{one.value}{two.value}"


def test_what_is_not_there(bucket: Bucket) -> None:
    with pytest.raises(
        InvalidGraphError, match=r"has no graph\.json; expected what `graph"
    ):
        Graph(bucket.place("nothing"))
    with pytest.raises(ConfigError, match="there is no bucket 'nobody'; make it, or look"):
        Graph("s3://nobody/graph")
    with pytest.raises(InvalidGraphError, match="holds no graph and no run; expected one"):
        verify_folder(bucket.place("nothing"))


def test_reading_goes_through_pyarrow_for_others_too(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow.fs as pafs

    make_store(tmp_path / "shop" / "graph", edge_chunk(PAIRS))
    local = pafs.SubTreeFileSystem(str(tmp_path), pafs.LocalFileSystem())
    monkeypatch.setattr(ObjectStore, "_files", local)
    with Graph("gs://shop/graph") as graph:
        assert graph.out_index(EDGE, 0).indices.tolist()
        assert str(graph.path).startswith(str(bucket.cache))
    assert Manifest.read(graph.path)


def test_a_folder_elsewhere_is_no_copy(bucket: Bucket, tmp_path: Path) -> None:
    own = tmp_path / "remote" / "x" / "graph"
    make_store(own, edge_chunk(PAIRS))
    (own.parent / copies._ORIGIN).write_text(json.dumps({"location": "s3://b/graph"}))
    assert copies.copy_at(own) is None
    assert copies.location_of(own) == str(own)


def test_names_of_types_are_kept(bucket: Bucket) -> None:
    kind = EdgeType("a b/c", "100% \u00fc+", "..")
    place = bucket.place("odd names, all+of=them")
    make_store(place, edge_chunk([(1, 2)], kind))
    with Graph(place) as graph:
        assert graph.edge_types == [kind]
        assert graph.out_index(kind, 0).indices.tolist() == [0]
    assert verify_folder(place).ok


def test_no_cache_to_copy_to(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    place = store(bucket)
    monkeypatch.setattr(copies, "user_cache", lambda name: None)
    with pytest.raises(
        ConfigError, match="cannot be written; set GRAPHSYS_CACHE to a folder"
    ):
        Graph(place)


def test_a_full_disk_of_the_cache_is_named(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = store(bucket)

    def fail(self: object, name: str, file: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(ObjectStore, "download", fail)
    with (
        pytest.raises(StorageFullError, match=r"disk of the cache .* is full; .*GRAPHSYS"),
        Graph(place) as graph,
    ):
        graph.out_index(EDGE, 0)


def test_workers_of_a_cluster_are_told_the_location(bucket: Bucket) -> None:
    with Graph(store(bucket)) as graph:
        prepared = get("wcc").prepare(graph, implementation="program")
        run = ClusterRun.of(prepared, "wcc", {}, Cluster.parse("local:2"))
        assert run.work.graph == bucket.place("graph")
        table, parts = run_by_workers("wcc", run.work.graph, {}, 2)
        assert len(parts) == 2
        assert table == graphsys.algorithms.wcc(graph).table


@pytest.mark.e2e
def test_workers_of_this_machine_make_a_store_there(bucket: Bucket, tmp_path: Path) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("1 2\n2 3\n3 1\n4 1\n")
    place, where = bucket.place("made"), Cluster.parse("local:2")
    how: dict[str, Any] = {"cluster": where, "partitions": 2}
    report = distributed.ingest([file], place, **how)
    assert (report.workers, report.graph.num_edges) == (2, 4)
    assert "graph.json" in bucket.names("made")
    assert verify_folder(place).ok
    with pytest.raises(OutputExistsError, match="already holds a graph"):
        distributed.ingest([file], place, **how)
    assert distributed.ingest([file], place, overwrite=True, **how).graph.num_edges == 4


def test_a_damaged_copy_is_fetched_anew(bucket: Bucket) -> None:
    with Graph(store(bucket)) as graph:
        before = graph.out_index(EDGE, 0).indices.tolist()
        entry = next(it for it in graph.manifest.files if "out-0" in it.path)
        file = graph.path / entry.path
    damage(file)
    with (
        pytest.warns(UserWarning, match=r"out-0.arrow in the cache was damaged; fetched"),
        Graph(bucket.place("graph")) as graph,
    ):
        assert graph.out_index(EDGE, 0).indices.tolist() == before
    assert file.read_bytes() == bucket.read(f"graph/{entry.path}")


def test_verify_looks_at_the_copies_that_are_used(bucket: Bucket) -> None:
    with Graph(store(bucket)) as graph:
        graph.out_index(EDGE, 0)
        entry = next(it for it in graph.manifest.files if "out-0" in it.path)
        file = graph.path / entry.path
    damage(file)
    with pytest.warns(UserWarning, match=r"out-0.arrow in the cache was damaged and is d"):
        assert verify_folder(bucket.place("graph")).ok
    assert not file.exists()


def damage(file: Path) -> None:
    whole = file.read_bytes()
    middle = len(whole) // 2
    file.write_bytes(whole[:middle] + bytes([whole[middle] ^ 255]) + whole[middle + 1 :])


def test_google_is_asked_for_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    """By default pyarrow tries for a quarter of an hour, without a word."""
    asked: list[str] = []

    class Asked:
        @staticmethod
        def from_uri(uri: str) -> tuple[None, str]:
            asked.append(uri)
            return None, ""

    monkeypatch.setattr(pyarrow.fs, "FileSystem", Asked)
    file_system(Location.parse("gs://shop/graph"))
    assert asked == ["gs://shop/graph?retry_limit_seconds=5"]
