"""Adjacency lists: a line holds a node and its neighbors, ``user item item ...``.

Nodes of both ends are of one type unless an edge type says otherwise: files of users
and items go in as ``--format adjacency --edges user,likes,item=train.txt``.
"""

from collections.abc import Iterator
from typing import Final

from graphsys.core.errors import ConfigError
from graphsys.core.types import EDGE
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.split_names import by_split
from graphsys.datasets.table_spec.edges import list_chunks
from graphsys.datasets.table_spec.spec import EdgeCard
from graphsys.storage.source import EdgeChunk, Source

_MARKS: Final = (b"#", b"%")


class AdjacencySource(Source):
    """The edges of files of lists."""

    def __init__(self, files: list[InputFile], options: ReadOptions) -> None:
        self.name = ", ".join(file.name for file in files)
        self.total_bytes = sum(file.num_bytes for file in files)
        self.is_directed = not options.is_undirected
        self._num_threads = options.num_threads
        edge_type = tuple(options.edge_type or EDGE)
        self._parts = [
            (file, EdgeCard(type=edge_type, split=split, layout="lists",
                            skip=options.skip or leading_comments(file)))
            for file, split in by_split(files)
        ]  # fmt: skip

    def chunks(self) -> Iterator[EdgeChunk]:
        """Yield the edges, file by file.

        Raises:
            InputError: a field is no id, or there is no edge.
        """
        for file, card in self._parts:
            yield from list_chunks(file, card, self._num_threads)


def open_adjacency(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of adjacency lists.

    Raises:
        ConfigError: options go with columns, which lists have not, or with names.
        InputError: a file is empty.
    """
    if options.columns or options.roles or options.separator or options.ids == "string":
        raise ConfigError(
            "adjacency lists are integers between blanks and have no columns; leave out "
            "columns, separator and ids, or use another format"
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
