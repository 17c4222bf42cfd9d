"""What the command line does with locations: the verbs of a store and of a run."""

import io
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from graphsys.cli.main import main
from graphsys.core.remote.locations import Location
from graphsys.storage.objects import s3_writer
from graphsys.storage.remote.fetching import run_folder, with_files
from graphsys.storage.runs.run_folder import is_gnn_run
from graphsys.storage.verify.folder import verify_folder
from tests.buckets import SECRET, Bucket
from tests.stores import edge_chunk, make_store

Capture = pytest.CaptureFixture[str]


def edges(tmp_path: Path) -> Path:
    file = tmp_path / "edges.txt"
    pairs = ((u, (u * k + 1) % 60) for u in range(60) for k in (2, 3, 5))
    file.write_text("".join(f"{u}\t{v}\n" for u, v in pairs))
    return file


def run(*words: object) -> int:
    return main([str(word) for word in words])


def test_a_graph_is_made_used_trained_on_and_served(
    bucket: Bucket, tmp_path: Path, capsys: Capture
) -> None:
    graph, vectors = bucket.place("graph"), bucket.place("vectors")
    assert not run("ingest", edges(tmp_path), "-o", graph, "--split", "0.8,0.1,0.1")
    assert f"graph             {graph}" in capsys.readouterr().out
    assert not run("info", graph, "--json")
    assert json.loads(capsys.readouterr().out)["num_nodes"] == 60
    ranks = tmp_path / "ranks.parquet"
    assert not run("run", "pagerank", graph, "-o", ranks)
    assert pq.read_table(ranks).num_rows == 60
    small = ("--set", "dim=8", "--set", "epochs=1")
    capsys.readouterr()
    assert not run("train", "embedding", graph, "-o", vectors, *small, "--json")
    assert json.loads(capsys.readouterr().out)["run"] == vectors
    stored = json.loads(bucket.read("vectors/run.json"))
    assert stored["graph"]["path"] == graph
    assert run("train", "embedding", graph, "-o", vectors, *small) == 2
    assert "already holds a training run; choose" in capsys.readouterr().err
    assert not run("info", vectors, "--json")
    told = json.loads(capsys.readouterr().out)
    assert (told["epochs"], told["graph"]["path"]) == (1, graph)
    assert told["go_on"].endswith(f"-o {vectors} --resume --set epochs=2")
    assert not run("plot", vectors, "-o", tmp_path / "loss.svg")
    assert "loss" in (tmp_path / "loss.svg").read_text()
    assert run("plot", graph) == 2
    assert f"{graph} holds no run" in capsys.readouterr().err
    assert not run("evaluate", vectors, "--json")
    assert 0 < json.loads(capsys.readouterr().out)["metrics"]["mrr"] <= 1
    assert not run("nearest", vectors, "7", "-k", "3", "--json")
    assert len(json.loads(capsys.readouterr().out)["neighbors"]) == 3
    assert not run("export", vectors, "-o", tmp_path / "rows.parquet")
    assert pq.read_table(tmp_path / "rows.parquet").num_rows == 60
    for place in (graph, vectors):
        assert not run("verify", place)
        assert f"{place}: no problems found" in capsys.readouterr().err
    assert SECRET not in "".join(
        bucket.read(f"vectors/{it}").decode("latin-1") for it in bucket.names("vectors")
    )


RUN = b'{\n "graph": {"path": "g"},\n "files": {},\n "format_version": 2\n}\n'


def upload_run(bucket: Bucket, files: dict[str, tuple[int, str]], **altered: Any) -> str:
    content = json.loads(with_files(RUN, "gen-5", files))
    content["stored"] |= altered
    bucket.write("run/run.json", json.dumps(content).encode())
    return bucket.place("run")


def test_files_of_a_run_may_not_leave_the_copy(bucket: Bucket, capsys: Capture) -> None:
    place = upload_run(bucket, {"../../x": (1, "")})
    assert run("evaluate", place) == 2
    assert "which is not inside the graph's folder; do not use" in capsys.readouterr().err
    place = upload_run(bucket, {}, folder="../other")
    assert run("evaluate", place) == 2
    assert "stored does not match its checksum" in capsys.readouterr().err
    assert [it.file for it in verify_folder(place).problems] == ["run.json"]


def test_damage_in_a_run_is_told(bucket: Bucket, capsys: Capture) -> None:
    place = upload_run(bucket, {"config.toml": (4, "xxh3:00")})
    bucket.write("run/gen-5/config.toml", b"dim=")
    assert run("export", place, "-o", "x.parquet") == 2
    message = capsys.readouterr().err
    assert f"error: {place}/gen-5/config.toml does not match its checksum; run" in message


def test_a_run_that_was_copied_there_opens(bucket: Bucket) -> None:
    bucket.write("run/run.json", RUN.replace(b'{"path"', b'{"kind": 1, "path"'))
    bucket.write("run/rows/a.npy", b"rows")
    folder = run_folder(bucket.place("run"))
    assert (folder / "rows" / "a.npy").read_bytes() == b"rows"
    assert not is_gnn_run(bucket.place("run"))


REFUSED = {
    "append GRAPH new.csv": "takes whole graphs (of ingest, dataset build, split, part",
    "compact GRAPH": "takes whole graphs (of ingest, dataset build, split, partition)",
    "run pagerank GRAPH -o GRAPH/ranks.parquet": "which is a graph and holds no other",
    "run pagerank GRAPH -o s3://nobody/ranks.parquet": "there is no bucket 'nobody'",
    "run pagerank GRAPH -o GRAPH.rtf": "expected a name that ends in one of",
    "run pagerank GRAPH -o x.csv --implementation program --checkpoint GRAPH/kept "
    "--checkpoint-every 1": "which is a graph and holds no",
    "train embedding GRAPH -o GRAPH-run --resume": "holds no run to resume; train without",
    "train gnn GRAPH -o GRAPH-run --cluster a.b:6379 --set tensorboard=true": "put chec",
    "evaluate GRAPH": "holds no run (no run.json); expected what `graphsys train ... -o s3",
    "info s3://nobody/graph": "there is no bucket 'nobody'; make it, or look at its name",
    "info s3://key:hush@b/graph": "belong into the environment",
}


def test_what_is_not_done_there_is_refused_in_a_line(
    bucket: Bucket, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_store(bucket.place("graph"), edge_chunk([(1, 2), (2, 3)]))
    for words, message in REFUSED.items():
        assert run(*words.replace("GRAPH", bucket.place("graph")).split()) == 2, words
        errors = capsys.readouterr().err.splitlines()
        assert [it for it in errors if it.startswith("error: ") and message in it], words
        assert "hush" not in "".join(errors)
    assert {it.name for it in tmp_path.iterdir()} == {"cache"}


def test_files_are_written_there(
    bucket: Bucket, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    graph, here = bucket.place("graph"), tmp_path / "ranks.parquet"
    make_store(graph, edge_chunk([(1, 2), (2, 3)]))
    there = bucket.place("out/ranks.parquet")
    assert not run("run", "pagerank", graph, "-o", here)
    assert not run("run", "pagerank", graph, "-o", there)
    assert bucket.read("out/ranks.parquet") == here.read_bytes()
    assert run("run", "pagerank", graph, "-o", there) == 2
    assert f"error: {there} exists; replace it with --ov" in capsys.readouterr().err
    assert not run("run", "bfs", graph, "-o", there, "--param", "source=1", "--overwrite")
    assert bucket.read("out/ranks.parquet") != here.read_bytes()
    assert run("run", "pagerank", graph, "-o", bucket.place("out.parquet/x/y.csv")) == 0
    assert run("run", "pagerank", graph, "-o", bucket.place("out.parquet")) == 2
    assert "is a folder; name a file" in capsys.readouterr().err
    assert list((bucket.cache / "staging").iterdir()) == []
    page = bucket.place("report.html")
    assert not run(
        "profile", "-o", page, "--", "run", "wcc", graph, "-o", here, "--overwrite"
    )
    assert b"<html" in bucket.read("report.html")
    assert json.loads(bucket.read("report.json"))
    assert {it.name for it in tmp_path.iterdir()} == {"cache", here.name}


def test_an_upload_that_fails_leaves_the_old_file(
    bucket: Bucket, tmp_path: Path, capsys: Capture, one_try: None
) -> None:
    graph, there = bucket.place("graph"), bucket.place("ranks.csv")
    make_store(graph, edge_chunk([(1, 2), (2, 3)]))
    bucket.write("ranks.csv", b"old")
    bucket.server.fault = lambda it: (
        (503, "SlowDown") if it["REQUEST_METHOD"] in ("PUT", "POST") else None
    )
    assert run("run", "pagerank", graph, "-o", there, "--overwrite") == 1
    assert f"error: {there.rpartition('/')[0]}" in capsys.readouterr().err
    bucket.server.reset()
    assert bucket.read("ranks.csv") == b"old"
    assert list((bucket.cache / "staging").iterdir()) == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError(5, "Input/output error")])
@pytest.mark.parametrize("pieces", [1, 3])
def test_an_upload_that_is_interrupted_leaves_the_old_file(
    bucket: Bucket, tmp_path: Path, error: Any, pieces: int
) -> None:
    bucket.write("rows.csv", b"old")
    new = tmp_path / "rows.csv"
    new.write_bytes(b"x" * (pieces * s3_writer._PIECE))

    class Breaks(io.FileIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() >= (pieces - 1) * s3_writer._PIECE:
                raise error
            return super().read(size) or b""

    writer = s3_writer.S3Writer(Location.parse(bucket.place("rows.csv")).parent)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", lambda self, mode: Breaks(str(self)))
        with pytest.raises(type(error) if isinstance(error, OSError) else error):
            writer.upload(new, "rows.csv")
    assert bucket.read("rows.csv") == b"old"
    assert writer.begun() == set()  # no part stays, which would be paid for
    writer.upload(new, "rows.csv")
    assert bucket.read("rows.csv") == new.read_bytes()


WRITE = """
import shutil, sys
from graphsys.storage.remote.publishing import published
with published(sys.argv[1], "graph.json", overwrite=True) as folder:
    shutil.copytree(sys.argv[2], folder)
"""


@pytest.mark.kill
def test_a_kill_in_an_upload_leaves_the_old_graph(bucket: Bucket, tmp_path: Path) -> None:
    place, arrived = bucket.place("graph"), threading.Event()
    make_store(place, edge_chunk([(1, 2), (2, 3)]))
    make_store(tmp_path / "new", edge_chunk([(1, 2)]), partitions=2)
    before = bucket.read("graph/graph.json")
    uploads: list[int] = []

    def fault(request: dict[str, Any]) -> None:
        if request["REQUEST_METHOD"] == "PUT":
            uploads.append(1)
            if len(uploads) == 3:
                arrived.set()
            if len(uploads) > 3:  # the last file is never there
                threading.Event().wait(2)

    bucket.server.fault = fault
    killed = subprocess.Popen(
        [sys.executable, "-c", WRITE, place, str(tmp_path / "new")],
        cwd="/",
        env={**os.environ, "GRAPHSYS_CACHE": str(bucket.cache)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert arrived.wait(60)
    killed.send_signal(signal.SIGKILL)
    assert killed.wait() == -signal.SIGKILL
    bucket.server.reset()
    assert bucket.read("graph/graph.json") == before
    assert len(list((bucket.cache / "staging").iterdir())) == 1
    problems = verify_folder(place).problems
    assert "a killed writer left it, or one is writing now" in problems[0].what
    make_store(place, edge_chunk([(1, 2)]), overwrite=True)
    assert verify_folder(place).ok
    assert list((bucket.cache / "staging").iterdir()) == []


def test_damaged_copies_of_a_run_are_fetched_anew(
    bucket: Bucket, tmp_path: Path, capsys: Capture
) -> None:
    graph, vectors = bucket.place("graph"), bucket.place("vectors")
    assert not run("ingest", edges(tmp_path), "-o", graph, "--split", "0.8,0.1,0.1")
    small = ("--set", "dim=8", "--set", "epochs=1")
    assert not run("train", "embedding", graph, "-o", vectors, *small)
    assert not run("evaluate", vectors)
    (rows,) = (bucket.cache / "remote").glob("*/vectors/rows/node/part-0.*.npy")
    whole = rows.read_bytes()
    rows.write_bytes(whole[:-1] + bytes([whole[-1] ^ 255]))
    assert not run("evaluate", vectors)
    assert "in the cache were damaged; fetched anew" in capsys.readouterr().err
    assert rows.read_bytes() == whole
