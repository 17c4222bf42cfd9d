"""Readers on anything: what is written is read back; rubbish gives one clear error."""

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphsys.core.errors import GraphsysError
from graphsys.datasets import open_source
from graphsys.datasets.text.layout import ID, NUMBER, WORD, LineFormat, TextColumn
from graphsys.datasets.text.lines import BadLineError, parse_lines
from graphsys.storage.source import EdgeChunk

FUZZ = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
IDS = st.one_of(st.integers(0, 20), st.integers(0, 2**63 - 1))
BLANK = st.text(" \t", min_size=1, max_size=3)
MARGIN = st.text(" \t", max_size=2)
JUNK = st.sampled_from(["", "\n", "# c\n", "%\n", " \t\n", "\r\n"])
END = st.sampled_from(["\n", "\r\n", " \n", " # behind\n"])
NAME = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1)
FIELD = st.text(st.characters(exclude_characters="\n\r\x00", exclude_categories=["Cs"]))


def read(path: Path, **options: Any) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for chunk in open_source(path, **options).chunks():
        if not isinstance(chunk, EdgeChunk):
            continue
        columns = [chunk.src, chunk.dst, *chunk.columns.values()]
        rows += zip(*(column.tolist() for column in columns), strict=True)
    return rows


@FUZZ
@given(
    rows=st.lists(st.tuples(IDS, IDS), min_size=1, max_size=30),
    data=st.data(),
    is_packed=st.booleans(),
)
def test_integer_edges_round_trip(
    tmp_path: Path, rows: list[tuple[int, int]], data: st.DataObject, is_packed: bool
) -> None:
    text = "".join(
        data.draw(JUNK)
        + data.draw(MARGIN)
        + str(src)
        + data.draw(BLANK)
        + str(dst)
        + data.draw(END)
        for src, dst in rows
    ).encode()
    path = tmp_path / ("g.txt.gz" if is_packed else "g.txt")
    path.write_bytes(gzip.compress(text) if is_packed else text)
    assert read(path) == rows


@FUZZ
@given(
    st.lists(
        st.tuples(IDS, IDS, st.floats(allow_nan=False, allow_infinity=False)),
        min_size=1,
        max_size=20,
    )
)
def test_weights_round_trip(tmp_path: Path, rows: list[tuple[int, int, float]]) -> None:
    path = tmp_path / "g.txt"
    path.write_text("".join(f"{src} {dst} {weight!r}\n" for src, dst, weight in rows))
    assert read(path) == rows


@FUZZ
@given(st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=20))
def test_quoted_names_round_trip(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    rows = [(src or "a", dst or "b") for src, dst in rows]
    path = tmp_path / "g.csv"
    lines = [
        ",".join('"' + name.replace('"', '""') + '"' for name in row) + "\n" for row in rows
    ]
    path.write_text("src,dst\n" + "".join(lines), encoding="utf-8", newline="")
    assert read(path, ids="string") == rows


@FUZZ
@given(st.binary(max_size=200))
@pytest.mark.parametrize(
    "name",
    [
        "g.txt",
        "g.csv",
        "g.txt.gz",
        "g.parquet",
        "g.arrow",
        "g.mtx",
        "g.graph",
        "g.gr",
        "g.wel",
        "g.sg",
        "g.npz",
        "g.mat",
        "train2id.txt",
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # of a separator that is sniffed
def test_rubbish_gives_one_error(tmp_path: Path, name: str, content: bytes) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    message = ""
    try:
        read(path)
    except GraphsysError as err:
        message = str(err)
    assert "\n" not in message


METIS = st.sampled_from(["0", "1", "2", "3", "11", ".5", "-", "%", " ", "\n", "x"])
PARTS = st.lists(st.one_of(METIS, st.just(" "), st.just("\n")), max_size=60)


@FUZZ
@given(st.sampled_from(["3 2\n", "3 2 1\n", "2 1 11\n", "2 1 111 2\n", ""]), PARTS)
def test_rubbish_of_neighbors_gives_one_error(
    tmp_path: Path, header: str, pieces: list[str]
) -> None:
    path = tmp_path / "g.graph"
    path.write_text(header + "".join(pieces) + " ")
    message = ""
    try:
        read(path)
    except GraphsysError as err:
        message = str(err)
    assert "\n" not in message


@FUZZ
@given(st.lists(st.sampled_from(list("019-.e#%\"', \t\r\n\xe9ax")), max_size=80), st.data())
def test_kernels_accept_what_python_accepts(pieces: list[str], data: st.DataObject) -> None:
    content = ("".join(pieces) + "\n").encode()
    separator = data.draw(st.sampled_from([0, 9, 44]))
    kinds = data.draw(st.lists(st.sampled_from([ID, NUMBER, WORD]), min_size=2, max_size=3))
    layout = LineFormat(
        columns=tuple(TextColumn(f"c{k}", kind) for k, kind in enumerate(kinds)),
        separator=separator,
        has_comments=separator == 0,
        has_quotes=separator == 44,
    )
    block = np.frombuffer(content, dtype=np.uint8)
    expected = []
    for line in content.split(b"\n")[:-1]:
        if fields := layout.split(line):
            expected.append(fields)
    try:
        found, lines = parse_lines(block, layout)
    except BadLineError:
        return
    assert lines == content.count(b"\n")
    for place, column in enumerate(layout.columns):
        values = found[column.name].tolist()
        assert len(values) == len(expected)
        for value, fields in zip(values, expected, strict=True):
            text = fields[place]
            assert value == (text.decode() if column.kind == WORD else float(text))
