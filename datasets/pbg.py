"""PyTorch-BigGraph's prepared data: ``edges_I_J.h5`` and the files of its entities.

Each HDF5 file holds the edges of one bucket: ``lhs`` and ``rhs``, offsets in partitions I
and J, ``rel``, a relation's number, and perhaps ``weight``. ``entity_count_TYPE_P.txt``
gives the sizes of partitions, so that ids are offset plus the sizes of those before. With
``dictionary.json`` beside them (or one folder up) entities and relations get their names.
One entity type is read; which relation joins which of several types stands in a program
that PBG imports, and that is not run here. Needs h5py (extra "all").

References:
    Lerer et al., "PyTorch-BigGraph: a large-scale graph embedding system", MLSys 2019;
    torchbiggraph's documentation, "I/O format".
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.columns import integer_names
from graphsys.datasets.files import InputFile, describe
from graphsys.datasets.triples import TRIPLE
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_ROWS: Final = 1 << 20
_EDGES: Final = re.compile(r"^edges_(\d+)_(\d+)\.h5$")
_COUNT: Final = re.compile(r"^entity_count_(.+)_(\d+)\.txt$")


class PbgSource(Source):
    """The buckets of one split."""

    def __init__(self, files: list[InputFile], options: ReadOptions) -> None:
        self._h5py: Any = require("h5py", extra="all")
        self.name = str(files[0].path.parent)
        self.total_bytes = sum(file.num_bytes for file in files)
        self.is_directed = not options.is_undirected
        self._edge_type = options.edge_type or TRIPLE
        self._files = files
        self._offsets, entity = _offsets(files[0].path.parent)
        self._entities, self._relations = _names(files[0].path.parent, entity)
        total = int(self._offsets[-1])
        if self._entities is not None and len(self._entities) != total:
            raise InputError(
                f"{self.name}: dictionary.json names {len(self._entities)} of {entity!r}, "
                f"expected {total} as the entity_count files say"
            )

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all entities, then the edges of every bucket.

        Raises:
            InputError: a file is damaged, or a number is out of range.
        """
        total = int(self._offsets[-1])
        for first in range(0, total, CHUNK_ROWS):
            numbers = np.arange(first, min(first + CHUNK_ROWS, total), dtype=np.int64)
            node_type = self._edge_type.src_type
            yield NodeChunk(ids=self._named(numbers), node_type=node_type)
        for file in self._files:
            try:
                with self._h5py.File(file.path, "r") as bucket:
                    yield from self._bucket(file, bucket)
            except (OSError, KeyError) as err:
                if isinstance(err, InputError):
                    raise
                raise InputError(
                    f"{file.name}: cannot be read as a bucket of PBG: {describe(err)}"
                ) from err

    def _bucket(self, file: InputFile, bucket: Any) -> Iterator[EdgeChunk]:
        match = _EDGES.match(file.path.name)
        parts = [int(it) for it in match.groups()] if match else [0, 0]
        sizes = {name: len(bucket[name]) for name in ("lhs", "rel", "rhs")}
        if len(set(sizes.values())) != 1:
            raise InputError(f"{file.name}: lhs, rel, rhs have {sizes} rows, expected one")
        rows = sizes["lhs"]
        for first in range(0, rows, CHUNK_ROWS):
            span = slice(first, min(first + CHUNK_ROWS, rows))
            ends = [
                self._global(file, bucket[name][span], part)
                for name, part in zip(("lhs", "rhs"), parts, strict=True)
            ]
            columns: dict[str, Any] = {
                "relation": self._relation(file, bucket["rel"][span])
            }
            if "weight" in bucket:
                columns["weight"] = bucket["weight"][span]
            yield EdgeChunk(
                src=self._named(ends[0]),
                dst=self._named(ends[1]),
                edge_type=self._edge_type,
                columns=columns,
                bytes_read=file.num_bytes * (span.stop - first) // rows,
            )

    def _global(
        self, file: InputFile, local: npt.NDArray[Any], part: int
    ) -> npt.NDArray[np.int64]:
        if part + 1 >= len(self._offsets):
            raise InputError(
                f"{file.name}: partition {part}, expected 0 to {len(self._offsets) - 2} as "
                "there are entity_count files"
            )
        size = int(self._offsets[part + 1] - self._offsets[part])
        if local.dtype.kind not in "iu" or (
            len(local) and (int(local.min()) < 0 or int(local.max()) >= size)
        ):
            raise InputError(
                f"{file.name}: an offset outside 0 to {size - 1} of partition {part}"
            )
        ids: npt.NDArray[np.int64] = local.astype(np.int64) + self._offsets[part]
        return ids

    def _named(self, numbers: npt.NDArray[np.int64]) -> Any:
        """Return ids: names where there are some, else the numbers."""
        if self._entities is None:
            return numbers
        return self._entities.take(pa.array(numbers)).dictionary_encode()

    def _relation(self, file: InputFile, numbers: npt.NDArray[Any]) -> pa.DictionaryArray:
        if self._relations is None:
            return integer_names(numbers)
        if len(numbers) and int(numbers.max()) >= len(self._relations):
            raise InputError(
                f"{file.name}: relation {int(numbers.max())}, expected one of the "
                f"{len(self._relations)} of dictionary.json"
            )
        return self._relations.take(pa.array(numbers.astype(np.int64))).dictionary_encode()


def _above(folder: Path, pattern: str) -> list[Path]:
    """Return files of a folder, or of the one above where it has none."""
    found = sorted(folder.glob(pattern))
    return found or sorted(folder.parent.glob(pattern))


def _offsets(folder: Path) -> tuple[npt.NDArray[np.int64], str]:
    """Return where partitions begin, and the name of the entity type.

    Raises:
        InputError: there are no sizes, or several types.
    """
    sizes: dict[str, dict[int, int]] = {}
    for path in _above(folder, "entity_count_*.txt"):
        match = _COUNT.match(path.name)
        text = path.read_text("utf-8", "replace").strip()
        if match is None or not text.isdecimal() or len(text) > 12:
            raise InputError(f"{path}: found {text[:40]!r}, expected a number of entities")
        sizes.setdefault(match[1], {})[int(match[2])] = int(text)
    if len(sizes) != 1:
        raise InputError(
            f"{folder}: entity_count files of {len(sizes)} types "
            f"({cut_list(sizes) or 'none'}), expected one type; export several types as a "
            "tables file"
        )
    name, parts = next(iter(sizes.items()))
    if set(parts) != set(range(len(parts))):
        raise InputError(f"{folder}: partitions of {name!r} are not 0 to {len(parts) - 1}")
    ordered = [parts[k] for k in range(len(parts))]
    return np.concatenate([[0], np.cumsum(ordered)]).astype(np.int64), name


def _names(folder: Path, entity: str) -> tuple[pa.Array | None, pa.Array | None]:
    """Return the names of entities and of relations, where there are some."""
    found = _above(folder, "dictionary.json")
    if not found:
        return None, None
    try:
        content = json.loads(found[0].read_bytes())
        entities = pa.array(content["entities"][entity], type=pa.string())
        relations = pa.array(content["relations"], type=pa.string())
    except (ValueError, KeyError, TypeError, pa.ArrowException) as err:
        raise InputError(
            f"{found[0]}: expected PBG's dictionary with entities and relations: "
            f"{describe(err)}"
        ) from err
    return entities, relations


def _find(folder: Path) -> list[Path]:
    return sorted(it for it in folder.glob("edges_*.h5") if _EDGES.match(it.name))


def open_pbg(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of the buckets of one folder.

    Raises:
        InputError: files are missing or do not fit.
        MissingDependencyError: h5py is not installed.
    """
    if options.columns or options.roles or options.skip:
        raise ConfigError("pbg files have fixed columns; leave out --columns and --skip")
    wrong = [file.name for file in files if not _EDGES.match(file.path.name)]
    if wrong or len({file.path.parent for file in files}) != 1:
        raise InputError(
            f"{(wrong or [files[0].name])[0]}: expected edges_I_J.h5 files of one folder"
        )
    return PbgSource(files, options)


formats.register("pbg")(
    Format(
        open=open_pbg,
        patterns=("edges_*_*.h5",),
        find=_find,
        about="PyTorch-BigGraph's prepared data, edges_I_J.h5",
    )
)
