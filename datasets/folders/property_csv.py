"""Property graphs in CSV whose headers name types: LDBC SNB's datagen, Neo4j's import.

SNB: ``person_0_0.csv`` has a column ``id`` and holds nodes of type ``person``;
``person_knows_person_0_0.csv`` begins with ``Person.id|Person.id`` and holds edges
(person, knows, person). For Neo4j's headers see :mod:`graphsys.datasets.folders.neo4j`;
files are known by them. Names of types are in lower case for SNB. Files of a property with
many values (``Person.id|email``) are refused, as are headers without types
(``src_id|dst_id``): describe those in a tables file.
"""

import re
from pathlib import Path
from typing import Any, Final

from graphsys.core.errors import ConfigError, InputError, cut_list
from graphsys.datasets.base import Format, ReadOptions, base_name, formats
from graphsys.datasets.files import InputFile, read_head
from graphsys.datasets.folders.neo4j import FilledNodes, describe_header
from graphsys.datasets.table_spec import describe_source
from graphsys.datasets.text.layout import show
from graphsys.storage.source import Source

_OF_TYPE: Final = re.compile(r"^(?P<type>\w+)\.id$", re.IGNORECASE)
_MARKS: Final = ",|;\t"


def _header(file: InputFile, separator: str | None) -> tuple[list[str], str]:
    """Return the fields of the first line, and the separator."""
    line = read_head(file).split(b"\n", 1)[0].decode("utf-8", "replace").strip("\r")
    mark = separator or max(_MARKS, key=line.count)
    return [field.strip().strip('"') for field in line.split(mark)], mark


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
    if (typed := describe_header(file, fields, mark)) is not None:
        if options.ids != "auto":
            typed[1]["ids"] = options.ids
        return typed[0], card | typed[1]
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
        raise ConfigError(
            "files of a property graph name columns and types; leave those options out"
        )
    described = [(file, *_describe(file, options)) for file in files]
    has_names = any(card["ids"] == "string" for _, _, card in described)
    mapping: dict[str, Any] = {"directed": not options.is_undirected}
    listed: set[str] = set()
    for file, kind, card in described:
        if has_names:  # ids of a type are of one kind in all files
            card["ids"] = "string"
        mapping.setdefault(kind, []).append(card)
        if kind == "nodes":
            if card["type"] in listed and "types" not in card:
                raise InputError(
                    f"{file.name}: a second file of nodes of type {card['type']!r}; put "
                    "them together, or describe them in a tables file"
                )
            listed.add(card["type"])
    if "edges" not in mapping:
        names = cut_list(file.name for file in files)
        raise InputError(
            f"{names}: nodes alone, expected files of edges too; name them all, or their "
            "folder"
        )
    folder = files[0].path.parent
    where = f"{folder}: files of a property graph"
    source = describe_source(
        mapping, Path(folder), where=where, num_threads=options.num_threads
    )
    typed = [card for _, kind, card in described if kind == "nodes" and "types" in card]
    return FilledNodes(source, typed) if len(typed) > len(listed) else source


formats.register("snb")(
    Format(
        open=open_property_csv,
        about="property graphs in CSV: LDBC SNB's datagen, Neo4j's typed headers",
    )
)
formats.register("neo4j")(
    Format(
        open=open_property_csv,
        about="Neo4j's import files, by their headers: id:ID, :LABEL, :START_ID, :TYPE",
    )
)
