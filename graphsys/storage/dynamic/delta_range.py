"""What a store was after some of its deltas, and what the others changed since."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.storage.deltas.edges import read_added, read_removed
from graphsys.storage.manifest import Manifest
from graphsys.storage.reader import GraphReader
from graphsys.storage.views import bucket_of

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeltaEdges:
    """Edges of the counting split that came and went since a delta.

    Attributes:
        added_src: Numbers of the sources of edges added that are still there ``[A]``.
        added_dst: Numbers of their destinations ``[A]``.
        removed_src: Numbers of the sources of edges that are there no more ``[R]``.
        removed_dst: Numbers of their destinations ``[R]``.
    """

    added_src: Numbers
    added_dst: Numbers
    removed_src: Numbers
    removed_dst: Numbers

    @property
    def size(self) -> int:
        """Edges added and removed."""
        return len(self.added_src) + len(self.removed_src)


def state_checksum(manifest: Manifest, num_deltas: int) -> str:
    """Return a hash of the files that a store had after its first deltas."""
    mark = f"gen-{manifest.generation}/deltas/"
    lines = sorted(
        f"{entry.path} {entry.checksum}"
        for entry in manifest.files
        if not entry.path.startswith(mark)
        or int(entry.path[len(mark) :].partition("/")[0]) <= num_deltas
    )
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def edges_since(graph: GraphReader, name: str, num_deltas: int) -> DeltaEdges:
    """Read what the deltas behind the first ``num_deltas`` changed in an edge type.

    Args:
        graph: The store.
        name: The edge type.
        num_deltas: How many deltas are not looked at.
    """
    manifest = graph.whole_manifest
    split = manifest.edge_types[name].counting_split

    def read(path: str, check: Callable[[pa.RecordBatch], None]) -> pa.RecordBatch:
        batch = graph.read_file(path)
        check(batch)
        return batch

    later = replace(manifest, deltas=manifest.deltas[num_deltas:])
    removed = read_removed(later, name, split, read, None)
    src, dst = [], []
    for delta in later.deltas:
        if not delta.added.get(name, {}).get(split):
            continue
        edges = bucket_of(read_added(manifest, delta.number, name, split, read))
        is_kept = np.ones(len(edges.src), dtype=bool)
        is_kept[removed["row"][removed["delta"] == delta.number]] = False
        src.append(edges.src[is_kept])
        dst.append(edges.dst[is_kept])
    is_old = removed["delta"] <= num_deltas
    return DeltaEdges(
        added_src=_joined(src),
        added_dst=_joined(dst),
        removed_src=removed["src"][is_old],
        removed_dst=removed["dst"][is_old],
    )


def _joined(pieces: list[npt.NDArray[Any]]) -> Numbers:
    empty = np.empty(0, dtype=np.int64)
    return np.concatenate([empty, *pieces]).astype(np.int64)
