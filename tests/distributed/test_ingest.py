"""Ingest by tasks: byte for byte the store of one machine, kills, what is refused."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv, parquet

from graphsys import datasets, distributed
from graphsys.core.errors import (
    ClusterError,
    ConfigError,
    InputError,
    OutputExistsError,
)
from graphsys.datasets.text import source as text_source
from graphsys.distributed import Cluster, ray
from graphsys.distributed.group import run_tasks
from graphsys.distributed.ingestion import api
from graphsys.distributed.ingestion import tasks as ingest_tasks
from graphsys.distributed.ingestion.plan import NodeFiles
from graphsys.distributed.shared_files import SharedFiles
from graphsys.storage import Graph
from graphsys.storage.source import NodeChunk
from tests.conftest import Run
from tests.distributed.ingests import by_tasks, content
from tests.processes import wait_for

PATIENCE_S = 120


def integers(folder: Path) -> list[Path]:
    """Write weighted edges of skewed integer ids, with repeats and loops."""
    rng, files = np.random.default_rng(2), []
    for number, size in enumerate((400, 1, 250)):
        ends = np.stack([rng.zipf(1.6, size), rng.integers(0, 300, size)], axis=1)
        ends = ends % 5000 * 7919 % 1_000_003
        weights = rng.integers(1, 9, size) / (2 if number else 1)
        lines = [f"{a}\t{b}\t{w}" for (a, b), w in zip(ends, weights, strict=True)]
        lines += [*lines[:20], f"{ends[0, 0]}\t{ends[0, 0]}\t1"]
        files.append(folder / f"edges-{number}.tsv")
        files[-1].write_text("\n".join(lines) + "\n")
    return files


def triples(folder: Path) -> list[Path]:
    """Write facts, whose relations and names are not all in every file."""
    rng, files = np.random.default_rng(3), []
    for name, size, most in (("train", 500, 60), ("valid", 40, 80), ("test", 60, 80)):
        ends = rng.integers(0, most, (size, 2))
        lines = [f"n{a}\tr{(a * b) % (most // 10)}\tn{b}" for a, b in ends.tolist()]
        files.append(folder / f"{name}.txt")
        files[-1].write_text("\n".join(lines) + "\n")
    return files


def tables(folder: Path) -> list[Path]:
    """Write tables with times, one a day after the other."""
    rng, files = np.random.default_rng(4), []
    for day in range(2):
        ends = rng.integers(0, 50, (2, 300))
        times = pa.array(day * 86400 + np.arange(300), pa.timestamp("s"))
        table = pa.table({"src": ends[0], "dst": ends[1], "time": times})
        files.append(folder / f"day-{day}.parquet")
        parquet.write_table(table, files[-1])
    return files


def column_of_splits(folder: Path) -> list[Path]:
    """Write a file whose column says the split of an edge, one of them late."""
    lines = [f"{k},{k * 7 % 90},{'test' if k > 80 else 'train'}" for k in range(90)]
    file = folder / "edges.csv"
    file.write_text("\n".join(["src,dst,split", *lines, ""]))
    return [file]


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (integers, {"partitions": 3}),
        (column_of_splits, {"partitions": 2}),
        (integers, {"partitions": 2, "undirected": True, "coalesce": True, "seed": 5}),
        (integers, {"order": "degree", "drop_self_loops": True, "coalesce": True}),
        (integers, {"ids": "string", "partitions": 4}),
        (triples, {"format": "triples", "partitions": 3}),
        (triples, {"format": "triples", "order": "degree"}),
        (tables, {"partitions": 2, "order": "original"}),
    ],
)
def test_the_store_is_that_of_one_machine(
    tmp_path: Path, write: Callable[[Path], list[Path]], options: dict[str, Any]
) -> None:
    files = write(tmp_path)
    datasets.ingest(files, tmp_path / "one", **options)
    by_tasks(files, tmp_path / "many", **options)
    assert content(tmp_path / "many") == content(tmp_path / "one")


def shop(folder: Path) -> dict[str, Any]:
    """Write tables of a shop: two node types, three edge types, one in splits."""
    rng = np.random.default_rng(8)
    users = [f"u{k}" for k in rng.permutation(40)]
    table = pa.table(
        {
            "id": users,
            "age": pa.array(rng.integers(9, 90, 40), mask=rng.random(40) < 0.2),
            "town": pa.array(rng.choice(["ulm", "bonn"], 40)).dictionary_encode(),
            "x": pa.FixedSizeListArray.from_arrays(rng.random(120).astype("f4"), 3),
            "tags": pa.array([[k, 3][: k % 3] for k in range(40)], pa.list_(pa.uint32())),
        }
    )
    parquet.write_table(table, folder / "users.parquet", row_group_size=15)
    items = [f"i{k},{k % 3},{'train' if k % 2 else 'test'}" for k in rng.permutation(60)]
    (folder / "items.csv").write_text("\n".join(["id,label,split", *items, ""]))
    bought = []
    for split, size in (("train", 300), ("valid", 40)):
        lines = [
            f"u{u},i{i},{w / 4},{w % 5},note {w}"
            for u, i, w in zip(
                rng.integers(0, 40, size),
                rng.integers(0, 60, size),
                range(size),
                strict=True,
            )
        ]
        bought.append(folder / f"{split}.csv")
        bought[-1].write_text("\n".join(["user,item,weight,stars,text", *lines, ""]))
    trusts = [f"u{a}\tu{b}" for a, b in rng.integers(0, 30, (90, 2))]
    (folder / "trusts.tsv").write_text("\n".join(["src\tdst", *trusts, ""]))
    like = [f"i{a}\ti{b}\t{a * b % 7}" for a, b in rng.integers(0, 70, (50, 2))]
    (folder / "like.tsv").write_text("\n".join(["src\tdst\tcount", *like, ""]))
    return {
        "nodes": {"user": folder / "users.parquet", "item": folder / "items.csv"},
        "edges": {
            "user,bought,item": bought,
            "user,trusts,user": [folder / "trusts.tsv"],
            "item,like,item": [folder / "like.tsv"],
        },
    }


@pytest.mark.filterwarnings("ignore:.*no model reads")
@pytest.mark.filterwarnings("ignore:.* in no table of nodes")  # of items
@pytest.mark.parametrize(
    "options",
    [
        {"partitions": 3},
        {"partitions": {"user": 2, "item": 1}, "order": "degree", "coalesce": True},
        {"features_as": "int8,shared", "drop_self_loops": True, "order": "original"},
    ],
)
def test_tables_by_type_become_the_store_of_one_machine(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    given = shop(tmp_path)
    datasets.ingest(out=tmp_path / "one", **given, **options)
    by_tasks([], tmp_path / "many", **given, **options)
    assert content(tmp_path / "many") == content(tmp_path / "one")
    with Graph(tmp_path / "many") as graph:
        assert sorted(graph.manifest.edge_types) == ["bought", "like", "trusts"]
        assert graph.manifest.edge_types["bought"].columns["text"] == "large_string"
        assert "x" in graph.manifest.node_types["user"].features


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.mtx", "%%MatrixMarket matrix coordinate real general\n3 3 2\n1 2 .5\n3 1 2\n"),
        ("a.graph", "3 2\n2\n1 3\n2\n"),
        ("a.csv", "src,dst,color\n1,2,red\n2,3,\n"),
    ],
)
def test_any_format_becomes_the_store_of_one_machine(
    tmp_path: Path, name: str, text: str
) -> None:
    (tmp_path / name).write_text(text)
    datasets.ingest(tmp_path / name, tmp_path / "one", partitions=2)
    by_tasks([tmp_path / name], tmp_path / "many", partitions=2)
    assert content(tmp_path / "many") == content(tmp_path / "one")


def test_columns_of_files_are_brought_to_the_first(tmp_path: Path) -> None:
    kinds = (pa.int64(), pa.int32()), (pa.int64(), pa.string())
    for kind in kinds:
        files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
        for file, one in zip(files, kind, strict=True):
            column = pa.array([1, 2]).cast(one) if one != pa.string() else ["x", "y"]
            parquet.write_table(
                pa.table({"src": [1, 2], "dst": [2, 3], "size": column}), file
            )
        found = []
        for out, ingest in (("one", datasets.ingest), ("many", by_tasks)):
            if kind is kinds[0]:
                ingest(files, tmp_path / out)
                found.append(str(content(tmp_path / out)))
            else:
                with pytest.raises(InputError, match="columns change between") as caught:
                    ingest(files, tmp_path / f"{out}-none")
                found.append(str(caught.value))
        assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:.*no model reads")
@pytest.mark.filterwarnings("ignore:.* in no table of nodes")  # of items
@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("items.csv", "id,label\ni1,2\ni1,3\n"),
        ("items.csv", "id,label\ni1\n"),
        ("trusts.tsv", "src\tdst\nu1\n"),
        ("trusts.tsv", "src\tdst\n"),
        ("trusts.tsv", "src\tdst\nu1\tu99\n"),
        ("like.tsv", "src\tdst\tcount\nx\ty\n"),
    ],
)
def test_damaged_tables_by_type_say_what_one_machine_says(
    tmp_path: Path, file: str, text: str
) -> None:
    given, said = shop(tmp_path), []
    (tmp_path / file).write_text(text)
    for ingest in (datasets.ingest, partial(by_tasks, [])):
        with pytest.raises(InputError) as caught:
            ingest(out=tmp_path / "none", **given)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert not (tmp_path / "none").exists()


def test_bags_and_features_keep_their_order(tmp_path: Path) -> None:
    bags = pa.array([[1, 2], [], [3]], pa.large_list(pa.uint32()))
    features = {"b": np.ones((3, 2), "f4"), "words": bags, "a": np.zeros((3, 1), "i1")}
    chunk = NodeChunk(ids=[1, 2, 3], columns={"of/day": [1, 2, 3]}, features=features)
    files = SharedFiles(tmp_path)
    ids = ingest_tasks._save_ids(files, 1, "ids", np.arange(3), "node", weight=0)
    assert not files.load("ids.counts").any()
    found: Any = NodeFiles.save(files, chunk, "nodes", ids).chunk(files)
    assert list(found.features) == ["b", "words", "a"]
    assert found.features["words"].equals(bags)
    assert found.features["a"].dtype == np.int8
    assert found.columns["of/day"].to_pylist() == [1, 2, 3]


def test_files_are_named_as_the_user_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with (
        pytest.raises(InputError, match=r"^b.csv:3: x; d/c.csv and a.csv$"),
        api._named(["b.csv", Path("d/e.toml")]),
    ):
        raise InputError(f"{tmp_path}/b.csv:3: x; {tmp_path}/d/c.csv and {tmp_path}/a.csv")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a file of three blocks, whose ids are not close to each other."""
    rng = np.random.default_rng(6)
    ends = rng.integers(0, 40_000, (2, 1_500_000)) * 97 % 40_000 + 10_000_000
    path: Path = tmp_path_factory.mktemp("large") / "edges.txt"
    options = csv.WriteOptions(include_header=False, delimiter="\t")
    csv.write_csv(pa.table({"src": ends[0], "dst": ends[1]}), path, options)
    return path


def test_a_large_file_is_read_in_stretches(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_source, "STRETCH_BLOCKS", 1)
    assert datasets.open_source(large).num_parts == 4
    datasets.ingest(large, tmp_path / "one", partitions=2)
    by_tasks([large], tmp_path / "many", partitions=2, bits=3)
    assert content(tmp_path / "many") == content(tmp_path / "one")
    bad, lines = tmp_path / "bad.txt", large.read_bytes().split(b"\n")
    lines[1_234_567] = b"7"
    bad.write_bytes(b"\n".join(lines))
    with pytest.raises(InputError) as one:
        datasets.ingest(bad, tmp_path / "none")
    with pytest.raises(InputError) as many:
        by_tasks([bad], tmp_path / "none")
    assert "bad.txt:1234568: " in str(one.value)
    assert str(many.value) == str(one.value)
    assert not (tmp_path / "none").exists()


def refused(folder: Path, texts: dict[str, str], **options: Any) -> str:
    for name, text in texts.items():
        (folder / name).write_text(text)
    with pytest.raises((ConfigError, InputError)) as caught:
        by_tasks([folder / name for name in texts], folder / "none", **options)
    assert not (folder / "none").exists()
    return str(caught.value)


def test_what_one_machine_alone_takes_is_refused(tmp_path: Path) -> None:
    for texts, message in (
        (
            {"a.csv": "src,dst\n1,2\n", "b.csv": "src,dst,weight\n1,2,3\n"},
            "column 'weight' is in some of the input",
        ),
        (
            {"a.csv": "src,dst,time\n1,2,3\n", "b.csv": "src,dst,time\n1,2,2020-01-01\n"},
            "column 'time' of edge type",
        ),
        ({"a.txt": "1 2\n1 x\n"}, "expected an integer id"),
    ):
        assert message in refused(tmp_path, texts)


def test_integers_and_names_in_one_type_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    for file, ends in zip(files, ([1, 2], ["a", "b"]), strict=True):
        parquet.write_table(pa.table({"src": ends, "dst": ends}), file)
    for ingest in (datasets.ingest, by_tasks):
        with pytest.raises(InputError, match="both integer and string ids"):
            ingest(files, tmp_path / "none")
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--split", "8,1,1"], "--split does not go with --cluster; leave out one of them"),
        (["--nodes", "a=b.csv"], "expected either FILES, or tables with"),
        (["--partitioner", "ldg", "--partitions", "2"], "looks at the whole graph"),
        (["--order", "rcm"], "looks at the whole graph"),
        (["--format", "nonsense"], "nonsense"),
    ],
)
def test_refusals_are_one_line(
    tmp_path: Path, run_cli: Run, words: list[str], message: str
) -> None:
    file = tmp_path / "edges.txt"
    file.write_text("1 2\n")
    out = tmp_path / "graph"
    done = run_cli("ingest", file, "-o", out, *words, "--cluster", "local:2")
    assert done.returncode == 2, done.stdout
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not out.exists()


def test_a_task_that_is_lost_for_good_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    exceptions, canceled = pytest.importorskip("ray").exceptions, list[object]()

    def get(answer: object, timeout: float | None) -> None:
        raise exceptions.WorkerCrashedError

    def cancel(answer: object, force: bool) -> None:
        canceled.append(answer)

    library = SimpleNamespace(get=get, cancel=cancel, exceptions=exceptions)
    monkeypatch.setattr(ray, "_ray", lambda: library)
    monkeypatch.setattr(ray, "start_task", lambda *_: "task")
    with pytest.raises(ClusterError, match=r"which Ray tries 3 times again: .*then give"):
        run_tasks(len, [((),)])
    assert canceled == ["task"]


@pytest.mark.slow
@pytest.mark.e2e
def test_the_command_killed_begun_again_and_its_workers_killed(
    tmp_path: Path, run_cli: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = triples(tmp_path)
    options: dict[str, Any] = {"format": "triples", "partitions": 3}
    datasets.ingest(files, tmp_path / "one", **options)
    expected, out = content(tmp_path / "one"), tmp_path / "graph"
    words = ["ingest", *files, "-o", out, "--format", "triples", "--partitions", "3"]
    words += ["--cluster", "local:2", "--json"]
    command = [sys.executable, "-m", "graphsys", *map(str, words)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        wait_for(lambda: (out / "gen-1" / "scratch" / "tasks").exists(), PATIENCE_S)
        process.kill()
    assert not (out / "graph.json").exists()
    done = run_cli(*words)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["workers"] == 2
    assert content(out) == expected

    def fragile(name: str) -> None:
        task, mark = getattr(ingest_tasks, name), tmp_path / name

        def dies_once(*arguments: Any) -> Any:
            if not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return task(*arguments)

        monkeypatch.setattr(ingest_tasks, name, dies_once)

    tasks = ("scan", "find_distinct", "number_ids", "group_edges", "write_part")
    for name in (*tasks, "write_incoming"):
        fragile(name)
    report = distributed.ingest(
        files,
        tmp_path / "killed",
        cluster=Cluster.parse("local:2"),
        reading={"format": "triples"},
        partitions=3,
    )
    assert (report.workers, (tmp_path / "write_incoming").exists()) == (2, True)
    assert content(tmp_path / "killed") == expected
    with pytest.raises(OutputExistsError, match="already holds a graph"):
        distributed.ingest(files, tmp_path / "one", cluster=Cluster.parse("local:2"))
