"""Inputs of the case ``ingest``, written in chunks, with a checksum of their edges."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute
import pyarrow.csv
import pyarrow.parquet

CHUNK = 1 << 21
PREFIX = "https://example.org/node/"
IdPair = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """A written input: where it is, its edges, their checksum (see edge_checksum)."""

    path: Path
    num_edges: int
    checksum: int


def mix(values: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Scatter integers: the finaliser of splitmix64 (Steele et al., OOPSLA 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def edge_checksum(src: npt.NDArray[Any], dst: npt.NDArray[Any]) -> int:
    """Return the sum of a hash of every (src, dst) pair, mod 2**64; the order is free."""
    total = 0
    for start in range(0, len(src), CHUNK):
        left = mix(src[start : start + CHUNK].astype(np.uint64))
        right = dst[start : start + CHUNK].astype(np.uint64)
        total += int(mix(left + right).sum(dtype=np.uint64))
    return total % 2**64


def numbers_of_ids(ids: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    """Return user ids as numbers: integers as they are, our strings without prefix."""
    if not pa.types.is_integer(ids.type):
        ids = pa.compute.utf8_slice_codeunits(ids, len(PREFIX)).cast(pa.int64())
    return ids.to_numpy().astype(np.int64)


def spread_ids(numbers: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Turn small numbers into arbitrary ids in [0, 2**63)."""
    mixed = mix(numbers.astype(np.uint64) + np.uint64(1))
    return (mixed >> np.uint64(1)).astype(np.int64)


def draw_pairs(num_edges: int, num_ids: int, seed: int = 0) -> Iterator[IdPair]:
    """Draw edges between uniform numbers below ``num_ids``, chunk by chunk."""
    rng = np.random.default_rng(seed)
    for start in range(0, num_edges, CHUNK):
        size = min(CHUNK, num_edges - start)
        yield rng.integers(num_ids, size=size), rng.integers(num_ids, size=size)


def write_rmat_text(path: Path, *, scale: int, edge_factor: int = 16) -> Input:
    """Write a Kronecker graph with GAP's parameters as ``src<tab>dst`` lines."""
    from graphsys.datasets.generators import rmat
    from graphsys.storage.source import EdgeChunk

    chunks = rmat(scale, edge_factor, seed=1).chunks()
    pairs = ((chunk.src, chunk.dst) for chunk in chunks if isinstance(chunk, EdgeChunk))
    return _write_text(path, pairs, as_strings=False)


def write_strings(path: Path, *, num_edges: int) -> Input:
    """Write edges between string ids, a tenth as many as edges, as text."""
    return _write_text(path, draw_pairs(num_edges, num_edges // 10), as_strings=True)


def write_parquet_ids(path: Path, *, num_edges: int, num_ids: int) -> Input:
    """Write edges between arbitrary int64 ids."""
    schema = pa.schema([("src", pa.int64()), ("dst", pa.int64())])
    checksum = 0
    with pa.parquet.ParquetWriter(path, schema, use_dictionary=False) as writer:
        for src, dst in draw_pairs(num_edges, num_ids):
            src, dst = spread_ids(src), spread_ids(dst)
            checksum += edge_checksum(src, dst)
            writer.write_table(pa.table([src, dst], schema=schema))
    return Input(path=path, num_edges=num_edges, checksum=checksum % 2**64)


def _write_text(path: Path, pairs: Iterator[IdPair], *, as_strings: bool) -> Input:
    options = pa.csv.WriteOptions(
        include_header=False, delimiter="\t", quoting_style="none"
    )
    kind = pa.string() if as_strings else pa.int64()
    schema = pa.schema([("src", kind), ("dst", kind)])
    checksum = num_edges = 0
    with pa.csv.CSVWriter(path, schema, write_options=options) as writer:
        for src, dst in pairs:
            checksum += edge_checksum(src, dst)
            num_edges += len(src)
            columns = [pa.array(ids).cast(kind) for ids in (src, dst)]
            if as_strings:
                columns = [
                    pa.compute.binary_join_element_wise(PREFIX, column, "")
                    for column in columns
                ]
            writer.write_table(pa.table(columns, schema=schema))
    return Input(path=path, num_edges=num_edges, checksum=checksum % 2**64)
