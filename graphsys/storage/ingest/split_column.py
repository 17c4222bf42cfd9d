"""A column ``split`` of edges says which split each is in, as that of nodes does."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from graphsys.core.errors import InputError, cut_list
from graphsys.core.types import DEFAULT_SPLIT, NEGATIVE
from graphsys.storage.ingest.graph_source import GraphSource
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

NAME: Final = "split"
_WORDS: Final = {
    "train": "train",
    "valid": "valid",
    "validation": "valid",
    "val": "valid",
    "dev": "valid",
    "test": "test",
}


def split_of(word: str | None) -> str | None:
    """Return the split that a word stands for, its pairs that are no edges too, or None.

    Examples:
        >>> split_of("val"), split_of("test_negative"), split_of("x")
        ('valid', 'test_negative', None)
    """
    base, is_negative = (word or "").removesuffix(NEGATIVE), (word or "").endswith(NEGATIVE)
    found = _WORDS.get(base)
    return found + NEGATIVE if found and is_negative else found


def chunks_of(source: Source) -> Iterator[EdgeChunk | NodeChunk]:
    """Yield what a source has, edges by the splits that their column names.

    Edges that come from a store are in their splits, and keep all of their columns.

    Raises:
        InputError: The source is malformed, or some words of the column are no splits.
    """
    for chunk in source.chunks():
        if isinstance(chunk, NodeChunk) or isinstance(source, GraphSource):
            yield chunk
            continue
        try:
            yield from _divided(chunk)
        except InputError as err:
            raise InputError(f"{source.name}: {err}") from err


def _divided(chunk: EdgeChunk) -> Iterator[EdgeChunk]:
    """Yield the edges of every split that a column names, without that column.

    A column of other words, or of numbers, stays one. Parquet and Arrow files, whose column
    may have any names, have been divided by their reader.

    Raises:
        InputError: Some words are splits, and some are not.
    """
    if NAME not in chunk.columns or chunk.split != DEFAULT_SPLIT:
        yield chunk
        return
    values = pa.array(chunk.columns[NAME])
    if not pa.types.is_dictionary(values.type):
        values = values.dictionary_encode()
    words = values.dictionary.to_pylist()
    known = [word for word in words if split_of(word)]
    if not known:
        yield chunk
        return
    others = [word for word in words if not split_of(word)]
    if others or values.null_count:
        found = cut_list([repr(word) for word in others]) if others else "nothing"
        raise InputError(
            f"the edges' column split: found {found} beside {known[0]!r}, expected train, "
            "valid or test in every row; rename the column to keep it as one"
        )
    codes = values.indices.to_numpy(zero_copy_only=False)
    rest = {name: column for name, column in chunk.columns.items() if name != NAME}
    plain = replace(chunk, columns=rest)
    splits = np.array([split_of(word) for word in words])
    for number, split in enumerate(dict.fromkeys(splits[np.unique(codes)].tolist())):
        rows = np.flatnonzero(splits[codes] == split)
        part = rows_of(plain, rows)
        yield replace(part, split=split, bytes_read=0 if number else chunk.bytes_read)


def rows_of(chunk: EdgeChunk, rows: Any) -> EdgeChunk:
    """Return some edges of a chunk, by their places, int64 ``[n]``."""

    def of(values: Any) -> Any:
        is_plain = isinstance(values, np.ndarray)
        return values[rows] if is_plain else values.take(pa.array(rows))

    columns = {name: of(values) for name, values in chunk.columns.items()}
    return replace(chunk, src=of(chunk.src), dst=of(chunk.dst), columns=columns)
