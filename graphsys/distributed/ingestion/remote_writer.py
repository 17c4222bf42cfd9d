"""Buckets and indexes that tasks write."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from graphsys.distributed.ingestion import tasks
from graphsys.distributed.ingestion.plan import (
    ChunkFiles,
    IngestWork,
    WriterWork,
    Written,
)
from graphsys.storage.manifest import FileEntry, index_file
from graphsys.storage.write.edge_write import EdgeTypeWriter


class RunAll(Protocol):
    """Runs tasks somewhere."""

    def __call__(
        self,
        function: Callable[..., Any],
        questions: Sequence[tuple[Any, ...]],
        told: Callable[[int, Any], None] | None = None,
    ) -> list[Any]:
        """Return the results of a function with each of some arguments.

        Args:
            function: The function.
            questions: Its arguments.
            told: Called with place and result of each, in order, as they come.
        """


class RemoteWriter(EdgeTypeWriter):
    """Has the buckets and indexes of an edge type written by tasks.

    Attributes:
        work: The ingest.
        run_all: What runs tasks.
        told: What tasks are told of it.
        chunks: Chunks of the type by split.
    """

    work: IngestWork
    run_all: RunAll
    told: WriterWork
    chunks: Mapping[str, list[ChunkFiles]]

    def write_split(self, split: str) -> None:
        """Write the buckets of a split and, of one split, the indexes."""
        num_src, num_dst = len(self._src.offsets) - 1, len(self._dst.offsets) - 1
        parts: list[Written] = self.run_all(
            tasks.write_part,
            [(self.work, self.told, split, p, self.chunks[split]) for p in range(num_src)],
        )
        self._waiting.pop(split).remove()
        self.counts[split] = np.array([part.counts for part in parts], dtype=np.int64)
        for part in parts:
            self.duplicates += part.duplicates
            self.self_loops += part.self_loops
            self.fingerprints.extend(part.fingerprints)
        files = {entry.path: entry for part in parts for entry in part.files}
        if split == self.indexed_split:
            counts = self.counts[split]
            again: list[Written] = self.run_all(
                tasks.place_edges,
                [(self.work, self.told, p, first) for p, first in self._displaced(files)],
            )
            again += self.run_all(
                tasks.write_incoming,
                [(self.work, self.told, p, counts) for p in range(num_dst)],
            )
            files |= {entry.path: entry for part in again for entry in part.files}
        self._transaction.files.extend(files.values())

    def _displaced(self, files: Mapping[str, FileEntry]) -> list[tuple[int, int]]:
        """Return partitions whose outgoing index tells edges, and how many are before."""
        if not self.told.log.further:
            return []
        lengths = self.counts[self.indexed_split].sum(axis=1)
        firsts = (np.cumsum(lengths) - lengths).tolist()
        generation = self._transaction.generation
        paths = [index_file(generation, self.name, "out", p) for p in range(len(firsts))]
        return [
            (part, first)
            for part, (first, path) in enumerate(zip(firsts, paths, strict=True))
            if first and path in files
        ]
