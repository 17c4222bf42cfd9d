"""PyTorch-BigGraph's prepared data: ``edges_I_J.h5`` and the files of its entities.

Each HDF5 file holds the edges of one bucket: ``lhs`` and ``rhs``, offsets in partitions I
and J, ``rel``, a relation's number, and perhaps ``weight``. ``entity_count_TYPE_P.txt``
gives the sizes of partitions, so that ids are offset plus the sizes of those before.
Beside them (or one folder up) ``entity_names_TYPE_P.json`` and ``dynamic_rel_names.json``
name entities and relations, in older data ``dictionary.json``.
Several edge paths are several splits. PBG's config file, which is read and not run, stands
for all that it names; it is needed where there are several types of entities, since only it
says what a relation joins. Needs h5py (extra "all").

References:
    Lerer et al., "PyTorch-BigGraph: a large-scale graph embedding system", MLSys 2019;
    torchbiggraph's documentation, "I/O format".
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from graphsys.core.deps import require
from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.core.types import DEFAULT_SPLIT, EdgeType
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.columns import integer_names
from graphsys.datasets.files import InputFile, describe, input_file
from graphsys.datasets.readers.pbg_config import read_pbg_mapping
from graphsys.datasets.readers.pbg_names import PbgEntities, PbgNames
from graphsys.datasets.readers.triples import TRIPLE
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

CHUNK_ROWS: Final = 1 << 20
_EDGES: Final = re.compile(r"^edges_(\d+)_(\d+)\.h5$")


class PbgSource(Source):
    """The buckets of one edge path, or of several, which are splits then.

    Args:
        files: The buckets.
        options: What the user says.
        config: PBG's config, needed where there are several types of entities.

    Raises:
        InputError: Files do not fit each other.
    """

    def __init__(
        self,
        files: list[InputFile],
        options: ReadOptions,
        config: Mapping[str, Any] | None = None,
        entity_path: Path | None = None,
    ) -> None:
        self._h5py: Any = require("h5py", extra="all")
        self.name = str(files[0].path.parent)
        self.total_bytes = sum(file.num_bytes for file in files)
        self.is_directed = not options.is_undirected
        self._files = files
        self._splits = _splits(files, shared=entity_path is not None)
        names = PbgNames(entity_path or _entity_path(files[0].path.parent))
        self._kinds = _edge_types(names, options, config)
        self._entities: dict[str, PbgEntities] = {}
        for kind in self._kinds:
            for node_type in (kind.src_type, kind.dst_type):
                entity = node_type
                if len(names.sizes) == 1:
                    entity = next(iter(names.sizes))
                if entity not in names.sizes:
                    raise InputError(f"{names.folder}: no entity_count of {entity!r}")
                self._entities[node_type] = PbgEntities(names, entity)
        known = names.relations()
        if known is None and config is not None and not config.get("dynamic_relations"):
            known = [str(relation["name"]) for relation in config["relations"]]
        self._relations = None if known is None else pa.array(known, type=pa.string())

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield all entities, then the edges of every bucket.

        Raises:
            InputError: a file is damaged, or a number is out of range.
        """
        for node_type, entities in self._entities.items():
            for first in range(0, len(entities), CHUNK_ROWS):
                last = min(first + CHUNK_ROWS, len(entities))
                numbers = np.arange(first, last, dtype=np.int64)
                yield NodeChunk(ids=entities.take(numbers), node_type=node_type)
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
        sizes = {name: len(bucket[name]) for name in ("lhs", "rel", "rhs")}
        if len(set(sizes.values())) != 1:
            raise InputError(f"{file.name}: lhs, rel, rhs have {sizes} rows, expected one")
        rows = sizes["lhs"]
        for first in range(0, rows, CHUNK_ROWS):
            span = slice(first, min(first + CHUNK_ROWS, rows))
            columns = {name: bucket[name][span] for name in ("lhs", "rhs", "rel")}
            if "weight" in bucket:
                columns["weight"] = bucket["weight"][span]
            bytes_read = file.num_bytes * (span.stop - first) // rows
            if len(self._kinds) == 1:
                yield self._chunk(file, self._kinds[0], columns, bytes_read)
                continue
            for number in np.unique(columns["rel"]).tolist():
                if not 0 <= number < len(self._kinds):
                    raise InputError(
                        f"{file.name}: relation {number}, expected one of the "
                        f"{len(self._kinds)} of the config"
                    )
                chosen = columns["rel"] == number
                some = {name: column[chosen] for name, column in columns.items()}
                yield self._chunk(file, self._kinds[number], some, bytes_read)
                bytes_read = 0

    def _chunk(
        self, file: InputFile, kind: EdgeType, columns: dict[str, Any], bytes_read: int
    ) -> EdgeChunk:
        match = _EDGES.match(file.path.name)
        parts = [int(it) for it in match.groups()] if match else [0, 0]
        ends = []
        for name, node_type, part in zip(("lhs", "rhs"), kind[::2], parts, strict=True):
            entities = self._entities[node_type]
            ends.append(entities.take(entities.numbers(file.name, columns[name], part)))
        more = {name: columns[name] for name in columns.keys() & {"weight"}}
        if len(self._kinds) == 1:
            more["relation"] = self._relation(file, columns["rel"])
        return EdgeChunk(
            src=ends[0],
            dst=ends[1],
            edge_type=kind,
            split=self._splits[file.path.parent],
            columns=more,
            bytes_read=bytes_read,
        )

    def _relation(self, file: InputFile, numbers: npt.NDArray[Any]) -> pa.DictionaryArray:
        if self._relations is None:
            return integer_names(numbers)
        if len(numbers) and int(numbers.max()) >= len(self._relations):
            raise InputError(
                f"{file.name}: relation {int(numbers.max())}, expected one of the "
                f"{len(self._relations)} that have names"
            )
        return self._relations.take(pa.array(numbers.astype(np.int64))).dictionary_encode()


def _edge_types(
    names: PbgNames, options: ReadOptions, config: Mapping[str, Any] | None
) -> list[EdgeType]:
    """Return one edge type for all relations, or one for each where types differ.

    Raises:
        InputError: there are several types of entities, and no config that tells more.
    """
    if len(names.sizes) == 1:
        if config is None or options.edge_type is not None:
            return [options.edge_type or TRIPLE]
        entity = next(iter(names.sizes))
        return [EdgeType(entity, TRIPLE.relation, entity)]
    if config is None:
        raise InputError(
            f"{names.folder}: entity_count files of {len(names.sizes)} types "
            f"({cut_list(names.sizes) or 'none'}), expected one type; ingest PBG's config "
            "file instead, which says what the relations join"
        )
    kinds = [
        EdgeType(str(it["lhs"]), str(it["name"]), str(it["rhs"]))
        for it in config["relations"]
    ]
    if len(set(kinds)) != len(kinds):
        raise InputError(
            f"{names.folder}: the config names a relation between the same types twice, "
            "expected different names"
        )
    return kinds


def _entity_path(folder: Path) -> Path:
    """Return the folder of the entities: that of the edges, or the one above."""
    here = any(folder.glob("entity_count_*.txt"))
    return folder if here else folder.parent


def _splits(files: list[InputFile], *, shared: bool) -> dict[Path, str]:
    """Name the split of every folder: train, valid or test if its name says so.

    Raises:
        InputError: folders of one name, or of different entities.
    """
    folders = list(dict.fromkeys(file.path.parent for file in files))
    if len(folders) == 1:
        return {folders[0]: DEFAULT_SPLIT}
    words = {folder: _word(folder.name.lower()) for folder in folders}
    found = {
        folder: word if list(words.values()).count(word) == 1 else folder.name
        for folder, word in words.items()
    }
    if len(set(found.values())) != len(folders):
        raise InputError(f"{folders[-1]}: two edge paths of one name, expected different")
    places = {_entity_path(folder).resolve() for folder in folders}
    if len(places) != 1 and not shared:
        raise InputError(
            f"{folders[0]}: edge paths of {len(places)} entity paths, expected one"
        )
    return found


def _word(name: str) -> str:
    return next((word for word in ("train", "valid", "test") if word in name), name)


def _find(folder: Path) -> list[Path]:
    return sorted(it for it in folder.glob("edges_*.h5") if _EDGES.match(it.name))


def open_pbg(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of the buckets of edge paths, or of those that a config names.

    Raises:
        InputError: files are missing or do not fit.
        MissingDependencyError: h5py is not installed.
    """
    if options.columns or options.roles or options.skip:
        raise ConfigError("pbg files have fixed columns; leave out --columns and --skip")
    if len(files) == 1 and files[0].path.suffix in (".py", ".json"):
        return _open_config(files[0].path, options)
    wrong = [file.name for file in files if not _EDGES.match(file.path.name)]
    if wrong:
        raise InputError(f"{wrong[0]}: expected edges_I_J.h5 files of PBG, or its config")
    return PbgSource(files, options)


def _open_config(path: Path, options: ReadOptions) -> Source:
    """Open what a config names; its paths count from here, or from beside the file."""
    config = read_pbg_mapping(path)
    edge_paths, relations = config.get("edge_paths"), config.get("relations")
    if (
        not isinstance(config.get("entity_path"), str)
        or not isinstance(edge_paths, list)
        or not isinstance(relations, list)
        or not edge_paths
        or not all({"name", "lhs", "rhs"} <= set(it) for it in relations)
    ):
        raise InputError(
            f"{path}: expected PBG's config with entity_path, edge_paths and relations"
        )
    files: list[InputFile] = []
    for name in edge_paths:
        folder = _beside(path, str(name))
        found = _find(folder)
        if not found:
            raise InputError(
                f"{folder}: holds no edges_I_J.h5 of PBG, which {path.name} names as an "
                "edge path"
            )
        files += [input_file(it) for it in found]
    return PbgSource(files, options, config, _beside(path, config["entity_path"]))


def _beside(path: Path, name: str) -> Path:
    """Return a path of a config, which counts from where PBG was started."""
    return Path(name) if Path(name).exists() else path.parent / name


formats.register("pbg")(
    Format(
        open=open_pbg,
        suffixes=(".py",),
        patterns=("edges_*_*.h5",),
        find=_find,
        about="PyTorch-BigGraph's prepared data, edges_I_J.h5, or its config file",
    )
)
