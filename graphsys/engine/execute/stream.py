"""Rows streamed from a store's mapped index files, partition by partition.

Nothing is copied: a block is a view of the file, cut into pieces of some megabytes. A
thread reads the pieces to come while kernels run over the present one, and the pages of a
piece are given back behind it, so that a pass over any number of edges holds a few pieces.
Blocks none of whose edges come from an active partition are not read at all.

Where even the nodes' states do not fit in memory (:class:`PagedBlocks`), the rows of a
partition are visited once for every partition that its neighbors are in, so that random
access stays inside two partitions (X. Zhu et al., "GridGraph", USENIX ATC 2015).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from graphsys.core.events import count as emit_count
from graphsys.core.events import span
from graphsys.core.memory import MappedArrays
from graphsys.core.types import number_dtype
from graphsys.engine.execute.frontier import Frontier
from graphsys.engine.execute.rows import RowBlock
from graphsys.engine.topology import Topology
from graphsys.engine.united_rows import Direction, IndexBlock
from graphsys.graph.csr import read_only
from graphsys.kernels.cpu.rows.csr import append_rows
from graphsys.kernels.cpu.rows.row_filter import cut_rows
from graphsys.storage.reader import GraphReader

PIECE_BYTES = 32 << 20
"""How much is read ahead at a time; two pieces are ahead of the one in use."""
_AHEAD = 2
_SCATTERED_SHARE = 64
"""A frontier of fewer than one of so many rows of a block reads single pages."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Part:
    """A partition's rows of one edge type and side, mapped.

    Attributes:
        rows: All of them.
        sources: For every partition that neighbors are in: its first number, its end, and
            the number of entries, at most.
    """

    rows: RowBlock
    sources: tuple[tuple[int, int, int], ...]
    pieces: list[RowBlock] = field(default_factory=list)


class StreamedBlocks:
    """Rows of a store that stay in its files.

    Args:
        topology: The graph; must have a store behind it.
        columns: Dtypes of the edges' columns that will be read, by name.
        piece_bytes: Bytes read ahead at a time; :data:`PIECE_BYTES` by default.
        keeps_bytes: How much stays mapped from pass to pass, where the budget has room
            beside the states; the pages of all other pieces are given back behind them.
    """

    def __init__(
        self,
        topology: Topology,
        columns: Mapping[str, np.dtype[Any]],
        *,
        piece_bytes: int | None = None,
        keeps_bytes: float = 0,
    ) -> None:
        self.topology = topology
        self._columns = dict(columns)
        self._piece_bytes = piece_bytes or PIECE_BYTES
        self._room = keeps_bytes
        self._kept: set[tuple[Any, ...]] = set()
        self._parts: dict[Direction, list[Part]] = {}
        self._mapped = MappedArrays()
        self._scattered: dict[tuple[Any, ...], RowBlock] = {}
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="graphsys-read-ahead")

    def close(self) -> None:
        """End the thread that reads ahead and take back all advice."""
        self._reader.shutdown(wait=True, cancel_futures=True)
        for parts in self._parts.values():
            for array in _arrays_of([part.rows for part in parts]):
                self._mapped.expect(array, "anyhow")

    # ---- the protocol of engine.rows

    def num_blocks(self, direction: Direction) -> int:
        """Return the number of pieces."""
        return sum(len(self._pieces(part)) for part in self.parts(direction))

    def are_whole(self, direction: Direction) -> bool:
        """Return whether every node has its row in exactly one block."""
        spans = sorted(
            (part.rows.row_base, part.rows.row_base + part.rows.num_rows)
            for part in self.parts(direction)
            if part.rows.num_rows
        )
        ends = [0, *(end for _, end in spans)]
        begins = [*(begin for begin, _ in spans), self.topology.num_nodes]
        return ends == begins

    def blocks(
        self, direction: Direction, senders: Frontier | None = None
    ) -> Iterator[RowBlock]:
        """Yield the pieces of a direction, without those that hear nothing."""
        pieces = [
            piece
            for part in self.parts(direction)
            if senders is None or self._hears(part, senders)
            for piece in self._pieces(part)
        ]
        yield from self._streamed([(piece,) for piece in pieces], _only)

    def holding(
        self, direction: Direction, nodes: npt.NDArray[Any]
    ) -> Iterator[tuple[RowBlock, npt.NDArray[Any]]]:
        """Yield the partitions that hold rows of some nodes; only those rows are read."""
        nodes = np.sort(nodes)
        for part in self.parts(direction):
            rows = part.rows
            ends = (rows.row_base, rows.row_base + rows.num_rows)
            low, high = np.searchsorted(nodes, ends)
            if low < high:
                if (high - low) * _SCATTERED_SHARE < rows.num_rows:
                    self._expect_scattered(rows)
                yield rows, nodes[low:high]

    def groups(
        self, directions: Sequence[Direction]
    ) -> Iterator[tuple[RowBlock, RowBlock | None]]:
        """Yield blocks so that all of a node's entries lie in one block or pair."""
        spans: dict[tuple[int, int], list[RowBlock]] = {}
        for direction in directions:
            for part in self.parts(direction):
                rows = part.rows
                spans.setdefault((rows.row_base, rows.num_rows), []).append(rows)
        pieces: list[tuple[RowBlock, ...]] = [
            tuple(slice_rows(rows, low, high) for rows in blocks)
            for blocks in spans.values()
            for low, high in self._cuts(blocks)
        ]
        numbers = number_dtype(self.topology.num_nodes)
        yield from self._streamed(pieces, partial(united, numbers=numbers))

    # ---- what there is

    def parts(self, direction: Direction) -> list[Part]:
        """Return the partitions' rows of a direction."""
        if not self.topology.is_directed:
            direction = "out"
        if direction not in self._parts:
            graph = self.topology.graph
            assert graph is not None  # budget.choose streams stores only
            blocks = self._blocks(direction)
            parts = [
                Part(self._rows_of(block, direction, k), self._sources(graph, block))
                for k, block in enumerate(blocks)
            ]
            self._parts[direction] = parts
            arrays = list(_arrays_of([part.rows for part in parts]))
            self._mapped.add(arrays)
            for array in arrays:
                self._mapped.expect(array, "in sequence")
        return self._parts[direction]

    def _blocks(self, direction: Direction) -> list[IndexBlock]:
        return self.topology.blocks(direction)

    def _rows_of(self, block: IndexBlock, direction: Direction, place: int) -> RowBlock:
        index = block.index
        columns = {}
        for name, dtype in self._columns.items():
            own = getattr(index, name)
            if own is None:  # an edge type without the column, beside one that has it
                value = dtype.type(1 if name == "weight" else 0)
                own = np.broadcast_to(value, len(index.indices))
            columns[name] = own
        return RowBlock(
            key=(direction, "part", place),
            direction=direction,
            row_base=block.row_base,
            num_rows=len(index.indptr) - 1,
            column_base=block.column_base,
            begins=index.indptr[:-1],
            ends=index.indptr[1:],
            indices=index.indices,
            columns=columns,
        )

    def _sources(
        self, graph: GraphReader, block: IndexBlock
    ) -> tuple[tuple[int, int, int], ...]:
        kind = block.edge_type
        counts = graph.bucket_counts(kind)
        other = kind.dst_type if block.side == "out" else kind.src_type
        if not graph.is_directed_type(kind) and kind.src_type == kind.dst_type:
            counts = counts + counts.T
        found = counts[block.part] if block.side == "out" else counts[:, block.part]
        bounds = graph.offsets(other) + self.topology.numbers.base(other)
        return tuple(
            (int(bounds[k]), int(bounds[k + 1]), int(count))
            for k, count in enumerate(found)
            if count
        )

    def _pieces(self, part: Part) -> list[RowBlock]:
        if not part.pieces and part.rows.num_rows:
            cuts = self._cuts([part.rows])
            part.pieces.extend(slice_rows(part.rows, low, high) for low, high in cuts)
        return part.pieces

    def _cuts(self, blocks: Sequence[RowBlock]) -> list[tuple[int, int]]:
        """Cut equal spans of rows so that the largest block's pieces have the size."""
        largest = max(blocks, key=lambda rows: len(rows.indices))
        width = largest.indices.itemsize
        width += sum(column.itemsize for column in largest.columns.values())
        size = max(self._piece_bytes // width, 1)
        wanted = np.arange(size, len(largest.indices), size)
        inner = np.searchsorted(largest.begins, wanted)
        # chunks of different pieces must not share a word of a bitmap
        inner -= (inner + largest.row_base) % 64
        bounds = np.unique(np.clip([0, *inner, largest.num_rows], 0, largest.num_rows))
        return list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))

    def _hears(self, part: Part, senders: Frontier) -> bool:
        if senders.everyone:
            return bool(part.sources)
        words = senders.words()
        return any(words[low // 64 : -(-high // 64)].any() for low, high, _ in part.sources)

    # ---- reading ahead

    def _streamed(
        self,
        pieces: Sequence[tuple[RowBlock, ...]],
        made: Callable[[Sequence[RowBlock]], Item],
    ) -> Iterator[Item]:
        """Yield what is made of each tuple of pieces, which has been read by then."""
        self._expect_passes()
        fetched: list[Future[None] | None] = []
        for k, blocks in enumerate(pieces):
            # A few pieces ahead and no more: what is read too early is given up before it
            # is used.
            for place in range(len(fetched), min(k + 1 + _AHEAD, len(pieces))):
                fetched.append(self._read_ahead(pieces[place]))
            if (reading := fetched[k]) is not None:
                with span("wait"):
                    reading.result()
            yield made(blocks)
            self._leave(blocks)

    def _read_ahead(self, blocks: Sequence[RowBlock]) -> Future[None] | None:
        """Have blocks read by the other thread, unless they stayed mapped."""
        if all(rows.key in self._kept for rows in blocks):
            return None
        return self._reader.submit(self._fetch, blocks)

    def _leave(self, blocks: Sequence[RowBlock]) -> None:
        """Give the pages of blocks back, unless there is room for them."""
        for rows in blocks:
            if rows.key in self._kept:
                continue
            arrays = list(_arrays_of([rows]))
            # The first pieces that fit stay: taking others in turn would miss them all each
            # pass.
            size = sum(array.nbytes for array in arrays)
            if size <= self._room:
                self._room -= size
                self._kept.add(rows.key)
                continue
            for array in arrays:
                self._mapped.give_back(array)

    def _fetch(self, blocks: Sequence[RowBlock]) -> None:
        arrays = list(_arrays_of(blocks))
        with span("read"):
            for array in arrays:
                self._mapped.fetch(array)
        emit_count("bytes_read", sum(array.nbytes for array in arrays))

    def _expect_scattered(self, rows: RowBlock) -> None:
        """Have single pages read where rows are visited here and there."""
        if rows.key not in self._scattered:
            self._scattered[rows.key] = rows
            for array in _arrays_of([rows]):
                self._mapped.expect(array, "scattered")

    def _expect_passes(self) -> None:
        for rows in self._scattered.values():
            for array in _arrays_of([rows]):
                self._mapped.expect(array, "in sequence")
        self._scattered.clear()


class PagedBlocks(StreamedBlocks):
    """Rows visited once for every partition that their neighbors are in.

    Each visit copies the entries concerned, one bucket of the store. For states that lie
    in files: what a kernel reads and writes at random stays in two partitions.
    """

    def are_whole(self, direction: Direction) -> bool:
        """Return whether no row is cut, with one partition."""
        parts = self.parts(direction)
        return all(len(part.sources) < 2 for part in parts) and super().are_whole(direction)

    def blocks(
        self, direction: Direction, senders: Frontier | None = None
    ) -> Iterator[RowBlock]:
        """Yield the rows' entries by partition of the rows, then of the neighbors."""
        if self.are_whole(direction):
            yield from super().blocks(direction, senders)
            return
        for part in self.parts(direction):
            if senders is None or self._hears(part, senders):
                yield from self._buckets(part)

    def _buckets(self, part: Part) -> Iterator[RowBlock]:
        rows = part.rows
        self._expect_passes()
        cursor = rows.begins.astype(np.int64)
        room = max((count for _, _, count in part.sources), default=0)
        offset = np.uint32 if room < 2**32 else np.int64
        indptr = np.empty(rows.num_rows + 1, dtype=offset)
        begins, ends = read_only(indptr)[:-1], read_only(indptr)[1:]
        indices = np.empty(room, dtype=rows.indices.dtype)
        places = np.empty(room if rows.columns else 0, dtype=np.int64)
        for _, end, _ in part.sources:
            end -= rows.column_base
            count = cut_rows(rows.ends, rows.indices, cursor, end, indptr, indices, places)
            columns = {n: read_only(c[places[:count]]) for n, c in rows.columns.items()}
            yield replace(
                rows,
                key=("cut", rows.direction, offset),
                begins=begins,
                ends=ends,
                indices=read_only(indices)[:count],
                columns=columns,
            )
        self._leave([rows])


def _only(blocks: Sequence[RowBlock]) -> RowBlock:
    return blocks[0]


def slice_rows(rows: RowBlock, low: int, high: int) -> RowBlock:
    """Return some of a block's rows, as views."""
    return replace(
        rows,
        key=(*rows.key, low),
        row_base=rows.row_base + low,
        num_rows=high - low,
        begins=rows.begins[low:high],
        ends=rows.ends[low:high],
    )


def united(
    blocks: Sequence[RowBlock], numbers: np.dtype[Any]
) -> tuple[RowBlock, RowBlock | None]:
    """Return blocks over the same rows as one, or as a pair of one numbering.

    Args:
        blocks: Blocks over the same rows.
        numbers: Dtype that holds the number of any node.
    """
    first = blocks[0]
    if len(blocks) == 1:
        return first, None
    if len(blocks) == 2 and blocks[1].column_base == first.column_base:
        return first, blocks[1]
    lengths = [np.subtract(b.ends, b.begins, dtype=np.int64) for b in blocks]
    indptr = np.zeros(first.num_rows + 1, dtype=np.int64)
    np.cumsum(sum(lengths[1:], start=lengths[0]), out=indptr[1:])
    cursor = indptr[:-1].copy()
    indices = np.empty(int(indptr[-1]), dtype=numbers)
    for rows in blocks:
        low, high = rows.span
        places = np.empty(high - low, dtype=np.int64)
        offsets = np.append(rows.begins.astype(np.int64), high) - low
        append_rows(offsets, 0, cursor, places)
        indices[places] = rows.indices[low:high] + numbers.type(rows.column_base)
    ways = {rows.direction for rows in blocks}
    key, indptr = ("united", *sorted(map(str, ways))), read_only(indptr)
    return replace(
        first,
        key=key,
        direction=ways.pop() if len(ways) == 1 else None,
        column_base=0,
        begins=indptr[:-1],
        ends=indptr[1:],
        indices=read_only(indices),
        columns={},
    ), None


def _arrays_of(blocks: Sequence[RowBlock]) -> Iterator[npt.NDArray[Any]]:
    """Yield what blocks occupy of their files."""
    for rows in blocks:
        low, high = rows.span
        yield rows.begins  # and so, but for the last number, the ends
        yield rows.indices[low:high]
        for column in rows.columns.values():
            if column.strides != (0,):
                yield column[low:high]
