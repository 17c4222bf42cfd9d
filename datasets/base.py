"""Formats by name: what a reader is given, what it gives back, how it is found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from graphsys.core.errors import ConfigError
from graphsys.core.registry import Registry
from graphsys.core.types import EdgeType
from graphsys.datasets.files import InputFile
from graphsys.storage.source import Source

IdKind: TypeAlias = Literal["auto", "int", "string"]
ColumnNames: TypeAlias = str | Sequence[str] | Mapping[str, str] | None

SEPARATOR_NAMES: Final = {
    "tab": "\t",
    "\\t": "\t",
    "comma": ",",
    "semicolon": ";",
    "space": " ",
    "blank": " ",
    "pipe": "|",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """What the user says about a source; every reader gets the same.

    Attributes:
        ids: "auto" (the first data line decides), "int" or "string".
        columns: Names of the columns by position, or of the columns to take.
        roles: The file's name of a role ("src", "dst", "weight", "time", "relation").
        separator: What separates columns; None for the format's own.
        skip: Lines to leave out at the beginning of every text file.
        is_undirected: Every edge stands for both directions.
        edge_type: Type of the edges; None for the format's own.
        num_threads: Threads that read ahead; None for one per core.
        guards_names: Ids are strings because those of the graph are: what is no id is
            looked for as if nobody had said so.
        known: Of the graph that data are for, by type of nodes or edges: kinds of columns,
            "string" or "float", which are not to be guessed. "" is the only type of edges.
    """

    ids: IdKind = "auto"
    columns: tuple[str, ...] | None = None
    roles: Mapping[str, str] = field(default_factory=dict)
    separator: str | None = None
    skip: int = 0
    is_undirected: bool = False
    edge_type: EdgeType | None = None
    num_threads: int | None = None
    guards_names: bool = False
    known: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def are_names_said(self) -> bool:
        """Whether the user says that ids are strings: then any word is an id."""
        return self.ids == "string" and not self.guards_names


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A format that files can have.

    Attributes:
        open: Makes a source of files; may raise InputError at once or while reading.
        suffixes: Endings of names that stand for it, before any of a compression.
        patterns: Whole names that stand for it, with wildcards; they go before suffixes.
        find: Returns the files of a folder that form a graph, none if they do not; None
            for a format that has no layout of folders.
        about: One line for help texts.
    """

    open: Callable[[list[InputFile], ReadOptions], Source]
    suffixes: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    find: Callable[[Path], list[Path]] | None = None
    about: str = ""


formats: Registry[Format] = Registry("format", "graphsys.formats")
"""All formats; third parties add theirs through the entry-point group."""


def read_options(
    *,
    ids: str = "auto",
    columns: ColumnNames = None,
    separator: str | None = None,
    skip: int = 0,
    undirected: bool = False,
    edge_type: EdgeType | Sequence[str] | None = None,
    num_threads: int | None = None,
) -> ReadOptions:
    """Check what the user says.

    Raises:
        ConfigError: a value is not one of those that exist.
    """
    if ids not in ("auto", "int", "string"):
        raise ConfigError(f"ids: got {ids!r}, expected auto, int or string")
    if isinstance(skip, bool) or not isinstance(skip, int) or skip < 0:
        raise ConfigError(f"skip: got {skip!r}, expected a number of lines >= 0")
    names, roles = _column_names(columns)
    if edge_type is not None:
        edge_type = EdgeType(*edge_type)
    return ReadOptions(
        ids=ids,  # type: ignore[arg-type] # checked above
        columns=names,
        roles=roles,
        separator=_separator(separator),
        skip=skip,
        is_undirected=undirected,
        edge_type=edge_type,
        num_threads=num_threads,
    )


def _separator(text: str | None) -> str | None:
    if text is None:
        return None
    text = SEPARATOR_NAMES.get(text.lower(), text)
    if len(text.encode()) != 1 or text in '\r\n"#%' or text.isalnum():
        raise ConfigError(
            f"separator: got {text!r}, expected one character such as ',' ';' '|', or tab"
        )
    return text


def _column_names(columns: ColumnNames) -> tuple[tuple[str, ...] | None, dict[str, str]]:
    """Return names by position, or the file's name of every role."""
    if columns is None:
        return None, {}
    if isinstance(columns, Mapping):
        return None, dict(columns)
    names = columns.split(",") if isinstance(columns, str) else list(columns)
    names = [name.strip() for part in names for name in part.split(",")]
    if any("=" in name for name in names):
        pairs = [name.partition("=") for name in names]
        return None, {role.strip(): (name or role).strip() for role, _, name in pairs}
    named = [name for name in names if name != "_"]
    if not all(names) or len(set(named)) != len(named):
        raise ConfigError(
            f"columns: got {','.join(names)!r}, expected different names such as "
            "src,dst,weight; '_' leaves a column out"
        )
    return tuple(names), {}


def base_name(path: Path) -> tuple[str, str]:
    """Split a name into what comes before its suffix, and the suffix; not compression's."""
    name = path.name
    for ending in (".gz", ".zst", ".bz2", ".xz", ".zip"):
        if name.lower().endswith(ending):
            name = name[: -len(ending)]
    plain = Path(name)
    return plain.stem, plain.suffix.lower()
