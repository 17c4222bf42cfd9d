"""The tasks of an ingest on a cluster; each reads files of others and writes its own.

Ids are shuffled by their hash: a shard finds its distinct ids, and gives their numbers back
to where they were read. Edges, as keys of numbers, are shuffled by ranges of rows.
"""

import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.types import EdgeType
from graphsys.distributed.ingestion.plan import (
    ChunkFiles,
    IdBatch,
    IngestWork,
    NodeFiles,
    PartScan,
    WriterWork,
    Written,
)
from graphsys.distributed.shared_files import SharedFiles, Values
from graphsys.kernels.cpu import hashing
from graphsys.storage.ids.id_mapping import clean_ids
from graphsys.storage.ids.string_ids import string_buffers, used_strings
from graphsys.storage.ingest.split_column import chunks_of
from graphsys.storage.manifest import index_file
from graphsys.storage.source import EdgeChunk, NodeChunk
from graphsys.storage.write.edge_index import index_batch
from graphsys.storage.write.edge_log import EdgeLog

Ints = npt.NDArray[np.int64]


def scan(work: IngestWork, number: int) -> PartScan:
    """Read a part of the input: columns as they come, ids by shard.

    Raises:
        InputError: It is malformed.
    """
    source = work.source()
    source.keep_part(number)
    logs, further = dict[EdgeType, EdgeLog](), dict[EdgeType, str]()
    chunks: list[ChunkFiles | NodeFiles] = []
    bytes_read = 0
    with work.opened() as here:
        files, bits = here.files, work.shard_bits
        for chunk in chunks_of(source):
            name = f"piece-{number}/{len(chunks)}"
            if isinstance(chunk, NodeChunk):
                ids = _save_ids(
                    files, bits, f"{name}.ids", chunk.ids, chunk.node_type, weight=0
                )
                chunks.append(NodeFiles.save(files, chunk, name, ids))
            else:
                kind = chunk.edge_type
                if kind not in logs:
                    logs[kind] = EdgeLog(kind, here.scratch, allows_nan=source.allows_nan)
                chunks.append(_save_edges(files, bits, name, chunk, logs[kind]))
            bytes_read += chunk.bytes_read
        for place, (kind, log) in enumerate(logs.items()):
            if log.rows is not None:
                further[kind] = f"piece-{number}/further-{place}"
                made = files.path / f"new-{uuid.uuid4().hex}"
                log.rows.move(made)
                files.add(further[kind], made)
    states = [log.state() for log in logs.values()]
    return PartScan(chunks=chunks, states=states, further=further, bytes_read=bytes_read)


def _save_edges(
    files: SharedFiles, bits: int, name: str, chunk: EdgeChunk, log: EdgeLog
) -> ChunkFiles:
    """Write the columns of a chunk, but further ones, which stay in the log."""
    record, kind = log.add(chunk), chunk.edge_type
    columns = log.raw(record)
    files.save_all({f"{name}.{column}": values for column, values in columns.items()})
    src, dst = (
        _save_ids(files, bits, f"{name}.{end}", ids, node_type, weight=1)
        for end, ids, node_type in (
            ("src", chunk.src, kind.src_type),
            ("dst", chunk.dst, kind.dst_type),
        )
    )
    return ChunkFiles(
        name=name,
        edge_type=kind,
        split=chunk.split,
        length=record.length,
        columns=tuple(columns),
        first_row=record.first_row,
        src=src,
        dst=dst,
    )


def _save_ids(
    files: SharedFiles, bits: int, name: str, ids: Any, node_type: str, *, weight: int
) -> IdBatch:
    """Write the distinct ids by shard, and where each row's is among them.

    Args:
        files: Where.
        bits: Ids are in two to this power shards.
        name: What the files' names begin with.
        ids: The ids.
        node_type: Their type.
        weight: 1 for ends of edges, 0 for tables of nodes.
    """
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
    shards = (hashes >> np.uint64(64 - bits)) if bits else np.zeros_like(hashes)
    order = np.argsort(shards, kind="stable").astype(np.uint32)
    place = np.empty(len(order), dtype=np.uint32)
    place[order] = np.arange(len(order), dtype=np.uint32)
    is_text = not isinstance(values, np.ndarray)
    sizes = np.bincount(shards.astype(np.int64), minlength=1 << bits)
    starts = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    arrays: dict[str, Values] = {
        "counts": (weight * counts[order]).astype(np.uint32),
        "order": order,
        "rows": place[rows],
    }
    if is_text:
        files.save(f"{name}.values", values.take(pa.array(order)), starts.tolist())
    else:
        arrays["values"] = values[order]
    files.save_all({f"{name}.{what}": array for what, array in arrays.items()})
    return IdBatch(name=name, node_type=node_type, is_text=is_text, starts=starts)


def shard_file(node_type: int, shard: int, what: str) -> str:
    """Return the name of a shard's file; the type is given by its place."""
    return f"type-{node_type}/{shard}.{what}"


def find_distinct(
    work: IngestWork,
    node_type: int,
    shard: int,
    batches: Sequence[IdBatch],
    bases: Sequence[int],
) -> int:
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
    with work.opened() as here:
        files = here.files

        def read(what: str) -> list[npt.NDArray[Any]]:
            return files.parts(
                [
                    (f"{b.name}.{what}", int(b.starts[shard]), int(b.starts[shard + 1]))
                    for b in batches
                ]
            )

        counts, found = np.concatenate(read("counts")), dict[str, Values]()
        if batches[0].is_text:
            texts = files.pieces([f"{b.name}.values" for b in batches], shard)
            values = pc.dictionary_encode(pa.concat_arrays(texts))
            codes, known = values.indices.to_numpy(), values.dictionary
            orders = zip(read("order"), bases, strict=True)
            positions = [
                order.astype(np.uint64) + np.uint64(base) for order, base in orders
            ]
            firsts = np.unique(codes, return_index=True)[1]
            found["first"] = np.concatenate(positions)[firsts]
        else:
            known, codes = np.unique(np.concatenate(read("values")), return_inverse=True)
        degrees = np.zeros(len(known), dtype=np.uint32)
        np.add.at(degrees, codes, counts)
        found |= {"known": known, "degrees": degrees, "codes": codes.astype(np.uint32)}
        files.save_all(
            {shard_file(node_type, shard, what): array for what, array in found.items()}
        )
        return len(known)


def number_ids(work: IngestWork, node_type: int, shard: int, base: int) -> None:
    """Turn the codes of a shard's ids into numbers, in the order of the input."""
    with work.opened() as here:
        codes = here.files.load(shard_file(node_type, shard, "codes"))
        size = int(codes.max()) + 1 if len(codes) else 0
        (own,) = here.files.parts([(f"type-{node_type}/numbers", base, base + size)])
        here.files.save(shard_file(node_type, shard, "numbers"), own[codes])


def group_edges(
    work: IngestWork,
    chunk: ChunkFiles,
    places: tuple[int, int],
    begins: tuple[Ints, Ints],
    names: Sequence[str] | None,
    first_row: int,
    plan: WriterWork,
) -> None:
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
    with work.opened() as here:
        files = here.files
        src = numbers_of(files, chunk.src, places[0], begins[0])
        dst = numbers_of(files, chunk.dst, places[1], begins[1])
        columns = {}
        for name, dtype in plan.log.types.items():
            if name == "record":
                columns[name] = np.arange(first_row, first_row + chunk.length)
                continue
            values = files.load(f"{chunk.name}.{name}")
            if name == "relation":
                known = plan.log.relation_names or []
                recode = np.array([known.index(n) for n in names or ()], dtype=np.uint32)
                values = recode[values]
            columns[name] = values.astype(dtype, copy=False)
        _, grouped, starts = plan.writer(here).group(chunk.split, src, dst, columns)
        arrays = {f"{chunk.name}.grouped-{name}": each for name, each in grouped.items()}
        files.save_all({**arrays, f"{chunk.name}.grouped": starts})


def numbers_of(
    files: SharedFiles, ids: IdBatch, node_type: int, begins: Ints
) -> npt.NDArray[Any]:
    """Return the numbers of a batch's rows.

    Args:
        files: Files between tasks.
        ids: The batch.
        node_type: Place of its type.
        begins: Where each shard's numbers for this batch begin ``[S]``.
    """
    sizes = np.diff(ids.starts).tolist()
    parts = files.parts(
        [
            (shard_file(node_type, shard, "numbers"), begin, begin + size)
            for shard, (begin, size) in enumerate(zip(begins.tolist(), sizes, strict=True))
            if size
        ]
    )
    rows = files.load(f"{ids.name}.rows")
    numbers: npt.NDArray[Any] = np.concatenate(parts)[rows] if parts else rows
    return numbers


def write_part(
    work: IngestWork, plan: WriterWork, split: str, part: int, chunks: Sequence[ChunkFiles]
) -> Written:
    """Sort the edges that start in a partition, and write their buckets and index."""
    with work.opened() as here:
        made, files = plan.writer(here), here.files
        low, high = made.ranges(split, part)
        carried = ["key", *(name for name in plan.log.types if name != "relation")]
        for chunk in chunks:
            starts = files.load(f"{chunk.name}.grouped")
            begin, end = int(starts[low]), int(starts[high])
            names = [f"{chunk.name}.grouped-{name}" for name in carried]
            found = files.parts([(name, begin, end) for name in names])
            columns = dict(zip(carried, map(np.array, found), strict=True))
            made.append(split, columns, np.clip(starts, begin, end) - begin)
            files.let_go([f"{chunk.name}.grouped"])
        shape = len(plan.src.offsets) - 1, len(plan.dst.offsets) - 1
        made.counts[split] = np.zeros(shape, dtype=np.int64)
        made.write_part(split, part, 0)
        return Written(
            files=here.graph.files,
            counts=made.counts[split][part],
            duplicates=made.duplicates,
            self_loops=made.self_loops,
            fingerprints=made.fingerprints,
        )


def place_edges(work: IngestWork, plan: WriterWork, part: int, first_edge: int) -> Written:
    """Write a partition's outgoing index again, whose positions of edges began at 0.

    Args:
        work: The ingest.
        plan: What writes the edge type, which has further columns.
        part: The partition.
        first_edge: Edges that start in partitions before it.
    """
    path = index_file(work.generation, plan.name, "out", part)
    with work.opened() as here, pa.memory_map(str(here.graph.file(path))) as stream:
        batch = pa.ipc.open_file(stream).get_batch(0)
        names = batch.schema.names
        values = [column.flatten().to_numpy() for column in batch.columns]
        columns = dict(zip(names, values, strict=True))
        counts = np.diff(columns.pop("indptr").astype(np.int64))
        edge = columns["edge"].astype(np.int64)
        # the first is looked for, as the task may run again after it has written
        columns["edge"] = edge + (first_edge - edge.min(initial=first_edge))
        neighbor = columns.pop("indices")
        here.graph.add_file(path, index_batch(counts, neighbor, columns, here.scratch))
        return Written(files=here.graph.files)


def write_incoming(work: IngestWork, plan: WriterWork, part: int, counts: Ints) -> Written:
    """Write the index of the other direction of a partition from the buckets."""
    with work.opened() as here:
        made = plan.writer(here)
        made.counts[made.indexed_split] = counts
        made.write_incoming(part)
        return Written(files=here.graph.files)
