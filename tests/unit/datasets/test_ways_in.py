"""Ways in: archives, pipes, old line ends, dates as people write them, units of times."""

import io
import lzma
import os
import sys
import threading
import zipfile
from pathlib import Path
from typing import Any

import pytest

import graphsys as gs
from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets import open_source
from graphsys.storage.source import EdgeChunk

TEXT = "1 2\n2 3\n3 4\n"
EDGES = [(1, 2), (2, 3), (3, 4)]


def edges(path: Any, **options: Any) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for chunk in open_source(path, **options).chunks():
        assert isinstance(chunk, EdgeChunk)
        rows += zip(chunk.src.tolist(), chunk.dst.tolist(), strict=True)
    return rows


def zipped(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return path


def test_xz_is_read_and_a_cut_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "g.txt.xz"
    text = "".join(f"{k} {k + 1}\n" for k in range(50_000))
    path.write_bytes(lzma.compress(text.encode()))
    source = open_source(path)
    chunks = [it for it in source.chunks() if isinstance(it, EdgeChunk)]
    assert sum(len(it.src) for it in chunks) == 50_000
    assert sum(it.bytes_read for it in chunks) == source.total_bytes
    path.write_bytes(lzma.compress(text.encode())[:-200])
    with pytest.raises(InputError, match=r"g\.txt\.xz: cannot be read to its end"):
        edges(path)
    path.write_text(TEXT)
    with pytest.raises(InputError, match="not xz-compressed as its name says"):
        edges(path)


@pytest.mark.parametrize("name", ["g.txt.zip", "archive.zip"])
def test_the_one_file_of_a_zip_is_read_in_place(tmp_path: Path, name: str) -> None:
    path = zipped(tmp_path / name, **{"../../up/edges.txt": TEXT, "__MACOSX/._x": "junk"})
    assert edges(path) == EDGES
    assert list(tmp_path.iterdir()) == [path]
    assert edges(zipped(tmp_path / "c.zip", **{"a.csv": "source,target\n5,6\n"})) == [
        (5, 6)
    ]


def test_a_zip_of_several_files_is_refused_by_names_that_cannot_write_to_a_terminal(
    tmp_path: Path,
) -> None:
    path = zipped(tmp_path / "g.zip", **{"\x1b[2Ja.csv": TEXT, "b.csv": TEXT})
    with pytest.raises(InputError, match=r"holds 2 files.*unzip FILE -d NEW") as refused:
        edges(path)
    assert "\x1b" not in str(refused.value)
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(InputError, match="cannot be read as a zip archive"):
        edges(path)
    with pytest.raises(InputError, match="the name does not tell the format of what is in"):
        edges(zipped(tmp_path / "x.zip", edges=TEXT))


@pytest.mark.parametrize("name", ["g.txt", "g.csv", "g.adjlist", "g.txt.xz"])
def test_lines_that_end_with_carriage_returns_alone(tmp_path: Path, name: str) -> None:
    text = "src,dst\n" + TEXT.replace(" ", ",") if name == "g.csv" else TEXT
    raw = text.replace("\n", "\r").encode()
    path = tmp_path / name
    path.write_bytes(lzma.compress(raw) if name.endswith("xz") else raw)
    assert edges(path) == EDGES
    bad = raw.replace(b"3", b"x", 1)
    path.write_bytes(lzma.compress(bad) if name.endswith("xz") else bad)
    number = 3 if name == "g.csv" else 2
    with pytest.raises(InputError, match=rf"{name}:{number}: found 'x'"):
        edges(path)


def test_a_named_pipe_is_read_to_its_end(tmp_path: Path) -> None:
    path = tmp_path / "pipe.txt"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(TEXT,))
    writer.start()
    assert edges(path, format="edgelist") == EDGES
    writer.join()


def test_standard_input_is_read_where_the_format_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))

    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    give(lzma.compress(TEXT.encode()))
    assert edges("-", format="edgelist") == EDGES
    with pytest.raises(InputError, match=r"a pipe has no name .* say it with --format"):
        edges("-")
    give(b"")
    with pytest.raises(InputError, match=r"<stdin>: the pipe is empty, expected edges"):
        edges("-", format="edgelist")
    give(b"1 2\nx 3\n")
    with pytest.raises(InputError, match=r"^<stdin>:2: found 'x' as src"):
        edges("-", format="edgelist")


DATES = [
    ("Mar 25, 2015", "2015-03-25T00:00:00"),
    ("September 5, 2015", "2015-09-05T00:00:00"),
    ("Mar 25, 2015 10:11:12", "2015-03-25T10:11:12"),
    ("25 Mar 2015", "2015-03-25T00:00:00"),
    ("25-Mar-2015", "2015-03-25T00:00:00"),
    ("2015/3/25", "2015-03-25T00:00:00"),
    ("2015/03/25 10:11", "2015-03-25T10:11:00"),
    ("25.3.2015", "2015-03-25T00:00:00"),
    ("Wed Mar 25 10:11:12 +0000 2015", "2015-03-25T10:11:12"),
]


@pytest.mark.parametrize(("written", "expected"), DATES)
def test_dates_as_people_write_them(tmp_path: Path, written: str, expected: str) -> None:
    path = tmp_path / "g.csv"
    path.write_text(f'src,dst,time\na,b,"{written}"\nb,c,"{written}"\n')
    graph = gs.ingest(path, tmp_path / "g").graph
    assert graph.to_pandas()["time"].iloc[0].isoformat() == expected
    assert graph.at(expected).num_edges == 2
    assert graph.at("2015-01-01").num_edges == 0


@pytest.mark.parametrize("written", ["3/25/2015", "03-04-15", "Foo 25, 2015", "25. March"])
def test_dates_that_can_be_read_in_two_ways_are_refused_and_iso_is_named(
    tmp_path: Path, written: str
) -> None:
    path = tmp_path / "g.csv"
    path.write_text(f'src,dst,time\na,b,"{written}"\n')
    with pytest.raises(InputError, match=r"g\.csv:2: found .* as time.*ISO, such as 2024-"):
        gs.ingest(path, tmp_path / "g")


def test_dates_written_in_two_ways_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text('src,dst,time\na,b,"Mar 25, 2015"\nb,c,2015/03/26\n')
    with pytest.raises(InputError, match=r"column time: found 'Mar 25.*ISO|several ways"):
        gs.ingest(path, tmp_path / "g")


@pytest.mark.parametrize(
    ("unit", "times"),
    [
        ("s", ["1325376000", "1325462400"]),
        ("ms", ["1325376000000", "1325462400000"]),
        ("ns", ["1325376000000000000", "1325462400000000000"]),
        ("d", ["15340", "15341"]),
        ("s", ["1325376000.25", "1325462400.5"]),
    ],
)
@pytest.mark.filterwarnings("ignore:.*millionths")
def test_integers_have_the_unit_that_is_given(
    tmp_path: Path, unit: str, times: list[str]
) -> None:
    path = tmp_path / "g.txt"
    path.write_text(f"1 2 {times[0]}\n2 3 {times[1]}\n")
    out = tmp_path / "g"
    graph = gs.ingest(path, out, columns="src,dst,time", time_unit=unit).graph
    assert graph.at("2012-01-01T12:00:00").num_edges == 1
    assert graph.at("2012-01-03").num_edges == 2
    assert str(graph.to_pandas()["time"].iloc[0]).startswith("2012-01-01")


def test_a_unit_is_refused_that_does_not_exist_or_is_of_nothing(tmp_path: Path) -> None:
    path = tmp_path / "g.txt"
    path.write_text("1 2\n")
    with pytest.raises(ConfigError, match="time_unit: got 'weeks', expected one of"):
        gs.ingest(path, tmp_path / "g", time_unit="weeks")
    with pytest.raises(InputError, match="edges have no column time; say which it is with"):
        gs.ingest(path, tmp_path / "g", time_unit="s")
