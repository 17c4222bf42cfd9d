"""The tasks of an ingest on a cluster; each reads files of others and writes its own.

Ids are shuffled by their hash: a shard finds its distinct ids, and gives their numbers back
to where they were read. Edges, as keys of numbers, are shuffled by ranges of rows.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.types import EdgeType
from graphsys.distributed.ingesting.files import load, own_scratch, save
from graphsys.distributed.ingesting.plan import (
    ChunkFiles,
    IdBatch,
    IngestWork,
    NodeFiles,
    Piece,
    WriterWork,
    Written,
)
from graphsys.kernels.cpu import hashing
from graphsys.storage.ids.id_mapping import clean_ids
from graphsys.storage.ids.string_ids import string_buffers, used_strings
from graphsys.storage.manifest import index_file
from graphsys.storage.source import EdgeChunk, NodeChunk
from graphsys.storage.write.edge_index import index_batch
from graphsys.storage.write.edge_log import EdgeLog

Ints = npt.NDArray[np.int64]


def scan(work: IngestWork, number: int) -> Piece:
    """Read a part of the input: columns as they come, ids by shard.

    Raises:
        InputError: It is malformed.
    """
    source = work.source()
    source.keep_part(number)
    folder = work.folder / f"piece-{number}"
    logs, further = dict[EdgeType, EdgeLog](), dict[EdgeType, Path]()
    chunks: list[ChunkFiles | NodeFiles] = []
    bytes_read = 0
    with own_scratch(work.folder, work.memory_bytes) as scratch:
        for chunk in source.chunks():
            path = folder / str(len(chunks))
            if isinstance(chunk, NodeChunk):
                ids = _save_ids(
                    work, Path(f"{path}.ids"), chunk.ids, chunk.node_type, weight=0
                )
                chunks.append(NodeFiles.save(chunk, path, ids))
            else:
                kind = chunk.edge_type
                if kind not in logs:
                    logs[kind] = EdgeLog(kind, scratch, allows_nan=source.allows_nan)
                chunks.append(_save_edges(work, path, chunk, logs[kind]))
            bytes_read += chunk.bytes_read
        for place, (kind, log) in enumerate(logs.items()):
            if log.rows is not None:
                further[kind] = folder / f"further-{place}"
                log.rows.move(further[kind])
    states = [log.state() for log in logs.values()]
    return Piece(chunks=chunks, states=states, further=further, bytes_read=bytes_read)


def _save_edges(work: IngestWork, path: Path, chunk: EdgeChunk, log: EdgeLog) -> ChunkFiles:
    """Write the columns of a chunk, but further ones, which stay in the log."""
    record, kind = log.add(chunk), chunk.edge_type
    columns = log.raw(record)
    for name, values in columns.items():
        save(Path(f"{path}.{name}"), values)
    return ChunkFiles(
        path=path, edge_type=kind, split=chunk.split, length=record.length,
        columns=tuple(columns), first_row=record.first_row,
        src=_save_ids(work, Path(f"{path}.src"), chunk.src, kind.src_type, weight=1),
        dst=_save_ids(work, Path(f"{path}.dst"), chunk.dst, kind.dst_type, weight=1),
    )  # fmt: skip


def _save_ids(
    work: IngestWork, path: Path, ids: Any, node_type: str, *, weight: int
) -> IdBatch:
    """Write the distinct ids by shard, and where each row's is among them.

    Args:
        work: The ingest.
        path: Where, less what follows in the files' names.
        ids: The ids.
        node_type: Their type.
        weight: 1 for ends of edges, 0 for tables of nodes.
    """
    shard_bits = work.shard_bits
    clean = clean_ids(ids, node_type)
    values: Any
    rows: npt.NDArray[Any]
    counts: npt.NDArray[Any]
    if isinstance(clean, np.ndarray):
        values, rows, counts = np.unique(
            clean.astype(np.int64), return_inverse=True, return_counts=True
        )
        hashes = np.empty(len(values), dtype=np.uint64)
        hashing.hash_integers(values, hashes)
    else:
        rows, counts, values = used_strings(clean)
        hashes = np.empty(len(values), dtype=np.uint64)
        hashing.hash_strings(*string_buffers(values), hashes)
    shards = (hashes >> np.uint64(64 - shard_bits)) if shard_bits else np.zeros_like(hashes)
    order = np.argsort(shards, kind="stable").astype(np.uint32)
    place = np.empty(len(order), dtype=np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    is_text = not isinstance(values, np.ndarray)
    save(Path(f"{path}.values"), values.take(pa.array(order)) if is_text else values[order])
    save(Path(f"{path}.counts"), (weight * counts[order]).astype(np.uint32))
    save(Path(f"{path}.order"), order)
    save(Path(f"{path}.rows"), place[rows])
    sizes = np.bincount(shards.astype(np.int64), minlength=1 << shard_bits)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return IdBatch(path=path, node_type=node_type, is_text=is_text, starts=starts)


def shard_path(work: IngestWork, node_type: int, shard: int, what: str) -> Path:
    """Return where a shard's file is; the type is given by its place."""
    return work.folder / f"type-{node_type}" / f"{shard}.{what}"


def find_distinct(
    work: IngestWork, node_type: int, shard: int, batches: Sequence[IdBatch],
    bases: Sequence[int],
) -> int:  # fmt: skip
    """Find the distinct ids of a shard, how often edges have them, where they are first.

    Args:
        work: The ingest.
        node_type: Place of the type.
        shard: The shard.
        batches: Batches of the type in the order of the input.
        bases: Ids of the batches before each.

    Returns:
        How many there are.
    """
    own = [slice(int(b.starts[shard]), int(b.starts[shard + 1])) for b in batches]

    def read(what: str, *, is_arrow: bool = False) -> list[Any]:
        return [
            load(Path(f"{b.path}.{what}"), is_arrow=is_arrow)[some]
            for b, some in zip(batches, own, strict=True)
        ]

    counts = np.concatenate(read("counts"))
    save_own: Callable[[str, Any], None] = lambda what, values: save(  # noqa: E731
        shard_path(work, node_type, shard, what), values
    )
    if batches[0].is_text:
        values = pc.dictionary_encode(pa.concat_arrays(read("values", is_arrow=True)))
        codes, known = values.indices.to_numpy(), values.dictionary
        orders = zip(read("order"), bases, strict=True)
        positions = [order.astype(np.uint64) + np.uint64(base) for order, base in orders]
        firsts = np.unique(codes, return_index=True)[1]
        save_own("first", np.concatenate(positions)[firsts])
    else:
        known, codes = np.unique(np.concatenate(read("values")), return_inverse=True)
    degrees = np.zeros(len(known), dtype=np.uint32)
    np.add.at(degrees, codes, counts)
    save_own("known", known)
    save_own("degrees", degrees)
    save_own("codes", codes.astype(np.uint32))
    return len(known)


def number_ids(work: IngestWork, node_type: int, shard: int, base: int) -> None:
    """Turn the codes of a shard's ids into numbers, in the order of the input."""
    codes = load(shard_path(work, node_type, shard, "codes"))
    numbers = load(work.folder / f"type-{node_type}" / "numbers")
    size = int(codes.max()) + 1 if len(codes) else 0
    save(shard_path(work, node_type, shard, "numbers"), numbers[base : base + size][codes])


def group_edges(
    work: IngestWork, chunk: ChunkFiles, places: tuple[int, int],
    begins: tuple[Ints, Ints], names: Sequence[str] | None, first_row: int,
    plan: WriterWork,
) -> None:  # fmt: skip
    """Give the edges of a chunk their numbers, and group them by ranges of rows.

    Args:
        work: The ingest.
        chunk: The chunk.
        places: Places of the types of sources and destinations.
        begins: Where each shard's numbers for this chunk begin, for both ends ``[S]``.
        names: Relations as codes of this file have them, or None.
        first_row: The chunk's first row among all of its type, where those have further
            columns.
        plan: What writes the edge type.
    """
    src = numbers_of(work, chunk.src, places[0], begins[0])
    dst = numbers_of(work, chunk.dst, places[1], begins[1])
    columns = {}
    for name, dtype in plan.log.types.items():
        if name == "record":
            columns[name] = np.arange(first_row, first_row + chunk.length)
            continue
        values = load(Path(f"{chunk.path}.{name}"))
        if name == "relation":
            known = plan.log.relation_names or []
            recode = np.array([known.index(n) for n in names or ()], dtype=np.uint32)
            values = recode[values]
        columns[name] = values.astype(dtype, copy=False)
    with own_scratch(work.folder, work.memory_bytes) as scratch:
        made = plan.writer(work.task_files(), scratch)
        _, grouped, starts = made.group(chunk.split, src, dst, columns)
    for name, values in grouped.items():
        save(Path(f"{chunk.path}.grouped-{name}"), values)
    save(Path(f"{chunk.path}.grouped"), starts)


def numbers_of(
    work: IngestWork, ids: IdBatch, node_type: int, begins: Ints
) -> npt.NDArray[Any]:
    """Return the numbers of a batch's rows.

    Args:
        work: The ingest.
        ids: The batch.
        node_type: Place of its type.
        begins: Where each shard's numbers for this batch begin ``[S]``.
    """
    parts = [
        load(shard_path(work, node_type, shard, "numbers"))[begin : begin + size]
        for shard, (begin, size) in enumerate(
            zip(begins.tolist(), np.diff(ids.starts).tolist(), strict=True)
        )
        if size
    ]
    rows = load(Path(f"{ids.path}.rows"))
    numbers: npt.NDArray[Any] = np.concatenate(parts)[rows] if parts else rows
    return numbers


def write_part(
    work: IngestWork, plan: WriterWork, split: str, part: int, chunks: Sequence[ChunkFiles]
) -> Written:
    """Sort the edges that start in a partition, and write their buckets and index."""
    files = work.task_files()
    with own_scratch(work.folder, work.memory_bytes) as scratch:
        made = plan.writer(files, scratch)
        low, high = made.ranges(split, part)
        carried = ["key", *(name for name in plan.log.types if name != "relation")]
        for chunk in chunks:
            starts = load(Path(f"{chunk.path}.grouped"))
            own = slice(int(starts[low]), int(starts[high]))
            columns = {
                name: np.array(load(Path(f"{chunk.path}.grouped-{name}"))[own])
                for name in carried
            }
            made.append(split, columns, np.clip(starts, own.start, own.stop) - own.start)
        shape = len(plan.src.offsets) - 1, len(plan.dst.offsets) - 1
        made.counts[split] = np.zeros(shape, dtype=np.int64)
        made.write_part(split, part, 0)
        return Written(
            files=files.files, counts=made.counts[split][part],
            duplicates=made.duplicates, self_loops=made.self_loops,
            fingerprints=made.fingerprints,
        )  # fmt: skip


def place_edges(work: IngestWork, plan: WriterWork, part: int, first_edge: int) -> Written:
    """Write a partition's outgoing index again, whose positions of edges began at 0.

    Args:
        work: The ingest.
        plan: What writes the edge type, which has further columns.
        part: The partition.
        first_edge: Edges that start in partitions before it.
    """
    files = work.task_files()
    path = index_file(work.generation, plan.name, "out", part)
    with (
        own_scratch(work.folder, work.memory_bytes) as scratch,
        pa.memory_map(str(work.out / path)) as stream,
    ):
        batch = pa.ipc.open_file(stream).get_batch(0)
        names = batch.schema.names
        values = [column.flatten().to_numpy() for column in batch.columns]
        columns = dict(zip(names, values, strict=True))
        counts = np.diff(columns.pop("indptr").astype(np.int64))
        edge = columns["edge"].astype(np.int64)
        # the first is looked for, as the task may run again after it has written
        columns["edge"] = edge + (first_edge - edge.min(initial=first_edge))
        neighbor = columns.pop("indices")
        files.add_file(path, index_batch(counts, neighbor, columns, scratch))
    return Written(files=files.files)


def write_incoming(work: IngestWork, plan: WriterWork, part: int, counts: Ints) -> Written:
    """Write the index of the other direction of a partition from the buckets."""
    files = work.task_files()
    with own_scratch(work.folder, work.memory_bytes) as scratch:
        made = plan.writer(files, scratch)
        made.counts[made.indexed_split] = counts
        made.write_incoming(part)
    return Written(files=files.files)
