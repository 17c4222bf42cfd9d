"""Case ``ingest``: text, Parquet and string ids become a store with both indexes.

Every output, ours and the peers', is read back once and must hold the generated edges: the
sum over all edges of a hash of the two user ids is compared with the generator's.

The peers renumber with joins and write sorted edges: less than a store (no index, no
partitions, no checksums), but the nearest that they have. Parsing alone is shown as a
reference, not as a peer.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from bench.cases.ingest_inputs import (
    Input,
    write_parquet_ids,
    write_rmat_text,
    write_strings,
)
from bench.cases.ingest_peers import checksum_of_tables
from bench.child import in_child
from bench.harness import OURS, Contender, Outcome, Work, WrongResultError
from bench.limits import Limits

PEERS = {"polars": "polars", "DuckDB": "duckdb"}
MODULE = "bench.cases.ingest"
PEER_MODULE = "bench.cases.ingest_peers"
ALLOWANCE = 512 << 20


def works(
    *, quick: bool, folder: Path, limits: Limits, missing: list[str]
) -> Iterator[Work]:
    """Yield the works; the input of each is deleted after it."""
    small = 20 if quick else 1

    def make(name: str, source: Input, memory: str) -> Iterator[Work]:
        yield make_work(name, source, memory, folder, limits, missing)

    text = write_rmat_text(folder / "kron.tsv", scale=18 if quick else 22)
    yield from make(f"text, kron{18 if quick else 22}", text, "4GB")
    text.path.unlink()
    for num_ids in (2_000_000 // small, 50_000_000 // small):
        source = write_parquet_ids(
            folder / "ids.parquet", num_edges=100_000_000 // small, num_ids=num_ids
        )
        name = f"int64 ids from Parquet, {num_ids / 1e6:g}M distinct"
        yield from make(name, source, "4GB")
        if num_ids > 2_000_000 and not quick:
            yield from make(f"{name}, 1GB budget", source, "1GB")
        source.path.unlink()
    strings = write_strings(folder / "strings.tsv", num_edges=10_000_000 // small)
    yield from make("string ids from text", strings, "4GB")


def make_work(
    name: str, source: Input, memory: str, folder: Path, limits: Limits, missing: list[str]
) -> Work:
    """Return one work: ours, the peers that are there, parsing alone."""
    store = folder / "store"

    def shared(system: str) -> dict[str, Any]:
        return {"path": str(source.path), "out": str(folder / system), "memory": memory}

    contenders = [
        Contender(
            system=OURS,
            run=in_child(
                f"{MODULE}:ingest_ours", path=source.path, out=store, memory=memory
            ),
        )
    ]
    contenders += [
        Contender(
            system=f"{peer}, joins",
            run=in_child(f"{PEER_MODULE}:{target}", **shared(target)),
        )
        for peer, target in (("polars", "ingest_polars"), ("DuckDB", "ingest_duckdb"))
        if peer not in missing
    ]
    if source.path.suffix == ".tsv":
        contenders.append(
            Contender(
                system="pyarrow.csv, parse only",
                run=in_child(f"{MODULE}:parse_pyarrow", path=source.path),
                is_reference=True,
            )
        )

    def verify(results: Mapping[str, Any]) -> None:
        for system, result in results.items():
            if system.startswith(OURS):
                check_checksum(system, store_checksum(store), source)
            elif "out" in result:
                check_checksum(system, checksum_of_tables(Path(result["out"])), source)
            if result["num_edges"] != source.num_edges:
                raise WrongResultError(f"{system}: {result['num_edges']:,} edges")

    def limit_s(results: Mapping[str, Any]) -> float:
        read = source.path.stat().st_size / limits.cached_read_bandwidth
        return read + results[OURS]["store_bytes"] / limits.disk_write_bandwidth

    return Work(
        name=f"{name}, {source.num_edges / 1e6:.3g}M edges",
        amount=source.num_edges,
        unit="edges/s",
        contenders=contenders,
        verify=verify,
        limit_s=limit_s,
    )


def check_checksum(system: str, found: int, source: Input) -> None:
    """Compare what an output holds with what was generated."""
    if found != source.checksum:
        raise WrongResultError(
            f"{system}: the edges' checksum is {found:x}, the input's {source.checksum:x}"
        )


def ingest_ours(path: str, out: str, memory: str) -> Outcome:
    """Ingest into a store with both indexes; check the memory that it took."""
    from graphsys import datasets
    from graphsys.core.memory import parse_bytes

    shutil.rmtree(out, ignore_errors=True)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:  # loads, or compiles, the kernels
        datasets.ingest([cut_input(Path(path), Path(folder))], Path(folder) / "store")
    compile_s = time.perf_counter() - began
    began = time.perf_counter()
    report = datasets.ingest([Path(path)], Path(out), memory=memory)
    seconds = time.perf_counter() - began
    limit = parse_bytes(memory) + ALLOWANCE
    if report.peak_memory_bytes > limit:
        raise MemoryError(f"peak {report.peak_memory_bytes:,} B is above {limit:,} B")
    files = [file for file in Path(out).rglob("*") if file.is_file()]
    result = {
        "num_edges": report.graph.num_edges,
        "num_nodes": report.graph.num_nodes,
        "store_bytes": sum(file.stat().st_size for file in files),
    }
    return Outcome(seconds=seconds, result=result, compile_s=compile_s)


def cut_input(path: Path, folder: Path, num_edges: int = 1000) -> Path:
    """Write the first edges of an input to a file of the same kind; return its path."""
    head = folder / path.name
    if path.suffix == ".parquet":
        batches = pa.parquet.ParquetFile(path).iter_batches(num_edges)
        pa.parquet.write_table(pa.Table.from_batches([next(batches)]), head)
    else:
        with path.open("rb") as source:
            head.write_bytes(b"".join(source.readline() for _ in range(num_edges)))
    return head


def store_checksum(path: Path) -> int:
    """Return the checksum of a store's edges."""
    import graphsys
    from bench.cases.ingest_inputs import edge_checksum, numbers_of_ids

    with graphsys.open(path) as graph:
        edge_type = graph.edge_types[0]
        ids = numbers_of_ids(graph.node_ids(edge_type.src_type))
        offsets = graph.offsets(edge_type.src_type)
        total = 0
        for i in range(len(offsets) - 1):
            for j in range(len(offsets) - 1):
                bucket = graph.bucket(edge_type, i, j)
                total += edge_checksum(
                    ids[offsets[i] : offsets[i + 1]][bucket.src],
                    ids[offsets[j] : offsets[j + 1]][bucket.dst],
                )
    return total % 2**64


def parse_pyarrow(path: str) -> dict[str, Any]:
    """Parse the text into columns, and no more."""
    table = pa.csv.read_csv(
        path,
        read_options=pa.csv.ReadOptions(column_names=["src", "dst"]),
        parse_options=pa.csv.ParseOptions(delimiter="\t"),
    )
    return {"num_edges": table.num_rows}
