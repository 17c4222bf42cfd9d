"""OpenKE's knowledge graphs: ``train2id.txt`` and its siblings, integers with a count.

Each file begins with the number of its lines; a triple is head, tail, relation, in this
order. Ids stay integers. ``entity2id.txt`` beside the triples names the entities (a
column ``name``) and lists those without triples, ``relation2id.txt`` names the relations.

References:
    Han et al., "OpenKE: an open toolkit for knowledge embedding", EMNLP 2018.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.columns import integer_names
from graphsys.datasets.files import InputFile, input_file, read_head
from graphsys.datasets.node_rows import RepeatedNodes
from graphsys.datasets.readers.triples import TRIPLE
from graphsys.datasets.text.layout import (
    BLANKS,
    ID,
    WORD,
    LineFormat,
    TextColumn,
    as_count,
    show,
)
from graphsys.datasets.text.source import (
    line_of_row,
    parse_file,
)
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

_SPLITS: Final = {"train2id": "train", "valid2id": "valid", "test2id": "test"}
_TRIPLES: Final = LineFormat(
    columns=(TextColumn("src", ID), TextColumn("dst", ID), TextColumn("relation", ID)),
    separator=BLANKS,
    has_comments=False,
    first_line=2,
)
_NAMES: Final = LineFormat(
    columns=(TextColumn("name", WORD), TextColumn("id", ID)),
    separator=ord("\t"),
    has_comments=False,
    first_line=2,
)


class OpenkeSource(Source):
    """The triples of some splits, and the entities' names."""

    def __init__(self, files: list[InputFile], options: ReadOptions) -> None:
        self.name = ", ".join(file.name for file in files)
        self.is_directed = not options.is_undirected
        self._files = files
        self._edge_type = options.edge_type or TRIPLE
        self._num_threads = options.num_threads
        self._entities = _sibling(files[0], "entity2id.txt")
        names = _sibling(files[0], "relation2id.txt")
        self._relations = None if names is None else _names_by_id(names)
        every = [*files, *([self._entities] if self._entities else [])]
        self.total_bytes = sum(file.num_bytes for file in every)

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the entities, then the triples, split by split.

        Raises:
            InputError: a line does not fit, or their number is not the first line's.
        """
        if self._entities is not None:
            unique = RepeatedNodes(self._entities, _NAMES, skip=1)
            for columns, num_bytes in self._blocks(self._entities, _NAMES):
                unique.add(columns["id"])
                yield NodeChunk(
                    ids=columns["id"],
                    node_type=self._edge_type.src_type,
                    columns={"name": columns["name"]},
                    bytes_read=num_bytes,
                )
            unique.check()
        for file in self._files:
            rows = 0
            for columns, num_bytes in self._blocks(file, _TRIPLES):
                relation = self._named(file, columns["relation"], rows)
                rows += len(relation)
                yield EdgeChunk(
                    src=columns["src"],
                    dst=columns["dst"],
                    edge_type=self._edge_type,
                    split=_SPLITS.get(file.stem, "train"),
                    columns={"relation": relation},
                    bytes_read=num_bytes,
                )

    def _blocks(
        self, file: InputFile, layout: LineFormat
    ) -> Iterator[tuple[dict[str, Any], int]]:
        expected, rows = _count(file), 0
        for parsed in parse_file(file, layout, skip=1, num_threads=self._num_threads):
            rows += len(parsed.columns[layout.columns[0].name])
            yield parsed.columns, parsed.bytes_read
        if rows != expected:
            raise InputError(
                f"{file.name}:1: says {expected} lines, found {rows}; the file is another "
                "version or cut short"
            )

    def _named(self, file: InputFile, numbers: Any, rows: int) -> pa.DictionaryArray:
        """Name relations by ``relation2id.txt``, else by their numbers."""
        if self._relations is None:
            return integer_names(numbers)
        wrong = np.flatnonzero(numbers >= len(self._relations))
        if len(wrong):
            line = line_of_row(file, _TRIPLES, rows + int(wrong[0]), skip=1)
            raise InputError(
                f"{file.name}:{line}: found relation {numbers[wrong[0]]}, expected one of "
                f"the {len(self._relations)} of relation2id.txt; columns are head, tail, "
                "relation here"
            )
        return pa.DictionaryArray.from_arrays(numbers.astype(np.int32), self._relations)


def _sibling(file: InputFile, name: str) -> InputFile | None:
    """Return a file beside another one, if it is there."""
    path = file.path.parent / name
    return input_file(path) if path.exists() else None


def _count(file: InputFile) -> int:
    """Return the number in the first line.

    Raises:
        InputError: there is none.
    """
    line = read_head(file).split(b"\n", 1)[0]
    count = as_count(line.strip())
    if count is None:
        raise InputError(
            f"{file.name}:1: found {show(line)}, expected the number of lines that follow; "
            "for files without it use --format triples --columns src,dst,relation"
        )
    return count


def _names_by_id(file: InputFile) -> pa.StringArray:
    """Return the names of a file ``name id``, in the order of the ids 0, 1, ...

    Raises:
        InputError: the ids are not 0 to the number of names less 1.
    """
    _count(file)
    blocks = [parsed.columns for parsed in parse_file(file, _NAMES, skip=1)]
    ids = np.concatenate([np.empty(0, np.int64), *(block["id"] for block in blocks)])
    names = [name for block in blocks for name in block["name"].to_pylist()]
    if not np.array_equal(np.sort(ids), np.arange(len(ids))):
        raise InputError(
            f"{file.name}: ids of {len(ids)} names are not 0 to {len(ids) - 1}, each once"
        )
    return pa.array(names, type=pa.string()).take(pa.array(np.argsort(ids)))


def _find(folder: Path) -> list[Path]:
    names = [folder / f"{stem}.txt" for stem in _SPLITS]
    return [path for path in names if path.is_file()]


def open_openke(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of OpenKE's files.

    Raises:
        InputError: two files are of one split.
        ConfigError: columns are named, but the order is fixed.
    """
    if options.columns or options.roles or options.skip:
        raise ConfigError(
            "openke files have a count first and columns head, tail, relation; leave out "
            "--columns and --skip, or use --format triples"
        )
    order = list(_SPLITS)
    files = [file for file in files if file.stem not in ("entity2id", "relation2id")]
    files.sort(key=lambda file: order.index(file.stem) if file.stem in order else -1)
    if not files:
        raise InputError("only names were given, expected train2id.txt beside them")
    return OpenkeSource(files, options)


formats.register("openke")(
    Format(
        open=open_openke,
        patterns=("train2id.txt", "valid2id.txt", "test2id.txt"),
        find=_find,
        about="OpenKE: train2id.txt and so on, a count, then head tail relation",
    )
)
