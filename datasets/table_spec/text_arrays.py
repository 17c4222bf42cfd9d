"""Matrices written as text, a row a line, as OGB has features, labels and splits."""

import tempfile
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.datasets.array_files import dense_features
from graphsys.datasets.files import InputFile
from graphsys.datasets.text.first_lines import first_lines
from graphsys.datasets.text.layout import BLANKS, ID, MAYBE, NUMBER, LineFormat, TextColumn
from graphsys.datasets.text.source import parse_file

_SUFFIXES: Final = (".csv", ".txt", ".tsv")


def is_text_array(name: str) -> bool:
    """Tell by its name whether a file is a matrix in text."""
    for ending in (".gz", ".zst", ".bz2"):
        name = name.removesuffix(ending)
    return name.endswith(_SUFFIXES)


def _layout(file: InputFile, kind: int) -> LineFormat:
    plain = file.path.name.split(".")
    separator = ord(",") if "csv" in plain else BLANKS
    first = first_lines(file, skip=0, separator=separator, has_comments=False)[0]
    columns = tuple(TextColumn(f"x{k}", kind) for k in range(len(first.fields)))
    return LineFormat(
        columns=columns,
        separator=separator,
        has_comments=False,
        first_line=first.number,
    )


def text_matrix(file: InputFile) -> npt.NDArray[np.float32]:
    """Parse a matrix, float32 ``[n, d]``, on disk in a file that has no name.

    Raises:
        InputError: a line has another number of fields than the first, or a field is no
            number.
    """
    layout = _layout(file, NUMBER)
    with tempfile.TemporaryFile() as spool:
        for parsed in parse_file(file, layout):
            block = np.stack(list(parsed.columns.values()), axis=1)
            spool.write(dense_features(file.name, block).tobytes())
        if not spool.tell():
            return np.empty((0, len(layout.columns)), dtype=np.float32)
        spool.flush()
        flat = np.memmap(spool, dtype=np.float32, mode="r")  # keeps the file open
    return flat.reshape(-1, len(layout.columns))


def text_column(file: InputFile) -> npt.NDArray[np.float64]:
    """Parse values, of which some may be missing (NaN), float64 ``[n]`` or ``[n, d]``.

    Raises:
        InputError: a field is no number.
    """
    layout = _layout(file, MAYBE)
    blocks: list[Any] = [
        np.stack(list(parsed.columns.values()), axis=1)
        for parsed in parse_file(file, layout)
    ]
    whole = np.concatenate([np.empty((0, len(layout.columns))), *blocks])
    return whole[:, 0] if whole.shape[1] == 1 else whole


def text_rows(file: InputFile) -> npt.NDArray[np.int64]:
    """Parse numbers of rows, int64 ``[n]``.

    Raises:
        InputError: a field is no such number.
    """
    layout = LineFormat(columns=(TextColumn("row", ID),), has_comments=False)
    parts = [parsed.columns["row"] for parsed in parse_file(file, layout)]
    return np.concatenate([np.empty(0, dtype=np.int64), *parts])
