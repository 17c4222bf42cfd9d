"""Folders of graphs in files of their own: GraphML or JSON, classes beside or within them.

Each ``.graphml`` or ``.json`` file is a graph, read by NetworkX. ``labels.csv`` has a
``graph`` (a file's name, with or without its ending) and a ``label`` in each line, and
perhaps more columns, such as ``split``; without it each graph has an attribute ``label``.
Graphs and nodes count from 0, files in the order of their names.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from graphsys.core.caller_warnings import note
from graphsys.core.errors import InputError, cut_list
from graphsys.datasets.array_files import dense_features
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile
from graphsys.datasets.readers.networkx_files import read_graph
from graphsys.datasets.small_graphs.source import SmallGraphs, SmallGraphsSource
from graphsys.datasets.small_graphs.tu import refuse_options
from graphsys.storage.source import Source

LABELS: Final = "labels.csv"
_ENDINGS: Final = {".graphml": "graphml", ".json": "json"}
_PAPERS: Final = ("README", "LICENSE")
_TAKEN: Final = ("id", "node_id", "graph_id", "src", "dst")
_MOST_CLASSES: Final = 256
_LABEL: Final = "label"
Rows = Sequence[Mapping[Any, Any]]


def open_graph_files(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of the graphs of a folder.

    Raises:
        InputError: there is another file, or no graph.
        ConfigError: options go with columns of text.
    """
    refuse_options(options, "graph")
    graphs = [file for file in files if file.path.name != LABELS]
    for file in graphs:
        if file.path.suffix.lower() not in _ENDINGS:
            raise InputError(
                f"{file.name}: expected a folder of {' or '.join(_ENDINGS)} files, each a "
                f"graph, and perhaps {LABELS}"
            )
    tables = [file for file in files if file.path.name == LABELS]
    if not graphs or len(tables) > 1:
        raise InputError(
            f"{tables[-1].name}: expected one {LABELS} beside the files of its graphs; "
            "name their folder"
        )
    graphs.sort(key=lambda file: file.path.name)
    stems = [file.path.stem for file in graphs]
    for one, other in pairwise(sorted(stems)):
        if one == other:
            raise InputError(
                f"{graphs[0].path.parent}: found two graphs called {one!r}, expected "
                "different names; rename one of the files"
            )
    total = sum(file.num_bytes for file in files)
    read = partial(_read, graphs, tables[0] if tables else None)
    return SmallGraphsSource(str(graphs[0].path.parent), total, read, options.edge_type)


def _read(files: list[InputFile], table: InputFile | None) -> SmallGraphs:
    """Read all graphs.

    Raises:
        MissingDependencyError: NetworkX is not installed.
        InputError: a file cannot be read, has no nodes, or no label is known of it.
    """
    graphs = [_graph(file) for file in files]
    columns = _labels(files, graphs) if table is None else _table(files, table)
    sizes = np.array([len(graph) for graph in graphs], dtype=np.int64)
    offsets = np.cumsum(sizes) - sizes
    nodes = [node for graph in graphs for node in graph.nodes(data=True)]
    where = str(files[0].path.parent)
    found, features = _attributes(where, [attributes for _, attributes in nodes])
    ends = list(_edges(graphs, offsets))
    _warn(where, graphs)
    edges = np.array(ends, dtype=np.int64).reshape(-1, 2)
    return SmallGraphs(
        graph_ids=np.arange(len(graphs), dtype=np.int64),
        labels=columns.pop(_LABEL),
        first_node=0,
        graph_of=np.repeat(np.arange(len(graphs)), sizes),
        src=edges[:, 0],
        dst=edges[:, 1],
        tags=np.empty((len(nodes), 0), dtype=np.int64),
        graph_columns={"name": pa.array([file.path.stem for file in files]), **columns},
        columns={"node_id": pa.array([str(node) for node, _ in nodes]), **found},
        features=features,
    )


def _graph(file: InputFile) -> Any:
    graph = read_graph(file, _ENDINGS[file.path.suffix.lower()])
    if not len(graph):
        raise InputError(
            f"{file.name}: the graph has no nodes, expected at least one; "
            f"remove the file, and its line of {LABELS} if there is one"
        )
    return graph


def _edges(graphs: list[Any], offsets: Any) -> Iterator[tuple[int, int]]:
    """Yield the edges of all graphs at both of their ends, each once."""
    for graph, first in zip(graphs, offsets.tolist(), strict=True):
        place = {node: first + k for k, node in enumerate(graph)}
        pairs = {(place[u], place[v]) for u, v in graph.edges()}
        yield from sorted(pairs | {(v, u) for u, v in pairs})


def _warn(where: str, graphs: list[Any]) -> None:
    """Tell what of the files networks do not see."""
    directed = sum(graph.is_directed() for graph in graphs)
    if directed:
        note(
            f"{where}: {directed} of {len(graphs)} graphs are directed; each edge is one "
            "undirected edge here"
        )
    names = {name for g in graphs for _, _, found in g.edges(data=True) for name in found}
    if names:
        known = cut_list(sorted(map(str, names)))
        note(
            f"{where}: attributes of edges are not read ({known}): networks here take no "
            "input of edges"
        )


def _labels(files: list[InputFile], graphs: list[Any]) -> dict[str, Any]:
    """Return the graphs' own attribute ``label``."""
    found = [graph.graph.get(_LABEL) for graph in graphs]
    for file, label in zip(files, found, strict=True):
        if label is None:
            raise InputError(
                f"{file.name}: the graph has no attribute 'label', expected its class "
                f"there, or a file {LABELS} beside it with the columns graph and label"
            )
    return {_LABEL: _column(str(files[0].path.parent), _LABEL, found)}


def _table(files: list[InputFile], table: InputFile) -> dict[str, Any]:
    """Return the columns of the table, in the order of the files."""
    try:
        text = table.read_all().decode("utf-8-sig")
    except UnicodeDecodeError as err:
        raise InputError(f"{table.name}: expected text in UTF-8 ({err.reason})") from err
    lines = list(csv.reader(io.StringIO(text)))
    header = [name.strip() for name in lines[0]] if lines else []
    if not {"graph", _LABEL} <= set(header) or len(set(header)) < len(header):
        raise InputError(
            f"{table.name}:1: found {','.join(header)[:80]!r}, expected different names of "
            "columns, graph and label among them"
        )
    names = {file.path.stem: k for k, file in enumerate(files)}
    names |= {file.path.name: k for k, file in enumerate(files)}
    rows: list[list[str] | None] = [None] * len(files)
    for number, line in enumerate(lines[1:], 2):
        if not line:
            continue
        if len(line) != len(header):
            raise InputError(
                f"{table.name}:{number}: found {len(line)} columns, expected "
                f"{len(header)} as in line 1"
            )
        cells = [cell.strip() for cell in line]
        name = cells[header.index("graph")]
        place = names.get(name)
        if place is None or rows[place] is not None:
            what = "a second line" if place is not None else "no file of that name"
            raise InputError(
                f"{table.name}:{number}: found graph {name!r} and {what}, expected one "
                f"line for each of the {len(files)} files beside it"
            )
        rows[place] = cells
    for file, row in zip(files, rows, strict=True):
        if row is None or not row[header.index(_LABEL)]:
            raise InputError(
                f"{table.name}: no label for {file.path.name}, expected a line "
                f"'{file.path.stem},CLASS'"
            )
    return {
        name: _column(table.name, name, [_number(row[k]) for row in rows if row])
        for k, name in enumerate(header)
        if name != "graph"
    }


def _number(cell: str) -> int | str:
    """Return a cell as an integer, where it is one as Python writes it."""
    return int(cell) if cell.lstrip("-").isdecimal() and str(int(cell)) == cell else cell


def _column(where: str, name: str, values: list[Any]) -> Any:
    """Return classes as a column: all integers, or else all names."""
    if all(type(value) is int for value in values):
        return np.array(values, dtype=np.int64)
    for value in values:
        if isinstance(value, list | dict | float):
            raise InputError(
                f"{where}: found {name} {str(value)[:40]!r}, expected integers or names"
            )
    return pa.array([str(value) for value in values])


def _attributes(where: str, rows: Rows) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes of nodes as columns, and as features.

    Lists of numbers and numbers with a point are features; integers, names and truths are
    columns, and where they have few values features of 0 and 1.

    Raises:
        InputError: one is missing, or of several kinds.
    """
    columns: dict[str, Any] = {}
    features: dict[str, Any] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        what = f"{where}: node attribute {name!r}"
        if not isinstance(name, str) or name in _TAKEN:
            raise InputError(
                f"{what}: expected a name other than {', '.join(_TAKEN)}; rename it"
            )
        values = [row.get(name) for row in rows]
        if any(isinstance(value, list | float) for value in values):
            features[name] = _numbers(what, values)
            continue
        try:
            columns[name] = pa.array(values)
        except (pa.ArrowException, OverflowError) as err:
            raise InputError(f"{what}: values of several types, expected one") from err
        if pa.types.is_nested(columns[name].type):
            raise InputError(f"{what}: found an object, expected numbers, names or lists")
        known = columns[name].drop_null().unique().sort()
        if 1 < len(known) <= _MOST_CLASSES:
            places = pc.index_in(columns[name], known)
            coded = places.fill_null(-1).to_numpy(zero_copy_only=False)
            features[name] = (coded[:, None] == np.arange(len(known))).astype(np.int8)
    return columns, features


def _numbers(what: str, values: list[Any]) -> Any:
    """Return numbers, or lists of as many, as features ``[n, d]``."""
    missing = sum(value is None for value in values)
    if missing:
        raise InputError(
            f"{what}: {missing} of {len(values)} nodes have none, expected numbers at all"
        )
    try:
        found = np.array(values)
    except ValueError as err:
        raise InputError(f"{what}: lists of several lengths, expected one") from err
    return dense_features(what, found)


def _find(folder: Path) -> list[Path]:
    """Return the files of a folder of graphs: with their labels, or two or more alone.

    JSON is in folders of other layouts too, beside what is theirs.
    """
    inside = [it for it in folder.iterdir() if not it.name.startswith((".", *_PAPERS))]
    found = sorted(it for it in inside if it.suffix.lower() in _ENDINGS)
    if (table := folder / LABELS).is_file():
        return [*found, table] if found else []
    return found if len(found) == len(inside) > 1 else []


formats.register("graphs")(
    Format(
        open=open_graph_files,
        find=_find,
        about="many small graphs, a folder of GraphML or JSON files, with labels.csv",
    )
)
