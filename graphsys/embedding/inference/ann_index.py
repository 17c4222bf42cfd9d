"""Indexes for approximate nearest neighbors, kept in files beside the rows."""

import contextlib
import hashlib
import json
import math
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple, get_args

import numpy as np
import numpy.typing as npt

from graphsys.core import ownership
from graphsys.core.checksums import digest
from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, CorruptStoreError, OutputExistsError
from graphsys.core.memory import resident_bytes
from graphsys.core.plain_files import read_json
from graphsys.embedding.config import EmbeddingConfig
from graphsys.embedding.rows.trained_rows import TrainedEmbedding
from graphsys.embedding.spec.comparators import comparator_of
from graphsys.kernels.cpu.embedding.vector_math import normalize_rows
from graphsys.storage.manifest import file_name
from graphsys.storage.output_file import new_files
from graphsys.storage.runs.run_folder import write_durably
from graphsys.storage.transaction import disk_errors

IndexKind = Literal["exact", "hnsw", "ivf"]
Floats = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]
_BLOCK = 1 << 16
_LINKS = 32
_BUILD_WIDTH = 100
_SEARCH_WIDTH = 128
_TRAINING_PER_LIST = 39
_PROBED = 16
_LINK_BYTES = 4 * 2 * _LINKS + 32  # of a row: links, where they begin, locks
_LISTED_BYTES = 16
_GROWN = 14  # tenths: what holds the rows grows while they are added
_LOADED_BYTES = 12 << 20  # threads, what a library takes at its first use
_IO_BYTES = 1 << 20
_FORMAT = 2  # of the stamp; others are built again


class NeighborIndex(NamedTuple):
    """An index of the rows of one node type."""

    faiss_index: Any
    is_distance: bool

    def search(self, queries: Floats, k: int) -> tuple[Floats, Ints]:
        """Return scores and numbers of about the k best, ``[Q, k]``; -1: no more."""
        found, numbers = self.faiss_index.search(queries, k)
        return (-found if self.is_distance else found), numbers


def require_kind(kind: str) -> None:
    """Check the name of a way to search.

    Raises:
        ConfigError: It is not one.
    """
    if kind not in get_args(IndexKind):
        raise ConfigError(
            f"index: got {kind!r}, expected one of {', '.join(get_args(IndexKind))}"
        )


def build_index(
    run: str | Path | TrainedEmbedding,
    kind: IndexKind,
    *,
    node_type: str | None = None,
    path: str | Path | None = None,
) -> Path:
    """Build an index of a node type's rows and save it.

    ``hnsw`` (Malkov, Yashunin, "Efficient and robust approximate nearest neighbor search
    using hierarchical navigable small world graphs", 2016) with 32 links; ``ivf``: about
    4 sqrt(N) lists, of which a search reads 16. Both keep all rows of the type in memory.

    Args:
        run: A run or its folder.
        kind: ``hnsw`` or ``ivf``.
        node_type: The type; needed where the run has several.
        path: The file, by default ``RUN/indexes/TYPE.KIND.faiss``; ``PATH.json`` beside
            it says of which checkpoint it is.

    Returns:
        The file.

    Raises:
        ConfigError: The kind is not one of these, the type is not clear, or the run's
            comparator is not one that an index knows.
        StorageFullError: It cannot be written.
    """
    require_kind(kind)
    if kind == "exact":
        raise ConfigError("index: got 'exact', which needs none; expected hnsw or ivf")
    opened = run if isinstance(run, TrainedEmbedding) else TrainedEmbedding(run)
    _require_metric(kind, opened)
    chosen = opened.the_type(node_type)
    out = _file(opened, kind, chosen, path)
    _write(_build(opened, kind, chosen), out, _stamp(opened, kind, chosen))
    return out


def _require_metric(kind: str, run: TrainedEmbedding) -> None:
    if comparator_of(run.config.comparator).is_pairwise:
        raise ConfigError(
            f"index: got {kind!r} with the comparator {run.config.comparator}, expected "
            "'exact': an index knows inner products and distances only"
        )


def index_bytes(run: TrainedEmbedding, kind: IndexKind, node_type: str) -> int:
    """Return what the process takes at its peak while an index is built and searched."""
    require("faiss", extra="all")
    size, dim = int(run.graph.num_nodes_of(node_type)), run.dim_of(node_type)
    beside = _LINK_BYTES if kind == "hnsw" else _LISTED_BYTES
    rows = size * (4 * dim + beside) * _GROWN // 10
    if kind == "ivf":
        rows = max(rows, 2 * 4 * dim * min(size, 256 * _num_lists(size)))
    return resident_bytes() + _LOADED_BYTES + rows


def open_index(
    run: TrainedEmbedding,
    kind: IndexKind,
    *,
    node_type: str,
    path: str | Path | None = None,
) -> NeighborIndex:
    """Open the index of a node type; build it if there is none of this checkpoint.

    Raises:
        CorruptStoreError: The file cannot be read.
        ConfigError: The run's comparator is not one that an index knows.
    """
    _require_metric(kind, run)
    file = _file(run, kind, node_type, path)
    key = str(file)
    if key not in run.indexes:
        if not _is_current(file, _stamp(run, kind, node_type)):
            build_index(run, kind, node_type=node_type, path=path)
        run.indexes[key] = _read(file, kind)
    is_distance = comparator_of(run.config.comparator).is_distance
    return NeighborIndex(run.indexes[key], is_distance)


def prepare(rows: Any, config: EmbeddingConfig) -> Floats:
    """Copy rows as faiss compares them: without bias, of unit length under ``cos``.

    Of complex rows the bias becomes 0, so that halves stay halves.
    """
    comparator = comparator_of(config.comparator)
    first = int(config.bias and not comparator.is_complex)
    copy: Floats = np.array(rows[:, first:], dtype=np.float32, order="C")
    if config.bias and comparator.is_complex:
        copy[:, 0] = 0
    if comparator.is_unit:
        normalize_rows(copy, copy, np.empty(len(copy), dtype=np.float32))
    return copy


def _build(run: TrainedEmbedding, kind: IndexKind, node_type: str) -> Any:
    faiss = require("faiss", extra="all")
    is_distance = comparator_of(run.config.comparator).is_distance
    metric = faiss.METRIC_L2 if is_distance else faiss.METRIC_INNER_PRODUCT
    size = run.graph.num_nodes_of(node_type)
    dim = run.dim_of(node_type) - int(run.config.bias)
    if kind == "hnsw":
        index = faiss.IndexHNSWFlat(dim, _LINKS, metric)
        index.hnsw.efConstruction = _BUILD_WIDTH
    else:
        lists = _num_lists(size)
        coarse = (faiss.IndexFlatL2 if is_distance else faiss.IndexFlatIP)(dim)
        index = faiss.IndexIVFFlat(coarse, dim, lists, metric)
        some = np.random.default_rng(0).permutation(size)[: 256 * lists]
        index.train(prepare(run.take(node_type, np.sort(some)), run.config))
    for part in range(run.graph.num_partitions(node_type)):
        table = run.blocks(node_type, part)
        for begin in range(0, len(table), _BLOCK):
            index.add(prepare(table[begin : begin + _BLOCK], run.config))
    return index


def _num_lists(size: int) -> int:
    return max(1, min(round(4 * math.sqrt(size)), size // _TRAINING_PER_LIST))


def _write(index: Any, out: Path, stamp: str) -> None:
    faiss = require("faiss", extra="all")
    _require_own(out)
    with new_files(out) as [new]:
        with new.open("wb") as stream:
            _write_through(faiss, index, stream)
        told = digest(np.memmap(new, dtype=np.uint8, mode="r"))
        with disk_errors(out):  # an index without a stamp is not used
            ownership.remove_listed(out.parent, [_stamp_file(out).name])
    content = {"of": stamp, "xxh3": told}
    write_durably(_stamp_file(out), (json.dumps(content) + "\n").encode())


def _require_own(out: Path) -> None:
    """Refuse to write over files that are no index of ours.

    Raises:
        OutputExistsError: There is one, which nothing is written over.
    """
    file = _stamp_file(out)
    with contextlib.suppress(OSError, ValueError):
        if set(read_json(file)) == {"of", "xxh3"}:
            return
    for found in (out, file):
        # an index beside which a stamp is missing is none that we look for
        if found.exists() and not (found == out and out.parent.name == "indexes"):
            raise OutputExistsError(
                f"{found} exists and is no index of ours; choose another path"
            )


def _write_through(faiss: Any, index: Any, stream: BinaryIO) -> None:
    """Write an index piece by piece, so that there is no second one in memory."""
    failed: list[OSError] = []

    def write(piece: bytes) -> None:
        try:
            stream.write(piece)
        except OSError as err:  # faiss would make a RuntimeError of it
            failed.append(err)
            raise

    try:
        faiss.write_index(index, faiss.PyCallbackIOWriter(write, _IO_BYTES))
    except RuntimeError:
        if failed:
            raise failed[0] from None
        raise


def _read(file: Path, kind: IndexKind) -> Any:
    faiss = require("faiss", extra="all")
    try:
        if digest(np.memmap(file, dtype=np.uint8, mode="r")) != _read_stamp(file).get(
            "xxh3"
        ):
            raise ValueError("it is not what was written")
        with file.open("rb") as stream:
            index = faiss.read_index(faiss.PyCallbackIOReader(stream.read, _IO_BYTES))
    except (OSError, RuntimeError, ValueError) as err:
        raise CorruptStoreError(
            f"the index {file} cannot be read ({str(err).splitlines()[0]}); remove it and "
            "it will be built again"
        ) from err
    if kind == "hnsw":
        index.hnsw.efSearch = _SEARCH_WIDTH
    else:
        index.nprobe = _PROBED
    return index


def _file(
    run: TrainedEmbedding, kind: IndexKind, node_type: str, path: str | Path | None
) -> Path:
    if path is not None:
        return Path(path)
    return run.path / "indexes" / f"{file_name(node_type)}.{kind}.faiss"


def _stamp_file(file: Path) -> Path:
    return file.with_name(file.name + ".json")


def _stamp(run: TrainedEmbedding, kind: IndexKind, node_type: str) -> str:
    """Return what an index is of: the checkpoint, the kind and the type."""
    text = json.dumps(
        [
            _FORMAT,
            kind,
            node_type,
            run.config.comparator,
            run.state.graph,
            run.state.files,
            run.state.seconds,
        ],
        sort_keys=True,
    )
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _is_current(file: Path, stamp: str) -> bool:
    return file.exists() and _read_stamp(file).get("of") == stamp


def _read_stamp(file: Path) -> dict[str, Any]:
    try:
        found = read_json(_stamp_file(file))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
