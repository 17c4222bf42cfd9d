"""Every MatrixMarket file is read as SciPy reads it, or refused where SciPy refuses it."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.io
import scipy.sparse

from graphsys.core.errors import InputError
from graphsys.datasets import open_source
from graphsys.storage.source import NodeChunk


def expand(path: Path) -> tuple[scipy.sparse.coo_array, bool, bool]:
    """Rebuild the matrix from the source: entries, is pattern, is directed."""
    source = open_source(path)
    sizes: dict[str, int] = {}
    src, dst, values, types = [], [], [], ("node", "node")
    is_pattern = False
    for chunk in source.chunks():
        if isinstance(chunk, NodeChunk):
            first = sizes.get(chunk.node_type, 0) + 1
            assert chunk.ids.tolist() == list(range(first, first + len(chunk.ids)))
            sizes[chunk.node_type] = sizes.get(chunk.node_type, 0) + len(chunk.ids)
        else:
            src.append(chunk.src)
            dst.append(chunk.dst)
            is_pattern = "weight" not in chunk.columns
            values.append(chunk.columns.get("weight", np.ones(len(chunk.src))))
    if "row" in sizes:
        types = ("row", "col")
    shape = tuple(sizes.get(name, 0) for name in types)
    if not src:
        return scipy.sparse.coo_array(shape), is_pattern, source.is_directed
    row, col, data = (
        np.concatenate(src) - 1,
        np.concatenate(dst) - 1,
        np.concatenate(values),
    )
    if not source.is_directed:
        off = row != col
        row, col = np.concatenate([row, col[off]]), np.concatenate([col, row[off]])
        data = np.concatenate([data, data[off]])
    return (
        scipy.sparse.coo_array((data, (row, col)), shape=shape),
        is_pattern,
        source.is_directed,
    )


def entries(matrix: Any) -> list[tuple[int, int, str]]:
    """List all stored entries (of a dense matrix: the non-zeros), explicit zeros too."""
    if isinstance(matrix, np.ndarray):
        row, col = np.nonzero(matrix)
        data = matrix[row, col]
    else:
        (row, col), data = matrix.coords, matrix.data
    return sorted(zip(row.tolist(), col.tolist(), map(repr, data.tolist()), strict=True))


@pytest.mark.shared
def test_all_files_agree_with_scipy(shared_data: Path) -> None:
    refused, equal, complex_valued, contradict = [], [], [], []
    for path in sorted((shared_data / "lagraph-data").glob("*.mtx")):
        try:
            expected = scipy.io.mmread(path, spmatrix=False)
        except (ValueError, OverflowError):
            with pytest.raises(InputError, match=path.name) as found:
                open_source(path)
            assert "\n" not in str(found.value)
            refused.append(path.name)
            continue
        field, symmetry = scipy.io.mminfo(path)[4:]
        if field == "complex":
            with pytest.raises(
                InputError, match=f"{path.name}:1: complex values, expected real"
            ):
                open_source(path)
            complex_valued.append(path.name)
            continue
        if symmetry == "hermitian":  # LAGraph_MMRead refuses these as well
            with pytest.raises(InputError, match=f"{path.name}:1: a header of {field}"):
                open_source(path)
            contradict.append(path.name)
            continue
        matrix, is_pattern, is_directed = expand(path)
        assert matrix.shape == expected.shape, path
        assert entries(matrix) == entries(expected), path
        assert is_pattern == (field == "pattern"), path
        assert is_directed == (symmetry != "symmetric"), path
        equal.append(path.name)
    assert (len(refused), len(complex_valued), len(equal)) == (18, 1, 70)
    assert contradict == ["mangled5.mtx", "mangled6.mtx"]


def write(tmp_path: Path, text: str, name: str = "m.mtx") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


HEAD = "%%MatrixMarket matrix coordinate real"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            f"{HEAD} general\n2 2 1\n1 x 1\n",
            r"m\.mtx:3: invalid integer value; expected a Matrix",
        ),
        (f"{HEAD} general\n2 2 1\n1 3 1\n", r"m\.mtx:3: column index out of bounds"),
        (f"{HEAD} general\n2 2 2\n1 1 1\n", r"m\.mtx: truncated file"),
        ("1 2\n", r"m\.mtx:1: not a Matrix Market file"),
        (
            "%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n",
            "complex values",
        ),
        ("", r"m\.mtx: the file is empty"),
    ],
)
def test_refusals_say_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        open_source(write(tmp_path, text))


def test_skew_is_directed_both_ways_and_dense_keeps_non_zeros(tmp_path: Path) -> None:
    matrix, _, is_directed = expand(
        write(tmp_path, f"{HEAD} skew-symmetric\n2 2 1\n2 1 5\n")
    )
    assert is_directed
    assert matrix.toarray().tolist() == [[0, -5], [5, 0]]
    text = "%%MatrixMarket matrix array integer general\n2 2\n1\n0\n3\n0\n"
    matrix, _, _ = expand(write(tmp_path, text))
    assert entries(matrix) == [(0, 0, "1"), (0, 1, "3")]


VALUES = {
    "pattern": "",
    "real": "2.5",
    "double": "2.5",
    "integer": "-3",
    "unsigned-integer": "3",
    "complex": "1 2",
}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian", "skew-hermitian")
OURS = {
    **dict.fromkeys(("real", "double", "integer"), SYMMETRIES[:3]),
    **dict.fromkeys(("pattern", "unsigned-integer"), SYMMETRIES[:2]),
}


def matrix_of(layout: str, field: str, symmetry: str, at: str) -> str:
    value = VALUES[field]
    if layout == "coordinate":
        lines = ["3 3 2", f"2 1 {value}", f"{at} {value}"]
    else:
        sizes = {"general": 9, "skew-symmetric": 3}
        lines = ["3 3", *[value] * sizes.get(symmetry, 6)]
    return "\n".join([f"%%MatrixMarket matrix {layout} {field} {symmetry}", *lines, ""])


@pytest.mark.parametrize("symmetry", SYMMETRIES)
@pytest.mark.parametrize("field", VALUES)
@pytest.mark.parametrize("layout", ["coordinate", "array"])
def test_headers_are_those_of_the_format(
    tmp_path: Path, layout: str, field: str, symmetry: str
) -> None:
    path = write(tmp_path, matrix_of(layout, field, symmetry, "3 1"))
    is_ours = symmetry in OURS.get(field, ()) and (layout, field) != ("array", "pattern")
    if is_ours:
        matrix, is_pattern, is_directed = expand(path)
        assert entries(matrix) == entries(scipy.io.mmread(path, spmatrix=False))
        assert is_pattern == (field == "pattern")
        assert is_directed == (symmetry != "symmetric")
    else:
        with pytest.raises(InputError, match=r"m\.mtx.*, expected|; expected"):
            open_source(path)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "pattern skew-symmetric",
            "pattern with general or symmetric; write general, with a line for both ",
        ),
        ("pattern hermitian", "pattern with general or symmetric; write symmetric, which"),
        ("real hermitian", "real with general or symmetric or skew-symmetric; write sym"),
        ("integer hermitian", "integer with general or symmetric or skew-symmetric; write"),
        (
            "unsigned-integer skew-symmetric",
            "unsigned-integer with general or symmetric; write integer in place of unsig",
        ),
    ],
)
def test_a_header_that_contradicts_itself_is_refused(
    tmp_path: Path, kind: str, message: str
) -> None:
    field, symmetry = kind.split()
    path = write(tmp_path, matrix_of("coordinate", field, symmetry, "3 1"))
    with pytest.raises(InputError, match=rf"m\.mtx:1: a header of {kind}, exp.*{message}"):
        open_source(path)


def test_a_skew_matrix_has_nothing_but_zeros_on_its_diagonal(tmp_path: Path) -> None:
    path = write(tmp_path, matrix_of("coordinate", "real", "skew-symmetric", "2 2"))
    with pytest.raises(InputError, match=r"m\.mtx: 2\.5 at row 2, column 2, expected a sk"):
        open_source(path)
    path.write_text(path.read_text().replace("2 2 2.5", "2 2 0"))
    matrix, _, _ = expand(path)
    assert entries(matrix) == entries(scipy.io.mmread(path, spmatrix=False))


def test_explicit_zeros_are_kept(tmp_path: Path) -> None:
    matrix, _, _ = expand(write(tmp_path, f"{HEAD} general\n2 2 1\n1 2 0\n"))
    assert entries(matrix) == [(0, 1, "0.0")]


@pytest.mark.parametrize(
    ("suffix", "codec"), [("gz", "gzip"), ("bz2", "bz2"), ("zst", "zstd")]
)
def test_compressed_matrices_are_read(tmp_path: Path, suffix: str, codec: str) -> None:
    path = tmp_path / f"m.mtx.{suffix}"
    with pa.output_stream(path, compression=codec) as out:
        out.write(f"{HEAD} general\n2 2 1\n1 2 7\n".encode())
    matrix, _, _ = expand(path)
    assert entries(matrix) == [(0, 1, "7.0")]


def test_two_matrices_are_refused(tmp_path: Path) -> None:
    paths = [write(tmp_path, "x", name) for name in ("a.mtx", "b.mtx")]
    with pytest.raises(InputError, match="a second matrix, expected one"):
        open_source(paths)


@pytest.mark.parametrize(
    "text",
    [
        "real general\n3 3 2\n1 2 0.5\n3 1 -12\n",
        "real general\n3 3 2\n\n1 2 0.5\n3 1 1e-3\n",
        "real symmetric\n3 3 3\n1 2 0.5\n3 1 .25\n2 2 7.\n",
        "real skew-symmetric\n3 3 1\n3 1 5\n",
        "integer general\n2 4 2\n1 4 9007199254740993\n2 2 -3\n",
        "integer general\n2 4 1\n1 4 9007199254740993\n",
        "pattern symmetric\n4 4 3\n2 1\n1 3\n4 4\n",
        "pattern general\n2 3 2\n 1\t3 \r\n\n2 1\n",
        "pattern general\n2 3 1\n1 3 9\n",
        "pattern general\n2 3 0\n",
    ],
)
def test_plain_lines_are_read_as_scipy_reads_them(tmp_path: Path, text: str) -> None:
    path = tmp_path / "g.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate {text}")
    found, is_pattern, _ = expand(path)
    expected = scipy.io.mmread(path, spmatrix=False)
    assert found.shape == expected.shape
    assert sorted(entries(found)) == sorted(entries(expected))
    assert is_pattern == text.startswith("pattern")


@pytest.mark.parametrize(
    "text",
    [
        "real general\n3 3 2\n1 2 0.5\n",
        "real general\n3 3 1\n1 4 0.5\n",
        "real general\n3 3 1\n0 1 0.5\n",
        "real general\n3 3 1\n1 1 0.5\n2 2 1\n",
        "pattern symmetric\n3 4 1\n1 4\n",
    ],
)
def test_plain_lines_are_refused_as_scipy_refuses_them(tmp_path: Path, text: str) -> None:
    path = tmp_path / "g.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate {text}")
    with pytest.raises(ValueError):  # noqa: PT011, any message of SciPy's
        scipy.io.mmread(path)
    with pytest.raises(InputError, match=r"g\.mtx"):
        open_source(path)
