"""MatrixMarket files, read as SciPy reads them: refused is what it refuses.

Also refused is what the format (NIST) knows not and SciPy gives a meaning: headers that
contradict themselves, and skew-symmetric matrices that are not.

Our kernels read only what SciPy certainly reads to the same numbers: coordinates, two or
three columns of plain digits, as many as the header says, within the matrix. All else is
left to SciPy itself.

Ids are the 1-based row and column numbers and every row is a node. A rectangular matrix
has node types ``row`` and ``col``. Symmetric matrices are undirected, an
edge for each pair once; skew and general ones are directed, skew ones with both
triangles, as ``scipy.io.mmread`` expands them. Explicit zeros are kept; a dense array
gives one edge per non-zero; patterns have no weights. Complex values are refused. Unlike
elsewhere a NaN that SciPy reads stays a weight.
"""

import io
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import InputError
from graphsys.core.threads import map_in_order
from graphsys.core.types import EDGE, EdgeType
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import PIECE_BYTES, InputFile, describe, read_head
from graphsys.datasets.text.blocks import TextBlock, text_blocks
from graphsys.kernels.cpu.text.id_pairs import parse_id_pairs
from graphsys.kernels.cpu.text.parsing import BLANKS, count_lines
from graphsys.kernels.cpu.text.plain_lines import parse_plain_lines
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

Entries = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any] | None]
_FIELDS: Final = ("pattern", "real", "integer")
_HEAD_BYTES: Final = 1 << 16
_REAL: Final = ("general", "symmetric", "skew-symmetric")
_SYMMETRIES: Final = {
    "pattern": _REAL[:2],
    **dict.fromkeys(("real", "double", "integer"), _REAL),
    "unsigned-integer": _REAL[:2],
}
"""What a matrix of a field may be; hermitian are complex ones only."""
_IN_PLACE: Final = {
    "pattern skew-symmetric": "general, with a line for both directions",
    "unsigned-integer skew-symmetric": "integer in place of unsigned-integer",
}


def plain_entries(
    file: InputFile, shape: tuple[int, int], num_entries: int, field: str
) -> Entries | None:
    """Return 0-based rows, columns and values in the order of the lines.

    Args:
        file: A plain file whose last line is ended.
        shape: Rows and columns, as the header says.
        num_entries: Lines of entries, as the header says.
        field: "pattern" (values are None), "real" (float64) or "integer" (int64).

    Returns:
        The entries, or None where SciPy has to look.
    """
    skip = _lines_of_header(file, shape, num_entries)
    if skip is None or field not in _FIELDS or max(shape) >= 2**31 or not num_entries:
        return None
    loaders: Iterator[Callable[[], TextBlock]] = text_blocks(file, skip=skip)
    parts = list(map_in_order(partial(_parse, field), loaders))
    found = [part for part in parts if part is not None]
    if len(found) < len(parts) or sum(len(part[0]) for part in found) != num_entries:
        return None
    row, col = (np.concatenate([part[k] for part in found]) for k in (0, 1))
    if min(row.min(), col.min()) < 0 or row.max() >= shape[0] or col.max() >= shape[1]:
        return None
    values = [part[2] for part in found if part[2] is not None]
    return row, col, np.concatenate(values) if values else None


def _lines_of_header(
    file: InputFile, shape: tuple[int, int], num_entries: int
) -> int | None:
    """Return the number of lines up to that of the sizes; None if it is not found."""
    expected = [str(it).encode() for it in (*shape, num_entries)]
    for number, line in enumerate(read_head(file, _HEAD_BYTES).split(b"\n"), start=1):
        if line.strip() and not line.startswith(b"%"):
            return number if line.split() == expected else None
    return None


def _parse(field: str, load: Callable[[], TextBlock]) -> Entries | None:
    data = load().data
    lines = int(count_lines(data))
    values: npt.NDArray[Any] | None = None
    if field == "pattern":
        ids = np.empty((2, lines), dtype=np.int64)
        rows, bad = parse_id_pairs(data, BLANKS, False, ids[0], ids[1], False)
        if bad >= 0:
            return None
    else:
        is_real = field == "real"
        ids = np.empty((2 if is_real else 3, lines), dtype=np.int64)
        numbers = np.empty((int(is_real), lines))
        rows, stop = parse_plain_lines(data, BLANKS, False, is_real, ids, numbers, False)
        if stop < len(data):
            return None
        values = numbers[0, :rows] if is_real else ids[2, :rows]
    row, col = ids[0, :rows], ids[1, :rows]
    if rows and max(row.max(), col.max()) >= 2**31:
        return None
    return (row - 1).astype(np.int32), (col - 1).astype(np.int32), values


CHUNK_ROWS: Final = 1 << 20
_MAX_NODES: Final = 1 << 40
_LINE: Final = re.compile(r"line (\d+): (.*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A matrix as edges.

    Attributes:
        shape: Rows and columns.
        row: 0-based rows of the entries, ``[n]``.
        col: 0-based columns, ``[n]``.
        values: Their values, ``[n]``, or None for a pattern.
        is_symmetric: Each pair is listed once and stands for both directions.
    """

    shape: tuple[int, int]
    row: npt.NDArray[np.integer[Any]]
    col: npt.NDArray[np.integer[Any]]
    values: npt.NDArray[Any] | None
    is_symmetric: bool

    @property
    def is_square(self) -> bool:
        """Rows and columns are the same nodes."""
        return self.shape[0] == self.shape[1]


class MatrixSource(Source):
    """The nodes and edges of a matrix.

    Args:
        name: What messages call it.
        matrix: Its entries.
        edge_type: Type of its edges; None for the type that goes with its shape.
        is_undirected: Every edge stands for both directions, symmetric or not.
        first_id: Id of row 0.
        num_bytes: Size of its file.
    """

    allows_nan = True  # SciPy reads them

    def __init__(
        self,
        name: str,
        matrix: Matrix,
        *,
        edge_type: EdgeType | None = None,
        is_undirected: bool = False,
        first_id: int = 1,
        num_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.total_bytes = num_bytes
        self.is_directed = not (is_undirected or matrix.is_symmetric)
        self._matrix = matrix
        self._first_id = first_id
        default = EDGE if matrix.is_square else EdgeType("row", "edge", "col")
        self._edge_type = edge_type or default

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all rows (and columns) as nodes, then the entries as edges."""
        types = (self._edge_type.src_type, self._edge_type.dst_type)
        for node_type, size in dict(zip(types, self._matrix.shape, strict=True)).items():
            for first in range(0, size, CHUNK_ROWS):
                last = min(first + CHUNK_ROWS, size)
                ids = np.arange(first, last, dtype=np.int64) + self._first_id
                yield NodeChunk(ids=ids, node_type=node_type)
        matrix, entries = self._matrix, len(self._matrix.row)
        for first in range(0, max(entries, 1), CHUNK_ROWS):  # none still tell the edge type
            part = slice(first, min(first + CHUNK_ROWS, entries))
            values = None if matrix.values is None else matrix.values[part]
            share = (self.total_bytes or 0) * (part.stop - part.start) // max(entries, 1)
            yield EdgeChunk(
                src=matrix.row[part].astype(np.int64) + self._first_id,
                dst=matrix.col[part].astype(np.int64) + self._first_id,
                edge_type=self._edge_type,
                columns={} if values is None else {"weight": values},
                bytes_read=share,
            )


def open_matrix_market(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one MatrixMarket file.

    Raises:
        InputError: SciPy refuses the file, its values are complex, or there are several.
    """
    if len(files) != 1:
        raise InputError(
            f"{files[1].name}: a second matrix, expected one; ingest each file by itself"
        )
    file = files[0]
    matrix = read_matrix_market(file)
    return MatrixSource(
        file.name,
        matrix,
        edge_type=options.edge_type,
        is_undirected=options.is_undirected,
        num_bytes=file.num_bytes,
    )


def read_matrix_market(file: InputFile) -> Matrix:
    """Read one file as SciPy does.

    Raises:
        InputError: SciPy refuses it, its values are complex, or they and the symmetry do
            not go together.
    """
    from scipy.io import mminfo, mmread

    try:
        packed = None if _ends_with_line(file) else file.read_all() + b"\n"
        info = mminfo(str(file.path) if packed is None else io.BytesIO(packed))
        rows, cols, num_entries, layout, field, symmetry = info
        if field == "complex":
            raise InputError(
                f"{file.name}:1: complex values, expected real ones or a pattern"
            )
        _require_symmetry(file, field, symmetry)
        if max(rows, cols) > _MAX_NODES:
            raise InputError(
                f"{file.name}: {rows} rows and {cols} columns, expected at most "
                f"{_MAX_NODES} nodes"
            )
        if rows == 0 and layout == "array":  # SciPy 1.17 divides by zero there
            raise InputError(f"{file.name}: an array without rows, expected some")
        is_plain = packed is None and layout == "coordinate"
        is_known = symmetry == "general" or (symmetry == "symmetric" and rows == cols)
        if is_plain and is_known:
            found = plain_entries(file, (rows, cols), num_entries, field)
            if found is not None:
                return _lower((rows, cols), found, symmetry)
        _refuse_zeros(file, packed)
        matrix = mmread(
            str(file.path) if packed is None else io.BytesIO(packed), spmatrix=False
        )
    except (ValueError, OverflowError, OSError, MemoryError) as err:
        if isinstance(err, InputError):
            raise
        raise _refused(file, err) from err
    listed = _entries(matrix, is_pattern=field == "pattern", symmetry=symmetry)
    if symmetry == "skew-symmetric":
        _refuse_diagonal(file, listed)
    return listed


def _require_symmetry(file: InputFile, field: str, symmetry: str) -> None:
    """Check that a header is one of those that the format has.

    Raises:
        InputError: It is not.
    """
    known = _SYMMETRIES.get(field, _REAL)
    if symmetry not in known:
        instead = _IN_PLACE.get(f"{field} {symmetry}", "symmetric, which is the same")
        raise InputError(
            f"{file.name}:1: a header of {field} {symmetry}, expected {field} with "
            f"{' or '.join(known)}; write {instead}"
        )


def _refuse_diagonal(file: InputFile, matrix: Matrix) -> None:
    """Refuse a value on the diagonal that is not its own negative.

    Raises:
        InputError: There is one.
    """
    assert matrix.values is not None  # a pattern is not skew-symmetric
    at = np.flatnonzero((matrix.row == matrix.col) & (matrix.values != 0))
    if len(at):
        place = int(matrix.row[at[0]]) + 1
        raise InputError(
            f"{file.name}: {matrix.values[at[0]]} at row {place}, column {place}, expected "
            "a skew-symmetric matrix without values on the diagonal; remove it, or write "
            "general in the header, with a line for both directions"
        )


def _lower(shape: tuple[int, int], entries: Entries, symmetry: str) -> Matrix:
    """Make a matrix; of a symmetric one, entries above the diagonal are mirrored."""
    row, col, values = entries
    if symmetry == "symmetric":
        row, col = np.maximum(row, col), np.minimum(row, col)
    return Matrix(shape, row, col, values, symmetry == "symmetric")


def _ends_with_line(file: InputFile) -> bool:
    """Tell whether SciPy may read the file itself: plain, and the last line ended.

    SciPy 1.17 reads beyond the end of a last line that is not ended.
    """
    if not file.is_plain:
        return False
    with file.path.open("rb") as stream:
        stream.seek(-1, io.SEEK_END)
        return stream.read(1) == b"\n"


def _refuse_zeros(file: InputFile, packed: bytes | None) -> None:
    """Refuse bytes 0, at which SciPy 1.17 looks for ends of lines in vain, and crashes.

    Raises:
        InputError: there is one.
    """
    stream = file.path.open("rb") if packed is None else io.BytesIO(packed)
    with stream:
        while piece := stream.read(PIECE_BYTES):
            if b"\0" in piece:
                raise InputError(
                    f"{file.name}: holds bytes 0, expected the text of a MatrixMarket file"
                )


def _refused(file: InputFile, err: Exception) -> InputError:
    """Say what SciPy's reader said, with its line behind the name of the file."""
    text = describe(err)
    if match := _LINE.match(text):
        line, what = match.groups()
        return InputError(
            f"{file.name}:{line}: {what[:1].lower()}{what[1:].rstrip('.')}; "
            "expected a MatrixMarket file that scipy.io.mmread reads"
        )
    return InputError(
        f"{file.name}: {text.rstrip('.')}; expected a MatrixMarket file that "
        "scipy.io.mmread reads"
    )


def _entries(matrix: Any, *, is_pattern: bool, symmetry: str) -> Matrix:
    """List the entries; of a symmetric matrix those of the lower triangle."""
    if isinstance(matrix, np.ndarray):
        row, col = np.nonzero(matrix)
        values = matrix[row, col]
    else:
        row, col = matrix.coords
        values = matrix.data
    is_symmetric = symmetry == "symmetric"
    if is_symmetric:
        is_lower = row >= col
        row, col, values = row[is_lower], col[is_lower], values[is_lower]
    return Matrix(matrix.shape, row, col, None if is_pattern else values, is_symmetric)


formats.register("mtx")(
    Format(
        open=open_matrix_market,
        suffixes=(".mtx",),
        about="MatrixMarket, coordinate and array",
    )
)
