"""The GAP benchmark suite's graphs: .el, .wel, .gr and the binary .sg and .wsg.

``.el`` and ``.wel`` are edge lists of two and three columns. ``.gr`` is DIMACS: ``c``
lines, ``p sp NODES ARCS``, then ``a SRC DST WEIGHT`` with ids from 1. The binary files are
GAP's serialized CSR: a byte for directed, the numbers of entries and of nodes, offsets,
then neighbors of 32 bits (with a weight of 32 bits each in .wsg), and for directed graphs
the same of the in-edges, which are not read. An undirected graph holds each edge at both
ends; it becomes one. Every number of a node is a node, with or without edges.

References:
    Beamer, Asanovic, Patterson, "The GAP benchmark suite", arXiv:1508.03619; writer.h.
"""

import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EDGE, EdgeType
from graphsys.datasets.base import Format, ReadOptions, base_name, formats
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.readers.edgelist import open_edgelist
from graphsys.datasets.text.layout import (
    BLANKS,
    ID,
    MARK,
    NUMBER,
    LineFormat,
    TextColumn,
    as_count,
    show,
)
from graphsys.datasets.text.source import (
    line_of_row,
    parse_file,
)
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_EDGES: Final = 1 << 20
_MAX_NODES: Final = 1 << 40
_HEAD: Final = struct.Struct("<?qq")


class DimacsSource(Source):
    """The arcs of one DIMACS file."""

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        self.name = file.name
        self.total_bytes = file.num_bytes
        self.is_directed = not options.is_undirected
        self._file = file
        self._edge_type = options.edge_type or EDGE
        self._num_threads = options.num_threads
        self.num_nodes, self.num_arcs, self._skip = problem_of(file)
        self._layout = LineFormat(
            columns=(
                TextColumn("tag", MARK),
                TextColumn("src", ID),
                TextColumn("dst", ID),
                TextColumn("weight", NUMBER),
            ),
            separator=BLANKS,
            has_comments=False,
            first_line=self._skip + 1,
        )

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the arcs, then the nodes: what is wrong with a line comes first.

        Raises:
            InputError: a line is no arc, or their number is not that of the ``p`` line.
        """
        rows = 0
        for parsed in parse_file(
            self._file, self._layout, skip=self._skip, num_threads=self._num_threads
        ):
            columns = dict(parsed.columns)
            src, dst = columns.pop("src"), columns.pop("dst")
            if min(src.min(initial=1), dst.min(initial=1)) < 1 or (
                max(src.max(initial=1), dst.max(initial=1)) > self.num_nodes
            ):
                low, high = np.minimum(src, dst), np.maximum(src, dst)
                row = int(np.flatnonzero((low < 1) | (high > self.num_nodes))[0])
                line = line_of_row(self._file, self._layout, rows + row, skip=self._skip)
                raise InputError(
                    f"{self.name}:{line}: found a {src[row]} {dst[row]}, expected an arc "
                    f"'a SRC DST WEIGHT' of nodes 1 to {self.num_nodes}"
                )
            rows += len(src)
            yield EdgeChunk(
                src=src,
                dst=dst,
                edge_type=self._edge_type,
                columns=columns,
                bytes_read=parsed.bytes_read,
            )
        if rows != self.num_arcs:
            raise InputError(
                f"{self.name}: found {rows} arcs, expected {self.num_arcs} as line "
                "'p' says; the file is cut short or another version"
            )
        yield from numbered_nodes(self._edge_type, 1, self.num_nodes)


def problem_of(file: InputFile) -> tuple[int, int, int]:
    """Return nodes, arcs, and the number of lines before the first arc.

    Raises:
        InputError: there is no ``p`` line before the arcs.
    """
    sizes = None
    for number, line in enumerate(read_head(file, 1 << 20).split(b"\n"), start=1):
        fields = line.split()
        if fields[:1] == [b"p"]:
            counts = [as_count(field) for field in fields[2:]]
            if len(counts) != 2 or counts[0] is None or counts[1] is None:
                raise InputError(
                    f"{file.name}:{number}: found {show(line)}, expected 'p sp NODES ARCS'"
                )
            sizes = counts[0], counts[1]
            if sizes[0] > _MAX_NODES:
                raise InputError(
                    f"{file.name}:{number}: {sizes[0]} nodes, expected at most {_MAX_NODES}"
                )
        elif fields and fields[0] != b"c":
            if sizes is None:
                raise InputError(
                    f"{file.name}:{number}: found {show(line)}, expected 'p sp NODES ARCS' "
                    "before the arcs of a DIMACS file"
                )
            return *sizes, number - 1
    raise InputError(f"{file.name}: no arc in the file, expected at least one")


class SerializedSource(Source):
    """The out-edges of one of GAP's binary files.

    Raises:
        InputError: the sizes in the file do not fit its length.
    """

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        self.name = file.name
        self.total_bytes = file.num_bytes
        self._edge_type: EdgeType = options.edge_type or EDGE
        self._is_weighted = base_name(file.path)[1] == ".wsg"
        data: Any = (
            np.memmap(file.path, dtype=np.uint8, mode="r")
            if file.is_plain
            else np.frombuffer(file.read_all(), dtype=np.uint8)
        )
        if len(data) < _HEAD.size:
            raise InputError(
                f"{file.name}: {len(data)} bytes, expected a head of {_HEAD.size}"
            )
        is_stored_directed, num_entries, num_nodes = _HEAD.unpack(
            data[: _HEAD.size].tobytes()
        )
        self._is_symmetric = not is_stored_directed
        self.is_directed = is_stored_directed and not options.is_undirected
        width = 8 if self._is_weighted else 4
        size = 8 * (num_nodes + 1) + width * num_entries
        expected = _HEAD.size + size * (2 if is_stored_directed else 1)
        if data[0] > 1 or min(num_nodes, num_entries) < 0 or len(data) != expected:
            raise InputError(
                f"{file.name}: {len(data)} bytes, expected {expected} for {num_nodes} "
                f"nodes and {num_entries} entries; is it a GAP file?"
            )
        start = _HEAD.size
        self._offsets = data[start : start + 8 * (num_nodes + 1)].view("<i8")
        self._entries = data[start + 8 * (num_nodes + 1) : start + size].view("<i4")
        if self._is_weighted:
            self._entries = self._entries.reshape(-1, 2)
        self.num_nodes = num_nodes

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the nodes ``0 .. N - 1``, then the edges.

        Raises:
            InputError: offsets or neighbors do not fit.
        """
        yield from numbered_nodes(self._edge_type, 0, self.num_nodes)
        first, num_upper, num_lower = 0, 0, 0
        offsets = self._offsets
        if self.num_nodes and (offsets[0] != 0 or offsets[-1] != len(self._entries)):
            raise self._wrong_offsets()
        while first < self.num_nodes:
            stop = offsets[first] + CHUNK_EDGES
            last = int(np.searchsorted(offsets, stop, side="right")) - 1
            last = min(max(last, first + 1), self.num_nodes)
            src, dst, weight = self._rows(first, last)
            if self._is_symmetric:
                num_upper += int((dst > src).sum())
                num_lower += int((dst < src).sum())
                is_kept = dst >= src
                src, dst = src[is_kept], dst[is_kept]
                weight = None if weight is None else weight[is_kept]
            yield EdgeChunk(
                src=src,
                dst=dst,
                edge_type=self._edge_type,
                columns={} if weight is None else {"weight": weight},
                bytes_read=(last - first) * (self.total_bytes or 0) // self.num_nodes,
            )
            first = last
        if num_upper != num_lower:
            raise InputError(
                f"{self.name}: says undirected, but {num_upper} neighbors have greater "
                f"numbers and {num_lower} smaller ones"
            )

    def _rows(
        self, first: int, last: int
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32] | None]:
        """Return the edges of nodes ``first .. last``."""
        offsets = np.asarray(self._offsets[first : last + 1])
        sizes = np.diff(offsets)
        if (sizes < 0).any() or offsets[0] < 0 or offsets[-1] > len(self._entries):
            raise self._wrong_offsets()
        part = np.asarray(self._entries[offsets[0] : offsets[-1]])
        dst = (part[:, 0] if self._is_weighted else part).astype(np.int64)
        if len(dst) and (dst.min() < 0 or dst.max() >= self.num_nodes):
            raise InputError(
                f"{self.name}: a neighbor outside 0 to {self.num_nodes - 1} at nodes "
                f"{first} to {last - 1}; is it a GAP file?"
            )
        src = np.repeat(np.arange(first, last, dtype=np.int64), sizes)
        return src, dst, part[:, 1].copy() if self._is_weighted else None

    def _wrong_offsets(self) -> InputError:
        return InputError(
            f"{self.name}: offsets do not rise from 0 to {len(self._entries)}; the file is "
            "damaged"
        )


def numbered_nodes(edge_type: EdgeType, first: int, count: int) -> Iterator[NodeChunk]:
    """Yield nodes from a number on, of the type of an edge's source."""
    for begin in range(first, first + count, CHUNK_EDGES):
        end = min(begin + CHUNK_EDGES, first + count)
        ids = np.arange(begin, end, dtype=np.int64)
        yield NodeChunk(ids=ids, node_type=edge_type.src_type)


def open_gap(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one of GAP's files, or of several edge lists.

    Raises:
        InputError: the file is not what its name says, or there are several binary ones.
    """
    endings = {base_name(file.path)[1] for file in files}
    if not endings & {".gr", ".sg", ".wsg"}:
        return open_edgelist(files, options, third_is_weight=True)
    if options.columns or options.roles or options.skip:
        raise ConfigError("gap files have fixed columns; leave out --columns and --skip")
    if len(files) != 1:
        raise InputError(
            f"{files[1].name}: a second graph, expected one; ingest each by itself"
        )
    if ".gr" in endings:
        return DimacsSource(files[0], options)
    return SerializedSource(files[0], options)


formats.register("gap")(
    Format(
        open=open_gap,
        suffixes=(".wel", ".gr", ".sg", ".wsg"),
        about="the GAP benchmark's .el, .wel, .gr (DIMACS), .sg and .wsg",
    )
)
