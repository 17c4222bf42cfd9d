"""From paths to a source: which files, which format."""

import importlib
import os
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from types import MappingProxyType
from typing import IO, Final

from graphsys.core.errors import InputError, cut_list
from graphsys.core.types import EdgeType
from graphsys.datasets.base import ColumnNames, base_name, formats, read_options
from graphsys.datasets.files import InputFile, as_uri, input_file, only_member
from graphsys.datasets.folders.neo4j import is_typed, refuse_lone_header
from graphsys.datasets.other_formats import refuse_other
from graphsys.datasets.pipes import is_pipe, put_aside
from graphsys.datasets.readers.planetoid import planetoid_name
from graphsys.datasets.split_names import SPLITS, split_files
from graphsys.datasets.time_units import TimedSource
from graphsys.storage.source import Source

_READERS: Final = (
    "readers.edgelist",
    "readers.delimited",
    "readers.tables",
    "readers.triples",
    "readers.matrix_market",
    "readers.planetoid",
    "readers.openke",
    "readers.metis",
    "readers.dimacs_cnf",
    "readers.graphalytics",
    "readers.npz",
    "readers.matlab",
    "readers.gap",
    "readers.published",
    "readers.networkx_files",
    "readers.rdf",
    "small_graphs.tu",
    "small_graphs.gin_text",
    "small_graphs.graph_files",
    "table_spec",
    "table_spec.adjacency",
    "folders.ogb",
    "folders.property_csv",
    "readers.pbg",
    "folders.graphbolt",
    "folders.graphar",
    "folders.icebug",
)
_REMOTE: Final = {
    "edgelist",
    "csv",
    "triples",
    "parquet",
    "arrow",
    "jsonl",
    "mtx",
    "metis",
    "gap",
    "npz",
    "mat",
}
_ARCHIVES: Final = (".tar", ".tar.gz", ".tgz", ".tar.bz2")

Paths = str | os.PathLike[str] | Iterable[str | os.PathLike[str]]


def open_source(
    paths: Paths,
    *,
    format: str | None = None,
    ids: str = "auto",
    columns: ColumnNames = None,
    separator: str | None = None,
    skip: int = 0,
    undirected: bool = False,
    edge_type: EdgeType | Sequence[str] | None = None,
    num_threads: int | None = None,
    time_unit: str | None = None,
    guards_names: bool = False,
    known: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
) -> Source:
    """Open files as one source; the first lines are looked at, the rest is read later.

    Args:
        paths: A file, several of one format, or a folder of a known layout; formats of
            single files also by address (``s3://``, ``gs://``, ``hdfs://``, ``file://``).
        format: One of ``format_names()``; None to guess it from the names.
        ids: "auto", "int" or "string".
        columns: Names of the columns by position ("src,dst,time"), or of the columns to
            take; or the file's name of each role ({"src": "buyer"}, "src=buyer").
        separator: What separates columns in text, where not the format's own.
        skip: Lines to leave out at the beginning of each text file.
        undirected: Every edge stands for both directions.
        edge_type: Type of the edges, where not the format's own.
        num_threads: Threads that read ahead; None for one per core.
        time_unit: Unit of times of edges that are integers: "s", "ms", "us", "ns" or "d".
        known: As in :class:`graphsys.datasets.base.ReadOptions`.
        guards_names: Ids are strings because those of the graph are, not since the user
            says so: headers, comments and the like are still no ids.

    Raises:
        InputError: a file is missing, damaged at its beginning, or not of the format.
        ConfigError: an option has a value that does not exist.
        UnknownNameError: there is no such format or column.
    """
    options = read_options(
        ids=ids,
        columns=columns,
        separator=separator,
        skip=skip,
        undirected=undirected,
        edge_type=edge_type,
        num_threads=num_threads,
    )
    options = replace(options, guards_names=guards_names, known=known)
    _load_readers()
    one = isinstance(paths, (str, os.PathLike))
    given = [Path(paths)] if one else [Path(path) for path in paths]  # type: ignore[arg-type, union-attr] # a sequence where not one
    if not given:
        raise InputError("no input file was named, expected at least one")
    format = _named(format)
    reader = None if format is None else formats.get(format)
    kept: list[IO[bytes]] = []
    try:
        files, reader_name = _expand(given, format, kept)
        reader = reader or formats.get(reader_name)
        source = reader.open(files, options)
    except BaseException:
        _close(kept)
        raise
    weakref.finalize(source, _close, kept)
    return source if time_unit is None else TimedSource(source, time_unit)


def _close(kept: list[IO[bytes]]) -> None:
    """Delete what pipes gave."""
    for file in kept:
        file.close()


def _named(name: str | None) -> str | None:
    """Return the format that a user names, perhaps by the ending of its files."""
    if name is None or name in formats.names():
        return name
    ending = f".{name.lower().lstrip('.')}"
    of_ending = [it for it in formats.names() if ending in formats.get(it).suffixes]
    return of_ending[0] if len(of_ending) == 1 else name


def format_names() -> list[str]:
    """Return the names of all formats."""
    _load_readers()
    return formats.names()


def _load_readers() -> None:
    """Import the readers, which register themselves."""
    for name in _READERS:
        importlib.import_module(f"graphsys.datasets.{name}")


def _expand(
    given: list[Path], format_name: str | None, kept: list[IO[bytes]]
) -> tuple[list[InputFile], str]:
    """Replace folders by the files meant, and guess the format; ``kept`` gets pipes'."""
    paths: list[Path] = []
    guesses: set[str] = set()
    for path in given:
        if path.is_dir():
            inside, guess = _folder(path, format_name)
            paths += inside
        else:
            paths.append(path)
            guess = format_name or guess_format(path)
        guesses.add(guess)
    files = [_input(path, kept) for path in paths]
    far = next((file for file in files if file.uri is not None), None)
    if far is not None:
        if not guesses <= _REMOTE:
            raise InputError(
                f"{far.name}: format {cut_list(sorted(guesses))} reads several files "
                "beside each other, expected them on a local disk; copy them"
            )
        if far.path.name.lower().endswith(_ARCHIVES):
            raise InputError(f"{far.name}: an archive, expected a local one; copy it")
    if guesses == {"csv", "neo4j"}:
        with_header = [file for file in files if is_typed(file)]
        data = [file.name for file in files if file not in with_header]
        for file in with_header:
            refuse_lone_header(file, data[0])
    if len(guesses) > 1:
        raise InputError(
            f"{cut_list(given)}: looks like several formats "
            f"({', '.join(sorted(guesses))}), "
            "expected one; say which with --format"
        )
    return files, guesses.pop()


def guess_format(path: Path) -> str:
    """Guess the format of a file from its name.

    Raises:
        InputError: the name does not tell.
    """
    if is_pipe(path):
        raise InputError(
            f"{path}: a pipe has no name that tells the format; say it with --format, one "
            f"of {', '.join(formats.names())}"
        )
    if path.suffix.lower() == ".zip":
        return _guess_zipped(path)
    name = path.name.lower()
    if planetoid_name(path) is not None:
        return "planetoid"
    if name.endswith(_ARCHIVES) and as_uri(path) is None:
        return "triples"
    stem, suffix = base_name(path)
    for format_name in formats.names():
        if any(fnmatch(stem + suffix, it) for it in formats.get(format_name).patterns):
            return format_name
    for format_name in formats.names():
        if suffix and suffix in formats.get(format_name).suffixes:
            return "neo4j" if format_name == "csv" and _is_neo4j(path) else format_name
    input_file(path)  # a missing file is the nearer reason
    refuse_other(path)
    raise InputError(
        f"{path}: the name does not tell the format; say it with --format, "
        f"one of {', '.join(formats.names())}"
    )


def _input(path: Path, kept: list[IO[bytes]]) -> InputFile:
    """Look at a file, or put aside what a pipe gives."""
    if not is_pipe(path):
        return input_file(path)
    file, temporary = put_aside(path)
    kept.append(temporary)
    return file


def _guess_zipped(path: Path) -> str:
    """Guess the format of the one file of a zip archive, by either name.

    Raises:
        InputError: it has several files, or neither name tells.
    """
    plain, inner = path.with_suffix(""), Path(only_member(path).member or "")
    for name in (plain, Path(inner.name)):
        for format_name in formats.names():
            suffix = base_name(name)[1]
            if suffix and suffix in formats.get(format_name).suffixes:
                return format_name
    raise InputError(
        f"{path}: the name does not tell the format of what is in it; say it with "
        f"--format, one of {', '.join(formats.names())}"
    )


def _is_neo4j(path: Path) -> bool:
    """Tell whether a CSV file on this machine has a header of Neo4j's import."""
    return as_uri(path) is None and is_typed(input_file(path))


def _folder(folder: Path, format_name: str | None) -> tuple[list[Path], str]:
    """Return the files of a folder that form a graph, and their format.

    Raises:
        InputError: the folder has no known layout.
    """
    try:
        names = sorted(path for path in folder.iterdir() if path.is_file())
    except OSError as err:
        raise InputError(f"{folder}: cannot be listed: {err.strerror}") from err
    splits = [
        path for path in split_files(folder) if base_name(path)[1] in (".txt", ".tsv")
    ]
    if splits and format_name in (None, "triples"):
        return splits, "triples"
    graphs = [
        path for path in names if planetoid_name(path) and path.name.endswith(".graph")
    ]
    if len(graphs) == 1 and format_name in (None, "planetoid"):
        return graphs, "planetoid"
    if graphs and format_name in (None, "planetoid"):
        raise InputError(
            f"{folder}: holds {len(graphs)} citation graphs, expected one; name the file, "
            f"for example {graphs[0]}"
        )
    for name in formats.names() if format_name is None else [format_name]:
        find = formats.get(name).find
        if find is not None and (found := find(folder)):
            return found, name
    if format_name not in (None, "triples", "planetoid"):
        raise InputError(
            f"{folder}: a folder with no files of format {format_name}; name the files in "
            "it, or leave the format out"
        )
    raise InputError(
        f"{folder}: is a folder, expected a file; name the files in it, or give a folder "
        f"with {', '.join(SPLITS)} files (triples) or ind.NAME.graph (planetoid)"
    )
