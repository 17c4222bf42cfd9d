"""Training what is new: the edges that the graph of an earlier run lacks.

An edge is new if one of its ends is a new node, or if the earlier graph has no edge of
the same ends and relation in the same split. What is new in a bucket is listed once, after
the warm start, in ``fresh/<edge type>/<split>/bucket-<i>-<j>``; the epochs then read
these lists only. Nodes are compared by their numbers in the earlier graph
(``warm_start.py``).
"""

import functools
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.types import Bucket, EdgeType
from graphsys.embedding.context import EmbeddingContext
from graphsys.embedding.data.buckets import read_bucket
from graphsys.embedding.data.edge_selection import EdgePart
from graphsys.embedding.rows.table_files import TableFiles
from graphsys.embedding.run import EmbeddingRunState, find_file, read_array
from graphsys.embedding.training.warm_start import origin_file
from graphsys.storage.manifest import file_name
from graphsys.storage.reader import GraphReader
from graphsys.storage.views import EdgeBucket

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.uint32]


def fresh_file(edge_type: str, split: str, bucket: Bucket, serial: int) -> str:
    """Return the path of the list of a bucket's new edges."""
    place = f"{file_name(split)}/bucket-{bucket[0]}-{bucket[1]}"
    return f"fresh/{file_name(edge_type)}/{place}.{serial}.npy"


def list_new_edges(context: EmbeddingContext, files: TableFiles, old: GraphReader) -> int:
    """Write down which edges of every bucket are new.

    Args:
        context: The training.
        files: Files of the run, after the warm start.
        old: The earlier graph.

    Returns:
        The number of new edges.
    """
    total, graph = 0, context.graph
    steps = {replace(step, part=EdgePart(), phase=0, num_edges=0) for step in context.steps}
    for step in sorted(steps, key=str):
        relations = context.model[step.edge_type]
        earlier = KnownEdges(graph, relations.edge_type, step.split, old)
        bucket = read_bucket(graph, relations.edge_type, *step.bucket, step.split)
        ends = [
            np.asarray(files.read(functools.partial(origin_file, *part)), dtype=np.int64)
            for part in (step.src, step.dst)
        ]
        rows = earlier.new_rows(bucket, *ends)
        total += len(rows)
        name = functools.partial(fresh_file, relations.name, step.split, step.bucket)
        files.keep(name, rows)
    return total


def read_new_edges(
    path: Path, state: EmbeddingRunState, edge_type: str, split: str, bucket: Bucket
) -> Rows:
    """Return which edges of a bucket are new, ascending, uint32, mapped."""
    name = find_file(state, fresh_file(edge_type, split, bucket, 0))
    if name is None:
        return np.empty(0, dtype=np.uint32)
    rows: Any = read_array(path, name, mapped="r")
    return np.asarray(rows, dtype=np.uint32)


class KnownEdges:
    """Looks up edges in an earlier graph."""

    def __init__(
        self, graph: GraphReader, edge_type: EdgeType, split: str, old: GraphReader
    ) -> None:
        self._old, self._split = old, split
        self._kind: EdgeType | None = None
        if edge_type in old.edge_types and split in old.splits(edge_type):
            self._kind = edge_type
        self._is_symmetric = (
            not graph.is_directed_type(edge_type)
            and edge_type.src_type == edge_type.dst_type
        )
        now = graph.relations(edge_type) or [""]
        before = (old.relations(edge_type) if self._kind else None) or [""]
        codes = {name: code for code, name in enumerate(before)}
        self._codes = np.array([codes.get(name, -1) for name in now], dtype=np.int64)
        self._num_relations = len(before)

    def new_rows(self, bucket: EdgeBucket, src_origin: Ints, dst_origin: Ints) -> Rows:
        """Return which edges of a bucket are new.

        Args:
            bucket: The bucket.
            src_origin: Number in the earlier graph of every node of the source partition,
                -1 for a new one, int64 ``[N]``.
            dst_origin: The same for the destination partition.

        Returns:
            Rows of the bucket, ascending, uint32.
        """
        src = src_origin[bucket.src.astype(np.int64)]
        dst = dst_origin[bucket.dst.astype(np.int64)]
        code = np.zeros(bucket.num_edges, dtype=np.int64)
        if bucket.relation is not None:
            code = bucket.relation.astype(np.int64)
        code = self._codes[code]
        is_new = (src < 0) | (dst < 0) | (code < 0)
        if self._kind is None:
            is_new[:] = True
        if self._is_symmetric:  # an edge lies from the smaller number to the larger
            src, dst = np.minimum(src, dst), np.maximum(src, dst)
        rest = np.flatnonzero(~is_new)
        for rows, i, j in self._by_bucket(rest, src[rest], dst[rest]):
            is_new[rows] = ~self._has(i, j, src[rows], dst[rows], code[rows])
        return np.flatnonzero(is_new).astype(np.uint32)

    def _by_bucket(
        self, rows: npt.NDArray[np.intp], src: Ints, dst: Ints
    ) -> Iterator[tuple[npt.NDArray[np.intp], int, int]]:
        """Group edges by the bucket of the earlier graph that they would lie in."""
        if not len(rows) or self._kind is None:
            return
        src_offsets = self._old.offsets(self._kind.src_type)
        dst_offsets = self._old.offsets(self._kind.dst_type)
        i = np.searchsorted(src_offsets, src, side="right") - 1
        j = np.searchsorted(dst_offsets, dst, side="right") - 1
        place = i * len(dst_offsets) + j
        order = np.argsort(place, kind="stable")
        bounds = np.flatnonzero(np.diff(place[order], prepend=-1, append=-1))
        for begin, end in pairwise(bounds.tolist()):
            first = order[begin]
            yield rows[order[begin:end]], int(i[first]), int(j[first])

    def _has(
        self, i: int, j: int, src: Ints, dst: Ints, code: Ints
    ) -> npt.NDArray[np.bool_]:
        """Return which edges a bucket of the earlier graph has."""
        kind = self._kind
        assert kind is not None
        bucket = read_bucket(self._old, kind, i, j, self._split)
        src = src - self._old.offsets(kind.src_type)[i]
        dst = dst - self._old.offsets(kind.dst_type)[j]
        width = int(np.diff(self._old.offsets(kind.dst_type))[j])
        known = bucket.src.astype(np.int64) * width + bucket.dst
        wanted = src * width + dst
        if bucket.relation is not None and self._num_relations > 1:
            # numbers of pairs are small, so that a relation fits beside them
            pairs = distinct(known)
            at = np.minimum(np.searchsorted(pairs, wanted), max(len(pairs) - 1, 0))
            is_pair = (pairs[at] == wanted) if len(pairs) else np.zeros(len(at), bool)
            known = np.searchsorted(pairs, known) * self._num_relations
            known += bucket.relation.astype(np.int64)
            wanted = np.where(is_pair, at * self._num_relations + code, -1)
        return np.isin(wanted, known)
