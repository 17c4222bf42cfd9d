"""CSR arrays as ``.npy`` files, for NumPy, SciPy and whatever reads them.

``csr.json`` says what there is: node types and edge types with folders and files. A node
type's folder has ``ids`` (``.npy``, or ``.arrow`` of texts), its features as ``.npy``, and
``columns.arrow``; an edge type's has ``indptr.npy`` and ``indices.npy`` (int64),
``weight.npy``, ``time.npy``, ``relation.npy`` (codes; names in ``csr.json``), and further
columns in ``columns.arrow``. Row k of a file belongs to node k or to entry k.
"""

import contextlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from graphsys.core.progress import Progress
from graphsys.interop.graph_files.blocks import EdgeRows, node_blocks
from graphsys.interop.graph_files.column_types import fitted, plain_type
from graphsys.storage.manifest import file_name
from graphsys.storage.reader import GraphReader

DESCRIPTION = "csr.json"
_ARRAYS = ("weight", "time", "relation")


def write_csr(graph: GraphReader, folder: Path, rows: int, progress: Progress) -> None:
    """Write a graph's CSR arrays.

    Args:
        graph: An open graph.
        folder: An empty folder.
        rows: Nodes or edges at a time.
        progress: Receives a stage for each type.
    """
    nodes = {
        name: _write_nodes(graph, name, folder, rows, progress) for name in graph.node_types
    }
    edges = [
        _write_edges(graph, name, folder, rows, progress)
        for name in graph.manifest.edge_types
    ]
    said = {"format": "csr", "version": 1, "node_types": nodes}
    text = json.dumps(said | {"edge_types": edges}, indent=1, ensure_ascii=False)
    (folder / DESCRIPTION).write_text(text + "\n", encoding="utf-8")


def _write_nodes(
    graph: GraphReader, name: str, folder: Path, rows: int, progress: Progress
) -> dict[str, Any]:
    at = f"nodes/{file_name(name)}"
    (folder / at).mkdir(parents=True)
    entry, size = graph.manifest.node_types[name], graph.num_nodes_of(name)
    is_number = entry.id_type == "int64"
    progress.stage(f"nodes {name}", size, "nodes")
    with _Files(folder / at) as files:
        if is_number:
            files.array("ids", "<i8", (size,))
        for feature, about in entry.features.items():
            if about["dim"]:
                shape = (size, about["dim"])
                files.array(f"features/{file_name(feature)}", about["dtype"], shape)
        for block in node_blocks(graph, name, rows):
            ids = block.table.column("id")
            others = block.table.drop_columns(["id"])
            if is_number:
                files.append("ids", ids.to_numpy())
            else:
                files.table("ids", pa.table({"id": ids}))
            for feature, values in block.features.items():
                if isinstance(values, np.ndarray):
                    files.append(f"features/{file_name(feature)}", values)
                else:
                    others = others.append_column(feature, values)
            if others.num_columns:
                files.table("columns", others)
            progress.advance(block.table.num_rows)
    return {"folder": at, "num_nodes": size, "files": files.names}


def _write_edges(
    graph: GraphReader, name: str, folder: Path, rows: int, progress: Progress
) -> dict[str, Any]:
    at = f"edges/{file_name(name)}"
    (folder / at).mkdir(parents=True)
    found = EdgeRows(graph, name)
    progress.stage(f"edges {name}", found.num_entries, "edges")
    with _Files(folder / at) as files:
        files.array("indptr", "<i8", (found.num_rows + 1,))
        files.array("indices", "<i8", (found.num_entries,))
        for offsets in found.offsets():
            files.append("indptr", offsets)
        for block in found.blocks(rows, is_typed=False):
            files.append("indices", block.dst)
            further = dict(block.columns)
            for column in _ARRAYS:
                if column in further:
                    values = further.pop(column)
                    if column not in files.names:
                        files.array(column, values.dtype, (found.num_entries,))
                    files.append(column, values)
            if further:
                files.table("columns", pa.table(further))
            progress.advance(len(block.dst))
    kind = graph.edge_type(name)
    return {
        "edge_type": list(kind),
        "folder": at,
        "directed": graph.is_directed_type(name),
        "is_symmetric": found.is_symmetric,
        "num_entries": found.num_entries,
        "time_unit": graph.time_unit(name),
        "relations": graph.relations(name),
        "files": files.names,
    }


class _Files(contextlib.ExitStack):
    """Files of one folder that grow side by side.

    Attributes:
        names: Their names, by what they hold.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._arrays: dict[str, tuple[Any, np.dtype[Any]]] = {}
        self._writers: dict[str, Any] = {}
        self.names: dict[str, str] = {}

    def array(self, name: str, dtype: Any, shape: tuple[int, ...]) -> None:
        """Begin a NumPy file of known shape."""
        dtype = np.dtype(dtype)
        self.names[name] = f"{name}.npy"
        path = self._folder / self.names[name]
        path.parent.mkdir(exist_ok=True)
        stream = self.enter_context(path.open("wb"))
        descr = np.lib.format.dtype_to_descr(dtype)
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(stream, header)
        self._arrays[name] = stream, dtype

    def append(self, name: str, values: Any) -> None:
        """Append values to a NumPy file."""
        stream, dtype = self._arrays[name]
        stream.write(np.ascontiguousarray(values, dtype=dtype).tobytes())

    def table(self, name: str, table: pa.Table) -> None:
        """Append rows to an Arrow file."""
        table, _ = fitted(table, plain_type, str(self._folder), "Arrow")
        if name not in self._writers:
            self.names[name] = f"{name}.arrow"
            path = str(self._folder / self.names[name])
            writer = pa.ipc.new_file(path, table.schema)
            self._writers[name] = self.enter_context(writer)
        self._writers[name].write_table(table)
