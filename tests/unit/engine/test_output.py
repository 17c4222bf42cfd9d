import io
import json
import math
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from graphsys.core.errors import ConfigError, OutputExistsError, UnknownNameError
from graphsys.engine.output import STREAMS, stream_pieces, write_table

TABLE = pa.table({"id": [3, 1], "value": pa.array([None, 0.5])})
FULL = """
import resource, sys, signal
import pyarrow as pa
from pathlib import Path
from graphsys.core.errors import StorageFullError
from graphsys.engine.output import write_table
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
table = pa.table({"value": pa.array(range(1_000_000)).cast("float64")})
try:
    write_table(table, Path(sys.argv[1]), overwrite=True)
except StorageFullError as err:
    print(err)
"""


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv", ".tsv"])
def test_every_format_reads_back(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"x{suffix}"
    write_table(TABLE, out)
    if suffix == ".parquet":
        assert pyarrow.parquet.read_table(out).equals(TABLE)
    elif suffix == ".arrow":
        assert pa.ipc.open_file(out).read_all().equals(TABLE)
    else:
        options = pyarrow.csv.ParseOptions(delimiter="," if suffix == ".csv" else "\t")
        assert pyarrow.csv.read_csv(out, parse_options=options).equals(TABLE)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def test_what_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text("mine")
    with pytest.raises(OutputExistsError, match="exists; replace it with --overwrite"):
        write_table(TABLE, tmp_path / "x.csv")
    (tmp_path / "y.csv").mkdir()
    with pytest.raises(ConfigError, match="is a folder; name a file"):
        write_table(TABLE, tmp_path / "y.csv", overwrite=True)
    assert (tmp_path / "x.csv").read_text() == "mine"


@pytest.mark.parametrize("suffix", [".parquet", ".arrow", ".csv"])
def test_the_old_file_survives_a_full_disk(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"x{suffix}"
    out.write_text("mine")
    command = [sys.executable, "-c", FULL, str(out)]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", check=False)
    assert done.returncode == 0, done.stderr
    assert "too large" in done.stdout.lower()
    assert out.read_text() == "mine"
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


def _write_often(out: str) -> int:
    table = pa.table({"value": pa.array(range(200_000)).cast("float64")})
    for _ in range(10):
        write_table(table, Path(out), overwrite=True)
    return 10


def test_two_writers_at_once_leave_one_whole_file(tmp_path: Path) -> None:
    out = tmp_path / "x.parquet"
    with ProcessPoolExecutor(2, mp_context=get_context("fork")) as pool:
        assert list(pool.map(_write_often, [str(out)] * 2)) == [10, 10]
    assert pyarrow.parquet.read_table(out).num_rows == 200_000
    assert [path.name for path in tmp_path.iterdir()] == [out.name]


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_lists_are_json_in_text(tmp_path: Path, suffix: str) -> None:
    lists = {
        "walk": pa.array([[1, 2], [], [3]], pa.large_list(pa.int64())),
        "names": pa.array(
            [['a "b"', "c,d"], ["e\tf"], []], pa.large_list(pa.large_string())
        ),
        "row": pa.array([[0.5, 1], [2, 3], [4, 5]], pa.list_(pa.float32(), 2)),
    }
    out = tmp_path / f"x{suffix}"
    write_table(pa.table(lists).slice(0, 3), out)
    options = pyarrow.csv.ParseOptions(delimiter="," if suffix == ".csv" else "\t")
    found = pyarrow.csv.read_csv(out, parse_options=options)
    for name, column in lists.items():
        assert [json.loads(it) for it in found[name].to_pylist()] == column.to_pylist()
    write_table(pa.table(lists).slice(1, 1), out, overwrite=True)
    assert pyarrow.csv.read_csv(out, parse_options=options).num_rows == 1


ROWS = pa.table(
    {
        "id": ["\u00e4", 'b "c"'],
        "value": [math.inf, 0.5],
        "walk": pa.array([[1.5, math.nan], []], pa.list_(pa.float64())),
    }
)
PLAIN = [
    {"id": "\u00e4", "value": None, "walk": [1.5, None]},
    {"id": 'b "c"', "value": 0.5, "walk": []},
]


def test_json_is_an_array_or_an_object_a_line(tmp_path: Path) -> None:
    write_table(ROWS, tmp_path / "x.json")
    assert json.loads((tmp_path / "x.json").read_text(encoding="utf-8")) == PLAIN
    write_table(ROWS, tmp_path / "x.jsonl")
    lines = (tmp_path / "x.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == PLAIN
    write_table(ROWS.slice(0, 0), tmp_path / "none.json")
    assert json.loads((tmp_path / "none.json").read_text()) == []
    many = pa.table({"id": range(10_000)})  # several blocks
    write_table(many, tmp_path / "many.json")
    found = json.loads((tmp_path / "many.json").read_text())
    assert [row["id"] for row in found] == list(range(10_000))


@pytest.mark.parametrize("kind", STREAMS)
def test_every_stream_reads_back(kind: str) -> None:
    stream = io.BytesIO()
    stream_pieces(iter([TABLE]), stream, kind)
    stream.seek(0)
    if kind == "arrow":
        assert pa.ipc.open_stream(stream).read_all().equals(TABLE)
    elif kind == "jsonl":
        rows = [json.loads(line) for line in stream.read().splitlines()]
        assert rows == TABLE.to_pylist()
    else:
        options = pyarrow.csv.ParseOptions(delimiter="," if kind == "csv" else "\t")
        assert pyarrow.csv.read_csv(stream, parse_options=options).equals(TABLE)
    with pytest.raises(UnknownNameError, match="format of a stream"):
        stream_pieces(iter([TABLE]), io.BytesIO(), "xlsx")
