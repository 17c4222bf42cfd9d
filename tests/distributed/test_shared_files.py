"""Files that processes of several machines share: in a folder, and as objects."""

import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core import ownership
from graphsys.core.errors import CorruptStoreError
from graphsys.core.remote.locations import Location
from graphsys.distributed.inference.run_work import parts_beside
from graphsys.distributed.shared_files import SharedFiles, shared_files
from graphsys.storage.objects.object_store import ObjectStore
from graphsys.storage.remote.publishing import own_number
from tests.buckets import Bucket
from tests.object_server import every


@pytest.fixture(params=["folder", "objects"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        folder = tmp_path / "shared"
        folder.mkdir()
        return str(folder)
    bucket: Bucket = request.getfixturevalue("bucket")
    return bucket.place("shared")


@pytest.fixture
def two(place: str) -> Iterator[tuple[SharedFiles, SharedFiles]]:
    """Open a place as two processes do."""
    with shared_files(place) as one, shared_files(place) as other:
        yield one, other


def test_what_one_saves_the_other_loads(two: tuple[SharedFiles, SharedFiles]) -> None:
    one, other = two
    assert one.place == other.place
    numbers, words = np.arange(30_000).reshape(-1, 3), pa.array(["a", None, "bc", "d"])
    one.save_all({"a/numbers": numbers, "a/words": words, "a/none": numbers[:0]})
    assert (other.load("a/numbers") == numbers).all()
    assert other.load("a/words", is_arrow=True).equals(words)
    assert other.load("a/none").shape == (0, 3)
    one.save("a/numbers", numbers[:2])  # again, as by a task that runs twice
    with shared_files(one.place) as third:
        assert third.load("a/numbers").tolist() == numbers[:2].tolist()


def test_parts_and_pieces_are_read(two: tuple[SharedFiles, SharedFiles]) -> None:
    one, other = two
    large, rows = np.arange(50_000), np.arange(24, dtype=np.float32).reshape(8, 3)
    one.save_all({"large": large, "rows": rows, "zero": large[:0]})
    wanted = [("large", 40_000, 40_003), ("rows", 6, 8), ("large", 0, 2), ("zero", 0, 0)]
    found = other.parts([*wanted, ("rows", 3, 3)])
    assert [part.tolist() for part in found] == [
        [40_000, 40_001, 40_002],
        rows[6:].tolist(),
        [0, 1],
        [],
        [],
    ]
    assert found[1].dtype == np.float32
    assert other.load("large")[7] == 7
    assert other.parts(wanted[:1])[0].tolist() == found[0].tolist()  # of what is here
    words = pa.array(["x", "yy", "z"])
    one.save("words", words, [0, 2, 2, 3])
    pieces = [other.pieces(["words", "words"], place)[1].to_pylist() for place in range(3)]
    assert pieces == [["x", "yy"], [], ["z"]]


def test_files_are_added_and_removed(two: tuple[SharedFiles, SharedFiles]) -> None:
    one, other = two
    for name in ("b/x", "b/y", "c"):
        made = one.path / "made"
        made.write_bytes(name.encode())
        one.add(name, made)
        assert not made.exists()
    assert other.local("b/x").read_bytes() == b"b/x"
    other.let_go(["b/x"])
    assert other.local("b/x").read_bytes() == b"b/x"
    one.remove(["c", "never"])
    one.remove_folder("b")
    with shared_files(one.place) as third, pytest.raises((OSError, CorruptStoreError)):
        third.local("b/y").read_bytes()


def test_of_objects_only_what_is_asked_for_travels(bucket: Bucket) -> None:
    with shared_files(bucket.place("x")) as one, shared_files(bucket.place("x")) as other:
        one.save("large", np.arange(1_000_000))
        bucket.server.reset()
        other.parts([("large", 900_000, 900_010)])
        ranges = bucket.server.count("GET", "/large")
        assert ranges == 2  # the header, the rows
        assert not list(other.path.iterdir())
        bucket.server.fault = every(3, 503, "SlowDown")
        assert other.parts([("large", 5, 6)] * 20)[0].tolist() == [5]
        assert other.load("large")[-1] == 999_999
        bucket.server.reset()
        one.remove(["large"])
        missing = r"/x/large is missing: somebody removed it.*; run it again"
        with pytest.raises(CorruptStoreError, match=missing):
            one.local("large")
        with pytest.raises(CorruptStoreError, match=missing):
            one.parts([("large", 0, 1)])
        with pytest.raises(CorruptStoreError, match=missing):
            one.pieces(["large"], 0)
        folder = one.path
    assert not folder.exists()


def test_an_answer_that_is_longer_than_what_was_asked_for_is_no_damage(
    bucket: Bucket,
) -> None:
    bucket.write("x/small", b"0123456789")
    store = ObjectStore(Location.parse(bucket.place("x")))
    bucket.server.fault = every(2, 503, "SlowDown")
    with store.opened("small") as source:
        assert [source.read_at(2, at) for at in range(6)][5] == b"56"
        source.seek(-3, os.SEEK_END)
        assert (source.read(2), source.tell()) == (b"78", 9)


def test_parts_beside_a_location_go_with_the_block_and_old_ones_before(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old is where nothing was written for a day, whenever its command began."""
    with monkeypatch.context() as patch:
        patch.setattr("graphsys.storage.remote.publishing.time.time_ns", lambda: 10**18)
        long = own_number()
    for number in (long, "others"):
        bucket.write(f"a/.run.parts/{number}/0.npy", b"rows")
    claim, text = ownership.new_claim(str(long))
    bucket.write(f"a/.run.parts/{long}/{claim}", text)
    kept = [f"{long}/{claim}", f"{long}/0.npy", "others/0.npy"]
    with parts_beside(bucket.place("a/run")) as files:
        files.save("x/y", np.arange(3))
        assert len(bucket.names("a/.run.parts")) == len(kept) + 2  # and a claim
        assert files.place.startswith(bucket.place("a/.run.parts/"))
    assert bucket.names("a/.run.parts") == kept
    later = time.time() + 86_500
    with monkeypatch.context() as patch:
        patch.setattr("graphsys.distributed.inference.run_work.time.time", lambda: later)
        with parts_beside(bucket.place("a/run")):
            own, theirs = bucket.names("a/.run.parts")
            assert ownership.CLAIM.fullmatch(own.partition("/")[2])
            assert theirs == "others/0.npy"
    with parts_beside(bucket.place("rows.csv")) as files:
        assert files.place.startswith(bucket.place(".rows.csv.parts/"))
