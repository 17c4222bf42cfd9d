"""Graph sets as the authors of GIN have them: one text file with all graphs.

The first line has the number of graphs. A graph is a line ``NODES LABEL`` and a line for
each of its nodes: ``TAG DEGREE NEIGHBOR NEIGHBOR ...``, neighbors counting from 0 within
the graph. Here graphs and nodes count from 0 through the file.

References:
    Xu et al., "How powerful are graph neural networks?", ICLR 2019;
    github.com/weihua916/powerful-gnns, ``util.py``.
"""

import re
from functools import partial
from typing import Final

import numpy as np

from graphsys.core.errors import InputError
from graphsys.datasets.base import Format, ReadOptions, formats
from graphsys.datasets.files import InputFile, read_head, text_file
from graphsys.datasets.small_graphs.source import Ints, SmallGraphs, SmallGraphsSource
from graphsys.datasets.small_graphs.tu import refuse_options
from graphsys.datasets.text.layout import as_count, show
from graphsys.datasets.text.lines import line_at
from graphsys.kernels.cpu.text.adjacency import parse_neighbors
from graphsys.storage.source import Source

_MOST: Final = 10**12
_ODD_LINE: Final = re.compile(rb"^[ \t\r]*(?:%|$)", re.MULTILINE)  # of no node
_LEADING: Final = 2  # nodes and label of a graph, tag and degree of a node


def open_gin(files: list[InputFile], options: ReadOptions) -> Source:
    """Make a source of one set of graphs.

    Raises:
        InputError: the first line is no number of graphs, or there are several files.
        ConfigError: options go with columns of text.
    """
    refuse_options(options, "gin")
    if len(files) != 1:
        raise InputError(
            f"{files[1].name}: a second set of graphs, expected one; ingest each by itself"
        )
    file = text_file(files[0])
    first = read_head(file).split(b"\n")[0].split()
    if len(first) != 1 or not as_count(first[0]):
        raise InputError(
            f"{file.name}:1: found {show(b' '.join(first))}, expected the number of "
            "graphs alone; is it another format?"
        )
    read = partial(_read, file, as_count(first[0]) or 0)
    return SmallGraphsSource(file.name, file.num_bytes, read, options.edge_type)


def _read(file: InputFile, num_graphs: int) -> SmallGraphs:
    """Read all graphs.

    Raises:
        InputError: a line does not fit, or there are fewer or more of them.
    """
    body = file.read_all().rstrip().partition(b"\n")[2]
    data = np.array(bytearray(body + b"\n"), dtype=np.uint8)
    num_lines = body.count(b"\n") + 1
    leading = np.zeros((num_lines, _LEADING), dtype=np.int64)
    ends = np.empty(num_lines, dtype=np.int64)
    neighbors = np.empty(len(data) // 2 + 1, dtype=np.int64)
    none, no_place = np.empty(0, np.float64), np.empty((0, 3), np.int64)
    _, entries, _, bad = parse_neighbors(
        data, 0, _MOST, _LEADING, False, leading, ends, neighbors, none, no_place
    )
    if bad < 0 and (odd := _ODD_LINE.search(body)):
        bad = odd.start()
    if bad >= 0:
        line = body[:bad].count(b"\n") + 2
        raise InputError(
            f"{file.name}:{line}: found {show(line_at(data, bad))}, expected integers: "
            "NODES LABEL of a graph, or TAG DEGREE NEIGHBOR ... of a node"
        )
    heads = _heads(file, leading[:, 0], num_graphs)
    sizes, labels = leading[heads, 0], leading[heads, 1]
    is_node = np.ones(num_lines, dtype=bool)
    is_node[heads] = False
    lengths = np.diff(ends, prepend=0)
    _check_lines(file, leading[:, 1], lengths, is_node)
    offsets = np.cumsum(sizes) - sizes
    graph_of = np.repeat(np.arange(num_graphs), sizes)
    degrees = lengths[is_node]
    src = np.repeat(np.arange(len(graph_of)), degrees)
    local = neighbors[:entries]
    beyond = np.flatnonzero(local >= np.repeat(sizes[graph_of], degrees))
    if len(beyond):
        line = int(np.flatnonzero(is_node)[src[beyond[0]]]) + 2
        raise InputError(
            f"{file.name}:{line}: found neighbor {local[beyond[0]]}, expected 0 to "
            f"{sizes[graph_of[src[beyond[0]]]] - 1}, the nodes of the graph"
        )
    return SmallGraphs(
        graph_ids=np.arange(num_graphs, dtype=np.int64),
        labels=labels,
        first_node=0,
        graph_of=graph_of,
        src=src,
        dst=local + offsets[graph_of[src]],
        tags=leading[is_node, :1],
    )


def _heads(file: InputFile, sizes: Ints, num_graphs: int) -> Ints:
    """Return the rows of lines that begin a graph; each says where the next one is."""
    heads: list[int] = []
    row = 0
    while row < len(sizes) and len(heads) < num_graphs:
        heads.append(row)
        row += 1 + int(sizes[row])
    if len(heads) != num_graphs or row != len(sizes):
        found = f"{len(heads)} graphs up to line {min(row, len(sizes)) + 1}"
        what = "and lines behind them" if row < len(sizes) else "and then the end"
        raise InputError(
            f"{file.name}: found {found}, {what}, expected {num_graphs} as line 1 says, "
            "of as many lines as each says; is the file cut?"
        )
    return np.array(heads, dtype=np.int64)


def _check_lines(file: InputFile, degrees: Ints, lengths: Ints, is_node: Ints) -> None:
    """Check that lines of graphs have no neighbors, and lines of nodes their degree."""
    wrong = np.flatnonzero(lengths != np.where(is_node, degrees, 0))
    if len(wrong):
        row = int(wrong[0])
        what = f"{degrees[row]} neighbors as its degree says" if is_node[row] else "none"
        raise InputError(
            f"{file.name}:{row + 2}: found {lengths[row]} neighbors, expected {what}; "
            "attributes of nodes are not read"
        )


formats.register("gin")(
    Format(open=open_gin, about="many small graphs, NODES LABEL and a line a node (GIN)")
)
