"""LDBC Graphalytics: a file of vertices (.v) and one of edges (.e), read together.

A line of the .v file is an id and perhaps further columns, which are kept as node columns
``v1``, ``v2`` ...; a line of the .e file is source, destination, and perhaps a weight.
``NAME.properties`` beside them says whether the graph is directed and what a weight is
called; without it the graph is directed unless the user says otherwise.

References:
    Iosup et al., "The LDBC Graphalytics benchmark", arXiv:2011.15028, section 2.2.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets.base import Format, ReadOptions, base_name, formats
from graphsys.datasets.files import InputFile, input_file
from graphsys.datasets.node_rows import RepeatedNodes
from graphsys.datasets.readers.edgelist import guess_kind, open_edgelist
from graphsys.datasets.text.first_lines import first_lines
from graphsys.datasets.text.layout import BLANKS, ID, WORD, LineFormat, TextColumn, show
from graphsys.datasets.text.source import (
    TextSource,
    parse_file,
)
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

_ENDINGS: Final = ("", ".gz", ".zst", ".bz2")


class GraphalyticsSource(Source):
    """The vertices and edges of one graph."""

    def __init__(
        self, vertices: InputFile, edges: TextSource, *, num_threads: int | None
    ) -> None:
        self.name = f"{vertices.name}, {edges.name}"
        self.total_bytes = vertices.num_bytes + (edges.total_bytes or 0)
        self.is_directed = edges.is_directed
        self._vertices = vertices
        self._edges = edges
        self._num_threads = num_threads
        part = edges.parts[0]
        id_kind = next(it.kind for it in part.layout.columns if it.name == "src")
        self._node_type = part.edge_type.src_type
        self._layout = _vertex_layout(vertices, id_kind)

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the vertices, then the edges."""
        unique = RepeatedNodes(self._vertices, self._layout)
        for parsed in parse_file(
            self._vertices, self._layout, num_threads=self._num_threads
        ):
            columns = dict(parsed.columns)
            ids = columns.pop("id")
            unique.add(ids)
            yield NodeChunk(
                ids=ids,
                node_type=self._node_type,
                columns=columns,
                bytes_read=parsed.bytes_read,
            )
        unique.check()
        yield from self._edges.chunks()


def _vertex_layout(file: InputFile, id_kind: int) -> LineFormat:
    lines = first_lines(file, skip=0, separator=BLANKS, num_columns=1)
    names = ["id", *(f"v{k}" for k in range(1, len(lines[0].fields)))]
    if id_kind == ID and not lines[0].fields[0].isdigit():
        raise InputError(
            f"{file.name}:{lines[0].number}: found {show(lines[0].fields[0])} as id, "
            "expected an integer as in the .e file; pass --ids string"
        )
    columns = [TextColumn("id", ID if id_kind == ID else WORD)]
    columns += [
        TextColumn(name, guess_kind(name, k, lines)) for k, name in enumerate(names) if k
    ]
    return LineFormat(columns=tuple(columns), first_line=lines[0].number)


def _pair(path: Path, suffix: str) -> Path:
    """Return the other file of a graph, compressed or not; the plain name if none is."""
    stem = base_name(path)[0]
    candidates = [path.with_name(f"{stem}{suffix}{ending}") for ending in _ENDINGS]
    return next((it for it in candidates if it.is_file()), candidates[0])


def _says_directed(path: Path) -> bool | None:
    """Return what ``NAME.properties`` says, None where it does not.

    Raises:
        InputError: it says neither true nor false.
    """
    card = path.with_name(f"{base_name(path)[0]}.properties")
    if not card.is_file():
        return None
    for number, line in enumerate(card.read_text("utf-8", "replace").splitlines(), 1):
        key, _, value = (part.strip() for part in line.partition("="))
        if key.startswith("graph.") and key.endswith(".directed"):
            if value not in ("true", "false"):
                raise InputError(f"{card}:{number}: got {value!r}, expected true or false")
            return value == "true"
    return None


def _find(folder: Path) -> list[Path]:
    edges = [it for it in sorted(folder.iterdir()) if base_name(it)[1] == ".e"]
    return edges if len(edges) == 1 else []


def open_graphalytics(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one graph, of which one file or both are named.

    Raises:
        InputError: a file is missing, or the files are of several graphs.
    """
    if options.columns or options.roles or options.skip:
        raise ConfigError("ldbc files have fixed columns; leave out --columns and --skip")
    graphs = {it.path.parent / base_name(it.path)[0] for it in files}
    if len(graphs) != 1:
        raise InputError(
            f"{files[1].name}: of another graph than {files[0].name}, expected NAME.v and "
            "NAME.e; ingest each graph by itself"
        )
    path = files[0].path
    vertices, edge_file = input_file(_pair(path, ".v")), input_file(_pair(path, ".e"))
    edges = open_edgelist([edge_file], options, third_is_weight=True)
    if not isinstance(edges, TextSource):
        raise TypeError(f"expected a TextSource, got {type(edges)}")
    says = _says_directed(path)
    edges.is_directed = not options.is_undirected and says is not False
    return GraphalyticsSource(vertices, edges, num_threads=options.num_threads)


formats.register("ldbc")(
    Format(
        open=open_graphalytics,
        suffixes=(".v", ".e"),
        find=_find,
        about="LDBC Graphalytics: NAME.v and NAME.e together",
    )
)
