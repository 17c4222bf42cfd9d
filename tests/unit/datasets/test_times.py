"""Times that are no integers: fractions, ISO dates and timestamps, in every format."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import graphsys as gs
from graphsys.core.errors import InputError

FRACTIONS = ["1289241911.72836", "1289241941.5", "-3.25"]
DATES = ["2010-11-08T18:45:11.72836", "2010-11-08 18:45:41.5", "1969-12-31T23:59:56.75"]
MICROSECONDS = [1289241911728360, 1289241941500000, -3250000]


def times_of(graph: gs.Graph) -> list[int]:
    bucket = graph.bucket(graph.edge_types[0], 0, 0)
    assert bucket.time is not None
    return list(bucket.time[np.argsort(bucket.src)].tolist())


def write(path: Path, times: list[str]) -> Path:
    head = "src,dst,time\n" if path.suffix == ".csv" else ""
    mark = "," if path.suffix == ".csv" else "\t"
    rows = [mark.join((str(k), "9", time)) for k, time in enumerate(times)]
    path.write_text(head + "\n".join(rows) + "\n")
    return path


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@pytest.mark.parametrize(
    ("times", "message"),
    [
        (FRACTIONS, "numbers with fractions are stored as millionths, whole ones"),
        (DATES, "dates are stored as microseconds since 1970, UTC"),
        (
            [f"{date}Z" for date in DATES],
            "dates are stored as microseconds since 1970, UTC",
        ),
    ],
)
def test_text(tmp_path: Path, suffix: str, times: list[str], message: str) -> None:
    options: dict[str, Any] = {}
    if suffix == ".tsv":
        options = {"columns": "src,dst,time", "separator": "tab"}
    path = write(tmp_path / f"g{suffix}", times)
    with pytest.warns(UserWarning, match=rf"g\{suffix}: column time: {message} \(int64\)"):
        graph = gs.ingest(path, tmp_path / "g", **options).graph
    assert times_of(graph) == MICROSECONDS


def test_whole_dates(tmp_path: Path) -> None:
    path = write(tmp_path / "g.csv", ["1970-01-01", "1970-01-02", "2024-05-01"])
    with pytest.warns(UserWarning, match="since 1970"):
        graph = gs.ingest(path, tmp_path / "g").graph
    assert times_of(graph)[:2] == [0, 86_400_000_000]


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("kind", ["float", "string", "dictionary"])
def test_tables(tmp_path: Path, kind: str, is_file: bool) -> None:
    values: pa.Array = pa.array(
        [float(it) for it in FRACTIONS] if kind == "float" else DATES
    )
    if kind == "dictionary":
        values = values.dictionary_encode()
    table: Any = pa.table({"src": [0, 1, 2], "dst": [9, 9, 9], "time": values})
    if is_file:
        pq.write_table(table, tmp_path / "g.parquet")
        table = tmp_path / "g.parquet"
    with pytest.warns(UserWarning, match="column time: "):
        graph = gs.ingest(table, tmp_path / "g").graph
    assert times_of(graph) == MICROSECONDS


def test_timestamps_and_integers_stay_as_they_are(tmp_path: Path) -> None:
    frame = pd.DataFrame({"src": [0], "dst": [1], "time": pd.to_datetime(["1970-01-02"])})
    graph = gs.ingest(frame.astype({"time": "datetime64[ms]"}), tmp_path / "g").graph
    assert times_of(graph) == [86_400_000]
    assert times_of(gs.ingest(write(tmp_path / "i.csv", ["7"]), tmp_path / "i").graph) == [
        7
    ]


def test_nodes_have_such_times_too(tmp_path: Path) -> None:
    path = tmp_path / "users.csv"
    path.write_text("id,time\n0,1970-01-01\n1,1970-01-02\n")
    with pytest.warns(UserWarning, match="dates are stored"):
        graph = gs.ingest(
            out=tmp_path / "g", nodes={"u": path}, edges={"u,r,u": {"src": [0], "dst": [1]}}
        ).graph
    assert graph.nodes("u", 0)["time"].to_pylist() == [0, 86_400_000_000]


@pytest.mark.parametrize(
    ("times", "message"),
    [
        (["yesterday"], r"g\.csv:2: found 'yesterday' as time, expected an integer"),
        (
            ["2024-05-01"] * 100 + ["soon"],
            r"column time: found 'soon', expected integers, num",
        ),
        (["2024-13-01"], r"found dates that cannot be read, or some with a time zone"),
        (["1e300"], r"column time, row 0: found 1e\+300, expected a time whose millionths"),
    ],
)
def test_what_is_no_time_is_refused(tmp_path: Path, times: list[str], message: str) -> None:
    path = write(tmp_path / "g.csv", times)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that times are stored otherwise
        with pytest.raises(InputError, match=message):
            gs.ingest(path, tmp_path / "g")
