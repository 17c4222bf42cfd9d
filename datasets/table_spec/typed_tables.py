"""Tables of nodes and edges by their types, without a description: files or objects.

Columns are found by name: ``id`` (or the type, TYPE_id, node_id), ``label``, ``split`` and
``time`` of nodes; both ends of edges as in :mod:`graphsys.datasets.roles`, or by the names
of their types. ``user.id=uid`` and ``trusts.src=truster`` say it of others, and
``user.x=age+height`` or ``user.x=feature_*`` makes features x of columns of numbers.
"""

import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.types as pt

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, InputError, cut_list, unknown_name
from graphsys.core.types import DEFAULT_SPLIT, EdgeType
from graphsys.datasets.base import ReadOptions
from graphsys.datasets.columns import holds_features
from graphsys.datasets.files import input_file
from graphsys.datasets.other_formats import refuse_other
from graphsys.datasets.readers.delimited import separator_of
from graphsys.datasets.readers.in_memory import table_of
from graphsys.datasets.readers.tables import Batches, table_batches
from graphsys.datasets.roles import find_roles
from graphsys.datasets.split_names import by_split
from graphsys.datasets.table_spec.adjacency import leading_comments
from graphsys.datasets.table_spec.source import DescribedSource
from graphsys.datasets.table_spec.spec import TablesCard
from graphsys.datasets.text.first_lines import first_lines, no_text
from graphsys.datasets.text.layout import BLANKS, is_integer, is_missing, is_number
from graphsys.storage.source import Source

_READ: Final = ("id", "label", "labels", "split", "time", "name")
_POSITIONS: Final = ("src", "dst", "weight")


def open_given(
    nodes: Mapping[str, Any],
    edges: Mapping[Any, Any],
    options: ReadOptions,
    *,
    format: str | None = None,
    needs_edges: bool = True,
) -> Source:
    """Make a source of tables by their types.

    Args:
        nodes: Table of each node type: a path, or a table of any library.
        edges: Table of each edge type (source type, relation, destination type), or
            "user,trusts,user"; several files called train, valid and test are splits.
        options: Kind of ids, separator, direction; ``roles`` names columns.
        format: "adjacency" where edges are lists of neighbors; None for tables.
        needs_edges: A graph is made: refuse tables of nodes alone, and name columns that
            could be features. What is appended has the graph's.

    Raises:
        ConfigError: a type or the name of a column does not make sense.
        InputError: a table is missing, or has no column for ids.
    """
    if needs_edges and not edges:
        raise ConfigError("edges: got none, expected at least one table of edges")
    if options.columns or options.skip or options.edge_type:
        raise ConfigError(
            "columns of tables by type are named TYPE.ROLE=NAME, such as user.id=uid or "
            "trusts.src=truster; leave out other forms, skip and edge_type"
        )
    if format not in (None, "adjacency"):
        raise ConfigError(
            f"format: got {format!r} for tables by type, expected adjacency, or none for "
            "CSV, Parquet and Arrow by their suffixes"
        )
    kinds = {edge_type_of(key): table for key, table in edges.items()}
    _check_roles(options.roles, [*nodes, *(kind.relation for kind in kinds)])
    looks = _Looks(options, has_lists=format is not None, is_new=needs_edges)
    cards: dict[str, Any] = {"directed": not options.is_undirected}
    cards["nodes"] = [looks.nodes(name, table) for name, table in nodes.items()]
    cards["edges"] = [
        looks.edges(kind, part) | {"split": split}
        for kind, table in kinds.items()
        for part, split in _parts(table)
    ]
    where = ", ".join(looks.names)
    return DescribedSource(
        where,
        TablesCard.parse(cards, where, needs_edges=needs_edges),
        Path(),
        num_threads=options.num_threads,
        tables=looks.tables,
    )


def edge_type_of(key: Any) -> EdgeType:
    """Return the edge type that a key stands for.

    Raises:
        ConfigError: it has not three names.

    Examples:
        >>> edge_type_of("user,trusts,user")
        EdgeType(src_type='user', relation='trusts', dst_type='user')
    """
    parts = key.split(",") if isinstance(key, str) else list(key)
    names = [str(part).strip() for part in parts]
    if len(names) != 3 or not all(names):
        raise ConfigError(
            f"edges: got {key!r}, expected source type, relation, destination type, such "
            "as user,trusts,user"
        )
    return EdgeType(*names)


def _check_roles(roles: Mapping[str, str], types: Sequence[str]) -> None:
    for role in roles:
        name, dot, what = role.rpartition(".")
        if not dot or not what:
            raise ConfigError(
                f"columns: got {role}={roles[role]}, expected TYPE.ROLE=NAME, such as "
                "user.id=uid or trusts.src=truster"
            )
        if name not in types:
            raise unknown_name("type in columns", name, types)


class _Looks:
    """Looks at the names of every table's columns, and describes it."""

    def __init__(self, options: ReadOptions, *, has_lists: bool, is_new: bool) -> None:
        self._has_lists, self._is_new = has_lists, is_new
        self.names: list[str] = []
        self.tables: dict[str, Batches] = {}
        self._of_files: dict[str, Batches | None] = {}
        self._options = options

    def nodes(self, node_type: str, table: Any) -> dict[str, Any]:
        """Describe a table of nodes."""
        card, header, where = self._look(f"nodes {node_type}", table)
        names = self._asked(node_type, header, where)
        if "x" in names and not self._is_vector(card, names["x"]):
            names["x[0]"] = names.pop("x")  # a number, or a list that is features if asked
        if "id" not in names:
            ids = ("id", node_type, f"{node_type}_id", f"{node_type}id", "node_id", "node")
            names["id"] = _first(header, ids) or ""
        if not names["id"]:
            raise InputError(
                f"{where}: no column for ids among {cut_list(header, 8)}; say which it is "
                f"with --columns {node_type}.id=NAME"
            )
        for role in ("label", "split", "time"):
            if role not in names and (found := _first(header, (role,))):
                names[role] = found
        if self._is_new:
            self._warn_of_unread(node_type, where, card, header, set(names.values()))
        types = self._options.known.get(node_type, {})
        return card | {"type": node_type, "names": names, "header": True, "types": types}

    def edges(self, kind: EdgeType, table: Any) -> dict[str, Any]:
        """Describe a table of edges."""
        if self._has_lists:
            return self._lists(kind, table)
        card, header, where = self._look(f"edges {','.join(kind)}", table)
        card |= {"type": list(kind), "types": self._options.known.get(",".join(kind), {})}
        if not self.tables.get(card["file"]) and all(map(_is_id, header[:2])):
            if len(header) > len(_POSITIONS):
                raise InputError(
                    f"{where}: {len(header)} columns and no header; put one above them"
                )
            return card | {"columns": list(_POSITIONS[: len(header)])}
        names = self._asked(kind.relation, header, where)
        if kind.src_type != kind.dst_type:
            for role, name in (("src", kind.src_type), ("dst", kind.dst_type)):
                column = _first(header, (name, f"{name}_id", f"{name}id"))
                if role not in names and column:
                    names[role] = column
        try:
            roles = find_roles(header, ReadOptions(roles=names), where)
        except InputError as err:
            text = str(err)
            for role in ("src", "dst"):
                for before in ("--columns ", '--columns "', ","):
                    text = text.replace(
                        f"{before}{role}=", f"{before}{kind.relation}.{role}="
                    )
            raise InputError(text) from err
        names = {role: column for column, role in roles.items()}
        return card | {"names": names, "header": True}

    def _lists(self, kind: EdgeType, table: Any) -> dict[str, Any]:
        if not isinstance(table, (str, os.PathLike)):
            raise ConfigError("format: adjacency lists are files, got a table in memory")
        file = input_file(table)
        self.names.append(file.name)
        return {
            "file": file.address,
            "type": list(kind),
            "layout": "lists",
            "skip": leading_comments(file),
        }

    def _look(self, what: str, table: Any) -> tuple[dict[str, Any], list[str], str]:
        """Return how a table is read, the names of its columns, what messages call it."""
        card: dict[str, Any] = {"ids": self._options.ids}
        if not isinstance(table, (str, os.PathLike)):
            batches = table_of(table)
            name = f"{batches.name} ({what})"
            self.names.append(name)
            self.tables[name] = Batches(
                name, batches.schema, batches.read, batches.num_bytes
            )
            return card | {"file": name}, list(batches.schema.names), name
        file = input_file(table)
        self.names.append(file.name)
        card["file"] = file.address
        if (read := self._batches(card["file"])) is not None:
            _refuse_twice(file.name, read.schema.names)
            return card, list(read.schema.names), file.name
        refuse_other(file.path)
        mark = separator_of(file, self._options)
        lines = first_lines(
            file,
            skip=0,
            separator=mark,
            has_comments=False,
            has_quotes=True,
            has_texts=True,
        )
        if (
            err := no_text(file, lines[0], "write it as CSV, Parquet or Arrow")
        ) is not None:
            raise err
        header = [field.decode("utf-8", "replace") for field in lines[0].fields]
        if not all(map(_is_id, header[:2])):  # numbers are a first row without a header
            _refuse_twice(f"{file.name}:{lines[0].number}", header)
        is_blank = mark in (BLANKS, ord(" "))
        card |= {"separator": " " if is_blank else chr(mark), "quotes": not is_blank}
        return card, header, f"{file.name}:{lines[0].number}"

    def _asked(self, name: str, header: Sequence[str], where: str) -> dict[str, str]:
        """Return the column of each role that the user names for a type."""
        found: dict[str, str] = {}
        for role, columns in self._options.roles.items():
            if role.rpartition(".")[0] != name:
                continue
            what = role.rpartition(".")[2]
            parts = columns.split("+")
            if len(parts) == 1 and "*" not in columns:
                found[what] = self._known(columns, header, where)
                continue
            several = [
                column
                for part in parts
                for column in (
                    [it for it in header if fnmatchcase(it, part)]
                    if "*" in part
                    else [self._known(part, header, where)]
                )
            ]
            if not several:
                raise InputError(
                    f"{where}: no column like {columns} among {cut_list(header, 8)}; "
                    "correct the pattern"
                )
            found |= {f"{what}[{k}]": column for k, column in enumerate(several)}
        taken = list(found.values())
        if twice := [column for column in taken if taken.count(column) > 1]:
            raise ConfigError(
                f"columns: {twice[0]!r} is named twice for {name}, expected each once"
            )
        return found

    def _batches(self, name: str) -> Batches | None:
        """Return a table that tells its columns' types: in memory, or opened once."""
        if name not in self.tables and name not in self._of_files:
            self._of_files[name] = table_batches(input_file(name))
        return self.tables.get(name) or self._of_files[name]

    def _is_vector(self, card: Mapping[str, Any], column: str) -> bool:
        """Tell whether a column is features as it is; in text there are none."""
        batches = self._batches(card["file"])
        return batches is not None and holds_features(batches.schema.field(column).type)

    def _known(self, column: str, header: Sequence[str], where: str) -> str:
        if column not in header:
            err = unknown_name("column", column, header)
            raise type(err)(f"{where}: {err}")
        return column

    def _warn_of_unread(
        self,
        node_type: str,
        where: str,
        card: Mapping[str, Any],
        header: Sequence[str],
        taken: set[str],
    ) -> None:
        """Name columns of numbers that are kept, but that no model reads."""
        others = [
            name for name in header if name not in taken and name.lower() not in _READ
        ]
        if (batches := self._batches(card["file"])) is not None:
            kinds = [batches.schema.field(name).type for name in others]
            numeric = [n for n, it in zip(others, kinds, strict=True) if _is_numeric(it)]
            whole = numeric
        else:
            lines = first_lines(
                input_file(card["file"]),
                skip=0,
                separator=BLANKS if card["separator"] == " " else ord(card["separator"]),
                has_comments=False,
                has_quotes=True,
                has_texts=True,
            )[1:]
            numeric = [n for n in others if _is_numbers(lines, list(header).index(n))]
            whole = [n for n in numeric if _lacks_none(list(header).index(n), lines)]
        has_x = "x" in header and "x" not in taken and self._is_vector(card, "x")
        if numeric:
            chosen = whole or numeric
            features = [*["x"] * has_x, *chosen[:2]]  # x that is there stays part of x
            filled = "" if whole else "fill in what they lack and "
            note(
                f"{where}: no model reads the columns {cut_list(numeric, 8)} of nodes "
                f"{node_type!r}; to make them features, {filled}say --columns "
                f"{node_type}.x={'+'.join(features)}{'+...' * (len(chosen) > 2)}"
            )


def _parts(table: Any) -> list[tuple[Any, str]]:
    """Return the tables of an edge type with their splits; of several files, by name."""
    is_files = isinstance(table, (list, tuple)) and all(
        isinstance(it, (str, os.PathLike)) for it in table
    )
    if not is_files:
        return [(table, DEFAULT_SPLIT)]
    return [
        (file.uri or file.path, split)
        for file, split in by_split([input_file(it) for it in table])
    ]


def _refuse_twice(where: str, header: Sequence[str]) -> None:
    """Refuse a table that has two columns of one name.

    Raises:
        InputError: it has.
    """
    twice = [name for name in header if name and header.count(name) > 1]
    if twice:
        raise InputError(
            f"{where}: column {twice[0]!r} occurs twice, expected different names; rename "
            "one"
        )


def _first(header: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the column with the first of some names that is there, in any case."""
    lowered = {column.lower(): column for column in reversed(header)}
    return next((lowered[it.lower()] for it in names if it.lower() in lowered), None)


def _is_id(field: str) -> bool:
    return is_integer(field.encode())


def _is_numeric(kind: pa.DataType) -> bool:
    is_list = pt.is_list(kind) or pt.is_large_list(kind)
    inner = kind.value_type if is_list else kind
    plain = pt.is_floating(inner) or pt.is_integer(inner) or pt.is_boolean(inner)
    return bool(plain and not (is_list and pt.is_floating(inner)))


def _lacks_none(place: int, lines: Sequence[Any]) -> bool:
    """Tell whether a column of numbers has one in every line, as features have."""
    return all(is_number(line.fields[place]) for line in lines)


def _is_numbers(lines: Sequence[Any], place: int) -> bool:
    fields = [line.fields[place] for line in lines if place < len(line.fields)]
    return bool(fields) and all(is_number(it) or is_missing(it) for it in fields)
