"""Verify deltas: what was appended, and what was removed, against what is there."""

from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.plain_files import OUT_OF_FILES
from graphsys.core.progress import Progress
from graphsys.core.types import number_dtype
from graphsys.storage import manifest as names
from graphsys.storage.delta_entry import DeltaEntry
from graphsys.storage.deltas.order import parts_of
from graphsys.storage.dynamic.id_table import make_table
from graphsys.storage.manifest import (
    MANIFEST_NAME,
    EdgeTypeEntry,
    Manifest,
    added_file,
    before_deltas,
    delta_folder,
    feature_path,
    id_table_file,
    node_path,
    removed_file,
)
from graphsys.storage.verify.content import (
    FAULTS,
    check_feature,
    check_nodes,
    read_batch,
)
from graphsys.storage.views import view_of

Found = tuple[str, str]
_TRAVELLING = ("weight", "time")


class DeltaChecker:
    """Checks the content of the deltas of a store.

    Args:
        root: The graph's folder.
        manifest: Its manifest.
        damaged: Files that are not looked into.
    """

    def __init__(self, root: Path, manifest: Manifest, damaged: Collection[str]) -> None:
        self._root, self._manifest, self._damaged = root, manifest, damaged
        self._files = {entry.path: entry for entry in manifest.files}
        self._first = before_deltas(manifest)
        self._known: set[str] = set()
        self._seen: dict[tuple[str, str], set[tuple[int, int, int]]] = {}

    def problems(self, progress: Progress) -> Iterator[Found]:
        """Yield files and what is wrong with them."""
        for delta in self._manifest.deltas:
            yield from self._nodes(delta, progress)
            yield from self._tables(delta, progress)
            for name, splits in delta.added.items():
                for split, count in splits.items():
                    yield from self._added(delta, name, split, count, progress)
            for name, splits in delta.removed.items():
                for split, count in splits.items():
                    yield from self._removed(delta, name, split, count, progress)
        mark = delta_folder(self._manifest.generation, 0).rpartition("/")[0] + "/"
        for path in self._files:
            if path.startswith(mark) and path not in self._known:
                yield path, "is listed, but no delta of graph.json has it"

    def _checked(
        self, path: str, progress: Progress, check: Callable[[pa.RecordBatch], None]
    ) -> Iterator[Found]:
        self._known.add(path)
        if path not in self._files:
            yield MANIFEST_NAME, f"lists no {path}, which a delta of it has"
            return
        progress.advance(1)
        if path in self._damaged:
            return
        try:
            check(read_batch(self._root / path))
        except FAULTS as err:
            if isinstance(err, OSError) and err.errno in OUT_OF_FILES:
                raise
            yield path, " ".join(str(err).split()) or type(err).__name__

    # ---- nodes

    def _nodes(self, delta: DeltaEntry, progress: Progress) -> Iterator[Found]:
        manifest = self._manifest
        for name, part in delta.partitions.items():
            node = manifest.node_types[name]
            size = node.offsets[part + 1] - node.offsets[part]

            def check(batch: pa.RecordBatch) -> None:
                check_nodes(batch, node, size)  # noqa: B023 # called in this iteration
                ids = batch.column("id")
                if pa.types.is_integer(ids.type):
                    values = view_of(ids)
                    if not bool(np.all(values[1:] > values[:-1])):
                        raise ValueError("has ids that do not ascend")

            yield from self._checked(node_path(manifest, name, part), progress, check)
            for feature, entry in node.features.items():
                stored = {feature: 0}

                def check_rows(batch: pa.RecordBatch) -> None:
                    check_feature(batch, feature, entry, size, stored)  # noqa: B023

                path = feature_path(manifest, name, feature, part)
                yield from self._checked(path, progress, check_rows)

    def _tables(self, delta: DeltaEntry, progress: Progress) -> Iterator[Found]:
        for name, node in self._first.node_types.items():
            path = id_table_file(self._manifest.generation, delta.number, name)
            if path not in self._files:
                continue
            paths = [
                names.node_file(self._manifest.generation, name, part)
                for part in range(node.num_partitions)
                if node.offsets[part] < node.offsets[part + 1]
            ]
            if any(it in self._damaged for it in paths):
                self._known.add(path)
                continue

            def check(batch: pa.RecordBatch) -> None:
                chunks = [read_batch(self._root / it).column("id") for it in paths]  # noqa: B023
                if not batch.equals(make_table(pa.chunked_array(chunks))):
                    raise ValueError("does not lead from the ids of nodes to their numbers")

            yield from self._checked(path, progress, check)

    # ---- edges

    def _added(
        self, delta: DeltaEntry, name: str, split: str, count: int, progress: Progress
    ) -> Iterator[Found]:
        edge = self._manifest.edge_types[name]
        sizes = self._sizes(edge, delta)

        def check(batch: pa.RecordBatch) -> None:
            _check_added(batch, count, edge, sizes, self._num_relations(name, delta))

        path = added_file(self._manifest.generation, delta.number, name, split)
        yield from self._checked(path, progress, check)

    def _removed(
        self, delta: DeltaEntry, name: str, split: str, count: int, progress: Progress
    ) -> Iterator[Found]:
        edge = self._manifest.edge_types[name]
        seen = self._seen.setdefault((name, split), set())

        def check(batch: pa.RecordBatch) -> None:
            found = {
                key: view_of(batch.column(key)).astype(np.int64)
                for key in ("delta", "src", "dst", "row", "copy")
            }
            if batch.num_rows != count:
                raise ValueError(f"has {batch.num_rows} rows, graph.json says {count}")
            _check_numbers(found, self._sizes(edge, delta))
            if len(found["delta"]) and int(found["delta"].max()) >= delta.number:
                raise ValueError(f"removes an edge of delta {found['delta'].max()}")
            self._check_targets(found, name, split, edge, seen)

        path = removed_file(self._manifest.generation, delta.number, name, split)
        yield from self._checked(path, progress, check)

    def _check_targets(
        self,
        found: dict[str, npt.NDArray[np.int64]],
        name: str,
        split: str,
        edge: EdgeTypeEntry,
        seen: set[tuple[int, int, int]],
    ) -> None:
        src_offsets, dst_offsets = (
            np.asarray(self._manifest.node_types[it].offsets, dtype=np.int64)
            for it in (edge.src_type, edge.dst_type)
        )
        generation = self._manifest.generation
        i, j = parts_of(found["src"], src_offsets), parts_of(found["dst"], dst_offsets)
        is_first = found["delta"] == 0
        i[~is_first] = j[~is_first] = 0
        places = np.stack([found["delta"], i, j])
        for target in np.unique(places, axis=1).T.tolist():
            k, a, b = target
            here = (places == np.array([[k], [a], [b]])).all(axis=0)
            path = names.bucket_file(generation, name, split, a, b)
            if k:
                path = added_file(generation, k, name, split)
            if path in self._damaged:
                continue
            if path not in self._files:
                raise ValueError(f"removes edges of {path}, which is not listed")
            batch = read_batch(self._root / path)
            base = (0, 0) if k else (int(src_offsets[a]), int(dst_offsets[b]))
            one = {key: values[here] for key, values in found.items()}
            _check_rows(one, batch, base)
            for row in one["row"].tolist():
                place = (k, a * len(dst_offsets) + b, row)
                if place in seen:
                    raise ValueError(f"removes row {row} of {path}, which is gone already")
                seen.add(place)

    def _sizes(self, edge: EdgeTypeEntry, delta: DeltaEntry) -> dict[str, int]:
        """Return how many nodes both ends had when a delta had been written."""
        sizes = {}
        for end, name in (("src", edge.src_type), ("dst", edge.dst_type)):
            node = self._manifest.node_types[name]
            later = [
                it.partitions[name]
                for it in self._manifest.deltas
                if it.number > delta.number and name in it.partitions
            ]
            sizes[end] = node.offsets[min(later)] if later else node.num_nodes
        return sizes

    def _num_relations(self, name: str, delta: DeltaEntry) -> int:
        known = self._manifest.edge_types[name].relations or []
        later = [d.relations.get(name, 0) for d in self._manifest.deltas]
        return len(known) - sum(later[delta.number :])


def _check_added(
    batch: pa.RecordBatch,
    count: int,
    edge: EdgeTypeEntry,
    sizes: dict[str, int],
    num_relations: int,
) -> None:
    if batch.num_rows != count:
        raise ValueError(f"has {batch.num_rows} edges, graph.json says {count}")
    stated = {
        **{end: str(pa.from_numpy_dtype(number_dtype(n))) for end, n in sizes.items()},
        **edge.columns,
    }
    arrays = dict(zip(batch.schema.names, batch.columns, strict=True))
    relation = arrays.pop("relation", None)
    found = {name: str(array.type) for name, array in arrays.items()}
    if found != stated or (relation is None) != (edge.relations is None):
        raise ValueError(f"has the columns {found}, graph.json says {stated}")
    for name in ("src", "dst", *_TRAVELLING):
        if name in arrays and arrays[name].null_count:
            raise ValueError(f"has {arrays[name].null_count} missing values in {name!r}")
    ends = {name: view_of(arrays[name]).astype(np.int64) for name in ("src", "dst")}
    _check_numbers(ends, sizes)
    code: Any = np.zeros(count, dtype=np.int64)
    if relation is not None:
        if relation.dictionary.to_pylist() != (edge.relations or [])[:num_relations]:
            raise ValueError("has another dictionary of relations than graph.json")
        code = view_of(relation.indices).astype(np.int64)
        _check_numbers({"relation": code}, {"relation": num_relations})
    order = np.lexsort((code, ends["dst"], ends["src"]))
    if not bool(np.all(order[1:] > order[:-1])):
        raise ValueError("is not sorted by (src, dst, relation)")


def _check_numbers(found: dict[str, npt.NDArray[np.int64]], sizes: dict[str, int]) -> None:
    for name, size in sizes.items():
        values = found[name]
        if len(values) and not 0 <= int(values.min()) <= int(values.max()) < size:
            raise ValueError(f"has {name} {values.max()}, expected 0 to {size - 1}")


def _check_rows(
    found: dict[str, npt.NDArray[np.int64]], batch: pa.RecordBatch, base: tuple[int, int]
) -> None:
    """Check that rows of a file are the pairs that they are said to be."""
    row, copy = found["row"], found["copy"]
    if not len(row) or not 0 <= int(row.min()) <= int(row.max()) < batch.num_rows:
        raise ValueError(f"removes a row that is not among {batch.num_rows}")
    pairs = [view_of(batch.column(end)).astype(np.int64) for end in ("src", "dst")]
    wanted = [found["src"] - base[0], found["dst"] - base[1]]
    first = row - copy
    for values, numbers in zip(pairs, wanted, strict=True):
        if bool((values[row] != numbers).any()) or bool((first < 0).any()):
            raise ValueError("removes rows of other edges than it says")
        if bool((values[first] != numbers).any()):
            raise ValueError("has wrong places among copies of an edge")
    before = np.maximum(first - 1, 0)
    is_same = (pairs[0][before] == wanted[0]) & (pairs[1][before] == wanted[1])
    if bool((is_same & (first > 0)).any()):
        raise ValueError("has wrong places among copies of an edge")
