"""METIS graphs: a header, then one line of neighbors for each node.

Header: nodes, edges, and perhaps ``fmt`` (three digits: sizes, weights of nodes, weights
of edges) and the number of weights a node has. Ids are the numbers of the lines, from 1,
and every line is a node. Each edge is listed by both of its nodes and becomes one
undirected edge; that both list it, with the same weight, is checked by a hash. Weights of
edges may be fractions, and loops are kept, as NetworKit's files have them.

References:
    Karypis, "METIS: a software package for partitioning unstructured graphs", version
    5.1.0, 2013, section 4.1.1.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.threads import map_in_order
from graphsys.core.types import EDGE, EdgeType
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.text.blocks import Bytes, TextBlock, text_blocks
from graphsys.datasets.text.layout import (
    as_count,
    explain_rounded,
    is_integer,
    is_number,
    is_rounded,
    show,
)
from graphsys.datasets.text.lines import line_at, parse_numbers
from graphsys.datasets.text.prefetch import prefetch
from graphsys.kernels.cpu.text import adjacency as kernels
from graphsys.kernels.cpu.text.parsing import count_lines
from graphsys.storage.source import EdgeChunk, NodeChunk, Source


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a file.

    Attributes:
        num_nodes: Nodes.
        num_edges: Edges, each counted once.
        names: Columns that go before the neighbors: "size", "weight", "weight_2" ...
        is_weighted: Edges have weights.
        line: Its number.
    """

    num_nodes: int
    num_edges: int
    names: tuple[str, ...]
    is_weighted: bool
    line: int


@dataclass(slots=True)
class _Entries:
    lines: int
    raw_lines: int
    bytes_read: int
    ends: npt.NDArray[np.int64]
    neighbors: npt.NDArray[np.int64]
    weights: npt.NDArray[np.float64] | None
    leading: npt.NDArray[np.int64]
    error: str | None = None


class _Tally:
    """What both directions add up to.

    Attributes:
        counts: Entries with greater, smaller and equal neighbors.
        sums: Hashes of the first two.
    """

    def __init__(self) -> None:
        self.counts = np.zeros(3, dtype=np.int64)
        self.sums = np.zeros(2, dtype=np.uint64)

    def fold(self, entries: _Entries, first: int) -> tuple[Any, Any, Any]:
        """Return the edges of a block, each once, and their weights or None."""
        size = len(entries.neighbors)
        bits = np.empty(0, np.uint64)
        if entries.weights is not None:
            bits = entries.weights.view(np.uint64)
        src, dst = np.empty(size, np.int64), np.empty(size, np.int64)
        kept = np.empty(len(bits), np.uint64)
        count = kernels.fold_directions(
            entries.ends,
            first,
            entries.neighbors,
            bits,
            src,
            dst,
            kept,
            self.counts,
            self.sums,
        )
        weights = None if entries.weights is None else kept[:count].view(np.float64)
        return src[:count], dst[:count], weights


class MetisSource(Source):
    """One METIS graph."""

    is_directed = False

    def __init__(
        self, file: InputFile, edge_type: EdgeType, num_threads: int | None
    ) -> None:
        self.name = file.name
        self.total_bytes = file.num_bytes
        self._file = file
        self._edge_type = edge_type
        self._num_threads = num_threads
        self._header = read_header(file)

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield each block's nodes and then its edges.

        Raises:
            InputError: a line does not fit, or the counts are not those of the header.
        """
        header, tally, base = self._header, _Tally(), 0
        lines_before = header.line
        for entries in self._parse():
            if entries.error is not None:
                where = f"{self.name}:{lines_before + entries.raw_lines + 1}"
                raise InputError(f"{where}: {entries.error}")
            lines_before += entries.raw_lines
            num_rows = min(entries.lines, header.num_nodes - base)
            if len(entries.neighbors) and _last_line(entries) + base >= header.num_nodes:
                raise InputError(
                    f"{self.name}: a line of neighbors behind those of "
                    f"{header.num_nodes} nodes that line {header.line} names; correct it"
                )
            if num_rows > 0:
                yield NodeChunk(
                    ids=np.arange(base + 1, base + 1 + num_rows, dtype=np.int64),
                    node_type=self._edge_type.src_type,
                    columns={
                        name: entries.leading[:num_rows, k]
                        for k, name in enumerate(header.names)
                    },
                )
            src, dst, weights = tally.fold(entries, base + 1)
            columns = {} if weights is None else {"weight": weights}
            yield EdgeChunk(
                src=src,
                dst=dst,
                edge_type=self._edge_type,
                columns=columns,
                bytes_read=entries.bytes_read,
            )
            base += entries.lines
        self._check(base, tally)

    def _parse(self) -> Iterator[_Entries]:
        loaders: Any = text_blocks(self._file, skip=self._header.line)
        if not self._file.is_plain:
            loaders = prefetch(loaders)
        work = partial(_parse_block, self._header)
        return map_in_order(work, loaders, num_threads=self._num_threads)

    def _check(self, num_lines: int, tally: _Tally) -> None:
        header = self._header
        if num_lines < header.num_nodes:
            raise InputError(
                f"{self.name}: found the lines of {num_lines} nodes, expected "
                f"{header.num_nodes} as line {header.line} says; the file is cut short"
            )
        upper, lower, loops = (int(count) for count in tally.counts)
        if upper != lower or tally.sums[0] != tally.sums[1]:
            what = f"{upper} neighbors have greater numbers and {lower} smaller ones"
            if upper == lower:
                weights = " or weigh it alike" if header.is_weighted else ""
                what = f"the ends of an edge do not both list it{weights}"
            raise InputError(
                f"{self.name}: {what}, expected each edge at both of its nodes; for a "
                "directed graph use an edge list"
            )
        if upper + loops != header.num_edges:
            raise InputError(
                f"{self.name}: found {upper + loops} edges, expected "
                f"{header.num_edges} as line {header.line} says; correct the line"
            )


def read_header(file: InputFile) -> Header:
    """Read the first line that is no comment.

    Raises:
        InputError: it is not two to four integers.
    """
    lines = read_head(file).split(b"\n")
    number = next((k for k, line in enumerate(lines, 1) if line.strip()[:1] != b"%"), 0)
    fields = lines[number - 1].split() if number else []
    where = f"{file.name}:{number}"
    if not 2 <= len(fields) <= 4 or not all(
        it.isdigit() and is_integer(it) for it in fields
    ):
        raise InputError(
            f"{where}: found {show(lines[number - 1])}, expected a METIS header: nodes, "
            "edges, and perhaps a code of three digits and the number of weights"
        )
    code = fields[2].zfill(3) if len(fields) > 2 else b"000"
    if len(code) != 3 or set(code) - set(b"01"):
        raise InputError(
            f"{where}: found the code {show(fields[2])}, expected three digits 0 or 1 "
            "(sizes, weights of nodes, weights of edges)"
        )
    num_weights = (as_count(fields[3]) or 0) if len(fields) > 3 else 1
    if not 1 <= num_weights <= 64:
        raise InputError(f"{where}: found {num_weights} weights a node, expected 1 to 64")
    names = ("size",) * (code[0] == ord("1"))
    if code[1] == ord("1"):
        names += ("weight", *(f"weight_{k}" for k in range(2, num_weights + 1)))
    is_weighted = code[2] == ord("1")
    sizes = as_count(fields[0]) or 0, as_count(fields[1]) or 0
    return Header(*sizes, names, is_weighted, number)


def _parse_block(header: Header, load: Callable[[], TextBlock]) -> _Entries:
    block = load()
    data = block.data
    raw_lines = int(count_lines(data))
    fields = len(data) // 2 + 1  # a bound: pages that nothing fills cost nothing
    leading = np.zeros((raw_lines, len(header.names)), dtype=np.int64)
    ends, neighbors = np.empty(raw_lines, np.int64), np.empty(fields, np.int64)
    size = fields if header.is_weighted else 0
    weights = np.empty(size, dtype=np.float64)
    slow = np.empty((size, 3), dtype=np.int64)
    lines, entries, num_slow, bad = kernels.parse_neighbors(
        data,
        1,
        header.num_nodes,
        len(header.names),
        header.is_weighted,
        leading,
        ends,
        neighbors,
        weights,
        slow,
    )
    error = None
    if num_slow:
        values, wrong = parse_numbers(data, slow[:num_slow, 1], slow[:num_slow, 2])
        weights[slow[:num_slow, 0]] = values
        if wrong >= 0:
            place = int(slow[wrong, 1])
            bad = data[:place].tobytes().rfind(b"\n") + 1
    if bad >= 0:
        error = _explain(line_at(data, bad), header)
        raw_lines = _lines_before(data, bad)
    return _Entries(
        lines=int(lines),
        raw_lines=int(raw_lines),
        bytes_read=block.bytes_read,
        ends=ends[:lines],
        neighbors=neighbors[:entries],
        weights=weights[:entries] if header.is_weighted else None,
        leading=leading[:lines],
        error=error,
    )


def _last_line(entries: _Entries) -> int:
    """Return the last line of a block that has entries."""
    return int(np.searchsorted(entries.ends, len(entries.neighbors), side="left"))


def _lines_before(data: Bytes, offset: int) -> int:
    return data[:offset].tobytes().count(b"\n")


def _explain(line: bytes, header: Header) -> str:
    """Say what is wrong with a line of neighbors."""
    fields = line.split()
    front = len(header.names)
    if len(fields) < front:
        return f"found {len(fields)} columns, expected {', '.join(header.names)} first"
    ends = fields[front:]
    if header.is_weighted:
        if len(ends) % 2:
            return "found a neighbor without a weight, as fmt says that edges have weights"
        if rounded := [it for it in ends[1::2] if is_rounded(it)]:
            return explain_rounded(rounded[0])
        if wrong := [it for it in ends[1::2] if not is_number(it)]:
            return f"found {show(wrong[0])} as weight, expected a number"
        ends = ends[::2]
    for it in (*fields[:front], *ends):
        if as_count(it) is None:
            return f"found {show(it)}, expected an integer"
    wrong = [it for it in ends if not 1 <= (as_count(it) or 0) <= header.num_nodes]
    found = show(wrong[0]) if wrong else show(line)
    return f"found {found} as a neighbor, expected a number of 1 to {header.num_nodes}"


def open_metis(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one METIS graph.

    Raises:
        InputError: the header does not fit, or there are several files.
    """
    if options.columns or options.roles or options.skip or options.ids == "string":
        raise ConfigError("a METIS graph has no columns to name, lines to skip or names")
    if len(files) != 1:
        raise InputError(
            f"{files[1].name}: a second METIS graph, expected one; ingest each by itself"
        )
    return MetisSource(files[0], options.edge_type or EDGE, options.num_threads)


formats.register("metis")(
    Format(
        open=open_metis,
        suffixes=(".graph", ".metis"),
        about="METIS: a header, then the neighbors of one node a line",
    )
)
