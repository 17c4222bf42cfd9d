"""Ingests by tasks in the process of the test, and what became of them."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from graphsys import distributed
from graphsys.distributed import Cluster
from graphsys.distributed.ingestion import api
from graphsys.distributed.ingestion.steps import RunAll

FAR = Cluster.parse("a.b:6379")


def run_once(
    function: Callable[..., Any], questions: Sequence[tuple[Any, ...]], told: Any = None
) -> list[Any]:
    """Run every task."""
    results = [function(*question) for question in questions]
    if told is not None:
        for place, result in enumerate(results):
            told(place, result)
    return results


def run_twice(
    function: Callable[..., Any], questions: Sequence[tuple[Any, ...]], told: Any = None
) -> list[Any]:
    """Run every task twice, as where a worker was lost after its work was done."""
    run_once(function, questions)
    return run_once(function, questions, told)


@contextmanager
def four_processors(cluster: Cluster) -> Iterator[int]:
    yield 4


def by_tasks(
    files: Sequence[Path | str],
    out: Path | str,
    *,
    bits: int | None = None,
    run: RunAll = run_twice,
    **options: Any,
) -> None:
    """Ingest by tasks in this process, of ids in two to the power ``bits`` shards."""
    names = ("format", "ids", "columns", "separator", "skip")
    reading = {name: options.pop(name) for name in names if name in options}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(api, "connected", four_processors)
        patch.setattr(api, "run_tasks", run)
        if bits is not None:
            patch.setattr(api, "_shard_bits", lambda *_: bits)
        made = distributed.ingest(files, out, cluster=FAR, reading=reading, **options)
        made.graph.close()


def content(store: Path) -> dict[str, str]:
    """Return a checksum of every file of a store."""
    return {
        str(file.relative_to(store)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in store.rglob("*")
        if file.is_file() and file.name != "lock"
    }
