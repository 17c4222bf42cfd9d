"""Ingest by machines that share no folder: all files between tasks are objects."""

import errno
import gzip
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from graphsys import datasets
from graphsys.core.errors import (
    CorruptStoreError,
    InputError,
    ObjectStoreError,
    OutputExistsError,
    StorageFullError,
)
from graphsys.core.ownership import new_claim
from graphsys.datasets.text import source as text_source
from graphsys.distributed.ingestion import tasks
from graphsys.storage import Graph
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.verify.folder import verify_folder
from tests.buckets import Bucket
from tests.distributed.ingests import by_tasks, content, run_once, run_twice
from tests.distributed.test_ingest import integers, shop, tables, triples
from tests.object_server import every


def there(bucket: Bucket, name: str) -> dict[str, bytes]:
    """Return the files of a graph on an object store, by their names in a generation."""
    names = [it for it in bucket.names(name) if it != "graph.json"]
    assert len({it.partition("/")[0] for it in names}) == 1  # nothing is left beside
    return {it.partition("/")[2]: bucket.read(f"{name}/{it}") for it in names}


def here(store: Path) -> dict[str, bytes]:
    """Return the files of a graph in a folder likewise."""
    names = [it for it in content(store) if it != "graph.json"]
    return {it.partition("/")[2]: (store / it).read_bytes() for it in names}


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (integers, {"partitions": 2, "undirected": True, "coalesce": True}),
        (integers, {"ids": "string", "partitions": 3, "order": "degree"}),
        (triples, {"format": "triples", "partitions": 3}),
        (tables, {"order": "original"}),
    ],
)
def test_the_store_is_that_of_one_machine(
    bucket: Bucket,
    tmp_path: Path,
    write: Callable[[Path], list[Path]],
    options: dict[str, Any],
) -> None:
    files = write(tmp_path)
    datasets.ingest(files, tmp_path / "one", **options)
    run = run_twice if write is triples else run_once
    by_tasks(files, bucket.place("many"), bits=1, run=run, **options)
    assert there(bucket, "many") == here(tmp_path / "one")
    assert verify_folder(bucket.place("many")).ok
    with Graph(bucket.place("many")) as far, Graph(tmp_path / "one") as near:
        assert far.fingerprint == near.fingerprint
    assert not list((bucket.cache / "staging").iterdir())


@pytest.mark.filterwarnings("ignore:.*no model reads")
@pytest.mark.filterwarnings("ignore:.* in no table of nodes")  # of items
def test_tables_by_type_and_their_further_columns(bucket: Bucket, tmp_path: Path) -> None:
    given = shop(tmp_path)
    options: dict[str, Any] = {"partitions": 2, "order": "degree"}
    datasets.ingest(out=tmp_path / "one", **given, **options)
    by_tasks([], bucket.place("many"), bits=1, run=run_once, **given, **options)
    assert there(bucket, "many") == here(tmp_path / "one")


def test_a_storage_that_fails_now_and_then_does_not_matter(
    bucket: Bucket, tmp_path: Path
) -> None:
    files = triples(tmp_path)[:1]
    datasets.ingest(files, tmp_path / "one", format="triples")
    for left in ("gen-5/scratch/tasks/new", "gen-7/nodes/x.arrow"):  # by a command killed
        bucket.write(f"many/{left}", b"half")
        name, text = new_claim(left.split("/")[0])
        bucket.write(f"many/{left.split('/')[0]}/{name}", text)
    bucket.server.fault = every(10, 503, "SlowDown")
    by_tasks(files, bucket.place("many"), bits=0, run=run_once, format="triples")
    bucket.server.reset()
    assert there(bucket, "many") == here(tmp_path / "one")


@pytest.mark.usefixtures("one_try")
def test_what_fails_leaves_what_was_there(bucket: Bucket, tmp_path: Path) -> None:
    ingest = partial(by_tasks, bits=0, run=run_once)
    files, place = integers(tmp_path)[:1], bucket.place("graph")
    ingest(files, place)
    before = there(bucket, "graph")
    with pytest.raises(OutputExistsError, match="already holds a graph"):
        ingest(files, place)
    bad = tmp_path / "bad.txt"
    bad.write_text("1 2\n1 x\n")
    with pytest.raises(InputError, match=r"bad.txt:2: "):
        ingest([bad], place, overwrite=True)

    def fault(request: dict[str, Any]) -> tuple[int, str] | None:
        is_index = "/index/" in request["PATH_INFO"] and request["REQUEST_METHOD"] == "PUT"
        return (503, "SlowDown") if is_index else None

    bucket.server.fault = fault
    with pytest.raises(ObjectStoreError, match="the storage failed 1 times"):
        ingest(files, place, overwrite=True, partitions=2)
    bucket.server.reset()
    assert there(bucket, "graph") == before
    ingest(files, place, overwrite=True, partitions=2)
    assert len(there(bucket, "graph")) > len(before)


def test_files_on_an_object_store_are_read(bucket: Bucket, tmp_path: Path) -> None:
    texts = {"a.csv": "src,dst\n1,2\n2,3\n", "b.csv": "src,dst\n3,1\n1,4\n"}
    for name, text in texts.items():
        bucket.write(name, text.encode())
    files = [bucket.place(name) for name in texts]
    datasets.ingest(files, tmp_path / "one")
    by_tasks(files, tmp_path / "tasks")
    assert here(tmp_path / "tasks") == here(tmp_path / "one")
    bucket.write("b.csv", b"src,dst\n3,1\n1,x\n")
    with pytest.raises(InputError, match=rf"s3://{bucket.name}/b\.csv:3: found 'x' as dst"):
        by_tasks(files, tmp_path / "none")


@pytest.mark.parametrize("suffix", [".jsonl", ".ndjson.gz"])
def test_json_lines_on_an_object_store_are_read(
    bucket: Bucket, tmp_path: Path, suffix: str
) -> None:
    rows: list[dict[str, Any]] = [
        {"src": f"u{k % 7}", "dst": f"u{k * k % 11}", "weight": k / 4} for k in range(60)
    ]
    rows[40] |= {"from": {"app": "web"}}
    texts = {"e": rows, "n": [{"id": f"u{k}", "label": k % 3} for k in range(12)]}
    near, far = {}, {}
    for name, objects in texts.items():
        text = "".join(f"{json.dumps(it)}\n" for it in objects).encode()
        near[name] = tmp_path / f"{name}{suffix}"
        near[name].write_bytes(gzip.compress(text) if suffix.endswith("gz") else text)
        bucket.write(near[name].name, near[name].read_bytes())
        far[name] = bucket.place(near[name].name)
    datasets.ingest(near["e"], tmp_path / "one", partitions=2)
    datasets.ingest(far["e"], tmp_path / "far", partitions=2)
    by_tasks([far["e"]], tmp_path / "tasks", partitions=2)
    by_tasks([far["e"]], bucket.place("many"), bits=1, run=run_once, partitions=2)
    for found in (here(tmp_path / "far"), here(tmp_path / "tasks"), there(bucket, "many")):
        assert found == here(tmp_path / "one")

    def typed(files: dict[str, Any]) -> dict[str, Any]:
        return {"nodes": {"user": files["n"]}, "edges": {"user,to,user": [files["e"]]}}

    datasets.ingest(out=tmp_path / "typed", **typed(near))
    by_tasks([], bucket.place("typed"), bits=1, run=run_once, **typed(far))
    assert there(bucket, "typed") == here(tmp_path / "typed")
    bad = gzip.compress(b'{"src": 1}\n7\n') if suffix.endswith("gz") else b'{"src": 1}\n7\n'
    bucket.write(near["e"].name, bad)
    with pytest.raises(
        InputError, match=rf"s3://{bucket.name}/e{suffix}:2: expected an obj"
    ):
        by_tasks([far["e"]], tmp_path / "none")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_tables_by_type_on_an_object_store_are_read(
    bucket: Bucket, tmp_path: Path, suffix: str
) -> None:
    edges = [f"u{k % 7},u{k * k % 11},{k / 4}" for k in range(60)]
    texts = {
        "n": "\n".join(["id,label", *(f"u{k},{k % 3}" for k in range(12)), ""]),
        "train": "\n".join(["src,dst,weight", *edges, ""]),
        "test": "src,dst,weight\nu1,u2,0.5\n",
    }
    near, far = {}, {}
    for name, text in texts.items():
        near[name] = tmp_path / f"{name}{suffix}"
        if suffix == ".parquet":
            parquet.write_table(csv.read_csv(pa.py_buffer(text.encode())), near[name])
        else:
            is_packed = suffix.endswith("gz")
            near[name].write_bytes(
                gzip.compress(text.encode()) if is_packed else text.encode()
            )
        bucket.write(near[name].name, near[name].read_bytes())
        far[name] = bucket.place(near[name].name)

    def typed(files: dict[str, Any]) -> dict[str, Any]:
        edges = [files["train"], files["test"]]
        return {"nodes": {"user": files["n"]}, "edges": {"user,to,user": edges}}

    datasets.ingest(out=tmp_path / "one", **typed(near))
    datasets.ingest(out=tmp_path / "far", **typed(far))
    by_tasks([], bucket.place("many"), bits=1, run=run_once, **typed(far))
    assert here(tmp_path / "far") == there(bucket, "many") == here(tmp_path / "one")
    assert any("test" in name for name in here(tmp_path / "one"))
    bucket.client.delete_object(Bucket=bucket.name, Key=near["n"].name)
    with pytest.raises(
        InputError, match=rf"^s3://{bucket.name}/n{suffix}: no such file; ch"
    ):
        datasets.ingest(out=tmp_path / "none", **typed(far))


def test_a_large_file_there_is_read_in_stretches(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_source, "STRETCH_BLOCKS", 1)
    lines = [f"{k * 7 % 100_003:>9}\t{k // 9:>9}\n" for k in range(1_000_000)]
    lines[900_000] = "7\n"
    for name, some in (("bad.txt", lines), ("good.txt", lines[:900_000])):
        bucket.write(name, b"\xef\xbb\xbf# two columns\n" + "".join(some).encode())
    good, bad = bucket.place("good.txt"), bucket.place("bad.txt")
    assert datasets.open_source(good).num_parts == 3
    with pytest.raises(InputError, match=r"bad\.txt:900002: "):
        by_tasks([bad], tmp_path / "none")
    (tmp_path / "good.txt").write_bytes(bucket.read("good.txt"))
    datasets.ingest(tmp_path / "good.txt", tmp_path / "one")
    by_tasks([good], tmp_path / "many")
    datasets.ingest(good, tmp_path / "stream")
    for out in ("many", "stream"):
        assert here(tmp_path / out) == here(tmp_path / "one")


def test_of_two_ingests_into_one_place_the_later_ends_in_a_line(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files, place = integers(tmp_path)[:1], bucket.place("graph")
    number = tasks.number_ids

    def meanwhile(*question: Any) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(tasks, "number_ids", number)
            by_tasks(files, place, bits=0, run=run_once)
        number(*question)

    monkeypatch.setattr(tasks, "number_ids", meanwhile)
    with pytest.raises(CorruptStoreError, match="or wrote that location anew, while this"):
        by_tasks(files, place, bits=0, run=run_once)
    datasets.ingest(files, tmp_path / "one")
    assert there(bucket, "graph") == here(tmp_path / "one")


def test_a_full_disk_of_who_reads_is_one_line(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: ObjectStore, name: str, file: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(file))

    monkeypatch.setattr(ObjectStore, "download", full)
    with pytest.raises(StorageFullError, match="no space left on device; free some space"):
        by_tasks(integers(tmp_path)[:1], bucket.place("graph"), bits=0, run=run_once)
    assert bucket.names("graph") == []


def test_a_graph_of_one_node_and_its_loop(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "loop.txt").write_text("7 7\n7 7\n")
    by_tasks([tmp_path / "loop.txt"], bucket.place("one"), run=run_once, partitions=1)
    with Graph(bucket.place("one")) as graph:
        assert (graph.num_nodes, graph.num_edges) == (1, 2)
    (tmp_path / "none.txt").write_text("# nothing\n")
    with pytest.raises(InputError, match=r"no edge in the file|holds no edges"):
        by_tasks([tmp_path / "none.txt"], bucket.place("none"), run=run_once)
    assert bucket.names("none") == []


def test_a_file_that_a_worker_lost_is_named(
    bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = tasks.write_incoming

    def losing(work: Any, plan: Any, part: int, counts: Any) -> Any:
        written = write(work, plan, part, counts)
        key = f"{work.out}/{written.files[0].path}".removeprefix(f"s3://{bucket.name}/")
        bucket.client.delete_object(Bucket=bucket.name, Key=key)
        return written

    monkeypatch.setattr(tasks, "write_incoming", losing)
    with pytest.raises(ObjectStoreError, match=r"has 0 of [0-9]+ bytes after its upload"):
        by_tasks(integers(tmp_path)[:1], bucket.place("graph"), bits=0, run=run_once)
    assert bucket.names("graph") == []
