"""DGL GraphBolt's OnDiskDataset folders: ``metadata.yaml`` and the files it names.

Nodes are numbered per type as ``graph.nodes`` says; edges are CSV without a header, or
NumPy arrays ``[2, E]``. Features of nodes (``feature_data``, NumPy) are kept under their
names. Of the task ``node_classification`` (or the first one whose seeds are nodes) the
three sets become the node column ``split``, and their labels ``label``. Features of edges
and of the graph, and tasks on links, are left out; files in torch's format (.pt, pickles)
are refused. Needs PyYAML (extra "all").

References:
    DGL's user guide, chapter 6, "GraphBolt: OnDiskDataset for homogeneous and
    heterogeneous graphs", docs.dgl.ai.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import ConfigError, InputError
from graphsys.core.types import EDGE, NODE, EdgeType
from graphsys.datasets.array_files import dense_features, mapped_array
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.columns import check_ids
from graphsys.datasets.files import InputFile, input_file
from graphsys.datasets.folders.yaml_files import load_yaml
from graphsys.datasets.table_spec import describe_source
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_ROWS: Final = 1 << 18
_MAX_NODES: Final = 1 << 32
_SETS: Final = {"train": "train_set", "valid": "validation_set", "test": "test_set"}


class GraphboltSource(Source):
    """One folder, its description read."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.name = str(path)
        self.is_directed = not options.is_undirected
        self._folder = path.parent
        self._num_threads = options.num_threads
        card = load_yaml(path, "with graph, feature_data and tasks")
        try:
            graph = card["graph"]
            self._counts = {
                str(it.get("type") or NODE): _count(path, it["num"])
                for it in graph["nodes"]
            }
            self._edges = [(_edge_type(it), str(it["format"]), it) for it in graph["edges"]]
            features = [
                it for it in card.get("feature_data") or [] if it["domain"] == "node"
            ]
            self._features = [
                (str(it.get("type") or NODE), str(it["name"]), self._array(it))
                for it in features
            ]
            self._sets = list(self._node_sets(card.get("tasks") or []))
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as err:
            if isinstance(err, InputError):
                raise
            raise InputError(
                f"{path}: lacks or misplaces {err}, expected an OnDiskDataset's metadata"
            ) from err

    def _array(self, card: Mapping[str, Any]) -> npt.NDArray[Any]:
        """Open a NumPy file, mapped where it is not compressed.

        Raises:
            InputError: it is of another format, or damaged.
        """
        if not isinstance(card, Mapping) or not {"path", "format"} <= set(card):
            raise InputError(f"{self.name}: found {card!r:.60}, expected path and format")
        path = self._folder / str(card["path"])
        if card["format"] != "numpy":
            raise InputError(
                f"{path}: format {card['format']!r}, expected numpy; convert it with "
                "numpy.save, pickles are not read"
            )
        file = input_file(path)
        return np.asarray(mapped_array(file))

    def _node_sets(
        self, tasks: list[Any]
    ) -> Iterator[tuple[str, str, npt.NDArray[Any], npt.NDArray[Any] | None]]:
        """Yield split, node type, seeds and labels of the first task on nodes."""
        tasks = sorted(tasks, key=lambda it: it.get("name") != "node_classification")
        for task in tasks[:1]:
            for split, key in _SETS.items():
                for part in task.get(key) or []:
                    data = {str(it["name"]): it for it in part["data"]}
                    if "seeds" not in data and "seed_nodes" not in data:
                        return
                    seeds = self._array(data.get("seeds") or data["seed_nodes"])
                    if seeds.ndim != 1:
                        return
                    labels = self._array(data["labels"]) if "labels" in data else None
                    yield split, str(part.get("type") or NODE), seeds, labels

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the nodes of every type, then the edges.

        Raises:
            InputError: a file does not fit the numbers of nodes.
        """
        for node_type, count in self._counts.items():
            yield from self._nodes(node_type, count)
        for edge_type, kind, card in self._edges:
            if kind == "csv":
                yield from self._csv(edge_type, card)
            else:
                yield from self._arrays(edge_type, self._array(card), str(card["path"]))

    def _nodes(self, node_type: str, count: int) -> Iterator[NodeChunk]:
        features = {name: it for kind, name, it in self._features if kind == node_type}
        for name, values in features.items():
            if len(values) != count:
                raise InputError(
                    f"{self.name}: feature {name!r} has {len(values)} rows, expected "
                    f"{count}, one for each node of type {node_type!r}"
                )
        columns = self._columns(node_type, count)
        for first in range(0, count, CHUNK_ROWS):
            last = min(first + CHUNK_ROWS, count)
            yield NodeChunk(
                ids=np.arange(first, last, dtype=np.int64),
                node_type=node_type,
                columns={name: it[first:last] for name, it in columns.items()},
                features={
                    name: dense_features(name, np.asarray(it[first:last]))
                    for name, it in features.items()
                },
            )

    def _columns(self, node_type: str, count: int) -> dict[str, pa.Array]:
        """Return the columns split and label, null where a set does not name a node."""
        code = np.zeros(count, dtype=np.int8)
        label = np.zeros(count, dtype=np.int64)
        has_label = np.zeros(count, dtype=bool)
        for split, kind, seeds, labels in self._sets:
            if kind != node_type:
                continue
            ids = check_ids(np.asarray(seeds), f"{self.name}: {_SETS[split]}")
            if len(ids) and int(ids.max()) >= count:
                raise InputError(
                    f"{self.name}: {_SETS[split]} names node {int(ids.max())}, expected 0 "
                    f"to {count - 1}"
                )
            code[ids] = 1 + list(_SETS).index(split)
            if labels is not None:
                if labels.ndim != 1 or len(labels) != len(ids):
                    raise InputError(
                        f"{self.name}: {_SETS[split]} has labels of shape "
                        f"{list(labels.shape)}, expected one for each of {len(ids)} seeds"
                    )
                if labels.dtype.kind not in "biu":
                    raise InputError(
                        f"{self.name}: {_SETS[split]} has labels of {labels.dtype}, "
                        "expected integers"
                    )
                label[ids], has_label[ids] = labels.astype(np.int64), True
        if not code.any():
            return {}
        names = pa.array([None, *_SETS], type=pa.string())
        columns = {"split": names.take(pa.array(code))}
        if has_label.any():
            columns["label"] = pa.array(label, mask=~has_label)
        return columns

    def _csv(
        self, edge_type: EdgeType, card: Mapping[str, Any]
    ) -> Iterator[EdgeChunk | NodeChunk]:
        table = {
            "file": str(card["path"]),
            "type": list(edge_type),
            "columns": ["src", "dst"],
            "separator": "comma",
            "ids": "int",
        }
        nodes = [{"type": it, "count": count} for it, count in self._counts.items()]
        source = describe_source(
            {"nodes": nodes, "edges": [table]},
            self._folder,
            where=self.name,
            num_threads=self._num_threads,
        )
        for chunk in source.chunks():
            if isinstance(chunk, EdgeChunk):  # nodes were listed before
                yield chunk

    def _arrays(
        self, edge_type: EdgeType, ends: npt.NDArray[Any], name: str
    ) -> Iterator[EdgeChunk]:
        if ends.ndim != 2 or ends.shape[0] != 2:
            raise InputError(
                f"{self._folder / name}: shape {list(ends.shape)}, expected [2, edges]"
            )
        limits = [self._counts.get(it, 0) for it in (edge_type[0], edge_type[2])]
        for first in range(0, ends.shape[1], CHUNK_ROWS):
            part = np.asarray(ends[:, first : first + CHUNK_ROWS])
            both = [check_ids(part[k].copy(), name, first) for k in (0, 1)]
            for ids, limit in zip(both, limits, strict=True):
                if len(ids) and int(ids.max()) >= limit:
                    raise InputError(
                        f"{self._folder / name}: unknown node {int(ids.max())}, expected 0 "
                        f"to {limit - 1}"
                    )
            yield EdgeChunk(src=both[0], dst=both[1], edge_type=edge_type)


def _count(path: Path, num: object) -> int:
    """Return a number of nodes.

    Raises:
        InputError: it is none.
    """
    if type(num) is not int or not 0 <= num <= _MAX_NODES:
        raise InputError(f"{path}: found {num!r:.40} as num, expected 0 to {_MAX_NODES}")
    return num


def _edge_type(card: Mapping[str, Any]) -> EdgeType:
    """Return the type of edges, which is written ``source:relation:destination``."""
    if not card.get("type"):
        return EDGE
    parts = str(card["type"]).split(":")
    if len(parts) != 3:
        raise InputError(
            f"metadata.yaml: edge type {card['type']!r:.60}, expected "
            "source:relation:destination"
        )
    return EdgeType(*parts)


def _find(folder: Path) -> list[Path]:
    path = folder / "metadata.yaml"
    return [path] if path.is_file() else []


def open_graphbolt(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one folder.

    Raises:
        InputError: a file is missing, of another format, or does not fit.
        MissingDependencyError: PyYAML is not installed.
    """
    if options.columns or options.roles or options.skip or options.edge_type:
        raise ConfigError("graphbolt folders name their types; leave those options out")
    if len(files) != 1:
        raise InputError(f"{files[1].name}: a second folder, expected one metadata.yaml")
    return GraphboltSource(files[0].path, options)


formats.register("graphbolt")(
    Format(
        open=open_graphbolt,
        patterns=("metadata.yaml",),
        find=_find,
        about="DGL GraphBolt's OnDiskDataset folders, metadata.yaml",
    )
)
