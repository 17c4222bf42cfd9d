"""Graph sets in TU Dortmund's layout: a folder with ``NAME_A.txt`` and its siblings.

``NAME_A.txt`` lists both directions of every edge (``3, 5``), ``NAME_graph_indicator.txt``
the graph of every node and ``NAME_graph_labels.txt`` the class of every graph, a line each.
There may be ``NAME_node_labels.txt`` (``tag``) and ``NAME_node_attributes.txt`` (feature
``x``). Nodes and graphs count from 1, as the files have them.

References:
    Morris et al., "TUDataset: a collection of benchmark datasets for learning with
    graphs", ICML workshop GRL+ 2020; graphlearning.io.
"""

from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.caller_warnings import note
from graphsys.core.errors import ConfigError, InputError
from graphsys.datasets.array_files import dense_features
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, input_file, text_file
from graphsys.datasets.small_graphs.source import Ints, SmallGraphs, SmallGraphsSource
from graphsys.datasets.text.first_lines import first_lines
from graphsys.datasets.text.layout import ID, INTEGER, NUMBER, LineFormat, TextColumn
from graphsys.datasets.text.source import parse_file
from graphsys.storage.source import Source

_INDICATOR: Final = "_graph_indicator.txt"
_COMMA: Final = ord(",")
_NOT_READ: Final = ("edge_labels", "edge_attributes", "graph_attributes")


def open_tu(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one set of graphs; its other files lie beside the one given.

    Raises:
        InputError: a file is missing, or there are several sets.
        ConfigError: options go with columns of text.
    """
    refuse_options(options, "tu")
    if len(files) != 1 or not files[0].path.name.endswith(_INDICATOR):
        raise InputError(
            f"{files[-1].name}: expected the folder of one set of graphs, or its file "
            f"NAME{_INDICATOR}"
        )
    folder, name = files[0].path.parent, files[0].path.name.removesuffix(_INDICATOR)

    def beside(part: str) -> InputFile | None:
        path = folder / f"{name}_{part}.txt"
        return text_file(input_file(path)) if path.is_file() else None

    there: dict[str, Any] = {
        part: text_file(input_file(folder / f"{name}_{part}.txt"))
        for part in ("A", "graph_indicator", "graph_labels")
    }
    there |= {part: beside(part) for part in ("node_labels", "node_attributes")}
    for part in _NOT_READ:
        if (folder / f"{name}_{part}.txt").is_file():
            note(
                f"{folder}/{name}_{part}.txt is not read: networks here take no input of "
                "edges, and of graphs their class alone"
            )
    total = sum(file.num_bytes for file in there.values() if file is not None)
    read = partial(_read, there)
    return SmallGraphsSource(str(folder / f"{name}_A.txt"), total, read, options.edge_type)


def refuse_options(options: ReadOptions, name: str) -> None:
    """Refuse what the layout of a set of graphs says itself.

    Raises:
        ConfigError: columns, lines to skip, a separator, strings as ids, or two types.
    """
    if options.columns or options.roles or options.skip or options.separator:
        raise ConfigError(
            f"{name} files have fixed columns; leave out columns, separator and skip"
        )
    if options.ids == "string":
        raise ConfigError(f"ids: got string, but {name} files number nodes; leave it out")
    kind = options.edge_type
    if kind is not None and kind.src_type != kind.dst_type:
        raise ConfigError(
            f"edge_type: got {kind}, expected one node type at both ends, as every node of "
            "a graph has"
        )


def _read(files: dict[str, InputFile | None]) -> SmallGraphs:
    """Read the files of a set.

    Raises:
        InputError: a line does not fit, or files have lines for other nodes or graphs.
    """
    graph_of = _numbers(files["graph_indicator"], ID, width=1)[:, 0]
    labels = _numbers(files["graph_labels"], INTEGER, width=1)[:, 0]
    count, num_graphs = len(graph_of), len(labels)
    _require_ids(files["graph_indicator"], graph_of, num_graphs, "graph")
    entries = _numbers(files["A"], ID, width=2)
    _require_ids(files["A"], entries, count, "node")
    tags: Any = np.empty((count, 0), dtype=np.int64)
    if files["node_labels"] is not None:
        tags = _numbers(files["node_labels"], INTEGER, rows=count)
    x = None
    if (attributes := files["node_attributes"]) is not None:
        x = dense_features(attributes.name, _numbers(attributes, NUMBER, rows=count))
    return SmallGraphs(
        graph_ids=np.arange(1, num_graphs + 1, dtype=np.int64),
        labels=labels,
        first_node=1,
        graph_of=graph_of,
        src=entries[:, 0],
        dst=entries[:, 1],
        tags=tags,
        x=x,
    )


def _numbers(
    file: InputFile | None, kind: int, *, width: int | None = None, rows: int | None = None
) -> npt.NDArray[Any]:
    """Parse numbers between commas ``[n, width]``.

    Args:
        file: The file.
        kind: ID, INTEGER or NUMBER.
        width: Numbers of a line; as many as the first has by default.
        rows: Lines that are expected, one for every node.

    Raises:
        InputError: a line does not fit, or there are other lines.
    """
    assert file is not None  # whoever asks for it knows that it is there
    first = first_lines(file, skip=0, separator=_COMMA, has_comments=False)[0]
    columns = [f"column {k + 1}" for k in range(width or len(first.fields))]
    layout = LineFormat(
        columns=tuple(TextColumn(name, kind) for name in columns),
        separator=_COMMA,
        has_comments=False,
        first_line=first.number,
    )
    parts = [
        np.stack([parsed.columns[name] for name in columns], axis=1)
        for parsed in parse_file(file, layout)
    ]
    found = np.concatenate(parts)
    if rows is not None and len(found) != rows:
        raise InputError(
            f"{file.name}: {len(found)} lines, expected {rows}, one for each node of the "
            "graph indicator"
        )
    return found


def _require_ids(file: InputFile | None, ids: Ints, count: int, what: str) -> None:
    """Check that ids are numbers from 1 to a count."""
    assert file is not None  # it was read
    wrong = np.argwhere((ids < 1) | (ids > count))
    if len(wrong):
        value = ids[tuple(wrong[0])]
        raise InputError(
            f"{file.name}: found {what} {value} in row {int(wrong[0][0]) + 1}, expected 1 "
            f"to {count}, which the other files list; is one of them cut?"
        )


def _find(folder: Path) -> list[Path]:
    """Return the graph indicator of a folder that holds one set."""
    found = sorted(folder.glob(f"*{_INDICATOR}"))
    return found if len(found) == 1 else []


formats.register("tu")(
    Format(
        open=open_tu,
        patterns=(f"*{_INDICATOR}",),
        find=_find,
        about="many small graphs, NAME_A.txt and its siblings (TU Dortmund)",
    )
)
