"""Times that are no integers: fractions, ISO dates and timestamps, in every format."""

import datetime as dt
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError, InputError
from graphsys.storage import info
from graphsys.storage.dynamic.compact import compact
from graphsys.storage.ingest.repartition import repartition

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
    ("times", "unit"),
    [(FRACTIONS, ""), (DATES, "us"), ([f"{date}Z" for date in DATES], "us")],
)
def test_text(tmp_path: Path, suffix: str, times: list[str], unit: str) -> None:
    options: dict[str, Any] = {}
    if suffix == ".tsv":
        options = {"columns": "src,dst,time", "separator": "tab"}
    path = write(tmp_path / f"g{suffix}", times)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        graph = gs.ingest(path, tmp_path / "g", **options).graph
    assert times_of(graph) == MICROSECONDS
    assert graph.time_unit() == unit
    said = [str(it.message) for it in told if "column time" in str(it.message)]
    if unit:
        assert not said
    else:
        assert "numbers with fractions are stored as millionths" in said[0]


def test_whole_dates(tmp_path: Path) -> None:
    path = write(tmp_path / "g.csv", ["1970-01-01", "1970-01-02", "2024-05-01"])
    graph = gs.ingest(path, tmp_path / "g").graph
    assert times_of(graph)[:2] == [0, 86_400_000_000]


@pytest.mark.parametrize("is_file", [False, True])
@pytest.mark.parametrize("kind", ["float", "string", "dictionary"])
@pytest.mark.filterwarnings("ignore:.*column time")
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
    graph = gs.ingest(table, tmp_path / "g").graph
    assert times_of(graph) == MICROSECONDS
    assert graph.time_unit() == ("" if kind == "float" else "us")


SECOND = 1_000_000_000
INSTANT = "2024-05-01T12:30:00.000000001"


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("is_file", [False, True])
def test_timestamps_keep_their_unit(tmp_path: Path, unit: str, is_file: bool) -> None:
    when = np.array([INSTANT], f"datetime64[{unit}]")
    frame = pd.DataFrame({"src": [0], "dst": [1], "time": when})
    source: Any = frame
    if is_file:
        source = tmp_path / "g.arrow"  # Parquet has no seconds
        feather.write_feather(pa.Table.from_pandas(frame), source, "uncompressed")
    graph = gs.ingest(source, tmp_path / "g").graph
    assert graph.time_unit() == unit
    assert times_of(graph) == when.astype(np.int64).tolist()
    assert info.details(graph.path)["edges"]["edge"]["time_unit"] == unit
    assert graph.to_pandas()["time"].tolist() == frame["time"].tolist()


def test_integers_have_none(tmp_path: Path) -> None:
    graph = gs.ingest(write(tmp_path / "i.csv", ["7"]), tmp_path / "i").graph
    assert (times_of(graph), graph.time_unit()) == ([7], "")
    assert "time_unit" not in info.details(graph.path)["edges"]["edge"]
    assert graph.to_pandas()["time"].tolist() == [7]


def dated(times: list[str], unit: str = "us", src: int = 0) -> pa.Table:
    when = pa.array(np.array(times, f"datetime64[{unit}]"))
    rows = list(range(src, src + len(times)))
    return pa.table({"src": rows, "dst": [9] * len(times), "time": when})


def test_files_of_several_units_are_brought_to_the_first(tmp_path: Path) -> None:
    paths = [tmp_path / f"{k}.parquet" for k in range(2)]
    for order, is_right in ((("us", "ms"), True), (("ms", "us"), False)):
        for k, (path, unit) in enumerate(zip(paths, order, strict=True)):
            part = "2024-05-01T00:00:00" + (".000250" if unit == "us" else "")
            pq.write_table(dated([part], unit, k), path)
        if is_right:
            graph = gs.ingest(paths, tmp_path / "g").graph
            assert times_of(graph) == [1714521600000250, 1714521600000000]
            continue
        with pytest.raises(InputError, match="no whole number of milliseconds, in which"):
            gs.ingest(paths, tmp_path / "h")
        assert not (tmp_path / "h").exists()
    pq.write_table(pa.table({"src": [0], "dst": [1], "time": [5]}), paths[1])
    with pytest.raises(InputError, match="integers of no known unit"):
        gs.ingest(paths, tmp_path / "h")


def test_views_are_asked_for_by_dates(tmp_path: Path) -> None:
    days = [f"2024-05-0{k}T12:00" for k in range(1, 8)]
    graph = gs.ingest(dated(days, "s"), tmp_path / "g").graph
    assert graph.at("2024-05-03").num_edges == 2
    assert graph.at("2024-05-03T12:00:00+00:00").num_edges == 3
    assert graph.at("2024-05-03T12:00:00.5").num_edges == 3
    assert graph.at(dt.datetime(2024, 5, 3, 11, 59, 59, 999)).num_edges == 2
    assert graph.at(pd.Timestamp("2024-05-04", tz="Europe/Berlin")).num_edges == 3
    assert graph.at(1714564800).num_edges == 1
    span = graph.between(dt.date(2024, 5, 2), np.datetime64("2024-05-05"))
    assert span.num_edges == 3
    assert "2024-05-02T00:00:00 to before 2024-05-05" in repr(span)
    assert graph.between("2024-05-02T12:00:00.1", None).num_edges == 5
    for window in ("2d", dt.timedelta(days=2), np.timedelta64(48, "h"), 172_800):
        counts = [view.num_edges for view in graph.rolling(window=window)]
        assert counts == [2, 2, 2, 1]
    assert len(list(graph.rolling(window="2d", step="1d"))) == 7
    for wrong in ("7 parsecs", "1ms", pd.NaT):
        with pytest.raises(ConfigError, match="window: "):
            graph.rolling(window=wrong)
    for wrong in ("yesterday", pd.NaT, 1.5, None):
        with pytest.raises(ConfigError, match=r"time: got .* expected a whole number"):
            graph.at(wrong)  # type: ignore[arg-type] # on purpose


def test_the_unit_outlives_all_that_writes_a_store_again(tmp_path: Path) -> None:
    graph = gs.ingest(dated(["2024-05-01", "2024-05-02"], "D"), tmp_path / "g").graph
    assert (graph.time_unit(), times_of(graph)) == ("d", [19844, 19845])
    repartition(graph, tmp_path / "halves", partitioner="hash", partitions=2)
    with gs.Graph(tmp_path / "halves") as halves:
        assert halves.time_unit() == "d"
    assert graph.subgraph([0, 9]).time_unit() == "d"
    graph.append({"src": [5], "dst": [9], "time": [19850]})
    graph.append(write(tmp_path / "more.csv", ["2024-05-09"]))
    with pytest.raises(InputError, match="no whole number of days"):
        graph.append(write(tmp_path / "odd.csv", ["2024-05-09T01:00"]))
    graph.append(
        delete=pa.table({"src": [0], "dst": [9], "time": [dt.date(2024, 5, 3)]}),
    )
    compact(graph.path)
    with gs.Graph(graph.path) as folded:
        assert folded.time_unit() == "d"
        assert folded.at("2024-05-02").num_edges == 1
        assert folded.at("2024-06-01").num_edges == 3


def test_dates_do_not_join_integers(tmp_path: Path) -> None:
    graph = gs.ingest(write(tmp_path / "i.csv", ["7"]), tmp_path / "i").graph
    with pytest.raises(InputError, match="give all as timestamps or all as integers"):
        graph.append(write(tmp_path / "d.csv", ["2024-05-09"]))


def test_nodes_have_such_times_too(tmp_path: Path) -> None:
    path = tmp_path / "users.csv"
    path.write_text("id,time\n0,1970-01-01\n1,1970-01-02\n")
    with pytest.warns(UserWarning, match="dates of nodes are stored as microseconds"):
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
        (["2024-13-01"], r"found '2024-13-01', which is no date of the calendar; correct"),
        (["2024-05-01"] * 100 + ["2024-02-30"], r"found '2024-02-30', which is no date of"),
        (
            ["2024-05-01T10:00:00+02:00", "2024-05-02"],
            r"'2024-05-01T10:00:00\+02:00', which has a time zone, and '2024-05-02', which",
        ),
        (["2024-05-01", "2015/3/25"], r"found dates that are written in several ways"),
        (
            ["2024-05-01", ""],
            r"g\.csv:2: found '2024-05-01' as time, .*\(one of the first lines has a time",
        ),
        (["1e300"], r"column time, row 0: found 1e\+300, expected a time whose millionths"),
    ],
)
def test_what_is_no_time_is_refused(tmp_path: Path, times: list[str], message: str) -> None:
    path = write(tmp_path / "g.csv", times)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # that times are stored otherwise
        with pytest.raises(InputError, match=message):
            gs.ingest(path, tmp_path / "g")
