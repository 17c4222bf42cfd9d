import sys
from pathlib import Path
from typing import Any

import pytest

from graphsys.core.errors import (
    ConfigError,
    MissingDependencyError,
    ObjectStoreError,
    OutputExistsError,
    StoreBusyError,
)
from graphsys.core.ownership import new_claim
from graphsys.storage import Graph
from graphsys.storage.manifest import MANIFEST_NAME
from graphsys.storage.objects.s3_writer import S3Writer
from graphsys.storage.remote.publishing import published
from graphsys.storage.verify.folder import verify_folder
from tests.buckets import Bucket
from tests.stores import edge_chunk, make_store

ONE = [(1, 2), (2, 3)]
TWO = [(1, 2), (2, 3), (3, 4)]


def store(place: str | Path, pairs: list[tuple[int, int]], **options: Any) -> None:
    make_store(place, edge_chunk(pairs), **options).graph.close()


def num_edges(bucket: Bucket) -> int:
    with Graph(bucket.place("graph")) as graph:
        return graph.num_edges


def folders(bucket: Bucket) -> set[str]:
    return {name.partition("/")[0] for name in bucket.names("graph")} - {MANIFEST_NAME}


@pytest.mark.parametrize("is_there", [False, True])
def test_one_of_two_writers_loses(bucket: Bucket, is_there: bool) -> None:
    place = bucket.place("graph")
    if is_there:
        store(place, ONE)
    with (  # noqa: PT012
        pytest.raises(
            StoreBusyError, match=r"written by another process meanwhile.*--overw"
        ),
        published(place, MANIFEST_NAME, overwrite=True) as folder,
    ):
        store(folder, ONE)
        store(place, TWO, overwrite=is_there)
    assert num_edges(bucket) == 3
    assert len(folders(bucket)) == 1
    assert verify_folder(place).ok


def test_the_old_one_goes_after_the_commit(bucket: Bucket) -> None:
    store(bucket.place("graph"), ONE)
    before = folders(bucket)
    store(bucket.place("graph"), TWO, overwrite=True)
    assert num_edges(bucket) == 3
    assert not before & folders(bucket)


def test_the_old_one_survives_a_failure(bucket: Bucket) -> None:
    place = bucket.place("graph")
    store(place, ONE)
    before = bucket.names("graph")
    with (  # noqa: PT012
        pytest.raises(ValueError, match="broken"),
        published(place, MANIFEST_NAME, overwrite=True) as folder,
    ):
        store(folder, TWO)
        raise ValueError("broken")
    assert bucket.names("graph") == before
    assert list((bucket.cache / "staging").iterdir()) == []


@pytest.mark.usefixtures("one_try")
def test_an_upload_that_fails_leaves_nothing(bucket: Bucket) -> None:
    place = bucket.place("graph")
    store(place, ONE)
    before = bucket.names("graph")

    def fault(request: dict[str, Any]) -> tuple[int, str] | None:
        is_last = request["REQUEST_METHOD"] == "PUT" and "index" in request["PATH_INFO"]
        return (503, "SlowDown") if is_last else None

    bucket.server.fault = fault
    with pytest.raises(ObjectStoreError, match="the storage failed"):
        store(place, TWO, overwrite=True)
    assert bucket.names("graph") == before
    assert num_edges(bucket) == 2


@pytest.mark.parametrize("is_there", [False, True])
def test_a_commit_whose_answer_is_lost_counts(bucket: Bucket, is_there: bool) -> None:
    place = bucket.place("graph")
    if is_there:
        store(place, ONE)
    lost: list[int] = []

    def once(request: dict[str, Any]) -> tuple[int, str] | None:
        is_head = request["PATH_INFO"].endswith(MANIFEST_NAME)
        if request["REQUEST_METHOD"] == "PUT" and is_head and len(lost) < 2:
            lost.append(1)  # twice, as the server of the test asks twice
            return 500, "InternalError"
        return None

    bucket.server.lost = once
    store(place, TWO, overwrite=is_there)
    assert lost
    assert num_edges(bucket) == 3
    assert len(folders(bucket)) == 1


@pytest.mark.usefixtures("one_try")
def test_a_commit_that_nobody_knows_of_keeps_its_files(bucket: Bucket) -> None:
    place = bucket.place("graph")
    down: list[int] = []

    def fault(request: dict[str, Any]) -> tuple[int, str] | None:
        if request["REQUEST_METHOD"] == "PUT" and request["PATH_INFO"].endswith(".json"):
            down.append(1)
        return (503, "SlowDown") if down else None

    bucket.server.fault = fault
    with pytest.raises(
        ObjectStoreError, match="it is not known whether this was committed, and its f"
    ):
        store(place, ONE)
    bucket.server.reset()
    assert len(folders(bucket)) == 1


def test_what_a_killed_writer_left_is_named_and_goes(bucket: Bucket) -> None:
    place = bucket.place("graph")
    store(place, ONE)
    bucket.write("graph/gen-77/index/edge/out-0.arrow", b"half")
    for folder in ("gen-77", "gen-78"):
        name, text = new_claim(folder)
        bucket.write(f"graph/{folder}/{name}", text)
    bucket.client.create_multipart_upload(Bucket=bucket.name, Key="graph/gen-78/nodes/x")
    left = bucket.cache / "staging" / "graphsys-staged-abcd1234"
    left.mkdir()
    problems = verify_folder(place).problems
    assert [it.file for it in problems] == ["gen-77", "gen-78"]
    assert "a killed writer left it, or one is writing now" in problems[0].what
    assert num_edges(bucket) == 2
    store(place, TWO, overwrite=True)
    assert verify_folder(place).ok
    assert len(folders(bucket)) == 1
    assert not bucket.client.list_multipart_uploads(Bucket=bucket.name).get("Uploads")
    assert not left.exists()


def test_a_writer_that_begins_after_a_commit_keeps_its_files(bucket: Bucket) -> None:
    place = bucket.place("graph")
    store(place, ONE)
    with published(place, MANIFEST_NAME, overwrite=True) as folder:
        store(folder, TWO)
    assert num_edges(bucket) == 3


def test_missing_files_are_named(bucket: Bucket) -> None:
    store(bucket.place("graph"), ONE)
    key = next(it for it in bucket.names("graph") if "out-0" in it)
    bucket.client.delete_object(Bucket=bucket.name, Key=f"graph/{key}")
    problems = verify_folder(bucket.place("graph")).problems
    assert [(it.file, it.what) for it in problems] == [(key, "is missing")]


def test_only_graphs_are_replaced(bucket: Bucket) -> None:
    store(bucket.place("graph"), ONE)
    with pytest.raises(
        OutputExistsError, match="already holds a graph; choose another outp"
    ):
        store(bucket.place("graph"), TWO)
    bucket.write("mine/notes.txt", b"hello")
    with pytest.raises(
        OutputExistsError, match=r"it holds 'notes\.txt', which is no part of"
    ):
        store(bucket.place("mine"), TWO, overwrite=True)
    bucket.write("run/run.json", b'{"files": {}}')
    bucket.write("run/config.toml", b"")
    with (
        pytest.raises(OutputExistsError, match="a training run that was copied there as"),
        published(bucket.place("run"), "run.json", overwrite=True),
    ):
        pass
    with pytest.raises(
        ConfigError, match=r"lies inside s3://.*/graph, which is a graph and ho"
    ):
        store(bucket.place("graph/inner"), ONE)


def test_a_dry_run_leaves_nothing(bucket: Bucket) -> None:
    with published(bucket.place("graph"), MANIFEST_NAME, overwrite=False):
        pass
    assert bucket.names("graph") == []


def test_what_cannot_be_written_to(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigError, match="there is no bucket 'nobody'; make it, or look at"
    ):
        store("s3://nobody/graph", ONE)
    with pytest.raises(ConfigError, match=r"only s3:// can be written to, gs:// only read"):
        store("gs://shop/graph", ONE)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(ConfigError, match="AWS_PROFILE names a profile that there is not"):
        store(bucket.place("graph"), ONE)
    monkeypatch.delenv("AWS_PROFILE")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "nowhere")
    with pytest.raises(
        ConfigError, match=r"settings of the storage are wrong \(ValueError\)"
    ):
        store(bucket.place("graph"), ONE)
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'graphsys\[s3\]'"):
        store(bucket.place("graph"), ONE)


def test_no_credentials(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    with pytest.raises(ConfigError, match=r"refuses this user \(NO_CREDENTIALS\)"):
        store(bucket.place("graph"), ONE)


def test_an_interrupt_in_the_commit_keeps_its_files(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_if = S3Writer.put_if

    def interrupted(*words: Any) -> bool:
        put_if(*words)
        raise KeyboardInterrupt

    monkeypatch.setattr(S3Writer, "put_if", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store(bucket.place("graph"), ONE)
    assert num_edges(bucket) == 2
    assert verify_folder(bucket.place("graph")).ok


@pytest.mark.usefixtures("one_try")
def test_an_answer_that_never_comes_is_looked_for(bucket: Bucket) -> None:
    def lost(request: dict[str, Any]) -> tuple[int, str] | None:
        is_head = request["PATH_INFO"].endswith(MANIFEST_NAME)
        return (
            (500, "InternalError")
            if is_head and request["REQUEST_METHOD"] == "PUT"
            else None
        )

    bucket.server.lost = lost
    store(bucket.place("graph"), ONE)
    assert num_edges(bucket) == 2


def test_a_run_that_came_beside_meanwhile(bucket: Bucket) -> None:
    place = bucket.place("graph")
    with (  # noqa: PT012
        pytest.raises(OutputExistsError, match=r"it holds 'run\.json', which is no part"),
        published(place, MANIFEST_NAME, overwrite=True) as folder,
    ):
        store(folder, ONE)
        bucket.write("graph/run.json", b"{}")
    assert bucket.names("graph") == ["run.json"]
