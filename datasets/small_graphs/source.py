"""Many small graphs as one: nodes say which graph they are of, graphs what they are.

A node type ``graph`` has a node for every graph, with its ``label``. Nodes of type ``node``
have the id of their graph in the column ``graph_id``. No edge leads from one graph to
another, so that the whole is block-diagonal.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from graphsys.core.arrays import distinct
from graphsys.core.caller_warnings import note
from graphsys.core.errors import InputError
from graphsys.core.types import EDGE, EdgeType
from graphsys.storage.source import EdgeChunk, NodeChunk, Source

GRAPH: Final = "graph"
GRAPH_ID: Final = "graph_id"
_MOST_TAGS: Final = 256
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallGraphs:
    """What files say of many graphs.

    Attributes:
        graph_ids: Ids of the graphs ``[G]``.
        labels: Their classes ``[G]``, integers or an Arrow array of strings.
        first_node: Id of the first node; the others follow.
        graph_of: Id of the graph of every node ``[N]``.
        src: Nodes at which entries are listed, an edge at both of its ends ``[E]``.
        dst: Their neighbors ``[E]``.
        tags: Classes of nodes, of which they may have several each ``[N, T]``.
        x: Numbers of nodes ``[N, F]``, or None.
        graph_columns: More columns of graphs, by name ``[G]``.
        columns: More columns of nodes, by name ``[N]``.
        features: More features of nodes, by name ``[N, F]``.
    """

    graph_ids: Ints
    labels: Any
    first_node: int
    graph_of: Ints
    src: Ints
    dst: Ints
    tags: Ints
    x: npt.NDArray[np.float32] | None = None
    graph_columns: Mapping[str, Any] = field(default_factory=dict)
    columns: Mapping[str, Any] = field(default_factory=dict)
    features: Mapping[str, Any] = field(default_factory=dict)


class SmallGraphsSource(Source):
    """A source of many small graphs, whose edges are undirected.

    Args:
        name: What is read, for messages.
        total_bytes: Of all files.
        read: Reads them.
        edge_type: Type of the edges; both ends are of one type.
    """

    is_directed = False

    def __init__(
        self,
        name: str,
        total_bytes: int,
        read: Callable[[], SmallGraphs],
        edge_type: EdgeType | None,
    ) -> None:
        self.name, self.total_bytes = name, total_bytes
        self._read, self._edge_type = read, edge_type or EDGE

    def chunks(self) -> Iterator[EdgeChunk | NodeChunk]:
        """Yield the graphs, then their nodes, then the edges, each once.

        Raises:
            InputError: a file is malformed, or an edge leads from graph to graph.
        """
        found = self._read()
        yield NodeChunk(
            ids=found.graph_ids,
            node_type=GRAPH,
            columns={"label": found.labels, **found.graph_columns},
        )
        count, tags = len(found.graph_of), found.tags
        names = ["tag", *(f"tag_{k + 1}" for k in range(1, tags.shape[1]))]
        columns: dict[str, Any] = {
            name: tags[:, k] for k, name in enumerate(names[: tags.shape[1]])
        }
        columns |= found.columns
        features: dict[str, Any] = dict(found.features)
        if (coded := _one_hot(tags)) is not None:
            features["tag"] = coded
        if found.x is not None:
            features["x"] = found.x
        yield NodeChunk(
            ids=np.arange(found.first_node, found.first_node + count, dtype=np.int64),
            node_type=self._edge_type.src_type,
            columns={GRAPH_ID: found.graph_of, **columns},
            features=features,
        )
        src, dst = self._edges(found)
        yield EdgeChunk(
            src=src, dst=dst, edge_type=self._edge_type, bytes_read=self.total_bytes or 0
        )

    def _edges(self, found: SmallGraphs) -> tuple[Ints, Ints]:
        """Return each edge once, from the end with the smaller id.

        Either end may list it: so do the readers of GIN and of PyG, on whose files this
        is measured, and copies of theirs are not always sound.
        """
        src, dst = found.src, found.dst
        own, other = (found.graph_of[ends - found.first_node] for ends in (src, dst))
        if (places := np.flatnonzero(own != other)).size:
            k = int(places[0])
            raise InputError(
                f"{self.name}: an edge leads from node {src[k]} of graph {own[k]} to node "
                f"{dst[k]} of graph {other[k]}, expected edges within graphs; of one graph "
                "make an edge list"
            )
        stride = found.first_node + len(found.graph_of)
        keys = np.minimum(src, dst) * stride + np.maximum(src, dst)
        up, down = distinct(keys[src < dst]), distinct(keys[src > dst])
        lone = len(np.setxor1d(up, down, assume_unique=True))
        again = np.count_nonzero(src != dst) - len(up) - len(down)
        if lone or again:
            note(
                f"{self.name}: {lone} edges are listed at one of their ends alone, and "
                f"{again} entries are listed again; each is one undirected edge here"
            )
        edges = distinct(keys)
        return edges // stride, edges % stride


def _one_hot(tags: Ints) -> npt.NDArray[np.int8] | None:
    """Return columns of 0 and 1 for tags, or None where they say nothing or too much."""
    parts = []
    for column in tags.T:
        values = distinct(column)
        if 1 < len(values) <= _MOST_TAGS:
            parts.append((column[:, None] == values[None]).astype(np.int8))
    return np.concatenate(parts, axis=1) if parts else None
