"""Headers of Neo4j's import files, and nodes of one type from several of them.

``id:ID(Person)|age:int|:LABEL`` holds nodes of the id space ``Person``, which becomes their
type; without a space all ids are of one type, ``node``. ``:START_ID(Person)|:END_ID(City)|
since:int|:TYPE`` holds edges; the column ``:TYPE`` becomes their ``relation``. Labels are
kept as they are written (``Person;Admin``) in the column ``label``, and so are arrays.

References:
    Neo4j, Operations Manual, "Import", "CSV header format".
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa

from graphsys.core.errors import InputError
from graphsys.datasets.base import base_name
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.text.first_lines import first_lines
from graphsys.datasets.text.layout import has_lost_zeros, is_integer
from graphsys.storage.source import EdgeChunk, NodeChunk, Source, WrappedSource

NODE_TYPE: Final = "node"
_SPACE: Final = r"(\((?P<type>[^)]*)\))?(\{[^}]*\})?$"
_ID: Final = re.compile(r"^(?P<name>[^:]*):ID" + _SPACE)
_START: Final = re.compile(r"^:START_ID" + _SPACE)
_END: Final = re.compile(r"^:END_ID" + _SPACE)
_TYPED: Final = re.compile(rb'(^|[,;|\t"])([^:,;|\t"]*:ID|:START_ID|:END_ID)\b')
_TYPES: Final = {
    "int": "int",
    "long": "int",
    "short": "int",
    "byte": "int",
    "float": "float",
    "double": "float",
}
_ARROW: Final = {"int": pa.int64(), "float": pa.float64(), "string": pa.large_string()}


def is_typed(file: InputFile) -> bool:
    """Tell whether a file's first line is a header of Neo4j's import."""
    return _TYPED.search(read_head(file).split(b"\n", 1)[0]) is not None


def refuse_lone_header(file: InputFile, data: str = "DATA.csv") -> None:
    """Refuse a header that stands in a file of its own, as Neo4j's import allows it.

    Args:
        file: A file with such a header.
        data: The file that it belongs to, if it is known.

    Raises:
        InputError: nothing follows the header; the message has the command that joins it.
    """
    _, end, rest = read_head(file).partition(b"\n")
    if rest.strip():
        return
    header, data = shlex.quote(file.name), shlex.quote(data)
    both = f"cat {header} {data}" if end else f"(cat {header}; echo; cat {data})"
    raise InputError(
        f"{file.name}: a header of Neo4j's import without data; put it before its data, "
        f"{both} > WHOLE.csv, and ingest WHOLE.csv"
    )


def describe_header(
    file: InputFile, fields: Sequence[str], mark: str
) -> tuple[str, dict[str, Any]] | None:
    """Return "nodes" or "edges", and type, columns and types of a file; None for others."""
    stem = base_name(file.path)[0]
    names, types = _columns(fields)
    ids, starts, ends = (
        [k for k, it in enumerate(fields) if kind.match(it)] for kind in (_ID, _START, _END)
    )
    card: dict[str, Any] = {"columns": names, "types": types, "quotes": True}
    if ids:
        names[ids[0]] = "id"
        names[:] = [
            "label" if it.startswith(":LABEL") else name
            for it, name in zip(fields, names, strict=True)
        ]
        types |= {"label": "string"} if "label" in names else {}
        card["type"] = _type(_ID, fields[ids[0]])
        kind, places = "nodes", ids[:1]
    elif starts and ends:
        names[starts[0]], names[ends[0]] = "src", "dst"
        names[:] = [
            "relation" if it == ":TYPE" else name
            for it, name in zip(fields, names, strict=True)
        ]
        first, last = _type(_START, fields[starts[0]]), _type(_END, fields[ends[0]])
        card["type"] = [first, stem, last]
        kind, places = "edges", [starts[0], ends[0]]
    else:
        return None
    _look(file, mark, names, types, places, card)
    return kind, card


def _type(kind: re.Pattern[str], field: str) -> str:
    match = kind.match(field)
    return (match and match["type"]) or NODE_TYPE


def _columns(fields: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return names and types of columns that hold no ids."""
    names, types = [], {}
    for field in fields:
        name, _, kind = re.sub(r"\{[^}]*\}$", "", field).partition(":")
        if not name or field.endswith(":IGNORE"):
            names.append("_")
            continue
        names.append(name)
        types[name] = _TYPES.get(kind.lower(), "string")
    return names, types


def _look(
    file: InputFile,
    mark: str,
    names: Sequence[str],
    types: dict[str, str],
    places: Sequence[int],
    card: dict[str, Any],
) -> None:
    """See from the first lines whether ids are integers, and where numbers are missing."""
    refuse_lone_header(file)
    lines = first_lines(
        file, skip=1, separator=ord(mark), has_comments=False, has_quotes=True
    )
    rows = [line.fields for line in lines if len(line.fields) == len(names)]
    ends = [row[place] for row in rows for place in places]
    is_plain = all(it.isdigit() and is_integer(it) for it in ends)
    card["ids"] = "int" if is_plain and not any(map(has_lost_zeros, ends)) else "string"
    for place, name in enumerate(names):
        if types.get(name) == "int" and not all(row[place] for row in rows):
            types[name] = "float"  # an integer cannot be missing, a number can
        if types.get(name) is None and name == "weight":
            types[name] = "float"


class FilledNodes(WrappedSource):
    """Nodes of one type from several files: each has the columns of all, null if none."""

    def __init__(self, source: Source, cards: Sequence[Mapping[str, Any]]) -> None:
        super().__init__(source)
        self._columns: dict[str, dict[str, pa.DataType]] = {}
        for card in cards:
            kept = self._columns.setdefault(card["type"], {})
            for name in card["columns"]:
                if name not in ("id", "_"):
                    kept.setdefault(name, _ARROW[card["types"].get(name, "string")])

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield what the tables hold, nodes with all columns of their type."""
        for chunk in self._source.chunks():
            if not isinstance(chunk, NodeChunk):
                yield chunk
                continue
            columns = {
                name: _cast(chunk.columns[name], kind)
                if name in chunk.columns
                else pa.nulls(len(chunk.ids), kind)
                for name, kind in self._columns[chunk.node_type].items()
            }
            yield replace(chunk, columns=columns)


def _cast(values: Any, kind: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    return array.cast(kind)
