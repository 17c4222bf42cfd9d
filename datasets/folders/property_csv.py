"""Property graphs in CSV whose headers name types: LDBC SNB's datagen, Neo4j's import.

SNB: ``person_0_0.csv`` has a column ``id`` and holds nodes of type ``person``;
``person_knows_person_0_0.csv`` begins with ``Person.id|Person.id`` and holds edges
(person, knows, person). Neo4j: ``id:ID(Person)|age:int`` holds nodes of type ``Person``,
``:START_ID(Person)|:END_ID(City)|since:int`` edges, their relation the file's name. Further
columns are kept, with the types that the header gives. Names of types are in lower case
for SNB. Files of a property with many values (``Person.id|email``) are refused, as are
headers without types (``src_id|dst_id``): describe those in a tables file.
"""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets.base import Format, ReadOptions, base_name, formats
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.table_spec import describe_source
from graphsys.datasets.text.layout import show
from graphsys.storage.source import Source

_NODE: Final = re.compile(r"^(?P<name>[^:]*):ID(\((?P<type>.*)\))?$")
_START: Final = re.compile(r"^:START_ID(\((?P<type>.*)\))?$")
_END: Final = re.compile(r"^:END_ID(\((?P<type>.*)\))?$")
_OF_TYPE: Final = re.compile(r"^(?P<type>\w+)\.id$", re.IGNORECASE)
_TYPES: Final = {
    "int": "int",
    "long": "int",
    "short": "int",
    "byte": "int",
    "float": "float",
    "double": "float",
}
_LEFT_OUT: Final = (":LABEL", ":IGNORE", ":TYPE")


def _header(file: InputFile, separator: str | None) -> tuple[list[str], str]:
    """Return the fields of the first line, and the separator."""
    line = read_head(file).split(b"\n", 1)[0].decode("utf-8", "replace").strip("\r")
    mark = separator or ("|" if "|" in line else ",")
    return [field.strip().strip('"') for field in line.split(mark)], mark


def _columns(fields: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """Return names and types of columns that hold no ids."""
    names, types = [], {}
    for field in fields:
        name, _, kind = field.partition(":")
        if any(field.startswith(it) for it in _LEFT_OUT) or not name:
            names.append("_")
            continue
        names.append(name)
        if kind:
            types[name] = _TYPES.get(kind.lower(), "string")
    return names, types


def _describe(file: InputFile, options: ReadOptions) -> tuple[str, dict[str, Any]]:
    """Return "nodes" or "edges", and the description of a file.

    Raises:
        InputError: the header does not say what the file holds.
    """
    fields, mark = _header(file, options.separator)
    stem = base_name(file.path)[0]
    words = [it for it in stem.split("_") if not it.isdigit()]
    card: dict[str, Any] = {
        "file": str(file.path.resolve()),
        "skip": 1,
        "separator": mark,
        "quotes": mark == ",",
        "ids": options.ids,
    }
    names, types = _columns(fields)
    node = next((k for k, it in enumerate(fields) if _NODE.match(it)), None)
    start = next((k for k, it in enumerate(fields) if _START.match(it)), None)
    end = next((k for k, it in enumerate(fields) if _END.match(it)), None)
    if node is not None:
        match = _NODE.match(fields[node])
        node_type = (match and match["type"]) or stem
        names[node] = "id"
        return "nodes", card | {"type": node_type, "columns": names, "types": types}
    if start is not None and end is not None:
        first, last = _START.match(fields[start]), _END.match(fields[end])
        ends = [(it and it["type"]) or "node" for it in (first, last)]
        names[start], names[end] = "src", "dst"
        card |= {"type": [ends[0], stem, ends[1]]}
        return "edges", card | {"columns": names, "types": types}
    of_type = [match["type"].lower() for it in fields[:2] if (match := _OF_TYPE.match(it))]
    if len(of_type) == 2:
        relation = "_".join(words[1:-1]) if len(words) > 2 else stem
        card |= {"type": [of_type[0], relation, of_type[1]]}
        return "edges", card | {"columns": ["src", "dst", *fields[2:]]}
    if fields[0] == "id" and not of_type:
        node_type = "_".join(words).lower()
        return "nodes", card | {"type": node_type, "columns": fields}
    raise InputError(
        f"{file.name}:1: found {show('|'.join(fields).encode())}, expected a header with "
        "types: id, Type.id|Type.id, id:ID(Type), or :START_ID(Type) and :END_ID(Type); "
        "describe other files in a tables file"
    )


def open_property_csv(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of files of nodes and of edges.

    Raises:
        InputError: a header does not say what a file holds, or none holds edges.
        ConfigError: options go with the headers.
    """
    if options.columns or options.roles or options.skip or options.edge_type:
        raise ConfigError("snb files name their columns and types; leave those options out")
    mapping: dict[str, Any] = {"directed": not options.is_undirected}
    listed: set[str] = set()
    for file in files:
        kind, card = _describe(file, options)
        mapping.setdefault(kind, []).append(card)
        if kind == "nodes":
            if card["type"] in listed:
                raise InputError(
                    f"{file.name}: a second file of nodes of type {card['type']!r}; put "
                    "them together, or describe them in a tables file"
                )
            listed.add(card["type"])
    folder = files[0].path.parent
    where = f"{folder}: files of a property graph"
    return describe_source(
        mapping, Path(folder), where=where, num_threads=options.num_threads
    )


formats.register("snb")(
    Format(
        open=open_property_csv,
        about="property graphs in CSV: LDBC SNB's datagen, Neo4j's typed headers",
    )
)
