"""Rows of node tables: each node once; the line of a second one in messages."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.errors import InputError
from graphsys.datasets.files import InputFile
from graphsys.datasets.text.layout import LineFormat
from graphsys.datasets.text.source import line_of_row

MAX_ROWS: Final = 1 << 24
"""Larger tables are left to ingest, which names the id and no line."""


class RepeatedNodes:
    """Finds the second row of a node in a text file.

    Args:
        file: The file, for the message.
        layout: What its lines look like.
        skip: Lines at its beginning that are no data.
    """

    def __init__(self, file: InputFile, layout: LineFormat, *, skip: int = 0) -> None:
        self._file = file
        self._layout = layout
        self._skip = skip
        self._batches: list[Any] = []
        self._rows = 0

    def add(self, ids: Any) -> None:
        """Remember ids, integers ``[n]`` or Arrow strings."""
        self._rows += len(ids)
        if self._rows <= MAX_ROWS:
            self._batches.append(ids)

    def check(self) -> None:
        """Look for a node that has two rows.

        Raises:
            InputError: there is one.
        """
        if self._rows > MAX_ROWS or not self._batches:
            return
        codes, ids = _codes(self._batches)
        first = np.unique(codes, return_index=True)[1]
        if len(first) == len(codes):
            return
        is_first = np.zeros(len(codes), dtype=bool)
        is_first[first] = True
        row = int(np.flatnonzero(~is_first)[0])
        before = int(np.flatnonzero(codes == codes[row])[0])
        lines = [self._line(before), self._line(row)]
        raise InputError(
            f"{self._file.name}:{lines[1]}: node {ids(row)} is listed a second time, after "
            f"line {lines[0]}; keep one row of each"
        )

    def _line(self, row: int) -> int:
        return line_of_row(self._file, self._layout, row, skip=self._skip)


def _codes(batches: list[Any]) -> tuple[npt.NDArray[Any], Any]:
    """Return an integer for every id, equal for equal ids, and what a row's id is."""
    if isinstance(batches[0], np.ndarray):
        whole = np.concatenate(batches)
        return whole, lambda row: int(whole[row])
    plain = pa.chunked_array([it.dictionary_decode().cast(pa.string()) for it in batches])
    codes = pc.dictionary_encode(plain).combine_chunks()
    if isinstance(codes, pa.ChunkedArray):
        codes = codes.chunk(0)
    return codes.indices.to_numpy(), lambda row: repr(plain[row].as_py())
