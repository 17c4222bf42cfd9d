"""Text formats of collections: KONECT, road networks (TNTP), DIMACS's graphs to color.

KONECT (``out.NAME``): ``% FORMAT WEIGHTS``, then source, destination, perhaps a weight
and seconds since 1970; ``sym`` is undirected, and the ends of ``bip`` are two types of
nodes, ``left`` and ``right``. TNTP: ``<KEY> VALUE`` lines, a header behind ``~``, then
columns up to ``;``. DIMACS ``.col``: ``c`` lines, ``p edge NODES EDGES``, then ``e NODE
NODE``, undirected.

References:
    Kunegis, "Handbook of Network Analysis [KONECT]", 2017, "File formats".
    Stabler et al., "Transportation Networks for Research", README.
    DIMACS, "Clique and coloring problems graph format", 1993.
"""

import re
from collections.abc import Iterator
from typing import Final

import numpy as np

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EDGE, EdgeType
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, read_head, text_file
from graphsys.datasets.readers.edgelist import guess_kind
from graphsys.datasets.readers.gap import numbered_nodes, problem_of
from graphsys.datasets.text.first_lines import first_lines
from graphsys.datasets.text.layout import (
    BLANKS,
    ID,
    NUMBER,
    SKIP,
    WORD,
    LineFormat,
    TextColumn,
    show,
)
from graphsys.datasets.text.source import TextPart, TextSource, line_of_row, parse_file
from graphsys.datasets.time_units import TimedSource
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

_KONECT: Final = re.compile(rb"^%\s+(sym|asym|bip)\s+(\w+)\s*$", re.MULTILINE)
_KONECT_COLUMNS: Final = ("src", "dst", "weight", "time")
_TWO_TYPES: Final = EdgeType("left", "edge", "right")
_TNTP_KEY: Final = re.compile(rb"^\s*<([^>]+)>\s*(\S*)")
_TNTP_NAMES: Final = {"init_node": "src", "term_node": "dst", "from": "src", "to": "dst"}


def open_konect(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one KONECT file.

    Raises:
        InputError: its first line is none of KONECT's, or columns are too few or many.
    """
    file = text_file(_only(files, options, "konect"))
    head = _KONECT.match(read_head(file))
    first = read_head(file).split(b"\n")[0]
    if head is None:
        raise InputError(
            f"{file.name}:1: found {show(first)}, expected '% sym', '% asym' or '% bip' "
            "and the kind of weights; pass --format edgelist if it is a list of edges"
        )
    lines = first_lines(file, skip=1, separator=BLANKS, num_columns=len(_KONECT_COLUMNS))
    found = len(lines[0].fields)
    if not 2 <= found <= len(_KONECT_COLUMNS):
        raise InputError(
            f"{file.name}:{lines[0].number}: found {found} columns, expected 2 to 4 (src "
            f"dst weight time): {show(lines[0].text)}; pass --format edgelist and --columns"
        )
    kinds = {"src": ID, "dst": ID, "weight": NUMBER}
    columns = tuple(
        TextColumn(name, kinds.get(name) or guess_kind(name, place, lines))
        for place, name in enumerate(_KONECT_COLUMNS[:found])
    )
    layout = LineFormat(columns=columns, first_line=lines[0].number)
    kind = _TWO_TYPES if head[1] == b"bip" else EDGE
    part = TextPart(file, layout, options.edge_type or kind, skip=1)
    is_directed = head[1] != b"sym" and not options.is_undirected
    source = TextSource([part], is_directed=is_directed, num_threads=options.num_threads)
    return TimedSource(source, "s") if found == len(_KONECT_COLUMNS) else source


def open_tntp(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of the links of a road network.

    Raises:
        InputError: the file ends before the links, or has other columns.
    """
    file = text_file(_only(files, options, "tntp"))
    names, skip, num_nodes = _tntp_head(file)
    lines = first_lines(file, skip=skip, separator=BLANKS, has_comments=False)
    fields = lines[0].fields
    has_end = fields[-1] == b";"
    names = [_TNTP_NAMES.get(name, name) for name in names]
    if len(fields) - has_end != len(names) or not {"src", "dst"} <= set(names):
        raise InputError(
            f"{file.name}:{lines[0].number}: found {show(lines[0].text)}, expected a link "
            f"of columns {' '.join(names)}; convert the file to CSV"
        )
    kinds = {"src": ID, "dst": ID}
    columns = [TextColumn(name, kinds.get(name, NUMBER)) for name in names]
    columns += [TextColumn("_", SKIP)] * has_end
    layout = LineFormat(
        columns=tuple(columns), has_comments=False, first_line=lines[0].number
    )
    part = TextPart(file, layout, options.edge_type or EDGE, skip=skip)
    is_directed = not options.is_undirected
    links = TextSource([part], is_directed=is_directed, num_threads=options.num_threads)
    return _WithNodes(links, part.edge_type, num_nodes)


def _tntp_head(file: InputFile) -> tuple[list[str], int, int]:
    """Return the columns' names, the lines before the first link, and the nodes."""
    names: list[str] = []
    num_nodes, is_behind = 0, False
    for number, line in enumerate(read_head(file, 1 << 20).split(b"\n"), start=1):
        if (key := _TNTP_KEY.match(line)) is not None:
            is_behind |= key[1].upper() == b"END OF METADATA"
            if key[1].upper() == b"NUMBER OF NODES" and key[2].isdigit():
                num_nodes = int(key[2])
        elif line.lstrip().startswith(b"~"):
            words = line.decode("utf-8", "replace").replace(";", " ").replace("~", " ")
            names = words.lower().split()
        elif line.strip():
            if not is_behind or not names:
                raise InputError(
                    f"{file.name}:{number}: found {show(line)}, expected <END OF METADATA> "
                    "and a header behind ~ (init_node term_node ...); is it a network?"
                )
            return names, number - 1, num_nodes
    raise InputError(f"{file.name}: no link in the file, expected at least one")


class _WithNodes(Source):
    """A source with all nodes from 1 to a number, with or without edges."""

    def __init__(self, source: TextSource, edge_type: EdgeType, num_nodes: int) -> None:
        self.name, self.total_bytes = source.name, source.total_bytes
        self.is_directed = source.is_directed
        self._source, self._edge_type, self._num_nodes = source, edge_type, num_nodes

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the edges, then the nodes.

        Raises:
            InputError: an edge has a node beyond them.
        """
        highest = 0
        for chunk in self._source.chunks():
            highest = max(highest, int(np.max(chunk.src)), int(np.max(chunk.dst)))
            yield chunk
        if self._num_nodes and highest > self._num_nodes:
            raise InputError(
                f"{self.name}: found node {highest}, expected 1 to {self._num_nodes} as "
                "the head of the file says; is it cut or another version?"
            )
        yield from numbered_nodes(self._edge_type, 1, self._num_nodes)


class ColoringSource(Source):
    """The edges of a DIMACS file ``.col``."""

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        self.name, self.total_bytes = file.name, file.num_bytes
        self.is_directed = False
        self._file, self._num_threads = file, options.num_threads
        self._edge_type = options.edge_type or EDGE
        self._num_nodes, _, self._skip = problem_of(file)
        columns = TextColumn("tag", WORD), TextColumn("src", ID), TextColumn("dst", ID)
        self._layout = LineFormat(
            columns=columns, has_comments=False, first_line=self._skip + 1
        )

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the edges, then the nodes; counts of edges are off in many such files.

        Raises:
            InputError: a line is no edge of the nodes.
        """
        rows = 0
        for parsed in parse_file(
            self._file, self._layout, skip=self._skip, num_threads=self._num_threads
        ):
            tags, src, dst = (parsed.columns[name] for name in ("tag", "src", "dst"))
            is_edge = np.array([tag == "e" for tag in tags.dictionary.to_pylist()])
            low, high = np.minimum(src, dst), np.maximum(src, dst)
            is_odd = (low < 1) | (high > self._num_nodes)
            if len(src):
                is_odd |= ~is_edge[tags.indices.to_numpy(zero_copy_only=False)]
            if is_odd.any():
                row = int(np.flatnonzero(is_odd)[0])
                line = line_of_row(self._file, self._layout, rows + row, skip=self._skip)
                raise InputError(
                    f"{self.name}:{line}: found {tags[row].as_py()} {src[row]} {dst[row]}, "
                    f"expected an edge 'e NODE NODE' of nodes 1 to {self._num_nodes}"
                )
            rows += len(src)
            yield EdgeChunk(
                src=src, dst=dst, edge_type=self._edge_type, bytes_read=parsed.bytes_read
            )
        yield from numbered_nodes(self._edge_type, 1, self._num_nodes)


def open_col(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one DIMACS graph to color.

    Raises:
        InputError: it has no ``p`` line, or a line is no edge.
    """
    return ColoringSource(text_file(_only(files, options, "col")), options)


def _only(files: list[InputFile], options: ReadOptions, name: str) -> InputFile:
    """Return the one file, which has fixed columns.

    Raises:
        ConfigError: the user names columns.
        InputError: there are several files.
    """
    if options.columns or options.roles or options.skip or options.separator:
        raise ConfigError(
            f"{name} files have fixed columns; leave out columns, separator and skip"
        )
    if len(files) != 1:
        raise InputError(
            f"{files[1].name}: a second graph, expected one; ingest each by itself"
        )
    return files[0]


formats.register("konect")(
    Format(
        open=open_konect,
        suffixes=(".out",),
        patterns=("out.*",),
        about="KONECT's out.NAME: % sym|asym|bip, src dst [weight [seconds]]",
    )
)
formats.register("tntp")(
    Format(open=open_tntp, suffixes=(".tntp",), about="TNTP: links of road networks")
)
formats.register("col")(
    Format(open=open_col, suffixes=(".col",), about="DIMACS graphs to color: e NODE NODE")
)
