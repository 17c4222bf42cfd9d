"""Parquet, Arrow, JSON Lines: columns by name, all integer and string types, refusals."""

import gzip
import json
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import graphsys as gs
from graphsys.core.errors import InputError, UnknownNameError
from graphsys.datasets import ingest, open_source
from graphsys.datasets.text.blocks import text_blocks
from graphsys.storage.source import EdgeChunk
from tests.advice.case import advised


def read(path: Path, **options: object) -> list[EdgeChunk]:
    chunks = list(open_source(path, **options).chunks())  # type: ignore[arg-type] # any option
    return [chunk for chunk in chunks if isinstance(chunk, EdgeChunk)]


def store(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "feather", "jsonl"])
def test_files_of_every_kind_are_read(tmp_path: Path, kind: str) -> None:
    table = pa.table(
        {"src": [1, 2], "dst": [3, 4], "weight": [0.5, 1.5], "note": ["a", None]}
    )
    path = tmp_path / f"g.{'arrow' if kind == 'stream' else kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, path)
    elif kind == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in table.to_pylist()))
    else:
        new = pa.ipc.new_stream if kind == "stream" else pa.ipc.new_file
        with new(path, table.schema) as out:
            out.write_table(table)
    (chunk,) = read(path)
    assert chunk.src.tolist() == [1, 2]
    assert chunk.dst.tolist() == [3, 4]
    assert chunk.columns["weight"].tolist() == [0.5, 1.5]
    assert chunk.columns["note"].to_pylist() == ["a", None]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
def test_integer_ids_become_int64(tmp_path: Path, kind: str) -> None:
    values = np.array([1, 100], dtype=kind)
    (chunk,) = read(store(tmp_path / "g.parquet", src=values, dst=values))
    assert chunk.src.dtype == np.int64
    assert chunk.src.tolist() == [1, 100]


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_string_ids_become_dictionaries(tmp_path: Path, kind: pa.DataType) -> None:
    names = pa.array(["a", "b"]).cast(kind)
    (chunk,) = read(store(tmp_path / "g.parquet", src=names, dst=names))
    assert chunk.src.type == pa.dictionary(pa.int32(), pa.string())
    assert chunk.src.to_pylist() == ["a", "b"]


def test_one_kind_of_ids_for_both_ends(tmp_path: Path) -> None:
    (chunk,) = read(store(tmp_path / "g.parquet", src=[1, 2], dst=["a", "b"]))
    assert chunk.src.to_pylist() == ["1", "2"]


def test_times_count_in_their_unit(tmp_path: Path) -> None:
    time = pa.array([1000, 2000], type=pa.timestamp("ms"))
    (chunk,) = read(store(tmp_path / "g.parquet", src=[1, 2], dst=[3, 4], time=time))
    assert chunk.columns["time"].equals(time)


def test_columns_are_chosen(tmp_path: Path) -> None:
    path = store(tmp_path / "g.parquet", a=[1], b=[2], c=[3], d=[4])
    (chunk,) = read(path, columns={"src": "d", "dst": "a", "weight": "c"})
    assert (chunk.src[0], chunk.dst[0], chunk.columns["weight"][0]) == (4, 1, 3)
    (chunk,) = read(path, columns="b,c")
    assert (chunk.src[0], chunk.dst[0], list(chunk.columns)) == (2, 3, [])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"src": [1, -2], "dst": [1, 2]}, "column src, row 1: found -2 as an id"),
        (
            {"src": [1, 2], "dst": np.array([1, 2**63], dtype=np.uint64)},
            "column dst, row 1: found 9223372036854775808 as an id",
        ),
        (
            {"src": [1, None], "dst": [1, 2]},
            "column src, row 1: the value is missing .null., as 1 of 2 are; drop those",
        ),
        ({"src": [1.5, 2], "dst": [1, 2]}, "column src: ids are of type double, expected"),
        (
            {"src": [1, 2], "dst": [1, 2], "weight": [1, np.nan]},
            "column weight, row 1: found NaN",
        ),
        (
            {"src": [1, 2], "dst": [1, 2], "weight": ["1", "x"]},
            "column weight: weights are of type string, expected numbers",
        ),
        (
            {"src": [1, 2], "dst": [1, 2], "time": [True, False]},
            "column time: times are of type bool, expected integers or timestamps",
        ),
        ({"a": [1], "b": [1]}, "no column for src and dst among a, b; .*--columns"),
        (
            {"src": pa.array([], pa.int64()), "dst": pa.array([], pa.int64())},
            "no edge in the",
        ),
    ],
)
def test_bad_columns_are_named(
    tmp_path: Path, columns: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read(store(tmp_path / "g.parquet", **columns))


def test_unknown_column_is_named(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown column 'nope'"):
        read(store(tmp_path / "g.parquet", src=[1], dst=[2]), columns="src,dst,nope")


@pytest.mark.parametrize("name", ["g.parquet", "g.arrow"])
def test_damaged_files_are_named(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"rubbish" * 9)
    with pytest.raises(InputError, match=r"no (Parquet file|Arrow IPC file or stream): "):
        read(path)
    whole = store(tmp_path / "whole.parquet", src=[1], dst=[2]).read_bytes()
    path.write_bytes(whole[:-9])
    with pytest.raises(InputError, match=r"no (Parquet file|Arrow IPC file or stream): "):
        read(path)


def test_a_column_of_splits_parts_the_edges(tmp_path: Path) -> None:
    columns = {
        "src": ["a", "b", "c", "a"],
        "dst": [5, 6, 7, 8],
        "weight": [1.0, 2, 3, 4],
        "split": ["train", "test", "train", "odd"],
    }
    path = tmp_path / "g.parquet"
    pq.write_table(pa.table(columns), path)
    graph = ingest(path, tmp_path / "g").graph
    edge_type = graph.edge_types[0]
    counts = {
        it: int(graph.bucket_counts(edge_type, it).sum()) for it in graph.splits(edge_type)
    }
    assert counts == {"train": 2, "test": 1, "odd": 1}
    weight = graph.bucket(edge_type, 0, 0, split="test").weight
    assert weight is not None
    assert weight.tolist() == [2.0]
    missing = pa.table(columns | {"split": ["train", None, "train", "test"]})
    pq.write_table(missing, path)
    with pytest.raises(InputError, match=r"column split, row 1: the value is missing"):
        ingest(path, tmp_path / "h")


def lines(path: Path, *rows: object) -> Path:
    """Write an object a line; texts as they are."""
    texts = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def test_keys_of_json_lines_may_come_late_and_be_wider_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = partial(text_blocks, block_bytes=200)  # many of them
    monkeypatch.setattr("graphsys.datasets.readers.tables.text_blocks", blocks)
    rows: list[dict[str, object]] = [
        {"source": k, "target": k + 1, "by": {"user": {"id": f"é{k}"}}} for k in range(40)
    ]
    rows[30] |= {"score": 2, "seen": "2024-01-01"}
    rows[35] |= {"score": 0.5, "seen": "never"}
    path = lines(tmp_path / "g.jsonl", *rows[:10], "", *rows[10:])
    packed = tmp_path / "g.ndjson.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for file in (path, packed):
        graph = gs.ingest(file, tmp_path / f"{file.name}-store").graph
        table = graph.to_pandas().sort_values("src")
        assert table["src"].tolist() == list(range(40))
        assert table["by.user.id"].tolist() == [f"é{k}" for k in range(40)]
        assert table["score"].dropna().tolist() == [2.0, 0.5]
        assert table["seen"].tolist()[30] == "2024-01-01"
        assert table["seen"].tolist()[35] == "never"


@pytest.mark.parametrize(
    ("row", "line", "said"),
    [
        ('{"src": 1, "dst": ', 4, "expected an object a line"),
        ('{"src": "x", "dst": 1}', 4, "Column(/src) changed from number to string"),
        ('{"src": 1, "dst": 1, "src": 2}', 4, "was specified twice"),
        ("7", 4, "changed from object to number"),
        ('{"src": 1, "dst": 1} ' * 9 + "7", 5, "changed from object to number"),
    ],
)
def test_a_line_of_json_that_does_not_fit_is_named(
    tmp_path: Path, row: str, line: int, said: str
) -> None:
    good = {"src": 1, "dst": 2}
    path = lines(tmp_path / "g.jsonl", good, "", good, row, good)
    with pytest.raises(InputError) as refused:
        read(path)
    assert f"g.jsonl:{line}: expected an object a line" in str(refused.value)
    assert said in str(refused.value)


def test_json_lines_of_two_types_in_far_apart_lines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = partial(text_blocks, block_bytes=10)
    monkeypatch.setattr("graphsys.datasets.readers.tables.text_blocks", blocks)
    good = {"src": 1, "dst": 2}
    path = lines(tmp_path / "g.jsonl", *[good] * 9, {"src": "a", "dst": 2})
    with pytest.raises(InputError, match=r"key 'src' has values of type int64 and of type"):
        read(path)


@pytest.mark.parametrize("text", ["\n\n", "{}\n{}\n"])
def test_json_lines_without_keys_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "g.jsonl").write_text(text)
    with pytest.raises(InputError, match="found no object with keys, expected one a line"):
        read(tmp_path / "g.jsonl")


def test_bytes_that_are_no_text_in_json_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_bytes(b'{"src": 1, "dst": 2, "note": "\xff"}\n')
    with pytest.raises(InputError, match=r"(?i)invalid UTF"):
        read(path)


def test_a_list_of_json_becomes_lines_as_is_advised(tmp_path: Path) -> None:
    path = tmp_path / "g.jsonl"
    path.write_text('[{"src": 1, "dst": 2},\n {"src": 3, "dst": 2}]')
    with pytest.raises(InputError) as refused:
        read(path)
    command = advised(
        str(refused.value),
        "datasets/readers/tables.py",
        r"make lines of a list, (python -c '[^']+') FILE > NEW\.jsonl",
    )
    words = [sys.executable, *shlex.split(command[1])[1:], str(path)]
    new = tmp_path / "new.jsonl"
    new.write_bytes(subprocess.run(words, capture_output=True, check=True).stdout)
    (chunk,) = read(new)
    assert chunk.src.tolist() == [1, 3]


def test_nodes_and_edges_by_type_are_read_from_json_lines(tmp_path: Path) -> None:
    users = lines(
        tmp_path / "u.jsonl",
        *({"id": f"u{k}", "age": k, "info": {"x": k / 2}} for k in range(5)),
    )
    edges = lines(
        tmp_path / "e.jsonl", *({"src": f"u{k}", "dst": "u0"} for k in range(1, 5))
    )
    graph = gs.ingest(
        nodes={"user": users},
        edges={("user", "knows", "user"): edges},
        out=tmp_path / "g",
        columns={"user.x": "age+info.x"},
    ).graph
    assert graph.num_nodes == 5
    ids = graph.node_ids("user").to_pylist()
    rows = graph.features("user", 0, "x")
    assert rows[ids.index("u3")].tolist() == [3.0, 1.5]
