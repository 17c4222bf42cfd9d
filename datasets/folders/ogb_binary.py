"""OGB's binary folders: ``raw/data.npz``, or ``raw/NAME.npy``.

ogbn-papers100M comes as ``raw/data.npz`` (``edge_index``, ``node_feat``, ``node_year``,
``num_nodes_list``) and ``raw/node-label.npz``, or the same arrays as ``raw/NAME.npy``; they
are streamed, compressed or not, and never held as a whole.

References:
    Hu et al., "Open graph benchmark: datasets for machine learning on graphs", NeurIPS
    2020; ogb.stanford.edu.
"""

import weakref
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.datasets.array_files import dense_features
from graphsys.datasets.columns import check_ids
from graphsys.datasets.files import DAMAGE, describe, input_file
from graphsys.datasets.table_spec.text_arrays import text_rows
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_ROWS: Final = 1 << 18
SPLITS: Final = ("train", "valid", "test")
_MAX_NODES: Final = 1 << 40


class ArrayStream:
    """One array of a folder, read from its first row to its last.

    Args:
        path: A .npy file, or a .npz archive.
        name: Name of the array, in an archive.

    Raises:
        InputError: it is missing, damaged, or no array of numbers in C's order.
    """

    def __init__(self, path: Path, name: str) -> None:
        self.what = f"{path}: {name}"
        try:
            if path.suffix == ".npz":
                archive = zipfile.ZipFile(path)
                weakref.finalize(self, archive.close)
                self._file: Any = archive.open(f"{name}.npy")
            else:
                self._file = path.open("rb")
            weakref.finalize(self, self._file.close)
            version = np.lib.format.read_magic(self._file)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            self.shape, is_fortran, self.dtype = read(self._file)
        except Exception as err:  # a damaged archive or header may raise anything
            raise InputError(f"{self.what}: cannot be read: {describe(err)}") from err
        if self.dtype.kind not in "biuf" or (is_fortran and len(self.shape) > 1):
            raise InputError(
                f"{self.what}: {self.dtype} {list(self.shape)}, expected numbers, row by "
                "row"
            )

    def skip(self, num_bytes: int) -> None:
        """Leave bytes out."""
        self._file.seek(num_bytes, 1)

    def read(self, num_values: int) -> npt.NDArray[Any]:
        """Return the next values, ``[num_values]``.

        Raises:
            InputError: the file ends before them.
        """
        size = num_values * self.dtype.itemsize
        try:
            content = self._file.read(size)
        except Exception as err:  # what a damaged archive raises
            raise InputError(f"{self.what}: cannot be read: {describe(err)}") from err
        if len(content) != size:
            raise InputError(f"{self.what}: ends too early; fetch the file again")
        return np.frombuffer(content, dtype=self.dtype)

    def rows(self, num_rows: int) -> npt.NDArray[Any]:
        """Return the next rows, ``[num_rows, ...]``."""
        width = int(np.prod(self.shape[1:], dtype=np.int64))
        return self.read(num_rows * width).reshape(num_rows, *self.shape[1:])


class OgbBinarySource(Source):
    """The nodes and edges of one binary folder.

    Args:
        root: The folder that holds ``raw`` and ``split``.
        is_directed: Whether edges are.

    Raises:
        InputError: an array is missing or does not fit.
    """

    def __init__(self, root: Path, *, is_directed: bool) -> None:
        self.name = str(root)
        self.is_directed = is_directed
        self._raw = root / "raw"
        self._split = root / "split"
        sizes = self._open("num_nodes_list")
        if sizes is None or int(np.prod(sizes.shape)) != 1:
            raise InputError(f"{self._raw}: no num_nodes_list of one graph, expected one")
        self.num_nodes = int(sizes.read(1)[0])
        if not 0 <= self.num_nodes <= _MAX_NODES:
            raise InputError(
                f"{sizes.what}: {self.num_nodes} nodes, expected at most {_MAX_NODES}"
            )
        ends = self._open("edge_index")
        if ends is None or len(ends.shape) != 2 or ends.shape[0] != 2:
            raise InputError(
                f"{self._raw}: no edge_index of shape [2, edges], expected one"
            )

    def _open(self, name: str) -> ArrayStream | None:
        """Open an array, if the folder has it."""
        if (plain := self._raw / f"{name}.npy").is_file():
            return ArrayStream(plain, name)
        label = self._raw / "node-label.npz"
        archive = label if name == "node_label" else self._raw / "data.npz"
        if not archive.is_file():
            return None
        try:
            with zipfile.ZipFile(archive) as packed:
                if f"{name}.npy" not in packed.namelist():
                    return None
        except DAMAGE as err:
            raise InputError(f"{archive}: cannot be read: {describe(err)}") from err
        return ArrayStream(archive, name)

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the nodes, then the edges.

        Raises:
            InputError: an array is cut short, or an edge names an unknown node.
        """
        columns = {"label": "node_label", "time": "node_year"}
        streams = {key: self._rows_of_nodes(name) for key, name in columns.items()}
        features = self._rows_of_nodes("node_feat")
        names, codes = self._splits()
        for first in range(0, self.num_nodes, CHUNK_ROWS):
            last = min(first + CHUNK_ROWS, self.num_nodes)
            found: dict[str, Any] = {
                key: _column(it.rows(last - first)) for key, it in streams.items() if it
            }
            if codes is not None:
                found["split"] = names.take(pa.array(codes[first:last]))
            x = {}
            if features is not None:
                x["x"] = dense_features(features.what, features.rows(last - first))
            ids = np.arange(first, last, dtype=np.int64)
            yield NodeChunk(ids=ids, columns=found, features=x)
        yield from self._edges()

    def _rows_of_nodes(self, name: str) -> ArrayStream | None:
        stream = self._open(name)
        if stream is not None and stream.shape[:1] != (self.num_nodes,):
            raise InputError(
                f"{stream.what}: shape {list(stream.shape)}, expected {self.num_nodes} rows"
            )
        return stream

    def _splits(self) -> tuple[pa.Array, npt.NDArray[np.int8] | None]:
        """Return the names of splits, and the place of each node's among them."""
        names = pa.array([None, *SPLITS], type=pa.string())
        folders = sorted(it for it in self._split.glob("*") if it.is_dir())
        if not folders:
            return names, None
        codes = np.zeros(self.num_nodes, dtype=np.int8)
        for code, name in enumerate(SPLITS, start=1):
            for path in folders[0].glob(f"{name}.csv*"):
                rows = text_rows(input_file(path))
                if len(rows) and int(rows.max()) >= self.num_nodes:
                    raise InputError(
                        f"{path}: row {int(rows.max())}, expected 0 to {self.num_nodes - 1}"
                    )
                codes[rows] = code
        return names, codes

    def _edges(self) -> Iterator[EdgeChunk]:
        src, dst = self._open("edge_index"), self._open("edge_index")
        if src is None or dst is None:
            raise InputError(f"{self._raw}: edge_index was taken away while it was read")
        num_edges = src.shape[1]
        dst.skip(num_edges * dst.dtype.itemsize)
        for first in range(0, max(num_edges, 1), CHUNK_ROWS):
            size = min(CHUNK_ROWS, num_edges - first)
            ends = [check_ids(it.read(size), it.what, first) for it in (src, dst)]
            for ids in ends:
                refuse_unknown(src.what, ids, self.num_nodes)
            yield EdgeChunk(src=ends[0], dst=ends[1])


def _column(values: npt.NDArray[Any]) -> Any:
    """Return a column of whole numbers; NaN stands for a missing one."""
    flat = values.reshape(len(values), -1)
    flat = flat[:, 0] if flat.shape[1] == 1 else flat
    if flat.ndim == 2:
        return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
    if flat.dtype.kind != "f":
        return flat
    is_missing = ~np.isfinite(flat)
    return pa.array(np.where(is_missing, 0, flat).astype(np.int64), mask=is_missing)


def refuse_unknown(what: str, ids: npt.NDArray[np.int64], num_nodes: int) -> None:
    """Refuse edges to nodes beyond those that are counted.

    Raises:
        InputError: there is one.
    """
    if len(ids) and int(ids.max()) >= num_nodes:
        raise InputError(
            f"{what}: unknown node {int(ids.max())}, expected 0 to {num_nodes - 1}"
        )
