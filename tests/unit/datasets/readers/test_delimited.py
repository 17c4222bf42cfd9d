"""CSV: headers, names, quotes, and refusals with their lines."""

from pathlib import Path

import numpy as np
import pytest

from graphsys.core.errors import InputError, UnknownNameError
from graphsys.datasets import open_source
from graphsys.storage.source import EdgeChunk


def read(tmp_path: Path, text: str | bytes, **options: object) -> EdgeChunk:
    path = tmp_path / "g.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    (chunk,) = open_source(path, **options).chunks()  # type: ignore[arg-type] # any option
    assert isinstance(chunk, EdgeChunk)
    return chunk


def test_header_names_the_columns(tmp_path: Path) -> None:
    chunk = read(tmp_path, "Weight,Target,note,Source,time\n0.5,2,a,1,10\n1.5,4,,3,20\n")
    assert chunk.src.tolist() == [1, 3]
    assert chunk.dst.tolist() == [2, 4]
    assert chunk.columns["weight"].tolist() == [0.5, 1.5]
    assert chunk.columns["time"].tolist() == [10, 20]
    assert chunk.columns["note"].to_pylist() == ["a", ""]


def test_quotes_separators_and_comment_marks_inside_fields(tmp_path: Path) -> None:
    text = 'src,dst,relation\n"Smith, J.","say ""hi""",#1\n%x ,  y, "a b"\n'
    chunk = read(tmp_path, text)
    assert chunk.src.to_pylist() == ["Smith, J.", "%x"]
    assert chunk.dst.to_pylist() == ['say "hi"', "y"]
    assert chunk.columns["relation"].to_pylist() == ["#1", "a b"]


def test_roles_are_named_by_the_user(tmp_path: Path) -> None:
    text = "when,buyer,shop\n5,1,2\n"
    chunk = read(tmp_path, text, columns="src=buyer,dst=shop,time=when")
    assert (chunk.src[0], chunk.dst[0], chunk.columns["time"][0]) == (1, 2, 5)
    chunk = read(tmp_path, text, columns="buyer,shop")
    assert (chunk.src[0], chunk.dst[0], dict(chunk.columns)) == (1, 2, {})


def test_without_header_columns_go_by_position(tmp_path: Path) -> None:
    assert read(tmp_path, "1,2\n3,4\n").dst.tolist() == [2, 4]
    chunk = read(tmp_path, "7,1,2\n", columns="time,src,dst")
    assert chunk.columns["time"].tolist() == [7]


@pytest.mark.parametrize("mark", [";", "|", "\t"])
def test_other_separators_are_found(tmp_path: Path, mark: str) -> None:
    chunk = read(tmp_path, f"src{mark}dst\n1{mark}2\n")
    assert chunk.src.tolist() == [1]


def test_missing_numbers_of_further_columns_are_nan(tmp_path: Path) -> None:
    chunk = read(tmp_path, "src,dst,score\n1,2,0.5\n3,4,\n5,6,NA\n")
    assert np.isnan(chunk.columns["score"]).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("src,dst\n1,2\n3\n", r"g\.csv:3: found 1 column, expected 2 as on line 2"),
        ("src,dst\n1,2\n3,4,5\n", r"g\.csv:3: found 3 columns, expected 2"),
        ("src,dst\n1,2\n3\n", r"'3'; correct or remove the line$"),  # not --skip 2
        ("src,dst\n1,2\n,4\n", r"g\.csv:3: column src is empty"),
        ("src,dst\n1,2\n3,x\n", r"g\.csv:3: found 'x' as dst, expected an integer id"),
        ("src,dst\n1,-2\n", r"g\.csv:2: found '-2' as an id, expected an integer from 0"),
        ("src,dst,weight\n1,2,\n", r"g\.csv:2: column weight is empty, expected a number"),
        ("src,dst,weight\n1,2,NaN\n", r"g\.csv:2: found 'NaN' as weight"),
        ("src,dst,time\n1,2,x\n", r"g\.csv:2: found 'x' as time, expected an integer"),
        ("a,b\n1,2\n", r"g\.csv:1: no column for src and dst among a, b; .*--columns"),
        ("src,dst,src\n1,2,3\n", r"g\.csv:1: column 'src' occurs twice"),
        ("src,dst\n", r"g\.csv:1: no edge behind the header"),
        ('src,dst\n1,2\n"3,4\n', r"g\.csv:3: a quoted field does not end on its line"),
        (b"src,dst\na,b\nc,\xff\n", r"g\.csv:3: found byte 0xff, which is not UTF-8"),
    ],
)
def test_bad_lines_are_named(tmp_path: Path, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_unknown_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(
        UnknownNameError, match=r"unknown column 'buyr'.*did you mean 'buyer'"
    ):
        read(tmp_path, "buyer,shop\n1,2\n", columns="src=buyr,dst=shop")


@pytest.mark.parametrize("ending", ["", "_id", "_node", "_NODE_ID", "Id"])
@pytest.mark.parametrize(
    "pair",
    [
        ("head", "tail"),
        ("h", "t"),
        ("Subject", "Object"),
        ("SOURCE", "TARGET"),
        ("from", "to"),
    ],
)
def test_names_of_both_ends_that_people_use(
    tmp_path: Path, pair: tuple[str, str], ending: str
) -> None:
    header = f"score,{pair[1]}{ending},{pair[0]}{ending}"
    chunk = read(tmp_path, f"{header}\n0.5,2,1\n1.25,4,3\n")
    assert (chunk.src.tolist(), chunk.dst.tolist()) == ([1, 3], [2, 4])
    assert chunk.columns["score"].tolist() == [0.5, 1.25]


def test_further_columns_are_kept_as_they_are_named_fractions_too(tmp_path: Path) -> None:
    header = "FROM_NODE,TO_NODE,TRUST_INDEX,TIME_SINCE_EPOCH"
    text = f"{header}\n6,2,4,1289241911.72836\n6,5,-2,1289241941.53378\n"
    chunk = read(tmp_path, text)
    assert (chunk.src.tolist(), chunk.dst.tolist()) == ([6, 6], [2, 5])
    assert chunk.columns["TRUST_INDEX"].tolist() == [4, -2]
    assert chunk.columns["TIME_SINCE_EPOCH"].tolist() == [
        1289241911.72836,
        1289241941.53378,
    ]
