"""The plain lines of a MatrixMarket file, read by our kernels.

Only what SciPy certainly reads to the same numbers: coordinates, two or three columns of
plain digits, as many as the header says, within the matrix. Anything else is left to SciPy,
which decides whether it is read or refused.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.threads import map_in_order
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.text.blocks import TextBlock, text_blocks
from graphsys.kernels.cpu.text.id_pairs import parse_id_pairs
from graphsys.kernels.cpu.text.parsing import BLANKS, count_lines
from graphsys.kernels.cpu.text.plain_lines import parse_plain_lines

Entries = tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any] | None]
_FIELDS: Final = ("pattern", "real", "integer")
_HEAD_BYTES: Final = 1 << 16


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
