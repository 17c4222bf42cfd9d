"""Ingest by tasks: byte for byte the store of one machine, kills, what is refused."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from graphsys import datasets
from graphsys.core.progress import SILENT
from graphsys.distributed.ingest_steps import ClusterSteps
from graphsys.distributed.ingest_tasks import IngestWork
from graphsys.storage.ingest.options import IngestOptions
from graphsys.storage.transaction import Transaction


def run_twice(
    function: Callable[..., Any], questions: Sequence[tuple[Any, ...]]
) -> list[Any]:
    """Run every task twice, as where a worker was lost after its work was done."""
    for question in questions:
        function(*question)
    return [function(*question) for question in questions]


def by_tasks(files: Sequence[Path], out: Path, bits: int = 2, **options: Any) -> None:
    """Ingest by tasks in this process."""
    names = ("format", "ids", "columns", "separator", "skip")
    reading = {name: options.pop(name) for name in names if name in options}
    reading["undirected"] = options.get("undirected", False)
    settings = IngestOptions(**options)
    with Transaction(out) as transaction:
        work = IngestWork(
            files=tuple(map(str, files)), reading=reading, out=out, shard_bits=bits,
            folder=transaction.scratch_dir / "tasks", generation=transaction.generation,
            memory_bytes=settings.memory_bytes,
        )  # fmt: skip
        steps = ClusterSteps(work.source(), settings, transaction, SILENT, work, run_twice)
        transaction.commit(steps.run())


def content(store: Path) -> dict[str, str]:
    """Return a checksum of every file of a store."""
    return {
        str(file.relative_to(store)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in store.rglob("*")
        if file.is_file() and file.name != "lock"
    }


def integers(folder: Path) -> list[Path]:
    """Write weighted edges of skewed integer ids, with repeats and loops."""
    rng, files = np.random.default_rng(2), []
    for number, size in enumerate((400, 1, 250)):
        ends = np.stack([rng.zipf(1.6, size), rng.integers(0, 300, size)], axis=1)
        ends = ends % 5000 * 7919 % 1_000_003
        weights = rng.integers(1, 9, size) / (2 if number else 1)
        lines = [f"{a}\t{b}\t{w}" for (a, b), w in zip(ends, weights, strict=True)]
        lines += [*lines[:20], f"{ends[0, 0]}\t{ends[0, 0]}\t1"]
        files.append(folder / f"edges-{number}.tsv")
        files[-1].write_text("\n".join(lines) + "\n")
    return files


def triples(folder: Path) -> list[Path]:
    """Write facts, whose relations and names are not all in every file."""
    rng, files = np.random.default_rng(3), []
    for name, size, most in (("train", 500, 60), ("valid", 40, 80), ("test", 60, 80)):
        ends = rng.integers(0, most, (size, 2))
        lines = [f"n{a}\tr{(a * b) % (most // 10)}\tn{b}" for a, b in ends.tolist()]
        files.append(folder / f"{name}.txt")
        files[-1].write_text("\n".join(lines) + "\n")
    return files


def tables(folder: Path) -> list[Path]:
    """Write tables with times, one a day after the other."""
    rng, files = np.random.default_rng(4), []
    for day in range(2):
        ends = rng.integers(0, 50, (2, 300))
        times = pa.array(day * 86400 + np.arange(300), pa.timestamp("s"))
        table = pa.table({"src": ends[0], "dst": ends[1], "time": times})
        files.append(folder / f"day-{day}.parquet")
        parquet.write_table(table, files[-1])
    return files


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (integers, {"partitions": 3}),
        (integers, {"partitions": 2, "undirected": True, "coalesce": True, "seed": 5}),
        (integers, {"order": "degree", "drop_self_loops": True, "coalesce": True}),
        (integers, {"ids": "string", "partitions": 4}),
        (triples, {"format": "triples", "partitions": 3}),
        (triples, {"format": "triples", "order": "degree"}),
        (tables, {"partitions": 2, "order": "original"}),
    ],
)
def test_the_store_is_that_of_one_machine(
    tmp_path: Path, write: Callable[[Path], list[Path]], options: dict[str, Any]
) -> None:
    files = write(tmp_path)
    datasets.ingest(files, tmp_path / "one", **options)
    by_tasks(files, tmp_path / "many", **options)
    assert content(tmp_path / "many") == content(tmp_path / "one")
