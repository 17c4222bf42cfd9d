"""Parquet and Arrow files: columns by name, all integer and string types, refusals."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from graphsys.core.errors import InputError, UnknownNameError
from graphsys.datasets import ingest, open_source
from graphsys.storage.source import EdgeChunk


def read(path: Path, **options: object) -> list[EdgeChunk]:
    chunks = list(open_source(path, **options).chunks())  # type: ignore[arg-type] # any option
    return [chunk for chunk in chunks if isinstance(chunk, EdgeChunk)]


def store(path: Path, **columns: object) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("kind", ["parquet", "arrow", "stream", "feather"])
def test_files_of_every_kind_are_read(tmp_path: Path, kind: str) -> None:
    table = pa.table(
        {"src": [1, 2], "dst": [3, 4], "weight": [0.5, 1.5], "note": ["a", None]}
    )
    path = tmp_path / f"g.{'arrow' if kind == 'stream' else kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, path)
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
