"""Verify, third pass: what the files say, against the manifest and against each other."""

import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.plain_files import OUT_OF_FILES
from graphsys.core.progress import Progress
from graphsys.core.types import DEFAULT_SPLIT
from graphsys.storage import manifest as names
from graphsys.storage.manifest import (
    MANIFEST_NAME,
    EdgeTypeEntry,
    FileEntry,
    Manifest,
    NodeTypeEntry,
)
from graphsys.storage.verify.edges import EdgeSums, check_index, read_bucket
from graphsys.storage.write.edge_index import index_fingerprint

_BUCKET = re.compile(r"bucket-(0|[1-9]\d*)-(0|[1-9]\d*)\.arrow")
FAULTS = (pa.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError)

Found = tuple[str, str]


class ContentChecker:
    """Checks the content of a generation whose files are as they were written.

    Args:
        root: The graph's folder.
        manifest: Its manifest.
        damaged: Files that are not looked into.
    """

    def __init__(self, root: Path, manifest: Manifest, damaged: Collection[str]) -> None:
        self._root, self._manifest = root, manifest
        self._damaged = damaged
        self._files = {entry.path: entry for entry in manifest.files}

    def problems(self, progress: Progress) -> Iterator[Found]:
        """Yield files and what is wrong with them."""
        for name, node in self._manifest.node_types.items():
            yield from self._nodes(name, node, progress)
        for name, edge in self._manifest.edge_types.items():
            yield from self._edges(name, edge, progress)

    def _attempt(self, path: str, check: Callable[[], None]) -> Iterator[Found]:
        try:
            check()
        except FAULTS as err:  # whatever a file holds, it is reported, not raised
            if isinstance(err, OSError) and err.errno in OUT_OF_FILES:
                raise
            yield path, " ".join(str(err).split()) or type(err).__name__

    def _sound(
        self, path: str, needed: int, progress: Progress
    ) -> Iterator[Found | FileEntry]:
        """Yield the entry of a file that can be read, or what the manifest lacks."""
        entry = self._files.get(path)
        if entry is None:
            if needed:
                yield MANIFEST_NAME, f"lists no {path}, which should have {needed} rows"
            return
        progress.advance(1)
        if path not in self._damaged:
            yield entry

    # ---- nodes

    def _nodes(self, name: str, node: NodeTypeEntry, progress: Progress) -> Iterator[Found]:
        generation = self._manifest.generation
        stored = dict.fromkeys(node.features, 0)
        for part, size in enumerate(np.diff(node.offsets).tolist()):
            path = names.node_file(generation, name, part)
            yield from self._file(
                path, size, progress, partial(check_nodes, node=node, size=size)
            )
            for feature, entry in node.features.items():
                path = names.feature_file(generation, name, feature, part)
                yield from self._file(
                    path,
                    size,
                    progress,
                    partial(
                        check_feature, name=feature, entry=entry, size=size, stored=stored
                    ),
                )
        for feature, entry in node.features.items():
            stated = entry.get("stored_rows", stored[feature])
            if stated != stored[feature] and not self._damaged:
                found = f"files of feature {feature!r} of {name!r} have {stored[feature]}"
                yield MANIFEST_NAME, f"says {stated} stored rows, {found}"

    def _file(
        self,
        path: str,
        needed: int,
        progress: Progress,
        check: Callable[[pa.RecordBatch], None],
    ) -> Iterator[Found]:
        for found in self._sound(path, needed, progress):
            if isinstance(found, FileEntry):
                yield from self._attempt(path, lambda: check(read_batch(self._root / path)))
            else:
                yield found

    # ---- edges

    def _edges(self, name: str, edge: EdgeTypeEntry, progress: Progress) -> Iterator[Found]:
        only = next(iter(edge.num_edges), DEFAULT_SPLIT)
        indexed = only if len(edge.num_edges) == 1 else DEFAULT_SPLIT
        sums = EdgeSums(self._manifest, edge)
        is_comparable = True
        checksums = []
        for split, stated in edge.num_edges.items():
            buckets = self._buckets(name, split)
            rows = sum(entry.rows for _, _, entry in buckets)
            if rows != stated:
                yield (
                    MANIFEST_NAME,
                    f"says {stated} edges of {name!r} in split {split!r}, lists {rows}",
                )
            for i, j, entry in buckets:
                progress.advance(1)
                faults = list(self._bucket(entry, i, j, edge, sums, split == indexed))
                yield from faults
                if split == indexed:
                    checksums.append(entry.checksum)
                    is_comparable &= not faults and entry.path not in self._damaged
        comparable = sums if is_comparable else None
        yield from self._index(name, edge, indexed, comparable, progress)
        paths = [
            path for path, _, _ in self._index_files(name, edge) if path in self._files
        ]
        if paths and edge.index_fingerprint != index_fingerprint(checksums):
            yield paths[0], "was built from other buckets than those listed"

    def _buckets(self, name: str, split: str) -> list[tuple[int, int, FileEntry]]:
        folder = names.bucket_file(self._manifest.generation, name, split, 0, 0)
        folder = folder.rpartition("/")[0] + "/"
        found = []
        for path, entry in self._files.items():
            match = _BUCKET.fullmatch(path.removeprefix(folder))
            if path.startswith(folder) and match:
                found.append((int(match[1]), int(match[2]), entry))
        return sorted(found, key=lambda bucket: bucket[:2])

    def _bucket(
        self,
        entry: FileEntry,
        i: int,
        j: int,
        edge: EdgeTypeEntry,
        sums: EdgeSums,
        is_indexed: bool,
    ) -> Iterator[Found]:
        if entry.path in self._damaged:
            if is_indexed:
                sums.skip(entry.rows)
            return

        def check() -> None:
            batch = read_batch(self._root / entry.path)
            bucket = read_bucket(batch, entry, edge, self._manifest, i, j)
            if is_indexed:
                sums.add(bucket, i, j)

        yield from self._attempt(entry.path, check)

    def _index_files(
        self, name: str, edge: EdgeTypeEntry
    ) -> Iterator[tuple[str, str, int]]:
        is_symmetric = not edge.directed and edge.src_type == edge.dst_type
        directions = {"out": edge.src_type} | (
            {} if is_symmetric else {"in": edge.dst_type}
        )
        for direction, own in directions.items():
            for part in range(self._manifest.node_types[own].num_partitions):
                generation = self._manifest.generation
                yield names.index_file(generation, name, direction, part), direction, part

    def _index(
        self,
        name: str,
        edge: EdgeTypeEntry,
        indexed: str,
        sums: EdgeSums | None,
        progress: Progress,
    ) -> Iterator[Found]:
        for path, direction, part in self._index_files(name, edge):
            own = edge.src_type if direction == "out" else edge.dst_type
            offsets = self._manifest.node_types[own].offsets
            needed = int(offsets[part] != offsets[part + 1] and indexed in edge.num_edges)
            yield from self._file(
                path,
                needed,
                progress,
                partial(
                    check_index,
                    edge=edge,
                    manifest=self._manifest,
                    direction=direction,
                    part=part,
                    sums=sums,
                ),
            )


def read_batch(path: Path) -> pa.RecordBatch:
    """Return the one record batch of an Arrow file, mapped and validated.

    Raises:
        ValueError: it has none or several.
        pa.ArrowInvalid: it is not an Arrow file, or its arrays are not well-formed.
    """
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    if file.num_record_batches != 1:
        raise ValueError(f"has {file.num_record_batches} record batches, expected 1")
    batch = file.get_batch(0)
    batch.validate(full=True)
    return batch


def check_nodes(batch: pa.RecordBatch, node: NodeTypeEntry, size: int) -> None:
    """Check a partition's node table against what the manifest says.

    Raises:
        ValueError: rows, columns or ids are wrong.
    """
    _check_rows(batch, size)
    found = {field.name: str(field.type) for field in batch.schema}
    stated = {"id": node.id_type, **node.columns}
    if found != stated:
        raise ValueError(f"has the columns {found}, graph.json says {stated}")
    ids = batch.column("id")
    if ids.null_count:
        raise ValueError(f"has {ids.null_count} missing ids")
    if pa.types.is_integer(ids.type) and pc.min(ids).as_py() < 0:
        raise ValueError(f"has the negative id {pc.min(ids)}")


def _check_rows(batch: pa.RecordBatch, size: int) -> None:
    if batch.num_rows != size:
        raise ValueError(f"has {batch.num_rows} rows, its partition {size} nodes")


def check_feature(
    batch: pa.RecordBatch,
    name: str,
    entry: dict[str, Any],
    size: int,
    stored: dict[str, int],
) -> None:
    """Check a partition's features, and add its rows to those ``stored``.

    Raises:
        ValueError: rows, types or values are wrong.
    """
    _check_rows(batch, size)
    dtype: npt.DTypeLike = entry["dtype"]
    value_type = pa.from_numpy_dtype(np.dtype(dtype))
    wanted = (
        pa.list_(value_type, entry["dim"]) if entry["dim"] else pa.large_list(value_type)
    )
    column = batch.column(0)
    if "stored_rows" in entry and pa.types.is_dictionary(column.type):
        if column.type.index_type != pa.uint32():
            raise ValueError(f"has places {column.type.index_type}, expected uint32")
        if column.null_count:
            raise ValueError("has missing places")
        column = column.dictionary
    stored[name] += len(column)
    if batch.num_columns != 1 or batch.schema.names[0] != name or column.type != wanted:
        raise ValueError(f"has the schema {batch.schema.to_string()}, expected {wanted}")
    if column.null_count or column.values.null_count:
        raise ValueError("has missing values")
