"""Adjacency lists: a line holds a node and its neighbors, ``user item item ...``.

Nodes of both ends are of one type unless an edge type says otherwise: files of users
and items go in as ``--format adjacency --edges user,likes,item=train.txt``.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EDGE
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, read_head, text_file
from graphsys.datasets.readers.edgelist import watched_ranges
from graphsys.datasets.split_names import by_split
from graphsys.datasets.table_spec.edges import list_chunks
from graphsys.datasets.table_spec.spec import EdgeCard
from graphsys.datasets.text.first_lines import DataLine, first_lines
from graphsys.datasets.text.id_guards import must_be_strings
from graphsys.datasets.text.layout import BLANKS, show
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

_MARKS: Final = (b"#", b"%")


class AdjacencySource(Source):
    """The edges of files of lists, and nodes that have a line of their own."""

    def __init__(self, files: list[InputFile], options: ReadOptions) -> None:
        files = [text_file(file) for file in files]
        self.name = ", ".join(file.name for file in files)
        self.total_bytes = sum(file.num_bytes for file in files)
        self.is_directed = not options.is_undirected
        self._num_threads = options.num_threads
        edge_type = tuple(options.edge_type or EDGE)
        self._parts = [
            (
                file,
                EdgeCard(
                    type=edge_type,
                    split=split,
                    layout="lists",
                    skip=options.skip or leading_comments(file),
                ),
            )
            for file, split in by_split(files)
        ]
        looks = [_has_names(file, card.skip) for file, card in self._parts]
        self._ranges = watched_ranges(files, options)
        self._has_names = options.ids == "string" or (options.ids == "auto" and any(looks))

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the edges and the lone nodes, file by file.

        Raises:
            InputError: a field is no id, or there is no edge.
        """
        lone: set[Any] = set()
        ranges = self._ranges
        for file, card in self._parts:
            for chunk in list_chunks(
                file, card, self._num_threads, has_names=self._has_names, has_lone=True
            ):
                if isinstance(chunk, EdgeChunk):
                    if ranges is not None:
                        ranges.add(chunk.src, chunk.dst)
                    yield chunk
                    continue
                ids = dict.fromkeys(chunk.ids.tolist())
                if fresh := [it for it in ids if it not in lone]:  # each is listed once
                    lone.update(fresh)
                    yield replace(
                        chunk, ids=pa.array(fresh) if self._has_names else np.array(fresh)
                    )
        if ranges is not None:
            ranges.check()


def _has_names(file: InputFile, skip: int) -> bool:
    """Tell whether ids are names, or have zeros in front.

    Raises:
        InputError: marks are glued to ids.
    """
    lines = first_lines(file, skip=skip, separator=BLANKS, has_comments=False)
    where = f"{file.name}:{lines[0].number}"
    for mark in (b":", b",", b";"):
        if all(any(it.endswith(mark) for it in line.fields) for line in lines) or all(
            len(line.fields) == 1 and mark in line.fields[0] for line in lines
        ):
            raise InputError(
                f"{where}: {mark.decode()!r} stands behind ids, {show(lines[0].text)}, "
                f"expected blanks; remove it, tr '{mark.decode()}' ' ' < FILE > NEW"
            )
    is_words = not all(it.isdigit() for it in lines[0].fields)
    return is_words or must_be_strings(where, lines, range(max(map(_width, lines))))


def _width(line: DataLine) -> int:
    return len(line.fields)


def open_adjacency(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of adjacency lists.

    Raises:
        ConfigError: options go with columns, which lists have not.
        InputError: a file is empty.
    """
    if options.columns or options.roles or options.separator:
        raise ConfigError(
            "adjacency lists are ids between blanks and have no columns; leave out columns "
            "and separator, or use another format"
        )
    return AdjacencySource(files, options)


def leading_comments(file: InputFile) -> int:
    """Return the number of lines at the beginning that are comments (NetworkX has some)."""
    count = 0
    for line in read_head(file).split(b"\n"):
        if not line.startswith(_MARKS):
            break
        count += 1
    return count


formats.register("adjacency")(
    Format(
        open=open_adjacency,
        suffixes=(".adjlist",),
        about="a node and its neighbors on a line: user item item ...",
    )
)
