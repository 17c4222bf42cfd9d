"""Edge lists in text: what is accepted, and what each refusal says."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from graphsys.core.errors import ConfigError, InputError, UnknownNameError
from graphsys.datasets import open_source
from graphsys.datasets.files import input_file
from graphsys.datasets.text.blocks import text_blocks
from graphsys.storage.source import EdgeChunk

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def put(text: str | bytes, name: str = "g.txt") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return put


def edges(path: Path, **options: object) -> list[tuple[object, ...]]:
    rows: list[tuple[object, ...]] = []
    for chunk in open_source(path, **options).chunks():  # type: ignore[arg-type] # any option
        assert isinstance(chunk, EdgeChunk)
        columns = [chunk.src, chunk.dst, *chunk.columns.values()]
        rows += zip(*(column.tolist() for column in columns), strict=True)
    return rows


def test_blanks_tabs_crlf_comments_and_blank_lines_are_accepted(write: Write) -> None:
    text = "# SNAP\r\n% also\n\n1 2\r\n 3\t\t4 \n  \n5   6 # behind\n# last\n7 8"
    assert edges(write(text)) == [(1, 2), (3, 4), (5, 6), (7, 8)]


def test_byte_order_mark_is_left_out(write: Write) -> None:
    assert edges(write(b"\xef\xbb\xbf1 2\n")) == [(1, 2)]


def test_third_column_is_the_weight(write: Write) -> None:
    rows = edges(
        write("1 2 0.5\n3 4 -1e-3\n5 6 +2 % x\n7 8 0.1234567890123456789\n9 1 1e300\n")
    )
    assert [row[2] for row in rows] == [0.5, -1e-3, 2.0, 0.1234567890123456789, 1e300]


@pytest.mark.parametrize("word", ["inf", "-Infinity", "1e400"])
def test_infinite_weights_are_refused_with_their_line(write: Write, word: str) -> None:
    path = write(f"# w\n1 2 3\n\n2 3 {word}\n3 4 {word}\n")
    message = r":4: found -?inf as weight, expected a finite number \(2 of 3 weights"
    with pytest.raises(InputError, match=message):
        edges(path)


def test_weights_are_rounded_as_python_rounds(
    write: Write, rng: np.random.Generator
) -> None:
    words = [repr(float(x)) for x in rng.random(500) * 10.0 ** rng.integers(-30, 30, 500)]
    words += [
        "1e22",
        "1e23",
        "9007199254740993",
        "1.",
        ".5",
        "123456789012345678901",
    ]
    rows = edges(write("".join(f"1 2 {word}\n" for word in words)))
    assert [row[2] for row in rows] == [float(word) for word in words]


def test_largest_id_and_zeros_in_front(write: Write) -> None:
    path = write(f"{2**63 - 1} 0\n000000000000000000000000000012 7\n")
    rows = edges(path, ids="int")
    assert rows == [(2**63 - 1, 0), (12, 7)]


def test_names_make_string_ids(write: Write) -> None:
    path = write("alice bob\n7 caf\u00e9\n")
    assert edges(path) == [("alice", "bob"), ("7", "caf\u00e9")]
    chunk = next(iter(open_source(path).chunks()))
    assert isinstance(chunk, EdgeChunk)
    assert pa.types.is_dictionary(chunk.src.type)


def test_ids_can_be_forced_to_strings(write: Write) -> None:
    assert edges(write("007 1\n7 01\n"), ids="string") == [("007", "1"), ("7", "01")]


def test_separator_keeps_blanks_inside_names(write: Write) -> None:
    path = write("New York\tLos Angeles\nParis\tRome\n", "g.tsv")
    assert edges(path, separator="tab") == [("New York", "Los Angeles"), ("Paris", "Rome")]
    assert edges(write("1 , 2\n3,4\n"), separator=",") == [(1, 2), (3, 4)]


def test_columns_are_named_by_position(write: Write) -> None:
    path = write("u 1 2 9 2.5 x\nv 3 4 8 3.5 y\n")
    source = open_source(path, columns="relation,src,dst,time,weight,_")
    (chunk,) = source.chunks()
    assert isinstance(chunk, EdgeChunk)
    assert chunk.columns["relation"].to_pylist() == ["u", "v"]
    assert chunk.columns["time"].dtype == np.int64
    assert chunk.columns["weight"].tolist() == [2.5, 3.5]
    assert set(chunk.columns) == {"relation", "time", "weight"}


def test_undirected_is_passed_on(write: Write) -> None:
    assert open_source(write("1 2\n")).is_directed
    assert not open_source(write("1 2\n"), undirected=True).is_directed


@pytest.mark.parametrize("name", ["g.txt.gz", "g.txt.bz2", "g.txt.zst", "g.txt"])
def test_compressed_files_are_read(write: Write, name: str) -> None:
    text = "".join(f"{k} {k + 1}\n" for k in range(5000)).encode()
    packed = {
        ".gz": gzip.compress(text[:4000]) + gzip.compress(text[4000:]),
        ".bz2": bz2.compress(text),
        ".zst": pa.Codec("zstd").compress(text, asbytes=True),
    }.get(Path(name).suffix, text)
    source = open_source(write(packed, name))
    chunks = [chunk for chunk in source.chunks() if isinstance(chunk, EdgeChunk)]
    assert sum(chunk.src.tolist()[-1] for chunk in chunks[-1:]) == 4999
    assert sum(len(chunk.src) for chunk in chunks) == 5000
    assert sum(chunk.bytes_read for chunk in chunks) == source.total_bytes == len(packed)


@pytest.mark.parametrize("block_bytes", [1, 2, 3, 5, 8, 64, 1000])
@pytest.mark.parametrize("name", ["g.txt", "g.txt.gz"])
@pytest.mark.parametrize("tail", ["", "\n"])
def test_blocks_split_no_line(write: Write, block_bytes: int, name: str, tail: str) -> None:
    text = ("1 2\n\n33 444\n# comment\n5 6\n7 8888" + tail).encode()
    path = write(gzip.compress(text) if name.endswith("gz") else text, name)
    pieces = [
        load().data.tobytes()
        for load in text_blocks(input_file(path), block_bytes=block_bytes)
    ]
    assert all(not piece or piece.endswith(b"\n") for piece in pieces)
    assert b"".join(pieces) == text.rstrip(b"\n") + b"\n"


def test_several_files_follow_each_other(write: Write) -> None:
    paths = [write("1 2\n", "a.txt"), write("3 4\n", "b.el")]
    chunks = [c for c in open_source(paths).chunks() if isinstance(c, EdgeChunk)]
    assert [chunk.src.tolist() for chunk in chunks] == [[1], [3]]


def test_files_of_different_ids_are_refused(write: Write) -> None:
    paths = [write("1 2\n", "a.txt"), write("x y\n", "b.txt")]
    with pytest.raises(
        InputError, match=r"b\.txt:1: ids are names, but integers in .*a\.txt"
    ):
        open_source(paths)
    assert len(list(open_source(paths, ids="string").chunks())) == 2


BAD_LINES = [
    (
        "1 2\n3 4 5\n",
        r"g\.txt:2: found 3 columns, expected 2 as on line 1: '3 4 5'.*--skip 1",
    ),
    ("3 3 7\n# x\n1 2\n2 3\n", r"g\.txt:3: found 2 columns.*--skip 1 if line 1 is"),
    ("# c\n\n3 7\na b\nc d\n", r"g\.txt:4: found 'a' .* if line 3 is .*--skip 3"),
    ("# c d\n1 2\n2 3 4\n3 4\n", r"g\.txt:3: found 3 columns.*; correct or remove"),
    ("1 2\n2 x\n3 4\n4 5\n", r"g\.txt:2: found 'x' as dst.*; correct or remove"),
    ("1 2\n3 4\n# c\n\n5\n", r"g\.txt:5: found 1 column, expected 2 .*'5'; correct"),
    ("1 2 3\n3 4\n", r"g\.txt:2: found 2 columns, expected 3"),
    ("1 2\n3 4\na b\n", r"g\.txt:3: found 'a' as src, expected an integer id from 0"),
    ("1 2\n3 4\n5 b6\n", r"g\.txt:3: found 'b6' as dst"),
    ("1 2\n-3 4\n", r"g\.txt:2: found '-3' as src, expected an integer id from 0"),
    ("-1 2\n", r"g\.txt:1: found '-1' as an id, expected an integer from 0 to 2\*\*63 - 1"),
    ("1 9223372036854775808\n", r"g\.txt:1: found '9223372036854775808' as an id"),
    ("1 2\n1 9223372036854775808\n", r"g\.txt:2: found '9223372036854775808' as dst"),
    ("1 2\n1 99999999999999999999999\n", r"g\.txt:2: found '9{23}' as dst"),
    ("1 2 0.5\n1 2 nan\n", r"g\.txt:2: found 'nan' as weight, expected a number"),
    ("1 2 0.5\n1 2 NaN\n", r"g\.txt:2: found 'NaN' as weight, expected a number"),
    ("1 2 0.5\n1 2 3\n1 2 x1\n", r"g\.txt:3: found 'x1' as weight, expected a number"),
    ("1 2 0.5\n1 2 1.2.3\n", r"g\.txt:2: found '1\.2\.3' as weight"),
    ("1 2 nan\n", r"g\.txt:1: found 'nan' as weight"),
    ("# only\n\n", r"g\.txt: no edge in the file, expected at least one"),
    ("", r"g\.txt: the file is empty, expected data"),
    ("10670\n1 2\n", r"g\.txt:1: found 1 column, expected at least 2.*--skip 1"),
    (
        "4 5 0 0 1\n1 2\n",
        r"g\.txt:1: found 5 columns, .*--columns src,dst,c3,c4,c5.*--skip 1",
    ),
    (
        "src dst time\n1 2 3\n",
        r"g\.txt:1: found the header 'src dst time'; pass --format csv",
    ),
    ("a likes b\n", r"g\.txt:1: found 'b' as weight, .*--format triples"),
    (
        "# x\nsrc dst\n1 2\n",
        r"g\.txt:2: found the header 'src dst' above integer .*--skip 2",
    ),
    (b"a b\nc \xe9\n", r"g\.txt:2: found byte 0xe9, which is not UTF-8; .*iconv"),
    (b"\xe9 b\n", r"g\.txt:1: found byte 0xe9, which is not UTF-8"),
    ("1 2\n".encode("utf-16"), r"g\.txt:1: UTF-16 text, expected UTF-8"),
    ("1 2\n".encode("utf-32"), r"g\.txt:1: UTF-32 text, .*iconv -f UTF-32 -t UTF-8 FILE"),
    (b"\x00\x01\x02 \x00\n", r"g\.txt:1: found binary data"),
    (b"1 2\n3 4\r5 6\n", r"g\.txt:2: found"),
]


@pytest.mark.parametrize(("text", "message"), BAD_LINES)
def test_bad_lines_are_named(write: Write, text: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message) as found:
        edges(write(text))
    assert "\n" not in str(found.value)


def test_line_number_is_right_far_into_a_file(write: Write) -> None:
    lines = [f"{k} {k}" for k in range(400_000)]
    lines[300_000] = "7 x"
    text = "% first\n" + "\n".join(lines)
    with pytest.raises(InputError, match=r"g\.txt:300002: found 'x' as dst"):
        edges(write(text))
    with pytest.raises(InputError, match=r"g\.txt\.gz:300002: found 'x' as dst"):
        edges(write(gzip.compress(text.encode()), "g.txt.gz"))


def test_skipped_lines_count_for_line_numbers(write: Write) -> None:
    path = write("3\nheader line\n1 2\n3 4\nx 5\n")
    with pytest.raises(InputError, match=r"g\.txt:5: found 'x' as src"):
        edges(path, skip=2)
    with pytest.raises(InputError, match="behind the 9 skipped lines"):
        edges(path, skip=9)


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".zst"])
def test_truncated_compression_is_named(write: Write, suffix: str) -> None:
    text = "".join(f"{k * k} {k}\n" for k in range(200_000)).encode()
    packed = {
        ".gz": gzip.compress(text),
        ".bz2": bz2.compress(text),
        ".zst": pa.Codec("zstd").compress(text, asbytes=True),
    }[suffix]
    for kept in (len(packed) - 9, len(packed) // 2):
        path = write(packed[:kept], f"g.txt{suffix}")
        with pytest.raises(
            InputError, match=r"g\.txt\.\w+: cannot be read to its end.*fetch"
        ):
            edges(path)


def test_damaged_or_misnamed_compression_is_named(write: Write) -> None:
    with pytest.raises(InputError, match="is not gzip-compressed as its name says"):
        edges(write("1 2\n", "g.txt.gz"))
    with pytest.raises(InputError, match="cannot be read to its end"):
        edges(write(gzip.compress(b"1 2\n" * 99) + b"rubbish", "g.txt.gz"))


def test_missing_file_and_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nope\.txt: no such file; check the path"):
        open_source(tmp_path / "nope.txt")
    with pytest.raises(InputError, match="is a folder, expected a file"):
        open_source(tmp_path)
    with pytest.raises(InputError, match="no input file was named"):
        open_source([])


def test_line_without_end_is_refused(write: Write) -> None:
    with pytest.raises(InputError, match="found 1 column"):
        edges(write(b"1" * (3 << 20)))
    with pytest.raises(InputError, match="longer than 1048576 bytes"):
        edges(write(b"1 2\n" + b"1" * (18 << 20)))
    with pytest.raises(InputError, match="longer than 1048576 bytes"):
        edges(write(gzip.compress(b"1 2\n" + b"1" * (18 << 20), 1), "g.txt.gz"))


def test_formats_are_guessed_or_asked_for(write: Write) -> None:
    path = write("1 2\n", "edges.dat")
    with pytest.raises(InputError, match=r"edges\.dat: the name does not tell.*edgelist"):
        open_source(path)
    assert edges(path, format="edgelist") == [(1, 2)]
    with pytest.raises(UnknownNameError, match=r"unknown format 'edglist'.*did you mean"):
        open_source(path, format="edglist")
    both = [write("1 2\n", "a.txt"), write("src,dst\n1,2\n", "b.csv")]
    with pytest.raises(InputError, match=r"several formats \(csv, edgelist\)"):
        open_source(both)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ids": "float"}, "ids: got 'float', expected auto, int or string"),
        ({"skip": -1}, "skip: got -1, expected a number of lines >= 0"),
        ({"separator": "::"}, "separator: got '::', expected one character"),
        ({"columns": "src,src"}, "columns: got 'src,src', expected different names"),
        ({"columns": "a,b"}, "expected a column called src and dst"),
        ({"columns": "src=a"}, "an edge list has no header"),
    ],
)
def test_bad_options_are_named(
    write: Write, options: dict[str, object], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        edges(write("1 2\n"), **options)


def test_forced_integers_refuse_names(write: Write) -> None:
    with pytest.raises(InputError, match=r"g\.txt:1: found 'a' as an id"):
        edges(write("a b\n"), ids="int")


def test_wrong_number_of_columns_named(write: Write) -> None:
    with pytest.raises(
        InputError, match=r"g\.txt:1: found 3 columns, expected 4 \(src dst"
    ):
        edges(write("1 2 3\n"), columns="src,dst,time,weight")
